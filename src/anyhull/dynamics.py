"""Equations of motion and their integration, written once for floats, NumPy, JAX and CasADi.

A state is six numbers (x, y, psi, u, v, r): pose in the inertial frame (m, m, rad), velocity in the body
frame (m/s, m/s, rad/s). Numbers may be arrays of one common shape, so a tuple of arrays is a batch of boats.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from anyhull.backend import Numbers, to_body, to_inertial
from anyhull.scale import PERIOD as PERIOD
from anyhull.vessel import Vessel

State = tuple[Any, ...]

SUBSTEP = 0.02
"""Longest integration step, in the vessel's time unit: RK4 stays accurate up to damping rates of 34 1/s."""

NO_DRAG = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
"""Quadratic and cubic damping of the paper's model."""


def velocity_through_water(state: Numbers, current: Numbers) -> tuple[Any, Any, Any]:
    """Body-frame velocity relative to the water, which moves with the inertial-frame `current` (x, y), m/s."""
    _, _, psi, u, v, r = state
    c_u, c_v = to_body(current[0], current[1], psi)
    return u - c_u, v - c_v, r


def acceleration(
    through_water: Numbers, force: Numbers, e: Numbers, drag: tuple[Numbers, Numbers] = NO_DRAG
) -> tuple[Any, Any, Any]:
    """Body-frame acceleration in normalized form (the paper's equation for u, v, r with its nine coefficients e).

    `force` is the sum of command and disturbance in fractions of the actuator limits; `drag` holds the
    quadratic and cubic damping per unit of inertia.
    """
    u, v, r = through_water
    alpha_u, alpha_v, alpha_r, d_u, d_v, d_r, c_rv, c_ru, c_uv = e
    (q_u, q_v, q_r), (k_u, k_v, k_r) = drag
    return (
        alpha_u * force[0] - (d_u + q_u * abs(u) + k_u * u * u) * u + c_rv * r * v,
        alpha_v * force[1] - (d_v + q_v * abs(v) + k_v * v * v) * v + c_ru * r * u,
        alpha_r * force[2] - (d_r + q_r * abs(r) + k_r * r * r) * r + c_uv * u * v,
    )


def physical_acceleration(through_water: Numbers, tau: Numbers, vessel: Vessel) -> tuple[Any, Any, Any]:
    """Body-frame acceleration M⁻¹(tau - N(nu_r) nu_r) from the physical parameters theta; `tau` in N, N, N·m."""
    u, v, r = through_water
    b, m = vessel.hull, vessel.mass
    rows = (
        ((b.X_u + b.X_uu * abs(u) + b.X_uuu * u * u), -m * r, b.Y_vdot * v),
        (m * r, (b.Y_v + b.Y_vv * abs(v) + b.Y_vvv * v * v), -b.X_udot * u),
        (-b.Y_vdot * v, b.X_udot * u, (b.N_r + b.N_rr * abs(r) + b.N_rrr * r * r)),
    )
    return tuple(
        (force - (row[0] * u + row[1] * v + row[2] * r)) / inertia
        for force, row, inertia in zip(tau, rows, vessel.inertia, strict=True)
    )  # type: ignore[return-value]


def inverse_dynamics(
    velocity: Numbers, acceleration: Numbers, e: Numbers, drag: tuple[Numbers, Numbers] = NO_DRAG
) -> tuple[Any, Any, Any]:
    """The normalized command that gives a boat moving at `velocity` this `acceleration` in still water."""
    u, v, r = velocity
    alpha_u, alpha_v, alpha_r, d_u, d_v, d_r, c_rv, c_ru, c_uv = e
    (q_u, q_v, q_r), (k_u, k_v, k_r) = drag
    return (
        (acceleration[0] + (d_u + q_u * abs(u) + k_u * u * u) * u - c_rv * r * v) / alpha_u,
        (acceleration[1] + (d_v + q_v * abs(v) + k_v * v * v) * v - c_ru * r * u) / alpha_v,
        (acceleration[2] + (d_r + q_r * abs(r) + k_r * r * r) * r - c_uv * u * v) / alpha_r,
    )


def derivative(
    state: Numbers,
    force: Numbers,
    e: Numbers,
    current: Numbers = (0.0, 0.0),
    drag: tuple[Numbers, Numbers] = NO_DRAG,
) -> State:
    """Time derivative of the state: kinematics, and `acceleration` relative to the water."""
    _, _, psi, u, v, r = state
    x_dot, y_dot = to_inertial(u, v, psi)
    return (x_dot, y_dot, r, *acceleration(velocity_through_water(state, current), force, e, drag))


def rk4(rate: Callable[[State], Numbers], state: Numbers, dt: Any) -> State:
    """One step of the classical fourth-order Runge-Kutta method."""

    def euler(h: Any, slope: Numbers) -> State:
        return tuple(s + h * k for s, k in zip(state, slope, strict=True))

    k1 = rate(tuple(state))
    k2 = rate(euler(dt / 2, k1))
    k3 = rate(euler(dt / 2, k2))
    k4 = rate(euler(dt, k3))
    slopes = zip(state, k1, k2, k3, k4, strict=True)
    return tuple(s + dt / 6 * (a + 2 * (b + c) + d) for s, a, b, c, d in slopes)


def step(
    state: Numbers,
    forces: Sequence[Numbers],
    e: Numbers,
    current: Numbers = (0.0, 0.0),
    drag: tuple[Numbers, Numbers] = NO_DRAG,
    dt: Any = PERIOD,
) -> State:
    """The state after `dt`: one RK4 step for each of `forces`, held constant over equal parts of `dt`."""
    for force in forces:
        state = rk4(lambda s, f=force: derivative(s, f, e, current, drag), state, dt / len(forces))  # type: ignore[misc]
    return tuple(state)


def substeps(vessel: Vessel, dt: float = PERIOD) -> int:
    """Number of RK4 steps in `dt`, s: each at most `SUBSTEP` and, for stiff boats, 0.7 / damping rate."""
    longest = SUBSTEP * vessel.scale.time
    return max(math.ceil(dt / longest - 1e-9), math.ceil(dt * vessel.stiffness / 0.7))
