"""The adaptive controllers of textbooks: L1 and self-tuning by recursive least squares."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from anyhull import InputError, Sea, Vessel, circle, dynamics, hold, rounded_rectangle, simulate
from anyhull.control import CONTROLLERS, L1, RLS, l1, rls
from anyhull.dynamics import PERIOD
from anyhull.paper import PLATFORMS

BOTH = pytest.mark.parametrize("kind", [L1, RLS])


@pytest.fixture(scope="module")
def roboat():
    return Vessel.load("roboat-2")


def sail(controller, vessel, window, seconds, force=(0.0, 0.0, 0.0), delay=0):
    """The state after `seconds` from rest at the origin, under a constant force and a delay in whole periods."""
    state, transit = (0.0,) * 6, [(0.0, 0.0, 0.0)] * (delay + 1)
    for k in range(round(seconds / PERIOD)):
        command = controller.step(state[:3], state[3:], window(k * PERIOD))
        transit = [tuple(command), *transit[:-1]]
        pushed = tuple(c + f for c, f in zip(transit[-1], force, strict=True))
        state = dynamics.step(state, [pushed] * 5, vessel.normalized, drag=vessel.drag)
    return state


@BOTH
def test_it_is_registered_by_name(kind, roboat):
    assert isinstance(CONTROLLERS[kind.__name__.lower()](roboat), kind)


@pytest.mark.parametrize("name", PLATFORMS)
@pytest.mark.parametrize(("kind", "centimetres", "degrees"), [(L1, 6.0, 15.0), (RLS, 1.5, 3.0)])
def test_it_tracks_every_platform_without_its_hydrodynamics(kind, centimetres, degrees, name):
    vessel = Vessel.load(name)
    metrics = simulate(kind(vessel), vessel, rounded_rectangle(), duration=24.0).metrics()
    assert metrics.position_cm < centimetres
    assert metrics.heading_deg < degrees


@BOTH
def test_it_does_not_look_at_the_hydrodynamics(kind, roboat):
    hull = replace(roboat.hull, X_udot=-1.0, X_u=300.0, Y_v=1.0, I_comb=100.0, N_rr=50.0)
    window = circle(3.0).window(4.0)
    pose, velocity = window[0, :3] + [0.05, -0.03, 0.1], window[0, 3:] + [-0.1, 0.02, 0.05]
    commands = [kind(replace(roboat, hydrodynamics=h)).step(pose, velocity, window) for h in (roboat.hull, hull)]
    assert (commands[0] == commands[1]).all()


def test_least_squares_recover_the_boat_and_its_delay_under_excitation(roboat):
    # The boat is sent to another pose every three seconds, which excites every axis; its thrust is 100 ms late.
    random = np.random.default_rng(0)
    poses = np.cumsum(random.uniform(-1.0, 1.0, (60, 3)), axis=0)
    boat = RLS(roboat, replace(rls.TUNED, noise=0.01, bias_memory=1e3, memory=1e3))
    sail(boat, roboat, lambda t: hold(poses[int(t / 3)]).window(0.0), 170.0, delay=1)
    e = roboat.normalized
    assert boat.gain == pytest.approx(e[:3], rel=0.05)
    assert boat.theta[:, 3] == pytest.approx(e[3:6], rel=0.2)
    # c_rv and c_ru; the yaw coupling is in units of b.
    assert boat.theta[:2, 4] == pytest.approx([e.c_rv, e.c_ru], rel=0.1)
    assert boat.theta[2, 4] * l1.estimated_accelerations(roboat, "")[2] == pytest.approx(e.c_uv, abs=0.3)
    assert boat.theta[:, 5] == pytest.approx([0.0, 0.0, 0.0], abs=0.01)
    assert boat.delay == pytest.approx(PERIOD, abs=0.02)


def test_the_estimate_of_l1_is_a_known_constant_force(roboat):
    # At rest the thrust opposes the force, tau = -f. Each period the predictor, whose error was cancelled, moves to
    # T b tau, so by the adaptation law sigma_hat = a T / (exp(a T) - 1) b f: b f as T goes to zero.
    force = (0.1, -0.2, 0.05)
    boat = L1(roboat)
    state = sail(boat, roboat, hold((0.0, 0.0, 0.5)).window, 60.0, force)
    b, share = l1.estimated_accelerations(roboat, ""), l1.TUNED.decay * PERIOD / math.expm1(l1.TUNED.decay * PERIOD)
    assert boat.sigma == pytest.approx(share * b * force, rel=1e-3)
    assert np.abs(state[3:]).max() < 1e-4


def test_the_predictor_of_l1_is_exact_where_its_model_is():
    # A body without damping or added mass, whose b is known: nothing is left for sigma but the integration's error.
    hull = dict.fromkeys(("X_udot", "Y_vdot", "X_u", "Y_v", "N_r"), 0.0)
    boat = Vessel.load("roboat-2")
    body = replace(boat, m=80.0, hydrodynamics=replace(boat.hull, **hull, I_comb=80.0 * (0.33 * 2.034) ** 2))
    b = l1.estimated_accelerations(body, "")
    # The file's mass estimates an inertia of 1.1 and 2 masses in surge and sway, so thrust is scaled by as much.
    body = replace(body, Fx=body.Fx / 1.1, Fy=body.Fy / 2)
    controller = L1(boat, replace(l1.TUNED, delay=0.0))
    window = circle(3.0).window
    state = tuple(window(0.0)[0])
    for k in range(100):
        command = controller.step(state[:3], state[3:], window(k * PERIOD))
        state = dynamics.step(state, [tuple(command)] * 5, body.normalized)
    assert (np.abs(controller.sigma) < 0.03 * b).all()


@BOTH
def test_a_constant_current_leaves_no_offset(kind, roboat):
    state, boat, window = (0.0,) * 6, kind(roboat), hold((0.0, 0.0, 0.5)).window(0.0)
    furthest = 0.0
    for _ in range(1200):
        command = tuple(boat.step(state[:3], state[3:], window))
        state = dynamics.step(state, [command] * 5, roboat.normalized, (0.1, -0.1), roboat.drag)
        furthest = max(furthest, math.hypot(*state[:2]))
    assert furthest > 0.003
    assert math.hypot(*state[:2]) < 1e-3
    assert abs(state[2] - 0.5) < 1e-3


@BOTH
def test_commands_do_not_depend_on_where_north_is(kind, roboat):
    angle, shift = 2.0, np.array([30.0, -70.0])
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    here, there = kind(roboat), kind(roboat)
    reference = circle(3.0)
    state = reference.at(0.0) + np.array([0.2, -0.1, 0.3, 0.1, 0.05, -0.1])
    for k in range(50):
        window = reference.window(k * PERIOD)
        moved, turned = window.copy(), state[:3].copy()
        moved[:, :2], moved[:, 2] = window[:, :2] @ turn.T + shift, window[:, 2] + angle
        turned[:2], turned[2] = turn @ state[:2] + shift, state[2] + angle - math.tau  # wrapped elsewhere
        command = here.step(state[:3], state[3:], window)
        assert there.step(turned, state[3:], moved) == pytest.approx(command, abs=1e-9)
        state = np.array(dynamics.step(tuple(state), [tuple(command)] * 5, roboat.normalized))


@BOTH
def test_a_ship_is_steered_as_its_model_is(kind):
    # Lengths by 10, times by 4: forces by mass * length / time².
    small = Vessel.load("cse1")
    assert small.length
    assert small.beam
    big = replace(
        small,
        length=10 * small.length,
        beam=10 * small.beam,
        m=1000 * small.mass,
        Fx=1000 * 10 / 16 * small.Fx,
        Fy=1000 * 10 / 16 * small.Fy,
        Mz=1000 * 100 / 16 * small.Mz,
        thrusters=(),
    )
    assert l1.estimated_accelerations(big, "") == pytest.approx(l1.estimated_accelerations(small, ""), rel=0.05)
    assert kind(big).vessel is big


@BOTH
def test_a_boat_without_sway_force_is_refused(kind):
    with pytest.raises(InputError, match=f"{kind.__name__} controls each axis separately and needs sway force") as info:
        kind(Vessel.load("heron"))
    assert "\n" not in str(info.value)


@BOTH
@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (0, np.zeros(2), r"pose of shape \(2,\)"),
        (1, [0.0, math.nan, 0.0], r"velocity\[1\] = nan"),
        (2, np.ones((3, 6)), "window"),
    ],
)
def test_bad_inputs_are_refused(kind, place, value, message, roboat):
    inputs = [np.zeros(3), np.zeros(3), circle(3.0).window(0.0)]
    inputs[place] = value
    with pytest.raises(InputError, match=message):
        kind(roboat).step(*inputs)


@BOTH
def test_absurd_states_give_bounded_commands_and_no_growth(kind, roboat):
    random, boat, window = np.random.default_rng(1), kind(roboat), circle(3.0).window(0.0)
    boat.step(np.zeros(3), np.zeros(3), window)
    before = size(boat)
    for k in range(10_000):
        scale = 1e6 if k % 100 else 1.0
        command = boat.step(scale * random.standard_normal(3), scale * random.standard_normal(3), window)
        assert (np.abs(command) <= 1.0).all()
    assert size(boat) == before
    # Afterwards it steers as ever.
    state = sail(boat, roboat, hold((0.0, 0.0, 0.5)).window, 60.0)
    assert math.hypot(*state[:2]) < 0.01


def size(controller):
    """Numbers that a controller holds."""
    values = [v for v in vars(controller).values() if isinstance(v, (np.ndarray, list))]
    return sum(np.size(v) for v in values)


def test_the_covariance_stays_positive_and_bounded_without_excitation(roboat):
    boat, window = RLS(roboat), hold((0.0, 0.0, 0.5)).window(0.0)
    random = np.random.default_rng(2)
    for _ in range(3000):
        boat.step(0.01 * random.standard_normal(3), 0.02 * random.standard_normal(3), window)
    for spread, p in zip(rls.SPREAD, boat.covariance, strict=True):
        assert np.linalg.eigvalsh(p).min() > 0
        assert (np.diag(p) <= spread**2 * (1 + 1e-9)).all()


def test_projection_keeps_what_the_data_say():
    # y = gain * 1 - damping * 1 is known to be 1: when the damping is held at its bound of 10, the gain follows it.
    theta = np.array([12.0, 0.0, 0.0, 11.0, 1.0, 0.0])
    p = np.eye(6)
    p[0, 3] = p[3, 0] = 1 - 1e-6
    lowest, highest = np.array([0, 0, 0, 0, 0.2, -0.4, 0.3]), np.array([20, 3, 3, 10, 4, 0.4, 30.0])
    assert rls.project(theta, p, lowest, highest) == pytest.approx([11, 0, 0, 10, 1, 0], abs=1e-5)


@BOTH
def test_reset_forgets(kind, roboat):
    boat, reference = kind(roboat), circle(3.0)
    runs = [simulate(boat, roboat, reference, Sea.field(), seed=5, duration=5.0).command for _ in range(2)]
    assert (runs[0] == runs[1]).all()
