"""The peer's clock and message order, from time stamps and sequence numbers alone."""

from __future__ import annotations

import math
from typing import Literal

MAX_JUMP = 0.3
"""Largest deviation of a stamp from its expected time, s."""

JUMP_COUNT = 20
"""Consecutive stamps beyond `MAX_JUMP`, in agreement, after which the clock counts as set."""

JUMP_TIME = 0.5
"""Shortest time over which they must arrive, s: after a stall the link delivers many at once."""

WINDOW = 2.0
"""Time over which the message with the least delay is searched, s."""


class ClockSync:
    """The boat's time, from the stamps of its messages and the receiver's own clock.

    The delay of messages varies, so the largest stamp - arrival of the last seconds is nearest to the offset. It is
    short of it by the least delay. It follows clocks that drift.
    """

    def __init__(self) -> None:
        self._offsets: list[float] = []
        self._began = 0.0
        self._outliers: list[tuple[float, float]] = []

    def update(self, stamp: float, arrival: float) -> bool:
        """Use a stamp that arrived at the receiver's time `arrival`; whether the boat's clock was found to be set."""
        offset = stamp - arrival
        if not self._offsets:
            self._offsets, self._began = [offset], arrival
            return False
        if abs(offset - max(self._offsets)) > MAX_JUMP:
            if self._outliers and abs(offset - self._outliers[-1][0]) > MAX_JUMP:
                self._outliers.clear()
            self._outliers.append((offset, arrival))
            if len(self._outliers) < JUMP_COUNT or arrival - self._outliers[0][1] < JUMP_TIME:
                return False
            self._offsets, self._began = [max(offset for offset, _ in self._outliers)], arrival
            self._outliers.clear()
            return True
        self._outliers.clear()
        if arrival - self._began > WINDOW:
            # The maximum of this window and of the last one.
            self._offsets, self._began = [self._offsets[-1], offset], arrival
        self._offsets[-1] = max(self._offsets[-1], offset)
        return False

    def at(self, now: float) -> float:
        """The boat's time at the receiver's time `now`; NaN before the first stamp."""
        return now + max(self._offsets, default=math.nan)


class SequenceCheck:
    """Tells new messages from old by session and sequence number."""

    def __init__(self) -> None:
        self.session: int | None = None
        self.last = -1
        self.lost = 0
        """Sequence numbers that have not arrived."""
        self._seen: set[int] = set()
        self._former: set[int] = set()

    def check(self, session: int, seq: int) -> Literal["new", "restarted", "late", "duplicate", "former session"]:
        """The kind of a message by its numbers; `restarted` is the first new one of a sender that restarted."""
        if session in self._former:
            return "former session"
        restarted = self.session is not None and session != self.session
        if session != self.session:
            if self.session is not None:
                self._former.add(self.session)
            self.session, self.last, self._seen = session, seq - 1, set()
        if seq <= self.last:
            if seq in self._seen or seq < self.last - 1000:
                return "duplicate"
            self._seen.add(seq)
            self.lost = max(0, self.lost - 1)
            return "late"
        self.lost += seq - self.last - 1
        self.last = seq
        self._seen.add(seq)
        if len(self._seen) > 2000:
            self._seen = {old for old in self._seen if old >= seq - 1000}
        return "restarted" if restarted else "new"
