"""The shipped students in the field sea, on other shapes and vessels, and on a boat whose dynamics change in a run.

    python students.py field --runs 100    # and controllers with a perfect model, on the same seeds
    python students.py shapes              # every shape and speed, every vessel of the catalogue inside the envelope
    python students.py start               # mean |Δτ| per step during adaptation, and after
    python students.py dynamics            # the dynamics that `ideal` estimates for each platform after a lap
    python students.py change              # step changes of mass, damping and thrust on a circle

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
from machine import describe, save

from anyhull import Pilot, Sea, Vessel, circle, figure_eight, hold, rounded_rectangle, simulate, through
from anyhull.control import MPC, PID
from anyhull.controller import Controller
from anyhull.dynamics import PERIOD
from anyhull.files import atomic_write
from anyhull.learn.reference_generator import Capability, capability
from anyhull.log import Log
from anyhull.paper import PLATFORMS
from anyhull.reference import Reference
from anyhull.study.simulation_jobs import FIRST_SEED, METRICS
from anyhull.vessel import catalogue

RESULTS = Path(__file__).parent / "results" / "students.json"
PICTURE = Path(__file__).parent.parent / "docs" / "change.png"

DIVERGED = 5.0
"""Distance from the reference at which a run has diverged, m, as for the episodes of the paper's training."""


def field(runs: int) -> dict[str, Any]:
    """Means over the seeds, and the standard deviation between them, of every controller on every platform."""
    controllers: dict[str, Callable[[Vessel], Controller]] = {
        "student field": lambda vessel: Pilot.load("field"),
        "student ideal": lambda vessel: Pilot.load("ideal"),
        "mpc field": lambda vessel: MPC(vessel, "field"),
        "pid": PID,
        "student by ppo": lambda vessel: Pilot.load("field-student"),
        "ppo-general": lambda vessel: Pilot.load("field-ppo-general"),
    }
    seeds = range(FIRST_SEED, FIRST_SEED + runs)
    table: dict[str, Any] = {"seeds": [seeds[0], seeds[-1]]}
    for name, build in controllers.items():
        rows, errors = {}, []
        for platform in PLATFORMS:
            vessel = Vessel.load(platform)
            controller = build(vessel)
            logs = [simulate(controller, vessel, rounded_rectangle(), Sea.field(), seed=seed) for seed in seeds]
            rows[platform] = summary(logs)
            errors += [log.metrics().position_cm for log in logs]
        # Where a few runs leave the path, they make the mean.
        quartiles = {"quartiles_cm": np.percentile(errors, [25, 50, 75]).tolist()}
        table[name] = with_mean(name, rows) | quartiles
    return table


