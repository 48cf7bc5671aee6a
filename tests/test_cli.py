"""The command line: its output, its files, and its errors."""

import json
import math
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from doubles import BOAT

from anyhull import InputError, Log, Sea, Vessel, catalogue, rounded_rectangle, simulate
from anyhull.cli import controllers, demo, main
from anyhull.control import CONTROLLERS
from anyhull.paper import IDEAL, PLATFORMS


class Still:
    """Always commands zero: fast, and its errors are known."""

    def reset(self) -> None: ...

    def step(self, pose, velocity, window):
        return np.zeros(3)


@pytest.fixture
def still(monkeypatch):
    """The arguments of a run with a controller that needs no solver."""
    monkeypatch.setitem(CONTROLLERS, "still", lambda vessel: Still())
    return ["simulate", "--controller", "still"]


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


def error_line(status, out, err):
    """The one line of the answer to invalid input."""
    assert status == 2
    assert out == ""
    assert re.fullmatch(r"error: .+\n", err), err
    return err


def test_no_arguments_print_help_and_version_is_the_packages(run):
    status, out, err = run()
    assert (status, err) == (0, "")
    assert all(command in out for command in ("vessels", "simulate", "demo"))
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    assert run("--version") == (0, f"anyhull {project['version']}\n", "")


def test_vessel_table_names_every_vessel_and_fits_100_columns(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    status, out, _ = run("vessels")
    assert status == 0
    rows = {line.split()[0]: line for line in out.splitlines() if line.strip()}
    assert set(catalogue()) <= set(rows)
    assert max(map(len, out.splitlines())) <= 100
    assert "…" not in out.split("αu …")[0]
    assert re.search(r"stable +field +1 +1 +inside", rows["platform-a"])
    assert ">0.21" in rows["roboat-1"]
    assert re.search(r"field-under +1 +1 +inside", rows["heron"])
    assert re.search(r"field +84.7 +16 +inside", rows["supply"])


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
    assert (fleet["heron"]["actuation"], fleet["heron"]["policy"]) == ("under", "field-under")
    assert fleet["heron"]["outside"] == []
    assert (fleet["supply"]["scale"]["length"], fleet["supply"]["scale"]["period"]) == (84.7, 1.6)


@pytest.mark.parametrize("name", catalogue())
def test_every_vessel_can_be_shown(run, name):
    status, out, err = run("vessels", "show", name)
    assert (status, err) == (0, "")
    assert all(word in out for word in ("surge", "sway", "yaw", "alpha_u", "c_uv", "Source:"))


def test_show_names_the_components_outside_the_envelope_with_advice(run, tmp_path):
    file = tmp_path / "strong.toml"
    file.write_text(BOAT.replace("Fx = ", "Fx = 10"))
    _, out, _ = run("vessels", "show", file)
    assert re.search(r"alpha_u = .* is outside \[0.15, 12\]: derate Fx to 300 N", out)
    _, out, _ = run("vessels", "show", "wamv-vrx-t")
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


def test_simulate_prints_metrics_and_saves_their_run(run, tmp_path):
    file = tmp_path / "deep" / "run.npz"
    status, out, err = run("simulate", "--duration", 3, "--sea", "field", "--seed", 7, "--out", file, "--json")
    assert (status, err) == (0, "")
    answer = strict(out)
    log = Log.load(file)
    assert answer["metrics"] == pytest.approx(asdict(log.metrics()))
    assert answer["files"] == {"log": str(file)}
    assert len(log.time) == 30
    assert log.about["controller"] == "field"
    assert log.about["seed"] == answer["seed"] == 7
    assert answer["metrics"]["position_cm"] < 20

    status, out, _ = run("simulate", "--duration", 3, "--sea", "field", "--seed", 7)
    assert status == 0
    assert f"{answer['metrics']['position_cm']:.4f}" in out
    assert f"{answer['metrics']['heading_max_deg']:.4f}" in out
    assert re.search(rf"mean \|Δτ\| per step +{answer['metrics']['delta_tau']:.4f}", out)
    assert re.search(rf"saturated, % +{100 * answer['metrics']['saturation']:.1f}", out)
    assert "Platform A, field, rectangle, field sea, 3.0 s" in out


@pytest.mark.parametrize("name", ["mpc", "mpc-paper", "mpc-field", "pid"])
def test_each_controller_keeps_the_boat_near_the_line(run, name):
    status, out, _ = run(
        "simulate", "--controller", name, "--reference", "line", "--duration", 4, "--speed", 0.4, "--json"
    )
    assert status == 0
    assert strict(out)["metrics"]["position_max_cm"] < 20


def test_a_boat_without_thrust_lags_the_line_by_hand(run, still, tmp_path):
    # It starts at 0.5 m/s and coasts u·T·(1 - exp(-t/T)), T = 44/54 s, while the reference moves 0.5·t.
    file = tmp_path / "run.npz"
    assert run(*still, "--reference", "line", "--speed", 0.5, "--length", 4, "--out", file)[0] == 0
    log, lag = Log.load(file), 44 / 54
    assert len(log.time) == 80
    coasted = 0.5 * lag * -np.expm1(-log.time / lag)
    np.testing.assert_allclose(log.position_error, 0.5 * log.time - coasted, atol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "reached"),
    [
        (["--reference", "circle", "--radius", 2, "--laps", 0.5], 2 * math.pi / 0.6),
        (["--reference", "eight", "--length", 8, "--width", 3, "--heading", 90], None),
        (["--reference", "rectangle", "--length", 6, "--width", 4, "--radius", 1, "--speed", 0.5], None),
        (["--reference", "hold", "--heading", 45, "--duration", 5], 5.0),
        # 5 m at 0.6 m/s, and 0.6 m/s / 0.1 m/s² more for the ramps at both ends.
        (["--waypoints", "0,0 3,4"], 5 / 0.6 + 6),
        # 1 m/s needs 54 N of 40 N: 36 N are used, at 36/54 = 2/3 m/s, and 4 N on 44 kg accelerate by 1/11 m/s².
        (["--waypoints", "0,0,1 3,4,1"], 5 * 3 / 2 + 11 * 2 / 3),
        (["--waypoints", "0,0 3,4", "--spline"], 5 / 0.6 + 6),
        # Half of 5 m at 0.1 m/s² takes sqrt(50) s.
        (["--waypoints", "0,0,1 3,4,1", "--spline"], 2 * math.sqrt(50)),
        (["--waypoints", "0,0 4,0 4,4 0,4 0,0", "--laps", 2], None),
    ],
)
def test_every_reference_can_be_simulated(run, still, arguments, reached):
    status, out, _ = run(*still, *arguments, "--json")
    assert status == 0
    if reached is not None:
        assert strict(out)["duration"] == pytest.approx(reached, rel=1e-6)


