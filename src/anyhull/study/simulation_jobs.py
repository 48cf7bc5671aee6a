"""Jobs that simulate one boat after another: controllers that need no training, and all of them in the twin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from anyhull.control import CONTROLLERS
from anyhull.controller import Controller
from anyhull.errors import InputError
from anyhull.log import Log
from anyhull.paper import FIELD_PLATFORMS, PLATFORMS
from anyhull.pilot import Pilot
from anyhull.reference import rounded_rectangle
from anyhull.sea import Sea
from anyhull.simulate import simulate
from anyhull.study.train_jobs import Plan, policy
from anyhull.vessel import Vessel

FIRST_SEED = 3000
"""First seed of the sea; no tuning was chosen on these seeds."""

RUNS = 20
"""Runs of each boat in a random sea, and trials of its twin."""

METRICS = ("position_cm", "heading_deg", "delta_tau", "saturation")

CLASSICAL = CONTROLLERS | {"mpc-tight": CONTROLLERS["mpc"]}
"""Controllers that are not learned, by the row of the table."""

SHIPPED = {"our-student": "field"}
"""Rows of policies that ship."""


def ideal(plan: Plan) -> dict[str, Any]:
    """Rows of the controllers that are not learned in ideal conditions, which are deterministic."""
    rows = {}
    for row in ("mpc-paper", "mpc-tight", "pid", "adaptive"):
        laps = [_lap(plan, row, PLATFORMS, Sea.ideal(), at_rest=at_rest) for at_rest in (False, True)]
        rows[row] = [laps[0] | {"rest": laps[1]}]
    return {"rows": rows}


def field(plan: Plan) -> dict[str, Any]:
    """Rows of our shipped student and of the controllers that are not learned, one entry a seed of the field sea."""
    seeds = range(FIRST_SEED, FIRST_SEED + (2 if plan.quick else RUNS))
    return {
        "rows": {
            row: [{"sea": _lap(plan, row, FIELD_PLATFORMS, Sea.field(), seed)} for seed in seeds]
            for row in ("mpc-field", "adaptive", "pid", "our-student")
        }
    }


def _lap(
    plan: Plan, row: str, platforms: tuple[str, ...], sea: Sea, seed: int = 0, at_rest: bool = False
) -> dict[str, Any]:
    logs, path = {}, rounded_rectangle()
    options: Any = {"seed": seed, "duration": 5.0 if plan.quick else None}
    options["start"] = np.concatenate([path.at(0.0)[:3], np.zeros(3)]) if at_rest else None
    for name in platforms:
        vessel = Vessel.load(name)
        logs[name] = simulate(_controller(plan, row, SHIPPED.get(row), vessel), vessel, path, sea, **options)
    found = evaluate(logs)
    plan.log(f"  {row}{', from rest' * at_rest}: {found['position_cm']:.4f} cm")
    return found


def evaluate(logs: dict[str, Log]) -> dict[str, Any]:
    """Metrics of each platform and their means, as `anyhull.learn.evaluate.tracking_metrics` gives them."""
    platforms = {name: {what: getattr(log.metrics(), what) for what in METRICS} for name, log in logs.items()}
    means = {what: float(np.mean([one[what] for one in platforms.values()])) for what in METRICS}
    return means | {"platforms": platforms}


def twin(row: str, name: str | None) -> Callable[[Plan], dict[str, Any]]:
    """Trials of one controller in the sea-trial twin; `name` is a policy of seed 0, with {} for the platform."""

    def run(plan: Plan) -> dict[str, Any]:
        from anyhull.onboard.setup import Setup
        from anyhull.twin.report import report
        from anyhull.twin.sea_trial import sea_trial
        from anyhull.twin.twin import with_thrusters

        found = {}
        for platform in FIELD_PLATFORMS:
            setup = Setup.load(platform)
            setup = replace(setup, vessel=with_thrusters(setup.vessel))
            controller = _controller(plan, row, name and name.format(platform), setup.vessel)
            reference = rounded_rectangle(laps=0.1 if plan.quick else 1.0)
            seeds = range(FIRST_SEED, FIRST_SEED + (1 if plan.quick else RUNS))
            found[platform] = asdict(report([sea_trial(controller, setup, reference, seed=seed) for seed in seeds]))
            plan.log(f"  {row}, {platform}: {found[platform]['estimated_position_cm']['mean']:.2f} cm")
        return {"row": row, "platforms": found}

    return run


def _controller(plan: Plan, row: str, name: str | None, vessel: Vessel) -> Controller:
    """A classical controller of the vessel, or the policy of seed 0 of that name."""
    if name is None:
        return CLASSICAL[row](vessel)
    if not (path := policy(plan, name)).exists():
        raise InputError(f"{path}: is missing: run the job that trains it first")
    return Pilot.load(path, vessel)
