"""Station keeping of boats that cannot push sideways, in the field sea.

    cd benchmarks
    python under_hold.py --controllers los,policy --runs 3 --json results/under_hold.json
    python under_hold.py --controllers mpc-field --runs 1 --json results/under_hold.json   # slower

Each boat holds a pose for 120 s. It keeps station if it stays within `Vessel.hold_radius` (one length, at least 0.5 m)
after the first 20 s, by turning into what pushes it and not by spinning.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from machine import describe, save
from under_mpc import BOATS

from anyhull import InputError, Pilot, Sea, Vessel, hold, simulate
from anyhull.control import CONTROLLERS
from anyhull.controller import Controller
from anyhull.dynamics import PERIOD

STATIONED: dict[str, Callable[[Vessel], Controller]] = {
    **CONTROLLERS,
    "policy": lambda vessel: Pilot.load("field", vessel),
}
"""Constructors of controllers and, as `policy`, the shipped field policy."""

SETTLED = 20.0
"""Time after which the distance counts, s."""


def station_keeping(
    build: Callable[[Vessel], Controller],
    seeds: Sequence[int],
    boats: Sequence[str] = BOATS,
    sea: Sea | None = None,
    duration: float = 120.0,
) -> dict[str, dict[str, Any]]:
    """By boat: its circle and the largest distance (m), full turns away from the first heading, and mean |Δτ| per step.

    Distance and turns are the worst of the seeds; the distances of all are listed beside.
    """
    table: dict[str, dict[str, Any]] = {}
    for name in boats:
        vessel = Vessel.load(name)
        controller = build(vessel)
        far, turns, changes = [], [], []
        for seed in seeds:
            try:
                log = simulate(controller, vessel, hold(duration=duration), sea or Sea.field(), seed=seed)
            except InputError:
                far.append(math.inf)
                continue
            far.append(float(np.hypot(*log.state[round(SETTLED / PERIOD) :, :2].T).max()))
            heading = np.unwrap(log.state[:, 2])
            turns.append(float(np.abs(heading - heading[0]).max() / math.tau))
            changes.append(log.metrics().delta_tau)
        table[name] = {
            "radius_m": vessel.hold_radius,
            "distance_m": max(far),
            "distances_m": far,
            "turns": max(turns, default=math.inf),
            "delta_tau": float(np.mean(changes)),
        }
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description="Station keeping of boats without sway force in the field sea.")
    parser.add_argument("--controllers", default="los,mpc-field")
    parser.add_argument("--boats", default=",".join(BOATS))
    parser.add_argument("--runs", type=int, default=3, help="seeds a boat")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the results here as well")
    arguments = parser.parse_args()
    results: dict[str, Any] = {}
    if arguments.json and arguments.json.exists():
        results = json.loads(arguments.json.read_text())
    results |= {"machine": describe("numpy"), "first_seed": 4000}
    results.pop("seeds", None)
    seeds = range(4000, 4000 + arguments.runs)
    for name in arguments.controllers.split(","):
        for boat in arguments.boats.split(","):
            row = station_keeping(STATIONED[name], seeds, [boat])[boat] | {"runs": arguments.runs}
            results[name] = results.get(name, {}) | {boat: row}
            print(
                f"{name:10s} {boat:18s}", {key: np.round(value, 3).tolist() for key, value in row.items()}, flush=True
            )
            save(arguments.json, results)


if __name__ == "__main__":
    main()
