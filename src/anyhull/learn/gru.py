"""A GRU over a whole sequence, with what does not have to wait for the step before taken out of the loop.

Forward, the loop is one product and one element-wise step; the inputs' part of the gates is a product over all steps.
Backward, the gates are computed again for all steps at once, and with them the factors by which a cotangent goes
through each: the loop again is one product a step, and the weights' gradients are products over all of them. It is the
derivative that differentiating the plain loop gives, in less time on a GPU (docs/speed.md), where either loop is one
kernel whose programs take a few rows each through all steps.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jaxtyping import Array, Bool, Float

ROWS = 16
"""Rows of a program, as few as the matrix units take."""

INTERPRET = False
"""Whether the kernels are used without a GPU, for tests."""


def unroll(
    cell: eqx.nn.GRUCell, x: Float[Array, "t n i"], reset: Bool[Array, "t n"], m: Float[Array, "n g"]
) -> Float[Array, "t n g"]:
    """The memory after every step from `m` on; where `reset`, it is emptied before the step."""
    assert cell.bias is not None
    assert cell.bias_n is not None
    told = x @ cell.weight_ih.T + cell.bias
    return _unroll(told, cell.weight_hh, cell.bias_n, 1.0 - reset[..., None], m)


def gates(told: Any, recalled: Any, bias: Array) -> tuple[Array, Array, Array, Array]:
    """Reset gate, update gate, what the memory offers, and the new content; inputs gate by gate."""
    r, u = jax.nn.sigmoid(told[0] + recalled[0]), jax.nn.sigmoid(told[1] + recalled[1])
    offered = recalled[2] + bias
    return r, u, offered, jnp.tanh(told[2] + r * offered)


def thirds(x: Array) -> list[Array]:
    """The parts of the three gates."""
    return jnp.split(x, 3, axis=-1)


@jax.custom_vjp
def _unroll(told: Array, weight: Array, bias: Array, keep: Array, m: Array) -> Array:
    if fits(m):
        return jnp.asarray(call(ahead, m, (told.shape[:2],), told, weight, bias, keep, m)[0])

    def step(m: Array, inputs: tuple[Array, Array]) -> tuple[Array, Array]:
        told, keep = inputs
        m = keep * m
        _, u, _, new = gates(thirds(told), thirds(m @ weight.T), bias)
        m = new + u * (m - new)
        return m, m

    return jax.lax.scan(step, m, (told, keep))[1]


def _forward(told: Array, weight: Array, bias: Array, keep: Array, m: Array) -> tuple[Array, Any]:
    memories = _unroll(told, weight, bias, keep, m)
    return memories, (told, weight, bias, keep, m, memories)


def _backward(saved: Any, cotangent: Array) -> tuple[Array, Array, Array, None, Array]:
    told, weight, bias, keep, m, memories = saved
    before = keep * jnp.concatenate([m[None], memories[:-1]])
    r, u, offered, new = gates(thirds(told), thirds(before @ weight.T), bias)
    # By what a step's cotangent is multiplied on its way to each gate.
    to_n = (1 - u) * (1 - new**2)
    to_r, to_u, to_offered = to_n * offered * r * (1 - r), (before - new) * u * (1 - u), to_n * r
    to_recalled = jnp.concatenate([to_r, to_u, to_offered], axis=-1)
    here, first = _pass_back(cotangent, to_recalled, u, keep, weight)
    by_recalled = to_recalled * jnp.tile(here, 3)
    by_told = jnp.concatenate([to_r, to_u, to_n], axis=-1) * jnp.tile(here, 3)
    by_weight = jnp.einsum("tng,tnh->gh", by_recalled, before)
    return by_told, by_weight, (to_offered * here).sum((0, 1)), None, first


_unroll.defvjp(_forward, _backward)


def _pass_back(cotangent: Array, to_recalled: Array, u: Array, keep: Array, weight: Array) -> tuple[Array, Array]:
    """The whole cotangent of every memory, from that by its own step; and of the memory at the start."""
    if fits(u[0]):
        here, first = call(back, u[0], (u.shape[:2], u.shape[1:2]), cotangent, to_recalled, u, keep, weight)
        return here, first

    def step(later: Array, inputs: tuple[Array, ...]) -> tuple[Array, Array]:
        here, to_recalled, u, keep = inputs
        here = here + later
        return keep * (u * here + (to_recalled * jnp.tile(here, 3)) @ weight), here

    first, here = jax.lax.scan(step, jnp.zeros_like(u[0]), (cotangent, to_recalled, u, keep), reverse=True)
    return here, first


def fits(m: Array) -> bool:
    """Whether the kernels are made for a memory of this shape and this machine."""
    whole = m.shape[0] % ROWS == 0 and m.shape[1] >= 16 and m.shape[1].bit_count() == 1
    return whole and (INTERPRET or jax.default_backend() == "gpu")


def call(kernel: Callable[..., None], m: Array, shapes: tuple[tuple[int, ...], ...], *given: Array) -> Any:
    """A kernel, a program for every few rows of `m`; results are of `shapes` and as wide as `m`."""
    n, g = m.shape
    run = pl.pallas_call(
        partial(kernel, g=g, steps=shapes[0][0]),
        grid=(n // ROWS,),
        out_shape=[jax.ShapeDtypeStruct((*shape, g), jnp.float32) for shape in shapes],  # type: ignore[no-untyped-call]
        compiler_params=triton.CompilerParams(num_warps=8, num_stages=1),
        interpret=INTERPRET,
    )
    return run(*given)


def rows() -> Any:
    """Those of a program."""
    return pl.ds(pl.program_id(0) * ROWS, ROWS)


def ahead(told: Any, weight: Any, bias: Any, keep: Any, m: Any, memories: Any, *, g: int, steps: int) -> None:
    """The loop forward."""
    mine, parts = rows(), [pl.ds(i * g, g) for i in range(3)]

    def step(k: Array, m: Array) -> Array:
        m = keep[k, mine, :] * m
        recalled = [triton.dot(m, weight[part, :], trans_b=True) for part in parts]
        _, u, _, new = gates([told[k, mine, part] for part in parts], recalled, bias[:][None, :])
        m = new + u * (m - new)
        memories[k, mine, :] = m
        return m

    jax.lax.fori_loop(0, steps, step, m[mine, :])


def back(
    cotangent: Any, to_recalled: Any, u: Any, keep: Any, weight: Any, here: Any, first: Any, *, g: int, steps: int
) -> None:
    """The loop backward."""
    mine, parts = rows(), [pl.ds(i * g, g) for i in range(3)]

    def step(k: Array, later: Array) -> Array:
        k = steps - 1 - k
        now = cotangent[k, mine, :] + later
        here[k, mine, :] = now
        earlier = u[k, mine, :] * now
        for part in parts:
            earlier += triton.dot(to_recalled[k, mine, part] * now, weight[part, :])
        return jnp.asarray(keep[k, mine, :] * earlier)

    first[mine, :] = jax.lax.fori_loop(0, steps, step, jnp.zeros((ROWS, g), jnp.float32))
