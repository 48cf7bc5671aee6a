"""Line-of-sight guidance with a heading and a speed controller, as autopilots steer boats that cannot push sideways.

Guidance. With the errors (e_x, e_y) and velocities (U, .) in the frame of the reference's heading, the desired velocity
over ground is the reference's and (e_x / T_X, e_y / T_E), together at most `CORRECTION`, which is line of sight with a
lookahead distance of T_E U and the along-track (time) error beside the cross-track error. Heading and yaw rate follow
from its direction chi, the drift v and what pushes the boat sideways, f, and from the yaw rate of the reference in the
window ahead, r_i:

    psi_d = chi - K_V U asin(v / U) - K_F f,      r_d = (psi_d - psi) / T_PSI + sum of G_i r_i

Controllers. Yaw: r' = (r_d - r) / T. Surge: that the along-track velocity approaches the desired one in T_U. The
vessel's model gives the forces for these accelerations, and an observer what is to be subtracted: it is their integral
action.

Gain schedule. The model of the boat at the reference's speed U, with the acceleration a of its yaw rate as input,

    e_y' = U psi + v,   psi' = r - r_i,   v' = -v / tau_v + c_ru U r + f,   r' = a

and the cost e_y² + `Tuning.yaw` a² have one linear-quadratic regulator with preview of r_i and a forecast of f, which
is the cascade above: T_E, T_PSI, T, K_V, K_F and all G_i are its gains. So are T_X and T_U with `Tuning.surge`. A boat
that first moves outwards when it turns (c_ru < -1, Qiuxin) begins its turns earlier, by the same equations.

The state is that after the nominal delay, predicted with the commands in transit and the observed force. Lengths and
times are in the units of the vessel's scale.

Station keeping. A boat without sway force cannot hold a position and a heading in wind or current. It stays within
`Vessel.hold_radius`: it goes ahead and astern along a heading that it keeps, at first the reference's. What pushes it
sideways takes it away from the centre, and it turns its bow or its stern toward the centre, which is into the push: the
one that is nearer, and of two that are about as near the one that turns it back toward its first heading.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from anyhull.backend import Array, to_body, to_inertial, wrap
from anyhull.controller import check_inputs
from anyhull.dynamics import PERIOD, State, acceleration, inverse_dynamics, step
from anyhull.reference import PREVIEW
from anyhull.sea import Sea
from anyhull.vessel import Vessel

CORRECTION = 0.5
"""Largest speed with which an error is reduced, m/s."""

STILL = 0.05
"""Speed below which the reference's heading counts more than the direction of the desired velocity, m/s."""

SLOWEST = 0.2
"""Speed below which the gains stay as they are there, m/s."""

SHARPEST = 1.0
"""Largest correction of the heading for drift, rad."""

KEEP = math.exp(-PERIOD * Sea.field().force_decay)
"""Share of the observed sway force that is expected to be left after a period."""

INNER, OUTER = 0.15, 0.35
"""Shares of the circle's radius at which a boat that keeps station stops and begins to turn toward the centre."""

T_HOLD, T_COAST = 3.0, 1.5
"""Time constant of the position error in station keeping, and time for which the boat is expected to coast, s."""

UNWIND = 0.2
"""Weight of the turn from the first heading beside the turn that is needed, in the choice of bow or stern."""


@dataclass(frozen=True)
class Tuning:
    """What is left to choose where the vessel's model is known."""

    yaw: float = 0.0044
    """Weight of the squared yaw acceleration beside that of the cross-track error, m² s⁴."""
    surge: float = 0.0046
    """Weight of the squared surge acceleration beside that of the along-track error, s⁴."""
    delay: float = 0.03
    """Nominal actuator delay, s."""
    observer: float = 0.13
    """Gain of the observer of the forces in surge and yaw, per period. That of sway, which has no command, is 1."""


TUNING = Tuning()
"""The best of `benchmarks/under_los.py`."""


