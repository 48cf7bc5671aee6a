"""What the twin's board reports of the boat itself: thrust, battery, leak sensor, tilt and the operator's switch.

They are sent with the status, so that they add nothing to what its time stamps say about the clock.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np

from anyhull.backend import to_body
from anyhull.onboard.messages import Battery, Leak, Message, Operator, Status, Tilt
from anyhull.twin.propulsion import Propulsion

STATUS_PERIOD = 0.1
"""Time between two status messages, and between two of the tilt, s."""

OPERATOR_EVERY, BATTERY_EVERY = 5, 10
"""Status messages to one of the operator's switch, and to one of the battery and of the leak sensor."""

THRUST_NOISE = 0.02
"""Standard deviation of a measured thrust, as a fraction of the largest: the current of a motor."""

TILT_NOISE = 0.005
"""Standard deviation of roll and pitch, rad."""

ENDURANCE = 24 * 3600.0
"""Time for which a full battery feeds all thrusters at full thrust, s."""

HOTEL_LOAD = 0.05
"""Power of everything else, as a fraction of that of all thrusters at full thrust."""


Mode = Literal["auto", "manual", "stop"]
"""Positions of the operator's switch."""


class Reading(NamedTuple):
    """A measurement, its time, and the time of its arrival."""

    arrival: float
    kind: type[Message]
    time: float
    values: dict[str, Any]


class Monitors:
    """The reports of one boat."""

    def __init__(self, random: np.random.Generator) -> None:
        self.charge = 1.0
        """Of the battery, as a fraction."""
        self.water = False
        """Whether there is water in the hull."""
        self.heel = 0.0
        """Roll beside that of the waves, rad: a shifted load."""
        self._random = random
        self._count = 0
        self._last_operator = ""

    def read(
        self,
        now: float,
        status: dict[str, Any],
        propulsion: Propulsion,
        slope: tuple[float, float],
        psi: float,
        operator: Mode,
    ) -> list[Reading]:
        """The reports at a time, every `STATUS_PERIOD`: the board's status and the rest, for a slope of the surface."""
        thrust = np.array(propulsion.measured)
        load = float(np.mean(np.abs(thrust) ** 1.5))  # of a propeller at rest in the water, momentum theory
        self.charge = max(0.0, self.charge - (HOTEL_LOAD + load) * STATUS_PERIOD / ENDURANCE)
        thrust = np.clip(thrust + THRUST_NOISE * self._random.standard_normal(len(thrust)), -2.0, 2.0)
        ahead, aside = to_body(*slope, psi)
        roll, pitch = (TILT_NOISE * self._random.standard_normal(2)).tolist()
        # Bow up is positive, and so is the side of positive sway down.
        tilt = {"roll": self.heel + roll - math.atan(aside), "pitch": pitch + math.atan(ahead)}
        reports: list[tuple[type[Message], dict[str, Any]]] = [
            (Status, status | {"thrust": tuple(thrust.tolist())}),
            (Tilt, tilt),
        ]
        if operator != self._last_operator or self._count % OPERATOR_EVERY == 0:
            self._last_operator = operator
            reports.append((Operator, {"mode": operator}))
        if self._count % BATTERY_EVERY == 0:
            reports += [(Battery, {"charge": self.charge}), (Leak, {"water": self.water})]
        self._count += 1
        return [Reading(now, kind, now, values) for kind, values in reports]
