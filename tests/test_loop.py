"""The loop in simulated time, and pilots and boats in processes that are stopped and killed."""

import json
import os
import signal
import socket
import time
from typing import cast

import numpy as np
import pytest
from pond import BOAT, Pond, boat_and_pilot, free_ports, process, run, waits_for
from rich.console import Console

from anyhull.cli import main
from anyhull.cli.live import Printer, Shown, View, bar
from anyhull.cli.onboard import until_signal, warn
from anyhull.control import PID
from anyhull.dynamics import PERIOD
from anyhull.log import Log
from anyhull.onboard.autopilot import Autopilot
from anyhull.onboard.links import Received
from anyhull.onboard.loop import Periods, run_autopilot
from anyhull.onboard.messages import Message
from anyhull.onboard.recorder import RunRecorder, last_of
from anyhull.onboard.setup import Setup
from anyhull.pilot import Pilot
from anyhull.reference import hold, legs, line
from anyhull.twin.twin import TICK
from anyhull.vessel import Vessel


def test_a_run_ends_where_the_reference_does_with_the_thrusters_at_zero():
    log, autopilot, pond = run(line(1.5, speed=0.3))
    assert autopilot.phase == "arrived"
    assert [set(command.thrusters) for command in pond.sent[-3:]] == [{0.0}] * 3
    sent = np.array([command.thrusters for command in pond.sent])
    assert np.abs(sent).max() <= 1
    # A second until the guard lets go, one to settle, five of the line, 1.5 since it begins slowly, and the ramp.
    assert 8.5 < log.time[-1] < 10.5
    assert np.diff(log.time) == pytest.approx(PERIOD, abs=0.011)
    assert ["reaction", "handover: arrived"] in [event[1:] for event in log.about["events"]]
    assert log.about["received"]["gyro"] > 500
    # Of all that, the line took 6.5 seconds.
    followed = log.during(log.about["following"])
    assert followed.time[-1] - followed.time[0] == pytest.approx(6.5, abs=0.11)
    assert len(followed.command) == len(followed.time) < len(log.time)
    for _ in range(200):
        pond.twin.advance()
    assert not any(pond.twin.firmware.commands)


def test_a_run_that_is_stopped_ramps_down_first():
    said = iter([""] * 50 + ["SIGTERM"] * 100)
    log, autopilot, _ = run(line(10.0, speed=0.3), stop=lambda: next(said))
    assert autopilot.phase == "under way"
    assert ["reaction", "handover: SIGTERM"] in [event[1:] for event in log.about["events"]]
    assert (log.command[-1] == 0).all()
    assert np.abs(np.diff(log.command, axis=0)).max() <= autopilot.setup.limits.step + 1e-6


def test_a_controller_that_cannot_be_told_what_was_sent_stops_the_boat_in_order():
    class Deaf(PID):
        def sent(self, command):
            if command.any():
                raise ValueError("not this one")

    said = iter([""] * 90 + ["enough"] * 100)
    log, autopilot, _ = run(line(10.0, speed=0.3), Deaf(Vessel.load(BOAT)), stop=lambda: next(said))
    assert ["controller failed", "ValueError: not this one"] in [event[1:] for event in log.about["events"]]
    assert autopilot.event_log.counts["stop"] >= 1
    assert (log.command[-1] == 0).all()


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
    class Stalls(Pond):
        stall = True

        def receive(self, timeout):
            if self.stall and self.now >= 104.0:
                timeout, self.stall = 1.0, False
            return super().receive(timeout)

    log, autopilot, _ = run(line(1.5, speed=0.3), link=Stalls)
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


