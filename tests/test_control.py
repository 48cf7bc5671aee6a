"""The model predictive and the cascaded controller."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from anyhull import (
    InputError,
    Sea,
    Vessel,
    catalogue,
    circle,
    dynamics,
    hold,
    line,
    rounded_rectangle,
    simulate,
)
from anyhull.control import MPC, PID, mpc
from anyhull.vessel import PLATFORMS


def mean_errors(controller):
    """Position (cm) and heading (degrees) errors over the paper's lap, ideal conditions, mean of the platforms."""
    runs = [
        simulate(controller(vessel), vessel, rounded_rectangle()).metrics() for vessel in map(Vessel.load, PLATFORMS)
    ]
    return np.mean([run.position_cm for run in runs]), np.mean([run.heading_deg for run in runs])


def field(vessel):
    return MPC(vessel, "field")


@pytest.fixture(scope="module")
def roboat():
    return Vessel.load("roboat-3")


@pytest.fixture
def situation():
    """A boat some centimetres and degrees off a circle: pose, velocity, window."""
    window = circle(3.0).window(4.0)
    return window[0, :3] + [0.05, -0.03, 0.1], window[0, 3:] + [-0.1, 0.02, 0.05], window


def test_tight_mpc_tracks_as_well_as_a_perfect_model_can():
    position, heading = mean_errors(MPC)
    assert position <= 0.002
    assert heading <= 0.03


def test_paper_mpc_gives_the_papers_figures():
    # The paper's table of its simulation study: 0.33 cm, 0.07°.
    position, heading = mean_errors(lambda vessel: MPC(vessel, "paper"))
    assert 0.325 <= position <= 0.335
    assert 0.065 <= heading <= 0.075


@pytest.mark.parametrize("name", ["roboat-1", "csad", "vtec-s3"])
def test_the_model_on_symbols_is_the_model_on_floats(name):
    vessel = Vessel.load(name)
    state, command = (0.3, -0.2, 0.7, 0.5, -0.1, 0.2), (0.4, -0.3, 0.2)
    after = dynamics.step(state, [command] * mpc.parts(vessel), vessel.normalized, drag=vessel.drag)
    assert np.asarray(mpc.model(vessel)(state, command)).ravel() == pytest.approx(after, abs=1e-14)


@pytest.mark.parametrize("name", catalogue())
def test_the_model_is_exact_to_a_small_part_of_the_motion(name):
    vessel = Vessel.load(name)
    state, command = (0.0, 0.0, 0.4, min(0.6, vessel.top_speeds[0]), 0.05, 0.2), (0.5, 0.3, -0.4)
    fine = dynamics.step(state, [command] * 200, vessel.normalized, drag=vessel.drag)
    motion = np.abs(np.subtract(fine, state)).max()
    assert np.asarray(mpc.model(vessel)(state, command)).ravel() == pytest.approx(fine, abs=2e-4 * motion)


@pytest.mark.parametrize(("name", "parts"), [("platform-b", 1), ("roboat-1", 1), ("vtec-s3", 10)])
def test_steps_of_the_model_follow_the_damping_rate(name, parts):
    # 0.1 s × 2.13 1/s = 0.2 and 0.1 × 0.6 = 0.06 fit in one step of 0.7; 0.1 × 66.7 = 6.7 takes ten.
    assert mpc.parts(Vessel.load(name)) == parts


@pytest.mark.parametrize("controller", [MPC, field, PID])
@pytest.mark.parametrize("turns", [-3, 1])
def test_whole_turns_of_the_heading_change_nothing(controller, turns, roboat, situation):
    pose, velocity, window = situation
    command = controller(roboat).step(pose, velocity, window)
    turned = controller(roboat).step(pose + np.array([0.0, 0.0, turns * math.tau]), velocity, window)
    assert turned == pytest.approx(command, abs=1e-9)


@pytest.mark.parametrize("controller", [MPC, field, PID])
def test_turning_and_moving_the_world_changes_nothing(controller, roboat, situation):
    pose, velocity, window = situation
    angle, shift = 2.1, np.array([300.0, -40.0])
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])

    def moved(states):
        return np.concatenate([states[..., :2] @ turn.T + shift, states[..., 2:3] + angle, states[..., 3:]], axis=-1)

    first, second = controller(roboat), controller(roboat)
    for _ in range(3):
        here, there = first.step(pose, velocity, window), second.step(moved(pose), velocity, moved(window))
        assert there == pytest.approx(here, abs=1e-8)
    assert np.abs(here).max() > 0.01


