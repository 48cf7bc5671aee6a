"""The lab: its JavaScript against the package, its page in a browser, and its command."""

import base64
import json
import re
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from lab_node import NODE, case, random_boats, run_node

from anyhull import Pilot, Sea, Vessel, circle, figure_eight, hold, rounded_rectangle, simulate, through
from anyhull.cli import main
from anyhull.control import MPC, PID
from anyhull.lab import lab_page, model_script, write_page
from anyhull.lab.data import vessel_data

needs_node = pytest.mark.skipif(NODE is None, reason="needs node, to run the page's scripts without a browser")


def assert_same(states, expected):
    """Positions to 1e-6 m. Rates to 1e-5, since rounding in single precision is magnified by the yaw acceleration."""
    np.testing.assert_allclose(np.array(states)[:, :2], expected[:, :2], rtol=0, atol=1e-6)
    np.testing.assert_allclose(states, expected, rtol=0, atol=1e-5)


@needs_node
def test_fifty_random_boats_and_seas_go_where_they_do_in_python_to_a_micrometre():
    fleet = list(random_boats(50))
    cases = [case(vessel, data, sea, seed, ["student", "pid"]) for seed, (vessel, _, data, sea) in enumerate(fleet)]
    worst = {"student": 0.0, "pid": 0.0}
    for seed, ((vessel, reference, _, sea), result) in enumerate(zip(fleet, run_node(cases), strict=True)):
        for name, controller in (("student", Pilot.load(vessel=vessel)), ("pid", PID(vessel))):
            expected = simulate(controller, vessel, reference, sea, seed=seed, duration=10.0).state
            gap = float(np.abs(np.array(result["states"][name]) - expected)[:, :2].max())
            worst[name] = max(worst[name], gap)
    # What is left of the student's is the order of sums in single precision; PID has no such sums.
    assert worst["student"] < 1e-6
    assert worst["pid"] < 1e-12


@needs_node
def test_the_mpc_goes_where_the_package_s_does():
    # Python's solver stops at a dual residual of 1e-4, the page's at a change of command of 1e-7.
    pytest.importorskip("casadi")
    runs = []
    for name in ("platform-b", "roboat-1", "csad"):
        vessel = Vessel.load(name)
        unit, speed = vessel.scale.length, 0.6 * vessel.scale.speed * (0.3 if name == "csad" else 1)
        sizes = (10 * unit, 6 * unit, 2 * unit)
        runs.append((vessel, rounded_rectangle(*sizes, speed=speed), ["roundedRectangle", *sizes, speed]))
    cases = [
        case(vessel, data, vessel.scale.sea(sea), 0, [tuning], seconds=10.0)
        for vessel, _, data in runs
        for tuning, sea in (("tight", Sea.ideal()), ("field", Sea.field()))
    ]
    results = iter(run_node(cases))
    for vessel, reference, _ in runs:
        for tuning, sea in (("tight", Sea.ideal()), ("field", Sea.field())):
            expected = simulate(MPC(vessel, tuning), vessel, reference, vessel.scale.sea(sea), duration=10.0).state
            gap = np.abs(np.array(next(results)["states"][tuning]) - expected)[:, :2].max()
            assert gap < 1e-5, (vessel.name, tuning)


def heavier(vessel, times):
    """The vessel with so many times its mass, spread as its own is: the yaw inertia grows as the mass does."""
    hull = replace(vessel.hull, I_comb=times * vessel.hull.I_comb)
    return replace(vessel, m=times * vessel.mass, hydrodynamics=hull)


@needs_node
def test_three_times_the_mass_is_that_of_a_vessel_of_three_times_the_mass():
    vessel, reference = Vessel.load("roboat-2"), rounded_rectangle()
    run = case(vessel, ["roundedRectangle", 10, 6, 2, 0.6], Sea.field(), 3, ["student", "pid"])
    (result,) = run_node([run | {"change": {"step": 40, "mass": 3}}])
    for name, controller in (("student", Pilot.load(vessel=vessel)), ("pid", PID(vessel))):
        change = (4.0, heavier(vessel, 3))
        expected = simulate(controller, vessel, reference, Sea.field(), seed=3, duration=10, vessel_change=change)
        assert_same(result["states"][name], expected.state)


