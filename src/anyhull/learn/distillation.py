"""Phase 2: the adapter regresses the teacher's latent on the history of its own rollouts; the actor is frozen."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from anyhull.learn.config import Distillation
from anyhull.learn.environment import Environment, staggered_reset
from anyhull.learn.policies import Adapter, Student, Teacher
from anyhull.learn.rollout import rollout

Key = Array


class TrainState(NamedTuple):
    """The whole state of Phase 2."""

    policy: Student
    moments: Any
    env_state: Any
    memory: Float[Array, "n g"]
    key: Key
    iteration: Int[Array, ""]


def optimizer(config: Distillation) -> optax.GradientTransformation:
    """AdamW with a linear schedule of the learning rate."""
    updates = config.iterations * config.minibatches
    schedule = optax.linear_schedule(config.learning_rate, config.final_learning_rate, updates)
    return optax.adamw(schedule, weight_decay=config.weight_decay)


def initial(key: Key, config: Distillation, environment: Environment, teacher: Teacher) -> TrainState:
    """The initial training state, with environments of random age."""
    one, two, three, four = jax.random.split(key, 4)
    assert teacher.encoder is not None
    latent = teacher.encoder.layers[-1].bias.size
    dynamics = environment.privileged_size if config.nll else 0
    student = Student(teacher, Adapter(environment.history_size, latent, dynamics, scales=teacher.scales, key=one))
    env_state = staggered_reset(two, three, config.num_envs, environment, 1.0)
    moments = optimizer(config).init(eqx.filter(student.adapter, eqx.is_array))
    memory = jnp.zeros((config.num_envs, student.memory_size))
    return TrainState(student, moments, env_state, memory, four, jnp.zeros((), jnp.int32))


class Sequence(NamedTuple):
    """Training data of a rollout; leading axes (steps, envs)."""

    history: Float[Array, "t n h"]
    reset: Array
    """Whether the memory is zeroed before the step."""
    privileged: Float[Array, "t n e"]
    latent: Float[Array, "t n z"]
    """The teacher's latent."""


def collect(
    student: Student, env_state: Any, memory: Array, key: Key, config: Distillation, environment: Environment
) -> tuple[Any, Array, Sequence]:
    """A rollout of every environment, the actor's latent estimated by the adapter."""
    one, two = jax.random.split(key)
    uniforms = jax.random.uniform(one, (config.num_envs, environment.reset_draws))
    fresh = jax.vmap(lambda u: environment.reset(u, 1.0))(uniforms)
    draws = environment.draws(two, (config.rollout_steps, config.num_envs))
    env_state, memory, (history, done, privileged, latent) = rollout(
        student.act,
        environment,
        env_state,
        memory,
        draws,
        lambda s: (s.history, s.done, s.privileged, student.teacher.latent(s.privileged)),
        fresh=fresh,
    )
    reset = jnp.concatenate([jnp.zeros_like(done[:1]), done[:-1]])
    return env_state, memory, Sequence(history, reset, privileged, latent)


def loss(adapter: Adapter, memory: Array, sequence: Sequence, nll: float) -> tuple[Array, Array]:
    """The loss over sequences from `memory`, and its part ‖ẑ - z‖².

    The other part is the negative log likelihood of the dynamics head, if there is one.
    """
    z, states = adapter.unroll(sequence.history, sequence.reset, memory)
    distance = ((z - sequence.latent) ** 2).sum(-1).mean()
    if adapter.dynamics_head is None:
        return distance, distance
    return distance + nll * adapter.nll(states, sequence.privileged).mean(), distance


def iterate(
    training: TrainState, config: Distillation, environment: Environment
) -> tuple[TrainState, dict[str, Array]]:
    """One iteration: collect sequences and update the adapter."""
    student, moments, env_state, memory, key, iteration = training
    key, one, two = jax.random.split(key, 3)
    env_state, next_memory, sequence = collect(student, env_state, memory, one, config, environment)
    order = jax.random.permutation(two, config.num_envs).reshape(config.minibatches, -1)
    adam = optimizer(config)
    weights, static = eqx.partition(student.adapter, eqx.is_array)

    def minibatch(carry: Any, envs: Array) -> Any:
        weights, moments = carry
        mini = jax.tree.map(lambda leaf: leaf[:, envs], sequence)

        def cost(weights: Any) -> tuple[Array, Array]:
            return loss(eqx.combine(weights, static), memory[envs], mini, config.nll)

        (_, error), gradient = jax.value_and_grad(cost, has_aux=True)(weights)
        step, moments = adam.update(gradient, moments, weights)
        return (optax.apply_updates(weights, step), moments), error

    (weights, moments), error = jax.lax.scan(minibatch, (weights, moments), order)
    student = Student(student.teacher, eqx.combine(weights, static))
    variance = sequence.latent.reshape(-1, sequence.latent.shape[-1]).var(0).sum()
    metrics = {"latent_error": error.mean(), "latent_share": error.mean() / (variance + 1e-8)}
    return TrainState(student, moments, env_state, next_memory, key, iteration + 1), metrics
