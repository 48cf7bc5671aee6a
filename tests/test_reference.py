"""References: their velocity is the derivative of their pose, shapes close, and infeasible ones are reported."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from anyhull.errors import InputError
from anyhull.learn import randomization, reference_generator
from anyhull.learn.environment import TrackingEnv
from anyhull.learn.randomization import Randomization
from anyhull.paper import PLATFORMS
from anyhull.paths import spline
from anyhull.reference import (
    Chain,
    Moved,
    Turn,
    circle,
    figure_eight,
    hold,
    legs,
    line,
    rounded_rectangle,
    through,
)
from anyhull.vessel import Vessel

POINTS = [(0, 0), (3, 1), (5, 5), (-2, 4)]
SHAPES = {
    "line": line(),
    "line looking sideways": line(heading=math.pi / 2),
    "circle": circle(3),
    "circle to the right": circle(-3, laps=2),
    "rectangle": rounded_rectangle(),
    "rectangle at a fixed heading": rounded_rectangle(heading=0.5),
    "eight": figure_eight(),
    "through": through(POINTS),
    "through with speeds": through(POINTS, speed=[0.3, 0.6, 0.4, 0.0]),
    "through with headings": through(POINTS, heading=[0, 1, 2, 3]),
    "closed": through(POINTS, closed=True, laps=2),
    "through from rest": through(POINTS, speed=[0.3, 0.6, 0.4, 0.2], acceleration=0.1),
    "closed from rest": through(POINTS, heading=[0, 1, 2, 3], closed=True, laps=2, acceleration=0.1),
    "hold": hold((1, 2, 3)),
    "turn": Turn((1, 2, 0.5), -2.5, 0.4),
    "legs": legs(POINTS),
    "legs with a hold and a fixed heading": legs(POINTS, holds=[0, 3, 0, 2], heading=0.7),
    "legs with headings": legs(POINTS, heading=[0, 1, 2, 3]),
    "legs, closed": legs(POINTS, closed=True, laps=2),
    "chain": Chain([line(), Turn((10, 0, 0), 1.0, 0.5), hold((10, 0, 1), duration=4)]),
}


@pytest.mark.parametrize("reference", SHAPES.values(), ids=SHAPES.keys())
def test_body_velocity_is_the_derivative_of_the_pose(reference):
    # Beyond the end as well: references continue round, straight on, or at rest.
    t, h = np.linspace(0.01, 1.4 * reference.duration, 997), 1e-4
    state = reference.at(t)
    rate = (reference.at(t + h)[:, :3] - reference.at(t - h)[:, :3]) / (2 * h)
    sin, cos = np.sin(state[:, 2]), np.cos(state[:, 2])
    derived = np.stack([cos * rate[:, 0] + sin * rate[:, 1], cos * rate[:, 1] - sin * rate[:, 0], rate[:, 2]], axis=1)
    # A few samples straddle a corner, where the yaw rate jumps.
    off = np.abs(derived - state[:, 3:]).max(axis=1)
    assert np.quantile(off, 0.98) < 2e-3
    assert np.median(off) < 1e-3


def test_the_papers_rectangle():
    # Straights 6 and 2 m twice, four quarter circles of 2 m: 16 + 4 pi m at 0.6 m/s.
    reference = rounded_rectangle()
    assert reference.duration == pytest.approx((16 + 4 * math.pi) / 0.6)
    lap = reference.at(np.linspace(0, reference.duration, 2000))
    assert np.ptp(lap[:, 0]) == pytest.approx(10, abs=1e-3)
    assert np.ptp(lap[:, 1]) == pytest.approx(6, abs=1e-3)
    np.testing.assert_allclose(np.unique(lap[:, 5].round(9)), [0, 0.3])
    np.testing.assert_allclose(lap[-1] - lap[0], [0, 0, 2 * math.pi, 0, 0, 0], atol=1e-9)


def test_the_window_is_now_and_the_next_ten_periods():
    reference = figure_eight()
    np.testing.assert_allclose(reference.window(3.0), reference.at(np.array([3 + 0.1 * k for k in range(11)])))
    assert reference.window(3.0).shape == (11, 6)


def test_a_spline_goes_through_its_waypoints_at_the_given_speeds():
    reference = through(POINTS, speed=[0.3, 0.6, 0.4, 0.2])
    states = reference.at(np.linspace(0, reference.duration, 20001))
    for point, speed in zip(POINTS, [0.3, 0.6, 0.4, 0.2], strict=True):
        nearest = np.argmin(np.hypot(*(states[:, :2] - point).T))
        np.testing.assert_allclose(states[nearest, :2], point, atol=1e-3)
        assert states[nearest, 3] == pytest.approx(speed, abs=2e-3)


@pytest.mark.parametrize("closed", [False, True])
def test_a_spline_with_an_acceleration_starts_and_ends_at_rest_on_the_same_path(closed):
    steady = through(POINTS, closed=closed, laps=3.0)
    reference = through(POINTS, closed=closed, laps=3.0, acceleration=0.1)
    # The ramps at both ends take half of 0.6 / 0.1 s each beside their distance at 0.6 m/s.
    assert reference.duration == pytest.approx(steady.duration + 6)
    np.testing.assert_allclose(reference.at(np.array([-1, 0, reference.duration, 1e3]))[:, 3:], 0, atol=1e-6)
    times = np.linspace(6, steady.duration - 3, 50)
    np.testing.assert_allclose(reference.at(times + 3), steady.at(times), atol=1e-6)


@pytest.mark.parametrize(("closed", "kind"), [(True, "periodic"), (False, "natural")])
def test_our_spline_is_scipys(closed, kind):
    knots, values = np.array([0, 1, 2.5, 3, 5.0]), np.array([(0, 0), (3, 1), (5, 5), (-2, 4), (0, 0)], float)
    at = np.linspace(0, 5, 101)
    theirs = CubicSpline(knots, values, bc_type=kind)
    for order, ours in enumerate(spline(knots, values, closed)(at)):
        np.testing.assert_allclose(ours, theirs(at, order), atol=1e-12)


def test_a_final_speed_of_zero_ends_in_station_keeping():
    reference = through(POINTS, speed=[0.5, 0.5, 0.5, 0.0])
    late = reference.at(reference.duration + 20)
    np.testing.assert_allclose(late[:2], POINTS[-1], atol=1e-6)
    np.testing.assert_allclose(late[3:], 0, atol=1e-9)


def test_an_infeasible_reference_is_reported_with_axis_time_and_share():
    platform = Vessel.load("platform-a")
    assert rounded_rectangle(speed=0.6).infeasible(platform) == []
    # At 2 m/s the surge drag is 54 kg/s · 2 m/s = 108 N of its 40 N, from the start on. In the first corner, after 3 m
    # or 1.5 s, the yaw rate is 1 rad/s: m11 u r = 44 kg · 2 m/s · 1 rad/s = 88 N in sway of its 40 N.
    surge, sway = rounded_rectangle(speed=2).infeasible(platform)
    motion = "Platform A: surge 2.00 m/s, sway 0.00 m/s and yaw"
    assert surge == f"{motion} 0.00 rad/s at t = 0.0 s need 108 N in surge: 270 % of the limit"
    assert sway == f"{motion} 1.00 rad/s at t = 1.5 s need 88 N in sway: 220 % of the limit"
    # 0.6 m/s on a circle of 5 cm is 12 rad/s. Sway: 13 kg · 0.6 m/s · 12 rad/s = 93.6 N of its 40 N. Yaw: 0.8 kg·m²/s
    # · 12 rad/s = 9.6 N·m of its 27 N·m, which is feasible.
    (turn,) = circle(0.05, speed=0.6).infeasible(Vessel.load("roboat-1"))
    motion = "Roboat 1: surge 0.60 m/s, sway 0.00 m/s and yaw 12.00 rad/s"
    assert turn == f"{motion} at t = 0.0 s need 93.6 N in sway: 234 % of the limit"
    # At 1.8 m/s, 36 rad/s: 13 kg · 1.8 m/s · 36 rad/s = 842 N in sway, and 28.8 N·m in yaw, which is infeasible too.
    axes = [reason.split(" in ")[1] for reason in circle(0.05, speed=1.8).infeasible(Vessel.load("roboat-1"))]
    assert axes == ["sway: 2106 % of the limit", "yaw: 107 % of the limit"]
    (sideways,) = line(heading=math.pi / 2, speed=0.3).infeasible(Vessel.load("otter-0"))
    assert "cannot push sideways" in sideways


def distances_to_legs(points, waypoints):
    """Distances to the nearest leg, point by point, by the formula of the triangle's height."""
    found = []
    for p in np.asarray(points, float):
        best = math.inf
        for a, b in zip(np.asarray(waypoints[:-1], float), np.asarray(waypoints[1:], float), strict=True):
            sides = [math.dist(p, a), math.dist(p, b), math.dist(a, b)]
            if sides[1] ** 2 >= sides[0] ** 2 + sides[2] ** 2 or sides[0] ** 2 >= sides[1] ** 2 + sides[2] ** 2:
                best = min(best, sides[0], sides[1])
            else:
                best = min(best, abs(float(np.linalg.det([b - a, p - a]))) / sides[2])
        found.append(best)
    return np.array(found)


