"""`anyhull demo`: the paper's five platforms around its rectangle."""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
    "ideal": {
        "ideal": "the student, told nothing",
        "mpc": "MPC that knows the boat, tight",
        "mpc-paper": "MPC that knows the boat, as the paper's",
    },
    "field": {
        "field": "the student, told nothing",
        "mpc-field": "MPC that knows the boat, for the field",
        "pid": "PID that knows the boat",
    },
}
"""For each sea the controllers by the name that `sail` takes, and what a picture calls them."""

PAPER = {
    "ideal": {"position_cm": 0.84, "heading_deg": 1.81},
    "mpc-paper": {"position_cm": 0.33, "heading_deg": 0.07},
}
"""The paper's own figures in ideal conditions, averaged over its five platforms; it gives none for each."""

COLUMNS = {"position_cm": "cm", "heading_deg": "deg", "roughness": "change"}
"""What is shown of a run."""


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("out"),
    as_json: AsJson = False,
) -> None:
    """Drive the paper's five platforms around its rectangle, in still water and in the field sea."""
    from anyhull import plots

    picture = out / "demo.png"
    check_outputs(picture, None, None)
    boats = {name: Vessel.load(name) for name in PLATFORMS}
    path = rounded_rectangle()
    logs: dict[str, dict[str, Log]] = {}
    total = sum(map(len, DRIVERS.values())) * len(boats) * path.duration
    with progress("sailing five platforms, two seas, three controllers each") as on_step:
        for sea, drivers in DRIVERS.items():
            for driver, label in drivers.items():
                logs[driver] = {}
                for boat in boats.values():
                    done = sum(map(len, logs.values())) * path.duration
                    report = on_step and _share_of(on_step, done, total)
                    log = run(controller(driver, boat), boat, path, Sea.preset(sea), on_step=report)
                    logs[driver][boat.name] = replace(log, about=log.about | {"controller": label})
    plots.fleet(
        logs["ideal"],
        picture,
        beside=logs["mpc-paper"],
        published=("the paper's student", PAPER["ideal"]["position_cm"], PAPER["ideal"]["heading_deg"]),
    )

    metrics = {driver: [log.metrics() for log in runs.values()] for driver, runs in logs.items()}
    averages = {
        driver: {what: float(np.mean([getattr(m, what) for m in several])) for what in (*COLUMNS, "saturation")}
        for driver, several in metrics.items()
    }
    if as_json:
        runs = {driver: dict(zip(boats, map(asdict, several), strict=True)) for driver, several in metrics.items()}
        print_json({"runs": runs, "averages": averages, "published": PAPER, "picture": str(picture)})
        return
    console = open_console()
    console.print(
        "One lap of the paper's rectangle (10 x 6 m, 0.6 m/s), from the reference state:\n"
        "mean position error, heading error, and change of command a period (of full power).\n"
    )
    for sea, drivers in DRIVERS.items():
        console.print(SEAS[sea])
        table = new_table(["", *(f"{driver}: {c}" if c == "cm" else c for driver in drivers for c in COLUMNS.values())])
        for i, name in enumerate(boats):
            table.add_row(name, *_cells(asdict(metrics[driver][i]) for driver in drivers))
        table.add_section()
        table.add_row("average", *_cells(averages[driver] for driver in drivers), style="bold")
        if any(driver in PAPER for driver in drivers):
            table.add_row("the paper's", *_cells(PAPER.get(driver, {}) for driver in drivers))
        console.print(table)
        console.print()
    console.print("ideal, field: one policy each for all five boats, told nothing of them. mpc, pid: told everything.")
    console.print(f"picture: {picture}", soft_wrap=True)


SEAS = {
    "ideal": "Still water:",
    "field": "Field sea, one seed: wind and waves of 10 %, current up to 0.2 m/s, delay up to 200 ms:",
}


def _cells(rows: Iterable[dict[str, float]]) -> list[str]:
    return [f"{row[what]:.3f}" if what in row else "-" for row in rows for what in COLUMNS]


def _share_of(on_step: Callable[[float, float], None], done: float, total: float) -> Callable[[float, float], None]:
    return lambda time, _: on_step(done + time, total)
