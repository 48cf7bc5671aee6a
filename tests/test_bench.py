"""A boat on the bench: listening to it, and running one thruster at a time."""

import json
import os
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from pond import BOAT, Pond, free_ports, process, waits_for

from anyhull.cli import main
from anyhull.cli.bench import _confirm
from anyhull.errors import RunError
from anyhull.log import Log
from anyhull.onboard.bench import Bench
from anyhull.onboard.links.udp import UDPConfig
from anyhull.onboard.setup import Setup
from anyhull.twin.autopilot_board import AutopilotBoard

SETUP = Setup.load(BOAT)


def bench(**options):
    pond = Pond(SETUP.vessel)
    return Bench(SETUP, pond, pond.clock, **options), pond


def test_listening_sends_no_command_and_finds_the_state():
    here, pond = bench()
    assert here.listen(3.0) == ""
    assert pond.sent == []
    assert here.vehicle.estimator.at(here.vehicle.clock.at(pond.now)).health == "ok"


def test_one_thruster_ramps_to_its_level_and_back_and_all_others_stay_at_zero():
    here, pond = bench()
    here.listen(1.0)
    done = here.pulse(2, -0.3, 1.0)
    commands = np.array([command.thrusters for command in pond.sent])
    assert_allclose(np.delete(commands, 2, axis=1), 0.0)
    assert_allclose(commands[:, 2].min(), -0.3)
    # To the level in 0.5 s: at most 0.06 of full command in a period.
    assert np.abs(np.diff(commands[:, 2])).max() < 0.0601
    assert_allclose(commands[-3:], 0.0)
    assert done.confirmed
    assert done.ended == ""
    assert done.reported == pytest.approx(-0.3, abs=0.01)
    assert done.measured == pytest.approx(-0.3, abs=0.1)


def test_the_operators_switch_and_a_signal_end_a_pulse_with_zero():
    here, pond = bench()
    here.listen(1.0)
    pond.twin.operator = "stop"
    done = here.pulse(0, 0.3, 5.0)
    assert done.ended == "switch: stop"
    assert pond.now < 100.0 + 1.0 + 1.5
    assert_allclose(pond.sent[-1].thrusters, 0.0)
    here, pond = bench(stop=lambda: "SIGINT")
    assert here.listen(1.0) == "SIGINT"
    pond.receive(0.1)
    here.vehicle.clock.update(0.0, pond.now)
    assert here.pulse(0, 0.3, 5.0).ended == "SIGINT"
    assert_allclose(pond.sent[-1].thrusters, 0.0)


def test_without_a_boat_no_thruster_runs():
    here, pond = bench()
    with pytest.raises(RunError, match="nothing is heard from the boat"):
        here.pulse(0, 0.3, 1.0)
    assert pond.sent == []


def test_a_boat_that_allocates_by_itself_is_tested_axis_by_axis():
    setup = replace(SETUP, link=UDPConfig(command="wrench"))

    class Board(Pond):
        def __init__(self, vessel):
            super().__init__(vessel)
            self.board = AutopilotBoard(self.twin, setup.link)
            self.twin = self.board  # type: ignore[assignment]  # what Pond advances

    pond = Board(setup.vessel)
    here = Bench(setup, pond, pond.clock)
    assert here.outputs == ("surge", "sway", "yaw")
    here.listen(1.0)
    done = here.pulse(1, 0.2, 1.0)
    wrenches = np.array([command.wrench for command in pond.sent])
    assert_allclose(wrenches[:, [0, 2]], 0.0)
    assert done.reported == pytest.approx(0.2, abs=0.01)
    assert_allclose(here.expected(1), (0.0, 1.0, 0.0))


def test_the_expected_force_is_that_of_the_layout():
    here, _ = bench()
    t, limits = SETUP.vessel.thrusters[0], SETUP.vessel.limits
    angle = np.radians(t.angle)
    fx, fy = t.forward * np.cos(angle), t.forward * np.sin(angle)
    assert_allclose(here.expected(0), np.array((fx, fy, t.x * fy - t.y * fx)) / limits)