@dataclass(frozen=True)
class Gains:
    """Time constants (s) and feedforward of the cascade at one speed."""

    t_e: float
    """Of the cross-track error: T_E."""
    t_psi: float
    """Of the heading: T_PSI."""
    t: float
    """Of the yaw rate: T."""
    drift: float
    """Heading per sway velocity, rad s/m: K_V."""
    crab: float
    """Heading per sway acceleration, rad s²/m: K_F."""
    preview: Array
    """Yaw rate per yaw rate of the reference in each coming period: G, the last for all beyond."""


@lru_cache(1024)
def steering(u: float, damping: float, c_ru: float, weight: float) -> Gains:
    """The gains at a speed `u` for 1/tau_v = `damping`."""
    model = np.zeros((7, 7))  # d(e_y, psi, v, r)/dt by e_y, psi, v, r, a, r_i, f
    model[0, [1, 2]] = u, 1.0
    model[1, [3, 5]] = 1.0, -1.0
    model[2, [2, 3, 6]] = -damping, c_ru * u, 1.0
    model[3, 4] = 1.0
    held = exponential(model * PERIOD)
    a, b, turn, push = held[:4, :4], held[:4, 4:5], held[:4, 5:6], held[:4, 6:]
    p = riccati(a, b, weight)
    to_input = b.T / (weight + b.T @ p @ b)
    k = to_input @ p @ a
    closed = (a - b @ k).T
    effect, preview = p @ turn, []
    for _ in range(PREVIEW):
        preview.append((to_input @ effect).item())
        effect = closed @ effect
    preview[-1] += (to_input @ np.linalg.solve(np.eye(4) - closed, effect)).item()
    crab = (to_input @ np.linalg.solve(np.eye(4) - KEEP * closed, p @ push)).item()
    k_e, k_psi, k_v, k_r = k[0]
    return Gains(k_psi / (k_e * u), k_r / k_psi, 1 / k_r, k_v / k_psi, crab / k_psi, -np.array(preview) / k_r)


def advance(weight: float) -> tuple[float, float]:
    """T_X and T_U: the gains for the along-track error with the surge acceleration as input."""
    a, b = np.array([[1.0, PERIOD], [0.0, 1.0]]), np.array([[PERIOD**2 / 2], [PERIOD]])
    p = riccati(a, b, weight)
    k_e, k_u = (b.T @ p @ a / (weight + b.T @ p @ b))[0]
    return k_u / k_e, 1 / k_u


def exponential(a: Array) -> Array:
    """e^a by its series: for what changes little in a period."""
    halvings = max(0, math.ceil(math.log2(max(float(np.abs(a).max()), 1e-9))) + 2)
    term = total = np.eye(len(a))
    for i in range(1, 15):
        term = term @ a / (i * 2**halvings)
        total = total + term
    return np.linalg.matrix_power(total, 2**halvings)


def riccati(a: Array, b: Array, weight: float) -> Array:
    """P = Q + Aᵀ P (I + B Bᵀ P / weight)⁻¹ A by doubling, with Q the square of the first state."""
    g, p, eye = b @ b.T / weight, np.zeros_like(a), np.eye(len(a))
    p[0, 0] = 1.0
    for _ in range(30):
        w = np.linalg.inv(eye + g @ p)
        g, p, a = g + a @ w @ g @ a.T, p + a.T @ p @ w @ a, a @ w @ a
    return p


