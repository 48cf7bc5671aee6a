"""Atomic file writes, and reads that refuse what is unreadable, huge or damaged in one line."""

from __future__ import annotations

import json
import os
import re
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from anyhull.errors import InputError

LARGEST_TEXT = 200_000
"""Size of a file that a person writes, bytes: a vessel, a boat or waypoints."""

LONG_KEY = re.compile(r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){50}""")
"""A dotted TOML key of more than 50 parts: tomllib takes time and memory of the square of their number."""


@contextmanager
def atomic_write(path: str | Path) -> Iterator[Path]:
    """A temporary path in the same folder; it replaces `path` if the block succeeds, else it is removed."""
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise IsADirectoryError(None, "Is a directory")
        # The suffix is kept, since writers select the format by it.
        handle, name = tempfile.mkstemp(prefix=f".{path.stem}-", suffix=path.suffix, dir=path.parent)
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written: {error.strerror}; give a path in a folder you may write to"
        ) from None
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        with temporary.open("rb+") as written:
            os.fsync(written.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def read_text(path: str | Path, limit: int = LARGEST_TEXT, encoding: str = "utf-8") -> str:
    """The text of a file of at most `limit` bytes."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(limit + 1)  # not by its stated size: a device or a pipe has none
        text = data.decode(encoding)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > limit:
        raise InputError(f"{path}: larger than {limit / 1e6:g} MB: must be smaller")
    return text


def parse_toml(text: str, where: str | Path) -> dict[str, Any]:
    """The tables of a TOML document; `where` names it in an error."""
    if LONG_KEY.search(text):
        raise InputError(f"{where}: not valid TOML: a key of more than 50 parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise InputError(f"{where}: not valid TOML: nested too deeply") from None
    except ValueError as error:  # beside TOML's own, that of an integer with thousands of digits
        raise InputError(f"{where}: not valid TOML: {error}") from None


def read_toml(path: str | Path) -> dict[str, Any]:
    """The tables of a TOML file."""
    return parse_toml(read_text(path), path)


def parse_json(text: str, where: str | Path) -> Any:
    """The value of a JSON document; `where` names it in an error."""
    try:
        return json.loads(text)
    except RecursionError:
        raise InputError(f"{where} is not valid JSON: nested too deeply") from None
    except ValueError as error:
        raise InputError(f"{where} is not valid JSON: {error}") from None


def toml_text(table: dict[str, Any], path: str = "") -> str:
    """A TOML document with the values, lists and tables of a dictionary, as `parse_toml` reads them."""
    plain, tables = [], []
    for key, value in table.items():
        name = key if re.fullmatch(r"[\w-]+", key, re.ASCII) else json.dumps(key)
        inner = f"{path}.{name}" if path else name
        if isinstance(value, dict):
            tables.append(f"\n[{inner}]\n{toml_text(value, inner)}")
        elif isinstance(value, list) and value and all(isinstance(entry, dict) for entry in value):
            tables += [f"\n[[{inner}]]\n{toml_text(entry, inner)}" for entry in value]
        else:
            plain.append(f"{name} = {_toml_value(value)}\n")
    return "".join(plain + tables)


def _toml_value(value: Any) -> str:
    if isinstance(value, list) and any(isinstance(entry, list) for entry in value):
        return "[\n" + "".join(f"  {_toml_value(entry)},\n" for entry in value) + "]"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml_value, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml_value(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, str):
        # TOML has JSON's escapes, and no control character besides.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, int | float) else str(value)
