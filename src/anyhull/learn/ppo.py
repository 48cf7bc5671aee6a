"""Proximal policy optimization: collect, advantages, update; `iterate` does the three once.

Everything is a pure function of `TrainState`, so that many iterations are one scan and many seeds one vmap.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int

from anyhull.learn.config import PPO
from anyhull.learn.environment import Environment, staggered_reset
from anyhull.learn.kernels.ppo import Batch, gradient, log_probability
from anyhull.learn.policies import Recurrent, Teacher, flatten
from anyhull.learn.rollout import Step, rollout
from anyhull.observation import scale_history, scale_observation

Key = Array
Policy = Teacher | Recurrent
Scalar = Float[Array, ""]


class TrainState(NamedTuple):
    """The whole state of a training run."""

    policy: Policy
    moments: Any
    """Moments of Adam, over the flattened parameters."""
    env_state: Any
    memory: Float[Array, "n m"]
    """Memory of the policy in each environment."""
    key: Key
    iteration: Int[Array, ""]


class Trajectory(NamedTuple):
    """The rollout of an iteration; leading axes (steps, envs)."""

    observation: Float[Array, "t n o"]
    history: Float[Array, "t n h"]
    memory: Float[Array, "t n m"]
    next_observation: Float[Array, "t n o"]
    """After the step, before any reset, as the next two."""
    next_history: Float[Array, "t n h"]
    next_memory: Float[Array, "t n m"]
    action: Float[Array, "t n a"]
    log_prob: Float[Array, "t n"]
    reward: Float[Array, "t n"]
    terminated: Bool[Array, "t n"]
    done: Bool[Array, "t n"]

    @property
    def reset(self) -> Bool[Array, "t n"]:
        """Whether an episode ended with the step before."""
        return jnp.concatenate([jnp.zeros_like(self.done[:1]), self.done[:-1]])

    @property
    def renewed(self) -> Bool[Array, "t n"]:
        """Whether an episode ended with any step before."""
        return jnp.cumsum(self.reset, axis=0) > 0


def initial(key: Key, config: PPO, environment: Environment, policy: Policy) -> TrainState:
    """The initial training state, with environments of random age."""
    one, two, three = jax.random.split(key, 3)
    env_state = staggered_reset(one, two, config.num_envs, environment, 0.0)
    moments = optimizer(config).init(flatten(policy)[0])
    memory = jnp.zeros((config.num_envs, policy.memory_size))
    return TrainState(policy, moments, env_state, memory, three, jnp.zeros((), jnp.int32))


def optimizer(config: PPO) -> optax.GradientTransformation:
    """Adam after clipping of the gradient norm; `update` applies the learning rate."""
    return optax.chain(optax.clip_by_global_norm(config.max_grad_norm), optax.scale_by_adam(eps=1e-5))


def collect(
    policy: Policy, env_state: Any, memory: Array, key: Key, progress: Scalar, config: PPO, environment: Environment
) -> tuple[Any, Array, Trajectory, Float[Array, "n 2 e"], dict[str, Array]]:
    """A rollout with exploration: final state and memory, trajectory, privileged vectors, metrics.

    All randomness is drawn before the loop. One new episode per environment is drawn too, for every reset of that
    environment within these steps. The privileged vectors are those before and after such a reset.
    """
    one, two, three = jax.random.split(key, 3)
    shape = (config.rollout_steps, config.num_envs)
    uniforms = jax.random.uniform(one, (config.num_envs, environment.reset_draws))
    fresh = jax.vmap(lambda u: environment.reset(u, progress))(uniforms)
    log_std = policy.actor_critic.log_std
    noise = jax.random.normal(two, (*shape, environment.action_size))
    noise = jnp.broadcast_to(jnp.exp(log_std), noise.shape) * noise
    privileged = jnp.stack([jax.vmap(environment.privileged)(s) for s in (env_state, fresh)], axis=1)

    def record(s: Step) -> tuple[Trajectory, dict[str, Array]]:
        history, next_history = (h[:, : policy.history_size] for h in (s.history, s.next_history))
        views = s.observation, history, s.memory, s.next_observation, next_history, s.next_memory
        log_prob = log_probability(s.mean, log_std, s.action)
        kept = Trajectory(*views, s.action, log_prob, s.outcome.reward, s.outcome.terminated, s.done)
        return kept, {name: value.mean() for name, value in s.outcome.terms.items()}

    draws = environment.draws(three, shape)
    options: Any = {"progress": progress, "exploration": noise, "fresh": fresh}
    env_state, memory, (trajectory, terms) = rollout(
        policy.act, environment, env_state, memory, draws, record, **options
    )
    metrics = {name: value.mean() for name, value in terms.items()}
    metrics |= {"reward": trajectory.reward.mean(), "failures": trajectory.terminated.mean()}
    return env_state, memory, trajectory, privileged, metrics


def advantages(
    reward: Array, value: Array, next_value: Array, terminated: Array, done: Array, gamma: float, gae_lambda: float
) -> Array:
    """Generalized advantage estimates, time along the first axis.

    delta_t = r_t + gamma V(s_{t+1}) - V(s_t), without the value of s_{t+1} after termination and with it after
    truncation; A_t = delta_t + gamma lambda A_{t+1} within an episode.
    """
    delta = reward + gamma * jnp.where(terminated, 0.0, next_value) - value
    decay = jnp.where(done, 0.0, gamma * gae_lambda)

    def combine(later: tuple[Array, Array], earlier: tuple[Array, Array]) -> tuple[Array, Array]:
        return later[0] * earlier[0], earlier[1] + earlier[0] * later[1]

    _, summed = jax.lax.associative_scan(combine, (decay, delta), reverse=True)
    return jnp.asarray(summed)


def latents(policy: Policy, privileged: Float[Array, "n 2 e"], renewed: Bool[Array, "t n"]) -> Float[Array, "t n z"]:
    """z at every step, encoded twice per environment: before and after a reset."""
    z = policy.latent(privileged)
    return jnp.where(renewed[..., None], z[None, :, 1], z[None, :, 0])


def prepare(policy: Policy, trajectory: Trajectory, privileged: Array, config: PPO) -> Batch:
    """The batch of a trajectory, with values, advantages and targets; the first axis is environments."""
    t, size = trajectory, trajectory.reward.size
    z = latents(policy, privileged, t.renewed)

    def values(observation: Array, history: Array, memory: Array) -> Array:
        rows = [leaf.reshape(size, leaf.shape[-1]) for leaf in (observation, history, z, memory)]
        return policy.value(*rows).reshape(t.reward.shape)

    value = values(t.observation, t.history, t.memory)
    next_value = values(t.next_observation, t.next_history, t.next_memory)
    scaled = config.reward_scale * t.reward
    gae = advantages(scaled, value, next_value, t.terminated, t.done, config.gamma, config.gae_lambda)
    advantage = (gae - gae.mean()) / (gae.std() + 1e-8)
    features = scale_observation(t.observation, policy.scales), scale_history(t.history, policy.scales)
    by_env = [jnp.swapaxes(leaf, 0, 1) for leaf in (*features, t.reset, t.renewed, t.action)]
    observation, history, reset, renewed, action = by_env
    numbers = (t.log_prob.T, advantage.T, (gae + value).T)
    return Batch(observation, history, t.memory[0], reset, renewed, privileged, action, *numbers)


def update(
    policy: Policy, moments: Any, batch: Batch, key: Key, learning_rate: Scalar, config: PPO
) -> tuple[Policy, Any, dict[str, Array]]:
    """Epochs of minibatches of whole environments, stopped early at the KL limit."""
    weights, unflatten = flatten(policy)
    adam, differentiate = optimizer(config), gradient(policy, batch, config)

    def minibatch(carry: Any, envs: Array) -> Any:
        weights, moments, active = carry
        grad, divergence = differentiate(weights, envs)
        active = active & (divergence <= 1.5 * config.target_kl)
        step, next_moments = adam.update(grad, moments)
        weights = jnp.where(active, weights - learning_rate * step, weights)
        moments = jax.tree.map(lambda new, old: jnp.where(active, new, old), next_moments, moments)
        return (weights, moments, active), (divergence, active)

    keys = jax.random.split(key, config.epochs)
    orders = jax.vmap(lambda k: jax.random.permutation(k, config.num_envs))(keys)
    orders = orders.reshape(config.epochs * config.minibatches, -1)
    (weights, moments, _), (divergence, active) = jax.lax.scan(minibatch, (weights, moments, jnp.array(True)), orders)
    std = jnp.exp(policy.actor_critic.log_std).mean()
    return unflatten(weights), moments, {"divergence": divergence.max(), "updates": active.mean(), "std": std}


def iterate(training: TrainState, config: PPO, environment: Environment) -> tuple[TrainState, dict[str, Array]]:
    """One iteration: collect a batch and update the policy."""
    policy, moments, env_state, memory, key, iteration = training
    key, one, two = jax.random.split(key, 3)
    progress = iteration.astype(jnp.float32) / max(config.iterations - 1, 1)
    collected = collect(policy, env_state, memory, one, progress, config, environment)
    env_state, memory, trajectory, privileged, metrics = collected
    learning_rate = config.learning_rate + (config.final_learning_rate - config.learning_rate) * progress
    batch = prepare(policy, trajectory, privileged, config)
    policy, moments, learned = update(policy, moments, batch, two, learning_rate, config)
    return TrainState(policy, moments, env_state, memory, key, iteration + 1), metrics | learned
