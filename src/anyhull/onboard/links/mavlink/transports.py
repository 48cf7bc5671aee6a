"""Bytes in and out, without ever waiting: what a transport is, and UDP; `streams` has TCP and serial lines."""

from __future__ import annotations

import select
import socket
import time
from collections import Counter
from typing import Protocol

from anyhull.errors import InputError
from anyhull.onboard.links.mavlink.config import Endpoint
from anyhull.onboard.links.mavlink.streams import CHUNK, MAX_BYTES, SerialLine, TCPClient, TCPServer
from anyhull.onboard.links.udp import RECEIVE_BUFFER, Address


class Transport(Protocol):
    """Bytes to and from the other end."""

    rejected: Counter[str]
    """Errors and strangers, by reason."""

    @property
    def address(self) -> str:
        """Its own end, as a text for people."""

    @property
    def peer(self) -> str:
        """The other end, as a text for people."""

    def wait(self, timeout: float) -> None:
        """Wait up to `timeout` s for something to read."""

    def read(self) -> list[tuple[bytes, Address | None]]:
        """What has arrived; with its sender where the other end is not known yet."""

    def lock(self, sender: Address) -> None:
        """Take `sender` for the other end from now on."""

    def unlock(self) -> None:
        """Forget the other end, which is silent."""

    def write(self, data: bytes) -> None:
        """Send one message or lose it."""

    def pause(self, seconds: float) -> None:
        """Let time pass between two messages at the end of a connection."""

    def close(self) -> None:
        """End the connection."""


class Datagrams:
    """UDP: listening at an address until someone is taken for the other end, or sending to one from the start."""

    def __init__(self, listen: Address | None, peer: Address | None) -> None:
        self.rejected: Counter[str] = Counter()
        self._fixed = self._peer = peer
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        try:
            self._socket.bind(listen or ("127.0.0.1" if peer and peer.host.startswith("127.") else "", 0))
        except OSError as error:
            self._socket.close()
            raise InputError(f"{listen}: cannot listen there: {error.strerror}; give another address") from None
        self._socket.setblocking(False)

    @property
    def address(self) -> str:
        """Host and port."""
        return f"udp {Address(*self._socket.getsockname())}"

    @property
    def peer(self) -> str:
        """Host and port, once known."""
        return f"udp {self._peer}" if self._peer else "udp, whoever is heard first"

    def wait(self, timeout: float) -> None:
        """Wait for a datagram."""
        select.select([self._socket], [], [], max(0.0, timeout))

    def read(self) -> list[tuple[bytes, Address | None]]:
        """Datagrams from the other end, or from anyone before it is known."""
        found: list[tuple[bytes, Address | None]] = []
        total = 0
        while total < MAX_BYTES:
            try:
                data, sender = self._socket.recvfrom(CHUNK)
            except BlockingIOError:
                break
            except OSError:  # an earlier datagram did not arrive, as while the peer is down
                self.rejected["not delivered"] += 1
                total += CHUNK // 8
                continue
            total += max(len(data), 32)
            if self._peer is None:
                found.append((data, Address(*sender)))
            elif sender == self._peer:
                found.append((data, None))
            else:
                self.rejected["not from the peer"] += 1
        return found

    def lock(self, sender: Address) -> None:
        """Take `sender` for the other end."""
        self._peer = sender

    def unlock(self) -> None:
        """Take anyone again, unless the other end was given."""
        self._peer = self._fixed

    def write(self, data: bytes) -> None:
        """Send a datagram, if the other end is known."""
        if self._peer is None:
            return
        try:
            self._socket.sendto(data, self._peer)
        except OSError:
            self.rejected["not sent"] += 1

    def pause(self, seconds: float) -> None:
        """Sleep."""
        time.sleep(seconds)

    def close(self) -> None:
        """Release the port."""
        self._socket.close()


def open_transport(endpoint: Endpoint) -> Transport:
    """The pilot's end of a connection to the autopilot."""
    if endpoint.kind == "serial":
        return SerialLine(endpoint.device, endpoint.baud)
    assert endpoint.address is not None
    if endpoint.kind == "tcp":
        return TCPClient(endpoint.address)
    return Datagrams(endpoint.address, None) if endpoint.kind == "udp" else Datagrams(None, endpoint.address)


def open_far_end(endpoint: Endpoint) -> Transport:
    """The autopilot's end of the same connection, for the twin."""
    if endpoint.address is None:
        raise InputError(f"serial:{endpoint.device}:{endpoint.baud}: the twin is served over udp, udpout or tcp only")
    if endpoint.kind == "tcp":
        return TCPServer(endpoint.address)
    return Datagrams(None, endpoint.address) if endpoint.kind == "udp" else Datagrams(endpoint.address, None)
