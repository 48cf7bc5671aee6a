"""What pilot and boat tell each other, and how it is written: one JSON object a datagram; see docs/link.md."""

from __future__ import annotations

import json
import math
from dataclasses import MISSING, dataclass, fields
from typing import Any, get_type_hints

VERSION = 1
"""Of the messages. A receiver takes its own alone, and ignores keys that it does not know."""

LARGEST = 1400
"""Bytes of a message: one Ethernet frame."""

COUNT = 2**53
"""What session and sequence numbers stay below: whole numbers that every JSON reader keeps exact."""

MOST = 32
"""Thrusters of a message."""


class BadMessage(ValueError):
    """A datagram that is no message; says why in a few words."""


@dataclass(frozen=True)
class Message:
    """What every message says."""

    session: int
    """Drawn at random when the sender starts."""
    seq: int
    """Counts the sender's messages of this session, from 0."""
    time: float
    """s, in the boat's clock: of a measurement when it was true, of a command when it was decided."""


@dataclass(frozen=True)
class Position(Message):
    """A fix of the antenna in the local inertial frame, boat to pilot."""

    x: float
    """m."""
    y: float
    """m."""
    std: float | None = None
    """Standard deviation in x and in y, m, where the receiver gives one."""


@dataclass(frozen=True)
class Heading(Message):
    """The direction of the bow, boat to pilot."""

    psi: float
    """From x toward y, rad."""
    std: float | None = None
    """Standard deviation, rad, where it is known."""


@dataclass(frozen=True)
class Gyro(Message):
    """The yaw rate, boat to pilot."""

    rate: float
    """rad/s."""


@dataclass(frozen=True)
class Acceleration(Message):
    """How the velocity over ground changes, in the body frame, level and without gravity; boat to pilot."""

    x: float
    """Ahead, m/s²."""
    y: float
    """To the side of positive sway, m/s²."""


@dataclass(frozen=True)
class Status(Message):
    """What the boat makes of the commands, boat to pilot."""

    thrusters: tuple[float, ...]
    """Commands in force, in [-1, 1]."""
    stopped: bool
    """Whether the watchdog holds the thrusters at zero."""
    accepted: int
    """`seq` of the last command taken, or -1."""


@dataclass(frozen=True)
class Command(Message):
    """What the thrusters are to do, pilot to boat."""

    thrusters: tuple[float, ...]
    """In [-1, 1], in the order of the vessel's file."""
    angles: tuple[float, ...]
    """Direction of each thruster from the bow toward positive sway, rad; of use to azimuths alone."""


_ALL = (Position, Heading, Gyro, Acceleration, Status, Command)
KINDS: dict[str, type[Message]] = {kind.__name__.lower(): kind for kind in _ALL}
"""Messages by the name that `type` gives them."""

_FIELDS = {
    kind: [(field.name, get_type_hints(kind)[field.name], field.default is MISSING) for field in fields(kind)]
    for kind in KINDS.values()
}


def encode(message: Message) -> bytes:
    """A message as JSON."""
    content = {"v": VERSION, "type": type(message).__name__.lower(), **vars(message)}
    return json.dumps(content, separators=(",", ":"), allow_nan=False).encode()


def decode(datagram: bytes) -> Message:
    """The message in a datagram, with every number finite and commands in [-1, 1]; raises `BadMessage` alone."""
    if len(datagram) > LARGEST:
        raise BadMessage("too long")
    try:
        content = json.loads(datagram)
    except (ValueError, RecursionError):
        raise BadMessage("not JSON") from None
    if not isinstance(content, dict):
        raise BadMessage("not an object")
    if content.get("v") != VERSION:
        raise BadMessage("another version")
    kind = KINDS.get(content["type"]) if isinstance(content.get("type"), str) else None
    if kind is None:
        raise BadMessage("unknown type")
    values: dict[str, Any] = {}
    for name, hint, required in _FIELDS[kind]:
        if name in content:
            values[name] = _read(name, content[name], hint)
        elif required:
            raise BadMessage(f"{name} missing")
    message = kind(**values)
    if isinstance(message, Command):
        if len(message.thrusters) != len(message.angles):
            raise BadMessage("not an angle for each thruster")
        if any(abs(command) > 1 for command in message.thrusters):
            raise BadMessage("command outside [-1, 1]")
    return message


def _read(name: str, value: Any, hint: Any) -> Any:
    """A value of a message, if it is what the field's type says."""
    if hint is bool and isinstance(value, bool):
        return value
    if hint is int and type(value) is int and -1 <= value < COUNT:
        return value
    if hint == float | None and value is None:
        return None
    if hint in (float, float | None) and _finite(value):
        return float(value)
    if hint == tuple[float, ...] and isinstance(value, list) and len(value) <= MOST and all(map(_finite, value)):
        return tuple(map(float, value))
    raise BadMessage(f"{name} not {'finite' if hint is not bool else 'true or false'}")


def _finite(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < 1e300 and math.isfinite(value)
