"""The paper's networks: encoder, actor and critic, adapter, and the recurrent baseline.

All take batches: features in the last axis, anything before it.
"""

from __future__ import annotations

from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from anyhull.learn import gru
from anyhull.observation import HISTORY_SIZE, MODULATION, SURENESS, Scales, scale_history, scale_observation

Key = Array

ENCODER = (128, 128)
ACTOR = (128, 128, 64)
GRU = 128
PROJECTION = (128,)
LATENT = 9
READER = (64,)
SCALES = Scales()


class Layer(eqx.Module):
    """An affine map, or several side by side: weight (..., in, out), bias (..., out)."""

    weight: Array
    bias: Array

    def __init__(self, inputs: int, outputs: int, gain: float, *, key: Key, stack: tuple[int, ...] = ()) -> None:
        self.weight = jax.nn.initializers.orthogonal(gain)(key, (*stack, inputs, outputs))
        self.bias = jnp.zeros((*stack, outputs))

    def __call__(self, x: Array) -> Array:
        return x @ self.weight + self.bias


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
    """Actor and critic of equal size, layer by layer in pairs."""

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
        self.log_std = jnp.full((actions,), jnp.log(std), jnp.float32)  # a weak type would compile everything twice

    def __call__(
        self, x: Float[Array, "n i"], aside: Float[Array, "2 n f"] | None = None
    ) -> tuple[Float[Array, "n a"], Float[Array, " n"]]:
        """Mean of the action, and value; `aside` is what further inputs come to in the first layer of either."""
        first = self.layers[0]
        weight, bias = first.weight[:, : x.shape[-1]], first.bias[:, None]
        bias = bias if aside is None else bias + aside
        if jax.default_backend() == "cpu":
            mean, value = (self._onward(which, jax.nn.elu(x @ weight[which] + bias[which])) for which in range(2))
            return mean, value[..., 0]
        # Two products in one keep a GPU busy, but cost a CPU half as much again as one after the other.
        both = jax.nn.elu(jnp.broadcast_to(x, (2, *x.shape)) @ weight + bias)
        for layer in self.layers[1:-1]:
            both = jax.nn.elu(both @ layer.weight + layer.bias[:, None])
        mean, value = both @ self.layers[-1].weight + self.layers[-1].bias[:, None]
        return mean, value[..., 0]

    def act(self, x: Float[Array, "*batch i"], factors: Array | None = None) -> Float[Array, "*batch a"]:
        """Mean of the action alone; `factors`, where there are any, multiply the last hidden layer."""
        return self._onward(0, jax.nn.elu(x @ self.layers[0].weight[0] + self.layers[0].bias[0]), factors)

    def _onward(self, which: int, x: Float[Array, "*batch f"], factors: Array | None = None) -> Array:
        """From the first layer's features on, in the actor (0) or the critic (1)."""
        for layer in self.layers[1:-1]:
            x = jax.nn.elu(x @ layer.weight[which] + layer.bias[which])
        x = x if factors is None else x * factors
        return x @ self.layers[-1].weight[which] + self.layers[-1].bias[which]


class Teacher(eqx.Module):
    """Actor and critic on the observation and, with an encoder, on the latent z of the privileged vector."""

    encoder: MLP | None
    body: ActorCritic
    modulation: Layer | None
    """Where there is one, exp of it multiplies the actor's last hidden layer.

    The force that an acceleration takes is a product of what is wanted and what the boat is; boats differ by three
    orders of magnitude, and a sum of the two is a poor start for a product.
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
        """A `latent` of size 0 is no encoder: the paper's PPO (general) and PPO (specific)."""
        one, two = jax.random.split(key)
        self.encoder = MLP(privileged, ENCODER, latent, key=one) if latent else None
        self.body = ActorCritic(observation + latent, actions, key=two)
        self.modulation = Layer(latent, ACTOR[-1], 0.01, key=key) if modulated else None
        self.scales = scales

    def latent(self, privileged: Float[Array, "*batch e"]) -> Float[Array, "*batch z"]:
        """z, or nothing where there is no encoder."""
        return self.encoder(privileged) if self.encoder else privileged[..., :0]

    def act(self, o: Float[Array, "n o"], h: Array, z: Float[Array, "n z"], m: Array) -> tuple[Array, Array]:
        """Mean of the action, and the memory, of which there is none."""
        factors = None if self.modulation is None else jnp.exp(jnp.clip(self.modulation(z), *MODULATION))
        return self.body.act(jnp.concatenate([scale_observation(o, self.scales), z], axis=-1), factors), m

    def evaluate(self, o: Float[Array, "n o"], h: Array, z: Float[Array, "n z"], m: Array) -> tuple[Array, Array]:
        """Mean of the action, and value."""
        return self.body(jnp.concatenate([scale_observation(o, self.scales), z], axis=-1))

    def unroll(self, o: Array, h: Array, z: Array, m: Array, reset: Array, renewed: Array) -> tuple[Array, Array]:
        """As `evaluate`, over time, of a scaled o (n, t, o); z (n, 2, z) of the boat before and after it was `renewed`.

        What z comes to in the first layer is worked out twice an environment, not at every step.
        """
        n, t = o.shape[:2]
        aside = None
        if self.encoder is not None:
            told = jnp.einsum("nsz,kzf->knsf", z, self.body.layers[0].weight[:, o.shape[-1] :])
            aside = jnp.where(renewed[..., None], told[:, :, 1:], told[:, :, :1]).reshape(2, n * t, -1)
        mean, value = self.body(o.reshape(n * t, -1), aside)
        return mean.reshape(n, t, -1), value.reshape(n, t)


