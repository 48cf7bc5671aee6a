"""Integration of a boat over one control period, fast to compile and to differentiate.

The equations are those of `dynamics`. If their twenty evaluations are unrolled, XLA recomputes earlier ones for every
use. In a loop they are compiled once, but nested loops are slow on a GPU, above all in the backward pass. A GPU
therefore has one kernel for the whole period, and one for its derivative.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jaxtyping import Array, Float

from anyhull.dynamics import SUBSTEP, derivative, rk4
from anyhull.learn import kernels

State = tuple[Array, ...]

NO_CUBIC = (0.0, 0.0, 0.0)
"""Cubic damping, which no boat in training has."""


def move(
    boat: Float[Array, " 6"],
    forces: Float[Array, "parts 3"],
    e: Float[Array, " 9"],
    current: Float[Array, " 2"],
    quadratic: Float[Array, " 3"] | None = None,
) -> Float[Array, " 6"]:
    """The state one control period later, with each of `forces` held over an equal part of it.

    `quadratic` is the quadratic damping per unit of inertia, by default none.
    """
    quadratic = jnp.zeros(3) if quadratic is None else quadratic
    return (move_kernel if kernels.enabled() else move_plain)(boat, forces, e, current, quadratic)


def move_plain(
    boat: Float[Array, " 6"],
    forces: Float[Array, "parts 3"],
    e: Float[Array, " 9"],
    current: Float[Array, " 2"],
    quadratic: Float[Array, " 3"],
) -> Float[Array, " 6"]:
    """`move` as a loop over the parts."""

    def part(state: State, force: Array) -> tuple[State, None]:
        return rk4(lambda s: derivative(s, force, e, current, (quadratic, NO_CUBIC)), state, SUBSTEP), None

    moved, _ = jax.lax.scan(part, tuple(boat), forces)
    return jnp.stack(moved)


@jax.custom_vjp
def move_kernel(
    boat: Float[Array, " 6"],
    forces: Float[Array, "parts 3"],
    e: Float[Array, " 9"],
    current: Float[Array, " 2"],
    quadratic: Float[Array, " 3"],
) -> Float[Array, " 6"]:
    """`move` as one kernel; not differentiable in the last three, which do not depend on weights."""
    shape = jax.ShapeDtypeStruct((6,), jnp.float32)  # type: ignore[no-untyped-call]
    return jnp.asarray(call(forward_kernel, shape, boat, forces, e, current, quadratic))


def _forward(*given: Array) -> tuple[Array, tuple[Array, ...]]:
    return move_kernel(*given), given


def _backward(given: tuple[Array, ...], cotangent: Array) -> tuple[Array, Array, None, None, None]:
    shapes = tuple(jax.ShapeDtypeStruct(x.shape, jnp.float32) for x in given[:2])  # type: ignore[no-untyped-call]
    boat, forces = call(backward_kernel, shapes, *given, cotangent)
    return boat, forces, None, None, None


move_kernel.defvjp(_forward, _backward)


def call(kernel: Any, shapes: Any, *given: Array) -> Any:
    """Run a kernel for one boat; under vmap, one program per boat."""
    params = triton.CompilerParams(num_warps=1)
    return pl.pallas_call(kernel, out_shape=shapes, compiler_params=params, interpret=kernels.INTERPRET)(*given)


def numbers(ref: Any) -> Any:
    """The elements of a Pallas `Ref` as scalars, in tuples of its shape."""
    if len(ref.shape) == 1:
        return tuple(ref[i] for i in range(ref.shape[0]))
    return tuple(tuple(ref[i, j] for j in range(ref.shape[1])) for i in range(ref.shape[0]))


def period(boat: State, forces: tuple[State, ...], e: State, current: State, quadratic: State) -> State:
    """The integration, unrolled."""
    for force in forces:
        rate = partial(derivative, force=force, e=e, current=current, drag=(quadratic, NO_CUBIC))
        boat = rk4(rate, boat, SUBSTEP)
    return boat


def forward_kernel(boat: Any, forces: Any, e: Any, current: Any, quadratic: Any, moved: Any) -> None:
    """The kernel of `period`."""
    for i, number in enumerate(period(*map(numbers, (boat, forces, e, current, quadratic)))):
        moved[i] = number


def backward_kernel(
    boat: Any, forces: Any, e: Any, current: Any, quadratic: Any, cotangent: Any, by_boat: Any, by_forces: Any
) -> None:
    """The kernel of the vector-Jacobian product of `period`."""
    constants = numbers(e), numbers(current), numbers(quadratic)
    _, vjp = jax.vjp(lambda boat, forces: period(boat, forces, *constants), numbers(boat), numbers(forces))
    d_boat, d_forces = vjp(numbers(cotangent))
    for i, number in enumerate(d_boat):
        by_boat[i] = number
    for i, d_force in enumerate(d_forces):
        for j, number in enumerate(d_force):
            by_forces[i, j] = number
