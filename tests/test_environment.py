"""The env: the paper's reward by hand, the ends of an episode, the curriculum, and the simulator's own physics."""

import math
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from anyhull import Sea, circle, simulate
from anyhull.learn import reference_generator
from anyhull.learn.environment import LARGEST, SUBSTEPS, Draws, EnvState, TrackingEnv
from anyhull.learn.kernels.dynamics import move
from anyhull.learn.reward import RewardWeights, reward_terms
from anyhull.paper import PLATFORMS
from anyhull.vessel import Vessel

IDEAL, FIELD = TrackingEnv(), TrackingEnv(Sea.field())
STEP = {env: jax.jit(env.step) for env in (IDEAL, FIELD)}
NO_DRAWS = Draws(jnp.full(7, 0.5), jnp.zeros(5), jnp.zeros(0))
PLATFORM_A = jnp.array(Vessel.load("platform-a").normalized)


def resting(boat, env=IDEAL, **fields):
    """A boat with that state whose reference rests at the origin."""
    state = env.reset(jnp.full(env.reset_draws, 0.5))
    rest = {"window": jnp.zeros((11, 6)), "segment": jnp.array([0.0, 0.0, 0.0, 99.0]), "e": PLATFORM_A}
    return state._replace(boat=jnp.array(boat, jnp.float32), **rest | fields)


def states_of(env, count, progress=1.0, seed=0):
    uniforms = jax.random.uniform(jax.random.key(seed), (count, env.reset_draws))
    return jax.jit(jax.vmap(lambda u: env.reset(u, progress)))(uniforms)


def test_each_reward_term_by_hand_with_the_weights_of_the_papers_table():
    # The reference is ahead by (0.3, 0.4): e_p = 0.5. Its heading, a full turn further, is 0.2 rad to the right.
    state = jnp.array([1.0, 2.0, 0.2, 0.6, 0.2, -0.5])
    reference = jnp.array([1.3, 2.4, 2 * math.pi, 0.7, 0.0, 0.0])
    command, previous = jnp.array([0.5, -0.1, 0.2]), jnp.array([0.3, 0.1, 0.2])
    by_name = reward_terms(state, reference, command, previous, 1.0, RewardWeights())
    gate = math.exp(-0.5) * math.exp(-0.1 * 0.2)
    expected = {
        "position": 2.4,  # 6 / (1 + 6 · 0.25)
        "heading": 3 / 1.12,  # 3 / (1 + 3 · 0.04)
        "velocity": gate / 1.05,  # 1 / (1 + 0.1² + 0.2²)
        "yaw_rate": gate * 2 / 1.5,  # 2 / (1 + 2 · 0.5²)
        "proximity": 5 * math.exp(-5),  # 5 exp(-10 · 0.5)
        "forward": 0.03,  # 0.05 · 0.6
        "sway": -0.002,  # 0.05 · 0.2²
        "spin": -0.004,  # 0.1 · (0.5 - 0.3)²
        "effort": -0.9,  # 3 · (0.25 + 0.01 + 0.04)
        "smoothness": -0.8,  # 10 · (0.2² + 0.2² + 0)
    }
    assert by_name.keys() == expected.keys()
    for name, value in expected.items():
        assert by_name[name] == pytest.approx(value, rel=1e-5), name
    # A yaw rate within 0.3 rad/s costs nothing.
    assert reward_terms(state.at[5].set(-0.29), reference, command, previous, 1.0, RewardWeights())["spin"] == 0


def test_the_reward_is_the_sum_of_its_terms_for_the_state_that_the_step_leads_to():
    state = states_of(FIELD, 1, seed=4)
    state = jax.tree.map(lambda leaf: leaf[0], state)
    state, _ = STEP[FIELD](state, jnp.array([0.3, -0.2, 0.1]), NO_DRAWS)
    after, outcome = STEP[FIELD](state, jnp.array([0.5, 0.2, -0.1]), NO_DRAWS)
    by_name = reward_terms(after.boat, after.window[0], after.commands[0], state.commands[0], 1.0, RewardWeights())
    assert outcome.terms.keys() == by_name.keys()
    for name, value in by_name.items():
        assert outcome.terms[name] == pytest.approx(float(value), rel=1e-5, abs=1e-6), name
    assert outcome.reward == pytest.approx(float(sum(by_name.values())), rel=1e-5)
    np.testing.assert_array_equal(after.commands[:2], jnp.array([[0.5, 0.2, -0.1], [0.3, -0.2, 0.1]]))


