"""Geofences: the water in which the boat may be."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from anyhull.schema import check_types, require

Point = tuple[float, float]


class Fence(Protocol):
    """A region of the water, in the inertial frame."""

    def margin(self, x: float, y: float) -> float:
        """Distance of a position to the fence, m; negative outside."""


@dataclass(frozen=True)
class Circle:
    """The inside of a circle."""

    x: float
    """Of the centre, m."""
    y: float
    """Of the centre, m."""
    radius: float
    """m."""

    def __post_init__(self) -> None:
        check_types(self)
        require(self, "radius", self.radius > 0, "positive")

    def margin(self, x: float, y: float) -> float:
        """Distance of a position to the circle, m; negative outside."""
        return self.radius - math.hypot(x - self.x, y - self.y)


@dataclass(frozen=True)
class Polygon:
    """The inside of a simple polygon, convex or not."""

    corners: tuple[Point, ...]
    """In order, clockwise or counterclockwise, m."""

    def __post_init__(self) -> None:
        check_types(self)
        sides = self._sides()
        area = sum(a[0] * b[1] - b[0] * a[1] for a, b in sides) / 2
        require(self, "corners", len(self.corners) >= 3 and area != 0, "three or more that enclose some water")
        crossing = any(_cross(*one, *other) for i, one in enumerate(sides) for other in sides[i + 1 :])
        require(self, "corners", not crossing, "in order, so that sides do not cross")

    def margin(self, x: float, y: float) -> float:
        """Distance of a position to the nearest side, m; negative outside, by parity of crossings."""
        nearest, within = math.inf, False
        for (ax, ay), (bx, by) in self._sides():
            dx, dy = bx - ax, by - ay
            along = ((x - ax) * dx + (y - ay) * dy) / ((dx * dx + dy * dy) or 1.0)
            along = min(max(along, 0.0), 1.0)
            nearest = min(nearest, math.hypot(x - ax - along * dx, y - ay - along * dy))
            if (ay > y) != (by > y) and x < ax + dx * (y - ay) / dy:
                within = not within
        return nearest if within else -nearest

    def _sides(self) -> list[tuple[Point, Point]]:
        return list(pairwise((*self.corners, *self.corners[:1])))


def _cross(a: Point, b: Point, c: Point, d: Point) -> bool:
    """Whether the segments ab and cd cross between their ends."""

    def turn(a: Point, b: Point, c: Point) -> float:
        return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])

    return turn(a, b, c) * turn(a, b, d) < 0 and turn(c, d, a) * turn(c, d, b) < 0
