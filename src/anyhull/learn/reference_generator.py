"""Random references for training: one new point per control period, a new segment when the last ends.

A segment is a straight, a turn, crabbing or a stop, so a constant body-frame twist. The yaw rate steps between
segments, as at the corners of a rounded rectangle; the speed is ramped. Random numbers are inputs, so that the same
functions serve NumPy and JAX.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from anyhull.backend import Number, Numbers, clip, namespace, sin_cos, to_inertial
from anyhull.dynamics import PERIOD
from anyhull.reference import PREVIEW
from anyhull.turning import DRIFT_ANGLE

DRAWS = 7
"""Uniform numbers in [0, 1) per point."""

LARGEST_RADIUS = 12.0
"""Radius of the widest turn, m."""


CRUISE = 1.2
"""Highest speed of most segments, m/s."""

FAST_SHARE = 0.25
"""Share of the segments that may be faster, for a boat that can."""

DIVERGENCE_RATE = 6.0
"""Largest rate at which the Munk moment may turn a boat away at speeds above `CRUISE`, 1/s."""


class Capability(NamedTuple):
    """Limits of the references for a boat."""

    speed: Any
    """Highest speed along the boat, m/s."""
    sway: Any
    """Highest speed across the boat, m/s."""
    yaw_rate: Any
    """Highest yaw rate, rad/s."""
    turn: Any
    """Highest product of speed and yaw rate, m/s²."""
    ramp: Any
    """Highest rate of change of the speed, m/s²."""
    fast: Any
    """Highest speed in a quarter of the segments, m/s."""
    stop_share: float = 0.05
    """Share of the segments that are stops."""
    stop_time: float = 1.0
    """Duration of a stop relative to that of a straight."""


class Segment(NamedTuple):
    """The target twist, and the remaining time."""

    u: Any
    v: Any
    r: Any
    left: Any
    """Remaining time, s."""


def capability(e: Numbers, share: float = 0.85, turn: float = 0.85, fastest: float = CRUISE) -> Capability:
    """What a boat with coefficients `e` can follow with this `share` of its actuators in still water.

    A turn uses at most the share `turn` of its sway force. The paper's Platform A needs 81 % of its surge force on the
    paper's rectangle, so the share cannot be small.
    """
    alpha_u, alpha_v, alpha_r, d_u, d_v, d_r, _, c_ru, _ = e
    xp = namespace(*e)
    return Capability(
        speed=xp.minimum(share * alpha_u / d_u, CRUISE),
        sway=xp.minimum(share * alpha_v / d_v, 0.6),
        # A step in yaw rate is tracked with a lag that grows with the time to reach it.
        yaw_rate=xp.minimum(xp.minimum(share * alpha_r / d_r, 1.0 * alpha_r), 1.2),
        turn=turn * alpha_v / -c_ru,
        ramp=xp.minimum(0.3 * xp.minimum(alpha_u, alpha_v), 0.5),
        fast=_fast(e, share, fastest),
    )


def capability_without_sway(e: Numbers, fastest: float = CRUISE, current: float = 0.0) -> Capability:
    """What a boat without sway force can follow: it drifts outward in turns, and its drift causes a Munk moment.

    Against a `current`, m/s, it is slower by that.

    In a steady turn the sway speed is c_ru·r·u·tau_v, so the drift angle is about |c_ru|·r·tau_v. To keep station it
    turns into what pushes it, which takes long stops.
    """
    alpha_u, _, alpha_r, d_u, d_v, d_r, _, c_ru, c_uv = e
    xp = namespace(*e)
    speed = xp.minimum(0.85 * alpha_u / d_u - current, CRUISE)
    fast = xp.maximum(_fast(e, 0.85, fastest) - current, speed)

    def yaw_rate(speed: Any) -> Any:
        munk = xp.maximum(c_uv, 0.0) * -c_ru * speed * speed / d_v
        steady, drift = 0.6 * alpha_r / (d_r + munk), DRIFT_ANGLE * d_v / -c_ru
        return xp.minimum(xp.minimum(steady, drift), xp.minimum(0.5 * alpha_r, 1.2))

    return Capability(
        speed=speed,
        sway=0.0 * speed,
        yaw_rate=yaw_rate(speed),
        turn=fast * yaw_rate(fast),
        ramp=xp.minimum(0.3 * alpha_u, 0.5),
        fast=fast,
        stop_share=0.15,
        stop_time=4.0,
    )


def _fast(e: Numbers, share: float, fastest: float) -> Any:
    """The highest speed up to `fastest` that a boat's thrust and its stability in yaw allow; `CRUISE` is stable."""
    alpha_u, _, _, d_u, _, _, _, c_ru, c_uv = e
    xp = namespace(*e)
    stable = DIVERGENCE_RATE / xp.sqrt(xp.maximum(c_ru * c_uv, 1e-6))
    return xp.minimum(share * alpha_u / d_u, xp.maximum(xp.minimum(stable, fastest), CRUISE))


