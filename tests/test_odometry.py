"""A finished estimate in place of sensors, and a wrench in place of thruster commands."""

import json
import math
from collections import deque
from dataclasses import replace

import numpy as np
import pytest
from doubles import BOAT, Constant
from numpy.testing import assert_allclose

from anyhull.cli import main
from anyhull.control import PID
from anyhull.errors import InputError
from anyhull.onboard.autopilot import Autopilot
from anyhull.onboard.limits import Limits
from anyhull.onboard.links.udp import UDPConfig
from anyhull.onboard.messages import BadMessage, Command, Heading, Message, Odometry, Operator, Status, decode, encode
from anyhull.onboard.monitors import CommandEcho
from anyhull.onboard.odometry import OdometryMonitor
from anyhull.onboard.sensors import Sensors
from anyhull.onboard.setup import Setup
from anyhull.reference import hold, line
from anyhull.twin import WATERS, Twin, TwinConfig
from anyhull.twin.autopilot_board import AutopilotBoard
from anyhull.twin.sea_trial import sea_trial
from anyhull.twin.twin import TICK, with_thrusters
from anyhull.vessel import Vessel

SURE = (0.02, 0.02, 0.01, 0.05, 0.05, 0.01)


def odometry(time, x=0.0, y=0.0, psi=0.0, u=0.0, v=0.0, r=0.0, std=SURE, health="ok", seq=None):
    return Odometry(1, round(1000 * time) if seq is None else seq, time, (x, y, psi), (u, v, r), std, health)


def settled(**state):
    """A monitor after two seconds of the same state at 50 Hz."""
    monitor = OdometryMonitor()
    for k in range(101):
        assert monitor.odometry(odometry(0.02 * k, **state))
    return monitor


def test_the_state_is_predicted_along_the_arc_from_the_last_message():
    monitor = OdometryMonitor()
    # Circle of 2 m at 0.5 m/s, from (0, 0) along x: after t the boat is at (2 sin, 2 (1 - cos))(t / 4).
    for k in range(101):
        angle = 0.02 * k / 4
        monitor.odometry(odometry(0.02 * k, 2 * math.sin(angle), 2 * (1 - math.cos(angle)), angle, u=0.5, r=0.25))
    estimate = monitor.at(2.2)
    assert_allclose(estimate.pose, (2 * math.sin(0.55), 2 * (1 - math.cos(0.55)), 0.55), atol=1e-5)
    assert_allclose(estimate.velocity, (0.5, 0.0, 0.25))
    assert_allclose(estimate.time, 2.2)
    assert (estimate.health, estimate.valid) == ("ok", True)
    assert_allclose(np.sqrt(np.diag(estimate.covariance)[:6]), SURE)


def test_before_the_first_message_and_for_a_second_after_it_the_boat_does_not_start():
    monitor = OdometryMonitor()
    assert (monitor.at(0.0).health, monitor.at(0.0).reason) == ("starting", "no odometry yet")
    assert not monitor.at(0.0).valid
    for k in range(50):
        monitor.odometry(odometry(0.02 * k))
        assert monitor.at(0.02 * k).health == "starting"
    monitor.odometry(odometry(1.0))
    assert monitor.at(1.0).health == "ok"


def test_a_silent_filter_is_lost_after_the_timeout():
    monitor = settled()
    assert monitor.at(2.0 + 0.69).health == "ok"
    late = monitor.at(2.0 + 0.8)
    assert (late.health, late.reason) == ("lost", "no odometry for 0.8 s")


@pytest.mark.parametrize(
    ("std", "reason"),
    [
        ((1.5, 0.1, 0.01, 0.1, 0.1, 0.01), "position uncertain by 1.5 m"),
        ((0.1, 0.1, 0.2, 0.1, 0.1, 0.01), "heading uncertain by 0.2 rad"),
        ((0.1, 0.1, 0.01, 0.1, 0.6, 0.01), "velocity uncertain by 0.6 m/s"),
    ],
)
def test_an_uncertain_filter_is_lost(std, reason):
    monitor = settled()
    monitor.odometry(odometry(2.02, std=std))
    assert (monitor.at(2.02).health, monitor.at(2.02).reason) == ("lost", reason)


def test_a_filter_that_gives_no_standard_deviation_is_judged_by_the_rest_and_by_what_it_says():
    monitor = settled(std=None)
    assert monitor.at(2.0).health == "ok"
    for health in ("dead reckoning", "lost"):
        monitor = settled(health=health)
        assert (monitor.at(2.0).health, monitor.at(2.0).reason) == (health, "by the boat's own filter")


