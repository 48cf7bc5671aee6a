"""The other side's time and order, from stamps and sequence numbers alone."""

from __future__ import annotations

import math
from typing import Literal

LEAP = 0.3
"""How far a stamp may be from where it is expected, s."""

AGREED = 20
"""Stamps in a row that all lie elsewhere before the clock counts as set."""

PERSISTED = 0.5
"""How long these must have been coming in, s: a stall of the link lets many go at once."""

SPAN = 2.0
"""Time over which the fastest message is looked for, s."""


class Clock:
    """The boat's time now: that of its stamps, carried on by one's own clock.

    A message takes time, and now longer and now shorter, so the largest stamp - arrival of the last seconds is nearest
    to the truth; it is late by what the fastest message took. That follows clocks that drift, too.
    """

    def __init__(self) -> None:
        self._offsets: list[float] = []
        self._began = 0.0
        self._strangers: list[tuple[float, float]] = []

    def hear(self, stamp: float, arrival: float) -> bool:
        """Take a stamp that arrived at one's own time `arrival`; whether the boat's clock has been set by it."""
        offset = stamp - arrival
        if not self._offsets:
            self._offsets, self._began = [offset], arrival
            return False
        if abs(offset - max(self._offsets)) > LEAP:
            if self._strangers and abs(offset - self._strangers[-1][0]) > LEAP:
                self._strangers.clear()
            self._strangers.append((offset, arrival))
            if len(self._strangers) < AGREED or arrival - self._strangers[0][1] < PERSISTED:
                return False
            self._offsets, self._began = [max(offset for offset, _ in self._strangers)], arrival
            self._strangers.clear()
            return True
        self._strangers.clear()
        if arrival - self._began > SPAN:
            # The maximum of this span and of the last one.
            self._offsets, self._began = [self._offsets[-1], offset], arrival
        self._offsets[-1] = max(self._offsets[-1], offset)
        return False

    def at(self, now: float) -> float:
        """The boat's time at one's own time `now`; NaN before anything was heard."""
        return now + max(self._offsets, default=math.nan)


class Sequence:
    """Tells new messages from old by session and sequence number."""

    def __init__(self) -> None:
        self.session: int | None = None
        self.last = -1
        self.lost = 0
        """Numbers that never came, or not yet."""
        self._seen: set[int] = set()
        self._over: set[int] = set()

    def check(self, session: int, seq: int) -> Literal["new", "restarted", "late", "duplicate", "former session"]:
        """What a message is, by its numbers; `restarted` is new too, the first of a sender that started again."""
        if session in self._over:
            return "former session"
        restarted = self.session is not None and session != self.session
        if session != self.session:
            if self.session is not None:
                self._over.add(self.session)
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
