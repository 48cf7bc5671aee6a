"""The shipped students where it counts: the field sea, other shapes and boats, and a boat that changes under way.

    python students.py field --runs 100    # beside the controllers that know the boat, on the same seeds
    python students.py shapes              # every shape and speed, every vessel of the catalogue inside the envelope
    python students.py start               # the change of command while a boat is still being found out, and after
    python students.py reading             # what boat `ideal` takes each platform for, after a lap
    python students.py change              # mass, damping and thrust change in the middle of a circle

Each writes its part of results/students.json; `change` also draws ../docs/change.png.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from machine import describe

from anyhull import Pilot, Sea, Vessel, circle, figure_eight, hold, rounded_rectangle, simulate, through
from anyhull.control import MPC, PID
from anyhull.controller import Controller
from anyhull.dynamics import PERIOD
from anyhull.files import whole
from anyhull.log import Log
from anyhull.reference import Reference
from anyhull.stream import ability
from anyhull.vessel import PLATFORMS, catalogue

RESULTS = Path(__file__).parent / "results" / "students.json"
PICTURE = Path(__file__).parent.parent / "docs" / "change.png"

FRESH = 3000
"""First seed: none was used to choose the MPC's tuning."""

DIVERGED = 5.0
"""Distance from the reference, m, at which the paper's training counts an episode as failed."""


def field(runs: int) -> dict[str, Any]:
    """Means over the seeds, and the standard deviation between them, of every controller on every platform."""
    drivers: dict[str, Callable[[Vessel], Controller]] = {
        "student field": lambda vessel: Pilot.load("field"),
        "student ideal": lambda vessel: Pilot.load("ideal"),
        "mpc field": lambda vessel: MPC(vessel, "field"),
        "pid": PID,
        "student by ppo": lambda vessel: Pilot.load("field-student"),
        "ppo-general": lambda vessel: Pilot.load("field-ppo-general"),
    }
    table: dict[str, Any] = {"seeds": [FRESH, FRESH + runs - 1]}
    for driver, build in drivers.items():
        table[driver] = {}
        for platform in PLATFORMS:
            vessel = Vessel.load(platform)
            controller = build(vessel)
            logs = [simulate(controller, vessel, rounded_rectangle(), Sea.field(), seed=FRESH + k) for k in range(runs)]
            table[driver][platform] = summary(logs)
        table[driver]["mean"] = {
            name: float(np.mean([table[driver][platform][name] for platform in PLATFORMS]))
            for name in table[driver][PLATFORMS[0]]
        }
        print(f"{driver:14s}", {name: round(value, 4) for name, value in table[driver]["mean"].items()}, flush=True)
    return table


def summary(logs: list[Log]) -> dict[str, float]:
    metrics = [log.metrics() for log in logs]
    means = {
        name: float(np.mean([getattr(m, name) for m in metrics]))
        for name in ("position_cm", "heading_deg", "roughness", "saturation")
    }
    return means | {
        "position_between_cm": float(np.std([m.position_cm for m in metrics])),
        "heading_between_deg": float(np.std([m.heading_deg for m in metrics])),
    }


def shapes(speed: float) -> dict[str, Reference]:
    """References at a speed (m/s), each about a minute long at the slowest."""
    turns = [(4.0 * k, 1.5 * (-1) ** k) for k in range(6)]
    return {
        "rectangle": rounded_rectangle(speed=speed),
        "tight corners, 1 m": rounded_rectangle(radius=1.0, speed=speed),
        "figure eight": figure_eight(speed=speed),
        "slalom": through(turns, speed=speed),
        "circle": circle(speed=speed),
    }


def reading() -> dict[str, Any]:
    """The components that the student reads after a lap in still water, over the boat's own."""
    table: dict[str, Any] = {}
    for platform in PLATFORMS:
        pilot, vessel = Pilot.load("ideal"), Vessel.load(platform)
        simulate(pilot, vessel, rounded_rectangle())
        assert pilot.dynamics is not None
        pairs = zip(pilot.dynamics.e._asdict().items(), vessel.normalized, strict=True)
        table[platform] = {name: read / own for (name, read), own in pairs if own}
        print(platform, {name: round(ratio, 2) for name, ratio in table[platform].items()}, flush=True)
    return table


