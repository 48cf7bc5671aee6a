"""Controllers by name, and runs with them."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Annotated, Any

import typer

from anyhull.cli.output import check_writable
from anyhull.control import CONTROLLERS
from anyhull.controller import Controller
from anyhull.errors import InputError, RunError, unknown
from anyhull.log import Log
from anyhull.pilot import Pilot
from anyhull.policy_file import SUFFIX, shipped
from anyhull.reference import Reference
from anyhull.sea import Sea
from anyhull.simulate import simulate
from anyhull.vessel import Vessel

SaveBoat = Annotated[
    Path | None,
    typer.Option("--save-boat", help="Write the boat as --controller adaptive has identified it to this new .toml."),
]


def check_save_boat(path: Path | None, controller: Controller) -> None:
    """Raise before a run whose boat could not be written after it."""
    from anyhull.identification.boat_file import check_new_boat

    if path is None:
        return
    if not hasattr(controller, "identified"):
        hint = "anyhull identify does it for the log of any controller"
        raise InputError(f"--save-boat: only --controller adaptive identifies the boat under way; {hint}")
    check_new_boat(path)
    check_writable(path)


def save_boat(path: Path | None, controller: Any, name_or_path: str, source: Path | None) -> dict[str, str]:
    """Write what `controller` has identified into the vessel's tables, if that was asked for; the path by content."""
    from anyhull.identification.boat_file import table_of, write_boat

    if path is None:
        return {}
    vessel = Vessel.load(name_or_path)
    found = controller.identified(source.name if source else "a run without a log", date.today().isoformat())
    return {"vessel": str(write_boat(path, table_of(name_or_path), found, vessel.limits))}


def run(controller: Controller, vessel: Vessel, reference: Reference, sea: Sea, **options: Any) -> Log:
    """`simulate`, with the failure of a controller as an error of the run."""
    try:
        return simulate(controller, vessel, reference, sea, **options)
    except RuntimeError as error:
        raise RunError(str(error)) from error


def controller(name: str, vessel: Vessel) -> Controller:
    """The controller of that name for a vessel: a classical one, a shipped policy, or one in a .safetensors file."""
    if name in CONTROLLERS:
        return CONTROLLERS[name](vessel)
    if name in shipped() or name.endswith(SUFFIX):
        return Pilot.load(name, vessel)
    raise InputError(unknown("controller", name, [*CONTROLLERS, *shipped()], f"accepted are {', '.join(names())}"))


def names() -> list[str]:
    """Names that `controller` accepts."""
    return [*CONTROLLERS, *shipped(), f"a policy{SUFFIX}"]
