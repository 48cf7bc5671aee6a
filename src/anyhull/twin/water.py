"""Current, wind and waves of the twin, from a wind speed, a fetch and a current."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from anyhull.backend import to_inertial
from anyhull.errors import InputError, unknown
from anyhull.schema import check_types, require
from anyhull.sea import drift

GRAVITY, AIR = 9.81, 1.23
"""m/s²; kg/m³."""

COMPONENTS = 16
"""Regular waves whose sum is the sea."""

PI, THREE, TINY, SHORT = (np.array(value) for value in (math.pi, 3.0, 1e-300, 1e-2))
"""Operands as arrays: NumPy converts a Python number at every call."""

BLOCK = 256
"""Steps whose random numbers are drawn at once: a single draw costs more than its numbers."""


@dataclass(frozen=True)
class Water:
    """Wind, waves and current; directions are drawn for every trial."""

    wind: float
    """Mean wind at the boat, m/s."""
    fetch: float
    """Open water to windward, m; with the wind it gives the height and period of the waves."""
    current: float
    """Largest mean current, m/s; that of a trial is uniform from zero to this."""
    turbulence: float = 0.2
    """Standard deviation of the wind speed as a fraction of its mean: that of wind over water near the surface."""
    gust_length: float = 20.0
    """Length of the gusts, m: they pass in this by the wind speed."""
    veer: float = 0.15
    """Standard deviation of the wind's direction, rad."""
    wave_spread: float = 0.4
    """Standard deviation of the waves' directions about the wind's, rad."""
    eddies: float = 0.2
    """Standard deviation of the current on each axis as a fraction of `current`, over a minute."""

    def __post_init__(self) -> None:
        check_types(self)
        for field in self.__dataclass_fields__:
            require(self, field, getattr(self, field) >= 0, "zero or more")
        require(self, "gust_length", self.gust_length > 0, "positive")

    @staticmethod
    def preset(name: str) -> Water:
        """The water of that name: one of `WATERS`."""
        if name not in WATERS:
            raise InputError(unknown("sea", name, WATERS))
        return WATERS[name]

    @property
    def waves(self) -> tuple[float, float]:
        """Significant height (m) and peak period (s) of fetch-limited waves: JONSWAP, Hasselmann et al. (1973)."""
        if self.wind == 0 or self.fetch == 0:
            return 0.0, 1.0
        fetch = GRAVITY * self.fetch / self.wind**2
        return 0.0016 * math.sqrt(fetch) * self.wind**2 / GRAVITY, 0.286 * fetch ** (1 / 3) * self.wind / GRAVITY


WATERS = {
    "still": Water(wind=0.0, fetch=0.0, current=0.0),
    "light-air": Water(wind=1.0, fetch=100.0, current=0.02),
    "lake": Water(wind=3.0, fetch=300.0, current=0.06),
    "breeze": Water(wind=5.0, fetch=500.0, current=0.10),
    "rough": Water(wind=8.0, fetch=1000.0, current=0.20),
}
"""Waters by name. `lake` is an ordinary day on a small lake: a light wind, waves of 3 cm every 0.6 s, and a surface
drift of 2 % of the wind. The current of `rough` is the largest that the paper trains for."""


class WaterMotion(NamedTuple):
    """The motion of the water at one place and time, averaged over the hull."""

    x: float
    """Velocity in the inertial frame, m/s: current and waves."""
    y: float
    yaw_rate: float
    """Rate at which waves turn the hull, rad/s."""
    slope_x: float
    """Slope of the surface along the inertial x."""
    slope_y: float


def gauss_markov(value: Any, normal: Any, std: float, correlation_time: float, dt: float) -> Any:
    """One exact step of a first-order Gauss-Markov process, from a standard normal number."""
    return drift(value, normal, 2 * std, 1 / correlation_time, dt)


