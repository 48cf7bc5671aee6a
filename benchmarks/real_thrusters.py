"""The field policy and the field MPC in a plant with what real thrusters and sensors add to the paper's.

    python real_thrusters.py --json results/real_thrusters.json    # five minutes on one core

The plant: equations of the paper's boats; 100 ms of delay, then a first-order lag of 100 ms; the controller sees an
estimator's errors, Gauss-Markov with the standard deviations `ERRORS` and the correlation of the training from one
period to the next. In still water, and in the wind and current of the field sea. The paper's five platforms and lap.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from machine import describe, save
from plant import Plant

from anyhull import Pilot, Sea, Vessel, rounded_rectangle
from anyhull.control import MPC
from anyhull.controller import Controller
from anyhull.learn.environment import NOISE_MEMORY
from anyhull.paper import PLATFORMS

DELAY, LAG = 0.1, 0.1
"""Delay and time constant of the thrust, s."""

ERRORS = (0.01, 0.01, 0.0033, 0.02, 0.02, 0.0133)
"""Standard deviations of the estimate (m, m, rad, m/s, m/s, rad/s): the estimator's in the twin."""

SEEDS = range(4000, 4020)


def lap(controller: Controller, vessel: Vessel, sea: Sea, noise: float, seed: int) -> tuple[float, float, float]:
    """Mean position error (cm), heading error (degrees) and |Δτ| of a lap in the plant; true errors."""
    plant = Plant(DELAY, LAG, errors=tuple(noise * error for error in ERRORS), memory=NOISE_MEMORY)
    metrics = plant.run(controller, vessel, rounded_rectangle(), sea, seed).metrics()
    return metrics.position_cm, metrics.heading_deg, metrics.delta_tau


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="file for the results")
    parser.add_argument("--policy", nargs="*", default=["field"], help="policies by name or file")
    given = parser.parse_args()
    wind = Sea(current=0.2, force=0.1)
    table: dict[str, Any] = {}
    for case, sea, noise in (("still", Sea(), 0.0), ("noise", Sea(), 1.0), ("noise and wind", wind, 1.0)):
        for name in [*given.policy, "mpc"]:
            rows = {}
            for platform in PLATFORMS:
                vessel = Vessel.load(platform)
                controller = MPC(vessel, "field") if name == "mpc" else Pilot.load(name, vessel)
                seeds = SEEDS if noise else SEEDS[:1]
                found = np.mean([lap(controller, vessel, sea, noise, seed) for seed in seeds], axis=0).tolist()
                rows[platform] = dict(zip(("position_cm", "heading_deg", "delta_tau"), found, strict=True))
            mean = {key: float(np.mean([row[key] for row in rows.values()])) for key in next(iter(rows.values()))}
            table.setdefault(case, {})[name] = rows | {"mean": mean}
            each = {platform: round(row["position_cm"], 2) for platform, row in rows.items()}
            print(case, name, {key: round(value, 4) for key, value in mean.items()}, each, flush=True)
    save(given.json, {"machine": describe("numpy", "casadi"), "seeds": [SEEDS[0], SEEDS[-1]], "cases": table})


if __name__ == "__main__":
    main()
