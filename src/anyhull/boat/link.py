"""Links between pilot and boat. A link is small: it sends messages, and gives those that have come in.

`UDP` is the first, described in docs/link.md. It listens on loopback unless told otherwise, and takes datagrams from
its peer alone. What it does not take it counts, by reason.
"""

from __future__ import annotations

import ipaddress
import select
import socket
import time
from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from anyhull.boat.messages import LARGEST, BadMessage, Message, decode, encode
from anyhull.errors import InputError
from anyhull.toml import check_types, require

PILOT, BOAT = "127.0.0.1:47001", "127.0.0.1:47000"
"""Where pilot and boat listen unless told otherwise."""

BURST = 500
"""Datagrams taken at once: some two seconds of a boat's, so that a flood cannot hold up the loop."""


class Received(NamedTuple):
    """A message and when it came in."""

    message: Message
    arrival: float
    """s, in the receiver's own clock."""


class Link(Protocol):
    """A way to the other side."""

    refused: Counter[str]
    """What was not taken, by reason."""

    def receive(self, timeout: float) -> list[Received]:
        """What has come in; waits up to `timeout` s for the first."""

    def send(self, message: Message) -> None:
        """Send a message, or lose it; never waits, and never raises for a link that is down."""

    def close(self) -> None:
        """Send and receive no more."""


class Address(NamedTuple):
    """Host and port of one end."""

    host: str
    port: int

    @staticmethod
    def read(text: str) -> Address:
        """From 'host:port', with the host as a number, since a name may lead elsewhere tomorrow."""
        host, _, port = text.rpartition(":")
        try:
            address = Address(str(ipaddress.IPv4Address(host)), int(port))
        except ValueError:
            raise InputError(f"{text!r}: must be an IPv4 address and a port, as in '{PILOT}'") from None
        if not 0 <= address.port < 65536:
            raise InputError(f"{text!r}: the port must be at most 65535")
        return address

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True)
class Ends:
    """The table `[link]` of a boat's file, as the pilot sees it; the simulated boat takes it the other way round."""

    listen: str = PILOT
    """Where the pilot listens."""
    peer: str = BOAT
    """Where the boat listens and sends from."""

    def __post_init__(self) -> None:
        check_types(self)
        for field in ("listen", "peer"):
            try:
                Address.read(getattr(self, field))
            except InputError as error:
                raise InputError(f"{field} = {error}") from None
        require(self, "peer", Address.read(self.peer).port > 0, "an address with a port other than 0")
        require(self, "peer", self.peer != self.listen, "another address than listen")


class UDP:
    """Messages as datagrams between two addresses."""

    def __init__(self, listen: str | Address, peer: str | Address) -> None:
        self.peer = Address.read(peer) if isinstance(peer, str) else peer
        wanted = Address.read(listen) if isinstance(listen, str) else listen
        self.refused: Counter[str] = Counter()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self._socket.bind(wanted)
        except OSError as error:
            self._socket.close()
            raise InputError(f"{wanted}: cannot listen there: {error.strerror}; give another address") from None
        self._socket.setblocking(False)

    @property
    def address(self) -> Address:
        """Where it listens."""
        return Address(*self._socket.getsockname())

    def receive(self, timeout: float) -> list[Received]:
        """What the peer has sent; waits up to `timeout` s for the first datagram from anyone."""
        select.select([self._socket], [], [], max(0.0, timeout))
        received = []
        for _ in range(BURST):
            try:
                datagram, sender = self._socket.recvfrom(LARGEST + 1)
            except BlockingIOError:
                break
            except OSError:  # word that an earlier datagram did not arrive, as while the other side is down
                self.refused["not delivered"] += 1
                continue
            if sender != self.peer:
                self.refused["not from the peer"] += 1
                continue
            try:
                received.append(Received(decode(datagram), time.monotonic()))
            except BadMessage as bad:
                self.refused[str(bad)] += 1
        return received

    def send(self, message: Message) -> None:
        """Send a message to the peer, or lose it."""
        try:
            self._socket.sendto(encode(message), self.peer)
        except OSError:
            self.refused["not sent"] += 1

    def close(self) -> None:
        """Leave the port to others."""
        self._socket.close()
