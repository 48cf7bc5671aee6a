"""The peer's clock and message order, from time stamps and sequence numbers alone."""

from __future__ import annotations

import math
from collections import deque
from typing import Literal

MAX_JUMP = 0.3
"""Largest deviation of a stamp from its expected time, s."""

JUMP_COUNT = 20
"""Consecutive stamps beyond `MAX_JUMP`, in agreement, after which the clock counts as set."""

JUMP_TIME = 0.5
"""Shortest time over which they must arrive, s: after a stall the link delivers many at once."""

WINDOW = 2.0
"""Time over which the message with the least delay is searched, s."""

SPAN = 1024
"""Sequence numbers remembered, to tell late messages from duplicates: three seconds of a boat's."""

SPAN_MASK = (1 << SPAN) - 1

FORMER_SESSIONS = 64
"""Sessions of a sender remembered after it restarted."""


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


class SequenceWindow:
    """Tells numbers seen from new ones in constant memory, by a bit for each of the last `SPAN`."""

    def __init__(self) -> None:
        self.last = -1
        """The largest number so far."""
        self._seen = 0

    def add(self, number: int) -> Literal["new", "late", "duplicate"]:
        """The kind of a number; one too old to tell is a duplicate."""
        ahead = number - self.last
        if ahead > 0:
            self._seen = (self._seen << ahead | 1) & SPAN_MASK if ahead < SPAN else 1
            self.last = number
            return "new"
        bit = 1 << -ahead if -ahead < SPAN else 0
        if not bit or self._seen & bit:
            return "duplicate"
        self._seen |= bit
        return "late"


class SequenceCheck:
    """Tells new messages from old by session and sequence number, and a sender that restarted."""

    def __init__(self) -> None:
        self.session: int | None = None
        self.lost = 0
        """Sequence numbers that have not arrived."""
        self._window = SequenceWindow()
        # Without a bound, a sender that changes its number with every message would fill the memory.
        self._former: deque[int] = deque(maxlen=FORMER_SESSIONS)

    def check(self, session: int, seq: int) -> Literal["new", "restarted", "late", "duplicate", "former session"]:
        """The kind of a message by its numbers; `restarted` is the first new one of a sender that restarted."""
        restarted = False
        if session != self.session:
            if session in self._former:
                return "former session"
            if self.session is not None:
                restarted = True
                self._former.append(self.session)
            self.session, self._window = session, SequenceWindow()
            self._window.last = seq - 1
        ahead = seq - self._window.last
        kind = self._window.add(seq)
        if kind == "new":
            self.lost += ahead - 1
        elif kind == "late":
            self.lost = max(0, self.lost - 1)
        return "restarted" if restarted else kind
