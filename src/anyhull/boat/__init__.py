"""What a real boat needs around a controller: forces to thrusters, sensors to a state, and a guard between them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from anyhull.boat.estimator import Estimate, Estimator
from anyhull.boat.fence import Circle, Fence, Polygon
from anyhull.boat.filter import Sensors
from anyhull.boat.guard import Decision, Event, Guard, Limits
from anyhull.boat.link import UDP, Link
from anyhull.boat.setup import Setup

if TYPE_CHECKING:
    from anyhull.boat.allocation import Allocation, Allocator
    from anyhull.boat.helm import Helm
    from anyhull.boat.loop import drive

__all__ = [
    "UDP",
    "Allocation",
    "Allocator",
    "Circle",
    "Decision",
    "Estimate",
    "Estimator",
    "Event",
    "Fence",
    "Guard",
    "Helm",
    "Limits",
    "Link",
    "Polygon",
    "Sensors",
    "Setup",
    "drive",
]

# Imported when asked for: they need a solver, which boats with their own allocation do without.
_LATER = {"Allocation": "allocation", "Allocator": "allocation", "Helm": "helm", "drive": "loop"}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(f"anyhull.boat.{_LATER[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