def with_mean(name: str, rows: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    """The rows of the platforms and their mean, which is printed."""
    columns = next(iter(rows.values()))
    mean = {column: float(np.mean([row[column] for row in rows.values()])) for column in columns}
    print(f"{name:14s}", {column: round(value, 4) for column, value in mean.items()}, flush=True)
    return rows | {"mean": mean}


def summary(logs: list[Log]) -> dict[str, float]:
    """Means over runs, and the standard deviations between them."""
    metrics = [log.metrics() for log in logs]
    means = {name: float(np.mean([getattr(m, name) for m in metrics])) for name in METRICS}
    return means | {
        "position_between_cm": float(np.std([m.position_cm for m in metrics])),
        "heading_between_deg": float(np.std([m.heading_deg for m in metrics])),
    }


def shapes(speed: float) -> dict[str, Reference]:
    """References at a speed (m/s), each about a minute long at the lowest speed."""
    turns = [(4.0 * k, 1.5 * (-1) ** k) for k in range(6)]
    return {
        "rectangle": rounded_rectangle(speed=speed),
        "tight corners, 1 m": rounded_rectangle(radius=1.0, speed=speed),
        "figure eight": figure_eight(speed=speed),
        "slalom": through(turns, speed=speed),
        "circle": circle(speed=speed),
    }


def dynamics() -> dict[str, Any]:
    """The components of e that the student estimates after a lap in ideal conditions, over the true ones."""
    table: dict[str, Any] = {}
    for platform in PLATFORMS:
        pilot, vessel = Pilot.load("ideal"), Vessel.load(platform)
        simulate(pilot, vessel, rounded_rectangle())
        assert pilot.dynamics is not None
        pairs = zip(pilot.dynamics.e._asdict().items(), vessel.normalized, strict=True)
        table[platform] = {name: estimate / true for (name, estimate), true in pairs if true}
        print(platform, {name: round(ratio, 2) for name, ratio in table[platform].items()}, flush=True)
    return table


def shapes_and_vessels() -> dict[str, Any]:
    """Mean errors of both students in their own seas; a run with an error above 5 m has diverged.

    Vessels with sway force whose scale is that of the training. A vessel gets the shapes and speeds that it can follow
    with 85 % of its actuators in still water, as in training, and station keeping.
    """
    vessels, envelope = {name: Vessel.load(name) for name in catalogue()}, Pilot.load("field").envelope
    inside = {
        name: v for name, v in vessels.items() if not v.under_actuated and v.scale.identity and not v.outside(envelope)
    }
    table: dict[str, Any] = {"vessels": list(inside), "runs": []}
    for policy, sea in (("ideal", Sea.ideal()), ("field", Sea.field())):
        pilot = Pilot.load(policy)
        for name, vessel in inside.items():
            able = capability(np.array(vessel.normalized))
            paths = {(shape, speed): path for speed in (0.2, 0.6, 1.0) for shape, path in shapes(speed).items()}
            paths = {key: path for key, path in paths.items() if feasible(able, path)}
            paths["station keeping", 0.0] = hold((0.0, 0.0, 0.0), duration=30.0)
            for (shape, speed), path in paths.items():
                log = simulate(pilot, vessel, path, sea, seed=FIRST_SEED, duration=min(path.duration, 60.0))
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


def feasible(able: Capability, path: Reference) -> bool:
    """Whether a boat of that capability can follow the path, by the rule of the training references."""
    states = path.at(PERIOD * np.arange(round(min(path.duration, 60.0) / PERIOD), dtype=np.float64))
    u, r = np.abs(states[:, 3]).max(), np.abs(states[:, 5]).max()
    return bool(u <= able.speed and r <= able.yaw_rate and np.abs(states[:, 3] * states[:, 5]).max() <= able.turn)


def changed(vessel: Vessel, factor: float, *names: str, mass: float = 1.0) -> Vessel:
    """The vessel with these coefficients multiplied by a factor, and its mass by another."""
    hull = replace(vessel.hull, **{name: factor * getattr(vessel.hull, name) for name in names})
    return replace(vessel, m=mass * vessel.mass, hydrodynamics=hull)


CHANGES: dict[str, Callable[[Vessel], Vessel]] = {
    "mass x 3": lambda v: changed(v, 3.0, "X_udot", "Y_vdot", "I_comb", mass=3.0),
    "damping x 0.3": lambda v: changed(v, 0.3, "X_u", "Y_v", "N_r"),
    "40 % of surge lost": lambda v: replace(v, Fx=0.6 * v.Fx),
    "40 % of sway lost": lambda v: replace(v, Fy=0.6 * v.Fy),
    "40 % of yaw lost": lambda v: replace(v, Mz=0.6 * v.Mz),
}

WHEN = 10.0
"""Time of the change, s."""

DRAWN = ("platform-b", "platform-a")
"""Platforms in the figure: those with the smallest and the largest errors."""

RECOVERED = 2.0
"""A boat has recovered when its error stays below this, cm, or below twice the largest error of the 5 s before."""


def change() -> dict[str, Any]:
    """Largest error after each change and time to recover, with `field`, which is drawn, and `ideal`."""
    logs: dict[str, dict[str, Log]] = {platform: {} for platform in DRAWN}
    table = {"field": with_changes("field", logs), "ideal": with_changes("ideal", {})}
    draw(logs)
    return table


def with_changes(policy: str, logs: dict[str, dict[str, Log]]) -> dict[str, Any]:
    """The changes under a policy on a circle, which excites every axis; runs of the platforms in `logs` are kept."""
    path = circle(radius=4.0, speed=0.4)
    table: dict[str, Any] = {}
    for what, alter in CHANGES.items():
        table[what] = {}
        for platform in PLATFORMS:
            vessel = Vessel.load(platform)
            log = simulate(Pilot.load(policy), vessel, path, duration=25.0, vessel_change=(WHEN, alter(vessel)))
            error = 100 * log.position_error
            before = error[(log.time >= WHEN - 5) & (log.time < WHEN)].max()
            after, times = error[log.time >= WHEN], log.time[log.time >= WHEN] - WHEN
            outside = np.flatnonzero(after > max(RECOVERED, 2 * before))
            recovered = 0.0 if not outside.size else float(times[outside[-1]] + PERIOD)
            table[what][platform] = {
                "before_cm": float(before),
                "largest_cm": float(after.max()),
                "seconds": recovered if outside.size == 0 or outside[-1] < len(after) - 1 else math.inf,
            }
            if platform in logs:
                logs[platform][what] = log
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
        axis.set(title=Vessel.load(platform).name, ylabel="position error (cm)", xlim=(8, 20))
        axis.grid(alpha=0.3)
    axes[0].legend(frameon=False)
    axes[-1].set_xlabel("time (s)")
    figure.suptitle(f"Step change of the dynamics at {WHEN:g} s, without notice to the student")
    with atomic_write(PICTURE) as temporary:
        figure.savefig(temporary, dpi=130, format="png")


def start() -> dict[str, Any]:
    """Mean |Δτ| per step on the rectangle in ideal conditions, over the lap and after its first two seconds."""
    table: dict[str, Any] = {}
    controllers: dict[str, Callable[[Vessel], Controller]] = {
        "student ideal": lambda vessel: Pilot.load("ideal"),
        "mpc tight": MPC,
    }
    for name, build in controllers.items():
        rows = {}
        for platform in PLATFORMS:
            vessel = Vessel.load(platform)
            log = simulate(build(vessel), vessel, rounded_rectangle())
            delta_tau = np.abs(np.diff(log.command, axis=0)).mean(axis=1)
            # From 1 s before the yaw rate of the reference steps until 1.5 s after.
            steps = np.abs(np.diff(np.abs(log.reference[:, 5]))) > 1e-3
            near = np.convolve(steps, np.ones(25))[10 : 10 + len(delta_tau)] > 0.5
            late = np.arange(len(delta_tau)) >= 20
            parts = {"lap": late | ~late, "first_2_s": ~late, "after_2_s": late}
            parts |= {"at_corners": late & near, "along_sides": late & ~near}
            rows[platform] = {part: float(delta_tau[mask].mean()) for part, mask in parts.items()}
        table[name] = with_mean(name, rows)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description="Evaluation of the shipped students.")
    parser.add_argument("part", choices=("field", "shapes", "start", "dynamics", "change"))
    parser.add_argument("--runs", type=int, default=100, help="seeds a platform in the field sea")
    arguments = parser.parse_args()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    parts = {
        "field": lambda: field(arguments.runs),
        "shapes": shapes_and_vessels,
        "start": start,
        "dynamics": dynamics,
        "change": change,
    }
    results[arguments.part] = parts[arguments.part]()
    results["machine"] = describe("numpy", "casadi")
    save(RESULTS, results)


if __name__ == "__main__":
    main()
