"""The search for the constants of the line-of-sight controller on boats that cannot push sideways.

    cd benchmarks
    python under_los.py --json results/under_los.json   # four minutes on one core
    python under_los.py --runs 3 --json results/under_los.json   # tighter corners; others: under_mpc.py

The present tuning, 12 candidates drawn log-uniformly from `RANGES` and 12 near the best so far, on the seven boats of
`under_mpc.py` that are no ships: a rectangle of 12 x 8 m with corners of 3 m in still water, and in the field sea at
delays of 30 and 170 ms, seeds 900 and 901. The score is the geometric mean of the position errors over boats and over
still water and field sea. A candidate whose mean |Δτ| per step exceeds `CHATTER` in a run is rejected. The tuning that
the search starts from was the best of 45 in a first run of it.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from machine import describe, save
from under_mpc import BOATS, CHATTER, FRESH, draw, measure

from anyhull import InputError, Sea, Vessel, rounded_rectangle, simulate
from anyhull.control.los import LOS, TUNING, Tuning

RANGES = {"yaw": (3e-4, 0.1), "surge": (3e-4, 0.1), "delay": (0.03, 0.15), "observer": (0.02, 0.5)}


def attempt(drawn: dict[str, float]) -> tuple[float, dict[str, Any]]:
    path = rounded_rectangle(12.0, 8.0, 3.0)
    errors, changes = [], []
    for name in BOATS[:7]:
        vessel = Vessel.load(name)
        controller = LOS(vessel, Tuning(**drawn))
        seas = [Sea.ideal(), *(replace(Sea.field(), delay=(delay, delay)) for delay in (0.03, 0.17))]
        try:
            runs = [
                simulate(controller, vessel, path, sea, seed=899 + i, duration=22.0).metrics()
                for i, sea in enumerate(seas)
            ]
        except InputError:
            return math.inf, {"drawn": drawn}
        errors += [runs[0].position_cm, float(np.mean([run.position_cm for run in runs[1:]]))]
        changes.append(max(run.delta_tau for run in runs))
    score = float(np.exp(np.mean(np.log(errors)))) if max(changes) <= CHATTER else math.inf
    return score, {"score": score, "drawn": drawn, "position_cm": errors, "delta_tau": changes}


def validate(runs: int) -> dict[str, Any]:
    """Errors on the rectangle of 14 x 10 m with corners of 2 m, in still water and on `runs` seeds of the field sea."""
    path, table = rounded_rectangle(14.0, 10.0, 2.0), {}
    for name in BOATS[:7]:
        still = measure("los", name, path, [(0, Sea.ideal())])
        field = measure("los", name, path, [(FRESH + i, Sea.field()) for i in range(runs)])
        table[name] = {"still": still, "field": field}
        print(f"{name:18s}", f"{still['position_cm']:.2f} {field['position_cm']:.2f}", flush=True)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description="The constants of the line-of-sight controller.")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the results here as well")
    parser.add_argument("--runs", type=int, default=0, help="measure corners of 2 m on so many seeds; no search")
    arguments = parser.parse_args()
    if arguments.runs:
        results = json.loads(arguments.json.read_text()) if arguments.json and arguments.json.exists() else {}
        save(arguments.json, results | {"corners_2m": validate(arguments.runs)})
        return
    random, begin = np.random.default_rng(0), time.perf_counter()
    trials = [attempt(asdict(TUNING))]
    for i in range(24):
        best = min(trials, key=lambda trial: trial[0])
        trials.append(attempt(draw(random, RANGES, best[1]["drawn"] if i >= 12 else None)))
        if trials[-1][0] < best[0]:
            print(f"{i:3d} {trials[-1][0]:8.3f}", trials[-1][1]["drawn"], flush=True)
    ranked = [record for score, record in sorted(trials, key=lambda trial: trial[0]) if score < math.inf]
    record = {"machine": describe("numpy"), "seconds": time.perf_counter() - begin, "trials": ranked[:10]}
    save(arguments.json, record)


if __name__ == "__main__":
    main()