def test_the_view_shows_errors_commands_health_and_latency():
    steps = []
    _, autopilot, _ = run(line(0.5, speed=0.3), on_step=lambda step, delay: steps.append(step))
    under_way = next(step for step in steps if step and step.phase == "under way")
    shown = Shown(under_way, 0.012, 0.0034, 0.05, 1234, "leg 1 of 1", [])
    console = Console(width=100, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    printer = Printer()
    console.print(View(autopilot, printer).render(shown))
    printer.close()
    console.file.close()
    text = console.export_text()
    assert all(word in text for word in ("error", "cm", "command", "thrusters", "estimator ok", "guard     run"))
    assert "under way" in text
    assert "leg 1 of 1" in text
    assert "loop 12 ms late, controller 3.4 ms, status 50 ms old, 1234 messages" in text
    assert bar(-0.4, 5) == "   ██│     "


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
        out, _ = at_sea.communicate(timeout=30)
    assert any("commands received" in line for line in lines)
    answer = json.loads(out)
    assert at_sea.returncode == 0
    assert (answer["stopped"], answer["watchdog"]) == (True, 1)
    assert answer["rejected"] == {"not from the peer": 20}
    assert answer["accepted"] > 10
    # What it recorded is there as far as it went, and the next run makes a log of it.
    assert not (tmp_path / "run.npz").exists()
    with process(*pilot) as steering:
        waits_for(steering.stderr, "run-killed-1.jsonl: saved as")
        steering.send_signal(signal.SIGINT)
        steering.communicate(timeout=30)
    log = Log.load(tmp_path / "run-killed-1.npz")
    assert len(log.time) > 10
    events = [event[1:] for event in log.about["events"]]
    assert any(what == "reaction" and detail.startswith("run") for what, detail in events)
    assert ["message rejected: not from the peer", ""] in events
    assert list(tmp_path.iterdir()) == [tmp_path / "run-killed-1.npz"]


def test_errors_of_link_and_display_do_not_end_the_loop():
    class Fails(Pond):
        failures = 0

        def receive(self, timeout):
            if 103.0 < self.now < 103.5:
                self.now += TICK
                self.failures += 1
                raise OSError("the network is gone")
            return super().receive(timeout)

        def send(self, message):
            if message.seq % 7 == 3:
                raise ValueError("not now")
            super().send(message)

    def on_step(step, delay):
        raise RuntimeError("no display")

    log, autopilot, pond = run(line(1.0, speed=0.3), link=Fails, on_step=on_step)
    assert autopilot.phase == "arrived"
    assert pond.failures > 50
    events = [event[1:] for event in log.about["events"]]
    assert ["link failed", "ValueError: not now"] in events
    assert log.about["event_counts"]["link failed"] > pond.failures
    assert ["display failed", "RuntimeError: no display"] in events
    assert log.about["event_counts"]["display failed"] > 50


def test_a_message_on_which_the_autopilot_fails_costs_that_message_alone():
    class Odd(Pond):
        def receive(self, timeout):
            return [Received(cast("Message", None), self.now), *super().receive(timeout)]

    log, autopilot, _ = run(line(0.5, speed=0.3), link=Odd)
    assert autopilot.phase == "arrived"
    assert log.about["event_counts"]["message failed"] > 50


def test_periods_are_counted_in_a_histogram_of_constant_size():
    periods = Periods()
    # 98 of 100 ms, one of 130 ms and one of 5 s, which the histogram has no bin for.
    for now in np.cumsum([0.0, *[0.1] * 98, 0.13, 5.0]):
        periods.add(now)
    summary = periods.summary()
    assert summary["periods"] == 100
    assert summary["max_ms"] == pytest.approx(5000.0)
    assert summary["p50_ms"] == pytest.approx(100.0, abs=0.6)
    assert summary["p99_ms"] == pytest.approx(130.0, abs=0.6)
    assert set(Periods().summary().values()) == {0.0}


def test_the_log_states_the_periods_and_the_lines_dropped():
    log, _, _ = run(line(0.5, speed=0.3))
    assert log.about["loop"]["p99_ms"] == pytest.approx(100.0, abs=1.0)
    assert log.about["loop"]["journal_lines_dropped"] == 0


def test_a_boat_too_far_from_the_start_ends_the_run_with_the_reason():
    log, autopilot, pond = run(hold((500.0, 0.0, 0.0), duration=10.0))
    assert autopilot.refused.startswith("the boat is 500")
    assert log.about["ended"] == autopilot.refused
    assert not any(any(command.thrusters) for command in pond.sent)


def test_a_lasting_handover_says_every_minute_how_to_rearm_and_the_run_goes_on():
    periods = iter(range(10_000))

    def stop():
        k = next(periods)
        if k == 50:
            autopilot.disengage("test")
        return "enough" if k == 1400 else ""

    setup = Setup.load(BOAT)
    pond, autopilot = Pond(setup.vessel), Autopilot(setup, PID(setup.vessel), hold(duration=1000.0))
    log = run_autopilot(autopilot, pond, clock=pond.clock, stop=stop)
    times = [at for at, what, detail in log.about["events"] if what == "waiting to be rearmed" and "USR1" in detail]
    # From the handover at 5 s to the end at 140 s: at once, and after one and two minutes.
    assert np.diff(times) == pytest.approx([60.0, 60.0], abs=0.2)
    assert log.about["ended"] == "enough"


def test_each_stage_of_the_reference_is_an_event():
    reference = legs([(0.0, 0.0), (1.5, 0.0), (1.5, 1.5)], speed=0.3)
    log, _, _ = run(reference)
    said = [detail for _, what, detail in log.about["events"] if what == "mission"]
    assert [detail.partition(";")[0] for detail in said] == [stage.label for stage in reference.stages]
    assert said[0].startswith("leg 1 of 2, to waypoint 2; ")
    # Of the first leg less than a step of the track's length is not counted yet.
    assert int(said[1].split(" s and ")[1].split(" m")[0]) in (1, 2)


def test_a_console_that_nobody_reads_delays_nobody(monkeypatch):
    read, write = os.pipe()
    with open(write, "w") as blocked:
        monkeypatch.setattr("sys.stderr", blocked)
        monkeypatch.setattr("anyhull.cli.live._disconnect", lambda: None)
        printer = Printer()
        began = time.monotonic()
        for _ in range(2000):
            printer.say("x" * 200)
        assert time.monotonic() - began < 1.0
        # The pipe takes 64 KiB, the queue 500 lines.
        assert printer.dropped > 2000 - 500 - 64 * 1024 // 200 - 10
        monkeypatch.setattr("anyhull.cli.live.PATIENCE", 0.05)
        printer.close()
        assert printer._thread.is_alive()
        os.close(read)
        printer._thread.join(5.0)
        assert not printer._thread.is_alive()


def test_a_console_that_is_gone_disturbs_nobody(monkeypatch):
    read, write = os.pipe()
    os.close(read)
    called = []
    monkeypatch.setattr("anyhull.cli.live._disconnect", lambda: called.append(True))
    with open(write, "w") as gone:
        monkeypatch.setattr("sys.stderr", gone)
        printer = Printer()
        printer.say("hello")
        printer.close()
    assert (printer.dropped, called) == (1, [True])


def test_signals_other_than_the_end_are_handled_between_two_periods():
    done = []
    before = signal.getsignal(signal.SIGHUP)  # ignored under nohup
    with until_signal({"SIGHUP": lambda: done.append("hang up"), "SIGUSR1": lambda: done.append("rearm")}) as stopped:
        for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR1):
            os.kill(os.getpid(), number)
        assert done == []
        assert stopped() == ""
        assert done == ["hang up", "rearm", "rearm"]
        os.kill(os.getpid(), signal.SIGTERM)
        assert stopped() == "SIGTERM"
    assert signal.getsignal(signal.SIGHUP) == before