def test_waypoints_come_from_a_csv_file_with_speed_and_heading_in_degrees(run, still, tmp_path):
    file, saved = tmp_path / "WAY.CSV", tmp_path / "run.npz"
    file.write_text("x [m],y [m],speed [m/s],heading [deg]\n0,0,,90\n\n2,0,0.5,90\n4,0,0.5,90\n")
    assert run(*still, "--waypoints", file, "--out", saved)[0] == 0
    reference = Log.load(saved).reference
    np.testing.assert_allclose(reference[:, 2], math.pi / 2)
    # Along x, in the frame of a boat with its heading along y; from rest to rest.
    assert reference[:, 4].min() == pytest.approx(-0.5)
    assert reference[0, 4] == 0
    np.testing.assert_allclose(reference[:, 3], 0, atol=1e-9)


def test_an_infeasible_reference_gives_a_warning_and_a_run(run, still):
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
        (["simulate", "--vessel", "robot-1"], ["did you mean 'roboat-1'"]),
        (["simulate", "--controller", "mcp"], ["'mcp'", "did you mean 'mpc'", "pid"]),
        (["simulate", "--sea", "feild"], ["'feild'", "did you mean 'field'"]),
        (["simulate", "--reference", "circel"], ["'circel'", "did you mean 'circle'", "hold"]),
        (
            ["simulate", "--reference", "line", "--radius", "2"],
            ["--radius 2", "line takes --length, --speed and --heading"],
        ),
        (["simulate", "--reference", "line", "--laps", "2"], ["--laps 2", "line"]),
        (["simulate", "--reference", "hold", "--speed", "1"], ["--speed 1", "hold takes --heading only"]),
        (["simulate", "--reference", "line", "--waypoints", "0,0 1,1"], ["--reference line with --waypoints"]),
        (["simulate", "--waypoints", "0,0 1,1", "--width", "2"], ["--width 2", "waypoints"]),
        (["simulate", "--waypoints", "0,0 1,1", "--laps", "2"], ["laps = 2", "closed path"]),
        (["simulate", "--waypoints", "0,0,1 1,1,1", "--speed", "2"], ["speed = 2", "waypoints state their own"]),
        (["simulate", "--waypoints", "0,0 1,x"], ["waypoint 2", "'1,x'"]),
        (["simulate", "--waypoints", "0,0 1,nan"], ["waypoint 2", "'1,nan'"]),
        (["simulate", "--waypoints", "0,0 1,1,1"], ["waypoint 2", "2 columns"]),
        (["simulate", "--waypoints", "0,0"], ["two or more"]),
        (["simulate", "--waypoints", "no.csv"], ["no.csv", "cannot be read"]),
        (["simulate", "--waypoints", "0,0 1,1", "--spline", "--radius", "2"], ["--radius 2", "--speed", "--spline"]),
        (["simulate", "--waypoints", "0,0 9,0 9,9 0,0", "--spline", "--laps", "nan"], ["laps = nan"]),
        (["simulate", "--waypoints", "0,0 9,0 9,9 0,0", "--spline", "--laps", "1.5"], ["laps = 1.5", "whole"]),
        (["simulate", "--waypoints", "0,0 1,1", "--origin", "1,2"], ["--origin", "mission file"]),
        (["simulate", "--mission", "no.toml"], ["no.toml", "cannot be read"]),
        (["simulate", "--mission", "no.kml"], ["no.kml", ".gpx"]),
        (["simulate", "--mission", "no.gpx", "--origin", "1"], ["--origin 1", "LAT,LON"]),
        (["simulate", "--mission", "no.gpx", "--width", "2"], ["--width 2", "--spacing"]),
        (["simulate", "--speed", "-1"], ["speed = -1", "positive"]),
        (["simulate", "--speed", "fast"], ["--speed"]),
        (["simulate", "--speed", "nan"], ["speed = nan"]),
        (["simulate", "--radius", "4"], ["radius = 4", "half"]),
        (["simulate", "--heading", "inf"], ["heading"]),
        (["simulate", "--duration", "0"], ["duration = 0"]),
        (["simulate", "--laps", "1e5"], ["duration", "one day"]),
        (["simulate", "--seed", "-1"], ["--seed"]),
        (["simulate", "--plot", "run.txt"], ["run.txt", ".png"]),
        (["simulate", "--animate", "run.avi"], ["run.avi", ".gif", ".mp4"]),
        (["simulate", "--out", "run.pkl"], ["run.pkl", ".npz"]),
        (["simulate", "--sped", "1"], ["--sped"]),
        (["simulat"], ["simulat"]),
    ],
)
def test_invalid_input_gives_one_line_that_names_it(run, monkeypatch, tmp_path, arguments, words):
    monkeypatch.chdir(tmp_path)
    answer = error_line(*run(*arguments))
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
@pytest.mark.parametrize("command", [["vessels", "show"], ["simulate", "--vessel"]])
def test_a_broken_vessel_file_is_named_with_its_field(run, tmp_path, change, words, command):
    file = tmp_path / "boat.toml"
    file.write_text(BOAT.replace(*change))
    answer = error_line(*run(*command, file))
    assert all(word in answer for word in [str(file), *words]), answer


