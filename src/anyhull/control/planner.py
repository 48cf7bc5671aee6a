"""Model predictive control of a boat whose dynamics, delay and lag are parameters.

    minimize    sum over k = 1..n of (s_k - ref_k)ᵀ diag(q) (s_k - ref_k) + r |a_{k-1}|² + rate |alpha^p Δa_{k-1}|²
    subject to  -1 <= a_k <= 1

with s_k the predicted states. The horizon starts when the command of this period begins to act: the state is first
predicted over the delay with the commands already issued. The thrust then follows the plan with the lag, from what the
issued commands have left of it. Gauss-Newton: the states are linearized about the last plan and eliminated, so that
each iteration is a quadratic program in the commands alone, with bounds only; a solution always exists.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from anyhull.backend import Array, to_inertial
from anyhull.control.mpc import continued
from anyhull.control.unknown_boat import (
    ALPHA,
    BOAT,
    COARSE,
    CURRENT,
    DELAY,
    LAG,
    PARTS,
    PUSH,
    STATE,
    Buffered,
    motion,
    rollout,
    thrust,
)
from anyhull.dynamics import PERIOD
from anyhull.errors import InputError

try:
    import daqp
except ImportError:
    daqp = None

STIFF = 12.0
"""Damping rate above which a plan integrates each period in five parts, 1/s."""

ITERATIONS = 3
"""Linearizations of a plan, at most."""

SETTLED = 3e-3
"""Largest change of a command between two linearizations at which a plan is final."""


@dataclass(frozen=True)
class Weights:
    """Weights of the cost, in the units of the vessel's scale."""

    q: tuple[float, float, float, float, float, float]
    """Weight of the squared error in x, y, psi, u, v, r; equal for x and y, since the frame is inertial."""
    r: float
    """Weight of the squared command on each axis."""
    rate: float
    """Weight of the squared change of command per period, times alpha^(2p)."""
    power: float
    """p: how much a boat with strong thrusters is steered more gently."""


def at_fraction(states: Array, offset: float, count: int) -> Array:
    """The reference `offset` periods from now and each period after it, (count, 6), from its `states` (m, 6).

    Between two states it moves with the twist of each, weighted by how near it is: a chord would cut a corner.
    """
    whole = int(offset)
    part = offset - whole
    before, after = states[whole : whole + count], states[whole + 1 : whole + 1 + count]
    mixed: Array = (1 - part) * _moved(before, part * PERIOD) + part * _moved(after, (part - 1) * PERIOD)
    return mixed


def _moved(states: Array, t: float) -> Array:
    """States (n, 6) a time t later at their own twist."""
    x, y, psi, u, v, r = states.T
    chord = t * np.sinc(r * t / (2 * math.pi))
    along_x, along_y = to_inertial(u, v, psi + r * t / 2)
    return np.column_stack([x + chord * along_x, y + chord * along_y, psi + r * t, u, v, r])


