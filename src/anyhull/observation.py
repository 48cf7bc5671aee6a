"""Inputs of a policy as named fields: base observation, history feature and privileged vector."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

from anyhull.backend import namespace, to_body, wrap
from anyhull.dynamics import PERIOD
from anyhull.reference import PREVIEW


class Observation(NamedTuple):
    """The base observation o, 6N + 12 = 72 numbers. Errors are reference minus actual."""

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
"""Slice of each field in the packed observation."""

HISTORY = History(*_slices(3, 3, 3))
"""Slice of each field in the packed history."""

ERRORS = slice(OBSERVATION.position_error.start, OBSERVATION.velocity_error.stop)
"""Slice of the errors in position, heading and velocity in the packed observation."""

OBSERVATION_SIZE: int = OBSERVATION.previous.stop
HISTORY_SIZE: int = HISTORY.previous.stop

STILL = 1e-6
"""Norm of a displacement (m, rad) below which the previous pose counts as unknown; above rounding errors."""


@dataclass(frozen=True)
class Scales:
    """Input scaling of a policy: x -> asinh(scale · x).

    The slope at zero is the scale, and the growth is logarithmic, so that large errors do not saturate the network.
    Errors of a centimetre matter, and the acceleration per command varies by three orders of magnitude between boats.
    """

    error: float = 30.0
    """Scale of errors in position, heading and velocity (m, rad, m/s, rad/s)."""
    gain: float = 300.0
    """Scale of the velocity gain in the history: velocity minus its mean over the last period (m/s, rad/s)."""
    velocity: float = 20.0
    """Scale of the velocity in the history (m/s, rad/s)."""
    command: float = 20.0
    """Scale of the previous normalized command in the history."""
    printed: bool = False
    """Whether observation and history enter as the paper prints them, unscaled; then the scales have no effect."""


def observe(pose: Any, velocity: Any, window: Any, previous: Any) -> Observation:
    """The base observation of one boat: pose (3,), velocity (3,), window (11, 6), previous command (3,)."""
    xp = namespace(window, pose, velocity)
    dx, dy = to_body(window[:, 0] - pose[0], window[:, 1] - pose[1], pose[2])
    turn = wrap(window[:, 2] - pose[2])
    relative = xp.concatenate([xp.stack([dx, dy, turn], axis=1), window[:, 3:]], axis=1)
    return Observation(
        position_error=relative[0, :2],
        heading_error=relative[0, 2:3],
        velocity_error=relative[0, 3:] - velocity,
        velocity=velocity,
        lookahead=relative[1:],
        previous=previous,
    )


def free_heading(window: Any, psi: Any) -> Any:
    """The window (11, 6) of a boat without sway force at heading `psi`: at rest it has no heading to hold but its own.

    To stay in a place such a boat turns into what pushes it.
    """
    xp = namespace(window)
    own = xp.where((window[:, 3:] ** 2).sum() > 0, window[:, 2], psi)
    return xp.concatenate([window[:, :2], own[:, None], window[:, 3:]], axis=1)


def history(pose: Any, previous_pose: Any, velocity: Any, previous: Any) -> History:
    """The history feature of one boat: pose (3,), pose one period ago (3,), velocity (3,), previous command (3,).

    A `previous_pose` equal to `pose` counts as unknown: the displacement is then PERIOD · velocity.
    """
    xp = namespace(pose, previous_pose)
    dx, dy = to_body(pose[0] - previous_pose[0], pose[1] - previous_pose[1], pose[2])
    displacement = xp.stack([dx, dy, wrap(pose[2] - previous_pose[2])])
    known = (displacement**2).sum() > STILL**2
    return History(xp.where(known, displacement, PERIOD * velocity), velocity, previous)


def pack(fields: Observation | History | Privileged) -> Any:
    """The fields concatenated into one vector."""
    return namespace(*fields).concatenate([field.reshape(-1) for field in fields])


def scale_observation(o: Any, scales: Scales) -> Any:
    """A packed observation with scaled errors, as input of a network."""
    if scales.printed:
        return o
    xp = namespace(o)
    return xp.concatenate([xp.arcsinh(scales.error * o[..., ERRORS]), o[..., ERRORS.stop :]], axis=-1)


def scale_history(h: Any, scales: Scales) -> Any:
    """A packed history with all features scaled, as input of a network.

    The velocity gain, velocity minus its mean over the last period, replaces the displacement. It is half a period's
    acceleration, which identifies the response to a command, and it is small compared with the displacement.
    """
    if scales.printed:
        return h
    xp = namespace(h)
    displacement, velocity, previous = (h[..., part] for part in HISTORY)
    gain = velocity - displacement / PERIOD
    scaled = [scales.gain * gain, scales.velocity * velocity, scales.command * previous]
    return xp.arcsinh(xp.concatenate(scaled, axis=-1))


LOG_STD_RANGE = (-5.0, 3.0)
"""Range of the log standard deviation of a dynamics head, for the scaled privileged vector."""

MODULATION = (-6.0, 6.0)
"""Range of the logarithm of the factors by which the latent modulates the actor's features."""


class Privileged(NamedTuple):
    """A teacher's privileged input: the boat's dynamics and, with `privileged_sea`, delay and disturbances."""

    e: Any
    """The nine components on a logarithmic scale, (9,)."""
    delay: Any
    """Actuator delay, s, times its scale, (1,)."""
    current: Any
    """Current in the body frame, m/s, times its scale, (2,)."""
    force: Any
    """Wind and wave force in the body frame, fractions of the limits, times its scale, (3,)."""


PRIVILEGED = Privileged(*_slices(9, 1, 2, 3))
"""Slice of each field in the packed privileged vector; without the sea it ends after e."""

DELAY_SCALE, CURRENT_SCALE, FORCE_SCALE = 10.0, 5.0, 10.0
"""Scales of delay (s), current (m/s) and force (fractions): values of the field sea become about 1."""


def scale_privileged(e: Any) -> Any:
    """The nine components e on a logarithmic scale, the encoder's input; c_uv, of either sign, through asinh."""
    xp = namespace(e)
    return xp.concatenate([xp.log(e[..., :7]), xp.log(-e[..., 7:8]), xp.arcsinh(e[..., 8:])], axis=-1)


def unscale_privileged(scaled: Any) -> Any:
    """The nine components e from their logarithmic scale."""
    xp = namespace(scaled)
    return xp.concatenate([xp.exp(scaled[..., :7]), -xp.exp(scaled[..., 7:8]), xp.sinh(scaled[..., 8:])], axis=-1)
