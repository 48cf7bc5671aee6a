"""Size of a voyage's record in each format, and the time that its conversion takes.

    python benchmarks/log_sizes.py --minutes 30 --json benchmarks/results/log_sizes.json

The loop steers the twin of examples/boat-b.toml along rectangles in a lake sea, in simulated time.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from machine import describe, save

from anyhull.log import Log
from anyhull.mission.geodesy import LocalFrame
from anyhull.onboard import journal
from anyhull.onboard.autopilot import Autopilot
from anyhull.onboard.links import Received
from anyhull.onboard.loop import run_autopilot
from anyhull.onboard.setup import Setup
from anyhull.pilot import Pilot
from anyhull.reference import rounded_rectangle
from anyhull.twin import WATERS, Twin, TwinConfig
from anyhull.twin.twin import TICK
from anyhull.vessel import Vessel
from anyhull.viz.foxglove import write_mcap
from anyhull.viz.rosbag import write_bag

BOAT = Path(__file__).parents[1] / "examples" / "boat-b.toml"
FRAME = LocalFrame(60.0, 10.0, "ned")


class SimulatedLink:
    """A link to a twin in simulated time, which passes while one waits."""

    def __init__(self, vessel: Vessel) -> None:
        self._twin, self.now = Twin(vessel, TwinConfig(water=WATERS["lake"])), 0.0
        self.rejected: Counter[str] = Counter()

    def receive(self, timeout: float) -> list[Received]:
        received: list[Received] = []
        for _ in range(max(0, round(timeout / TICK))):
            self.now += TICK
            received += [Received(message, self.now) for message in self._twin.advance()]
        self.now += timeout % TICK if timeout > 0 and not received else 0.0
        return received

    def send(self, message: Any) -> None:
        self._twin.on_command(message)

    def close(self) -> None: ...


def measure(minutes: float) -> dict[str, Any]:
    """MB an hour and s of conversion an hour, by format."""
    setup = Setup.load(BOAT)
    link = SimulatedLink(setup.vessel)
    lap = rounded_rectangle()
    autopilot = Autopilot(setup, Pilot.load("field"), rounded_rectangle(laps=60 * minutes / lap.duration))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        about = {"frame": dict(vars(FRAME))}
        log = run_autopilot(autopilot, link, clock=lambda: link.now, journal=folder / "run.jsonl", about=about)
        hours = len(log.time) / 36_000
        found = {"journal": {"mb_an_hour": _size(journal.segments(folder / "run.jsonl")) / hours / 1e6}}
        writers: dict[str, tuple[str, Callable[[Path], Path]]] = {
            "npz": ("run.npz", log.save),
            "csv": ("run.csv", log.save_csv),
            "mcap": ("run.mcap", lambda path: write_mcap(log, path)),
            "bag": ("bag", lambda path: write_bag(log, path)),
        }
        for kind, (file, write) in writers.items():
            began = time.perf_counter()
            path = write(folder / file)
            took = time.perf_counter() - began
            files = list(path.iterdir()) if path.is_dir() else [path]
            found[kind] = {"mb_an_hour": _size(files) / hours / 1e6, "seconds_an_hour": took / hours}
        assert len(Log.load(folder / "run.npz").time) == len(log.time)
    return {"minutes": len(log.time) / 600, "formats": found}


def _size(files: list[Path]) -> int:
    return sum(file.stat().st_size for file in files)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0, help="Length of the voyage.")
    parser.add_argument("--json", type=Path, help="Write the results to this file.")
    options = parser.parse_args()
    results = measure(options.minutes)
    for kind, numbers in results["formats"].items():
        print(kind, *(f"{name} {value:.1f}" for name, value in numbers.items()))
    save(options.json, {"machine": describe("numpy", "foxglove-sdk", "rosbags")} | results)


if __name__ == "__main__":
    main()
