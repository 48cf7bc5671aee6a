"""The physics: against an independent integrator, in four arithmetics, under symmetries, and by hand."""

import math

import casadi
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from anyhull import dynamics
from anyhull.dynamics import NO_DRAG, PERIOD, SUBSTEP
from anyhull.hydrodynamics import Normalized
from anyhull.learn import randomization
from anyhull.learn.kernels.dynamics import move
from anyhull.learn.randomization import Randomization
from anyhull.paper import RANGES
from anyhull.vessel import Vessel, catalogue

PARTS = round(PERIOD / SUBSTEP)


def varied_command(vessel, k):
    """Commands of incommensurate frequencies on all axes, for up to about 0.6 m/s, 0.3 m/s and 0.5 rad/s."""
    wanted = np.array([0.6, 0.3, 0.5]) / np.array(vessel.top_speeds)
    return np.minimum(wanted, 1.0) * np.sin(np.array([0.7, 1.1, 0.9]) * k * PERIOD + np.array([1.0, 0.3, 0.0]))


def drive(vessel, parts, steps=100):
    """States after each control period under the varied commands, by the package's own integrator."""
    state, states = (0.0,) * 6, []
    for k in range(steps):
        state = dynamics.step(state, [varied_command(vessel, k)] * parts, vessel.normalized)
        states.append(state)
    return np.array(states)


