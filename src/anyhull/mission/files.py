"""Mission files -> `Plan`: our own TOML, CSV with named columns, and the formats of other programs."""

from __future__ import annotations

import csv
import math
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

from anyhull.errors import InputError
from anyhull.files import parse_toml
from anyhull.mission.formats import read_geojson, read_gpx, read_qgc_plan
from anyhull.mission.plan import MOST_WAYPOINTS, Plan, Waypoint
from anyhull.schema import decode, unknown_key

LARGEST = {".toml": 1_000_000, ".csv": 2_000_000}
LARGEST_OTHER = 10_000_000
"""Largest file, bytes: formats with much beside the waypoints may be larger."""

COLUMNS = {"x": "m", "y": "m", "lat": "deg", "lon": "deg", "speed": "m/s", "heading": "deg", "hold": "s", "radius": "m"}
"""Columns of a CSV file and their units."""


def read_plan(path: Path) -> Plan:
    """The plan of a mission file, by its suffix in upper or lower case."""
    suffix = path.suffix.lower()
    if suffix not in READERS:
        raise InputError(f"a mission file ends in {', '.join(READERS)}: must have one of these endings")
    try:
        most = LARGEST.get(suffix, LARGEST_OTHER)
        if path.stat().st_size > most:
            raise InputError(f"{path.stat().st_size / 1e6:.0f} MB: must be at most {most / 1e6:g} MB")
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}") from None
    plan: Plan = READERS[suffix](content)
    return plan


def _text(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"cannot be read: {error}") from None


def read_toml(content: bytes) -> Plan:
    """A plan as the fields of `Plan`."""
    table = parse_toml(_text(content), "the mission")
    accepted = [field.name for field in fields(Plan) if field.name not in ("notes", "home")]
    for key in table:
        if key not in accepted:
            raise unknown_key(key, table[key], accepted)
    return decode(Plan, table)


def read_csv(content: bytes) -> Plan:
    """Waypoints, one a row, under a header that names each column with its unit, such as `x [m]`."""
    rows = [
        (i, cells) for i, cells in enumerate(csv.reader(_text(content).splitlines()), 1) if any(map(str.strip, cells))
    ]
    if not rows:
        raise InputError("holds no waypoint: must have a header and one row for each waypoint")
    if any(separator in cell.strip() for cell in rows[0][1] for separator in (";", "\t")):
        raise InputError(f"line {rows[0][0]}: {','.join(rows[0][1])!r}: the separator of columns must be a comma")
    columns = [_column(cell.strip()) for cell in rows[0][1]]
    if len(set(columns)) < len(columns):
        raise InputError(f"line {rows[0][0]}: {','.join(rows[0][1])!r}: must name each column once")
    place = [name for name in ("x", "y", "lat", "lon") if name in columns]
    if place not in (["x", "y"], ["lat", "lon"]):
        raise InputError(
            f"line {rows[0][0]}: {','.join(rows[0][1])!r}: must name 'x [m]' and 'y [m]', or "
            "'lat [deg]' and 'lon [deg]'"
        )
    if len(rows) - 1 > MOST_WAYPOINTS:
        raise InputError(f"holds {len(rows) - 1} waypoints: must be at most {MOST_WAYPOINTS}")
    waypoints = []
    for line, cells in rows[1:]:
        if len(cells) != len(columns):
            raise InputError(f"line {line}: {','.join(cells)!r}: must have {len(columns)} columns, as the header")
        values = {name: _number(cell, name, line) for name, cell in zip(columns, cells, strict=True) if cell.strip()}
        for name in place:
            if name not in values:
                raise InputError(f"line {line}: {name} is empty: must be a finite number")
        table: dict[str, Any] = {name: value for name, value in values.items() if name not in place}
        try:
            waypoints.append(decode(Waypoint, table | {"at": [values[name] for name in place]}))
        except InputError as error:
            raise InputError(f"line {line}: {error}") from None
    return Plan(coordinates="local" if place == ["x", "y"] else "geographic", waypoints=tuple(waypoints))


def _column(header: str) -> str:
    """The name of a column with its unit, such as `speed [m/s]`."""
    found = re.fullmatch(r"(\w+)\s*\[\s*([^\]\s]+)\s*\]", header)
    if found is None or COLUMNS.get(found[1].lower()) != found[2]:
        accepted = ", ".join(f"{name} [{unit}]" for name, unit in COLUMNS.items())
        raise InputError(f"column {header!r}: must be one of {accepted}, with its unit")
    return found[1].lower()


def _number(text: str, name: str, line: int) -> float:
    try:
        value = float(text) if "_" not in text else math.nan
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"line {line}: {name} = {text.strip()!r}: must be a finite number")
    return value


READERS = {
    ".toml": read_toml,
    ".csv": read_csv,
    ".gpx": read_gpx,
    ".geojson": read_geojson,
    ".json": read_geojson,
    ".plan": read_qgc_plan,
}
"""Readers by the suffix of the file."""
