"""The command line: what it prints, what it writes, and how it answers mistakes."""

import json
import math
import os
import re
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from anyhull import InputError, Log, catalogue
from anyhull.cli import controllers, demo, main
from anyhull.vessel import PLATFORMS

BOAT = """
name = "Test boat"
m = 20
X_udot = -5
Y_vdot = -10
I_comb = 2
X_u = 10
Y_v = 20
N_r = 2
Fx = 30
Fy = 30
Mz = 10
"""


class Still:
    """Does nothing: fast, and its errors are known."""

    def reset(self) -> None: ...

    def step(self, pose, velocity, window):
        return np.zeros(3)


@pytest.fixture
def still(monkeypatch):
    """The name of a controller that needs no solver."""
    monkeypatch.setitem(controllers.CONTROLLERS, "still", lambda vessel: Still())
    return ["sail", "--controller", "still"]


@pytest.fixture
def run(capsys):
    """Runs the command line: its exit status, stdout and stderr."""

    def call(*arguments):
        status = main([str(argument) for argument in arguments])
        return status, *capsys.readouterr()

    return call


def strict(text):
    """Parses JSON and refuses the NaN and Infinity that Python would let through."""

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def complaint(status, out, err):
    """The one line of an answer to a mistake."""
    assert status == 2
    assert out == ""
    assert re.fullmatch(r"error: .+\n", err), err
    return err


def test_no_arguments_print_help_and_version_is_the_packages(run):
    status, out, err = run()
    assert (status, err) == (0, "")
    assert all(command in out for command in ("vessels", "sail", "demo"))
    assert run("--version") == (0, "anyhull 0.1.0\n", "")


