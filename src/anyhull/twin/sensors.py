"""The twin's sensors: RTK position at 7 Hz, heading and IMU at 100 Hz, with their noise, biases and delays."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from anyhull.backend import to_body, to_inertial, wrap
from anyhull.onboard.messages import Acceleration, Gyro, Heading, Position
from anyhull.twin.monitors import Reading
from anyhull.twin.water import GRAVITY, gauss_markov


@dataclass(frozen=True)
class SensorConfig:
    """Errors of the sensors; standard deviations unless stated otherwise, SI units."""

    fix_rate: float = 7.0
    """Fixes a second: the paper's."""
    fix_noise: float = 0.01
    """Of a fix in x and in y, m: what makers of RTK receivers state."""
    fix_bias: float = 0.01
    """Of the slow error of fixes (multipath, ambiguities), m, over `fix_bias_time`."""
    fix_bias_time: float = 60.0
    """Correlation time of that, s."""
    fix_loss: float = 0.02
    """Fraction of single fixes that are lost."""
    outage_interval: float = 60.0
    """Mean time between outages, s."""
    outage_duration: float = 0.5
    """Mean duration of an outage, s."""
    fix_delay: float = 0.08
    """Least delay of a fix, s: the receiver's computation, the correction, the serial line."""
    fix_jitter: float = 0.02
    """Mean of the additional delay, exponential, s."""
    antenna: float = 0.02
    """Of the antenna's position from the one in the boat's file, on each axis, m: a tape measure."""
    mast: float = 0.5
    """Height of the antenna above the axis of roll and pitch, in lengths: it sways with the slope of the waves."""
    imu_rate: float = 100.0
    """Headings, yaw rates and accelerations a second: the paper's."""
    heading_noise: float = 0.01
    """Of a heading, rad: dual antennas a metre apart, or a good compass."""
    heading_bias: float = 0.015
    """Of the slow error of headings, rad, over `heading_bias_time`: mounting, iron."""
    heading_bias_time: float = 100.0
    """Correlation time of that, s."""
    gyro_noise: float = 2e-3
    """Of a yaw rate, rad/s: 0.016 °/s/√Hz over 50 Hz, a MEMS gyro."""
    gyro_bias: float = 5e-3
    """Of the yaw rate's bias at the start, rad/s."""
    gyro_bias_walk: float = 2e-5
    """Random walk of that, rad/s/√s."""
    accelerometer_noise: float = 0.05
    """Of an acceleration on each axis, m/s²: a MEMS accelerometer on a boat whose thrusters shake it."""
    accelerometer_bias: float = 0.05
    """Of its slow error, m/s², over `accelerometer_bias_time`: gravity at an attitude that is 0.3° wrong."""
    accelerometer_bias_time: float = 30.0
    """Correlation time of that, s."""
    accelerometer_leak: float = 0.1
    """Fraction of gravity along the slope of the waves that the attitude does not remove."""
    imu_delay: float = 0.005
    """Least delay of a heading, yaw rate or acceleration, s."""
    imu_jitter: float = 0.002
    """Mean of the additional delay, exponential, s."""


@dataclass
class SensorFaults:
    """Errors of faulty sensors, beside those of sound ones; they may be changed at any time."""

    position: tuple[float, float] = (0.0, 0.0)
    """Offset of the fixes, m."""
    heading: float = 0.0
    """Offset of the headings, rad."""
    gyro: float = 0.0
    """Offset of the yaw rates, rad/s."""
    position_std: float | None = None
    """Standard deviation that the receiver states, m; None: it states none."""
    heading_std: float | None = None
    """Standard deviation that the compass states, rad; None: it states none."""


