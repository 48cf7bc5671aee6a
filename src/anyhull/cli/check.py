"""`anyhull check`: a boat's file before the water, by sails of the hulls that it may describe."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anyhull.cli.controllers import controller, names
from anyhull.cli.output import AsJson, check_writable, new_table, open_console, print_json, progress
from anyhull.errors import InputError, RunError
from anyhull.onboard.setup import Setup
from anyhull.preflight import HULLS, assess
from anyhull.preflight.sails import MOST_SAILS
from anyhull.reference import FASTEST
from anyhull.twin import WATERS, Water, with_thrusters

if TYPE_CHECKING:
    from anyhull.preflight import Assessment


def check(
    boat: Annotated[str, typer.Argument(help="The boat's TOML file, or a name of the catalogue.")],
    controller_name: Annotated[str, typer.Option("--controller", help=f"{', '.join(names())}.")] = "field",
    hulls: Annotated[
        int | None,
        typer.Option(min=1, max=MOST_SAILS, help=f"Hulls that are sailed; by default {HULLS}, of ships fewer."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the first hull; the next has the next.")] = 0,
    sea: Annotated[str, typer.Option(help=f"{', '.join(WATERS)}.")] = "lake",
    speed: Annotated[float | None, typer.Option(help="Of the course, m/s; by default a cautious one.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; by default one a core.")] = None,
    page: Annotated[Path | None, typer.Option(help="Write the findings with pictures to this .html.")] = None,
    as_json: AsJson = False,
) -> None:
    """Say whether a boat is fit and what to ask of it, by simulated sails; exits with 1 on a no-go."""
    if speed is not None and not 0 < speed <= FASTEST:
        raise InputError(f"speed = {speed:g}: must be positive and at most {FASTEST:g} m/s")
    if page:
        from anyhull.preflight.page import check_page

        check_page(page)
        check_writable(page)
    setup, water = Setup.load(boat), Water.preset(sea)
    # The course of an assessment is nowhere; the fence is that of a real water.
    setup = replace(setup, vessel=with_thrusters(setup.vessel), fence=None)
    make = partial(controller, controller_name, setup.vessel)
    make()  # what cannot steer this boat is an error before any process starts
    with progress(f"hulls of {setup.vessel.name}") as on_progress:
        found = assess(
            setup,
            make,
            water=water,
            sea=sea,
            hulls=hulls,
            seed=seed,
            speed=speed,
            workers=workers,
            on_progress=on_progress,
        )
    files = {}
    if page:
        from anyhull.preflight.page import write_page

        write_page(found, page)
        files["page"] = str(page)
    if as_json:
        settings = {"boat": boat, "controller": controller_name, "seed": seed}
        print_json(settings | found.document() | {"files": files})
    else:
        _print(found, files)
    if not found.go:
        raise RunError(f"{boat}: {found.verdict}")


def _print(found: Assessment, files: dict[str, str]) -> None:
    from anyhull.preflight.page import MEASURED, answers, measured_rows

    console = open_console()
    console.print(f"{found.vessel}: {found.verdict}", soft_wrap=True)
    for text in found.restrictions:
        console.print(f"- {text}", soft_wrap=True)
    console.print(f"\n{len(found.results)} hulls {found.hull_source}", soft_wrap=True)
    for question, answer in answers(found):
        console.print(f"{question}: {answer}", soft_wrap=True)
    table = new_table(list(MEASURED))
    for row in measured_rows(found):
        table.add_row(*row)
    console.print()
    console.print(table)
    for what, file in files.items():
        console.print(f"{what}: {file}", soft_wrap=True)
