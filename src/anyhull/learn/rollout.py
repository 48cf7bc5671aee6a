"""The rollout of a policy, shared by training, evaluation and study."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from anyhull.learn.environment import Environment, Outcome, auto_reset

Act = Callable[[Array, Array, Array, Array], tuple[Array, Array, Array]]
"""A policy's `act`: (observation, history, privileged, memory) -> action, latent, memory."""


class Step(NamedTuple):
    """One step of every environment, the input of `record`."""

    state: Any
    """State of the environments before the step."""
    observation: Float[Array, "n o"]
    history: Float[Array, "n h"]
    privileged: Float[Array, "n e"]
    memory: Float[Array, "n m"]
    mean: Float[Array, "n a"]
    """The policy's action."""
    action: Float[Array, "n a"]
    """The action with exploration noise."""
    latent: Float[Array, "n z"]
    next_memory: Float[Array, "n m"]
    next_state: Any
    """After the step, before any reset, as the next three."""
    next_observation: Float[Array, "n o"]
    next_history: Float[Array, "n h"]
    outcome: Outcome
    done: Bool[Array, " n"]


def rollout(
    act: Act,
    environment: Environment,
    state: Any,
    memory: Float[Array, "n m"],
    draws: Any,
    record: Callable[[Step], Any],
    *,
    progress: Any = 1.0,
    exploration: Float[Array, "t n a"] | None = None,
    fresh: Any = None,
    carry: Callable[[Any, Array], tuple[Any, Array]] | None = None,
    unroll: int = 1,
) -> tuple[Any, Float[Array, "n m"], Any]:
    """Final state and memory, and the result of `record` for each step; the first axis of `draws` is time.

    `exploration` is added to the actions. Where an episode is done, the environment is reset to `fresh` and the
    memory to zero; without `fresh` there are no resets. `carry` is applied to state and memory between steps.
    """
    step_all: Any = jax.vmap(lambda s, a, d: environment.step(s, a, d, progress))

    def features(state: Any) -> tuple[Array, Array]:
        return jax.vmap(environment.observe)(state), jax.vmap(environment.history)(state)

    start = None if fresh is None else (fresh, *features(fresh), jnp.zeros_like(memory))

    def step(carried: Any, inputs: Any) -> Any:
        state, observation, history, memory = carried
        draw, noise = inputs
        privileged = jax.vmap(environment.privileged)(state)
        mean, latent, next_memory = act(observation, history, privileged, memory)
        action = mean if noise is None else mean + noise
        after, outcome = step_all(state, action, draw)
        done = outcome.terminated | outcome.truncated
        passed, passed_memory = (after, next_memory) if carry is None else carry(after, next_memory)
        next_features = features(passed)
        before = state, observation, history, privileged, memory
        recorded = record(Step(*before, mean, action, latent, next_memory, after, *next_features, outcome, done))
        following = (passed, *next_features, passed_memory)
        return following if start is None else auto_reset(done, start, following), recorded

    first = state, *features(state), memory
    (state, _, _, memory), recorded = jax.lax.scan(step, first, (draws, exploration), unroll=unroll)
    return state, memory, recorded
