"""`anyhull simulate`: one vessel with any controller, reference and sea."""

from __future__ import annotations

import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from anyhull.cli.controllers import controller, names, run
from anyhull.cli.output import AsJson, check_outputs, new_table, open_console, print_json, progress, write_files
from anyhull.cli.references import path_through, shape
from anyhull.errors import InputError
from anyhull.log import Metrics
from anyhull.sea import PRESETS, Sea
from anyhull.vessel import Vessel
from anyhull.viz.captions import METRICS, sea_label

LONGEST = 24 * 3600.0
"""Longest run, s."""


def simulate(
    controller_name: Annotated[str, typer.Option("--controller", help=f"{', '.join(names())}.")] = "field",
    vessel: Annotated[str, typer.Option(help="A name of the catalogue, or a path to a TOML file.")] = "platform-a",
    reference: Annotated[
        str | None, typer.Option(help="line, circle, rectangle, eight or hold; by default the paper's rectangle.")
    ] = None,
    waypoints: Annotated[
        str | None,
        typer.Option(
            help="Instead of a shape: 'x,y x,y ...' in m, or a CSV file; columns x,y[,speed[,heading in degrees]]. "
            "The path is closed if the last waypoint is the first."
        ),
    ] = None,
    speed: Annotated[float | None, typer.Option(help="m/s.")] = None,
    laps: Annotated[float | None, typer.Option(help="Laps of a closed path.")] = None,
    heading: Annotated[float | None, typer.Option(help="A fixed heading, degrees; by default along the path.")] = None,
    length: Annotated[float | None, typer.Option(help="Of a line, rectangle or eight, m.")] = None,
    width: Annotated[float | None, typer.Option(help="Of a rectangle or eight, m.")] = None,
    radius: Annotated[float | None, typer.Option(help="Of a circle (negative: to the right) or of corners, m.")] = None,
    sea: Annotated[str, typer.Option(help=f"{', '.join(PRESETS)}.")] = "ideal",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the sea.")] = 0,
    duration: Annotated[float | None, typer.Option(help="s; by default that of the reference.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Write path, errors and commands to this figure.")] = None,
    animate: Annotated[Path | None, typer.Option(help="Write an animation to this .gif or .mp4.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the log to this .npz.")] = None,
    as_json: AsJson = False,
) -> None:
    """Simulate one vessel along a reference and report its tracking errors."""
    check_outputs(plot, animate, out)
    boat = Vessel.load(vessel)
    given = {"length": length, "width": width, "radius": radius, "speed": speed, "laps": laps, "heading": heading}
    options = {name: value for name, value in given.items() if value is not None}
    if waypoints is not None and reference is not None:
        raise InputError(f"--reference {reference} with --waypoints: give one of the two")
    name = reference or ("rectangle" if waypoints is None else "waypoints")
    path = shape(name, options, duration) if waypoints is None else path_through(waypoints, options)
    duration = path.duration if duration is None else duration
    if duration > LONGEST:
        raise InputError(f"duration = {duration:g} s: must be at most {LONGEST:g} s, one day")
    preset = Sea.preset(sea)
    chosen = controller(controller_name, boat)
    infeasible = path.infeasible(boat)
    for reason in infeasible:
        print("warning: infeasible reference:", reason, file=sys.stderr)

    with progress(f"simulating {boat.name}") as on_step:
        log = run(chosen, boat, path, preset, seed=seed, duration=duration, on_step=on_step)
    asked: dict[str, Any] = {"shape": name} | ({"waypoints": waypoints} if waypoints else {}) | options
    log = replace(log, about=log.about | {"controller": controller_name, "reference": asked})
    files = write_files(log, plot, animate, out)
    if as_json:
        document = {"vessel": vessel, "controller": controller_name, "reference": asked, "sea": sea, "seed": seed}
        document |= {"duration": duration, "delay": log.about["delay"], "metrics": asdict(log.metrics())}
        print_json(document | {"infeasible": infeasible, "files": files})
        return
    console = open_console()
    console.print(f"{boat.name}, {controller_name}, {name}, {sea_label(sea)}, {duration:.1f} s\n")
    console.print(_table(log.metrics()))
    for what, file in files.items():
        console.print(f"{what}: {file}", soft_wrap=True)


def _table(metrics: Metrics) -> Table:
    table = new_table(["error", "mean", "std", "max"])
    position = (metrics.position_cm, metrics.position_std_cm, metrics.position_max_cm)
    heading = (metrics.heading_deg, metrics.heading_std_deg, metrics.heading_max_deg)
    table.add_row(METRICS["position_cm"], *(f"{value:.4f}" for value in position))
    table.add_row(METRICS["heading_deg"], *(f"{value:.4f}" for value in heading))
    table.add_section()
    table.add_row(METRICS["delta_tau"], f"{metrics.delta_tau:.4f}", "", "")
    table.add_row(f"{METRICS['saturation']}, %", f"{100 * metrics.saturation:.1f}", "", "")
    return table
