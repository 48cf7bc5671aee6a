"""Rivals of the learned policy: adaptive controllers from textbooks, and the MPC with a wrong model.

    python rivals.py tune --json results/rivals.json     # the search of `rivals_search.py`, half an hour
    python rivals.py judge --json results/rivals.json    # fifteen minutes; --only ROW ... for some rows
    python rivals.py pairs --json results/rivals.json    # ten minutes

Judged: the paper's five platforms and lap at 0.6 m/s, from the reference's velocity; in still water, in the field sea,
and in the plant of `real_thrusters.py` without and with measurement noise. The wrong models have all masses and
dampings off by 30 %; the limits are as stated. In `pairs` the MPC has another published identification of the same
hull, with the limits of the boat it steers, on the rectangle of `catalogue.py`.

A run has diverged when the boat was more than 5 m off.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from catalogue import LONGEST, path, sea_of
from machine import describe, save
from numpy.typing import ArrayLike
from real_thrusters import SEEDS as PLANT_SEEDS
from real_thrusters import lap
from rivals_search import RANGES, search

from anyhull import Pilot, Sea, Vessel, rounded_rectangle, simulate
from anyhull.backend import Array
from anyhull.control import MPC
from anyhull.control.l1 import L1, estimated_accelerations
from anyhull.control.rls import RLS
from anyhull.controller import Controller
from anyhull.errors import InputError
from anyhull.hydrodynamics import DAMPING, Hydrodynamics
from anyhull.paper import PLATFORMS
from anyhull.study.simulation_jobs import FIRST_SEED

SEEDS = range(FIRST_SEED, FIRST_SEED + 20)
"""Seeds of the field sea; none was used in tuning."""

PAIR_RUNS = 5
"""Of these, those for other identifications, whose laps are longer."""

DIVERGED = 5.0
"""Distance from the reference beyond which a run has diverged, m."""

PEDERSEN = Hydrodynamics(
    X_udot=1800 - 2389.657,
    Y_vdot=1800 - 2533.911,
    I_comb=5068.910,
    X_u=27.632,
    X_uu=110.064,
    X_uuu=13.965,
    Y_v=52.947,
    Y_vv=116.486,
    Y_vvv=24.313,
    N_r=122.860,
    N_rr=874.428,
)
"""milliAmpere as A. A. Pedersen, Optimization Based System Identification for the milliAmpere Ferry, NTNU 2019,
identified it, for the mass of 1800 kg in the catalogue; couplings of sway and yaw are dropped."""

Build = Callable[[Vessel], Controller]


def off(vessel: Vessel, mass: float, damping: float) -> Vessel:
    """The boat with inertia and damping off by these factors."""
    names = {name for names in DAMPING for name in names}
    hull = vessel.hull
    factors = {f.name: damping if f.name in names else mass for f in fields(hull)}
    wrong = replace(hull, **{name: factor * getattr(hull, name) for name, factor in factors.items()})
    return replace(vessel, m=mass * vessel.mass, hydrodynamics=wrong)


def wrong_mpc(mass: float, damping: float) -> Build:
    return lambda vessel: MPC(off(vessel, mass, damping), "field")


ROWS: dict[str, Build] = {
    "l1": L1,
    "rls": RLS,
    "pilot": lambda vessel: Pilot.load("field", vessel),
    "mpc": wrong_mpc(1.0, 1.0),
    "mpc, all +30 %": wrong_mpc(1.3, 1.3),
    "mpc, all -30 %": wrong_mpc(0.7, 0.7),
    "mpc, mass +30 %, damping -30 %": wrong_mpc(1.3, 0.7),
    "mpc, mass -30 %, damping +30 %": wrong_mpc(0.7, 1.3),
}
"""The judged controllers."""


class Watched:
    """A controller, and the largest distance from the reference that it was shown, m."""

    def __init__(self, controller: Controller) -> None:
        self.controller = controller
        self.furthest = 0.0

    def reset(self) -> None:
        self.controller.reset()
        self.furthest = 0.0

    def step(self, pose: ArrayLike, velocity: ArrayLike, window: ArrayLike) -> Array:
        dx, dy = np.asarray(window)[0, :2] - np.asarray(pose)[:2]
        self.furthest = max(self.furthest, math.hypot(dx, dy))
        return self.controller.step(pose, velocity, window)


def in_sea(name: str, sea: Sea, seeds: range) -> Callable[[Watched, Vessel], list[Any]]:
    """Runs of the paper's lap in a sea."""

    def runs(controller: Watched, vessel: Vessel) -> list[Any]:
        return [run(controller, lambda s=seed: metrics(controller, vessel, sea, s)) for seed in seeds]  # type: ignore[misc]

    return runs


