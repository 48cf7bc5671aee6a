"""The estimator: its consistency by Monte Carlo, its outlier rejection and its health."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from anyhull.control import PID
from anyhull.dynamics import PERIOD
from anyhull.onboard import Estimator, Sensors
from anyhull.reference import rounded_rectangle
from anyhull.sea import Sea
from anyhull.simulate import simulate
from anyhull.vessel import Vessel

FAST = 0.01
"""Interval of heading and gyro, s."""


def wrapped(angle):
    return (angle + np.pi) % (2 * np.pi) - np.pi


def cruise(t, speed=0.6, rate=0.2):
    """Pose and yaw rate of a boat on a circle from the origin."""
    psi = rate * t
    return speed / rate * math.sin(psi), speed / rate * (1 - math.cos(psi)), psi, rate


def feed(estimator, start, stop, rng=None, skip=(), heading_off=0.0, clock=0.0):
    """Measurements of the circle with (start, stop], 100 Hz and 7 Hz, as on the boat."""
    for k in range(round(start / FAST) + 1, round(stop / FAST) + 1):
        t = k * FAST
        x, y, psi, rate = cruise(t)
        noise = np.zeros(4) if rng is None else rng.normal(size=4)
        if "gyro" not in skip:
            estimator.gyro(t + clock, rate + 5e-3 * noise[0])
        if "heading" not in skip:
            estimator.heading(t + clock, wrapped(psi + heading_off + 0.02 * noise[1]))
        if "position" not in skip and math.floor(7 * t) != math.floor(7 * (t - FAST)):
            estimator.position(t + clock, (x + 0.02 * noise[2], y + 0.02 * noise[3]))


def started(seconds=5.0, **sensors):
    estimator = Estimator(Sensors(**sensors))
    feed(estimator, 0.0, seconds, np.random.default_rng(0))
    assert estimator.at(seconds).health == "ok"
    return estimator


def position_error(estimate, t):
    return math.dist(estimate.pose[:2], cruise(t)[:2])


def test_a_boat_on_a_circle_is_found():
    estimate = started(10.0, antenna=0.0).at(10.0)
    x, y, psi, rate = cruise(10.0)
    # Three standard deviations of what 7 Hz fixes of 2 cm and 100 Hz headings of 0.02 rad leave.
    assert estimate.pose == pytest.approx([x, y, wrapped(psi)], abs=0.05)
    assert estimate.velocity == pytest.approx([0.6, 0.0, rate], abs=0.2)
    assert np.sqrt(np.diag(estimate.covariance))[:2].max() < 0.02
    assert estimate.reason == ""


def misfit(estimate, p, psi, w, bias, c):
    """Normalized squared errors of the state, which holds the velocity through the water, and of the pose."""
    sin, cos = math.sin(estimate.pose[2]), math.cos(estimate.pose[2])
    c_x, c_y = estimate.current
    water = estimate.velocity[:2] - (cos * c_x + sin * c_y, cos * c_y - sin * c_x)
    error = np.array([*p, psi, *w, bias, *c]) - [*estimate.pose, *water, estimate.bias, *estimate.current]
    error[2] = wrapped(error[2])
    pose = error[:3] @ np.linalg.solve(estimate.covariance[:3, :3], error[:3])
    return error @ np.linalg.solve(estimate.covariance, error), pose


def model_run(rng, sensors, stop, checks):
    """Normalized squared errors of the state and of the pose at the checks, in a world that is the filter's model."""
    s, estimator = sensors, Estimator(sensors)
    p, psi = rng.normal(size=2) * 10, rng.uniform(-np.pi, np.pi)
    w, c, bias = s.speed * rng.normal(size=2), s.current * rng.normal(size=2), s.gyro_bias * rng.normal()
    last_w = math.exp(-FAST * s.acceleration**2 / (2 * s.speed**2))
    last_c = math.exp(-FAST / s.current_time)
    rate, found = 0.0, []
    for k in range(round(stop / FAST)):
        t = k * FAST
        z = rng.normal(size=10)
        if k > 0:
            before, rate = rate, 0.5 * math.sin(0.7 * t)
            middle = psi + rate * FAST / 2
            cos, sin = math.cos(middle), math.sin(middle)
            p = p + FAST * (np.array([cos * w[0] - sin * w[1], sin * w[0] + cos * w[1]]) + c)
            psi += FAST * (before + rate) / 2
            w = last_w * w + s.speed * math.sqrt(1 - last_w**2) * z[0:2]
            c = last_c * c + s.current * math.sqrt(1 - last_c**2) * z[2:4]
            bias += s.gyro_bias_walk * math.sqrt(FAST) * z[4]
        estimator.gyro(t, rate + bias + s.gyro / math.sqrt(FAST) * z[5])
        if k % 14 == 0:
            lever = (math.cos(psi) * s.antenna_x, math.sin(psi) * s.antenna_x)
            estimator.position(t, p + lever + s.position * z[6:8])
        estimator.heading(t, psi + s.heading * z[8])
        if k in checks:
            found.append(misfit(estimator.at(t), p, psi, w, bias, c))
    return found, estimator


