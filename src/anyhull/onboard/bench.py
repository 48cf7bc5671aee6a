"""A boat on the bench: what arrives over its link, and one thruster at a time.

`Bench.listen` sends no command. `Bench.pulse` ramps one thruster, or one axis of a boat that allocates by itself, to a
level and back to zero, and says what the boat reported. Nothing else moves. It ends at once, with zero, when the
operator's switch leaves `auto` or `stop` says so.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from anyhull.backend import Array
from anyhull.dynamics import PERIOD
from anyhull.errors import RunError
from anyhull.onboard.estimator import Estimate
from anyhull.onboard.event_log import EventLog
from anyhull.onboard.links import Link
from anyhull.onboard.messages import MAX_INTEGER, Command
from anyhull.onboard.setup import Setup
from anyhull.onboard.vehicle import Vehicle

AXES = ("surge", "sway", "yaw")

RAMP = 0.5
"""Time from zero to the level of a pulse, and back, s."""

ZERO_COMMANDS = 3
"""Zero commands after a pulse: a datagram may be lost."""


@dataclass(frozen=True)
class Pulse:
    """What a boat did in a pulse."""

    ended: str
    """Why it ended early, or empty."""
    confirmed: bool
    """Whether the boat confirmed commands."""
    reported: float | None
    """Largest command in force on that output, as the boat reports it."""
    measured: float | None
    """Largest thrust that the thruster measured, as a fraction; None where it has no measurement."""


class Bench:
    """One boat and its link, by the wall clock."""

    def __init__(
        self,
        setup: Setup,
        link: Link,
        clock: Callable[[], float] = time.monotonic,
        stop: Callable[[], str] = lambda: "",
    ) -> None:
        """`stop` returns a reason to end, or empty."""
        self.setup, self.link = setup, link
        self.event_log = EventLog()
        self.vehicle = Vehicle(setup, self.event_log)
        self._clock, self._stop = clock, stop
        self._session, self._seq = random.SystemRandom().randrange(MAX_INTEGER), 0
        wrench = setup.link.command == "wrench"
        limits = setup.vessel.limits
        self.outputs: tuple[str, ...] = (
            tuple(axis for axis, limit in zip(AXES, limits, strict=True) if limit > 0)
            if wrench
            else tuple(f"thruster {i}" for i in range(len(setup.vessel.thrusters)))
        )
        """What can be pulsed, by name."""

    def listen(self, seconds: float) -> str:
        """Take messages for a time; why it ended early, or empty."""
        ends = self._clock() + seconds
        while (left := ends - self._clock()) > 0:
            if reason := self._stop():
                return reason
            self._receive(min(left, PERIOD))
        return ""

    def wait_for_pose(self, seconds: float) -> Array | None:
        """The boat's pose as soon as its state is known; None after `seconds` s, or when `stop` says so."""
        ends = self._clock() + seconds
        while (estimate := self._estimate()).health != "ok" or not estimate.valid:
            if self._clock() >= ends or self.listen(PERIOD):
                return None
        return estimate.pose

    @property
    def state(self) -> str:
        """What is known of the boat's state, in words."""
        estimate = self._estimate()
        return f"{estimate.health}, {estimate.reason}".rstrip(", ")

    def _estimate(self) -> Estimate:
        return self.vehicle.estimator.at(self.vehicle.clock.at(self._clock()))

    def pulse(self, output: int, level: float, seconds: float) -> Pulse:
        """Ramp an output to `level` in [-1, 1], hold it for a time and ramp back; all others stay at zero."""
        began = self._clock()
        due, ended, confirmed = began, "", False
        reported: list[float] = []
        measured: list[float] = []
        try:
            while not ended and (at := due - began) <= 2 * RAMP + seconds:
                share = min(at / RAMP, 1.0, max((2 * RAMP + seconds - at) / RAMP, 0.0))
                self._send(output, level * share)
                due += PERIOD
                while (left := due - self._clock()) > 0:
                    self._receive(left)
                ended = self._stop() or ("" if self.vehicle.operator == "auto" else f"switch: {self.vehicle.operator}")
                status = self.vehicle.status
                if status is None:
                    continue
                confirmed = confirmed or (0 <= status.accepted <= self._seq and not status.stopped)
                values = status.thrusters if status.wrench is None else status.wrench
                index = AXES.index(self.outputs[output]) if status.wrench is not None else output
                reported += [values[index]] if index < len(values) else []
                measured += [status.thrust[index]] if status.thrust and index < len(status.thrust) else []
        finally:
            for _ in range(ZERO_COMMANDS):
                self._send(output, 0.0)
        return Pulse(ended, confirmed, _largest(reported), _largest(measured))

    def expected(self, output: int) -> Array:
        """Body force of an output at full ahead, as fractions of the vessel's limits (surge, sway, yaw)."""
        if self.outputs[output] in AXES:
            force = np.zeros(3)
            force[AXES.index(self.outputs[output])] = 1.0
            return force
        t = self.setup.vessel.thrusters[output]
        limits = np.array(self.setup.vessel.limits)
        found: Array = t.forward * t.column(math.radians(t.angle)) / np.where(limits > 0, limits, np.inf)
        return found

    def _receive(self, timeout: float) -> None:
        for message, arrival in self.link.receive(timeout):
            self.vehicle.on_message(message, arrival)

    def _send(self, output: int, level: float) -> None:
        at = self.vehicle.clock.at(self._clock())
        if not math.isfinite(at):
            raise RunError("nothing is heard from the boat: no thruster is tested")
        thrusters = self.setup.vessel.thrusters if self.setup.link.command == "thrusters" else ()
        commands, wrench = [0.0] * len(thrusters), [0.0, 0.0, 0.0]
        if thrusters:
            commands[output] = level
        else:
            wrench[AXES.index(self.outputs[output])] = level
        angles = tuple(math.radians(t.angle) for t in thrusters)
        surge, sway, yaw = wrench
        command = Command(self._session, self._seq, at, tuple(commands), angles, (surge, sway, yaw))
        self._seq += 1
        self.link.send(command)


def _largest(values: list[float]) -> float | None:
    return max(values, key=abs) if values else None