class LOS:
    """Follows the window by its heading and speed; a sway command is zero."""

    def __init__(self, vessel: Vessel, tuning: Tuning = TUNING) -> None:
        self.vessel, self.tuning, self._scale = vessel, tuning, vessel.scale
        self._e, self._drag = self._scale.normalized(vessel.disturbed), self._scale.drag(vessel.drag)
        effective = self._scale.normalized(vessel.effective())
        self._damping = max(effective.inv_tau_v, 1e-6)
        rates = np.maximum(effective[3:6], 1e-9)
        self._held = -np.expm1(-rates * PERIOD) / (rates * PERIOD)
        """Mean share of an acceleration that is left, damped, in a period in which the force is held."""
        self._effect = np.array(self._e[:3]) * self._held * PERIOD
        self._observer = np.array([tuning.observer, 1.0, tuning.observer])
        self._t_x, self._t_u = advance(tuning.surge)
        self._radius = vessel.hold_radius / self._scale.length
        self._parts = max(1, math.ceil(self._scale.period * vessel.stiffness / 0.7))
        self.reset()

    def reset(self) -> None:
        """Forget the observed force, the commands in transit and the heading of station keeping."""
        self.force = np.zeros(3)
        """Observed force, fractions of the limits."""
        self._issued = [np.zeros(3)] * (int(self.tuning.delay / PERIOD) + 2)  # newest first
        self._expected: Array | None = None  # velocity
        self._facing: float | None = None  # heading of station keeping
        self._turned = 0.0  # since the start of station keeping
        self._returning = False

    def step(self, pose: ArrayLike, velocity: ArrayLike, window: ArrayLike) -> Array:
        """The normalized command in [-1, 1]³ for the coming period."""
        now, nu, reference = check_inputs(pose, velocity, window)
        now, nu, reference = self._scale.pose(now), self._scale.velocity(nu), self._scale.window(reference)
        if self._expected is not None:
            self.force = self.force + self._observer * (nu - self._expected) / self._effect
            self.force[[0, 2]] = np.clip(self.force[[0, 2]], -1.0, 1.0)
        boat: State = (*now.tolist(), *nu.tolist())
        state = self._after_delay(boat)
        delay = self.tuning.delay / PERIOD
        ahead = np.array([self._at(reference, delay + i) for i in range(PREVIEW + 1)])
        if np.abs(reference[:, 3:]).max() < STILL / 2:
            desired = self._keep_station(state, ahead[0])
        else:
            self._facing = None
            desired = self._follow(state, ahead)
        need = inverse_dynamics(state[3:], (desired[0], 0.0, desired[1]), self._e, self._drag)
        force = np.array([need[0], 0.0, need[2]]) - [self.force[0], 0.0, self.force[2]]
        command: Array = np.clip(force, -1.0, 1.0)
        self._issued = [command, *self._issued[:-1]]
        self._expected = np.array(self._next(boat)[3:])
        return command

    def _follow(self, state: State, ahead: Array) -> tuple[float, float]:
        """Accelerations in surge and yaw along the reference."""
        (x, y, psi, u, v, r), reference = state, ahead[0]
        pace = math.copysign(max(abs(reference[3]), SLOWEST), reference[3] if abs(reference[3]) > STILL / 2 else 1.0)
        gains = steering(round(pace, 2), self._damping, self._e.c_ru, self.tuning.yaw)
        along, across = to_body(reference[0] - x, reference[1] - y, reference[2])
        pull = np.array([along / self._t_x, across / gains.t_e])
        pull *= min(1.0, CORRECTION / max(float(np.hypot(*pull)), 1e-9))
        wanted = reference[3:5] + pull
        # What the linear model of the schedule lacks in sway: the observed force, nonlinear drag, the actual speed.
        _, sway, _ = acceleration((u, v, r), (0.0, self.force[1], 0.0), self._e, self._drag)
        push = sway - (self._e.c_ru * pace * r - self._damping * v)
        crab = gains.drift * pace * math.asin(min(max(v / pace, -0.95), 0.95)) + gains.crab * push
        heading = self._course(wanted, reference) - min(max(crab, -SHARPEST), SHARPEST)
        coming = float(gains.preview @ (ahead[:-1, 5] + ahead[1:, 5])) / 2
        yaw = self._turn(heading, psi, r, coming, gains)

        change = (ahead[1, 3] - ahead[0, 3]) / PERIOD
        off = float(wrap(psi - reference[2]))
        if math.cos(off) < 0.5:
            speed = float(wanted @ [math.cos(off), math.sin(off)])
            return (change + (speed - u) / self._t_u) / self._held[0], yaw
        # The velocity along the track is u cos(off) - v sin(off).
        speed, sideways = to_inertial(u, v, off)
        needed = change + (wanted[0] - speed) / self._t_u
        surge = (needed + sway * math.sin(off) + (r - reference[5]) * sideways) / math.cos(off)
        return surge / self._held[0], yaw

    def _keep_station(self, state: State, reference: Array) -> tuple[float, float]:
        """Accelerations in surge and yaw toward the centre of the circle."""
        x, y, psi, u, v, r = state
        gains = steering(SLOWEST, self._damping, self._e.c_ru, self.tuning.yaw)
        error = reference[:2] - [x, y]
        # Its mean sway velocity while it coasts, with the observed force.
        _, sway, _ = acceleration((u, v, r), (0.0, self.force[1], 0.0), self._e, self._drag)
        lag = self._damping * T_COAST
        sideways = v + sway / self._damping * (1 + math.expm1(-lag) / lag)
        coast = T_COAST * np.array(to_inertial(u, sideways, psi))
        heading = self._face(error, coast, psi, reference[2])
        # It first turns and then goes: on its way during a turn it would circle round the centre.
        wanted = error / T_HOLD * max(0.0, math.cos(heading - psi)) ** 4
        speed = float(wanted @ [math.cos(psi), math.sin(psi)])
        return (speed - u) / self._t_u / self._held[0], self._turn(heading, psi, r, 0.0, gains)

    def _turn(self, heading: float, psi: float, r: float, coming: float, gains: Gains) -> float:
        """Yaw acceleration toward a heading; a large turn begins to brake in time."""
        offset = float(wrap(heading - psi))
        rate = min(abs(offset) / gains.t_psi, math.sqrt(2 * self._e.alpha_r * abs(offset)))
        return float((coming + math.copysign(rate, offset) - r) / gains.t / self._held[2])

    def _face(self, error: Array, coast: Array, psi: float, asked: float) -> float:
        """Heading of station keeping: kept in the middle of the circle, and toward its centre from outside of that."""
        size = float(np.hypot(*error))
        self._returning = size > (INNER if self._returning else OUTER) * self._radius
        if self._facing is None:
            self._facing, self._turned = asked, 0.0
        self._turned += float(wrap(psi - asked - self._turned))
        if self._returning:
            x, y = error - coast
            bow = float(wrap(math.atan2(y, x) - psi))
            ways = bow, float(wrap(bow + math.pi))
            self._facing = psi + min(ways, key=lambda way: abs(way) + UNWIND * abs(self._turned + way))
        return self._facing

    def _course(self, wanted: Array, reference: Array) -> float:
        """Course for the desired velocity in the reference's frame: astern where the reference goes astern."""
        way = -wanted if reference[3] < -STILL / 2 else wanted
        slow = STILL * max(0.0, 1.0 - abs(reference[3]) / SLOWEST)
        return float(reference[2]) + math.atan2(way[1], way[0] + slow)

    def _after(self, state: State, command: Array, time: float) -> State:
        """The state some time later with this command and the observed force."""
        return step(state, [tuple((command + self.force).tolist())] * self._parts, self._e, drag=self._drag, dt=time)

    def _after_delay(self, state: State) -> State:
        """The state when a command that is issued now takes effect."""
        whole, part = int(self.tuning.delay / PERIOD), self.tuning.delay % PERIOD
        if part > 1e-9:
            state = self._after(state, self._issued[whole], part)
        for i in reversed(range(whole)):
            state = self._after(state, self._issued[i], PERIOD)
        return state

    def _next(self, state: State) -> State:
        """The state one period later, after the newest command was issued."""
        whole, part = int(self.tuning.delay / PERIOD), self.tuning.delay % PERIOD
        if part > 1e-9:
            state = self._after(state, self._issued[whole + 1], part)
        return self._after(state, self._issued[whole], PERIOD - part)

    def _at(self, reference: Array, periods: float) -> Array:
        """The reference some periods from now, and after the window its last state."""
        whole = min(int(periods), PREVIEW - 1)
        part = min(periods - whole, 1.0)
        return np.asarray((1 - part) * reference[whole] + part * reference[whole + 1])