def test_the_covariance_is_consistent_by_monte_carlo():
    runs, checks = 40, (100, 400, 599)
    sensors = Sensors(antenna_x=0.4, antenna=0.0)
    rng = np.random.default_rng(0)
    results = [model_run(rng, sensors, 6.0, checks) for _ in range(runs)]
    errors = np.array([found for found, _ in results])
    # A sum of `runs` squared errors of n numbers is chi-squared with n·runs degrees of freedom; 99.9 % either side.
    for column, n in ((0, 8), (1, 3)):
        low, high = chi2.ppf([0.0005, 0.9995], n * runs) / runs
        for k in range(len(checks)):
            assert low < errors[:, k, column].mean() < high, (n, checks[k])
    # 4 standard deviations are passed 6e-5 of the time in one dimension: of 24 000 headings 1.5 on average.
    assert sum(estimator.rejected.total() for _, estimator in results) < 10


def test_velocity_over_ground_is_known_where_its_parts_are_not():
    estimate = started(10.0).at(10.0)
    current = np.sqrt(np.diag(estimate.covariance)[6:])
    assert (current > 0.5 * Sensors().current).all()
    assert np.sqrt(np.diag(estimate.velocity_covariance)).max() < 0.1


def test_turning_shows_the_current():
    # A boat that drives circles at 0.6 m/s through water that drifts by (0.15, 0): the part that does not turn.
    estimator, rate = Estimator(Sensors(current_time=1e4, acceleration=0.05)), 0.5
    for k in range(round(60 / FAST)):
        t = k * FAST
        estimator.gyro(t, rate)
        estimator.heading(t, wrapped(rate * t))
        if k % 14 == 0:
            estimator.position(t, (1.2 * math.sin(rate * t) + 0.15 * t, 1.2 * (1 - math.cos(rate * t))))
    estimate = estimator.at(60.0)
    assert estimate.current == pytest.approx([0.15, 0.0], abs=0.03)
    assert np.sqrt(np.diag(estimate.covariance)[6:]).max() < 0.05


def test_a_gyro_bias_is_found():
    estimator = Estimator()
    for k in range(2000):
        estimator.gyro(k * FAST, 0.03)
        estimator.heading(k * FAST, 1.0)
        if k % 14 == 0:
            estimator.position(k * FAST, (1.0, 2.0))
    estimate = estimator.at(20.0)
    assert estimate.bias == pytest.approx(0.03, abs=2e-3)
    assert estimate.velocity[2] == pytest.approx(0.0, abs=2e-3)


