"""What a policy sees: the base observation and the history feature, as named fields with one packing."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

from anyhull.backend import namespace, to_body, wrap
from anyhull.dynamics import PERIOD
from anyhull.reference import PREVIEW


class Observation(NamedTuple):
    """The base observation o, 6N + 12 = 72 numbers. Errors are reference minus actual, so they point to the goal."""

    position_error: Any
    """Reference position in the body frame, (2,), m."""
    heading_error: Any
    """Reference heading minus heading in [-pi, pi), (1,), rad."""
    velocity_error: Any
    """Reference velocity minus velocity, each in its own body frame, (3,), m/s, m/s, rad/s."""
    velocity: Any
    """Velocity in the body frame, (3,), m/s, m/s, rad/s."""
    lookahead: Any
    """For each of the N coming periods: position in the body frame, heading difference, velocity; (N, 6)."""
    previous: Any
    """Previous normalized command, (3,)."""


class History(NamedTuple):
    """The adapter's feature h, 9 numbers."""

    displacement: Any
    """Motion since the last control period in the present body frame, (3,), m, m, rad."""
    velocity: Any
    """Velocity in the body frame, (3,)."""
    previous: Any
    """Previous normalized command, (3,)."""


def _slices(*sizes: int) -> list[slice]:
    ends = list(accumulate(sizes))
    return [slice(end - size, end) for size, end in zip(sizes, ends, strict=True)]


OBSERVATION = Observation(*_slices(2, 1, 3, 3, 6 * PREVIEW, 3))
"""Where each field lies in the packed observation."""

HISTORY = History(*_slices(3, 3, 3))
"""Where each field lies in the packed history."""

ERRORS = slice(OBSERVATION.position_error.start, OBSERVATION.velocity_error.stop)
"""Where the errors in position, heading and velocity lie in the packed observation."""

OBSERVATION_SIZE: int = OBSERVATION.previous.stop
HISTORY_SIZE: int = HISTORY.previous.stop

STILL = 1e-6
"""Norm of a motion over a period (m, rad) below which no past is known; rounding may tell a pose from itself."""


@dataclass(frozen=True)
class Scales:
    """How a policy magnifies small numbers: each is multiplied by its scale and goes through asinh.

    That has the scale as its slope at zero and grows like a logarithm, so that neither a boat far off nor a strong one
    saturates the network. A good controller answers a centimetre, and boats differ by three orders of magnitude in how
    a command becomes an acceleration.
    """

    error: float = 30.0
    """Of errors in position, heading and velocity (m, rad, m/s, rad/s)."""
    gain: float = 300.0
    """In the history, of what the velocity has gained on its mean over the last period (m/s, rad/s)."""
    velocity: float = 20.0
    """In the history, of the velocity (m/s, rad/s)."""
    command: float = 20.0
    """In the history, of the previous normalized command."""


def observe(pose: Any, velocity: Any, window: Any, previous: Any) -> Observation:
    """The base observation of one boat: pose (3,), velocity (3,), window (11, 6), previous command (3,)."""
    xp = namespace(window, pose, velocity)
    dx, dy = to_body(window[:, 0] - pose[0], window[:, 1] - pose[1], pose[2])
    turn = wrap(window[:, 2] - pose[2])
    seen = xp.concatenate([xp.stack([dx, dy, turn], axis=1), window[:, 3:]], axis=1)
    return Observation(
        position_error=seen[0, :2],
        heading_error=seen[0, 2:3],
        velocity_error=seen[0, 3:] - velocity,
        velocity=velocity,
        lookahead=seen[1:],
        previous=previous,
    )


def history(pose: Any, previous_pose: Any, velocity: Any, previous: Any) -> History:
    """The history feature of one boat: pose (3,) and that of one period ago, velocity (3,), previous command (3,).

    A `previous_pose` equal to the pose says that no past is known: the boat is taken to have moved as it does now.
    """
    xp = namespace(pose, previous_pose)
    dx, dy = to_body(pose[0] - previous_pose[0], pose[1] - previous_pose[1], pose[2])
    displacement = xp.stack([dx, dy, wrap(pose[2] - previous_pose[2])])
    known = (displacement**2).sum() > STILL**2
    return History(xp.where(known, displacement, PERIOD * velocity), velocity, previous)


def pack(fields: Observation | History | Privileged) -> Any:
    """The fields in order as one vector."""
    return namespace(*fields).concatenate([field.reshape(-1) for field in fields])


def scale_observation(o: Any, scales: Scales) -> Any:
    """A packed observation as a network reads it: its errors magnified where they are small."""
    xp = namespace(o)
    return xp.concatenate([xp.arcsinh(scales.error * o[..., ERRORS]), o[..., ERRORS.stop :]], axis=-1)


def scale_history(h: Any, scales: Scales) -> Any:
    """A packed history as a network reads it, all on a scale like a logarithm, where products of the boat are sums.

    In place of the displacement it has what the velocity has gained on its mean over the last period. That is half a
    period's acceleration, which tells what a command does to the boat, and small beside the displacement.
    """
    xp = namespace(h)
    displacement, velocity, previous = (h[..., part] for part in HISTORY)
    gain = velocity - displacement / PERIOD
    scaled = [scales.gain * gain, scales.velocity * velocity, scales.command * previous]
    return xp.arcsinh(xp.concatenate(scaled, axis=-1))


LOG_STD_RANGE = (-5.0, 3.0)
"""Range of the logarithm of the standard deviation that a dynamics head can state of a scaled number."""

MODULATION = (-6.0, 6.0)
"""Range of the logarithm of the factors by which a latent multiplies an actor's features."""


class Privileged(NamedTuple):
    """What a teacher is told: the boat, and, where it is told the sea, that too."""

    e: Any
    """The nine components on a logarithmic scale, (9,)."""
    delay: Any
    """Actuator delay, s, times its scale, (1,)."""
    current: Any
    """Current in the body frame, m/s, times its scale, (2,)."""
    force: Any
    """Wind and wave force in the body frame, fractions of the limits, times its scale, (3,)."""


PRIVILEGED = Privileged(*_slices(9, 1, 2, 3))
"""Where each field lies in the packed privileged vector; without the sea it ends after e."""

DELAY_SCALE, CURRENT_SCALE, FORCE_SCALE = 10.0, 5.0, 10.0
"""What delay (s), current (m/s) and force (fractions) are multiplied by, so that those of the field sea are about 1."""


def scale_privileged(e: Any) -> Any:
    """The nine components e on a logarithmic scale, as an encoder reads them; c_uv, of either sign, through asinh."""
    xp = namespace(e)
    return xp.concatenate([xp.log(e[..., :7]), xp.log(-e[..., 7:8]), xp.arcsinh(e[..., 8:])], axis=-1)


def unscale_privileged(scaled: Any) -> Any:
    """The nine components e from their logarithmic scale."""
    xp = namespace(scaled)
    return xp.concatenate([xp.exp(scaled[..., :7]), -xp.exp(scaled[..., 7:8]), xp.sinh(scaled[..., 8:])], axis=-1)
