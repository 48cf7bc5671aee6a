"""L1 adaptive control of the velocity under a proportional loop on the pose, without a model of the boat.

Textbook: N. Hovakimyan and C. Cao, L1 Adaptive Control Theory, SIAM 2010, with the piecewise-constant adaptation law of
its chapter 3. All that is known of the boat is b, its peak accelerations as estimated from mass, length and limits.
Damping, added mass, the error of b, wind and current are one unknown acceleration sigma:

    nu' = b tau + rigid(nu) + sigma                 rigid(nu) = (r v, -r u, 0), a body without added mass

State predictor, whose error nu_hat - nu decays at the rate a, and the constant sigma_hat that takes this error to zero
within a period T:

    nu_hat'   = b tau + rigid(nu) + sigma_hat - a (nu_hat - nu)
    sigma_hat = -a / (exp(a T) - 1) (nu_hat - nu)

Control law: the acceleration wanted, less what a low-pass filter C(s) = omega / (s + omega) lets through of sigma_hat.
The filter separates the speed of the adaptation from what reaches the thrusters:

    nu_d  = R(psi)ᵀ (eta_ref' + k_eta (eta_ref - eta)),       at most a speed from which the boat can brake
    b tau = nu_ref' - rigid(nu_ref) + k_nu (nu_d - nu) - C(s) sigma_hat

sigma_hat is bounded, as in the theory. The thrust has a nominal delay: state and reference are those of so much later,
predicted with the commands in transit. The constants are the same for every boat, in the units of its scale;
`benchmarks/rivals.py tune` searches them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from anyhull.backend import Array, to_body, to_inertial, wrap
from anyhull.controller import check_inputs
from anyhull.dynamics import PERIOD
from anyhull.errors import InputError
from anyhull.scale import DISPLACEMENT, accelerations
from anyhull.vessel import Vessel

LONGEST_DELAY = 2
"""Largest nominal delay, periods."""

LARGEST = 3.0
"""Bound of sigma_hat, in peak accelerations: more no thruster could cancel."""


@dataclass(frozen=True)
class Constants:
    """What the search chooses, in the units of the vessel's scale."""

    pose: float = 2.5
    """Gain k_eta of the position, 1/s."""
    heading: float = 2.1
    """Gain k_eta of the heading, 1/s."""
    velocity: float = 1.7
    """Gain k_nu in surge and sway, 1/s."""
    yaw_rate: float = 4.9
    """Gain k_nu in yaw, 1/s."""
    filter: float = 1.5
    """Bandwidth omega of C(s) in surge and sway, 1/s."""
    yaw_filter: float = 5.0
    """Bandwidth omega of C(s) in yaw, 1/s."""
    decay: float = 0.026
    """Decay rate a of the predictor's error, 1/s."""
    delay: float = 0.021
    """Nominal delay of the thrust, s."""


TUNED = Constants()
"""The best of the search: 262 candidates on random boats."""