def metrics(controller: Controller, vessel: Vessel, sea: Sea, seed: int) -> tuple[float, float, float]:
    m = simulate(controller, vessel, rounded_rectangle(), sea, seed=seed).metrics()
    return m.position_cm, m.heading_deg, m.delta_tau


def in_plant(noise: float, seeds: range) -> Callable[[Watched, Vessel], list[Any]]:
    """Runs of the paper's lap in the plant with delay, lag and noise."""

    def runs(controller: Watched, vessel: Vessel) -> list[Any]:
        return [run(controller, lambda s=seed: lap(controller, vessel, Sea(), noise, s)) for seed in seeds]  # type: ignore[misc]

    return runs


CASES: dict[str, Callable[[Watched, Vessel], list[Any]]] = {
    "still": in_sea("ideal", Sea.ideal(), range(1)),
    "field": in_sea("field", Sea.field(), SEEDS),
    "plant": in_plant(0.0, PLANT_SEEDS[:1]),
    "plant, noise": in_plant(1.0, PLANT_SEEDS),
}


def run(controller: Watched, attempt: Callable[[], tuple[float, float, float]]) -> tuple[float, float, float, bool]:
    """Mean position error (cm), heading error (degrees), |Δτ| of a run, and whether it diverged."""
    try:
        with np.errstate(all="ignore"):
            found = attempt()
    except (InputError, RuntimeError, OverflowError):
        return math.nan, math.nan, math.nan, True
    return (*found, controller.furthest > DIVERGED or not all(map(math.isfinite, found)))


def summary(runs: list[tuple[float, float, float, bool]]) -> dict[str, float]:
    """Mean, median and worst over the runs that stayed finite, and the number that diverged."""
    values = np.array([row[:3] for row in runs if all(map(math.isfinite, row[:3]))]).reshape(-1, 3)
    found: dict[str, float] = {"runs": len(runs), "diverged": sum(row[3] for row in runs)}
    for i, name in enumerate(("position_cm", "heading_deg", "delta_tau")):
        column = values[:, i] if len(values) else np.full(1, math.inf)
        found |= {name: float(column.mean()), f"{name}_median": float(np.median(column))}
        found[f"{name}_worst"] = float(column.max())
    return found


def line(row: dict[str, float]) -> str:
    text = "{position_cm:8.2f} cm (median {position_cm_median:.2f}, worst {position_cm_worst:.2f}) {heading_deg:6.2f}°"
    text += " (median {heading_deg_median:.2f}) |Δτ| {delta_tau:.4f}, {diverged} of {runs} diverged"
    return text.format(**row)


def ratios(vessel: Vessel) -> list[float]:
    """True over estimated peak accelerations in surge, sway and yaw."""
    true = np.array(vessel.scale.normalized(vessel.normalized)[:3])
    found: list[float] = (true / estimated_accelerations(vessel, "")).tolist()
    return found