def test_vessel_table_names_every_vessel_and_fits_100_columns(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    status, out, _ = run("vessels")
    assert status == 0
    rows = {line.split()[0]: line for line in out.splitlines() if line.strip()}
    assert set(catalogue()) <= set(rows)
    assert max(map(len, out.splitlines())) <= 100
    assert "…" not in out.split("αu …")[0]
    assert re.search(r"stable +full +inside", rows["platform-a"])
    assert ">0.21" in rows["roboat-1"]
    assert re.search(r"under +αv", rows["heron"])


def test_vessel_list_as_json_has_the_numbers(run):
    status, out, err = run("vessels", "--json")
    assert (status, err) == (0, "")
    fleet = {vessel["id"]: vessel for vessel in strict(out)}
    assert sorted(fleet) == catalogue()
    a = fleet["platform-a"]
    # 40 N on 22 + 22 kg; terminal speed 40 N / 54 kg/s.
    assert a["normalized"]["alpha_u"] == pytest.approx(40 / 44)
    assert a["top_speeds"]["surge"] == pytest.approx(40 / 54)
    assert a["yaw_unstable_above"] is None
    assert a["outside"] == []
    assert fleet["roboat-1"]["yaw_unstable_above"] == pytest.approx(0.207, abs=5e-4)
    assert fleet["heron"]["actuation"] == "under"
    assert [entry["component"] for entry in fleet["heron"]["outside"]] == ["alpha_v"]


@pytest.mark.parametrize("name", catalogue())
def test_every_vessel_can_be_shown(run, name):
    status, out, err = run("vessels", "show", name)
    assert (status, err) == (0, "")
    assert all(word in out for word in ("surge", "sway", "yaw", "alpha_u", "c_uv", "Source:"))


def test_show_says_what_lies_outside_and_what_to_do(run):
    _, out, _ = run("vessels", "show", "wamv-vrx-t")
    # 12 m/s² on 211 kg.
    assert "derate Fx to 2532 N" in out
    assert "tunnel" in out
    assert "Caveats: added mass 0" in out


def test_show_reads_a_file_and_gives_json(run, tmp_path):
    file = tmp_path / "boat.toml"
    file.write_text(BOAT)
    status, out, _ = run("vessels", "show", file, "--json")
    boat = strict(out)
    assert status == 0
    assert (boat["name"], boat["m"], boat["Mz"]) == ("Test boat", 20, 10)
    assert boat["normalized"]["c_rv"] == pytest.approx(30 / 25)


def test_sail_steers_prints_metrics_and_saves_the_run_that_gave_them(run, tmp_path):
    file = tmp_path / "deep" / "run.npz"
    status, out, err = run("sail", "--duration", 3, "--sea", "field", "--seed", 7, "--out", file, "--json")
    assert (status, err) == (0, "")
    answer = strict(out)
    log = Log.load(file)
    assert answer["metrics"] == pytest.approx(asdict(log.metrics()))
    assert answer["files"] == {"log": str(file)}
    assert len(log.time) == 30
    assert log.about["controller"] == "field"
    assert log.about["seed"] == answer["seed"] == 7
    assert answer["metrics"]["position_cm"] < 20

    status, out, _ = run("sail", "--duration", 3, "--sea", "field", "--seed", 7)
    assert status == 0
    assert f"{answer['metrics']['position_cm']:.4f}" in out
    assert f"{answer['metrics']['heading_max_deg']:.4f}" in out


@pytest.mark.parametrize("name", ["mpc", "mpc-paper", "mpc-field", "pid"])
def test_each_controller_keeps_the_boat_near_the_line(run, name):
    status, out, _ = run("sail", "--controller", name, "--reference", "line", "--duration", 4, "--speed", 0.4, "--json")
    assert status == 0
    assert strict(out)["metrics"]["position_max_cm"] < 20


def test_a_boat_that_does_nothing_misses_by_what_the_line_runs_on(run, still, tmp_path):
    # It starts at 0.5 m/s and drifts u·T·(1 - exp(-t/T)), T = 44/54 s, while the reference runs 0.5·t.
    file = tmp_path / "run.npz"
    assert run(*still, "--reference", "line", "--speed", 0.5, "--length", 4, "--out", file)[0] == 0
    log, lag = Log.load(file), 44 / 54
    assert len(log.time) == 80
    drift = 0.5 * lag * -np.expm1(-log.time / lag)
    np.testing.assert_allclose(log.position_error, 0.5 * log.time - drift, atol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "reached"),
    [
        (["--reference", "circle", "--radius", 2, "--laps", 0.5], 2 * math.pi / 0.6),
        (["--reference", "eight", "--length", 8, "--width", 3, "--heading", 90], None),
        (["--reference", "rectangle", "--length", 6, "--width", 4, "--radius", 1, "--speed", 0.5], None),
        (["--reference", "hold", "--heading", 45, "--duration", 5], 5.0),
        (["--waypoints", "0,0 3,4"], 5 / 0.6),
        (["--waypoints", "0,0,1 3,4,1"], 5.0),
        (["--waypoints", "0,0 4,0 4,4 0,4 0,0", "--laps", 2], None),
    ],
)
def test_every_reference_can_be_sailed(run, still, arguments, reached):
    status, out, _ = run(*still, *arguments, "--json")
    assert status == 0
    if reached is not None:
        assert strict(out)["duration"] == pytest.approx(reached, rel=1e-6)


def test_waypoints_come_from_a_csv_file_with_speed_and_heading_in_degrees(run, still, tmp_path):
    file, saved = tmp_path / "way.csv", tmp_path / "run.npz"
    file.write_text("x,y,speed,heading\n0,0,0.5,90\n\n2,0,0.5,90\n4,0,0.5,90\n")
    assert run(*still, "--waypoints", file, "--out", saved)[0] == 0
    reference = Log.load(saved).reference
    np.testing.assert_allclose(reference[:, 2], math.pi / 2)
    np.testing.assert_allclose(reference[:, 4], -0.5, atol=1e-9)  # along x, seen from a boat that looks along y