class L1:
    """Follows the window without a model: proportional on the pose, L1 adaptive on the velocity."""

    def __init__(self, vessel: Vessel, constants: Constants = TUNED) -> None:
        self._b = estimated_accelerations(vessel, "L1")
        self.vessel = vessel
        self._scale, self._c = vessel.scale, constants
        self._pose_gain = np.array([constants.pose, constants.pose, constants.heading])
        self._velocity_gain = np.array([constants.velocity, constants.velocity, constants.yaw_rate])
        self._keep = np.exp(-PERIOD * np.array([constants.filter, constants.filter, constants.yaw_filter]))
        self._adaptation = constants.decay / math.expm1(constants.decay * PERIOD)
        self.reset()

    def reset(self) -> None:
        """Clear the predictor, the filter and the commands in transit."""
        self.sigma = np.zeros(3)
        """Estimated unknown acceleration sigma, body frame, in the units of the vessel's scale."""
        self._filtered = np.zeros(3)  # C(s) sigma
        self._predicted: Array | None = None  # nu_hat
        self._issued = [np.zeros(3)] * (LONGEST_DELAY + 1)  # newest first

    def step(self, pose: ArrayLike, velocity: ArrayLike, window: ArrayLike) -> Array:
        """The normalized command in [-1, 1]³ for the coming period."""
        now, nu, reference = check_inputs(pose, velocity, window)
        now, nu, reference = self._scale.pose(now), self._scale.velocity(nu), self._scale.window(reference)
        error = np.zeros(3) if self._predicted is None else self._predicted - nu
        self.sigma = np.clip(-self._adaptation * error, -LARGEST * self._b, LARGEST * self._b)
        self._filtered = self._keep * self._filtered + (1 - self._keep) * self.sigma

        later, rate = predict(now, nu, self._issued, self._c.delay, self._acceleration)
        target, change = ahead(reference, self._c.delay)
        wanted = change - rigid(target[3:]) - self._filtered
        wanted += self._velocity_gain * (desired_velocity(later, target, self._pose_gain, self._b) - rate)
        command: Array = np.clip(wanted / self._b, -1.0, 1.0)

        self._issued = [command, *self._issued[:-1]]
        # The predictor over the coming period; sigma_hat cancels the decayed error.
        part = self._c.delay / PERIOD
        whole = min(int(part), LONGEST_DELAY - 1)
        active = self._issued[whole] + (part - whole) * (self._issued[whole + 1] - self._issued[whole])
        self._predicted = nu + PERIOD * (self._b * active + rigid(nu))
        return command

    def _acceleration(self, nu: Array, command: Array) -> Array:
        return self._b * command + rigid(nu) + self._filtered


def estimated_accelerations(vessel: Vessel, name: str) -> Array:
    """Peak accelerations by what the boat's file states, in the scale's units; without a length, by its mass."""
    if vessel.under_actuated:
        raise InputError(f"{vessel.name}: {name} controls each axis separately and needs sway force; use los or mpc")
    if vessel.length is None:
        vessel = replace(vessel, length=(vessel.mass / DISPLACEMENT) ** (1 / 3))
    scale = vessel.scale
    return np.array(accelerations(vessel)) * scale.time**2 / [scale.length, scale.length, 1.0]


def rigid(nu: Array) -> Array:
    """Acceleration in the body frame of a body without force, whose frame turns."""
    u, v, r = nu
    return np.array([r * v, -r * u, 0.0])


def desired_velocity(pose: Array, target: Array, gain: Array, b: Array) -> Array:
    """The target's velocity in the boat's frame and the approach to it, from which half of the force can brake."""
    x, y, psi = target[:3] - pose
    error = np.array([*to_body(x, y, pose[2]), wrap(psi)])
    along = np.array([*to_inertial(target[3], target[4], psi), target[5]])
    size, brake = np.abs(error), b / 2
    linear = brake / gain**2
    far = np.sqrt(brake * np.abs(2 * size - linear))
    velocity: Array = along + np.sign(error) * np.where(size < linear, gain * size, far)
    return velocity


def ahead(reference: Array, delay: float) -> tuple[Array, Array]:
    """The reference some time from now, and its acceleration then (u', v', r')."""
    whole, part = int(delay / PERIOD), delay / PERIOD - int(delay / PERIOD)
    target = reference[whole] + part * (reference[whole + 1] - reference[whole])
    changes = np.diff(reference[whole : whole + 3, 3:], axis=0) / PERIOD
    return target, changes[0] + part * (changes[1] - changes[0])


def predict(
    pose: Array, nu: Array, issued: list[Array], delay: float, acceleration: Callable[[Array, Array], Array]
) -> tuple[Array, Array]:
    """Pose and velocity after the delay, with the commands in transit, newest first; by Heun's method."""
    for i in reversed(range(math.ceil(delay / PERIOD - 1e-9))):
        dt = min(delay - i * PERIOD, PERIOD)
        slope = acceleration(nu, issued[i])
        change = dt / 2 * (slope + acceleration(nu + dt * slope, issued[i]))
        mean = nu + change / 2
        x, y = to_inertial(mean[0], mean[1], pose[2] + dt / 2 * mean[2])
        pose, nu = pose + dt * np.array([x, y, mean[2]]), nu + change
    return pose, nu
