"""The identified boat in place of an accelerometer: what it expects, what the estimator makes of it, in closed loop."""

import math
from dataclasses import replace

import numpy as np
import pytest

from anyhull import Pilot, Sea, Vessel, rounded_rectangle, simulate
from anyhull.control import Adaptive
from anyhull.hydrodynamics import Normalized
from anyhull.onboard import Estimator
from anyhull.onboard.autopilot import Autopilot
from anyhull.onboard.messages import Acceleration
from anyhull.onboard.process_model import KNOWN, ProcessModel
from anyhull.onboard.setup import Setup
from anyhull.pilot import Dynamics
from anyhull.twin.sea_trial import LEAD_IN, SETTLE, launch
from anyhull.twin.twin import TICK, with_thrusters

FAST = 0.01
PERIOD = 0.1
CERTAIN = Normalized(*[0.01] * 9)


def speed(t):
    """Of a boat that goes to and fro in 2 s, m/s: 1 m/s² at most."""
    return math.sin(math.pi * t) / math.pi


def sail(model, accelerometer=False):
    """Mean error of the surge velocity in the last 15 of 30 s, m/s; `model` makes of the true acceleration its own."""
    estimator, rng, errors = Estimator(), np.random.default_rng(0), []
    for k in range(3000):
        t = k * FAST
        estimator.gyro(t, 0.0)
        estimator.heading(t, 0.01 * rng.normal())
        noise = 0.05 * rng.normal(size=2)
        if accelerometer:
            estimator.acceleration(t, (math.cos(math.pi * t) + noise[0], noise[1]))
        fix = 0.01 * rng.normal(size=2)
        if k % 14 == 0:
            estimator.position(t, (-math.cos(math.pi * t) / math.pi**2 + fix[0], fix[1]))
        if k % 10 == 0:
            found = estimator.at(t)
            if k > 1500:
                errors.append(found.velocity[0] - speed(t))
            if model is not None:
                estimator.expect(t, np.array(model((speed(t + PERIOD) - speed(t)) / PERIOD)), PERIOD)
    return np.abs(errors).mean(), estimator


def test_an_acceleration_that_is_expected_shows_the_velocity_before_fixes_do():
    without, _ = sail(None)
    with_model, estimator = sail(lambda a: (a, 0.0))
    assert with_model < without / 4
    assert estimator.rejected.total() < 5


@pytest.mark.parametrize(
    "wrong", [lambda a: (a + 0.3, -0.3), lambda a: (0.5 * a, 0.0), lambda a: (2 * a, 0.0), lambda a: (-a, 0.0)]
)
def test_a_wrong_model_is_found_out(wrong):
    without, _ = sail(None)
    with_model, _ = sail(wrong)
    assert with_model < 1.25 * without


def test_a_model_that_is_far_off_is_left_for_a_while_that_doubles():
    _, estimator = sail(lambda a: (-3 * a, 0.0))
    assert estimator._filter is not None
    until, following = estimator._filter.distrust
    assert following in (20.0, 40.0, 80.0)
    assert until > 10.0


def test_beside_an_accelerometer_the_model_changes_nothing():
    _, estimator = sail(None, accelerometer=True)
    _, same = sail(lambda a: (-a, 5.0), accelerometer=True)
    assert same.at(30.0).state == pytest.approx(estimator.at(30.0).state, abs=1e-6)


@pytest.mark.parametrize("value", [(math.nan, 0.0), (math.inf, 0.0), (1e300, 0.0), (0.0, -21.0)])
def test_an_acceleration_that_no_boat_has_changes_nothing(value):
    _, estimator = sail(None)
    before = estimator.at(30.2).state
    estimator.expect(30.0, np.array(value), PERIOD)
    assert (estimator.at(30.2).state == before).all()


def test_with_a_model_a_boat_whose_sensors_are_silent_is_lost_as_without():
    _, estimator = sail(lambda a: (a, 0.0))
    for k in range(20):
        t = 30.0 + k * PERIOD
        estimator.expect(t, np.zeros(2), PERIOD)
        assert (estimator.at(t).health == "lost") == (t > 29.99 + estimator.sensors.timeout)


def test_with_a_model_late_measurements_are_taken_as_without():
    _, estimator = sail(lambda a: (a, 0.0))
    for k in range(9):
        estimator.expect(30.0 + k * PERIOD, np.zeros(2), PERIOD)
    # The link stood still for 0.9 s, and then delivers all.
    for k in range(90):
        assert estimator.gyro(30.0 + k * FAST, 0.0)
        assert estimator.heading(30.0 + k * FAST, 0.0)
    assert not estimator.restarts


