"""A boat's file: the vessel, and tables for its link, its guard, its fence and its sensors, all optional."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anyhull.boat.fence import Circle, Fence, Polygon
from anyhull.boat.filter import Sensors
from anyhull.boat.guard import Limits
from anyhull.boat.link import Ends
from anyhull.errors import InputError
from anyhull.toml import build
from anyhull.vessel import Vessel


@dataclass(frozen=True)
class Setup:
    """All that the loop on the boat needs to know of it."""

    vessel: Vessel
    link: Ends = field(default_factory=Ends)
    """`[link]`."""
    limits: Limits = field(default_factory=Limits)
    """`[guard]`."""
    fence: Fence | None = None
    """`[fence]`: x, y and radius, or corners."""
    sensors: Sensors = field(default_factory=Sensors)
    """`[sensors]`."""

    @staticmethod
    def load(name_or_path: str | Path) -> Setup:
        """From a TOML file; a vessel of the catalogue comes with what is usual."""
        vessel = Vessel.load(name_or_path)
        path = Path(name_or_path)
        if path.suffix != ".toml":
            return Setup(vessel)
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        try:
            return Setup(
                vessel,
                build(Ends, table.get("link", {}), "link."),
                build(Limits, table.get("guard", {}), "guard."),
                _fence(table["fence"]) if "fence" in table else None,
                build(Sensors, table.get("sensors", {}), "sensors."),
            )
        except InputError as error:
            raise InputError(f"{path}: {error}") from None


def _fence(table: Any) -> Fence:
    if not isinstance(table, dict) or "corners" not in table:
        return build(Circle, table, "fence.")
    corners = table["corners"]
    numbers = isinstance(corners, list) and all(
        isinstance(corner, list) and all(type(value) in (int, float) for value in corner) for corner in corners
    )
    if not numbers:
        raise InputError(f"fence.corners = {corners!r}: must be a list of pairs of numbers [x, y] (m, m)")
    return build(Polygon, table | {"corners": tuple(map(tuple, corners))}, "fence.")
