"""The hull of the twin: the boat that the vessel's file describes, and what such a file leaves out or has wrong.

With nu_r = (u, v, r) through the water, in the frame of the vessel's file (its origin where the file has the centre of
gravity), Fossen (2011), ch. 6 to 8:

    M nu_r' + C(nu_r) nu_r + D(nu_r) = tau,      M = [[m11, 0, 0], [0, m22, m23], [0, m23, m33]]

    C nu_r = (-(m22 v + m23 r) r,  m11 u r,  (m22 v + m23 r) u - m11 u v)

    D = (d_x(u),  d_y(v + x_l r),  d_n(r) + x_l d_y(v + x_l r)),   d(s) = (linear + quadratic |s| + cubic s²) s

The learner's model has diagonal M, drag in proportion to speed, no cross terms, and M on the velocity over ground.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from anyhull.vessel import WORKING_POINT, Triple, Vessel


@dataclass(frozen=True)
class Unknowns:
    """How wrong a vessel's file may be; standard deviations, each drawn for every trial."""

    inertia: float = 0.10
    """Of each inertia, as a fraction: added mass is from tables or from free decay tests, both that good."""
    damping: float = 0.10
    """Of the drag on each axis at the working point, as a fraction: the scatter of towing tests of small boats."""
    quadratic: tuple[float, float] = (0.3, 0.7)
    """Range of the quadratic share of that drag, for vessels whose file has linear drag alone: at Reynolds numbers of
    1e5 to 1e6 form drag is about as large as the rest."""
    gravity: float = 0.03
    """Of the centre of gravity ahead of where the file has it, in lengths: where batteries and payload are."""
    lateral: float = 0.05
    """Of the centre of lateral drag ahead of the centre of gravity, in lengths: trim and skegs."""


@dataclass(frozen=True)
class Hull:
    """The coefficients of the equations above; SI units."""

    m11: float
    m22: float
    m23: float
    m33: float
    linear: Triple
    quadratic: Triple
    cubic: Triple
    x_l: float
    """Centre of lateral drag ahead of the origin, m."""

    @staticmethod
    def draw(vessel: Vessel, unknowns: Unknowns, random: np.random.Generator) -> Hull:
        """One boat of those that the file may mean; its drag at the working point is the file's but for `damping`."""
        length = size(vessel)[0]
        m11, m22, m33 = (value * _factor(random, unknowns.inertia) for value in vessel.inertia)
        x_g, x_l = random.normal(0, unknowns.gravity * length), random.normal(0, unknowns.lateral * length)
        m23 = vessel.m * x_g
        factors = [_factor(random, unknowns.damping) for _ in range(3)]
        shares = random.uniform(*unknowns.quadratic, size=3)
        linear, quadratic, cubic = [], [], []
        for axis, (d, q, c) in enumerate(
            (
                (vessel.X_u, vessel.X_uu, vessel.X_uuu),
                (vessel.Y_v, vessel.Y_vv, vessel.Y_vvv),
                (vessel.N_r, vessel.N_rr, vessel.N_rrr),
            )
        ):
            share = 0.0 if q or c else float(shares[axis])
            linear.append(factors[axis] * (1 - share) * d)
            quadratic.append(factors[axis] * (q + share * d / WORKING_POINT[axis]))
            cubic.append(factors[axis] * c)
        # Parallel axes: the inertia about the origin exceeds that about the centre of gravity.
        m33 = max(m33 + vessel.m * x_g * x_g, 1.5 * m23 * m23 / m22)
        return Hull(m11, m22, m23, m33, _triple(linear), _triple(quadratic), _triple(cubic), x_l)

    def drag(self, through_water: Triple) -> Triple:
        """D(nu_r), N, N and N·m."""
        u, v, r = through_water
        local = v + self.x_l * r
        (l_u, l_v, l_r), (q_u, q_v, q_r), (c_u, c_v, c_r) = self.linear, self.quadratic, self.cubic
        side = (l_v + q_v * abs(local) + c_v * local * local) * local
        return (
            (l_u + q_u * abs(u) + c_u * u * u) * u,
            side,
            (l_r + q_r * abs(r) + c_r * r * r) * r + self.x_l * side,
        )

    def acceleration(self, through_water: Triple, tau: Triple) -> Triple:
        """nu_r' under the force `tau`, m/s², m/s² and rad/s²."""
        u, v, r = through_water
        d_x, d_y, d_n = self.drag(through_water)
        momentum = self.m22 * v + self.m23 * r
        x = tau[0] - d_x + momentum * r
        y = tau[1] - d_y - self.m11 * u * r
        n = tau[2] - d_n - momentum * u + self.m11 * u * v
        determinant = self.m22 * self.m33 - self.m23 * self.m23
        return x / self.m11, (self.m33 * y - self.m23 * n) / determinant, (self.m22 * n - self.m23 * y) / determinant


def size(vessel: Vessel) -> tuple[float, float]:
    """Length and beam, m; where the file has none, of a hull whose radius of gyration is a quarter of its length."""
    length = vessel.length or 4 * math.sqrt(vessel.I_comb / (vessel.m - vessel.Y_vdot))
    return length, vessel.beam or length / 2


def _factor(random: np.random.Generator, spread: float) -> float:
    """One, but for an error of that spread, cut off at twice it: a worse file is a mistake and not an error."""
    return float(1 + spread * np.clip(random.standard_normal(), -2, 2))


def _triple(values: list[float]) -> Triple:
    return values[0], values[1], values[2]
