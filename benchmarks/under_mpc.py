"""The search for the MPC's tunings for boats that cannot push sideways, and the errors of every controller on them.

    cd benchmarks
    python under_mpc.py --search still --json results/under_mpc.json  # two minutes on one core
    python under_mpc.py --search field --json results/under_mpc.json  # ten minutes
    python under_mpc.py --runs 5 --json results/under_mpc.json        # the validation

Search: eleven random candidates and the present tuning, then four near the best, log-uniformly from `STILL` and
`FIELD`, on `SEARCHED` boats. Still water: a figure eight, which has no seed. Field sea: the first 20 s of a rectangle
at delays of 30 and 170 ms on seeds 1000 and 1001. The score is the geometric mean of the boats' mean position errors:
no boat dominates; a candidate whose mean |Δτ| per step exceeds `CHATTER` on a boat is rejected. Validation: the
eight boats on the rectangle of 14 x 10 m with corners of 4 m at 0.6 m/s, on seeds that the search did not use. Its
corners are tighter than Viknes can follow, which is therefore also run on a rectangle of three times the size.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # one core, as on a boat; read when the libraries below are loaded

import argparse
import json
import math
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from machine import describe, save

from anyhull import Sea, Vessel, figure_eight, rounded_rectangle, simulate
from anyhull.control import CONTROLLERS, MPC
from anyhull.control.mpc import UNDER_ACTUATED, Tuning
from anyhull.controller import Controller
from anyhull.errors import InputError
from anyhull.reference import Reference

BOATS = ("blueboat-nmpc", "heron", "kingfisher-sysid", "otter-0", "otter-25", "qiuxin5", "vtec-s3", "viknes")
SEARCHED = ("heron", "kingfisher-sysid", "otter-25", "qiuxin5")

Ranges = dict[str, tuple[float, float]]
STILL: Ranges = {
    "heading": (0.003, 0.3),
    "velocity": (0.001, 0.1),
    "yaw_rate": (0.001, 0.1),
    "r": (1e-5, 1e-2),
    "rate": (1e-5, 1e-2),
}
FIELD: Ranges = {
    "heading": (0.1, 5.0),
    "velocity": (0.1, 5.0),
    "yaw_rate": (0.1, 5.0),
    "r": (1e-3, 0.1),
    "rate": (0.01, 0.3),
    "noise": (5e-4, 5e-3),
}
CHATTER = 0.2
FRESH = 3000
"""First seed of the validation."""


def tuning(kind: str, drawn: dict[str, float]) -> Tuning:
    heading, velocity, yaw_rate = (drawn[name] for name in ("heading", "velocity", "yaw_rate"))
    q = (100.0, 100.0, heading, velocity, velocity, yaw_rate)
    now = UNDER_ACTUATED["tight" if kind == "still" else "field"]
    return replace(now, q=q, r=drawn["r"], rate=drawn["rate"], noise=drawn.get("noise", 0.0))


def present(kind: str) -> dict[str, float]:
    now = UNDER_ACTUATED["tight" if kind == "still" else "field"]
    drawn = {"heading": now.q[2], "velocity": now.q[3], "yaw_rate": now.q[5], "r": now.r, "rate": now.rate}
    return drawn if kind == "still" else drawn | {"noise": now.noise}


def draw(random: np.random.Generator, ranges: Ranges, near: dict[str, float] | None = None) -> dict[str, float]:
    drawn = {}
    for name, (low, high) in ranges.items():
        width = math.log(high / low)
        value = low * math.exp(width * random.uniform())
        if near:
            value = near[name] * math.exp(0.15 * width * random.standard_normal())
        drawn[name] = float(f"{min(max(value, low), high):.2g}")
    return drawn


def attempt(kind: str, drawn: dict[str, float]) -> tuple[float, dict[str, Any]]:
    errors, changes = [], []
    for name in SEARCHED:
        vessel = Vessel.load(name)
        controller = MPC(vessel, tuning(kind, drawn))
        if kind == "still":
            runs = [simulate(controller, vessel, figure_eight(14.0, 7.0), duration=20.0).metrics()]
        else:
            path = rounded_rectangle(10.0, 8.0, 3.0)
            seas = [replace(Sea.field(), delay=(delay, delay)) for delay in (0.03, 0.17)]
            runs = [
                simulate(controller, vessel, path, sea, seed=1000 + i, duration=20.0).metrics()
                for i, sea in enumerate(seas)
            ]
        errors.append(float(np.mean([run.position_cm for run in runs])))
        changes.append(float(np.mean([run.delta_tau for run in runs])))
    score = float(np.exp(np.mean(np.log(errors)))) if max(changes) <= CHATTER else math.inf
    print(f"{score:8.4f}", [f"{error:.3f}" for error in errors], f"{max(changes):.3f}", drawn, flush=True)
    return score, {"score": score, "drawn": drawn, "position_cm": errors, "delta_tau": changes}


def search(kind: str) -> dict[str, Any]:
    random, ranges = np.random.default_rng(0), STILL if kind == "still" else FIELD
    trials = [attempt(kind, present(kind))]
    for i in range(15):
        near = min(trials, key=lambda trial: trial[0])[1]["drawn"] if i >= 11 else None
        trials.append(attempt(kind, draw(random, ranges, near)))
    ranked = [record for score, record in sorted(trials, key=lambda trial: trial[0]) if score < math.inf]
    return {"tuning": asdict(tuning(kind, ranked[0]["drawn"])), "trials": ranked}


def measure(name: str, boat: str, path: Reference, seas: list[tuple[int, Sea]]) -> dict[str, float]:
    vessel = Vessel.load(boat)
    controller = Timed(CONTROLLERS[name](vessel))
    runs = []
    for seed, sea in seas:
        try:
            runs.append(simulate(controller, vessel, path, sea, seed=seed).metrics())
        except InputError:
            return {"diverged_seed": seed} | dict.fromkeys(("position_cm", "worst_cm"), math.inf)
    p50, p99 = np.quantile(controller.seconds, (0.5, 0.99)) * 1e3
    return {
        "position_cm": float(np.mean([run.position_cm for run in runs])),
        "worst_cm": float(np.max([run.position_cm for run in runs])),
        "delta_tau": float(np.mean([run.delta_tau for run in runs])),
        "p50_ms": float(p50),
        "p99_ms": float(p99),
    }


class Timed:
    """A controller with the time of every step, s."""

    def __init__(self, controller: Controller) -> None:
        self.controller, self.seconds = controller, list[float]()

    def reset(self) -> None:
        self.controller.reset()

    def step(self, pose: Any, velocity: Any, window: Any) -> Any:
        begin = time.perf_counter()
        command = self.controller.step(pose, velocity, window)
        self.seconds.append(time.perf_counter() - begin)
        return command


def validate(
    runs: int, controllers: list[str], boats: list[str], results: dict[str, Any], path_json: Path | None
) -> None:
    path, tables = rounded_rectangle(14.0, 10.0, 4.0, speed=0.6), results.setdefault("validation", {})
    still, field = [(0, Sea.ideal())], [(FRESH + i, Sea.field()) for i in range(runs)]
    cases = [(boat, boat, path) for boat in boats]
    if "viknes" in boats:
        cases.append(("viknes, 42 x 30 m", "viknes", rounded_rectangle(42.0, 30.0, 12.0, speed=0.6)))
    for sea, seas in (("still", still), ("field", field)):
        for name in controllers:
            if (name, sea) in (("mpc", "field"), ("mpc-field", "still")):
                continue
            for label, boat, one in cases:
                row = measure(name, boat, one, seas)
                tables.setdefault(sea, {}).setdefault(name, {})[label] = row
                print(f"{sea} {name:10s} {label:18s}", row, flush=True)
                save(path_json, results)


def main() -> None:
    parser = argparse.ArgumentParser(description="Controllers of boats without sway force: search and validation.")
    parser.add_argument("--search", choices=("still", "field"), help="search this tuning")
    parser.add_argument("--runs", type=int, default=0, help="seeds a boat in the validation; 0: none")
    parser.add_argument("--controllers", default="mpc,mpc-field,los", help="of the validation")
    parser.add_argument("--boats", default=",".join(BOATS), help="of the validation")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the results here as well")
    arguments = parser.parse_args()

    results: dict[str, Any] = {}
    if arguments.json and arguments.json.exists():
        results = json.loads(arguments.json.read_text())
    results["machine"] = describe("numpy", "casadi")
    if arguments.search:
        begin = time.perf_counter()
        results[f"search_{arguments.search}"] = search(arguments.search) | {"seconds": time.perf_counter() - begin}
        print("found:", results[f"search_{arguments.search}"]["tuning"])
    if arguments.runs:
        names = arguments.controllers.split(",")
        validate(arguments.runs, names, arguments.boats.split(","), results, arguments.json)
    save(arguments.json, results)


if __name__ == "__main__":
    main()
