"""Hydrodynamics of a hull: the paper's parameters theta, and the nine components e that the motion depends on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from anyhull.schema import check_types, require

Triple = tuple[float, float, float]


class Normalized(NamedTuple):
    """The privileged vector e: the coefficients of the equations of motion per unit of inertia."""

    alpha_u: float
    """Peak surge acceleration F_x^max / (m - X_udot), m/s²."""
    alpha_v: float
    """Peak sway acceleration F_y^max / (m - Y_vdot), m/s²."""
    alpha_r: float
    """Peak yaw acceleration M_z^max / I_comb, rad/s²."""
    inv_tau_u: float
    """Surge damping rate X_u / (m - X_udot), 1/s."""
    inv_tau_v: float
    """Sway damping rate Y_v / (m - Y_vdot), 1/s."""
    inv_tau_r: float
    """Yaw damping rate N_r / I_comb, 1/s."""
    c_rv: float
    """Coriolis coupling of r·v into surge, (m - Y_vdot) / (m - X_udot)."""
    c_ru: float
    """Coriolis coupling of r·u into sway, -1 / c_rv."""
    c_uv: float
    """Munk coupling of u·v into yaw, (Y_vdot - X_udot) / I_comb, 1/m²."""


class Theta(NamedTuple):
    """The paper's parameters theta of a hull, and its actuator limits: what e follows from. SI units."""

    m: float
    """Mass, kg."""
    X_udot: float
    """Added mass in surge, kg, negative, as the next."""
    Y_vdot: float
    I_comb: float
    """Yaw inertia with added inertia, kg·m²."""
    X_u: float
    """Linear damping, kg/s, kg/s, kg·m²/s, as the next two."""
    Y_v: float
    N_r: float
    Fx: float
    """Actuator limits, N, N, N·m, as the next two."""
    Fy: float
    Mz: float

    @property
    def normalized(self) -> Normalized:
        """The nine components e."""
        m11, m22, m66 = self.m - self.X_udot, self.m - self.Y_vdot, self.I_comb
        return Normalized(
            alpha_u=self.Fx / m11,
            alpha_v=self.Fy / m22,
            alpha_r=self.Mz / m66,
            inv_tau_u=self.X_u / m11,
            inv_tau_v=self.Y_v / m22,
            inv_tau_r=self.N_r / m66,
            c_rv=m22 / m11,
            c_ru=-m11 / m22,
            c_uv=(self.Y_vdot - self.X_udot) / m66,
        )

    def times(self, factors: Any) -> Theta:
        """Mass, added masses, inertia and damping times `factors` (7,), with the same limits."""
        changed = dict(zip(self._fields[:7], (v * f for v, f in zip(self[:7], factors, strict=True)), strict=True))
        return self._replace(**changed)


DAMPING = (("X_u", "X_uu", "X_uuu"), ("Y_v", "Y_vv", "Y_vvv"), ("N_r", "N_rr", "N_rrr"))
"""Fields of linear, quadratic and cubic damping, for each axis."""

MIN_COMPONENT, MAX_COMPONENT = 1e-9, 1e6
"""Least magnitude of the accelerations and ratios of inertia in e, by which controllers divide, and the largest of any
component: far beyond every boat, from models to tankers."""

MAX_STIFFNESS = 7000.0
"""Largest damping rate, 1/s: 1000 integration steps a control period, and 200 times that of any boat in training."""


@dataclass(frozen=True)
class Hydrodynamics:
    """The coefficients of the equations of motion that a model needs, and a policy does not. SI units."""

    X_udot: float
    """Added mass in surge, kg, negative."""
    Y_vdot: float
    """Added mass in sway, kg, negative."""
    I_comb: float
    """Yaw inertia with added inertia, kg·m²."""
    X_u: float
    """Linear damping in surge, kg/s."""
    Y_v: float
    """Linear damping in sway, kg/s."""
    N_r: float
    """Linear damping in yaw, kg·m²/s."""
    X_uu: float = 0.0
    """Quadratic damping in surge, kg/m."""
    Y_vv: float = 0.0
    """Quadratic damping in sway, kg/m."""
    N_rr: float = 0.0
    """Quadratic damping in yaw, kg·m²."""
    X_uuu: float = 0.0
    """Cubic damping in surge, kg·s/m²."""
    Y_vvv: float = 0.0
    """Cubic damping in sway, kg·s/m²."""
    N_rrr: float = 0.0
    """Cubic damping in yaw, kg·m²·s."""

    def __post_init__(self) -> None:
        check_types(self)
        require(self, "I_comb", self.I_comb > 0, "positive")
        for field in ("X_u", "Y_v", "N_r"):
            require(self, field, getattr(self, field) >= 0, "zero or more")
        for linear, quadratic, cubic in DAMPING:
            a, b, c = getattr(self, linear), getattr(self, quadratic), getattr(self, cubic)
            require(self, cubic, c >= 0, "zero or more")
            require(self, quadratic, b >= 0 or b * b < 4 * a * c, "large enough that the drag always decelerates")


def terminal(alpha: float, linear: float, quadratic: float, cubic: float) -> float:
    """The speed s at which linear·s + quadratic·s² + cubic·s³ = alpha, by bisection."""
    if alpha == 0:
        return 0.0
    if linear == quadratic == cubic == 0:
        return math.inf
    low, high = 0.0, 1.0
    while (linear + (quadratic + cubic * high) * high) * high < alpha:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        if (linear + (quadratic + cubic * middle) * middle) * middle < alpha:
            low = middle
        else:
            high = middle
    return (low + high) / 2
