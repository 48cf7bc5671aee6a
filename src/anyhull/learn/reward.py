"""The paper's reward, one function per term."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Float

from anyhull.backend import wrap

Scalar = Float[Array, ""]


@dataclass(frozen=True)
class RewardWeights:
    """The paper's table of reward weights; the action weights are those reached at the end of training."""

    position: float = 6.0
    heading: float = 3.0
    velocity: float = 1.0
    yaw_rate: float = 2.0
    proximity: float = 5.0
    forward: float = 0.05
    sway: float = 0.05
    spin: float = 0.1
    effort: float = 3.0
    smoothness: float = 10.0


def bounded(weight: float, error_squared: Scalar) -> Scalar:
    """A tracking term w / (1 + w e²)."""
    return weight / (1 + weight * error_squared)


def gate(distance: Scalar, turn: Scalar) -> Scalar:
    """alpha_t: the weight of the velocity terms, 1 at zero position and heading error."""
    return jnp.exp(-distance) * jnp.exp(-0.1 * jnp.abs(turn))


def spin(weight: float, r: Scalar) -> Scalar:
    """The penalty on a yaw rate above 0.3 rad/s."""
    return weight * jnp.maximum(0.0, jnp.abs(r) - 0.3) ** 2


def reward_terms(
    state: Float[Array, " 6"],
    reference: Float[Array, " 6"],
    command: Float[Array, " 3"],
    previous: Float[Array, " 3"],
    anneal: Scalar | float,
    weights: RewardWeights,
) -> dict[str, Scalar]:
    """The reward by name of term; its sum is R_t. `anneal` in [0, 1] scales the action penalties."""
    w = weights
    error = reference - state
    distance = jnp.sqrt(error[0] ** 2 + error[1] ** 2 + 1e-12)
    turn = wrap(error[2])
    alpha = gate(distance, turn)
    # Velocities are compared axis by axis, each in its own body frame.
    return {
        "position": bounded(w.position, distance**2),
        "heading": bounded(w.heading, turn**2),
        "velocity": alpha * bounded(w.velocity, error[3] ** 2 + error[4] ** 2),
        "yaw_rate": alpha * bounded(w.yaw_rate, error[5] ** 2),
        "proximity": w.proximity * jnp.exp(-10 * distance),
        "forward": w.forward * state[3],
        "sway": -w.sway * state[4] ** 2,
        "spin": -spin(w.spin, state[5]),
        "effort": -anneal * w.effort * jnp.sum(command**2),
        "smoothness": -anneal * w.smoothness * jnp.sum((command - previous) ** 2),
    }
