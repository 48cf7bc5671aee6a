"""The gradient of PPO's loss: `loss` is the definition; on a GPU a kernel computes its derivative.

A gradient step of the paper's recipe is 4096 rows through three small networks: about 65 sequential
kernels with little arithmetic. In the hand-written kernel a program runs the rows of a few environments forward and
backward through encoder and actor, or encoder and critic. It writes its part of the gradient in the layout of the
flattened policy; the parts are summed outside.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jaxtyping import Array, Bool, Float, Int

from anyhull.learn import kernels
from anyhull.learn.config import PPO
from anyhull.learn.policies import Teacher, flatten, offsets

Gradient = Callable[[Array, Array], tuple[Array, Array]]
"""(flattened weights, environments of the minibatch) -> flattened gradient, KL divergence."""

ROWS = 32
"""Rows per program. Block dimensions are powers of two of at least 16, as the matrix units require."""


class Batch(NamedTuple):
    """Training data; leading axes (envs, steps), so that a minibatch of environments is contiguous."""

    observation: Float[Array, "n t o"]
    """Scaled once, as the history, rather than in every epoch."""
    history: Float[Array, "n t h"]
    memory: Float[Array, "n m"]
    """Memory at the first step."""
    reset: Bool[Array, "n t"]
    """Whether the memory is zeroed before the step."""
    renewed: Bool[Array, "n t"]
    """Whether the environment had been reset within the batch before the step."""
    privileged: Float[Array, "n 2 e"]
    """Privileged vectors before and after a reset within the batch."""
    action: Float[Array, "n t a"]
    log_prob: Float[Array, "n t"]
    advantage: Float[Array, "n t"]
    target: Float[Array, "n t"]


def log_probability(mean: Array, log_std: Array, action: Array) -> Array:
    """Logarithm of a diagonal Gaussian's density, summed over the action."""
    log_std = jnp.broadcast_to(log_std, mean.shape)
    scaled = (action - mean) * jnp.exp(-log_std)
    return -(0.5 * scaled**2 + log_std + 0.5 * math.log(2 * math.pi)).sum(-1)


def loss(policy: Any, batch: Batch, config: PPO) -> tuple[Array, Array]:
    """The clipped surrogate, value and entropy loss of a minibatch, and the KL divergence from the old policy."""
    latents = policy.latent(batch.privileged)
    seen = batch.observation, batch.history
    mean, value = policy.unroll(*seen, latents, batch.memory, batch.reset, batch.renewed)
    log_std = policy.actor_critic.log_std
    log_ratio = log_probability(mean, log_std, batch.action) - batch.log_prob
    ratio = jnp.exp(log_ratio)
    clipped = jnp.clip(ratio, 1 - config.clip_range, 1 + config.clip_range)
    surrogate = -jnp.minimum(ratio * batch.advantage, clipped * batch.advantage)
    squared = 0.5 * (value - batch.target) ** 2
    entropy = (log_std + 0.5 * math.log(2 * math.pi * math.e)).sum()
    # The k3 estimate of the divergence: never negative, and of low variance.
    divergence = (ratio - 1 - log_ratio).mean()
    return (surrogate + config.value_coef * squared).mean() - config.entropy_coef * entropy, divergence


def gradient(policy: Any, batch: Batch, config: PPO) -> Gradient:
    """The gradient of `loss` over environments of a batch, by the kernel where it `fits`."""
    _, unflatten = flatten(policy)

    def plain(weights: Array, envs: Array, batch: Batch) -> tuple[Array, Array]:
        mini = jax.tree.map(lambda leaf: leaf[envs], batch)
        found, divergence = jax.grad(loss, has_aux=True)(unflatten(weights), mini, config)
        return flatten(found)[0], divergence

    if not fits(policy, config):
        return lambda weights, envs: plain(weights, envs, batch)
    flat = FlatBatch.of(batch)

    # Several seeds under `vmap` form large products: there the plain function is faster.
    @jax.custom_batching.custom_vmap
    def one_seed(weights: Array, envs: Array, batch: Batch, flat: FlatBatch) -> tuple[Array, Array]:
        return gradient_kernel(weights, flat, envs, policy, config)

    @one_seed.def_vmap
    def several_seeds(count: int, batched: Any, weights: Array, envs: Array, batch: Batch, flat: FlatBatch) -> Any:
        axes = jax.tree.map(lambda has: 0 if has else None, tuple(batched[:3]))
        return jax.vmap(plain, in_axes=axes)(weights, envs, batch), (True, True)

    return lambda weights, envs: one_seed(weights, envs, batch, flat)  # type: ignore[no-any-return]


def fits(policy: Any, config: PPO) -> bool:
    """Whether the kernel is enabled and supports this policy and these shapes."""
    rows = config.num_envs * config.rollout_steps
    whole = ROWS % config.rollout_steps == 0 and rows % (config.minibatches * ROWS) == 0
    return kernels.enabled() and whole and isinstance(policy, Teacher)


