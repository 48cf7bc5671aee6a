"""Pulse widths of ArduPilot's RC inputs and servo outputs, and the body wrench or thruster commands they stand for."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

PERCENT = 100
"""Steps of throttle and lateral in one direction: ArduPilot's Rover reads them as whole percents."""

IGNORE, RELEASE = 65535, 0
"""RC_CHANNELS_OVERRIDE: leave a channel as it is, and give one of the first eight back to the RC receiver."""

RELEASE_HIGH = 65534
"""The same for a channel from 9 on, where 0 means to leave it."""

NARROWEST, WIDEST = 800, 2200
"""Range of plausible pulses, µs."""

REMEMBERED = 20
"""Commands whose echo is looked for: two seconds."""


@dataclass(frozen=True)
class Calibration:
    """How ArduPilot scales one input or output: the parameters MIN, TRIM, MAX and REVERSED; pulses in µs."""

    minimum: int = 1100
    trim: int = 1500
    maximum: int = 1900
    reversed: bool = False

    @staticmethod
    def of(prefix: str, parameters: Mapping[str, float]) -> Calibration:
        """From the parameters of `RC1` or `SERVO3`, say; what is missing has ArduPilot's defaults."""
        default = Calibration()
        low, trim, high = (
            round(parameters.get(f"{prefix}_{name}", value))
            for name, value in (("MIN", default.minimum), ("TRIM", default.trim), ("MAX", default.maximum))
        )
        return Calibration(low, trim, high, parameters.get(f"{prefix}_REVERSED", 0.0) == 1.0)

    @property
    def valid(self) -> bool:
        """Whether both directions have a range."""
        return NARROWEST <= self.minimum < self.trim < self.maximum <= WIDEST

    def pulse(self, value: float, steps: int = 0) -> int:
        """The pulse for a value in [-1, 1], nearest of `steps` in each direction where ArduPilot has so few."""
        share = max(-1.0, min(1.0, -value if self.reversed else value))
        half = self.maximum - self.trim if share > 0 else self.trim - self.minimum
        # ArduPilot truncates toward zero, so the pulse must not fall short of its step.
        length = math.ceil(round(abs(share) * steps) * half / steps - 1e-9) if steps else round(abs(share) * half)
        return self.trim + int(math.copysign(length, share))

    def value(self, pulse: int, steps: int = 0) -> float:
        """The value in [-1, 1] that ArduPilot makes of a pulse."""
        offset = pulse - self.trim
        half = max(self.maximum - self.trim if offset > 0 else self.trim - self.minimum, 1)
        share = max(-1.0, min(1.0, offset / half))
        share = math.trunc(share * steps + math.copysign(1e-9, share)) / steps if steps else share
        return -share if self.reversed else share


class Mixer:
    """Surge, sway and yaw in [-1, 1] as pulses of the channels throttle, lateral and steering."""

    def __init__(self, shares: Sequence[float], numbers: Sequence[int], calibrations: Sequence[Calibration]) -> None:
        """Each in the order throttle, lateral, steering; `shares` are of the vessel's limits, see `MAVLinkConfig`."""
        self._shares, self._numbers, self._calibrations = tuple(shares), tuple(numbers), tuple(calibrations)

    @property
    def used(self) -> list[int]:
        """Numbers of the channels in use."""
        return [number for number, share in zip(self._numbers, self._shares, strict=True) if share > 0]

    def pulses(self, wrench: Sequence[float]) -> dict[int, int]:
        """Pulse by channel for a wrench, forward, to starboard and turning to starboard."""
        axes = zip(wrench, self._shares, self._numbers, self._calibrations, (PERCENT, PERCENT, 0), strict=True)
        return {number: c.pulse(x * share, steps) for x, share, number, c, steps in axes if share > 0}

    def wrench(self, pulses: Mapping[int, int], unmeasured: Sequence[float]) -> tuple[float, float, float]:
        """The wrench that pulses stand for; of an axis without a channel, `unmeasured`."""
        surge, sway, yaw = (
            max(-1.0, min(1.0, c.value(pulses[number], steps) / share)) if share > 0 else other
            for share, number, c, steps, other in zip(
                self._shares, self._numbers, self._calibrations, (PERCENT, PERCENT, 0), unmeasured, strict=True
            )
        )
        return surge, sway, yaw


class Sent(NamedTuple):
    """A command as it was sent."""

    seq: int
    pulses: dict[int, int]
    values: tuple[float, ...]
    """The wrench or the thrusters' commands."""


class Echo:
    """Finds the command that is in force, by the pulses that the autopilot reports."""

    def __init__(self) -> None:
        self._sent: deque[Sent] = deque(maxlen=REMEMBERED)

    def sent(self, seq: int, pulses: dict[int, int], values: Sequence[float]) -> None:
        """Note a command."""
        self._sent.append(Sent(seq, pulses, tuple(values)))

    def find(self, reported: Mapping[int, int]) -> Sent | None:
        """The newest command with these pulses."""
        return next((sent for sent in reversed(self._sent) if sent.pulses == reported), None)

    def clear(self) -> None:
        """Forget all: they are not in force any more."""
        self._sent.clear()
