"""Hours of operation under random faults of every kind, in simulated time, and the violations of the invariants.

    python soak.py --hours 24 --seeds 0 1 2 3 4 --controllers field pid --json results/soak.json

A piece is one seed and controller: the twin of `examples/boat.toml` on a lake, its autopilot on the paper's rectangle
with a fence 6 m from it, authenticated datagrams between them, a journal that is recovered after each kill,
and an operator who rearms the boat 10 s after a stop by a rule of the guard. A fault of `anyhull.twin.fault_schedule`
begins every 20 s on average. `anyhull.twin.invariants` says what is checked. In addition the resident memory must not
grow by more than 20 MB after the first sample, and no blocked console may delay the loop.

Finished pieces are written to the file at once, and are not run again for as long as they are in it.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # one core, as on a boat; read when the libraries below are loaded

import argparse
import fcntl
import json
import multiprocessing
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from machine import describe, save

from anyhull import rounded_rectangle
from anyhull.cli.controllers import controller
from anyhull.cli.live import Lines, Printer
from anyhull.onboard.fence import Polygon
from anyhull.onboard.setup import Setup
from anyhull.onboard.step_record import StepRecord
from anyhull.twin.faults import Rig, random_faults

BOAT = Path(__file__).parents[1] / "examples" / "boat.toml"

EVERY = 20.0
"""Mean time between the beginnings of two faults, s."""

QUIET = 120.0
"""Time without new faults at the end, s, so that the last one shows whether the boat recovers."""

FENCE = Polygon(((-11.0, -6.0), (11.0, -6.0), (11.0, 12.0), (-11.0, 12.0)))
"""6 m from the reference, whose corners are (-5, 0) and (5, 6) m."""

MEMORY_GROWTH = 20.0
"""Largest growth of the resident memory after the first sample, MB."""

DISPLAY_TIME = 1.0
"""Longest time in which the display returns, s: it must not wait for the console."""

SAMPLE = 600.0
"""Time between two samples of the memory, s."""


class Console:
    """The process's stderr as a pipe that is not read while the fault `console blocked` is active."""

    def __init__(self) -> None:
        self._out, write = os.pipe()
        fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096)  # so that it is soon full
        os.dup2(write, 2)
        self._rig: Rig | None = None
        self._lines: Lines | None = None
        self._pilots = 0
        self.printer = Printer()
        self.longest = 0.0
        """Longest time of a call, s."""
        threading.Thread(target=self._read, daemon=True).start()

    def watch(self, rig: Rig) -> None:
        """Show the events of this rig."""
        self._rig = rig

    def show(self, step: StepRecord) -> None:
        """Show a period."""
        if self._rig is None:
            return
        if self._lines is None or self._rig.pilots != self._pilots:
            self._lines, self._pilots = Lines(self._rig.autopilot, self.printer), self._rig.pilots
        began = time.perf_counter()
        self._lines.show(step, 0.0)
        self.longest = max(self.longest, time.perf_counter() - began)

    def _read(self) -> None:
        while True:
            if self._rig is None or "console blocked" in self._rig.schedule.active:
                time.sleep(0.01)
            else:
                os.read(self._out, 4096)


