"""A GRU over a whole sequence; operations independent of the previous step are outside the loop.

The forward loop is one product and elementwise operations per step; the input part of the gates is one product over all
steps. The backward pass recomputes the gates of all steps at once, and the factors of the cotangent at each gate. Its
loop is one product per step, and the weights' gradients are products over all steps. The result is the derivative of
the plain loop, in less time on a GPU (docs/speed.md). There each loop is one kernel, with a few rows per program.
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

from anyhull.learn import kernels

ROWS = 16
"""Rows per program, the fewest that the matrix units take."""


def unroll(
    cell: eqx.nn.GRUCell, x: Float[Array, "t n i"], reset: Bool[Array, "t n"], m: Float[Array, "n g"]
) -> Float[Array, "t n g"]:
    """The memory after every step from `m` on; where `reset`, it is zeroed before the step."""
    assert cell.bias is not None
    assert cell.bias_n is not None
    inputs = x @ cell.weight_ih.T
    inputs = inputs + jnp.broadcast_to(cell.bias, inputs.shape)
    return _unroll(inputs, cell.weight_hh, cell.bias_n, jnp.where(reset[..., None], 0.0, 1.0), m)


def gates(inputs: Any, recurrent: Any, bias: Array) -> tuple[Array, Array, Array, Array]:
    """Reset gate, update gate, recurrent part of the candidate, and candidate, from input and recurrent parts."""
    r, u = jax.nn.sigmoid(inputs[0] + recurrent[0]), jax.nn.sigmoid(inputs[1] + recurrent[1])
    candidate = recurrent[2] + jnp.broadcast_to(bias, recurrent[2].shape)
    return r, u, candidate, jnp.tanh(inputs[2] + r * candidate)


def thirds(x: Array) -> list[Array]:
    """The three gates of a concatenated array."""
    return jnp.split(x, 3, axis=-1)


@jax.custom_vjp
def _unroll(inputs: Array, weight: Array, bias: Array, keep: Array, m: Array) -> Array:
    if fits(m):
        return jnp.asarray(call(forward_kernel, m, (inputs.shape[:2],), inputs, weight, bias, keep, m)[0])

    def step(m: Array, given: tuple[Array, Array]) -> tuple[Array, Array]:
        x, keep = given
        m = keep * m
        _, u, _, new = gates(thirds(x), thirds(m @ weight.T), bias)
        m = new + u * (m - new)
        return m, m

    return jax.lax.scan(step, m, (inputs, keep))[1]


def _forward(inputs: Array, weight: Array, bias: Array, keep: Array, m: Array) -> tuple[Array, Any]:
    memories = _unroll(inputs, weight, bias, keep, m)
    return memories, (inputs, weight, bias, keep, m, memories)


def _backward(saved: Any, cotangent: Array) -> tuple[Array, Array, Array, None, Array]:
    inputs, weight, bias, keep, m, memories = saved
    before = keep * jnp.concatenate([m[None], memories[:-1]])
    r, u, candidate, new = gates(thirds(inputs), thirds(before @ weight.T), bias)
    # Factors of a step's cotangent at each gate.
    to_n = (1 - u) * (1 - new**2)
    to_r, to_u, to_candidate = to_n * candidate * r * (1 - r), (before - new) * u * (1 - u), to_n * r
    to_recurrent = jnp.concatenate([to_r, to_u, to_candidate], axis=-1)
    here, first = _pass_back(cotangent, to_recurrent, u, keep, weight)
    by_recurrent = to_recurrent * jnp.tile(here, 3)
    by_inputs = jnp.concatenate([to_r, to_u, to_n], axis=-1) * jnp.tile(here, 3)
    by_weight = jnp.einsum("tng,tnh->gh", by_recurrent, before)
    return by_inputs, by_weight, (to_candidate * here).sum((0, 1)), None, first


_unroll.defvjp(_forward, _backward)


def _pass_back(cotangent: Array, to_recurrent: Array, u: Array, keep: Array, weight: Array) -> tuple[Array, Array]:
    """The total cotangent of the memory at every step, from that of its output, and of the initial memory."""
    if fits(u[0]):
        here, first = call(backward_kernel, u[0], (u.shape[:2], u.shape[1:2]), cotangent, to_recurrent, u, keep, weight)
        return here, first

    def step(later: Array, inputs: tuple[Array, ...]) -> tuple[Array, Array]:
        here, to_recurrent, u, keep = inputs
        here = here + later
        return keep * (u * here + (to_recurrent * jnp.tile(here, 3)) @ weight), here

    first, here = jax.lax.scan(step, jnp.zeros_like(u[0]), (cotangent, to_recurrent, u, keep), reverse=True)
    return here, first


def fits(m: Array) -> bool:
    """Whether the kernels are enabled and support a memory of this shape."""
    return kernels.enabled() and m.shape[0] % ROWS == 0 and m.shape[1] >= 16 and m.shape[1].bit_count() == 1


def call(kernel: Callable[..., None], m: Array, shapes: tuple[tuple[int, ...], ...], *given: Array) -> Any:
    """Run a kernel with one program per `ROWS` rows of `m`; results have `shapes` and the width of `m`."""
    n, g = m.shape
    run = pl.pallas_call(
        partial(kernel, g=g, steps=shapes[0][0]),
        grid=(n // ROWS,),
        out_shape=[jax.ShapeDtypeStruct((*shape, g), jnp.float32) for shape in shapes],  # type: ignore[no-untyped-call]
        compiler_params=triton.CompilerParams(num_warps=8, num_stages=1),
        interpret=kernels.INTERPRET,
    )
    return run(*given)


def rows() -> Any:
    """The rows of this program."""
    return pl.ds(pl.program_id(0) * ROWS, ROWS)


def forward_kernel(
    inputs: Any, weight: Any, bias: Any, keep: Any, m: Any, memories: Any, *, g: int, steps: int
) -> None:
    """The forward loop."""
    own, parts = rows(), [pl.ds(i * g, g) for i in range(3)]

    def step(k: Array, m: Array) -> Array:
        m = keep[k, own, :] * m
        recurrent = [triton.dot(m, weight[part, :], trans_b=True) for part in parts]
        _, u, _, new = gates([inputs[k, own, part] for part in parts], recurrent, bias[:][None, :])
        m = new + u * (m - new)
        memories[k, own, :] = m
        return m

    jax.lax.fori_loop(0, steps, step, m[own, :])


def backward_kernel(
    cotangent: Any, to_recurrent: Any, u: Any, keep: Any, weight: Any, here: Any, first: Any, *, g: int, steps: int
) -> None:
    """The backward loop."""
    own, parts = rows(), [pl.ds(i * g, g) for i in range(3)]

    def step(k: Array, later: Array) -> Array:
        k = steps - 1 - k
        now = cotangent[k, own, :] + later
        here[k, own, :] = now
        earlier = u[k, own, :] * now
        for part in parts:
            earlier += triton.dot(to_recurrent[k, own, part] * now, weight[part, :])
        return jnp.asarray(keep[k, own, :] * earlier)

    first[own, :] = jax.lax.fori_loop(0, steps, step, jnp.zeros((ROWS, g), jnp.float32))
