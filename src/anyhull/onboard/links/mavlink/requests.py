"""Asks the autopilot for the messages that the pilot needs, at their rates, until they arrive."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

from anyhull.onboard.links.mavlink.config import MAVLinkConfig
from anyhull.onboard.links.mavlink.wire import dialect

WINDOW = 2.0
"""Time over which messages are counted before they are asked for again, s."""

ENOUGH = 0.5
"""Share of the wanted rate below which they are: some are lost, and ArduPilot rounds to its loop's period."""

REFRESH = 10.0
"""Time after which origin and home are asked for again, s: they may be set anew."""

ECHO_RATE, MODE_RATE = 10.0, 10.0
"""Of the commands in force and of mode and arming, Hz."""

STREAMS = ("EXTENDED_STATUS", "RC_CHANNELS", "POSITION", "EXTRA1", "EXTRA3")
"""Groups of messages of a firmware without SET_MESSAGE_INTERVAL."""


class Requests:
    """What is wanted, and what has arrived."""

    def __init__(self, config: MAVLinkConfig, geographic: bool, send: Callable[[Any], None]) -> None:
        self._config, self._send, self._geographic = config, send, geographic
        self._count: Counter[str] = Counter()
        self._due, self._places_due = -math.inf, -math.inf
        self._unsupported = False
        echo = "RC_CHANNELS" if config.command == "wrench" else "SERVO_OUTPUT_RAW"
        self.rates = {"HEARTBEAT": MODE_RATE, echo: ECHO_RATE, "SYS_STATUS": 1.0, "EKF_STATUS_REPORT": 10.0}
        """Wanted messages, Hz."""
        self.rates |= {"ATTITUDE": config.rate}
        self.rates["ODOMETRY" if config.position == "odometry" else "LOCAL_POSITION_NED"] = config.rate

    def forget(self) -> None:
        """Ask for everything again, as after the autopilot has restarted."""
        self._due = self._places_due = -math.inf
        self._count.clear()

    def on_message(self, name: str) -> None:
        """Count a message."""
        if name in self.rates:
            self._count[name] += 1

    def on_ack(self, command: int, result: int) -> None:
        """Note that the firmware does not know SET_MESSAGE_INTERVAL."""
        if command == dialect.MAV_CMD_SET_MESSAGE_INTERVAL and result == dialect.MAV_RESULT_UNSUPPORTED:
            self._unsupported = True

    def step(self, now: float, places_known: bool) -> None:
        """Ask for what is missing at the time `now`, s, while the autopilot is heard."""
        if now >= self._places_due:
            self._places_due = now + (REFRESH if places_known else WINDOW)
            for name in ("GPS_GLOBAL_ORIGIN", "HOME_POSITION"):
                self._command(dialect.MAV_CMD_REQUEST_MESSAGE, _number(name))
        if now < self._due:
            return
        first, self._due = self._due == -math.inf, now + WINDOW
        short = [
            name for name, rate in self.rates.items() if first or self._count[name] < ENOUGH * min(rate, 40.0) * WINDOW
        ]
        if self._needs_global(short, first):
            short.append("GLOBAL_POSITION_INT")
        self._count.clear()
        for name in short:
            interval = 1e6 / self.rates.get(name, self._config.rate)
            self._command(dialect.MAV_CMD_SET_MESSAGE_INTERVAL, _number(name), interval)
        if short and self._unsupported:
            target = self._config.system, dialect.MAV_COMP_ID_AUTOPILOT1
            for stream in STREAMS:
                number, rate = getattr(dialect, f"MAV_DATA_STREAM_{stream}"), round(self._config.rate)
                self._send(dialect.MAVLink_request_data_stream_message(*target, number, rate, 1))

    def _needs_global(self, short: list[str], first: bool) -> bool:
        """Whether GLOBAL_POSITION_INT has to take the place of a local position that does not come."""
        return not first and "LOCAL_POSITION_NED" in short and self._count["LOCAL_POSITION_NED"] == 0

    def _command(self, command: int, *values: float) -> None:
        numbers = [*map(float, values), *([0.0] * (7 - len(values)))]
        target = self._config.system, dialect.MAV_COMP_ID_AUTOPILOT1
        self._send(dialect.MAVLink_command_long_message(*target, command, 0, *numbers))


def _number(name: str) -> int:
    number: int = getattr(dialect, f"MAVLINK_MSG_ID_{name}")
    return number
