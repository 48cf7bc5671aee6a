"""A sea trial: the loop as on the boat, around the twin, in simulated time -> a Log of truth and estimate.

The boat lies near the start, at rest. It keeps station for a while, and then joins the reference `LEAD` s before where
the measured part begins, since it cannot be under way at once; the paper says nothing of how its trials began. What is
recorded is the reference's own duration from there on: whole laps from an established track.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from anyhull.boat.helm import Beat, Helm
from anyhull.boat.setup import Setup
from anyhull.controller import Controller
from anyhull.dynamics import PERIOD
from anyhull.errors import InputError
from anyhull.log import Log
from anyhull.reference import Reference
from anyhull.trial.twin import TICK, Nature, Twin, fitted

LEAD = 20.0
"""Time on the reference before what is measured, s: a boat that has a fifth of its force to spare has caught up."""

SETTLE = 3.0
"""Time of station keeping before that, s."""

ASIDE = (0.3, 0.3, 0.2)
"""Standard deviation of where the boat lies at first about the start, m, m and rad."""

PATIENCE = 60.0
"""How much longer than it should a trial may take before it is given up, s."""


def sea_trial(
    controller: Controller,
    setup: Setup,
    reference: Reference,
    nature: Nature | None = None,
    *,
    seed: int = 0,
    lead: float = LEAD,
    on_step: Callable[[float, float], None] | None = None,
) -> Log:
    """Drive the twin of a boat along `reference` and record it: in `state` the truth, in `estimate` what it believed.

    The controller, the guard and the allocation have the vessel's file; `seed` draws the twin, see `anyhull.trial`.
    `on_step` is told the time reached and the whole duration, s.
    """
    setup = replace(setup, vessel=fitted(setup.vessel))
    aside = np.array(ASIDE) * np.random.default_rng([seed, 5]).standard_normal(3)
    pose = (reference.at(-lead)[:3] + aside).tolist()
    antenna = (setup.sensors.antenna_x, setup.sensors.antenna_y)
    twin = Twin(setup.vessel, nature, seed=seed, pose=pose, antenna=antenna)
    helm = Helm(setup, controller, reference, settle=SETTLE, lead=lead, session=seed)
    expected, every = SETTLE + lead + reference.duration, round(PERIOD / TICK)
    rows: list[tuple[float, ...]] = []
    latents: list[Any] = []
    missing = 0
    before: Counter[str] | None = None
    for tick in range(math.ceil((expected + PATIENCE) / PERIOD) * every):
        now = tick * TICK
        if tick % every == 0:
            if (beat := helm.step(now)) is not None:
                if beat.phase == "arrived":
                    break
                if beat.phase == "under way":
                    before = helm.notes.counts.copy() if before is None else before
                    rows.append(_row(beat, twin))
                    missing += bool((np.abs(beat.allocation.missing) > 0.01 * np.array(setup.vessel.limits)).any())
                    if (latent := getattr(controller, "latent", None)) is not None and np.size(latent):
                        latents.append(np.array(latent))
                twin.take(beat.command)
            if on_step:
                on_step(min(now, expected), expected)
        for message in twin.advance():
            helm.hear(message, now + TICK)
    if not rows:
        raise InputError(f"{setup.vessel.name}: the boat never got under way; the last the guard said: {_last(helm)}")
    noted = helm.notes.counts - (before or Counter())
    about = {"seed": seed, "arrived": helm.phase == "arrived", "unmet": missing / len(rows), "noted": dict(noted)}
    return _log(np.array(rows), latents, helm, twin, controller, about)


def _row(beat: Beat, twin: Twin) -> tuple[float, ...]:
    believed = (*beat.estimate.pose, *beat.estimate.velocity)
    return (beat.progress, *twin.state, *believed, *beat.reference, *beat.decision.command, *twin.weather.current)


def _log(rows: Any, latents: list[Any], helm: Helm, twin: Twin, controller: Controller, about: dict[str, Any]) -> Log:
    time, state, estimate, reference, command, current = np.split(rows, [1, 7, 13, 19, 22], axis=1)
    vessel = twin.vessel
    about |= {
        "vessel": vessel.name,
        "controller": type(controller).__name__,
        "water": asdict(twin.nature.water),
        "length": vessel.length,
        "beam": vessel.beam,
        "events": [list(event) for event in helm.notes.events],
    }
    return Log(
        time[:, 0],
        state,
        reference,
        command,
        current,
        np.zeros((len(time), 3)),
        np.array(latents) if len(latents) == len(time) else None,
        about,
        estimate,
    )


def _last(helm: Helm) -> str:
    return helm.notes.events[-1].detail if helm.notes.events else "nothing"