def test_an_antenna_ahead_shows_the_heading_of_a_boat_that_turns_on_the_spot():
    # One poor heading, 0.1 rad off; then only the arc of an antenna two metres ahead of where the boat turns.
    sensors = Sensors(antenna_x=2.0, speed=0.05, acceleration=0.01, current=0.01, gyro_bias=1e-3)
    estimator, rate = Estimator(sensors), 0.5
    estimator.heading(0.0, 0.2, std=0.1)
    for k in range(501):
        psi = 0.3 + rate * k * FAST
        estimator.gyro(k * FAST, rate)
        if k % 14 == 0:
            estimator.position(k * FAST, (7 + 2 * math.cos(psi), 3 + 2 * math.sin(psi)))
    estimate = estimator.at(5.0)
    # An error of heading moves the boat by twice as much from the antenna.
    assert estimate.pose[2] == pytest.approx(0.3 + 2.5, abs=0.03)
    assert estimate.pose[:2] == pytest.approx([7, 3], abs=0.06)


def test_a_real_boat_is_followed_without_knowing_it():
    # Platform B under PID in the field sea: the filter has neither its dynamics nor the commands nor the sea.
    log = simulate(PID(Vessel.load("platform-b")), Vessel.load("platform-b"), rounded_rectangle(), Sea.field(), seed=1)
    rng, estimator = np.random.default_rng(1), Estimator()
    far, fast = [], []
    fix = 0.0
    for k, (before, after) in enumerate(pairwise(log.state[:300])):
        for j in range(10):
            t = (k + j / 10) * PERIOD
            # Straight between the log's states, the heading the short way.
            turn = wrapped(after[2] - before[2])
            state = before + j / 10 * (after - before)
            psi = before[2] + j / 10 * turn
            estimator.gyro(t, state[5] + 5e-3 * rng.normal() + 0.01)
            estimator.heading(t, wrapped(psi + 0.02 * rng.normal()))
            if t >= fix:
                estimator.position(t, state[:2] + 0.02 * rng.normal(size=2))
                fix += 1 / 7
        estimate = estimator.at((k + 1) * PERIOD)
        if k > 30:
            assert estimate.health == "ok"
            far.append(math.dist(estimate.pose[:2], after[:2]))
            fast.append(np.abs(estimate.velocity - after[3:]))
    assert np.mean(far) < 0.025
    assert np.mean(fast, axis=0) == pytest.approx([0, 0, 0], abs=0.06)
    assert estimator.rejected["position", "outlier"] == 0


def test_a_boat_with_more_acceleration_than_assumed_is_followed():
    # 3 m/s² one way and the other: between 0 and 1 m/s three times in two seconds, fifteen times `acceleration`.
    estimator, rng = Estimator(), np.random.default_rng(2)
    x, far = 0.0, []
    for k in range(2000):
        t = k * FAST
        speed = abs((3 * t + 1) % 2 - 1) if t > 3 else 0.0
        x += FAST * speed
        estimator.gyro(t, 0.0)
        estimator.heading(t, 0.02 * rng.normal())
        if k % 14 == 0:
            estimator.position(t, (x + 0.02 * rng.normal(), 0.02 * rng.normal()))
        if t > 5 and k % 10 == 0:
            estimate = estimator.at(t)
            assert estimate.health == "ok"
            far.append(abs(estimate.pose[0] - x))
    assert np.mean(far) < 0.05
    assert estimator.rejected["position", "outlier"] <= 3


def test_one_flipped_heading_is_rejected():
    estimator = started()
    before = estimator.at(5.0)
    assert not estimator.heading(5.005, wrapped(before.pose[2] + math.pi))
    assert estimator.rejected == {("heading", "outlier"): 1}
    assert estimator.at(5.005).pose[2] == pytest.approx(before.pose[2] + 0.001, abs=1e-3)
    feed(estimator, 5.0, 6.0)
    assert estimator.at(6.0).health == "ok"


