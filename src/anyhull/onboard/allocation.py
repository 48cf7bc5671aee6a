"""Body force to thruster commands, by constrained least squares.

With f the thrusts, an azimuth's as a pair (f_x, f_y), B their body forces and s the layout's strength on each axis:

    min  |W (B f - tau) / s|² + 1e-8 |f / f_max|²   within  -reverse <= f <= forward,  |f - f_previous| <= rate · period

Each azimuth stays in the polygon inscribed in its disc (`anyhull.thrusters.SIDES`: 0.9 % short of the disc at worst).
W weights yaw 30 times: where the layout cannot give tau, the heading is kept at the cost of surge and sway. The boat
falls behind its reference but keeps its course. Where the layout can give tau, the force is met to about 1e-6 of s,
except for thrusts too small to turn on (`anyhull.thrusters.REST`), and the least effort selects the solution.

The solver is DAQP, a dual active-set method in C: microseconds a solve.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from anyhull.backend import Array, to_body, to_inertial, wrap
from anyhull.dynamics import PERIOD
from anyhull.errors import InputError
from anyhull.thrusters import APOTHEM, NORMALS, REST, Thruster, reaches

try:
    import daqp
except ImportError:
    daqp = None

YAW_WEIGHT = 30.0
"""Weight of an error in yaw over one in surge or sway, each as a fraction of the layout's strength."""

EFFORT_WEIGHT = 1e-8
"""Weight of the thrusts: it selects among solutions of equal force and changes nothing else."""


class Allocation(NamedTuple):
    """Commands of the thrusters and the body force that they give."""

    commands: Array
    """In [-1, 1], shape (thrusters,), dead bands compensated."""
    angles: Array
    """Direction of each thruster from the bow toward positive sway, rad."""
    thrusts: Array
    """Thrust along that direction, N."""
    force: Array
    """Body force of all thrusters (N, N, N·m)."""
    residual: Array
    """Demanded force minus `force` (N, N, N·m)."""


class Allocator:
    """Splits body forces among the thrusters of one boat, within their limits and rates."""

    def __init__(self, thrusters: Sequence[Thruster], period: float = PERIOD, before: Allocator | None = None) -> None:
        """`before` is the allocator of the same thrusters, in another condition, which this one replaces."""
        if daqp is None:
            raise InputError("allocation needs the solver DAQP, which is not installed: pip install 'anyhull[onboard]'")
        if not thrusters:
            raise InputError("thrusters = []: must hold at least one to allocate forces to")
        self.thrusters = tuple(thrusters)
        self.period = period
        surge, sway, yaw = reaches(thrusters)
        force = max(surge, sway) or 1.0
        self._scale = np.array([1 / force, 1 / force, YAW_WEIGHT / (yaw or 1.0)])
        self._turning = any(t.turn_rate is not None for t in self.thrusters)
        self._free = _Problem(self.thrusters, [None if t.kind == "azimuth" else _mounted(t) for t in self.thrusters])
        self._angles, self._thrusts = _at_rest(thrusters)
        if before is not None:
            self._angles, self._thrusts = before._angles.copy(), before._thrusts.copy()

    def reset(self) -> None:
        """Set all thrusts to zero and azimuths to their initial angles."""
        self._angles, self._thrusts = _at_rest(self.thrusters)

    def allocate(self, force: ArrayLike) -> Allocation:
        """The commands for a body force (N, N, N·m) over the coming period."""
        demand = np.asarray(force, dtype=np.float64)
        if demand.shape != (3,) or not np.isfinite(demand).all():
            raise InputError(f"force = {force!r}: must be three finite numbers (N, N, N·m)")
        previous = np.stack(to_inertial(self._thrusts, 0.0, self._angles), axis=1)
        if self._turning:
            # The solution without rate limits gives the direction in which to turn each azimuth. While it turns, its
            # thrust is along its axis, either way, and the others compensate as far as they can.
            wanted = self._free.solve(demand, self._scale, previous, math.inf)
            angles = [self._turned(i, *vector) for i, vector in enumerate(wanted)]
            problem = _Problem(self.thrusters, angles)
        else:
            problem = self._free
        vectors = problem.solve(demand, self._scale, previous, self.period)
        for i, (t, axis) in enumerate(zip(self.thrusters, problem.angles, strict=True)):
            size = math.hypot(*vectors[i])
            if axis is None:
                axis = math.atan2(vectors[i, 1], vectors[i, 0]) if size > REST * t.forward else self._angles[i]
            self._angles[i] = axis
            signed = math.copysign(size, to_body(vectors[i, 0], vectors[i, 1], axis)[0])
            self._thrusts[i] = np.clip(signed, *t.bounds) if t.command(signed) != 0 else 0.0
        columns = np.stack([t.column(a) for t, a in zip(self.thrusters, self._angles, strict=True)], axis=1)
        given = columns @ self._thrusts
        commands = [t.command(thrust) for t, thrust in zip(self.thrusters, self._thrusts, strict=True)]
        return Allocation(np.array(commands), self._angles.copy(), self._thrusts.copy(), given, demand - given)

    def _turned(self, i: int, f_x: float, f_y: float) -> float | None:
        """The angle that thruster `i` reaches in a period on its way to (f_x, f_y); None for one without turn rate."""
        t, angle = self.thrusters[i], float(self._angles[i])
        if t.turn_rate is None:
            return None if t.kind == "azimuth" else angle
        if math.hypot(f_x, f_y) < REST * t.forward:
            return angle
        most = math.radians(t.turn_rate) * self.period
        return float(wrap(angle + max(-most, min(wrap(math.atan2(f_y, f_x) - angle), most))))