def draw(uniforms: Numbers, capability: Capability, difficulty: Number) -> Segment:
    """A segment from seven uniform numbers: long straights and wide turns at difficulty 0, anything at 1."""
    kind, pace, bend, side, length, crab, angle = uniforms
    xp = namespace(kind, capability.speed, difficulty)
    slowest = 0.5 - 0.4 * difficulty
    # Where a boat can be faster, the last of the paces are the fast ones.
    beyond = (pace - 1 + FAST_SHARE) / FAST_SHARE
    faster = (beyond > 0) & (capability.fast > capability.speed)
    cruise = capability.speed * (slowest + (1 - slowest) * pace)
    speed = xp.where(faster, capability.speed + difficulty * (capability.fast - capability.speed) * beyond**2, cruise)
    stop = kind < capability.stop_share * difficulty
    speed = xp.where(stop, 0.0, speed)

    tightest = 8.0 * 0.1**difficulty
    radius = tightest * (LARGEST_RADIUS / tightest) ** bend
    fastest = xp.minimum(capability.yaw_rate, capability.turn / xp.maximum(speed, 1e-3))
    rate = xp.minimum(speed / radius, fastest)
    rate = xp.where(kind > 0.45, rate, 0.0)

    crab_angle = xp.where(crab < 0.25 * difficulty, (2 * angle - 1) * math.pi / 2, 0.0)
    sin, cos = sin_cos(crab_angle)
    sway = clip(speed * sin, -capability.sway, capability.sway)

    straight = (1.5 + 6.0 * length) * xp.where(stop, capability.stop_time, 1.0)
    turning = clip((0.5 + 3.0 * length) / xp.maximum(rate, 1e-3), 1.0, 12.0)
    return Segment(
        u=speed * cos,
        v=sway,
        r=xp.where(side < 0.5, rate, -rate),
        left=xp.where(rate > 0, turning, straight),
    )


def begin(segment: Segment, pose: Numbers) -> Any:
    """The first window (11, 6): `segment` from `pose` at its full speed, in closed form."""
    xp = namespace(segment.u, pose[0])
    t = PERIOD * xp.arange(PREVIEW + 1, dtype=float)
    x, y, psi = _move(pose, segment[:3], t)
    same = xp.ones_like(x)
    return xp.stack([x, y, psi, segment.u * same, segment.v * same, segment.r * same], axis=1)


def extend(
    last: Numbers, segment: Segment, uniforms: Numbers, capability: Capability, difficulty: Number
) -> tuple[Any, Segment]:
    """The point (6,) that follows `last`, and its segment: a new one if the last has ended."""
    xp = namespace(last[0], segment.u)
    ended = segment.left <= 0.0
    fresh = draw(uniforms, capability, difficulty)
    segment = Segment(*(xp.where(ended, new, old) for new, old in zip(fresh, segment, strict=True)))
    step = capability.ramp * PERIOD
    u = last[3] + clip(segment.u - last[3], -step, step)
    v = last[4] + clip(segment.v - last[4], -step, step)
    pose = _move(last[:3], (u, v, segment.r), PERIOD)
    return xp.stack([*pose, u, v, segment.r]), segment._replace(left=segment.left - PERIOD)


def _move(pose: Numbers, twist: Numbers, t: Any) -> tuple[Any, Any, Any]:
    """The pose after moving with a constant body-frame twist: a chord in the direction of the mean heading."""
    x, y, psi = pose
    u, v, r = twist
    half = r * t / 2
    square = half * half
    # sin(half) / half by its series, exact to 1e-8 up to half a radian.
    sinc = 1 - square / 6 * (1 - square / 20 * (1 - square / 42))
    along_x, along_y = to_inertial(u, v, psi + half)
    return x + t * sinc * along_x, y + t * sinc * along_y, psi + r * t