class FlatBatch(NamedTuple):
    """A batch as the kernel reads it, each leaf flat: by environment, then by step."""

    features: Float[Array, " n*t*o"]
    """The scaled observation."""
    renewed: Int[Array, " n*t"]
    privileged: Float[Array, " n*2*e"]
    action: Float[Array, " n*t*a"]
    log_prob: Float[Array, " n*t"]
    advantage: Float[Array, " n*t"]
    target: Float[Array, " n*t"]

    @staticmethod
    def of(batch: Batch) -> FlatBatch:
        """A batch, flattened."""
        numbers = (batch.privileged, batch.action, batch.log_prob, batch.advantage, batch.target)
        leaves = (batch.observation, batch.renewed.astype(jnp.int32), *numbers)
        return FlatBatch(*(leaf.reshape(-1) for leaf in leaves))


def gradient_kernel(
    weights: Float[Array, " p"], batch: FlatBatch, envs: Int[Array, " n"], policy: Teacher, config: PPO
) -> tuple[Float[Array, " p"], Float[Array, ""]]:
    """The gradient of `loss` over the environments `envs`, and the KL divergence.

    `weights` are those of `policy` in one vector; of `policy` itself only the shapes are used.
    """
    leaves, structure = jax.tree.flatten(policy)
    starts = jax.tree.unflatten(structure, offsets(leaves))
    # The encoder comes first. The critic's programs append their part of its gradient at the end.
    size, shared = weights.size, starts.actor_critic.layers[0].weight
    groups = envs.size * config.rollout_steps // ROWS
    run = pl.pallas_call(
        partial(program, policy=policy, starts=starts, size=size, config=config, rows=envs.size * config.rollout_steps),
        grid=(2, groups),
        out_shape=(
            jax.ShapeDtypeStruct((groups * (size + shared),), jnp.float32),  # type: ignore[no-untyped-call]
            jax.ShapeDtypeStruct((groups,), jnp.float32),  # type: ignore[no-untyped-call]
        ),
        compiler_params=triton.CompilerParams(num_warps=8, num_stages=1),
        interpret=kernels.INTERPRET,
    )
    parts, divergence = run(envs, *batch, weights)
    summed = parts.reshape(groups, -1).sum(0)
    # No program writes the padding between leaves, which is uninitialized.
    filled = flatten(jax.tree.map(jnp.ones_like, policy))[0] > 0
    total = jnp.where(filled, summed[:size].at[:shared].add(summed[size:]), 0.0)
    return total, divergence.sum()


class Block(NamedTuple):
    """A block of a flat array: the index of each entry, and the mask of valid entries."""

    indices: Array
    mask: Array


def padded(length: int) -> int:
    """The dimension of a block for `length` entries."""
    return max(16, 1 << (length - 1).bit_length())


def vector(start: Any, length: int) -> Block:
    """The block of `length` numbers from `start` on."""
    column = jax.lax.iota(jnp.int32, padded(length))
    return Block(start + column, column < length)


def matrix(start: Any, rows: int, columns: int) -> Block:
    """The block of a row-major matrix from `start` on."""
    block = (padded(rows), padded(columns))
    row, column = (jax.lax.broadcasted_iota(jnp.int32, block, axis) for axis in (0, 1))
    return Block(start + row * columns + column, (row < rows) & (column < columns))


def gathered(rows: Array, mask: Array, columns: int) -> Block:
    """The block of the given rows of a matrix."""
    column = jax.lax.iota(jnp.int32, padded(columns))
    return Block(rows[:, None] * columns + column[None, :], mask[:, None] & (column < columns)[None, :])


class Affine(NamedTuple):
    """A layer: a matrix for each of its inputs, and the bias."""

    matrices: tuple[Block, ...]
    bias: Block


def affine(weight: Any, bias: Any, inputs: tuple[int, ...], outputs: int) -> Affine:
    """The layer whose weight and bias begin there."""
    starts = accumulate([0, *(rows * outputs for rows in inputs[:-1])])
    matrices = (matrix(weight + start, rows, outputs) for start, rows in zip(starts, inputs, strict=True))
    return Affine(tuple(matrices), vector(bias, outputs))


def elu(x: Array) -> Array:
    """The activation function."""
    return jnp.where(x > 0, x, jnp.exp(jnp.minimum(x, 0.0)) - 1)


def slope(activated: Array) -> Array:
    """The derivative of `elu`, from its result."""
    return jnp.where(activated > 0, 1.0, activated + 1)


