"""Analytic policy gradients: the tracking cost is differentiated through the simulator, over short windows.

A window is a segment of every boat's episode; the state is carried from one to the next. There is no critic and no
exploration. The gradient of the mean cost of a window with respect to the weights is exact, except that it omits the
cost after the window, and the effect of a command on the adapter's later inputs.
The same step trains a teacher with privileged input, and then finetunes a student, adapter and actor together.

Three measures keep it stable. The backward pass clips the cotangent of every boat's state, so that no unstable boat
dominates the gradient. It drops non-finite cotangents, boat by boat. Weights whose cost has grown roll back to the
best so far.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from anyhull.backend import wrap
from anyhull.learn.config import APG
from anyhull.learn.environment import EnvState, TrackingEnv, staggered_reset
from anyhull.learn.policies import Student, Teacher, flatten
from anyhull.learn.rollout import Step, rollout

Key = Array
Policy = Teacher | Student
Scalar = Float[Array, ""]

PATIENCE = 10
"""Consecutive dropped windows after which the weights roll back to the best so far."""


class TrainState(NamedTuple):
    """The whole state of a run."""

    policy: Policy
    moments: Any
    env_state: EnvState
    memory: Float[Array, "n m"]
    key: Key
    iteration: Int[Array, ""]
    cost: Scalar
    """Cost, smoothed over about ten windows."""
    lowest: Scalar
    """The lowest recent smoothed cost."""
    best: Float[Array, " p"]
    """The weights at that time."""
    dropped: Int[Array, ""]
    """Consecutive dropped windows."""


def initial(key: Key, config: APG, environment: TrackingEnv, policy: Policy) -> TrainState:
    """The initial training state, with environments of random age."""
    one, two, three = jax.random.split(key, 3)
    env_state = staggered_reset(one, two, config.num_envs, environment, 0.0)
    weights = flatten(policy)[0]
    memory = jnp.zeros((config.num_envs, policy.memory_size))
    # Two arrays, as a donated state must not hold one twice.
    cost, lowest = jnp.full((2,), jnp.inf, jnp.float32)
    iteration, dropped = jnp.zeros((2,), jnp.int32)
    moments = optimizer(config).init(weights)
    return TrainState(policy, moments, env_state, memory, three, iteration, cost, lowest, weights, dropped)


def optimizer(config: APG) -> optax.GradientTransformation:
    """Adam after clipping of the gradient norm, with cosine decay of the learning rate."""
    schedule = optax.cosine_decay_schedule(config.learning_rate, config.updates, alpha=0.01)
    return optax.chain(optax.clip_by_global_norm(config.max_grad_norm), optax.adam(schedule))


@jax.custom_vjp
def clip_cotangent(x: Float[Array, "n ..."], limit: Scalar | float) -> Float[Array, "n ..."]:
    """The identity; in the backward pass each boat's cotangent is clipped to norm `limit`, and zeroed if not finite."""
    return x


def _clip_forward(x: Array, limit: Scalar | float) -> tuple[Array, Scalar | float]:
    return x, limit


def _clip_backward(limit: Scalar | float, cotangent: Array) -> tuple[Array, None]:
    axes = tuple(range(1, cotangent.ndim))
    norm = jnp.sqrt(jnp.sum(cotangent**2, axis=axes, keepdims=True))
    scaled = cotangent * jnp.minimum(1.0, limit / jnp.maximum(norm, 1e-30))
    return jnp.where(jnp.isfinite(norm), scaled, 0.0), None


clip_cotangent.defvjp(_clip_forward, _clip_backward)


def pseudo_huber(squared: Array, delta: float) -> Array:
    """sqrt(e² + delta²) - delta of a squared error: linear in large errors, quadratic in small ones."""
    return jnp.sqrt(squared + delta**2) - delta


def cost_terms(boat: Array, reference: Array, command: Array, previous: Array, config: APG) -> dict[str, Array]:
    """The terms of the cost of one step, by name, for boats (n, 6); `command` is not yet clipped."""
    error, delta = boat - reference, config.huber_delta
    clipped = jnp.clip(command, -1.0, 1.0)
    rests = (reference[:, 3:] == 0).all(-1)
    return {
        "position": pseudo_huber(error[:, 0] ** 2 + error[:, 1] ** 2, delta),
        "heading": config.heading * pseudo_huber(wrap(error[:, 2]) ** 2, delta),
        "velocity": config.velocity * pseudo_huber((error[:, 3:] ** 2).sum(-1), delta),
        "spin": config.spin * jnp.where(rests, pseudo_huber(boat[:, 5] ** 2, delta), 0.0),
        "delta_tau": config.delta_tau * pseudo_huber((clipped - previous) ** 2, delta).sum(-1),
        "effort": config.effort * (clipped**2).sum(-1),
        "excess": config.excess * (jnp.abs(command) - 1).clip(0.0).sum(-1),
    }


