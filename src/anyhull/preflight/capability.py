"""The hulls that a boat's file may describe, and what each can do in steady motion in the water of its own trial.

Where the file has hydrodynamics the hulls lie about them (`anyhull.twin.hull.HullUncertainty`), else about those of
`Vessel.plausible`. Motion along a circle of radius R at speed U is steady if thrusters balance drag, Coriolis force and
wind; the share of them that it takes decides what may be asked for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from anyhull.backend import Array, to_body, to_inertial
from anyhull.hydrodynamics import terminal
from anyhull.speeds import FORCE_SHARE
from anyhull.thrusters import Attainable, Thruster, attainable, derived_limits
from anyhull.twin import Twin, TwinConfig
from anyhull.twin.hull import Hull, size
from anyhull.twin.water import Weather
from anyhull.vessel import Vessel

COURSES = 8
"""Courses over ground on which a motion must be possible."""

DRIFT = 0.4
"""Largest drift angle of a boat without sway force in a turn, rad: that of training."""

TRAINED_SPEED, TRAINED_YAW_RATE = 1.2, 1.2
"""Highest speed and yaw rate of the references in training, in the policy's units."""

WEAKEST = 0.05
"""Share of the hulls that may be too weak for what is said to be possible; those are not the boat one hopes for."""


@dataclass(frozen=True)
class Units:
    """The boat's own units."""

    length: float
    """Of the boat, m."""
    time: float
    """Time unit of the policy that steers it, s."""
    speed: float
    """Highest speed of a reference in training, m/s."""
    yaw_rate: float
    """Highest yaw rate of a reference in training, rad/s."""

    @staticmethod
    def of(vessel: Vessel) -> Units:
        """From the boat's file."""
        scale = getattr(vessel, "scale", None)
        length, time = (scale.length, scale.time) if scale else (1.0, 1.0)
        own = vessel.length or size(vessel)[0]
        return Units(own, time, TRAINED_SPEED * length / time, TRAINED_YAW_RATE / time)


