"""The controllers to compare with: `MPC`, which knows the vessel's equations, and `PID`, as autopilots have it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from anyhull.controller import Controller
from anyhull.vessel import Vessel

if TYPE_CHECKING:
    from anyhull.control.mpc import MPC
    from anyhull.control.pid import PID

__all__ = ["CONTROLLERS", "MPC", "PID"]


def _mpc(tuning: str) -> Callable[[Vessel], Controller]:
    def build(vessel: Vessel) -> Controller:
        # CasADi takes a while to import, and only those who use it should need it.
        from anyhull.control.mpc import MPC

        return MPC(vessel, tuning=tuning)

    return build


def _pid(vessel: Vessel) -> Controller:
    from anyhull.control.pid import PID

    return PID(vessel)


CONTROLLERS: dict[str, Callable[[Vessel], Controller]] = {
    "mpc": _mpc("tight"),
    "mpc-paper": _mpc("paper"),
    "mpc-field": _mpc("field"),
    "pid": _pid,
}
"""Controllers that know the boat, by name: each builds one for a vessel."""


def __getattr__(name: str) -> Any:
    # Each is imported when it is asked for, so that a boat that runs neither needs neither.
    if name == "MPC":
        from anyhull.control.mpc import MPC

        return MPC
    if name == "PID":
        from anyhull.control.pid import PID

        return PID
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
