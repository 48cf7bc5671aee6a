"""A finished estimate of the state from a filter on the boat, an autopilot's or ROS's, judged as our own would be.

The state between two messages is predicted with a constant velocity. A message is rejected, and counted by its reason,
when it has a number that is not finite, is out of order, or jumps: its pose is farther from the prediction, or its
velocity from the last, than a boat can have moved, and than its standard deviations say. A filter that jumps and stays
there for `Sensors.restart_after` has been reset on the boat, and is followed from there, after `SETTLE`.

Health is `starting` before that, `lost` when no message was accepted for `Sensors.timeout` or a standard deviation is
beyond the limits of `Sensors`, and else what the filter says of itself.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Literal

import numpy as np

from anyhull.backend import Array, to_inertial, wrap
from anyhull.onboard.estimator import Estimate, Health
from anyhull.onboard.messages import Odometry
from anyhull.onboard.sensors import Sensors

JUMP, JUMP_RATE = (0.5, 0.35), (2.0, 2.0)
"""Distance, m, and angle, rad, to the prediction beyond which a message is a jump; and more for each second, by which
the boat's velocity may have changed."""

VELOCITY_JUMP, ACCELERATION = (1.0, 1.0), (5.0, 20.0)
"""Change of the velocity, m/s, and of the yaw rate, rad/s, beyond which a message is a jump too; and more for each
second: accelerations in m/s² and rad/s² that no boat has."""

GATE = 4.0
"""Standard deviations that add to these."""

SETTLE = 1.0
"""Time of consecutive messages after a start before the state is used, s."""

MAX_PREDICTION = 2.0
"""Longest prediction past the last message, s; the state is lost before."""

CLOCK_SET_COUNT = 20
"""Consecutive messages of wrong time after which the boat's clock counts as set."""


class OdometryMonitor:
    """Takes finished estimates as they arrive; `at` gives the state. In place of an `Estimator`."""

    def __init__(self, sensors: Sensors | None = None) -> None:
        self.sensors = sensors or Sensors()
        self.rejected: Counter[tuple[Literal["odometry"], str]] = Counter()
        """Rejected messages by reason: `not finite`, `out of order`, `ahead of time`, `jump`."""
        self.accepted: Counter[Literal["odometry"]] = Counter()
        """Messages accepted."""
        self.restarts: Counter[str] = Counter()
        """How often the state was taken anew, by reason."""
        self.reset()

    def reset(self, reason: str = "") -> None:
        """Discard the state and keep the counts."""
        self._last: Odometry | None = None
        self._began, self._latest = math.inf, -math.inf
        self._jumps_since: float | None = None
        self._mistimed = 0
        self._restart_reason = reason

    def odometry(self, message: Odometry) -> bool:
        """Take an estimate; whether it was used."""
        numbers = (message.time, *message.pose, *message.velocity, *(message.std or ()))
        if not all(map(math.isfinite, numbers)):
            return self._reject("not finite")
        if self._last is not None:
            passed = message.time - self._latest
            if not 0 < passed <= MAX_PREDICTION:
                self._mistimed += passed != 0
                if self._mistimed < CLOCK_SET_COUNT:
                    return self._reject("out of order" if passed <= 0 else "ahead of time")
                self._restart("clock set")
        self._mistimed, self._latest = 0, message.time
        if self._last is not None and self._jumps(message, message.time - self._last.time):
            self._reject("jump")
            if self._jumps_since is None:
                self._jumps_since = message.time
            if message.time - self._jumps_since < self.sensors.restart_after:
                return False
            self._restart("jumps", f" for {message.time - self._jumps_since:.1f} s")
        if self._last is None:
            self._began = message.time
        self._jumps_since = None
        self._last, self._latest = message, message.time
        self.accepted["odometry"] += 1
        return True

    def at(self, now: float) -> Estimate:
        """The state at a time, predicted from the last message."""
        covariance = np.full((8, 8), math.nan)
        unknown = np.full(3, math.nan)
        estimate = Estimate(
            now, unknown, unknown, np.full((2, 2), math.nan), np.zeros(2), 0.0, covariance, "starting", ""
        )
        if self._last is None:
            return replace(estimate, reason=f"{self._restart_reason}no odometry yet")
        last = self._last
        ahead = min(max(now - last.time, 0.0), MAX_PREDICTION)
        if last.std is not None:
            variance = np.square(last.std)
            np.fill_diagonal(covariance, (*variance[:5], variance[5], 0.0, 0.0))
            estimate = replace(estimate, velocity_covariance=np.diag(variance[3:5]))
        health, reason = self._health(now)
        return replace(
            estimate,
            time=last.time + ahead,
            pose=_predicted(last, ahead),
            velocity=np.array(last.velocity),
            covariance=covariance,
            health=health,
            reason=reason,
        )

    def _reject(self, reason: str) -> bool:
        self.rejected["odometry", reason] += 1
        return False

    def _restart(self, reason: str, detail: str = "") -> None:
        self.restarts[reason] += 1
        self.reset(f"restarted, {reason}{detail}: ")

    def _jumps(self, message: Odometry, passed: float) -> bool:
        """Whether the state is where the boat cannot be, `passed` s after the last one."""
        assert self._last is not None
        expected, std = _predicted(self._last, passed), message.std or (0.0,) * 6
        moved = math.dist(message.pose[:2], expected[:2])
        turned = abs(float(wrap(message.pose[2] - expected[2])))
        # Further messages of a jump do not make it smaller.
        unknown = passed if self._jumps_since is None else self._jumps_since - self._last.time
        change = math.dist(message.velocity[:2], self._last.velocity[:2])
        spin = abs(message.velocity[2] - self._last.velocity[2])
        s = self.sensors
        limits = (
            (moved, JUMP[0], JUMP_RATE[0], min(max(std[:2]), s.lost_position)),
            (turned, JUMP[1], JUMP_RATE[1], min(std[2], s.lost_heading)),
            (change, VELOCITY_JUMP[0], ACCELERATION[0], min(max(std[3:5]), s.lost_velocity)),
            (spin, VELOCITY_JUMP[1], ACCELERATION[1], min(std[5], s.lost_velocity)),
        )
        return any(value > base + rate * unknown + GATE * uncertain for value, base, rate, uncertain in limits)

    def _health(self, now: float) -> tuple[Health, str]:
        assert self._last is not None
        last, s = self._last, self.sensors
        if not abs(now - last.time) <= s.timeout:
            return "lost", f"no odometry for {now - last.time:.1f} s"
        if last.time - self._began < SETTLE:
            return "starting", f"{self._restart_reason}odometry for {last.time - self._began:.1f} s"
        std = last.std or (0.0,) * 6
        for what, value, limit, unit in (
            ("position", max(std[:2]), s.lost_position, "m"),
            ("heading", std[2], s.lost_heading, "rad"),
            ("velocity", max(std[3:5]), s.lost_velocity, "m/s"),
        ):
            if value > limit:
                return "lost", f"{what} uncertain by {value:.2g} {unit}"
        return (last.health, "") if last.health == "ok" else (last.health, "by the boat's own filter")


def _predicted(last: Odometry, ahead: float) -> Array:
    """The pose `ahead` s later at constant velocity, along the arc."""
    (x, y, psi), (u, v, r) = last.pose, last.velocity
    v_x, v_y = to_inertial(u, v, psi + r * ahead / 2)
    return np.array((x + v_x * ahead, y + v_y * ahead, wrap(psi + r * ahead)))