@dataclass(frozen=True)
class PlausibleHull:
    """One of the hulls, with the thrusters and the water of its trial."""

    seed: int
    vessel: Vessel
    """The boat's file, with hydrodynamics."""
    hull: Hull
    thrusters: tuple[Thruster, ...]
    """With the limits that they really have."""
    weather: Weather
    attainable: Attainable
    units: Units

    @staticmethod
    def draw(vessel: Vessel, config: TwinConfig, seed: int) -> PlausibleHull:
        """The hull of a trial with this seed."""
        twin = Twin(vessel, config, seed=seed)
        steady = twin.propulsion.steady
        thrusters = tuple(
            replace(t, forward=steady(i, 1.0), reverse=-steady(i, -1.0)) for i, t in enumerate(twin.vessel.thrusters)
        )
        free = [1] if vessel.Fy == 0 else []
        within = attainable(thrusters, free)
        return PlausibleHull(seed, twin.vessel, twin.hull, thrusters, twin.weather, within, Units.of(vessel))

    @property
    def measurable(self) -> dict[str, float]:
        """What an owner could measure, in SI units, by the names of `MEASUREMENTS`."""
        surge, _, yaw = derived_limits(self.thrusters)
        (d_u, _, d_r), (q_u, _, q_r) = self.hull.linear, self.hull.quadratic
        c_u, _, c_r = self.hull.cubic
        return {
            "top speed": terminal(surge, d_u, q_u, c_u),
            "turning rate": terminal(yaw, d_r, q_r, c_r),
            "bollard pull": surge,
            "mass": self.vessel.mass,
        }

    def components(self, speed: float) -> dict[str, float]:
        """What sets this hull apart, in words; drag is that at a speed."""
        c, length, measured = self.hull, self.units.length, self.measurable
        surge, sway, yaw = c.drag((speed, 0.2 * speed, 0.5 * speed / length))
        return {
            "thrust ahead": measured["bollard pull"],
            "inertia in surge": c.m11,
            "inertia in yaw": c.m33,
            "drag ahead": surge,
            "drag sideways": sway,
            "drag in yaw": yaw,
            "centre of gravity ahead of the file's": c.m23 / (self.vessel.mass * length),
            "centre of lateral drag ahead of the file's": c.x_l / length,
            "current": math.hypot(*self.weather.current),
        }

    def share(self, speed: float, radius: float = math.inf) -> float:
        """The largest share of the thrusters that steady motion takes, on any course and to either side.

        Also that of the moment with which a turn is entered within one time unit, and of the largest drift.
        """
        needed = self._needed(speed, radius)
        limits = np.array([limit or math.inf for limit in self.vessel.limits])
        normals, offsets = self.attainable.normals, self.attainable.offsets
        along = normals @ needed.T
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.where(along > 1e-9 * offsets.max(), along / offsets[:, None], 0.0)
        turning = speed / radius * self.hull.m33 / (self.vessel.Mz * self.units.time)
        entering = turning if self.vessel.Fy > 0 else max(2 * turning, self._drift_angle(speed, radius) / DRIFT)
        return float(max(shares.max(), np.abs(needed / limits).max(), entering))

    def _needed(self, speed: float, radius: float) -> Array:
        """The forces (N, N, N·m) that the motion takes; a boat without sway force crabs and drifts instead."""
        rows = []
        for psi in np.linspace(-math.pi, math.pi, COURSES, endpoint=False).tolist():
            c_u, c_v = to_body(*self.weather.current, psi)
            wind = self.weather.wind_force(psi, to_inertial(speed, 0.0, psi))
            for side in (1, -1) if math.isfinite(radius) else (1,):
                u, v, r = speed - c_u, -c_v, side * speed / radius
                if self.vessel.Fy == 0:
                    v = self._drift(u, r, wind[1])
                force = np.array(self.resistance(u, v, r)) - wind
                rows.append(force * (1, self.vessel.Fy > 0, 1))
        return np.array(rows)

    def _drift_angle(self, speed: float, radius: float) -> float:
        """The larger drift angle of turns to both sides in still water, rad."""
        return max(abs(math.atan2(self._drift(speed, side * speed / radius, 0.0), speed)) for side in (1, -1))

    def resistance(self, u: float, v: float, r: float) -> tuple[float, float, float]:
        """The force (N, N, N·m) that keeps a velocity through the water."""
        a, b, c = self.hull.acceleration((u, v, r), (0.0, 0.0, 0.0))
        h = self.hull
        return -h.m11 * a, -(h.m22 * b + h.m23 * c), -(h.m23 * b + h.m33 * c)

    def _drift(self, u: float, r: float, wind: float) -> float:
        """The sway velocity at which a boat without sway force does not accelerate sideways, by bisection."""
        most = 3 * abs(u) + 1.0
        low, high = -most, most
        for _ in range(24):
            middle = (low + high) / 2
            low, high = (middle, high) if self.resistance(u, middle, r)[1] < wind else (low, middle)
        return (low + high) / 2

    def highest_speed(self, radius: float, share: float = FORCE_SHARE) -> float:
        """The highest speed (m/s) on circles of a radius (m), up to those of training."""
        most = min(self.units.speed, self.units.yaw_rate * radius)
        return _largest(lambda speed: self.share(speed, radius) <= share, most)

    def tightest_radius(self, speed: float, share: float = FORCE_SHARE) -> float:
        """The least radius (m) that can be held at a speed (m/s); inf if not even a straight can be."""
        most = self.units.yaw_rate / speed
        curvature = _largest(lambda k: self.share(speed, 1 / max(k, 1e-9)) <= share, most)
        return 1 / curvature if curvature > 0 else math.inf


MEASUREMENTS = {"top speed": "m/s", "turning rate": "rad/s", "bollard pull": "N", "mass": "kg"}
"""What an owner could measure, with its unit: the speed at full thrust ahead, the yaw rate at full moment on the spot,
the pull at full thrust on a rope, and the mass as it floats."""


def weakest(values: ArrayLike, largest: bool = False) -> int:
    """The index of the hull that only the share `WEAKEST` of them is below, or with `largest` above."""
    order = np.argsort(np.asarray(values), kind="stable")
    rank = math.floor(WEAKEST * len(order))
    return int(order[-1 - rank] if largest else order[rank])


def _largest(fits: object, most: float) -> float:
    """The largest value up to `most` that fits, by bisection in 14 steps; 0 if none does."""
    assert callable(fits)
    if fits(most):
        return most
    low, high = 0.0, most
    for _ in range(14):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
