"""The twin's thrusters: those of the vessel's file with their errors, and a default layout for boats without.

A command is rounded to the resolution of the speed controller and gives no thrust in the dead band. Beyond it the
thrust rises as a power of the command to a limit near the file's. It follows with a lag, at most at `rate`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anyhull.backend import wrap
from anyhull.hydrodynamics import Triple
from anyhull.thrusters import Thruster
from anyhull.twin.hull import error_factor, size
from anyhull.vessel import Vessel


@dataclass(frozen=True)
class ThrusterUncertainty:
    """Errors of a vessel's thrusters; drawn for every thruster and trial."""

    gain: float = 0.05
    """Standard deviation of the limits as a fraction: the scatter of propellers of one make."""
    exponent: tuple[float, float] = (0.9, 1.3)
    """Range of the exponent of thrust in command: thrust is quadratic in the propeller's speed, and speed controllers
    and calibrations by a few points linearize that in part."""
    dead_band: float = 0.01
    """Standard deviation of the dead band."""
    lag: tuple[float, float] = (0.7, 1.5)
    """Range of the lag, in those of the file: it is longer near zero and shorter at speed."""
    steps: int = 400
    """Steps from zero to full command: microseconds of a servo pulse from 1500 to 1900."""


class Propulsion:
    """The thrusters of one trial."""

    def __init__(
        self, thrusters: Sequence[Thruster], uncertainty: ThrusterUncertainty, random: np.random.Generator
    ) -> None:
        self.thrusters = tuple(thrusters)
        self._steps = uncertainty.steps
        self._gains = [error_factor(uncertainty.gain, random) for _ in self.thrusters]
        self._exponents: list[float] = random.uniform(*uncertainty.exponent, len(self.thrusters)).tolist()
        bands = [t.dead_band + uncertainty.dead_band * random.standard_normal() for t in self.thrusters]
        self._bands = [
            min(max(band, 0.0), 0.9) if t.dead_band else 0.0 for band, t in zip(bands, thrusters, strict=True)
        ]
        self._lags = [t.lag * random.uniform(*uncertainty.lag) for t in self.thrusters]
        self.thrusts = [0.0] * len(self.thrusters)
        """Present thrusts, N."""
        self.angles = [math.radians(t.angle) for t in self.thrusters]
        """Present angles, rad."""
        self.strength = [1.0] * len(self.thrusters)
        """Fraction of its thrust that each thruster gives: 0 is dead."""
        self.stuck: list[float | None] = [None] * len(self.thrusters)
        """Command at which each thruster is stuck, or None."""
        self._columns: list[Triple] = [
            tuple(t.column(angle).tolist()) for t, angle in zip(thrusters, self.angles, strict=True)
        ]
        # A command lasts for some twenty steps.
        self._cached_steady = functools.lru_cache(maxsize=4 * len(self.thrusters))(self.steady)

    @property
    def measured(self) -> list[float]:
        """Present thrusts as fractions of the file's largest in that direction."""
        limits = (t.bounds[thrust > 0] for t, thrust in zip(self.thrusters, self.thrusts, strict=True))
        return [thrust / abs(limit) if limit else 0.0 for thrust, limit in zip(self.thrusts, limits, strict=True)]

    def steady(self, i: int, command: float) -> float:
        """The steady thrust (N) of a sound thruster `i` under a command."""
        command = round(max(-1.0, min(command, 1.0)) * self._steps) / self._steps
        low, high = self.thrusters[i].bounds
        size = max(0.0, abs(command) - self._bands[i]) / (1 - self._bands[i])
        return self._gains[i] * math.pow(size, self._exponents[i]) * (high if command > 0 else low)

    def step(self, commands: Sequence[float], angles: Sequence[float], dt: float) -> Triple:
        """The body force (N, N, N·m) after `dt` s under these commands and, for azimuths, angles (rad)."""
        surge = sway = yaw = 0.0
        for i, t in enumerate(self.thrusters):
            stuck = self.stuck[i]
            steady = self.strength[i] * self._cached_steady(i, commands[i] if stuck is None else stuck)
            gap = steady - self.thrusts[i]
            change = gap * -math.expm1(-dt / self._lags[i]) if self._lags[i] > 0 else gap
            if t.rate is not None:
                change = max(-t.rate * dt, min(change, t.rate * dt))
            self.thrusts[i] += change
            if t.kind == "azimuth":
                turn = float(wrap(angles[i] - self.angles[i]))
                most = math.inf if t.turn_rate is None else math.radians(t.turn_rate) * dt
                self.angles[i] += max(-most, min(turn, most))
                self._columns[i] = tuple(t.column(self.angles[i]).tolist())
            x, y, n = self._columns[i]
            surge, sway, yaw = surge + self.thrusts[i] * x, sway + self.thrusts[i] * y, yaw + self.thrusts[i] * n
        return surge, sway, yaw


def default_layout(vessel: Vessel) -> tuple[Thruster, ...]:
    """A plausible layout for a vessel whose file has none, just strong enough for its limits in every direction.

    Four fixed thrusters at the corners, each at 45°, or two at the stern for a boat without sway; reverse thrust 0.79
    of forward, a dead band of 5 %, and a lag of 0.1 s for a hull of 0.8 m that grows with the root of its length, as
    propellers of larger boats turn more slowly. For Platforms A and B about examples/boat.toml and boat-b.toml.
    """
    length, _ = size(vessel)
    x, y, lag = 0.38 * length, 0.25 * length, 0.1 * math.sqrt(max(length, 0.2) / 0.8)
    if vessel.Fy == 0:
        reverse = max(vessel.Fx / 2, vessel.Mz / (2 * y))
        places, angles = [(-x, y), (-x, -y)], [0.0, 0.0]
    else:
        reverse = max(vessel.Fx, vessel.Fy, vessel.Mz / (x + y)) * math.sqrt(2) / 4
        places, angles = [(x, y), (x, -y), (-x, y), (-x, -y)], [-45.0, 45.0, 45.0, -45.0]
    forward = reverse / 0.79
    return tuple(
        Thruster("fixed", *place, forward, reverse, angle, dead_band=0.05, lag=lag, rate=forward / (2 * lag))
        for place, angle in zip(places, angles, strict=True)
    )
