"""Survey patterns: the waypoints of a lawnmower over a polygon, convex or not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from anyhull.backend import Array
from anyhull.errors import InputError
from anyhull.paths import distance_to_legs
from anyhull.trajectory import positive

Point = tuple[float, float]
Line = tuple[float, float, float]
"""Ends of a leg along the lines and the place of its line across them, m."""


CLOSEST = 1e-3
"""Least distance between two corners of a polygon, m."""

GRID = 60
"""Points each way at which the cover of an area is checked."""


def check_polygon(corners: Sequence[Sequence[float]], what: str) -> Array:
    """The corners (n, 2) of a simple polygon, without a repeated last one; raise unless it encloses an area."""
    points = np.asarray(corners, dtype=float)
    if points.ndim != 2 or points.shape[1] != 2 or not np.isfinite(points).all():
        raise InputError(f"{what}: must be a list of corners, each a pair of finite numbers")
    if len(points) > 1 and np.array_equal(points[0], points[-1]):
        points = points[:-1]
    if len(points) < 3 or area(points) < 1e-6:
        raise InputError(f"{what} of {len(points)} corners: must have three or more that enclose some water")
    starts, ends = points, np.roll(points, -1, axis=0)
    if (lengths := np.hypot(*(ends - starts).T)).min() < CLOSEST:
        i = int(lengths.argmin())
        raise InputError(f"{what}: corners {i + 1} and {(i + 1) % len(points) + 1}: must be {CLOSEST:g} m apart")
    for i in range(len(points)):
        # Whether another side crosses this one: the ends of each lie on different sides of the other.
        one, two = _side(starts[i], ends[i], starts), _side(starts[i], ends[i], ends)
        three, four = _side(starts, ends, starts[i]), _side(starts, ends, ends[i])
        if ((one * two < 0) & (three * four < 0)).any():
            j = int(np.flatnonzero((one * two < 0) & (three * four < 0))[0])
            raise InputError(f"{what}: sides {i + 1} and {j + 1} cross: must be corners in order around the water")
    return points


def area(corners: Array) -> float:
    """The area of a polygon, m²."""
    x, y = (corners - corners[0]).T
    return float(abs((x * np.roll(y, -1) - np.roll(x, -1) * y).sum()) / 2)


def inside(corners: Array, points: Array, margin: float = 1e-6) -> NDArray[np.bool_]:
    """Which points (n, 2) lie in a polygon (m, 2) or within `margin` m of its sides."""
    within = np.zeros(len(points), dtype=bool)
    near = np.zeros(len(points), dtype=bool)
    for (ax, ay), (bx, by) in pairwise([*corners.tolist(), corners[0].tolist()]):
        x, y = points.T
        side = (x - ax) * (by - ay) - (bx - ax) * (y - ay)
        within ^= ((ay > y) != (by > y)) & ((side < 0) == (by > ay))
        length = math.hypot(bx - ax, by - ay)
        share = np.clip(((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / length**2, 0.0, 1.0)
        near |= np.hypot(x - ax - share * (bx - ax), y - ay - share * (by - ay)) <= margin
    return within | near


def lawnmower(area: Sequence[Sequence[float]], *, spacing: float, angle: float | None = None) -> list[Point]:
    """Waypoints (m) of parallel legs at most `spacing` m apart over a polygon, each leg inside it.

    The legs run at `angle` (rad, from x toward y), by default along the longest side. As few lines as cover the width
    are spread evenly over it, so that the outer ones lie at most half a spacing inside. In a polygon that is not
    convex, a line may have several legs: each part of the polygon that lines cross without a break is covered on its
    own, so that no leg leaves it. The next part is the nearest that can be reached inside the polygon, or else the
    nearest.
    """
    corners = check_polygon(area, "area")
    positive("spacing", spacing)
    if angle is None:
        sides = np.roll(corners, -1, axis=0) - corners
        longest = sides[np.argmax(np.hypot(*sides.T))]
        angle = math.atan2(longest[1], longest[0])
    if not math.isfinite(angle):
        raise InputError(f"angle = {angle!r}: must be a finite number")
    along, across = np.array([math.cos(angle), math.sin(angle)]), np.array([-math.sin(angle), math.cos(angle)])
    u, v = corners @ along, corners @ across
    width = float(v.max() - v.min())
    # A width of whole spacings takes no line more for its rounding.
    count = max(1, math.ceil(width / spacing - 1e-9))
    if count > 10_000:
        raise InputError(f"spacing = {spacing!r}: gives {count} lines over this area: must give at most 10000")
    gap = width / count
    cells: list[list[Line]] = []
    for v_line in v.min() + gap * (np.arange(count) + 0.5):
        legs = [(low, high, float(v_line)) for low, high in _crossings(u, v, float(v_line)) if high - low > 0.01]
        before = [cell for cell in cells if abs(cell[-1][2] + gap - v_line) < 1e-6]
        pairs = [(leg, cell) for leg in legs for cell in before if leg[0] < cell[-1][1] and cell[-1][0] < leg[1]]
        for leg in legs:
            joined = [cell for other, cell in pairs if other is leg]
            # A cell ends where the polygon parts or joins, so that within one a leg has one neighbour.
            if len(joined) == 1 and sum(cell is joined[0] for _, cell in pairs) == 1:
                joined[0].append(leg)
            else:
                cells.append([leg])
    if not cells:
        raise InputError(f"spacing = {spacing!r}: leaves no leg in this area: must be smaller")
    waypoints: list[Point] = []
    while cells:
        cell, backward, swapped = _nearest(cells, waypoints, corners, along, across)
        cells = [other for other in cells if other is not cell]
        for low, high, v_line in reversed(cell) if backward else cell:
            ends = (high, low) if swapped else (low, high)
            waypoints += [_point(end * along + v_line * across) for end in ends]
            swapped = not swapped
    return waypoints


def uncovered(area: Array, waypoints: Sequence[Point], spacing: float) -> float:
    """The share of a polygon that is farther than half a spacing from every leg of its lawnmower, on a grid."""
    low, high = area.min(axis=0), area.max(axis=0)
    # In the middle of cells, since points on a side may be taken for inside or outside.
    shares = (np.arange(GRID) + 0.5) / GRID
    points = low + (high - low) * np.stack(np.meshgrid(shares, shares), axis=-1).reshape(-1, 2)
    points = points[inside(area, points, margin=0.0)]
    nearest = np.full(len(points), np.inf)
    for start, end in zip(waypoints[::2], waypoints[1::2], strict=True):
        nearest = np.minimum(nearest, distance_to_legs(points, np.array(start), np.array(end)))
    return float(np.mean(nearest > spacing / 2 + CLOSEST)) if len(points) else 0.0


def _crossings(u: Array, v: Array, v_line: float) -> list[tuple[float, float]]:
    """The parts of a scan line inside a polygon, from its crossings with the sides in order."""
    u_next, v_next = np.roll(u, -1), np.roll(v, -1)
    crossed = (v > v_line) != (v_next > v_line)
    share = (v_line - v[crossed]) / (v_next[crossed] - v[crossed])
    found = np.sort(u[crossed] + share * (u_next[crossed] - u[crossed])).tolist()
    return list(zip(found[::2], found[1::2], strict=True))


def _nearest(
    cells: list[list[Line]], waypoints: list[Point], corners: Array, along: Array, across: Array
) -> tuple[list[Line], bool, bool]:
    """The cell with the entry nearest to the last waypoint; whether to cover it backward, and from its far end."""
    if not waypoints:
        return cells[0], False, False
    options: list[tuple[bool, float, int, list[Line], bool, bool]] = []
    for cell in cells:
        for backward in (False, True):
            low, high, v_line = cell[-1 if backward else 0]
            for swapped, end in ((False, low), (True, high)):
                entry = _point(end * along + v_line * across)
                leaves = not inside(corners, np.linspace(waypoints[-1], entry, 50), margin=0.01).all()
                options.append((leaves, math.dist(waypoints[-1], entry), len(options), cell, backward, swapped))
    return min(options)[3:]


def _point(values: Array) -> Point:
    return float(values[0]), float(values[1])


def _side(start: Array, end: Array, point: Array) -> Array:
    """On which side of the line from `start` to `end` a point lies; positive on the left."""
    along, to = end - start, point - start
    return np.asarray(along[..., 0] * to[..., 1] - along[..., 1] * to[..., 0])