@pytest.mark.parametrize("progress", [0.0, 0.25, 0.5, 1.0])
def test_action_weights_grow_to_their_final_values_over_the_course_of_training(progress):
    # Three times full thrust is full thrust: |command|² = 1, weighed by 3 for itself and by 10 for the change from 0.
    thrust = jnp.array([3.0, 0.0, 0.0])
    state, first = STEP[IDEAL](resting(np.zeros(6)), thrust, NO_DRAWS, progress)
    _, second = STEP[IDEAL](state, thrust, NO_DRAWS, progress)
    assert first.terms["effort"] == pytest.approx(-3 * progress)
    assert first.terms["smoothness"] == pytest.approx(-10 * progress)
    assert second.terms["effort"] == pytest.approx(-3 * progress)
    assert second.terms["smoothness"] == 0


def test_an_episode_fails_beyond_five_metres_and_is_cut_off_after_a_thousand_steps():
    def ends(distance, age):
        state = resting([0.6 * distance, 0.8 * distance, 0, 0, 0, 0], age=jnp.int32(age))
        _, outcome = STEP[IDEAL](state, jnp.zeros(3), NO_DRAWS)
        return bool(outcome.terminated), bool(outcome.truncated)

    assert ends(4.999, 500) == (False, False)
    assert ends(5.001, 500) == (True, False)
    assert ends(4.999, 998) == (False, False)
    assert ends(4.999, 999) == (False, True)
    # A boat that fails at the last step has failed: nothing comes after.
    assert ends(5.001, 999) == (True, False)


def test_a_state_that_overflows_fails_with_finite_numbers():
    # At such speeds the Coriolis terms grow by c · 9000² · 0.02 s in one integration step, and then again.
    state = resting([0, 0, 0, 9e3, 9e3, 9e3])
    assert not jnp.isfinite(move(state.boat, jnp.zeros((SUBSTEPS, 3)), state.e, jnp.zeros(2))).all()
    after, outcome = STEP[IDEAL](state, jnp.ones(3), NO_DRAWS)
    assert outcome.terminated
    assert not outcome.truncated
    for leaf in jax.tree.leaves((after, outcome)):
        assert jnp.isfinite(leaf).all()
    assert jnp.abs(after.boat).max() < LARGEST


@pytest.mark.parametrize(("progress", "share"), [(0.0, 0.0), (0.125, 0.25), (0.5, 1.0), (1.0, 1.0)])
def test_initial_offsets_grow_with_the_curriculum(progress, share):
    # The largest uniform numbers give the largest offset, the smallest its opposite, and 1/2 none.
    for uniform, sign in ((1.0, 1), (0.0, -1), (0.5, 0)):
        state = IDEAL.reset(jnp.full(IDEAL.reset_draws, uniform), progress)
        offset = sign * share * np.array([1.5, 1.5, 1.5, 0.6, 0.3, 0.6])
        np.testing.assert_allclose(state.boat - state.window[0], offset, atol=1e-6)
        np.testing.assert_array_equal(state.previous_pose, state.boat[:3])
        np.testing.assert_array_equal(state.window[0, :3], np.zeros(3))
        assert state.age == 0


def test_dynamics_and_trajectories_widen_with_the_curriculum():
    early, late = (states_of(IDEAL, 2000, progress) for progress in (0.0, 0.5))
    # log alpha_u spans ln(12 / 0.15) = 4.382 in the end and 0.3 of that at the start, about the same middle.
    for state, share in ((early, 0.3), (late, 1.0)):
        logs = jnp.log(state.e[:, 0])
        assert jnp.ptp(logs) == pytest.approx(share * 4.382, rel=0.01)
        assert logs.mean() == pytest.approx(math.log(math.sqrt(0.15 * 12)), abs=0.1)
    # At first straights and turns of 8 m or wider, without sway; in the end turns down to 0.8 m.
    speed, sway, rate = early.window[:, 0, 3:].T
    assert (jnp.abs(rate) <= speed / 8 * (1 + 1e-5)).all()
    assert not sway.any()
    speed, sway, rate = late.window[:, 0, 3:].T
    straight_ahead = (sway == 0) & (speed > 0)
    tightest = (speed / jnp.maximum(jnp.abs(rate), 1e-6))[straight_ahead].min()
    assert 0.8 * (1 - 1e-5) <= tightest < 0.9
    assert sway.any()


def test_the_window_shifts_by_one_and_ends_with_the_streams_next_point():
    state = jax.tree.map(lambda leaf: leaf[0], states_of(IDEAL, 1, seed=2))
    uniforms = jnp.linspace(0.1, 0.9, 7)
    for _ in range(3):
        able = reference_generator.capability(state.e, turn=IDEAL.turn_share)
        point, segment = reference_generator.extend(
            state.window[-1], reference_generator.Segment(*state.segment), uniforms, able, 1.0
        )
        after, _ = STEP[IDEAL](state, jnp.zeros(3), Draws(uniforms, jnp.zeros(5), jnp.zeros(0)))
        np.testing.assert_array_equal(after.window[:-1], state.window[1:])
        np.testing.assert_allclose(after.window[-1], point, atol=1e-6)
        np.testing.assert_allclose(after.segment, jnp.stack(segment), atol=1e-6)
        np.testing.assert_array_equal(after.previous_pose, state.boat[:3])
        assert after.age == state.age + 1
        state = after


