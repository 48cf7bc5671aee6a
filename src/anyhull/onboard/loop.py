"""The loop by the wall clock: an autopilot, a link to the boat and the vessel's control period.

It receives until a command is due, steps the autopilot, sends, and records. A missed period is skipped: the guard sees
an overrun. Neither the link nor the display can end the loop, and the journal is written by a thread of its own.
However the loop ends, the last command is zero.
"""

from __future__ import annotations

import gc
import math
import os
import time
from bisect import bisect_right
from collections.abc import Callable
from pathlib import Path
from typing import Any

from anyhull.controller import Timed
from anyhull.dynamics import PERIOD
from anyhull.log import Log
from anyhull.onboard.autopilot import Autopilot
from anyhull.onboard.guard import Event
from anyhull.onboard.links import Link, Received
from anyhull.onboard.recorder import RunRecorder
from anyhull.onboard.step_record import StepRecord

ZERO_COMMANDS = 3
"""Zero commands sent at the end: a datagram may be lost."""

RAMP_MARGIN = 1.5
"""Time beyond the guard's ramp in which the thrusters must reach zero, s."""

REMINDER = 60.0
"""Time between two lines that the boat waits to be rearmed, s."""

MOST_LATE = PERIOD / 2
"""Time by which messages may delay a command, s; the rest of them is dropped."""

BUDGET = 0.3
"""Share of the period in which a controller that takes long must be done."""

LINK_PAUSE = 1e-3
"""Wait after an error of the link, s, which may fail at once each time."""

STATISTICS = 100
"""Periods between two lines of the journal with the loop's statistics."""

TRACK_STEP = 0.5
"""Distance between two points of the track whose length is measured, m: more than the noise of a position."""


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
    on_end: Callable[[], None] = lambda: None,
) -> Log:
    """Steer until the end of the reference, or until `stop` returns a reason; the log.

    `time_factor` is the speed of time, for a simulated boat with the same. `clock` is in s. `on_step` gets each
    period and its delay, s, and must not wait. `journal` is a new file for the record of the run in progress, which
    stays there; `about` is added to it and to the log. `on_end` is called after the last command, before the record is
    closed, which may take seconds.
    """
    period, events = autopilot.setup.vessel.scale.period / time_factor, autopilot.event_log
    repeat_after = autopilot.repeat_after / time_factor
    if isinstance(autopilot.controller, Timed):
        autopilot.controller.budget = BUDGET * period
    recorder, periods, reporter = RunRecorder(autopilot, journal, about), Periods(), Reporter(autopilot)
    gc.collect()
    # A collection then passes over what was there before the run, which is most of it.
    gc.freeze()
    due, deadline, at, ended = clock(), math.inf, 0.0, ""
    repeat_due = math.inf
    try:
        while not ended or (clock() < deadline and not _at_rest(autopilot)):
            while True:
                received: list[Received] = []
                try:
                    received = link.receive(min(due, repeat_due) - clock())
                except Exception as error:
                    events.record(at, "link failed", _brief(error))
                    time.sleep(LINK_PAUSE)
                latest = max(min(due, repeat_due), clock()) + MOST_LATE
                for i, (message, arrival) in enumerate(received):
                    if clock() > latest:
                        events.record(at, "messages dropped", "they take longer than a period", len(received) - i)
                        break
                    try:
                        autopilot.on_message(message, arrival * time_factor)
                    except Exception as error:  # whatever the peer sends
                        events.record(at, "message failed", _brief(error))
                if (now := clock()) >= due:
                    break
                if now >= repeat_due:
                    repeat_due = now + repeat_after
                    if (repeated := autopilot.repeat(now * time_factor)) is not None:
                        _send(link, repeated, autopilot, at)
            if periods.add(now * time_factor) % STATISTICS == 0:
                recorder.note(periods.summary())
            autopilot.on_rejected(link.rejected, now * time_factor)
            step = None
            try:
                step = autopilot.step(now * time_factor)
            except Exception as error:  # a period without a command, then the next
                events.record(at, "step failed", _brief(error))
                _send_zero(link, autopilot, now * time_factor, at)
            if step is not None:
                at = step.time
                _send(link, step.command, autopilot, at)
                reporter.add(step, now * time_factor, ended)
                recorder.add(step, now * time_factor)
            repeat_due = clock() + repeat_after
            if on_step is not None:
                try:
                    on_step(step, (now - due) * time_factor)
                except Exception as error:  # whatever happens to the console
                    events.record(at, "display failed", _brief(error))
            due = due + period if clock() < due + period else clock() + period
            refused = getattr(autopilot, "refused", "")
            reason = stop() or refused or ("arrived" if autopilot.phase == "arrived" else "")
            if reason and not ended:
                ended = reason
                autopilot.disengage(reason)
                deadline = clock() + (autopilot.setup.limits.ramp + RAMP_MARGIN) / time_factor
        complete = ended
    except BaseException:
        complete = ""  # as for a run that was killed, the next one may resume
        raise
    finally:
        for _ in range(ZERO_COMMANDS):
            _send_zero(link, autopilot, clock() * time_factor, at)
        on_end()
        gc.unfreeze()
        recorder.close(complete)
    return recorder.log({"loop": periods.summary() | {"journal_lines_dropped": recorder.dropped}})


