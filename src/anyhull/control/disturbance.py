"""Bank of Kalman filters for what a boat cannot measure: current, the force of wind and waves, and actuator delay.

    z = (c_x, c_y, f_u, f_v, f_r),   z' = diag(e^{-lambda dt}) z + w,   nu_{k+1} = motion(s_k, a(d) + f, c) + n

Current and force are the Ornstein-Uhlenbeck processes of `anyhull.sea` with the bounds and decay rates of the field
sea. a(d) is the command issued d ago, averaged over the period. One filter for each of `DELAYS`; all estimates are the
means of the bank, weighted by the likelihood of the measurements, of which each period forgets one per cent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from anyhull.backend import Array
from anyhull.dynamics import PERIOD
from anyhull.sea import Sea, delayed

SEA = Sea.field()

DELAYS = np.linspace(*SEA.delay, 5)
"""Actuator delays of the bank, s."""

STATIONARY = np.array([SEA.current / 2] * 2 + [SEA.force / 2] * 3)
"""Standard deviations before any measurement (m/s, fractions of the limits)."""

KEEP = np.exp(-PERIOD * np.array([SEA.current_decay] * 2 + [SEA.force_decay] * 3))
"""Share of each that is left after a period."""

FORGET = 0.99
"""Share of the log-likelihood that is left after a period."""


class DisturbanceFilter:
    """Estimates current (inertial frame, m/s), force (body frame, fractions of the limits) and delay (s)."""

    def __init__(self, motion: Any, noise: float) -> None:
        """`motion` is the CasADi function (state, force, current, time) -> state; `noise` the deviation of n."""
        import casadi as ca

        self._variance = noise**2
        state, command, z = ca.SX.sym("state", 6), ca.SX.sym("command", 3), ca.SX.sym("z", 5)
        predicted = motion(state, command + z[2:], z[:2], PERIOD)[3:]
        self._predict: Any = ca.Function("predict", [state, command, z], [predicted, ca.jacobian(predicted, z)])
        self.reset()

    def reset(self) -> None:
        """Forget all measurements."""
        n = len(DELAYS)
        self._z, self._covariance = np.zeros((n, 5)), np.tile(np.diag(STATIONARY**2), (n, 1, 1))
        self._log_likelihood, self._weights = np.zeros(n), np.full(n, 1 / n)

    @property
    def current(self) -> Array:
        """(c_x, c_y)."""
        return np.asarray(self._weights @ self._z[:, :2])

    @property
    def force(self) -> Array:
        """(f_u, f_v, f_r)."""
        return np.asarray(self._weights @ self._z[:, 2:])

    @property
    def delay(self) -> float:
        """d, between the limits of the field sea."""
        # The weights sum to one only up to rounding.
        return float(np.clip(self._weights @ DELAYS, *SEA.delay))

    def update(self, state: Array, commands: Sequence[Array], velocity: Array) -> None:
        """Correct by the `velocity` one period after `state`; `commands` are those issued until then, newest first."""
        issued = [tuple(command) for command in commands]
        for i, delay in enumerate(DELAYS.tolist()):
            predicted, h = (
                np.asarray(value) for value in self._predict(state, delayed(issued, delay, 1)[0], self._z[i])
            )
            p, error = self._covariance[i], velocity - predicted.ravel()
            innovation = h @ p @ h.T + self._variance * np.eye(3)
            inverse = np.linalg.inv(innovation)
            gain = p @ h.T @ inverse
            z, p = KEEP * (self._z[i] + gain @ error), KEEP[:, None] * (p - gain @ h @ p) * KEEP
            self._z[i], self._covariance[i] = z, (p + p.T) / 2 + np.diag((1 - KEEP**2) * STATIONARY**2)
            fit = -0.5 * (error @ inverse @ error + np.log(np.linalg.det(innovation)))
            self._log_likelihood[i] = FORGET * self._log_likelihood[i] + fit
        weights = np.exp(self._log_likelihood - self._log_likelihood.max())
        self._weights = weights / weights.sum()
