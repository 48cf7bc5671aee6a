"""The Gymnasium environments keep Gymnasium's contract and are the task itself."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

import anyhull.gym
from anyhull.learn.environment import Draws, TrackingEnv
from anyhull.vessel import Vessel


@pytest.fixture(scope="module")
def fleet():
    return gymnasium.make_vec("anyhull/Tracking-v0", num_envs=16, sea="field")


# An observation has no bounds, and says so; Gymnasium advises against it.
@pytest.mark.filterwarnings("ignore:.*A Box observation space (minimum|maximum) value is -?infinity")
def test_single_environment_passes_gymnasiums_checker():
    env = gymnasium.make("anyhull/Tracking-v0")
    check_env(env.unwrapped, skip_render_check=True)


def test_single_environment_of_a_named_vessel_shows_it_as_privileged_vector():
    env = gymnasium.make("anyhull/Tracking-v0", vessel="roboat-2", sea="field")
    _, info = env.reset(seed=1)
    np.testing.assert_allclose(info["privileged"], Vessel.load("roboat-2").normalized, rtol=1e-6)


def test_fleet_declares_what_it_returns(fleet):
    observed, info = fleet.reset(seed=3)
    assert fleet.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert observed in fleet.observation_space
    assert info["privileged"].shape == (16, 9)
    observed, reward, terminated, truncated, info = fleet.step(fleet.action_space.sample())
    assert observed in fleet.observation_space
    assert reward.shape == terminated.shape == truncated.shape == (16,)
    np.testing.assert_allclose(sum(info["terms"].values()), reward, rtol=1e-5)


def test_fleet_repeats_itself_with_the_same_seed(fleet):
    def run():
        fleet.reset(seed=5)
        actions = np.linspace(-1, 1, 48, dtype=np.float32).reshape(16, 3)
        return [fleet.step(actions)[0] for _ in range(5)][-1]

    np.testing.assert_array_equal(run(), run())


def test_a_boat_that_strays_is_terminated_and_a_long_episode_truncated():
    # Full throttle on every axis: boats stray past 5 m or go on spinning until their 1000 steps are up.
    env = gymnasium.make_vec("anyhull/Tracking-v0", num_envs=16)
    env.reset(seed=0)
    for _ in range(300):
        observed, _, terminated, truncated, info = env.step(np.ones((16, 3), np.float32))
        assert not truncated.any()
        if terminated.any():
            break
    final = info["final_obs"][terminated]
    assert (np.hypot(final[:, 0], final[:, 1]) > 5.0).all()
    # The boat that goes on is a new one at its start.
    assert (np.hypot(observed[terminated, 0], observed[terminated, 1]) < 2.2).all()

    task = TrackingEnv(episode_steps=3)
    one = task.reset(jnp.full(task.reset_draws, 0.5))
    still = Draws(jnp.full(7, 0.5), jnp.zeros(5), jnp.zeros(0))
    step = jax.jit(lambda fleet: task.step(fleet, jnp.zeros(3), still))
    ends = []
    for _ in range(3):
        one, outcome = step(one)
        ends.append((bool(outcome.terminated), bool(outcome.truncated)))
    assert ends == [(False, False), (False, False), (False, True)]


def test_step_before_reset_is_refused():
    with pytest.raises(gymnasium.error.ResetNeeded):
        anyhull.gym.TrackingVector(2).step(np.zeros((2, 3), np.float32))
