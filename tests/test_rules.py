"""The rules of the autopilot: arming, joining, waiting, and what it does on each failure of the boat."""

import itertools
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from doubles import Constant

from anyhull.onboard.autopilot import Autopilot
from anyhull.onboard.fence import Polygon, around
from anyhull.onboard.joining import Approach, approach, retrace
from anyhull.onboard.limits import Limits
from anyhull.onboard.messages import Battery, Command, Gyro, Heading, Leak, Operator, Position, Status, Tilt
from anyhull.onboard.monitors import CommandEcho, ProgressMonitor, ThrusterMonitor
from anyhull.onboard.setup import Setup
from anyhull.onboard.tracker import Tracker
from anyhull.reference import hold, line, rounded_rectangle
from anyhull.vessel import Vessel

BOAT = Path(__file__).parents[1] / "examples" / "boat.toml"
VESSEL = Vessel.load(BOAT)
WITHOUT_SWAY = Vessel.load("otter-25")
LAYOUT = VESSEL.thrusters


class Moored:
    """An autopilot and a boat with exact sensors that stays where it is put, whatever it is told."""

    def __init__(self, reference, *, controller=None, limits=None, pose=(0.0, 0.0, 0.0), fence=None, **options):
        setup = replace(Setup.load(BOAT), limits=limits or Limits(), fence=fence)
        self.autopilot = Autopilot(setup, controller or Constant(0.9, 0.0, 0.0), reference, session=1, **options)
        self.pose, self.time, self.steps = np.array(pose), 0.0, []
        self.in_force: tuple[float, ...] = (0.0,) * 4
        self.accepted, self.stopped = -1, True
        self.thrust, self.rate = None, 0.0
        self._numbers = itertools.count()

    def say(self, kind, *values):
        self.autopilot.on_message(kind(1, next(self._numbers), self.time, *values), self.time)

    def run(self, seconds, answer=True):
        """Run for some seconds; without `answer` the uplink is lost."""
        for _ in range(round(10 * seconds)):
            for _ in range(10):
                self.time += 0.01
                self.say(Gyro, self.rate)
                self.say(Heading, float(self.pose[2]))
            self.say(Position, float(self.pose[0]), float(self.pose[1]))
            self.say(Status, self.in_force, self.stopped, self.accepted, self.thrust)
            step = self.autopilot.step(self.time)
            assert step is not None
            self.steps.append(step)
            if answer:
                self.in_force, self.accepted, self.stopped = step.command.thrusters, step.command.seq, False
        return self.steps[-1]

    def events(self, what):
        return [event.detail for event in self.autopilot.event_log.events if event.what == what]


def test_a_boat_is_armed_when_every_check_has_passed():
    ready: list[bool] = []
    boat = Moored(hold(duration=100.0), checks=(lambda: "" if ready else "disk full",))
    assert boat.run(5.0, answer=False).decision.reaction == "ramp"
    assert "uplink: the boat has stopped its thrusters" in boat.steps[-1].decision.reason
    assert boat.run(3.0).decision.reason == "arming: disk full"
    ready.append(True)
    assert boat.run(1.5).decision.reaction == "run"


def test_a_boat_beyond_the_stated_distance_does_not_start():
    boat = Moored(line(10.0), pose=(-200.0, 0.0, 0.0))
    boat.run(10.0)
    assert boat.autopilot.refused == "the boat is 200.0 m from the reference: must be at most 50 m"
    assert all((step.decision.command == 0).all() for step in boat.steps)


def test_a_boat_within_it_is_led_to_the_start_at_the_stated_speed():
    boat = Moored(line(10.0), pose=(-20.0, 0.0, 0.0), approach=Approach(speed=0.4))
    boat.run(4.0)
    wanted = np.array([step.reference for step in boat.steps[15:]])
    assert boat.steps[-1].phase == "joining"
    assert wanted[0, :2] == pytest.approx((-20.0, 0.0), abs=0.01)
    assert np.hypot(wanted[:, 3], wanted[:, 4]).max() <= 0.4 + 1e-9


