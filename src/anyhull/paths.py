"""Plane curves by arc length: straights and arcs, smooth curves, splines; and distances to straight legs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from anyhull.backend import Array, wrap


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
    """A sequence of straights and circular arcs, by default from the origin along x."""

    def __init__(
        self,
        lengths: Sequence[float],
        curvatures: Sequence[float],
        *,
        closed: bool,
        start: tuple[float, float, float] = (0.0, 0.0, 0.0),
    ) -> None:
        """Lengths in m, curvatures in 1/m; `start` is x, y and course (m, m, rad)."""
        self.closed = closed
        self._curvatures = np.array(curvatures, dtype=float)
        self._starts = np.concatenate([[0.0], np.cumsum(lengths)])
        self.length = float(self._starts[-1])
        self._poses = np.zeros((len(lengths) + 1, 3))
        self._poses[0] = start
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


class Repeated(Path):
    """Some laps of a closed path, as an open path with a start and an end."""

    closed = False

    def __init__(self, lap: Path, count: int) -> None:
        self.lap = lap
        self.length = count * lap.length

    def on(self, s: Array) -> tuple[Array, Array, Array, Array]:
        return self.lap(s)


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


def spline(knots: Array, values: Array, closed: bool) -> Callable[[Array], tuple[Array, Array, Array]]:
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


def distance_to_legs(points: Array, starts: Array, ends: Array) -> Array:
    """Distances (m) of points (..., 2) to the straight legs from `starts` to `ends`, which broadcast with them."""
    along = ends - starts
    share = ((points - starts) * along).sum(axis=-1) / np.maximum((along**2).sum(axis=-1), 1e-300)
    nearest = starts + np.clip(share, 0.0, 1.0)[..., None] * along
    return np.asarray(np.linalg.norm(points - nearest, axis=-1))