@pytest.mark.parametrize("controller", [MPC, field, PID])
def test_a_boat_far_off_comes_back_within_its_limits(controller, roboat):
    boat = controller(roboat)
    log = simulate(boat, roboat, hold(duration=60.0), start=(-5.0, 5.0, 3.0, 0.0, 0.0, 0.0))
    assert np.abs(log.command).max() <= 1.0
    assert log.position_error[-100:].max() < 0.01
    assert np.abs(log.heading_error[-100:]).max() < math.radians(1.0)


@pytest.mark.parametrize("controller", [MPC, field, PID])
def test_after_reset_a_run_repeats(controller, roboat):
    boat = controller(roboat)
    first, second = (simulate(boat, roboat, circle(), Sea.field(), duration=3.0).command for _ in range(2))
    assert np.array_equal(first, second)


@pytest.mark.parametrize("controller", [MPC, PID])
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda p, v, w: (p * [1.0, np.nan, 1.0], v, w), r"pose\[1\] = nan"),
        (lambda p, v, w: (p, v[:2], w), r"velocity of shape \(2,\)"),
        (lambda p, v, w: (p, v, w[:-1]), r"window of shape \(10, 6\): must have shape \(11, 6\)"),
    ],
)
def test_input_that_is_no_state_is_refused(controller, spoil, message, roboat, situation):
    with pytest.raises(InputError, match=message):
        controller(roboat).step(*spoil(*situation))


def test_an_unknown_tuning_is_answered_with_the_known_ones(roboat):
    with pytest.raises(InputError, match="tuning = 'soft': must be one of 'tight', 'paper', 'field'"):
        MPC(roboat, "soft")


def test_without_casadi_the_error_says_what_to_install(roboat, monkeypatch):
    monkeypatch.setattr(mpc, "ca", None)
    with pytest.raises(InputError, match=r"pip install 'anyhull\[mpc\]'"):
        MPC(roboat)


def test_importing_the_controllers_imports_no_casadi():
    code = "import sys, anyhull.control as c; c.PID; assert 'casadi' not in sys.modules; c.MPC; import casadi"
    subprocess.run([sys.executable, "-c", code], check=True)


class Failing:
    """A solver that ends with this value, and says that it failed."""

    def __init__(self, value):
        self.value = value

    def __call__(self, **call):
        return {"x": np.zeros(90) + self.value}

    def stats(self):
        return {"success": False, "return_status": "Infeasible_Problem_Detected"}


@pytest.mark.parametrize(("tuning", "length"), [("tight", 10), ("field", 9)])
def test_failed_solves_follow_the_last_plan_and_then_let_the_boat_drift(tuning, length, roboat, situation):
    boat = MPC(roboat, tuning)
    assert boat.step(*situation) == pytest.approx(boat._plan[0])
    assert (boat.status, boat.failures) == ("Solve_Succeeded", 0)
    plan, solver = boat._plan, boat._solver
    assert plan.shape == (length, 3)
    boat._solver = Failing(np.nan)
    for k in range(1, length):
        assert boat.step(*situation) == pytest.approx(plan[k])
        assert (boat.status, boat.failures) == ("Infeasible_Problem_Detected", k)
    for k in range(length, length + 3):
        assert (boat.step(*situation) == 0).all()
        assert boat.failures == k
    boat._solver = solver
    assert np.abs(boat.step(*situation)).max() > 0.01
    assert (boat.status, boat.failures) == ("Solve_Succeeded", length + 2)


def test_a_first_solve_that_fails_is_answered_with_the_zero_command(roboat, situation):
    boat = MPC(roboat)
    # Full astern, sideways and round costs more than the zeros it started from, and is no plan.
    boat._solver = Failing(-1.0)
    assert (boat.step(*situation) == 0).all()
    assert boat.failures == 1


def test_a_solver_that_raises_is_a_failed_solve(roboat, situation):
    def raises(**call):
        raise RuntimeError("in some function\nnot a number")

    boat = MPC(roboat)
    boat._solver = raises
    assert (boat.step(*situation) == 0).all()
    assert (boat.status, boat.failures) == ("not a number", 1)


