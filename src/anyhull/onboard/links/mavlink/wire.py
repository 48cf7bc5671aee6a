"""Messages of MAVLink 2 on a transport: parsed, packed, and signed where there is a key.

Parser and packer are pymavlink's. Two things are stricter here. A signature is verified before its time stamp is used,
so that a forged message cannot move the time. And only messages of one vehicle's autopilot are passed on.

The time stamp of a signature (10 µs since 2015) must rise across restarts, also of a computer without a clock. So
stamps are reserved ahead in a file beside the key, and the next start begins where they end.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from anyhull.errors import InputError
from anyhull.files import atomic_write
from anyhull.onboard.links.mavlink.transports import Transport

try:
    from pymavlink.dialects.v20 import ardupilotmega as dialect
except ImportError:
    raise InputError("link.kind = 'mavlink': pymavlink is not installed: pip install 'anyhull[mavlink]'") from None

__all__ = ["Wire", "dialect"]

EPOCH = 1420070400
"""1 January 2015 in Unix time, s, where the time stamps of signatures begin."""

STAMPS = 100_000
"""Of a signature, in a second."""

RESERVED = 60 * STAMPS
"""Reserved ahead in the file: it is written once in 45 s, or where the autopilot's stamps leap."""

OLD_LOCK = 1.2
"""Time for which a sender with our key but old stamps is the other end, s: it gets one of our heartbeats, and with it
our time."""

NEW_STREAM = 60 * STAMPS
"""By how much the first stamp of a sender may be behind ours, as MAVLink's page on signing has it."""

MAX_READS = 64
"""Reads of what has waited in one call, so that it cannot block the loop: 1 MB, four minutes of messages."""

SILENCE = 3.0
"""Time without a message of the vehicle after which another sender may take its place, s."""


class Wire:
    """MAVLink messages to and from one system."""

    def __init__(
        self,
        transport: Transport,
        source: tuple[int, int],
        accept: Callable[[Any], bool],
        clock: Callable[[], float],
        rejected: Counter[str],
        key: bytes | None = None,
        stamps: Path | None = None,
    ) -> None:
        """`source` are our system and component ids; `accept` tells messages of the other end from all others.

        `rejected` counts what is not used, by reason. `stamps` is the file in which stamps of signatures are reserved.
        """
        self.transport, self.rejected = transport, rejected
        transport.rejected = rejected
        self._clock, self._accept, self._source = clock, accept, source
        self._mav = self._parser()
        self._heard = self._lent = -SILENCE
        self._old = 0
        self._stamps, self._reserved = stamps, 0
        self._writer: threading.Thread | None = None
        if key is not None:
            signing = self._mav.signing
            signing.secret_key, signing.sign_outgoing = key, True
            signing.timestamp = max(int((time.time() - EPOCH) * STAMPS), _read_stamp(stamps))
            self._write_stamp(signing.timestamp + RESERVED)

    def receive(self, timeout: float) -> list[tuple[Any, float]]:
        """Messages of the other end and when they arrived; waits up to `timeout` s for the first bytes."""
        if timeout > 0:
            self.transport.wait(timeout)
        found = []
        now = self._clock()
        if now - self._heard > SILENCE and now - self._lent > OLD_LOCK:
            self.transport.unlock()
        for data, sender in self.transport.read():
            # Bytes of a stranger must not end in the midst of the vehicle's.
            self._old = 0
            messages = self._parse(self._mav if sender is None else self._parser(), data)
            if self._old and sender is not None and now - self._heard > SILENCE:
                # It has our key, but must hear our time before it can be heard.
                self.transport.lock(sender)
                self._lent = now
            for message in messages:
                if self._wanted(message):
                    self._heard = now
                    if sender is not None:
                        self.transport.lock(sender)
                    found.append((message, now))
        return found

    def discard(self) -> bool:
        """Drop what has waited while nobody read, since nobody knows when it arrived; whether that was all."""
        self._mav.buf, self._mav.buf_index = bytearray(), 0
        return any(not self.transport.read() for _ in range(MAX_READS))

    def send(self, message: Any) -> None:
        """Send a message or lose it."""
        try:
            data = message.pack(self._mav)
        except (struct.error, TypeError, ValueError):
            self.rejected["cannot be packed"] += 1
            return
        self._mav.seq = (self._mav.seq + 1) % 256
        if self._mav.signing.sign_outgoing and self._mav.signing.timestamp > self._reserved - RESERVED // 4:
            self._reserve()
        self.transport.write(bytes(data))

    def close(self) -> None:
        """End the connection."""
        self.transport.close()

    def _parser(self) -> Any:
        mav = dialect.MAVLink(None, *self._source)
        mav.robust_parsing = True
        if hasattr(self, "_mav"):
            mav.signing = self._mav.signing
        mav.check_signature = lambda data, system, component: self._is_signed(mav.signing, data, system, component)
        return mav

    def _parse(self, mav: Any, data: bytes) -> list[Any]:
        try:
            messages = mav.parse_buffer(data) or []
        except Exception:  # whatever arrives
            messages, mav.buf, mav.buf_index = [], bytearray(), 0
            self.rejected["cannot be parsed"] += 1
        # A rest of a message would keep all bytes before it in memory.
        del mav.buf[: mav.buf_index]
        mav.buf_index = 0
        return list(messages)

    def _wanted(self, message: Any) -> bool:
        kind = message.get_type()
        if kind == "BAD_DATA":
            if "signature" not in str(message.reason):
                self.rejected["not MAVLink"] += 1
            elif self._old:
                self._old -= 1
                self.rejected["old time stamp"] += 1
            else:
                self.rejected["not signed by our key"] += 1
            return False
        if kind.startswith("UNKNOWN"):
            return False
        if not self._accept(message):
            self.rejected["not from the vehicle"] += 1
            return False
        return True

    def _is_signed(self, signing: Any, data: bytearray, system: int, component: int) -> bool:
        expected = hashlib.sha256(signing.secret_key + bytes(data[:-6])).digest()[:6]
        if not hmac.compare_digest(expected, bytes(data[-6:])):
            return False
        stamp, stream = int.from_bytes(data[-12:-6], "little"), (data[-13], system, component)
        last = signing.stream_timestamps.get(stream)
        if stamp <= last if last is not None else stamp + NEW_STREAM < signing.timestamp:
            self._old += 1
            return False
        signing.stream_timestamps[stream] = stamp
        signing.timestamp = max(signing.timestamp, stamp)
        return True

    def _reserve(self) -> None:
        """Reserve stamps ahead, so that a restart does not use them again; by a thread, as a disk may be slow."""
        if self._writer is None or not self._writer.is_alive():
            stamp = self._mav.signing.timestamp + RESERVED
            self._writer = threading.Thread(target=self._write_stamp, args=(stamp,), daemon=True)
            self._writer.start()

    def _write_stamp(self, stamp: int) -> None:
        try:
            if self._stamps is not None:
                with atomic_write(self._stamps) as temporary:
                    temporary.write_text(f"{stamp}\n", encoding="ascii")
        except (InputError, OSError):
            self.rejected["time of signatures not saved"] += 1
        # The next comes when this is nearly used up, whether it was saved or not.
        self._reserved = stamp


def _read_stamp(path: Path | None) -> int:
    """The first stamp that no earlier run has used; 0 where that is not known."""
    try:
        return 0 if path is None else min(max(int(path.read_text(encoding="ascii")[:20]), 0), 2**48 - 1)
    except (OSError, ValueError):
        return 0
