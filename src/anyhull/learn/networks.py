"""The paper's networks: encoder, actor and critic, adapter, and the recurrent baseline.

All take batches: features in the last axis, anything before it.
"""

from __future__ import annotations

from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Key = Array

ENCODER = (128, 128)
ACTOR = (128, 128, 64)
GRU = 128
PROJECTION = (128,)
LATENT = 9


class Layer(eqx.Module):
    """An affine map, or a stack of them: weight (..., in, out), bias (..., out)."""

    weight: Array
    bias: Array

    def __init__(self, inputs: int, outputs: int, gain: float, *, key: Key, stack: tuple[int, ...] = ()) -> None:
        self.weight = jax.nn.initializers.orthogonal(gain)(key, (*stack, inputs, outputs))
        self.bias = jnp.zeros((*stack, outputs))

    def __call__(self, x: Array) -> Array:
        bias = self.bias if self.bias.ndim == 1 else self.bias[..., None, :]
        return x @ self.weight + bias


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
    """Actor and critic of equal size, stacked so that each layer of both is one batched product."""

    layers: tuple[Layer, ...]
    """Hidden layers and head, the actor's first; of the critic's head only the first output is used."""
    log_std: Float[Array, " a"]

    def __init__(self, inputs: int, actions: int, *, key: Key, std: float = 0.5) -> None:
        sizes = (inputs, *ACTOR, actions)
        keys = jax.random.split(key, len(sizes) - 1)
        layers = [Layer(i, o, 2**0.5, key=k, stack=(2,)) for (i, o), k in zip(pairwise(sizes), keys, strict=True)]
        # Actions start near zero, values at their natural size.
        gains = jnp.array([0.01, 1.0])[:, None, None] / 2**0.5
        layers[-1] = eqx.tree_at(lambda head: head.weight, layers[-1], layers[-1].weight * gains)
        self.layers = tuple(layers)
        self.log_std = jnp.full((actions,), jnp.log(std))

    def __call__(self, x: Float[Array, "batch i"]) -> tuple[Float[Array, "batch a"], Float[Array, " batch"]]:
        """Mean of the action, and value."""
        both = jnp.broadcast_to(x, (2, *x.shape))
        for layer in self.layers[:-1]:
            both = jax.nn.elu(layer(both))
        mean, value = self.layers[-1](both)
        return mean, value[:, 0]

    def act(self, x: Float[Array, "*batch i"]) -> Float[Array, "*batch a"]:
        """Mean of the action alone."""
        for layer in self.layers[:-1]:
            x = jax.nn.elu(x @ layer.weight[0] + layer.bias[0])
        head = self.layers[-1]
        return x @ head.weight[0] + head.bias[0]


class Teacher(eqx.Module):
    """Actor and critic on the observation and, with an encoder, on the latent z of the privileged vector."""

    encoder: MLP | None
    body: ActorCritic

    def __init__(self, observation: int, privileged: int | None, actions: int, *, key: Key) -> None:
        """Without `privileged` there is no latent: the paper's PPO (general) and PPO (specific)."""
        one, two = jax.random.split(key)
        self.encoder = None if privileged is None else MLP(privileged, ENCODER, LATENT, key=one)
        self.body = ActorCritic(observation + (LATENT if privileged else 0), actions, key=two)

    def inputs(self, o: Float[Array, "*batch o"], z: Float[Array, "*batch z"]) -> Float[Array, "*batch i"]:
        """What actor and critic read."""
        return jnp.concatenate([scale_observation(o), z], axis=-1)

    def latent(self, privileged: Float[Array, "*batch e"]) -> Float[Array, "*batch z"]:
        """z, or nothing where there is no encoder."""
        return self.encoder(privileged) if self.encoder else privileged[..., :0]


class Adapter(eqx.Module):
    """The GRU that estimates z from the history features."""

    cell: eqx.nn.GRUCell
    projection: MLP

    def __init__(self, history: int, *, key: Key) -> None:
        one, two = jax.random.split(key)
        self.cell = eqx.nn.GRUCell(history, GRU, key=one)
        self.projection = MLP(GRU, PROJECTION, LATENT, key=two)

    def __call__(
        self, h: Float[Array, "n h"], g: Float[Array, "n g"]
    ) -> tuple[Float[Array, "n z"], Float[Array, "n g"]]:
        """The estimate of z, and the state of the GRU."""
        g = jax.vmap(self.cell)(scale_history(h), g)
        return self.projection(g), g


def scale_observation(o: Array) -> Array:
    """The observation with its tracking errors, the first six numbers, magnified where they are small.

    A good controller answers a centimetre, but the errors come in metres and radians: asinh(10 e) has slope 10 at zero
    and grows like a logarithm, so that a boat far off does not saturate the network.
    """
    errors, rest = o[..., :6], o[..., 6:]
    return jnp.concatenate([jnp.arcsinh(10.0 * errors), rest], axis=-1)


def scale_history(h: Array) -> Array:
    """History features of about unit size: displacements of one period become velocities."""
    return h * jnp.array([10.0, 10.0, 10.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])


class Recurrent(eqx.Module):
    """The end-to-end baseline: the observation compressed, beside the history, into a GRU that drives both heads."""

    compress: MLP
    cell: eqx.nn.GRUCell
    body: ActorCritic

    def __init__(self, observation: int, history: int, actions: int, *, key: Key) -> None:
        one, two, three = jax.random.split(key, 3)
        self.compress = MLP(observation, (128,), 64, key=one)
        self.cell = eqx.nn.GRUCell(64 + history, GRU, key=two)
        self.body = ActorCritic(GRU, actions, key=three)

    def remember(self, o: Float[Array, "n o"], h: Float[Array, "n h"], g: Float[Array, "n g"]) -> Float[Array, "n g"]:
        """The state of the GRU after this observation."""
        features = jnp.concatenate([jax.nn.elu(self.compress(scale_observation(o))), scale_history(h)], axis=-1)
        return jnp.asarray(jax.vmap(self.cell)(features, g))
