"""An hour of operation under random faults, in simulated time, and the violations of the safety invariants.

    python benchmarks/faults.py --json benchmarks/results/faults.json

Messages pass as bytes between the twin of Platform A and its autopilot, with a fault of `anyhull.twin.faults` every
15 s on average, for up to 8 s: fixes lost, headings flipped, NaN, duplicates, messages delayed and reordered, clocks
set by up to a day, the boat restarted, the pilot frozen, garbage, either direction of the link
lost. The reference is the paper's rectangle, repeated. The guard is rearmed ten seconds after a handover.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # one core, as on a boat; read when the libraries below are loaded

import argparse
import json
import time
from collections import Counter
from pathlib import Path

import numpy as np
from machine import describe

from anyhull import rounded_rectangle
from anyhull.cli.controllers import controller
from anyhull.files import atomic_write
from anyhull.onboard.setup import Setup
from anyhull.twin.faults import Rig, random_faults

BOAT = Path(__file__).parents[1] / "examples" / "boat.toml"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--controller", default="pid")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    seconds, setup = 3600 * options.hours, Setup.load(BOAT)
    faults = random_faults(seconds, np.random.default_rng(options.seed))
    chosen = controller(options.controller, setup.vessel)
    rig = Rig(setup, chosen, rounded_rectangle(laps=1000), faults, seed=options.seed)
    began, rearmed, handed_over = time.perf_counter(), 0, 0.0
    while rig.time < seconds:
        rig.run(1.0)
        handed_over = handed_over + 1 if rig.autopilot.guard.reaction == "handover" else 0.0
        if handed_over >= 10 and rig.autopilot.guard.rearm():
            rearmed += 1
    found = {
        "hours": options.hours,
        "seed": options.seed,
        "controller": options.controller,
        "violations": rig.violations,
        "faults": dict(Counter(fault.kind for fault in faults)),
        "running_share": rig.running * 0.1 / seconds,
        "stops": rig.autopilot.event_log.counts["stop"],
        "watchdog_stops": rig.trips + rig.twin.firmware.trips,
        "rearmed": rearmed,
        "event_counts": dict(rig.autopilot.event_log.counts.most_common()),
        "rejected": dict(rig.rejected.most_common()),
        "wall_s": round(time.perf_counter() - began, 1),
    }
    for name, value in found.items():
        print(f"{name}: {value}")
    if options.json:
        with atomic_write(options.json) as temporary:
            temporary.write_text(json.dumps({"machine": describe("numpy", "daqp"), **found}, indent=2) + "\n")


if __name__ == "__main__":
    main()
