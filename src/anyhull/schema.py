"""Decodes tables of plain values (TOML, JSON, a command line) into dataclasses, with errors in one line.

An error names the field by its path, the value and what would be accepted. The same rules serve vessel files, boat
files, training configs, policy files and the messages of a link.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import reprlib
import sys
import types
from collections.abc import Callable, Collection
from typing import Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from anyhull.errors import InputError

T = TypeVar("T")

UNIONS = (types.UnionType, Union)
"""Origins of `X | None`; of a Literal it is the second."""


_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = 80
_REPR.maxlist = _REPR.maxtuple = _REPR.maxdict = 8


def shown(value: Any) -> str:
    """`value` as an error shows it: long or deeply nested ones are abridged."""
    return _REPR.repr(value)


class FieldError(InputError):
    """A field with an invalid value."""

    def __init__(self, path: str, value: Any, accepted: str) -> None:
        super().__init__(f"{path} = {shown(value)}: must be {accepted}")
        self.path, self.value, self.accepted = path, value, accepted


def decode(hint: type[T], value: Any, path: str = "", *, unknown_keys: Literal["refuse", "ignore"] = "refuse") -> T:
    """`value` as the type `hint`: a dataclass from a table, a NamedTuple or tuple from a list, or a plain value."""
    decoded: T = _decode(hint, value, path, unknown_keys)
    return decoded


def check_types(instance: Any) -> None:
    """Raise for the first field of a dataclass whose value its declared type does not admit."""
    for name, hint in type_hints(type(instance)).items():
        _decode(hint, getattr(instance, name), name, "refuse")


def unknown_key(key: str, value: Any, accepted: Collection[str], prefix: str = "") -> InputError:
    """The error for a key of a table that is not one of `accepted`."""
    near = difflib.get_close_matches(key[:80], accepted, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"accepted are {', '.join(accepted)}"
    return InputError(f"{prefix}{key[:80]} = {shown(value)}: unknown key; {hint}")


def require(instance: Any, field: str, holds: bool, accepted: str) -> None:
    """Raise a `FieldError` unless `holds`."""
    if not holds:
        raise FieldError(field, getattr(instance, field), accepted)


def _type_hints(kind: Any) -> dict[str, Any]:
    """The declared types of a dataclass's fields, by name."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


type_hints: Callable[[Any], dict[str, Any]] = functools.cache(_type_hints)


class Shape(NamedTuple):
    """What the decoder needs to know of a declared type."""

    origin: Any
    options: tuple[Any, ...]
    is_dataclass: bool
    is_sequence: bool


@functools.cache
def _shape(hint: Any) -> Shape:
    origin = get_origin(hint)
    return Shape(origin, get_args(hint), dataclasses.is_dataclass(hint), origin is tuple or hasattr(hint, "_fields"))


def _decode(hint: Any, value: Any, path: str, unknown_keys: str) -> Any:
    origin, options, is_dataclass, is_sequence = _shape(hint)
    if origin in UNIONS:
        return None if value is None else _decode(options[0], value, path, unknown_keys)
    if is_dataclass:
        return value if isinstance(value, hint) else _table(hint, value, path, unknown_keys)
    if is_sequence:
        several = options[-1] is Ellipsis if options else False
        kinds = [options[0]] * len(value) if several and isinstance(value, list | tuple) else _entries(hint)
        if not isinstance(value, list | tuple) or len(value) != len(kinds):
            raise FieldError(path, value, describe(hint))
        entries = [
            _decode(kind, e, f"{path}[{i}]", unknown_keys) for i, (kind, e) in enumerate(zip(kinds, value, strict=True))
        ]
        return hint(*entries) if hasattr(hint, "_fields") else tuple(entries)
    if hint is float and type(value) in (int, float) and abs(value) <= sys.float_info.max:
        return float(value)
    if origin is Literal and isinstance(value, str) and value in options:
        return value
    if origin is dict and isinstance(value, dict):
        return value
    # An integer of hundreds of digits fits no array and no float.
    if type(value) is hint and hint is not float and (hint is not int or abs(value) < 2**63):
        return value
    raise FieldError(path, value, describe(hint))


@functools.cache
def _required(kind: Any) -> list[str]:
    """The fields of a dataclass without a default."""
    missing = dataclasses.MISSING
    return [f.name for f in dataclasses.fields(kind) if f.default is missing and f.default_factory is missing]


def _entries(hint: Any) -> list[Any]:
    """The types of a fixed tuple's or NamedTuple's entries."""
    return list(get_type_hints(hint).values()) if hasattr(hint, "_fields") else list(get_args(hint))


def _table(kind: type[T], table: Any, path: str, unknown_keys: str) -> T:
    """A dataclass from the keys of a table, which must be its fields."""
    if not isinstance(table, dict):
        raise FieldError(path or kind.__name__, table, "a table")
    hints, prefix = type_hints(kind), f"{path}." if path else ""
    for key in table if unknown_keys == "refuse" else ():
        if key not in hints:
            raise unknown_key(key, table[key], hints, prefix)
    for name in _required(kind):  # type: ignore[arg-type]
        if name not in table:
            raise InputError(f"{prefix}{name} is missing: must be {describe(hints[name])}")
    values = {name: _decode(hints[name], v, prefix + name, unknown_keys) for name, v in table.items() if name in hints}
    try:
        return kind(**values)
    except FieldError as error:
        written = table.get(error.path, error.value)  # as in the file, before conversion to float
        raise FieldError(prefix + error.path, written, error.accepted) from None
    except InputError as error:
        raise InputError(f"{prefix}{error}") from None


def describe(hint: Any) -> str:
    """A description of the values that a type accepts."""
    origin, options = get_origin(hint), get_args(hint)
    if origin in UNIONS:
        return describe(options[0])
    if origin is Literal:
        *first, last = map(repr, options)
        return f"{', '.join(first)} or {last}" if first else last
    if origin is tuple or hasattr(hint, "_fields"):
        if options and options[-1] is Ellipsis:
            return "a list of tables" if dataclasses.is_dataclass(options[0]) else f"a list of {_plural(options[0])}"
        return f"a list of {len(_entries(hint))} {_plural(_entries(hint)[0])}"
    if dataclasses.is_dataclass(hint) or origin is dict:
        return "a table"
    return {float: "a finite number", int: "a whole number", bool: "true or false", str: "a string"}[hint]


def _plural(hint: Any) -> str:
    plain = {float: "finite numbers", int: "whole numbers", str: "strings"}
    return plain[hint] if hint in plain else f"lists, each {describe(hint)}"
