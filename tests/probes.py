"""Tiny environments with a known answer, to test the learner apart from the boat: each is an `Environment`."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from anyhull.observation import HISTORY_SIZE


class State(NamedTuple):
    """One episode of a probe."""

    age: Array
    secret: Array
    """The one number that differs between episodes, in [-1, 1)."""
    action: Array
    """The last one."""


class Outcome(NamedTuple):
    reward: Array
    terms: dict[str, Array]
    terminated: Array
    truncated: Array


class Probe:
    """One number seen, one known only to the privileged, one to be done."""

    observation_size: ClassVar[int] = 1
    history_size: ClassVar[int] = HISTORY_SIZE
    privileged_size: ClassVar[int] = 1
    action_size: ClassVar[int] = 1
    reset_draws: ClassVar[int] = 1
    episode_steps: int
    fails: bool

    def reset(self, uniforms: Array, progress: Any = 1.0) -> State:
        return State(jnp.zeros((), jnp.int32), 2 * uniforms[0] - 1, jnp.zeros(1))

    def draws(self, key: Array, shape: tuple[int, ...]) -> Array:
        return jax.random.uniform(key, shape)

    def step(self, state: State, action: Array, draws: Array, progress: Any = 1.0) -> tuple[State, Outcome]:
        age, reward = state.age + 1, self.reward(state, action)
        over = age >= self.episode_steps
        outcome = Outcome(reward, {"probe": reward}, over & self.fails, over & (not self.fails))
        return State(age, state.secret, action), outcome

    def reward(self, state: State, action: Array) -> Array:
        return jnp.ones(())

    def observe(self, state: State) -> Array:
        return jnp.zeros(1)

    def history(self, state: State) -> Array:
        return jnp.zeros(HISTORY_SIZE).at[-1].set(state.action[0])

    def privileged(self, state: State) -> Array:
        return state.secret[None]


@dataclass(frozen=True)
class Constant(Probe):
    """Reward 1 at every step, whatever is done; the episode's age is seen."""

    episode_steps: int
    fails: bool
    """Whether an episode ends by failure, or by the clock."""

    def observe(self, state: State) -> Array:
        return state.age[None].astype(jnp.float32)


@dataclass(frozen=True)
class Blind(Probe):
    """Reward 1 at every step of episodes that the clock ends; nothing is seen, so every state has the same value."""

    episode_steps: int
    fails: bool = False


@dataclass(frozen=True)
class Match(Probe):
    """Reward -(action - secret)²: the action is to be the secret."""

    shown: Literal["always", "first", "privileged"]
    """When the secret is seen: always, only at the first step of an episode, or never, only by the privileged."""
    episode_steps: int = 4
    fails: bool = True

    def reward(self, state: State, action: Array) -> Array:
        return -((action[0] - state.secret) ** 2)

    def observe(self, state: State) -> Array:
        seen: dict[str, Array | bool] = {"always": True, "first": state.age == 0, "privileged": False}
        return jnp.where(seen[self.shown], state.secret, 0.0)[None]


@dataclass(frozen=True)
class Impulse(Probe):
    """A body with the secret as its gain, pushed at the first step only: its speed one step later is the gain, then 0.

    The history shows the speed, so an adapter can know the gain from the second step on if it remembers.
    """

    episode_steps: int = 8
    fails: bool = True

    def history(self, state: State) -> Array:
        return super().history(state).at[3].set(jnp.where(state.age == 1, state.secret, 0.0))
