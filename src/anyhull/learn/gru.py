"""A GRU over a whole sequence, with what does not have to wait for the step before taken out of the loop.

Forward, the loop is one product and one element-wise step; the inputs' part of the gates is a product over all steps.
Backward, the gates are computed again for all steps at once, and with them the factors by which a cotangent goes
through each: the loop again is one product a step, and the weights' gradients are products over all of them. It is the
derivative that differentiating the plain loop gives, in less time on a GPU (docs/speed.md).
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float


def unroll(
    cell: eqx.nn.GRUCell, x: Float[Array, "t n i"], reset: Bool[Array, "t n"], m: Float[Array, "n g"]
) -> Float[Array, "t n g"]:
    """The memory after every step from `m` on; where `reset`, it is emptied before the step."""
    assert cell.bias is not None
    assert cell.bias_n is not None
    told = x @ cell.weight_ih.T + cell.bias
    return _unroll(told, cell.weight_hh, cell.bias_n, ~reset[..., None], m)


def gates(told: Array, recalled: Array, bias: Array) -> tuple[Array, Array, Array, Array]:
    """Reset gate, update gate, what the memory offers, and the new content."""
    told_r, told_u, told_n = jnp.split(told, 3, axis=-1)
    recalled_r, recalled_u, recalled_n = jnp.split(recalled, 3, axis=-1)
    r, u = jax.nn.sigmoid(told_r + recalled_r), jax.nn.sigmoid(told_u + recalled_u)
    offered = recalled_n + bias
    return r, u, offered, jnp.tanh(told_n + r * offered)


@jax.custom_vjp
def _unroll(told: Array, weight: Array, bias: Array, keep: Array, m: Array) -> Array:
    def step(m: Array, inputs: tuple[Array, Array]) -> tuple[Array, Array]:
        told, keep = inputs
        m = jnp.where(keep, m, 0.0)
        _, u, _, new = gates(told, m @ weight.T, bias)
        m = new + u * (m - new)
        return m, m

    return jax.lax.scan(step, m, (told, keep))[1]


def _forward(told: Array, weight: Array, bias: Array, keep: Array, m: Array) -> tuple[Array, Any]:
    memories = _unroll(told, weight, bias, keep, m)
    return memories, (told, weight, bias, keep, m, memories)


def _backward(saved: Any, cotangent: Array) -> tuple[Array, Array, Array, None, Array]:
    told, weight, bias, keep, m, memories = saved
    before = jnp.where(keep, jnp.concatenate([m[None], memories[:-1]]), 0.0)
    r, u, offered, new = gates(told, before @ weight.T, bias)
    # By what a step's cotangent is multiplied on its way to each gate.
    to_n = (1 - u) * (1 - new**2)
    to_r, to_u, to_offered = to_n * offered * r * (1 - r), (before - new) * u * (1 - u), to_n * r
    to_recalled = jnp.concatenate([to_r, to_u, to_offered], axis=-1)

    def step(later: Array, inputs: tuple[Array, ...]) -> tuple[Array, Array]:
        here, to_recalled, u, keep = inputs
        here = here + later
        earlier = u * here + (to_recalled * jnp.tile(here, 3)) @ weight
        return jnp.where(keep, earlier, 0.0), here

    first, here = jax.lax.scan(step, jnp.zeros_like(m), (cotangent, to_recalled, u, keep), reverse=True)
    by_recalled = to_recalled * jnp.tile(here, 3)
    by_told = jnp.concatenate([to_r, to_u, to_n], axis=-1) * jnp.tile(here, 3)
    by_weight = jnp.einsum("tng,tnh->gh", by_recalled, before)
    return by_told, by_weight, (to_offered * here).sum((0, 1)), None, first


_unroll.defvjp(_forward, _backward)
