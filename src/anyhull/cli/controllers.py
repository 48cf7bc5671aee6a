"""Controllers by name, and runs with them."""

from __future__ import annotations

from typing import Any

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
