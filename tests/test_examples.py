"""The examples run as they are told to be run, and show what they promise."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(folder, name, *arguments):
    """What an example prints when run in `folder`, with warnings as errors; its picture must be there afterwards."""
    command = [sys.executable, "-W", "error", EXAMPLES / f"{name}.py", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8")
    assert (done.returncode, done.stderr) == (0, "")
    with Image.open(folder / "out" / f"{name}.png") as image:
        assert min(image.size) > 900
    return done.stdout


def errors(out):
    """Position (cm) and heading (degrees) by what stands before them."""
    rows = re.findall(r"^(.+): ([\d.]+) cm and ([\d.]+)° off$", out, re.MULTILINE)
    return {name: (float(position), float(heading)) for name, position, heading in rows}


def test_every_example_is_tested_and_fits_on_a_page():
    names = {path.stem: len(path.read_text(encoding="utf-8").splitlines()) for path in EXAMPLES.glob("*.py")}
    assert set(names) == {"first_run", "own_boat", "own_controller", "sb3_ppo"}
    assert max(names.values()) < 60


def test_first_run_compares_mpc_and_pid_in_two_seas(tmp_path):
    found = errors(run(tmp_path, "first_run"))
    assert set(found) == {f"{name}, {sea} sea" for name in ("MPC", "PID") for sea in ("ideal", "field")}
    assert found["MPC, ideal sea"] < found["PID, ideal sea"] < (0.1, 0.5)
    assert found["PID, field sea"] < found["MPC, field sea"]


def test_own_boat_says_what_it_cannot_do_and_stops_at_the_jetty(tmp_path):
    out = run(tmp_path, "own_boat")
    assert "inside the training ranges" in out
    assert re.search(r"at 1\.2 m/s not feasible: My catamaran: .* N in surge: 116 % of what it has", out)
    tour, jetty = re.search(r"at 0\.6 m/s: ([\d.]+) cm on average, ([\d.]+) cm at the jetty", out).groups()
    assert float(tour) < 3
    assert float(jetty) < 3


def test_own_controller_goes_round_less_closely_than_pid(tmp_path):
    found = errors(run(tmp_path, "own_controller"))
    assert found["PID"][0] < 5 < found["HeadingAndSpeed"][0] < 100


def test_stable_baselines3_learns_to_point_the_boat_along_the_path(tmp_path):
    pytest.importorskip("stable_baselines3")
    # A sixth of the training: the boat has learned to turn, and not yet to keep up.
    found = errors(run(tmp_path, "sb3_ppo", "80000"))
    assert found["trained"][1] < 0.6 * found["untrained"][1]
