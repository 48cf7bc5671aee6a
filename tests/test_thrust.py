"""Real thrusters in training, and boats without sway force."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from anyhull import Sea
from anyhull.learn import thrust
from anyhull.learn.config import FIELD_THRUSTERS, apg_under
from anyhull.learn.environment import Draws, TrackingEnv
from anyhull.learn.randomization import Randomization
from anyhull.learn.reference_generator import capability_without_sway
from anyhull.learn.thrust import ThrusterModel
from anyhull.vessel import Vessel, catalogue

UNDER = TrackingEnv(randomization=Randomization(sway=False))
NO_DRAWS = Draws(jnp.full(7, 0.5), jnp.zeros(5), jnp.zeros(0))


def without_sway():
    return [name for name in catalogue() if Vessel.load(name).Fy == 0]


def test_the_default_is_the_papers_ideal_actuator():
    model = ThrusterModel()
    assert not model.real
    active, after = model.apply([jnp.array([0.3, -0.2, 0.1])], model.reset(jnp.zeros(0)))
    np.testing.assert_array_equal(active[0], jnp.array([0.3, -0.2, 0.1]))
    assert after.size == 0
    assert TrackingEnv().reset_draws == IDEAL_DRAWS


IDEAL_DRAWS = 8 + 7 + 6 + 1 + 5
"""Boat, segment, offset, delay, disturbance: the paper's environment draws no thrusters."""


def test_a_lag_reaches_63_per_cent_after_its_time_constant():
    actuators = jnp.array([0.0, 0.0, 0.0, 0.1, 1.0, 0.0, 0.0])
    thrusts, after = FIELD_THRUSTERS.apply([jnp.array([1.0, 0.0, -0.5])] * 5, actuators)  # five parts of 20 ms
    np.testing.assert_allclose(thrusts[-1], (1 - math.exp(-1)) * np.array([1.0, 0.0, -0.5]), rtol=1e-5)
    np.testing.assert_allclose(after[thrust.THRUST], thrusts[-1])


def test_reverse_is_weaker_and_small_commands_have_no_effect():
    actuators = jnp.array([0.0, 0.0, 0.0, 0.0, 0.4, 0.04, 0.0])
    found = [FIELD_THRUSTERS.apply([jnp.array([c, 0.0, 0.0])], actuators)[0][0][0] for c in (0.52, -0.52, 0.03)]
    # (0.52 - 0.04) / (1 - 0.04) = 0.5; reversed 0.4 of it.
    np.testing.assert_allclose(found, [0.5, -0.2, 0.0], atol=1e-6)


def test_quadratic_drag_leaves_the_top_speed_and_replaces_linear_drag():
    e = jnp.array(Vessel.load("platform-a").normalized)
    linear, quadratic = FIELD_THRUSTERS.drag(e, jnp.array([0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.6]))
    assert quadratic is not None
    top = e[:3] / e[3:6]
    np.testing.assert_allclose((linear[3:6] + quadratic * top) * top, e[:3], rtol=1e-5)
    np.testing.assert_allclose(linear[3:6], 0.4 * e[3:6], rtol=1e-6)


def test_quadratic_drag_can_be_integrated_for_every_boat_without_sway_force():
    # RK4 at 20 ms is stable below 139 1/s; the fastest relative speeds in training are about 1 m/s sideways.
    environment = TrackingEnv(Sea.field(), Randomization(sway=False), thrusters=FIELD_THRUSTERS)
    uniforms = jax.random.uniform(jax.random.key(0), (4000, environment.reset_draws))
    states = jax.vmap(environment.reset)(uniforms)
    linear, quadratic = jax.vmap(FIELD_THRUSTERS.drag)(states.e, states.actuators)
    assert quadratic is not None
    assert (linear[:, 4] + 2 * quadratic[:, 1] * 0.6).max() < 139.0


