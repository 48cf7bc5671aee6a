"""Random boats: any within the training ranges, around one vessel, or one vessel scaled."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from anyhull.hydrodynamics import Normalized, Theta
from anyhull.paper import RANGES

DRAWS = 8
"""Uniform numbers in [0, 1) per boat: e has eight degrees of freedom."""

TOP_SPEED = {"u": (0.353, 21.0), "v": (0.324, 5.79), "r": (0.5, 33.0)}
"""Terminal speeds (m/s, m/s, rad/s). With the ranges of alpha they span the paper's ranges of 1/tau."""

SWAY_SHARE = (0.15, 1.5)
"""Peak sway over peak surge acceleration."""

ARM = (0.25, 2.0)
"""Lever arm M_z^max / F_x^max, m: ties the Munk moment to the yaw authority of a boat of that size."""

WITHOUT_SWAY: dict[str, tuple[float, float]] = {
    "alpha_u": (0.25, 8.0),
    "alpha_r": (0.2, 20.0),
    "inv_tau_v": (0.2, 40.0),
    "c_rv": (0.4, 3.0),
    "top_speed": (0.7, 12.0),
    "top_rate": (0.3, 12.0),
    "arm": (0.12, 1.0),
}
"""Ranges of boats without sway force: the published ones with two thrusters at the stern lie inside, with a margin."""

Scalar = Float[Array, ""] | float
Range = tuple[float, float]


@dataclass(frozen=True)
class Randomization:
    """Distribution of the boats in training; by default the ranges of the components e are the paper's."""

    kind: Literal["any", "around", "scaled"] = "any"
    """`any` within the ranges; `around` one vessel, each of its seven parameters theta by its own factor, so that the
    components of e vary together as on a hull; that vessel `scaled` in all inertia and damping by one factor."""
    center: Theta | None = None
    """The vessel that the boats are drawn around or scaled from."""
    width: float = 0.2
    """Half width of the range around it, in logarithm; 10 times either way for `scaled` is log(10)."""
    spacing: Literal["log", "linear"] = "log"
    """Whether `any` boat with sway force is drawn uniformly in the logarithm of its components, or in themselves."""
    sway: bool = True
    """Whether `any` boat has sway force; without it, alpha_v is that of a sideways push as large as the surge force."""
    arm: Range = ARM
    """Lever arms of `any` boat with sway force, m."""
    alpha_u: Range = RANGES["alpha_u"]
    alpha_v: Range = RANGES["alpha_v"]
    alpha_r: Range = RANGES["alpha_r"]
    inv_tau_u: Range = RANGES["inv_tau_u"]
    inv_tau_v: Range = RANGES["inv_tau_v"]
    inv_tau_r: Range = RANGES["inv_tau_r"]
    c_rv: Range = RANGES["c_rv"]
    c_ru: Range = RANGES["c_ru"]
    c_uv: Range = RANGES["c_uv"]

    def sample(self, uniforms: Float[Array, " 8"], spread: Scalar = 1.0) -> Float[Array, " 9"]:
        """The components e of a boat; `spread` in [0, 1] narrows every range about its middle."""
        if self.kind == "any":
            return (self._sample_any if self.sway else _sample_without_sway)(uniforms, spread)
        assert self.center is not None
        factors = jnp.exp(spread * self.width * (2 * uniforms - 1))
        if self.kind == "scaled":
            # Inertia and damping by s with the limits fixed: only the peak accelerations change, by 1/s.
            factors = jnp.full(8, factors[0])
        return jnp.stack([jnp.asarray(component, float) for component in self.center.times(factors[:7]).normalized])

    def envelope(self) -> dict[str, Range]:
        """The range of each component that boats are drawn from, by name."""
        if not self.sway:
            return _envelope_without_sway()
        if self.center is None:
            return {name: getattr(self, name) for name in Normalized._fields}
        # Every component is monotone in every parameter: its extremes are at the corners.
        ends = np.exp([-self.width, self.width])
        corners = [[s] * 7 for s in ends] if self.kind == "scaled" else itertools.product(ends, repeat=7)
        found = np.array([self.center.times(factors).normalized for factors in corners])
        return {name: (float(x.min()), float(x.max())) for name, x in zip(Normalized._fields, found.T, strict=True)}

    def _sample_any(self, uniforms: Float[Array, " 8"], spread: Scalar) -> Float[Array, " 9"]:
        """Any boat within the ranges that can reach a useful speed.

        Independent draws of alpha and 1/tau would give boats that hardly move: terminal speeds are drawn instead.
        Inertia ratios concentrate around 1, as those of real hulls.
        """

        def between(low: float | Array, high: float | Array, uniform: Array) -> Array:
            if self.spacing == "linear":
                return (low + high) / 2 + spread * (high - low) * (uniform - 0.5)
            return _between(low, high, uniform, spread)

        alpha_u = between(*self.alpha_u, uniforms[0])
        alpha_v = jnp.clip(alpha_u * between(*SWAY_SHARE, uniforms[1]), *self.alpha_v)
        alpha_r = between(*self.alpha_r, uniforms[2])
        inv_tau_u = jnp.clip(alpha_u / between(*TOP_SPEED["u"], uniforms[3]), *self.inv_tau_u)
        inv_tau_v = jnp.clip(alpha_v / between(*TOP_SPEED["v"], uniforms[4]), *self.inv_tau_v)
        slowest = jnp.maximum(TOP_SPEED["r"][0], alpha_r / self.inv_tau_r[1])
        inv_tau_r = jnp.clip(alpha_r / between(slowest, TOP_SPEED["r"][1], uniforms[5]), *self.inv_tau_r)

        signed = 2 * uniforms[6] - 1
        # c_ru = -1 / c_rv has separate bounds.
        low, high = max(self.c_rv[0], -1 / self.c_ru[0]), min(self.c_rv[1], -1 / self.c_ru[1])
        c_rv = jnp.exp(spread * jnp.where(signed < 0, -math.log(low), math.log(high)) * signed**3)
        # Fx/m11 = alpha_u and Mz/I = alpha_r, so m11/I = alpha_r / (alpha_u · arm).
        c_uv = (1 - c_rv) * alpha_r / (alpha_u * between(*self.arm, uniforms[7]))
        # At 0.6 m/s and 0.1 m/s of sway the yaw actuator must at least balance the Munk moment.
        bound = alpha_r / 0.06
        c_uv = jnp.clip(c_uv, jnp.maximum(self.c_uv[0], -bound), jnp.minimum(self.c_uv[1], bound))
        return jnp.stack([alpha_u, alpha_v, alpha_r, inv_tau_u, inv_tau_v, inv_tau_r, c_rv, -1 / c_rv, c_uv])