def others() -> dict[str, Any]:
    """Mean errors of both students in their own seas; a run that strays by more than 5 m has diverged.

    A vessel is asked for a shape where it can reach the speed with 85 % of its actuators in still water, as in
    training; station keeping is asked of all.
    """
    inside = [name for name in catalogue() if (v := Vessel.load(name)).actuation == "full" and not v.envelope()]
    table: dict[str, Any] = {"vessels": inside, "runs": []}
    for policy, sea in (("ideal", Sea.ideal()), ("field", Sea.field())):
        pilot = Pilot.load(policy)
        for name in inside:
            vessel = Vessel.load(name)
            able = ability(np.array(vessel.normalized))
            asked = {(shape, speed): path for speed in (0.2, 0.6, 1.0) for shape, path in shapes(speed).items()}
            asked = {key: path for key, path in asked.items() if can(able, path)}
            asked["station keeping", 0.0] = hold((0.0, 0.0, 0.0), duration=30.0)
            for (shape, speed), path in asked.items():
                log = simulate(pilot, vessel, path, sea, seed=FRESH, duration=min(path.duration, 60.0))
                m = log.metrics()
                table["runs"].append(
                    {
                        "policy": policy,
                        "vessel": name,
                        "shape": shape,
                        "speed": speed,
                        "position_cm": m.position_cm,
                        "heading_deg": m.heading_deg,
                        "position_max_cm": m.position_max_cm,
                        "diverged": m.position_max_cm > 100 * DIVERGED,
                    }
                )
        rows = [run for run in table["runs"] if run["policy"] == policy]
        worst = max(rows, key=lambda run: run["position_cm"])
        print(policy, len(rows), "runs, diverged", sum(run["diverged"] for run in rows), "worst", worst, flush=True)
        for shape in {run["shape"]: None for run in rows}:
            some = [run for run in rows if run["shape"] == shape]
            print(
                f"  {shape:20s} {len(some):3d} runs, mean {np.mean([r['position_cm'] for r in some]):.2f} cm "
                f"{np.mean([r['heading_deg'] for r in some]):.2f}°, worst {max(r['position_cm'] for r in some):.2f} cm"
            )
    return table


def can(able: Any, path: Reference) -> bool:
    """Whether a boat of that ability can follow the path, as the training references are chosen."""
    states = path.at(PERIOD * np.arange(round(min(path.duration, 60.0) / PERIOD)))
    u, r = np.abs(states[:, 3]).max(), np.abs(states[:, 5]).max()
    return bool(u <= able.speed and r <= able.yaw_rate and np.abs(states[:, 3] * states[:, 5]).max() <= able.turn)


CHANGES: dict[str, Callable[[Vessel], Vessel]] = {
    "mass x 3": lambda v: replace(v, m=3 * v.m, X_udot=3 * v.X_udot, Y_vdot=3 * v.Y_vdot, I_comb=3 * v.I_comb),
    "damping x 0.3": lambda v: replace(v, X_u=0.3 * v.X_u, Y_v=0.3 * v.Y_v, N_r=0.3 * v.N_r),
    "40 % of surge lost": lambda v: replace(v, Fx=0.6 * v.Fx),
    "40 % of sway lost": lambda v: replace(v, Fy=0.6 * v.Fy),
    "40 % of yaw lost": lambda v: replace(v, Mz=0.6 * v.Mz),
}

WHEN = 10.0
"""Time of the change, s."""

DRAWN = ("platform-b", "platform-a")
"""Whose runs are drawn: the boat that bears it best, and the one that bears it worst."""

CALM = 2.0
"""A boat has recovered when it stays within this distance, cm, or within twice its largest of the 5 s before."""


def change() -> dict[str, Any]:
    """How far each change throws each platform off, and for how long, with `field`, which is drawn, and `ideal`."""
    drawn: dict[str, dict[str, Log]] = {platform: {} for platform in DRAWN}
    table = {"field": changed("field", drawn), "ideal": changed("ideal", {})}
    draw(drawn)
    return table


