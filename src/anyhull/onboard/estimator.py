"""The state estimate from RTK position, heading and gyro, optionally an accelerometer, with its health.

`anyhull.onboard.filter` holds the filter, and how far the current is observable. Where no accelerometer speaks it takes
the acceleration that a model of the boat expects.

Measurements carry their own time stamps, in order for each sensor. One that arrives after later ones of other sensors,
as fixes do, is inserted at its time and the later ones are used again, up to a delay of `Sensors.max_delay`. All others
are rejected and counted by reason, see `Estimator.rejected`.

Health is one of

- `starting`: no position or heading yet, or the velocity has not settled;
- `ok`;
- `dead reckoning`: no accepted measurement of a sensor for `Sensors.timeout`, covariance within limits;
- `lost`: covariance beyond limits (`Sensors.lost_*`), or no measurement at all.

A single outlier is rejected. A sensor with outliers for `Sensors.restart_after` may be right, so the filter restarts
from the present measurements, and counts it. It also restarts when the clock was set, or the state is not finite.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from anyhull.backend import Array
from anyhull.onboard.filter import (
    ANTENNA,
    BIAS,
    CURRENT,
    MAX_ACCELERATION,
    PSI,
    SIZE,
    FilterState,
    Measurement,
    Stream,
    X,
    Y,
    expect,
    initialize,
    predict,
    update,
)
from anyhull.onboard.sensors import Sensors

Health = Literal["starting", "ok", "dead reckoning", "lost"]

RESUMED_COUNT = 5
"""Consecutive measurements ahead of time after which they are taken for the end of a silence."""

CLOCK_SET_COUNT = 50
"""Consecutive measurements of wrong time after which the clock counts as set."""

LEAST_STD = 0.1
"""Least standard deviation of a measurement, in those of `Sensors`: receivers are at times too sure of themselves."""

LEAST_INTERVAL = 0.0035
"""Between two measurements of a sensor, s: what is used again after a late one must not grow with what is sent."""

MAX_PREDICTION = 60.0
"""Longest prediction past the last measurement, s."""


@dataclass(frozen=True)
class Estimate:
    """The state at one time and its covariance. All NaN before the first."""

    time: float
    """s, in the sensors' clock."""
    pose: Array
    """(x, y, psi) in the inertial frame; m, m, rad."""
    velocity: Array
    """(u, v, r) over ground in the body frame; m/s, m/s, rad/s."""
    velocity_covariance: Array
    """Of (u, v), shape (2, 2)."""
    current: Array
    """(x, y) in the inertial frame, m/s; weakly observable, see its covariance."""
    bias: float
    """Of the gyro, rad/s."""
    covariance: Array
    """Of (x, y, psi, u_r, v_r, b, c_x, c_y), shape (8, 8), with u_r and v_r through the water."""
    health: Health
    reason: str
    """Why it is not `ok`, or empty."""
    antenna: Array = field(default_factory=lambda: np.full(2, math.nan))
    """Position of the antenna in the body frame, m."""
    antenna_covariance: Array = field(default_factory=lambda: np.full((2, 2), math.nan))
    """Of that, shape (2, 2); zero if the file's is taken for exact."""

    @property
    def state(self) -> Array:
        """(x, y, psi, u, v, r), the pose and the velocity over ground."""
        return np.concatenate([self.pose, self.velocity])

    @property
    def valid(self) -> bool:
        """Whether the state is finite."""
        return bool(np.isfinite(self.state).all())


