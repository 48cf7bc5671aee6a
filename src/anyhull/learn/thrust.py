"""Random thrusters and drag: what a boat has beyond the paper's model, drawn for every boat of a field training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from anyhull.dynamics import SUBSTEP

DRAWS = 4
"""Uniform numbers in [0, 1) per boat."""

SLOWEST = (0.35, 0.32, 0.5)
"""Least speeds (m/s, m/s, rad/s) at which the quadratic share of drag is stated: at a top speed in sway of a centimetre
per second it would make a drag in a current that no integration follows."""

THRUST, LAG, REVERSE, DEAD_BAND, QUADRATIC = slice(0, 3), 3, 4, 5, 6
"""Places in the state of the actuators."""


@dataclass(frozen=True)
class ThrusterModel:
    """Ranges of what real thrusters and hulls do; the zeros of the default are the paper's ideal actuators."""

    lag: float = 0.0
    """Largest time constant of the thrust, s."""
    reverse: float = 1.0
    """Least share of the surge force that is left when it is reversed."""
    dead_band: float = 0.0
    """Largest fraction of the command around zero without effect, which allocation did not remove."""
    quadratic: float = 0.0
    """Largest share of the drag at top speed that is quadratic."""

    @property
    def real(self) -> bool:
        """Whether anything differs from ideal actuators."""
        return self != ThrusterModel()

    def reset(self, uniforms: Float[Array, " k"]) -> Float[Array, " n"]:
        """The actuators of a boat at rest; empty if they are ideal.

        The square gives many boats with small lags: published lags are between 0.05 and 0.5 s, most below 0.2 s.
        """
        if not self.real:
            return jnp.zeros(0)
        lag, reverse, dead_band, quadratic = uniforms
        drawn = (self.lag * lag**2, 1 - (1 - self.reverse) * reverse, self.dead_band * dead_band**2)
        return jnp.concatenate([jnp.zeros(3), jnp.stack([*drawn, self.quadratic * quadratic])])

    def apply(self, active: Sequence[Any], actuators: Float[Array, " n"]) -> tuple[list[Any], Float[Array, " n"]]:
        """The thrust in each part of a period under its command, and the actuators after it."""
        if not self.real:
            return list(active), actuators
        thrust, found = actuators[THRUST], []
        # Exact for a command that is constant over a part; its mean thrust is close to that at its end.
        share = 1 - jnp.exp(-SUBSTEP / jnp.maximum(actuators[LAG], 1e-3))
        weaker = jnp.stack([actuators[REVERSE], jnp.ones(()), jnp.ones(())])
        for tau in active:
            command = jnp.stack(tau)
            size = (jnp.abs(command) - actuators[DEAD_BAND]).clip(0.0) / (1 - actuators[DEAD_BAND])
            steady = jnp.sign(command) * size
            thrust = thrust + share * (jnp.where(command < 0, weaker, 1.0) * steady - thrust)
            found.append(thrust)
        return found, jnp.concatenate([thrust, actuators[LAG:]])

    def drag(self, e: Float[Array, " 9"], actuators: Float[Array, " n"]) -> tuple[Array, Array | None]:
        """Components with linear damping only, and the quadratic damping.

        At top speed, or at `SLOWEST` where that is more, their sum is the damping of `e`.
        """
        if not self.quadratic:
            return e, None
        share, rates = actuators[QUADRATIC], e[3:6]
        return e.at[3:6].multiply(1 - share), share * rates / jnp.maximum(e[:3] / rates, jnp.array(SLOWEST))

    def lag_of(self, actuators: Float[Array, " n"]) -> Float[Array, ""]:
        """The boat's lag, s."""
        return actuators[LAG] if self.real else jnp.zeros(())
