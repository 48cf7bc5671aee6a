"""The antenna's place: found by turning, not on a straight line, and given up where the accelerometer is elsewhere."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import chi2

from anyhull.onboard import Estimator, Sensors

FAST = 0.01
"""Interval of heading, gyro and accelerometer, s."""

FIX = 14
"""Intervals of those to one fix: 7 Hz."""

OFF = np.array([0.03, -0.02])
"""Place of the antenna beside the one in the file, m: 1.5 and 1 standard deviations of the tape measure."""


def turning(t):
    """Drifts over some decimetres and turns there and back by 115°, at up to 1.6 rad/s."""
    return 0.3 * math.sin(0.4 * t), 0.2 * math.sin(0.3 * t), 2.0 * math.sin(0.8 * t)


def straight(t):
    """Ahead at 0.5 m/s, with the speed changing by 0.1 m/s."""
    return 0.5 * t + 0.1 * math.sin(t), 0.0, 0.0


def turn(psi, vector):
    cos, sin = math.cos(psi), math.sin(psi)
    return np.array([cos * vector[0] - sin * vector[1], sin * vector[0] + cos * vector[1]])


def sail(
    estimator, path, stop, *, antenna=OFF, imu=(0.0, 0.0), rng=None, fix=0.005, bias=(0.0, 0.0), wrong=1.0, start=0.0
):
    """Measurements of a path with an antenna and an accelerometer at these places; states of estimate and boat, 10 Hz.

    `bias` is the accelerometer's, m/s²; `wrong` multiplies what it measures. Accelerations are second differences of
    where the accelerometer is, so they hold what a turn adds.
    """
    rng = rng or np.random.default_rng(0)
    states = []

    def place(t):
        x, y, psi = path(t)
        return np.array([x, y]) + turn(psi, imu)

    for k in range(round(start / FAST), round(stop / FAST)):
        t = k * FAST
        x, y, psi = path(t)
        n = rng.standard_normal(6)
        estimator.gyro(t, (path(t + 1e-4)[2] - path(t - 1e-4)[2]) / 2e-4 + 5e-3 * n[0])
        force = (place(t + 1e-3) - 2 * place(t) + place(t - 1e-3)) / 1e-6
        estimator.acceleration(t, wrong * turn(-psi, force) + bias + 0.05 * n[1:3])
        if k % FIX == 0:
            estimator.position(t, np.array([x, y]) + turn(psi, antenna) + fix * n[3:5])
        estimator.heading(t, psi + 0.01 * n[5])
        if k % 10 == 0:
            states.append((estimator.at(t), np.array([x, y])))
    return states


def error(states, after=0.0):
    """Mean distance of the estimate from the boat, m."""
    return np.nanmean([math.dist(found.pose[:2], place) for found, place in states if found.time >= after])


def test_turning_shows_the_antenna_within_its_standard_deviation_and_takes_its_error_from_the_position():
    # Noise as it is: 0.05 m/s² at 100 Hz is 0.005 m/s/√s, and the filter has twice that.
    exact = {"position": 0.006, "accelerometer": 0.01}
    estimator, plain = Estimator(Sensors(**exact)), Estimator(Sensors(**exact, antenna=0.0))
    states = sail(estimator, turning, 20.0)
    found, before = states[-1][0], sail(plain, turning, 20.0)
    std = np.sqrt(np.diag(found.antenna_covariance))
    assert (std < 0.005).all()
    assert (np.abs(found.antenna - OFF) < 3 * std).all()
    # Before it is as far off as the antenna, √(3² + 2²) = 3.6 cm.
    assert error(before, 10.0) == pytest.approx(0.036, abs=0.006)
    assert error(states, 10.0) < 0.3 * error(before, 10.0)


def test_a_straight_line_does_not_show_it():
    found = sail(Estimator(), straight, 20.0)[-1][0]
    assert np.sqrt(np.diag(found.antenna_covariance)) == pytest.approx([0.02, 0.02], rel=0.02)
    assert found.antenna == pytest.approx([0.0, 0.0], abs=2e-3)
    # So the position states the 2 cm that it cannot know, beside what fixes of 2 cm leave.
    deviation = np.sqrt(np.diag(found.covariance))[:2]
    assert (deviation > 0.02).all()
    assert (deviation < math.hypot(0.02, 0.02)).all()


def test_without_an_accelerometer_it_stays_what_the_file_says(monkeypatch):
    estimator = Estimator()
    monkeypatch.setattr(estimator, "acceleration", lambda *_: False)
    found = sail(estimator, turning, 20.0)[-1][0]
    assert (found.antenna == 0.0).all()
    assert np.sqrt(np.diag(found.antenna_covariance)) == pytest.approx([0.02, 0.02])


def test_an_antenna_that_is_stated_exact_is_not_estimated():
    found = sail(Estimator(Sensors(antenna=0.0, antenna_x=0.4)), turning, 5.0, antenna=(0.4, 0.0))[-1][0]
    assert (found.antenna == (0.4, 0.0)).all()
    assert (found.antenna_covariance == 0.0).all()


def test_position_and_antenna_are_consistent_by_monte_carlo():
    # Antenna and accelerometer bias drawn as stated, 10 s of turning: sums of `runs` normalized squared errors of two
    # numbers are chi-squared with 2·runs degrees of freedom. The filter's noise is ten times the accelerometer's, and
    # the velocity is no random walk, so only the upper bound is sharp; 99.9 %.
    runs, rng, found = 30, np.random.default_rng(1), []
    for _ in range(runs):
        antenna, bias = 0.02 * rng.standard_normal(2), 0.1 * rng.standard_normal(2)
        states = sail(Estimator(), turning, 10.0, antenna=antenna, rng=rng, fix=0.02, bias=bias)
        estimate, place = states[-1]
        away, off = estimate.pose[:2] - place, estimate.antenna - antenna
        found.append(
            [
                away @ np.linalg.solve(estimate.covariance[:2, :2], away),
                off @ np.linalg.solve(estimate.antenna_covariance, off),
            ]
        )
    assert (np.mean(found, axis=0) < chi2.ppf(0.999, 2 * runs) / runs).all()
    assert (np.mean(found, axis=0) > 0.5).all()


@pytest.mark.parametrize("wrong", [{"imu": (0.3, 0.0)}, {"imu": (0.0, -0.3)}, {"wrong": -1.0}, {"wrong": 2.0}])
def test_with_an_accelerometer_elsewhere_or_wrong_it_is_no_worse_than_without_the_antenna(wrong):
    aided, plain = Estimator(), Estimator(Sensors(antenna=0.0))
    states, before = sail(aided, turning, 25.0, **wrong), sail(plain, turning, 25.0, **wrong)
    assert error(states, 10.0) <= 1.05 * error(before, 10.0)
    # Falling back, it does not jump: at most 5 cm in a period of 0.1 s, beside the boat's own 14 mm.
    moves = [math.dist(one.pose[:2], two.pose[:2]) for (one, _), (two, _) in pairwise(states[20:])]
    assert max(moves) < 0.065


def test_in_a_sea_that_moves_the_mast_more_than_fixes_are_stated_it_is_not_estimated():
    # Fixes of 4 cm in place of 2: the process noise is above `SOUND`.
    estimator, plain = Estimator(), Estimator(Sensors(antenna=0.0))
    rough = {"rng": np.random.default_rng(2), "fix": 0.04}
    states = sail(estimator, turning, 20.0, **rough)
    before = sail(plain, turning, 20.0, **rough | {"rng": np.random.default_rng(2)})
    assert error(states, 5.0) <= 1.05 * error(before, 5.0)
    assert np.linalg.norm(states[-1][0].antenna) < 0.03
