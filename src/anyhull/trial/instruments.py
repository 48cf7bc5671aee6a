"""The twin's sensors: RTK position at 7 Hz, heading and IMU at 100 Hz, as noisy, biased and late as such are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from anyhull.arithmetic import wrap
from anyhull.boat.messages import Acceleration, Gyro, Heading, Message, Position
from anyhull.trial.water import GRAVITY


@dataclass(frozen=True)
class Instruments:
    """What the sensors are like; standard deviations unless they say otherwise, SI units."""

    fix_rate: float = 7.0
    """Fixes a second: the paper's."""
    fix_noise: float = 0.01
    """Of a fix in x and in y, m: what makers of RTK receivers state."""
    fix_bias: float = 0.01
    """Of the slow error of fixes (multipath, ambiguities), m, over `fix_bias_time`."""
    fix_bias_time: float = 60.0
    """s."""
    fix_lost: float = 0.02
    """Share of single fixes that are lost."""
    outage_every: float = 60.0
    """Mean time between outages, s."""
    outage_lasts: float = 0.5
    """Mean length of an outage, s."""
    fix_late: float = 0.08
    """Least time from a fix to its arrival, s: the receiver computes, and the correction and the serial line wait."""
    fix_jitter: float = 0.02
    """Mean of what comes on top, exponentially, s."""
    antenna: float = 0.02
    """Of where the antenna is from where the boat's file has it, on each axis, m: a tape measure."""
    mast: float = 0.5
    """Height of the antenna above the axis of roll and pitch, in lengths: it sways with the slope of the waves."""
    fast_rate: float = 100.0
    """Headings and yaw rates a second: the paper's."""
    heading_noise: float = 0.01
    """Of a heading, rad: dual antennas a metre apart, or a good compass."""
    heading_bias: float = 0.015
    """Of the slow error of headings, rad, over `heading_bias_time`: mounting, iron."""
    heading_bias_time: float = 100.0
    """s."""
    gyro_noise: float = 2e-3
    """Of a yaw rate, rad/s: 0.016 °/s/√Hz over 50 Hz, a MEMS gyro."""
    gyro_bias: float = 5e-3
    """Of the yaw rate's bias at the start, rad/s."""
    gyro_walk: float = 2e-5
    """By which that wanders, rad/s/√s."""
    push_noise: float = 0.05
    """Of an acceleration on each axis, m/s²: a MEMS accelerometer on a boat whose thrusters shake it."""
    push_bias: float = 0.05
    """Of its slow error, m/s², over half a minute: gravity at an attitude that is 0.3° wrong."""
    push_leak: float = 0.1
    """Share of gravity along the slope of the waves that the attitude does not take out."""
    fast_late: float = 0.005
    """Least time from a heading or yaw rate to its arrival, s."""
    fast_jitter: float = 0.002
    """Mean of what comes on top, exponentially, s."""


class Reading(NamedTuple):
    """What a sensor said of a time, and when it is heard."""

    arrives: float
    kind: type[Message]
    time: float
    values: dict[str, Any]


class Sensing:
    """The sensors of one trial."""

    def __init__(self, instruments: Instruments, length: float, antenna: tuple[float, float], random: Any) -> None:
        """`antenna` is where the boat's file has it, m."""
        s = self.instruments = instruments
        self._random: np.random.Generator = random
        self._antenna = np.array(antenna) + s.antenna * random.standard_normal(2)
        self._mast = s.mast * length
        self._fix_bias = s.fix_bias * random.standard_normal(2)
        self._heading_bias = s.heading_bias * random.standard_normal()
        self._gyro_bias = s.gyro_bias * random.standard_normal()
        self._push_bias = s.push_bias * random.standard_normal(2)
        self._before: tuple[float, float, float] | None = None
        self._fixes = self._fast = 0
        self._fix_phase = random.uniform(0, 1 / s.fix_rate)
        self._fast_arrived = self._fix_arrived = self._back = 0.0
        self._next_outage = random.exponential(s.outage_every)

    def read(self, time: float, state: tuple[float, ...], slope: tuple[float, float]) -> list[Reading]:
        """What the sensors say at a time of the true state (x, y, psi, u, v, r), the surface sloping as given."""
        s, readings = self.instruments, []
        x, y, psi, _, _, r = state
        if time >= self._fast / s.fast_rate - 1e-9:
            self._fast += 1
            a, b, c = self._random.standard_normal(3)
            keep = math.exp(-1 / (s.fast_rate * s.heading_bias_time))
            self._heading_bias = keep * self._heading_bias + math.sqrt(1 - keep * keep) * s.heading_bias * a
            self._gyro_bias += s.gyro_walk / math.sqrt(s.fast_rate) * self._random.standard_normal()
            # What one sensor says does not overtake itself on its wire.
            arrives = time + s.fast_late + self._random.exponential(s.fast_jitter)
            arrives = self._fast_arrived = max(arrives, self._fast_arrived)
            heading = float(wrap(psi + self._heading_bias + s.heading_noise * b))
            rate = float(r + self._gyro_bias + s.gyro_noise * c)
            readings.append(Reading(arrives, Gyro, time, {"rate": rate}))
            x_y = self._push(time, state, slope)
            readings.append(Reading(arrives, Acceleration, time, {"x": x_y[0], "y": x_y[1]}))
            readings.append(Reading(arrives, Heading, time, {"psi": heading}))
        if time >= self._fix_phase + self._fixes / s.fix_rate - 1e-9:
            self._fixes += 1
            noise = self._random.standard_normal(4)
            keep = math.exp(-1 / (s.fix_rate * s.fix_bias_time))
            self._fix_bias = keep * self._fix_bias + math.sqrt(1 - keep * keep) * s.fix_bias * noise[:2]
            arrives = time + s.fix_late + self._random.exponential(s.fix_jitter)
            arrives = self._fix_arrived = max(arrives, self._fix_arrived)
            if time >= self._next_outage:
                self._back = time + self._random.exponential(s.outage_lasts)
                self._next_outage = self._back + self._random.exponential(s.outage_every)
            if self._random.random() >= s.fix_lost and time >= self._back:
                cos, sin = math.cos(psi), math.sin(psi)
                a_x, a_y = self._antenna
                error = self._fix_bias + s.fix_noise * noise[2:] - self._mast * np.array(slope)
                place = (x + cos * a_x - sin * a_y + error[0], y + sin * a_x + cos * a_y + error[1])
                readings.append(Reading(arrives, Position, time, {"x": float(place[0]), "y": float(place[1])}))
        return readings

    def _push(self, time: float, state: tuple[float, ...], slope: tuple[float, float]) -> tuple[float, float]:
        """The acceleration over the last interval in the body frame, m/s², with its errors."""
        s = self.instruments
        _, _, psi, u, v, _ = state
        cos, sin = math.cos(psi), math.sin(psi)
        x, y = cos * u - sin * v, sin * u + cos * v
        before, self._before = self._before or (time - 1.0, x, y), (time, x, y)
        a_x, a_y = ((now - then) / (time - before[0]) for now, then in zip((x, y), before[1:], strict=True))
        g_x, g_y = (s.push_leak * GRAVITY * value for value in slope)
        keep = math.exp(-1 / (s.fast_rate * 30.0))
        normals = self._random.standard_normal(4)
        self._push_bias = keep * self._push_bias + math.sqrt(1 - keep * keep) * s.push_bias * normals[:2]
        error = self._push_bias + s.push_noise * normals[2:]
        return (
            float(cos * (a_x - g_x) + sin * (a_y - g_y) + error[0]),
            float(cos * (a_y - g_y) - sin * (a_x - g_x) + error[1]),
        )
