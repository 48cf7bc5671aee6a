"""Self-tuning control: recursive least squares estimate a linear model for the feedforward; the boat is not known.

Textbooks: K. J. Åström and B. Wittenmark, Adaptive Control, 1995, chapters 2, 3 and 11; J.-J. Slotine and W. Li,
Applied Nonlinear Control, 1991, chapter 8; G. C. Goodwin and K. S. Sin, Adaptive Filtering, Prediction and Control,
1984, chapter 3. On each axis the model is linear in its six parameters theta, here for surge:

    u' / b = g_0 tau(t) + g_1 tau(t - T) + g_2 tau(t - 2 T) - d u / b + c r v / b + bias            = phiᵀ theta

with b the peak acceleration as estimated from mass, length and limits. Sway has r u and yaw b u v in place of r v.
Three gains for the last three commands cover a delay of 0 to 2 T, as an extended polynomial does. Both sides pass the
filter lambda / (s + lambda): the velocity less its low-passed self takes the place of a derivative.

    K = P phi / (noise² + phiᵀ P phi)     theta += K (y - phiᵀ theta)     P -= K phiᵀ P

Safeguards. Forgetting divides row and column i of P by sqrt(lambda_i), slowly for the parameters and quickly for the
bias (Parkum, Poulsen and Holst, Int. J. Control 55, 1992), and never beyond the initial variance: P is bounded. An
error within the dead zone changes nothing. A parameter that leaves its bounds is projected back in the metric of P⁻¹,
which keeps what the data say of the others. With clipping alone the estimate drifts along combinations of gain, damping
and bias that a steady speed does not tell apart, and the boat is lost.

Control: the model inverted along the reference, and P on the pose over P on the velocity (as in `l1`), divided by the
estimated gain. State and reference are those of the estimated delay later.

The constants are the same for every boat, in the units of its scale; `benchmarks/rivals.py tune` searches them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from anyhull.backend import Array
from anyhull.control.l1 import ahead, desired_velocity, estimated_accelerations, predict
from anyhull.controller import check_inputs
from anyhull.dynamics import PERIOD
from anyhull.vessel import Vessel

TAPS = 3
"""Commands in the model: a delay of up to two periods."""

PRIOR = np.array([[0.25, 0.5, 0.25, 1.0, c, 0.0] for c in (1.0, -1.0, 0.0)])
"""Initial theta in surge, sway and yaw: gains, damping (1/s), the coupling of a rigid body, bias."""

SPREAD = np.array([[0.3, 0.3, 0.3, 1.0, c, 0.3] for c in (0.5, 0.5, 0.2)])
"""Initial and largest standard deviation of theta; a yaw coupling is in units of b."""

CONSTRAINTS = np.vstack([np.eye(6), [1, 1, 1, 0, 0, 0]])
"""Linear forms of theta that are bounded: each parameter, and the total gain."""

LOWEST = np.array([[0, 0, 0, 0.0, c, -0.4, 0.3] for c in (0.2, -4.0, -2.0)])
HIGHEST = np.array([[3, 3, 3, 10.0, c, 0.4, 3.0] for c in (4.0, -0.2, 2.0)])
"""Bounds of these forms."""

LARGEST, FASTEST = 10.0, 30.0
"""Change of velocity, in peak accelerations, and speed (m/s, rad/s) beyond which the filters start anew: no boat's."""


@dataclass(frozen=True)
class Constants:
    """What the search chooses, in the units of the vessel's scale."""

    pose: float = 2.6
    """Gain of the position on the velocity, 1/s."""
    heading: float = 6.6
    """Gain of the heading on the yaw rate, 1/s."""
    velocity: float = 4.5
    """Gain of the velocity error in surge and sway, 1/s."""
    yaw_rate: float = 8.0
    """Gain of the yaw-rate error, 1/s."""
    filter: float = 25.0
    """Bandwidth lambda of the regression's filter, 1/s."""
    noise: float = 0.0059
    """Standard deviation of the regression's error, in peak accelerations."""
    memory: float = 460.0
    """Time constant of forgetting, s."""
    bias_memory: float = 3.0
    """Time constant of forgetting the bias, s."""
    dead_zone: float = 0.00011
    """Error that changes nothing, in peak accelerations."""


TUNED = Constants()
"""The best of the search: 320 candidates on random boats."""