LAWN = [(x, 5.0 * i) for i in range(5) for x in ((0.0, 20.0) if i % 2 == 0 else (20.0, 0.0))]


def test_a_lawnmower_with_5_m_spacing_stays_in_its_corridor_where_a_spline_does_not():
    for corridor in (0.3, 0.6, 1.0):
        plan = legs(LAWN, radius=2.5, corridor=corridor)
        path = plan.at(np.arange(0, plan.duration, 0.1))[:, :2]
        off = distances_to_legs(path, LAWN)
        assert off.max() <= corridor
        # In the middle of an arc R (1 - cos 45°); samples are 6 cm apart.
        assert off.max() == pytest.approx(plan.deviation, abs=2e-3)
        missed = max(np.hypot(*(path - waypoint).T).min() for waypoint in LAWN)
        assert missed == pytest.approx(plan.missed, abs=2e-3)
        assert plan.missed <= corridor + 1e-9
        np.testing.assert_allclose(plan.cross_track(np.arange(0, plan.duration, 0.1), path), off, atol=1e-9)
    assert legs(LAWN, radius=2.0).deviation == pytest.approx(2 * (1 - math.sqrt(0.5)))
    spline_path = through(LAWN).at(np.linspace(0, through(LAWN).duration, 500))[:, :2]
    assert distances_to_legs(spline_path, LAWN).max() > 1.0


