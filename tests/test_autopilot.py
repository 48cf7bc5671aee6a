"""The autopilot under faults, in simulated time."""

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anyhull.control import PID
from anyhull.errors import InputError
from anyhull.onboard.autopilot import Autopilot
from anyhull.onboard.messages import Command, Gyro, Heading, Position, Status
from anyhull.onboard.setup import Setup
from anyhull.reference import hold, rounded_rectangle
from anyhull.twin import WATERS, TwinConfig
from anyhull.twin.faults import KINDS, Fault, Rig, random_faults
from anyhull.vessel import Vessel

BOAT = Path(__file__).parents[1] / "examples" / "boat-b.toml"
LIGHT_AIR = TwinConfig(water=WATERS["light-air"])


def rig(*faults, seconds=11.0, seed=0, **settings):
    """A boat on the paper's rectangle at half its speed under some faults, after a while."""
    setup = replace(Setup.load(BOAT), **settings)
    found = Rig(setup, PID(setup.vessel), rounded_rectangle(speed=0.3), list(faults), config=LIGHT_AIR, seed=seed)
    found.run(seconds)
    assert found.violations == []
    return found


def error(found):
    """True distance to the reference now, m."""
    return float(np.hypot(*(np.array(found.twin.state[:2]) - found.steps[-1].reference[:2])))


def events(found, what):
    return [event for event in found.autopilot.event_log.events if event.what == what]


def test_without_faults_the_boat_is_not_stopped():
    found = rig()
    assert found.autopilot.phase == "under way"
    assert found.autopilot.event_log.counts["stop"] == 0
    assert found.trips == found.twin.firmware.trips == 0
    assert found.twin.firmware.rejected == {}
    assert error(found) < 0.1


def test_a_third_of_the_fixes_lost_is_tolerated():
    found = rig(Fault("fixes lost", 4.0, 7.0, share=0.3))
    assert found.autopilot.event_log.counts["stop"] == 0
    assert found.autopilot.received["position"] < 0.9 * 7 * 11
    assert error(found) < 0.15


def test_three_seconds_without_a_fix_are_bridged_by_dead_reckoning():
    found = rig(Fault("fixes lost", 5.0, 3.0))
    begins, ends = events(found, "dead_reckoning")
    assert begins.detail.startswith("position silent")
    assert ends.detail == "cleared"
    assert ends.time - begins.time == pytest.approx(3.0 - 0.7, abs=0.4)
    assert found.autopilot.event_log.counts["stop"] == 0
    assert error(found) < 0.25


def test_one_flipped_heading_is_rejected():
    found = rig(Fault("heading flipped", 6.0, 0.01))
    assert found.autopilot.event_log.counts["heading outlier"] == 1
    assert found.autopilot.event_log.counts["stop"] == 0
    assert error(found) < 0.1


def test_headings_that_stay_flipped_stop_the_boat_and_it_recovers():
    found = rig(Fault("heading flipped", 5.0, 4.0), seconds=20.0)
    assert events(found, "estimator restarted, heading outliers")
    assert found.autopilot.event_log.counts["stop"] >= 1
    assert found.autopilot.guard.reaction == "run"
    assert abs((found.twin.state[2] - found.steps[-1].estimate.pose[2] + np.pi) % (2 * np.pi) - np.pi) < 0.1


def test_nan_in_messages_is_rejected_and_recorded():
    found = rig(Fault("nan", 5.0, 3.0, share=0.5))
    assert found.rejected["x: must be a finite number"] > 10
    assert found.rejected["psi: must be a finite number"] > 100
    assert events(found, "message rejected: psi: must be a finite number")
    assert found.autopilot.event_log.counts["stop"] == 0
    assert error(found) < 0.15


def test_duplicates_and_messages_out_of_order_are_tolerated():
    found = rig(Fault("duplicated", 4.0, 4.0), Fault("reordered", 6.0, 4.0, share=0.5))
    assert events(found, "duplicate message")
    assert events(found, "late message")
    assert found.autopilot.estimator.rejected["heading", "out of order"] > 50
    assert found.autopilot.event_log.counts["stop"] == 0
    assert error(found) < 0.25


@pytest.mark.parametrize("by", [-1000.0, -0.5, 0.5, 20.0, 1e5])
def test_a_clock_that_is_set_is_found_and_followed(by):
    found = rig(Fault("clock set", 6.0, size=by), seconds=12.0)
    assert found.autopilot.guard.reaction == "run"
    assert found.steps[-1].estimate.health == "ok"
    assert found.steps[-1].time == pytest.approx(found.twin.time, abs=0.15)
    assert len(events(found, "clock set")) == 1
    assert found.twin.firmware.rejected["stale"] <= 10


def test_a_boat_that_restarts_is_steered_again():
    found = rig(Fault("boat restarted", 6.0), seconds=13.0)
    assert len(events(found, "boat restarted")) == 1
    assert found.autopilot.event_log.counts["stop"] == 1
    assert found.autopilot.guard.reaction == "run"
    assert found.twin.firmware.accepted > 20
    assert found.steps[-1].time == pytest.approx(found.twin.time, abs=0.15)


def test_the_watchdog_stops_the_boat_of_a_frozen_pilot():
    found = rig(Fault("pilot frozen", 6.0, 2.0), seconds=13.0)
    assert found.twin.firmware.trips == 1
    assert [event.what for event in found.autopilot.event_log.events].count("overrun") == 2
    assert found.autopilot.guard.reaction == "run"


