"""Disturbances and actuator delay: current, wind and waves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from anyhull.backend import Number, Numbers, clip, namespace
from anyhull.dynamics import PERIOD
from anyhull.errors import InputError, unknown


@dataclass(frozen=True)
class Sea:
    """Bounds and decay rates of the disturbances, and the range of the actuator delay.

    Current and force are Ornstein-Uhlenbeck processes about zero with a stationary standard deviation of half
    their bound, started in their stationary state.
    """

    current: float = 0.0
    """Largest magnitude of the inertial-frame current, m/s."""
    force: float = 0.0
    """Largest body-frame wind and wave force on each axis, as a fraction of the actuator limit; in sway, for a boat
    that cannot push sideways, of its surge limit."""
    delay: tuple[float, float] = (0.0, 0.0)
    """Range from which the actuator delay of a run is drawn, s."""
    current_decay: float = 0.05
    """Decay rate lambda of the current, 1/s."""
    force_decay: float = 0.5
    """Decay rate of the wind and wave force, 1/s."""

    def __post_init__(self) -> None:
        for name in ("current", "force"):
            if not 0 <= getattr(self, name) < math.inf:
                raise InputError(f"{name} = {getattr(self, name)!r}: must be zero or more and finite")
        for name in ("current_decay", "force_decay"):
            if not 0 < getattr(self, name) < math.inf:
                raise InputError(f"{name} = {getattr(self, name)!r}: must be positive and finite")
        low, high = self.delay
        if not 0 <= low <= high <= LONGEST_DELAY:
            raise InputError(f"delay = {self.delay!r}: must be 0 <= low <= high <= {LONGEST_DELAY} s")

    @staticmethod
    def ideal() -> Sea:
        """Still water, no wind, no delay: the paper's simulation study."""
        return PRESETS["ideal"]

    @staticmethod
    def field() -> Sea:
        """The paper's field conditions: 10 % wind and waves, current up to 0.2 m/s, delay 0 to 200 ms."""
        return PRESETS["field"]

    @staticmethod
    def preset(name: str) -> Sea:
        """The sea of that name: one of `PRESETS`."""
        if name not in PRESETS:
            raise InputError(unknown("sea", name, PRESETS))
        return PRESETS[name]

    @property
    def commands(self) -> int:
        """Number of commands that can be active or in transit within one control period of 0.1 s."""
        return self.in_transit(PERIOD)

    def in_transit(self, period: float) -> int:
        """Number of commands that can be active or in transit within one control period, s."""
        return 1 + math.ceil(self.delay[1] / period - 1e-9)

    def scaled(self, length: float, time: float) -> Sea:
        """This sea in SI, if it is stated in units of `length` m and `time` s."""
        return replace(
            self,
            current=self.current * length / time,
            delay=(self.delay[0] * time, self.delay[1] * time),
            current_decay=self.current_decay / time,
            force_decay=self.force_decay / time,
        )


LONGEST_DELAY = 60.0
"""Largest accepted actuator delay, s: far beyond that of the largest ship."""

PRESETS = {
    "ideal": Sea(),
    "current": Sea(current=0.2),
    "wind": Sea(force=0.1),
    "delay": Sea(delay=(0.2, 0.2)),
    "field": Sea(current=0.2, force=0.1, delay=(0.0, 0.2)),
    "rough": Sea(current=0.3, force=0.2, delay=(0.1, 0.3)),
}
"""Seas by name."""


def drift(value: Number, normal: Number, bound: Number, decay: float, dt: float = PERIOD) -> Any:
    """One exact step of an Ornstein-Uhlenbeck process of standard deviation bound / 2, before clipping."""
    keep = math.exp(-decay * dt)
    return keep * value + math.sqrt(1 - keep * keep) * (bound / 2) * normal


def drift_current(current: Numbers, normals: Numbers, sea: Sea, dt: float = PERIOD) -> tuple[Any, Any]:
    """The inertial-frame current (x, y) one control period later, clipped in magnitude."""
    drifted = [drift(c, n, sea.current, sea.current_decay, dt) for c, n in zip(current, normals, strict=True)]
    return clip_current(drifted, sea)


def clip_current(current: Numbers, sea: Sea) -> tuple[Any, Any]:
    """`current` with its magnitude limited to `sea.current`."""
    x, y = current
    xp = namespace(x)
    # The small number keeps the square root differentiable at zero.
    scale = xp.minimum(1.0, sea.current / xp.sqrt(x * x + y * y + 1e-12))
    return x * scale, y * scale


def drift_force(force: Numbers, normals: Numbers, sea: Sea, dt: float = PERIOD) -> tuple[Any, ...]:
    """The body-frame wind and wave force (fractions of the limits) one control period later, clipped on each axis."""
    return tuple(
        clip(drift(f, n, sea.force, sea.force_decay, dt), -sea.force, sea.force)
        for f, n in zip(force, normals, strict=True)
    )


def delayed(commands: Sequence[Numbers], delay: Number, parts: int, period: float = PERIOD) -> list[tuple[Any, ...]]:
    """The active command in each of `parts` equal parts of the coming control period.

    `commands` are those issued at the start of this and of earlier periods, newest first; they must cover `delay`
    (s), which may be any real number. A part in which the command changes gets the time average, so that the impulse
    is exact.
    """
    width = period / parts
    xp = namespace(delay)
    active = []
    for part in range(parts):
        begin, end = part * width, (part + 1) * width
        # Command i was issued i periods ago, takes effect after `delay` and lasts one period.
        shares = [
            clip(xp.minimum(end, delay - (i - 1) * period) - xp.maximum(begin, delay - i * period), 0.0, width) / width
            for i in range(len(commands))
        ]
        active.append(
            tuple(
                sum(share * command[axis] for share, command in zip(shares, commands, strict=True)) for axis in range(3)
            )
        )
    return active