def test_legs_start_and_end_at_rest_within_the_acceleration_and_keep_the_speed_of_each():
    plan = legs([(0, 0), (20, 0), (20, 20)], speed=[0.6, 0.3], acceleration=0.05)
    states = plan.at(np.arange(0, plan.duration, 0.1))
    speed = np.hypot(states[:, 3], states[:, 4])
    assert speed[0] == 0
    assert np.abs(np.diff(speed)).max() <= 0.05 * 0.1 + 1e-9
    assert speed.max() == pytest.approx(0.6)
    # The arc of 2 m between them is taken at the lower speed.
    turning = np.abs(states[:, 5]) > 1e-9
    assert speed[turning].max() == pytest.approx(0.3)
    for t, point in ((-5.0, (0, 0)), (plan.duration + 5, (20, 20))):
        np.testing.assert_allclose(plan.at(t)[:2], point, atol=1e-9)
        np.testing.assert_allclose(plan.at(t)[3:], 0, atol=1e-9)


def test_a_hold_waits_at_its_waypoint_and_has_its_own_stage():
    plan = legs([(0, 0), (10, 0), (10, 10)], holds=[0, 7, 0])
    states = plan.at(np.arange(0, plan.duration, 0.1))
    there = np.hypot(states[:, 0] - 10, states[:, 1]) < 1e-6
    # 7 s, and a turn by 90° at 0.5 rad/s at most, so 2 · (π/2) / 0.5 = 6.28 s.
    assert 0.1 * there.sum() == pytest.approx(7 + 2 * math.pi, abs=0.3)
    labels = [stage.label for stage in plan.stages]
    assert labels == ["leg 1 of 2, to waypoint 2", "hold of 7 s at waypoint 2", "leg 2 of 2, to waypoint 3"]
    # 10 m at 0.6 m/s with two ramps of 6 s: 10 / 0.6 + 6 s.
    starts = [stage.start for stage in plan.stages]
    np.testing.assert_allclose(starts, [0, 10 / 0.6 + 6, 10 / 0.6 + 13 + 2 * math.pi], atol=1e-9)