def test_a_heading_that_stays_flipped_is_reported_and_in_the_end_accepted():
    estimator = started()
    feed(estimator, 5.0, 6.0, heading_off=math.pi)
    estimate = estimator.at(6.0)
    assert (estimate.health, estimate.reason) == ("dead reckoning", "heading outliers for 1.0 s")
    assert position_error(estimate, 6.0) < 0.1
    seen = set()
    for k in range(60, 100):
        feed(estimator, k / 10, (k + 1) / 10, heading_off=math.pi)
        seen.add(estimator.at((k + 1) / 10).health)
    assert seen == {"dead reckoning", "starting", "ok"}
    assert estimator.restarts == {"heading outliers": 1}
    assert estimator.at(10.0).pose[2] == pytest.approx(wrapped(2.0 + math.pi), abs=0.05)


def test_a_position_that_jumps_once_is_rejected_and_one_that_stays_is_accepted():
    estimator = started()
    assert not estimator.position(5.001, (50.0, 50.0))
    for k in range(1, 30):
        estimator.position(5.001 + k / 7, (50.0, 50.0))
        for j in range(14):
            estimator.gyro(5.001 + k / 7 + j / 98, 0.0)
            estimator.heading(5.001 + k / 7 + j / 98, 1.0)
    assert estimator.restarts == {"position outliers": 1}
    estimate = estimator.at(5.001 + 29 / 7 + 0.14)
    assert estimate.health == "ok"
    assert estimate.pose[:2] == pytest.approx([50, 50], abs=0.1)


def test_an_outage_of_three_seconds_is_bridged_by_dead_reckoning():
    estimator = started(10.0)
    feed(estimator, 10.0, 13.0, skip=("position",))
    estimate = estimator.at(13.0)
    assert (estimate.health, estimate.reason) == ("dead reckoning", "position silent for 3.0 s")
    # 0.2 m/s/√s over 3 s: 0.2·√(3³/3) = 0.6 m, more for the velocity at the start.
    deviation = math.sqrt(estimate.covariance[0, 0])
    assert 0.55 < deviation < 0.8
    assert position_error(estimate, 13.0) < 2 * deviation
    feed(estimator, 13.0, 14.0)
    assert estimator.at(14.0).health == "ok"
    assert position_error(estimator.at(14.0), 14.0) < 0.05


def test_without_fixes_for_long_the_boat_is_lost_and_found_again():
    estimator = started()
    feed(estimator, 5.0, 12.0, skip=("position",))
    estimate = estimator.at(12.0)
    assert estimate.health == "lost"
    assert estimate.reason.startswith("position uncertain by")
    feed(estimator, 12.0, 14.0)
    assert estimator.at(14.0).health == "ok"


@pytest.mark.parametrize("silent", ["heading", "gyro"])
def test_a_silent_sensor_is_named(silent):
    estimator = started()
    feed(estimator, 5.0, 6.5, skip=(silent,))
    estimate = estimator.at(6.5)
    assert (estimate.health, estimate.reason) == ("dead reckoning", f"{silent} silent for 1.5 s")


def test_a_third_of_the_fixes_lost_does_not_matter():
    estimator, rng = Estimator(), np.random.default_rng(3)
    healths = []
    for k in range(200):
        skip = ("position",) if rng.random() < 0.3 else ()
        feed(estimator, k / 10, (k + 1) / 10, rng, skip=skip)
        healths.append(estimator.at((k + 1) / 10).health)
    assert healths[20:].count("ok") > 0.97 * len(healths[20:])
    assert "lost" not in healths
    assert position_error(estimator.at(20.0), 20.0) < 0.06


def test_no_estimate_before_position_and_heading():
    estimator = Estimator()
    estimate = estimator.at(0.0)
    assert (estimate.health, estimate.reason) == ("starting", "no position and no heading yet")
    assert np.isnan(estimate.pose).all()
    estimator.heading(0.0, 1.0)
    assert estimator.at(0.0).reason == "no position yet"
    estimator.position(0.01, (3.0, 4.0))
    estimate = estimator.at(0.01)
    assert estimate.health == "starting"
    assert estimate.reason == "velocity uncertain by 1 m/s"
    assert estimate.pose == pytest.approx([3, 4, 1])


