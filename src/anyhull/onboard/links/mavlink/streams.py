"""Bytes in and out of a TCP connection or a serial line, without ever waiting; one that is lost is made again."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct
import time
from abc import ABC, abstractmethod
from collections import Counter, deque
from typing import Any

from anyhull.errors import InputError
from anyhull.onboard.links.udp import Address

try:
    import fcntl
    import termios
except ImportError:  # where there are no serial lines of this kind either
    OPEN_ERRORS: tuple[type[Exception], ...] = (OSError, ValueError)
    QUEUED = None
else:
    OPEN_ERRORS = (OSError, ValueError, termios.error)
    QUEUED = termios.TIOCOUTQ

CHUNK = 2048
"""Bytes read at once: more than any datagram of MAVLink."""

MAX_BYTES = 16384
"""Bytes read in one call, so that a flood cannot block the loop: 400 messages."""

MAX_OUTGOING = 8192
"""Bytes that wait to be sent on a stream, beyond which a message is dropped."""

SEND_BUFFER = 8192
"""Of a TCP socket, bytes: what waits there cannot be taken back."""

STALL = 1.0
"""Time in which nothing could be sent, after which a connection is dropped, s: old commands must not arrive later."""

USER_TIMEOUT = 2000
"""Time in which TCP must have an acknowledgement, ms."""

OVERRIDE = bytes((70, 0, 0))
"""Message id of RC_CHANNELS_OVERRIDE, as in the header of MAVLink 2."""

RETRY = 1.0
"""Time between two attempts to connect, s."""

NOT_CONNECTED_WAIT = 0.05
"""Longest wait while there is no connection, s."""


class Stream(ABC):
    """A file descriptor that is opened again when it fails; what does not fit its buffer waits or is dropped."""

    def __init__(self) -> None:
        self.rejected: Counter[str] = Counter()
        self._file: Any = None
        self._next_attempt = 0.0
        self._outgoing: deque[bytes] = deque()
        self._rest = b""
        self._written, self._progress, self._progress_time = 0, 0, 0.0

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

    def lock(self, sender: Address) -> None:  # noqa: B027
        """A stream has one other end."""

    def unlock(self) -> None:  # noqa: B027
        """A stream has one other end."""

    def write(self, data: bytes) -> None:
        """Send a message whole, now or as soon as there is room."""
        if self._outgoing and _is_override(data):
            # The newest command takes the place of those that wait.
            kept = [message for message in self._outgoing if not _is_override(message)]
            self.rejected["not sent"] += len(self._outgoing) - len(kept)
            self._outgoing = deque(kept)
        if self._file is None or sum(map(len, self._outgoing)) + len(data) > MAX_OUTGOING:
            self.rejected["not sent"] += 1
            return
        self._outgoing.append(data)
        self._flush()

    def pause(self, seconds: float) -> None:
        """Sleep."""
        time.sleep(seconds)

    def close(self) -> None:
        """End the connection."""
        self._flush()
        if self._file is not None:
            with contextlib.suppress(*OPEN_ERRORS):
                self._file.close()
        self._file = None

    @abstractmethod
    def _open(self) -> Any:
        """A connection, or None if there is none yet; raises one of `OPEN_ERRORS`."""

    def _hung_up(self) -> bool:
        """Whether nothing to read means that the other end is gone."""
        return True

    def _connect(self) -> None:
        if self._file is not None or time.monotonic() < self._next_attempt:
            return
        try:
            self._file = self._open()
        except OPEN_ERRORS:
            self.rejected["no connection"] += 1
            self._next_attempt = time.monotonic() + RETRY
        self._written, self._progress, self._progress_time = 0, 0, time.monotonic()

    def _flush(self) -> None:
        if self._file is not None and not self._rest and not _queued(self._file):
            self._progress_time = time.monotonic()  # nothing waits: the time of a stall begins with what is written now
        while self._file is not None and (self._rest or self._outgoing):
            self._rest = self._rest or self._outgoing.popleft()
            try:
                count = os.write(self._file.fileno(), self._rest)
            except BlockingIOError:
                break
            except OSError:
                self._lose("connection lost")
                return
            self._rest, self._written = self._rest[count:], self._written + count
        self._check_progress()

    def _check_progress(self) -> None:
        """Drop a connection on which nothing gets through, with what waits in it."""
        if self._file is None:
            return
        queued = _queued(self._file)
        progress, idle = self._written - queued, not queued and not self._rest
        now = time.monotonic()
        if idle or progress != self._progress:
            self._progress, self._progress_time = progress, now
        elif now - self._progress_time > STALL:
            if isinstance(self._file, socket.socket):
                # A reset, else the system would go on to send what it has.
                with contextlib.suppress(OSError):
                    self._file.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._lose("connection stalled")

    def _lose(self, reason: str) -> None:
        self.rejected[reason] += 1
        with contextlib.suppress(*OPEN_ERRORS):
            self._file.close()
        self._file, self._rest = None, b""
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
            _set_options(self._pending)
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
        _set_options(accepted)
        return accepted


class SerialLine(Stream):
    """A serial line, which may be unplugged."""

    def __init__(self, device: str, baud: int) -> None:
        super().__init__()
        self._device, self._baud = device, baud
        try:
            self._file = self._open()
        except OPEN_ERRORS as error:
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


def _is_override(data: bytes) -> bool:
    return data[:1] == b"\xfd" and data[7:10] == OVERRIDE


def _set_options(connection: socket.socket) -> None:
    """Let little wait in a connection, and not for long."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, USER_TIMEOUT)


def _queued(file: Any) -> int:
    """Bytes that the system holds and the other end does not have yet; 0 where it does not tell."""
    try:
        return int(struct.unpack("i", fcntl.ioctl(file.fileno(), QUEUED, bytes(4)))[0]) if QUEUED else 0
    except OPEN_ERRORS:
        return 0
