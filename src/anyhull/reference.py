"""References to follow: shapes, straight legs between waypoints, splines through them, station keeping."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from anyhull.backend import Array
from anyhull.errors import InputError
from anyhull.legs import Legs, legs
from anyhull.paths import Arcs, Curve, Path, Repeated, spline
from anyhull.speeds import speed_profile
from anyhull.trajectory import (
    LEAST,
    MOST,
    PREVIEW,
    Brake,
    Chain,
    Follow,
    Hold,
    Moved,
    Reference,
    Stage,
    Turn,
    check_waypoints,
    positive,
)

__all__ = [
    "PREVIEW",
    "Brake",
    "Chain",
    "Follow",
    "Hold",
    "Legs",
    "Moved",
    "Reference",
    "Stage",
    "Turn",
    "circle",
    "figure_eight",
    "hold",
    "legs",
    "line",
    "rounded_rectangle",
    "through",
]


FASTEST = 100.0
"""Largest speed of a reference, m/s."""


def line(length: float = 10.0, *, speed: float = 0.6, heading: float | None = None) -> Reference:
    """A straight along x of `length` m at `speed` m/s; `heading` (rad), if given, is fixed."""
    return _steady(Arcs([positive("length", length)], [0.0], closed=False), speed, heading)


def circle(radius: float = 3.0, *, speed: float = 0.6, laps: float = 1.0, heading: float | None = None) -> Reference:
    """A circle of `radius` m at `speed` m/s, to the left for a positive radius and to the right for a negative one."""
    if not (math.isfinite(radius) and 1e-3 <= abs(radius) <= MOST):
        raise InputError(f"radius = {radius!r}: must be a number other than zero, from 0.001 to {MOST:g} m either way")
    return _steady(Arcs([2 * math.pi * abs(radius)], [1 / radius], closed=True), speed, heading, laps)


def rounded_rectangle(
    length: float = 10.0,
    width: float = 6.0,
    radius: float = 2.0,
    *,
    speed: float = 0.6,
    laps: float = 1.0,
    heading: float | None = None,
) -> Reference:
    """The paper's validation path: a `length` by `width` m rectangle with corners of `radius` m, counter-clockwise.

    It starts in the middle of a long side, so that a lap includes four corners and the straight after each.
    """
    if not 0 < 2 * positive("radius", radius) <= min(positive("length", length), positive("width", width)):
        raise InputError(f"radius = {radius!r}: must be at most half of length = {length!r} and of width = {width!r}")
    corner = math.pi / 2 * radius
    half, side = length / 2 - radius, width - 2 * radius
    lengths = [half, corner, side, corner, 2 * half, corner, side, corner, half]
    return _steady(Arcs(lengths, [*[0.0, 1 / radius] * 4, 0.0], closed=True), speed, heading, laps)


def figure_eight(
    length: float = 10.0, width: float = 5.0, *, speed: float = 0.6, laps: float = 1.0, heading: float | None = None
) -> Reference:
    """A figure eight, the curve (L/2·sin p, W·sin p·cos p): `length` by `width` m, starting at its crossing."""
    a, b = positive("length", length) / 2, positive("width", width)

    def eight(p: Array) -> tuple[Array, Array, Array]:
        return (
            np.stack([a * np.sin(p), b / 2 * np.sin(2 * p)], axis=1),
            np.stack([a * np.cos(p), b * np.cos(2 * p)], axis=1),
            np.stack([-a * np.sin(p), -2 * b * np.sin(2 * p)], axis=1),
        )

    return _steady(Curve(eight, np.array([0.0, 2 * math.pi]), closed=True), speed, heading, laps)


def through(
    waypoints: Sequence[Sequence[float]],
    *,
    speed: float | Sequence[float] = 0.6,
    heading: float | Sequence[float] | None = None,
    closed: bool = False,
    laps: float = 1.0,
    acceleration: float | None = None,
) -> Reference:
    """A smooth path through `waypoints`, each (x, y) in m; between them it may swing wide of the straight `legs`.

    `speed` (m/s) and `heading` (rad) may be given once or for each waypoint; without a heading it is
    tangential. A final speed of zero ends in station keeping; otherwise an open path continues straight.

    With an `acceleration` (m/s²) it starts and ends at rest like `legs`, for whole laps: the speed of a waypoint is
    then that of the way to it.
    """
    points = check_waypoints(waypoints, closed)
    if closed:
        points = np.concatenate([points, points[:1]])
    if (gaps := np.linalg.norm(np.diff(points, axis=0), axis=1)).min() == 0:
        raise InputError(f"waypoints {int(gaps.argmin())} and {int(gaps.argmin()) + 1}: must not coincide")
    knots = np.concatenate([[0.0], np.cumsum(gaps)])
    path = Curve(spline(knots, points, closed), knots, closed=closed)

    def each(name: str, value: float | Sequence[float]) -> Array:
        given = np.asarray(value, dtype=float)
        if given.shape not in ((), (len(waypoints),)) or not np.isfinite(given).all():
            raise InputError(
                f"{name} = {value!r}: must be one finite number, or one for each of {len(waypoints)} waypoints"
            )
        spread = np.broadcast_to(given, (len(waypoints),))
        return np.concatenate([spread, spread[:1]]) if closed else spread

    speeds = each("speed", speed)
    if speeds.min() < 0 or (speeds[:-1] + speeds[1:]).min() < LEAST:
        raise InputError(f"speed = {speed!r}: must not be negative, nor zero at two consecutive waypoints")
    if speeds.max() > FASTEST:
        raise InputError(f"speed = {speed!r}: must be at most {FASTEST:g} m/s")
    heading_at: Callable[[Array], tuple[Array, Array]] | float | None = None
    if heading is not None:
        headings = np.unwrap(each("heading", heading))
        curve = spline(path.at_knots, headings[:, None], False)
        lap_turn = headings[-1] - headings[0]

        def heading_at(s: Array) -> tuple[Array, Array]:
            laps = np.floor(s / path.length) if closed else np.zeros_like(s)
            inside = np.clip(s - laps * path.length, 0.0, path.length)
            value, slope, _ = curve(np.ravel(inside))
            shape = np.shape(s)
            beyond = s - laps * path.length > path.length
            return value.reshape(shape) + laps * lap_turn, np.where(beyond, 0.0, slope.reshape(shape))

    count = positive("laps", laps) if closed else 1.0
    if acceleration is None:
        return Follow(path, path.at_knots, speeds, heading_at, count)
    if count != round(count):
        raise InputError(f"laps = {laps!r}: must be a whole number")
    pieces, limits = (np.tile(values, round(count)) for values in (np.diff(path.at_knots), speeds[1:]))
    if limits.min() < LEAST:
        raise InputError(f"speed = {speed!r}: must be positive on the way to every waypoint")
    whole = Repeated(path, round(count)) if closed else path
    distances, ramped = speed_profile(pieces, limits, positive("acceleration", acceleration))
    distances[-1] = whole.length
    return Follow(whole, distances, ramped, heading_at)


def hold(pose: Sequence[float] = (0.0, 0.0, 0.0), *, duration: float = 30.0) -> Reference:
    """Station keeping at `pose` (x, y, psi) for `duration` s."""
    values = tuple(float(value) for value in pose)
    if len(values) != 3 or not all(map(math.isfinite, values)):
        raise InputError(f"pose = {pose!r}: must be three finite numbers (x, y, psi)")
    return Hold((values[0], values[1], values[2]), positive("duration", duration))


def _steady(path: Path, speed: float, heading: float | None, laps: float = 1.0) -> Reference:
    if heading is not None and not math.isfinite(heading):
        raise InputError(f"heading = {heading!r}: must be a finite number of radians")
    if not positive("speed", speed) <= FASTEST:
        raise InputError(f"speed = {speed!r}: must be at most {FASTEST:g} m/s")
    speeds = np.full(2, float(speed))
    return Follow(path, np.array([0.0, path.length]), speeds, heading, positive("laps", laps))