@pytest.mark.parametrize(("option", "name"), [("--plot", "a.png"), ("--animate", "a.gif"), ("--out", "a.npz")])
def test_an_unwritable_output_is_refused_before_the_run(run, still, monkeypatch, tmp_path, option, name):
    monkeypatch.setattr(controllers, "simulate", lambda *_, **__: pytest.fail("it ran"))
    (tmp_path / "file").touch()
    (tmp_path / "folder" / name).mkdir(parents=True)
    for path in (tmp_path / "file" / name, tmp_path / "folder" / name):
        assert f"{path}: cannot be written" in error_line(*run(*still, option, path))
    assert sorted(path.name for path in tmp_path.rglob("*")) == sorted(["file", "folder", name])


def test_a_log_is_never_replaced_and_a_picture_is(run, still, monkeypatch, tmp_path):
    log, picture = tmp_path / "run.npz", tmp_path / "run.png"
    first = [*still, "--duration", 1, "--plot", picture]
    assert run(*first, "--out", log)[0] == 0
    content = log.read_bytes()
    assert run(*first)[0] == 0
    monkeypatch.setattr(controllers, "simulate", lambda *_, **__: pytest.fail("it ran"))
    for command in (first, ["trial", "--trials", 1]):
        assert f"{log}: exists" in error_line(*run(*command, "--out", log))
    assert log.read_bytes() == content