@pytest.mark.parametrize("tuning", mpc.TUNINGS)
def test_full_command_for_as_long_as_it_takes_is_no_failure(tuning, roboat, situation):
    pose, velocity, window = situation
    boat = MPC(roboat, tuning)
    for _ in range(30):
        command = boat.step(pose + np.array([50.0, -80.0, 2.0]), velocity, window)
    assert np.abs(command) == pytest.approx([1.0, 1.0, 1.0], abs=1e-6)
    assert boat.failures == 0


@pytest.mark.parametrize("tuning", mpc.TUNINGS)
def test_a_run_beyond_the_boats_strength_is_driven_to_its_end(tuning):
    # In the current of this sea C/S Enterprise I has no way to keep up with 0.6 m/s.
    vessel = Vessel.load("cse1")
    boat = MPC(vessel, tuning)
    log = simulate(boat, vessel, rounded_rectangle(), Sea.field(), duration=30.0)
    assert len(log.time) == 300
    assert log.metrics().saturation > 0.1
    assert boat.failures == 0


def test_a_solve_cut_short_counts_if_it_gained(roboat, situation):
    boat = MPC(roboat)
    pose, velocity, window = situation
    # The boat is to be two metres ahead: full ahead is better than the zeros it started from.
    window = np.tile([*(pose[:2] + 2 * np.array([math.cos(pose[2]), math.sin(pose[2])])), pose[2], 1.0, 0, 0], (11, 1))
    boat._solver = Failing(np.tile([1.0, 0.0, 0.0] + [0.0] * 6, 10))
    assert boat.step(pose, velocity, window) == pytest.approx([1.0, 0.0, 0.0])
    assert boat.failures == 0


@pytest.mark.parametrize(
    ("tuning", "name", "factor"), [("tight", "platform-b", 100), ("tight", "roboat-1", 100), ("field", "roboat-1", 10)]
)
def test_predicting_over_the_delay_makes_up_for_it(tuning, name, factor):
    vessel, sea = Vessel.load(name), Sea(delay=(0.1, 0.1))
    without, predicted = (
        simulate(MPC(vessel, replace(mpc.TUNINGS[tuning], delay=delay)), vessel, rounded_rectangle(), sea, duration=20)
        for delay in (0, 1)
    )
    assert predicted.metrics().position_cm < without.metrics().position_cm / factor
    assert predicted.metrics().heading_deg < without.metrics().heading_deg / factor
    assert predicted.metrics().position_cm < 0.1


def test_a_delay_of_two_periods_is_made_up_for_too():
    vessel, sea = Vessel.load("platform-b"), Sea(delay=(0.2, 0.2))
    boat = MPC(vessel, replace(mpc.TUNINGS["tight"], delay=2))
    assert simulate(boat, vessel, rounded_rectangle(), sea, duration=20).metrics().position_cm < 0.1


def test_the_observer_finds_a_constant_force_and_takes_out_its_offset():
    vessel, push = Vessel.load("platform-b"), np.array([0.1, -0.05, 0.02])
    window = hold((0.0, 0.0, 0.5)).window(0.0)

    def drift(observer):
        """The controller, and the boat after half a minute of that push under commands a period late."""
        boat = MPC(vessel, replace(mpc.TUNINGS["field"], observer=observer))
        state, command = (0.0, 0.0, 0.5, 0.0, 0.0, 0.0), np.zeros(3)
        for _ in range(300):
            late, command = command, boat.step(state[:3], state[3:], window)
            state = dynamics.step(state, [late + push] * 5, vessel.normalized, drag=vessel.drag)
        return boat, state

    boat, state = drift(0.1)
    assert boat.force == pytest.approx(push, abs=1e-4)
    # The weight on the command itself leaves a tenth of a millimetre.
    assert math.hypot(*state[:2]) < 2e-4
    assert abs(state[2] - 0.5) < 1e-4
    boat, state = drift(0.0)
    assert (boat.force == 0).all()
    assert math.hypot(*state[:2]) > 0.005


def test_a_penalty_on_change_smooths_the_command(roboat, situation):
    soft = replace(mpc.TUNINGS["tight"], rate=1e6)
    # Against that weight nothing moves from the last command, which was none.
    assert MPC(roboat, soft).step(*situation) == pytest.approx([0.0, 0.0, 0.0], abs=1e-3)
    assert np.abs(MPC(roboat).step(*situation)).max() > 0.1


