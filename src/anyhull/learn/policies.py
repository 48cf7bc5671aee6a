"""The paper's networks as policies: teacher, student, student with the mean latent, and the recurrent baseline.

Every policy has one signature, `act(observation, history, privileged, memory) -> action, latent, memory`. It ignores
inputs that it does not use, and outputs that it does not have are empty. All take batches, with features in the last
axis. Those that PPO trains also have a critic: `value` and `unroll`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate, pairwise
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from anyhull.learn.kernels import gru
from anyhull.observation import HISTORY_SIZE, LOG_STD_RANGE, MODULATION, Scales, scale_history, scale_observation

Key = Array
Acted = tuple[Float[Array, "*n a"], Float[Array, "*n z"], Float[Array, "*n m"]]
"""Mean of the action, latent, and memory."""

ENCODER = (128, 128)
ACTOR = (128, 128, 64)
GRU = 128
PROJECTION = (128,)
LATENT = 9
DYNAMICS_HEAD = (64,)
SCALES = Scales()


def affine(x: Array, weight: Array, bias: Array) -> Array:
    """x · weight + bias, with the bias broadcast over the leading axes."""
    y = x @ weight
    return y + jnp.broadcast_to(bias, y.shape)


class Layer(eqx.Module):
    """An affine map, or a stack of several: weight (..., in, out), bias (..., out)."""

    weight: Array
    bias: Array

    def __init__(self, inputs: int, outputs: int, gain: float, *, key: Key, stack: tuple[int, ...] = ()) -> None:
        self.weight = jax.nn.initializers.orthogonal(gain)(key, (*stack, inputs, outputs))
        self.bias = jnp.zeros((*stack, outputs))

    def __call__(self, x: Array) -> Array:
        return affine(x, self.weight, self.bias)


class MLP(eqx.Module):
    """Hidden layers with ELU, and a linear output."""

    layers: tuple[Layer, ...]

    def __init__(self, inputs: int, hidden: tuple[int, ...], outputs: int, *, key: Key, gain: float = 1.0) -> None:
        sizes = (inputs, *hidden, outputs)
        keys = jax.random.split(key, len(sizes) - 1)
        gains = [2**0.5] * len(hidden) + [gain]
        shapes = zip(pairwise(sizes), gains, keys, strict=True)
        self.layers = tuple(Layer(i, o, gain, key=k) for (i, o), gain, k in shapes)

    def __call__(self, x: Float[Array, "*batch i"]) -> Float[Array, "*batch o"]:
        for layer in self.layers[:-1]:
            x = jax.nn.elu(layer(x))
        return self.layers[-1](x)


class ActorCritic(eqx.Module):
    """Actor and critic of equal size, with layers stacked in pairs."""

    layers: tuple[Layer, ...]
    """Hidden layers and head, the actor's first; of the critic's head only the first output is used."""
    log_std: Float[Array, " a"]

    def __init__(self, inputs: int, actions: int, *, key: Key, std: float = 0.5) -> None:
        sizes = (inputs, *ACTOR, actions)
        keys = jax.random.split(key, len(sizes) - 1)
        layers = [Layer(i, o, 2**0.5, key=k, stack=(2,)) for (i, o), k in zip(pairwise(sizes), keys, strict=True)]
        # A small gain for the actor, so that initial actions are near zero.
        gains = jnp.array([0.01, 1.0])[:, None, None] / 2**0.5
        layers[-1] = eqx.tree_at(lambda head: head.weight, layers[-1], layers[-1].weight * gains)
        self.layers = tuple(layers)
        self.log_std = jnp.full((actions,), jnp.log(std), jnp.float32)  # a weak type would compile everything twice

    def __call__(
        self, x: Float[Array, "n i"], latent_part: Float[Array, "2 n f"] | None = None
    ) -> tuple[Float[Array, "n a"], Float[Array, " n"]]:
        """Mean of the action, and value; `latent_part` is the latent's part of the first layer of each."""
        first = self.layers[0]
        weight, bias = first.weight[:, : x.shape[-1]], first.bias[:, None]
        bias = bias if latent_part is None else bias + latent_part
        if jax.default_backend() == "cpu":
            hidden = [jax.nn.elu(affine(x, weight[which], bias[which])) for which in range(2)]
            mean, value = (self._onward(which, hidden[which]) for which in range(2))
            return mean, value[..., 0]
        # A batched product is faster on a GPU; on a CPU it takes 1.5 times as long as two products.
        both = jax.nn.elu(jnp.broadcast_to(x, (2, *x.shape)) @ weight + bias)
        for layer in self.layers[1:-1]:
            both = jax.nn.elu(both @ layer.weight + layer.bias[:, None])
        mean, value = both @ self.layers[-1].weight + self.layers[-1].bias[:, None]
        return mean, value[..., 0]

    def act(self, x: Float[Array, "*batch i"], factors: Array | None = None) -> Float[Array, "*batch a"]:
        """Mean of the action only; `factors`, if given, multiply the last hidden layer."""
        return self._onward(0, jax.nn.elu(affine(x, self.layers[0].weight[0], self.layers[0].bias[0])), factors)

    def _onward(self, which: int, x: Float[Array, "*batch f"], factors: Array | None = None) -> Array:
        """The layers after the first, of the actor (0) or the critic (1)."""
        for layer in self.layers[1:-1]:
            x = jax.nn.elu(affine(x, layer.weight[which], layer.bias[which]))
        x = x if factors is None else x * factors
        return affine(x, self.layers[-1].weight[which], self.layers[-1].bias[which])


