"""`anyhull demo`: the paper's five platforms around its rectangle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from anyhull.cli.controllers import mpc, run
from anyhull.cli.output import AsJson, new_table, open_console, print_json, progress
from anyhull.cli.sail import check_outputs
from anyhull.log import Log
from anyhull.reference import rounded_rectangle
from anyhull.sea import Sea
from anyhull.vessel import PLATFORMS, Vessel

PAPER_MPC = {"position_cm": 0.33, "heading_deg": 0.07}
"""The paper's MPC in ideal conditions, averaged over its five platforms."""


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("out"),
    as_json: AsJson = False,
) -> None:
    """Drive the paper's five platforms around its rectangle, and compare with the paper."""
    from anyhull import plots

    picture = out / "demo.png"
    check_outputs(picture, None, None)
    tunings = {"tight": "MPC, our tight tuning", "paper": "MPC, the paper's tuning"}
    boats = {name: Vessel.load(name) for name in PLATFORMS}
    path = rounded_rectangle()
    logs: dict[str, dict[str, Log]] = {tuning: {} for tuning in tunings}
    with progress("sailing five platforms, twice") as on_step:
        for i, (tuning, label) in enumerate(tunings.items()):
            for j, boat in enumerate(boats.values()):
                done = (len(boats) * i + j) * path.duration
                report = on_step and _share_of(on_step, done, len(tunings) * len(boats) * path.duration)
                log = run(mpc(tuning)(boat), boat, path, Sea.ideal(), on_step=report)
                logs[tuning][boat.name] = replace(log, about=log.about | {"controller": label})
    plots.fleet(
        logs["tight"],
        picture,
        beside=logs["paper"],
        published=("the paper's average", PAPER_MPC["position_cm"], PAPER_MPC["heading_deg"]),
    )

    metrics = {tuning: [log.metrics() for log in runs.values()] for tuning, runs in logs.items()}
    averages = {
        tuning: {what: float(np.mean([getattr(m, what) for m in several])) for what in PAPER_MPC}
        for tuning, several in metrics.items()
    }
    if as_json:
        runs = {tuning: dict(zip(boats, map(asdict, several), strict=True)) for tuning, several in metrics.items()}
        print_json({"runs": runs, "averages": averages, "published": PAPER_MPC, "picture": str(picture)})
        return
    table = new_table(["", "tight: cm", "deg", "paper: cm", "deg", "published: cm", "deg"])
    for name, tight, paper in zip(boats, metrics["tight"], metrics["paper"], strict=True):
        row = (tight.position_cm, tight.heading_deg, paper.position_cm, paper.heading_deg)
        table.add_row(name, *(f"{value:.4f}" for value in row), "-", "-")
    table.add_section()
    means = [f"{averages[tuning][what]:.4f}" for tuning in tunings for what in PAPER_MPC]
    table.add_row("average", *means, *(f"{value:.2f}" for value in PAPER_MPC.values()), style="bold")
    console = open_console()
    console.print("Mean position and heading error of an MPC that knows each boat: one lap of the paper's rectangle")
    console.print(f"(10 x 6 m, 0.6 m/s, {path.duration:.0f} s), ideal sea, from the reference state.\n")
    console.print(table)
    console.print(
        "\ntight: our tuning of the MPC. paper: our MPC with weights chosen to reproduce the paper's.\n"
        "published: the paper's own MPC; it gives the average only, no figure for each platform.\n"
    )
    console.print(f"picture: {picture}", soft_wrap=True)


def _share_of(on_step: Callable[[float, float], None], done: float, total: float) -> Callable[[float, float], None]:
    return lambda time, _: on_step(done + time, total)
