"""Phase 2: the adapter learns the teacher's latent from history, under its own rollouts, the actor frozen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from anyhull.learn.networks import Adapter, Student, Teacher
from anyhull.learn.ppo import Environment, aged
from anyhull.learn.task import renew

Key = Array


@dataclass(frozen=True)
class Distillation:
    """Phase 2's hyperparameters; the rates and the decay are the paper's, the rest is not in it."""

    total: int = 45_000_000
    """Environment steps."""
    envs: int = 1024
    """Environments."""
    steps: int = 32
    """Steps per environment in an iteration, through which the gradient flows."""
    minibatches: int = 4
    """Gradient steps an iteration, each on its share of the environments."""
    rate: float = 3e-4
    """Learning rate of AdamW at the start."""
    final_rate: float = 3e-5
    """Learning rate at the end, reached linearly."""
    decay: float = 1e-5
    """Weight decay."""
    reading: float = 0.0
    """Weight of the likelihood of what a reader says of the boat; 0 is no reader, as in the paper."""

    @property
    def iterations(self) -> int:
        """How many it takes to reach `total`."""
        return -(-self.total // (self.envs * self.steps))


class Training(NamedTuple):
    """The whole state of Phase 2."""

    student: Student
    moments: Any
    fleet: Any
    memory: Float[Array, "n g"]
    key: Key
    iteration: Int[Array, ""]


def optimizer(config: Distillation) -> optax.GradientTransformation:
    """AdamW with the learning rate falling linearly."""
    updates = config.iterations * config.minibatches
    return optax.adamw(optax.linear_schedule(config.rate, config.final_rate, updates), weight_decay=config.decay)


def initial(key: Key, config: Distillation, environment: Environment, teacher: Teacher) -> Training:
    """A run at its start, with environments of random age."""
    one, two, three, four = jax.random.split(key, 4)
    assert teacher.encoder is not None
    latent = teacher.encoder.layers[-1].bias.size
    reads = environment.privileged_size if config.reading else 0
    student = Student(teacher, Adapter(environment.history_size, latent, reads, scales=teacher.scales, key=one))
    fleet = aged(two, three, config.envs, environment, 1.0)
    moments = optimizer(config).init(eqx.filter(student.adapter, eqx.is_array))
    memory = jnp.zeros((config.envs, student.adapter.cell.hidden_size))
    return Training(student, moments, fleet, memory, four, jnp.zeros((), jnp.int32))


class Sequence(NamedTuple):
    """What a rollout leaves to learn from; leading axes (steps, envs)."""

    history: Float[Array, "t n h"]
    reset: Array
    """Whether the memory is emptied before the step."""
    privileged: Float[Array, "t n e"]
    latent: Float[Array, "t n z"]
    """The teacher's."""


def collect(
    student: Student, fleet: Any, memory: Array, key: Key, config: Distillation, environment: Environment
) -> tuple[Any, Array, Sequence]:
    """`steps` steps of every environment with the actor on the adapter's own estimate."""
    one, two = jax.random.split(key)
    uniforms = jax.random.uniform(one, (config.envs, environment.reset_draws))
    fresh = jax.vmap(lambda u: environment.reset(u, 1.0))(uniforms)

    def act(carry: Any, draws: Any) -> Any:
        fleet, memory, reset = carry
        o, h = jax.vmap(environment.observe)(fleet), jax.vmap(environment.recall)(fleet)
        p = jax.vmap(environment.privileged)(fleet)
        z = student.teacher.latent(p)
        action, _, memory = student.act(o, h, jnp.where(reset[:, None], 0.0, memory))
        fleet, outcome = jax.vmap(lambda f, a, d: environment.step(f, a, d, 1.0))(fleet, action, draws)
        done = outcome.terminated | outcome.truncated
        return (renew(done, fresh, fleet), memory, done), Sequence(h, reset, p, z)

    draws = environment.draws(two, (config.steps, config.envs))
    begin = (fleet, memory, jnp.zeros((config.envs,), bool))
    (fleet, memory, reset), sequence = jax.lax.scan(act, begin, draws)
    return fleet, jnp.where(reset[:, None], 0.0, memory), sequence


def loss(adapter: Adapter, memory: Array, sequence: Sequence, reading: float) -> tuple[Array, Array]:
    """What is to be made small over sequences from `memory`, and the part of it that is ‖ẑ - z‖².

    The rest is the likelihood of what the reader says, where there is one.
    """

    z, states = adapter.unroll(sequence.history, sequence.reset, memory)
    distance = ((z - sequence.latent) ** 2).sum(-1).mean()
    if adapter.reader is None:
        return distance, distance
    return distance + reading * adapter.surprise(states, sequence.privileged).mean(), distance


def iterate(training: Training, config: Distillation, environment: Environment) -> tuple[Training, dict[str, Array]]:
    """Collect sequences and learn from them, once."""
    student, moments, fleet, memory, key, iteration = training
    key, one, two = jax.random.split(key, 3)
    fleet, after, sequence = collect(student, fleet, memory, one, config, environment)
    order = jax.random.permutation(two, config.envs).reshape(config.minibatches, -1)
    adam = optimizer(config)
    weights, static = eqx.partition(student.adapter, eqx.is_array)

    def part(carry: Any, envs: Array) -> Any:
        weights, moments = carry
        mini = jax.tree.map(lambda leaf: leaf[:, envs], sequence)

        def cost(weights: Any) -> tuple[Array, Array]:
            return loss(eqx.combine(weights, static), memory[envs], mini, config.reading)

        (_, error), gradient = jax.value_and_grad(cost, has_aux=True)(weights)
        step, moments = adam.update(gradient, moments, weights)
        return (optax.apply_updates(weights, step), moments), error

    (weights, moments), error = jax.lax.scan(part, (weights, moments), order)
    student = Student(student.teacher, eqx.combine(weights, static))
    spread = sequence.latent.reshape(-1, sequence.latent.shape[-1]).var(0).sum()
    metrics = {"latent_error": error.mean(), "latent_share": error.mean() / (spread + 1e-8)}
    return Training(student, moments, fleet, after, key, iteration + 1), metrics
