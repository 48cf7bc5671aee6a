"""Fault injection: a twin and an autopilot in simulated time, a faulty link between them, and invariants.

Messages pass as bytes, as over UDP. Under any fault of the messages or of either side,

- every command sent is readable, in [-1, 1], and within the guard's step of the previous one or of zero;
- after a stop by the boat's watchdog the first command is within that step of zero;
- the thrusters are at zero when no command was accepted for the watchdog's timeout;
- nothing raises an error.

`Rig.violations` lists the exceptions.
"""

from __future__ import annotations

import math
import re
from collections import Counter, deque
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from anyhull.controller import Controller
from anyhull.dynamics import PERIOD
from anyhull.onboard.autopilot import Autopilot, StepRecord
from anyhull.onboard.messages import BadMessage, Command, Heading, Message, Position, decode, encode
from anyhull.onboard.setup import Setup
from anyhull.reference import Reference
from anyhull.twin.twin import TICK, InTransit, Twin, TwinConfig, with_thrusters

Kind = Literal[
    "fixes lost",
    "heading flipped",
    "nan",
    "duplicated",
    "reordered",
    "clock set",
    "boat restarted",
    "pilot frozen",
    "garbage",
    "downlink lost",
    "uplink lost",
]
KINDS: tuple[Kind, ...] = get_args(Kind)

MAX_DELAY = 0.3
"""Largest delay of reordered messages, s."""

NUMBER = re.compile(rb'("(?:x|y|psi|rate)":)[^,}]+')


@dataclass(frozen=True)
class Fault:
    """A fault of some duration."""

    kind: Kind
    start: float
    """s, since the beginning."""
    duration: float = 0.0
    """s; zero for an instantaneous fault."""
    share: float = 1.0
    """Fraction of the messages concerned."""
    size: float = 0.0
    """Of a clock's step, s."""