def test_a_pilot_that_is_killed_resumes_its_mission_without_a_console(tmp_path):
    boat, pilot = boat_and_pilot(free_ports(), tmp_path)
    with process(*boat):
        with process(*pilot) as steering:
            waits_for(steering.stderr, "reaction: run")
            journal = tmp_path / "run.jsonl"
            ends = time.monotonic() + 15
            while time.monotonic() < ends and (last_of(journal).progress or 0.0) < 2.0:
                time.sleep(0.05)
            steering.send_signal(signal.SIGKILL)
        progress = last_of(journal).progress or 0.0
        assert progress >= 2.0
        with process(*pilot) as steering:
            said = waits_for(steering.stderr, "reaction: run", 20.0)
            assert f"resuming at {progress:.1f} of " in "".join(said)
            steering.send_signal(signal.SIGHUP)
            waits_for(steering.stderr, "SIGHUP: the console is gone, the run goes on")
            # Nobody reads its console from here on, and then there is none.
            steering.stderr.close()
            time.sleep(0.5)
            assert steering.poll() is None
            steering.send_signal(signal.SIGTERM)
            answer = json.loads(steering.stdout.read())
            assert steering.wait(10) == 0
    assert answer["ended"] == "SIGTERM"
    log = Log.load(tmp_path / "run.npz")
    assert log.about["progress"] >= progress
    assert Log.load(tmp_path / "run-killed-1.npz").about["progress"] == progress
    # What SIGTERM ended is resumed, too: its journal says where.
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run-killed-1.npz", "run.jsonl", "run.npz"]
    last = last_of(journal)
    assert (last.ended, last.progress) == ("SIGTERM", None)
    assert last.about["resumed_at"] == pytest.approx(log.about["progress"], abs=0.3)


