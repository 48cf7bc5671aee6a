"""The preflight assessment: verdicts, limits, findings and the command `anyhull check`."""

import json
import math
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from pond import BOAT

from anyhull.cli import main
from anyhull.cli.controllers import controller
from anyhull.onboard.setup import Setup
from anyhull.preflight import assessment, findings
from anyhull.preflight.capability import PlausibleHull, weakest
from anyhull.preflight.sails import Course, Regatta, Sail
from anyhull.twin import WATERS, TwinConfig
from anyhull.twin.hull import HullUncertainty
from anyhull.twin.propulsion import ThrusterUncertainty
from anyhull.vessel import Vessel

UNKNOWN = """
name = "Unknown hull"
length = 1.0
beam = 0.5
"""
THRUSTERS = "".join(
    f"""
[[thrusters]]
kind = "fixed"
x = {x}
y = {y}
angle = {angle}
forward = {{force}}
"""
    for x, y, angle in ((0.35, 0.2, -45), (0.35, -0.2, 45), (-0.35, 0.2, 45), (-0.35, -0.2, -45))
)
AS_FILE = TwinConfig(
    water=WATERS["still"],
    hull=HullUncertainty(0.0, 0.0, (0.0, 0.0), 0.0, 0.0),
    thrusters=ThrusterUncertainty(gain=0.0, dead_band=0.0),
)
"""A twin that is the boat of the file."""


@pytest.fixture
def quick(monkeypatch):
    """Sails of a few seconds, of few hulls."""
    for name, value in (("SAILED", 2.0), ("LEAD_IN", 1.5), ("TIMEOUT", 2.0), ("FLEET", 8), ("ROUNDS", 1)):
        monkeypatch.setattr(assessment, name, value)


def boat(tmp_path, force):
    path = tmp_path / "boat.toml"
    path.write_text(UNKNOWN + THRUSTERS.format(force=force))
    return path


def check(*arguments):
    return main(["check", *map(str, arguments), "--workers", "1"])


def test_a_good_boat_is_a_go_with_all_that_an_owner_asks(quick, tmp_path, capsys):
    page = tmp_path / "page.html"
    assert check(BOAT, "--hulls", "2", "--sea", "light-air", "--json", "--page", page) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["go"] is True
    assert found["verdict"].startswith("go: 2 of 2 hulls")
    assert found["fit"] == 2
    assert list(found["shares"]) == ["10 cm", "50 cm", "one length"]
    assert found["shares"]["one length"] == 1.0
    assert [hull["seed"] for hull in found["hulls"]] == [0, 1]
    assert all(0 < hull["mean_cm"] <= hull["p95_cm"] <= hull["worst_cm"] <= 50 for hull in found["hulls"])
    assert found["highest_speed"]["value"] >= found["course"]["speed"] > 0
    assert found["tightest_turn"]["value"] <= found["course"]["radius"]
    assert len(found["thrusters"]) == 4
    assert found["causes"]
    # The mass is in the file, so that there is nothing to measure.
    assert {m["quantity"] for m in found["measurements"]} == {"top speed", "turning rate", "bollard pull"}
    assert any("ask for at most" in text for text in found["restrictions"])
    text = page.read_text()
    assert text.count("data:image/svg+xml;base64,") == 3
    assert "http" not in text.replace("http://www.w3.org", "")
    assert found["files"] == {"page": str(page)}


def test_a_hopeless_boat_is_a_no_go_with_status_1_and_a_page(quick, tmp_path, capsys):
    page = tmp_path / "page.html"
    # Four thrusters of 0.03 N against a wind of 3 m/s.
    assert check(boat(tmp_path, 0.03), "--hulls", "2", "--page", page) == 1
    out, error = capsys.readouterr()
    assert "no-go: 0 of 2 hulls" in out
    assert "ask for at most" not in out
    assert error.splitlines()[-1].startswith("error: ")
    assert 'class="verdict no-go"' in page.read_text()


def test_without_hydrodynamics_hulls_are_drawn_from_what_the_file_says(tmp_path):
    vessel = Vessel.load(boat(tmp_path, 10.0))
    hulls = [PlausibleHull.draw(vessel, TwinConfig(), seed) for seed in range(8)]
    assert len({hull.measurable["mass"] for hull in hulls}) == 8
    assert hulls[3].measurable == PlausibleHull.draw(vessel, TwinConfig(), 3).measurable
    assert all(hull.vessel.limits == vessel.limits for hull in hulls)


