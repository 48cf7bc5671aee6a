"""Controllers beside the learned policies.

`Adaptive` identifies the boat under way. Baselines that know it: `MPC` with the vessel's equations of motion, cascaded
`PID`, and line of sight, `LOS`. Baselines that do not: `L1` adaptive control, and recursive least squares, `RLS`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from anyhull.control.l1 import L1
from anyhull.control.los import LOS
from anyhull.control.pid import PID
from anyhull.control.rls import RLS
from anyhull.controller import Controller
from anyhull.vessel import Vessel

if TYPE_CHECKING:
    from anyhull.control.adaptive import Adaptive
    from anyhull.control.mpc import MPC

__all__ = ["CONTROLLERS", "L1", "LOS", "MPC", "PID", "RLS", "Adaptive"]


def __getattr__(name: str) -> Any:
    # CasADi is optional and slow to import.
    if name == "Adaptive":
        from anyhull.control.adaptive import Adaptive

        return Adaptive
    if name == "MPC":
        from anyhull.control.mpc import MPC

        return MPC
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _mpc(tuning: str) -> Callable[[Vessel], Controller]:
    return lambda vessel: __getattr__("MPC")(vessel, tuning)  # type: ignore[no-any-return]


CONTROLLERS: dict[str, Callable[[Vessel], Controller]] = {
    "mpc": _mpc("tight"),
    "mpc-paper": _mpc("paper"),
    "mpc-field": _mpc("field"),
    "adaptive": lambda vessel: __getattr__("Adaptive")(vessel),  # type: ignore[no-any-return]
    "pid": PID,
    "los": LOS,
    "l1": L1,
    "rls": RLS,
}
"""Constructors of the controllers that are not a trained policy alone, by name."""