def program(order: Any, *refs: Any, policy: Teacher, starts: Any, size: int, config: PPO, rows: int) -> None:
    """Forward and backward pass of `ROWS` of a minibatch's `rows`, with the actor or the critic."""
    features, renewed, privileged, action, log_prob, advantage, target, weights, gradient, divergence = refs
    critic, group = pl.program_id(0), pl.program_id(1)
    shared = starts.actor_critic.layers[0].weight
    first = group * (size + shared)

    def read(ref: Any, block: Block) -> Array:
        return triton.load(ref.at[block.indices], mask=block.mask, other=0)

    def forward(layer: Affine, inputs: list[Array]) -> Array:
        products = [triton.dot(x, read(weights, at)) for x, at in zip(inputs, layer.matrices, strict=True)]
        return sum(products, start=read(weights, layer.bias)[None, :])

    def backward(layer: Affine, inputs: list[Array], delta: Array, start: Any = first) -> list[Array]:
        for x, at in zip(inputs, layer.matrices, strict=True):
            triton.store(gradient.at[start + at.indices], triton.dot(x, delta, trans_a=True), mask=at.mask)
        triton.store(gradient.at[start + layer.bias.indices], delta.sum(0), mask=layer.bias.mask)
        return [triton.dot(delta, read(weights, at), trans_b=True) for at in layer.matrices]

    # The rows of the environments of this group, and their privileged vectors before and after a reset.
    row = jax.lax.iota(jnp.int32, ROWS)
    local, here = row // config.rollout_steps, row >= 0
    index = order[group * (ROWS // config.rollout_steps) + local] * config.rollout_steps + row % config.rollout_steps
    body = policy.actor_critic.layers
    observed, actions = features.size // log_prob.size, body[-1].bias.shape[-1]
    inputs, widths = [read(features, gathered(index, here, observed))], [observed]

    encoder, encoder_inputs = [], []
    if policy.encoder is not None:
        width = privileged.size // (2 * log_prob.size // config.rollout_steps)
        side = jax.lax.iota(jnp.int32, padded(2 * ROWS // config.rollout_steps))
        boat, mask = side // 2, side < 2 * ROWS // config.rollout_steps
        env = triton.load(order.at[group * (ROWS // config.rollout_steps) + boat], mask=mask, other=0)
        x = read(privileged, gathered(2 * env + side % 2, mask, width))
        for at, layer in zip(starts.encoder.layers, policy.encoder.layers, strict=True):
            encoder.append(affine(at.weight, at.bias, layer.weight.shape[:1], layer.weight.shape[1]))
            encoder_inputs.append(x)
            x = forward(encoder[-1], [x])
            x = elu(x) if layer is not policy.encoder.layers[-1] else x
        # One entry a row: the boat before or after the reset.
        chosen = (side[None, :] == (2 * local + renewed[index])[:, None]).astype(jnp.float32)
        inputs.append(triton.dot(chosen, x))
        widths.append(policy.encoder.layers[-1].bias.size)

    layers, activated = [], [inputs]
    for number, (at, layer) in enumerate(zip(starts.actor_critic.layers, body, strict=True)):
        _, wide, out = layer.weight.shape
        split = tuple(widths) if number == 0 else (wide,)
        layers.append(affine(at.weight + critic * wide * out, at.bias + critic * out, split, out))
        y = forward(layers[-1], activated[-1])
        activated.append([elu(y)])

    # The derivative of the loss with respect to the mean of the action, or to the value.
    column = jax.lax.broadcasted_iota(jnp.int32, (ROWS, padded(actions)), 1)
    valid, log_std = column < actions, read(weights, vector(starts.actor_critic.log_std, actions))[None, :]
    scaled = jnp.where(valid, (read(action, gathered(index, here, actions)) - y) * jnp.exp(-log_std), 0.0)
    density = jnp.where(valid, 0.5 * scaled**2 + log_std + 0.5 * math.log(2 * math.pi), 0.0).sum(1)
    log_ratio = -density - log_prob[index]
    ratio, gain = jnp.exp(log_ratio), advantage[index]
    clipped = jnp.minimum(jnp.maximum(ratio, 1 - config.clip_range), 1 + config.clip_range)
    by_log_prob = jnp.where(ratio * gain <= clipped * gain, -ratio * gain, 0.0)[:, None] / rows
    by_mean = by_log_prob * scaled * jnp.exp(-log_std)
    by_value = jnp.where(column == 0, config.value_coef * (y - target[index][:, None]) / rows, 0.0)
    delta = jnp.where(critic == 0, by_mean, by_value)

    @pl.when(critic == 0)
    def by_log_std() -> None:
        by_std = jnp.where(valid, by_log_prob * (scaled**2 - 1), 0.0).sum(0) - config.entropy_coef * ROWS / rows
        at = vector(starts.actor_critic.log_std, actions)
        triton.store(gradient.at[first + at.indices], by_std, mask=at.mask)
        divergence[group] = (ratio - 1 - log_ratio).sum() / rows

    for affine_layer, before in zip(layers[:0:-1], activated[-2:0:-1], strict=True):
        delta = backward(affine_layer, before, delta)[0] * slope(before[0])
    deltas = backward(layers[0], inputs, delta)
    if policy.encoder is not None:
        delta = triton.dot(chosen, deltas[1], trans_a=True)
        for affine_layer, x in zip(encoder[:0:-1], encoder_inputs[:0:-1], strict=True):
            delta = backward(affine_layer, [x], delta, first + critic * size)[0] * slope(x)
        backward(encoder[0], encoder_inputs[:1], delta, first + critic * size)
