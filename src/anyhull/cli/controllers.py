"""Controllers by name, and runs with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from anyhull.controller import Controller
from anyhull.errors import InputError, RunError, unknown
from anyhull.log import Log
from anyhull.pilot import Pilot, shipped
from anyhull.reference import Reference
from anyhull.sea import Sea
from anyhull.simulate import simulate
from anyhull.vessel import Vessel


def run(steers: Controller, boat: Vessel, path: Reference, water: Sea, **options: Any) -> Log:
    try:
        return simulate(steers, boat, path, water, **options)
    except RuntimeError as error:  # a controller that has no command to give
        raise RunError(str(error)) from error


def controller(name: str, vessel: Vessel) -> Controller:
    """The controller of that name for a vessel: a classical one, a shipped policy, or one in a .safetensors file."""
    if name in CONTROLLERS:
        return CONTROLLERS[name](vessel)
    if name in shipped() or name.endswith(".safetensors"):
        return Pilot.load(name, vessel)
    raise InputError(unknown("controller", name, [*CONTROLLERS, *shipped()], f"accepted are {', '.join(names())}"))


def names() -> list[str]:
    """What `controller` takes."""
    return [*CONTROLLERS, *shipped(), "a policy.safetensors"]


def mpc(tuning: str) -> Callable[[Vessel], Controller]:
    def build(vessel: Vessel) -> Controller:
        # CasADi takes a while to import, and only those who use it should need it.
        from anyhull.control import MPC

        built: Controller = MPC(vessel, tuning=tuning)
        return built

    return build


def _pid(vessel: Vessel) -> Controller:
    from anyhull.control import PID

    built: Controller = PID(vessel)
    return built


CONTROLLERS: dict[str, Callable[[Vessel], Controller]] = {
    "mpc": mpc("tight"),
    "mpc-paper": mpc("paper"),
    "mpc-field": mpc("field"),
    "pid": _pid,
}
"""Controllers by name: each builds one for a vessel."""