class Periods:
    """Durations of the loop's periods: a histogram, so that its size does not grow with the run."""

    BIN = 0.5
    """ms."""
    BINS = 2000

    def __init__(self) -> None:
        self._bins = [0] * self.BINS
        self._last: float | None = None
        self._count, self._largest = 0, 0.0

    def add(self, now: float) -> int:
        """Count the period that ends at `now`, s; the number of periods so far."""
        if self._last is not None:
            duration = 1e3 * (now - self._last)
            self._largest = max(self._largest, duration)
            self._bins[min(max(int(duration / self.BIN), 0), self.BINS - 1)] += 1
            self._count += 1
        self._last = now
        return self._count

    def summary(self) -> dict[str, float]:
        """Number, median, 99th percentile and largest, ms; a quantile is the upper edge of its bin."""
        total, found = self._count, {"periods": float(self._count)}
        for name, share in (("p50_ms", 0.5), ("p99_ms", 0.99)):
            below = 0
            for i, count in enumerate(self._bins):
                below += count
                if below >= share * total:
                    found[name] = round(min((i + 1) * self.BIN, self._largest), 2)
                    break
        return found | {"max_ms": round(self._largest, 2)}


class Reporter:
    """Adds to the event log what the operator has to know: each stage of the reference, and a boat that waits."""

    def __init__(self, autopilot: Autopilot) -> None:
        self._autopilot = autopilot
        stages = getattr(autopilot.reference, "stages", ())
        self._starts, self._labels = [start for start, _ in stages], [label for _, label in stages]
        self._stage = 0
        self._began: float | None = None
        self._point: tuple[float, float] | None = None
        self._distance = 0.0
        self._reminder = -math.inf

    def add(self, step: StepRecord, now: float, ended: str) -> None:
        """Report what is new in a period at the caller's time `now`, s."""
        if step.estimate.valid:
            self._began = now if self._began is None else self._began
            x, y, _ = step.estimate.pose.tolist()
            self._point = self._point or (x, y)
            if (moved := math.dist(self._point, (x, y))) >= TRACK_STEP:
                self._distance, self._point = self._distance + moved, (x, y)
            self._report_stage(step, now)
        if step.decision.reaction not in ("failsafe", "handover") or ended:
            self._reminder = -math.inf
        elif now - self._reminder >= REMINDER:
            self._reminder = now
            how = f"set the operator's switch to auto, or kill -USR1 {os.getpid()}"
            self._autopilot.event_log.record(step.time, "waiting to be rearmed", how)

    def _report_stage(self, step: StepRecord, now: float) -> None:
        stage = bisect_right(self._starts, step.progress)
        if step.phase == "under way" and stage > self._stage and self._began is not None:
            self._stage = stage
            so_far = f"{now - self._began:.0f} s and {self._distance:.0f} m so far"
            self._autopilot.event_log.add(Event(step.time, "mission", f"{self._labels[stage - 1]}; {so_far}"))


def _send(link: Link, command: Any, autopilot: Autopilot, at: float) -> None:
    try:
        link.send(command)
    except Exception as error:  # a link that is down must not end the loop
        autopilot.event_log.record(at, "link failed", _brief(error))


def _send_zero(link: Link, autopilot: Autopilot, now: float, at: float) -> None:
    if (zero := autopilot.zero(now)) is not None:
        _send(link, zero, autopilot, at)


def _brief(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:100]


def _at_rest(autopilot: Autopilot) -> bool:
    return autopilot.guard.reaction == "handover" and not autopilot.commanding
