"""Bytes in and out of a TCP connection or a serial line, without ever waiting; one that is lost is made again."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import time
from collections import Counter
from typing import Any

from anyhull.errors import InputError
from anyhull.onboard.links.udp import Address

CHUNK = 2048
"""Bytes read at once: more than any datagram of MAVLink."""

MAX_BYTES = 16384
"""Bytes read in one call, so that a flood cannot block the loop: 400 messages."""

MAX_OUTGOING = 8192
"""Bytes that wait to be sent on a stream, beyond which a message is dropped."""

RETRY = 1.0
"""Time between two attempts to connect, s."""

NOT_CONNECTED_WAIT = 0.05
"""Longest wait while there is no connection, s."""


class Stream:
    """A file descriptor that is opened again when it fails; what does not fit its buffer waits or is dropped."""

    def __init__(self) -> None:
        self.rejected: Counter[str] = Counter()
        self._file: Any = None
        self._next_attempt = 0.0
        self._outgoing = bytearray()

    def wait(self, timeout: float) -> None:
        """Wait for bytes; a little where there is no connection."""
        self._connect()
        if self._file is None:
            time.sleep(max(0.0, min(timeout, NOT_CONNECTED_WAIT)))
            return
        with contextlib.suppress(OSError, ValueError):
            select.select([self._file], [], [], max(0.0, timeout))

    def read(self) -> list[tuple[bytes, Address | None]]:
        """The bytes that have arrived."""
        self._connect()
        self._flush()
        found: list[tuple[bytes, Address | None]] = []
        while self._file is not None and sum(len(data) for data, _ in found) < MAX_BYTES:
            try:
                data = os.read(self._file.fileno(), CHUNK)
            except BlockingIOError:
                break
            except OSError:
                self._lose("connection lost")
                break
            if not data:
                if self._hung_up():
                    self._lose("connection lost")
                break
            found.append((data, None))
        return found

    def lock(self, sender: Address) -> None:
        """A stream has one other end."""

    def unlock(self) -> None:
        """A stream has one other end."""

    def write(self, data: bytes) -> None:
        """Send a message whole, now or as soon as there is room."""
        if self._file is None or len(self._outgoing) + len(data) > MAX_OUTGOING:
            self.rejected["not sent"] += 1
            return
        self._outgoing += data
        self._flush()

    def pause(self, seconds: float) -> None:
        """Sleep."""
        time.sleep(seconds)

    def close(self) -> None:
        """End the connection."""
        self._flush()
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
        self._file = None

    def _open(self) -> Any:
        """A connection, or None if there is none yet; raises OSError."""
        raise NotImplementedError

    def _hung_up(self) -> bool:
        """Whether nothing to read means that the other end is gone."""
        return True

    def _connect(self) -> None:
        if self._file is not None or time.monotonic() < self._next_attempt:
            return
        try:
            self._file = self._open()
        except OSError:
            self.rejected["no connection"] += 1
            self._next_attempt = time.monotonic() + RETRY

    def _flush(self) -> None:
        while self._file is not None and self._outgoing:
            try:
                del self._outgoing[: os.write(self._file.fileno(), self._outgoing)]
            except BlockingIOError:
                return
            except OSError:
                self._lose("connection lost")

    def _lose(self, reason: str) -> None:
        self.rejected[reason] += 1
        with contextlib.suppress(OSError):
            self._file.close()
        self._file = None
        self._outgoing.clear()
        self._next_attempt = time.monotonic() + RETRY


class TCPClient(Stream):
    """A TCP connection to an address."""

    def __init__(self, peer: Address) -> None:
        super().__init__()
        self._to = peer
        self._pending: socket.socket | None = None
        self._connect()

    @property
    def address(self) -> str:
        """Nothing that anyone could connect to."""
        return "tcp client"

    @property
    def peer(self) -> str:
        """Host and port."""
        return f"tcp {self._to}"

    def close(self) -> None:
        """End the connection, or the attempt."""
        super().close()
        if self._pending is not None:
            self._pending.close()

    def _open(self) -> socket.socket | None:
        if self._pending is None:
            self._pending = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            self._pending.setblocking(False)
            self._pending.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._pending.connect_ex(self._to)
        _, writable, _ = select.select([], [self._pending], [], 0)
        if not writable:
            return None
        done, self._pending = self._pending, None
        if error := done.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            done.close()
            raise OSError(error, "refused")
        return done


class TCPServer(Stream):
    """The last TCP connection that was made to an address."""

    def __init__(self, listen: Address) -> None:
        super().__init__()
        self._listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._listening.bind(listen)
        except OSError as error:
            self._listening.close()
            raise InputError(f"{listen}: cannot listen there: {error.strerror}; give another address") from None
        self._listening.listen(1)
        self._listening.setblocking(False)

    @property
    def address(self) -> str:
        """Host and port."""
        return f"tcp {Address(*self._listening.getsockname())}"

    @property
    def peer(self) -> str:
        """Anyone."""
        return "tcp, whoever connects"

    def close(self) -> None:
        """End the connection and release the port."""
        super().close()
        self._listening.close()

    def _open(self) -> socket.socket | None:
        try:
            accepted, _ = self._listening.accept()
        except BlockingIOError:
            return None
        accepted.setblocking(False)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return accepted


class SerialLine(Stream):
    """A serial line, which may be unplugged."""

    def __init__(self, device: str, baud: int) -> None:
        super().__init__()
        self._device, self._baud = device, baud
        try:
            self._file = self._open()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(
                f"serial:{device}:{baud}: cannot be opened: {reason}; check the device and its speed"
            ) from None

    @property
    def address(self) -> str:
        """The device."""
        return f"serial {self._device}"

    @property
    def peer(self) -> str:
        """The device."""
        return f"{self._device} at {self._baud} baud"

    def _open(self) -> Any:
        try:
            import serial
        except ImportError:
            raise InputError("serial lines: pyserial is not installed: pip install 'anyhull[mavlink]'") from None
        return serial.Serial(self._device, self._baud, timeout=0, write_timeout=0, exclusive=True)

    def _hung_up(self) -> bool:
        # A line without data reads as empty too.
        poll = select.poll()
        poll.register(self._file.fileno(), select.POLLIN)
        return any(events & (select.POLLHUP | select.POLLERR | select.POLLNVAL) for _, events in poll.poll(0))
