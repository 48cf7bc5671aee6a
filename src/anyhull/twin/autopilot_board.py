"""The twin with an autopilot's board: a navigation filter and a mixer of its own.

With `state = "odometry"` the sensors go through a filter on the boat, and the pilot gets its estimate. With
`command = "wrench"` the boat takes a body wrench and allocates it. It has the interface of `Twin`, so that it takes
its place at the end of a link.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from anyhull.backend import wrap
from anyhull.onboard.allocation import Allocator
from anyhull.onboard.estimator import Estimator
from anyhull.onboard.links import LinkConfig
from anyhull.onboard.messages import Acceleration, Command, Gyro, Heading, Message, Odometry, Position, Status
from anyhull.onboard.sensors import Sensors
from anyhull.twin.twin import TICK, Twin

ODOMETRY_PERIOD = 0.02
"""Time between two estimates, s: 50 Hz. An autopilot's filter runs at the rate of its gyro; how often it is sent is its
link's affair."""


class AutopilotBoard:
    """A twin behind its own filter and mixer, as the boat's `[link]` says."""

    def __init__(self, twin: Twin, link: LinkConfig, sensors: Sensors | None = None) -> None:
        """`sensors` are the settings of the filter."""
        self.twin, self.link = twin, link
        self._period = TICK if link.kind == "mavlink" else ODOMETRY_PERIOD
        self.estimator = Estimator(sensors)
        self._allocator = Allocator(twin.vessel.thrusters)
        self._wrench = (0.0, 0.0, 0.0)
        self._next = 0.0
        self._session, self._seq = -1, 0

    @property
    def time(self) -> float:
        """s, the boat's clock."""
        return self.twin.time

    def on_command(self, command: Command) -> bool:
        """Pass a command to the twin's board, allocated if it is a wrench; whether accepted."""
        if self.link.command == "wrench":
            allocation = self._allocator.allocate(np.array(command.wrench) * self.twin.vessel.limits)
            thrusters, angles = (tuple(values.tolist()) for values in (allocation.commands, allocation.angles))
            command = replace(command, thrusters=thrusters, angles=angles)
        accepted = self.twin.on_command(command)
        if accepted:
            self._wrench = command.wrench
        return accepted

    def advance(self) -> list[Message]:
        """Advance by one tick; the messages that arrive at the peer within it."""
        sent: list[Message] = []
        for message in self.twin.advance():
            if message.session != self._session:  # the board was powered on
                # Out of step with the control period, as two computers are.
                self._session, self._seq, self._next = message.session, 0, message.time + self._period / 2
                self.estimator.reset()
            if self.link.state == "odometry" and isinstance(message, Position | Heading | Gyro | Acceleration):
                self._filter(message)
            elif isinstance(message, Status) and self.link.command == "wrench":
                sent.append(replace(message, thrusters=(), thrust=None, wrench=self._in_force()))
            else:
                sent.append(message)
        now = self.twin.time
        if self.link.state == "odometry" and abs(now - self._next) > 1.0:  # the clock was set
            self.estimator.reset()
            self._next = now
        if self.link.state == "odometry" and now >= self._next - 1e-9:
            self._next += self._period
            if (odometry := self._odometry(now)) is not None:
                sent.append(odometry)
        if self.link.state == "sensors":
            return sent
        numbered = [replace(message, seq=self._seq + i) for i, message in enumerate(sent)]
        self._seq += len(numbered)
        return numbered

    def _filter(self, message: Message) -> None:
        match message:
            case Position(time=at, x=x, y=y, std=std):
                self.estimator.position(at, (x, y), std)
            case Heading(time=at, psi=psi, std=std):
                self.estimator.heading(at, psi, std)
            case Gyro(time=at, rate=rate):
                self.estimator.gyro(at, rate)
            case Acceleration(time=at, x=x, y=y):
                self.estimator.acceleration(at, (x, y))

    def _odometry(self, now: float) -> Odometry | None:
        estimate = self.estimator.at(now)
        if not estimate.valid:
            return None
        x, y, psi = estimate.pose.tolist()
        u, v, r = estimate.velocity.tolist()
        variances = (
            *np.diag(estimate.covariance)[:3],
            *np.diag(estimate.velocity_covariance),
            estimate.covariance[5, 5],
        )
        std = tuple(math.sqrt(max(variance, 0.0)) for variance in variances)
        health = estimate.health if estimate.health in ("ok", "dead reckoning") else "lost"
        pose, velocity = (x, y, float(wrap(psi))), (u, v, r)
        return Odometry(self._session, 0, estimate.time, pose, velocity, std, health)  # type: ignore[arg-type]

    def _in_force(self) -> tuple[float, float, float]:
        """The wrench in force, by the operator's thruster commands while he steers."""
        if self.twin.operator == "auto":
            return (0.0, 0.0, 0.0) if self.twin.firmware.stopped else self._wrench
        force = np.zeros(3)
        for thruster, command in zip(self.twin.vessel.thrusters, self.twin.commands, strict=True):
            force += thruster.thrust(command) * thruster.column(math.radians(thruster.angle))
        limits = np.array(self.twin.vessel.limits)
        surge, sway, yaw = np.clip(force / np.where(limits > 0, limits, np.inf), -1.0, 1.0).tolist()
        return surge, sway, yaw
