"""The live view of the commands: rows of a run to Foxglove."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from anyhull.cli.hulls import print_line
from anyhull.mission import Mission

if TYPE_CHECKING:
    from anyhull.onboard.autopilot import Autopilot
    from anyhull.onboard.step_record import StepRecord
    from anyhull.viz.foxglove import LiveView

Foxglove = Annotated[
    bool, typer.Option("--foxglove", help="Serve the run live to Foxglove, at ws://127.0.0.1:8765; only to watch.")
]
FoxgloveAt = Annotated[
    str | None, typer.Option("--foxglove-at", metavar="HOST:PORT", help="Serve it at another address.")
]

OnRow = Callable[[dict[str, Any]], None]


def frame_of(mission: Mission) -> dict[str, Any]:
    """The local frame of a mission for a log's description."""
    return {"frame": None if mission.frame is None else dict(vars(mission.frame))}


@contextmanager
def live_view(
    wanted: bool, address: str | None, about: dict[str, Any], mission: Mission, say: Callable[[str], None] = print_line
) -> Iterator[LiveView | None]:
    """The server while the block runs, None where it is not wanted."""
    if not wanted and address is None:
        yield None
        return
    from anyhull.viz.foxglove import LiveView
    from anyhull.viz.topics import PATH_POINTS

    times = np.linspace(0.0, mission.reference.duration, PATH_POINTS)
    view = LiveView(address or "", about | frame_of(mission), mission.reference.at(times))
    try:
        say(view.said)
        yield view
    finally:
        view.close()


class Steps:
    """Shows the steps of an autopilot."""

    def __init__(self, view: LiveView, autopilot: Autopilot) -> None:
        from anyhull.viz.topics import Row

        self._view, self._autopilot, self._row = view, autopilot, Row
        self._shown = autopilot.event_log.total
        self._azimuths = any(thruster.kind == "azimuth" for thruster in autopilot.setup.vessel.thrusters)

    def show(self, step: StepRecord | None) -> None:
        """Pass on a step and its events; returns at once."""
        if step is None or not step.estimate.valid:
            return
        from anyhull.viz.facts import Entry

        now, log = time.time(), self._autopilot.event_log
        new = log.since(self._shown)
        # An event keeps its distance to this step, which the boat's clock measures.
        ages = (min(max(step.time - event.time, 0.0), 60.0) if math.isfinite(event.time) else 0.0 for event in new)
        events = tuple(Entry(int(1e9 * (now - age)), e.what, e.detail) for age, e in zip(ages, new, strict=True))
        self._shown = log.total
        decision, command = step.decision, step.command
        row = self._row(
            int(1e9 * now),
            step.estimate.state,
            step.reference,
            decision.command,
            step.estimate.current,
            thrusters=command.thrusters,
            angles=command.angles if self._azimuths else None,
            dynamics=step.dynamics,
            sensors=step.sensors,
            latent=step.latent,
            guard=(decision.reaction, decision.reason),
        )
        self._view.show(row, events)


def paced(view: LiveView | None) -> OnRow | None:
    """A function that shows rows of a simulation at the pace of the wall clock; None without a view."""
    if view is None:
        return None
    from anyhull.viz.topics import Row

    fields = ("estimate", "thrusters", "angles", "dynamics", "sensors", "latent")
    began: float | None = None

    def show(row: dict[str, Any]) -> None:
        nonlocal began
        began = time.time() - row["time"] if began is None else began
        at = began + float(row["time"])
        time.sleep(min(max(at - time.time(), 0.0), 1.0))
        optional: dict[str, Any] = {name: row.get(name) for name in fields}
        view.show(Row(int(1e9 * at), *(row[name] for name in ("state", "reference", "command", "current")), **optional))

    return show