def test_one_jump_is_rejected_and_a_filter_that_stays_there_is_followed_after_two_seconds():
    monitor = settled()
    assert not monitor.odometry(odometry(2.02, x=3.0))
    assert not monitor.odometry(odometry(2.04, psi=2.0))
    assert monitor.odometry(odometry(2.06))
    assert monitor.rejected == {("odometry", "jump"): 2}
    accepted = [monitor.odometry(odometry(2.08 + 0.02 * k, x=3.0)) for k in range(200)]
    # From the first jump on `restart_after` = 2 s are rejected: the boat is lost after 0.7 s of them.
    assert accepted.index(True) == 100
    assert all(accepted[100:])
    assert monitor.restarts == {"jumps": 1}
    assert monitor.at(2.08 + 3.98).health == "ok"
    assert_allclose(monitor.at(2.08 + 3.98).pose[0], 3.0)


def test_within_what_the_boat_can_have_moved_there_is_no_jump():
    # 0.5 m, and 2 m/s of unknown velocity over 0.1 s, and four of its 2 cm: 0.78 m.
    assert settled().odometry(odometry(2.1, x=0.77))
    assert not settled().odometry(odometry(2.1, x=0.79))


@pytest.mark.parametrize("bad", [{"u": 60.0, "r": 15.0}, {"u": 1.4}, {"v": -1.4}, {"r": 1.9}])
def test_one_absurd_velocity_is_rejected_and_the_true_ones_after_it_are_used(bad):
    # 1 m/s and 5 m/s² over 0.02 s, and four of 5 cm/s: 1.3 m/s; 1 rad/s, 20 rad/s² and four of 0.01: 1.44 rad/s.
    monitor = settled()
    assert not monitor.odometry(odometry(2.02, **bad))
    assert monitor.odometry(odometry(2.04, u=1.2, r=1.4))
    assert monitor.rejected == {("odometry", "jump"): 1}


@pytest.mark.parametrize("number", range(6))
def test_what_is_not_finite_is_rejected_and_the_last_state_stays(number):
    monitor = settled(x=1.0)
    for value in (math.nan, math.inf, -math.inf):
        state = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
        state[number] = value
        assert not monitor.odometry(odometry(2.02, *state))
    assert not monitor.odometry(odometry(2.02, x=1.0, std=(math.nan, *SURE[1:])))
    assert monitor.rejected == {("odometry", "not finite"): 4}
    assert monitor.at(2.02).pose[0] == 1.0


def test_old_messages_are_rejected_and_a_clock_that_was_set_is_followed():
    monitor = settled()
    assert not monitor.odometry(odometry(2.0))
    assert not monitor.odometry(odometry(1.5))
    assert monitor.rejected == {("odometry", "out of order"): 2}
    accepted = [monitor.odometry(odometry(1000 + 0.02 * k)) for k in range(30)]
    assert accepted.index(True) == 18
    assert monitor.restarts == {"clock set": 1}


def test_a_message_with_odometry_and_a_wrench_survive_the_wire_and_others_are_refused():
    for message in (
        odometry(1.0, 2.0, 3.0, 0.5, 0.1, -0.1, 0.2),
        odometry(1.0, std=None, health="dead reckoning"),
        Status(1, 2, 3.0, (), False, 7, None, (0.1, -0.2, 0.3)),
        Command(1, 2, 3.0, (), (), (0.5, -1.0, 1.0), False),
    ):
        assert decode(encode(message)) == message
    for key, value, reason in (
        ("pose", [2e6, 0, 0], "pose: must be from"),
        ("velocity", [0, 0], "velocity: must be a list of 3"),
        ("std", [0.1] * 5, "std: must be a list of 6"),
        ("std", [-1.0] * 6, "std: must be from 0"),
        ("health", "fine", "health: must be 'ok'"),
    ):
        content = encode(odometry(1.0)).decode()
        table = json.loads(content) | {key: value}
        with pytest.raises(BadMessage, match=reason):
            decode(json.dumps(table).encode())


def test_a_wrench_in_force_is_compared_with_those_sent():
    echo = CommandEcho(Limits())
    for k in range(5):
        echo.sent(Command(1, k, 0.1 * k, (), (), (0.1 * k, 0.0, 0.0)), 0.1 * k)
    echo.on_status(Status(1, 1, 0.5, (), False, 4, None, (0.35, 0.0, 0.0)))
    assert echo.mismatch == ""
    echo.on_status(Status(1, 2, 0.6, (), False, 4, None, (0.35, 0.0, -0.2)))
    assert echo.mismatch == "yaw at -0.20, commanded 0.00"


def loaded(tmp_path, link, vessel=BOAT):
    file = tmp_path / "boat.toml"
    file.write_text(f"{vessel}\n[link]\n{link}\n")
    return Setup.load(file)