def window_cost(
    policy: Policy,
    env_state: EnvState,
    memory: Array,
    key: Key,
    progress: Scalar,
    config: APG,
    environment: TrackingEnv,
) -> tuple[Scalar, tuple[EnvState, Array, dict[str, Array]]]:
    """The mean cost of the next window of every boat; environments and memory after it, and the terms."""
    one, two = jax.random.split(key)
    uniforms = jax.random.uniform(one, (config.num_envs, environment.reset_draws))
    fresh = jax.vmap(lambda u: environment.reset(u, progress))(uniforms)
    draws = environment.draws(two, (config.horizon, config.num_envs))
    limit = jnp.asarray(config.cotangent_limit / (config.horizon * config.num_envs))

    def act(observation: Array, history: Array, privileged: Array, memory: Array) -> Any:
        # No gradient through later histories: their scales would dominate the gradient of the cost.
        action, latent, memory = policy.act(observation, jax.lax.stop_gradient(history), privileged, memory)
        # A boat whose integration overflows has no finite gradient: without this the window of every boat is lost.
        return clip_cotangent(action, jnp.inf), latent, memory

    def carry(state: EnvState, memory: Array) -> tuple[EnvState, Array]:
        fields = ("boat", "commands", "actuators")
        clipped = {name: clip_cotangent(getattr(state, name), limit) for name in fields}
        return state._replace(**clipped), clip_cotangent(memory, limit)

    def record(s: Step) -> tuple[dict[str, Array], tuple[Array, Array, Array]]:
        target = jax.vmap(environment.target)(s.next_state)
        terms = cost_terms(s.next_state.boat, target, s.action, s.state.commands[:, 0], config)
        metrics = {name: value.mean() for name, value in terms.items()} | {"failures": s.outcome.terminated.mean()}
        return metrics, (s.latent, s.next_memory, s.privileged)

    # Two steps unrolled take 6 to 16 % less time on a GPU; on a CPU they only take longer to compile.
    options: Any = {"progress": progress, "fresh": fresh, "unroll": 1 if jax.default_backend() == "cpu" else 2}
    *after, (metrics, estimates) = rollout(act, environment, env_state, memory, draws, record, carry=carry, **options)
    # All steps at once, which is faster on a GPU.
    losses = policy.estimation_losses(*estimates)
    metrics |= {name: getattr(config, name) * value for name, value in losses.items()}
    metrics = {name: value.mean() for name, value in metrics.items()}
    cost = sum((value for name, value in metrics.items() if name != "failures"), start=jnp.zeros(()))
    return cost, (*after, metrics)  # type: ignore[return-value]


def iterate(training: TrainState, config: APG, environment: TrackingEnv) -> tuple[TrainState, dict[str, Array]]:
    """One window and one gradient step."""
    policy, moments, env_state, memory, key, iteration, smoothed, lowest, best, dropped = training
    key, one = jax.random.split(key)
    progress = iteration.astype(jnp.float32) / max(config.updates - 1, 1) if config.curriculum else jnp.ones(())
    weights, unflatten = flatten(policy)

    def cost(weights: Array) -> Any:
        return window_cost(unflatten(weights), env_state, memory, one, progress, config, environment)

    (value, (env_state, memory, metrics)), gradient = jax.value_and_grad(cost, has_aux=True)(weights)
    step, next_moments = optimizer(config).update(gradient, moments, weights)
    finite = jnp.isfinite(gradient).all() & jnp.isfinite(value)
    weights = jnp.where(finite, weights + step, weights)
    moments = jax.tree.map(lambda new, old: jnp.where(finite, new, old), next_moments, moments)

    # The curriculum increases the cost with time, so the lowest cost so far grows slowly. A dropped window gives no
    # cost, but several in a row also cause a rollback.
    mixed = jnp.where(jnp.isfinite(smoothed), 0.9 * smoothed + 0.1 * value, value)
    smoothed, lowest = (jnp.where(finite, new, old) for new, old in ((mixed, smoothed), (1.01 * lowest, lowest)))
    better, dropped = finite & (smoothed <= lowest), jnp.where(finite, 0, dropped + 1)
    rollback = (smoothed > config.rollback_ratio * lowest) | (dropped >= PATIENCE)
    best, lowest = jnp.where(better, weights, best), jnp.where(better, smoothed, lowest)
    weights, smoothed = jnp.where(rollback, best, weights), jnp.where(rollback, lowest, smoothed)
    dropped = jnp.where(rollback, 0, dropped)
    metrics |= {"cost": value, "norm": jnp.linalg.norm(gradient), "rollback": rollback, "dropped": ~finite}
    # A dropped window is reported as such; its terms, which may not be finite, are zeroed.
    metrics = {name: jnp.nan_to_num(term.astype(jnp.float32), posinf=0.0) for name, term in metrics.items()}
    counters = iteration + 1, smoothed, lowest, best, dropped
    return TrainState(unflatten(weights), moments, env_state, memory, key, *counters), metrics