def _between(low: float | Array, high: float | Array, uniform: Array, spread: Scalar) -> Array:
    """A number between two ends, uniform in logarithm; `spread` narrows the range about its middle."""
    middle, half = (jnp.log(low) + jnp.log(high)) / 2, (jnp.log(high) - jnp.log(low)) / 2
    return jnp.exp(middle + spread * half * (2 * uniform - 1))


def _sample_without_sway(uniforms: Float[Array, " 8"], spread: Scalar) -> Float[Array, " 9"]:
    """Any boat of `WITHOUT_SWAY`; its Munk moment follows from inertias and lever arm, as on a hull.

    Boats concentrate about the middle of the ranges, where most published ones are.
    """
    ranges = WITHOUT_SWAY
    signed = 2 * uniforms - 1
    uniforms = 0.5 + 0.5 * jnp.sign(signed) * jnp.abs(signed) ** 1.5
    alpha_u, alpha_r, inv_tau_v, c_rv, top_speed, top_rate, arm = (
        _between(*ends, uniform, spread) for ends, uniform in zip(ranges.values(), uniforms, strict=False)
    )
    c_uv = (1 - c_rv) * alpha_r / (alpha_u * arm)
    # At 0.6 m/s and 0.1 m/s of sway the yaw actuator must at least balance the Munk moment.
    c_uv = jnp.clip(c_uv, -alpha_r / 0.06, alpha_r / 0.06)
    rates = alpha_u / top_speed, inv_tau_v, alpha_r / top_rate
    return jnp.stack([alpha_u, alpha_u / c_rv, alpha_r, *rates, c_rv, -1 / c_rv, c_uv])


def _envelope_without_sway() -> dict[str, Range]:
    """The range of each component of e that follows from `WITHOUT_SWAY`."""
    r = WITHOUT_SWAY
    munk = r["alpha_r"][1] / 0.06
    return {
        "alpha_u": r["alpha_u"],
        "alpha_v": (r["alpha_u"][0] / r["c_rv"][1], r["alpha_u"][1] / r["c_rv"][0]),
        "alpha_r": r["alpha_r"],
        "inv_tau_u": (r["alpha_u"][0] / r["top_speed"][1], r["alpha_u"][1] / r["top_speed"][0]),
        "inv_tau_v": r["inv_tau_v"],
        "inv_tau_r": (r["alpha_r"][0] / r["top_rate"][1], r["alpha_r"][1] / r["top_rate"][0]),
        "c_rv": r["c_rv"],
        "c_ru": (-1 / r["c_rv"][0], -1 / r["c_rv"][1]),
        "c_uv": (-munk, munk),
    }
