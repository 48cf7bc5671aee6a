"""Messages as UDP datagrams, by default on loopback, from one peer only; docs/link.md describes them."""

from __future__ import annotations

import ipaddress
import select
import socket
import time
from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

from anyhull.errors import InputError
from anyhull.onboard.links.link import Received
from anyhull.onboard.messages import MAX_BYTES, BadMessage, Message, decode, encode
from anyhull.schema import check_types, require

PILOT, BOAT = "127.0.0.1:47001", "127.0.0.1:47000"
"""Default addresses of pilot and boat."""

MAX_BURST = 500
"""Datagrams received at once: two seconds of a boat's, so that a flood cannot block the loop."""


class Address(NamedTuple):
    """Host and port of one end."""

    host: str
    port: int

    @staticmethod
    def read(text: str) -> Address:
        """From 'host:port', with a numeric host, since a name may resolve to another host later."""
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
class UDPConfig:
    """The table `[link]` of a boat's file, as the pilot sees it; the twin swaps the two addresses."""

    listen: str = PILOT
    """Address of the pilot."""
    peer: str = BOAT
    """Address of the boat."""

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
        self.rejected: Counter[str] = Counter()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self._socket.bind(wanted)
        except OSError as error:
            self._socket.close()
            raise InputError(f"{wanted}: cannot listen there: {error.strerror}; give another address") from None
        self._socket.setblocking(False)

    @property
    def address(self) -> Address:
        """The address on which it listens."""
        return Address(*self._socket.getsockname())

    def receive(self, timeout: float) -> list[Received]:
        """The messages from the peer; waits up to `timeout` s for the first datagram from anyone."""
        select.select([self._socket], [], [], max(0.0, timeout))
        received = []
        for _ in range(MAX_BURST):
            try:
                datagram, sender = self._socket.recvfrom(MAX_BYTES + 1)
            except BlockingIOError:
                break
            except OSError:  # an earlier datagram did not arrive, as while the peer is down
                self.rejected["not delivered"] += 1
                continue
            if sender != self.peer:
                self.rejected["not from the peer"] += 1
                continue
            try:
                received.append(Received(decode(datagram), time.monotonic()))
            except BadMessage as bad:
                self.rejected[str(bad)] += 1
        return received

    def send(self, message: Message) -> None:
        """Send a message to the peer or lose it."""
        try:
            self._socket.sendto(encode(message), self.peer)
        except OSError:
            self.rejected["not sent"] += 1

    def close(self) -> None:
        """Release the port."""
        self._socket.close()
