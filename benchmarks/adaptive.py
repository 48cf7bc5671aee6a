"""`Adaptive` against the student and the MPC that knows the boat: seas, plants, changes, vessels, twin.

    python adaptive.py still       # the paper's lap in still water, and step times
    python adaptive.py field       # 100 runs a platform, on the seeds of students.py
    python adaptive.py plants      # lags, weak reverse thrust, quadratic drag and noise (plant.py)
    python adaptive.py change      # step changes of the boat, and starts off the reference
    python adaptive.py vessels     # the rectangles of catalogue.py, still water and five seeds of the field sea
    python adaptive.py twin        # 20 trials a platform

Each writes its part of results/adaptive.json, on two cores in up to fifteen minutes. Settings are chosen in the
worlds of adaptive_search.py; docs/adaptive.md says what else was seen before.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # one core, as on a boat; read when the libraries below are loaded

import argparse
import json
import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from catalogue import path, sea_of
from machine import describe, save
from plant import Plant
from students import CHANGES, RECOVERED, WHEN

from anyhull import Pilot, Sea, Vessel, circle, rounded_rectangle, simulate
from anyhull.backend import Array
from anyhull.control import MPC, Adaptive
from anyhull.controller import Controller
from anyhull.dynamics import PERIOD
from anyhull.errors import InputError
from anyhull.log import Log
from anyhull.onboard.setup import Setup
from anyhull.paper import FIELD_PLATFORMS, PLATFORMS
from anyhull.study.simulation_jobs import FIRST_SEED
from anyhull.twin.sea_trial import sea_trial
from anyhull.twin.twin import with_thrusters
from anyhull.vessel import catalogue

RESULTS = Path(__file__).parent / "results" / "adaptive.json"

BUILD: dict[str, Callable[[Vessel], Controller]] = {
    "adaptive": Adaptive,
    "student ideal": lambda vessel: Pilot.load("ideal", vessel),
    "student field": lambda vessel: Pilot.load("field", vessel),
    "mpc tight": MPC,
    "mpc field": lambda vessel: MPC(vessel, "field"),
}
IN_FIELD = ("adaptive", "student field", "mpc field")

LAGS = (0.05, 0.1, 0.2, 0.3)
NOISES: dict[str, tuple[float, float]] = {"none": (0.0, 0.0), "white": (1.0, 0.0), "correlated": (1.0, 0.85)}
"""Scale of `ERRORS` and the share of them that remains a period later."""
ERRORS = (0.01, 0.01, 0.005, 0.01, 0.01, 0.01)
"""Standard deviations of the estimate in the plants with noise (m, m, rad, m/s, m/s, rad/s)."""

OFF = 1.0, math.radians(45.0)
"""Distance (m) and angle of the starts off the reference."""

DIVERGED = 5.0
"""Distance from the reference at which a run has diverged, m; on the catalogue in lengths, 3."""

Job = tuple[Any, ...]


def figures(log: Log) -> dict[str, float]:
    m = log.metrics()
    found = {"position_cm": m.position_cm, "heading_deg": m.heading_deg, "delta_tau": m.delta_tau}
    return found | {"position_max_cm": m.position_max_cm}


def spread(positions: Sequence[float], which: str) -> dict[str, float]:
    """Median and worst of the mean errors of runs."""
    return {f"{which}median_cm": float(np.median(positions)), f"{which}worst_cm": float(np.max(positions))}


class Timed:
    """A controller whose steps are timed."""

    def __init__(self, controller: Controller) -> None:
        self.controller, self.seconds = controller, [0.0][:0]

    def reset(self) -> None:
        self.controller.reset()

    def step(self, pose: Array, velocity: Array, window: Array) -> Array:
        began = time.perf_counter()
        command = self.controller.step(pose, velocity, window)
        self.seconds.append(time.perf_counter() - began)
        return command


def still_job(job: Job) -> dict[str, float]:
    name, platform = job
    vessel = Vessel.load(platform)
    timed = Timed(BUILD[name](vessel))
    found = figures(simulate(timed, vessel, rounded_rectangle()))  # type: ignore[arg-type]
    p50, p99 = np.quantile(timed.seconds, (0.5, 0.99)) * 1e3
    return found | {"p50_ms": float(p50), "p99_ms": float(p99)}


def field_job(job: Job) -> dict[str, float]:
    name, platform, seed = job
    vessel = Vessel.load(platform)
    return figures(simulate(BUILD[name](vessel), vessel, rounded_rectangle(), Sea.field(), seed=seed))


def plant_job(job: Job) -> dict[str, float]:
    name, lag, noise, platform, seed = job
    scale, memory = NOISES[noise]
    errors = tuple(scale * error for error in ERRORS)
    plant = Plant(delay=0.1, lag=lag, reverse=0.5, quadratic=0.5, errors=errors, memory=memory)
    vessel = Vessel.load(platform)
    return figures(plant.run(BUILD[name](vessel), vessel, rounded_rectangle(), Sea(), seed))


def change_job(job: Job) -> dict[str, float]:
    name, platform, what = job
    vessel, reference = Vessel.load(platform), circle(radius=4.0, speed=0.4)
    if what in CHANGES:
        changed = (WHEN, CHANGES[what](vessel))
        log = simulate(BUILD[name](vessel), vessel, reference, duration=25.0, vessel_change=changed)
    else:
        start = reference.at(0.0)
        start[3:] = 0.0
        if what == "1 m and 45° off, at rest":
            start[1] += OFF[0]
            start[2] += OFF[1]
        log = simulate(BUILD[name](vessel), vessel, reference, duration=25.0, start=start)
    error, since = 100 * log.position_error, WHEN if what in CHANGES else 0.0
    before = error[(log.time >= since - 5) & (log.time < since)].max(initial=0.0)
    after = error[log.time >= since]
    outside = np.flatnonzero(after > max(RECOVERED, 2 * before))
    seconds = PERIOD * float(outside[-1] + 1) if outside.size else 0.0
    return {"largest_cm": float(after.max()), "seconds": seconds, "diverged": float(after[-1] > 100 * DIVERGED)}


def vessel_job(job: Job) -> dict[str, float]:
    name, boat, sea, seed = job
    vessel = Vessel.load(boat)
    reference, _ = path(vessel)
    duration = min(reference.duration, 120.0 * vessel.scale.time)
    controller = Adaptive(vessel) if name == "adaptive" else Pilot.load(sea, vessel)
    try:
        found = figures(simulate(controller, vessel, reference, sea_of(vessel, sea), seed=seed, duration=duration))
    except InputError:  # the state overflowed
        found = dict.fromkeys(("position_cm", "heading_deg", "delta_tau", "position_max_cm"), math.inf)
    return found


def twin_job(job: Job) -> dict[str, float]:
    name, platform, seed = job
    setup = Setup.load(platform)
    setup = replace(setup, vessel=with_thrusters(setup.vessel))
    log = sea_trial(BUILD[name](setup.vessel), setup, rounded_rectangle(), seed=seed)
    seen, true = log.estimated.metrics(), log.metrics()
    found = {"position_cm": seen.position_cm, "heading_deg": seen.heading_deg, "delta_tau": seen.delta_tau}
    return found | {"true_position_cm": true.position_cm, "true_heading_deg": true.heading_deg}


def table(
    run: Callable[[Job], dict[str, float]], jobs: list[Job], depth: int = 2, each: bool = False
) -> dict[str, Any]:
    """The jobs' summaries by the first `depth` of their words; `each`: the rows, too."""
    with ProcessPoolExecutor(2) as pool:
        found = list(pool.map(run, jobs))
    groups: dict[tuple[Any, ...], list[dict[str, float]]] = {}
    for job, row in zip(jobs, found, strict=True):
        groups.setdefault(job[:depth], []).append(row)
    result: dict[str, Any] = {}
    for words, rows in groups.items():
        cell: dict[str, Any] = {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
        if "position_cm" in cell:
            cell |= spread([row["position_cm"] for row in rows], "")
        if each:
            true = [row["true_position_cm"] for row in rows]
            cell |= spread(true, "true_") | {"true_cm": true}
        where = result
        for word in words[:-1]:
            where = where.setdefault(str(word), {})
        where[str(words[-1])] = cell
        print(*words, {key: round(value, 4) for key, value in cell.items() if not isinstance(value, list)}, flush=True)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("still", "field", "plants", "change", "vessels", "twin"))
    parser.add_argument("--runs", type=int, help="seeds of field (100), plants (3), vessels (5), trials of twin (20)")
    parser.add_argument("--only", nargs="*", help="these controllers")
    given = parser.parse_args()
    runs = given.runs or {"field": 100, "plants": 3, "vessels": 5, "twin": 20}.get(given.part, 1)
    seeds = range(FIRST_SEED, FIRST_SEED + runs)
    names = given.only or (IN_FIELD if given.part != "still" else tuple(BUILD))
    plants = [(lag, noise, p) for lag in LAGS for noise in NOISES for p in PLATFORMS]
    starts = ("at rest", "1 m and 45° off, at rest")
    parts: dict[str, Callable[[], dict[str, Any]]] = {
        "still": lambda: table(still_job, [(n, p) for n in names for p in PLATFORMS]),
        "field": lambda: table(field_job, [(n, p, s) for n in names for p in PLATFORMS for s in seeds]),
        "plants": lambda: table(plant_job, [(n, *plant, s) for n in names for plant in plants for s in seeds], depth=3),
        "change": lambda: table(
            change_job,
            [(n, p, what) for n in ("adaptive", "student field") for p in PLATFORMS for what in (*CHANGES, *starts)],
            depth=3,
        ),
        "vessels": lambda: table(
            vessel_job,
            [
                (n, boat, sea, s)
                for boat in catalogue()
                for n in ("adaptive", "student")
                for sea, some in (("ideal", seeds[:1]), ("field", seeds))
                for s in some
            ],
            depth=3,
        ),
        "twin": lambda: table(twin_job, [(n, p, s) for n in names for p in FIELD_PLATFORMS for s in seeds], each=True),
    }
    found = parts[given.part]()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    results[given.part] = results.get(given.part, {}) | found | {"seeds": [seeds[0], seeds[-1]]}
    results["machine"] = describe("numpy", "casadi")
    save(RESULTS, results)


if __name__ == "__main__":
    main()
