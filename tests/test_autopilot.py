"""The autopilot under faults: in simulated time, and in processes that are stopped and killed."""

import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from anyhull.cli import main
from anyhull.cli.live import View, bar
from anyhull.cli.onboard import warn
from anyhull.cli.pilot import _recover_killed_run
from anyhull.control import PID
from anyhull.dynamics import PERIOD
from anyhull.errors import InputError
from anyhull.log import Log
from anyhull.onboard.autopilot import Autopilot
from anyhull.onboard.links import Received
from anyhull.onboard.loop import run_autopilot
from anyhull.onboard.messages import Command, Gyro, Heading, Position, Status
from anyhull.onboard.recorder import RunRecorder, recover
from anyhull.onboard.setup import Setup
from anyhull.pilot import Pilot
from anyhull.reference import hold, line, rounded_rectangle
from anyhull.twin import WATERS, Twin, TwinConfig
from anyhull.twin.faults import KINDS, Fault, Rig, random_faults
from anyhull.twin.twin import TICK
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
    first, *_ = events(found, "message rejected")
    assert "must be a finite number" in first.detail
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
    # The guard knows nothing of a lost uplink but by the boat's status; its step is small, so a jump would show.
    setup = Setup.load(BOAT)
    limits = replace(setup.limits, step=0.1)
    found = rig(Fault("uplink lost", 8.0, 2.0), seconds=10.05, limits=limits)
    assert found.autopilot.status.stopped
    assert np.abs(found.steps[-1].decision.command).max() <= 0.1 + 1e-9
    assert found.autopilot.event_log.counts["watchdog"] > 10
    assert found.autopilot.guard.reaction == "run"
    found.run(1.0)
    assert not found.autopilot.status.stopped
    assert found.violations == []


def test_garbage_on_the_port_is_tolerated():
    found = rig(Fault("garbage", 4.0, 6.0))
    assert sum(found.rejected.values()) > 1000
    assert found.rejected["not JSON"] > 500
    assert len(events(found, "message rejected")) <= 4
    assert found.autopilot.event_log.counts["stop"] == 0


@pytest.mark.parametrize("seed", range(2))
def test_faults_of_all_kinds_together(seed):
    faults = random_faults(16.0, np.random.default_rng(seed), every=0.5)
    found = rig(*faults, seconds=17.0, seed=seed)
    assert len({fault.kind for fault in faults}) > len(KINDS) / 2
    assert len(found.autopilot.event_log.events) > 10


class Pond:
    """A link with a twin at the other end, in simulated time, which advances while one waits."""

    def __init__(self, vessel, stall=None):
        self.twin = Twin(vessel, LIGHT_AIR)
        self.now, self.sent, self.stall = 100.0, [], stall
        self.rejected: Counter[str] = Counter()

    def clock(self):
        return self.now

    def receive(self, timeout):
        received = []
        if self.stall and self.now >= self.stall[0]:
            timeout, self.stall = self.stall[1], None
        for _ in range(max(0, round(timeout / TICK))):
            self.now += TICK
            received += [Received(message, self.now) for message in self.twin.advance()]
        if timeout > 0 and not received:
            self.now += timeout % TICK
        return received

    def send(self, message):
        self.sent.append(message)
        self.twin.on_command(message)

    def close(self): ...


def run(reference, controller=None, stall=None, **options):
    setup = Setup.load(BOAT)
    pond = Pond(setup.vessel, stall)
    autopilot = Autopilot(setup, controller or PID(setup.vessel), reference)
    return run_autopilot(autopilot, pond, clock=pond.clock, **options), autopilot, pond


def test_a_run_ends_where_the_reference_does_with_the_thrusters_at_zero():
    log, autopilot, pond = run(line(1.5, speed=0.3))
    assert autopilot.phase == "arrived"
    assert [set(command.thrusters) for command in pond.sent[-3:]] == [{0.0}] * 3
    sent = np.array([command.thrusters for command in pond.sent])
    assert np.abs(sent).max() <= 1
    # A second until the guard lets go, one to settle, five of the line, and the ramp.
    assert 7.0 < log.time[-1] < 9.0
    assert np.diff(log.time) == pytest.approx(PERIOD, abs=0.011)
    assert log.about["events"][-1][1:] == ["reaction", "handover: arrived"]
    assert log.about["received"]["gyro"] > 500
    # Of all that, the line took five seconds.
    followed = log.during(log.about["following"])
    assert followed.time[-1] - followed.time[0] == pytest.approx(5.0, abs=0.11)
    assert len(followed.command) == len(followed.time) < len(log.time)
    for _ in range(200):
        pond.twin.advance()
    assert not any(pond.twin.firmware.commands)