def test_without_measurements_the_boat_is_lost():
    estimator = started()
    assert estimator.at(5.5).health == "ok"
    assert estimator.at(6.0).health == "lost"
    assert estimator.at(6.0).reason == "no measurement for 1.0 s"
    for now in (math.nan, math.inf, 1e9, 0.0):
        estimate = estimator.at(now)
        assert estimate.health == "lost"
        assert np.isfinite(estimate.pose).all()


@pytest.mark.parametrize(
    ("give", "reason"),
    [
        (lambda e: e.position(5.01, (math.nan, 0)), "not a number"),
        (lambda e: e.position(5.01, (math.inf, 0)), "not a number"),
        (lambda e: e.position(math.nan, (0, 0)), "not a number"),
        (lambda e: e.position(5.01, (1, 2, 3)), "not a number"),
        (lambda e: e.position(5.01, None), "not a number"),
        (lambda e: e.position(5.01, "here"), "not a number"),
        (lambda e: e.position(5.01, (1, 2), std=-1), "not a number"),
        (lambda e: e.position("now", (1, 2)), "not a number"),
        (lambda e: e.position(5.0, (1, 2)), "duplicate"),
        (lambda e: e.position(4.9, (1, 2)), "out of order"),
        (lambda e: e.position(1e9, (1, 2)), "ahead of time"),
        (lambda e: e.position(5.01, (1e6, 2)), "outlier"),
    ],
)
def test_bad_measurements_are_rejected_and_counted_and_do_not_move_the_boat(give, reason):
    estimator = started()
    before = estimator.at(5.05)
    assert give(estimator) is False
    assert estimator.rejected == {("position", reason): 1}
    after = estimator.at(5.05)
    # One that can be read is a moment to predict to, and two steps are not quite one.
    assert after.pose == pytest.approx(before.pose, abs=1e-5)
    # An outlier also raises the process noise.
    wider = np.diag(after.covariance) / np.diag(before.covariance)
    assert wider == pytest.approx(np.ones(8), abs=0.1 if reason == "outlier" else 1e-9)
    assert wider.min() > 1 - 1e-3
    assert after.health == "ok"


def test_a_fix_that_is_too_late_is_rejected():
    estimator = started()
    feed(estimator, 5.0, 6.0, skip=("position",))
    x, y, *_ = cruise(5.3)
    assert not estimator.position(5.3, (x, y))
    assert estimator.rejected == {("position", "late"): 1}


def test_a_fix_that_arrives_late_counts_as_if_it_had_come_in_time():
    prompt, delayed = started(), started()
    fixes = []
    for k in range(501, 701):
        t = k * FAST
        x, y, psi, rate = cruise(t)
        if k % 14 == 0:
            prompt.position(t, (x, y))
            fixes.append((t, (x, y)))
        for estimator in (prompt, delayed):
            estimator.gyro(t, rate)
            estimator.heading(t, wrapped(psi))
        # Fifteen hundredths late: by then the filter has had fifteen more of each.
        if fixes and fixes[0][0] <= t - 0.15:
            assert delayed.position(*fixes.pop(0))
    for fix in fixes:
        assert delayed.position(*fix)
    one, other = prompt.at(7.0), delayed.at(7.0)
    assert other.pose == pytest.approx(one.pose, abs=1e-8)
    assert other.velocity == pytest.approx(one.velocity, abs=1e-8)
    assert other.covariance == pytest.approx(one.covariance, abs=1e-8)


@pytest.mark.parametrize("step", [-100.0, 1e6])
def test_a_clock_that_was_set_restarts_the_filter(step):
    estimator = started()
    feed(estimator, 5.0, 8.0, clock=step)
    assert estimator.restarts == {"clock set": 1}
    estimate = estimator.at(8.0 + step)
    assert estimate.health == "ok"
    assert position_error(estimate, 8.0) < 0.05


