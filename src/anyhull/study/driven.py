"""Pieces that drive one boat after another: controllers that know the boat, and anything in the sea-trial twin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from anyhull.control import CONTROLLERS
from anyhull.controller import Controller
from anyhull.errors import InputError
from anyhull.log import Log
from anyhull.pilot import Pilot
from anyhull.reference import rounded_rectangle
from anyhull.sea import Sea
from anyhull.simulate import simulate
from anyhull.study.learned import Plan, found_policy
from anyhull.vessel import PLATFORMS, Vessel

FIELD_PLATFORMS = PLATFORMS[:2]
"""The platforms of the paper's table of the field."""

FRESH = 3000
"""First seed of the sea: none was used to choose a tuning."""

RUNS = 20
"""Runs of a boat in a random sea, and trials of its twin."""

COLUMNS = ("position_cm", "heading_deg", "roughness", "saturation")


CLASSICAL = CONTROLLERS | {"mpc-tight": CONTROLLERS["mpc"]}
"""Controllers that know the boat, by the row of the table."""


def ideal(plan: Plan) -> dict[str, Any]:
    """Rows of the classical controllers in still water; nothing is random."""
    rows = {}
    for row in ("mpc-paper", "mpc-tight", "pid"):
        logs = {}
        for name in PLATFORMS:
            vessel = Vessel.load(name)
            logs[name] = [simulate(CLASSICAL[row](vessel), vessel, rounded_rectangle(), duration=_duration(plan))]
        rows[row] = [measured(logs)]
        plan.say(f"  {row}: {rows[row][0]['position_cm']:.4f} cm")
    return {"rows": rows}


def field(plan: Plan) -> dict[str, Any]:
    """Rows of the classical controllers in the training simulator's field sea, one entry a seed of the sea."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for row in ("mpc-field", "pid"):
        boats = {name: Vessel.load(name) for name in FIELD_PLATFORMS}
        steers = {name: CLASSICAL[row](vessel) for name, vessel in boats.items()}
        rows[row] = []
        for k in range(2 if plan.quick else RUNS):
            logs = {
                name: [
                    simulate(
                        steers[name],
                        vessel,
                        rounded_rectangle(),
                        Sea.field(),
                        seed=FRESH + k,
                        duration=_duration(plan),
                    )
                ]
                for name, vessel in boats.items()
            }
            rows[row].append({"sea": measured(logs)})
        mean = np.mean([entry["sea"]["position_cm"] for entry in rows[row]])
        plan.say(f"  {row}: {mean:.2f} cm")
    return {"rows": rows}


def measured(logs: dict[str, list[Log]]) -> dict[str, Any]:
    """Mean errors and roughness, over all and for each boat, as `anyhull.learn.runs.tracking` has them."""
    platforms = {
        name: {what: float(np.mean([getattr(log.metrics(), what) for log in several])) for what in COLUMNS}
        for name, several in logs.items()
    }
    means = {what: float(np.mean([one[what] for one in platforms.values()])) for what in COLUMNS}
    return means | {"platforms": platforms}


def twin(row: str, policy: str | None) -> Callable[[Plan], dict[str, Any]]:
    """A piece: trials of one controller in the sea-trial twin; `policy` names one of seed 0, {} for the platform."""

    def drive(plan: Plan) -> dict[str, Any]:
        from anyhull.boat.setup import Setup
        from anyhull.trial.report import report
        from anyhull.trial.run import sea_trial
        from anyhull.trial.twin import fitted

        found = {}
        for name in FIELD_PLATFORMS:
            setup = Setup.load(name)
            setup = replace(setup, vessel=fitted(setup.vessel))
            steers = steering(plan, row, policy, name, setup.vessel)
            path = rounded_rectangle(laps=0.1) if plan.quick else rounded_rectangle()
            trials = 1 if plan.quick else RUNS
            logs = [sea_trial(steers, setup, path, seed=FRESH + k) for k in range(trials)]
            found[name] = asdict(report(logs))
            plan.say(f"  {row}, {name}: {found[name]['estimated_position_cm']['mean']:.2f} cm")
        return {"row": row, "platforms": found}

    return drive


def steering(plan: Plan, row: str, policy: str | None, platform: str, vessel: Vessel) -> Controller:
    """A classical controller of the vessel, or the policy of seed 0."""
    if policy is None:
        return CLASSICAL[row](vessel)
    path = found_policy(plan, policy.format(platform))
    if not path.exists():
        raise InputError(f"{path}: is missing: the piece that trains it makes it; run that first")
    return Pilot.load(path, vessel)


def _duration(plan: Plan) -> float | None:
    return 5.0 if plan.quick else None
