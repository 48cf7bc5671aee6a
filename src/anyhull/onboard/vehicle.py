"""What the boat says of itself: its time, its state, its thrusters, its condition and its operator."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from anyhull.backend import Array
from anyhull.log import SENSORS
from anyhull.onboard.allocation import Allocator, NoAllocator
from anyhull.onboard.checks import Fault
from anyhull.onboard.clock import ClockSync, SequenceCheck
from anyhull.onboard.estimator import Estimator
from anyhull.onboard.event_log import EventLog
from anyhull.onboard.messages import (
    Acceleration,
    Battery,
    Command,
    Gyro,
    Heading,
    Leak,
    Message,
    Odometry,
    Operator,
    Position,
    Status,
    Tilt,
)
from anyhull.onboard.monitors import CommandEcho, ThrusterMonitor
from anyhull.onboard.odometry import OdometryMonitor
from anyhull.onboard.setup import Setup

MANUAL_TIME = 2.0
"""Age of the boat's reports, s, up to which the operator is known to steer: his switch is sent once a second."""

REARM_TIME = 10.0
"""Time in which a rearm by the operator's switch waits for the faults to clear, s."""


class Vehicle:
    """The boat as its messages describe it."""

    def __init__(self, setup: Setup, event_log: EventLog) -> None:
        self.setup, self.event_log = setup, event_log
        self.clock = ClockSync()
        finished = setup.link.state == "odometry"
        self.estimator = OdometryMonitor(setup.sensors) if finished else Estimator(setup.sensors)
        self.echo = CommandEcho(setup.limits)
        own = setup.vessel.thrusters if setup.link.command == "thrusters" else ()
        self.thrusters = ThrusterMonitor(own, setup.limits)
        self.allocator = Allocator(own, setup.limits.period) if own else NoAllocator()
        self.stuck_force = np.zeros(3)
        """Body force of the thrusters that are stuck (N, N, N·m)."""
        self.operator = "auto"
        """The operator's switch."""
        self.rearm_until = -math.inf
        """Until when the operator's wish to rearm holds, in the caller's clock, s."""
        self.received: Counter[str] = Counter()
        """Messages accepted, by type."""
        self._heard = {"operator": -math.inf, "status": -math.inf}
        self._sequence = SequenceCheck()
        self._inputs: dict[Fault, str] = {}
        self._rejected: Counter[str] = Counter()
        self._measured: Array = np.full(len(SENSORS), math.nan)

    @property
    def status(self) -> Status | None:
        """The last status."""
        return self.echo.status

    def manual(self, now: float) -> Array | None:
        """The normalized command that the operator's thruster commands amount to, while he is known to steer."""
        status, thrusters = self.status, self.thrusters.thrusters
        if self.operator != "manual" or status is None or status.stopped:
            return None
        if now - min(self._heard["operator"], self._heard["status"]) > MANUAL_TIME:
            return None
        if status.wrench is not None:
            return np.array(status.wrench)
        if len(status.thrusters) != len(thrusters):
            return None
        force = np.zeros(3)
        for thruster, command in zip(thrusters, status.thrusters, strict=True):
            force += thruster.thrust(command) * thruster.column(math.radians(thruster.angle))
        limits = np.array(self.setup.vessel.limits)
        return np.clip(force / np.where(limits > 0, limits, np.inf), -1.0, 1.0)

    def faults(self, now: float) -> dict[Fault, str]:
        """The faults of the boat at the caller's time `now`, s."""
        found = dict(self._inputs)
        if uplink := self.echo.uplink(now):
            found["uplink"] = uplink
        if self.echo.mismatch and self.operator == "auto":
            found["mismatch"] = self.echo.mismatch
        return found

    def take_all_thrusters(self) -> None:
        """Take all thrusters for good again."""
        self.thrusters.reset()
        self._inputs.pop("thruster", None)
        self._allocate()

    def take_measurements(self) -> Array:
        """The last measurement of each sensor since the last call (`anyhull.log.SENSORS`); NaN where there is none."""
        taken, self._measured = self._measured, np.full(len(SENSORS), math.nan)
        return taken

    def on_message(self, message: Message, arrival: float) -> None:
        """Process a message that arrived at the caller's time `arrival`; no message raises an error."""
        try:
            self._on_message(message, arrival)
        except Exception as error:  # whatever the boat sends, the loop must go on
            self.event_log.record(message.time, "message failed", f"{type(error).__name__}: {error}"[:100])
            self.estimator.reset("a message failed: ")

    def _on_message(self, message: Message, arrival: float) -> None:
        kind = type(message).__name__.lower()
        order = self._sequence.check(message.session, message.seq)
        now = self.clock.at(arrival)
        if order in ("duplicate", "former session"):
            self.event_log.record(now, f"{order} message", kind)
            return
        if order == "restarted":
            # Its clock is another one, and the boat may have moved.
            self.estimator.reset("the boat restarted: ")
            self.clock = ClockSync()
        elif order == "late":
            self.event_log.record(now, "late message", kind)
        self.received[kind] += 1
        if self.clock.update(message.time, arrival):
            self.event_log.record(message.time, "clock set", f"by {message.time - now:.3g} s")
        if order == "restarted":
            self.event_log.record(message.time, "boat restarted", f"session {message.session}")
        match message:
            case Position() | Heading() | Gyro() | Acceleration() if isinstance(self.estimator, Estimator):
                self._on_measurement(message, self.estimator)
            case Odometry() if isinstance(self.estimator, OdometryMonitor):
                self.estimator.odometry(message)
            case Position() | Heading() | Gyro() | Acceleration() | Odometry():
                wanted = f"{kind}; [link] state is {self.setup.link.state!r}"
                self.event_log.record(message.time, "unexpected message", wanted)
            case Command():
                self.event_log.record(message.time, "unexpected message", kind)
            case _ if order == "late":
                pass  # what it says is out of date
            case Status():
                self._heard["status"] = arrival
                self._on_status(message)
            case Battery(charge=charge):
                self._input("battery", charge < self.setup.limits.battery, f"{100 * charge:.0f} % of its charge left")
            case Leak(water=water):
                self._input("leak", water, "water in the hull")
            case Tilt(roll=roll, pitch=pitch):
                tilt = max(abs(roll), abs(pitch))
                self._input("tilt", tilt > self.setup.limits.tilt, f"{math.degrees(tilt):.0f}°")
            case Operator(mode=mode):
                self._heard["operator"] = arrival
                if mode == "auto" and self.operator != "auto":
                    self.rearm_until = arrival + REARM_TIME
                self.operator = mode
                self._input("operator", mode != "auto", mode)

    def expect(self, at: float, acceleration: Array | None) -> None:
        """The acceleration (surge, sway) that the controller expects of the boat in the coming period, m/s²."""
        if acceleration is not None and isinstance(self.estimator, Estimator):
            self.estimator.expect(at, acceleration, self.setup.limits.period)

    def _on_measurement(self, message: Message, estimator: Estimator) -> None:
        match message:
            case Position(time=at, x=x, y=y, std=std):
                estimator.position(at, (x, y), std)
                self._measured[:4] = (at, x, y, math.nan if std is None else std)
            case Heading(time=at, psi=psi, std=std):
                estimator.heading(at, psi, std)
                self._measured[4] = psi
            case Gyro(time=at, rate=rate):
                estimator.gyro(at, rate)
                self._measured[5] = rate
            case Acceleration(time=at, x=x, y=y):
                estimator.acceleration(at, (x, y))
                self._measured[6:] = (x, y)

    def _on_status(self, status: Status) -> None:
        was_stopped = self.status is None or self.status.stopped
        self.echo.on_status(status)
        if status.stopped:
            if not was_stopped and self.operator == "auto":  # away from auto it is the operator's doing
                self.event_log.record(status.time, "watchdog", "the boat has stopped its thrusters")
            return
        for changed in self.thrusters.on_status(status) if self.operator == "auto" else []:
            words, enough = self.thrusters.ability()
            self.event_log.record(status.time, "thruster", f"{changed}; the boat can still give {words}")
            self._input("thruster", not enough, f"the boat can only give {words}")
            self._allocate()

    def _allocate(self) -> None:
        """Allocate to the thrusters as they are now."""
        if isinstance(self.allocator, Allocator):
            self.allocator = Allocator(self.thrusters.usable, self.setup.limits.period, self.allocator)
        self.stuck_force = self.thrusters.stuck_force

    def _input(self, fault: Fault, present: bool, detail: str) -> None:
        self._inputs.pop(fault, None)
        if present:
            self._inputs[fault] = detail

    def record_estimator(self, at: float) -> None:
        """Record the measurements rejected and the restarts of the estimator since the last period."""
        counts = Counter({f"{stream} {reason}": n for (stream, reason), n in self.estimator.rejected.items()})
        counts.update({f"estimator restarted, {reason}": n for reason, n in self.estimator.restarts.items()})
        for what, times in (counts - self._rejected).items():
            self.event_log.record(at, what, "", times)
        self._rejected = counts