class SensorSuite:
    """The sensors of one trial."""

    def __init__(
        self, config: SensorConfig, length: float, antenna: tuple[float, float], random: np.random.Generator
    ) -> None:
        """`antenna` is its position in the boat's file, m."""
        self.faults = SensorFaults()
        s = self.config = config
        self._random = random
        self._antenna = np.array(antenna) + s.antenna * random.standard_normal(2)
        self._mast = s.mast * length
        self._fix_bias = s.fix_bias * random.standard_normal(2)
        self._heading_bias = s.heading_bias * random.standard_normal()
        self._gyro_bias = s.gyro_bias * random.standard_normal()
        self._accelerometer_bias: list[float] = (s.accelerometer_bias * random.standard_normal(2)).tolist()
        self._last_velocity: tuple[float, float, float] | None = None
        self._fixes = self._samples = 0
        self._fix_phase = random.uniform(0, 1 / s.fix_rate)
        self._imu_arrival = self._fix_arrival = self._outage_end = 0.0
        self._next_outage = random.exponential(s.outage_interval)

    def read(self, time: float, state: tuple[float, ...], slope: tuple[float, float]) -> list[Reading]:
        """The measurements at a time of the true state (x, y, psi, u, v, r), for a slope of the surface."""
        s, readings = self.config, []
        if time >= self._samples / s.imu_rate - 1e-9:
            readings += self._read_imu(time, state, slope)
        if time >= self._fix_phase + self._fixes / s.fix_rate - 1e-9:
            readings += self._read_fix(time, state, slope)
        return readings

    def _read_imu(self, time: float, state: tuple[float, ...], slope: tuple[float, float]) -> list[Reading]:
        s, psi, r = self.config, state[2], state[5]
        self._samples += 1
        a, b, c = self._random.standard_normal(3).tolist()
        dt = 1 / s.imu_rate
        self._heading_bias = gauss_markov(self._heading_bias, a, s.heading_bias, s.heading_bias_time, dt)
        self._gyro_bias += s.gyro_bias_walk * math.sqrt(dt) * self._random.standard_normal()
        # The measurements of one sensor stay in order on one wire.
        arrival = time + s.imu_delay + self._random.exponential(s.imu_jitter)
        arrival = self._imu_arrival = max(arrival, self._imu_arrival)
        heading = float(wrap(psi + self._heading_bias + s.heading_noise * b + self.faults.heading))
        rate = float(r + self._gyro_bias + s.gyro_noise * c) + self.faults.gyro
        x, y = self._acceleration(time, state, slope)
        return [
            Reading(arrival, Gyro, time, {"rate": rate}),
            Reading(arrival, Acceleration, time, {"x": x, "y": y}),
            Reading(arrival, Heading, time, {"psi": heading, "std": self.faults.heading_std}),
        ]

    def _read_fix(self, time: float, state: tuple[float, ...], slope: tuple[float, float]) -> list[Reading]:
        s, (x, y, psi) = self.config, state[:3]
        self._fixes += 1
        noise = self._random.standard_normal(4)
        self._fix_bias = gauss_markov(self._fix_bias, noise[:2], s.fix_bias, s.fix_bias_time, 1 / s.fix_rate)
        arrival = time + s.fix_delay + self._random.exponential(s.fix_jitter)
        arrival = self._fix_arrival = max(arrival, self._fix_arrival)
        if time >= self._next_outage:
            self._outage_end = time + self._random.exponential(s.outage_duration)
            self._next_outage = self._outage_end + self._random.exponential(s.outage_interval)
        if self._random.random() < s.fix_loss or time < self._outage_end:
            return []
        a_x, a_y = to_inertial(self._antenna[0], self._antenna[1], psi)
        error = self._fix_bias + s.fix_noise * noise[2:] - self._mast * np.array(slope)
        f_x, f_y = self.faults.position
        values = {"x": float(x + a_x + error[0]) + f_x, "y": float(y + a_y + error[1]) + f_y}
        return [Reading(arrival, Position, time, values | {"std": self.faults.position_std})]

    def _acceleration(self, time: float, state: tuple[float, ...], slope: tuple[float, float]) -> tuple[float, float]:
        """The measured acceleration over the last interval in the body frame, m/s²."""
        s, (psi, u, v) = self.config, state[2:5]
        v_x, v_y = to_inertial(u, v, psi)
        before, v_x0, v_y0 = self._last_velocity or (time - 1.0, v_x, v_y)
        self._last_velocity = (time, v_x, v_y)
        leak = s.accelerometer_leak * GRAVITY
        a_x, a_y = (v_x - v_x0) / (time - before) - leak * slope[0], (v_y - v_y0) / (time - before) - leak * slope[1]
        normals = self._random.standard_normal(4).tolist()
        self._accelerometer_bias = bias = [
            gauss_markov(b, n, s.accelerometer_bias, s.accelerometer_bias_time, 1 / s.imu_rate)
            for b, n in zip(self._accelerometer_bias, normals[:2], strict=True)
        ]
        x, y = to_body(a_x, a_y, psi)
        return x + (bias[0] + s.accelerometer_noise * normals[2]), y + (bias[1] + s.accelerometer_noise * normals[3])
