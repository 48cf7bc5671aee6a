"""`anyhull demo`: the paper's five platforms around its rectangle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from anyhull.cli.controllers import controller, run
from anyhull.cli.output import AsJson, new_table, open_console, print_json, progress
from anyhull.cli.sail import check_outputs
from anyhull.log import Log
from anyhull.reference import rounded_rectangle
from anyhull.sea import Sea
from anyhull.vessel import PLATFORMS, Vessel

DRIVERS = {
    "student": "the student, told nothing",
    "mpc": "MPC that knows the boat, tight",
    "mpc-paper": "MPC that knows the boat, as the paper's",
}
"""Controllers by the name that `sail` takes, and what a picture calls them."""

PAPER = {
    "student": {"position_cm": 0.84, "heading_deg": 1.81},
    "mpc-paper": {"position_cm": 0.33, "heading_deg": 0.07},
}
"""The paper's own figures in ideal conditions, averaged over its five platforms; it gives none for each."""


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("out"),
    as_json: AsJson = False,
) -> None:
    """Drive the paper's five platforms around its rectangle, and compare with the paper."""
    from anyhull import plots

    picture = out / "demo.png"
    check_outputs(picture, None, None)
    boats = {name: Vessel.load(name) for name in PLATFORMS}
    path = rounded_rectangle()
    logs: dict[str, dict[str, Log]] = {driver: {} for driver in DRIVERS}
    with progress("sailing five platforms with three controllers") as on_step:
        for i, (driver, label) in enumerate(DRIVERS.items()):
            for j, boat in enumerate(boats.values()):
                done = (len(boats) * i + j) * path.duration
                report = on_step and _share_of(on_step, done, len(DRIVERS) * len(boats) * path.duration)
                log = run(controller(driver, boat), boat, path, Sea.ideal(), on_step=report)
                logs[driver][boat.name] = replace(log, about=log.about | {"controller": label})
    student = PAPER["student"]
    plots.fleet(
        logs["student"],
        picture,
        beside=logs["mpc-paper"],
        published=("the paper's student", student["position_cm"], student["heading_deg"]),
    )

    metrics = {driver: [log.metrics() for log in runs.values()] for driver, runs in logs.items()}
    averages = {
        driver: {what: float(np.mean([getattr(m, what) for m in several])) for what in student}
        for driver, several in metrics.items()
    }
    if as_json:
        runs = {driver: dict(zip(boats, map(asdict, several), strict=True)) for driver, several in metrics.items()}
        print_json({"runs": runs, "averages": averages, "published": PAPER, "picture": str(picture)})
        return
    table = new_table(["", *(head for driver in DRIVERS for head in (f"{driver}: cm", "deg"))])
    for i, name in enumerate(boats):
        errors = [
            error for driver in DRIVERS for error in (metrics[driver][i].position_cm, metrics[driver][i].heading_deg)
        ]
        table.add_row(name, *(f"{error:.4f}" for error in errors))
    table.add_section()
    table.add_row("average", *(f"{e:.4f}" for driver in DRIVERS for e in averages[driver].values()), style="bold")
    published = [PAPER.get(driver, {}).get(what) for driver in DRIVERS for what in student]
    table.add_row("the paper's", *("-" if value is None else f"{value:.2f}" for value in published))
    console = open_console()
    console.print("Mean position and heading error over one lap of the paper's rectangle (10 x 6 m, 0.6 m/s,")
    console.print(f"{path.duration:.0f} s), ideal sea, from the reference state.\n")
    console.print(table)
    console.print(
        "\nstudent: one policy for all five, told nothing of them. mpc: a model predictive controller that\n"
        "knows each boat exactly. mpc-paper: the same with weights chosen to reproduce the paper's.\n"
    )
    console.print(f"picture: {picture}", soft_wrap=True)


def _share_of(on_step: Callable[[float, float], None], done: float, total: float) -> Callable[[float, float], None]:
    return lambda time, _: on_step(done + time, total)