@pytest.mark.parametrize("seed", range(30))
def test_any_legs_are_continuous_in_their_corridor_and_within_speed_and_yaw_rate(seed):
    random = np.random.default_rng(seed)
    points = random.uniform(0, 20, (random.integers(3, 9), 2))
    count, corridor = len(points), float(random.uniform(0.05, 2))
    heading = [None, 1.0, random.uniform(-3, 3, count).tolist()][seed % 3]
    holds = (5 * random.random(count) * (random.random(count) < 0.3)).tolist()
    given = {"corridor": corridor, "holds": holds, "heading": heading, "radius": float(random.uniform(0, 4))}
    plan = legs(points.tolist(), **given, closed=seed % 2 == 0, vessel=Vessel.load("platform-a"))
    times = np.arange(-1, plan.duration + 1, 0.02)
    states = plan.at(times)
    assert np.hypot(*np.diff(states[:, :2], axis=0).T).max() <= 0.6 * 0.02 * (1 + 1e-6)
    assert np.abs(np.diff(states[:, 2])).max() <= 0.5 * 0.02 * 1.02
    assert plan.cross_track(times, states[:, :2]).max() <= min(plan.deviation, corridor) + 1e-9
    np.testing.assert_allclose(states[[0, -1], 3:], 0, atol=1e-9)


def test_a_corner_too_sharp_for_an_arc_is_a_stop_and_a_turn_on_the_spot():
    plan = legs([(0, 0), (10, 0), (0, 0.2)])
    assert plan.notes == ("stop and turn on the spot at waypoint 2: no arc fits",)
    states = plan.at(np.arange(0, plan.duration, 0.1))
    assert np.hypot(states[:, 0] - 10, states[:, 1]).min() < 1e-3
    assert np.abs(states[:, 5]).max() == pytest.approx(0.5, abs=1e-3)
    assert plan.deviation == 0


def test_a_turn_is_slowed_to_the_yaw_rate_and_to_what_the_vessel_can_do_and_named():
    # 0.5 rad/s on 0.5 m is 0.25 m/s.
    plan = legs([(0, 0), (10, 0), (10, 10)], radius=0.5)
    assert plan.notes == ("slower in the turn at waypoint 2, down to 0.25 m/s",)
    platform = Vessel.load("platform-a")
    # Surge: 54 kg/s · v = 36 N, 90 % of 40 N, at 0.67 m/s. In the turn of 1 m, sway would allow more: 44 kg · v² / R =
    # 36 N at 0.9 m/s; so would the yaw rate of 2 rad/s, and yaw, 1.7 kg·m²/s · v / R = 18 N·m.
    fast = legs([(0, 0), (30, 0), (30, 30)], speed=1.0, radius=1.0, yaw_rate=2.0, vessel=platform)
    assert fast.infeasible(platform) == []
    states = fast.at(np.arange(0, fast.duration, 0.1))
    assert states[:, 3].max() == pytest.approx(36 / 54, abs=1e-6)
    assert any(note.startswith("slower on legs 1 and 2, down to 0.67 m/s") for note in fast.notes)
    # On 0.5 m: 44 v² / 0.5 = 36 N at 0.64 m/s.
    tight = legs([(0, 0), (30, 0), (30, 30)], speed=1.0, radius=0.5, yaw_rate=9.0, vessel=platform)
    assert f"slower in the turn at waypoint 2, down to {math.sqrt(36 * 0.5 / 44):.2f} m/s" in tight.notes
    assert tight.infeasible(platform) == []