class Weather:
    """Wind, waves and current of one trial."""

    def __init__(self, water: Water, length: float, beam: float, random: np.random.Generator) -> None:
        self.water = water
        self._random, self._length, self._beam = random, length, beam
        heading, speed = random.uniform(-math.pi, math.pi), random.uniform(0, water.current)
        self._mean_current = to_inertial(speed, 0.0, heading)
        self._eddy: tuple[float, float] = tuple(random.standard_normal(2).tolist())
        self._wind_heading = random.uniform(-math.pi, math.pi)
        self._gust, self._veer = random.standard_normal(2).tolist()
        self._normals: Iterator[list[float]] = iter(())
        height, period = water.waves
        # JONSWAP's shape with its usual peak, on frequencies apart by golden steps so that the sum does not repeat.
        peak = 2 * math.pi / period
        self._omega = peak * (0.7 + 1.6 * (np.arange(COMPONENTS) + 0.618 * random.random(COMPONENTS)) / COMPONENTS)
        w = self._omega / peak
        sigma = np.where(w <= 1, 0.07, 0.09)
        density = w**-5 * np.exp(-1.25 * w**-4) * 3.3 ** np.exp(-((w - 1) ** 2) / (2 * sigma**2))
        # Half the sum of squared amplitudes is the variance of the surface, (height / 4)².
        self._amplitude = height / 4 * np.sqrt(2 * density / density.sum())
        self._number = self._omega**2 / GRAVITY
        self._wave_heading = self._wind_heading + water.wave_spread * random.standard_normal(COMPONENTS)
        self._phase = random.uniform(0, 2 * math.pi, COMPONENTS)
        self._cos, self._sin = np.cos(self._wave_heading), np.sin(self._wave_heading)
        self._courses = np.stack([self._cos, self._sin])
        self._half_hull = np.stack([self._number * length / 2, self._number * beam / 2])

    def step(self, dt: float) -> None:
        """Advance gusts, wind direction and eddies by `dt` s."""
        normals = next(self._normals, None)
        if normals is None:
            self._normals = iter(self._random.standard_normal((BLOCK, 4)).tolist())
            normals = next(self._normals)
        gust_time = self.water.gust_length / max(self.water.wind, 1e-9)
        self._gust = gauss_markov(self._gust, normals[0], 1.0, gust_time, dt)
        self._veer = gauss_markov(self._veer, normals[1], 1.0, 30.0, dt)
        x, y = self._eddy
        self._eddy = gauss_markov(x, normals[2], 1.0, 60.0, dt), gauss_markov(y, normals[3], 1.0, 60.0, dt)

    @property
    def current(self) -> tuple[float, float]:
        """In the inertial frame, m/s."""
        size = self.water.eddies * self.water.current
        return self._mean_current[0] + size * self._eddy[0], self._mean_current[1] + size * self._eddy[1]

    def wind_force(self, psi: float, velocity: tuple[float, float]) -> tuple[float, float, float]:
        """Body force (N, N, N·m) of the wind on a boat that moves at `velocity` over ground in the inertial frame.

        Fossen (2011), eq. 8.23: c_x cos γ, c_y sin γ and c_n sin 2γ with 0.7, 0.8 and 0.1, on a hull and mast with
        a windage of a seventh of length times length, or times beam.
        """
        speed = max(0.0, self.water.wind * (1 + self.water.turbulence * self._gust))
        x, y = to_inertial(speed, 0.0, self._wind_heading + self.water.veer * self._veer)
        x, y = x - velocity[0], y - velocity[1]
        angle, pressure = math.atan2(y, x) - psi, AIR / 2 * (x * x + y * y)
        side, front = self._length**2 / 7, self._length * self._beam / 7
        return (
            0.7 * pressure * front * math.cos(angle),
            0.8 * pressure * side * math.sin(angle),
            0.1 * pressure * side * self._length * math.sin(2 * angle),
        )

    def motion(self, time: float, x: float, y: float, psi: float) -> WaterMotion:
        """The water's motion at a place: current, and the orbital motion of the waves averaged over the hull.

        A hull of length L averages a wave of number k at the encounter angle mu by sinc(k L cos mu / 2) along and
        sinc(k B sin mu / 2) across; the gradient of the sideways velocity along the hull, 3 (sin z - z cos z) / z³,
        turns it.
        """
        c_x, c_y = self.current
        if self.water.fetch == 0 or self.water.wind == 0:
            return WaterMotion(c_x, c_y, 0.0, 0.0, 0.0)
        # Half of the twin's time is spent here, and most of that in the calls: hence few of them, on stacked rows.
        k, mu = self._number, self._wave_heading - psi
        turned, angles = np.empty((2, COMPONENTS)), np.empty((4, COMPONENTS))
        cos_mu, sin_mu = turned
        np.cos(mu, out=cos_mu)
        np.sin(mu, out=sin_mu)
        half = self._half_hull * turned
        # np.sinc's own arithmetic, with a number in place of zero.
        np.add(PI * (half / PI), TINY, out=angles[:2])
        z, phase = angles[2:]
        z[:] = np.where(np.abs(half[0]) < SHORT, SHORT, half[0])
        np.add(k * (x * self._cos + y * self._sin) - self._omega * time, self._phase, out=phase)
        sines, (cos_z, cos_phase) = np.sin(angles), np.cos(angles[2:])
        sinc = sines[:2] / angles[:2]
        _, _, sin_z, sin_phase = sines
        across_beam = self._amplitude * sinc[1]
        averaged = across_beam * sinc[0]
        lever = THREE * (sin_z - z * cos_z) / z**3
        turn = (across_beam * lever * self._omega * k * cos_mu * sin_mu * sin_phase).sum()
        motion = np.empty((2, COMPONENTS))
        np.multiply(averaged * self._omega, cos_phase, out=motion[0])
        np.multiply(averaged * k, sin_phase, out=motion[1])
        (v_x, v_y), (slope_x, slope_y) = np.vecdot(motion[:, None], self._courses[None]).tolist()
        return WaterMotion(c_x + v_x, c_y + v_y, -float(turn), -slope_x, -slope_y)
