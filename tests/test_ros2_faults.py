"""Faults of a ROS 2 network: no crash, no command outside the limits, and the boat is steered again afterwards."""

import math
import os
import signal
import socket
import struct
import time
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from pond import process, waits_for
from ros2_doubles import BOAT, Network, Trial, setup

from anyhull.onboard.links.ros2.cdr import encode
from anyhull.onboard.links.ros2.node import FIX, IMU, ODOMETRY, WRENCH, ROS2Link
from anyhull.onboard.links.ros2.zenoh_transport import ZenohTransport
from anyhull.onboard.messages import RANGES, Command, Odometry, Operator
from anyhull.onboard.messages import decode as decode_datagram
from anyhull.onboard.messages import encode as encode_datagram
from anyhull.reference import hold, line
from anyhull.twin.ros2_boat import ROS2Boat
from anyhull.twin.twin import TICK

VESSEL = setup().vessel
STATION = hold(duration=1000.0)


def underway(reference=STATION, seconds=4.0, **link):
    """A trial whose boat is steered."""
    trial = Trial(setup(**link), reference).run(seconds)
    assert trial.steps[-1].decision.reaction == "run"
    return trial


def reactions(trial, since):
    return {step.decision.reaction for step in trial.steps[since:]}


def recovers(trial, seconds=8.0):
    """Whether the boat is steered again, after all commands were within the limits."""
    trial.run(seconds)
    return trial.steps[-1].decision.reaction == "run" and trial.within_limits()


def events(trial):
    return {what for what, times in trial.autopilot.event_log.counts.items() if times}


def test_a_boat_that_is_killed_and_restarted_is_steered_again():
    trial = underway()
    trial.boat.close()
    trial.boat = None
    before = len(trial.steps)
    trial.run(3.0)
    assert (trial.steps[-1].decision.command == 0).all()
    assert "ramp" in reactions(trial, before)
    assert trial.steps[-1].decision.reason.startswith("lost: lost, no odometry")
    trial.boat = trial.connect_boat()
    assert recovers(trial)
    assert "boat restarted" in events(trial)


def test_a_pilot_that_is_killed_and_restarted_steers_again():
    trial = underway()
    trial.link.close()
    trial.link = trial.connect_pilot()
    before = len(trial.applied)
    assert recovers(trial)
    # The board begins anew with the new publisher once the old one has been silent.
    assert len({command.session for command in trial.applied[before:]}) == 1
    assert trial.boat.rejected["another publisher of /cmd_wrench"] > 0


def test_with_thirty_percent_of_all_messages_lost_the_boat_arrives():
    trial = Trial(setup(), line(5.0), seed=4)
    trial.network.loss = 0.3
    trial.run()
    assert trial.autopilot.phase == "arrived"
    assert trial.within_limits()
    assert trial.log().metrics().position_cm < 30


def test_with_thirty_percent_loss_of_sensors_and_thrusters_the_boat_arrives():
    fields = {"state": "sensors", "origin": (59.0, 10.0), "command": "thrusters", "thrusters": ("a", "b", "c", "d")}
    trial = Trial(setup(**fields), line(5.0), seed=4)
    trial.network.loss = 0.3
    trial.run()
    assert trial.autopilot.phase == "arrived"
    assert trial.within_limits()


def test_reordered_messages_are_sorted_out():
    trial = Trial(setup(), line(5.0), seed=5)
    trial.network.jitter = 0.15  # at 50 Hz up to seven messages overtake one
    trial.run()
    assert trial.autopilot.phase == "arrived"
    assert trial.within_limits()
    assert "odometry out of order" in events(trial)
    assert trial.boat.rejected["command out of order"] > 0
    times = [command.time for command in trial.applied]
    assert times == sorted(times)


@pytest.mark.parametrize("step", [-1000.0, -2.0, 0.2, 1e5])
def test_a_step_of_the_boats_clock_is_followed(step):
    trial = Trial(setup(), STATION)
    trial.twin.set_clock(5000.0)  # so that a stamp never is negative
    trial.run(4.0)
    trial.twin.set_clock(step)
    assert recovers(trial)
    accepted = trial.twin.firmware.accepted
    trial.run(1.0)
    assert trial.twin.firmware.accepted == accepted + 10