def test_a_boat_that_allocates_by_itself_needs_no_layout(tmp_path):
    setup = loaded(tmp_path, 'state = "odometry"\ncommand = "wrench"')
    autopilot = Autopilot(setup, Constant(0.2, 0.1, -0.1), hold(duration=60.0))
    sent: list[Command] = []
    accepted = -1
    for k in range(400):
        now = 0.01 * k
        autopilot.on_message(odometry(now, seq=2 * k), now)
        autopilot.on_message(
            Status(1, 2 * k + 1, now, (), False, accepted, None, sent[-1].wrench if sent else None), now
        )
        if k % 10 == 0:
            step = autopilot.step(now)
            assert step is not None
            sent.append(step.command)
            accepted = step.command.seq
    assert autopilot.guard.reaction == "run"
    assert sent[-1].thrusters == ()
    assert_allclose(sent[-1].wrench, (0.2, 0.1, -0.1))
    assert sent[-1].engaged
    # The operator steers at half ahead: the wrench follows, and the return has no bump.
    for k in range(400, 500):
        now = 0.01 * k
        autopilot.on_message(odometry(now, seq=3 * k), now)
        autopilot.on_message(Operator(1, 3 * k + 1, now, "manual"), now)
        autopilot.on_message(Status(1, 3 * k + 2, now, (), False, accepted, None, (0.5, 0.0, 0.0)), now)
        if k % 10 == 0:
            step = autopilot.step(now)
    assert step is not None
    assert_allclose(step.command.wrench, (0.5, 0.0, 0.0))
    assert step.decision.reaction == "handover"


def test_without_a_layout_thruster_commands_are_refused_in_one_line(tmp_path):
    setup = loaded(tmp_path, 'state = "odometry"')
    with pytest.raises(InputError, match="thrusters is missing"):
        Autopilot(setup, Constant(0, 0, 0), hold(duration=60.0))


def test_a_message_of_the_other_kind_of_state_is_an_event(tmp_path):
    setup = loaded(tmp_path, 'state = "odometry"\ncommand = "wrench"')
    autopilot = Autopilot(setup, Constant(0, 0, 0), hold(duration=60.0))
    autopilot.on_message(Heading(1, 0, 0.0, 0.1), 0.0)
    assert autopilot.event_log.events[-1].detail == "heading; [link] state is 'odometry'"


@pytest.mark.parametrize(
    ("link", "words"),
    [
        ('kind = "carrier pigeon"', "link.kind = 'carrier pigeon': must be 'udp'"),
        ('state = "guess"', "link.state = 'guess': must be 'sensors' or 'odometry'"),
        ('command = "sail"', "link.command = 'sail': must be 'thrusters' or 'wrench'"),
    ],
)
def test_a_link_that_does_not_exist_is_refused_in_one_line(tmp_path, capsys, link, words):
    file = tmp_path / "boat.toml"
    file.write_text(f"{BOAT}\n[link]\n{link}\n")
    assert main(["pilot", str(file)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert f"{file}: {words}" in error


@pytest.mark.parametrize("command", ["thrusters", "wrench"])
def test_a_trial_with_the_boats_own_filter_and_mixer_tracks_as_one_with_ours(command):
    vessel = Vessel.load("platform-b")
    errors = {}
    for state in ("sensors", "odometry"):
        setup = Setup(vessel, UDPConfig(state=state, command=command))
        log = sea_trial(
            PID(vessel), setup, line(6.0, speed=0.3), TwinConfig(water=WATERS["light-air"]), seed=2, lead_in=5.0
        )
        assert log.about["arrived"]
        assert log.about["event_counts"] == {}
        errors[state] = log.metrics().position_cm
    assert errors["odometry"] == pytest.approx(errors["sensors"], rel=0.2)


def test_sensors_thresholds_hold_for_odometry_too():
    monitor = OdometryMonitor(Sensors(lost_position=0.01))
    for k in range(101):
        monitor.odometry(odometry(0.02 * k))
    assert monitor.at(2.0).reason == "position uncertain by 0.02 m"


@pytest.mark.parametrize("state", ["sensors", "odometry"])
def test_a_boat_whose_messages_queue_for_seconds_is_not_steered_by_them(state):
    # By its stamps a queue of 3 s looks like a clock that was set back; what tells is that commands are confirmed late.
    vessel = Vessel.load("platform-b")
    setup = replace(Setup(vessel, UDPConfig(state=state)), vessel=with_thrusters(vessel))
    twin = Twin(setup.vessel, TwinConfig(water=WATERS["light-air"]), seed=1)
    board = AutopilotBoard(twin, setup.link, setup.sensors)
    autopilot = Autopilot(setup, PID(vessel), hold(duration=200.0), session=1)
    waiting: deque[tuple[float, Message]] = deque()
    reactions = {}
    for tick in range(round(40.0 / TICK)):
        now = tick * TICK
        delay = 3.0 if now > 15.0 else 0.0
        waiting.extend((now + delay, message) for message in board.advance())
        while waiting and waiting[0][0] <= now:
            autopilot.on_message(waiting.popleft()[1], now)
        if tick % 20 == 0 and (step := autopilot.step(now)) is not None:
            reactions[round(now, 1)] = step.decision.reaction
            board.on_command(step.command)
    assert reactions[14.9] == "run"
    assert all(reaction != "run" for now, reaction in reactions.items() if now > 17.0)