def test_a_boat_that_is_not_heard_is_one_line_that_says_what_to_look_at(capsys):
    own, other = free_ports()
    for command in ("listen", "thrusters"):
        options = ["--seconds", "1"] if command == "listen" else ["--yes"]
        assert main([command, str(BOAT), "--listen", own, "--peer", other, *options]) == 1
        error = capsys.readouterr().err.splitlines()[-1]
        assert error.startswith("error: ")
        assert f"sends to {own}" in error


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["listen", "--seconds", "0"], "seconds = 0: must be from 1 to 600"),
        (["thrusters", "--command", "0.9"], "command = 0.9: must be from 0.05 to 0.5"),
        (["thrusters", "--only", "7"], "only = 7: must be from 0 to 3"),
    ],
)
def test_bad_options_are_refused_in_one_line(capsys, arguments, words):
    own, other = free_ports()
    assert main([arguments[0], str(BOAT), "--listen", own, "--peer", other, *arguments[1:]]) == 2
    assert words in capsys.readouterr().err


def test_listen_and_thrusters_over_the_link_of_a_twin(capsys):
    boat, pilot = free_ports()
    ends = ["--listen", pilot, "--peer", boat]
    with process("twin", "--vessel", BOAT, "--sea", "light-air", "--listen", boat, "--peer", pilot) as twin:
        waits_for(twin.stderr, "only for a pilot")
        assert main(["listen", str(BOAT), "--seconds", "3", "--json", *ends]) == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["state"], found["missing"]) == ("ok", [])
        assert main(["thrusters", str(BOAT), "--only", "3", "--seconds", "0.5", "--yes", *ends]) == 0
        out = capsys.readouterr().out
        assert "thruster 3 ahead at 20 %: expect ahead" in out
        assert "reported +0.20" in out
        assert "reported -0.20" in out


def test_a_pilot_keeps_station_where_the_boat_is(tmp_path, capsys):
    boat, pilot = free_ports()
    ends = ["--listen", pilot, "--peer", boat, "--time-factor", "3"]
    with process("twin", "--vessel", BOAT, "--sea", "light-air", "--listen", boat, "--peer", pilot, *ends[-2:]) as twin:
        waits_for(twin.stderr, "only for a pilot")
        options = [
            "--reference",
            "hold",
            "--duration",
            "6",
            "--here",
            "--controller",
            "pid",
            "--out",
            tmp_path / "a.npz",
        ]
        assert main(["pilot", str(BOAT), *options, "--out", str(tmp_path / "a.npz"), "--json", *ends]) == 0
    log = Log.load(tmp_path / "a.npz")
    # Noise and light air alone: the station is where the boat was, not at the origin.
    assert_allclose(log.reference[:, :3], np.tile(log.reference[0, :3], (len(log.time), 1)))
    assert np.hypot(*(log.state - log.reference)[0, :2]) < 0.3
    assert log.about["reference"]["here"]
    capsys.readouterr()
    assert (
        main(
            [
                "pilot",
                str(BOAT),
                "--mission",
                "examples/missions/lake.plan",
                "--origin",
                "home",
                "--axes",
                "ned",
                "--here",
            ]
        )
        == 2
    )
    assert "--here: only for a shape or local waypoints" in capsys.readouterr().err


@pytest.mark.parametrize(("typed", "wanted"), [("y\nn\n", [True, False]), ("yes\n\n", [True, False]), ("", [False])])
def test_answers_that_come_together_are_each_taken(monkeypatch, typed, wanted):
    here, _ = bench()
    read, write = os.pipe()
    os.write(write, typed.encode())
    os.close(write)
    with os.fdopen(read) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert [_confirm("Run it?", here) for _ in wanted] == wanted
