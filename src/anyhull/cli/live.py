"""The display of a pilot: a live table on a terminal, and lines elsewhere.

All output passes through a thread with a bounded queue. A console that is blocked (a pipe that nobody reads, a terminal
stopped by Ctrl-S) or gone can delay neither the loop nor its end; what it does not take is dropped and counted.
"""

from __future__ import annotations

import math
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import Full, Queue
from typing import Any, NamedTuple, TextIO, TypeGuard

import numpy as np
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from anyhull.backend import Array, wrap
from anyhull.onboard.autopilot import Autopilot
from anyhull.onboard.guard import Event
from anyhull.onboard.step_record import StepRecord
from anyhull.viz.topics import summarize

REFRESH = 0.25
"""Time between two updates, in s of the boat's time."""

RECENT_EVENTS = 6
"""Events shown."""

QUEUE = 500
"""Lines that may wait for the console."""

PATIENCE = 1.0
"""Longest wait for the console at the end, s."""

COLOURS = {"run": "green", "ok": "green", "hold": "yellow", "dead reckoning": "yellow", "failsafe": "yellow"}
"""Of reactions and health; all others are red."""


class Printer:
    """Writes to stderr from a thread of its own."""

    def __init__(self) -> None:
        self.dropped = 0
        """What the console did not take."""
        self.failed = False
        """Whether the last output failed."""
        self._stream = _stderr()
        self._queue: Queue[Callable[[], None] | None] = Queue(QUEUE)
        self._thread = threading.Thread(target=self._run, name="console", daemon=True)
        self._thread.start()

    def say(self, line: str) -> None:
        """Print a line, now or never."""
        self.do(lambda: self.write(line + "\n"))

    def do(self, output: Callable[[], None], most: int = QUEUE) -> None:
        """Call `output` in the thread, unless `most` or more calls wait already."""
        try:
            if self._queue.qsize() >= most:
                raise Full
            self._queue.put_nowait(output)
        except Full:
            self.dropped += 1

    def write(self, text: str) -> None:
        """Write to the console; only within `do`, since it waits for the console."""
        self._stream.write(text)
        self._stream.flush()

    def flush(self) -> None:
        """Nothing to do: `write` has no buffer. For consoles that write here."""

    def close(self) -> None:
        """Wait up to `PATIENCE` for the last output; a console that does not take it is closed for the process."""
        with suppress(Full):
            self._queue.put(None, timeout=PATIENCE)
        self._thread.join(PATIENCE)
        if self._thread.is_alive() or self.failed:
            _disconnect()

    def _run(self) -> None:
        while (output := self._queue.get()) is not None:
            try:
                output()
                self.failed = False
            except Exception:  # a console that is gone must not end the thread: a terminal may come back
                self.dropped += 1
                self.failed = True


class _Unbuffered:
    """A file without a lock: a thread that waits in `write` must not block those that use sys.stderr."""

    def __init__(self, number: int) -> None:
        self._number = number

    def write(self, text: str) -> None:
        data = text.encode(errors="replace")
        while data:
            data = data[os.write(self._number, data) :]

    def flush(self) -> None: ...


def _stderr() -> _Unbuffered | TextIO:
    try:
        return _Unbuffered(sys.stderr.fileno())
    except (AttributeError, OSError, ValueError):  # replaced by an object in memory
        return sys.stderr


def _disconnect() -> None:
    """Direct stderr, and stdout if it is the same console, to nowhere, so that the process can end."""
    with suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        if os.path.sameopenfile(1, 2):
            os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        os.close(nowhere)


class Lines:
    """New events, one a line."""

    def __init__(self, autopilot: Autopilot, printer: Printer) -> None:
        self._autopilot, self._printer, self._shown = autopilot, printer, 0

    def show(self, step: StepRecord | None, delay: float) -> None:
        """Print the new events."""
        event_log = self._autopilot.event_log
        if event_log.total > self._shown:
            for event in event_log.since(self._shown):
                self._printer.say(f"{event.time:9.2f} s  {event.what}: {event.detail}".rstrip(": "))
            self._shown = event_log.total

    def close(self) -> None:
        """Print the last events."""
        self.show(None, 0.0)


class Shown(NamedTuple):
    """What the view shows of a period."""

    step: StepRecord
    delay: float
    """Largest since the last update, s."""
    compute_time: float
    """Largest of the controller since the last update, s."""
    age: float
    """Of the boat's last status, s."""
    received: int
    """Messages."""
    stage: str
    """Of the reference."""
    events: list[Event]
    """The last."""