def test_the_help_has_the_names_of_tables_in_brackets(run):
    assert run("twin", "--help")[1].count("[link]") == 2


@pytest.mark.parametrize("command", ["simulate", "trial"])
def test_a_dry_run_prints_the_plan_and_draws_it_without_a_run(run, monkeypatch, tmp_path, command):
    monkeypatch.setattr(controllers, "simulate", lambda *_, **__: pytest.fail("it ran"))
    picture = tmp_path / "plan.png"
    arguments = [command, "--waypoints", "0,0 10,0 10,5", "--radius", 1, "--dry-run"]
    status, out, err = run(*arguments, "--plot", picture)
    assert (status, err) == (0, "")
    # The second leg: 5 m along y, of which the arc of 1 m takes 1 m.
    assert re.search(r"^2 +10\.0, 0\.0 +10\.0, 5\.0 +90\.0 +5\.0 +0\.60", out, re.MULTILINE)
    # R (1 - cos 45°) and R (1 / cos 45° - 1).
    assert "path: at most 0.29 m off the legs, waypoints passed within 0.41 m; corridor 1 m" in out
    assert "feasible" in out
    assert picture.stat().st_size > 10_000
    plan = strict(run(*arguments, "--json")[1])
    assert plan["legs"][1]["course"] == pytest.approx(90)
    assert plan["length"] == pytest.approx(13 + math.pi / 2, abs=0.05)
    assert [stage["label"] for stage in plan["stages"]] == ["leg 1 of 2, to waypoint 2", "leg 2 of 2, to waypoint 3"]


def test_simulate_reports_the_distance_of_path_and_boat_from_the_legs(run, still):
    way = ["--waypoints", "0,0 10,0 10,10", "--radius", 2, "--duration", 1, "--json"]
    answer = strict(run(*still, *way)[1])
    assert answer["deviation"] == pytest.approx(2 * (1 - math.sqrt(0.5)))
    # The boat rests on the first leg.
    assert answer["cross_track_cm"]["max"] == pytest.approx(0, abs=1e-9)
    assert "distance from the legs, cm" in run(*still, *way[:-1])[1]


def test_a_demo_with_an_unwritable_figure_does_not_start(run, monkeypatch, tmp_path):
    monkeypatch.setattr(controllers, "simulate", lambda *_, **__: pytest.fail("it ran"))
    (tmp_path / "file").touch()
    assert "cannot be written" in error_line(*run("demo", "--out", tmp_path / "file"))


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

    monkeypatch.setitem(CONTROLLERS, "quits", lambda vessel: Quits())
    paths = ["--plot", tmp_path / "a.png", "--animate", tmp_path / "a.gif", "--out", tmp_path / "a.npz"]
    assert run("simulate", "--controller", "quits", *paths) == (status, "", line)
    assert list(tmp_path.iterdir()) == []


def test_simulate_writes_figure_and_animation_to_the_printed_paths(run, still, tmp_path):
    plot, film = tmp_path / "new" / "a.png", tmp_path / "new" / "a.gif"
    status, out, err = run(*still, "--duration", 1, "--plot", plot, "--animate", film)
    assert (status, err) == (0, "")
    assert f"plot: {plot}" in out
    assert f"animation: {film}" in out
    assert sorted(path.name for path in plot.parent.iterdir()) == ["a.gif", "a.png"]


