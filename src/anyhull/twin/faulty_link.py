"""The link between a twin and an autopilot in simulated time: authenticated datagrams, and the faults of `LinkKind`."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator

import numpy as np

from anyhull.onboard.links.session import NONCE, OVERHEAD, Role, Session
from anyhull.onboard.messages import BadMessage, Command, Message, Position, decode, encode
from anyhull.twin.fault_schedule import Schedule
from anyhull.twin.twin import InTransit

MAX_DELAY = 0.3
"""Largest delay of reordered datagrams, s."""

RECORDED = 500
"""Datagrams that an eavesdropper keeps to send them again."""


class FaultyLink:
    """Both ends of a link, and what lies between them."""

    def __init__(self, schedule: Schedule, random: np.random.Generator, clock: Callable[[], float]) -> None:
        """`clock` is the simulated time, s."""
        self._schedule, self._random, self._clock = schedule, random, clock
        self._key = random.bytes(32)
        self._ends = {role: self._session(role) for role in ("pilot", "boat")}
        self._in_transit = {"pilot": InTransit[bytes](), "boat": InTransit[bytes]()}
        """Datagrams by their destination."""
        self._recorded: deque[tuple[Role, bytes]] = deque(maxlen=RECORDED)
        self.rejected: dict[Role, Counter[str]] = {"pilot": Counter(), "boat": Counter()}
        """Datagrams that each end has rejected since it began, by reason."""
        self.rejected_before: Counter[str] = Counter()
        """Those that were rejected at either end before it began anew."""

    def restart(self, role: Role) -> None:
        """Begin anew at one end, which loses what was on its way to it."""
        self._ends[role] = self._session(role)
        self._in_transit[role] = InTransit()
        self.rejected_before += self.rejected[role]
        self.rejected[role] = Counter()

    def send(self, role: Role, content: bytes) -> None:
        """Send the content of a datagram from one end; it is lost before the handshake."""
        if (datagram := self._ends[role].seal(content)) is not None:
            self._transmit("boat" if role == "pilot" else "pilot", datagram)

    def receive(self, role: Role) -> Iterator[Message]:
        """The messages that have arrived at one end."""
        session = self._ends[role]
        for datagram in self._in_transit[role].arrived(self._clock()):
            try:
                if (content := session.open(datagram)) is None:
                    self.handshake(role)
                else:
                    yield decode(content)
            except BadMessage as bad:
                self.rejected[role][str(bad)] += 1

    def handshake(self, role: Role) -> None:
        """Send the hellos that are due at one end."""
        for hello in self._ends[role].outgoing():
            self._transmit("boat" if role == "pilot" else "pilot", hello)

    def attack(self) -> None:
        """Add forged datagrams and recorded ones, to either end."""
        if self._schedule.on("forged"):
            n, now = self._random.bytes, self._clock()
            for role, message in (
                ("pilot", Position(1, 1, now, 0.0, 0.0)),
                ("boat", Command(1, 1, now, (1.0,), (0.0,))),
            ):
                for datagram in (encode(message), n(OVERHEAD) + encode(message), n(int(self._random.integers(200)))):
                    self._in_transit[role].send(now, datagram)
        if self._recorded and self._schedule.on("replayed"):
            role, datagram = self._recorded[int(self._random.integers(len(self._recorded)))]
            self._in_transit[role].send(self._clock(), datagram)

    def _session(self, role: Role) -> Session:
        return Session(self._key, role, self._clock, lambda n: self._random.bytes(n or NONCE))

    def _transmit(self, to: Role, datagram: bytes) -> None:
        now, delay = self._clock(), 0.0
        if self._schedule.active:
            if self._schedule.on("uplink lost" if to == "boat" else "downlink lost"):
                return
            if self._schedule.on("bits flipped"):
                flipped = bytearray(datagram)
                flipped[int(self._random.integers(len(flipped)))] ^= 1 << int(self._random.integers(8))
                datagram = bytes(flipped)
            if self._schedule.on("reordered"):
                delay = self._random.uniform(0, MAX_DELAY)
        self._recorded.append((to, datagram))
        self._in_transit[to].send(now + delay, datagram)