def test_measurements_are_off_by_as_much_as_the_task_says_and_stay_so():
    noise = (0.01, 0.02, 0.03, 0.04, 0.05, 0.06)
    mixed = states_of(TrackingEnv(sensor_noise=noise, noise_free_share=0.25), 4000).sensor_error
    assert np.mean(mixed[:, 6] == 0) == pytest.approx(0.25, abs=0.02)
    assert np.all(mixed[mixed[:, 6] == 0] == 0)
    env = TrackingEnv(sensor_noise=noise, noise_free_share=0.0)
    state = states_of(env, 4000)
    share = np.asarray(state.sensor_error[:, 6])
    assert 0 <= share.min() < 0.01 < 0.99 < share.max() <= 1
    # At first no past is known: the boat is taken to have moved as it seems to move.
    h = jax.jit(jax.vmap(env.history))(state)
    np.testing.assert_allclose(h[:, :3], 0.1 * h[:, 3:6], rtol=1e-6)
    np.testing.assert_allclose(h[:, 3:6], (state.boat + state.sensor_error[:, :6])[:, 3:], rtol=1e-6)
    first = np.asarray(state.sensor_error[:, :6])
    step = jax.jit(jax.vmap(env.step))
    for key in jax.random.split(jax.random.key(3), 5):
        seen = state.boat[:, :3] + state.sensor_error[:, :3]
        state, _ = step(state, jnp.zeros((4000, 3)), env.draws(key, (4000,)))
        np.testing.assert_allclose(state.previous_pose, seen, atol=1e-6)
    last, sizes = np.asarray(state.sensor_error[:, :6]), share[:, None] * np.array(noise)
    for error in (first, last):
        np.testing.assert_allclose((error / sizes).std(0), 1.0, atol=0.06)
    # 0.85 of an error is there a period later, so 0.85⁵ = 0.444 after five.
    np.testing.assert_allclose(np.mean(first * last / sizes**2, axis=0), 0.444, atol=0.06)


def test_a_fleet_under_vmap_is_a_loop_over_its_boats():
    state, draws = states_of(FIELD, 6), FIELD.draws(jax.random.key(1), (6,))
    actions = jax.random.normal(jax.random.key(2), (6, 3))
    together = jax.jit(jax.vmap(FIELD.step))(state, actions, draws)
    for i in range(6):
        alone = STEP[FIELD](*jax.tree.map(lambda leaf, i=i: leaf[i], (state, actions, draws)))
        for one, all_ in zip(jax.tree.leaves(alone), jax.tree.leaves(together), strict=True):
            # float32 in another order of operations: 1e-6 of numbers up to 10.
            np.testing.assert_allclose(one, all_[i], rtol=2e-6, atol=2e-6)


class Sequence:
    """Gives one command after the other, whatever happens."""

    def __init__(self, commands):
        self.commands = commands

    def reset(self):
        self.rest = iter(self.commands)

    def step(self, pose, velocity, window):
        return next(self.rest)


@pytest.mark.parametrize("env", [IDEAL, FIELD], ids=["ideal", "field"])
def test_a_step_is_the_simulators_physics(platform, env):
    commands = np.random.default_rng(0).uniform(-1, 1, (30, 3))
    log = simulate(Sequence(commands), platform, circle(), env.sea, seed=3, duration=3.0)
    state = resting(log.state[0], env, e=jnp.array(platform.normalized))
    for k, command in enumerate(commands):
        # Two metres and more of motion in float32, after up to 30 periods.
        np.testing.assert_allclose(state.boat, log.state[k], rtol=1e-5, atol=1e-5)
        # The weather is drawn by other generators: it is taken from the simulator.
        weather = jnp.array([*log.current[k], *log.force[k], log.about["delay"]])
        state, _ = STEP[env](state._replace(disturbance=weather), jnp.array(command), NO_DRAWS)


def test_with_a_delay_of_two_periods_a_command_is_felt_after_two_periods():
    env = TrackingEnv(Sea(delay=(0.2, 0.2)))
    step = jax.jit(env.step)
    idle = pushed = resting([0, 0, 0, 0.5, 0, 0], env)
    assert idle.disturbance[5] == pytest.approx(0.2)
    for period in range(4):
        idle, _ = step(idle, jnp.zeros(3), NO_DRAWS)
        pushed, _ = step(pushed, jnp.array([1.0, 0.0, 0.0]), NO_DRAWS)
        gained = float(pushed.boat[3] - idle.boat[3])
        # Full thrust for `felt` seconds: u rises by alpha / d (1 - exp(-d felt)).
        felt = max(0, period - 1) * 0.1
        alpha, d = float(PLATFORM_A[0]), float(PLATFORM_A[3])
        assert gained == pytest.approx(alpha / d * (1 - math.exp(-d * felt)), abs=1e-6)