def test_demo_reports_the_runs_of_one_seed_and_draws_them(run, tmp_path):
    """The output is that of `simulate` with seed 0; test_pilot.py compares controllers over several seeds."""
    status, out, err = run("demo", "--out", tmp_path / "out", "--json")
    assert (status, err) == (0, "")
    answer = strict(out)
    assert {sea: list(runs) for sea, runs in answer["runs"].items()} == {
        "ideal": ["ideal", "adaptive", "mpc"],
        "field": ["field", "adaptive", "mpc-field"],
    }
    for sea, labels in demo.CONTROLLERS.items():
        for name in labels:
            runs = answer["runs"][sea][name]
            assert list(runs) == list(PLATFORMS)
            for what in ("position_cm", "heading_deg", "delta_tau", "saturation"):
                mean = sum(metrics[what] for metrics in runs.values()) / 5
                assert answer["averages"][sea][name][what] == pytest.approx(mean)
            vessel = Vessel.load("platform-b")
            controller = controllers.controller(name, vessel)
            log = simulate(controller, vessel, rounded_rectangle(), Sea.preset(sea), seed=0)
            assert runs["platform-b"] == asdict(log.metrics()), name
    assert answer["published"] == {"ideal": IDEAL["student"]._asdict()}
    # Ideal conditions are deterministic.
    still = answer["averages"]["ideal"]
    assert still["ideal"]["position_cm"] < 0.21
    assert still["ideal"]["heading_deg"] < 0.17
    assert still["mpc"]["position_cm"] < still["adaptive"]["position_cm"] < still["ideal"]["position_cm"]
    assert [str(path) for path in (tmp_path / "out").iterdir()] == [answer["picture"]]


def test_demo_table_names_each_platform_and_the_published_figures(run, monkeypatch, tmp_path):
    monkeypatch.setattr(demo, "controller", lambda name, vessel: Still())
    status, out, err = run("demo", "--out", tmp_path)
    assert (status, err) == (0, "")
    assert all(name in out for name in PLATFORMS)
    assert re.search(r"the paper's +0\.840 +1\.810 +-( +-){6}", out)
    assert "\nmpc: MPC with a perfect model\n" in out
    assert out.count("mean |Δτ|") == 6
    assert f"figure: {tmp_path / 'demo.png'}" in out


def test_importing_the_package_and_the_command_line_stays_light():
    heavy = {"jax", "casadi", "matplotlib"}
    code = f"import sys, anyhull, anyhull.cli, anyhull.viz.plots; print(sorted({heavy} & set(sys.modules)))"
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


EXAMPLE = (Path(__file__).parents[1] / "examples" / "boat.toml").read_text()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("[guard]\nstep = 100", ["guard.step = 100", "at most 1"]),
        ("[guard]\nuplink = 1e9", ["guard.uplink = 1", "at most 3600"]),
        ("[guard]\nstpe = 1", ["guard.stpe = 1", "did you mean 'step'"]),
        ("[sensors]\nantenna_x = 1e9", ["sensors.antenna_x", "from -500 to 500"]),
        ("[linkk]\nkey = 'a'", ["linkk", "did you mean 'link'"]),
    ],
)
def test_the_tables_for_the_loop_are_checked_with_the_vessel(run, tmp_path, more, words):
    file = tmp_path / "boat.toml"
    file.write_text(f"{EXAMPLE}\n{more}\n")
    answer = error_line(*run("vessels", "show", file))
    assert all(word in answer for word in ["boat.toml: ", *words]), answer


def test_a_path_outside_the_fence_of_the_boats_file_is_refused(run, tmp_path):
    file = tmp_path / "boat.toml"
    file.write_text(f"{EXAMPLE}\n[fence]\nx = 0\ny = 0\nradius = 8\n")
    status, out, _ = run("pilot", file, "--waypoints", "0,0 20,0", "--dry-run")
    assert status == 0
    assert "infeasible: the path leaves the fence: (8.0, 0.0) m" in out
    assert "of the boat's file" in error_line(*run("pilot", file, "--waypoints", "0,0 20,0"))
    assert "feasible: within the limits" in run("pilot", file, "--waypoints", "0,0 6,0", "--dry-run")[1]
