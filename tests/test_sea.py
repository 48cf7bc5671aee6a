"""The sea: stationary deviation and bounds of the processes, and delays of any length."""

import numpy as np
import pytest
from doubles import Constant

from anyhull import Sea, hold, line, simulate
from anyhull.dynamics import PERIOD
from anyhull.errors import InputError
from anyhull.sea import PRESETS, delayed, drift_current, drift_force
from anyhull.vessel import Vessel


def test_current_and_force_keep_their_bounds_and_their_deviation():
    sea, random = Sea.field(), np.random.default_rng(0)
    current, force = (np.zeros(500),) * 2, (np.zeros(500),) * 3
    currents, forces = [], []
    for _ in range(2000):
        current = drift_current(current, random.standard_normal((2, 500)), sea)
        force = drift_force(force, random.standard_normal((3, 500)), sea)
        currents.append(current)
        forces.append(force)
    late = np.array(currents[1000:])
    assert np.hypot(late[:, 0], late[:, 1]).max() <= sea.current * (1 + 1e-9)
    assert np.abs(forces).max() <= sea.force
    # A normal of sigma = bound / 2 clipped at two sigma has a standard deviation of 0.96 sigma. Clipping at every step
    # reduces it a little further, and clipping the magnitude more than clipping each axis.
    assert 0.88 < np.std(forces[1000:]) / (sea.force / 2) < 0.96
    assert 0.7 < np.std(late) / (sea.current / 2) < 0.96
    assert np.abs(late.mean()) < 0.1 * sea.current


def test_the_force_decorrelates_at_its_decay_rate():
    sea, random = Sea(force=1.0), np.random.default_rng(1)
    force, path = (np.zeros(2000),) * 3, []
    for _ in range(220):
        force = drift_force(force, random.standard_normal((3, 2000)), sea)
        path.append(force[0])
    # After 1 / 0.5 s = 20 periods the correlation is about exp(-1), and a little below it by the clipping.
    assert np.corrcoef(path[199], path[219])[0, 1] == pytest.approx(np.exp(-1), abs=0.07)


def test_without_delay_the_newest_command_acts_at_once():
    assert delayed([(0.1, 0.2, 0.3), (9, 9, 9)], 0.0, 5) == [pytest.approx((0.1, 0.2, 0.3))] * 5


@pytest.mark.parametrize("delay", [0.02, 0.05, 0.1, 0.13, 0.2])
def test_a_delay_shifts_the_command_in_time(delay):
    # Commands 1, 2, 3, 4 are given at t = 0, 0.1, 0.2, 0.3; the period looked at begins at 0.3, newest first.
    commands = [(value,) * 3 for value in (4.0, 3.0, 2.0, 1.0)]
    parts = delayed(commands, delay, 5)
    for part, (force, *_) in enumerate(parts):
        t = 0.3 + PERIOD * (part + np.linspace(0.0005, 0.9995, 1000)) / 5 - delay
        assert force == pytest.approx(np.mean(np.floor(t / PERIOD + 1e-12) + 1), abs=2e-3)


def test_a_delay_that_is_no_multiple_of_the_period_delays_the_boat_by_its_length():
    # From rest: u = 0 until the delay is over, then a first-order response.
    vessel = Vessel.load("roboat-3")
    for delay in (0.0, 0.05, 0.13, 0.2):
        log = simulate(Constant(1, 0, 0), vessel, hold(), Sea(delay=(delay, delay)), duration=0.6)
        alpha, rate = vessel.normalized.alpha_u, vessel.normalized.inv_tau_u
        assert log.state[-1, 3] == pytest.approx(alpha / rate * (1 - np.exp(-rate * (0.5 - delay))), rel=1e-3)


def test_the_same_seed_gives_the_same_sea_and_another_seed_another():
    runs = [
        simulate(Constant(0, 0, 0), Vessel.load("platform-a"), line(), Sea.field(), seed=seed, duration=2)
        for seed in (4, 4, 5)
    ]
    np.testing.assert_array_equal(runs[0].state, runs[1].state)
    assert np.abs(runs[0].state - runs[2].state).max() > 1e-3
    assert 0 <= runs[0].about["delay"] <= 0.2


def test_presets_by_name():
    assert Sea.preset("field") == Sea.field() == PRESETS["field"]
    assert Sea.field() == Sea(current=0.2, force=0.1, delay=(0.0, 0.2))
    with pytest.raises(InputError, match=r"sea 'feild' is unknown: did you mean 'field'\?"):
        Sea.preset("feild")


@pytest.mark.parametrize("bad", [{"current": -1}, {"force": float("nan")}, {"delay": (0.2, 0.1)}, {"delay": (0, 99)}])
def test_invalid_seas_are_refused(bad):
    (name,) = bad
    with pytest.raises(InputError, match=rf"{name} = .*: must be"):
        Sea(**bad)