@pytest.mark.parametrize("value", [math.nan, 1e30])
def test_numbers_that_are_none_are_rejected(value):
    trial = underway()
    stranger = trial.boat.transport
    before, good = len(trial.steps), trial.boat.transport.publish

    def publish(topic, fields):
        if topic == "/odom":
            fields["twist"]["twist"]["linear"]["x"] = value
        good(topic, fields)

    stranger.publish = publish
    trial.run(3.0)
    assert "ramp" in reactions(trial, before)
    assert all(math.isfinite(value) for step in trial.steps for value in step.decision.command)
    rejected = trial.link.rejected
    assert rejected["not finite"] + rejected["odometry.velocity out of range"] > 100
    stranger.publish = good
    assert recovers(trial)


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        ({"orientation": {"w": 0.0, "x": 0.0, "y": 0.0, "z": 0.0}}, "orientation is no unit quaternion"),
        ({"position": {"x": 1e9, "y": 0.0}}, "odometry.pose out of range"),
    ],
)
def test_a_pose_that_is_none_is_rejected(part, reason):
    trial = underway()
    good = trial.boat.transport.publish

    def publish(topic, fields):
        if topic == "/odom":
            fields["pose"]["pose"] |= part
        good(topic, fields)

    trial.boat.transport.publish = publish
    trial.run(1.0)
    assert trial.link.rejected[reason] > 40
    trial.boat.transport.publish = good
    assert recovers(trial)


def test_a_state_that_is_stated_to_be_uncertain_is_a_lost_one():
    trial = underway()
    good, before = trial.boat.transport.publish, len(trial.steps)

    def publish(topic, fields):
        if topic == "/odom":  # 100 m, and a twist without covariance
            covariance = [0.0] * 36
            covariance[0] = covariance[7] = 1e4
            fields["pose"]["covariance"] = covariance
            fields["twist"].pop("covariance")
        good(topic, fields)

    trial.boat.transport.publish = publish
    trial.run(3.0)
    assert "ramp" in reactions(trial, before)
    assert (trial.steps[-1].decision.command == 0).all()
    trial.boat.transport.publish = good
    assert recovers(trial)


def test_a_topic_that_stops_ramps_the_boat_down():
    trial = underway()
    trial.network.silent.add("/odom")
    before = len(trial.steps)
    trial.run(3.0)
    assert "ramp" in reactions(trial, before)
    assert (trial.steps[-1].decision.command == 0).all()
    trial.network.silent.clear()
    assert recovers(trial)


def test_commands_that_do_not_arrive_let_the_boats_watchdog_stop_it():
    trial = underway()
    trial.network.silent.add("/cmd_wrench")
    trial.run(2.0)
    assert trial.twin.firmware.stopped
    trial.network.silent.clear()
    assert recovers(trial)


def test_someone_elses_odometry_is_not_believed():
    trial = underway()
    stranger = trial.network.node()
    stranger.advertise("/odom", ODOMETRY)
    x = trial.steps[-1].estimate.pose[0]

    def on_tick(now):
        far = {"position": {"x": 500.0}, "orientation": {"w": 1.0}}
        header = {"stamp": {"sec": int(now), "nanosec": 0}, "frame_id": "odom"}
        stranger.publish("/odom", {"header": header, "child_frame_id": "base_link", "pose": {"pose": far}})

    before = len(trial.steps)
    trial.run(3.0, on_tick)
    assert reactions(trial, before) == {"run"}
    assert trial.link.rejected["another publisher of /odom"] > 300
    assert trial.steps[-1].estimate.pose[0] == pytest.approx(x, abs=0.5)
    assert trial.link.unready() == "/odom has several publishers"