class RLS:
    """Follows the window by a model that it estimates under way."""

    def __init__(self, vessel: Vessel, constants: Constants = TUNED) -> None:
        self._b = estimated_accelerations(vessel, "RLS")
        self.vessel = vessel
        self._scale, self._c = vessel.scale, constants
        self._pose_gain = np.array([constants.pose, constants.pose, constants.heading])
        self._velocity_gain = np.array([constants.velocity, constants.velocity, constants.yaw_rate])
        self._keep = math.exp(-PERIOD * constants.filter)
        memory = np.array([constants.memory] * (TAPS + 2) + [constants.bias_memory])
        self._growth = np.exp(PERIOD / memory / 2)
        self.reset()

    def reset(self) -> None:
        """Return to the prior, and clear the filters and the commands in transit."""
        self.theta = PRIOR.copy()
        """Estimated parameters, (3, 6)."""
        self.covariance = np.array([np.diag(spread**2) for spread in SPREAD])
        """Their covariances P, (3, 6, 6)."""
        self._phi = np.zeros((3, TAPS + 3))  # filtered regressors
        self._smooth: Array | None = None  # low-passed velocity
        self._last = np.zeros(3)  # velocity one period ago
        self._issued = [np.zeros(3)] * TAPS  # newest first

    @property
    def gain(self) -> Array:
        """Estimated peak accelerations, in the units of the vessel's scale."""
        gain: Array = self._b * self.theta[:, :TAPS].sum(axis=1)
        return gain

    @property
    def delay(self) -> float:
        """Estimated delay, s of the vessel's time unit: the mean of the axes."""
        taps = self.theta[:, :TAPS]
        return PERIOD * float(np.mean(taps @ np.arange(TAPS) / taps.sum(axis=1)))

    def step(self, pose: ArrayLike, velocity: ArrayLike, window: ArrayLike) -> Array:
        """The normalized command in [-1, 1]³ for the coming period."""
        now, nu, reference = check_inputs(pose, velocity, window)
        now, nu, reference = self._scale.pose(now), self._scale.velocity(nu), self._scale.window(reference)
        self._identify(nu)
        later, rate = predict(now, nu, self._issued, self.delay, self._acceleration)
        target, change = ahead(reference, self.delay)
        wanted = change - self._acceleration(target[3:], np.zeros(3))
        wanted += self._velocity_gain * (desired_velocity(later, target, self._pose_gain, self._b) - rate)
        command: Array = np.clip(wanted / self.gain, -1.0, 1.0)
        self._issued = [command, *self._issued[:-1]]
        return command

    def _regressors(self, nu: Array, commands: list[Array]) -> Array:
        """phi of each axis, (3, 6)."""
        u, v, r = nu
        couplings = np.array([r * v / self._b[0], r * u / self._b[1], u * v])
        return np.column_stack([*commands, -nu / self._b, couplings, np.ones(3)])

    def _acceleration(self, nu: Array, command: Array) -> Array:
        """The model's acceleration at a velocity under a steady command."""
        acceleration: Array = self._b * np.sum(self._regressors(nu, [command] * TAPS) * self.theta, axis=1)
        return acceleration

    def _identify(self, nu: Array) -> None:
        """Filter the period that has just ended, and learn from it."""
        jump = np.abs(nu - self._last) > PERIOD * LARGEST * self._b
        if self._smooth is None or jump.any() or np.abs(nu).max() > FASTEST:
            self._smooth, self._phi = nu, np.zeros((3, TAPS + 3))
        else:
            keep, new = self._keep, 1 - self._keep
            self._smooth = keep * self._smooth + new * self._last
            self._phi = keep * self._phi + new * self._regressors((self._last + nu) / 2, self._issued)
            self._update(new / PERIOD * (nu - self._smooth) / self._b)
        self._last = nu

    def _update(self, y: Array) -> None:
        """One step of recursive least squares on each axis, whose filtered acceleration is y."""
        phi, p = self._phi, self.covariance
        error = y - np.sum(phi * self.theta, axis=1)
        p_phi = np.einsum("aij,aj->ai", p, phi)
        k = p_phi / (self._c.noise**2 + np.sum(phi * p_phi, axis=1, keepdims=True))
        theta, p = self.theta + k * error[:, None], p - k[:, :, None] * p_phi[:, None, :]
        growth = np.where(np.einsum("aii->ai", p) * self._growth**2 <= SPREAD**2, self._growth, 1.0)
        p = growth[:, :, None] * p * growth[:, None, :]
        learns = np.abs(error) > self._c.dead_zone
        self.covariance = np.where(learns[:, None, None], (p + p.transpose(0, 2, 1)) / 2, self.covariance)
        self.theta = np.where(learns[:, None], theta, self.theta)
        forms = self.theta @ CONSTRAINTS.T
        for axis in np.flatnonzero(((forms < LOWEST) | (forms > HIGHEST)).any(axis=1)):
            self.theta[axis] = project(self.theta[axis], self.covariance[axis], LOWEST[axis], HIGHEST[axis])


def project(theta: Array, p: Array, lowest: Array, highest: Array) -> Array:
    """The parameters within their bounds: for one form after another the nearest in the metric of P⁻¹."""
    for form, low, high in zip(CONSTRAINTS, lowest, highest, strict=True):
        value = float(form @ theta)
        if not low <= value <= high:
            p_form = p @ form
            theta = theta - p_form * (value - min(max(value, low), high)) / float(form @ p_form)
    # A later projection may have moved an earlier parameter out again.
    return np.clip(theta, lowest[:-1], highest[:-1])
