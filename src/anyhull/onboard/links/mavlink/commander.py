"""Commands to the autopilot, and their end: nothing is sent without permission, and what was sent is taken back.

Overrides of the RC input are given back to the RC receiver. Where the pilot itself ends, they are neutral for
`NEUTRAL_TIME` before: without a receiver ArduPilot keeps the last value that it read. Where the operator has switched
the mode or disarmed, they are given back at once. Servo outputs that only we drive are set to their neutral pulse in
both cases: nobody else would stop them. The neutral pulses are those of the last command's calibration, since the
parameters may be changed, or have to be read again, while a command is in force.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

from anyhull.frames import mirror_body
from anyhull.onboard.links.mavlink.channels import IGNORE, RELEASE, RELEASE_HIGH, Calibration, Echo
from anyhull.onboard.links.mavlink.config import MAVLinkConfig
from anyhull.onboard.links.mavlink.parameters import Parameters
from anyhull.onboard.links.mavlink.wire import dialect
from anyhull.onboard.messages import Command

NEUTRAL_TIME = 0.15
"""Time of neutral overrides before they end, s: some periods of the autopilot's loop."""

REPEATS, REPEAT_TIME = 5, 0.1
"""How often the end is sent, and every how many s: a message may be lost."""

IN_FORCE_TIME = 0.7
"""Time without a report of one of our commands after which they count as not in force, s."""