def test_an_infeasible_reference_is_said_and_sailed_all_the_same(run, still):
    status, out, err = run(*still, "--reference", "line", "--speed", 2, "--json")
    assert status == 0
    assert strict(out)["infeasible"][0] in err
    assert err.startswith("warning: infeasible reference: Platform A: surge 2.00 m/s")
    assert err.count("\n") == 1
    assert strict(run(*still, "--duration", 1, "--json")[1])["infeasible"] == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["vessels", "show", "platfrm-a"], ["'platfrm-a'", "did you mean 'platform-a'"]),
        (["vessels", "show", "no.toml"], ["no.toml", "cannot be read"]),
        (["sail", "--vessel", "robot-1"], ["did you mean 'roboat-1'"]),
        (["sail", "--controller", "mcp"], ["'mcp'", "did you mean 'mpc'", "pid"]),
        (["sail", "--sea", "feild"], ["'feild'", "did you mean 'field'"]),
        (["sail", "--reference", "circel"], ["'circel'", "did you mean 'circle'", "hold"]),
        (
            ["sail", "--reference", "line", "--radius", "2"],
            ["--radius 2", "line takes --length, --speed and --heading"],
        ),
        (["sail", "--reference", "line", "--laps", "2"], ["--laps 2", "line"]),
        (["sail", "--reference", "hold", "--speed", "1"], ["--speed 1", "hold takes --heading only"]),
        (["sail", "--reference", "line", "--waypoints", "0,0 1,1"], ["--reference line with --waypoints"]),
        (["sail", "--waypoints", "0,0 1,1", "--width", "2"], ["--width 2", "waypoints"]),
        (["sail", "--waypoints", "0,0 1,1", "--laps", "2"], ["--laps 2", "end where they began"]),
        (["sail", "--waypoints", "0,0,1 1,1,1", "--speed", "2"], ["--speed 2", "column"]),
        (["sail", "--waypoints", "0,0 1,x"], ["waypoint 2", "'1,x'"]),
        (["sail", "--waypoints", "0,0 1,nan"], ["waypoint 2", "'1,nan'"]),
        (["sail", "--waypoints", "0,0 1,1,1"], ["waypoint 2", "2 columns"]),
        (["sail", "--waypoints", "0,0"], ["two or more"]),
        (["sail", "--waypoints", "no.csv"], ["no.csv", "cannot be read"]),
        (["sail", "--speed", "-1"], ["speed = -1", "positive"]),
        (["sail", "--speed", "fast"], ["--speed"]),
        (["sail", "--speed", "nan"], ["speed = nan"]),
        (["sail", "--radius", "4"], ["radius = 4", "half"]),
        (["sail", "--heading", "inf"], ["heading"]),
        (["sail", "--duration", "0"], ["duration = 0"]),
        (["sail", "--laps", "1e9"], ["duration", "a day"]),
        (["sail", "--seed", "-1"], ["--seed"]),
        (["sail", "--plot", "run.txt"], ["run.txt", ".png"]),
        (["sail", "--animate", "run.avi"], ["run.avi", ".gif", ".mp4"]),
        (["sail", "--out", "run.pkl"], ["run.pkl", ".npz"]),
        (["sail", "--sped", "1"], ["--sped"]),
        (["sial"], ["sial"]),
    ],
)
def test_a_mistake_gets_one_line_that_names_it(run, monkeypatch, tmp_path, arguments, words):
    monkeypatch.chdir(tmp_path)
    answer = complaint(*run(*arguments))
    assert all(word in answer for word in words), answer
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("Mz = 10\n", ""), ["Mz is missing"]),
        (("m = 20", "m = -20"), ["m = -20", "positive"]),
        (("X_u = 10", "X_u = nan"), ["X_u = nan", "finite"]),
        (("Mz = 10", "Mz = 10\nspeed = 3"), ["speed = 3", "unknown key"]),
        (("Fx = 30", 'Fx = "30"'), ["Fx = '30'", "number"]),
        (("Fx = 30", "Fx ="), ["not valid TOML"]),
    ],
)
@pytest.mark.parametrize("command", [["vessels", "show"], ["sail", "--vessel"]])
def test_a_broken_vessel_file_is_named_with_its_field(run, tmp_path, change, words, command):
    file = tmp_path / "boat.toml"
    file.write_text(BOAT.replace(*change))
    answer = complaint(*run(*command, file))
    assert all(word in answer for word in [str(file), *words]), answer


@pytest.mark.parametrize(("option", "name"), [("--plot", "a.png"), ("--animate", "a.gif"), ("--out", "a.npz")])
def test_output_that_cannot_be_written_is_said_before_the_run(run, still, monkeypatch, tmp_path, option, name):
    monkeypatch.setattr(controllers, "simulate", lambda *_, **__: pytest.fail("it sailed"))
    (tmp_path / "file").touch()
    (tmp_path / "folder" / name).mkdir(parents=True)
    for path in (tmp_path / "file" / name, tmp_path / "folder" / name):
        assert f"{path}: cannot be written" in complaint(*run(*still, option, path))
    assert sorted(path.name for path in tmp_path.rglob("*")) == sorted(["file", "folder", name])