class Planner:
    """Plans the commands of the coming periods for an estimate of the boat."""

    def __init__(self, under: bool, periods: int) -> None:
        if daqp is None:
            raise InputError("Adaptive needs DAQP, which is not installed: pip install 'anyhull[onboard]'")
        self.periods = periods
        self._under = under
        self._motion = Buffered(motion(under, COARSE))
        self._rollouts = {parts: Buffered(rollout(under, periods, parts)) for parts in (COARSE, PARTS)}
        self._axes = np.array([0, 2] if under else [0, 1, 2])
        self._difference = np.eye(periods) - np.eye(periods, k=-1)
        self.reset()

    def reset(self) -> None:
        """Clear the plan."""
        self.plan = np.zeros((self.periods, 3))
        """The commands of the coming periods, (n, 3); the first is due now."""

    def shift(self, issued: Array) -> None:
        """The period is over, in which `issued` was the command."""
        self.plan = np.vstack([self.plan[1:], self.plan[-1:]])
        if not np.isfinite(self.plan).all():
            self.plan = np.tile(issued, (self.periods, 1))

    def solve(
        self, z: Array, changes: Array, last: Array, reference: Array, weights: Weights, keep: float, deadline: float
    ) -> bool:
        """Update `plan`; whether it may be used.

        `z` are the unknowns, `changes` (m, 3) the steps of the commands issued so far, newest first, and `last` their
        sum; `reference` are its states now and in the coming periods. `keep` is the share of the push that is left
        after a period. After the `deadline` (`time.perf_counter`) no further linearization is begun.
        """
        n, axes = self.periods, self._axes
        delay, lag = z[DELAY : DELAY + 1], z[LAG : LAG + 1]
        ages = PERIOD * np.arange(1.0, len(changes) + 1)
        start, push = self._start(z, changes, ages, keep)
        damping = math.exp(z[BOAT][3:6].max())
        parts = COARSE if damping < STIFF else PARTS
        edges = PERIOD / parts * np.arange(n * parts + 1.0)
        past = thrust(changes, ages, delay[0] + edges, delay, lag)[0][0]
        # The response of each part to each change of the plan, of which the first is from the command issued last.
        response = thrust(np.eye(n), -PERIOD * np.arange(float(n)), edges, np.zeros(1), lag)[0][0]
        past -= np.outer(response[:, 0], last)
        response = response @ self._difference
        pushes = push * keep ** np.arange(n)[:, None]
        ahead = at_fraction(continued(reference, n + 6), float(delay[0]) / PERIOD + 1, n)
        ahead[:, 2] += math.tau * np.round((start[2] - ahead[0, 2]) / math.tau)

        scale = np.exp(2 * weights.power * z[ALPHA])
        q = np.array(weights.q)
        smooth = self._difference.T @ self._difference
        size = n * len(axes)
        curvature = np.zeros((n, len(axes), n, len(axes)))
        for i, axis in enumerate(axes):
            curvature[:, i, :, i] = weights.r * np.eye(n) + weights.rate * scale[axis] * smooth
        constant = np.zeros((n, len(axes)))
        constant[0] = -weights.rate * (scale * last)[axes]
        plan, bound = self.plan, np.ones(size)
        solved = False
        for _ in range(ITERATIONS):
            thrusts = past + response @ plan
            states, by_state, by_thrust = self._rollouts[parts](start, thrusts, z[BOAT], pushes, z[CURRENT])
            if not np.isfinite(states).all():
                return solved
            a = by_state.reshape(n, 6, 6).transpose(0, 2, 1)
            b = by_thrust.reshape(n, parts, 3, 6)[:, :, axes]
            direct = np.einsum("kpai,kpj->kija", b, response.reshape(n, parts, n)).reshape(n, 6, size)
            sensitivity = np.empty((n, 6, size))
            row = sensitivity[0] = direct[0]
            for k in range(1, n):
                row = sensitivity[k] = a[k] @ row + direct[k]
            weighted = (sensitivity * q[:, None]).reshape(6 * n, size)
            flat = sensitivity.reshape(6 * n, size)
            hessian = flat.T @ weighted + curvature.reshape(size, size)
            gap = (states - ahead).ravel() - flat @ plan[:, axes].ravel()
            linear = weighted.T @ gap + constant.ravel()
            found, _, flag, _ = daqp.solve(
                (hessian + hessian.T) / 2, linear, np.zeros((0, size)), bound, -bound, np.zeros(size, np.int32)
            )
            found = np.asarray(found)
            if flag < 1 or not np.isfinite(found).all():
                return solved
            following = np.zeros((n, 3))
            following[:, axes] = np.clip(found.reshape(n, len(axes)), -1.0, 1.0)
            moved = np.abs(following - plan).max()
            plan = self.plan = following
            solved = True
            if moved < SETTLED or time.perf_counter() > deadline:
                break
        return solved

    def _start(self, z: Array, changes: Array, ages: Array, keep: float) -> tuple[Array, Array]:
        """State and push when the command of this period begins to act."""
        delay, state, push = float(z[DELAY]), z[STATE], z[PUSH]
        pieces = math.ceil(delay / PERIOD - 1e-9)
        if pieces > 0:
            piece = delay / pieces
            edges = delay / (COARSE * pieces) * np.arange(COARSE * pieces + 1.0)
            thrusts = thrust(changes, ages, edges, z[DELAY : DELAY + 1], z[LAG : LAG + 1])[0][0]
            for i in range(pieces):
                part = thrusts[COARSE * i : COARSE * (i + 1)]
                (state,) = self._motion(state, part, z[BOAT], push, z[CURRENT], piece)
                state, push = state.ravel().copy(), push * keep ** (piece / PERIOD)
        return state, push