class View:
    """Errors, commands, health and latency, four times a second."""

    def __init__(self, autopilot: Autopilot, printer: Printer) -> None:
        self._autopilot, self._printer = autopilot, printer
        # Live would put its own objects in place of stdout and stderr, which wait for the console.
        out: Any = printer
        self._live = Live(
            console=Console(file=out, force_terminal=True),
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._updated = -math.inf
        self._delay = self._compute_time = 0.0

    def close(self) -> None:
        """Remove the display."""
        self._printer.do(self._live.stop)

    def show(self, step: StepRecord | None, delay: float) -> None:
        """Update the display when that is due."""
        if step is None:
            self._update(Text("no message from the boat yet"))
            return
        self._delay, self._compute_time = max(self._delay, delay), max(self._compute_time, step.compute_time)
        if 0 <= step.time - self._updated < REFRESH:
            return
        # Taken here, since the autopilot goes on while the thread draws.
        status, event_log = self._autopilot.status, self._autopilot.event_log
        stages = [label for start, label in self._autopilot.reference.stages if start <= step.progress]
        shown = Shown(
            step,
            self._delay,
            self._compute_time,
            age=0.0 if status is None else step.time - status.time,
            received=sum(self._autopilot.received.values()),
            stage=stages[-1] if stages else "",
            events=event_log.since(event_log.total - RECENT_EVENTS),
        )
        self._update(shown)
        self._updated, self._delay, self._compute_time = step.time, 0.0, 0.0

    def _update(self, shown: Shown | Text) -> None:
        def draw() -> None:
            self._live.start()
            self._live.update(shown if isinstance(shown, Text) else self.render(shown), refresh=True)

        self._printer.do(draw, most=1)

    def render(self, shown: Shown) -> Group:
        """The display of one period."""
        step = shown.step
        estimate, decision, wanted = step.estimate, step.decision, step.reference
        table = Table.grid(padding=(0, 3))
        position = 100 * math.dist(estimate.pose[:2], wanted[:2])
        heading = math.degrees(wrap(estimate.pose[2] - wanted[2]))
        table.add_row("error", f"{position:.1f} cm", f"{heading:.1f}°")
        rows = (("pose", estimate.pose, ("m", "m", "°")), ("velocity", estimate.velocity, ("m/s", "m/s", "°/s")))
        for name, values, units in rows:
            table.add_row(name, *(f"{v:.2f} {unit}" for v, unit in zip(_readable(values), units, strict=True)))
        table.add_row("command", *(f"{bar(v)} {v:+.2f}" for v in decision.command))
        thrusters = "  ".join(f"{v:+.2f}" for v in step.command.thrusters)
        health = Text(estimate.health, style=COLOURS.get(estimate.health, "red"))
        guard = Text(decision.reaction, style=COLOURS.get(decision.reaction, "red"))
        stage = f", {shown.stage}" if shown.stage else ""
        lines: list[RenderableType] = [
            Text.assemble(
                (self._autopilot.setup.vessel.name, "bold"), f"   {step.phase}, {step.progress:.1f} s{stage}"
            ),
            table,
            Text(f"thrusters  {thrusters}"),
            *([Text(f"boat      {summarize(step.dynamics)}")] if _known(step.dynamics) else []),
            Text.assemble("estimator ", health, f" {estimate.reason}"),
            Text.assemble("guard     ", guard, f" {decision.reason}"),
            Text(
                f"latency   loop {1e3 * shown.delay:.0f} ms late, controller {1e3 * shown.compute_time:.1f} ms, "
                f"status {1e3 * shown.age:.0f} ms old, {shown.received} messages"
            ),
            *(Text(f"{event.time:9.2f} s  {event.what} {event.detail}", style="dim") for event in shown.events),
        ]
        return Group(*lines)


def _known(dynamics: Array | None) -> TypeGuard[Array]:
    """Whether the controller has an estimate of the boat."""
    return dynamics is not None and bool(np.isfinite(dynamics).all())


def bar(value: float, width: int = 5) -> str:
    """A number in [-1, 1] as a bar about its middle."""
    filled = round(abs(value) * width) if math.isfinite(value) else 0
    left, right = (filled, 0) if value < 0 else (0, filled)
    return " " * (width - left) + "█" * left + "│" + "█" * right + " " * (width - right)


def _readable(values: Array) -> tuple[float, float, float]:
    """Two lengths and an angle, the angle in degrees."""
    x, y, angle = values.tolist()
    return x, y, math.degrees(angle)