def test_one_stamp_ahead_does_no_harm_and_a_silence_ends():
    estimator = started()
    assert not estimator.gyro(6.5, 0.2)
    feed(estimator, 5.0, 6.0)
    assert estimator.rejected == {("gyro", "ahead of time"): 1}
    feed(estimator, 8.0, 9.0)
    assert estimator.restarts == {}
    assert estimator.at(9.0).health == "ok"
    assert position_error(estimator.at(9.0), 9.0) < 0.05


def test_the_world_may_be_turned_and_moved():
    turn, shift = 1.1, np.array([300.0, -200.0])
    cos, sin = math.cos(turn), math.sin(turn)
    one, other = Estimator(), Estimator()
    for k in range(300):
        t = k * FAST
        x, y, psi, rate = cruise(t)
        for estimator in (one, other):
            estimator.gyro(t, rate)
        one.heading(t, psi)
        other.heading(t, wrapped(psi + turn))
        if k % 14 == 0:
            one.position(t, (x, y))
            other.position(t, (cos * x - sin * y + shift[0], sin * x + cos * y + shift[1]))
    a, b = one.at(3.0), other.at(3.0)
    assert b.velocity == pytest.approx(a.velocity, abs=1e-9)
    x, y, psi = a.pose
    assert b.pose == pytest.approx([cos * x - sin * y + 300, sin * x + cos * y - 200, wrapped(psi + turn)], abs=1e-9)


def test_garbage_from_everywhere_never_raises():
    estimator, rng = started(), np.random.default_rng(4)
    values: list[Any] = [math.nan, math.inf, -math.inf, 0.0, 1e300, -1e300, None, "x"]
    values += [(1, 2), (math.nan, 1), [], 5.1, 7]
    pick = lambda: values[rng.integers(len(values))]  # noqa: E731
    for _ in range(2000):
        estimator.gyro(pick(), pick())
        estimator.heading(pick(), pick())
        estimator.position(pick(), pick())
        estimator.at(rng.choice([math.nan, 0.0, 5.0, 1e300]))
    assert estimator.rejected.total() > 3000


def jerky(t):
    """Position and velocity along x, and acceleration, of a boat that goes to and fro in 2 s: 1 m/s² at most."""
    return -math.cos(math.pi * t) / math.pi**2, math.sin(math.pi * t) / math.pi, math.cos(math.pi * t)


def velocity_error(accelerometer, bias=0.0):
    """Mean error of the surge velocity of the jerky boat, m/s, with or without what the accelerometer says."""
    estimator, rng, errors = Estimator(), np.random.default_rng(0), []
    for k in range(3000):
        t = k * FAST
        x, u, a = jerky(t)
        estimator.gyro(t, 0.0)
        estimator.heading(t, 0.01 * rng.normal())
        if accelerometer:
            estimator.acceleration(t, (a + bias + 0.05 * rng.normal(), -bias + 0.05 * rng.normal()))
        if k % 14 == 0:
            estimator.position(t, (x + 0.01 * rng.normal(), 0.01 * rng.normal()))
        if k > 1500 and k % 10 == 0:
            errors.append(abs(estimator.at(t).velocity[0] - u))
    return np.mean(errors), estimator


def test_an_accelerometer_shows_the_velocity_before_fixes_do():
    without, _ = velocity_error(accelerometer=False)
    with_accelerometer, estimator = velocity_error(accelerometer=True, bias=0.1)
    assert with_accelerometer < 0.02
    assert with_accelerometer < without / 3
    assert estimator.at(29.99).covariance.shape == (8, 8)
    assert estimator.rejected.total() < 5


def test_an_accelerometer_is_used_in_the_frame_of_a_boat_that_turns():
    # On a circle at 0.6 m/s and 0.2 rad/s: 0.12 m/s² to the side, none ahead; fixes stop at 10 s.
    estimator = started(10.0)
    for k in range(1000, 1050):
        estimator.gyro(k * FAST + FAST, 0.2)
        estimator.acceleration(k * FAST + FAST, (0.0, 0.12))
    before, after = started(10.0).at(10.0).velocity, estimator.at(10.5).velocity
    assert after[:2] == pytest.approx(before[:2], abs=0.03)