class Rig:
    """One boat, one autopilot, and faults in between."""

    def __init__(
        self,
        setup: Setup,
        controller: Controller,
        reference: Reference,
        faults: list[Fault],
        *,
        config: TwinConfig | None = None,
        seed: int = 0,
    ) -> None:
        self.setup = replace(setup, vessel=with_thrusters(setup.vessel))
        self.twin = Twin(self.setup.vessel, config, seed=seed, pose=reference.at(0.0)[:3].tolist())
        self.autopilot = Autopilot(self.setup, controller, reference, session=seed)
        self.violations: list[str] = []
        self.rejected: Counter[str] = Counter()
        """Datagrams that the autopilot's end rejected, by reason."""
        self.trips = 0
        """Stops by the watchdog before the last restart."""
        self.steps: deque[StepRecord] = deque(maxlen=600)
        """The last minute."""
        self.running = 0
        """Periods in which commands passed."""
        self._faults = sorted(faults, key=lambda fault: fault.start)
        self._random = np.random.default_rng([seed, 99])
        self._ticks = 0
        self._in_transit = InTransit[bytes]()
        self._last_command = np.zeros(3)
        self._accepted_at = -math.inf
        self._stopped = True

    @property
    def time(self) -> float:
        """Since the beginning, s."""
        return self._ticks * TICK

    def run(self, seconds: float) -> None:
        """Simulate for some seconds."""
        every = round(PERIOD / TICK)
        for _ in range(round(seconds / TICK)):
            frozen = self._on("pilot frozen") is not None
            if self._ticks % every == 0 and not frozen:
                self._step()
            self._strike()
            for message in self.twin.advance():
                self._transmit(message)
            self._ticks += 1
            self._garbage()
            if not frozen:
                self._deliver()
            self._check_watchdog()

    def _on(self, kind: Kind) -> Fault | None:
        """The active fault of that kind, if it concerns the present message."""
        for fault in self._faults:
            if fault.kind == kind and fault.start <= self.time < fault.start + fault.duration:
                return fault if self._random.random() < fault.share else None
        return None

    def _strike(self) -> None:
        """Apply the instantaneous faults that are due."""
        for fault in self._faults:
            if fault.start <= self.time < fault.start + TICK - 1e-9:
                if fault.kind == "boat restarted":
                    self.trips += self.twin.firmware.trips
                    self.twin.restart()
                    self._stopped, self._accepted_at = True, -math.inf
                elif fault.kind == "clock set":
                    self.twin.set_clock(fault.size)

    def _transmit(self, message: Message) -> None:
        """Send a message of the boat through the faulty downlink."""
        if self._on("downlink lost") or (isinstance(message, Position) and self._on("fixes lost")):
            return
        if isinstance(message, Heading) and self._on("heading flipped"):
            message = replace(message, psi=message.psi + math.pi)
        datagram = encode(message)
        if self._on("nan"):
            datagram = NUMBER.sub(rb"\1NaN", datagram, count=1)
        delay = self._random.uniform(0, MAX_DELAY) if self._on("reordered") else 0.0
        for _ in range(2 if self._on("duplicated") else 1):
            self._in_transit.send(self.time + delay, datagram)

    def _garbage(self) -> None:
        if self._on("garbage"):
            valid = encode(Position(1, 1, self.time, 0.0, 0.0))
            junk = (self._random.bytes(int(self._random.integers(200))), valid[:-9], b"[" * 1200, b'{"v":1,"type":[]}')
            self._in_transit.send(self.time, junk[int(self._random.integers(len(junk)))])

    def _deliver(self) -> None:
        for datagram in self._in_transit.arrived(self.time):
            try:
                message = decode(datagram)
            except BadMessage as bad:
                self.rejected[str(bad)] += 1
                continue
            self.autopilot.on_message(message, self.time)

    def _step(self) -> None:
        self.autopilot.on_rejected(self.rejected, self.time)
        step = self.autopilot.step(self.time)
        if step is None:
            return
        self.steps.append(step)
        self.running += step.decision.reaction == "run"
        wanted, limit = step.decision.command, self.setup.limits.step + 1e-9
        if not np.isfinite(wanted).all() or np.abs(wanted).max() > 1:
            self._violate(f"body command {wanted}")
        if np.abs(wanted - self._last_command).max() > limit and np.abs(wanted).max() > limit:
            self._violate(f"command moved from {self._last_command} to {wanted}")
        self._last_command = wanted
        try:
            command = decode(encode(step.command))
        except (BadMessage, ValueError) as error:
            self._violate(f"command {step.command} not sent: {error}")
            return
        assert isinstance(command, Command)
        if self._on("uplink lost"):
            return
        if self.twin.on_command(command):
            status = self.autopilot.status
            if self._stopped and status is not None and status.stopped and np.abs(wanted).max() > limit:
                self._violate(f"command {wanted} after a stop")
            self._accepted_at = self.time
        elif self.twin.firmware.rejected["outside [-1, 1]"] or self.twin.firmware.rejected["not finite"]:
            self._violate(f"command {command} rejected by the boat")

    def _check_watchdog(self) -> None:
        board = self.twin.firmware
        self._stopped = board.stopped
        if self.time - self._accepted_at > board.config.watchdog_timeout + 2 * TICK and any(board.commands):
            self._violate(f"thrusters at {board.commands} without a command for {self.time - self._accepted_at:.2f} s")

    def _violate(self, what: str) -> None:
        self.violations.append(f"{self.time:.2f} s: {what}")


def random_faults(duration: float, random: np.random.Generator, every: float = 15.0) -> list[Fault]:
    """Random faults of all kinds, one every `every` s on average; they may overlap."""
    faults, start = [], 10.0
    while (start := start + random.exponential(every)) < duration:
        kind = KINDS[int(random.integers(len(KINDS)))]
        size = float(random.choice([-1, 1]) * random.choice([0.2, 1.0, 30.0, 1e5]))
        share = float(random.choice([0.05, 0.3, 1.0])) if kind not in ("pilot frozen", "heading flipped") else 1.0
        faults.append(Fault(kind, start, float(random.choice([0.1, 0.5, 3.0, 8.0])), share, size))
    return faults
