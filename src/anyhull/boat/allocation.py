"""Body force to thruster commands, by constrained least squares.

With f the thrusts, an azimuth's as a pair (f_x, f_y), B their body forces and s the layout's strength on each axis:

    min  |W (B f - tau) / s|² + 1e-8 |f / f_max|²   within  -reverse <= f <= forward,  |f - f_before| <= rate · period

and each azimuth in the polygon inscribed in its disc (`anyhull.thrusters.SIDES`: 0.9 % short of the disc at worst).
W counts yaw 30 times: where the layout cannot give tau, the heading is kept at the cost of surge and sway, by which a
boat may fall behind its reference but does not lose its way. Where it can, the force is met to about 1e-6 of s, but
for thrusts too small to turn on (`anyhull.thrusters.REST`), and the least effort decides between the ways to give it.

The solver is DAQP, a dual active-set method in C: microseconds a solve.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anyhull.arithmetic import wrap
from anyhull.dynamics import PERIOD
from anyhull.errors import InputError
from anyhull.thrusters import APOTHEM, NORMALS, REST, Thruster, reaches

try:
    import daqp
except ImportError:  # pragma: no cover
    raise ImportError("allocation needs the solver DAQP: pip install 'anyhull[boat]'") from None

Array = NDArray[np.float64]

YAW_WEIGHT = 30.0
"""How much more an error in yaw counts than one in surge or sway, each as a fraction of what the layout has."""

EFFORT = 1e-8
"""Weight of the thrusts themselves: it decides between equals and bends nothing else."""


class Allocation(NamedTuple):
    """What each thruster is told, and what comes of it."""

    commands: Array
    """In [-1, 1], shape (thrusters,), with the dead bands passed over."""
    angles: Array
    """Direction of each thruster from the bow toward positive sway, rad."""
    thrusts: Array
    """Thrust along that direction, N."""
    force: Array
    """The body force that these give together (N, N, N·m)."""
    missing: Array
    """What was asked for and is not given (N, N, N·m)."""


class Allocator:
    """Splits body forces among the thrusters of one boat, within what they can do from one period to the next."""

    def __init__(self, thrusters: Sequence[Thruster], period: float = PERIOD) -> None:
        if not thrusters:
            raise InputError("thrusters = []: must hold at least one to allocate forces to")
        self.thrusters = tuple(thrusters)
        self.period = period
        surge, sway, yaw = reaches(thrusters)
        force = max(surge, sway) or 1.0
        self._scale = np.array([1 / force, 1 / force, YAW_WEIGHT / (yaw or 1.0)])
        self._turning = any(t.turn_rate is not None for t in self.thrusters)
        self._free = _Problem(self.thrusters, [None if t.kind == "azimuth" else _rest(t) for t in self.thrusters])
        self.reset()

    def reset(self) -> None:
        """Thrusters at rest, azimuths where they stand at first."""
        self._angles = np.array([_rest(t) for t in self.thrusters])
        self._thrusts = np.zeros(len(self.thrusters))

    def allocate(self, force: ArrayLike) -> Allocation:
        """The commands for a body force (N, N, N·m) over the coming period."""
        demand = np.asarray(force, dtype=np.float64)
        if demand.shape != (3,) or not np.isfinite(demand).all():
            raise InputError(f"force = {force!r}: must be three finite numbers (N, N, N·m)")
        before = self._thrusts[:, None] * np.stack([np.cos(self._angles), np.sin(self._angles)], axis=1)
        if self._turning:
            # Where an azimuth would be without its limits says which way to turn it; what it gives on the way there
            # is along its axis, either way, and the others make up for it as they can.
            wanted = self._free.solve(demand, self._scale, before, math.inf)
            angles = [self._turned(i, *push) for i, push in enumerate(wanted)]
            problem = _Problem(self.thrusters, angles)
        else:
            problem = self._free
        pushes = problem.solve(demand, self._scale, before, self.period)
        for i, (t, axis) in enumerate(zip(self.thrusters, problem.angles, strict=True)):
            size = math.hypot(*pushes[i])
            if axis is None:
                axis = math.atan2(pushes[i, 1], pushes[i, 0]) if size >= REST * t.forward else self._angles[i]
            self._angles[i] = axis
            signed = math.copysign(size, pushes[i, 0] * math.cos(axis) + pushes[i, 1] * math.sin(axis))
            self._thrusts[i] = np.clip(signed, *t.bounds) if t.command(signed) != 0 else 0.0
        columns = np.stack([t.column(a) for t, a in zip(self.thrusters, self._angles, strict=True)], axis=1)
        given = columns @ self._thrusts
        commands = [t.command(thrust) for t, thrust in zip(self.thrusters, self._thrusts, strict=True)]
        return Allocation(np.array(commands), self._angles.copy(), self._thrusts.copy(), given, demand - given)

    def _turned(self, i: int, f_x: float, f_y: float) -> float | None:
        """The angle to which thruster `i` gets on its way to the push (f_x, f_y); None for an azimuth without limit."""
        t, angle = self.thrusters[i], float(self._angles[i])
        if t.turn_rate is None:
            return None if t.kind == "azimuth" else angle
        if math.hypot(f_x, f_y) < REST * t.forward:
            return angle
        most = math.radians(t.turn_rate) * self.period
        return float(wrap(angle + max(-most, min(wrap(math.atan2(f_y, f_x) - angle), most))))


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
        self._axes = np.array([(math.cos(a), math.sin(a)) for pair in axes for a in pair])
        columns = [
            t.column(a) * limit for t, pair, limit in zip(thrusters, axes, self._limits, strict=True) for a in pair
        ]
        self._influence = np.stack(columns, axis=1)
        n = len(self._owner)
        self._sides = np.zeros((len(NORMALS) * angles.count(None), n))
        for row, i in enumerate(i for i, angle in enumerate(angles) if angle is None):
            rows = slice(row * len(NORMALS), (row + 1) * len(NORMALS))
            self._sides[rows, self._owner == i] = NORMALS

    def solve(self, demand: Array, scale: Array, before: Array, period: float) -> Array:
        """The pushes (N, N) of each thruster, shape (thrusters, 2), at most `period` after those `before`."""
        scaled = scale[:, None] * self._influence
        hessian = scaled.T @ scaled + EFFORT * np.eye(len(self._owner))
        upper, lower = self._bounds(before, period)
        linear = -scaled.T @ (scale * demand)
        f, _, flag, _ = daqp.solve(hessian, linear, self._sides, upper, lower, np.zeros(upper.size, np.int32))
        if flag < 1:
            return before
        f = np.clip(f, lower[: f.size], upper[: f.size])
        pushes = np.zeros_like(before)
        np.add.at(pushes, self._owner, f[:, None] * self._axes)
        pushes *= self._limits[:, None]
        return pushes

    def _bounds(self, before: Array, period: float) -> tuple[Array, Array]:
        """Upper and lower bounds of the thrusts, then of the azimuths' sides, both as fractions of the limits."""
        upper: list[float] = []
        lower: list[float] = []
        sides: tuple[list[Array], list[Array]] = ([], [])
        for t, angle, push, limit in zip(self._thrusters, self.angles, before, self._limits, strict=True):
            step = math.inf if t.rate is None else t.rate * period / limit
            if angle is None:
                radius = t.forward / limit
                upper += [radius, radius]
                lower += [-radius, -radius]
                at = np.clip(NORMALS @ push / limit, -APOTHEM * radius, APOTHEM * radius)
                sides[0].append(np.minimum(radius, at / APOTHEM + step) * APOTHEM)
                sides[1].append(np.maximum(-radius, at / APOTHEM - step) * APOTHEM)
            else:
                low, high = (bound / limit for bound in t.bounds)
                at = min(max((push[0] * math.cos(angle) + push[1] * math.sin(angle)) / limit, low), high)
                upper.append(min(high, at + step))
                lower.append(max(low, at - step))
        return np.concatenate([upper, *sides[0]]), np.concatenate([lower, *sides[1]])


def _rest(t: Thruster) -> float:
    return math.radians(t.angle)
