"""The twin as a boat of its own: on one end of a link, paced by the wall clock."""

from __future__ import annotations

import time
from collections.abc import Callable

from anyhull.boat.link import Link
from anyhull.boat.messages import Command
from anyhull.trial.twin import TICK, Twin

BEHIND = 0.5
"""How much of the boat's time may be caught up at once, s; more is left out, as if the boat had frozen."""


def serve(
    twin: Twin,
    link: Link,
    *,
    speed: float = 1.0,
    clock: Callable[[], float] = time.monotonic,
    stop: Callable[[], bool] = lambda: False,
    on_tick: Callable[[], None] | None = None,
) -> None:
    """Let the twin live, `speed` times as fast as the clock, until `stop`."""
    began, ticks = clock(), 0
    while not stop():
        for message, _ in link.receive(2 * TICK / speed):
            if isinstance(message, Command):
                twin.take(message)
            else:
                link.refused["not a command"] += 1
        wanted = int((clock() - began) * speed / TICK)
        if (wanted - ticks) * TICK > BEHIND:
            began += (wanted - ticks) * TICK / speed - BEHIND / speed
            wanted = ticks + int(BEHIND / TICK)
        for _ in range(wanted - ticks):
            for reading in twin.advance():
                link.send(reading)
        if on_tick and wanted > ticks:
            on_tick()
        ticks = max(wanted, ticks)
