"""What the autopilot's heartbeat says: whether it is a rover or boat of ArduPilot, armed, and in which mode."""

from __future__ import annotations

import math
from typing import Any, Literal

from anyhull.onboard.links.mavlink.wire import dialect

SILENCE = 2.5
"""Time without a heartbeat of the autopilot after which its mode is not known, s."""

MODES = {0: "MANUAL", 1: "ACRO", 3: "STEERING", 4: "HOLD", 5: "LOITER", 6: "FOLLOW", 7: "SIMPLE", 8: "DOCK"}
MODES |= {9: "CIRCLE", 10: "AUTO", 11: "RTL", 12: "SMART_RTL", 15: "GUIDED", 16: "INITIALISING"}
"""Modes of ArduPilot's Rover by `custom_mode`."""

MANUAL, HOLD = 0, 4

LATE = 64
"""Numbers by which a message may be behind the last one, of 256, and count as late."""

VEHICLES = (dialect.MAV_TYPE_GROUND_ROVER, dialect.MAV_TYPE_SURFACE_BOAT)
"""Types whose modes are those of `MODES`; mode 0 of a copter is another one."""


class Heartbeat:
    """The last heartbeat of the autopilot."""

    def __init__(self, system: int) -> None:
        self._system = system
        self._last: Any = None
        self._time = -math.inf

    @property
    def seen(self) -> bool:
        """Whether there was one."""
        return self._last is not None

    def take(self, message: Any, arrival: float) -> bool:
        """Take a heartbeat; not one that is older than the last."""
        if self._last is not None and arrival - self._time < 1.0:
            behind = (self._last.get_seq() - message.get_seq()) % 256
            if 0 < behind < LATE:
                return False
        self._last, self._time = message, arrival
        return True

    def expire(self) -> None:
        """Wait for another one before anything is permitted."""
        self._time = -math.inf

    def alive(self, now: float) -> bool:
        """Whether it is heard, and a vehicle that we know how to steer."""
        return self._last is not None and now - self._time <= SILENCE and not self.foreign()

    def permits(self, now: float) -> bool:
        """Whether commands may be sent: armed, in MANUAL, and known to be so."""
        return self.alive(now) and self.operator() == "auto"

    def operator(self) -> Literal["auto", "manual", "stop"]:
        """The operator's switch: in MANUAL we steer, in HOLD or disarmed nobody does, else another does."""
        if not self._armed or self._last.custom_mode == HOLD:
            return "stop"
        return "auto" if self._last.custom_mode == MANUAL else "manual"

    def foreign(self) -> str:
        """Why this is not a vehicle whose modes we know, or empty."""
        if self._last is None:
            return ""
        if self._last.autopilot != dialect.MAV_AUTOPILOT_ARDUPILOTMEGA:
            return f"autopilot {self._last.autopilot} of system {self._system}: must be ArduPilot (3)"
        if self._last.type not in VEHICLES:
            return f"vehicle type {self._last.type} of system {self._system}: must be a rover (10) or a boat (11)"
        return ""

    def unready(self) -> str:
        """What the operator has to switch, or empty."""
        if not self._armed:
            return "disarmed: arm the autopilot"
        mode = self._last.custom_mode
        return "" if mode == MANUAL else f"mode {MODES.get(mode, mode)}: switch to MANUAL"

    @property
    def _armed(self) -> bool:
        return bool(self._last.base_mode & dialect.MAV_MODE_FLAG_SAFETY_ARMED)
