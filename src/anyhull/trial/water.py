"""Current, wind and waves of the twin, from a wind speed, a fetch and a current."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyhull.errors import InputError, unknown
from anyhull.toml import check_types, require

Array = NDArray[np.float64]

GRAVITY, AIR = 9.81, 1.23
"""m/s²; kg/m³."""

COMPONENTS = 16
"""Regular waves that make up the sea."""


@dataclass(frozen=True)
class Water:
    """What the weather is like; directions are drawn for every trial."""

    wind: float
    """Mean wind at the boat, m/s."""
    fetch: float
    """Open water to windward, m; with the wind it says how high and how long the waves are."""
    current: float
    """Largest mean current, m/s; a trial has any from zero to this."""
    turbulence: float = 0.2
    """Standard deviation of the wind speed as a fraction of its mean: what wind over water has near the surface."""
    gust_length: float = 20.0
    """Length of the gusts, m: they pass in this by the wind speed."""
    veer: float = 0.15
    """Standard deviation of the wind's direction, rad."""
    spread: float = 0.4
    """Standard deviation of the waves' directions about the wind's, rad."""
    wander: float = 0.2
    """Standard deviation of the current on each axis as a fraction of `current`, changing over a minute: eddies."""

    def __post_init__(self) -> None:
        check_types(self)
        for field in ("wind", "fetch", "current", "turbulence", "veer", "spread", "wander"):
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
    "calm": Water(wind=1.0, fetch=100.0, current=0.02),
    "lake": Water(wind=3.0, fetch=300.0, current=0.06),
    "breeze": Water(wind=5.0, fetch=500.0, current=0.10),
    "rough": Water(wind=8.0, fetch=1000.0, current=0.20),
}
"""Waters by name. `lake` is an ordinary day on a small lake: a light wind, waves of 3 cm every 0.6 s, and the 2 % of
the wind that water drifts with. The current of `rough` is the largest that the paper trains for."""


class Moved(NamedTuple):
    """What the water does at one place and time, averaged over the hull."""

    x: float
    """Velocity in the inertial frame, m/s: current and waves."""
    y: float
    turn: float
    """Rate at which waves turn the hull, rad/s."""
    slope_x: float
    """Slope of the surface along the inertial x, averaged over the hull."""
    slope_y: float


class Weather:
    """One trial's wind, waves and current."""

    def __init__(self, water: Water, length: float, beam: float, random: np.random.Generator) -> None:
        self.water = water
        self._random, self._length, self._beam = random, length, beam
        heading, speed = random.uniform(-math.pi, math.pi), random.uniform(0, water.current)
        self._mean = np.array([speed * math.cos(heading), speed * math.sin(heading)])
        self._eddy = random.standard_normal(2)
        self._from = random.uniform(-math.pi, math.pi)
        self._gust, self._veer = random.standard_normal(2)
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
        self._toward = self._from + water.spread * random.standard_normal(COMPONENTS)
        self._phase = random.uniform(0, 2 * math.pi, COMPONENTS)
        self._cos, self._sin = np.cos(self._toward), np.sin(self._toward)

    def step(self, dt: float) -> None:
        """Let gusts and eddies change over `dt` s."""
        normals = self._random.standard_normal(4)
        gusts = math.exp(-dt * max(self.water.wind, 1e-9) / self.water.gust_length)
        veer, eddies = math.exp(-dt / 30.0), math.exp(-dt / 60.0)
        self._gust = gusts * self._gust + math.sqrt(1 - gusts * gusts) * normals[0]
        self._veer = veer * self._veer + math.sqrt(1 - veer * veer) * normals[1]
        self._eddy = eddies * self._eddy + math.sqrt(1 - eddies * eddies) * normals[2:]

    @property
    def current(self) -> tuple[float, float]:
        """In the inertial frame, m/s."""
        x, y = self._mean + self.water.wander * self.water.current * self._eddy
        return float(x), float(y)

    def wind_force(self, psi: float, velocity: tuple[float, float]) -> tuple[float, float, float]:
        """Body force (N, N, N·m) on a boat that moves at `velocity` over ground in the inertial frame.

        Fossen (2011), eq. 8.23: c_x cos γ, c_y sin γ and c_n sin 2γ with 0.7, 0.8 and 0.1, on a hull and mast of which
        a seventh of length times length, or times beam, stands in the wind.
        """
        speed = max(0.0, self.water.wind * (1 + self.water.turbulence * self._gust))
        toward = self._from + self.water.veer * self._veer
        x = speed * math.cos(toward) - velocity[0]
        y = speed * math.sin(toward) - velocity[1]
        angle, pressure = math.atan2(y, x) - psi, AIR / 2 * (x * x + y * y)
        side, front = self._length**2 / 7, self._length * self._beam / 7
        return (
            0.7 * pressure * front * math.cos(angle),
            0.8 * pressure * side * math.sin(angle),
            0.1 * pressure * side * self._length * math.sin(2 * angle),
        )

    def at(self, time: float, x: float, y: float, psi: float) -> Moved:
        """The water's motion at a place: current, and the orbital motion of the waves as far as the hull feels it.

        A hull of length L averages a wave of number k that it meets at the angle mu: by sinc(k L cos mu / 2) along and
        sinc(k B sin mu / 2) across; the slope of the sideways velocity along the hull, 3 (sin z - z cos z) / z³, turns
        it.
        """
        c_x, c_y = self.current
        if self.water.fetch == 0 or self.water.wind == 0:
            return Moved(c_x, c_y, 0.0, 0.0, 0.0)
        k, mu = self._number, self._toward - psi
        cos_mu, sin_mu = np.cos(mu), np.sin(mu)
        along, across = k * self._length / 2 * cos_mu, k * self._beam / 2 * sin_mu
        phase = k * (x * self._cos + y * self._sin) - self._omega * time + self._phase
        felt = self._amplitude * np.sinc(across / math.pi)
        speed = felt * np.sinc(along / math.pi) * self._omega * np.cos(phase)
        tilt = -felt * np.sinc(along / math.pi) * k * np.sin(phase)
        z = np.where(np.abs(along) < 1e-2, 1e-2, along)
        lever = 3 * (np.sin(z) - z * np.cos(z)) / z**3
        turn = -(felt * lever * self._omega * k * cos_mu * sin_mu * np.sin(phase)).sum()
        return Moved(
            c_x + float(speed @ self._cos),
            c_y + float(speed @ self._sin),
            float(turn),
            float(tilt @ self._cos),
            float(tilt @ self._sin),
        )