@needs_node
def test_ppo_the_latent_and_the_estimated_dynamics_are_the_pilots():
    vessel, reference = Vessel.load("csad"), hold()
    sea = vessel.scale.sea(Sea.field())
    run = case(vessel, ["hold", 30.0], sea, 5, ["student"], seconds=20.25)
    plain = Vessel.load("platform-a")
    (result, other) = run_node([run, case(plain, ["circle", 3, 0.6], Sea.field(), 5, ["ppo"])])
    pilot = Pilot.load(vessel=vessel)
    simulate(pilot, vessel, reference, sea, seed=5, duration=20.25)
    np.testing.assert_allclose(result["latent"], pilot.latent, atol=1e-4)
    found = pilot.dynamics
    assert found is not None
    np.testing.assert_allclose(result["estimate"]["e"], found.e, rtol=1e-4)
    np.testing.assert_allclose(result["estimate"]["spread"], found.spread, rtol=1e-4)
    for name in ("delay", "current", "force"):
        np.testing.assert_allclose(result["estimate"]["sea"][name], getattr(found, name), atol=1e-5)
    ppo = Pilot.load("src/anyhull/policies/baselines/field-ppo-general.safetensors", plain)
    expected = simulate(ppo, plain, circle(), Sea.field(), seed=5, duration=10.0)
    assert_same(other["states"]["ppo"], expected.state)


@needs_node
def test_a_dead_thruster_takes_away_what_the_allocation_gave_it():
    # Milliampere 1 has azimuths at the corners of a rectangle, equally strong: each gives a quarter of the surge force,
    # and takes its moment about the centre with it.
    vessel = Vessel.load("milliampere1")
    x, y = {abs(t.x) for t in vessel.thrusters}, {abs(t.y) for t in vessel.thrusters}
    assert len(x) == len(y) == 1
    cases = [{"command": [0.4, 0, 0], "dead": dead} for dead in ([], [0], [0, 1, 2, 3])]
    (result,) = run_node([{"vessel": vessel_data(vessel), "lost": cases}])
    none, one, every = result["delivered"]
    assert none == [0.4, 0, 0]
    moment = 0.1 * vessel.Fx * vessel.thrusters[0].y / vessel.Mz
    np.testing.assert_allclose(one, [0.3, 0, moment], atol=1e-6)
    np.testing.assert_allclose(every, 0, atol=1e-6)


@needs_node
def test_the_shapes_are_the_package_s():
    points = [[0, 0], [4, 1], [5, 4], [1, 5], [-2, 2]]
    shapes = [
        (rounded_rectangle(8, 5, 1, speed=0.4), ["roundedRectangle", 8, 5, 1, 0.4]),
        (circle(2, speed=0.5), ["circle", 2, 0.5]),
        (figure_eight(9, 4, speed=0.7), ["figureEight", 9, 4, 0.7]),
        (through(points, speed=0.5, closed=True), ["through", points, 0.5]),
        (hold(), ["hold", 30]),
    ]
    times = np.linspace(0, 200, 401)
    vessel = vessel_data(Vessel.load("platform-a"))
    for (reference, _), result in zip(
        shapes,
        run_node([{"vessel": vessel, "reference": data, "at": times.tolist()} for _, data in shapes]),
        strict=True,
    ):
        np.testing.assert_allclose(result["reference"], reference.at(times), atol=1e-8)


