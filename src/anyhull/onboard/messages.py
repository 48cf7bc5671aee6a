"""The messages between pilot and boat, and their encoding: one JSON object a datagram; see docs/link.md."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Literal

from anyhull import schema
from anyhull.errors import InputError
from anyhull.thrusters import MAX_THRUSTERS

VERSION = 2
"""Of the messages. A receiver accepts its own version only, and ignores unknown keys."""

MAX_BYTES = 1400
"""Size of a message: one Ethernet frame."""

MAX_INTEGER = 2**53
"""Bound of session and sequence numbers: integers that every JSON reader keeps exact."""

TURN = 2 * math.pi

RANGES: dict[str, tuple[float, float]] = {
    "time": (-1e11, 1e11),
    "position.x": (-1e6, 1e6),
    "position.y": (-1e6, 1e6),
    "position.std": (1e-4, 1e3),
    "heading.psi": (-2 * TURN, 2 * TURN),
    "heading.std": (1e-5, TURN),
    "gyro.rate": (-20.0, 20.0),
    "acceleration.x": (-100.0, 100.0),
    "acceleration.y": (-100.0, 100.0),
    "status.thrusters": (-1.0, 1.0),
    "status.thrust": (-2.0, 2.0),
    "battery.charge": (0.0, 1.0),
    "tilt.roll": (-math.pi, math.pi),
    "tilt.pitch": (-math.pi, math.pi),
    "odometry.pose": (-1e6, 1e6),
    "odometry.velocity": (-100.0, 100.0),
    "odometry.std": (0.0, 1e6),
    "status.wrench": (-1.0, 1.0),
    "command.wrench": (-1.0, 1.0),
    "command.thrusters": (-1.0, 1.0),
    "command.angles": (-2 * TURN, 2 * TURN),
}
"""Physical range of each number, in the units of its field; of a field of all messages without a type."""


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
class Odometry(Message):
    """A finished estimate of the state, by a filter on the boat: in place of the sensors' messages; boat to pilot."""

    pose: tuple[float, float, float]
    """x, y and psi of the centre of gravity in the local inertial frame; m, m, rad from x toward y."""
    velocity: tuple[float, float, float]
    """u, v and r over ground in the body frame; m/s, m/s, rad/s."""
    std: tuple[float, float, float, float, float, float] | None = None
    """Standard deviations of the six, where the filter gives them."""
    health: Literal["ok", "dead reckoning", "lost"] = "ok"
    """What the filter says of itself."""


@dataclass(frozen=True)
class Status(Message):
    """The state of the boat's control board, boat to pilot."""

    thrusters: tuple[float, ...]
    """Commands in force, in [-1, 1]."""
    stopped: bool
    """Whether the watchdog holds the thrusters at zero."""
    accepted: int
    """`seq` of the last command accepted, or -1."""
    thrust: tuple[float, ...] | None = None
    """What each thruster gives by its own measurement (current or speed of the motor), as a fraction of its largest
    thrust in that direction; None where no thruster is measured."""
    wrench: tuple[float, float, float] | None = None
    """The body wrench in force, as in `Command`, of a boat that allocates by itself."""


@dataclass(frozen=True)
class Battery(Message):
    """The charge of the battery, boat to pilot."""

    charge: float
    """Fraction of a full battery."""


@dataclass(frozen=True)
class Leak(Message):
    """The leak sensor, boat to pilot."""

    water: bool
    """Whether there is water in the hull."""


@dataclass(frozen=True)
class Tilt(Message):
    """Roll and pitch, boat to pilot."""

    roll: float
    """rad."""
    pitch: float
    """rad."""


@dataclass(frozen=True)
class Operator(Message):
    """The position of the operator's switch, boat to pilot: sent at every change and at least once a second."""

    mode: Literal["auto", "manual", "stop"]
    """`auto`: the pilot steers. `manual`: the operator's commands are in force. `stop`: thrusters at zero. A change to
    `auto` from one of the others rearms the pilot."""


@dataclass(frozen=True)
class Command(Message):
    """Commands for the thrusters, pilot to boat."""

    thrusters: tuple[float, ...]
    """In [-1, 1], in the order of the vessel's file."""
    angles: tuple[float, ...]
    """Direction of each thruster from the bow toward positive sway, rad; of use to azimuths alone."""
    wrench: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """The same as a body wrench: surge, sway and yaw as fractions of the vessel's limits, in [-1, 1]."""
    engaged: bool = True
    """Whether the pilot steers; false once it has handed the boat over, with the thrusters at zero."""


TYPES: dict[str, type[Message]] = {
    kind.__name__.lower(): kind
    for kind in (Position, Heading, Gyro, Acceleration, Odometry, Status, Battery, Leak, Tilt, Operator, Command)
}
"""Messages by their `type`."""


def encode(message: Message) -> bytes:
    """A message as JSON."""
    # Six decimals, so that the commands of `MAX_THRUSTERS` fit a datagram.
    values = {k: [round(x, 6) for x in v] if isinstance(v, tuple) else v for k, v in vars(message).items()}
    content = {"v": VERSION, "type": type(message).__name__.lower(), **values}
    return _ENCODER.encode(content).encode()


def decode(datagram: bytes) -> Message:
    """The message in a datagram, with every number finite and commands in [-1, 1]; raises only `BadMessage`."""
    if len(datagram) > MAX_BYTES:
        raise BadMessage("too long")
    try:
        content = _DECODER.decode(datagram.decode())
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


_DECODER = json.JSONDecoder(parse_int=_parse_int)
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


def _check(message: Message) -> None:
    """Raise for a number outside its range, which the types do not state."""
    kind = type(message).__name__.lower()
    for name, value in vars(message).items():
        if isinstance(value, tuple) and len(value) > MAX_THRUSTERS:
            raise BadMessage(f"{name}: must be at most {MAX_THRUSTERS} numbers")
        if type(value) is int and not -1 <= value < MAX_INTEGER:
            raise BadMessage(f"{name}: must be from -1 to 2**53 - 1")
        bounds = RANGES.get(f"{kind}.{name}") or RANGES.get(name)
        if bounds is None or value is None:
            continue
        low, high = bounds
        if not all(low <= number <= high for number in (value if isinstance(value, tuple) else (value,))):
            raise BadMessage(f"{name}: must be from {low:.5g} to {high:.5g}")
    if isinstance(message, Command) and len(message.thrusters) != len(message.angles):
        raise BadMessage("angles: must be one for each thruster")
    if isinstance(message, Status) and message.thrust is not None and len(message.thrust) != len(message.thrusters):
        raise BadMessage("thrust: must be one for each thruster")
