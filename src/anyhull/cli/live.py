"""The display of a pilot: a live table on a terminal, and lines elsewhere."""

from __future__ import annotations

import math
import sys

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from anyhull.backend import Array, wrap
from anyhull.onboard.autopilot import Autopilot, StepRecord

REFRESH = 0.25
"""Time between two updates, in s of the boat's time."""

RECENT_EVENTS = 6
"""Events shown."""

COLOURS = {"run": "green", "ok": "green", "hold": "yellow", "dead reckoning": "yellow"}
"""Of reactions and health; all others are red."""


class Lines:
    """New events on stderr, one a line."""

    def __init__(self, autopilot: Autopilot) -> None:
        self._autopilot, self._shown = autopilot, 0

    def show(self, step: StepRecord | None, delay: float) -> None:
        """Print the new events."""
        self.close()

    def close(self) -> None:
        """Print the last events."""
        event_log = self._autopilot.event_log
        for event in event_log.since(self._shown):
            print(f"{event.time:9.2f} s  {event.what}: {event.detail}".rstrip(": "), file=sys.stderr, flush=True)
        self._shown = event_log.total


class View:
    """Errors, commands, health and latency, four times a second."""

    def __init__(self, autopilot: Autopilot) -> None:
        self._autopilot = autopilot
        self._live = Live(console=Console(stderr=True), auto_refresh=False, transient=True)
        self._updated = -math.inf
        self._delay = self._compute_time = 0.0

    def close(self) -> None:
        """Remove the display."""
        self._live.stop()

    def show(self, step: StepRecord | None, delay: float) -> None:
        """Update the display when that is due."""
        self._live.start()
        if step is None:
            self._live.update(Text("no message from the boat yet"), refresh=True)
            return
        # The maximum since the last update.
        self._delay, self._compute_time = max(self._delay, delay), max(self._compute_time, step.compute_time)
        if 0 <= step.time - self._updated < REFRESH:
            return
        self._live.update(self.render(step), refresh=True)
        self._updated, self._delay, self._compute_time = step.time, 0.0, 0.0

    def render(self, step: StepRecord) -> Group:
        """The display of one period."""
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
        status, event_log = self._autopilot.status, self._autopilot.event_log
        age = 0.0 if status is None else step.time - status.time
        recent = event_log.since(event_log.total - RECENT_EVENTS)
        lines: list[RenderableType] = [
            Text.assemble((self._autopilot.setup.vessel.name, "bold"), f"   {step.phase}, {step.progress:.1f} s"),
            table,
            Text(f"thrusters  {thrusters}"),
            Text.assemble("estimator ", health, f" {estimate.reason}"),
            Text.assemble("guard     ", guard, f" {decision.reason}"),
            Text(
                f"latency   loop {1e3 * self._delay:.0f} ms late, controller {1e3 * self._compute_time:.1f} ms, "
                f"status {1e3 * age:.0f} ms old, {sum(self._autopilot.received.values())} messages"
            ),
            *(Text(f"{event.time:9.2f} s  {event.what} {event.detail}", style="dim") for event in recent),
        ]
        return Group(*lines)


def bar(value: float, width: int = 5) -> str:
    """A number in [-1, 1] as a bar about its middle."""
    filled = round(abs(value) * width) if math.isfinite(value) else 0
    left, right = (filled, 0) if value < 0 else (0, filled)
    return " " * (width - left) + "█" * left + "│" + "█" * right + " " * (width - right)


def _readable(values: Array) -> tuple[float, float, float]:
    """Two lengths and an angle, the angle in degrees."""
    x, y, angle = values.tolist()
    return x, y, math.degrees(angle)
