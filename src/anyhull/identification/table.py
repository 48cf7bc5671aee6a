"""A voyage as a table in CSV: as `anyhull log --csv` writes it, or from elsewhere with columns `name [unit]`."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from anyhull.backend import Array
from anyhull.errors import InputError
from anyhull.files import read_text
from anyhull.log import LARGEST_VALUE, Log
from anyhull.schema import shown
from anyhull.vessel import Vessel

LARGEST = 500_000_000
"""Size of a table, bytes: two weeks of a pilot."""

DEGREE, KNOT = math.pi / 180, 1852 / 3600

UNITS: dict[str, dict[str, float]] = {
    "time": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9},
    "x": {"m": 1.0},
    "y": {"m": 1.0},
    "psi": {"rad": 1.0, "deg": DEGREE},
    "u": {"m/s": 1.0, "kn": KNOT},
    "v": {"m/s": 1.0, "kn": KNOT},
    "r": {"rad/s": 1.0, "deg/s": DEGREE},
}
"""Accepted units of a state, with their value in SI."""

COMMANDS = {"surge": "N", "sway": "N", "yaw": "N m"}
"""Axes of a command, fractions of the limits [-] or forces in this unit."""

HEADER = re.compile(r"(?P<name>.*?)\s*(?:\[(?P<unit>[^]]*)\])?")


def read_table(path: Path, vessel: Vessel | None) -> Log:
    """States and commands of a table; forces and thrusters need the `vessel` that they are of."""
    rows = csv.reader(read_text(path, LARGEST, "utf-8-sig").splitlines())
    try:
        header = [name.strip() for name in next(rows, [])]
        columns = _columns(path, header)
        if len({"surge", "sway", "yaw"} & set(columns)) and "surge" not in columns:
            raise InputError(f"{path}: column surge is missing")
        thrusters = sorted((n for n in columns if n.startswith("thrusters ")), key=lambda n: int(n.split()[1]))
        _check(path, columns, thrusters)
        state = ["time", *list(UNITS)[1:]]
        wanted = [columns[name][0] for name in state]
        drive = [name for name in COMMANDS if name in columns] or thrusters
        angles = [name.replace("thrusters", "angles") for name in thrusters] if drive is thrusters else []
        angles = [name for name in angles if name in columns]
        wanted += [columns[name][0] for name in (*drive, *angles)]
        data = _numbers(path, rows, header, wanted)
    except csv.Error as error:
        raise InputError(f"{path}: not a table in CSV: {error}") from None
    factors = [_factor(path, name, columns[name][1]) for name in state]
    values = data[:, : len(state)] * factors
    if (back := np.flatnonzero(np.diff(values[:, 0]) < 0)).size:
        raise InputError(f"{path}: line {back[0] + 3}, column {header[wanted[0]]!r}: time runs backward")
    commands = data[:, len(state) : len(state) + len(drive)]
    if drive is thrusters:
        command = _of_thrusters(path, commands, data[:, len(state) + len(drive) :], vessel)
    else:
        command = np.zeros((len(data), 3))
        for i, name in enumerate(drive):
            command[:, list(COMMANDS).index(name)] = commands[:, i] / _full(path, name, columns[name][1], vessel)
    if not np.abs(command).max(initial=0.0) <= 1.5:
        row, axis = np.unravel_index(int(np.abs(command).argmax()), command.shape)
        name = list(COMMANDS)[axis]
        limit = "fractions of the limits" if vessel is None else f"within the limits of {vessel.name}"
        raise InputError(f"{path}: line {row + 2}: command {name} is {command[row, axis]:.4g}: must be {limit}")
    empty = np.zeros((len(data), 6))
    return Log(values[:, 0], values[:, 1:], empty, command, empty[:, :2], empty[:, :3])


def _columns(path: Path, header: list[str]) -> dict[str, tuple[int, str | None]]:
    """Place and unit of the known columns; an estimated state comes before the true one of a simulation."""
    found: dict[str, tuple[int, str | None]] = {}
    estimated = any(name.startswith("estimate ") for name in header)
    for i, column in enumerate(header):
        match = HEADER.fullmatch(column)
        assert match is not None
        name = match["name"].strip().lower()
        own = "estimate " if estimated else "state "
        if name.startswith(own):
            name = name.removeprefix(own)
        elif estimated and name in UNITS and name != "time":
            continue
        name = name.removeprefix("command ")
        if name in UNITS or name in COMMANDS or re.fullmatch(r"(thrusters|angles) \d{1,3}", name):
            if name in found:
                raise InputError(f"{path}: column {column!r}: {name} is there twice")
            found[name] = i, match["unit"]
    return found


def _check(path: Path, columns: dict[str, tuple[int, str | None]], thrusters: list[str]) -> None:
    for name, units in UNITS.items():
        if name not in columns:
            accepted = " or ".join(f"'{name} [{unit}]'" for unit in units)
            raise InputError(f"{path}: column {name} is missing: must be {accepted}")
    if "surge" not in columns and not thrusters:
        accepted = "'surge [-]', 'sway [-]' and 'yaw [-]', the same in N and N m, or 'thrusters 0 [-]' and so on"
        raise InputError(f"{path}: no commands: must have columns {accepted}")


def _numbers(path: Path, rows: Iterable[list[str]], header: list[str], wanted: list[int]) -> Array:
    found = []
    for number, row in enumerate(rows, 2):
        if not row:
            continue
        if len(row) != len(header):
            raise InputError(f"{path}: line {number}: {len(row)} cells: must be {len(header)}, as in the header")
        try:
            values = [float(row[i]) for i in wanted]
            if all(abs(value) <= LARGEST_VALUE for value in values):
                found.append(values)
                continue
        except ValueError:
            pass
        i = next(i for i in wanted if not _is_number(row[i]))
        raise InputError(f"{path}: line {number}, column {header[i]!r}: {shown(row[i])}: must be a number")
    if not found:
        raise InputError(f"{path}: no rows below the header")
    return np.array(found)


def _is_number(cell: str) -> bool:
    try:
        return abs(float(cell)) <= LARGEST_VALUE
    except ValueError:
        return False


def _factor(path: Path, name: str, unit: str | None) -> float:
    """The value of a unit in SI, which a column without one has."""
    if unit is None:
        return 1.0
    if unit not in UNITS[name]:
        raise InputError(f"{path}: column '{name} [{unit}]': the unit must be {' or '.join(UNITS[name])}")
    return UNITS[name][unit]


def _full(path: Path, name: str, unit: str | None, vessel: Vessel | None) -> float:
    """The command of this column that is the whole limit."""
    if unit in (None, "-", "1"):
        return 1.0
    if unit != COMMANDS[name]:
        raise InputError(f"{path}: column '{name} [{unit}]': the unit must be - (of the limits) or {COMMANDS[name]}")
    if vessel is None:
        raise InputError(f"{path}: column '{name} [{unit}]': needs the limits of the boat: give --vessel")
    return vessel.limits[list(COMMANDS).index(name)] or math.inf


def _of_thrusters(path: Path, commands: Array, angles: Array, vessel: Vessel | None) -> Array:
    """The body force of the thrusters' commands as fractions of the limits."""
    if vessel is None or len(vessel.thrusters) != commands.shape[1]:
        has = "no vessel" if vessel is None else f"{len(vessel.thrusters)} thrusters in {vessel.name}"
        raise InputError(
            f"{path}: {commands.shape[1]} columns of thrusters, {has}: give --vessel with those, in this order"
        )
    command = np.zeros((len(commands), 3))
    for i, thruster in enumerate(vessel.thrusters):
        thrust = np.array([thruster.thrust(value) for value in commands[:, i].tolist()])
        if angles.shape[1]:
            columns = np.array([thruster.column(angle) for angle in angles[:, i].tolist()])
        else:
            columns = thruster.column(math.radians(thruster.angle))[None]
        command += thrust[:, None] * columns
    limits = np.array([limit or math.inf for limit in vessel.limits])
    return np.asarray(command / limits)