class Teacher(eqx.Module):
    """Actor and critic on the observation and, with an encoder, on the latent z of the privileged vector."""

    encoder: MLP | None
    actor_critic: ActorCritic
    modulation: Layer | None
    """If given, exp of its output multiplies the actor's last hidden layer.

    The required force is a product of desired acceleration and inertia. Inertia per unit of force varies by three
    orders of magnitude between boats, and an additive latent approximates a product poorly.
    """
    scales: Scales = eqx.field(static=True)

    memory_size = 0
    history_size = 0

    def __init__(
        self,
        observation: int,
        privileged: int,
        actions: int,
        latent: int = LATENT,
        *,
        modulated: bool = False,
        scales: Scales = SCALES,
        key: Key,
    ) -> None:
        """A `latent` of size 0 means no encoder: the paper's PPO (general) and PPO (specific)."""
        one, two = jax.random.split(key)
        self.encoder = MLP(privileged, ENCODER, latent, key=one) if latent else None
        self.actor_critic = ActorCritic(observation + latent, actions, key=two)
        self.modulation = Layer(latent, ACTOR[-1], 0.01, key=key) if modulated else None
        self.scales = scales

    def latent(self, privileged: Float[Array, "*batch e"]) -> Float[Array, "*batch z"]:
        """The latent z; empty without an encoder."""
        return self.encoder(privileged) if self.encoder else privileged[..., :0]

    def actor(self, observation: Float[Array, "*n o"], z: Float[Array, "*n z"]) -> Float[Array, "*n a"]:
        """Mean of the action, given the latent."""
        factors = None if self.modulation is None else jnp.exp(jnp.clip(self.modulation(z), *MODULATION))
        features = jnp.concatenate([scale_observation(observation, self.scales), z], axis=-1)
        return self.actor_critic.act(features, factors)

    def act(self, observation: Array, history: Array, privileged: Array, memory: Array) -> Acted:
        z = self.latent(privileged)
        return self.actor(observation, z), z, memory

    def value(self, observation: Array, history: Array, z: Array, memory: Array) -> Float[Array, " n"]:
        """The critic's value, given the latent."""
        return self.actor_critic(jnp.concatenate([scale_observation(observation, self.scales), z], axis=-1))[1]

    def unroll(self, o: Array, h: Array, z: Array, m: Array, reset: Array, renewed: Array) -> tuple[Array, Array]:
        """Mean and value over time, of a scaled o (n, t, o); z (n, 2, z) before and after a reset (`renewed`).

        The part of z in the first layer is computed twice per environment, not at every step.
        """
        n, t = o.shape[:2]
        latent_part = None
        if self.encoder is not None:
            parts = jnp.einsum("nsz,kzf->knsf", z, self.actor_critic.layers[0].weight[:, o.shape[-1] :])
            latent_part = jnp.where(renewed[None, ..., None], parts[:, :, 1:], parts[:, :, :1]).reshape(2, n * t, -1)
        mean, value = self.actor_critic(o.reshape(n * t, -1), latent_part)
        return mean.reshape(n, t, -1), value.reshape(n, t)

    def estimation_losses(self, z: Array, memory: Array, privileged: Array) -> dict[str, Array]:
        """Empty: a teacher has privileged input and estimates nothing."""
        return {}