class Estimator:
    """Takes measurements as they arrive; `at` gives the state."""

    def __init__(self, sensors: Sensors | None = None) -> None:
        self.sensors = sensors or Sensors()
        self.rejected: Counter[tuple[Stream, str]] = Counter()
        """Rejected measurements of each sensor by reason: `not a number`, `duplicate`, `out of order`, `late`,
        `ahead of time`, `too frequent`, `outlier`, `not finite`."""
        self.accepted: Counter[Stream] = Counter()
        """Accepted measurements of each sensor."""
        self.restarts: Counter[str] = Counter()
        """Restarts of the filter by reason."""
        self.reset()

    def reset(self, reason: str = "") -> None:
        """Discard the state and keep the counts."""
        self._filter: FilterState | None = None
        self._expected: tuple[float, float, float] | None = None
        self._settled = False
        self._restart_reason = reason
        self._first: dict[Stream, Measurement] = {}
        self._latest: dict[Stream, float] = {}
        self._mistimed = 0
        self._past: deque[tuple[Measurement, FilterState]] = deque()

    def position(self, time: float, position: ArrayLike, std: float | None = None) -> bool:
        """Take a fix (x, y) in m, with its standard deviation where the receiver gives one; whether it was used."""
        return self._take("position", time, position, 2, self._std(self.sensors.position, std))

    def heading(self, time: float, psi: float, std: float | None = None) -> bool:
        """Take a heading in rad; whether it was used."""
        return self._take("heading", time, psi, 1, self._std(self.sensors.heading, std))

    def gyro(self, time: float, rate: float) -> bool:
        """Take a yaw rate in rad/s; whether it was used."""
        return self._take("gyro", time, rate, 1, self.sensors.gyro)

    def acceleration(self, time: float, acceleration: ArrayLike) -> bool:
        """Take an acceleration (surge, sway) in m/s², level and without gravity; whether it was used."""
        return self._take("acceleration", time, acceleration, 2, self.sensors.accelerometer)

    def expect(self, time: float, acceleration: Array, period: float) -> None:
        """Take the acceleration (surge, sway) in m/s², as an accelerometer would measure it, that a model of the boat
        expects for the `period` from a time on, s; it holds for two. It is no measurement: a boat whose sensors are
        silent is lost with it, too."""
        numbers = float(acceleration[0]), float(acceleration[1]), float(time + 2 * period)
        if all(map(math.isfinite, numbers)) and max(map(abs, numbers[:2])) <= MAX_ACCELERATION:
            self._expected = numbers
            if self._filter is not None:
                expect(self._filter, numbers, self.sensors)

    def at(self, now: float) -> Estimate:
        """The state at a time, predicted from the last measurement."""
        if self._filter is None:
            state = FilterState(now, np.full(SIZE, math.nan), np.full((SIZE, SIZE), math.nan), math.nan, {}, {})
        else:
            state = self._filter.copy()
            if state.time < now <= state.time + MAX_PREDICTION:
                predict(state, now, self.sensors)
        mean = state.mean
        health, reason = self._health(now, state)
        return Estimate(
            time=state.time,
            pose=mean[[X, Y, PSI]],
            velocity=np.append(state.over_ground, state.gyro - mean[BIAS]),
            velocity_covariance=state.over_ground_covariance,
            current=mean[CURRENT],
            bias=float(mean[BIAS]),
            covariance=state.covariance[:8, :8],
            health=health,
            reason=reason,
            antenna=mean[ANTENNA],
            antenna_covariance=state.covariance[ANTENNA, ANTENNA],
        )

    def _std(self, usual: float, std: Any) -> Any:
        """The standard deviation of a measurement that states `std`, of any type, or none."""
        if std is None:
            return usual
        return max(std, LEAST_STD * usual) if isinstance(std, float | int) and std > 0 else std

    def _take(self, stream: Stream, time: Any, value: Any, size: int, std: Any) -> bool:
        """Use a measurement or reject it, whatever its type."""
        try:
            numbers = tuple(np.asarray(value, dtype=np.float64).reshape(-1).tolist())
            m = Measurement(stream, float(time), numbers, float(std))
        except (TypeError, ValueError, OverflowError):
            return self._reject(stream, "not a number")
        if not all(map(math.isfinite, (*numbers, m.time, m.std))) or len(numbers) != size or m.std <= 0:
            return self._reject(stream, "not a number")
        if mistimed := self._mistiming(m):
            self._mistimed += mistimed not in ("duplicate", "too frequent")
            if self._mistimed >= CLOCK_SET_COUNT:
                self._restart("clock set")
            return self._reject(stream, mistimed)
        self._mistimed = 0
        self._latest[stream] = m.time
        try:
            used = self._initialize(m) if self._filter is None else self._insert(m)
            sound = self._filter is None or math.isfinite(self._filter.mean.sum() + self._filter.covariance.sum())
        except (np.linalg.LinAlgError, OverflowError):
            sound = False
        if not sound:
            self._restart("not finite")
            return self._reject(stream, "not finite")
        if not used:
            assert self._filter is not None
            self._reject(stream, "outlier")
            duration = m.time - self._filter.outlier_since.get(stream, m.time)
            if stream != "acceleration" and duration >= self.sensors.restart_after:
                self._restart(f"{stream} outliers", f" for {duration:.1f} s")
            return False
        self.accepted[stream] += 1
        return True

    def _reject(self, stream: Stream, reason: str) -> bool:
        self.rejected[stream, reason] += 1
        return False

    def _restart(self, reason: str, detail: str = "") -> None:
        self.restarts[reason] += 1
        self.reset(f"restarted, {reason}{detail}: ")

    def _mistiming(self, m: Measurement) -> str:
        """The error in the time of a measurement, or empty."""
        latest = self._latest.get(m.stream, -math.inf)
        if m.time <= latest:
            return "duplicate" if m.time == latest else "out of order"
        if m.time < latest + LEAST_INTERVAL:
            return "too frequent"
        now = self._filter.time if self._filter else max(self._latest.values(), default=m.time)
        if m.time < now - self.sensors.max_delay:
            return "late"
        resumed = self._mistimed >= RESUMED_COUNT and m.time <= now + MAX_PREDICTION
        return "" if m.time <= now + self.sensors.max_delay or resumed else "ahead of time"

    def _initialize(self, m: Measurement) -> bool:
        self._first[m.stream] = m
        position, heading = self._first.get("position"), self._first.get("heading")
        if position and heading and abs(position.time - heading.time) <= self.sensors.max_delay:
            rate = self._first["gyro"].value[0] if "gyro" in self._first else 0.0
            self._filter = initialize(position, heading, rate, self.sensors)
        return True

    def _insert(self, m: Measurement) -> bool:
        """Use a measurement at its own time, and the later ones again."""
        assert self._filter is not None
        later = []
        while self._past and self._past[-1][0].time > m.time:
            measurement, self._filter = self._past.pop()
            later.append(measurement)
        # No state is known before the first.
        used = self._update(m._replace(time=max(m.time, self._filter.time)))
        for measurement in reversed(later):
            self._update(measurement)
        if later and self._expected is not None:
            expect(self._filter, self._expected, self.sensors)
        while self._past[0][0].time < self._filter.time - self.sensors.max_delay:
            self._past.popleft()
        return used

    def _update(self, m: Measurement) -> bool:
        assert self._filter is not None
        self._past.append((m, self._filter))
        self._filter = self._filter.copy()
        used = update(self._filter, m, self.sensors)
        if not self._settled and m.stream == "position":
            self._settled = _speed_deviation(self._filter) < self.sensors.settled_velocity
        return used

    def _health(self, now: float, state: FilterState) -> tuple[Health, str]:
        """Health and its reason at a time, from the state predicted to then."""
        s = self.sensors
        if self._filter is None:
            missing = [name for name in ("position", "heading") if name not in self._first]
            waiting = f"no {' and no '.join(missing)} yet" if missing else "position and heading far apart in time"
            return "starting", self._restart_reason + waiting
        if not abs(now - self._filter.time) <= s.timeout:
            return "lost", f"no measurement for {now - self._filter.time:.1f} s"
        x, y, heading = np.sqrt(np.diag(state.covariance)[[X, Y, PSI]])
        speed = _speed_deviation(state)
        if not self._settled:
            return "starting", f"{self._restart_reason}velocity uncertain by {speed:.2g} m/s"
        for what, value, limit, unit in (
            ("position", max(x, y), s.lost_position, "m"),
            ("heading", heading, s.lost_heading, "rad"),
            ("velocity", speed, s.lost_velocity, "m/s"),
        ):
            if not value <= limit:
                return "lost", f"{what} uncertain by {value:.2g} {unit}"
        streams: tuple[Stream, ...] = ("position", "heading", "gyro")
        for stream in streams:
            age = now - state.accepted.get(stream, -math.inf)
            if age > s.timeout:
                fault = "outliers" if stream in state.outlier_since else "silent"
                return "dead reckoning", f"{stream} {fault} for {age:.1f} s"
        return "ok", ""


def _speed_deviation(state: FilterState) -> float:
    """Standard deviation of the velocity over ground along the worse axis of the boat, m/s."""
    return math.sqrt(max(np.diag(state.over_ground_covariance)))
