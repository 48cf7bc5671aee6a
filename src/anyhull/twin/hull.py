"""The hull of the twin: the boat of the vessel's file, with the errors of such a file and the terms that it omits.

With nu_r = (u, v, r) through the water, in the frame of the vessel's file (its origin where the file has the centre of
gravity), Fossen (2011), ch. 6 to 8:

    M nu_r' + C(nu_r) nu_r + D(nu_r) = tau,      M = [[m11, 0, 0], [0, m22, m23], [0, m23, m33]]

    C nu_r = (-(m22 v + m23 r) r,  m11 u r,  (m22 v + m23 r) u - m11 u v)

    D = (d_x(u),  d_y(v + x_l r),  d_n(r) + x_l d_y(v + x_l r)),   d(s) = (linear + quadratic |s| + cubic s²) s

The training model has diagonal M, linear drag, no cross terms, and M acts on the velocity over ground.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from anyhull.hydrodynamics import Triple
from anyhull.vessel import WORKING_POINT, Vessel


@dataclass(frozen=True)
class HullUncertainty:
    """Errors of a vessel's file; standard deviations, drawn for every trial."""

    inertia: float = 0.10
    """Of each inertia, as a fraction: the accuracy of added mass from tables or from free decay tests."""
    damping: float = 0.10
    """Of the drag on each axis at the working point, as a fraction: the scatter of towing tests of small boats."""
    quadratic: tuple[float, float] = (0.3, 0.7)
    """Range of the quadratic share of that drag, for vessels whose file has linear drag alone: at Reynolds numbers of
    1e5 to 1e6 form drag is about as large as the rest."""
    centre_of_gravity: float = 0.03
    """Of the centre of gravity ahead of the file's, in lengths: the place of batteries and payload."""
    centre_of_drag: float = 0.05
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
    def draw(vessel: Vessel, uncertainty: HullUncertainty, random: np.random.Generator) -> Hull:
        """A hull that the file may describe; its drag at the working point is the file's within `damping`."""
        length, file = size(vessel)[0], vessel.hull
        m11, m22, m33 = (value * error_factor(uncertainty.inertia, random) for value in vessel.inertia)
        x_g = random.normal(0, uncertainty.centre_of_gravity * length)
        x_l = random.normal(0, uncertainty.centre_of_drag * length)
        m23 = vessel.mass * x_g
        factors = np.array([error_factor(uncertainty.damping, random) for _ in range(3)])
        d = np.array([file.X_u, file.Y_v, file.N_r])
        q = np.array([file.X_uu, file.Y_vv, file.N_rr])
        c = np.array([file.X_uuu, file.Y_vvv, file.N_rrr])
        share = np.where((q == 0) & (c == 0), random.uniform(*uncertainty.quadratic, size=3), 0.0)
        drag = (factors * (1 - share) * d, factors * (q + share * d / WORKING_POINT), factors * c)
        # Parallel axes: the inertia about the origin exceeds that about the centre of gravity.
        m33 = max(m33 + vessel.mass * x_g * x_g, 1.5 * m23 * m23 / m22)
        linear, quadratic, cubic = (tuple(values.tolist()) for values in drag)
        return Hull(m11, m22, m23, m33, linear, quadratic, cubic, x_l)

    def drag(self, through_water: Triple) -> Triple:
        """D(nu_r), N, N and N·m."""
        u, v, r = through_water
        v_l = v + self.x_l * r
        (d_u, d_v, d_r), (q_u, q_v, q_r), (c_u, c_v, c_r) = self.linear, self.quadratic, self.cubic
        sway = (d_v + q_v * abs(v_l) + c_v * v_l * v_l) * v_l
        yaw = (d_r + q_r * abs(r) + c_r * r * r) * r
        return (d_u + q_u * abs(u) + c_u * u * u) * u, sway, yaw + self.x_l * sway

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
    """Length and beam, m; without a length, those of a hull whose radius of gyration is a quarter of its length."""
    length = vessel.length or 4 * math.sqrt(vessel.inertia[2] / vessel.inertia[1])
    return length, vessel.beam or length / 2


def error_factor(std: float, random: np.random.Generator) -> float:
    """A factor about one of that standard deviation, truncated at two of them: a larger error is a mistake."""
    return float(1 + std * np.clip(random.standard_normal(), -2, 2))
