"""Gymnasium environments over the tracking task: `anyhull/Tracking-v0`, one boat or many, vectorized.

An episode terminates when the position error exceeds its limit and is truncated at the time limit.
`info["privileged"]` holds the nine components e, `info["history"]` the adapter's feature, `info["terms"]` the reward by
name. A vector environment resets in the same step: the last observation of an episode is in `info["final_obs"]`.
"""

from __future__ import annotations

from functools import partial
from typing import Any, SupportsFloat

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from anyhull.learn.environment import EnvState, Outcome, TrackingEnv, auto_reset
from anyhull.learn.randomization import Randomization
from anyhull.observation import OBSERVATION_SIZE
from anyhull.sea import Sea
from anyhull.vessel import Vessel

OBSERVATIONS = spaces.Box(-np.inf, np.inf, (OBSERVATION_SIZE,), np.float32)
ACTIONS = spaces.Box(-1.0, 1.0, (3,), np.float32)
Arrays = NDArray[np.float32]


class _Compiled:
    """The compiled environment for `count` boats, and its PRNG key."""

    def __init__(self, count: int, sea: str | Sea, vessel: str | Vessel | None, progress: float) -> None:
        self.count = count
        boat = Vessel.load(vessel) if isinstance(vessel, str) else vessel
        boats = Randomization() if boat is None else Randomization("around", boat.theta, width=0.0)
        env = TrackingEnv(Sea.preset(sea) if isinstance(sea, str) else sea, boats)
        self.key = jax.random.key(0)

        def reset(key: jax.Array) -> EnvState:
            uniforms = jax.random.uniform(key, (count, env.reset_draws))
            return jax.vmap(lambda u: env.reset(u, progress))(uniforms)

        def step(state: EnvState, actions: jax.Array, key: jax.Array) -> tuple[EnvState, Outcome]:
            draws = env.draws(key, (count,))
            return jax.vmap(lambda f, a, d: env.step(f, a, d, progress))(state, actions, draws)

        def features(state: EnvState) -> tuple[jax.Array, jax.Array]:
            return jax.vmap(env.observe)(state), jax.vmap(env.history)(state)

        @jax.jit
        def begin(key: jax.Array) -> Any:
            state = reset(key)
            return state, *features(state)

        @partial(jax.jit, donate_argnums=0)
        def advance(state: EnvState, actions: jax.Array, key: jax.Array) -> Any:
            one, two = jax.random.split(key)
            ended, outcome = step(state, actions, one)
            done = outcome.terminated | outcome.truncated
            state = auto_reset(done, reset(two), ended)
            return state, outcome, *features(state), *features(ended), ended.e

        self.begin, self.advance = begin, advance

    def seed(self, seed: int | None) -> None:
        if seed is not None:
            self.key = jax.random.key(seed)

    def next_key(self) -> jax.Array:
        key: jax.Array
        self.key, key = jax.random.split(self.key)
        return key


class TrackingVector(VectorEnv[Arrays, Arrays, NDArray[Any]]):
    """Many boats at once, stepped by one compiled program."""

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012

    def __init__(
        self,
        num_envs: int = 1,
        *,
        sea: str | Sea = "ideal",
        vessel: str | Vessel | None = None,
        progress: float = 1.0,
    ) -> None:
        """`sea`: a preset name or a `Sea`; `vessel`: one for all boats, else random; `progress` of the curriculum."""
        self.num_envs = num_envs
        self.single_observation_space, self.single_action_space = OBSERVATIONS, ACTIONS
        self.observation_space = batch_space(OBSERVATIONS, num_envs)
        self.action_space = batch_space(ACTIONS, num_envs)
        self._env = _Compiled(num_envs, sea, vessel, progress)
        self._state: EnvState | None = None

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Arrays, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self._env.seed(seed)
        self._state, observed, history = self._env.begin(self._env.next_key())
        return np.array(observed), {"privileged": np.array(self._state.e), "history": np.array(history)}

    def step(self, actions: Arrays) -> tuple[Arrays, NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        if self._state is None:
            raise gymnasium.error.ResetNeeded("call reset before step")
        boats = self._state, jnp.asarray(actions, jnp.float32), self._env.next_key()
        self._state, outcome, observed, history, last, last_history, e = self._env.advance(*boats)
        terminated, truncated = np.array(outcome.terminated), np.array(outcome.truncated)
        info: dict[str, Any] = {
            "privileged": np.array(self._state.e),
            "history": np.array(history),
            "terms": {name: np.array(value) for name, value in outcome.terms.items()},
        }
        if (done := terminated | truncated).any():
            info |= {"final_obs": np.array(last), "_final_obs": done}
            info["final_info"] = {"privileged": np.array(e), "history": np.array(last_history)}
            info["_final_info"] = done
        return np.array(observed), np.array(outcome.reward), terminated, truncated, info


class Tracking(gymnasium.Env[Arrays, Arrays]):
    """One boat."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012
    observation_space = OBSERVATIONS
    action_space = ACTIONS

    def __init__(
        self,
        *,
        sea: str | Sea = "ideal",
        vessel: str | Vessel | None = None,
        progress: float = 1.0,
        render_mode: None = None,
    ) -> None:
        """`sea`: a preset name or a `Sea`; `vessel`: else random each episode; `progress` of the curriculum."""
        self.render_mode = render_mode
        self._env = _Compiled(1, sea, vessel, progress)
        self._state: EnvState | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Arrays, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self._env.seed(seed)
        self._state, observed, history = self._env.begin(self._env.next_key())
        return np.array(observed[0]), {"privileged": np.array(self._state.e[0]), "history": np.array(history[0])}

    def step(self, action: Arrays) -> tuple[Arrays, SupportsFloat, bool, bool, dict[str, Any]]:
        if self._state is None:
            raise gymnasium.error.ResetNeeded("call reset before step")
        boat = self._state, jnp.asarray(action, jnp.float32)[None], self._env.next_key()
        self._state, outcome, _, _, last, history, e = self._env.advance(*boat)
        info = {
            "privileged": np.array(e[0]),
            "history": np.array(history[0]),
            "terms": {name: float(value[0]) for name, value in outcome.terms.items()},
        }
        return (
            np.array(last[0]),
            float(outcome.reward[0]),
            bool(outcome.terminated[0]),
            bool(outcome.truncated[0]),
            info,
        )


gymnasium.register(
    id="anyhull/Tracking-v0", entry_point="anyhull.gym:Tracking", vector_entry_point="anyhull.gym:TrackingVector"
)