def test_drawn_thrusters_span_the_stated_ranges():
    uniforms = jax.random.uniform(jax.random.key(0), (4000, thrust.DRAWS))
    drawn = np.asarray(jax.vmap(FIELD_THRUSTERS.reset)(uniforms))[:, thrust.LAG :]
    np.testing.assert_allclose(drawn.min(0), [0.0, 0.2, 0.0, 0.0], atol=2e-3)
    np.testing.assert_allclose(drawn.max(0), [0.5, 1.0, 0.05, 0.8], rtol=2e-3)


def test_the_teacher_is_told_delay_and_lag_as_one():
    env = TrackingEnv(Sea.field(), privileged_sea=True, thrusters=FIELD_THRUSTERS)
    state = env.reset(jnp.full(env.reset_draws, 0.5))
    # Half of 200 ms of delay, and 0.5² of 500 ms of lag, in tenths of a second.
    np.testing.assert_allclose(env.privileged(state)[9], 10 * (0.1 + 0.125), rtol=1e-5)


def test_a_boat_without_sway_is_not_pushed_sideways_by_its_command():
    state = UNDER.reset(jnp.full(UNDER.reset_draws, 0.5))._replace(boat=jnp.zeros(6))
    after, _ = UNDER.step(state, jnp.array([0.0, 1.0, 0.0]), NO_DRAWS)
    np.testing.assert_array_equal(after.boat, jnp.zeros(6))
    np.testing.assert_array_equal(after.commands[0], jnp.zeros(3))


@pytest.mark.parametrize("name", without_sway())
def test_every_published_boat_without_sway_is_one_of_training(name):
    e = Vessel.load(name).effective()
    e = e._replace(alpha_v=e.alpha_u / e.c_rv)
    for component, (low, high) in Randomization(sway=False).envelope().items():
        assert low <= getattr(e, component) <= high, component


def test_boats_without_sway_stay_inside_their_envelope():
    uniforms = jax.random.uniform(jax.random.key(0), (2000, 8))
    drawn = np.asarray(jax.vmap(Randomization(sway=False).sample)(uniforms))
    ends = np.array(list(Randomization(sway=False).envelope().values()))
    assert (drawn >= ends[:, 0] * (1 - 1e-5 * np.sign(ends[:, 0]))).all()
    assert (drawn <= ends[:, 1] * (1 + 1e-5 * np.sign(ends[:, 1]))).all()
    np.testing.assert_allclose(drawn[:, 6] * drawn[:, 7], -1, rtol=1e-5)


def test_a_turn_of_a_boat_without_sway_keeps_its_drift_angle_and_its_moment():
    uniforms = jax.random.uniform(jax.random.key(1), (2000, 8))
    for e in np.asarray(jax.vmap(Randomization(sway=False).sample)(uniforms), dtype=float)[:200]:
        can = capability_without_sway(tuple(e))
        drift = -e[7] * can.yaw_rate / e[4]
        assert drift <= 0.4 * (1 + 1e-5)
        moment = e[5] * can.yaw_rate + max(e[8], 0.0) * drift * can.speed**2
        assert moment <= 0.6 * e[2] * (1 + 1e-5)


def test_against_a_current_a_boat_without_sway_is_asked_for_less_speed():
    e = jnp.array(Vessel.load("heron").effective()._replace(alpha_v=2.4))
    still, against = (capability_without_sway(tuple(e), fastest=5.0, current=current) for current in (0.0, 0.2))
    # 0.85 of a top speed of 4 m/s is more than the 1.2 m/s of most segments in either case.
    assert still.speed == against.speed == pytest.approx(1.2)
    slow = tuple(e.at[0].multiply(0.2))  # at the same damping the top speed is a fifth
    still, against = (capability_without_sway(slow, fastest=5.0, current=current) for current in (0.0, 0.2))
    assert float(still.speed - against.speed) == pytest.approx(0.2, rel=1e-5)
    assert float(still.fast - against.fast) == pytest.approx(0.2, rel=1e-5)


def test_the_preset_trains_boats_without_sway_in_both_seas():
    for sea in ("ideal", "field"):
        environment = apg_under("student", sea).environment
        assert not environment.randomization.sway
        assert environment.thrusters.real == (sea == "field")