def test_sails_are_the_same_in_any_number_of_processes_and_progress_reaches_the_end():
    setup = Setup.load(BOAT)
    seen: list[float] = []
    course = Course(4.0, 3.0, 1.0, speed=0.3, laps=0.025, lead_in=0.5, timeout=2.0)
    jobs = [Sail(seed, course) for seed in (0, 1)]

    def sailed(workers):
        seen.clear()
        with Regatta(setup, partial(controller, "pid", setup.vessel), TwinConfig(), workers) as regatta:
            outcomes = regatta.run(jobs, seen.append)
        assert seen == sorted(seen)
        assert seen[-1] == pytest.approx(2.0, abs=0.05)
        assert all(outcome.log is not None for outcome in outcomes)
        return [outcome.log.state for outcome in outcomes if outcome.log]

    (one, two), (again, other) = sailed(1), sailed(2)
    assert_array_equal(one, again)
    assert_array_equal(two, other)
    assert np.abs(one[0] - two[0]).max() > 0.01


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read"),
        ("name = ", "not valid TOML"),
        ('name = "A"\nFx = 1\nFy = 1\nMz = 1\n', "length = None: must be given"),
        (UNKNOWN, "thrusters"),
        (UNKNOWN + "m = -3\nFx = 1\nFy = 1\nMz = 1\n", "m = -3"),
    ],
)
def test_a_bad_file_is_one_line_and_status_2(tmp_path, capsys, content, words):
    path = tmp_path / "boat.toml"
    if content is not None:
        path.write_text(content)
    assert check(path) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert len(error.splitlines()) == 1
    assert words in error or path.name in error


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--speed", "0"], "speed = 0: must be positive"),
        (["--sea", "soup"], "sea"),
        (["--hulls", "0"], "hulls"),
        (["--page", "page.txt"], "the page is written as .html"),
        (["--page", "/proc/none/page.html"], "cannot be written"),
        (["--controller", "nobody"], "controller"),
    ],
)
def test_bad_options_are_one_line_and_status_2(capsys, options, words):
    assert check(BOAT, *options) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert words in error


def test_interrupted_it_leaves_nothing_behind(quick, tmp_path, capsys, monkeypatch):
    def interrupt(self, jobs, report=None):
        raise KeyboardInterrupt

    monkeypatch.setattr(Regatta, "run", interrupt)
    old = tmp_path / "old.html"
    old.write_text("as before")
    for page in (old, tmp_path / "new.html"):
        assert check(BOAT, "--hulls", "2", "--page", page) == 130
    assert [path.name for path in tmp_path.iterdir()] == ["old.html"]
    assert old.read_text() == "as before"


def test_steady_motion_takes_the_share_of_thrust_that_balances_drag():
    hull = PlausibleHull.draw(Setup.load("examples/boat.toml").vessel, AS_FILE, 0)
    # Platform A: 54 kg/s at 0.6 m/s is 32.4 of 40 N; the air takes 7 mN more.
    assert hull.share(0.6) == pytest.approx(0.81 + 0.007 / 40, abs=1e-5)
    # 0.9 of 40 N over 54 kg/s, to the 14 steps of the bisection.
    assert hull.highest_speed(1e6) == pytest.approx(2 / 3, abs=3e-4)
    assert hull.measurable["bollard pull"] == pytest.approx(2 * 14.2 * math.sqrt(2), rel=0.3)
    # A moment of 20 N·m turns it within a second at up to 0.9 · 20 / 1.7 rad/s, beyond training's 1.2 rad/s.
    assert hull.tightest_radius(0.1) == pytest.approx(0.1 / 1.2)


def test_a_boat_without_sway_force_drifts_in_turns_and_cannot_turn_as_tightly():
    hull = PlausibleHull.draw(Vessel.load("otter-0"), AS_FILE, 0)
    speed, length = hull.highest_speed(math.inf) / 2, hull.units.length
    assert speed > 0.1
    # Slow motion against the wind is crabbing, not a turn with a large drift.
    windy = PlausibleHull.draw(Vessel.load("otter-0"), TwinConfig(water=WATERS["lake"]), 0)
    assert windy.share(0.05, 5 * length) < windy.share(speed, 5 * length) < 0.9
    assert hull.share(speed, 1.5 * length) > hull.share(speed, 15 * length) > hull.share(speed)
    assert length / 10 < hull.tightest_radius(speed) < 20 * length


def test_all_but_one_hull_in_twenty_can_do_what_is_asked_for():
    values = np.random.default_rng(0).permutation(np.arange(100.0))
    assert values[weakest(values)] == 5
    assert values[weakest(values, largest=True)] == 94
    assert weakest([3.0]) == 0


def test_few_sails_prove_little():
    # Of 20 that all succeed at least 0.05^(1/20).
    assert findings.at_least(20, 20) == pytest.approx(0.05 ** (1 / 20))
    assert findings.at_least(0, 20) == 0.0
    # Clopper and Pearson's lower bound for 9 of 10, from their table: 0.606.
    assert findings.at_least(9, 10) == pytest.approx(0.606, abs=5e-4)


def test_a_measurement_explains_a_power_law_and_no_noise():
    random = np.random.default_rng(3)
    speed = random.uniform(1, 3, 40)
    share, variance = findings.explained(speed, 2 * speed**-1.5)
    assert share == pytest.approx(1.0)
    assert variance == pytest.approx(1.5**2 * np.log(speed).var())
    # A regressor by chance would explain 1/40 of it; predicting left-out hulls, it explains nothing.
    noise = [findings.explained(speed, random.uniform(1, 3, 40))[0] for _ in range(50)]
    assert np.mean(noise) < 0.02
