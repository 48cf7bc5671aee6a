"""The records of an ArduPilot DataFlash log (.BIN), which describes its own messages.

A record is A3 95, a byte for its type, and the fields. Type 128 (FMT) defines another type: its number, its length with
the three bytes before, its name, a letter for each field, and the fields' names, as in "Logging" of ArduPilot's
developer documentation. Reading is linear in the size of the file, whatever it holds: damaged stretches are skipped.
"""

from __future__ import annotations

import mmap
import struct
from array import array
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyhull.backend import Array
from anyhull.errors import InputError

HEADER, DEFINITION, DEFINITION_LENGTH = b"\xa3\x95", 128, 89

LETTERS = {
    "a": ("(32,)<i2", 1.0),
    "b": ("i1", 1.0),
    "B": ("u1", 1.0),
    "g": ("<f2", 1.0),
    "h": ("<i2", 1.0),
    "H": ("<u2", 1.0),
    "i": ("<i4", 1.0),
    "I": ("<u4", 1.0),
    "f": ("<f4", 1.0),
    "d": ("<f8", 1.0),
    "n": ("S4", 1.0),
    "N": ("S16", 1.0),
    "Z": ("S64", 1.0),
    "c": ("<i2", 0.01),
    "C": ("<u2", 0.01),
    "e": ("<i4", 0.01),
    "E": ("<u4", 0.01),
    "L": ("<i4", 1e-7),
    "M": ("u1", 1.0),
    "q": ("<i8", 1.0),
    "Q": ("<u8", 1.0),
}
"""NumPy's type and the factor of each letter."""

LARGEST = 1_000_000_000
"""Size of a file, bytes: several hours of all messages at their highest rates."""

MOST_GAPS = 10_000
"""Damaged stretches after which a file is none of ArduPilot's."""


class Messages(NamedTuple):
    """All messages of one type."""

    rows: NDArray[Any]
    """Raw fields, by name."""
    factors: dict[str, float]

    def __len__(self) -> int:
        return len(self.rows)

    def numbers(self, field: str) -> Array:
        """A field in its unit; NaN where it has none of that name, or a text."""
        names = self.rows.dtype.names or ()
        if field not in names or self.rows.dtype[field].kind not in "iuf" or self.rows.dtype[field].shape:
            return np.full(len(self.rows), np.nan)
        values: Array = self.rows[field].astype(np.float64) * self.factors[field]
        return values

    def texts(self, field: str) -> list[str]:
        """A field of text, without what cannot be printed; empty where it has none of that name."""
        names = self.rows.dtype.names or ()
        if field not in names or self.rows.dtype[field].kind != "S":
            return [""] * len(self.rows)
        found = (raw.split(b"\0")[0].decode(errors="replace") for raw in self.rows[field].tolist())
        return ["".join(c for c in text if c.isprintable()) for text in found]

    def where(self, rows: Any) -> Messages:
        """Those of some rows."""
        return Messages(self.rows[rows], self.factors)


def read_messages(path: Path, wanted: Collection[str]) -> dict[str, Messages]:
    """The messages of the wanted types that a file holds, by name."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            if size > LARGEST:
                raise InputError(f"{path}: {size / 1e6:.0f} MB: must be at most {LARGEST / 1e6:.0f} MB")
            if size < DEFINITION_LENGTH:
                raise InputError(f"{path}: not a DataFlash log: too short")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _scan(path, data, wanted)
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _scan(path: Path, data: mmap.mmap, wanted: Collection[str]) -> dict[str, Messages]:
    lengths, size, at, gaps = [0] * 256, len(data), 0, 0
    lengths[DEFINITION] = DEFINITION_LENGTH
    types: dict[int, tuple[str, np.dtype[Any], dict[str, float]]] = {}
    places: dict[int, array[int]] = {}
    while at + 3 <= size:
        kind = data[at + 2]
        length = lengths[kind]
        if data[at : at + 2] != HEADER or not length:
            gaps += 1
            at = data.find(HEADER, at + 1)
            if at < 0 or gaps > MOST_GAPS:
                break
            continue
        if at + length > size:
            break
        if kind == DEFINITION:
            if (found := _definition(data[at + 3 : at + length])) is not None and found[0] not in types:
                number, lengths[found[0]], name, dtype, factors = found
                types[number] = (name, dtype, factors)
                if name in wanted:
                    places[number] = array("q")
        elif kind in places:
            places[kind].append(at)
        at += length
    if gaps > MOST_GAPS or not types:
        raise InputError(f"{path}: not a DataFlash log, or damaged throughout: must be a .BIN of ArduPilot")
    messages: dict[str, Messages] = {}
    for number, offsets in places.items():
        name, dtype, factors = types[number]
        if not len(offsets) or name in messages:
            continue
        raw = b"".join(data[at + 3 : at + lengths[number]] for at in offsets)
        messages[name] = Messages(np.frombuffer(raw, dtype), factors)
    return messages


def _definition(body: bytes) -> tuple[int, int, str, np.dtype[Any], dict[str, float]] | None:
    """Number, length, name, type and factors that an FMT record states; None for one that contradicts itself."""
    number, length, *texts = struct.unpack("<BB4s16s64s", body)
    name, letters, columns = (text.split(b"\0")[0].decode("ascii", "replace") for text in texts)
    if number == DEFINITION or not name.isprintable() or not all(letter in LETTERS for letter in letters):
        return None
    fields = columns.split(",")
    if len(set(fields)) != len(letters) or len(fields) != len(letters) or not all(fields):
        fields = [f"field {i}" for i in range(len(letters))]  # its length is needed to read on
    dtype = np.dtype([(field, LETTERS[letter][0]) for field, letter in zip(fields, letters, strict=True)])
    if dtype.itemsize + 3 != length:
        return None
    return number, length, name, dtype, {f: LETTERS[letter][1] for f, letter in zip(fields, letters, strict=True)}
