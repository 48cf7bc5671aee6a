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
        "mpc": "MPC with a perfect model, tight tuning",
        "mpc-paper": "MPC with a perfect model, paper tuning",
    },
    "field": {
        "field": "student, zero-shot",
        "mpc-field": "MPC with a perfect model, field tuning",
        "pid": "PID with a perfect model",
    },
}
"""For each sea the controllers by their names in `anyhull simulate`, and their labels."""

SEED = 0
"""Seed of the field sea."""

SEAS = {
    "ideal": f"{IDEAL_CONDITIONS.capitalize()}:",
    "field": f"Field sea (wind and waves up to 10 %, current up to 0.2 m/s, delay up to 200 ms), seed {SEED}:",
}

PUBLISHED = {"ideal": IDEAL["student"], "mpc-paper": IDEAL["mpc-paper"]}
"""The paper's figures for a controller, averaged over its five platforms; it gives none for each."""

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
    viz.fleet(logs["ideal"], picture, baseline=logs["mpc-paper"], published=published)

    runs = {name: [asdict(log.metrics()) for log in several.values()] for name, several in logs.items()}
    averages = {
        name: {what: float(np.mean([metrics[what] for metrics in several])) for what in METRICS}
        for name, several in runs.items()
    }
    if as_json:
        by_platform = {name: dict(zip(vessels, several, strict=True)) for name, several in runs.items()}
        paper = {name: row._asdict() for name, row in PUBLISHED.items()}
        print_json({"runs": by_platform, "averages": averages, "published": paper, "picture": str(picture)})
        return
    console = open_console()
    console.print("One lap of the paper's rectangle (10 × 6 m, 0.6 m/s) from the reference state.\n")
    for sea, labels in CONTROLLERS.items():
        console.print(SEAS[sea])
        heads = [f"{name}\n{textwrap.fill(METRICS[what], 9)}" for name in labels for what in COLUMNS]
        table = new_table(["", *heads], gap=1)
        for i, platform in enumerate(vessels):
            table.add_row(platform, *_cells(runs[name][i] for name in labels))
        table.add_section()
        table.add_row("average", *_cells(averages[name] for name in labels), style="bold")
        if any(name in PUBLISHED for name in labels):
            rows = (PUBLISHED[name]._asdict() if name in PUBLISHED else {} for name in labels)
            table.add_row("the paper's", *_cells(rows))
        console.print(table)
        console.print("\n".join(f"{name}: {label}" for name, label in labels.items()) + "\n")
    console.print(f"figure: {picture}", soft_wrap=True)


def _simulate(vessels: dict[str, Vessel], on_step: Callable[[float, float], None] | None) -> dict[str, dict[str, Log]]:
    """The runs by controller and vessel name."""
    path = rounded_rectangle()
    jobs = [(sea, name, label) for sea, labels in CONTROLLERS.items() for name, label in labels.items()]
    total = len(jobs) * len(vessels) * path.duration
    logs: dict[str, dict[str, Log]] = {name: {} for _, name, _ in jobs}
    for sea, name, label in jobs:
        for vessel in vessels.values():
            done = sum(map(len, logs.values())) * path.duration
            report = on_step and partial(_report, on_step, done, total)
            log = run(controller(name, vessel), vessel, path, Sea.preset(sea), seed=SEED, on_step=report)
            logs[name][vessel.name] = replace(log, about=log.about | {"controller": label})
    return logs


def _report(on_step: Callable[[float, float], None], done: float, total: float, time: float, _: float) -> None:
    on_step(done + time, total)


def _cells(rows: Iterable[dict[str, Any]]) -> list[str]:
    return [f"{row[what]:.3f}" if what in row else "-" for row in rows for what in COLUMNS]