class Adapter(eqx.Module):
    """The GRU that estimates z from the history features; a dynamics head also estimates the boat's dynamics."""

    cell: eqx.nn.GRUCell
    projection: MLP
    dynamics_head: MLP | None
    scales: Scales = eqx.field(static=True)

    def __init__(
        self, history: int, latent: int = LATENT, dynamics: int = 0, *, scales: Scales = SCALES, key: Key
    ) -> None:
        """`dynamics` is the size of the privileged vector that the head estimates; 0 for no head, as in the paper."""
        one, two, three = jax.random.split(key, 3)
        self.cell = eqx.nn.GRUCell(history, GRU, key=one)
        self.projection = MLP(GRU, PROJECTION, latent, key=two)
        self.dynamics_head = MLP(GRU, DYNAMICS_HEAD, 2 * dynamics, key=three) if dynamics else None
        self.scales = scales

    def __call__(
        self, h: Float[Array, "n h"], g: Float[Array, "n g"]
    ) -> tuple[Float[Array, "n z"], Float[Array, "n g"]]:
        """The estimate of z, and the state of the GRU."""
        g = jax.vmap(self.cell)(scale_history(h, self.scales), g)
        return self.projection(g), g

    def unroll(self, h: Float[Array, "t n h"], reset: Array, g: Float[Array, "n g"]) -> tuple[Array, Array]:
        """`__call__` over time; where `reset` (t, n), the state is zeroed before the step."""
        states = gru.unroll(self.cell, scale_history(h, self.scales), reset, g)
        return self.projection(states), states

    def dynamics(self, g: Float[Array, "*batch g"]) -> tuple[Float[Array, "*batch e"], Float[Array, "*batch e"]]:
        """Mean and logarithm of the standard deviation of the privileged vector, given the state of the GRU."""
        assert self.dynamics_head is not None
        mean, log_std = jnp.split(self.dynamics_head(g), 2, axis=-1)
        return mean, jnp.clip(log_std, *LOG_STD_RANGE)

    def nll(self, g: Float[Array, "*batch g"], privileged: Float[Array, "*batch e"]) -> Float[Array, "*batch"]:
        """Negative log likelihood of the privileged vector, up to a constant."""
        mean, log_std = self.dynamics(g)
        return (0.5 * ((privileged - mean) * jnp.exp(-log_std)) ** 2 + log_std).sum(-1)


class Student(eqx.Module):
    """The teacher's actor with the adapter's estimate in place of z."""

    teacher: Teacher
    adapter: Adapter

    memory_size = GRU

    def act(self, observation: Array, history: Array, privileged: Array, memory: Array) -> Acted:
        z, memory = self.adapter(history, memory)
        return self.teacher.actor(observation, z), z, memory

    def estimation_losses(self, z: Array, memory: Array, privileged: Array) -> dict[str, Array]:
        """By name: the squared distance of the estimate from the teacher's latent, and the dynamics head's loss."""
        target = jax.lax.stop_gradient(self.teacher.latent(privileged))
        losses = {"latent": ((z - target) ** 2).sum(-1)}
        return losses if self.adapter.dynamics_head is None else losses | {"nll": self.adapter.nll(memory, privileged)}


