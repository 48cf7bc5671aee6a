"""Cascaded control, as in common autopilots: pose error -> velocity -> force, one loop inside the other on each axis.

Outer loop, P on the pose error e in the boat's frame, with the reference velocity rotated into that frame:

    nu_d = R(psi)ᵀ R(psi_ref) nu_ref + approach(e)

Inner loop, PI on the velocity error, with the feedforward force of the reference:

    command = inverse_dynamics(nu_ref, d nu_ref / dt) + (nu_d - nu + ∫(nu_d - nu) dt / T_i) / (alpha T)

Tuning. On each axis the boat is alpha / (s + 1/tau). Skogestad's rule for that plant, with T the closed-loop time
constant and the dead time together, is the gain 1 / (alpha T) and T_i = min(tau, 4 T). The outer gain 1 / (4 T) makes
the two loops critically damped. So T is the one free constant, the same for every vessel and axis.

T = 0.28 s was chosen on the five platforms and the rectangle by the mean position error over seeds 0 to 4 of the field
sea with its delay always at the longest, 0.2 s: 3.4 cm at 0.24 s, 2.3 at 0.26, 2.1 at 0.28, 2.2 at 0.30, 2.5 at 0.33.
With the delay drawn from 0 to 0.2 s, 0.24 s would be best (1.4 cm against 1.6), but Roboat 1 oscillates there when the
delay is long. In ideal conditions a smaller T is always better.

Lengths and times are in the units of the vessel's scale, so that a ship is tuned as a model is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from anyhull.backend import Array, to_body, to_inertial, wrap
from anyhull.controller import check_inputs
from anyhull.dynamics import PERIOD, inverse_dynamics
from anyhull.errors import InputError
from anyhull.vessel import Vessel

T = 0.28
"""Closed-loop time constant and dead time together, in the vessel's time unit."""


class PID:
    """Follows the window by two loops, position and velocity, tuned from the vessel's parameters."""

    def __init__(self, vessel: Vessel) -> None:
        if vessel.Fy == 0:
            raise InputError(f"{vessel.name}: PID controls each axis separately and needs Fy > 0; use los or mpc")
        self.vessel = vessel
        self._scale = vessel.scale
        self._e, self._drag = self._scale.normalized(vessel.normalized), self._scale.drag(vessel.drag)
        e = self._scale.normalized(vessel.effective())
        self._alpha = np.array(e[:3])
        rates = np.array(e[3:6])
        self._integral_rate = np.maximum(rates, 1 / (4 * T))
        self.reset()

    def reset(self) -> None:
        """Reset the integrators."""
        self._integral = np.zeros(3)

    def step(self, pose: ArrayLike, velocity: ArrayLike, window: ArrayLike) -> Array:
        """The normalized command in [-1, 1]³ for the coming period."""
        now, nu, reference = check_inputs(pose, velocity, window)
        now, nu, reference = self._scale.pose(now), self._scale.velocity(nu), self._scale.window(reference)
        x, y, psi = reference[0, :3] - now
        error = np.array([*to_body(x, y, now[2]), wrap(psi)])
        desired = np.array([*to_inertial(reference[0, 3], reference[0, 4], psi), reference[0, 5]])
        change = (reference[1, 3:] - reference[0, 3:]) / PERIOD

        velocity_error = desired + approach(error, self._alpha) - nu
        feedforward = np.array(inverse_dynamics(desired, change, self._e, self._drag))
        force = feedforward + velocity_error / (self._alpha * T) + self._integral
        command: Array = np.clip(force, -1.0, 1.0)
        # Anti-windup: a saturated axis does not integrate further into saturation.
        integrates = (command == force) | (np.sign(velocity_error) != np.sign(force))
        self._integral += integrates * self._integral_rate * PERIOD * velocity_error / (self._alpha * T)
        np.clip(self._integral, -1.0, 1.0, out=self._integral)
        return command


def approach(error: Array, alpha: Array) -> Array:
    """Desired velocity for a pose error: proportional, and for a large error at most the speed from which the boat
    can brake with half its force, sqrt(2 · deceleration · distance).
    """
    gain, brake = 1 / (4 * T), alpha / 2
    size, linear = np.abs(error), brake / gain**2
    return np.sign(error) * np.where(size < linear, gain * size, np.sqrt(brake * np.abs(2 * size - linear)))
