"""The same seeded sea trials through UDP, MAVLink and ROS 2, in simulated time and through each link's own bytes.

    cd benchmarks && python link_trials.py --json results/link-trials.json

A trial is one lap of a 4 x 3 m rectangle at 0.4 m/s under `field`, from the same time on, so that the sea is the same.
All three have the twin's own filter and mixer: a finished estimate in, a body wrench out.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

from machine import describe, save

from anyhull import Pilot, Vessel, rounded_rectangle

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
links = importlib.import_module("test_links")


def main() -> None:
    """Run and print the trials."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--vessels", nargs="+", default=["platform-a", "platform-b"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    lap, rows = rounded_rectangle(4.0, 3.0, 1.0, speed=0.4), []
    for name in arguments.vessels:
        for seed in arguments.seeds:
            for kind in links.LINKS:
                log = links.trial(kind, Pilot.load("field"), Vessel.load(name), lap, seed)
                m = log.metrics()
                rows.append(
                    {"vessel": name, "seed": seed, "link": kind, "arrived": log.about["arrived"]}
                    | {"position_cm": m.position_cm, "heading_deg": m.heading_deg, "delta_tau": m.delta_tau}
                )
                print(f"{name} {seed} {kind}: {m.position_cm:.2f} cm, {m.heading_deg:.2f}°", flush=True)
    if arguments.json:
        save(arguments.json, {"machine": describe(), "trials": rows})


if __name__ == "__main__":
    main()