class MeanLatent(eqx.Module):
    """The ablation of the student: its actor with one z for every boat, the mean over training."""

    teacher: Teacher
    fixed_latent: Float[Array, " z"]

    memory_size = 0

    def act(self, observation: Array, history: Array, privileged: Array, memory: Array) -> Acted:
        z = jnp.broadcast_to(self.fixed_latent, (*observation.shape[:-1], self.fixed_latent.size))
        return self.teacher.actor(observation, z), z, memory


class Recurrent(eqx.Module):
    """The end-to-end baseline: compressed observation and history -> GRU -> actor and critic."""

    compress: MLP
    cell: eqx.nn.GRUCell
    actor_critic: ActorCritic
    scales: Scales = eqx.field(static=True)

    memory_size = GRU
    history_size = HISTORY_SIZE

    def __init__(self, observation: int, history: int, actions: int, *, scales: Scales = SCALES, key: Key) -> None:
        one, two, three = jax.random.split(key, 3)
        self.compress = MLP(observation, (128,), 64, key=one)
        self.cell = eqx.nn.GRUCell(64 + history, GRU, key=two)
        self.actor_critic = ActorCritic(GRU, actions, key=three)
        self.scales = scales

    def latent(self, privileged: Float[Array, "*batch e"]) -> Float[Array, "*batch 0"]:
        """Empty: a recurrent policy has no explicit latent."""
        return privileged[..., :0]

    def next_memory(self, o: Float[Array, "n o"], h: Float[Array, "n h"], m: Float[Array, "n m"]) -> Array:
        """The state of the GRU after this observation."""
        compressed = jax.nn.elu(self.compress(scale_observation(o, self.scales)))
        features = jnp.concatenate([compressed, scale_history(h, self.scales)], axis=-1)
        return jnp.asarray(jax.vmap(self.cell)(features, m))

    def act(self, observation: Array, history: Array, privileged: Array, memory: Array) -> Acted:
        memory = self.next_memory(observation, history, memory)
        return self.actor_critic.act(memory), self.latent(privileged), memory

    def value(self, observation: Array, history: Array, z: Array, memory: Array) -> Float[Array, " n"]:
        """The critic's value."""
        return self.actor_critic(self.next_memory(observation, history, memory))[1]

    def unroll(self, o: Array, h: Array, z: Array, m: Array, reset: Array, renewed: Array) -> tuple[Array, Array]:
        """Mean and value over time from the memory `m`, which is zeroed at every reset; o and h are already scaled."""
        n, t = o.shape[:2]
        features = jnp.concatenate([jax.nn.elu(self.compress(o)), h], axis=-1)
        memories = gru.unroll(self.cell, jnp.swapaxes(features, 0, 1), reset.T, m)
        mean, value = self.actor_critic(memories.reshape(t * n, -1))
        return jnp.swapaxes(mean.reshape(t, n, -1), 0, 1), value.reshape(t, n).T


Policy = Teacher | Student | MeanLatent | Recurrent

ALIGNED = 16
"""Alignment of the leaves in flattened weights, so that a kernel reads memory in wide words."""


def flatten(policy: Any) -> tuple[Float[Array, " p"], Callable[[Array], Any]]:
    """The arrays of a policy in one zero-padded vector, and the inverse function."""
    leaves, structure = jax.tree.flatten(policy)
    starts = offsets(leaves)

    def unflatten(vector: Array) -> Any:
        parts = (vector[at : at + leaf.size].reshape(leaf.shape) for at, leaf in zip(starts, leaves, strict=True))
        return jax.tree.unflatten(structure, parts)

    return jnp.concatenate([jnp.pad(leaf.ravel(), (0, -leaf.size % ALIGNED)) for leaf in leaves]), unflatten


def offsets(leaves: list[Array]) -> list[int]:
    """The start of each array in the flattened vector."""
    return list(accumulate([0, *(leaf.size + -leaf.size % ALIGNED for leaf in leaves[:-1])]))
