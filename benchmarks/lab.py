"""The lab: how closely its scripts follow the package, the size of its page, and frames per second in Chromium.

    cd benchmarks && python lab.py --json results/lab.json

Needs node, and chromium with Playwright (Debian: apt-get install nodejs chromium; pip install playwright). Positions
are compared over 10 s: student and PID on 50 random boats and seas, the MPC on the five platforms, `tight` in ideal
conditions and `field` in the field sea. Frames are counted over 5 s at each speed of time, with all controllers.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from machine import describe, save

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from lab_node import case, random_boats, run_node

from anyhull import Pilot, Sea, Vessel, rounded_rectangle, simulate
from anyhull.control import MPC, PID
from anyhull.lab import write_page
from anyhull.paper import PLATFORMS

BOATS, SECONDS = 50, 10.0
"""Random boats, and the time over which positions are compared, s."""

SEAS = {"tight": Sea.ideal(), "field": Sea.field()}
"""The sea that each tuning of the MPC is compared in."""

FRAMES = """milliseconds => new Promise(done => {
    lab.app.frames.length = 0;
    setTimeout(() => done([lab.app.frames, lab.app.lap.time]), milliseconds);
})"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        page = write_page(folder)
        results = {
            "machine": describe("numpy", "casadi", "playwright"),
            "page_bytes": page.stat().st_size,
            "largest_difference_m": {"boats": BOATS, "seconds": SECONDS} | _differences() | _mpc_differences(),
            "frames_per_second": _frames(page.as_uri()),
        }
    for name in ("page_bytes", "largest_difference_m", "frames_per_second"):
        print(name, results[name])
    save(arguments.json, results)


def _differences() -> dict[str, float]:
    """Largest difference in position of student and PID, m."""
    fleet = list(random_boats(BOATS))
    cases = [case(vessel, data, sea, seed, ["student", "pid"]) for seed, (vessel, _, data, sea) in enumerate(fleet)]
    worst = {"student": 0.0, "pid": 0.0}
    for seed, ((vessel, reference, _, sea), result) in enumerate(zip(fleet, run_node(cases), strict=True)):
        for name, controller in (("student", Pilot.load(vessel=vessel)), ("pid", PID(vessel))):
            expected = simulate(controller, vessel, reference, sea, seed=seed, duration=SECONDS).state
            worst[name] = max(worst[name], _gap(result["states"][name], expected))
    return worst


def _mpc_differences() -> dict[str, float]:
    """Largest difference in position of the MPC by tuning, m."""
    data = ["roundedRectangle", 10, 6, 2, 0.6]
    vessels = [Vessel.load(name) for name in PLATFORMS]
    runs = [(vessel, tuning, sea) for vessel in vessels for tuning, sea in SEAS.items()]
    worst = {f"mpc-{tuning}": 0.0 for tuning in SEAS}
    results = run_node([case(vessel, data, sea, 0, [tuning], SECONDS) for vessel, tuning, sea in runs])
    for (vessel, tuning, sea), result in zip(runs, results, strict=True):
        expected = simulate(MPC(vessel, tuning), vessel, rounded_rectangle(), sea, duration=SECONDS).state
        worst[f"mpc-{tuning}"] = max(worst[f"mpc-{tuning}"], _gap(result["states"][tuning], expected))
    return worst


def _gap(states: Any, expected: Any) -> float:
    return float(np.abs(np.array(states) - expected)[:, :2].max())


def _frames(address: str) -> dict[str, Any]:
    """Median frames per second over 5 s and the time simulated in it, by speed of time, on a desktop and a phone."""
    from playwright.sync_api import sync_playwright

    found: dict[str, Any] = {}
    sizes = {"desktop": (1440, 900), "phone": (390, 844)}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        found["chromium"] = browser.version
        for name, (width, height) in sizes.items():
            for rate in (1, 4, 16):
                page = browser.new_page(viewport={"width": width, "height": height})
                page.goto(f"{address}#rate={rate}")
                page.wait_for_timeout(1000)
                before = page.evaluate("lab.app.lap.time")
                frames, after = page.evaluate(FRAMES, 5000)
                median = 1000 / float(np.median(np.diff(frames)))
                found[f"{name}, x{rate}"] = {"median": median, "simulated_s": after - before}
                page.close()
        browser.close()
    return found


if __name__ == "__main__":
    main()