@pytest.mark.parametrize("name", PLATFORMS)
def test_field_mpc_is_closer_than_pid_in_the_field(name):
    vessel = Vessel.load(name)
    # Seed 0 has a delay of 127 ms, seed 2 of 52 ms.
    (position, heading), (pid_position, pid_heading) = (
        np.mean(
            [
                (run.position_cm, run.heading_deg)
                for seed in (0, 2)
                for run in [simulate(boat, vessel, rounded_rectangle(), Sea.field(), seed=seed, duration=24).metrics()]
            ],
            axis=0,
        )
        for boat in (field(vessel), PID(vessel))
    )
    assert position < pid_position
    assert heading < pid_heading


@pytest.mark.parametrize(
    ("knob", "message"),
    [({"delay": 10}, "delay = 10: must be 0 to 9"), ({"observer": 1.5}, r"observer = 1\.5: must be 0 to 1")],
)
def test_a_tuning_that_cannot_be_is_refused(knob, message):
    with pytest.raises(InputError, match=message):
        replace(mpc.TUNINGS["field"], **knob)


def test_mpc_steers_a_boat_that_cannot_push_sideways():
    heron = Vessel.load("heron")
    boat = MPC(heron)
    # On a circle such a boat drifts outwards at c_ru·r·u·tau_v = 8 cm/s and cannot be on it and along it at once.
    log = simulate(boat, heron, circle(8.0))
    assert (log.command[:, 1] == 0).all()
    assert log.metrics().position_cm < 20.0
    assert boat.failures == 0
    assert simulate(boat, heron, line()).metrics().position_cm < 0.002


def test_mpc_is_silent(roboat, situation, capfd):
    pose, velocity, window = situation
    boat = MPC(roboat)
    boat.step(pose, velocity, window)
    boat.step(pose + np.array([50.0, -80.0, 2.0]), velocity, window)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", PLATFORMS)
def test_pid_tracks_every_platform(name):
    # Roboat 3 turns into a 2 m corner only over seconds: it has 0.4 rad/s² for a yaw rate that jumps by 0.3 rad/s.
    vessel = Vessel.load(name)
    metrics = simulate(PID(vessel), vessel, rounded_rectangle()).metrics()
    assert metrics.position_cm < 0.06
    assert metrics.heading_deg < (1.5 if name == "roboat-3" else 0.12)


@pytest.mark.parametrize("name", PLATFORMS)
def test_pid_stands_the_longest_delay_of_the_field(name):
    vessel = Vessel.load(name)
    metrics = simulate(PID(vessel), vessel, rounded_rectangle(), Sea(delay=(0.2, 0.2))).metrics()
    assert metrics.position_max_cm < 7.0
    assert metrics.roughness < 0.05


def test_pid_takes_out_a_constant_current():
    vessel, current = Vessel.load("platform-b"), (0.1, -0.1)
    boat, state = PID(vessel), (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    window = hold((0.0, 0.0, 0.5)).window(0.0)
    furthest = 0.0
    for _ in range(300):
        command = tuple(boat.step(state[:3], state[3:], window))
        state = dynamics.step(state, [command] * 5, vessel.normalized, current, vessel.drag)
        furthest = max(furthest, math.hypot(*state[:2]))
    assert furthest > 0.01
    assert math.hypot(*state[:2]) < 1e-4
    assert abs(state[2] - 0.5) < 1e-4


@pytest.mark.parametrize("name", [name for name in catalogue() if Vessel.load(name).actuation == "full"])
def test_pid_holds_every_fully_actuated_vessel_of_the_catalogue(name):
    vessel = Vessel.load(name)
    speed, size = min(0.6, vessel.top_speeds[0] / 2), 1.0
    while (reference := rounded_rectangle(10 * size, 6 * size, 2 * size, speed=speed)).infeasible(vessel):
        size *= 1.5
    metrics = simulate(PID(vessel), vessel, reference).metrics()
    assert metrics.position_max_cm < 10.0
    assert metrics.heading_deg < 15.0


def test_pid_refuses_a_boat_that_cannot_push_sideways():
    with pytest.raises(InputError, match="needs Fy > 0"):
        PID(Vessel.load("heron"))