def test_a_demo_that_cannot_write_its_picture_does_not_start(run, monkeypatch, tmp_path):
    monkeypatch.setattr(controllers, "simulate", lambda *_, **__: pytest.fail("it sailed"))
    (tmp_path / "file").touch()
    assert "cannot be written" in complaint(*run("demo", "--out", tmp_path / "file"))


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (InputError("the boat is upside down"), 2, "error: the boat is upside down\n"),
        (RuntimeError("no plan\nis left"), 1, "error: no plan is left\n"),
        (KeyboardInterrupt(), 130, "error: interrupted\n"),
    ],
)
def test_a_run_that_ends_early_leaves_no_file(run, monkeypatch, tmp_path, error, status, line):
    class Quits(Still):
        def step(self, pose, velocity, window):
            if velocity[0] < 0.5:
                raise error
            return np.zeros(3)

    monkeypatch.setitem(controllers.CONTROLLERS, "quits", lambda vessel: Quits())
    paths = ["--plot", tmp_path / "a.png", "--animate", tmp_path / "a.gif", "--out", tmp_path / "a.npz"]
    assert run("sail", "--controller", "quits", *paths) == (status, "", line)
    assert list(tmp_path.iterdir()) == []


def test_sail_writes_picture_and_animation_where_it_says(run, still, tmp_path):
    plot, film = tmp_path / "new" / "a.png", tmp_path / "new" / "a.gif"
    status, out, err = run(*still, "--duration", 1, "--plot", plot, "--animate", film)
    assert (status, err) == (0, "")
    assert f"plot: {plot}" in out
    assert f"animation: {film}" in out
    assert sorted(path.name for path in plot.parent.iterdir()) == ["a.gif", "a.png"]


def test_demo_compares_the_students_with_controllers_that_know_the_boat_and_draws_them(run, tmp_path):
    status, out, err = run("demo", "--out", tmp_path / "out", "--json")
    assert (status, err) == (0, "")
    answer = strict(out)
    assert set(answer["runs"]) == {"ideal", "mpc", "mpc-paper", "field", "mpc-field", "pid"}
    for tuning, runs in answer["runs"].items():
        assert list(runs) == list(PLATFORMS)
        for what in ("position_cm", "heading_deg", "roughness", "saturation"):
            mean = sum(metrics[what] for metrics in runs.values()) / 5
            assert answer["averages"][tuning][what] == pytest.approx(mean)
    assert answer["published"]["mpc-paper"] == {"position_cm": 0.33, "heading_deg": 0.07}
    assert answer["averages"]["mpc"]["position_cm"] < 0.002
    assert answer["averages"]["mpc-paper"]["position_cm"] == pytest.approx(0.33, abs=0.005)
    # The shipped policies in closed loop: better than the paper's MPC in position, and than ours in the field in both.
    assert answer["averages"]["ideal"]["position_cm"] < 0.21
    assert answer["averages"]["ideal"]["heading_deg"] < 0.17
    for what in ("position_cm", "heading_deg"):
        assert answer["averages"]["field"][what] < answer["averages"]["mpc-field"][what]
    assert [str(path) for path in (tmp_path / "out").iterdir()] == [answer["picture"]]


def test_demo_table_names_each_platform_and_the_published_figures(run, monkeypatch, tmp_path):
    monkeypatch.setattr(demo, "controller", lambda name, vessel: Still())
    status, out, err = run("demo", "--out", tmp_path)
    assert (status, err) == (0, "")
    assert all(name in out for name in PLATFORMS)
    assert re.search(r"the paper's +0\.840 +1\.810 +- +- +- +- +0\.330 +0\.070 +-", out)
    assert f"picture: {tmp_path / 'demo.png'}" in out


def test_importing_the_package_and_the_command_line_stays_light():
    heavy = {"jax", "casadi", "matplotlib"}
    code = f"import sys, anyhull, anyhull.cli, anyhull.plots; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_installed_command_runs_and_a_closed_pipe_is_no_traceback():
    command = Path(sys.executable).with_name("anyhull")
    done = subprocess.run([command, "vessels", "show", "platfrm-a"], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([command, "vessels"], stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert "Traceback" not in done.stderr


def test_a_terminal_without_greek_letters_gets_the_table_all_the_same():
    command = [sys.executable, "-m", "anyhull.cli", "vessels"]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "roboat-3" in done.stdout
