"""The field policy and the field MPC in a plant with what real thrusters and sensors add to the paper's.

    python real_thrusters.py --json results/real_thrusters.json    # five minutes on one core

The plant: equations of the paper's boats; 100 ms of delay, then a first-order lag of 100 ms; the controller sees an
estimator's errors, Gauss-Markov with the standard deviations `ERRORS` and the correlation of the training from one
period to the next. In still water, and in the wind and current of the field sea. The paper's five platforms and lap.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np
from machine import describe, save

from anyhull import Pilot, Sea, Vessel, rounded_rectangle
from anyhull.backend import wrap
from anyhull.control import MPC
from anyhull.controller import Controller
from anyhull.dynamics import PERIOD, step
from anyhull.learn.environment import NOISE_MEMORY
from anyhull.paper import PLATFORMS
from anyhull.sea import clip_current, delayed, drift_current, drift_force

DELAY, LAG = 0.1, 0.1
"""Delay and time constant of the thrust, s."""

ERRORS = (0.01, 0.01, 0.0033, 0.02, 0.02, 0.0133)
"""Standard deviations of the estimate (m, m, rad, m/s, m/s, rad/s): the estimator's in the twin."""

PARTS = 10
"""Integration steps in a period."""

SEEDS = range(4000, 4020)


def lap(controller: Controller, vessel: Vessel, sea: Sea, noise: float, seed: int) -> tuple[float, float, float]:
    """Mean position error (cm), heading error (degrees) and |Δτ| of a lap in the plant; true errors."""
    reference, random = rounded_rectangle(), np.random.default_rng(seed)
    boat = tuple(reference.at(0.0).tolist())
    current = clip_current(tuple(sea.current / 2 * random.standard_normal(2)), sea)
    force = tuple(np.clip(sea.force / 2 * random.standard_normal(3), -sea.force, sea.force))
    commands, thrust, error = [(0.0, 0.0, 0.0)] * 3, np.zeros(3), noise * np.array(ERRORS) * random.standard_normal(6)
    keep, rows, issued = math.exp(-PERIOD / PARTS / LAG), [], []
    controller.reset()
    for k in range(round(reference.duration / PERIOD)):
        measured = np.array(boat) + error
        window = reference.window(k * PERIOD)
        command = controller.step(measured[:3], measured[3:], window)
        x, y, psi = window[0, :3] - np.array(boat[:3])
        rows.append((100 * math.hypot(x, y), abs(math.degrees(wrap(psi)))))
        issued.append(command)
        commands = [(float(command[0]), float(command[1]), float(command[2])), *commands[:-1]]
        for active in delayed(commands, DELAY, PARTS):
            thrust = keep * thrust + (1 - keep) * np.array(active)
            pushed = [tuple(thrust + force)]
            boat = step(boat, pushed, vessel.normalized, current, vessel.drag, PERIOD / PARTS)
        current = drift_current(current, random.standard_normal(2), sea)
        force = drift_force(force, random.standard_normal(3), sea)
        new = math.sqrt(1 - NOISE_MEMORY**2) * noise * np.array(ERRORS) * random.standard_normal(6)
        error = NOISE_MEMORY * error + new
    position, heading = np.mean(rows, axis=0)
    return float(position), float(heading), float(np.abs(np.diff(issued, axis=0)).mean())


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
