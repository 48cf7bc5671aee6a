"""A boat's book of events: what began, and when it was over, however often it happened in between."""

from __future__ import annotations

from collections import Counter, deque

from anyhull.boat.guard import Event

QUIET = 1.0
"""How long something must not have happened to be over, s."""

KEPT = 10_000
"""Events that are kept; older ones go."""


class Notes:
    """Events in the order in which they came, with repetitions told as one."""

    def __init__(self) -> None:
        self.events: deque[Event] = deque(maxlen=KEPT)
        self.entered = 0
        """How many there have been, with those that are no longer kept."""
        self.counts: Counter[str] = Counter()
        """How often each thing happened."""
        self._going_on: dict[str, tuple[float, int]] = {}

    def add(self, *events: Event) -> None:
        """Enter events that tell of their own beginning and end, as the guard's do."""
        for event in events:
            self.counts[event.what] += event.detail != "over"
            self._enter(event)

    def note(self, now: float, what: str, detail: str, times: int = 1) -> None:
        """Enter that something happened, unless it is still going on."""
        self.counts[what] += times
        _, before = self._going_on.get(what, (now, 0))
        if not before:
            self._enter(Event(now, what, detail))
        self._going_on[what] = (now, before + times)

    def settle(self, now: float) -> None:
        """Enter what is over by now."""
        # A clock that was set back must not leave anything going on for ever.
        over = [what for what, (last, _) in self._going_on.items() if not 0 <= now - last < QUIET]
        for what in over:
            _, times = self._going_on.pop(what)
            if times > 1:
                self._enter(Event(now, what, f"over, {times} times"))

    def _enter(self, event: Event) -> None:
        self.entered += 1
        self.events.append(event)