def test_a_run_that_is_stopped_ramps_down_first():
    said = iter([""] * 50 + ["SIGTERM"] * 100)
    log, autopilot, _ = run(line(10.0, speed=0.3), stop=lambda: next(said))
    assert autopilot.phase == "under way"
    assert log.about["events"][-1][1:] == ["reaction", "handover: SIGTERM"]
    assert (log.command[-1] == 0).all()
    assert np.abs(np.diff(log.command, axis=0)).max() <= autopilot.setup.limits.step + 1e-9


def test_a_controller_that_fails_stops_the_boat_in_order():
    class Fails(PID):
        def step(self, pose, velocity, window):
            if pose[0] > 0.3:
                raise ZeroDivisionError("no such luck")
            return super().step(pose, velocity, window)

    said = iter([""] * 90 + ["enough"] * 100)
    log, autopilot, _ = run(line(10.0, speed=0.3), Fails(Vessel.load(BOAT)), stop=lambda: next(said))
    events = [event[1:] for event in log.about["events"]]
    assert ["controller failed", "ZeroDivisionError: no such luck"] in events
    assert autopilot.event_log.counts["stop"] == 1
    assert (log.command[-1] == 0).all()


def test_a_latent_out_of_distribution_hands_the_boat_over():
    pilot = Pilot.load("field")
    assert pilot.latent_range is not None
    low, high = pilot.latent_range
    assert low.shape == (16,)
    assert (low < high).all()
    periods = iter(range(1000))
    enough = {"stop": lambda: "enough" if next(periods) == 60 else ""}
    log, _, _ = run(line(10.0), pilot, **enough)
    assert "out_of_distribution" not in log.about["event_counts"]
    pilot._latent_range = (tuple(high + 1), tuple(high + 2))
    periods = iter(range(1000))
    log, autopilot, _ = run(line(10.0), pilot, **enough)
    assert autopilot.guard.reaction == "handover"
    assert any(
        "handover" in detail and "out_of_distribution: latent[0]" in detail for _, _, detail in log.about["events"]
    )
    assert (log.command[-1] == 0).all()


def test_a_dynamics_estimate_outside_the_envelope_of_the_policy_hands_the_boat_over():
    pilot, periods = Pilot.load("field"), iter(range(1000))
    pilot.envelope["alpha_r"] = (1e3, 2e3)
    log, autopilot, _ = run(line(10.0), pilot, stop=lambda: "enough" if next(periods) == 60 else "")
    assert autopilot.guard.reaction == "handover"
    assert any("handover: out_of_distribution: dynamics[2]" in detail for _, _, detail in log.about["events"])


def test_warnings_are_of_the_envelope_of_the_policy(capsys):
    vessel, pilot = Vessel.load("platform-a"), Pilot.load("field")
    warn(vessel, controller=pilot)
    pilot.envelope["alpha_u"] = (10.0, 20.0)
    warn(vessel, controller=PID(vessel))
    assert capsys.readouterr().err == ""
    warn(vessel, controller=pilot)
    assert capsys.readouterr().err.startswith("warning: Platform A: alpha_u = 0.909: weaker than any boat in training")


def test_however_the_loop_ends_the_last_command_is_zero():
    class Breaks(Pond):
        def receive(self, timeout):
            if self.now > 104.0:
                raise KeyboardInterrupt
            return super().receive(timeout)

    setup = Setup.load(BOAT)
    pond = Breaks(setup.vessel)
    with pytest.raises(KeyboardInterrupt):
        run_autopilot(Autopilot(setup, PID(setup.vessel), line(10.0)), pond, clock=pond.clock)
    assert any(any(command.thrusters) for command in pond.sent)
    assert [set(command.thrusters) for command in pond.sent[-3:]] == [{0.0}] * 3


