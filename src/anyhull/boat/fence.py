"""Geofences: where the boat may be."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from anyhull.errors import InputError
from anyhull.toml import check_types, require


class Fence(Protocol):
    """A region of the water, in the inertial frame."""

    def inside(self, x: float, y: float) -> float:
        """How far a place is inside, m; negative outside."""


@dataclass(frozen=True)
class Circle:
    """All places within a distance of one."""

    x: float
    """Of the centre, m."""
    y: float
    """Of the centre, m."""
    radius: float
    """m."""

    def __post_init__(self) -> None:
        check_types(self)
        require(self, "radius", self.radius > 0, "positive")

    def inside(self, x: float, y: float) -> float:
        """How far a place is inside, m; negative outside."""
        return self.radius - math.hypot(x - self.x, y - self.y)


@dataclass(frozen=True)
class Polygon:
    """All places within straight sides, convex or not."""

    corners: tuple[tuple[float, float], ...]
    """In order, either way round, m."""

    def __post_init__(self) -> None:
        for i, corner in enumerate(self.corners):
            if len(corner) != 2 or not all(map(math.isfinite, corner)):
                raise InputError(f"corners[{i}] = {corner!r}: must be two finite numbers (m, m)")
        sides = list(pairwise((*self.corners, *self.corners[:1])))
        area = sum(a[0] * b[1] - b[0] * a[1] for a, b in sides) / 2
        require(self, "corners", len(self.corners) >= 3 and area != 0, "three or more that enclose some water")
        for i, one in enumerate(sides):
            if any(_cross(one, other) for other in sides[i + 1 :]):
                raise InputError(f"corners = {self.corners!r}: must be in order, so that sides do not cross")

    def inside(self, x: float, y: float) -> float:
        """How far a place is inside, m; negative outside: the distance to the nearest side, by parity of crossings."""
        nearest, within = math.inf, False
        for (ax, ay), (bx, by) in pairwise((*self.corners, *self.corners[:1])):
            dx, dy = bx - ax, by - ay
            along = ((x - ax) * dx + (y - ay) * dy) / ((dx * dx + dy * dy) or 1.0)
            along = min(max(along, 0.0), 1.0)
            nearest = min(nearest, math.hypot(x - ax - along * dx, y - ay - along * dy))
            if (ay > y) != (by > y) and x < ax + dx * (y - ay) / dy:
                within = not within
        return nearest if within else -nearest


Side = tuple[tuple[float, float], tuple[float, float]]


def _cross(one: Side, other: Side) -> bool:
    """Whether two sides cross between their ends."""

    def turn(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> float:
        return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])

    (a, b), (c, d) = one, other
    return turn(a, b, c) * turn(a, b, d) < 0 and turn(c, d, a) * turn(c, d, b) < 0