def test_a_turn_on_the_spot_takes_the_shorter_way_within_its_rate():
    turn = Turn((1.0, 2.0, math.radians(170)), math.radians(-170), 0.2)
    states = turn.at(np.linspace(0, turn.duration, 1001))
    # 20° by way of 180°; the mean of 1 - cos is half its peak: 2 · 0.349 / 0.2 s.
    assert turn.duration == pytest.approx(2 * math.radians(20) / 0.2)
    assert states[-1, 2] == pytest.approx(math.radians(190))
    assert states[:, 5].max() == pytest.approx(0.2)
    np.testing.assert_allclose(states[[0, -1], 5], 0, atol=1e-12)


def test_a_chain_joins_times_stages_and_headings_without_a_jump_by_a_turn():
    # A lap to the left ends at 2π; the next part begins at 0.
    chain = Chain([circle(3), legs([(0, 0), (10, 0)]), hold((10, 0, -2 * math.pi), duration=5)])
    lap = 2 * math.pi * 3 / 0.6
    assert chain.duration == pytest.approx(lap + 10 / 0.6 + 6 + 5)
    states = chain.at(np.arange(0, chain.duration + 10, 0.1))
    assert np.abs(np.diff(states[:, 2])).max() < 0.03
    assert states[-1, 2] == pytest.approx(2 * math.pi)
    np.testing.assert_allclose(states[-1, 3:], 0)
    assert chain.stages[0].start == pytest.approx(lap)
    np.testing.assert_allclose(chain.at(-1.0), circle(3).at(-1.0))
    np.testing.assert_allclose(chain.at(np.array([[1.0, 99.0]]))[0], [chain.at(1.0), chain.at(99.0)])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: line(-1), r"length = -1: must be a positive number"),
        (lambda: circle(0), r"radius = 0: must be a number other than zero"),
        (lambda: circle(speed=math.nan), r"speed = nan: must be a positive number"),
        (lambda: rounded_rectangle(radius=4), r"radius = 4: must be at most half"),
        (lambda: rounded_rectangle(laps=0), r"laps = 0: must be a positive number"),
        (lambda: through([(0, 0)]), r"1 waypoint: must be two or more"),
        (lambda: through([(0, 0), (0, 0)]), r"waypoints 0 and 1: must not coincide"),
        (lambda: through(POINTS, speed=[1, 2]), r"speed = \[1, 2\]: must be one finite number, or one for each of 4"),
        (lambda: through(POINTS, speed=0), r"speed = 0: must not be negative, nor zero"),
        (lambda: through(POINTS, closed=True, laps=-1), r"laps = -1: must be a positive number"),
        (lambda: legs([(0, 0)]), r"1 waypoint: must be two or more"),
        (lambda: legs(POINTS[:2], closed=True), r"2 waypoints: must be three or more for a closed path"),
        (lambda: legs([(0, 0), (1,)]), r"waypoints = \[\(0, 0\), \(1,\)\]: must be pairs"),
        (lambda: legs([(0, 0), (1, 0), (1, 0.001)]), r"waypoints 2 and 3: must be at least 0.01 m apart"),
        (lambda: legs([(0, 0), (1, math.nan)]), r"finite numbers"),
        (lambda: legs(POINTS, speed=[1, 2]), r"speed = \[1, 2\]: .+ one for each of 3 legs"),
        (lambda: legs(POINTS, speed=0), r"speed = 0: must be .+ at least 0.001"),
        (lambda: legs(POINTS, radius=-1), r"radius = -1: must be .+ zero or more"),
        (lambda: legs(POINTS, holds=[1]), r"holds = \[1\]: .+ one for each of 4 waypoints"),
        (lambda: legs(POINTS, corridor=0), r"corridor = 0: must be a positive number"),
        (lambda: legs(POINTS, laps=2), r"laps = 2: must be a whole number, and 1 for an open path"),
        (lambda: legs(POINTS, acceleration=0), r"acceleration = 0: must be from 1e-06 to 10"),
        (lambda: Turn((0, 0, 0), 1, 0), r"rate = 0: must be a positive number"),
        (lambda: Chain([]), r"parts = \[\]: must be one or more references"),
        (lambda: hold((1, 2)), r"pose = \(1, 2\): must be three finite numbers"),
    ],
)
def test_bad_shapes_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


