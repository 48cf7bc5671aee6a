"""The event log: when each event began and when it cleared, with repetitions merged."""

from __future__ import annotations

from collections import Counter, deque

from anyhull.onboard.guard import Event

CLEAR_TIME = 1.0
"""Time without a repetition after which an event has cleared, s."""

CAPACITY = 10_000
"""Largest number of events kept; the oldest are dropped."""


class EventLog:
    """Events in order of time; a repeated event has one entry for its beginning and one for its end."""

    def __init__(self) -> None:
        self.events: deque[Event] = deque(maxlen=CAPACITY)
        self.total = 0
        """Number of events so far, with those dropped."""
        self.counts: Counter[str] = Counter()
        """Occurrences of each event."""
        self._active: dict[str, tuple[float, int]] = {}

    def add(self, *events: Event) -> None:
        """Append events that state their own beginning and end, as the guard's do."""
        for event in events:
            self.counts[event.what] += event.detail != "cleared"
            self._append(event)

    def record(self, now: float, what: str, detail: str, times: int = 1) -> None:
        """Count an occurrence; append an event unless one of that name is active."""
        self.counts[what] += times
        _, before = self._active.get(what, (now, 0))
        if not before:
            self._append(Event(now, what, detail))
        self._active[what] = (now, before + times)

    def clear_inactive(self, now: float) -> None:
        """Append the end of each event that has not been repeated for `CLEAR_TIME`."""
        # A clock that was set back must not leave an event active for ever.
        cleared = [what for what, (last, _) in self._active.items() if not 0 <= now - last < CLEAR_TIME]
        for what in cleared:
            _, times = self._active.pop(what)
            if times > 1:
                self._append(Event(now, what, f"cleared, {times} times"))

    def since(self, total: int) -> list[Event]:
        """The events appended after `total` of them, as far as they are kept."""
        new = min(self.total - total, len(self.events))
        return list(self.events)[len(self.events) - new :]

    def _append(self, event: Event) -> None:
        self.total += 1
        self.events.append(event)
