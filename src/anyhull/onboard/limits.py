"""Thresholds of the guard: the table `[guard]` of a boat's file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from anyhull.scale import PERIOD, Scale
from anyhull.schema import check_types, require

MOST = {"step": 1.0, "high_command": 1.0, "battery": 1.0, "tilt": 1.57, "fence_margin": 1e5}
"""Largest values, by field; of the others `LONGEST`, in s or m: beyond it a rule would be none."""

LONGEST = 3600.0

POWERS = dict.fromkeys(("slow_distance", "off_path", "progress_distance", "arrival"), (1, 0)) | dict.fromkeys(
    (
        *("ramp", "hold", "settle", "handover_after", "dead_reckoning", "overrun", "chatter"),
        *("out_of_distribution", "thruster", "no_progress", "period"),
    ),
    (0, 1),
)
"""Powers of length and time of the limits that belong to the size of the boat."""


@dataclass(frozen=True)
class Limits:
    """Thresholds of the guard; seconds where no unit is named.

    Defaults are those of a boat of a metre, and a boat of another scale has them in its own units (`POWERS`).
    """

    step: float = 0.5
    """Largest change of the command on an axis in one period."""
    ramp: float = 1.0
    """Duration of a ramp from full command to zero."""
    hold: float = 0.5
    """Longest hold of the last command."""
    settle: float = 1.0
    """Time without a fault after which a ramp ends."""
    handover_after: float = 10.0
    """Duration of a ramp, or of a breach of the fence, after which the boat is handed over."""
    max_age: float = 0.3
    """Largest difference between the time of the state and now."""
    dead_reckoning: float = 5.0
    """Longest run by dead reckoning."""
    overrun: float = 0.5
    """Largest delay of the loop, or of consecutive overruns."""
    chatter: float = 3.0
    """Longest run in which the controller's command moves by more than `step` in every period."""
    out_of_distribution: float = 2.0
    """Longest run with latent or dynamics estimate outside their ranges."""
    uplink: float = 1.0
    """Longest time without the boat's confirmation of a command."""
    mismatch: float = 1.0
    """Longest time in which the boat reports other thruster commands than it was sent."""
    thruster: float = 2.0
    """Time of a thruster's deviation from its command after which it counts as dead, weak or stuck."""
    slow_distance: float = 2.0
    """Distance to the reference, m, from which the reference slows down."""
    off_path: float = 5.0
    """Distance to the reference, m, at which the boat stops."""
    high_command: float = 0.6
    """Command on an axis that counts as high, for `no_progress`."""
    no_progress: float = 6.0
    """Longest time of high command without progress."""
    progress_distance: float = 0.5
    """Movement within `no_progress` that counts as progress, m: 0.08 m/s."""
    arrival: float = 1.0
    """Largest distance to the last point, m, at which the boat has arrived."""
    stopping_time: float | None = None
    """Distance in which the boat stops, over its speed; by default from the vessel's damping, and the ramp."""
    fence_margin: float = 10.0
    """Distance of the default fence from the mission, m; at least five lengths."""
    battery: float = 0.15
    """Charge of the battery, as a fraction, below which the boat stops."""
    tilt: float = 0.6
    """Roll or pitch, rad, beyond which the boat is handed over after `tilt_time`."""
    tilt_time: float = 2.0
    """Longest time beyond `tilt`."""
    on_failure: Literal["hold", "return", "drift"] = "hold"
    """What the boat does after a failure that leaves it steerable: keep station, return along its track and keep
    station at its start, or drift with the thrusters off."""
    period: float = PERIOD
    """Control period."""

    def scaled(self, scale: Scale) -> Limits:
        """These limits for a boat of that scale: its length and time units count for what is at its default."""
        return scale.defaults(self, POWERS)

    def __post_init__(self) -> None:
        check_types(self)
        for field in self.__dataclass_fields__:
            value, most = getattr(self, field), MOST.get(field, LONGEST)
            fits = value is None or isinstance(value, str) or 0 < value <= most
            require(self, field, fits, f"positive and at most {most:g}")
        require(self, "off_path", self.off_path > self.slow_distance, f"above slow_distance = {self.slow_distance:g}")
