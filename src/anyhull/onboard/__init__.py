"""What a boat needs around a controller: estimator, guard, allocation, links, and the loop that joins them."""

from anyhull.onboard.allocation import Allocation, Allocator
from anyhull.onboard.autopilot import Autopilot
from anyhull.onboard.estimator import Estimate, Estimator
from anyhull.onboard.fence import Circle, Fence, Polygon
from anyhull.onboard.guard import Decision, Event, Guard
from anyhull.onboard.limits import Limits
from anyhull.onboard.links import UDP, Link
from anyhull.onboard.loop import run_autopilot
from anyhull.onboard.sensors import Sensors
from anyhull.onboard.setup import Setup

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
