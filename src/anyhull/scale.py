"""Similarity: a policy trained on boats of about a metre steers a boat of any size in units of its own.

With a length unit l and a time unit T the equations of motion keep their form:

    x, y -> x / l        alpha_u, alpha_v -> alpha T² / l    quadratic drag of u, v -> q l      of r -> q
    psi  -> psi          alpha_r          -> alpha T²        cubic drag of u, v     -> k l² / T, of r -> k / T
    u, v -> u T / l      1 / tau          -> T / tau         c_rv, c_ru             -> as they are
    r    -> r T          t                -> t / T           c_uv                   -> c_uv l²

So a policy with l = T = 1 and a period of 0.1 s steers the boat exactly, with a period of 0.1 T s. The units follow
from what the boat's file says, never from hydrodynamics.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Protocol, TypeVar

import numpy as np

from anyhull.backend import Array
from anyhull.hydrodynamics import Normalized, Triple

PERIOD = 0.1
"""Control period of a policy in its own units; of a boat whose time unit is one second, s."""

TYPICAL_LENGTH = 0.9
"""Length of the boats in training, in a policy's length units."""

LARGEST_MODEL = 2.5
"""Length up to which a boat may need no scale, m."""

USUAL: tuple[tuple[float, float], ...] = ((0.3, 8.0), (0.2, 8.0), (0.3, 60.0))
"""Peak accelerations in surge, sway and yaw well inside training; a boat above them is derated to them."""

LEAST = (0.3, 0.2, 0.5)
"""Peak accelerations that a scale brings a weak boat to, in the policy's units."""

ADDED = (1.1, 2.0)
"""Inertia in surge and sway over the mass: usual added masses are 5 to 15 % and about the mass itself."""

GYRATION = 0.33
"""Radius of gyration in yaw with added inertia, in lengths; ships have 0.25 without it."""

DISPLACEMENT = 9.5
"""Mass over cubed length, kg/m³: the median of the catalogue, whose boats lie within a factor of two, as a rule."""

FULL: Triple = (1.0, 1.0, 1.0)
"""No derating."""


class Described(Protocol):
    """What a boat's file says; `anyhull.vessel.Vessel` is one."""

    @property
    def length(self) -> float | None: ...
    @property
    def m(self) -> float | None: ...
    @property
    def actuation(self) -> str: ...
    @property
    def limits(self) -> Triple: ...
    @property
    def scale(self) -> Scale: ...


S = TypeVar("S", bound="Scalable")
C = TypeVar("C", bound=Any)
"""A frozen dataclass."""


class Scalable(Protocol):
    """A sea, which knows how to state itself in other units."""

    def scaled(self: S, length: float, time: float) -> S: ...


@dataclass(frozen=True)
class Scale:
    """The units of a policy for one boat: lengths in `length` m and times in `time` s."""

    length: float = 1.0
    """Length unit l, m."""
    time: float = 1.0
    """Time unit T, s."""

    @cached_property
    def identity(self) -> bool:
        """Whether the policy's units are those of SI."""
        return self.length == self.time == 1.0

    @cached_property
    def period(self) -> float:
        """Control period, s."""
        return PERIOD * self.time

    @cached_property
    def speed(self) -> float:
        """The policy's unit of speed, m/s."""
        return self.length / self.time

    @property
    def inverse(self) -> Scale:
        """From the policy's units into SI."""
        return Scale(1 / self.length, 1 / self.time)

    @cached_property
    def _to_pose(self) -> Array:
        return np.array([1 / self.length, 1 / self.length, 1.0])

    @cached_property
    def _to_velocity(self) -> Array:
        return np.array([1 / self.speed, 1 / self.speed, self.time])

    @cached_property
    def _to_state(self) -> Array:
        return np.concatenate([self._to_pose, self._to_velocity])

    def pose(self, pose: Array) -> Array:
        """A pose (x, y, psi) in the policy's units."""
        return pose if self.identity else pose * self._to_pose

    def velocity(self, velocity: Array) -> Array:
        """A velocity (u, v, r) in the policy's units."""
        return velocity if self.identity else velocity * self._to_velocity

    def window(self, window: Array) -> Array:
        """States (x, y, psi, u, v, r), shape (..., 6), in the policy's units."""
        return window if self.identity else window * self._to_state

    def normalized(self, e: Normalized, derating: Triple = FULL) -> Normalized:
        """The components e in the policy's units; of the limits only the share `derating` is used."""
        linear, time = self.time**2 / self.length, self.time
        return Normalized(
            alpha_u=e.alpha_u * linear * derating[0],
            alpha_v=e.alpha_v * linear * derating[1],
            alpha_r=e.alpha_r * time**2 * derating[2],
            inv_tau_u=e.inv_tau_u * time,
            inv_tau_v=e.inv_tau_v * time,
            inv_tau_r=e.inv_tau_r * time,
            c_rv=e.c_rv,
            c_ru=e.c_ru,
            c_uv=e.c_uv * self.length**2,
        )

    def drag(self, drag: tuple[Triple, Triple]) -> tuple[Triple, Triple]:
        """Quadratic and cubic damping per unit of inertia in the policy's units."""
        (q_u, q_v, q_r), (k_u, k_v, k_r) = drag
        cubic = self.length**2 / self.time
        return (q_u * self.length, q_v * self.length, q_r), (k_u * cubic, k_v * cubic, k_r / self.time)

    def speeds(self, speeds: Triple) -> Triple:
        """Speeds (u, v, r) that are stated in the policy's units, in m/s, m/s and rad/s."""
        return speeds[0] * self.speed, speeds[1] * self.speed, speeds[2] / self.time

    def defaults(self, config: C, powers: Mapping[str, tuple[float, float]]) -> C:
        """A config whose fields that are at their default are in the policy's units, in SI.

        `powers` are of length and time, by the field's name; a field that is not at its default is in SI.
        """
        if self.identity:
            return config
        changed = {
            field.name: field.default * self.length ** powers[field.name][0] * self.time ** powers[field.name][1]
            for field in fields(config)
            if field.name in powers and getattr(config, field.name) == field.default
        }
        return replace(config, **changed)

    def sea(self, sea: S) -> S:
        """A sea that is stated in the policy's units, in SI: what the policy knows of current, wind and delay."""
        return sea if self.identity else sea.scaled(self.length, self.time)


