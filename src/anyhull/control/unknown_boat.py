"""The motion of a boat whose dynamics are unknowns, and its linearization, as CasADi functions.

The unknowns beside the state s = (x, y, psi, u, v, r) are

    boat     log alpha (3), log 1/tau (3), log c_rv, asinh c_uv, as in `anyhull.observation.scale_privileged`
    push     what wind, waves and all that the model lacks add to the acceleration; body frame (3)
    current  inertial frame (2)
    delay    from the command to when it starts to act
    lag      time constant with which the thrust follows

all in the units of the vessel's scale. The thrust is no state, since the commands are known: it follows from them by
delay and lag.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from anyhull.backend import Array, namespace
from anyhull.dynamics import PERIOD, step
from anyhull.errors import InputError
from anyhull.hydrodynamics import Normalized

try:
    import casadi as ca
except ImportError:
    ca = None  # type: ignore[assignment]

STATE, BOAT, PUSH, CURRENT, DELAY, LAG = slice(0, 6), slice(6, 14), slice(14, 17), slice(17, 19), 19, 20
"""Places in the vector of unknowns."""

ALPHA = slice(6, 9)
"""Those of the peak accelerations."""

UNKNOWNS = 21

PARTS = 5
"""Integration steps of a period in a prediction: those of the simulator."""

COARSE = 2
"""Integration steps of a period in a linearization, and in a plan for a boat without fast damping."""

SHORTEST_LAG = 1e-4
"""Time constant that stands for none, s."""


def components(boat: Any, under: bool) -> Normalized:
    """The nine components e of a boat's eight unknowns; without sway force alpha_v scales the wind, as in training."""
    xp = namespace(boat[0])
    alpha_u, alpha_v, alpha_r, d_u, d_v, d_r, c_rv = (xp.exp(boat[i]) for i in range(7))
    if under:
        alpha_v = alpha_u / c_rv
    return Normalized(alpha_u, alpha_v, alpha_r, d_u, d_v, d_r, c_rv, -1 / c_rv, xp.sinh(boat[7]))


def unknowns(e: Normalized) -> Array:
    """The eight unknowns of a boat with these components."""
    return np.append(np.log(e[:7]), np.arcsinh(e.c_uv))


def thrust(changes: Array, ages: Array, edges: Array, delay: Array, lag: Array) -> tuple[Array, Array, Array]:
    """Mean thrust between each two of `edges` for m pairs of delay and lag, and its derivatives by either.

    `changes` (n, 3) are the steps of the command and `ages` (n,) the time since each, s; `edges` (k,) are times from
    now; `delay` and `lag` have shape (m,); the results (m, k - 1, 3). A step of age a has given at time t the share
    1 - exp(-s / lag) of its thrust, s = t + a - delay > 0, whose integral is s - lag (1 - exp(-s / lag)).
    """
    lag = np.maximum(lag, SHORTEST_LAG)[:, None, None]
    s = np.maximum(edges[:, None] + ages - delay[:, None, None], 0.0)  # (m, k, n)
    left = np.exp(-s / lag)
    width = np.diff(edges)[:, None]
    return (
        np.diff((s - lag * (1 - left)) @ changes, axis=1) / width,
        np.diff((left - 1) @ changes, axis=1) / width,
        np.diff((left * (1 + s / lag) - 1) @ changes, axis=1) / width,
    )


MEMORY = 50
"""Commands that are remembered: beyond them a thrust has settled."""


class Commands:
    """The steps of the command, newest first, with what is older summed into the last."""

    def __init__(self) -> None:
        self.changes = np.zeros((MEMORY, 3))
        self.last = np.zeros(3)

    def add(self, command: Array) -> None:
        """Remember the command of the coming period."""
        oldest = self.changes[-1].copy()
        self.changes[1:] = self.changes[:-1]
        self.changes[-1] += oldest
        self.changes[0] = command - self.last
        self.last = np.array(command)

    def correct(self, command: Array) -> None:
        """The last command was this one."""
        self.changes[0] += command - self.last
        self.last = np.array(command)


def _numbers(symbol: Any) -> tuple[Any, ...]:
    return tuple(ca.vertsplit(symbol))


def _forces(thrusts: Any, push: Any, e: Normalized, parts: int) -> list[tuple[Any, ...]]:
    force = push / ca.vertcat(*e[:3])
    return [_numbers(thrusts[3 * i : 3 * i + 3] + force) for i in range(parts)]