class Stream:
    """The page's generator in the place of NumPy's: PCG32 of O'Neill (2014) and the transform of Box and Muller."""

    def __init__(self, seed):
        self._state, self._spare = 0, []
        self._bits()
        self._state = (self._state + seed) % 2**64
        self._bits()

    def _bits(self):
        old = self._state
        self._state = (old * 6364136223846793005 + 1) % 2**64
        mixed, turn = (((old >> 18) ^ old) >> 27) % 2**32, old >> 59
        return (mixed >> turn | mixed << (-turn & 31)) % 2**32

    def uniform(self, low, high):
        assert low == high  # the page states its delay
        return low

    def standard_normal(self, count):
        while len(self._spare) < count:
            radius = np.sqrt(-2 * np.log((self._bits() + 0.5) / 2**32))
            angle = 2 * np.pi * (self._bits() + 0.5) / 2**32
            self._spare += [radius * np.cos(angle), radius * np.sin(angle)]
        drawn, self._spare = self._spare[:count], self._spare[count:]
        return np.array(drawn)


@needs_node
@pytest.mark.parametrize("seed", [0, 1, 99999])
def test_the_same_seed_gives_the_same_lap(seed, monkeypatch):
    vessel, sea = Vessel.load("platform-b"), Sea(current=0.2, force=0.1, delay=(0.13, 0.13))
    run = case(vessel, ["roundedRectangle", 10, 6, 2, 0.6], sea, 0, ["student"]) | {"normals": None, "seed": seed}
    (result,) = run_node([run])
    monkeypatch.setattr(np.random, "default_rng", Stream)
    expected = simulate(Pilot.load(vessel=vessel), vessel, rounded_rectangle(), sea, seed=seed, duration=10.0)
    assert_same(result["states"]["student"], expected.state)


def test_the_page_is_one_file_below_1_mb_that_loads_nothing():
    page = lab_page()
    assert len(page.encode()) < 1_000_000
    # The documentation is linked to; nothing else has an address, and nothing is fetched.
    assert set(re.findall(r"https?://[^\s\"'<>`]+", page)) == {
        "https://github.com/anyhull/anyhull/blob/main/docs/lab.md"
    }
    assert re.findall(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=\"([^\"]*)", page) == ["data:,"]
    assert not re.search(r"\b(?:fetch|XMLHttpRequest|WebSocket|sendBeacon|import)\s*\(|@import|url\(", page)
    assert page.count("</script>") == 1


def test_the_weights_are_those_shipped_bit_for_bit():
    # The last numbers of the layout are the GRU's recurrent bias.
    data = json.loads(model_script().split("\n", 1)[0].removeprefix("const DATA = ").removesuffix(";"))
    weights = base64.b64decode(data["policies"]["student"]["weights"])
    cell = Pilot.load().parts.cell
    assert cell is not None
    bias_n = cell.bias_n
    assert list(struct.unpack(f"<{bias_n.size}f", weights[-4 * bias_n.size :])) == bias_n.tolist()


def test_lab_writes_the_page_and_never_over_a_file(tmp_path, capsys):
    assert main(["lab", "--out", str(tmp_path / "new"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    page = tmp_path / "new" / "index.html"
    assert told == {"page": str(page), "bytes": page.stat().st_size, "opened": False}
    assert [path.name for path in page.parent.iterdir()] == ["index.html"]
    page.write_text("mine")
    assert main(["lab", "--out", str(page.parent)]) == 2
    assert "never replaces a file" in capsys.readouterr().err
    assert page.read_text() == "mine"


def test_lab_opens_a_page_of_its_own(monkeypatch, capsys, tmp_path):
    opened = []

    def browse(address):
        opened.append(address)
        return True

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("webbrowser.open", browse)
    assert main(["lab"]) == 0
    (address,) = opened
    path = Path(capsys.readouterr().out.strip())
    assert address == path.as_uri()
    assert path.stat().st_size > 500_000
    monkeypatch.setattr("webbrowser.open", lambda address: False)
    assert main(["lab"]) == 0
    assert "open that file" in capsys.readouterr().out


def test_lab_says_in_one_line_what_it_cannot_write(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["lab", "--out", str(tmp_path / "file")]) == 2
    assert "cannot be written" in capsys.readouterr().err
    with pytest.raises(Exception, match="cannot be written"):
        write_page(tmp_path / "file")