IDENTITY = Scale()
"""A policy's units are SI: for boats like those in training."""


def accelerations(vessel: Described) -> Triple:
    """Estimated peak accelerations from length, mass and limits (m/s², m/s², rad/s²); inf for sway without control."""
    assert vessel.length is not None
    m = vessel.m or DISPLACEMENT * vessel.length**3
    surge, sway, yaw = vessel.limits
    a_v = math.inf if sway == 0 or vessel.actuation == "under" else sway / (ADDED[1] * m)
    return surge / (ADDED[0] * m), a_v, yaw / (m * (GYRATION * vessel.length) ** 2)


def choose(vessel: Described) -> Scale:
    """The units in which a vessel is like the boats in training, from length, mass and limits."""
    if vessel.length is None:
        return IDENTITY
    found = accelerations(vessel)
    usual = all(low <= a <= high or a == math.inf for a, (low, high) in zip(found, USUAL, strict=True))
    if vessel.length <= LARGEST_MODEL and usual:
        return IDENTITY
    length = float(f"{max(vessel.length / TYPICAL_LENGTH, 1.0):.3g}")
    units = (length, length, 1.0)
    needed = [math.sqrt(least * unit / a) for least, unit, a in zip(LEAST, units, found, strict=True)]
    # The loop is never faster than 10 Hz: a boat that is too strong is derated instead.
    return Scale(length, _round_up(max(1.0, *needed)))


def derating(vessel: Described) -> Triple:
    """The share of the limits that a policy uses on each axis: below 1 for a boat stronger than those in training."""
    if vessel.length is None:
        return FULL
    scale = vessel.scale
    units = (scale.speed / scale.time, scale.speed / scale.time, 1 / scale.time**2)
    pairs = zip(accelerations(vessel), units, USUAL, strict=True)
    u, v, r = (
        1.0 if a == math.inf or a / unit <= high else _round_down(high * unit / a) for a, unit, (_, high) in pairs
    )
    return u, v, r


def derated(vessel: Described) -> Triple:
    """The limits that a policy uses (N, N, N·m)."""
    u, v, r = (limit * share for limit, share in zip(vessel.limits, derating(vessel), strict=True))
    return u, v, r


def _round_up(time: float) -> float:
    """A time unit with at most three figures whose period of a tenth is a multiple of 5 ms."""
    step = 0.05 if time < 10 else 0.1 * 10.0 ** (math.floor(math.log10(time)) - 1)
    return round(math.ceil(time / step - 1e-9) * step, 9)


def _round_down(share: float) -> float:
    """A share with two figures."""
    step = 10.0 ** (math.floor(math.log10(share)) - 1)
    return round(math.floor(share / step + 1e-9) * step, 12)