@pytest.mark.parametrize("fault", ["frame", "numbers"])
def test_a_publisher_without_a_valid_message_does_not_take_the_boats_place(fault):
    trial = Trial(setup(), STATION)

    def say(topic, kind, fields):  # without being seen as a publisher, which would keep the boat from starting
        trial.network.deliver(topic, encode(kind, fields), b"a stranger      ")

    def on_tick(now):  # from before the boat is heard, and more often than it
        frame = "map" if fault == "frame" else "odom"
        at = {"position": {"x": 0.0 if fault == "frame" else math.inf}, "orientation": {"w": 1.0}}
        say("/odom", ODOMETRY, {"header": {"frame_id": frame}, "pose": {"pose": at}})
        say("/cmd_wrench", WRENCH, {"header": {"stamp": {"sec": 100}}, "wrench": {"force": {"x": 1e9}}})

    trial.run(5.0, on_tick)
    assert trial.steps[-1].decision.reaction == "run"
    assert trial.link.rejected["another publisher of /odom"] + trial.boat.rejected["command outside the limits"] > 0
    assert len(trial.applied) > 20
    assert trial.within_limits()
    assert events(trial).isdisjoint({"boat restarted"})


def test_someone_elses_commands_do_not_reach_the_twins_board():
    trial = underway()
    stranger = trial.network.node()
    stranger.advertise("/cmd_wrench", WRENCH)

    def on_tick(now):
        header = {"stamp": {"sec": int(now), "nanosec": int(1e9 * (now % 1))}}
        stranger.publish("/cmd_wrench", {"header": header, "wrench": {"force": {"x": 40.0}}})

    trial.run(3.0, on_tick)
    assert trial.boat.rejected["another publisher of /cmd_wrench"] > 300
    assert max(abs(part) for command in trial.applied for part in command.wrench) < 1.0
    assert trial.link.unready() == "someone else publishes /cmd_wrench"


@pytest.mark.parametrize("size", [math.nan, math.inf, 41.0, -41.0])
def test_the_twin_takes_no_wrench_outside_its_limits(size):
    trial = Trial(setup(), STATION)
    stranger = trial.network.node()
    stranger.advertise("/cmd_wrench", WRENCH)
    stranger.publish("/cmd_wrench", {"header": {"stamp": {"sec": 1}}, "wrench": {"force": {"x": size}}})
    assert trial.boat.receive(0.0) == []
    assert trial.boat.rejected == {"command outside the limits": 1}


def test_bytes_that_are_no_messages_do_not_stop_the_loop():
    trial = underway()
    good, random = encode(ODOMETRY, {}), trial.network.random

    def on_tick(now):
        junk = random.randbytes(random.randrange(800))
        cut = good[: random.randrange(len(good))]
        for content in (junk, cut, good[:4] + junk):
            trial.network.deliver("/odom", content, b"somebody's     ")
            trial.network.deliver("/cmd_wrench", content, b"somebody's     ")

    before = len(trial.steps)
    trial.run(3.0, on_tick)
    assert reactions(trial, before) == {"run"}
    assert trial.within_limits()


