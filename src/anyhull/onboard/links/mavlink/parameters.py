"""ArduPilot's parameters: those that scale the commands, and those that would spoil or endanger a run.

Names and meanings are those of ArduPilot's Complete Parameter List for Rover. They are read one by one, since the whole
list takes a minute on a slow line. A firmware does not answer for a parameter that it does not have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

from anyhull.onboard.links.mavlink.channels import Calibration, Mixer
from anyhull.onboard.links.mavlink.config import MAVLinkConfig

AT_ONCE, INTERVAL = 4, 0.1
"""Parameters asked for at once, and the time between two times, s: slow enough for a serial line."""

REPEAT = 0.6
"""Time after which an unanswered request is repeated, s."""

ATTEMPTS = 8
"""Requests after which a firmware counts as without the parameter: with 30 % loss each way 0.5 % are missed.

A request counts only if another one was answered meanwhile, since a line that is deaf answers none.
"""

SLOW_REPEAT = 5.0
"""Time after which it is asked for again all the same, s."""

RCMAP = {"RCMAP_THROTTLE": 3, "RCMAP_YAW": 4, "RCMAP_ROLL": 1}
"""Channels of throttle, lateral and steering, and their defaults."""

FULL_STEERING = 0.8
"""Share of steering from which on ArduPilot may take it for the wish to arm or disarm (ARMING_RUDDER)."""


class Rule(NamedTuple):
    """What a parameter must be."""

    name: str
    holds: Callable[[float], bool]
    advice: str
    optional: bool = False
    """Whether some firmware does not have it."""


class Asked(NamedTuple):
    """Requests for a parameter that has not been read."""

    attempts: int = 0
    """Those that counted."""
    time: float = -math.inf
    """Of the last one, s."""
    answers: int = 0
    """To requests for others before it."""


UNASKED = Asked()


def _equal(value: float) -> Callable[[float], bool]:
    return lambda found: found == value


ALWAYS = (
    Rule("FS_ACTION", _equal(2), "set it to 2 (hold): a failsafe must stop the boat, not drive it home"),
    Rule("FS_GCS_ENABLE", lambda v: v != 0, "set it to 1: the boat must notice when this computer is silent"),
    Rule("FS_TIMEOUT", lambda v: 0 < v <= 5, "set it to 1.5: a failsafe must come within seconds"),
    Rule("FS_GCS_TIMEOUT", lambda v: 0 < v <= 10, "set it to 5: a failsafe must come within seconds", optional=True),
)
"""Of both kinds of commands."""

OF_OVERRIDES = (
    Rule("MOT_SLEWRATE", _equal(0), "set it to 0: it delays the throttle"),
    Rule("MOT_THST_EXPO", _equal(0), "set it to 0: it bends the throttle", optional=True),
    Rule("MOT_THR_MIN", _equal(0), "set it to 0: it turns small throttle into more"),
    Rule("MOT_THR_MAX", _equal(100), "set it to 100: it cuts the throttle off"),
    Rule("PILOT_STEER_TYPE", _equal(3), "set it to 3: else steering is reversed astern"),
    Rule("MANUAL_STR_EXPO", _equal(0), "set it to 0: it bends the steering", optional=True),
    Rule("MANUAL_OPTIONS", lambda v: not int(v) & 1, "clear bit 0: it scales steering with speed", optional=True),
    Rule("RC_OVERRIDE_TIME", lambda v: 0.5 <= v <= 3, "set it to 1: an old override must end", optional=True),
    Rule("RC_OPTIONS", lambda v: not int(v) & 2, "clear bit 1: it ignores overrides", optional=True),
    Rule("FS_THR_ENABLE", lambda v: v != 0, "set it to 1: without it the last override may stay in force"),
)
"""Of commands as overrides of the RC input, in the mode MANUAL."""

GCS_NAMES = ("SYSID_MYGCS", "MAV_GCS_SYSID", "MAV_GCS_SYSID_HI")
"""Whose overrides are taken: before and since version 4.7, where it may be a range."""


class Parameters:
    """Asks for the parameters and judges them."""

    def __init__(self, config: MAVLinkConfig) -> None:
        self._config = config
        self.values: dict[str, float] = {}
        """By name, as far as read."""
        self._asked: dict[str, Asked] = {}
        self._answers = 0
        self._next = -math.inf
        self._mixer: Mixer | None = None
        self._verdict: str | None = None

    def forget(self) -> None:
        """Start again, as after the autopilot has restarted."""
        self.values.clear()
        self._asked.clear()
        self._mixer = self._verdict = None

    def to_ask(self, now: float) -> list[str]:
        """Names to ask for at the time `now`, s, while the autopilot is heard."""
        if now < self._next:
            return []
        due = [name for name in self._wanted() if name not in self.values and self._is_due(name, now)][:AT_ONCE]
        self._next, self._verdict = now + INTERVAL, None
        for name in due:
            last = self._asked.get(name, UNASKED)
            counts = last.time > -math.inf and self._answers > last.answers
            self._asked[name] = Asked(last.attempts + counts, now, self._answers)
        known = next((name for name in self._wanted() if name in self.values), None)
        if known is not None and any(self._optional(name) for name in due):
            # Only its answer tells a parameter that does not exist from a line that is deaf.
            self._asked[known] = Asked(0, now, self._answers)
            due.append(known)
        return due

    def take(self, name: str, value: float) -> None:
        """Take a parameter, also one that somebody else asked for or has set."""
        if name in set(self._wanted()) and math.isfinite(value):
            self.values[name] = value
            self._answers += self._asked.pop(name, None) is not None
            self._mixer = self._verdict = None

    def calibration(self, prefix: str) -> Calibration | None:
        """Of an input or output; None before it has been read."""
        needed = [f"{prefix}_{name}" for name in ("MIN", "TRIM", "MAX", "REVERSED")]
        return Calibration.of(prefix, self.values) if all(map(self._settled, needed)) else None

    def mixer(self) -> Mixer | None:
        """The conversion of a wrench; None before its parameters have been read, or if they are unusable."""
        if self._mixer is None and all(map(self._settled, RCMAP)):
            numbers, shares = self._numbers(), self._config.mixer_shares
            found = [
                self.calibration(f"RC{number}") if share > 0 else Calibration()
                for number, share in zip(numbers, shares, strict=True)
            ]
            calibrations = [c for c in found if c is not None and c.valid]
            if len(calibrations) == len(numbers) and self._plausible(numbers):
                self._mixer = Mixer(shares, numbers, calibrations)
        return self._mixer

    def unready(self) -> str:
        """The first parameter that would spoil a run, and what to set it to; or what has not been read; or empty."""
        if self._verdict is None:
            self._verdict = self._judged()
        return self._verdict

    def _judged(self) -> str:
        missing = [name for name in self._wanted() if not self._settled(name)]
        if missing:
            return f"parameters not read yet: {missing[0]} and {len(missing) - 1} more"
        if self._config.command == "wrench" and not self._plausible(self._numbers()):
            return "RCMAP_ROLL, RCMAP_THROTTLE, RCMAP_YAW: must be different channels from 1 to 16"
        for prefix in self._prefixes():
            calibration = self.calibration(prefix)
            if calibration is not None and not calibration.valid:
                return f"{prefix}_TRIM = {calibration.trim}: must be between {prefix}_MIN and {prefix}_MAX"
        for rule in self._rules():
            value = self.values.get(rule.name)
            if value is not None and rule.name not in self._config.allow and not rule.holds(value):
                return f"{rule.name} = {value:g}: {rule.advice}"
        return self._low_throttle() or self._foreign()

    def _low_throttle(self) -> str:
        """Why full throttle astern would be taken for the loss of the transmitter, or empty."""
        threshold = self.values.get("FS_THR_VALUE")
        if self._config.command != "wrench" or threshold is None or "FS_THR_VALUE" in self._config.allow:
            return ""
        name = f"RC{self._numbers()[0]}_MIN"
        low = self.values.get(name, 0.0)
        return "" if low > threshold else f"FS_THR_VALUE = {threshold:g}: must be below {name} = {low:g}"

    def _foreign(self) -> str:
        """Why the autopilot would not take our overrides, or empty."""
        config, found = self._config, self.values
        if config.command != "wrench" or set(GCS_NAMES) & set(config.allow):
            return ""
        own = config.source_system
        name = "MAV_GCS_SYSID" if "MAV_GCS_SYSID" in found else "SYSID_MYGCS"
        if name not in found:
            return 'SYSID_MYGCS and MAV_GCS_SYSID: the autopilot has neither; allow = ["SYSID_MYGCS"] if that is so'
        low = found[name]
        high = max(low, found.get("MAV_GCS_SYSID_HI", 0.0))
        return "" if low <= own <= high else f"{name} = {low:g}: set it to {own}, our source_system"

    def _wanted(self) -> Iterable[str]:
        if self._config.command == "wrench":
            yield from RCMAP
            if not all(map(self._settled, RCMAP)):
                return
        for prefix in self._prefixes():
            for name in ("MIN", "TRIM", "MAX", "REVERSED"):
                yield f"{prefix}_{name}"
        for rule in self._rules():
            yield rule.name
        if self._config.command == "wrench":
            yield "FS_THR_VALUE"
            # A firmware has one or the other.
            yield from GCS_NAMES[:1] if GCS_NAMES[0] in self.values else GCS_NAMES

    def _rules(self) -> Iterable[Rule]:
        config = self._config
        if config.command == "thrusters":
            for number in config.servos:
                yield Rule(f"SERVO{number}_FUNCTION", _equal(0), "set it to 0: else ArduPilot drives that output")
        else:
            yield from OF_OVERRIDES
            for prefix in self._prefixes():
                yield Rule(f"{prefix}_DZ", _equal(0), "set it to 0: small commands fall into its dead zone")
            if config.mixer_shares[2] > FULL_STEERING:
                yield Rule("ARMING_RUDDER", _equal(0), "set it to 0: full steering would disarm", optional=True)
        yield from ALWAYS

    def _prefixes(self) -> list[str]:
        if self._config.command == "thrusters":
            return [f"SERVO{number}" for number in self._config.servos]
        numbers = zip(self._numbers(), self._config.mixer_shares, strict=True)
        return [f"RC{number}" for number, share in numbers if share > 0]

    def _numbers(self) -> list[int]:
        """Channels of throttle, lateral and steering."""
        return [round(self.values.get(name, default)) for name, default in RCMAP.items()]

    def _plausible(self, numbers: list[int]) -> bool:
        return len(set(numbers)) == len(numbers) and all(1 <= number <= 16 for number in numbers)

    def _settled(self, name: str) -> bool:
        """Whether a parameter has been read, or the firmware is known to be without it."""
        return name in self.values or (self._optional(name) and self._attempts(name) >= ATTEMPTS)

    def _optional(self, name: str) -> bool:
        """Whether a firmware may be without it; the channels and their calibration are needed in any case."""
        if name in GCS_NAMES:
            return True
        return any(rule.optional or name in self._config.allow for rule in self._rules() if rule.name == name)

    def _attempts(self, name: str) -> int:
        return self._asked.get(name, UNASKED).attempts

    def _is_due(self, name: str, now: float) -> bool:
        left_out = self._optional(name) and self._attempts(name) >= ATTEMPTS
        return now - self._asked.get(name, UNASKED).time >= (SLOW_REPEAT if left_out else REPEAT)


def decoded(message: object) -> tuple[str, float] | None:
    """Name and value of a PARAM_VALUE, or None where it is not one of ArduPilot's."""
    name, value = getattr(message, "param_id", ""), getattr(message, "param_value", math.nan)
    if isinstance(name, bytes):
        name = name.decode("ascii", "replace")
    return (str(name), float(value)) if isinstance(value, int | float) and math.isfinite(value) else None