def test_an_accelerometer_that_is_silent_or_wild_leaves_the_boat_as_it_was_without():
    estimator = started(5.0)
    for k in range(500, 600):
        t = k * FAST + FAST
        feed(estimator, t - FAST, t)
        assert not estimator.acceleration(t, (300.0, 0.0))
        assert not estimator.acceleration(t + 1e-3, (math.nan, 0.0))
    assert estimator.rejected["acceleration", "outlier"] == 100
    assert estimator.rejected["acceleration", "not a number"] == 100
    assert estimator.at(6.0).health == "ok"
    assert position_error(estimator.at(6.0), 6.0) < 0.05


def accelerometer_run(rng, sensors, stop):
    """Normalized squared error of the state at the end, in a world that is the filter's model with accelerometer."""
    s, estimator = sensors, Estimator(sensors)
    p, psi = rng.normal(size=2) * 10, rng.uniform(-np.pi, np.pi)
    w, c = s.speed * rng.normal(size=2), s.current * rng.normal(size=2)
    bias, tilt = s.gyro_bias * rng.normal(), s.accelerometer_bias * rng.normal(size=2)
    last_c = math.exp(-FAST / s.current_time)
    for k in range(round(stop / FAST)):
        t = k * FAST
        rate, push = 0.5 * math.sin(0.7 * t), np.array([math.sin(1.3 * t), 0.8 * math.cos(0.9 * t)])
        if k > 0:
            before = 0.5 * math.sin(0.7 * (t - FAST))
            turn = (before + rate) / 2 * FAST
            change = FAST * push + turn * np.array([w[1], -w[0]])
            middle, mean = psi + turn / 2, w + change / 2
            cos, sin = math.cos(middle), math.sin(middle)
            p = p + FAST * (np.array([cos * mean[0] - sin * mean[1], sin * mean[0] + cos * mean[1]]) + c)
            psi, w = psi + turn, w + change
            c = last_c * c + s.current * math.sqrt(1 - last_c**2) * rng.normal(size=2)
            bias += s.gyro_bias_walk * math.sqrt(FAST) * rng.normal()
            tilt += s.accelerometer_bias_walk * math.sqrt(FAST) * rng.normal(size=2)
        estimator.gyro(t, rate + bias + s.gyro / math.sqrt(FAST) * rng.normal())
        estimator.acceleration(t, push + tilt + s.accelerometer / math.sqrt(FAST) * rng.normal(size=2))
        if k % 14 == 0:
            estimator.position(t, p + s.position * rng.normal(size=2))
        estimator.heading(t, psi + s.heading * rng.normal())
    return misfit(estimator.at(t), p, psi, w, bias, c)[0]


def test_the_covariance_is_consistent_with_an_accelerometer_too():
    runs, rng = 40, np.random.default_rng(0)
    found = np.mean([accelerometer_run(rng, Sensors(), 6.0) for _ in range(runs)])
    low, high = chi2.ppf([0.0005, 0.9995], 8 * runs) / runs
    assert low < found < high


def test_what_is_kept_for_late_measurements_does_not_grow_with_their_number():
    estimator = started()
    for i in range(5000):
        estimator.heading(5.1 + 1e-5 * i, 0.0)
        estimator.gyro(5.1 + 1e-5 * i, 0.0)
    assert estimator.rejected["heading", "too frequent"] > 4900
    assert len(estimator._past) < 150
    # At the highest rate, 250 Hz, half a second of each sensor is kept.
    for i in range(1000):
        at = 5.2 + 0.004 * i
        for take in (estimator.heading, estimator.gyro):
            take(at, 0.0)
        estimator.acceleration(at, (0.0, 0.0))
    assert len(estimator._past) <= 3 * 0.5 / 0.004 + 10