def test_whatever_numbers_a_message_has_the_loop_gets_only_those_in_range():
    network = Network(1)
    odometry = setup(operator="switch", estop="estop").link
    names = ("a", "b", "c", "d")
    sensors = setup(state="sensors", origin=(59.0, 10.0), command="thrusters", thrusters=names).link
    ends: list[Any] = [ROS2Boat(link, network.node(), VESSEL) for link in (odometry, sensors)]
    ends += [ROS2Link(link, network.node(), VESSEL, clock=network.clock) for link in (odometry, sensors)]
    topics = {topic: kind for node in network.nodes for topic, kind in node.subscribed.items()}
    level = {"pose": {"pose": {"orientation": {"w": 1.0}}}}
    fields: dict[str, Any] = {
        ODOMETRY: level,
        IMU: {"orientation": {"w": 1.0}},
        FIX: {"latitude": 59.0, "longitude": 10.0},
    }
    good = {topic: encode(kind, fields.get(kind, {})) for topic, kind in topics.items()}
    random, received = network.random, 0
    for _ in range(5000):
        network.now += 0.01
        topic = random.choice(list(topics))
        content = bytearray(good[topic])
        for _ in range(random.randrange(3)):
            at = 4 + 4 * random.randrange(max(1, (len(content) - 8) // 4))
            number = random.choice((math.nan, math.inf, -math.inf, 1e308, -1.0, 2.0, 1e-300))
            content[at : at + 8] = struct.pack("<d", number)
        network.deliver(topic, bytes(content), b"peer")
        for end in ends:
            for message, _ in end.receive(0.0):
                if isinstance(message, Odometry):
                    assert in_range(message)
                else:
                    decode_datagram(encode_datagram(message))  # raises for a number out of range
                received += 1
    assert received > 2000
    assert not [reason for end in ends for reason in end.rejected if reason.startswith("message failed")]


def in_range(message):
    """Whether the numbers of an odometry are in their ranges."""
    names = ("pose", "velocity")
    bounds = {name: RANGES[f"odometry.{name}"] for name in names} | {"time": RANGES["time"]}
    values = {name: getattr(message, name) for name in names} | {"time": (message.time,)}
    return all(low <= value <= high for name, (low, high) in bounds.items() for value in values[name])


def test_a_flood_is_given_to_the_loop_in_bursts():
    trial = underway()
    for _ in range(5000):
        trial.network.deliver("/odom", encode(ODOMETRY, {}), b"somebody's     ")
    assert recovers(trial, 5.0)


THRUSTERS = {"command": "thrusters", "thrusters": ("a", "b", "c", "d")}


@pytest.mark.parametrize("link", [{}, THRUSTERS])
@pytest.mark.parametrize("mode", ["manual", "stop"])
def test_the_switch_away_from_auto_stops_the_commands_and_back_starts_from_zero(link, mode):
    trial = underway(line(20.0), 6.0, operator="switch", **link)
    assert trial.autopilot.commanding
    trial.twin.operator = mode
    trial.run(1.5)  # the switch is told within a second
    before = len(trial.applied)
    last = trial.applied[-1]
    assert not any((*last.wrench, *last.thrusters))
    trial.run(5.0)
    assert len(trial.applied) == before
    assert trial.steps[-1].decision.reaction == "handover"
    trial.twin.operator = "auto"
    since = len(trial.steps)
    trial.run(4.0)
    assert trial.steps[-1].decision.reaction == "run"
    assert len(trial.applied) > before + 20
    # From zero, in the largest steps of the guard.
    commands = [step.decision.command for step in trial.steps[since - 1 :]]
    assert not commands[0].any()
    most = trial.setup.limits.step + 1e-9
    assert max(abs(b - a).max() for a, b in pairwise(commands)) <= most
    assert any(command.any() for command in commands)


def test_the_emergency_stop_stops_the_boat_whatever_the_switch_says():
    trial = Trial(setup(operator="switch", estop="estop"), line(20.0))
    trial.boat.close()
    trial.boat = ROS2Boat(setup(operator="switch").link, trial.network.node(), VESSEL)
    button = trial.network.node()
    button.advertise("/estop", "std_msgs/msg/Bool")
    pressed: list[bool | None] = [False]

    def on_tick(now):
        if pressed[0] is not None and round(now / TICK) % round(0.7 / TICK) == 0:
            button.publish("/estop", {"data": pressed[0]})

    trial.run(5.0, on_tick)
    assert trial.steps[-1].decision.reaction == "run"
    pressed[0] = True
    trial.run(1.0, on_tick)
    before = len(trial.applied)
    trial.run(15.0, on_tick)  # the switch stays at auto, and says so every second
    assert len(trial.applied) == before
    assert not any(trial.applied[-1].wrench)
    pressed[0] = False
    trial.run(3.0, on_tick)
    assert trial.steps[-1].decision.reaction == "run"
    # A button that is lost counts as pressed, and is not believed again before it was pressed.
    pressed[0] = None
    trial.run(4.0, on_tick)
    assert trial.steps[-1].decision.reaction == "handover"
    assert "message rejected: /estop silent for 3 s, which counts as stop" in events(trial)
    before, pressed[0] = len(trial.applied), False
    trial.run(5.0, on_tick)
    assert len(trial.applied) == before
    assert "message rejected: /estop was silent: set it to stop and back" in events(trial)
    pressed[0] = True
    trial.run(1.0, on_tick)
    pressed[0] = False
    trial.run(3.0, on_tick)
    assert trial.steps[-1].decision.reaction == "run"


def test_a_boat_whose_emergency_stop_is_not_heard_does_not_start():
    trial = Trial(setup(estop="estop"), STATION)
    trial.network.silent.add("/estop")
    trial.run(5.0)
    assert not trial.autopilot.guard.has_run
    assert trial.steps[-1].decision.reason.endswith("nothing is heard on /estop: must be published once a second")
    trial.network.silent.clear()
    assert recovers(trial, 4.0)


def test_a_flood_of_odometry_does_not_hold_back_the_emergency_stop():
    network = Network()
    link = ROS2Link(setup(estop="estop").link, network.node(), VESSEL, clock=network.clock)
    boat = network.node()
    boat.advertise("/odom", ODOMETRY)
    boat.advertise("/estop", "std_msgs/msg/Bool")
    level = {"pose": {"pose": {"orientation": {"w": 1.0}}}}
    boat.publish("/odom", level)
    link.receive(0.0)
    boat.publish("/estop", {"data": True})
    for _ in range(2000):
        boat.publish("/odom", level)
    assert {r.message.mode for r in link.receive(0.0) if isinstance(r.message, Operator)} == {"stop"}


def test_a_transport_that_is_down_ends_neither_reports_nor_commands():
    trial = underway()
    step, broken = trial.steps[-1], trial.link.transport

    def publish(topic, fields):
        raise OSError("down")

    broken.publish = publish
    trial.link.report(step, trial.reference)
    assert trial.link.rejected["report failed: OSError"] == 1
    config = replace(setup().link, router=free_router(), domain=13)
    link = ROS2Link(config, ZenohTransport(config), VESSEL)
    link.close()
    link.report(step, trial.reference)
    link.send(step.command)
    assert link.rejected["not sent"] > 1


def test_a_router_that_is_restarted_under_way_does_not_end_the_run():
    config = replace(setup().link, router=free_router(), domain=14)
    router = ZenohTransport(replace(config, node="router"), route=True)
    link, boat = ROS2Link(config, ZenohTransport(config), VESSEL), ZenohTransport(replace(config, node="boat"))
    boat.advertise("/odom", ODOMETRY)
    boat.subscribe("/cmd_wrench", WRENCH)

    def heard(messages):
        """Whether that many are heard in both directions, and each end knows the other."""
        states, commands, ends = 0, 0, time.monotonic() + 20.0
        while min(states, commands) < messages and time.monotonic() < ends:
            boat.publish("/odom", {"pose": {"pose": {"orientation": {"w": 1.0}}}})
            states += sum(isinstance(found.message, Odometry) for found in link.receive(0.02))
            link.send(Command(1, 0, 1.0, (), (), (0.1, 0.0, 0.0)))
            commands += len(boat.receive(0.0))
        return min(states, commands) >= messages and link.unready() == ""

    try:
        assert heard(1)
        router.close()
        assert heard(100)
        router = ZenohTransport(replace(config, node="router"), route=True)
        assert heard(100)
    finally:
        for end in (link, boat, router):
            end.close()


def free_router():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"tcp/127.0.0.1:{taken.getsockname()[1]}"


def test_a_twin_in_a_process_of_its_own_is_killed_and_comes_back(tmp_path):
    router = free_router()
    boat = tmp_path / "boat.toml"
    stated = f'kind = "ros2"\ntransport = "zenoh"\ndomain = 11\nrouter = "{router}"'
    boat.write_text(BOAT.read_text().replace('kind = "ros2"', stated))
    config = replace(setup().link, router=router, domain=11, transport="zenoh")
    link = ROS2Link(config, ZenohTransport(config), setup().vessel)

    def heard(wanted, seconds=15.0):
        """Whether odometry is heard, or silence."""
        ends, silent = time.monotonic() + seconds, 0
        while time.monotonic() < ends:
            found = any(isinstance(received.message, Odometry) for received in link.receive(0.1))
            silent = 0 if found else silent + 1
            if (wanted and found) or (not wanted and silent > 5):
                return True
        return False

    try:
        with process("twin", "--vessel", boat, "--sea", "light-air") as first:
            waits_for(first.stderr, "anyhull_twin", 20.0)
            assert heard(True)
            os.kill(first.pid, signal.SIGKILL)
            assert heard(False)
            assert link.unready() == "nobody subscribes to /cmd_wrench"
        with process("twin", "--vessel", boat, "--sea", "light-air") as second:
            waits_for(second.stderr, "anyhull_twin", 20.0)
            assert heard(True)
            assert link.unready() == ""
    finally:
        link.close()