def judge(row: str) -> dict[str, Any]:
    """One controller in every case, by platform and over all runs."""
    table: dict[str, Any] = {}
    for case, runs in CASES.items():
        everything, each = [], {}
        for platform in PLATFORMS:
            vessel = Vessel.load(platform)
            found = runs(Watched(ROWS[row](vessel)), vessel)
            each[platform] = summary(found)
            everything += found
        table[case] = each | {"all": summary(everything)}
        print(f"{row:32s} {case:13s}", line(table[case]["all"]), flush=True)
    return table


def identified(plant: str, model: str) -> tuple[Vessel, Vessel]:
    """A boat, and the same with the other identification of its hull."""

    def load(name: str) -> Vessel:
        if name == "milliampere1, Pedersen":
            return replace(Vessel.load("milliampere1"), hydrodynamics=PEDERSEN)
        return Vessel.load(name)

    boat, other = load(plant), load(model)
    return boat, replace(boat, m=other.m, hydrodynamics=other.hydrodynamics)


PAIRS = (
    ("heron", "kingfisher-sysid"),
    ("kingfisher-sysid", "heron"),
    ("milliampere1", "milliampere1, Pedersen"),
    ("milliampere1, Pedersen", "milliampere1"),
    ("otter-25", "otter-0"),
    ("otter-0", "otter-25"),
)
"""Boats and other identifications of the same hull; of the Otter, another payload."""


PAIR_ROWS = ("mpc", "mpc, other identification", "pilot", "l1", "rls")
"""The controllers of `pairs`."""


def judge_pairs(rows: list[str], table: dict[str, Any]) -> None:
    """The MPC with the right and with the other model, and the controllers without a model, in both seas."""
    for plant, model in PAIRS:
        vessel, wrong = identified(plant, model)
        reference, _ = path(vessel)
        duration = min(reference.duration, LONGEST * vessel.scale.time)
        builds: dict[str, Callable[[], Controller]] = {}
        for row in rows:
            if row == "mpc, other identification":
                builds[row] = lambda v=wrong: MPC(v, "field")  # type: ignore[misc]
            elif not (vessel.under_actuated and row in ("l1", "rls")):
                builds[row] = lambda r=row, v=vessel: ROWS[r](v)  # type: ignore[misc]
        for row, build in builds.items():
            for sea, seeds in (("ideal", SEEDS[:1]), ("field", SEEDS[:PAIR_RUNS])):
                controller, water = Watched(build()), sea_of(vessel, sea)

                def attempt(seed: int) -> tuple[float, float, float]:
                    log = simulate(controller, vessel, reference, water, seed=seed, duration=duration)  # noqa: B023
                    m = log.metrics()
                    return m.position_cm, m.heading_deg, m.delta_tau

                found = summary([run(controller, lambda s=seed: attempt(s)) for seed in seeds])  # type: ignore[misc]
                table.setdefault(f"{plant} by {model}", {}).setdefault(sea, {})[row] = found
                print(f"{plant} by {model}: {row:26s} {sea:6s}", line(found), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("tune", "judge", "pairs"))
    parser.add_argument("--json", type=Path, help="file for the results; what it holds of other rows stays")
    parser.add_argument("--only", nargs="*", help="these rows")
    given = parser.parse_args()
    results: dict[str, Any] = json.loads(given.json.read_text()) if given.json and given.json.exists() else {}
    results["machine"] = describe("numpy", "casadi")
    if given.what == "tune":
        for kind in given.only or RANGES:
            begin = time.perf_counter()
            found = search(kind, lambda text: print(text, flush=True))
            results.setdefault("tuning", {})[kind] = found | {"seconds": time.perf_counter() - begin}
            save(given.json, results)
    if given.what == "judge":
        results["true_over_estimated_acceleration"] = {name: ratios(Vessel.load(name)) for name in PLATFORMS}
        for row in given.only or ROWS:
            results.setdefault("judged", {})[row] = judge(row)
            save(given.json, results)
    if given.what == "pairs":
        judge_pairs(given.only or list(PAIR_ROWS), results.setdefault("pairs", {}))
        save(given.json, results)


if __name__ == "__main__":
    main()
