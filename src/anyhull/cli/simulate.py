"""`anyhull simulate`: one vessel with any controller, reference and sea."""

from __future__ import annotations

import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from anyhull.backend import Array
from anyhull.cli.controllers import SaveBoat, check_save_boat, controller, names, run, save_boat
from anyhull.cli.foxglove import Foxglove, FoxgloveAt, frame_of, live_view, paced
from anyhull.cli.hulls import say_hull, say_warnings
from anyhull.cli.output import AsJson, Mcap, check_outputs, new_table, open_console, print_json, progress, write_files
from anyhull.cli.references import (
    Angle,
    Axes,
    Corridor,
    DryRun,
    Heading,
    Laps,
    Length,
    MissionFile,
    Origin,
    Radius,
    ShapeName,
    Spacing,
    Speed,
    Spline,
    Waypoints,
    Width,
    chosen_mission,
    print_plan,
)
from anyhull.errors import InputError
from anyhull.legs import Legs
from anyhull.log import Metrics, describe_vessel
from anyhull.sea import PRESETS, Sea
from anyhull.vessel import Vessel
from anyhull.viz.captions import METRICS, sea_label

LONGEST = 24 * 3600.0
"""Longest run, s."""


def simulate(
    controller_name: Annotated[str, typer.Option("--controller", help=f"{', '.join(names())}.")] = "field",
    vessel: Annotated[str, typer.Option(help="A name of the catalogue, or a path to a TOML file.")] = "platform-a",
    reference: ShapeName = None,
    mission: MissionFile = None,
    waypoints: Waypoints = None,
    origin: Origin = None,
    axes: Axes = None,
    speed: Speed = None,
    laps: Laps = None,
    heading: Heading = None,
    length: Length = None,
    width: Width = None,
    radius: Radius = None,
    corridor: Corridor = None,
    spacing: Spacing = None,
    angle: Angle = None,
    spline: Spline = False,
    sea: Annotated[str, typer.Option(help=f"{', '.join(PRESETS)}.")] = "ideal",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the sea, and of the hull if the file has none.")] = 0,
    duration: Annotated[float | None, typer.Option(help="s; by default that of the reference.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Write path, errors and commands to this figure.")] = None,
    animate: Annotated[Path | None, typer.Option(help="Write an animation to this .gif or .mp4.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the log to this .npz.")] = None,
    save: SaveBoat = None,
    mcap: Mcap = None,
    foxglove: Foxglove = False,
    foxglove_at: FoxgloveAt = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Simulate one vessel along a reference and report its tracking errors."""
    check_outputs(plot, animate, out, mcap)
    boat = Vessel.load(vessel)
    options = {"length": length, "width": width, "radius": radius, "speed": speed, "laps": laps, "heading": heading}
    options |= {"corridor": corridor, "spacing": spacing, "angle": angle, "spline": spline}
    chosen, asked = chosen_mission(
        reference, mission, waypoints, options, origin=origin, axes=axes, vessel=boat, duration=duration
    )
    path = chosen.reference
    duration = path.duration if duration is None else duration
    if duration > LONGEST:
        raise InputError(f"duration = {duration:g} s: must be at most {LONGEST:g} s, one day")
    if dry_run:
        print_plan(chosen, boat, plot, as_json)
        return
    preset = Sea.preset(sea)
    say_warnings(boat)
    say_hull(boat, seed)
    pilot = controller(controller_name, boat)
    check_save_boat(save, pilot)
    for note in chosen.notes:
        print("note:", note, file=sys.stderr)
    infeasible = path.infeasible(boat)
    for reason in infeasible:
        print("warning: infeasible reference:", reason, file=sys.stderr)

    with (
        live_view(foxglove, foxglove_at, describe_vessel(boat), chosen) as view,
        progress(f"simulating {boat.name}") as on_step,
    ):
        watched = {"on_step": on_step, "on_row": paced(view)}
        log = run(pilot, boat, path, boat.scale.sea(preset), seed=seed, duration=duration, **watched)
    off = path.cross_track(log.time, log.state[:, :2]) if isinstance(path, Legs) else None
    log = replace(log, about=log.about | {"controller": controller_name, "reference": asked} | frame_of(chosen))
    files = write_files(log, plot, animate, out, mcap) | save_boat(save, pilot, vessel, out)
    if as_json:
        document = {"vessel": vessel, "controller": controller_name, "reference": asked, "sea": sea, "seed": seed}
        if chosen.waypoints:
            document |= {"deviation": chosen.deviation, "corridor": chosen.corridor, "notes": chosen.notes}
        if off is not None:
            document |= {"cross_track_cm": {"mean": 100 * off.mean(), "max": 100 * off.max()}}
        document |= {"duration": duration, "delay": log.about["delay"], "metrics": asdict(log.metrics())}
        print_json(document | {"infeasible": infeasible, "files": files})
        return
    console = open_console()
    console.print(f"{boat.name}, {controller_name}, {chosen.name}, {sea_label(sea)}, {duration:.1f} s\n")
    console.print(_table(log.metrics(), off))
    if chosen.waypoints:
        console.print(f"path: at most {chosen.deviation:.2f} m off the legs")
    for what, file in files.items():
        console.print(f"{what}: {file}", soft_wrap=True)


def _table(metrics: Metrics, cross_track: Array | None) -> Table:
    table = new_table(["error", "mean", "std", "max"])
    position = (metrics.position_cm, metrics.position_std_cm, metrics.position_max_cm)
    heading = (metrics.heading_deg, metrics.heading_std_deg, metrics.heading_max_deg)
    table.add_row(METRICS["position_cm"], *(f"{value:.4f}" for value in position))
    table.add_row(METRICS["heading_deg"], *(f"{value:.4f}" for value in heading))
    if cross_track is not None:
        figures = (cross_track.mean(), cross_track.std(), cross_track.max())
        table.add_row("distance from the legs, cm", *(f"{100 * value:.4f}" for value in figures))
    table.add_section()
    table.add_row(METRICS["delta_tau"], f"{metrics.delta_tau:.4f}", "", "")
    table.add_row(f"{METRICS['saturation']}, %", f"{100 * metrics.saturation:.1f}", "", "")
    return table
