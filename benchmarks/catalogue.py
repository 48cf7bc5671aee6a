"""All vessels of the catalogue under the shipped policies, zero-shot, and under the MPC that knows each.

    python catalogue.py --json results/catalogue.json                    # about fifteen minutes on two cores
    python catalogue.py --json results/catalogue.json --kinds policy     # three minutes; the MPC's rows stay

Each boat follows a rectangle of its own size at 0.4 of its top speed: 10 by 6 lengths with corners of 2 lengths, or the
smallest multiple of it whose corners the boat can follow by the rule of training: in still water with the policies
`field` and `ideal` and the MPC `tight`, in the field sea in the boat's own scale with `field` and the MPC `field`,
from the reference's velocity. Where the catalogue has no length, it is estimated from the radius of gyration. The
current is at most what half of a boat's forces hold from the side: half its top sway speed, and a Munk moment of half
its yaw moment.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from machine import describe, save

from anyhull import Pilot, Sea, Vessel, rounded_rectangle, simulate
from anyhull.control import MPC
from anyhull.controller import Controller
from anyhull.errors import InputError
from anyhull.learn.reference_generator import capability, capability_without_sway
from anyhull.reference import Reference
from anyhull.twin.hull import size
from anyhull.vessel import catalogue

SPEED = 0.4
"""Share of the top speed."""

TURN_SHARE = 0.5
"""Largest share of the sway force that a corner takes: the rest is for wind and current."""

SEEDS = range(1000, 1020)
"""Seeds of the field sea; none was used in tuning."""

MPC_RUNS = 5
"""Seeds of the MPC, the first of these: it takes a hundred times longer."""

LONGEST = 120.0
"""Longest run in the boat's time unit, s."""

DIVERGED = 3.0
"""Error in lengths above which a run has diverged."""

STEP = 1.25
"""From one size of the rectangle to the next."""


def path(vessel: Vessel) -> tuple[Reference, float]:
    """The rectangle of a boat, and its corner radius in lengths."""
    length, speed, factor = size(vessel)[0], SPEED * vessel.top_speeds[0], 1.0
    u = speed / vessel.scale.speed
    e = vessel.scale.normalized(vessel.effective((speed, 0.1 * speed, 0.3 / vessel.scale.time)))
    if vessel.under_actuated:
        able = capability_without_sway(np.array(e), fastest=u)
    else:
        able = capability(np.array(e), turn=TURN_SHARE, fastest=u)
    fastest = min(float(able.yaw_rate), float(able.turn) / u)
    while u / (2 * factor * length / vessel.scale.length) > fastest:
        factor *= STEP
    sides = (10 * factor * length, 6 * factor * length, 2 * factor * length)
    return rounded_rectangle(*sides, speed=speed), 2 * factor


def sea_of(vessel: Vessel, name: str) -> Sea:
    """The sea of that name in the boat's scale, with a current from the side that half of its forces can hold."""
    sea, e = vessel.scale.sea(Sea.preset(name)), vessel.normalized
    munk = 0.5 * e.alpha_r / max(abs(e.c_uv) * SPEED * vessel.top_speeds[0], 1e-9)
    sway = math.inf if vessel.under_actuated else 0.5 * vessel.top_speeds[1]
    return replace(sea, current=min(sea.current, sway, munk))


CASES: dict[str, dict[str, tuple[str, Sequence[int]]]] = {
    "policy": {"deployed_ideal": ("field", (0,)), "policy_ideal": ("ideal", (0,)), "policy_field": ("field", SEEDS)},
    "mpc": {"mpc_ideal": ("tight", (0,)), "mpc_field": ("field", SEEDS[:MPC_RUNS])},
}
"""By kind of controller and by case, which ends with its sea: the policy or the tuning, and the seeds."""


def run(job: tuple[str, str, str, int]) -> dict[str, Any]:
    """One run of a vessel with a controller in a sea; an error in lengths above `DIVERGED`, or a failure, diverged."""
    name, kind, case, seed = job
    vessel, sea, which = Vessel.load(name), case.rpartition("_")[2], CASES[kind][case][0]
    reference, _ = path(vessel)
    controller: Controller = Pilot.load(which, vessel) if kind == "policy" else MPC(vessel, which)
    duration = min(reference.duration, LONGEST * vessel.scale.time)
    length = size(vessel)[0]
    try:
        log = simulate(controller, vessel, reference, sea_of(vessel, sea), seed=seed, duration=duration)
    except (InputError, RuntimeError):
        return {"position_cm": math.inf, "heading_deg": math.inf, "max_cm": math.inf, "diverged": True}
    m = log.metrics()
    diverged = m.position_max_cm > 100 * DIVERGED * length
    found = {"position_cm": m.position_cm, "heading_deg": m.heading_deg, "max_cm": m.position_max_cm}
    return found | {"delta_tau": m.delta_tau, "diverged": diverged}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="file for the results")
    parser.add_argument("--only", nargs="*", help="these vessels")
    parser.add_argument("--kinds", nargs="*", default=list(CASES), choices=CASES, help="only these controllers")
    given = parser.parse_args()
    names = given.only or catalogue()
    stored = json.loads(given.json.read_text())["vessels"] if given.json and given.json.exists() else {}
    jobs = [
        (name, kind, case, seed)
        for name in names
        for kind in given.kinds
        for case, (_, seeds) in CASES[kind].items()
        for seed in seeds
    ]
    with ProcessPoolExecutor(2) as pool:
        found = dict(zip(jobs, pool.map(run, jobs, chunksize=5), strict=True))
    table: dict[str, Any] = {}
    for name in names:
        vessel = Vessel.load(name)
        length, (_, radius) = size(vessel)[0], path(vessel)
        row: dict[str, Any] = {
            "length": length,
            "length_estimated": vessel.length is None,
            "class": "without sway" if vessel.under_actuated else "with sway",
            "scale": [vessel.scale.length, vessel.scale.time],
            "speed": SPEED * vessel.top_speeds[0],
            "radius_lengths": radius,
            "current": sea_of(vessel, "field").current,
        }
        for kind, cases in CASES.items():
            for case in cases:
                if kind not in given.kinds:
                    row[case] = stored[name][case]
                    continue
                runs = [value for job, value in found.items() if job[:3] == (name, kind, case)]
                means = [value["position_cm"] for value in runs]
                row[case] = {
                    "mean_cm": float(np.mean(means)),
                    "worst_cm": float(np.max(means)),
                    "mean_percent": float(np.mean(means)) / length,
                    "worst_percent": float(np.max(means)) / length,
                    "diverged": sum(value["diverged"] for value in runs),
                }
        table[name] = row
        print(f"{name:18s} L {length:6.2f} v {row['speed']:5.2f} R {radius:5.1f}L scale {row['scale']}", end="")
        for case in (case for cases in CASES.values() for case in cases):
            cell = row[case]
            print(f"  {cell['mean_cm']:8.2f} {cell['mean_percent']:6.2f}% !{cell['diverged']}", end="")
        print(flush=True)
    save(given.json, {"machine": describe("numpy", "casadi"), "seeds": [SEEDS[0], SEEDS[-1]], "vessels": table})


if __name__ == "__main__":
    main()
