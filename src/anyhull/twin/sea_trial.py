"""A sea trial: the loop as on the boat, around the twin, in simulated time -> a Log of true and estimated state.

The boat starts near the reference, at rest. It keeps station, then follows the reference from `LEAD_IN` s before the
measured part, since it needs time to catch up; the paper does not state how its trials began. The log covers the
reference's own duration from there on: whole laps from an established track.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from anyhull.controller import Controller
from anyhull.errors import InputError
from anyhull.hulls import drawn
from anyhull.log import Log, Recorder
from anyhull.onboard.autopilot import Autopilot
from anyhull.onboard.recorder import describe
from anyhull.onboard.setup import Setup
from anyhull.onboard.step_record import StepRecord
from anyhull.reference import Reference
from anyhull.scale import PERIOD
from anyhull.twin.autopilot_board import AutopilotBoard
from anyhull.twin.twin import TICK, Twin, TwinConfig, with_thrusters

LEAD_IN = 20.0
"""Time on the reference before the measured part, in the vessel's time unit: a boat with a fifth of its force to spare
has caught up."""

SETTLE = 3.0
"""Time of station keeping before that, in the same unit."""

START_OFFSET = (0.3, 0.3, 0.2)
"""Standard deviation of the initial pose about the start, two in the vessel's length unit, and rad."""

TIMEOUT = 60.0
"""Time beyond the expected duration after which a trial ends, by default, in the vessel's time unit."""


def launch(setup: Setup, reference: Reference, config: TwinConfig | None, seed: int, lead_in: float) -> Twin:
    """The twin of a boat at rest, near the place from which it is to lead in."""
    unit = setup.vessel.scale.length
    offset = np.array(START_OFFSET) * (unit, unit, 1.0) * np.random.default_rng([seed, 5]).standard_normal(3)
    pose = (reference.at(-lead_in)[:3] + offset).tolist()
    antenna = (setup.sensors.antenna_x, setup.sensors.antenna_y)
    return Twin(setup.vessel, config, seed=seed, pose=pose, antenna=antenna)


def row_of(step: StepRecord, twin: Twin) -> dict[str, Any]:
    """The row of a trial's log for one period."""
    return {
        "time": step.progress,
        "state": twin.state,
        "estimate": step.estimate.state,
        "reference": step.reference,
        "command": step.decision.command,
        "current": twin.weather.current,
        "latent": step.latent,
        "thrusters": step.command.thrusters,
        "angles": step.command.angles,
        "dynamics": step.dynamics,
        "sensors": step.sensors,
    }


def sea_trial(
    controller: Controller,
    setup: Setup,
    reference: Reference,
    config: TwinConfig | None = None,
    *,
    seed: int = 0,
    lead_in: float | None = None,
    timeout: float | None = None,
    on_step: Callable[[float, float], None] | None = None,
    on_row: Callable[[dict[str, Any]], None] | None = None,
) -> Log:
    """Steer the twin of a boat along `reference`; the log has the true state in `state`, the estimated in `estimate`.

    The controller, the guard and the allocation have the vessel's file; `seed` draws the twin, see `anyhull.twin`.
    `on_step` gets the time reached and the whole duration, s, and `on_row` each row of the log.
    """
    setup = replace(setup, vessel=with_thrusters(setup.vessel))
    scale = setup.vessel.scale
    lead_in = LEAD_IN * scale.time if lead_in is None else lead_in
    settle, every, again = SETTLE * scale.time, round(scale.period / TICK), round(PERIOD / TICK)
    twin = launch(setup, reference, config, seed, lead_in)
    board = AutopilotBoard(twin, setup.link, setup.sensors)
    autopilot = Autopilot(setup, controller, reference, settle=settle, lead_in=lead_in, session=seed)
    event_log, recorder = autopilot.event_log, Recorder(on_row)
    expected = settle + lead_in + reference.duration
    unmet = 0
    before: Counter[str] | None = None
    boat_time = 0.0
    timeout = TIMEOUT * scale.time if timeout is None else timeout
    for tick in range(math.ceil((expected + timeout) / scale.period) * every):
        now = tick * TICK
        if tick % every == 0:
            if (step := autopilot.step(now)) is not None:
                if step.phase == "arrived":
                    break
                if step.phase == "under way":
                    if before is None:
                        before, boat_time = event_log.counts.copy(), step.time - step.progress
                    recorder.add(**row_of(step, twin))
                    unmet += bool((np.abs(step.allocation.residual) > 0.01 * np.array(setup.vessel.limits)).any())
                board.on_command(step.command)
            if on_step:
                on_step(min(now, expected), expected)
        elif tick % every % again == 0 and (repeated := autopilot.repeat(now)) is not None:
            board.on_command(repeated)
        for message in board.advance():
            autopilot.on_message(message, now + TICK)
    if not len(recorder):
        reactions = [event.detail for event in event_log.events if event.what in ("reaction", "arming")]
        last = reactions[-1] if reactions else "none"
        raise InputError(f"{setup.vessel.name}: the boat never got under way; last event: {last}")
    about = describe(autopilot) | drawn(setup.vessel, seed)
    about |= {"seed": seed, "arrived": autopilot.phase == "arrived", "unmet": unmet / len(recorder)}
    about |= {
        "boat_time": boat_time,
        "water": asdict(twin.config.water),
        "events": [list(event) for event in event_log.events],
    }
    return recorder.log(about | {"event_counts": dict(event_log.counts - (before or Counter()))})
