"""Boats without sway force at the paper's speed: the shipped policies, the MPC that knows each boat, and LOS guidance.

    python without_sway.py --json results/without_sway.json                    # about ten minutes on two cores
    python without_sway.py --json results/without_sway.json --kinds policy     # the others stay

A 14 x 10 m rectangle with corners of 4 and of 2 m at 0.6 m/s, in still water and in the field sea, from the reference's
velocity; the plant has the paper's equations and the catalogue's coefficients.
"""

from __future__ import annotations

import argparse
import json
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from machine import describe, save

from anyhull import Pilot, Sea, Vessel, rounded_rectangle, simulate
from anyhull.control import LOS, MPC
from anyhull.controller import Controller
from anyhull.vessel import catalogue

SEEDS = range(1000, 1010)
"""Seeds of the field sea; none was used in training or tuning."""

RADII = (4.0, 2.0)

IDEAL = "policy ideal"
"""The policy for still water, which is judged there alone; `policy` is `field`."""


def run(job: tuple[str, str, str, float, int]) -> float:
    """Mean position error of one lap, cm."""
    name, kind, sea, radius, seed = job
    vessel = Vessel.load(name)
    controller: Controller
    if kind.startswith("policy"):
        controller = Pilot.load("ideal" if kind == IDEAL else "field", vessel)
    else:
        controller = MPC(vessel, "tight" if sea == "ideal" else "field") if kind == "mpc" else LOS(vessel)
    path = rounded_rectangle(14.0, 10.0, radius)
    return simulate(controller, vessel, path, Sea.preset(sea), seed=seed).metrics().position_cm


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="file for the results")
    parser.add_argument("--kinds", nargs="*", default=["policy", IDEAL, "mpc", "los"], help="others stay as stored")
    parser.add_argument("--seeds", type=int, default=len(SEEDS))
    given = parser.parse_args()
    names = [name for name in catalogue() if Vessel.load(name).under_actuated]
    jobs = [
        (name, kind, sea, radius, seed)
        for kind in given.kinds
        for sea, seeds in (("ideal", SEEDS[:1]), ("field", SEEDS[: given.seeds] if kind != IDEAL else ()))
        for radius in RADII
        for name in names
        for seed in seeds
    ]
    with ProcessPoolExecutor(2) as pool:
        found = dict(zip(jobs, pool.map(run, jobs, chunksize=2), strict=True))
    rows: dict[str, Any] = {}
    if given.json and given.json.exists():
        rows = json.loads(given.json.read_text())["position_cm"]
    for kind, sea, radius in dict.fromkeys((job[1], job[2], job[3]) for job in jobs):
        cells = {
            name: float(np.mean([cm for job, cm in found.items() if job[:4] == (name, kind, sea, radius)]))
            for name in names
        }
        label = f"{kind}, {sea}, corners {radius:g} m"
        rows[label] = cells | {"mean of eight": float(np.mean(list(cells.values())))}
        rows[label]["mean without viknes"] = float(np.mean([cm for name, cm in cells.items() if name != "viknes"]))
        print(label, {name: round(cm, 2) for name, cm in rows[label].items()}, flush=True)
    seeds = [SEEDS[0], SEEDS[given.seeds - 1]]
    save(given.json, {"machine": describe("numpy", "casadi"), "seeds": seeds, "position_cm": rows})


if __name__ == "__main__":
    main()
