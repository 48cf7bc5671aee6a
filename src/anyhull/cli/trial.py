"""`anyhull trial`: sea trials of a boat's twin, one seed each."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anyhull import paper
from anyhull.cli.controllers import SaveBoat, check_save_boat, controller, names, save_boat
from anyhull.cli.foxglove import Foxglove, FoxgloveAt, frame_of, live_view, paced
from anyhull.cli.hulls import say_hull
from anyhull.cli.onboard import warn
from anyhull.cli.output import AsJson, Mcap, check_outputs, new_table, open_console, print_json, progress, write_files
from anyhull.cli.references import (
    Angle,
    Axes,
    Corridor,
    DryRun,
    Heading,
    Laps,
    MissionFile,
    Origin,
    Radius,
    ShapeName,
    Spacing,
    Speed,
    Spline,
    Waypoints,
    chosen_mission,
    print_plan,
)
from anyhull.errors import RunError
from anyhull.log import describe_vessel
from anyhull.twin.water import WATERS, Water
from anyhull.viz.captions import METRICS

if TYPE_CHECKING:
    from anyhull.twin.report import Report
from anyhull.onboard.setup import Setup


def trial(
    vessel: Annotated[str, typer.Option(help="A name of the catalogue, or a path to a TOML file.")] = "platform-a",
    controller_name: Annotated[str, typer.Option("--controller", help=f"{', '.join(names())}.")] = "field",
    trials: Annotated[int, typer.Option(min=1, max=1000, help="Number of trials.")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the first trial; the next has the next.")] = 0,
    sea: Annotated[str, typer.Option(help=f"{', '.join(WATERS)}.")] = "lake",
    reference: ShapeName = None,
    mission: MissionFile = None,
    waypoints: Waypoints = None,
    origin: Origin = None,
    axes: Axes = None,
    speed: Speed = None,
    laps: Laps = None,
    heading: Heading = None,
    radius: Radius = None,
    corridor: Corridor = None,
    spacing: Spacing = None,
    angle: Angle = None,
    spline: Spline = False,
    plot: Annotated[Path | None, typer.Option(help="Write path, errors and commands of the first trial to it.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the log of the first trial to this .npz.")] = None,
    save: SaveBoat = None,
    mcap: Mcap = None,
    foxglove: Foxglove = False,
    foxglove_at: FoxgloveAt = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Run sea trials: the loop as on the boat, around a twin that differs from the training model."""
    check_outputs(plot, None, out, mcap)
    setup = Setup.load(vessel)
    water = Water.preset(sea)
    options = {"speed": speed, "laps": laps, "heading": heading, "radius": radius, "corridor": corridor}
    options |= {"spacing": spacing, "angle": angle, "spline": spline}
    plan, asked = chosen_mission(reference, mission, waypoints, options, origin=origin, axes=axes, vessel=setup.vessel)
    if dry_run:
        print_plan(plan, setup.vessel, plot, as_json)
        return
    from anyhull.twin.report import report
    from anyhull.twin.sea_trial import sea_trial
    from anyhull.twin.twin import TwinConfig, with_thrusters

    setup = replace(setup, vessel=with_thrusters(setup.vessel))
    chosen = controller(controller_name, setup.vessel)
    check_save_boat(save, chosen)
    for note in plan.notes:
        print("note:", note, file=sys.stderr)
    warn(setup.vessel, plan.reference, chosen)
    say_hull(setup.vessel, seed, trials)
    logs = []
    with (
        live_view(foxglove, foxglove_at, describe_vessel(setup.vessel), plan) as view,
        progress(f"{trials} trials of {setup.vessel.name}") as on_step,
    ):
        for i in range(trials):
            on_trial_step = on_step and partial(_on_trial_step, on_step, i, trials)
            try:
                watched: dict[str, Any] = {"on_step": on_trial_step, "on_row": paced(view)}
                log = sea_trial(chosen, setup, plan.reference, TwinConfig(water=water), seed=seed + i, **watched)
            except RuntimeError as error:
                raise RunError(str(error)) from error
            about = {"controller": controller_name, "reference": asked, "sea_name": sea} | frame_of(plan)
            logs.append(replace(log, about=log.about | about))
    # The controller forgets between trials: it is the boat of the last.
    files = write_files(logs[0], plot, None, out, mcap) | save_boat(save, chosen, vessel, None)
    found = report(logs)
    if as_json:
        each = [
            {"seed": seed + i, "estimated": asdict(log.estimated.metrics()), "true": asdict(log.metrics())}
            for i, log in enumerate(logs)
        ]
        document = {"vessel": vessel, "controller": controller_name, "sea": sea, "reference": asked}
        print_json(document | {"report": asdict(found), "each": each, "files": files})
        return
    height, period = water.waves
    console = open_console()
    console.print(
        f"{setup.vessel.name}, {controller_name}, {plan.name}, {trials} trial{'s' * (trials > 1)} from seed {seed}\n"
        f"{sea} sea: wind {water.wind:g} m/s, waves {100 * height:.1f} cm every {period:.1f} s, "
        f"current up to {water.current:g} m/s\n"
    )
    _print(console.print, found, _printed(setup.vessel.name, controller_name))
    for what, file in files.items():
        console.print(f"{what}: {file}", soft_wrap=True)


def _on_trial_step(on_step: Callable[[float, float], None], done: int, trials: int, time: float, whole: float) -> None:
    on_step(done + time / whole, trials)


def _print(write: Callable[..., None], found: Report, printed: paper.Printed | None) -> None:
    table = new_table(["error", "mean", "± trials", "median", "± time", "max", *(["the paper's"] if printed else [])])
    rows = (
        ("estimated position, cm", found.estimated_position_cm, printed and printed[:2]),
        ("true position, cm", found.true_position_cm, None),
        ("estimated heading, °", found.estimated_heading_deg, printed and printed[2:]),
        ("true heading, °", found.true_heading_deg, None),
    )
    for name, value, theirs in rows:
        numbers = [f"{number:.2f}" for number in (value.mean, value.std, value.median, value.within, value.most)]
        beside = [f"{theirs[0]} ± {theirs[1]}" if theirs else ""] if printed else []
        table.add_row(name, *numbers, *beside)
    write(table)
    write(
        f"{METRICS['delta_tau']} {found.delta_tau:.4f}, {METRICS['saturation']} {100 * found.saturation:.1f} %, "
        f"beyond the thrusters {100 * found.unmet:.1f} %"
    )
    write(f"arrived {found.arrived} of {found.trials}, stops by the guard {found.stops}")
    if found.events:
        write("events: " + ", ".join(f"{what} {times}" for what, times in found.events.items()), soft_wrap=True)


def _printed(vessel: str, controller: str) -> paper.Printed | None:
    """The paper's own trial of that boat and controller."""
    row = {"field": "student", "mpc": "mpc-field", "mpc-paper": "mpc-field"}.get(controller)
    row = row or controller.removeprefix("field-").split("-platform")[0]
    return paper.FIELD.get("-".join(vessel.lower().split()[:2]), {}).get(row)