def test_weather_keeps_within_the_bounds_of_the_sea_and_an_ideal_sea_has_none():
    def run(env):
        draws = env.draws(jax.random.key(1), (200, 64))
        step = jax.vmap(lambda state, draw: env.step(state, jnp.zeros(3), draw)[0])

        def go(state, draw):
            state = step(state, draw)
            return state, state.disturbance

        state = states_of(env, 64)
        return state.disturbance, jax.jit(lambda state: jax.lax.scan(go, state, draws)[1])(state)

    first, weather = run(FIELD)
    weather = jnp.concatenate([first[None], weather])
    current, force, delay = jnp.hypot(weather[..., 0], weather[..., 1]), jnp.abs(weather[..., 2:5]), weather[..., 5]
    # 13 000 draws of a spread of half the bound come to it, and no farther.
    assert 0.19 < current.max() <= 0.2 * (1 + 1e-6)
    assert 0.095 < force.max() <= 0.1 * (1 + 1e-6)
    assert (delay == delay[:1]).all()
    assert 0 <= delay.min() < 0.01
    assert 0.19 < delay.max() <= 0.2
    # It begins in its stationary state, not at rest: a normal of spread bound / 2, clipped at the bound.
    assert jnp.std(first[:, 2:5]) == pytest.approx(0.05, rel=0.25)
    # Decay rates of 0.05 and 0.5 1/s: in 20 s every force has forgotten its start.
    assert not jnp.allclose(weather[0, :, :5], weather[-1, :, :5], atol=0.01)
    first, weather = run(IDEAL)
    assert not first.any()
    assert not weather.any()


def test_the_privileged_vector_is_e_on_a_logarithmic_scale():
    # ln 1 = 0, ln 10 = 2.302585, ln 1/2 = -0.693147; asinh(-3/4) = ln(-3/4 + 5/4) = -ln 2.
    e = jnp.array([1.0, 10.0, 0.1, math.exp(2), 1.0, 1.0, 0.5, -2.0, -0.75])
    expected = [0, 2.302585, -2.302585, 2, 0, 0, -0.693147, 0.693147, -0.693147]
    np.testing.assert_array_equal(replace(IDEAL, log_dynamics=False).privileged(resting(np.zeros(6), e=e)), e)
    seen = IDEAL.privileged(resting(np.zeros(6), e=e))
    np.testing.assert_allclose(seen, expected, atol=1e-6)


def test_sizes_are_what_the_task_declares():
    state: EnvState = resting(np.zeros(6), FIELD)
    for declared, seen in (
        (FIELD.observation_size, FIELD.observe(state)),
        (FIELD.history_size, FIELD.history(state)),
        (FIELD.privileged_size, FIELD.privileged(state)),
    ):
        assert seen.shape == (declared,)
    # Commands of this and of the last two periods may be in force: 200 ms.
    assert state.commands.shape == (3, FIELD.action_size)


def test_a_current_is_weaker_for_a_boat_whose_forces_do_not_hold_it():
    environment = TrackingEnv(Sea.field(), fastest=5.0, current_share=0.5)
    state = environment.reset(jnp.full(environment.reset_draws, 0.5))
    state = state._replace(disturbance=state.disturbance.at[:2].set(jnp.array([0.0, 0.2])))
    for name in PLATFORMS:
        e = jnp.array(Vessel.load(name).normalized)
        np.testing.assert_allclose(environment._current(state._replace(e=e)), [0.0, 0.2], rtol=1e-6)
    # alpha_r = 1.2, c_uv = -10, c_ru = -0.6: at most 6 / sqrt(6) = 2.45 m/s, where 0.5 · 1.2 / (10 · 2.45) = 0.0245 m/s
    # takes half of the yaw moment.
    ship = jnp.array([1.0, 0.3, 1.2, 0.2, 0.4, 1.4, 1 / 0.6, -0.6, -10.0])
    np.testing.assert_allclose(environment._current(state._replace(e=ship)), [0.0, 0.0245], rtol=1e-3)
    # alpha_v = 0.04 and 0.4 1/s: a top speed in sway of 0.1 m/s, and no Munk moment.
    weak = ship.at[1].set(0.04).at[8].set(0.0)
    np.testing.assert_allclose(environment._current(state._replace(e=weak)), [0.0, 0.05], rtol=1e-5)
    # The paper's recipe has the whole current for every boat.
    np.testing.assert_allclose(TrackingEnv(Sea.field())._current(state._replace(e=weak)), [0.0, 0.2], rtol=1e-6)