def test_a_loop_that_stalls_skips_periods_and_the_guard_sees_an_overrun():
    log, autopilot, _ = run(line(1.5, speed=0.3), stall=(104.0, 1.0))
    assert "overrun" in [event[1] for event in log.about["events"]]
    assert np.diff(log.time).max() == pytest.approx(1.0, abs=0.2)
    assert np.sort(np.diff(log.time))[:-2] == pytest.approx(PERIOD, abs=0.011)
    assert autopilot.phase == "arrived"


def test_a_pilot_without_messages_ends_when_stopped_and_sends_nothing():
    class Silence(Pond):
        def receive(self, timeout):
            self.now += max(timeout, 0.0)
            return []

    setup = Setup.load(BOAT)
    silence, said = Silence(setup.vessel), iter([""] * 20 + ["SIGTERM"] * 100)
    autopilot = Autopilot(setup, PID(setup.vessel), hold())
    log = run_autopilot(autopilot, silence, clock=silence.clock, stop=lambda: next(said))
    assert silence.sent == []
    assert len(log.time) == 0


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


def test_the_view_shows_errors_commands_health_and_latency():
    found = rig(seconds=8.0)
    view = View(found.autopilot)
    view._delay, view._compute_time = 0.012, 0.0034
    console = Console(width=100, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(view.render(found.steps[-1]))
    console.file.close()
    text = console.export_text()
    assert all(word in text for word in ("error", "cm", "command", "thrusters", "estimator ok", "guard     run"))
    assert "loop 12 ms late, controller 3.4 ms" in text
    assert bar(-0.4, 5) == "   ██│     "


def free_ports():
    """Two free ports."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as a, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as b:
        a.bind(("127.0.0.1", 0))
        b.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{a.getsockname()[1]}", f"127.0.0.1:{b.getsockname()[1]}"


@contextmanager
def process(*arguments):
    """The command line in a process of its own, which does not outlive the test."""
    command = [sys.executable, "-m", "anyhull.cli", *map(str, arguments)]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    # One that says nothing more would be waited for without end.
    limit = threading.Timer(40.0, running.kill)
    limit.start()
    try:
        yield running
    finally:
        limit.cancel()
        if running.poll() is None:
            running.kill()
        running.communicate()


def boat_and_pilot(ports, folder, controller="pid"):
    boat = ["twin", "--vessel", BOAT, "--sea", "light-air", "--listen", ports[0], "--peer", ports[1], "--json"]
    pilot = ["pilot", BOAT, "--controller", controller, "--listen", ports[1], "--peer", ports[0], "--json"]
    return [*boat, "--time-factor", "3"], [*pilot, "--time-factor", "3", "--out", folder / "run.npz"]


def waits_for(stream, words, seconds=6.0):
    """Lines until one that holds the words."""
    ends, lines = time.monotonic() + seconds, []
    while time.monotonic() < ends:
        lines.append(stream.readline())
        if words in lines[-1]:
            return lines
    raise AssertionError(f"{words!r} not in {lines}")


def test_a_pilot_that_is_killed_is_stopped_by_the_boats_watchdog(tmp_path):
    ports = free_ports()
    boat, pilot = boat_and_pilot(ports, tmp_path)
    with process(*boat) as at_sea, process(*pilot) as steering:
        waits_for(steering.stderr, "reaction: run")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            for port in ports:
                host, number = port.split(":")
                for _ in range(20):
                    stranger.sendto(b"garbage", (host, int(number)))
        time.sleep(0.5)
        steering.send_signal(signal.SIGKILL)
        lines = waits_for(at_sea.stderr, "watchdog: no commands, thrusters at zero")
        at_sea.send_signal(signal.SIGTERM)
        out, _ = at_sea.communicate(timeout=5)
    assert any("commands received" in line for line in lines)
    answer = json.loads(out)
    assert at_sea.returncode == 0
    assert (answer["stopped"], answer["watchdog"]) == (True, 1)
    assert answer["rejected"] == {"not from the peer": 20}
    assert answer["accepted"] > 10
    # What it recorded is there as far as it went, and the next run makes a log of it.
    assert not (tmp_path / "run.npz").exists()
    with process(*pilot) as steering:
        waits_for(steering.stderr, "from a run that was killed; saved as")
        steering.send_signal(signal.SIGINT)
        steering.communicate(timeout=5)
    log = Log.load(tmp_path / "run-killed-1.npz")
    assert len(log.time) > 10
    events = [event[1:] for event in log.about["events"]]
    assert any(what == "reaction" and detail.startswith("run") for what, detail in events)
    assert ["message rejected", "not from the peer"] in events
    assert list(tmp_path.iterdir()) == [tmp_path / "run-killed-1.npz"]


def test_a_journal_holds_the_log_and_loses_only_a_torn_line(tmp_path):
    log, _, _ = run(line(0.5, speed=0.3), Pilot.load("field"), journal=tmp_path / "run.jsonl")
    again = recover(tmp_path / "run.jsonl")
    for name in ("time", "state", "reference", "command", "current", "latent"):
        np.testing.assert_array_equal(getattr(again, name), getattr(log, name))
    # The last of them came after the last period.
    assert again.about["events"] == log.about["events"][: len(again.about["events"])]
    assert len(again.about["events"]) >= len(log.about["events"]) - 1 > 0
    assert again.about["following"] == log.about["following"]
    text = (tmp_path / "run.jsonl").read_text()
    *_, last = (json.loads(entry) for entry in text.splitlines())
    assert list(last) == ["time", "state", "reference", "command", "current", "latent", "following"]
    rows = text.count('"state"')
    torn = tmp_path / "torn.jsonl"
    torn.write_text(text[: text.rindex('"state"') + 30])
    assert len(recover(torn).time) == rows - 1
    # Of a file that lost a block, what stands before it.
    lines = text.splitlines()
    torn.write_text("\n".join([*lines[:20], "\0" * 100, *lines[21:]]))
    assert 0 < len(recover(torn).time) < 20
    torn.write_text("")
    assert len(recover(torn).time) == 0
    torn.write_text(text.replace('"format": 2', '"format": 3', 1))
    with pytest.raises(InputError, match=r"torn\.jsonl: format = 3: must be 2"):
        recover(torn)


def test_the_metrics_of_a_run_cover_the_time_on_the_reference():
    stopped = iter([""] * 45 + ["enough"] * 100)
    log, _, _ = run(line(5.0, speed=0.3), stop=lambda: next(stopped))
    ((start, end),) = log.about["following"]
    # Settled after two seconds; stopped in the 46th period, and at rest a little later.
    assert 1.5 < start < 2.6
    assert end == pytest.approx(4.5, abs=0.21)
    assert log.time[-1] > end + 0.2


def test_a_journal_in_use_is_kept_and_one_that_cannot_be_read_is_renamed(tmp_path, capsys):
    setup, out = Setup.load(BOAT), tmp_path / "run.npz"
    journal = out.with_suffix(".jsonl")
    recorder = RunRecorder(Autopilot(setup, PID(setup.vessel), line(1.0)), journal)
    ports = ["--listen", "127.0.0.1:0", "--peer", "127.0.0.1:9"]
    assert main(["pilot", str(BOAT), "--out", str(out), *ports]) == 2
    assert "run.jsonl: another pilot writes to it: give another --out" in capsys.readouterr().err
    recorder.close()
    _recover_killed_run(journal, out)
    assert "holds no period; renamed to" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["run.jsonl.old"]


def test_a_full_disk_does_not_stop_the_boat(monkeypatch, tmp_path):
    usual = Path.open

    def opened(path, mode="r", **options):
        return usual(Path("/dev/full"), "w", **options) if path.suffix == ".jsonl" else usual(path, mode, **options)

    monkeypatch.setattr(Path, "open", opened)
    log, autopilot, _ = run(line(0.5, speed=0.3), journal=tmp_path / "run.jsonl")
    assert autopilot.phase == "arrived"
    assert log.about["event_counts"]["journal ends"] == 1


def test_a_boat_that_is_killed_and_restarted_is_steered_again_and_a_signal_ends_the_run(tmp_path):
    # With the shipped policy, whose latent starts anew with the boat.
    boat, pilot = boat_and_pilot(free_ports(), tmp_path, "field")
    with process(*pilot) as steering:
        with process(*boat) as at_sea:
            waits_for(steering.stderr, "reaction: run")
            at_sea.send_signal(signal.SIGKILL)
        with process(*boat) as at_sea:
            waits_for(steering.stderr, "boat restarted")
            waits_for(steering.stderr, "reaction: run")
            time.sleep(0.3)
            steering.send_signal(signal.SIGINT)
            out, _ = steering.communicate(timeout=5)
            at_sea.send_signal(signal.SIGINT)
            report, _ = at_sea.communicate(timeout=5)
    assert steering.returncode == 0
    answer = json.loads(out)
    assert answer["ended"] == "SIGINT"
    assert answer["event_counts"]["boat restarted"] == 1
    log = Log.load(tmp_path / "run.npz")
    assert ["reaction", "handover: SIGINT"] in [event[1:] for event in log.about["events"]]
    assert (log.command[-1] == 0).all()
    assert log.latent is not None
    assert log.latent.shape == (len(log.time), 16)
    assert not any(json.loads(report)["rejected"].get(reason) for reason in ("outside [-1, 1]", "not finite"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["twin", "--time-factor", "0"], "time-factor = 0"),
        (["twin", "--listen", "here"], "'here': must be an IPv4 address and a port"),
        (["twin", "--vessel", "platfrm-a"], "did you mean 'platform-a'"),
        (["twin", "--sea", "see"], "'see'"),
        (["twin", "--duration", "-1"], "duration = -1"),
        (["pilot", "platform-a"], "Platform A: thrusters is missing"),
        (["pilot", "no.toml"], "no.toml: cannot be read"),
        (["pilot", str(BOAT), "--out", "run.txt"], "run.txt"),
        (["pilot", str(BOAT), "--time-factor", "-1"], "time-factor = -1"),
        (["pilot", str(BOAT), "--controller", "mcp"], "did you mean 'mpc'"),
    ],
)
def test_a_mistake_gets_one_line(capsys, monkeypatch, tmp_path, arguments, words):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert words in err


LAYOUT = """
actuation = "{actuation}"
name = "Test boat"
m = 20
X_udot = -5
Y_vdot = -10
I_comb = 2
X_u = 10
Y_v = 20
N_r = 2
length = 1.0
beam = 0.5
Fx = 8
Fy = 0
Mz = 1
[[thrusters]]
kind = "fixed"
x = -0.4
y = 0.2
forward = 5
[[thrusters]]
kind = "fixed"
x = -0.4
y = -0.2
forward = 5
"""


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("Fy = 0", "Fy = 4.5"), "Fy = 4.5: must be at most 0, which the thrusters can give"),
        (("x = -0.4", "x = -1.4"), "thrusters[0].x = -1.4: must be within length = 1"),
        (("{actuation}", "full"), "actuation = 'full': must be 'under'"),
        (("forward = 5", "forward = 5\npitch = 3"), "thrusters[0].pitch = 3: unknown key"),
        (("Fx = 8", "Fx = 80.5"), "Fx = 80.5: must be at most 10"),
    ],
)
def test_a_bad_layout_is_named(capsys, tmp_path, change, words):
    file = tmp_path / "boat.toml"
    file.write_text(LAYOUT.replace(*change).replace("{actuation}", "under"))
    assert main(["twin", "--vessel", str(file)]) == 2
    assert words in capsys.readouterr().err


def test_limitations_of_a_boat_are_warnings(capsys, tmp_path):
    file, ports = tmp_path / "boat.toml", free_ports()
    file.write_text(LAYOUT.replace("{actuation}", "under"))
    assert main(["twin", "--vessel", str(file), "--duration", "0.1", "--listen", ports[0], "--peer", ports[1]]) == 0
    assert "warning: Test boat: sway limit 0, thrusters give 0: no thruster gives any sway" in capsys.readouterr().err
    assert main(["vessels", "show", str(file)]) == 0
    assert "warning: sway limit 0, thrusters give 0: no thruster gives any sway" in capsys.readouterr().out


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

    def reaction_after(start, end):
        for k in range(round(10 * start), round(10 * end)):
            for i in range(10):
                at = 0.1 * k + 0.01 * i
                autopilot.on_message(Gyro(1, next(numbers), at, 0.0), at)
                autopilot.on_message(Heading(1, next(numbers), at, 0.0), at)
            autopilot.on_message(Position(1, next(numbers), at, 0.0, 0.0), at)
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
