"""The messages between pilot and boat, and their encoding: one JSON object a datagram; see docs/link.md."""

from __future__ import annotations

import json
from dataclasses import dataclass

from anyhull import schema
from anyhull.errors import InputError

VERSION = 1
"""Of the messages. A receiver accepts its own version only, and ignores unknown keys."""

MAX_BYTES = 1400
"""Size of a message: one Ethernet frame."""

MAX_INTEGER = 2**53
"""Bound of session and sequence numbers: integers that every JSON reader keeps exact."""

MAX_THRUSTERS = 32
"""Thrusters of a message."""


class BadMessage(ValueError):
    """A datagram that is not a message, with one of a few reasons."""


@dataclass(frozen=True)
class Message:
    """The fields of every message."""

    session: int
    """Drawn at random when the sender starts."""
    seq: int
    """Number of the message in its session, from 0."""
    time: float
    """s, in the boat's clock: when a measurement was valid, or a command was computed."""


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
    """The heading, boat to pilot."""

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
    """The acceleration over ground in the body frame, level and without gravity; boat to pilot."""

    x: float
    """Ahead, m/s²."""
    y: float
    """To the side of positive sway, m/s²."""


@dataclass(frozen=True)
class Status(Message):
    """The state of the boat's control board, boat to pilot."""

    thrusters: tuple[float, ...]
    """Commands in force, in [-1, 1]."""
    stopped: bool
    """Whether the watchdog holds the thrusters at zero."""
    accepted: int
    """`seq` of the last command accepted, or -1."""


@dataclass(frozen=True)
class Command(Message):
    """Commands for the thrusters, pilot to boat."""

    thrusters: tuple[float, ...]
    """In [-1, 1], in the order of the vessel's file."""
    angles: tuple[float, ...]
    """Direction of each thruster from the bow toward positive sway, rad; of use to azimuths alone."""


TYPES: dict[str, type[Message]] = {
    kind.__name__.lower(): kind for kind in (Position, Heading, Gyro, Acceleration, Status, Command)
}
"""Messages by their `type`."""


def encode(message: Message) -> bytes:
    """A message as JSON."""
    content = {"v": VERSION, "type": type(message).__name__.lower(), **vars(message)}
    return json.dumps(content, separators=(",", ":"), allow_nan=False).encode()


def decode(datagram: bytes) -> Message:
    """The message in a datagram, with every number finite and commands in [-1, 1]; raises only `BadMessage`."""
    if len(datagram) > MAX_BYTES:
        raise BadMessage("too long")
    try:
        content = json.loads(datagram, parse_int=_parse_int)
    except (ValueError, RecursionError):
        raise BadMessage("not JSON") from None
    if not isinstance(content, dict):
        raise BadMessage("not an object")
    if content.get("v") != VERSION:
        raise BadMessage("another version")
    kind = TYPES.get(content["type"]) if isinstance(content.get("type"), str) else None
    if kind is None:
        raise BadMessage("unknown type")
    try:
        message = schema.decode(kind, content, unknown_keys="ignore")
    except schema.FieldError as error:
        # Neither the value nor its index: reasons are counted, so they must be few.
        raise BadMessage(f"{error.path.partition('[')[0]}: must be {error.accepted}") from None
    except InputError as error:
        raise BadMessage(str(error)) from None
    except RecursionError:
        raise BadMessage("nested too deeply") from None
    _check(message)
    return message


def _parse_int(digits: str) -> float:
    """An integer; as a float, perhaps infinite, where it has so many digits that it may not fit one."""
    return int(digits) if len(digits) < 300 else float(digits)


def _check(message: Message) -> None:
    """Raise for a number outside its limits, which the types do not state."""
    for name, value in vars(message).items():
        numbers = value if isinstance(value, tuple) else (value,)
        if len(numbers) > MAX_THRUSTERS:
            raise BadMessage(f"{name}: must be at most {MAX_THRUSTERS} numbers")
        if type(value) is int and not -1 <= value < MAX_INTEGER:
            raise BadMessage(f"{name}: must be from -1 to 2**53 - 1")
        if any(type(number) is float and abs(number) >= 1e300 for number in numbers):
            raise BadMessage(f"{name}: must be below 1e300")
    if isinstance(message, Command):
        if len(message.thrusters) != len(message.angles):
            raise BadMessage("angles: must be one for each thruster")
        if any(abs(command) > 1 for command in message.thrusters):
            raise BadMessage("thrusters: must be in [-1, 1]")
