"""`anyhull trial`: seeded sea trials of a boat's twin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anyhull.cli.boats import load, warn
from anyhull.cli.controllers import controller, names
from anyhull.cli.output import AsJson, new_table, open_console, print_json, progress
from anyhull.cli.references import shape
from anyhull.cli.sail import check_outputs
from anyhull.errors import RunError
from anyhull.study import published
from anyhull.trial.water import WATERS, Water

if TYPE_CHECKING:
    from anyhull.trial.report import Report


def trial(
    vessel: Annotated[str, typer.Option(help="A name of the catalogue, or a path to a TOML file.")] = "platform-a",
    controller_name: Annotated[str, typer.Option("--controller", help=f"{', '.join(names())}.")] = "field",
    trials: Annotated[int, typer.Option(min=1, max=1000, help="How many, each with a seed of its own.")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="Of the first trial; the next has the next.")] = 0,
    sea: Annotated[str, typer.Option(help=f"{', '.join(WATERS)}.")] = "lake",
    reference: Annotated[str, typer.Option(help="line, circle, rectangle, eight or hold.")] = "rectangle",
    speed: Annotated[float | None, typer.Option(help="m/s.")] = None,
    laps: Annotated[float | None, typer.Option(help="Times round a closed path that are measured.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Write path, errors and commands of the first trial to it.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the log of the first trial to this .npz.")] = None,
    as_json: AsJson = False,
) -> None:
    """Try a boat in a sea trial: the loop as on the boat, around a twin that is not the model it was trained on."""
    check_outputs(plot, None, out)
    setup = load(vessel)
    water = Water.preset(sea)
    wanted = {name: value for name, value in (("speed", speed), ("laps", laps)) if value is not None}
    path = shape(reference, wanted, None)
    from anyhull.trial.report import report
    from anyhull.trial.run import sea_trial
    from anyhull.trial.twin import Nature, fitted

    setup = replace(setup, vessel=fitted(setup.vessel))
    warn(setup.vessel, path)
    steers = controller(controller_name, setup.vessel)
    logs = []
    with progress(f"{trials} trials of {setup.vessel.name}") as on_step:
        for i in range(trials):
            report_share = on_step and partial(_share, on_step, i, trials)
            try:
                log = sea_trial(steers, setup, path, Nature(water=water), seed=seed + i, on_step=report_share)
            except RuntimeError as error:
                raise RunError(str(error)) from error
            logs.append(replace(log, about=log.about | {"controller": controller_name, "sea_name": sea}))
    files = {}
    if out:
        files["log"] = str(logs[0].save(out))
    if plot:
        logs[0].plot(plot)
        files["plot"] = str(plot)
    found = report(logs)
    if as_json:
        each = [
            {"seed": seed + i, "estimated": asdict(log.believed.metrics()), "true": asdict(log.metrics())}
            for i, log in enumerate(logs)
        ]
        told = {"vessel": vessel, "controller": controller_name, "sea": sea, "reference": {"shape": reference} | wanted}
        print_json(told | {"report": asdict(found), "each": each, "files": files})
        return
    height, period = water.waves
    console = open_console()
    console.print(
        f"{setup.vessel.name}, {controller_name}, {reference}, {trials} trial{'s' * (trials > 1)} from seed {seed}\n"
        f"{sea} sea: wind {water.wind:g} m/s, waves {100 * height:.1f} cm every {period:.1f} s, "
        f"current up to {water.current:g} m/s\n"
    )
    _print(console.print, found, _printed(setup.vessel.name, controller_name))
    for what, file in files.items():
        console.print(f"{what}: {file}", soft_wrap=True)


def _share(on_step: Callable[[float, float], None], done: int, trials: int, time: float, whole: float) -> None:
    on_step(done + time / whole, trials)


def _print(say: Callable[..., None], found: Report, paper: published.Printed | None) -> None:
    table = new_table(["error", "mean", "± trials", "median", "± time", "max", *(["the paper's"] if paper else [])])
    rows = (
        ("position, estimated (cm)", found.estimated_position_cm, paper and paper[:2]),
        ("position, true (cm)", found.true_position_cm, None),
        ("heading, estimated (deg)", found.estimated_heading_deg, paper and paper[2:]),
        ("heading, true (deg)", found.true_heading_deg, None),
    )
    for name, value, theirs in rows:
        numbers = [f"{number:.2f}" for number in (value.mean, value.std, value.median, value.within, value.most)]
        beside = [f"{theirs[0]} ± {theirs[1]}" if theirs else ""] if paper else []
        table.add_row(name, *numbers, *beside)
    say(table)
    say(
        f"change of command a period {found.roughness:.4f}, commands at a limit {100 * found.saturation:.1f} %, "
        f"beyond the thrusters {100 * found.unmet:.1f} %"
    )
    say(f"came to the end {found.arrived} of {found.trials}, stopped by the guard {found.stops} times")
    if found.events:
        say("noted: " + ", ".join(f"{what} {times}" for what, times in found.events.items()), soft_wrap=True)


def _printed(vessel: str, controller: str) -> published.Printed | None:
    """The paper's own trial of that boat under that controller."""
    row = {"field": "student", "mpc": "mpc-field", "mpc-paper": "mpc-field"}.get(controller)
    row = row or controller.removeprefix("field-").split("-platform")[0]
    return published.FIELD.get(vessel[: len("Platform A")].lower().replace(" ", "-"), {}).get(row)
