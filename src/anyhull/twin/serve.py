"""The twin at one end of a link, in real time."""

from __future__ import annotations

import time
from collections.abc import Callable

from anyhull.onboard.links import Link
from anyhull.onboard.messages import Command
from anyhull.twin.autopilot_board import AutopilotBoard
from anyhull.twin.twin import TICK, Twin

MAX_CATCH_UP = 0.5
"""Longest time of the boat simulated at once, s; more is skipped, as if the boat had frozen."""


def serve(
    twin: Twin | AutopilotBoard,
    link: Link,
    *,
    time_factor: float = 1.0,
    clock: Callable[[], float] = time.monotonic,
    stop: Callable[[], bool] = lambda: False,
    on_tick: Callable[[], None] | None = None,
    on_skip: Callable[[float], None] | None = None,
) -> None:
    """Run the twin, `time_factor` times as fast as the clock, until `stop`.

    `on_skip` gets the time of the boat that is skipped, s, each time that the machine is too slow.
    """
    began, ticks = clock(), 0
    while not stop():
        for message, _ in link.receive(2 * TICK / time_factor):
            if isinstance(message, Command):
                twin.on_command(message)
            else:
                link.rejected["not a command"] += 1
        wanted = int((clock() - began) * time_factor / TICK)
        if (wanted - ticks) * TICK > MAX_CATCH_UP:
            skipped = (wanted - ticks) * TICK - MAX_CATCH_UP
            began += skipped / time_factor
            if on_skip:
                on_skip(skipped)
            wanted = ticks + int(MAX_CATCH_UP / TICK)
        for _ in range(wanted - ticks):
            for message in twin.advance():
                link.send(message)
        if on_tick and wanted > ticks:
            on_tick()
        ticks = max(wanted, ticks)
