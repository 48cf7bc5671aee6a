"""A sea trial through a link: as `sea_trial`, but all that pilot and boat know of each other passes both of its ends.

Both ends share a clock in simulated time, so that a trial is exact and takes seconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from anyhull.controller import Controller
from anyhull.errors import InputError
from anyhull.log import Log, Recorder
from anyhull.onboard.autopilot import Autopilot
from anyhull.onboard.links import Link
from anyhull.onboard.messages import Command
from anyhull.onboard.recorder import describe
from anyhull.onboard.setup import Setup
from anyhull.reference import Reference
from anyhull.scale import PERIOD
from anyhull.twin.autopilot_board import AutopilotBoard
from anyhull.twin.sea_trial import LEAD_IN, SETTLE, TIMEOUT, launch, row_of
from anyhull.twin.twin import TICK, Twin, TwinConfig, with_thrusters


class SimulatedClock:
    """A clock that advances only when it is told to."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now
        """s."""

    def __call__(self) -> float:
        return self.now


def link_trial(
    controller: Controller,
    setup: Setup,
    reference: Reference,
    config: TwinConfig | None = None,
    *,
    pilot_end: Link,
    boat_end: Link,
    clock: SimulatedClock,
    seed: int = 0,
    lead_in: float | None = None,
    checks: Sequence[Callable[[], str]] = (),
    on_tick: Callable[[float, Autopilot, Twin], None] | None = None,
) -> Log:
    """Steer the twin of a boat along `reference` by messages alone; the log is that of `sea_trial`.

    `pilot_end` and `boat_end` are the two ends of the boat's link. `on_tick` gets the time, the autopilot and the twin
    before each tick, to change what a trial is to find out.
    """
    setup = replace(setup, vessel=with_thrusters(setup.vessel))
    scale = setup.vessel.scale
    lead_in = LEAD_IN * scale.time if lead_in is None else lead_in
    settle, every, again = SETTLE * scale.time, round(scale.period / TICK), round(PERIOD / TICK)
    twin = launch(setup, reference, config, seed, lead_in)
    board = AutopilotBoard(twin, setup.link, setup.sensors)
    autopilot = Autopilot(setup, controller, reference, settle=settle, lead_in=lead_in, session=seed, checks=checks)
    recorder, expected = Recorder(), settle + lead_in + reference.duration
    for tick in range(math.ceil((expected + TIMEOUT * scale.time) / scale.period) * every):
        if on_tick is not None:
            on_tick(clock.now, autopilot, twin)
        for message, arrival in pilot_end.receive(0.0):
            autopilot.on_message(message, arrival)
        if tick % every == 0:
            autopilot.on_rejected(pilot_end.rejected, clock.now)
            if (step := autopilot.step(clock.now)) is not None:
                if step.phase == "arrived":
                    break
                if step.phase == "under way":
                    recorder.add(**row_of(step, twin))
                pilot_end.send(step.command)
        elif tick % every % again == 0 and (repeated := autopilot.repeat(clock.now)) is not None:
            pilot_end.send(repeated)
        for message, _ in boat_end.receive(0.0):
            if isinstance(message, Command):
                board.on_command(message)
        for message in board.advance():
            boat_end.send(message)
        clock.now += TICK
    events = [list(event) for event in autopilot.event_log.events]
    if not len(recorder):
        reason = events[-1][1:] if events else "none"
        raise InputError(f"{setup.vessel.name}: the boat never got under way; last event: {reason}")
    about = describe(autopilot) | {"seed": seed, "arrived": autopilot.phase == "arrived", "events": events}
    return recorder.log(about | {"event_counts": dict(autopilot.event_log.counts)})