@cache
def transition(under: bool) -> Any:
    """(unknowns, thrust in 5 parts, thrust in 2 parts and its derivatives by delay and lag) -> state then, Jacobian.

    The Jacobian (6, 21) is by the unknowns. It integrates in two parts, which costs a fifth and errs by a few per cent
    for the fastest damping in training; an iterated filter only converges a little slower for it.
    """
    if ca is None:
        raise InputError("Adaptive needs CasADi, which is not installed: pip install 'anyhull[mpc]'")
    z, fine = ca.SX.sym("z", UNKNOWNS), ca.SX.sym("fine", 3 * PARTS)
    coarse, by_delay, by_lag = (ca.SX.sym(name, 3 * COARSE) for name in ("coarse", "by_delay", "by_lag"))

    def after(thrusts: Any, parts: int) -> Any:
        e, current = components(_numbers(z[BOAT]), under), _numbers(z[CURRENT])
        return ca.vertcat(*step(_numbers(z[STATE]), _forces(thrusts, z[PUSH], e, parts), e, current))

    delay, lag = ca.SX.sym("delay"), ca.SX.sym("lag")
    moved = after(coarse + delay * by_delay + lag * by_lag, COARSE)
    jacobian = ca.jacobian(moved, ca.vertcat(z[: CURRENT.stop], delay, lag))
    jacobian = ca.substitute(jacobian, ca.vertcat(delay, lag), ca.DM.zeros(2))
    return ca.Function("transition", [z, fine, coarse, by_delay, by_lag], [after(fine, PARTS), ca.densify(jacobian)])


@cache
def disturbance_score(under: bool) -> Any:
    """(unknowns, thrust in 2 parts, gain of push and current (6, 5)) -> derivative of log det S / 2 by the boat (8).

    S is the variance that push and current give to the innovation. A boat with more damping explains the same error by
    less current: without this term of the likelihood a filter drifts to ever more of it.
    """
    z, coarse, gain = ca.SX.sym("z", UNKNOWNS), ca.SX.sym("coarse", 3 * COARSE), ca.SX.sym("gain", 6, 5)
    e, current = components(_numbers(z[BOAT]), under), _numbers(z[CURRENT])
    after = ca.vertcat(*step(_numbers(z[STATE]), _forces(coarse, z[PUSH], e, COARSE), e, current))
    share = ca.trace(ca.jacobian(after, z[PUSH.start : CURRENT.stop]) @ gain.T)
    return ca.Function("score", [z, coarse, gain], [ca.densify(ca.jacobian(share, z[BOAT]))])


def _motion(under: bool, parts: int) -> tuple[Any, list[Any]]:
    """The state some time later, and the symbols (state, thrusts, boat, push, current, time) that it depends on."""
    sizes = {"state": 6, "thrusts": 3 * parts, "boat": 8, "push": 3, "current": 2, "time": 1}
    symbols = [ca.SX.sym(name, size) for name, size in sizes.items()]
    state, thrusts, boat, push, current, time = symbols
    e = components(_numbers(boat), under)
    forces = _forces(thrusts, push, e, parts)
    return ca.vertcat(*step(_numbers(state), forces, e, _numbers(current), dt=time)), symbols


@cache
def motion(under: bool, parts: int) -> Any:
    """(state, thrusts (3 parts), boat, push, current, time) -> the state that much later."""
    reached, symbols = _motion(under, parts)
    return ca.Function("motion", symbols, [reached])


@cache
def rollout(under: bool, periods: int, parts: int) -> Any:
    """(state, thrusts (3 parts, n), boat, push (3, n), current) -> states (6, n), Jacobians by state and thrusts.

    One column a period of the plan; each Jacobian is a block of columns, (6, 6 n) and (6, 3 parts n).
    """
    reached, symbols = _motion(under, parts)
    jacobians = [ca.densify(ca.jacobian(reached, symbols[i])) for i in (0, 1)]
    period = ca.Function("period", symbols, [reached, *jacobians])
    sizes = {"start": (6, 1), "plan": (3 * parts, periods), "boat": (8, 1), "pushes": (3, periods), "current": (2, 1)}
    inputs = [ca.MX.sym(name, *size) for name, size in sizes.items()]
    state, plan, boat, pushes, current = inputs
    columns = []
    for k in range(periods):
        columns.append(period(state, plan[:, k], boat, pushes[:, k], current, PERIOD))
        state = columns[-1][0]
    return ca.Function("rollout", inputs, [ca.horzcat(*blocks) for blocks in zip(*columns, strict=True)])


class Buffered:
    """A CasADi function on NumPy arrays without conversion; the results are overwritten by the next call."""

    def __init__(self, function: Any) -> None:
        self._buffer, self._run = function.buffer()
        self.arguments = [np.zeros((function.size2_in(i), function.size1_in(i))) for i in range(function.n_in())]
        self.results = [np.zeros((function.size2_out(i), function.size1_out(i))) for i in range(function.n_out())]
        for i, array in enumerate(self.arguments):
            self._buffer.set_arg(i, array.data)
        for i, array in enumerate(self.results):
            self._buffer.set_res(i, array.data)

    def __call__(self, *values: ArrayLike) -> list[Array]:
        """The results, each the transpose of CasADi's matrix, whose columns are contiguous."""
        for argument, value in zip(self.arguments, values, strict=True):
            argument[...] = np.reshape(value, argument.shape)
        self._run()
        return self.results
