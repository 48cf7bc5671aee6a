"""Where the boat is and how it moves, from RTK position, heading and gyro as they come in, and whether to trust it.

An accelerometer is of use, but the boat may go without.

The filter itself, and what it can say of the current, is in `anyhull.boat.filter`.

Measurements come with their own time stamps, each sensor's in order. One that arrives after later ones of other
sensors, as fixes do, is put in its place and what came after is done again, as long as it is not older than
`Sensors.memory`. Others are rejected and counted by reason; see `Estimator.rejected`.

Health is one of

- `starting`: no position or heading yet, or the velocity not yet settled;
- `ok`;
- `dead reckoning`: a sensor silent or improbable for longer than `Sensors.patience`, the state still good enough;
- `lost`: the state no longer good enough (`Sensors.lost_*`), or nothing heard at all.

A single measurement that disagrees is passed over. A sensor that disagrees for `Sensors.stubborn` on end may be right:
the filter then starts anew from what it hears, and says so. The same goes for clocks that were set.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from anyhull.boat.filter import (
    BIAS,
    CURRENT,
    PSI,
    SIZE,
    Array,
    Belief,
    Measurement,
    Sensors,
    Stream,
    X,
    Y,
    begin,
    predict,
    use,
)

Health = Literal["starting", "ok", "dead reckoning", "lost"]

SILENCE = 5
"""Measurements in a row from ahead of time that are taken for the end of a silence, and no longer for bad stamps."""

CLOCK_SET = 50
"""Measurements in a row whose time fits nothing that are taken for a clock that was set."""

FARTHEST = 60.0
"""Longest prediction past the last measurement, s."""


@dataclass(frozen=True)
class Estimate:
    """The state at one time, and how far to trust it. All NaN before there is one."""

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


class Estimator:
    """Takes measurements as they come; `at` says where the boat is."""

    def __init__(self, sensors: Sensors | None = None) -> None:
        self.sensors = sensors or Sensors()
        self.rejected: Counter[tuple[Stream, str]] = Counter()
        """How many measurements of each sensor were rejected, by reason: `not a number`, `duplicate`, `out of order`,
        `late`, `ahead of time`, `improbable`."""
        self.accepted: Counter[Stream] = Counter()
        """How many were used."""
        self.restarts: Counter[str] = Counter()
        """How often the filter started anew by itself, by reason."""
        self.reset()

    def reset(self, reason: str = "") -> None:
        """Forget the boat, but not the counts."""
        self._belief: Belief | None = None
        self._settled = False
        self._why = reason
        self._first: dict[Stream, Measurement] = {}
        self._latest: dict[Stream, float] = {}
        self._untimely = 0
        self._past: deque[tuple[Measurement, Belief]] = deque()

    def position(self, time: float, position: ArrayLike, std: float | None = None) -> bool:
        """Take a fix (x, y) in m, with its own standard deviation where the receiver gives one; whether it is used."""
        return self._take("position", time, position, 2, self.sensors.position if std is None else std)

    def heading(self, time: float, psi: float, std: float | None = None) -> bool:
        """Take a heading in rad; whether it is used."""
        return self._take("heading", time, psi, 1, self.sensors.heading if std is None else std)

    def gyro(self, time: float, rate: float) -> bool:
        """Take a yaw rate in rad/s; whether it is used."""
        return self._take("gyro", time, rate, 1, self.sensors.gyro)

    def acceleration(self, time: float, acceleration: ArrayLike) -> bool:
        """Take an acceleration (surge, sway) in m/s², level and without gravity; whether it is used."""
        return self._take("acceleration", time, acceleration, 2, self.sensors.accelerometer)

    def at(self, now: float) -> Estimate:
        """The state at a time, predicted from the last measurement."""
        if self._belief is None:
            belief = Belief(now, np.full(SIZE, math.nan), np.full((SIZE, SIZE), math.nan), math.nan, {}, {})
        else:
            belief = self._belief.copy()
            if belief.time < now <= belief.time + FARTHEST:
                predict(belief, now, self.sensors)
        mean = belief.mean
        health, reason = self._health(now, belief)
        return Estimate(
            time=belief.time,
            pose=mean[[X, Y, PSI]],
            velocity=np.append(belief.over_ground, belief.gyro - mean[BIAS]),
            velocity_covariance=belief.over_ground_covariance,
            current=mean[CURRENT],
            bias=float(mean[BIAS]),
            covariance=belief.covariance[:8, :8],
            health=health,
            reason=reason,
        )

    def _take(self, stream: Stream, time: Any, value: Any, size: int, std: Any) -> bool:
        """Use a measurement, or reject it; whatever it is made of."""
        try:
            numbers = tuple(np.asarray(value, dtype=np.float64).reshape(-1).tolist())
            m = Measurement(stream, float(time), numbers, float(std))
        except (TypeError, ValueError, OverflowError):
            return self._reject(stream, "not a number")
        if not all(map(math.isfinite, (*numbers, m.time, m.std))) or len(numbers) != size or m.std <= 0:
            return self._reject(stream, "not a number")
        if untimely := self._untimeliness(m):
            self._untimely += untimely != "duplicate"
            if self._untimely >= CLOCK_SET:
                self._restart("the clock was set")
            return self._reject(stream, untimely)
        self._untimely = 0
        self._latest[stream] = m.time
        if self._belief is None:
            self._begin(m)
        elif not self._insert(m):
            self._reject(stream, "improbable")
            disagreed = m.time - self._belief.improbable.get(stream, m.time)
            if stream != "acceleration" and disagreed >= self.sensors.stubborn:
                self._restart(f"{stream} improbable", f" for {disagreed:.1f} s")
            return False
        self.accepted[stream] += 1
        return True

    def _reject(self, stream: Stream, reason: str) -> bool:
        self.rejected[stream, reason] += 1
        return False

    def _restart(self, reason: str, detail: str = "") -> None:
        self.restarts[reason] += 1
        self.reset(f"started anew, {reason}{detail}: ")

    def _untimeliness(self, m: Measurement) -> str:
        """What is wrong with the time of a measurement, or nothing."""
        latest = self._latest.get(m.stream, -math.inf)
        if m.time <= latest:
            return "duplicate" if m.time == latest else "out of order"
        now = self._belief.time if self._belief else max(self._latest.values(), default=m.time)
        if m.time < now - self.sensors.memory:
            return "late"
        ends_silence = self._untimely >= SILENCE and m.time <= now + FARTHEST
        return "" if m.time <= now + self.sensors.memory or ends_silence else "ahead of time"

    def _begin(self, m: Measurement) -> None:
        self._first[m.stream] = m
        place, head = self._first.get("position"), self._first.get("heading")
        if place and head and abs(place.time - head.time) <= self.sensors.memory:
            rate = self._first["gyro"].value[0] if "gyro" in self._first else 0.0
            self._belief = begin(place, head, rate, self.sensors)

    def _insert(self, m: Measurement) -> bool:
        """Use a measurement at its own time, and again what came after it."""
        assert self._belief is not None
        after = []
        while self._past and self._past[-1][0].time > m.time:
            later, self._belief = self._past.pop()
            after.append(later)
        if m.time < self._belief.time:
            # From before the first belief, which knows no earlier.
            m = m._replace(time=self._belief.time)
        used = self._use(m)
        for later in reversed(after):
            self._use(later)
        while self._past[0][0].time < self._belief.time - self.sensors.memory:
            self._past.popleft()
        return used

    def _use(self, m: Measurement) -> bool:
        assert self._belief is not None
        self._past.append((m, self._belief))
        self._belief = self._belief.copy()
        used = use(self._belief, m, self.sensors)
        if not self._settled and m.stream == "position":
            self._settled = _speed_deviation(self._belief) < self.sensors.settled_velocity
        return used

    def _health(self, now: float, belief: Belief) -> tuple[Health, str]:
        """Health at a time, by the belief predicted to then."""
        s = self.sensors
        if self._belief is None:
            missing = [name for name in ("position", "heading") if name not in self._first]
            waiting = f"no {' and no '.join(missing)} yet" if missing else "position and heading far apart in time"
            return "starting", self._why + waiting
        if not abs(now - self._belief.time) <= s.patience:
            return "lost", f"nothing heard for {now - self._belief.time:.1f} s"
        x, y, heading = np.sqrt(np.diag(belief.covariance)[[X, Y, PSI]])
        speed = _speed_deviation(belief)
        if not self._settled:
            return "starting", f"{self._why}velocity known to {speed:.2g} m/s only"
        for what, value, most, unit in (
            ("position", max(x, y), s.lost_position, "m"),
            ("heading", heading, s.lost_heading, "rad"),
            ("velocity", speed, s.lost_velocity, "m/s"),
        ):
            if not value <= most:
                return "lost", f"{what} known to {value:.2g} {unit} only"
        streams: tuple[Stream, ...] = ("position", "heading", "gyro")
        for stream in streams:
            age = now - belief.accepted.get(stream, -math.inf)
            if age > s.patience:
                how = "improbable" if stream in belief.improbable else "silent"
                return "dead reckoning", f"{stream} {how} for {age:.1f} s"
        return "ok", ""


def _speed_deviation(belief: Belief) -> float:
    """Standard deviation of the velocity over ground along the worse axis of the boat, m/s."""
    return math.sqrt(max(np.diag(belief.over_ground_covariance)))