def random_reference(seed, steps, difficulty=1.0, e=None):
    """Points, capability and number of segments of a random boat's training reference, in NumPy."""
    random = np.random.default_rng(seed)
    e = np.array(Randomization().sample(jnp.array(random.random(randomization.DRAWS))), float) if e is None else e
    able = reference_generator.capability(e)
    segment = reference_generator.draw(random.random(reference_generator.DRAWS), able, difficulty)
    window = reference_generator.begin(segment, (0.0, 0.0, 0.0))
    segment = segment._replace(left=segment.left - 1.0)
    points, segments = list(window), 1
    for _ in range(steps):
        segments += segment.left <= 0
        point, segment = reference_generator.extend(
            points[-1], segment, random.random(reference_generator.DRAWS), able, difficulty
        )
        points.append(point)
    return np.array(points), able, segments


@pytest.mark.parametrize("seed", range(8))
def test_a_training_reference_is_continuous_and_within_the_capability_of_the_boat(seed):
    points, able, segments = random_reference(seed, 600)
    assert segments > 5
    moved = np.diff(points[:, :2], axis=0)
    # A chord is at most as long as its arc, which is one period at the velocity of the new point.
    reach = np.hypot(points[1:, 3], points[1:, 4]) * 0.1
    assert (np.hypot(*moved.T) <= reach * (1 + 1e-9) + 1e-12).all()
    np.testing.assert_allclose(np.diff(points[:, 2]), points[1:, 5] * 0.1, atol=1e-12)
    assert points[:, 3].max() <= able.speed * (1 + 1e-9)
    assert np.abs(points[:, 4]).max() <= able.sway * (1 + 1e-9)
    assert np.abs(points[:, 5]).max() <= able.yaw_rate * (1 + 1e-9)
    assert np.abs(np.diff(points[:, 3])).max() <= able.ramp * 0.1 * (1 + 1e-9)


def test_training_references_become_harder_with_difficulty():
    e = np.array(Vessel.load("platform-b").normalized)
    easy = np.concatenate([random_reference(seed, 500, 0.0, e)[0] for seed in range(5)])
    hard = np.concatenate([random_reference(seed, 500, 1.0, e)[0] for seed in range(5)])
    # 8 m turns at no more than 1.2 m/s are 0.15 rad/s.
    assert np.abs(easy[:, 5]).max() <= 0.15 + 1e-9
    assert np.abs(hard[:, 5]).max() > 0.6
    assert np.abs(easy[:, 4]).max() == 0
    assert np.abs(hard[:, 4]).max() > 0.1


def test_the_papers_corners_lie_inside_the_range_of_training_references():
    for name in PLATFORMS:
        able = reference_generator.capability(Vessel.load(name).normalized, turn=TrackingEnv().turn_share)
        assert able.speed >= 0.6
        assert min(able.yaw_rate, able.turn / 0.6) >= 0.3


def test_a_moved_reference_is_the_same_path_from_another_start():
    # A line along x from the origin, moved to (2, 3) and turned by 90°: it runs along y, at the same velocity.
    moved = Moved(line(4.0, speed=0.5), (2.0, 3.0, math.pi / 2))
    np.testing.assert_allclose(moved.at(2.0), (2.0, 4.0, math.pi / 2, 0.5, 0.0, 0.0), atol=1e-12)
    assert moved.duration == pytest.approx(8.0)
    original = rounded_rectangle(4.0, 3.0, 1.0, speed=0.4)
    moved = Moved(original, (5.0, -1.0, 0.7))
    a, b = original.window(3.0), moved.window(3.0)
    np.testing.assert_allclose(a[:, 3:], b[:, 3:])
    lengths = [np.hypot(*np.diff(window[:, :2], axis=0).T) for window in (a, b)]
    np.testing.assert_allclose(*lengths)
    np.testing.assert_allclose(moved.at(0.0)[:3], (5.0, -1.0, 0.7), atol=1e-12)
