"""TOML tables into dataclasses, with errors that name the field, the value and what would be accepted."""

from __future__ import annotations

import difflib
import math
import types
from dataclasses import MISSING, fields
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from anyhull.errors import InputError

T = TypeVar("T")


def build(kind: type[T], table: Any, prefix: str = "") -> T:
    """A `kind` from the keys of a TOML table, which must be its fields; `prefix` leads up to them in errors."""
    if not isinstance(table, dict):
        raise InputError(f"{prefix.rstrip('.')} = {table!r}: must be a table")
    declared = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    for key in table:
        if key not in declared:
            near = difflib.get_close_matches(key, declared, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"accepted are {', '.join(declared)}"
            raise InputError(f"{prefix}{key} = {table[key]!r}: unknown key; {hint}")
    hints = get_type_hints(kind)
    for name, field in declared.items():
        if name not in table and field.default is MISSING and field.default_factory is MISSING:
            raise InputError(f"{prefix}{name} is missing: must be {_described(hints[name])}")
    try:
        return kind(**table)
    except InputError as error:
        raise InputError(f"{prefix}{error}") from None


def check_types(instance: Any) -> None:
    """Raise for the first field of a dataclass whose value its declared type does not admit."""
    for name, hint in get_type_hints(type(instance)).items():
        value = getattr(instance, name)
        if not _admits(hint, value):
            raise InputError(f"{name} = {value!r}: must be {_described(hint)}")


def require(instance: Any, field: str, holds: bool, accepted: str) -> None:
    """Raise, naming the field and its value, unless it holds."""
    if not holds:
        raise InputError(f"{field} = {getattr(instance, field)!r}: must be {accepted}")


def _admits(hint: Any, value: Any) -> bool:
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if get_origin(hint) is types.UnionType:
        return any(_admits(option, value) for option in get_args(hint))
    if get_origin(hint) is tuple:
        return isinstance(value, tuple) and all(isinstance(entry, get_args(hint)[0]) for entry in value)
    return isinstance(value, hint)


def _described(hint: Any) -> str:
    if hint is float:
        return "a finite number"
    if get_origin(hint) is Literal:
        *first, last = map(repr, get_args(hint))
        return f"{', '.join(first)} or {last}"
    if get_origin(hint) is types.UnionType:
        return _described(get_args(hint)[0])
    if get_origin(hint) is tuple:
        return f"tables [[{get_args(hint)[0].__name__.lower()}s]]"
    return {"str": "a string"}.get(hint.__name__, f"a {hint.__name__}")
