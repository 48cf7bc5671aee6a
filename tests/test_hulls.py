"""A boat's file with nothing but name, length and two thrusters: what works, what is drawn, and what is refused."""

import json
from pathlib import Path

import numpy as np
import pytest

from anyhull import Log, Pilot, simulate
from anyhull.cli import main
from anyhull.control import MPC
from anyhull.dynamics import substeps
from anyhull.errors import InputError
from anyhull.hulls import CAUTION, COUNT, at_least, at_most, possible, simulated
from anyhull.onboard.fence import stopping_time
from anyhull.onboard.limits import Limits
from anyhull.reference import circle, line
from anyhull.speeds import FORCE_SHARE, feasible_speed, force_share, spare_acceleration, turn_rate
from anyhull.twin.twin import Twin
from anyhull.vessel import Vessel

FILE = str(Path(__file__).parents[1] / "examples" / "boat-minimal.toml")
BOAT = Vessel.load(FILE)


def test_the_example_states_nothing_but_name_length_and_thrusters():
    assert (BOAT.m, BOAT.beam, BOAT.hydrodynamics) == (None, None, None)
    # Two thrusters of 50 N ahead; the moment is two levers of 0.3 m times the weaker 40 N.
    assert BOAT.limits == pytest.approx((100, 0, 24))
    assert BOAT.actuation == "under"


def test_bounds_hold_for_most_hulls():
    values = np.arange(16.0)[:, None]
    # Four in five of 0 to 15: up to 12, and from 3.
    assert at_most(values) == 12
    assert at_least(values) == 3
    assert (values <= at_most(values)).mean() >= CAUTION
    assert at_most(values[:1]) == 0


def test_a_known_boat_is_its_only_hull(platform):
    assert possible(platform) == (platform,)
    assert simulated(platform, 5) is platform
    assert len(possible(BOAT)) == COUNT
    assert simulated(BOAT, 5) == BOAT.plausible(5)


def test_speeds_are_such_that_most_hulls_can_follow():
    asked, straight = np.full(3, 100.0), np.zeros(3)
    speed = feasible_speed(BOAT, asked, straight, straight)
    able = [float(feasible_speed(hull, asked, straight, straight)[0]) for hull in possible(BOAT)]
    assert 0.5 < speed[0] < 10
    assert sum(own >= speed[0] - 1e-6 for own in able) == 13
    assert force_share(BOAT, speed, straight, straight) == pytest.approx(FORCE_SHARE, abs=1e-6)
    assert spare_acceleration(BOAT, speed, straight, straight) > 0
    assert 0 < turn_rate(100.0, 1.0, BOAT) < 100


def test_references_are_checked_against_most_hulls():
    assert line(length=10, speed=0.3).infeasible(BOAT) == []
    (surge,) = line(length=100, speed=20).infeasible(BOAT)
    assert "in surge" in surge
    # Without sway force a boat turns by drifting: most hulls can at 0.3 m/s on 10 m, none on 0.1 m.
    assert circle(radius=10, speed=0.3).infeasible(BOAT) == []
    assert any("without sway force at most" in reason for reason in circle(radius=0.1, speed=0.3).infeasible(BOAT))


def test_the_stopping_time_is_cautious():
    damping = sorted(hull.effective().inv_tau_u for hull in possible(BOAT))
    assert stopping_time(BOAT, Limits()) == pytest.approx(Limits().ramp / 2 + min(1 / damping[3], 20.0))


def test_a_simulation_draws_the_hull_of_its_seed_and_says_so():
    logs = [simulate(Pilot.load(), BOAT, line(length=2), seed=seed, duration=1.0) for seed in (0, 0, 1)]
    assert logs[0].about["hull"] == "no [hydrodynamics]: simulating plausible hull 0 of its file"
    np.testing.assert_array_equal(logs[0].state, logs[1].state)
    same = simulate(Pilot.load(), BOAT.plausible(1), line(length=2), seed=1, duration=1.0)
    np.testing.assert_array_equal(logs[2].state, same.state)
    assert "hull" not in same.about


def test_the_twin_is_a_plausible_hull():
    twins = [Twin(BOAT, seed=seed) for seed in (0, 0, 1)]
    assert twins[0].hull == twins[1].hull
    assert twins[0].vessel == BOAT.plausible(0)
    assert twins[2].vessel == BOAT.plausible(1)


def test_what_predicts_says_that_it_needs_the_table():
    for predict in (MPC, substeps, lambda vessel: vessel.normalized):
        with pytest.raises(InputError, match="Minimal boat: hydrodynamics is missing"):
            predict(BOAT)


def test_vessels_show_prints_what_is_known_and_what_is_drawn(capsys):
    assert main(["vessels", "show", FILE]) == 0
    out = capsys.readouterr().out
    assert "under-actuated, length 1.2 m" in out
    assert "limits: surge 100 N, sway 0 N, yaw 24 N·m.  Mass: not stated." in out
    assert "Ranges over 200 plausible hulls" in out
    assert main(["vessels", "show", FILE, "--json"]) == 0
    low, high = json.loads(capsys.readouterr().out)["plausible"]["top_speed"]
    assert 0.5 < low < high < 20


def test_simulate_says_which_hull_it_sails(capsys, tmp_path):
    out = tmp_path / "log.npz"
    assert main(["simulate", "--vessel", FILE, "--seed", "3", "--duration", "1", "--out", str(out)]) == 0
    line = "no [hydrodynamics]: simulating plausible hull 3 of its file"
    assert f"Minimal boat: {line}" in capsys.readouterr().err
    assert Log.load(out).about["hull"] == line


def test_pilot_plans_for_it(capsys):
    assert main(["pilot", FILE, "--reference", "line", "--speed", "0.3", "--dry-run"]) == 0
    assert main(["simulate", "--vessel", FILE, "--controller", "mpc", "--duration", "1"]) == 2
    assert "error: Minimal boat: hydrodynamics is missing: needed to predict its motion" in capsys.readouterr().err


def test_a_contradiction_about_sway_is_an_error(tmp_path):
    path = tmp_path / "boat.toml"
    path.write_text('actuation = "full"\n' + Path(FILE).read_text())
    with pytest.raises(InputError, match=r"actuation = 'full': must be 'under' or left out"):
        Vessel.load(path)
