"""Inertia and damping of the hull that an identified boat most probably has, given the limits of its file.

The eight components with the three limits F have two relations to spare, since the six coefficients of a hull give

    alpha = F / m      1 / tau = d / m      c_rv = m22 / m11      c_uv = (m11 - m22) / m66

with m = (m11, m22, m66). The coefficients are the most probable ones by the covariance of the components, where the
limits may be wrong by `LIMITS`; the residual says whether a hull with these limits can be meant.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anyhull.backend import Array
from anyhull.hydrodynamics import Hydrodynamics, Triple
from anyhull.identified import Identified
from anyhull.scale import IDENTITY

LIMITS = 0.1
"""Standard deviation of a stated limit, as a share: thrust is rarely known better, and falls with speed and battery."""

CONSISTENT = {1: 10.8, 2: 13.8}
"""Squared residual that a true hull exceeds once in a thousand, by the relations to spare."""

NAMES = ("m - X_udot", "m - Y_vdot", "I_comb", "X_u", "Y_v", "N_r")
UNITS = ("kg", "kg", "kg m²", "N s/m", "N s/m", "N m s")

ITERATIONS = 100


class Hull(NamedTuple):
    """The coefficients, by `NAMES`."""

    values: Array
    """(6,)"""
    std: Array
    """Their standard deviations as shares of the values, (6,)."""
    misfit: float
    """Squared residual of the relations to spare, in standard deviations."""
    consistent: bool
    """Whether such a hull may be meant."""

    def hydrodynamics(self, mass: float | None) -> tuple[float, Hydrodynamics]:
        """Mass and coefficients for a vessel's file; without a known mass, the inertia in surge stands for it."""
        m11, m22, m66, x_u, y_v, n_r = map(float, self.values)
        mass = m11 if mass is None else mass
        return mass, Hydrodynamics(mass - m11, mass - m22, m66, x_u, y_v, n_r)


def fit_hull(found: Identified, limits: Triple) -> Hull:
    """The most probable hull of an identified boat with these limits (N, N, N·m)."""
    prior = found.prior(IDENTITY, changed=np.zeros(8))
    covariance = prior.covariance + np.diag([LIMITS**2] * 3 + [0.0] * 5)
    used = np.arange(8) if limits[1] > 0 else np.array([0, 2, 3, 4, 5, 6, 7])
    precision = np.linalg.inv(covariance[np.ix_(used, used)])
    mean, e = prior.mean[used], found.e
    with np.errstate(divide="ignore"):
        log_limits = np.log(np.array(limits))
    m11 = limits[0] / e.alpha_u
    inertia = np.log([m11, m11 * e.c_rv, limits[2] / e.alpha_r])
    theta = np.concatenate([inertia, inertia + np.log([*e[3:6]])])

    def predict(theta: Array) -> tuple[Array, Array]:
        """The components' scaled values at log inertia and log damping, and their derivatives."""
        a, b, c = np.exp(theta[:3])
        munk = (a - b) / c
        values = np.concatenate(
            [log_limits - theta[:3], theta[3:] - theta[:3], [theta[1] - theta[0], np.arcsinh(munk)]]
        )
        jacobian = np.zeros((8, 6))
        jacobian[:3, :3] = jacobian[3:6, :3] = -np.eye(3)
        jacobian[3:6, 3:] = np.eye(3)
        jacobian[6, :2] = -1.0, 1.0
        jacobian[7, :3] = np.array([a, -b, b - a]) / c / np.hypot(1, munk)
        return values[used], jacobian[used]

    def cost(theta: Array) -> float:
        off = predict(theta)[0] - mean
        return float(off @ precision @ off)

    size = cost(theta)
    for _ in range(ITERATIONS):
        values, jacobian = predict(theta)
        information = jacobian.T @ precision @ jacobian
        step = np.linalg.solve(information, jacobian.T @ precision @ (mean - values))
        while (following := cost(theta + step)) > size and np.abs(step).max() > 1e-10:
            step /= 2
        if following > size:
            break
        theta, gained, size = theta + step, size - following, following
        if gained < 1e-9:
            break
    jacobian = predict(theta)[1]
    spread = np.sqrt(np.diag(np.linalg.inv(jacobian.T @ precision @ jacobian)))
    return Hull(np.exp(theta), spread, size, size <= CONSISTENT[len(used) - 6])
