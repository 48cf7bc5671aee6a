"""What a boat needs around a controller: estimator, guard, allocation, links, and the loop that joins them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from anyhull.onboard.estimator import Estimate, Estimator
from anyhull.onboard.fence import Circle, Fence, Polygon
from anyhull.onboard.filter import Sensors
from anyhull.onboard.guard import Decision, Event, Guard, Limits
from anyhull.onboard.links import UDP, Link
from anyhull.onboard.setup import Setup

if TYPE_CHECKING:
    from anyhull.onboard.allocation import Allocation, Allocator
    from anyhull.onboard.autopilot import Autopilot
    from anyhull.onboard.loop import run_autopilot

__all__ = [
    "UDP",
    "Allocation",
    "Allocator",
    "Autopilot",
    "Circle",
    "Decision",
    "Estimate",
    "Estimator",
    "Event",
    "Fence",
    "Guard",
    "Limits",
    "Link",
    "Polygon",
    "Sensors",
    "Setup",
    "run_autopilot",
]

# Imported on demand: they need a solver, which boats with their own allocation do without.
_LAZY = {"Allocation": "allocation", "Allocator": "allocation", "Autopilot": "autopilot", "run_autopilot": "loop"}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(f"anyhull.onboard.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