class Commander:
    """Sends commands while it is permitted, takes them back, and finds them in the autopilot's reports."""

    def __init__(
        self, config: MAVLinkConfig, parameters: Parameters, send: Callable[[Any], None], rejected: Counter[str]
    ) -> None:
        """`rejected` counts commands that could not be sent, by reason."""
        self._config, self._parameters, self._send, self.rejected = config, parameters, send, rejected
        self._echo = Echo()
        self._held: dict[int, int] | None = None
        self._neutral: dict[int, int] = {}
        self.steered = False
        """Whether a command other than neutral has been sent since the autopilot started."""
        self._neutral_since = math.inf
        self._ending: dict[int, int] = {}
        self._repeats, self._repeat_due = 0, 0.0
        self._accepted, self._confirmed = -1, -math.inf
        self._last_seq, self._engaged = -1, False

    @property
    def holding(self) -> bool:
        """Whether commands of ours may be in force."""
        return self._held is not None

    def command(self, command: Command, permitted: bool, now: float) -> None:
        """Send a command, or take back what was sent where the pilot or the operator has ended."""
        self._last_seq, self._engaged = command.seq, command.engaged
        if not permitted:
            self.let_go(now)
            return
        wanted = command.wrench if self._config.command == "wrench" else command.thrusters
        values = self._checked(wanted)
        pulses, neutral = self._pulses(values), self._pulses([0.0] * len(wanted))
        usable = pulses is not None and neutral is not None and not self._parameters.unready()
        if usable and command.engaged:
            assert pulses is not None
            assert neutral is not None
            self._repeats, self._neutral_since, self._neutral = 0, math.inf, neutral
            self.steered = self.steered or pulses != neutral
            self._hold(pulses)
            self._echo.sent(command.seq, pulses, values)
        elif self._held is not None:
            self._end(now)

    def let_go(self, now: float) -> None:
        """Take back what was sent, at once: the operator has switched or disarmed, or is not heard any more."""
        if self._held is not None:
            self._finish(now)

    def step(self, now: float) -> None:
        """End the commands where the autopilot's parameters are not right any more, and repeat their end."""
        if self._held is not None and self._neutral_since == math.inf and self._parameters.unready():
            self._end(now)
        if self._held is not None and now - self._neutral_since >= NEUTRAL_TIME:
            self._finish(now)
        if self._repeats > 0 and now >= self._repeat_due:
            self._repeats, self._repeat_due = self._repeats - 1, now + REPEAT_TIME
            self._transmit(self._ending)

    def close(self, now: float, pause: Callable[[float], None]) -> None:
        """Neutral, then given back."""
        if self._held is not None:
            self._hold(self._neutral)
            pause(NEUTRAL_TIME)
            self._finish(now)
        for _ in range(min(self._repeats, 3)):
            self._transmit(self._ending)
        self._repeats = 0

    def in_force(self, reported: dict[int, int], permitted: bool, now: float) -> tuple[tuple[float, ...], bool, int]:
        """The commands in force by a report of the pulses, whether the thrusters are stopped, and the last accepted."""
        zero = (0.0,) * (3 if self._config.command == "wrench" else len(self._config.servos))
        if not permitted or (self._held is None and self._engaged):
            return zero, True, self._accepted
        if self._held is None:
            # The pilot has handed over: its zero commands have no effect, which is what they ask for.
            self._accepted, self._confirmed = self._last_seq, now
            return zero, False, self._accepted
        values = zero
        if (found := self._echo.find({n: reported.get(n, 0) for n in self._held})) is not None:
            self._accepted, self._confirmed, values = max(found.seq, self._accepted), now, found.values
        stopped = now - self._confirmed > IN_FORCE_TIME
        return (zero if stopped else self._measured(reported, values)), stopped, self._accepted

    def forget(self, now: float) -> None:
        """The autopilot has restarted, or seems to have: what was in force is taken back all the same."""
        self.let_go(now)
        self._confirmed, self.steered = -math.inf, False

    def _checked(self, values: tuple[float, ...]) -> tuple[float, ...]:
        """The values within [-1, 1]; zero for all where one is not a number."""
        if not all(map(math.isfinite, values)):
            self.rejected["command not finite"] += 1
            return (0.0,) * len(values)
        return tuple(max(-1.0, min(1.0, value)) for value in values)

    def _pulses(self, values: Any) -> dict[int, int] | None:
        """Pulse by channel or servo; None before the parameters have been read."""
        if self._config.command == "wrench":
            mixer = self._parameters.mixer()
            body = mirror_body(values) if self._config.axes == "enu" else values
            return None if mixer is None else mixer.pulses(body)
        found: dict[int, int] = {}
        if len(values) != len(self._config.servos):
            self.rejected["not one command for each of servos"] += 1
            return None
        for number, value in zip(self._config.servos, values, strict=True):
            calibration = self._servo(number)
            if calibration is None:
                return None
            found[number] = calibration.pulse(value)
        return found

    def _measured(self, reported: dict[int, int], unmeasured: tuple[float, ...]) -> tuple[float, ...]:
        """What the pulses reported stand for."""
        if self._config.command == "wrench":
            mixer, enu = self._parameters.mixer(), self._config.axes == "enu"
            if mixer is None or any(number not in reported for number in mixer.used):
                return unmeasured
            body = mixer.wrench(reported, mirror_body(unmeasured) if enu else unmeasured)
            return mirror_body(body) if enu else body
        found = []
        for number, other in zip(self._config.servos, unmeasured, strict=True):
            calibration = self._servo(number)
            found.append(other if calibration is None else calibration.value(reported.get(number, 0)))
        return tuple(found)

    def _servo(self, number: int) -> Calibration | None:
        calibration = self._parameters.calibration(f"SERVO{number}")
        return calibration if calibration is not None and calibration.valid else None

    def _hold(self, pulses: dict[int, int]) -> None:
        self._held = pulses
        self._transmit(pulses)

    def _end(self, now: float) -> None:
        """Neutral for a moment, then given back by `step`."""
        if self._neutral_since == math.inf:
            # One that has been neutral for a period already needs no more of it.
            self._neutral_since = now - (NEUTRAL_TIME / 2 if self._held == self._neutral else 0.0)
        self._hold(self._neutral)

    def _finish(self, now: float) -> None:
        """Give the channels back, or set the servos to neutral, some times over."""
        held = self._held or {}
        if self._config.command == "wrench":
            self._ending = {number: RELEASE if number <= 8 else RELEASE_HIGH for number in held}
        else:
            self._ending = self._neutral
        self._held, self._neutral_since = None, math.inf
        self._echo.clear()
        self._repeats, self._repeat_due = REPEATS - 1, now + REPEAT_TIME
        self._transmit(self._ending)

    def _transmit(self, pulses: dict[int, int]) -> None:
        if not pulses:
            return
        target = self._config.system, dialect.MAV_COMP_ID_AUTOPILOT1
        if self._config.command == "wrench":
            channels = [pulses.get(number, IGNORE) for number in range(1, 19)]
            self._send(dialect.MAVLink_rc_channels_override_message(*target, *channels))
            return
        for number, pulse in pulses.items():
            values = (float(number), float(pulse), 0.0, 0.0, 0.0, 0.0, 0.0)
            self._send(dialect.MAVLink_command_long_message(*target, dialect.MAV_CMD_DO_SET_SERVO, 0, *values))