def test_a_dry_run_prints_the_plan_and_contacts_nobody(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("anyhull.cli.pilot.open_pilot_link", None)
    assert main(["pilot", str(BOAT), "--waypoints", "0,0 10,0 10,10", "--dry-run"]) == 0
    assert "total: " in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_the_metrics_of_a_run_cover_the_time_on_the_reference():
    stopped = iter([""] * 45 + ["enough"] * 100)
    log, _, _ = run(line(5.0, speed=0.3), stop=lambda: next(stopped))
    ((start, end),) = log.about["following"]
    # Settled after two seconds; stopped in the 46th period, and at rest a little later.
    assert 1.5 < start < 2.6
    assert end == pytest.approx(4.5, abs=0.21)
    assert log.time[-1] > end + 0.1


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
            out, _ = steering.communicate(timeout=30)
            at_sea.send_signal(signal.SIGINT)
            report, _ = at_sea.communicate(timeout=30)
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
    file.write_text(LAYOUT.replace("{actuation}", "under").replace("forward = 5", "forward = 5\nreverse = 3"))
    assert main(["twin", "--vessel", str(file), "--duration", "0.1", "--listen", ports[0], "--peer", ports[1]]) == 0
    said = capsys.readouterr().err
    assert "warning: Test boat: surge limit 8, thrusters give 6: expect at most 6 N" in said
    # Two stern thrusters make a boat of the class without sway force, which is no limitation of it.
    assert "gives any sway" not in said
    assert main(["vessels", "show", str(file)]) == 0
    said = capsys.readouterr().out
    assert "warning: surge limit 8, thrusters give 6" in said
    assert "gives any sway" not in said


def test_messages_that_take_longer_than_a_period_are_dropped():
    class Slow(Autopilot):
        def on_message(self, message, arrival):
            if self.phase == "under way" and 103.0 < pond.now < 104.0:
                pond.now += 0.03
            super().on_message(message, arrival)

    setup = Setup.load(BOAT)
    pond = Pond(setup.vessel)
    autopilot = Slow(setup, PID(setup.vessel), line(1.5, speed=0.3))
    log = run_autopilot(autopilot, pond, clock=pond.clock)
    assert autopilot.phase == "arrived"
    assert log.about["event_counts"]["messages dropped"] > 50
    # Half a period late, and the message then under way.
    assert log.about["loop"]["max_ms"] <= 190


def test_a_period_on_which_the_autopilot_fails_sends_zero_and_is_the_only_one():
    class Fails(Autopilot):
        def step(self, now):
            if 103.0 < now < 103.25:
                raise ZeroDivisionError("no such luck")
            return super().step(now)

    setup = Setup.load(BOAT)
    pond = Pond(setup.vessel)
    autopilot = Fails(setup, PID(setup.vessel), line(1.0, speed=0.3))
    log = run_autopilot(autopilot, pond, clock=pond.clock)
    assert autopilot.phase == "arrived"
    assert log.about["event_counts"]["step failed"] in (2, 3)
    assert ["step failed", "ZeroDivisionError: no such luck"] in [event[1:] for event in log.about["events"]]
    zero = [command for command in pond.sent if not any(command.thrusters)]
    assert any(103.0 < 100.0 + command.time < 103.3 for command in zero)


def test_a_pilot_that_hears_nothing_says_so_and_one_that_never_starts_fails(tmp_path):
    ports = free_ports()
    boat, pilot = boat_and_pilot(ports, tmp_path)
    with process(*pilot) as steering:
        # 60 periods at three times the speed of time.
        said = waits_for(steering.stderr, "no messages from", 10.0)
        assert f"check that the boat runs and sends to {ports[1]}" in said[-1]
        steering.send_signal(signal.SIGINT)
        assert steering.wait(10) == 2
    # The mission is inside the fence, the boat is not.
    file = tmp_path / "boat.toml"
    file.write_text(f"{BOAT.read_text()}\n[fence]\nx = 30.0\ny = 0.0\nradius = 5.0\n")
    with process(*boat), process("pilot", file, *pilot[2:], "--waypoints", "28,0 32,0") as steering:
        waits_for(steering.stderr, "arming: fence: 2", 15.0)
        steering.send_signal(signal.SIGINT)
        error = steering.communicate(timeout=10)[1]
        assert steering.returncode == 1
    assert "error: the boat was not armed: " in error
    assert " m outside" in error
    assert (tmp_path / "run.npz").exists()


def test_the_boat_is_given_back_before_the_record_is_closed(tmp_path, monkeypatch):
    order: list[str] = []
    close = RunRecorder.close

    def closing(self, ended=""):
        order.append("record")
        close(self, ended)

    monkeypatch.setattr(RunRecorder, "close", closing)
    run(line(0.3, speed=0.3), journal=tmp_path / "run.jsonl", on_end=lambda: order.append("boat"))
    assert order == ["boat", "record"]
