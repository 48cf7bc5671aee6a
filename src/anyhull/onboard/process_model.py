"""The acceleration that a boat should have in the coming period, by the dynamics that its controller has identified.

Where there is no accelerometer the estimator takes it in its place: `anyhull.onboard.filter`.
"""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from anyhull.backend import Array, to_inertial
from anyhull.dynamics import step
from anyhull.pilot import Dynamics
from anyhull.sea import delayed

KNOWN = 0.25
"""Standard deviation of the logarithm of a peak acceleration below which the dynamics tell enough."""

COMMANDS = 8
"""Commands that are remembered beside that of the coming period: no longer delay is identified."""

PARTS = 5
"""Integration steps in a period."""


class ProcessModel:
    """Expects what the boat does from what was sent to it."""

    def __init__(self, period: float, under_actuated: bool) -> None:
        self._period = period
        self._sway = not under_actuated
        self._sent: deque[tuple[float, ...]] = deque([(0.0, 0.0, 0.0)] * (COMMANDS + 1), COMMANDS + 1)
        self._thrust = np.zeros(3)

    def acceleration(self, command: Array, state: Array, dynamics: Dynamics | None) -> Array | None:
        """(surge, sway) in the coming period as an accelerometer measures it, m/s²; None where it is not known.

        `command` is sent now, fractions of the limits; `state` is the boat's, (6,). A policy's own estimate of the
        dynamics, which has no lag, follows every change of the state: it and the estimator would confirm each other.
        """
        self._sent.appendleft(tuple(command.tolist()))
        if dynamics is None or dynamics.lag is None or not self._known(dynamics):
            self._thrust = np.array(self._sent[1])
            return None
        thrust, keep = self._thrust, math.exp(-self._period / PARTS / dynamics.lag) if dynamics.lag > 0 else 0.0
        push = np.zeros(3) if dynamics.force is None else dynamics.force
        delay, forces = min(dynamics.delay or 0.0, COMMANDS * self._period), []
        for active in delayed(self._sent, delay, PARTS, self._period):
            thrust = keep * thrust + (1 - keep) * np.array(active)
            forces.append(tuple((thrust + push).tolist()))
        self._thrust = thrust
        c_u, c_v = (0.0, 0.0) if dynamics.current is None else dynamics.current.tolist()
        current = to_inertial(c_u, c_v, float(state[2]))
        try:
            after = np.array(step(tuple(state.tolist()), forces, dynamics.e, current, dt=self._period))
        except (ArithmeticError, ValueError):
            after = np.full(6, math.nan)
        u, v, r = (state[3:] + after[3:]) / 2
        du, dv, _ = (after[3:] - state[3:]) / self._period
        expected = np.array([du - r * v, dv + r * u])
        if np.isfinite(expected).all() and np.isfinite(thrust).all():
            return expected
        self._thrust = np.array(self._sent[1])
        return None

    def _known(self, dynamics: Dynamics) -> bool:
        spread = dynamics.spread
        return spread.alpha_u < KNOWN and (spread.alpha_v < KNOWN or not self._sway)
