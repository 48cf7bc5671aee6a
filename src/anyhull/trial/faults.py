"""Faults on purpose: a twin and a helm in simulated time, a bad link between them, and what must hold all the same.

Messages pass as bytes, as they would over UDP. Whatever happens to them, and to either side,

- every command sent is one that the boat can read, in [-1, 1], no further than the guard's step from the last or zero;
- after a stop by the boat's watchdog the first command is no further than that from zero;
- the thrusters stand at zero when no command was taken for as long as the watchdog waits;
- nothing raises an error.

What does not hold is in `Rig.violations`.
"""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from anyhull.boat.helm import Beat, Helm
from anyhull.boat.messages import BadMessage, Command, Heading, Message, Position, decode, encode
from anyhull.boat.setup import Setup
from anyhull.controller import Controller
from anyhull.dynamics import PERIOD
from anyhull.reference import Reference
from anyhull.trial.twin import TICK, Nature, Twin, fitted

Kind = Literal[
    "fixes lost",
    "heading flipped",
    "nan",
    "duplicated",
    "shuffled",
    "clock set",
    "boat restarted",
    "pilot frozen",
    "garbage",
    "downlink lost",
    "uplink lost",
]
KINDS: tuple[Kind, ...] = get_args(Kind)

LATEST = 0.3
"""How long shuffled messages are held up at most, s."""

NUMBER = re.compile(rb'("(?:x|y|psi|rate)":)[^,}]+')


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong for a while."""

    kind: Kind
    start: float
    """s, since the beginning."""
    duration: float = 0.0
    """s; what happens once has none."""
    share: float = 1.0
    """Of the messages that it concerns."""
    size: float = 0.0
    """Of a clock's step, s."""