class NoAllocator:
    """For a boat that allocates by itself: it is sent the body force alone."""

    def reset(self) -> None:
        """Nothing to reset."""

    def allocate(self, force: ArrayLike) -> Allocation:
        """The body force (N, N, N·m), of which nothing is known to be missing."""
        none, demand = np.zeros(0), np.asarray(force, dtype=np.float64)
        return Allocation(none, none, none, demand, np.zeros(3))


class _Problem:
    """The least squares of one layout, with each thruster's axis at an angle or, as None, free to turn."""

    def __init__(self, thrusters: Sequence[Thruster], angles: Sequence[float | None]) -> None:
        self.angles = angles
        self._thrusters = thrusters
        # Thrusts in fractions of the limit, so that one tolerance suits a toy and a ship.
        pairs = list(zip(thrusters, angles, strict=True))
        self._limits = np.array([max(t.forward, 0.0 if a is None else -t.bounds[0]) or 1.0 for t, a in pairs])
        axes = [(0.0, math.pi / 2) if angle is None else (angle,) for angle in angles]
        self._owner = np.repeat(np.arange(len(thrusters)), [len(pair) for pair in axes])
        self._axes = np.array([to_inertial(1.0, 0.0, a) for pair in axes for a in pair])
        columns = [
            t.column(a) * limit for t, pair, limit in zip(thrusters, axes, self._limits, strict=True) for a in pair
        ]
        self._influence = np.stack(columns, axis=1)
        n = len(self._owner)
        self._sides = np.zeros((len(NORMALS) * angles.count(None), n))
        for row, i in enumerate(i for i, angle in enumerate(angles) if angle is None):
            rows = slice(row * len(NORMALS), (row + 1) * len(NORMALS))
            self._sides[rows, self._owner == i] = NORMALS

    def solve(self, demand: Array, scale: Array, previous: Array, period: float) -> Array:
        """The thrust vector (N, N) of each thruster, shape (thrusters, 2), `period` s after `previous`."""
        scaled = scale[:, None] * self._influence
        hessian = scaled.T @ scaled + EFFORT_WEIGHT * np.eye(len(self._owner))
        upper, lower = self._bounds(previous, period)
        linear = -scaled.T @ (scale * demand)
        f, _, flag, _ = daqp.solve(hessian, linear, self._sides, upper, lower, np.zeros(upper.size, np.int32))
        if flag < 1:
            return previous
        f = np.clip(f, lower[: f.size], upper[: f.size])
        vectors = np.zeros_like(previous)
        np.add.at(vectors, self._owner, f[:, None] * self._axes)
        vectors *= self._limits[:, None]
        return vectors

    def _bounds(self, previous: Array, period: float) -> tuple[Array, Array]:
        """Upper and lower bounds of the thrusts, then of the azimuths' sides, both as fractions of the limits."""
        upper: list[float] = []
        lower: list[float] = []
        sides: tuple[list[Array], list[Array]] = ([], [])
        for t, angle, vector, limit in zip(self._thrusters, self.angles, previous, self._limits, strict=True):
            step = math.inf if t.rate is None else t.rate * period / limit
            if angle is None:
                radius = t.forward / limit
                upper += [radius, radius]
                lower += [-radius, -radius]
                at = np.clip(NORMALS @ vector / limit, -APOTHEM * radius, APOTHEM * radius)
                sides[0].append(np.minimum(radius, at / APOTHEM + step) * APOTHEM)
                sides[1].append(np.maximum(-radius, at / APOTHEM - step) * APOTHEM)
            else:
                low, high = (bound / limit for bound in t.bounds)
                at = min(max(to_body(vector[0], vector[1], angle)[0] / limit, low), high)
                upper.append(min(high, at + step))
                lower.append(max(low, at - step))
        return np.concatenate([upper, *sides[0]]), np.concatenate([lower, *sides[1]])


def _at_rest(thrusters: Sequence[Thruster]) -> tuple[Array, Array]:
    """Initial angles, rad, and thrusts, N."""
    return np.array([_mounted(t) for t in thrusters]), np.zeros(len(thrusters))


def _mounted(t: Thruster) -> float:
    """The thruster's mounting angle, or an azimuth's initial one, rad."""
    return math.radians(t.angle)
