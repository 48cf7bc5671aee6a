"""A pilot's view: a table that is drawn over itself on a terminal, and lines elsewhere."""

from __future__ import annotations

import math
import sys
from types import TracebackType

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from anyhull.arithmetic import wrap
from anyhull.boat.helm import Array, Beat, Helm

EVERY = 0.25
"""Time between two drawings, in s of the boat's."""

RECENT = 6
"""Events shown."""

COLOURS = {
    "run": "green",
    "hold": "yellow",
    "ramp": "red",
    "hand over": "red",
    "ok": "green",
    "dead reckoning": "yellow",
}


class Lines:
    """Events on stderr, one a line, as they come."""

    def __init__(self, helm: Helm) -> None:
        self._helm, self._shown = helm, 0

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._print()

    def show(self, beat: Beat | None, late: float) -> None:
        """Print what is new."""
        self._print()

    def _print(self) -> None:
        notes = self._helm.notes
        for event in list(notes.events)[len(notes.events) - (notes.entered - self._shown) :]:
            print(f"{event.time:9.2f} s  {event.what}: {event.detail}".rstrip(": "), file=sys.stderr, flush=True)
        self._shown = notes.entered


class View:
    """Errors, commands, health and latency, some times a second."""

    def __init__(self, helm: Helm) -> None:
        self._helm = helm
        self._live = Live(console=Console(stderr=True), auto_refresh=False, transient=True)
        self._drawn = -math.inf
        self._late = self._effort = 0.0

    def __enter__(self) -> View:
        self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._live.stop()

    def show(self, beat: Beat | None, late: float) -> None:
        """Draw, if it is time to."""
        if beat is None:
            self._live.update(Text("nothing heard of the boat yet"), refresh=True)
            return
        # The worst since the last drawing, which a look would else miss.
        self._late, self._effort = max(self._late, late), max(self._effort, beat.effort)
        if 0 <= beat.time - self._drawn < EVERY:
            return
        self._live.update(self.render(beat), refresh=True)
        self._drawn, self._late, self._effort = beat.time, 0.0, 0.0

    def render(self, beat: Beat) -> Group:
        """The view of one period."""
        estimate, decision, wanted = beat.estimate, beat.decision, beat.reference
        table = Table.grid(padding=(0, 3))
        position = 100 * math.dist(estimate.pose[:2], wanted[:2])
        heading = math.degrees(wrap(estimate.pose[2] - wanted[2]))
        table.add_row("error", f"{position:.1f} cm", f"{heading:.1f}°")
        table.add_row(
            "pose", *(f"{v:.2f} {unit}" for v, unit in zip(_readable(estimate.pose), ("m", "m", "°"), strict=True))
        )
        speeds = zip(_readable(estimate.velocity), ("m/s", "m/s", "°/s"), strict=True)
        table.add_row("velocity", *(f"{v:.2f} {unit}" for v, unit in speeds))
        table.add_row("command", *(f"{bar(v)} {v:+.2f}" for v in decision.command))
        thrusters = "  ".join(f"{v:+.2f}" for v in beat.command.thrusters)
        health = Text(estimate.health, style=COLOURS.get(estimate.health, "red"))
        guard = Text(decision.reaction, style=COLOURS[decision.reaction])
        age = 0.0 if self._helm.status is None else beat.time - self._helm.status.time
        lines: list[RenderableType] = [
            Text.assemble((self._helm.setup.vessel.name, "bold"), f"   {beat.phase}, {beat.progress:.1f} s"),
            table,
            Text(f"thrusters  {thrusters}"),
            Text.assemble("estimator ", health, f" {estimate.reason}"),
            Text.assemble("guard     ", guard, f" {decision.reason}"),
            Text(
                f"latency   loop {1e3 * self._late:.0f} ms late, controller {1e3 * self._effort:.1f} ms, "
                f"status {1e3 * age:.0f} ms old, {sum(self._helm.heard.values())} messages"
            ),
            *(
                Text(f"{e.time:9.2f} s  {e.what} {e.detail}", style="dim")
                for e in list(self._helm.notes.events)[-RECENT:]
            ),
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
