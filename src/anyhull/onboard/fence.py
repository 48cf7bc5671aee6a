"""Geofences: the water in which the boat may be."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np

from anyhull.backend import Array
from anyhull.hulls import at_least, possible
from anyhull.onboard.limits import Limits
from anyhull.reference import Reference
from anyhull.schema import check_types, require
from anyhull.vessel import Vessel

Point = tuple[float, float]


MOST_CORNERS = 500
"""Of a polygon."""

MAX_STOPPING_TIME = 20.0
"""Stopping distance over speed of a vessel with hardly any damping, s."""


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
        require(self, "corners", len(self.corners) <= MOST_CORNERS, f"at most {MOST_CORNERS}")
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


@dataclass(frozen=True, eq=False)
class Corridor:
    """The water within a distance of some points: the default fence of a mission."""

    points: Array
    """m, (n, 2)."""
    radius: float
    """m."""

    def margin(self, x: float, y: float) -> float:
        """Distance of a position to the edge of the corridor, m; negative outside."""
        dx, dy = (self.points - (x, y)).T
        return self.radius - math.sqrt(np.min(dx * dx + dy * dy))

    def with_way(self, start: Point, end: Point) -> Corridor:
        """The corridor with the straight way between two points."""
        way = np.linspace(start, end, 2 + int(math.dist(start, end)))
        return Corridor(np.concatenate([self.points, way]), self.radius)


def around(reference: Reference, radius: float) -> Corridor:
    """The corridor of `radius` m about a reference."""
    path = reference.at(np.linspace(0.0, reference.duration, min(100_000, 2 + int(reference.duration / 0.5))))
    # A point a metre is enough, and a reference of many laps passes each many times.
    return Corridor(np.unique(np.round(path[:, :2], 0), axis=0), radius)


@dataclass(frozen=True)
class Within:
    """The water inside all of several fences."""

    fences: tuple[Fence, ...]

    def margin(self, x: float, y: float) -> float:
        """Distance of a position to the nearest fence, m; negative outside any."""
        return min(fence.margin(x, y) for fence in self.fences)


def _cross(a: Point, b: Point, c: Point, d: Point) -> bool:
    """Whether the segments ab and cd cross between their ends."""

    def turn(a: Point, b: Point, c: Point) -> float:
        return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])

    return turn(a, b, c) * turn(a, b, d) < 0 and turn(c, d, a) * turn(c, d, b) < 0


def stopping_time(vessel: Vessel, limits: Limits) -> float:
    """The stopping distance over the speed, s: half a ramp, and the time constant of the damping in surge.

    Without hydrodynamics, a bound for most plausible hulls.
    """
    if limits.stopping_time is not None:
        return limits.stopping_time
    rate = float(at_least(np.array([hull.effective().inv_tau_u for hull in possible(vessel)])))
    most = MAX_STOPPING_TIME * vessel.scale.time
    return limits.ramp / 2 + (min(1 / rate, most) if rate > 0 else most)