def resident_memory() -> float:
    """Of this process, MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def piece(seed: int, name: str, hours: float) -> dict[str, Any]:
    """Run one piece; what was found."""
    seconds, setup, console = 3600 * hours, Setup.load(BOAT), Console()
    reference = rounded_rectangle(laps=2 + seconds / 40)
    setup = replace(setup, fence=FENCE)
    faults = random_faults(seconds - QUIET, np.random.default_rng(seed), EVERY)
    began, memory = time.perf_counter(), list[float]()
    with TemporaryDirectory(prefix="anyhull-soak-") as folder:
        rig = Rig(
            setup,
            controller(name, setup.vessel),
            reference,
            faults,
            seed=seed,
            operator=True,
            journals=Path(folder),
            on_step=console.show,
        )
        console.watch(rig)
        try:
            while rig.time < seconds:
                shown = len(rig.violations)
                rig.run(min(SAMPLE, seconds - rig.time))
                memory.append(round(resident_memory(), 1))
                for violation in rig.violations[shown:]:
                    print(f"{name} seed {seed}: {violation}", flush=True)
                done = f"{rig.time / 3600:.2f} of {hours:g} h, {len(rig.violations)} violations, {memory[-1]:.0f} MB"
                print(f"{name} seed {seed}: {done}", flush=True)
            rig.close()
        except Exception as error:  # nothing may raise an error
            rig.invariants.violate(rig.time, f"{type(error).__name__}: {error}")
    if max(memory, default=0.0) > memory[0] + MEMORY_GROWTH:
        rig.invariants.violate(rig.time, f"resident memory from {memory[0]} to {max(memory)} MB")
    if console.longest > DISPLAY_TIME:
        rig.invariants.violate(rig.time, f"the display took {console.longest:.1f} s")
    assert rig.operator is not None
    return {
        "seed": seed,
        "controller": name,
        "hours": hours,
        "violations": rig.violations,
        "faults": dict(sorted(Counter(fault.kind for fault in faults).items())),
        "running_share": round(rig.running * 0.1 / seconds, 4),
        "stops": rig.event_counts["stop"],
        "stops_by_rule": dict(rig.stops_by_rule.most_common()),
        "rearmed": rig.operator.rearmed,
        "steered_by_hand": rig.operator.steered,
        "watchdog_stops": rig.trips + rig.twin.firmware.trips,
        "pilots": rig.pilots,
        "periods_recovered": rig.recovered,
        "farthest_outside_m": round(rig.invariants.farthest_outside, 2),
        "farthest_adrift_m": round(rig.invariants.farthest_adrift, 2),
        "longest_stop_s": round(rig.invariants.longest_stop, 1),
        "longest_station_s": round(rig.invariants.longest_station, 1),
        "memory_mb": [memory[0], max(memory), memory[-1]] if memory else [],
        "longest_display_s": round(console.longest, 3),
        "console_lines_dropped": console.printer.dropped,
        "event_counts": dict(rig.event_counts.most_common()),
        "rejected": dict(
            (rig.link.rejected_before + rig.link.rejected["pilot"] + rig.link.rejected["boat"]).most_common()
        ),
        "wall_s": round(time.perf_counter() - began, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--controllers", nargs="+", default=["field", "pid"])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found: dict[str, Any] = {"machine": describe("numpy", "daqp"), "pieces": []}
    if options.json and options.json.exists():
        found["pieces"] = json.loads(options.json.read_text())["pieces"]
    done = {(old["seed"], old["controller"], old["hours"]) for old in found["pieces"]}
    wanted = [(seed, name, options.hours) for seed in options.seeds for name in options.controllers]
    # Each piece in a fresh process, whose memory is its own.
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.workers, mp_context=spawn, max_tasks_per_child=1) as pool:
        for future in as_completed([pool.submit(piece, *one) for one in wanted if one not in done]):
            result = future.result()
            found["pieces"].append(result)
            save(options.json, found)
            print(f"{result['controller']} seed {result['seed']}: ended after {result['wall_s']:.0f} s", flush=True)
    asked = [one for one in found["pieces"] if (one["seed"], one["controller"], one["hours"]) in wanted]
    for one in asked:
        shown = (
            "controller",
            "seed",
            "running_share",
            "stops",
            "rearmed",
            "pilots",
            "longest_stop_s",
            "farthest_outside_m",
        )
        print(", ".join(f"{name} {one[name]}" for name in shown))
        for violation in one["violations"]:
            print(f"  violation: {violation}")
    violations = sum(len(one["violations"]) for one in asked)
    print(f"{sum(one['hours'] for one in asked):g} h in {len(asked)} pieces: {violations} violations")
    sys.exit(violations > 0)


if __name__ == "__main__":
    main()