def test_after_a_lost_uplink_commands_start_from_zero():
    # The pilot knows nothing of a lost uplink but by the boat's status; its step is small, so a jump would show.
    setup = Setup.load(BOAT)
    limits = replace(setup.limits, step=0.1)
    found = rig(Fault("uplink lost", 8.0, 2.0), seconds=9.95, limits=limits)
    assert found.autopilot.status.stopped
    assert (found.steps[-1].decision.command == 0).all()
    assert found.steps[-1].decision.reason == "uplink: the boat has stopped its thrusters"
    # The reference waits.
    assert found.steps[-1].progress == found.steps[-10].progress
    found.run(4.0)
    assert not found.autopilot.status.stopped
    assert found.autopilot.guard.reaction == "run"
    assert found.violations == []


def test_garbage_on_the_port_is_tolerated():
    found = rig(Fault("garbage", 4.0, 6.0))
    assert sum(found.rejected.values()) > 1000
    assert found.rejected["not JSON"] > 500
    assert len(events(found, "message rejected: not JSON")) <= 4
    assert found.autopilot.event_log.counts["stop"] == 0


@pytest.mark.parametrize("seed", range(2))
def test_faults_of_all_kinds_together(seed):
    faults = random_faults(16.0, np.random.default_rng(seed), every=0.5)
    found = rig(*faults, seconds=17.0, seed=seed)
    assert len({fault.kind for fault in faults}) > len(KINDS) / 2
    assert (found.event_counts + found.autopilot.event_log.counts).total() > 10


def test_an_autopilot_needs_thrusters_and_sends_nothing_before_the_first_message():
    vessel = Vessel.load("platform-a")
    with pytest.raises(InputError, match="Platform A: thrusters is missing: the loop on a boat needs a layout"):
        Autopilot(Setup(vessel), PID(vessel), hold())
    setup = Setup.load(BOAT)
    autopilot = Autopilot(setup, PID(setup.vessel), hold())
    assert autopilot.step(0.0) is None
    autopilot.on_message(Gyro(1, 0, 5.0, 0.0), 0.0)
    step = autopilot.step(0.1)
    assert step is not None
    assert step.time == pytest.approx(5.1)
    assert step.phase == "waiting"
    assert not any(step.command.thrusters)
    # A command is for the boat; from the boat it is unexpected.
    autopilot.on_message(Command(1, 1, 5.1, (), ()), 0.1)
    assert autopilot.event_log.counts["unexpected message"] == 1


def test_a_late_status_is_ignored():
    setup = Setup.load(BOAT)
    autopilot = Autopilot(setup, PID(setup.vessel), hold())
    autopilot.on_message(Status(1, 5, 1.0, (0.0,) * 4, True, -1), 0.0)
    autopilot.on_message(Status(1, 4, 0.9, (0.1,) * 4, False, 3), 0.0)
    assert autopilot.status is not None
    assert autopilot.status.stopped


class Resets:
    """Commands nothing, and counts how often it is reset."""

    count = 0

    def reset(self):
        self.count += 1

    def step(self, pose, velocity, window):
        return np.zeros(3)


def test_the_controller_is_reset_when_the_guard_is_rearmed_between_two_steps():
    controller = Resets()
    autopilot = Autopilot(Setup.load(BOAT), controller, hold(duration=1000.0))
    numbers = itertools.count()

    step: Any = None

    def reaction_after(start, end):
        nonlocal step
        for k in range(round(10 * start), round(10 * end)):
            for i in range(10):
                at = 0.1 * k + 0.01 * i
                autopilot.on_message(Gyro(1, next(numbers), at, 0.0), at)
                autopilot.on_message(Heading(1, next(numbers), at, 0.0), at)
            autopilot.on_message(Position(1, next(numbers), at, 0.0, 0.0), at)
            if k:
                autopilot.on_message(Status(1, next(numbers), at, step.command.thrusters, False, step.command.seq), at)
            step = autopilot.step(0.1 * (k + 1))
        assert step is not None
        return step.decision.reaction

    assert reaction_after(0, 8) == "run"
    before = controller.count
    autopilot.disengage("test")
    assert reaction_after(8, 12) == "handover"
    assert autopilot.guard.rearm()
    assert reaction_after(12, 13) == "run"
    assert controller.count == before + 1


@pytest.mark.parametrize("seed", range(3))
def test_the_return_from_manual_control_has_no_bump(seed):
    found = rig(seconds=12.0, seed=seed)
    found.twin.operator = "manual"
    for _ in range(40):
        # The operator goes on along the first straight, with the thrusters as they were on average.
        found.twin.manual = (0.35, 0.35, 0.35, 0.35)
        found.run(0.1)
    found.twin.operator = "auto"
    before, changes, largest = np.array(found.twin.manual), [], 0.0
    for _ in range(30):
        found.run(0.1)
        changes.append(np.abs(np.array(found.twin.commands) - before).max())
        before = np.array(found.twin.commands)
        largest = max(largest, np.abs(found.steps[-1].decision.command).max())
    assert found.autopilot.guard.reaction == "run"
    assert not found.twin.firmware.trips
    assert max(changes) < 0.4
    assert largest < 0.8
