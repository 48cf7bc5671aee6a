"""What a real boat needs around a controller: forces to thrusters, sensors to a state, and a guard between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from anyhull.boat.estimator import Estimate, Estimator
from anyhull.boat.fence import Circle, Fence, Polygon
from anyhull.boat.filter import Sensors
from anyhull.boat.guard import Decision, Event, Guard, Limits

if TYPE_CHECKING:
    from anyhull.boat.allocation import Allocation, Allocator

__all__ = [
    "Allocation",
    "Allocator",
    "Circle",
    "Decision",
    "Estimate",
    "Estimator",
    "Event",
    "Fence",
    "Guard",
    "Limits",
    "Polygon",
    "Sensors",
]


def __getattr__(name: str) -> Any:
    # Imported when asked for: it needs a solver, which boats with their own allocation do without.
    if name in ("Allocation", "Allocator"):
        from anyhull.boat import allocation

        return getattr(allocation, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
