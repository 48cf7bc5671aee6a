"""Desired pose and velocity as functions of time: a path at given speeds, a hold, a turn, and chains of them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from anyhull.backend import Array, to_body, to_inertial, wrap
from anyhull.dynamics import PERIOD, inverse_dynamics
from anyhull.errors import InputError
from anyhull.hulls import at_most, models, possible
from anyhull.paths import Path
from anyhull.schema import shown
from anyhull.turning import cannot_follow
from anyhull.vessel import Vessel

PREVIEW = 10
"""Preview length, control periods."""


class Stage(NamedTuple):
    """A part of a reference with a name, for a line of progress."""

    start: float
    """Time of the reference at which it starts, s."""
    label: str
    """For people, such as "leg 3 of 12, to waypoint 4"."""


LEAST, MOST = 1e-6, 1e6
"""Range of lengths, speeds, durations and numbers of laps, in SI units."""

MOST_SAMPLES = 1e5
"""Times at which a reference is checked: a day has nine times as many periods."""


class Reference(ABC):
    """Desired pose in the inertial frame and body-frame velocity as functions of time."""

    duration: float
    """Duration, s; the reference is also defined beyond it."""
    stages: tuple[Stage, ...] = ()
    """Its named parts in order of time; empty where it has none."""

    @abstractmethod
    def at(self, t: Array | float) -> Array:
        """Reference states (x, y, psi, u, v, r) at times t, shape (*t.shape, 6); psi is continuous, not wrapped."""

    def window(self, t: float, period: float = PERIOD) -> Array:
        """The reference now and over the next ten control periods of `period` s, (11, 6)."""
        return self.at(t + period * np.arange(PREVIEW + 1, dtype=np.float64))

    def infeasible(self, vessel: Vessel) -> list[str]:
        """Where the reference exceeds the vessel's limits in still water, one message for each axis.

        Without hydrodynamics: that most of its plausible hulls stay within (`anyhull.hulls`).
        Steady forces only: any controller smooths a step in yaw rate, as at a rounded corner.
        """
        period = vessel.scale.period
        times = np.arange(0.0, self.duration + period, max(period, self.duration / MOST_SAMPLES))
        velocity = self.at(times)[:, 3:].T
        e, drag = models(vessel)
        needed = np.abs(inverse_dynamics(velocity, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0, *e[3:]), drag))
        messages = cannot_follow(vessel, times, velocity)
        for i, (axis, unit) in enumerate((("surge", "N"), ("sway", "N"), ("yaw", "N·m"))):
            if axis == "sway" and vessel.under_actuated:
                continue  # it drifts
            inertia = np.array([hull.inertia[i] for hull in possible(vessel)])
            force = at_most(needed[i] * inertia[:, None])
            worst, limit = int(np.argmax(force)), vessel.limits[i]
            if force[worst] > limit * (1 + 1e-9) + 1e-12 * inertia.min():
                u, v, r = velocity[:, worst]
                share = "the limit is zero" if limit == 0 else f"{100 * force[worst] / limit:.0f} % of the limit"
                messages.append(
                    f"{vessel.name}: surge {u:.2f} m/s, sway {v:.2f} m/s and yaw {r:.2f} rad/s at t = "
                    f"{times[worst]:.1f} s need {force[worst]:.3g} {unit} in {axis}: {share}"
                )
        return messages


@dataclass(frozen=True)
class Hold(Reference):
    """Station keeping at one pose."""

    pose: tuple[float, float, float]
    """x, y, psi (m, m, rad)."""
    duration: float
    stages: tuple[Stage, ...] = ()

    def at(self, t: Array | float) -> Array:
        return np.broadcast_to(np.array([*self.pose, 0.0, 0.0, 0.0]), (*np.shape(t), 6)).copy()


class Moved(Reference):
    """A reference moved and turned as a whole, so that it starts at another pose."""

    def __init__(self, reference: Reference, start: Sequence[float]) -> None:
        """`start` is x, y, psi (m, m, rad)."""
        self.duration, self.stages = reference.duration, reference.stages
        self._reference, self._start, self._from = reference, start, reference.at(0.0)[:3]

    def at(self, t: Array | float) -> Array:
        states = self._reference.at(t)
        turn = self._start[2] - self._from[2]
        x, y = to_inertial(states[..., 0] - self._from[0], states[..., 1] - self._from[1], turn)
        states[..., 0], states[..., 1] = x + self._start[0], y + self._start[1]
        states[..., 2] += turn
        return states


@dataclass(frozen=True)
class Turn(Reference):
    """A turn on the spot by the shorter way, with the yaw rate of one period of 1 - cos: zero at both ends."""

    pose: tuple[float, float, float]
    """x, y, psi at the start (m, m, rad)."""
    heading: float
    """psi at the end, rad."""
    rate: float
    """Largest yaw rate, rad/s."""

    def __post_init__(self) -> None:
        positive("rate", self.rate)

    @property
    def angle(self) -> float:
        """From the first heading to the last, rad, in [-π, π)."""
        return float(wrap(self.heading - self.pose[2]))

    @property
    def duration(self) -> float:  # type: ignore[override]
        return 2 * abs(self.angle) / self.rate

    def at(self, t: Array | float) -> Array:
        share = np.clip(np.asarray(t, dtype=float) / max(self.duration, 1e-9), 0.0, 1.0)
        state = np.zeros((*np.shape(t), 6))
        state[..., :2] = self.pose[:2]
        state[..., 2] = self.pose[2] + self.angle * (share - np.sin(2 * np.pi * share) / (2 * np.pi))
        state[..., 5] = math.copysign(self.rate / 2, self.angle) * (1 - np.cos(2 * np.pi * share))
        return state


@dataclass(frozen=True)
class Brake(Reference):
    """From a velocity to rest, straight ahead over ground, with constant decelerations that end together."""

    pose: tuple[float, float, float]
    """x, y, psi at the start (m, m, rad)."""
    velocity: tuple[float, float, float]
    """u, v, r at the start, over ground in the body frame (m/s, m/s, rad/s)."""
    deceleration: float
    """Largest, m/s²."""
    yaw_deceleration: float | None = None
    """Largest of the yaw rate, rad/s²; by default the same number."""

    def __post_init__(self) -> None:
        positive("deceleration", self.deceleration)

    @property
    def duration(self) -> float:  # type: ignore[override]
        u, v, r = self.velocity
        return max(math.hypot(u, v) / self.deceleration, abs(r) / (self.yaw_deceleration or self.deceleration))

    def at(self, t: Array | float) -> Array:
        left = 1.0 - np.clip(np.asarray(t, dtype=float) / max(self.duration, 1e-9), 0.0, 1.0)
        passed = self.duration * (1.0 - left * left) / 2  # so much time at the first velocity
        (x, y, psi), (u, v, r) = self.pose, self.velocity
        v_x, v_y = to_inertial(u, v, psi)
        heading = psi + r * passed
        ahead, aside = to_body(v_x * left, v_y * left, heading)
        return np.stack([x + v_x * passed, y + v_y * passed, heading, ahead, aside, r * left], axis=-1)


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
    stages: tuple[Stage, ...] = ()

    @property
    def duration(self) -> float:  # type: ignore[override]
        return float(self._times[-1] * self.laps)

    @cached_property
    def _times(self) -> Array:
        legs = 2 * np.diff(self.distances) / (self.speeds[:-1] + self.speeds[1:])
        return np.concatenate([[0.0], np.cumsum(legs)])

    def time_at(self, distance: Array) -> Array:
        """Times (s) at which the first lap has come to distances (m) along the path."""
        v = self.speeds
        i = np.clip(np.searchsorted(self.distances, distance, side="right") - 1, 0, len(v) - 2)
        ahead = np.maximum(distance - self.distances[i], 0.0)
        rate = (v[i + 1] ** 2 - v[i] ** 2) / (2 * (self.distances[i + 1] - self.distances[i]))
        # Of both forms of the quadratic's solution this one holds without acceleration and from rest too.
        root = v[i] + np.sqrt(np.maximum(v[i] ** 2 + 2 * rate * ahead, 0.0))
        return np.asarray(self._times[i] + 2 * ahead / np.maximum(root, 1e-300))

    def at(self, t: Array | float) -> Array:
        t = np.asarray(t, dtype=float)
        times, v = self._times, self.speeds
        laps = np.floor(t / times[-1]) if self.path.closed else 0.0
        lap_time = t - laps * times[-1]
        i = np.clip(np.searchsorted(times, lap_time, side="right") - 1, 0, len(v) - 2)
        tau = np.clip(lap_time, 0.0, times[-1]) - times[i]
        rate = (v[i + 1] - v[i]) / (times[i + 1] - times[i])
        # An open path is entered and left at its first and last speed, which may be zero.
        outside = v[-1] * np.maximum(lap_time - times[-1], 0.0) + v[0] * np.minimum(lap_time, 0.0)
        s = laps * self.path.length + self.distances[i] + (v[i] + rate * tau / 2) * tau + outside
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


class Chain(Reference):
    """References one after the other; headings are shifted by whole turns so that none jumps by one at a joint."""

    def __init__(self, parts: Sequence[Reference]) -> None:
        # A part without duration, such as a turn by no angle, is never reached.
        self.parts = tuple(part for part in parts if part.duration > 0)
        if not self.parts:
            raise InputError(f"parts = {list(parts)!r}: must be one or more references with a duration")
        self._starts = np.concatenate([[0.0], np.cumsum([part.duration for part in self.parts])])
        self.duration = float(self._starts[-1])
        self._turns = [0.0]
        for before, after in zip(self.parts, self.parts[1:], strict=False):
            jump = self._turns[-1] + before.at(before.duration)[2] - after.at(0.0)[2]
            self._turns.append(2 * np.pi * round(float(jump) / (2 * np.pi)))
        self.stages = tuple(
            Stage(float(start) + stage.start, stage.label)
            for part, start in zip(self.parts, self._starts, strict=False)
            for stage in part.stages
        )

    def at(self, t: Array | float) -> Array:
        times = np.asarray(t, dtype=float)
        flat = times.ravel()
        index = np.clip(np.searchsorted(self._starts, flat, side="right") - 1, 0, len(self.parts) - 1)
        order = np.argsort(index, kind="stable")
        states = np.empty((len(flat), 6))
        for chosen in np.split(order, np.flatnonzero(np.diff(index[order])) + 1):
            if len(chosen):
                i = int(index[chosen[0]])
                states[chosen] = self.parts[i].at(flat[chosen] - self._starts[i])
                states[chosen, 2] += self._turns[i]
        return states.reshape(*times.shape, 6)


def check_waypoints(waypoints: Sequence[Sequence[float]], closed: bool) -> Array:
    """Waypoints as an array (n, 2), m; raise unless they are two or more pairs, or three of a closed path."""
    try:
        points = np.asarray(waypoints, dtype=float)
    except (TypeError, ValueError):
        points = np.zeros(0)
    if points.ndim != 2 or points.shape[1] != 2 or not np.isfinite(points).all():
        raise InputError(f"waypoints = {shown(waypoints)}: must be pairs (x, y) of finite numbers")
    if len(points) < 2 + closed:
        least = "three or more for a closed path" if closed else "two or more"
        raise InputError(f"{len(points)} waypoint{'s' * (len(points) != 1)}: must be {least}")
    return points


def positive(name: str, value: float) -> float:
    """`value`; raise unless it is positive, and neither so small nor so large that no boat could have it."""
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"{name} = {value!r}: must be a positive number")
    if not LEAST <= value <= MOST:
        raise InputError(f"{name} = {value!r}: must be from {LEAST:g} to {MOST:g}")
    return float(value)