def test_an_approach_turns_drives_and_turns_again_and_is_smooth():
    path = approach((0.0, 0.0, 0.0), (0.0, 20.0, math.pi), Approach(speed=0.5, turn_rate=0.2), vessel=VESSEL)
    states = path.at(np.arange(0.0, path.duration, 0.1))
    assert states[0] == pytest.approx([0, 0, 0, 0, 0, 0], abs=1e-9)
    assert path.at(path.duration)[:2] == pytest.approx((0.0, 20.0), abs=1e-6)
    assert math.cos(path.at(path.duration)[2]) == pytest.approx(-1.0)
    assert np.abs(states[:, 5]).max() <= 0.2 + 1e-9
    assert np.hypot(*np.diff(states[:, :2], axis=0).T).max() <= 0.05 + 1e-9
    # On the way the bow points along it.
    assert states[len(states) // 2, 2] == pytest.approx(math.pi / 2, abs=1e-6)


def test_a_short_approach_is_sideways_for_a_boat_with_sway_only():
    how = Approach(speed=0.3)
    crab, turned = (approach((0, 0, 0), (0, 1.5, 0), how, vessel=boat) for boat in (VESSEL, WITHOUT_SWAY))
    assert np.abs(crab.at(np.arange(0, crab.duration, 0.1))[:, 2]).max() < 1e-9
    assert np.abs(turned.at(np.arange(0, turned.duration, 0.1))[:, 2]).max() == pytest.approx(math.pi / 2)


def test_the_way_back_is_the_track():
    track = [(0.0, 0.0), (2.0, 0.0), (4.0, 0.0), (4.0, 2.0), (4.0, 4.0)]
    path = retrace((4.0, 5.0, 0.0), track, Approach(speed=0.5), vessel=VESSEL)
    assert path.at(path.duration)[:2] == pytest.approx((0.0, 0.0), abs=1e-6)
    points = path.at(np.arange(0, path.duration, 0.1))[:, :2]
    corner = np.hypot(*(points - (4.0, 0.0)).T).min()
    assert corner < 1.1


STILL = np.zeros(3)


def tracker(reference, **options):
    return Tracker(reference, options.pop("limits", Limits()), Approach(), VESSEL, **options)


def test_the_reference_waits_while_the_boat_is_stopped_and_starts_again_slowly():
    path = line(100.0, speed=1.0)
    follow, pose = tracker(path, settle=0.1), np.zeros(3)
    for _ in range(100):
        pose = follow.step(0.1, True, False, pose, STILL)[0, :3]
    # From rest to full speed in 3 s the reference loses half of that: 1.5 s, and settling takes the first period.
    assert follow.progress == pytest.approx(9.9 - 1.5, abs=0.2)
    before = follow.progress
    for _ in range(50):
        window = follow.step(0.1, False, False, pose, STILL)
    assert follow.progress == before
    assert (window[:, 3:] == 0).all()
    first = follow.step(0.1, True, False, pose, STILL)
    assert 0 < first[0, 3] <= 0.1
    assert np.diff(first[:, 0]).max() <= 0.011


def test_the_reference_slows_down_for_a_boat_that_falls_behind():
    follow, pose = tracker(line(100.0, speed=1.0), settle=0.1), np.zeros(3)
    for _ in range(600):
        window = follow.step(0.1, True, False, pose, STILL)
    # A boat that does not move: the reference stands where the boat would be stopped.
    assert window[0, 0] == pytest.approx(5.0, abs=0.1)
    assert window[0, 3] < 0.05


def test_a_boat_that_has_drifted_away_goes_back_first():
    follow, pose = tracker(line(100.0, speed=1.0), settle=0.1), np.zeros(3)
    for _ in range(100):
        pose = follow.step(0.1, True, False, pose, STILL)[0, :3]
    left = follow.target
    follow.step(0.1, False, False, pose, STILL)
    pose = pose + np.array([0.0, 3.0, 0.0])
    follow.step(0.1, True, False, pose, STILL)
    assert follow.phase == "joining"
    for _ in range(600):
        if follow.phase != "joining":
            break
        pose = follow.step(0.1, True, False, pose, STILL)[0, :3]
    assert follow.phase in ("holding", "under way")
    assert pose[:2] == pytest.approx(left[:2], abs=0.3)


def test_arrived_means_at_the_end():
    follow, pose = tracker(line(2.0, speed=1.0), settle=0.1), np.zeros(3)
    for _ in range(100):
        follow.step(0.1, True, False, pose, STILL)
    assert follow.progress == 2.0
    assert follow.phase != "arrived"
    follow.step(0.1, True, False, np.array([1.5, 0.0, 0.0]), STILL)
    assert follow.phase == "arrived"


def test_a_mission_is_resumed_where_it_was():
    follow = tracker(line(100.0, speed=1.0), resume=40.0, settle=0.1)
    assert follow.target[:2] == pytest.approx((40.0, 0.0))
    window = follow.step(0.1, True, False, np.array([40.2, 0.0, 0.0]), STILL)
    assert window[0, :2] == pytest.approx((40.0, 0.0))


def test_a_boat_that_runs_aground_is_pushed_for_less_than_ten_seconds():
    boat = Moored(line(50.0, speed=0.6))
    boat.run(30.0)
    high = [np.abs(step.decision.command).max() >= 0.6 for step in boat.steps]
    assert 3.0 < 0.1 * sum(high) < 10.0
    assert boat.autopilot.guard.reaction == "handover"
    assert "high command" in boat.events("no_progress")[0]
    assert not boat.steps[-1].decision.command.any()


def test_station_keeping_against_the_wind_is_progress():
    boat = Moored(hold(duration=100.0))
    assert boat.run(30.0).decision.reaction == "run"


def test_a_moving_boat_at_full_command_makes_progress_and_one_that_spins_away_does_not():
    push, ahead = np.array([1.0, 0.0, 0.0]), np.array([100.0, 0.0, 0.0, 0.6, 0.0, 0.0])
    monitor = ProgressMonitor(Limits())
    assert not any(monitor.step(0.1, push, np.array([0.02 * k, 0, 0]), ahead) for k in range(300))
    monitor = ProgressMonitor(Limits())
    found = [monitor.step(0.1, push, np.array([0.0, 0, 0.05 * k]), ahead) for k in range(300)]
    assert any(found)


def test_a_lost_uplink_ramps_down_and_the_reference_waits():
    boat = Moored(hold(duration=100.0))
    boat.run(4.0)
    before = boat.run(0.1).progress
    lost = boat.run(3.0, answer=False)
    assert "uplink: no command confirmed for" in lost.decision.reason
    assert lost.progress == pytest.approx(before + 1.1, abs=0.2)
    assert (lost.decision.command == 0).all()
    assert boat.run(3.0).decision.reaction == "run"


def test_commands_in_force_that_were_never_sent_stop_the_pilot():
    boat = Moored(hold(duration=100.0), controller=Constant(0.1, 0.0, 0.0))
    boat.run(4.0)
    for _ in range(20):
        boat.run(0.1)
        boat.in_force = (0.9, 0.9, -0.9, 0.9)
    assert boat.autopilot.guard.reaction == "handover"
    assert boat.events("mismatch")[0].startswith("thruster")


def test_the_echo_allows_for_delay_and_slew_and_for_a_former_pilot():
    echo = CommandEcho(Limits())
    for k in range(10):
        echo.sent(Command(1, k, 0.1 * k, (0.1 * k,), (0.0,)), 0.1 * k)
    echo.on_status(Status(2, 0, 0.9, (0.45,), False, 7))
    assert (echo.mismatch, echo.uplink(1.5)) == ("", "")
    assert "no command confirmed for 1.3 s" in echo.uplink(2.0)
    echo.on_status(Status(2, 1, 1.0, (-0.3,), False, 8))
    assert echo.mismatch == "thruster 0 at -0.30, commanded 0.80"
    echo.on_status(Status(2, 2, 1.1, (-0.3,), False, 5000))
    assert echo.mismatch == ""


@pytest.mark.parametrize(
    ("kind", "values", "fault", "reaction"),
    [
        (Battery, (0.1,), "battery", "failsafe"),
        (Leak, (True,), "leak", "failsafe"),
        (Tilt, (0.0, 0.8), "tilt", "handover"),
        (Operator, ("stop",), "operator", "handover"),
        (Operator, ("manual",), "operator", "handover"),
    ],
)
def test_the_boats_own_warnings_have_their_reactions(kind, values, fault, reaction):
    boat = Moored(hold(duration=100.0), controller=Constant(0.1, 0.0, 0.0))
    boat.run(4.0)
    boat.say(kind, *values)
    assert boat.run(2.5).decision.reaction == reaction
    assert fault in boat.steps[-1].decision.reason


def test_the_operators_switch_back_to_auto_rearms():
    boat = Moored(hold(duration=100.0), controller=Constant(0.1, 0.0, 0.0))
    boat.run(4.0)
    boat.say(Operator, "stop")
    assert (boat.run(1.0).decision.command == 0).all()
    assert not boat.autopilot.rearm()
    boat.say(Operator, "auto")
    assert boat.run(1.0).decision.reaction == "run"


def test_a_battery_that_is_low_keeps_the_boat_from_starting():
    boat = Moored(hold(duration=100.0))
    boat.say(Battery, 0.05)
    assert "battery: 5 % of its charge left" in boat.run(5.0).decision.reason
    assert not boat.autopilot.guard.has_run


def test_off_the_path_the_boat_keeps_station_until_rearmed_and_goes_back():
    boat = Moored(line(50.0, speed=0.3), controller=Constant(0.1, 0.0, 0.0))
    boat.run(5.0)
    for k in range(60):
        boat.pose = np.array([0.0, 0.1 * k, 0.0])
        boat.run(0.1)
    assert boat.autopilot.phase == "failsafe"
    assert boat.steps[-1].reference[3:] == pytest.approx(np.zeros(3))
    assert boat.autopilot.rearm()
    boat.run(0.5)
    assert boat.steps[-1].phase == "joining"


def test_after_a_leak_the_boat_returns_along_its_track_where_the_file_says_so():
    limits = Limits(on_failure="return")
    boat = Moored(line(50.0, speed=0.5), controller=Constant(0.1, 0.0, 0.0), limits=limits)
    boat.run(5.0)
    for _ in range(200):
        boat.pose = boat.run(0.1).reference[:3]
    far = float(boat.pose[0])
    assert far > 5
    boat.say(Leak, True)
    for _ in range(1100):
        reference = boat.run(0.1).reference
        boat.pose, boat.rate = reference[:3], float(reference[5])
    assert boat.autopilot.phase == "failsafe"
    assert boat.pose[:2] == pytest.approx((0.0, 0.0), abs=0.5)


def monitor_runs(seconds, command, thrust):
    """A monitor that sees constant commands and the thrusts of `thrust(i, fraction)`; what it says, and when."""
    monitor, said = ThrusterMonitor(LAYOUT, Limits()), []
    fractions = [(abs(c) - 0.05) / 0.95 * (1 if c > 0 else -1) if c else 0.0 for c in command]
    for k in range(round(10 * seconds)):
        given = tuple(thrust(i, fraction) for i, fraction in enumerate(fractions))
        said += [(0.1 * k, line) for line in monitor.on_status(Status(1, k, 0.1 * k, command, False, k, given))]
    return monitor, said


COMMAND = (0.6, 0.6, 0.6, -0.6)


@pytest.mark.parametrize(
    ("thrust", "words"),
    [
        (lambda i, f: 0.0 if i == 2 else f, "thruster 2 dead"),
        (lambda i, f: 0.5 * f if i == 1 else f, "thruster 1 weak, 50 % of its thrust"),
        (lambda i, f: 0.9 if i == 3 else f, "thruster 3 stuck at 88 % of its thrust"),
    ],
)
def test_a_failed_thruster_is_noticed_within_five_seconds(thrust, words):
    monitor, said = monitor_runs(10.0, COMMAND, thrust)
    (when, found), *more = said
    assert found == words
    assert when < 5.0
    assert not more
    assert [known.kind != "good" for known in monitor.conditions].count(True) == 1


def test_thrusters_within_their_tolerance_are_not_accused():
    for exponent, gain in itertools.product((0.9, 1.3), (0.9, 1.1)):
        for size in (0.1, 0.3, 0.6, 1.0):
            command = tuple(size * sign for sign in (1, -1, 1, -1))
            _, said = monitor_runs(10.0, command, lambda i, f: math.copysign(gain * abs(f) ** exponent, f))  # noqa: B023
            assert said == []


def test_the_rest_of_the_thrusters_give_what_they_can():
    monitor, _ = monitor_runs(10.0, COMMAND, lambda i, f: 0.0 if i == 2 else f)
    words, enough = monitor.ability()
    # Three of four: one side pushes with one thruster less.
    assert enough
    assert words.startswith("Fx ")
    assert "of 40.2 N" in words
    assert monitor.usable[2].forward == 0


def test_a_weak_thruster_is_used_as_far_as_it_goes():
    boat = Moored(hold(duration=1000.0), controller=Constant(0.6, 0.0, 0.0))
    boat.run(3.0)
    for _ in range(60):
        boat.run(0.1)
        boat.thrust = (boat.in_force[0], 0.5 * boat.in_force[1], *boat.in_force[2:])
    assert any("thruster 1 weak, 5" in detail for detail in boat.events("thruster"))
    assert boat.events("message failed") == []
    step = boat.run(0.1)
    assert step.allocation.force[0] == pytest.approx(0.6 * 40, rel=0.05)
    # It needs twice the command for the same thrust.
    assert step.allocation.commands[1] > 1.5 * step.allocation.commands[0]


def test_a_boat_without_enough_thrusters_is_handed_over():
    boat = Moored(hold(duration=1000.0), controller=Constant(0.9, 0.0, 0.0))
    boat.run(3.0)
    for _ in range(60):
        boat.run(0.1)
        boat.thrust = (0.0, 0.0, 0.0, *boat.in_force[3:])
    assert boat.autopilot.guard.reaction == "handover"
    assert any(detail.startswith("the boat can only give") for detail in boat.events("thruster"))


def test_a_dead_thruster_is_left_out_of_the_allocation():
    boat = Moored(hold(duration=1000.0), controller=Constant(0.4, 0.0, 0.0))
    boat.run(3.0)
    for _ in range(60):
        boat.run(0.1)
        boat.thrust = (boat.in_force[0], boat.in_force[1], 0.0, boat.in_force[3])
    (said,) = [detail for detail in boat.events("thruster") if "thruster 2 dead" in detail]
    assert "the boat can still give Fx" in said
    step = boat.run(0.1)
    assert step.allocation.commands[2] == 0
    assert step.allocation.force[0] == pytest.approx(0.4 * 40, rel=0.02)


def test_a_boat_without_a_fence_gets_one_around_its_mission():
    boat = Moored(line(50.0, speed=0.3), controller=Constant(0.1, 0.0, 0.0), default_fence=True)
    boat.run(4.0)
    fence = boat.autopilot.guard.fence
    assert fence is not None
    # Ten metres, the file's boat being short.
    assert fence.margin(25.0, 9.0) > 0 > fence.margin(25.0, 11.0)


def test_the_default_fence_is_around_the_mission_and_the_way_to_it():
    fence = around(rounded_rectangle(laps=50), 10.0).with_way((-30.0, 0.0), (0.0, 0.0))
    assert fence.margin(0.0, 3.0) > 6
    assert fence.margin(-15.0, 0.0) == pytest.approx(10.0, abs=0.8)
    assert fence.margin(20.0, 0.0) < 0
    assert len(fence.points) < 200


def failing(boat, seconds, thrust):
    """Run while the thrusters give `thrust(i, command)`."""
    for _ in range(round(10 * seconds)):
        boat.run(0.1)
        boat.thrust = tuple(thrust(i, command) for i, command in enumerate(boat.in_force))


def test_a_boat_whose_thrusters_were_repaired_is_rearmed():
    boat = Moored(hold(duration=1000.0), controller=Constant(0.9, 0.0, 0.0))
    boat.run(3.0)
    failing(boat, 6.0, lambda i, command: 0.0 if i < 3 else command)
    assert boat.autopilot.guard.reaction == "handover"
    failing(boat, 1.0, lambda i, command: command)
    assert boat.autopilot.rearm()
    failing(boat, 10.0, lambda i, command: command)
    assert boat.steps[-1].decision.reaction == "run"
    assert boat.steps[-1].allocation.commands.min() > 0.5


def test_one_whose_thrusters_were_not_is_handed_over_again():
    boat = Moored(hold(duration=1000.0), controller=Constant(0.9, 0.0, 0.0))
    boat.run(3.0)
    failing(boat, 6.0, lambda i, command: 0.0 if i < 3 else command)
    assert boat.autopilot.rearm()
    failing(boat, 6.0, lambda i, command: 0.0 if i < 3 else command)
    assert boat.autopilot.guard.reaction == "handover"


@pytest.mark.parametrize("how", ["stop", "tilt"])
def test_a_boat_with_a_stuck_thruster_is_stopped_like_any_other(how):
    boat = Moored(hold(duration=1000.0), controller=Constant(0.1, 0.0, 0.0))
    boat.run(3.0)
    failing(boat, 6.0, lambda i, command: 0.6 if i == 0 else command)
    assert "stuck" in boat.events("thruster")[0]
    # The others balance it as long as the boat is steered.
    assert np.abs(boat.steps[-1].allocation.commands[1:]).max() > 0.3
    boat.say(*((Operator, "stop") if how == "stop" else (Tilt, 1.0, 0.0)))
    boat.run(5.0)
    assert boat.steps[-1].command.thrusters == (0.0,) * 4
    assert not boat.autopilot.commanding


def test_the_operator_is_followed_only_while_he_is_heard():
    boat = Moored(hold(duration=1000.0), controller=Constant(0.1, 0.0, 0.0))
    boat.run(3.0)
    boat.say(Operator, "manual")
    boat.in_force, boat.accepted = (0.7,) * 4, 20
    boat.run(1.5, answer=False)
    # (0.7 - 0.05) / 0.95 of 4 · 18 N · cos 45°, over the file's limit.
    assert boat.steps[-1].decision.command[0] == pytest.approx(0.684 * 50.9 / VESSEL.Fx, abs=0.01)
    # Then nothing arrives any more.
    for _ in range(40):
        boat.time += 0.1
        step = boat.autopilot.step(boat.time)
    assert step is not None
    assert (step.decision.command == 0).all()


def test_an_operator_who_steers_before_the_start_is_not_followed():
    boat = Moored(hold(duration=1000.0))
    boat.say(Operator, "manual")
    boat.in_force = (0.7,) * 4
    boat.run(3.0, answer=False)
    assert all((step.decision.command == 0).all() for step in boat.steps)


def test_a_boat_that_was_brought_too_far_away_is_not_rearmed():
    boat = Moored(line(50.0, speed=0.3), controller=Constant(0.1, 0.0, 0.0))
    boat.run(5.0)
    boat.say(Operator, "stop")
    boat.run(1.0)
    boat.pose = np.array([-200.0, 0.0, 0.0])
    boat.run(10.0)
    boat.say(Operator, "auto")
    boat.run(3.0)
    assert boat.autopilot.guard.reaction == "handover"
    assert "m from the reference: must be at most 50 m" in boat.steps[-1].decision.reason
    assert not boat.autopilot.refused


def test_a_run_that_has_ended_is_not_rearmed():
    boat = Moored(hold(duration=1000.0))
    boat.run(3.0)
    boat.autopilot.disengage("the end")
    boat.run(3.0)
    assert not boat.autopilot.rearm()
    boat.say(Operator, "stop")
    boat.say(Operator, "auto")
    assert boat.run(2.0).decision.reaction == "handover"


def test_the_way_to_the_reference_stays_inside_the_fence():
    # A fence with a notch between the boat and the start.
    sides = (-5.0, -5.0), (25.0, -5.0), (25.0, 15.0), (15.0, 15.0), (15.0, 2.0), (5.0, 2.0), (5.0, 15.0), (-5.0, 15.0)
    boat = Moored(hold((0.0, 10.0, 0.0), duration=100.0), pose=(20.0, 10.0, 0.0), fence=Polygon(sides))
    boat.run(5.0)
    assert boat.steps[-1].decision.reason == "arming: the straight way to the reference leaves the fence"
    boat.pose = np.array([0.0, 5.0, 0.0])
    boat.run(5.0)
    assert boat.autopilot.guard.reaction == "run"


def test_a_boat_that_moves_comes_to_rest_before_it_goes_back():
    velocity = np.array([0.6, 0.0, 0.1])
    path = approach((0.0, 0.0, 0.3), (-5.0, 0.0, 0.0), Approach(), vessel=VESSEL, velocity=velocity.tolist())
    states = path.at(np.arange(0.0, path.duration, 0.02))
    assert states[0] == pytest.approx([0.0, 0.0, 0.3, 0.6, 0.0, 0.1])
    # Over ground, no step of the speed is larger than the deceleration asks for.
    moved = np.diff(states[:, :2], axis=0) / 0.02
    assert np.hypot(*np.diff(moved, axis=0).T).max() <= 0.15 * 0.02 * 1.05
    # 0.6² / (2 · 0.15) = 1.2 m until it stands.
    assert np.hypot(*states[:, :2].T).max() == pytest.approx(5.0, abs=0.01)
    assert (states[:, :2] @ [math.cos(0.3), math.sin(0.3)]).max() == pytest.approx(1.2, abs=0.01)


def test_the_reference_goes_on_at_the_pace_of_the_boat():
    follow, pose = tracker(line(100.0, speed=1.0), settle=0.1), np.zeros(3)
    for _ in range(100):
        pose = follow.step(0.1, True, False, pose, STILL)[0, :3]
    follow.step(0.1, False, False, pose, STILL)
    window = follow.step(0.1, True, False, pose, np.array([0.8, 0.0, 0.0]))
    assert window[0, 3] == pytest.approx(0.8, abs=0.05)


def test_the_way_back_waits_for_the_boat_and_begins_anew_where_it_is():
    follow, pose = tracker(line(100.0, speed=1.0), settle=0.1, limits=Limits(on_failure="return")), np.zeros(3)
    for _ in range(300):
        pose = follow.step(0.1, True, False, pose, STILL)[0, :3]
        follow.mark_good(pose)
    for _ in range(1000):
        window = follow.step(0.1, True, True, pose, STILL)
    # A boat that does not move: the reference stands where the boat would be stopped.
    assert pose[0] - window[0, 0] == pytest.approx(5.0, abs=0.3)
    # Ten metres on its way back the boat is stopped, drifts 3 m aside, and does not go out again.
    pose = np.array([pose[0] - 10.0, 3.0, math.pi])
    follow.step(0.1, False, True, pose, STILL)
    assert follow.step(0.1, True, True, pose, STILL)[0, :2] == pytest.approx(pose[:2], abs=0.1)
    xs = []
    for _ in range(1500):
        pose = follow.step(0.1, True, True, pose, STILL)[0, :3]
        xs.append(pose[0])
    assert max(xs) < xs[0] + 1.1
    assert pose[:2] == pytest.approx((0.0, 0.0), abs=0.5)


@pytest.mark.parametrize(("message", "below", "above"), [(Battery, 0.16, 0.14), (Tilt, 0.55, 0.65)])
def test_thresholds_of_the_boats_own_warnings(message, below, above):
    boat = Moored(hold(duration=1000.0), controller=Constant(0.1, 0.0, 0.0))
    boat.run(3.0)
    rest = (0.0,) if message is Tilt else ()
    boat.say(message, below, *rest)
    assert boat.run(4.0).decision.reaction == "run"
    boat.say(message, above, *rest)
    assert boat.run(4.0).decision.reaction in ("failsafe", "handover")


def test_six_seconds_of_high_command_without_progress_are_too_many():
    monitor, pose, far = ProgressMonitor(Limits()), np.zeros(3), np.array([2.0, 0.0, 0.0])
    assert all(monitor.step(0.1, np.array([0.59, 0, 0]), pose, far) == "" for _ in range(200))
    monitor.reset()
    said = [monitor.step(0.1, np.array([0.61, 0, 0]), pose, far) for _ in range(70)]
    assert 59 <= [bool(line) for line in said].index(True) <= 60


def test_the_stopping_time_is_half_a_ramp_and_the_time_constant_of_the_damping():
    boat = Moored(hold(duration=10.0))
    assert boat.autopilot.guard.stopping_time == pytest.approx(0.5 + 1 / VESSEL.effective().inv_tau_u)


def test_a_rearm_by_the_switch_holds_for_ten_seconds():
    for wait, expected in ((9.0, "run"), (12.0, "handover")):
        boat = Moored(hold(duration=1000.0), controller=Constant(0.1, 0.0, 0.0))
        boat.run(3.0)
        boat.say(Operator, "stop")
        boat.say(Tilt, 1.0, 0.0)
        boat.run(3.0)
        boat.say(Operator, "auto")
        boat.run(wait)
        boat.say(Tilt, 0.0, 0.0)
        assert boat.run(2.0).decision.reaction == expected


@pytest.mark.parametrize("period", [2.0, 4.0])
def test_a_dead_thruster_is_noticed_under_a_command_that_swings(period):
    monitor, said = ThrusterMonitor(LAYOUT, Limits()), []
    for k in range(50):
        command = 0.7 * math.sin(2 * math.pi * 0.1 * k / period)
        sound = math.copysign(max(abs(command) - 0.05, 0.0) / 0.95, command)
        status = Status(1, k, 0.1 * k, (command,) * 4, False, k, (sound, sound, 0.0, sound))
        said += monitor.on_status(status)
    assert said == ["thruster 2 dead"]


def test_the_lag_of_thrusters_is_no_failure():
    # A lag of 0.45 s, which no file states, under a command that swings.
    for period, lag in itertools.product((1.0, 2.0, 5.0), (0.1, 0.45)):
        monitor, said, given = ThrusterMonitor(LAYOUT, Limits()), [], 0.0
        for k in range(600):
            command = 0.7 * math.sin(2 * math.pi * 0.1 * k / period)
            sound = math.copysign(max(abs(command) - 0.05, 0.0) / 0.95, command)
            given += (sound - given) * -math.expm1(-0.1 / lag)
            said += monitor.on_status(Status(1, k, 0.1 * k, (command,) * 4, False, k, (0.9 * given,) * 4))
        assert said == []


def test_a_long_way_back_is_planned_in_parts():
    follow = tracker(line(5000.0, speed=1.0), settle=0.1, limits=Limits(on_failure="return"))
    for x in range(0, 1000, 2):
        follow.mark_good(np.array([float(x), 0.5 * (x % 4), 0.0]))
    pose = np.array([1000.0, 0.0, 0.0])
    for k in range(60_000):
        window = follow.step(0.1, True, True, pose, STILL)
        pose = window[0, :3]
        if k == 0:
            # 200 points of 2 m.
            assert follow._detour is not None
            assert follow._detour.at(follow._detour.duration)[0] == pytest.approx(600.0)
        if pose[0] < 0.1:
            break
    assert pose[:2] == pytest.approx((0.0, 0.0), abs=0.1)


def test_a_boat_that_a_failsafe_brought_too_far_away_is_not_rearmed():
    boat = Moored(line(50.0, speed=0.3), controller=Constant(0.1, 0.0, 0.0))
    boat.run(5.0)
    boat.say(Leak, True)
    boat.run(1.0)
    boat.pose = np.array([-200.0, 0.0, 0.0])
    boat.run(8.0)
    boat.say(Leak, False)
    assert boat.run(1.0).decision.reaction == "failsafe"
    assert not boat.autopilot.rearm()
    assert "must be at most 50 m" in boat.events("not rearmed")[0]


def test_a_boat_that_never_gets_to_its_reference_is_handed_over():
    boat = Moored(line(50.0, speed=0.3), controller=Constant(0.1, 0.0, 0.0), pose=(-1.5, 0.0, 0.0))
    boat.run(30.0)
    assert boat.steps[-1].phase == "joining"
    boat.run(60.0)
    assert boat.steps[-1].decision.reaction == "handover"
    assert any("not at the reference 60 s after the approach" in detail for detail in boat.events("no_progress"))


def test_turning_is_no_progress_for_a_boat_that_is_away_from_its_reference():
    command, turning = np.array([0.9, 0.0, 0.0]), [np.array([0.0, 0.0, 3.0 - 0.03 * k]) for k in range(100)]
    near, away = ProgressMonitor(Limits()), ProgressMonitor(Limits())
    assert all(near.step(0.1, command, pose, np.array([0.2, 0.0, 0.0])) == "" for pose in turning)
    said = [away.step(0.1, command, pose, np.array([1.2, 0.0, 0.0])) for pose in turning]
    assert 59 <= [bool(line) for line in said].index(True) <= 60


def test_a_boat_that_circles_gets_nowhere():
    monitor, command, said = ProgressMonitor(Limits()), np.array([0.9, 0.0, 0.0]), []
    for k in range(100):
        pose = np.array([0.2 * math.cos(0.15 * k), 0.2 * math.sin(0.15 * k), 0.0])
        said.append(monitor.step(0.1, command, pose, np.array([1.5, 0.0, 0.0])))
    assert 59 <= [bool(line) for line in said].index(True) <= 60
    # One that makes 0.1 m/s of headway does not.
    slow = (np.array([0.01 * k, 0.0, 0.0]) for k in range(200))
    monitor.reset()
    ahead = np.array([1.5, 0.0, 0.0])
    assert all(monitor.step(0.1, command, pose, pose + ahead) == "" for pose in slow)
