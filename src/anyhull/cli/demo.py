"""`anyhull demo`: the paper's five platforms around its rectangle."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from anyhull.cli.controllers import controller, run
from anyhull.cli.output import AsJson, check_outputs, new_table, open_console, print_json, progress
from anyhull.log import Log
from anyhull.paper import IDEAL, PLATFORMS
from anyhull.reference import rounded_rectangle
from anyhull.sea import Sea
from anyhull.vessel import Vessel
from anyhull.viz.captions import IDEAL_CONDITIONS, METRICS

CONTROLLERS = {
    "ideal": {
        "ideal": "student, zero-shot",
        "adaptive": "identifies the boat and plans with it, zero-shot",
        "mpc": "MPC with a perfect model",
    },
    "field": {
        "field": "student, zero-shot",
        "adaptive": "identifies the boat and plans with it, zero-shot",
        "mpc-field": "MPC with a perfect model, tuned for this sea",
    },
}
"""For each sea the controllers by their names in `anyhull simulate`, and their labels."""

SEED = 0
"""Seed of the field sea."""

SEAS = {
    "ideal": f"{IDEAL_CONDITIONS.capitalize()}:",
    "field": f"Field sea (wind and waves up to 10 %, current up to 0.2 m/s, delay up to 200 ms), seed {SEED}:",
}

PUBLISHED = {"ideal": IDEAL["student"]}
"""The paper's figures for a controller, averaged over its five platforms; it gives none for each."""

Logs = dict[str, dict[str, dict[str, Log]]]
"""The runs by sea, controller and vessel."""

COLUMNS = ("position_cm", "heading_deg", "delta_tau")
"""Metrics in the table."""


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the figure.")] = Path("out"),
    as_json: AsJson = False,
) -> None:
    """Simulate the paper's five platforms around its rectangle, in ideal conditions and in the field sea."""
    from anyhull import viz

    picture = out / "demo.png"
    check_outputs(picture, None, None)
    vessels = {name: Vessel.load(name) for name in PLATFORMS}
    with progress("five platforms, two seas, three controllers each") as on_step:
        logs = _simulate(vessels, on_step)
    student = PUBLISHED["ideal"]
    published = ("the paper's student", student.position_cm, student.heading_deg)
    viz.fleet(logs["ideal"]["ideal"], picture, baseline=logs["ideal"]["mpc"], published=published)

    runs = {
        sea: {name: {vessel: asdict(log.metrics()) for vessel, log in several.items()} for name, several in by.items()}
        for sea, by in logs.items()
    }
    averages = {
        sea: {
            name: {what: float(np.mean([one[what] for one in several.values()])) for what in METRICS}
            for name, several in by.items()
        }
        for sea, by in runs.items()
    }
    if as_json:
        paper = {name: row._asdict() for name, row in PUBLISHED.items()}
        print_json({"runs": runs, "averages": averages, "published": paper, "picture": str(picture)})
        return
    console = open_console()
    console.print("One lap of the paper's rectangle (10 × 6 m, 0.6 m/s) from the reference state.\n")
    for sea, labels in CONTROLLERS.items():
        console.print(SEAS[sea])
        heads = [f"{name}\n{textwrap.fill(METRICS[what], 9)}" for name in labels for what in COLUMNS]
        table = new_table(["", *heads], gap=1)
        for platform in vessels:
            table.add_row(platform, *_cells(runs[sea][name][platform] for name in labels))
        table.add_section()
        table.add_row("average", *_cells(averages[sea][name] for name in labels), style="bold")
        if any(name in PUBLISHED for name in labels):
            rows = (PUBLISHED[name]._asdict() if name in PUBLISHED else {} for name in labels)
            table.add_row("the paper's", *_cells(rows))
        console.print(table)
        if sea == "ideal":
            console.print("The paper does not say whether its laps start at rest, which costs about 0.6 cm.")
        console.print("\n".join(f"{name}: {label}" for name, label in labels.items()) + "\n")
    console.print(f"figure: {picture}", soft_wrap=True)


def _simulate(vessels: dict[str, Vessel], on_step: Callable[[float, float], None] | None) -> Logs:
    path = rounded_rectangle()
    jobs = [(sea, name, vessel) for sea, labels in CONTROLLERS.items() for name in labels for vessel in vessels]
    logs: Logs = {sea: {name: {} for name in labels} for sea, labels in CONTROLLERS.items()}
    for i, (sea, name, vessel) in enumerate(jobs):
        boat, duration = vessels[vessel], path.duration
        report = on_step and partial(_report, on_step, i * duration, len(jobs) * duration)
        log = run(controller(name, boat), boat, path, Sea.preset(sea), seed=SEED, on_step=report)
        logs[sea][name][vessel] = replace(log, about=log.about | {"controller": CONTROLLERS[sea][name]})
    return logs


def _report(on_step: Callable[[float, float], None], done: float, total: float, time: float, _: float) -> None:
    on_step(done + time, total)


def _cells(rows: Iterable[dict[str, Any]]) -> list[str]:
    return [f"{row[what]:.3f}" if what in row else "-" for row in rows for what in COLUMNS]
