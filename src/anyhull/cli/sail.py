"""`anyhull sail`: one vessel, any controller, reference and sea."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from anyhull.cli.controllers import controller, names, run
from anyhull.cli.output import AsJson, new_table, open_console, print_json, progress
from anyhull.cli.references import path_through, shape
from anyhull.errors import InputError
from anyhull.log import Log, Metrics
from anyhull.sea import PRESETS, Sea
from anyhull.vessel import Vessel

LONGEST = 24 * 3600.0
"""Longest run, s."""


def sail(
    controller_name: Annotated[str, typer.Option("--controller", help=f"{', '.join(names())}.")] = "field",
    vessel: Annotated[str, typer.Option(help="A name of the catalogue, or a path to a TOML file.")] = "platform-a",
    reference: Annotated[
        str | None, typer.Option(help="line, circle, rectangle, eight or hold; by default the paper's rectangle.")
    ] = None,
    waypoints: Annotated[
        str | None,
        typer.Option(
            help="Instead of a shape: 'x,y x,y ...' in m, or a CSV file; columns x,y[,speed[,heading in degrees]]. "
            "A path that ends where it began is closed."
        ),
    ] = None,
    speed: Annotated[float | None, typer.Option(help="m/s.")] = None,
    laps: Annotated[float | None, typer.Option(help="Times round a closed path.")] = None,
    heading: Annotated[float | None, typer.Option(help="A fixed heading apart from the path, degrees.")] = None,
    length: Annotated[float | None, typer.Option(help="Of a line, rectangle or eight, m.")] = None,
    width: Annotated[float | None, typer.Option(help="Of a rectangle or eight, m.")] = None,
    radius: Annotated[float | None, typer.Option(help="Of a circle (negative: to the right) or of corners, m.")] = None,
    sea: Annotated[str, typer.Option(help=f"{', '.join(PRESETS)}.")] = "ideal",
    seed: Annotated[int, typer.Option(min=0, help="Draws the sea.")] = 0,
    duration: Annotated[float | None, typer.Option(help="s; by default as long as the reference takes.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Write path, errors and commands to this picture.")] = None,
    animate: Annotated[Path | None, typer.Option(help="Write an animation to this .gif or .mp4.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the log to this .npz.")] = None,
    as_json: AsJson = False,
) -> None:
    """Sail one vessel along a reference, and say how well it went."""
    check_outputs(plot, animate, out)
    boat = Vessel.load(vessel)
    options = {"length": length, "width": width, "radius": radius, "speed": speed, "laps": laps, "heading": heading}
    wanted = {name: value for name, value in options.items() if value is not None}
    if waypoints is not None and reference is not None:
        raise InputError(f"--reference {reference} with --waypoints: give one of them")
    path = (
        path_through(waypoints, wanted) if waypoints is not None else shape(reference or "rectangle", wanted, duration)
    )
    duration = path.duration if duration is None else duration
    if duration > LONGEST:
        raise InputError(f"duration = {duration:g} s: must be at most {LONGEST:g}, a day")
    water = Sea.preset(sea)
    steers = controller(controller_name, boat)
    infeasible = path.infeasible(boat)
    for complaint in infeasible:
        print("warning: infeasible reference:", complaint, file=sys.stderr)

    with progress(f"sailing {boat.name}") as on_step:
        log = run(steers, boat, path, water, seed=seed, duration=duration, on_step=on_step)
    told = {"shape": "waypoints", "waypoints": waypoints} if waypoints else {"shape": reference or "rectangle"}
    log = replace(log, about=log.about | {"controller": controller_name, "reference": told | wanted})
    files = _write(log, plot, animate, out)
    if as_json:
        told_run = {
            "vessel": vessel,
            "controller": controller_name,
            "reference": told | wanted,
            "sea": sea,
            "seed": seed,
        }
        told_run |= {"duration": duration, "delay": log.about["delay"], "metrics": asdict(log.metrics())}
        print_json(told_run | {"infeasible": infeasible, "files": files})
        return
    console = open_console()
    console.print(f"{boat.name}, {controller_name}, {told['shape']}, {sea} sea, {duration:.1f} s\n")
    console.print(_result(log.metrics()))
    for what, file in files.items():
        console.print(f"{what}: {file}", soft_wrap=True)


def check_outputs(plot: Path | None, animate: Path | None, out: Path | None) -> None:
    """Raise before a run if what it is to write could not be written after it."""
    if plot:
        from anyhull.plots import check_picture

        check_picture(plot)
    if animate:
        from anyhull.animation import check_animation

        check_animation(animate)
    if out and out.suffix != ".npz":
        raise InputError(f"{out}: a log is saved as a NumPy archive: give a path that ends in .npz")
    for path in (plot, animate, out):
        if path:
            folder = next(parent for parent in path.absolute().parents if parent.exists())
            try:
                if path.is_dir():
                    raise IsADirectoryError(None, "Is a directory")
                tempfile.TemporaryFile(dir=folder).close()
            except OSError as error:
                hint = "give a path in a folder you may write to"
                raise InputError(f"{path}: cannot be written: {error.strerror}; {hint}") from None


def _write(log: Log, plot: Path | None, animate: Path | None, out: Path | None) -> dict[str, str]:
    """Write what was asked for; the paths by what they hold."""
    files = {}
    if out:
        files["log"] = str(log.save(out))
    if plot:
        log.plot(plot)
        files["plot"] = str(plot)
    if animate:
        from anyhull import animation

        with progress("drawing frames") as on_frame:
            files["animation"] = str(animation.animate(log, animate, on_frame=on_frame))
    return files


def _result(metrics: Metrics) -> Table:
    table = new_table(["error", "mean", "std", "max"])
    position = (metrics.position_cm, metrics.position_std_cm, metrics.position_max_cm)
    heading = (metrics.heading_deg, metrics.heading_std_deg, metrics.heading_max_deg)
    table.add_row("position (cm)", *(f"{value:.4f}" for value in position))
    table.add_row("heading (deg)", *(f"{value:.4f}" for value in heading))
    table.add_section()
    table.add_row("commands at a limit (%)", f"{100 * metrics.saturation:.1f}", "", "")
    table.add_row("change of command a period", f"{metrics.roughness:.4f}", "", "")
    return table
