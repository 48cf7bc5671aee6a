"""The controllers to compare with: `MPC`, which knows the vessel's equations, and `PID`, as autopilots have it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anyhull.control.mpc import MPC
    from anyhull.control.pid import PID

__all__ = ["MPC", "PID"]


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
