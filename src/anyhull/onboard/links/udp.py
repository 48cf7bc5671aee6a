"""Messages as UDP datagrams from one peer only, authenticated by the boat's key; docs/link.md describes them.

Without a key the link is limited to loopback.
"""

from __future__ import annotations

import ipaddress
import select
import socket
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from anyhull.errors import InputError
from anyhull.onboard.links.keys import load_key
from anyhull.onboard.links.link import LinkConfig, Received
from anyhull.onboard.links.session import HELLO_INTERVAL, OVERHEAD, Role, Session
from anyhull.onboard.messages import MAX_BYTES, BadMessage, Message, decode, encode
from anyhull.schema import check_types, require

PILOT, BOAT = "127.0.0.1:47001", "127.0.0.1:47000"
"""Default addresses of pilot and boat."""

MAX_BURST = 500
"""Datagrams received at once: two seconds of a boat's, so that a flood cannot block the loop."""

RECEIVE_BUFFER = 4 * 2**20
"""Of the socket, bytes: a flood must not displace the peer's datagrams while the loop computes. Linux grants at most
`net.core.rmem_max`, by default enough for 500 short datagrams, or 50 ms of 10,000 a second."""


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
class UDPConfig(LinkConfig):
    """The table `[link]` of a boat's file, as the pilot sees it; the twin swaps the two addresses."""

    kind: Literal["udp"] = "udp"
    listen: str = PILOT
    """Address of the pilot."""
    peer: str = BOAT
    """Address of the boat."""
    key: str | None = None
    """Path of the boat's key, in the file relative to its folder; None limits the link to loopback."""

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

    def __init__(
        self, listen: str | Address, peer: str | Address, key: bytes | None = None, role: Role = "pilot"
    ) -> None:
        """`key` is the boat's, see `load_key`; `role` is which of the two ends this is."""
        self.peer = Address.read(peer) if isinstance(peer, str) else peer
        wanted = Address.read(listen) if isinstance(listen, str) else listen
        self.rejected: Counter[str] = Counter()
        self._session = None if key is None else Session(key, role)
        for address in (wanted, self.peer) if key is None else ():
            if not ipaddress.IPv4Address(address.host).is_loopback:
                hint = "make a key with 'anyhull key boat.key' and give both ends [link] key = \"boat.key\""
                raise InputError(f"{address}: must be on loopback (127.0.0.0/8) without a key: {hint}")
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
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
        self._handshake()
        if self._session:
            timeout = min(timeout, HELLO_INTERVAL)  # the next hello may be due
        select.select([self._socket], [], [], max(0.0, timeout))
        received = []
        for _ in range(MAX_BURST):
            try:
                datagram, sender = self._socket.recvfrom(MAX_BYTES + OVERHEAD + 1)
            except BlockingIOError:
                break
            except OSError:  # an earlier datagram did not arrive, as while the peer is down
                self.rejected["not delivered"] += 1
                continue
            if sender != self.peer:
                self.rejected["not from the peer"] += 1
                continue
            try:
                content = datagram if self._session is None else self._session.open(datagram)
                if content is None:
                    self._handshake()
                else:
                    received.append(Received(decode(content), time.monotonic()))
            except BadMessage as bad:
                self.rejected[str(bad)] += 1
        return received

    def send(self, message: Message) -> None:
        """Send a message to the peer or lose it, as before the handshake."""
        self._handshake()
        datagram = encode(message) if self._session is None else self._session.seal(encode(message))
        if datagram is not None:
            self._send(datagram)

    def unready(self) -> str:
        """Nothing but the boat's own messages tells."""
        return ""

    def hint(self) -> str:
        """What to look at while nothing is heard from the peer."""
        if self.rejected["not authentic"]:
            return "messages were not authentic: check that both ends have the same key"
        return f"check that the boat runs and sends to {self.address}"

    def close(self) -> None:
        """Release the port."""
        self._socket.close()

    def _handshake(self) -> None:
        for hello in self._session.outgoing() if self._session else ():
            self._send(hello)

    def _send(self, datagram: bytes) -> None:
        try:
            self._socket.sendto(datagram, self.peer)
        except OSError:
            self.rejected["not sent"] += 1


def open_udp(config: UDPConfig, role: Role, listen: str | None = None, peer: str | None = None) -> UDP:
    """The link of a boat's file at the end of `role`; `listen` and `peer` replace that end's addresses."""
    own, other = (config.listen, config.peer) if role == "pilot" else (config.peer, config.listen)
    key = None if config.key is None else load_key(Path(config.key))
    return UDP(listen or own, peer or other, key, role)
