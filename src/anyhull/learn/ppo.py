"""Proximal policy optimization: collect, advantages, update; `iterate` does the three once.

Everything is a pure function of `Training`, so that many iterations are one scan and many seeds one vmap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int

from anyhull.learn import fused
from anyhull.learn.networks import Recurrent, Teacher
from anyhull.learn.task import renew
from anyhull.observation import scale_history, scale_observation

Key = Array
Policy = Teacher | Recurrent
Scalar = Float[Array, ""]


@dataclass(frozen=True)
class PPO:
    """The paper's table of hyperparameters."""

    total: int = 60_000_000
    """Environment steps."""
    envs: int = 1024
    """Environments."""
    steps: int = 32
    """Steps per environment in an iteration."""
    minibatches: int = 8
    """Parts of an iteration's batch, each of whole environments."""
    epochs: int = 10
    """Passes over it."""
    gamma: float = 0.96
    """Discount factor."""
    lam: float = 0.95
    """Lambda of generalized advantage estimation."""
    clip: float = 0.10
    """Clip parameter of the probability ratio."""
    rate: float = 3e-4
    """Learning rate at the start."""
    final_rate: float = 3e-5
    """Learning rate at the end, reached linearly."""
    entropy: float = 0.005
    """Entropy coefficient."""
    value: float = 0.5
    """Value loss coefficient."""
    max_norm: float = 0.7
    """Largest norm of a gradient."""
    target_kl: float = 0.02
    """When the divergence exceeds 1.5 times this, the remaining updates of the iteration are left out."""
    reward_scale: float = 0.04
    """Factor on the reward that the critic sees, 1 - gamma: values then are of the size of rewards."""

    @property
    def iterations(self) -> int:
        """How many it takes to reach `total`."""
        return -(-self.total // (self.envs * self.steps))


@runtime_checkable
class Environment(Protocol):
    """What is learned on: `anyhull.learn.task.Task`, or a probe with a known answer."""

    @property
    def observation_size(self) -> int: ...
    @property
    def history_size(self) -> int: ...
    @property
    def privileged_size(self) -> int: ...
    @property
    def action_size(self) -> int: ...
    @property
    def reset_draws(self) -> int: ...
    @property
    def episode(self) -> int: ...

    def reset(self, uniforms: Array, progress: Any) -> Any: ...
    def draws(self, key: Key, shape: tuple[int, ...]) -> Any: ...
    def step(self, fleet: Any, action: Array, draws: Any, progress: Any) -> tuple[Any, Any]: ...
    def observe(self, fleet: Any) -> Array: ...
    def recall(self, fleet: Any) -> Array: ...
    def privileged(self, fleet: Any) -> Array: ...


class Training(NamedTuple):
    """The whole state of a training run."""

    policy: Policy
    moments: Any
    """Adam's, over the flattened parameters."""
    fleet: Any
    memory: Float[Array, "n m"]
    """Of the policy, in each environment."""
    key: Key
    iteration: Int[Array, ""]


class View(NamedTuple):
    """What a policy decides by."""

    observation: Float[Array, "*n o"]
    history: Float[Array, "*n h"]
    memory: Float[Array, "*n m"]


class Batch(NamedTuple):
    """What an iteration collected; leading axes (steps, envs)."""

    view: View
    following: View
    """After the step, before any reset."""
    action: Float[Array, "t n a"]
    log_prob: Float[Array, "t n"]
    reward: Float[Array, "t n"]
    terminated: Bool[Array, "t n"]
    done: Bool[Array, "t n"]
    renewed: Bool[Array, "t n"]
    """Whether the environment had been reset within this batch before the step."""


class Lesson(NamedTuple):
    """What is learned from; leading axes (envs, steps), so that a minibatch of environments lies together."""

    observation: Float[Array, "n t o"]
    """Scaled, as the history: once here, rather than in every epoch."""
    history: Float[Array, "n t h"]
    memory: Float[Array, "n m"]
    """At the first step."""
    reset: Bool[Array, "n t"]
    """Whether the memory is emptied before the step."""
    renewed: Bool[Array, "n t"]
    privileged: Float[Array, "n 2 e"]
    """Of the boat before and after a reset within the batch."""
    action: Float[Array, "n t a"]
    log_prob: Float[Array, "n t"]
    advantage: Float[Array, "n t"]
    target: Float[Array, "n t"]


def log_probability(mean: Array, log_std: Array, action: Array) -> Array:
    """Logarithm of a diagonal Gaussian's density, summed over the action."""
    scaled = (action - mean) * jnp.exp(-log_std)
    return -(0.5 * scaled**2 + log_std + 0.5 * jnp.log(2 * jnp.pi)).sum(-1)


def aged(draws: Key, ages: Key, envs: int, environment: Environment, progress: float) -> Any:
    """So many environments, each somewhere in its episode, so that they do not all end at once."""
    uniforms = jax.random.uniform(draws, (envs, environment.reset_draws))
    # Compiled, since operation by operation it takes seconds.
    fleet = jax.jit(jax.vmap(lambda u: environment.reset(u, progress)))(uniforms)
    return fleet._replace(age=jax.random.randint(ages, (envs,), 0, environment.episode))


def initial(key: Key, config: PPO, environment: Environment, policy: Policy) -> Training:
    """A run at its start, with environments of random age."""
    one, two, three = jax.random.split(key, 3)
    fleet = aged(one, two, config.envs, environment, 0.0)
    moments = optimizer(config).init(fused.flat(policy)[0])
    memory = jnp.zeros((config.envs, policy.memory_size))
    return Training(policy, moments, fleet, memory, three, jnp.zeros((), jnp.int32))


def optimizer(config: PPO) -> optax.GradientTransformation:
    """Adam behind a bound on the gradient's norm; the learning rate comes in with the update."""
    return optax.chain(optax.clip_by_global_norm(config.max_norm), optax.scale_by_adam(eps=1e-5))


def look(environment: Environment, fleet: Any, memory: Array, policy: Policy) -> View:
    """What the policy sees of a fleet."""
    history = jax.vmap(environment.recall)(fleet)[:, : policy.history_size]
    return View(jax.vmap(environment.observe)(fleet), history, memory)


def collect(
    policy: Policy, fleet: Any, memory: Array, key: Key, progress: Scalar, config: PPO, environment: Environment
) -> tuple[Any, Array, Batch, Float[Array, "n 2 e"], dict[str, Array]]:
    """`steps` steps of every environment under the policy's random actions.

    All randomness is drawn before the loop. One new episode per environment is drawn too: it serves every reset that
    the environment has within these steps.
    """
    one, two, three = jax.random.split(key, 3)
    shape = (config.steps, config.envs)
    uniforms = jax.random.uniform(one, (config.envs, environment.reset_draws))
    fresh = jax.vmap(lambda u: environment.reset(u, progress))(uniforms)
    noise = jax.random.normal(two, (*shape, environment.action_size))
    draws = environment.draws(three, shape)
    privileged = jnp.stack([jax.vmap(environment.privileged)(f) for f in (fleet, fresh)], axis=1)
    latents = policy.latent(privileged)
    std = jnp.exp(policy.body.log_std)
    starting = look(environment, fresh, jnp.zeros_like(memory), policy)

    def act(carry: Any, inputs: Any) -> Any:
        fleet, view, renewed = carry
        noise, draws = inputs
        latent = jnp.where(renewed[:, None], latents[:, 1], latents[:, 0])
        mean, memory = policy.act(view.observation, view.history, latent, view.memory)
        action = mean + std * noise
        fleet, outcome = jax.vmap(lambda f, a, d: environment.step(f, a, d, progress))(fleet, action, draws)
        following = look(environment, fleet, memory, policy)
        done = outcome.terminated | outcome.truncated
        log_prob = log_probability(mean, policy.body.log_std, action)
        step = Batch(view, following, action, log_prob, outcome.reward, outcome.terminated, done, renewed)
        metrics = {name: value.mean() for name, value in outcome.terms.items()}
        return (renew(done, fresh, fleet), renew(done, starting, following), renewed | done), (step, metrics)

    begin = (fleet, look(environment, fleet, memory, policy), jnp.zeros((config.envs,), bool))
    (fleet, view, _), (batch, metrics) = jax.lax.scan(act, begin, (noise, draws))
    metrics = {name: value.mean() for name, value in metrics.items()}
    metrics["reward"] = batch.reward.mean()
    metrics["failures"] = batch.terminated.mean()
    return fleet, view.memory, batch, privileged, metrics


def advantages(
    reward: Array, value: Array, following: Array, terminated: Array, done: Array, gamma: float, lam: float
) -> Array:
    """Generalized advantage estimates, time along the first axis.

    delta_t = r_t + gamma V(s_{t+1}) - V(s_t), without the future where an episode failed and with it where the clock
    cut it off; A_t = delta_t + gamma lambda A_{t+1} within an episode.
    """
    delta = reward + gamma * jnp.where(terminated, 0.0, following) - value
    decay = jnp.where(done, 0.0, gamma * lam)

    def join(later: tuple[Array, Array], earlier: tuple[Array, Array]) -> tuple[Array, Array]:
        return later[0] * earlier[0], earlier[1] + earlier[0] * later[1]

    _, summed = jax.lax.associative_scan(join, (decay, delta), reverse=True)
    return jnp.asarray(summed)


def latent_of(policy: Policy, privileged: Float[Array, "n 2 e"], renewed: Bool[Array, "n t"]) -> Float[Array, "n t z"]:
    """z at every step. It is encoded twice an environment, before and after a reset, not at every step."""
    latents = policy.latent(privileged)
    return jnp.where(renewed[..., None], latents[:, 1:], latents[:, :1])


def prepare(policy: Policy, batch: Batch, privileged: Array, config: PPO) -> Lesson:
    """Values, advantages and targets of a batch, laid out by environment."""
    latent = jnp.swapaxes(latent_of(policy, privileged, batch.renewed.T), 0, 1)

    def values(view: View) -> Array:
        flat = [leaf.reshape(batch.reward.size, leaf.shape[-1]) for leaf in (*view[:2], latent, view.memory)]
        return policy.evaluate(*flat)[1].reshape(batch.reward.shape)

    value, scaled = values(batch.view), config.reward_scale * batch.reward
    following = values(batch.following)
    gae = advantages(scaled, value, following, batch.terminated, batch.done, config.gamma, config.lam)
    advantage = (gae - gae.mean()) / (gae.std() + 1e-8)
    reset = jnp.concatenate([jnp.zeros_like(batch.done[:1]), batch.done[:-1]])
    seen = batch.view.observation, batch.view.history
    scaled_view = scale_observation(seen[0], policy.scales), scale_history(seen[1], policy.scales)
    by_env = [jnp.swapaxes(leaf, 0, 1) for leaf in (*scaled_view, reset, batch.renewed, batch.action)]
    observation, history, reset, renewed, action = by_env
    numbers = (batch.log_prob.T, advantage.T, (gae + value).T)
    return Lesson(observation, history, batch.view.memory[0], reset, renewed, privileged, action, *numbers)


def loss(policy: Policy, lesson: Lesson, config: PPO) -> tuple[Array, Array]:
    """The clipped surrogate, value and entropy loss of a minibatch, and the divergence from the old policy."""
    latents = policy.latent(lesson.privileged)
    seen = lesson.observation, lesson.history
    mean, value = policy.unroll(*seen, latents, lesson.memory, lesson.reset, lesson.renewed)
    log_ratio = log_probability(mean, policy.body.log_std, lesson.action) - lesson.log_prob
    ratio = jnp.exp(log_ratio)
    clipped = jnp.clip(ratio, 1 - config.clip, 1 + config.clip)
    surrogate = -jnp.minimum(ratio * lesson.advantage, clipped * lesson.advantage)
    squared = 0.5 * (value - lesson.target) ** 2
    entropy = (policy.body.log_std + 0.5 * jnp.log(2 * jnp.pi * jnp.e)).sum()
    # The k3 estimate of the divergence: never negative, and of low variance.
    divergence = (ratio - 1 - log_ratio).mean()
    return (surrogate + config.value * squared).mean() - config.entropy * entropy, divergence


def update(
    policy: Policy, moments: Any, lesson: Lesson, key: Key, rate: Scalar, config: PPO
) -> tuple[Policy, Any, dict[str, Array]]:
    """Epochs of minibatches of whole environments, until the policy has moved far enough."""
    weights, unflatten = fused.flat(policy)
    adam = optimizer(config)

    def by_loss(weights: Array, envs: Array, lesson: Any) -> tuple[Array, Array]:
        mini = jax.tree.map(lambda leaf: leaf[envs], lesson)
        gradient, divergence = jax.grad(loss, has_aux=True)(unflatten(weights), mini, config)
        return fused.flat(gradient)[0], divergence

    given: Any = lesson
    differentiate: fused.Differentiate = by_loss
    if isinstance(policy, Teacher) and fused.fits(config):
        given = (lesson, fused.flatten(lesson))
        differentiate = fused.alone(policy, config, by_loss)

    def part(carry: Any, envs: Array) -> Any:
        weights, moments, going = carry
        gradient, divergence = differentiate(weights, envs, given)
        going = going & (divergence <= 1.5 * config.target_kl)
        step, moved = adam.update(gradient, moments)
        weights = jnp.where(going, weights - rate * step, weights)
        moments = jax.tree.map(lambda new, old: jnp.where(going, new, old), moved, moments)
        return (weights, moments, going), (divergence, going)

    orders = jax.vmap(lambda k: jax.random.permutation(k, config.envs))(jax.random.split(key, config.epochs))
    orders = orders.reshape(config.epochs * config.minibatches, -1)
    (weights, moments, _), (divergence, going) = jax.lax.scan(part, (weights, moments, jnp.array(True)), orders)
    metrics = {"divergence": divergence.max(), "updates": going.mean(), "std": jnp.exp(policy.body.log_std).mean()}
    return unflatten(weights), moments, metrics


def iterate(training: Training, config: PPO, environment: Environment) -> tuple[Training, dict[str, Array]]:
    """Collect a batch and learn from it, once."""
    policy, moments, fleet, memory, key, iteration = training
    key, one, two = jax.random.split(key, 3)
    progress = iteration / max(config.iterations - 1, 1)
    fleet, memory, batch, privileged, metrics = collect(policy, fleet, memory, one, progress, config, environment)
    rate = config.rate + (config.final_rate - config.rate) * progress
    lesson = prepare(policy, batch, privileged, config)
    policy, moments, learned = update(policy, moments, lesson, two, rate, config)
    return Training(policy, moments, fleet, memory, key, iteration + 1), metrics | learned
