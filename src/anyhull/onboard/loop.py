"""The loop by the wall clock: an autopilot, a link to the boat and a period of 100 ms.

It receives until a command is due, steps the autopilot, sends, and records. A missed period is skipped: the guard sees
an overrun. However the loop ends, the last command is zero.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from anyhull.dynamics import PERIOD
from anyhull.log import Log
from anyhull.onboard.autopilot import Autopilot, StepRecord
from anyhull.onboard.links import Link
from anyhull.onboard.recorder import RunRecorder

ZERO_COMMANDS = 3
"""Zero commands sent at the end: a datagram may be lost."""

RAMP_MARGIN = 1.5
"""Time beyond the guard's ramp in which the thrusters must reach zero, s."""


def run_autopilot(
    autopilot: Autopilot,
    link: Link,
    *,
    time_factor: float = 1.0,
    clock: Callable[[], float] = time.monotonic,
    stop: Callable[[], str] = lambda: "",
    on_step: Callable[[StepRecord | None, float], None] | None = None,
    journal: Path | None = None,
    about: dict[str, Any] | None = None,
) -> Log:
    """Steer until the end of the reference, or until `stop` returns a reason; the log.

    `time_factor` is the speed of time, for a simulated boat with the same. `clock` is in s. `on_step` gets each
    period and its delay, s. `journal` is a new file for the record of the run in progress; `about` is added to it and
    to the log.
    """
    period, recorder = PERIOD / time_factor, RunRecorder(autopilot, journal, about)
    due, deadline = clock(), None
    try:
        while deadline is None or (clock() < deadline and not _at_rest(autopilot)):
            while True:
                for message, arrival in link.receive(due - clock()):
                    autopilot.on_message(message, arrival * time_factor)
                if (now := clock()) >= due:
                    break
            autopilot.on_rejected(link.rejected, now * time_factor)
            step = autopilot.step(now * time_factor)
            if step is not None:
                link.send(step.command)
                recorder.add(step, now * time_factor)
            if on_step is not None:
                on_step(step, (now - due) * time_factor)
            due = due + period if clock() < due + period else clock() + period
            reason = stop() or ("arrived" if autopilot.phase == "arrived" else "")
            if reason and deadline is None:
                autopilot.disengage(reason)
                deadline = clock() + (autopilot.setup.limits.ramp + RAMP_MARGIN) / time_factor
    finally:
        for _ in range(ZERO_COMMANDS):
            if (zero := autopilot.zero(clock() * time_factor)) is not None:
                link.send(zero)
        recorder.close()
    return recorder.log()


def _at_rest(autopilot: Autopilot) -> bool:
    return autopilot.guard.reaction == "handover" and not autopilot.commanding