class Rig:
    """One boat, one pilot, and faults in between."""

    def __init__(
        self,
        setup: Setup,
        controller: Controller,
        reference: Reference,
        faults: list[Fault],
        *,
        nature: Nature | None = None,
        seed: int = 0,
    ) -> None:
        self.setup = replace(setup, vessel=fitted(setup.vessel))
        self.twin = Twin(self.setup.vessel, nature, seed=seed, pose=reference.at(0.0)[:3].tolist())
        self.helm = Helm(self.setup, controller, reference, session=seed)
        self.violations: list[str] = []
        self.refused: Counter[str] = Counter()
        """Datagrams that the pilot's end could not read."""
        self.trips = 0
        """How often the watchdog stopped the boat, over all restarts."""
        self.beats: list[Beat] = []
        """The last periods, a minute of them."""
        self.ran = 0
        """Periods in which commands passed."""
        self._faults = sorted(faults, key=lambda fault: fault.start)
        self._random = np.random.default_rng([seed, 99])
        self._ticks = 0
        self._held: list[tuple[float, int, bytes]] = []
        self._sent = 0
        self._last = np.zeros(3)
        self._taken = -math.inf
        self._stopped = True

    @property
    def time(self) -> float:
        """Since the beginning, s."""
        return self._ticks * TICK

    def run(self, seconds: float) -> None:
        """Let time pass."""
        every = round(PERIOD / TICK)
        for _ in range(round(seconds / TICK)):
            frozen = self._on("pilot frozen") is not None
            if self._ticks % every == 0 and not frozen:
                self._step()
            self._once()
            for message in self.twin.advance():
                self._post(message)
            self._ticks += 1
            self._garbage()
            if not frozen:
                self._deliver()
            self._watch()

    def _on(self, kind: Kind) -> Fault | None:
        """The fault of that kind that is going on and strikes now, if any."""
        for fault in self._faults:
            if fault.kind == kind and fault.start <= self.time < fault.start + fault.duration:
                return fault if self._random.random() < fault.share else None
        return None

    def _once(self) -> None:
        for fault in self._faults:
            if fault.start <= self.time < fault.start + TICK - 1e-9:
                if fault.kind == "boat restarted":
                    self.trips += self.twin.firmware.trips
                    self.twin.restart()
                    self._stopped, self._taken = True, -math.inf
                elif fault.kind == "clock set":
                    self.twin.set_clock(fault.size)

    def _post(self, message: Message) -> None:
        """Send a message of the boat's on its way, or what becomes of it."""
        if self._on("downlink lost") or (isinstance(message, Position) and self._on("fixes lost")):
            return
        if isinstance(message, Heading) and self._on("heading flipped"):
            message = replace(message, psi=message.psi + math.pi)
        datagram = encode(message)
        if self._on("nan"):
            datagram = NUMBER.sub(rb"\1NaN", datagram, count=1)
        late = self._random.uniform(0, LATEST) if self._on("shuffled") else 0.0
        for _ in range(2 if self._on("duplicated") else 1):
            self._send(self.time + late, datagram)

    def _garbage(self) -> None:
        if self._on("garbage"):
            valid = encode(Position(1, 1, self.time, 0.0, 0.0))
            junk = (self._random.bytes(int(self._random.integers(200))), valid[:-9], b"[" * 1200, b'{"v":1,"type":[]}')
            datagram = junk[int(self._random.integers(len(junk)))]
            self._send(self.time, datagram)

    def _send(self, arrives: float, datagram: bytes) -> None:
        self._sent += 1
        heapq.heappush(self._held, (arrives, self._sent, datagram))

    def _deliver(self) -> None:
        while self._held and self._held[0][0] <= self.time:
            datagram = heapq.heappop(self._held)[2]
            try:
                message = decode(datagram)
            except BadMessage as bad:
                self.refused[str(bad)] += 1
                continue
            self.helm.hear(message, self.time)

    def _step(self) -> None:
        self.helm.refuse(self.refused, self.time)
        beat = self.helm.step(self.time)
        if beat is None:
            return
        self.beats = [*self.beats[-600:], beat]
        self.ran += beat.decision.reaction == "run"
        wanted, limit = beat.decision.command, self.setup.limits.step + 1e-9
        if not np.isfinite(wanted).all() or np.abs(wanted).max() > 1:
            self._violate(f"body command {wanted}")
        if np.abs(wanted - self._last).max() > limit and np.abs(wanted).max() > limit:
            self._violate(f"command moved from {self._last} to {wanted}")
        self._last = wanted
        try:
            command = decode(encode(beat.command))
        except (BadMessage, ValueError) as error:
            self._violate(f"command {beat.command} not sent: {error}")
            return
        assert isinstance(command, Command)
        if self._on("uplink lost"):
            return
        if self.twin.take(command):
            status = self.helm.status
            if self._stopped and status is not None and status.stopped and np.abs(wanted).max() > limit:
                self._violate(f"command {wanted} after a stop")
            self._taken = self.time
        elif self.twin.firmware.rejected["outside [-1, 1]"] or self.twin.firmware.rejected["not finite"]:
            self._violate(f"command {command} refused by the boat")

    def _watch(self) -> None:
        board = self.twin.firmware
        self._stopped = board.stopped
        if self.time - self._taken > board.board.patience + 2 * TICK and any(board.commands):
            self._violate(f"thrusters at {board.commands} without a command for {self.time - self._taken:.2f} s")

    def _violate(self, what: str) -> None:
        self.violations.append(f"{self.time:.2f} s: {what}")


def random_faults(duration: float, random: np.random.Generator, every: float = 15.0) -> list[Fault]:
    """Faults of all kinds, one after the other or at the same time, on average `every` s."""
    faults, start = [], 10.0
    while (start := start + random.exponential(every)) < duration:
        kind = KINDS[int(random.integers(len(KINDS)))]
        size = float(random.choice([-1, 1]) * random.choice([0.2, 1.0, 30.0, 1e5]))
        share = float(random.choice([0.05, 0.3, 1.0])) if kind not in ("pilot frozen", "heading flipped") else 1.0
        lasts = float(random.choice([0.1, 0.5, 3.0, 8.0]))
        faults.append(Fault(kind, start, lasts, share, size))
    return faults