def changed(policy: str, drawn: dict[str, dict[str, Log]]) -> dict[str, Any]:
    """The changes under a policy, on a circle, where every axis is at work; runs of platforms in `drawn` are kept."""
    path = circle(radius=4.0, speed=0.4)
    table: dict[str, Any] = {}
    for what, alter in CHANGES.items():
        table[what] = {}
        for platform in PLATFORMS:
            vessel = Vessel.load(platform)
            log = simulate(Pilot.load(policy), vessel, path, duration=25.0, becomes=(WHEN, alter(vessel)))
            error = 100 * log.position_error
            before = error[(log.time >= WHEN - 5) & (log.time < WHEN)].max()
            after, times = error[log.time >= WHEN], log.time[log.time >= WHEN] - WHEN
            outside = np.flatnonzero(after > max(CALM, 2 * before))
            recovered = 0.0 if not outside.size else float(times[outside[-1]] + PERIOD)
            table[what][platform] = {
                "before_cm": float(before),
                "largest_cm": float(after.max()),
                "seconds": recovered if outside.size == 0 or outside[-1] < len(after) - 1 else math.inf,
            }
            if platform in drawn:
                drawn[platform][what] = log
            row = {name: round(value, 2) for name, value in table[what][platform].items()}
            print(f"{policy:6s} {what:20s} {platform:12s} {row}", flush=True)
    return table


def draw(logs: dict[str, dict[str, Log]]) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(len(logs), 1, figsize=(8, 6), sharex=True, layout="constrained")
    styles = ["-", "--", "-.", ":", (0, (3, 1, 1, 1, 1, 1))]
    for axis, (platform, several) in zip(axes, logs.items(), strict=True):
        for (what, log), style in zip(several.items(), styles, strict=True):
            axis.plot(log.time, 100 * log.position_error, linestyle=style, label=what)
        axis.axvline(WHEN, color="0.6", linewidth=0.8)
        axis.set(title=Vessel.load(platform).name, ylabel="distance, cm", xlim=(8, 20))
        axis.grid(alpha=0.3)
    axes[0].legend(frameon=False)
    axes[-1].set_xlabel("time, s")
    figure.suptitle("The boat changes at 10 s, and nobody tells the student")
    with whole(PICTURE) as temporary:
        figure.savefig(temporary, dpi=130, format="png")


def start() -> dict[str, Any]:
    """The mean change of command on the rectangle in still water, over the lap and after its first two seconds."""
    table: dict[str, Any] = {}
    for who, build in {"student ideal": lambda _: Pilot.load("ideal"), "mpc tight": MPC}.items():
        rows = []
        for platform in PLATFORMS:
            vessel = Vessel.load(platform)
            log = simulate(build(vessel), vessel, rounded_rectangle())
            moved = np.abs(np.diff(log.command, axis=0)).mean(axis=1)
            # From a second before the reference begins or ends to turn until a second and a half after.
            turns = np.abs(np.diff(np.abs(log.reference[:, 5]))) > 1e-3
            near = np.convolve(turns, np.ones(25))[10 : 10 + len(moved)] > 0.5
            late = np.arange(len(moved)) >= 20
            parts = {"lap": late | ~late, "first_2_s": ~late, "after_2_s": late}
            parts |= {"at_corners": late & near, "along_sides": late & ~near}
            rows.append({name: float(moved[part].mean()) for name, part in parts.items()})
        table[who] = dict(zip(PLATFORMS, rows, strict=True))
        table[who]["mean"] = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
        print(who, {name: round(value, 4) for name, value in table[who]["mean"].items()}, flush=True)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description="The shipped students where it counts.")
    parser.add_argument("part", choices=("field", "shapes", "start", "reading", "change"))
    parser.add_argument("--runs", type=int, default=100, help="seeds a platform in the field sea")
    arguments = parser.parse_args()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    parts = {
        "field": lambda: field(arguments.runs),
        "shapes": others,
        "start": start,
        "reading": reading,
        "change": change,
    }
    results[arguments.part] = parts[arguments.part]()
    results["machine"] = describe("numpy", "casadi")
    with whole(RESULTS) as temporary:
        temporary.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
