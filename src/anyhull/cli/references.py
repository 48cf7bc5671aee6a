"""References of the command line: a shape with its sizes, or waypoints."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from anyhull.errors import InputError, unknown
from anyhull.reference import Reference, circle, figure_eight, hold, line, rounded_rectangle, through

SHAPES: dict[str, tuple[Callable[..., Reference], tuple[str, ...]]] = {
    "line": (line, ("length", "speed", "heading")),
    "circle": (circle, ("radius", "speed", "laps", "heading")),
    "rectangle": (rounded_rectangle, ("length", "width", "radius", "speed", "laps", "heading")),
    "eight": (figure_eight, ("length", "width", "speed", "laps", "heading")),
    "hold": (lambda heading=0.0, **given: hold((0.0, 0.0, heading), **given), ("heading",)),
}
"""References by name, and the options of each."""


def shape(name: str, options: dict[str, float], duration: float | None) -> Reference:
    """The reference of that name with these options, angles in degrees."""
    if name not in SHAPES:
        raise InputError(unknown("reference", name, SHAPES))
    build, accepted = SHAPES[name]
    for option, value in options.items():
        if option not in accepted:
            raise InputError(f"--{option} {value:g}: {name} takes {_list(f'--{other}' for other in accepted)} only")
    given = {option: math.radians(value) if option == "heading" else value for option, value in options.items()}
    if name == "hold" and duration is not None:
        given["duration"] = duration
    return build(**given)


def path_through(text: str, options: dict[str, float]) -> Reference:
    """The path through the waypoints of a text or a CSV file."""
    rows = _waypoints(text)
    columns = len(rows[0])
    closed = len(rows) > 3 and rows[0][:2] == rows[-1][:2]
    for option, value in options.items():
        if option not in ("speed", "heading", "laps"):
            raise InputError(f"--{option} {value:g}: waypoints take --speed, --heading and, if closed, --laps only")
        if (option == "speed" and columns > 2) or (option == "heading" and columns > 3):
            raise InputError(f"--{option} {value:g}: the waypoints have a column for it: give one of the two")
        if option == "laps" and not closed:
            raise InputError(f"--laps {value:g}: only for a closed path, whose last waypoint is the first")
    if not options.get("laps", 1.0) > 0:
        raise InputError(f"laps = {options['laps']!r}: must be a positive number")
    table = np.array(rows[:-1] if closed else rows)
    given: dict[str, Any] = {"laps": options.get("laps", 1.0), "closed": closed}
    if columns > 2 or "speed" in options:
        given["speed"] = table[:, 2].tolist() if columns > 2 else options["speed"]
    if columns > 3 or "heading" in options:
        given["heading"] = np.radians(table[:, 3]).tolist() if columns > 3 else math.radians(options["heading"])
    return through(table[:, :2].tolist(), **given)


def _waypoints(text: str) -> list[list[float]]:
    """Rows of two to four numbers, from a CSV file or from 'x,y x,y ...'."""
    file = Path(text)
    if file.suffix == ".csv":
        try:
            lines = list(csv.reader(file.read_text(encoding="utf-8-sig").splitlines()))
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{file}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
        entries = [(f"{file}: line {i}", cells) for i, cells in enumerate(lines, 1) if any(map(str.strip, cells))]
        if entries and not any(_number(cell) is not None for cell in entries[0][1]):
            entries = entries[1:]  # a header
    else:
        entries = [(f"--waypoints: waypoint {i}", part.split(",")) for i, part in enumerate(text.split(), 1)]
    if len(entries) < 2:
        raise InputError(f"{file if file.suffix == '.csv' else '--waypoints'}: must hold two or more waypoints")
    rows = []
    for where, cells in entries:
        numbers = [_number(cell) for cell in cells]
        if len(cells) not in (2, 3, 4) or None in numbers:
            raise InputError(f"{where}: {','.join(cells)!r}: must be finite numbers x,y[,speed[,heading]]")
        if len(cells) != len(entries[0][1]):
            raise InputError(f"{where}: {','.join(cells)!r}: must have {len(entries[0][1])} columns, as the first row")
        rows.append([number for number in numbers if number is not None])
    return rows


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _list(words: Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last
