"""Speeds that a boat can follow: of its actuators, of a yaw rate, and of an acceleration along a path.

For a boat without hydrodynamics these are bounds that most of its plausible hulls can follow (`anyhull.hulls`).
"""

from __future__ import annotations

import math

import numpy as np

from anyhull.backend import Array
from anyhull.dynamics import inverse_dynamics
from anyhull.hulls import at_least, at_most, models
from anyhull.turning import turning_share
from anyhull.vessel import Vessel

FORCE_SHARE = 0.9
"""Share of the actuator limits that a plan uses at constant speed; the rest is for acceleration and disturbances."""


def force_share(vessel: Vessel, speed: Array, crab_angle: Array, slope: Array) -> Array:
    """Largest share of an actuator limit that a steady motion needs in still water.

    `crab_angle` is the course relative to the heading, rad, and `slope` the turn per distance, rad/m. An axis without
    an actuator is left out: its boat drifts sideways in a turn, and turns as fast as `anyhull.turning` says.
    """
    motion = np.broadcast_arrays(speed, crab_angle, slope)
    shares = at_most(_force_shares(vessel, *(values.ravel() for values in motion)))
    return shares.reshape(motion[0].shape)


def _force_shares(vessel: Vessel, speed: Array, crab_angle: Array, slope: Array) -> Array:
    """That share for each possible hull, shape (hulls, n), of motions of shape (n,)."""
    e, drag = models(vessel)
    velocity = (speed * np.cos(crab_angle), speed * np.sin(crab_angle), speed * slope)
    needed = inverse_dynamics(velocity, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0, *e[3:]), drag)
    shares = [np.abs(force) / limit for force, limit in zip(needed, e[:3], strict=True) if limit[0, 0] > 0]
    turning = FORCE_SHARE * turning_share(vessel, speed, speed * slope)
    return np.asarray(np.maximum(np.max(shares, axis=0), turning))


def feasible_speed(vessel: Vessel, asked: Array, crab_angle: Array, slope: Array) -> Array:
    """The highest speeds up to `asked` (m/s) that need at most `FORCE_SHARE` of the limits, by bisection."""
    low, high = np.zeros_like(asked), np.array(asked, dtype=float)
    for _ in range(40):
        middle = (low + high) / 2
        fits = force_share(vessel, middle, crab_angle, slope) <= FORCE_SHARE
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return np.where(force_share(vessel, asked, crab_angle, slope) <= FORCE_SHARE, asked, low)


def spare_acceleration(vessel: Vessel, speed: Array, crab_angle: Array, slope: Array) -> float:
    """The acceleration (m/s²) along the path for which the vessel has force to spare at steady motions."""
    # With a heading off the course, acceleration needs both surge and sway.
    alphas = models(vessel)[0][: 2 if crab_angle.any() else 1, :, 0]
    least = np.min([alpha for alpha in alphas if alpha[0] > 0], axis=0)
    return float(at_least((1 - _force_shares(vessel, speed, crab_angle, slope).max(axis=1)) * least))


def turn_rate(asked: float, angle: float, vessel: Vessel | None) -> float:
    """The highest yaw rate up to `asked` (rad/s) for a `Turn` by an angle (rad) that the vessel's moment allows."""
    if vessel is None:
        return asked
    e, drag = models(vessel)
    rate = asked
    for _ in range(100):
        # One period of 1 - cos with the peak `rate` turns by rate·T/2 and peaks at pi·rate/T in acceleration.
        needed = inverse_dynamics(
            (0.0, 0.0, rate), (0.0, 0.0, math.pi * rate**2 / (2 * angle)), (1.0, 1.0, *e[2:]), drag
        )
        if at_most(needed[2]) <= FORCE_SHARE:
            break
        rate *= 0.9
    return rate


def speed_profile(lengths: Array, limits: Array, acceleration: float) -> tuple[Array, Array]:
    """Distances (m) and speeds (m/s) from rest to rest along pieces with speed limits, at constant accelerations."""
    nodes = np.concatenate([[0.0], np.minimum(limits[:-1], limits[1:]), [0.0]])
    for i, length in enumerate(lengths):
        nodes[i + 1] = min(nodes[i + 1], math.sqrt(nodes[i] ** 2 + 2 * acceleration * length))
    for i in range(len(lengths) - 1, -1, -1):
        nodes[i] = min(nodes[i], math.sqrt(nodes[i + 1] ** 2 + 2 * acceleration * lengths[i]))
    distances, speeds, start = [0.0], [0.0], 0.0
    for length, limit, first, last in zip(lengths, limits, nodes[:-1], nodes[1:], strict=True):
        top = min(limit, math.sqrt((first**2 + last**2) / 2 + acceleration * length))
        up, down = (top**2 - first**2) / (2 * acceleration), (top**2 - last**2) / (2 * acceleration)
        for distance, speed in ((start + up, top), (start + length - down, top), (start + length, last)):
            if distance > distances[-1] + 1e-9:
                distances.append(distance)
                speeds.append(speed)
        start += length
    speeds[-1] = 0.0
    return np.array(distances), np.array(speeds)
