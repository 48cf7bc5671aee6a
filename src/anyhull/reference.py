"""Trajectories: shapes, splines through waypoints, station keeping, as windows of (x, y, psi, u, v, r)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anyhull.backend import Array, wrap
from anyhull.dynamics import PERIOD, inverse_dynamics
from anyhull.errors import InputError
from anyhull.vessel import Vessel

PREVIEW = 10
"""Preview length, control periods."""


class Reference(ABC):
    """Desired pose in the inertial frame and body-frame velocity as functions of time."""

    duration: float
    """Duration, s; the reference is also defined beyond it."""

    @abstractmethod
    def at(self, t: Array | float) -> Array:
        """Reference states (x, y, psi, u, v, r) at times t, shape (*t.shape, 6); psi is continuous, not wrapped."""

    def window(self, t: float) -> Array:
        """The reference now and over the next ten control periods, (11, 6)."""
        return self.at(t + PERIOD * np.arange(PREVIEW + 1, dtype=np.float64))

    def infeasible(self, vessel: Vessel) -> list[str]:
        """The axes on which the reference exceeds the vessel's actuator limits in still water, one message each.

        Steady forces only: any controller smooths a step in yaw rate, as at a rounded corner.
        """
        times = np.arange(0.0, self.duration + PERIOD, PERIOD)
        velocity = self.at(times)[:, 3:].T
        e = vessel.normalized._replace(alpha_u=1.0, alpha_v=1.0, alpha_r=1.0)
        needed = np.abs(inverse_dynamics(velocity, (0.0, 0.0, 0.0), e, vessel.drag))
        messages = []
        for i, (axis, unit) in enumerate((("surge", "N"), ("sway", "N"), ("yaw", "N·m"))):
            worst = int(np.argmax(needed[i]))
            limit = vessel.normalized[i]
            if needed[i, worst] > limit * (1 + 1e-9) + 1e-12:
                u, v, r = velocity[:, worst]
                share = "the limit is zero" if limit == 0 else f"{100 * needed[i, worst] / limit:.0f} % of the limit"
                messages.append(
                    f"{vessel.name}: surge {u:.2f} m/s, sway {v:.2f} m/s and yaw {r:.2f} rad/s at t = "
                    f"{times[worst]:.1f} s need {needed[i, worst] * vessel.inertia[i]:.3g} {unit} in {axis}: {share}"
                )
        return messages


@dataclass(frozen=True)
class Hold(Reference):
    """Station keeping at one pose."""

    pose: tuple[float, float, float]
    """x, y, psi (m, m, rad)."""
    duration: float

    def at(self, t: Array | float) -> Array:
        return np.broadcast_to(np.array([*self.pose, 0.0, 0.0, 0.0]), (*np.shape(t), 6)).copy()


class Path(ABC):
    """A plane curve, parameterized by arc length."""

    length: float
    """Length of the curve, or of one lap, m."""
    closed: bool
    """Whether the end joins the start."""

    @abstractmethod
    def on(self, s: Array) -> tuple[Array, Array, Array, Array]:
        """x, y, course and curvature at distances s in [0, length] (m, m, rad, 1/m)."""

    def __call__(self, s: Array) -> tuple[Array, Array, Array, Array]:
        """`on` for any s: a closed path repeats, an open path continues straight."""
        if not self.closed:
            x, y, course, curvature = self.on(np.clip(s, 0.0, self.length))
            beyond = s - np.clip(s, 0.0, self.length)
            return x + beyond * np.cos(course), y + beyond * np.sin(course), course, np.where(beyond, 0.0, curvature)
        laps = np.floor(s / self.length)
        x, y, course, curvature = self.on(s - laps * self.length)
        ends = self.on(np.array([0.0, self.length]))[2]
        return x, y, course + laps * (ends[1] - ends[0]), curvature


class Arcs(Path):
    """A sequence of straights and circular arcs, from the origin along x."""

    def __init__(self, lengths: Sequence[float], curvatures: Sequence[float], *, closed: bool) -> None:
        self.closed = closed
        self._curvatures = np.array(curvatures, dtype=float)
        self._starts = np.concatenate([[0.0], np.cumsum(lengths)])
        self.length = float(self._starts[-1])
        self._poses = np.zeros((len(lengths) + 1, 3))
        for i, (length, curvature) in enumerate(zip(lengths, curvatures, strict=True)):
            x, y, course = self._poses[i]
            self._poses[i + 1] = _arc(x, y, course, length, curvature)

    def on(self, s: Array) -> tuple[Array, Array, Array, Array]:
        i = np.clip(np.searchsorted(self._starts, s, side="right") - 1, 0, len(self._curvatures) - 1)
        x, y, course = self._poses[i].T
        curvature = self._curvatures[i]
        return (*_arc(x.T, y.T, course.T, s - self._starts[i], curvature), curvature)


def _arc(x: Any, y: Any, course: Any, length: Any, curvature: Any) -> tuple[Any, Any, Any]:
    """The pose after `length` along an arc: a chord of length·sinc(turn/2) in the direction of the mean course."""
    turn = length * curvature
    chord = length * np.sinc(turn / (2 * np.pi))
    return x + chord * np.cos(course + turn / 2), y + chord * np.sin(course + turn / 2), course + turn


class Curve(Path):
    """A smooth parametric curve, reparameterized by arc length."""

    def __init__(
        self, curve: Callable[[Array], tuple[Array, Array, Array]], knots: Array, *, closed: bool, samples: int = 4000
    ) -> None:
        """`curve` maps parameters to points and their first two derivatives, each (n, 2); `knots` span its range."""
        self.closed = closed
        self._curve = curve
        self._parameter = np.union1d(np.linspace(knots[0], knots[-1], samples), knots)
        p = self._parameter
        # Simpson's rule on each interval makes the arc length exact to rounding at this spacing.
        speeds = [np.linalg.norm(curve(q)[1], axis=1) for q in (p[:-1], (p[:-1] + p[1:]) / 2, p[1:])]
        self._distance = np.concatenate([[0], np.cumsum(np.diff(p) * (speeds[0] + 4 * speeds[1] + speeds[2]) / 6)])
        self.length = float(self._distance[-1])
        self.at_knots = np.interp(knots, p, self._distance)
        slope = curve(p)[1]
        self._course = np.unwrap(np.arctan2(slope[:, 1], slope[:, 0]))

    def on(self, s: Array) -> tuple[Array, Array, Array, Array]:
        p = np.interp(s, self._distance, self._parameter)
        shape = np.shape(s)
        point, d1, d2 = (value.reshape(*shape, 2) for value in self._curve(np.atleast_1d(p).ravel()))
        near = np.interp(s, self._distance, self._course)
        course = near + wrap(np.arctan2(d1[..., 1], d1[..., 0]) - near)
        speed = np.linalg.norm(d1, axis=-1)
        curvature = (d1[..., 0] * d2[..., 1] - d1[..., 1] * d2[..., 0]) / speed**3
        return point[..., 0], point[..., 1], course, curvature


@dataclass(frozen=True)
class Follow(Reference):
    """A path followed at given speeds, with the heading tangential or given."""

    path: Path
    distances: Array
    """Distances along the path (one lap of it) where the speed is given, m, from 0 to its length."""
    speeds: Array
    """Speeds there, m/s; between them the acceleration is constant."""
    heading: Callable[[Array], tuple[Array, Array]] | float | None
    """None: tangential. A number: fixed, rad. A function of distance: heading and its slope (rad, rad/m)."""
    laps: float = 1.0
    """Number of laps, which may be a fraction."""

    @property
    def duration(self) -> float:  # type: ignore[override]
        return float(self._times[-1] * self.laps)

    @property
    def _times(self) -> Array:
        legs = 2 * np.diff(self.distances) / (self.speeds[:-1] + self.speeds[1:])
        return np.concatenate([[0.0], np.cumsum(legs)])

    def at(self, t: Array | float) -> Array:
        t = np.asarray(t, dtype=float)
        times, v = self._times, self.speeds
        laps = np.floor(t / times[-1]) if self.path.closed else 0.0
        lap_time = t - laps * times[-1]
        i = np.clip(np.searchsorted(times, lap_time, side="right") - 1, 0, len(v) - 2)
        tau = np.minimum(lap_time, times[-1]) - times[i]
        rate = (v[i + 1] - v[i]) / (times[i + 1] - times[i])
        after = np.maximum(lap_time - times[-1], 0.0)
        s = laps * self.path.length + self.distances[i] + (v[i] + rate * tau / 2) * tau + v[-1] * after
        speed = v[i] + rate * tau

        x, y, course, curvature = self.path(s)
        if self.heading is None:
            psi, slope = course, curvature
        elif callable(self.heading):
            psi, slope = self.heading(s)
        else:
            psi, slope = np.full_like(course, self.heading), np.zeros_like(course)
        crab_angle = course - psi
        return np.stack([x, y, psi, speed * np.cos(crab_angle), speed * np.sin(crab_angle), speed * slope], axis=-1)


def line(length: float = 10.0, *, speed: float = 0.6, heading: float | None = None) -> Reference:
    """A straight along x of `length` m at `speed` m/s; `heading` (rad), if given, is fixed."""
    return _steady(Arcs([_positive("length", length)], [0.0], closed=False), speed, heading)


def circle(radius: float = 3.0, *, speed: float = 0.6, laps: float = 1.0, heading: float | None = None) -> Reference:
    """A circle of `radius` m at `speed` m/s, to the left for a positive radius and to the right for a negative one."""
    if not (math.isfinite(radius) and radius != 0):
        raise InputError(f"radius = {radius!r}: must be a finite number other than zero")
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
    if not 0 < 2 * _positive("radius", radius) <= min(_positive("length", length), _positive("width", width)):
        raise InputError(f"radius = {radius!r}: must be at most half of length = {length!r} and of width = {width!r}")
    corner = math.pi / 2 * radius
    half, side = length / 2 - radius, width - 2 * radius
    lengths = [half, corner, side, corner, 2 * half, corner, side, corner, half]
    return _steady(Arcs(lengths, [*[0.0, 1 / radius] * 4, 0.0], closed=True), speed, heading, laps)


def figure_eight(
    length: float = 10.0, width: float = 5.0, *, speed: float = 0.6, laps: float = 1.0, heading: float | None = None
) -> Reference:
    """A figure eight, the curve (L/2·sin p, W·sin p·cos p): `length` by `width` m, starting at its crossing."""
    a, b = _positive("length", length) / 2, _positive("width", width)

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
) -> Reference:
    """A smooth path through `waypoints`, each (x, y) in m.

    `speed` (m/s) and `heading` (rad) may be given once or for each waypoint; without a heading it is
    tangential. A final speed of zero ends in station keeping; otherwise an open path continues straight.
    """
    points = np.asarray(waypoints, dtype=float)
    if points.ndim != 2 or points.shape[1] != 2 or len(points) < 2 + closed or not np.isfinite(points).all():
        raise InputError(
            f"waypoints of shape {points.shape}: must be {2 + closed} or more pairs (x, y) of finite numbers"
        )
    if closed:
        points = np.concatenate([points, points[:1]])
    if (gaps := np.linalg.norm(np.diff(points, axis=0), axis=1)).min() == 0:
        raise InputError(f"waypoints {int(gaps.argmin())} and {int(gaps.argmin()) + 1}: must not coincide")
    knots = np.concatenate([[0.0], np.cumsum(gaps)])
    path = Curve(_spline(knots, points, closed), knots, closed=closed)

    def each(name: str, value: float | Sequence[float]) -> Array:
        given = np.asarray(value, dtype=float)
        if given.shape not in ((), (len(waypoints),)) or not np.isfinite(given).all():
            raise InputError(
                f"{name} = {value!r}: must be one finite number, or one for each of {len(waypoints)} waypoints"
            )
        spread = np.broadcast_to(given, (len(waypoints),))
        return np.concatenate([spread, spread[:1]]) if closed else spread

    speeds = each("speed", speed)
    if speeds.min() < 0 or (speeds[:-1] + speeds[1:]).min() <= 0:
        raise InputError(f"speed = {speed!r}: must not be negative, nor zero at two consecutive waypoints")
    heading_at: Callable[[Array], tuple[Array, Array]] | float | None = None
    if heading is not None:
        headings = np.unwrap(each("heading", heading))
        spline = _spline(path.at_knots, headings[:, None], False)
        lap_turn = headings[-1] - headings[0]

        def heading_at(s: Array) -> tuple[Array, Array]:
            laps = np.floor(s / path.length) if closed else np.zeros_like(s)
            inside = np.clip(s - laps * path.length, 0.0, path.length)
            value, slope, _ = spline(np.ravel(inside))
            shape = np.shape(s)
            beyond = s - laps * path.length > path.length
            return value.reshape(shape) + laps * lap_turn, np.where(beyond, 0.0, slope.reshape(shape))

    return Follow(path, path.at_knots, speeds, heading_at, _positive("laps", laps) if closed else 1.0)


def hold(pose: Sequence[float] = (0.0, 0.0, 0.0), *, duration: float = 30.0) -> Reference:
    """Station keeping at `pose` (x, y, psi) for `duration` s."""
    values = tuple(float(value) for value in pose)
    if len(values) != 3 or not all(map(math.isfinite, values)):
        raise InputError(f"pose = {pose!r}: must be three finite numbers (x, y, psi)")
    return Hold((values[0], values[1], values[2]), _positive("duration", duration))


def _steady(path: Path, speed: float, heading: float | None, laps: float = 1.0) -> Reference:
    if heading is not None and not math.isfinite(heading):
        raise InputError(f"heading = {heading!r}: must be a finite number of radians")
    speeds = np.full(2, _positive("speed", speed))
    return Follow(path, np.array([0.0, path.length]), speeds, heading, _positive("laps", laps))


def _positive(name: str, value: float) -> float:
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"{name} = {value!r}: must be a positive number")
    return float(value)


def _spline(knots: Array, values: Array, closed: bool) -> Callable[[Array], tuple[Array, Array, Array]]:
    """The natural (or, closed, the periodic) cubic spline: parameters -> values and first two derivatives."""
    n, h, slope = len(knots), np.diff(knots), np.diff(values, axis=0) / np.diff(knots)[:, None]
    matrix, right = np.eye(n), np.zeros_like(values)
    for i in range(1, n - 1):
        matrix[i, i - 1 : i + 2] = h[i - 1], 2 * (h[i - 1] + h[i]), h[i]
        right[i] = 6 * (slope[i] - slope[i - 1])
    if closed:
        matrix[0, [0, 1, -2]] = 2 * (h[0] + h[-1]), h[0], h[-1]
        right[0] = 6 * (slope[0] - slope[-1])
        matrix[-1, 0] = -1.0
    second = np.linalg.solve(matrix, right)

    def evaluate(p: Array) -> tuple[Array, Array, Array]:
        i = np.clip(np.searchsorted(knots, p, side="right") - 1, 0, n - 2)
        a, b, step = (knots[i + 1] - p)[:, None], (p - knots[i])[:, None], h[i][:, None]
        left, right = second[i], second[i + 1]
        value = (left * a**3 + right * b**3) / (6 * step)
        value += (values[i] / step - left * step / 6) * a + (values[i + 1] / step - right * step / 6) * b
        first = (right * b**2 - left * a**2) / (2 * step) + slope[i] - (right - left) * step / 6
        return value, first, (left * a + right * b) / step

    return evaluate