class Adapter(eqx.Module):
    """The GRU that estimates z from the history features, and, with a reader, says what boat it takes it to be."""

    cell: eqx.nn.GRUCell
    projection: MLP
    reader: MLP | None
    scales: Scales = eqx.field(static=True)

    def __init__(
        self,
        history: int,
        latent: int = LATENT,
        reads: int = 0,
        *,
        scales: Scales = SCALES,
        key: Key,
    ) -> None:
        """`reads` is the size of the privileged vector that the reader estimates; 0 is none, as in the paper."""
        one, two, three = jax.random.split(key, 3)
        self.cell = eqx.nn.GRUCell(history, GRU, key=one)
        self.projection = MLP(GRU, PROJECTION, latent, key=two)
        self.reader = MLP(GRU, READER, 2 * reads, key=three) if reads else None
        self.scales = scales

    def __call__(
        self, h: Float[Array, "n h"], g: Float[Array, "n g"]
    ) -> tuple[Float[Array, "n z"], Float[Array, "n g"]]:
        """The estimate of z, and the state of the GRU."""
        g = jax.vmap(self.cell)(scale_history(h, self.scales), g)
        return self.projection(g), g

    def unroll(self, h: Float[Array, "t n h"], reset: Array, g: Float[Array, "n g"]) -> tuple[Array, Array]:
        """The same over time; where `reset` (t, n), the state is emptied before the step."""
        states = gru.unroll(self.cell, scale_history(h, self.scales), reset, g)
        return self.projection(states), states

    def read(self, g: Float[Array, "*batch g"]) -> tuple[Float[Array, "*batch e"], Float[Array, "*batch e"]]:
        """Mean and logarithm of the standard deviation of the privileged vector, given the state of the GRU."""
        assert self.reader is not None
        mean, log_std = jnp.split(self.reader(g), 2, axis=-1)
        return mean, jnp.clip(log_std, *SURENESS)

    def surprise(self, g: Float[Array, "*batch g"], privileged: Float[Array, "*batch e"]) -> Float[Array, "*batch"]:
        """Negative logarithm of the likelihood of the privileged vector, but for a constant."""
        mean, log_std = self.read(g)
        return (0.5 * ((privileged - mean) * jnp.exp(-log_std)) ** 2 + log_std).sum(-1)


class Student(eqx.Module):
    """The teacher's actor with the adapter's estimate in place of z."""

    teacher: Teacher
    adapter: Adapter

    memory_size = GRU

    def act(self, o: Float[Array, "n o"], h: Float[Array, "n h"], g: Float[Array, "n g"]) -> tuple[Array, Array, Array]:
        """Mean of the action, the estimate of z, and the state of the GRU."""
        z, g = self.adapter(h, g)
        return self.teacher.act(o, h, z, g)[0], z, g


class MeanLatent(eqx.Module):
    """The ablation of the student: its actor with one z for every boat, the mean over training."""

    teacher: Teacher
    mean: Float[Array, " z"]


class Recurrent(eqx.Module):
    """The end-to-end baseline: the observation compressed, beside the history, into a GRU that drives both heads."""

    compress: MLP
    cell: eqx.nn.GRUCell
    body: ActorCritic
    scales: Scales = eqx.field(static=True)

    memory_size = GRU
    history_size = HISTORY_SIZE

    def __init__(
        self,
        observation: int,
        history: int,
        actions: int,
        *,
        scales: Scales = SCALES,
        key: Key,
    ) -> None:
        one, two, three = jax.random.split(key, 3)
        self.compress = MLP(observation, (128,), 64, key=one)
        self.cell = eqx.nn.GRUCell(64 + history, GRU, key=two)
        self.body = ActorCritic(GRU, actions, key=three)
        self.scales = scales

    def latent(self, privileged: Float[Array, "*batch e"]) -> Float[Array, "*batch 0"]:
        """Nothing: what it knows of the boat is in its memory."""
        return privileged[..., :0]

    def remember(self, o: Float[Array, "n o"], h: Float[Array, "n h"], m: Float[Array, "n m"]) -> Float[Array, "n m"]:
        """The state of the GRU after this observation."""
        compressed = jax.nn.elu(self.compress(scale_observation(o, self.scales)))
        features = jnp.concatenate([compressed, scale_history(h, self.scales)], axis=-1)
        return jnp.asarray(jax.vmap(self.cell)(features, m))

    def act(self, o: Float[Array, "n o"], h: Array, z: Array, m: Float[Array, "n m"]) -> tuple[Array, Array]:
        """Mean of the action, and the memory after this observation."""
        m = self.remember(o, h, m)
        return self.body.act(m), m

    def evaluate(self, o: Float[Array, "n o"], h: Array, z: Array, m: Float[Array, "n m"]) -> tuple[Array, Array]:
        """Mean of the action, and value."""
        return self.body(self.remember(o, h, m))

    def unroll(self, o: Array, h: Array, z: Array, m: Array, reset: Array, renewed: Array) -> tuple[Array, Array]:
        """As `evaluate`, over time from the memory `m`, which is emptied at every reset; o and h are scaled already."""
        n, t = o.shape[:2]
        features = jnp.concatenate([jax.nn.elu(self.compress(o)), h], axis=-1)
        memories = gru.unroll(self.cell, jnp.swapaxes(features, 0, 1), reset.T, m)
        mean, value = self.body(memories.reshape(t * n, -1))
        return jnp.swapaxes(mean.reshape(t, n, -1), 0, 1), value.reshape(t, n).T