def exact(vessel, steps=100):
    """The same by an eighth-order integrator that knows the physical equations alone."""
    state, states = np.zeros(6), []
    for k in range(steps):
        tau = varied_command(vessel, k) * np.array(vessel.limits)

        def rate(_, s, tau=tau):
            psi, u, v, r = s[2:]
            kinematics = [np.cos(psi) * u - np.sin(psi) * v, np.sin(psi) * u + np.cos(psi) * v, r]
            m11, m22, m66 = vessel.inertia
            coriolis = np.array([[0, -vessel.mass * r, vessel.hull.Y_vdot * v],
                                 [vessel.mass * r, 0, -vessel.hull.X_udot * u],
                                 [-vessel.hull.Y_vdot * v, vessel.hull.X_udot * u, 0]])  # fmt: skip
            nu = np.array([u, v, r])
            force = tau - coriolis @ nu - np.array([vessel.hull.X_u, vessel.hull.Y_v, vessel.hull.N_r]) * nu
            return [*kinematics, *(force / [m11, m22, m66])]

        state = solve_ivp(rate, (0, PERIOD), state, method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
        states.append(state)
    return np.array(states)


def test_agrees_with_an_independent_integrator_to_1e_6_over_ten_seconds(platform):
    truth = exact(platform)
    assert np.abs(truth[:, 3]).max() > 0.1  # the boat did move
    np.testing.assert_allclose(drive(platform, PARTS), truth, atol=1e-6, rtol=0)


def test_converges_with_the_fourth_order():
    vessel = Vessel.load("roboat-1")
    truth = exact(vessel, steps=30)
    errors = [np.abs(drive(vessel, parts, steps=30) - truth).max() for parts in (1, 2, 4)]
    # Halving the step divides the error by 2⁴ = 16.
    assert 12 < errors[0] / errors[1] < 20
    assert 12 < errors[1] / errors[2] < 20


def test_the_stiffest_boat_of_the_training_ranges_is_stable_and_accurate():
    # 1/tau = 34 1/s on both axes, 25 1/s in yaw, all at full command. Surge alone is linear:
    # u(t) = alpha tau (1 - exp(-t / tau)).
    e = (12.0, 11.0, 86.0, 34.0, 34.0, 25.0, 1.0, -1.0, 0.0)
    state = (0.0,) * 6
    for k in range(1, 50):
        state = dynamics.step(state, [(1.0, 0.0, 0.0)] * PARTS, e)
        assert state[3] == pytest.approx(12 / 34 * (1 - math.exp(-34 * k * PERIOD)), abs=2e-4)
    turning = (0.0,) * 6
    for k in range(50):
        turning = dynamics.step(turning, [(1.0, -1.0, (-1.0) ** k)] * PARTS, e)
        assert np.isfinite(turning).all()
        assert abs(turning[5]) <= 86 / 25 + 1e-9


def test_every_catalogue_vessel_gets_enough_substeps_to_stay_stable():
    for name in catalogue():
        vessel = Vessel.load(name)
        parts, state = dynamics.substeps(vessel), (0.0,) * 6
        for k in range(100):
            command = (1.0, (-1.0) ** (k // 7), (-1.0) ** (k // 5))
            state = dynamics.step(state, [command] * parts, vessel.normalized, drag=vessel.drag)
        assert np.isfinite(state).all(), name
        assert abs(state[3]) < 40, name


def test_normalized_and_physical_form_agree():
    random = np.random.default_rng(0)
    for name in catalogue():
        vessel = Vessel.load(name)
        nu, command = random.normal(size=3), random.uniform(-1, 1, 3)
        physical = dynamics.physical_acceleration(nu, command * np.array(vessel.limits), vessel)
        normalized = dynamics.acceleration(nu, command, vessel.normalized, vessel.drag)
        np.testing.assert_allclose(physical, normalized, rtol=1e-9, atol=1e-9, err_msg=name)


def test_inverse_dynamics_inverts_acceleration(platform):
    nu, wanted = (0.5, -0.1, 0.3), (0.1, -0.2, 0.05)
    command = dynamics.inverse_dynamics(nu, wanted, platform.normalized)
    np.testing.assert_allclose(dynamics.acceleration(nu, command, platform.normalized), wanted, atol=1e-12)


def test_floats_numpy_jax_and_casadi_agree_to_rounding(platform):
    e, drag = platform.normalized, ((0.1, 0.2, 0.3), (0.01, 0.02, 0.03))
    state, force, current = (1.0, -2.0, 2.5, 0.6, -0.1, 0.3), (0.4, -0.3, 0.2), (0.1, -0.2)
    floats = dynamics.step(state, [force] * PARTS, e, current, drag)
    assert all(isinstance(value, float) for value in floats)

    fleet = tuple(np.full((2, 3), value) for value in state)
    for value, expected in zip(dynamics.step(fleet, [force] * PARTS, e, current, drag), floats, strict=True):
        np.testing.assert_allclose(value, np.full((2, 3), expected), rtol=1e-13)

    symbols = casadi.SX.sym("s", 6)
    moved = dynamics.step(casadi.vertsplit(symbols), [force] * PARTS, e, current, drag)
    compiled = casadi.Function("step", [symbols], [casadi.vertcat(*moved)])
    np.testing.assert_allclose(np.array(compiled(state)).ravel(), floats, rtol=1e-13)

    with jax.enable_x64(True):
        traced = jax.jit(lambda s: jnp.stack(dynamics.step(s, [force], e, current, drag, dt=SUBSTEP)))
        short = dynamics.step(state, [force], e, current, drag, dt=SUBSTEP)
        np.testing.assert_allclose(traced(jnp.array(state)), short, rtol=1e-13)


def test_the_learners_step_is_the_simulators_in_float32(platform):
    state, force, current = (1.0, -2.0, 2.5, 0.6, -0.1, 0.3), (0.4, -0.3, 0.2), (0.1, -0.2)
    floats = dynamics.step(state, [force] * PARTS, platform.normalized, current)
    learner = move(
        jnp.array(state), jnp.tile(jnp.array(force), (PARTS, 1)), jnp.array(platform.normalized), jnp.array(current)
    )
    np.testing.assert_allclose(learner, floats, atol=3e-6)


def rotate(x, y, angle):
    """Written out, so that the package's rotation is tested against another."""
    return x * math.cos(angle) - y * math.sin(angle), x * math.sin(angle) + y * math.cos(angle)


def test_the_motion_is_invariant_under_rotation_and_translation(platform):
    force, current, angle = (0.4, -0.3, 0.2), (0.1, -0.2), 1.234
    state = (1.0, -2.0, 0.5, 0.6, -0.1, 0.3)
    x, y, psi, *nu = dynamics.step(state, [force] * PARTS, platform.normalized, current)
    turned_start = (*np.add(rotate(*state[:2], angle), (7, -5)), state[2] + angle, *state[3:])
    turned = dynamics.step(turned_start, [force] * PARTS, platform.normalized, rotate(*current, angle))
    np.testing.assert_allclose(turned, (*np.add(rotate(x, y, angle), (7, -5)), psi + angle, *nu), atol=1e-12)


def test_mirroring_the_world_mirrors_the_motion(platform):
    flip = np.array([1, -1, -1, 1, -1, -1])
    state, force, current = np.array([1.0, -2.0, 0.5, 0.6, -0.1, 0.3]), np.array([0.4, -0.3, 0.2]), (0.1, -0.2)
    moved = np.array(dynamics.step(state, [force] * PARTS, platform.normalized, current))
    mirrored = dynamics.step(flip * state, [flip[:3] * force] * PARTS, platform.normalized, (0.1, 0.2))
    np.testing.assert_allclose(mirrored, flip * moved, atol=1e-12)


def test_terminal_speed_is_alpha_tau(platform):
    state = (0.0,) * 6
    for _ in range(2000):
        state = dynamics.step(state, [(0.5, 0.0, 0.0)] * PARTS, platform.normalized)
    assert state[3] == pytest.approx(0.5 * platform.top_speeds[0], rel=1e-6)


def test_yaw_from_rest_is_a_first_order_response(platform):
    # Without surge and sway, r(t) = alpha_r tau_r (1 - exp(-t / tau_r)) under full command.
    e, state = platform.normalized, (0.0,) * 6
    for _ in range(10):
        state = dynamics.step(state, [(0.0, 0.0, 0.1)] * PARTS, e)
    expected = 0.1 * e.alpha_r / e.inv_tau_r * (1 - math.exp(-e.inv_tau_r * 1.0))
    assert state[5] == pytest.approx(expected, rel=1e-6)


def test_a_steady_turn_under_the_command_of_inverse_dynamics_is_a_circle(platform):
    # u = 0.5 m/s and r = 0.25 rad/s: a circle of 2 m, back at its start after 2 pi / 0.25 s.
    nu = (0.5, 0.0, 0.25)
    command = dynamics.inverse_dynamics(nu, (0.0, 0.0, 0.0), platform.normalized)
    state, steps = (0.0, 0.0, 0.0, *nu), 40
    for _ in range(steps):
        state = dynamics.step(state, [command] * PARTS, platform.normalized, dt=2 * math.pi / 0.25 / 2 / steps)
    assert state[0] == pytest.approx(0.0, abs=2e-3)
    assert state[1] == pytest.approx(4.0, abs=2e-3)
    assert state[2] == pytest.approx(math.pi, abs=1e-3)


def test_a_boat_without_thrust_drifts_with_the_current(platform):
    state = (0.0,) * 6
    for _ in range(3000):
        state = dynamics.step(state, [(0.0, 0.0, 0.0)] * PARTS, platform.normalized, (0.2, -0.1))
    # The boat may have turned, so the velocity is compared in the inertial frame.
    np.testing.assert_allclose(rotate(*state[3:5], state[2]), (0.2, -0.1), atol=1e-4)
    assert state[5] == pytest.approx(0, abs=1e-6)


def test_quadratic_drag_gives_the_published_top_speed():
    # Heron: 16.45 u + 2.942 u² = 67.2 N at 2.7412 m/s.
    vessel, state = Vessel.load("heron"), (0.0,) * 6
    for _ in range(600):
        state = dynamics.step(state, [(1.0, 0.0, 0.0)] * PARTS, vessel.normalized, drag=vessel.drag)
    assert state[3] == pytest.approx(2.741217, rel=1e-5)


def test_an_external_force_adds_to_the_command(platform):
    nu = (0.3, 0.1, -0.2)
    both = dynamics.acceleration(nu, (0.3, -0.1, 0.2), platform.normalized)
    still = dynamics.acceleration(nu, (0.0, 0.0, 0.0), platform.normalized, NO_DRAG)
    e = platform.normalized
    np.testing.assert_allclose(np.subtract(both, still), (0.3 * e.alpha_u, -0.1 * e.alpha_v, 0.2 * e.alpha_r))


def test_narrower_ranges_bound_the_boats_that_are_drawn():
    narrow = Randomization(
        alpha_u=(1.0, 2.0),
        alpha_v=(0.5, 1.0),
        alpha_r=(1.0, 5.0),
        inv_tau_u=(0.1, 1.0),
        inv_tau_v=(0.2, 2.0),
        inv_tau_r=(0.3, 3.0),
        c_rv=(0.5, 3.0),
        c_ru=(-1.5, -0.4),
        c_uv=(-2.0, 1.0),
    )
    uniforms = jax.random.uniform(jax.random.key(0), (10_000, randomization.DRAWS))
    e = np.array(jax.vmap(narrow.sample)(uniforms))
    # c_ru = -1 / c_rv: its range bounds c_rv to 1 / 1.5 and 1 / 0.4, and c_rv's own of 0.5 and 3 does not bind.
    for (name, (low, high)), values in zip(narrow.envelope().items(), e.T, strict=True):
        assert low * (1 - np.sign(low) * 1e-5) <= values.min(), name
        assert values.max() <= high * (1 + np.sign(high) * 1e-5), name
    np.testing.assert_allclose(e[:, 7], -1 / e[:, 6], rtol=1e-6)


def test_boats_around_a_vessel_are_hulls_of_which_each_parameter_varies():
    # Platform A: X_udot = Y_vdot = -22 and m = 22. c_uv and c_rv follow from the drawn added masses as on a hull:
    # c_uv I = Y_vdot - X_udot = m11 - m22, and so c_uv = (alpha_r / Mz) (Fx / alpha_u) (1 - c_rv).
    theta = Vessel.load("platform-a").theta
    uniforms = jax.random.uniform(jax.random.key(0), (1000, randomization.DRAWS))
    around = Randomization("around", theta)
    e = Normalized(*np.array(jax.vmap(around.sample)(uniforms), float).T)
    np.testing.assert_allclose(e.c_ru, -1 / e.c_rv, rtol=1e-5)
    hull = e.alpha_r / theta.Mz * theta.Fx / e.alpha_u * (1 - e.c_rv)
    np.testing.assert_allclose(e.c_uv, hull, atol=1e-4)
    # X_u / I_comb and N_r / I_comb share a factor, but X_u and N_r have their own: their ratio reaches exp(± 0.4).
    ratio = np.log(e.inv_tau_r / e.alpha_r * theta.Mz / theta.N_r)
    assert ratio.min() == pytest.approx(-0.2, abs=0.005)
    assert ratio.max() == pytest.approx(0.2, abs=0.005)
    for (name, (low, high)), values in zip(around.envelope().items(), e, strict=True):
        least, most = np.min(values), np.max(values)
        assert low - 1e-5 <= least <= most <= high + 1e-5, name
        assert most - least > 0.7 * (high - low), name


def test_boats_uniform_in_their_components_have_their_mean_in_the_middle():
    # alpha_u is uniform on [0.15, 12], so its mean is 6.075; uniform in logarithm it is 11.85 / log(80) = 2.704.
    uniforms = jax.random.uniform(jax.random.key(0), (100_000, randomization.DRAWS))
    for boats, mean in ((Randomization(spacing="linear"), 6.075), (Randomization(), 2.704)):
        e = np.asarray(jax.vmap(boats.sample)(uniforms), float)
        assert e[:, 0].mean() == pytest.approx(mean, rel=0.01)
        assert all(np.isfinite(e).ravel())
    # A narrow spread stays about the middle of the range.
    narrow = np.array(jax.vmap(lambda u: Randomization(spacing="linear").sample(u, 0.1))(uniforms))
    assert np.abs(narrow[:, 0] - 6.075).max() <= 0.05 * 11.85 + 1e-4


def test_sampled_boats_reach_the_papers_ranges_and_can_move():
    uniforms = jax.random.uniform(jax.random.key(0), (100_000, randomization.DRAWS))
    e = np.array(jax.vmap(Randomization().sample)(uniforms))
    for (name, (low, high)), values in zip(RANGES.items(), e.T, strict=True):
        assert values.min() >= low - 1e-3 * abs(low), name
        assert values.max() <= high + 1e-3 * abs(high), name
        # Reached on a logarithmic scale to within 4 % of the width at both ends (c_uv: linear, both signs).
        if name == "c_uv":
            assert values.min() < 0.95 * low
            assert values.max() > 0.95 * high
        else:
            spread = np.log(np.abs(values) / min(abs(low), abs(high))) / abs(np.log(abs(high / low)))
            assert spread.min() < 0.04, name
            assert spread.max() > 0.96, name
    assert (e[:, 0] / e[:, 3]).min() > 0.35  # top speed, m/s
    assert (e[:, 1] / e[:, 4]).min() > 0.32  # top sway speed, m/s
    assert (e[:, 2] / e[:, 5]).min() > 0.5  # top yaw rate, rad/s
    np.testing.assert_allclose(e[:, 6] * e[:, 7], -1, rtol=1e-5)