def test_dynamics_that_explode_expect_nothing_and_are_forgotten():
    e = Vessel.load("roboat-2").normalized
    model, calm = ProcessModel(PERIOD, under_actuated=False), Dynamics(e, CERTAIN, 0.1, None, None, 0.1)
    wild = calm._replace(e=e._replace(c_uv=2700.0, c_rv=50.0))
    state = np.array([0.0, 0.0, 0.0, 3.0, 2.0, 1.0])
    assert model.acceleration(np.ones(3), state, wild) is None
    assert model.acceleration(np.ones(3), state, calm._replace(delay=math.nan)) is None
    assert model.acceleration(np.ones(3), np.zeros(6), calm) is not None


@pytest.mark.parametrize("name", ["roboat-2", "platform-b", "otter-0"])
def test_it_expects_what_the_simulator_does(name):
    vessel = Vessel.load(name)
    vessel = replace(vessel, hydrodynamics=replace(vessel.hull, X_uu=0.0, Y_vv=0.0, N_rr=0.0, X_uuu=0.0, Y_vvv=0.0))
    sea = replace(Sea.field(), delay=(0.13, 0.13))
    log = simulate(Pilot.load(vessel=vessel), vessel, rounded_rectangle(), sea, seed=2, duration=20.0)
    model, found = ProcessModel(PERIOD, vessel.under_actuated), []
    for k in range(len(log.time) - 1):
        c, s = math.cos(log.state[k, 2]), math.sin(log.state[k, 2])
        c_x, c_y = log.current[k]
        current = np.array([c * c_x + s * c_y, -s * c_x + c * c_y])
        known = Dynamics(vessel.disturbed, CERTAIN, 0.13, current, log.force[k], lag=0.0)
        found.append(model.acceleration(log.command[k], log.state[k], known))
    state = log.state
    # Acceleration of a point at rest in the boat: the change of (u, v), and what turns with the frame.
    change, (u, v, r) = np.diff(state[:, 3:5], axis=0) / PERIOD, ((state[:-1, 3:] + state[1:, 3:]) / 2).T
    measured = change + np.column_stack([-r * v, r * u])
    assert np.abs(measured).max() > 0.02
    assert np.array(found) == pytest.approx(measured, abs=1e-5)


def test_the_thrust_follows_by_the_lag():
    # alpha 1, no damping: after commands of one the acceleration is the mean of 1 - e^{-t / lag} over the period.
    e = Normalized(1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, -1.0, 0.0)
    model, lag = ProcessModel(PERIOD, under_actuated=False), 0.2
    known = Dynamics(e, CERTAIN, 0.0, None, None, lag)
    for k in range(5):
        expected = model.acceleration(np.array([1.0, 0.0, 0.0]), np.zeros(6), known)
        assert expected is not None
        surge, sway = expected
        left = math.exp(-PERIOD / lag)
        mean = 1 - lag / PERIOD * (1 - left) * left**k
        # The lag is of steps of a fifth of a period, each with the thrust of its end.
        assert surge == pytest.approx(mean, abs=0.05)
        assert sway == 0.0


def test_dynamics_that_are_not_identified_expect_nothing():
    e = Vessel.load("roboat-2").normalized
    for unknown in (
        None,
        Dynamics(e, CERTAIN, 0.1, None, None),  # of a policy
        Dynamics(e, CERTAIN._replace(alpha_v=KNOWN), 0.1, None, None, 0.1),
    ):
        assert ProcessModel(PERIOD, under_actuated=False).acceleration(np.zeros(3), np.zeros(6), unknown) is None
    uncertain = Dynamics(e, CERTAIN._replace(alpha_v=9.0), 0.1, None, None, 0.1)
    assert ProcessModel(PERIOD, under_actuated=True).acceleration(np.zeros(3), np.zeros(6), uncertain) is not None


def voyage(monkeypatch, model):
    """Mean true error from 15 to 45 s in the twin without an accelerometer, m."""
    if not model:
        monkeypatch.setattr(ProcessModel, "acceleration", lambda *args: None)
    setup = Setup.load("platform-b")
    setup = replace(setup, vessel=with_thrusters(setup.vessel))
    reference, errors = rounded_rectangle(), []
    twin = launch(setup, reference, None, 7, LEAD_IN)
    autopilot = Autopilot(setup, Adaptive(setup.vessel), reference, settle=SETTLE, lead_in=LEAD_IN, session=7)
    for tick in range(round((SETTLE + LEAD_IN + 45.0) / TICK)):
        if tick % round(PERIOD / TICK) == 0 and (step := autopilot.step(tick * TICK)) is not None:
            twin.on_command(step.command)
            if step.phase == "under way":
                errors.append(math.dist(twin.state[:2], step.reference[:2]))
        for message in twin.advance():
            if not isinstance(message, Acceleration):
                autopilot.on_message(message, (tick + 1) * TICK)
    return np.mean(errors[150:])


def test_without_an_accelerometer_the_identified_boat_halves_the_error_in_the_twin(monkeypatch):
    with_model = voyage(monkeypatch, model=True)
    assert with_model < 0.06
    assert with_model < 0.6 * voyage(monkeypatch, model=False)
