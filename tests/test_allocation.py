"""Thruster layouts and allocation: by hand, against independent solvers, and for whatever is asked."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from doubles import DINGHY
from scipy.optimize import linprog, lsq_linear

from anyhull.errors import InputError
from anyhull.onboard.allocation import YAW_WEIGHT, Allocator
from anyhull.thrusters import APOTHEM, Thruster, attainable, derived_limits, reaches, shortcomings, support
from anyhull.vessel import Vessel, catalogue

LAYOUTS = [name for name in catalogue() if Vessel.load(name).thrusters]

TWIN = (
    Thruster("fixed", x=-1.0, y=-0.5, forward=10.0, reverse=5.0),
    Thruster("fixed", x=-1.0, y=0.5, forward=10.0, reverse=5.0),
)
"""Two propellers at the stern: surge and yaw, no sway."""

CROSS = tuple(
    Thruster("fixed", x=x, y=y, forward=10.0, angle=math.copysign(45.0, -x * y))
    for x, y in ((0.3, 0.2), (0.3, -0.2), (-0.3, 0.2), (-0.3, -0.2))
)
"""Four at the corners, each at 45°: F_x = F_y = 4·10/√2, M_z = 4·10·(0.3 + 0.2)/√2."""

STERN = (Thruster("azimuth", x=-2.0, y=0.0, forward=10.0),)
"""One outboard: sway and yaw are tied."""

FERRY = tuple(Thruster("azimuth", x=x, y=0.0, forward=10.0) for x in (2.0, -2.0))
"""One azimuth at each end."""


def random_layout(rng, kinds=("fixed", "tunnel", "azimuth")):
    return tuple(
        Thruster(
            kind,
            x=rng.uniform(-2, 2),
            y=rng.uniform(-1, 1),
            forward=rng.uniform(1, 10),
            reverse=rng.uniform(0, 10),
            angle=90.0 if kind == "tunnel" else rng.uniform(-180, 180),
        )
        for kind in (kinds[i] for i in rng.integers(len(kinds), size=rng.integers(2, 6)))
    )


def given(thrusters, commands, angles):
    """Body force of commands, thruster by thruster, with dead bands."""
    pairs = zip(thrusters, commands, angles, strict=True)
    return sum(t.column(angle) * t.thrust(command) for t, command, angle in pairs)


def test_a_twin_splits_surge_and_turns_by_difference():
    allocator = Allocator(TWIN)
    assert allocator.allocate([10, 0, 0]).thrusts == pytest.approx([5, 5], abs=1e-4)
    # The one at y = -0.5 pushes the bow to positive yaw: 0.5·(5 + 5) = 5 N·m.
    found = allocator.allocate([0, 0, 5])
    assert found.thrusts == pytest.approx([5, -5], abs=1e-4)
    assert found.commands == pytest.approx([0.5, -1], abs=1e-4)


def test_yaw_comes_first_where_not_all_can_be_given():
    # Both ahead would be 20 N, but 5 N·m takes a difference of 10 N: 10 and 0, which leaves 10 N of surge.
    found = Allocator(TWIN).allocate([20, 0, 5])
    assert found.force == pytest.approx([10, 0, 5], abs=0.02)
    assert found.residual == pytest.approx([10, 0, 0], abs=0.02)
    # Pure yaw beyond the limit: all that there is, with the surge that comes with it.
    assert Allocator(TWIN).allocate([0, 0, 50]).force[2] == pytest.approx(7.5, abs=0.01)


def test_a_force_on_an_axis_without_authority_is_the_residual_and_moves_nothing():
    found = Allocator(TWIN).allocate([0, 8, 0])
    assert found.thrusts == pytest.approx([0, 0], abs=1e-9)
    assert found.residual == pytest.approx([0, 8, 0], abs=1e-9)


@pytest.mark.parametrize("name", LAYOUTS)
def test_what_is_attainable_is_given_exactly(name):
    thrusters = Vessel.load(name).thrusters
    allocator, possible = Allocator(thrusters), attainable(thrusters)
    strength = np.array(reaches(thrusters))
    rng = np.random.default_rng(1)
    thrust = max(t.forward for t in thrusters)
    # Azimuths leave out thrusts below a thousandth of their limit; the rest is the solver's.
    slack = 1e-3 if any(t.kind == "azimuth" for t in thrusters) else 3e-6
    for _ in range(50):
        pushes = [(rng.uniform(*t.bounds), rng.uniform(-np.pi, np.pi)) for t in thrusters]
        force = sum(
            t.column(angle) * max(size, 0) * APOTHEM if t.kind == "azimuth" else t.column(math.radians(t.angle)) * size
            for t, (size, angle) in zip(thrusters, pushes, strict=True)
        )
        assert possible.contains(force)
        found = allocator.allocate(force)
        assert np.abs(found.residual / np.maximum(strength, thrust)).max() < slack
        assert given(thrusters, found.commands, found.angles) == pytest.approx(found.force, abs=1e-9 * thrust)


def test_least_squares_agree_with_an_independent_solver():
    rng = np.random.default_rng(2)
    for _ in range(30):
        thrusters = random_layout(rng, kinds=("fixed", "tunnel"))
        surge, sway, yaw = reaches(thrusters)
        weight = np.array([1, 1, YAW_WEIGHT]) / (max(surge, sway), max(surge, sway), yaw)
        force = rng.uniform(-2, 2, 3) * (surge, sway, yaw)
        influence = np.stack([t.column(math.radians(t.angle)) for t in thrusters], axis=1)
        low, high = np.array([t.bounds for t in thrusters]).T
        best = lsq_linear(weight[:, None] * influence, weight * force, (low, high), tol=1e-12)
        found = Allocator(thrusters).allocate(force)
        assert np.sum((weight * found.residual) ** 2) / 2 == pytest.approx(best.cost, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("dead_band", [0.0, 0.1, 0.4])
def test_the_dead_band_is_compensated(dead_band):
    thruster = Thruster("fixed", x=0, y=0, forward=20, reverse=10, dead_band=dead_band)
    # Half of the thrust lies half way from the edge of the dead band to full command.
    assert thruster.command(10) == pytest.approx(dead_band + (1 - dead_band) / 2)
    assert thruster.command(-10) == -1
    assert thruster.command(0) == 0
    assert thruster.thrust(0.99 * dead_band) == 0
    for thrust in np.linspace(-10, 20, 31):
        assert thruster.thrust(thruster.command(thrust)) == pytest.approx(thrust, abs=1e-12)


def test_thrust_changes_no_faster_than_its_rate():
    # 20 N/s in periods of 0.1 s: 2 N a period, 4 together, and the yaw between them kept at zero.
    allocator = Allocator([replace(t, rate=20.0) for t in TWIN])
    surges = [allocator.allocate([20, 0, 0]) for _ in range(6)]
    assert [found.force[0] for found in surges] == pytest.approx([4, 8, 12, 16, 20, 20], abs=1e-3)
    assert [found.force[2] for found in surges] == pytest.approx([0] * 6, abs=1e-3)
    assert allocator.allocate([-10, 0, 0]).force[0] == pytest.approx(16, abs=1e-3)
    allocator.reset()
    assert allocator.allocate([20, 0, 0]).force[0] == pytest.approx(4, abs=1e-3)


def test_an_azimuths_push_moves_no_faster_than_its_rate():
    allocator = Allocator([replace(t, rate=20.0) for t in FERRY])
    rng, before = np.random.default_rng(3), np.zeros((2, 2))
    for _ in range(100):
        found = allocator.allocate(rng.uniform(-1, 1, 3) * (40, 40, 60))
        push = found.thrusts[:, None] * np.stack([np.cos(found.angles), np.sin(found.angles)], axis=1)
        assert np.linalg.norm(push - before, axis=1).max() <= 2 + 2 * 1e-3 * 10
        before = push


def test_an_azimuth_gives_its_disc_within_the_polygons_error():
    allocator = Allocator(FERRY)
    for angle in np.linspace(0, 2 * np.pi, 49):
        found = allocator.allocate([1e3 * math.cos(angle), 1e3 * math.sin(angle), 0])
        assert found.thrusts.max() <= 10
        assert found.thrusts.min() >= 10 * APOTHEM - 0.1
    assert pytest.approx(0.0086, abs=1e-4) == 1 - APOTHEM


def test_an_azimuth_turns_no_faster_than_it_can_and_gets_there():
    # 90 °/s in periods of 0.1 s: 9° a period, so ten periods to starboard.
    allocator = Allocator([replace(t, turn_rate=90.0) for t in FERRY])
    angles = [np.degrees(allocator.allocate([0, 10, 0]).angles) for _ in range(12)]
    for k, found in enumerate(angles):
        assert found == pytest.approx([min(9 * (k + 1), 90)] * 2, abs=0.1)
    assert allocator.allocate([0, 10, 0]).force == pytest.approx([0, 10, 0], abs=0.02)


def test_an_azimuth_that_has_to_turn_round_pushes_in_reverse_meanwhile():
    allocator = Allocator([replace(t, turn_rate=90.0, reverse=4.0) for t in FERRY])
    assert allocator.allocate([12, 0, 0]).force[0] == pytest.approx(12, abs=0.02)
    back = [allocator.allocate([-12, 0, 0]).force[0] for _ in range(25)]
    # Reverse thrust is 4 N each, along axes that have turned by 9°: 8·cos 9° = 7.9.
    assert back[0] == pytest.approx(-8 * math.cos(math.radians(9)), abs=0.1)
    assert back[-1] == pytest.approx(-12, abs=0.02)


@pytest.mark.parametrize("name", LAYOUTS)
def test_for_any_demand_commands_stay_within_limits(name):
    thrusters = [replace(t, rate=t.forward, dead_band=0.1) for t in Vessel.load(name).thrusters]
    thrusters = [replace(t, turn_rate=45.0) if t.kind == "azimuth" else t for t in thrusters]
    allocator, rng = Allocator(thrusters), np.random.default_rng(4)
    before = np.array([math.radians(t.angle) for t in thrusters])
    for scale in (0, 1e-12, 1e-3, 1, 1e6, 1e12):
        for _ in range(15):
            found = allocator.allocate(scale * rng.normal(size=3))
            assert np.isfinite(found.commands).all()
            assert np.abs(found.commands).max() <= 1
            assert all(
                t.bounds[0] - 1e-9 <= f <= t.bounds[1] + 1e-9 for t, f in zip(thrusters, found.thrusts, strict=True)
            )
            turn = np.abs((found.angles - before + np.pi) % (2 * np.pi) - np.pi)
            assert turn.max() <= math.radians(4.5) + 1e-9
            before = found.angles


def test_a_dead_thruster_is_left_out():
    allocator = Allocator([*FERRY, replace(FERRY[0], forward=0.0)])
    found = allocator.allocate([12, 3, 4])
    assert found.thrusts[2] == found.commands[2] == 0
    assert found.force == pytest.approx([12, 3, 4], abs=0.02)


def test_a_force_that_is_not_finite_is_rejected():
    for force in ([0, math.nan, 0], [math.inf, 0, 0], [1, 2], 3.0):
        with pytest.raises(InputError, match="must be three finite numbers"):
            Allocator(TWIN).allocate(force)
    with pytest.raises(InputError, match="at least one"):
        Allocator(())


def test_a_mirrored_boat_is_driven_by_mirrored_commands():
    rng = np.random.default_rng(5)
    for _ in range(20):
        thrusters = random_layout(rng)
        # Mirrored, a tunnel's positive thrust goes the other way too.
        mirrored = [replace(t, y=-t.y, angle=-t.angle) for t in thrusters]
        force = rng.normal(size=3) * 0.3 * reaches(thrusters)
        one, other = Allocator(thrusters).allocate(force), Allocator(mirrored).allocate(force * (1, -1, -1))
        assert other.commands == pytest.approx(one.commands, abs=1e-3)
        assert other.force * (1, -1, -1) == pytest.approx(one.force, abs=1e-3 * max(reaches(thrusters)))


def test_a_ship_is_a_toy_in_larger_units():
    ships = [replace(t, forward=t.forward * 1e5, reverse=None) for t in CROSS]
    force = np.array([9.0, -4.0, 2.0])
    toy, ship = Allocator(CROSS).allocate(force), Allocator(ships).allocate(1e5 * force)
    assert ship.commands == pytest.approx(toy.commands, abs=1e-9)


def test_attainable_sets_by_hand():
    twin = attainable(TWIN)
    # 20 ahead, 10 astern; alone, yaw is bound by the reverse thrust, 0.5·(5 + 5), together with surge 0.5·(10 + 5).
    assert np.array(twin.alone) == pytest.approx(np.array([(10, 20), (0, 0), (5, 5)]))
    assert reaches(TWIN) == pytest.approx((20, 0, 7.5), abs=1e-12)
    assert twin.contains([5, 0, 7.5])
    assert not twin.contains([0, 0, 7.5])
    assert not twin.contains([0, 1e-3, 0])
    assert twin.reach([10, 0, 5]) == pytest.approx(1)
    assert twin.reach([0, 0, 0]) == math.inf

    root = math.sqrt(2)
    assert derived_limits(CROSS) == pytest.approx((40 / root, 40 / root, 20 / root))
    # Pure sway of the ferry is both across; yaw both across and opposed, 2·(10 + 10).
    assert derived_limits(FERRY) == pytest.approx((20, 20, 40))


def test_reach_agrees_with_a_linear_program():
    rng = np.random.default_rng(6)
    for _ in range(30):
        thrusters = random_layout(rng, kinds=("fixed", "tunnel"))
        influence = np.stack([t.column(math.radians(t.angle)) for t in thrusters], axis=1)
        possible = attainable(thrusters)
        for direction in rng.normal(size=(5, 3)):
            if len(thrusters) < 3:
                direction = influence @ rng.normal(size=len(thrusters))
            best = linprog(
                np.r_[np.zeros(len(thrusters)), -1],
                A_eq=np.c_[influence, -direction],
                b_eq=np.zeros(3),
                bounds=[*(t.bounds for t in thrusters), (0, None)],
            )
            assert possible.reach(direction) == pytest.approx(best.x[-1], rel=1e-6, abs=1e-9)


def test_the_support_bounds_whatever_is_pushed():
    rng = np.random.default_rng(7)
    for _ in range(20):
        thrusters = random_layout(rng)
        directions = rng.normal(size=(40, 3))
        bound, inner = support(thrusters, directions), support(thrusters, directions, inscribed=True)
        assert (inner <= bound + 1e-12).all()
        assert (inner >= APOTHEM * bound - 1e-12).all()
        force = Allocator(thrusters).allocate(rng.normal(size=3) * 10).force
        assert (directions @ force <= bound * (1 + 1e-6)).all()


def test_the_sway_of_an_outboard_comes_with_yaw():
    # It lets sway be: 10 N ahead or, across, 2·10 N·m.
    assert derived_limits(STERN) == pytest.approx((10, 0, 20))
    (sway,) = shortcomings(STERN, (10.0, 0.0, 20.0))
    assert (sway.axis, sway.attainable) == ("sway", 0)
    assert "comes only with force on other axes" in sway.advice
    assert Allocator(STERN).allocate([5, 0, 10]).force == pytest.approx([5, -5, 10], abs=0.03)


def test_shortcomings_name_the_axis_and_what_to_expect():
    found = {entry.axis: entry for entry in Vessel.load("heron").shortcomings()}
    # Astern 2·19.88 N; turning on the spot 2·0.3777·19.88 N·m.
    assert found["surge"].attainable == pytest.approx(39.76)
    assert found["yaw"].attainable == pytest.approx(2 * 0.3777 * 19.88)
    assert found["yaw"].advice == "expect at most 15.02 N·m in the weaker direction, or set Mz to that"
    # Its class is steered without sway force.
    assert "sway" not in found
    heron = Vessel.load("heron")
    sway = {entry.axis: entry for entry in shortcomings(heron.thrusters, heron.limits)}["sway"]
    assert sway.advice == "no thruster gives any sway: add one or turn one"
    assert Vessel.load("platform-a").shortcomings() == []
    assert Vessel.load("supply").shortcomings() == []


@pytest.mark.parametrize(("file", "platform"), [("boat", "platform-a"), ("boat-b", "platform-b")])
def test_the_example_boats_are_the_papers_with_thrusters_that_suffice(file, platform):
    boat = Vessel.load(Path(__file__).parents[1] / "examples" / f"{file}.toml")
    assert boat.normalized == Vessel.load(platform).normalized
    assert boat.shortcomings() == []
    # 4·reverse/√2 in surge and sway, times the arm x + y in yaw.
    reverse, arm = boat.thrusters[0].reverse, boat.thrusters[0].x + boat.thrusters[0].y
    assert reverse is not None
    assert min(attainable(boat.thrusters).alone[1]) == pytest.approx(4 * reverse / math.sqrt(2))
    assert min(attainable(boat.thrusters).alone[2]) == pytest.approx(4 * reverse * arm / math.sqrt(2))


HULL = DINGHY + "length = 2\n"
FOUR = "".join(f'[[thrusters]]\nkind = "fixed"\nx = {t.x}\ny = {t.y}\nforward = 10\nangle = {t.angle}\n' for t in CROSS)
TWO = "".join(f'[[thrusters]]\nkind = "fixed"\nx = {t.x}\ny = {t.y}\nforward = 10\nreverse = 5\n' for t in TWIN)


def load(tmp_path, text):
    path = tmp_path / "boat.toml"
    path.write_text(text)
    return Vessel.load(path)


def test_limits_follow_from_the_layout(tmp_path):
    assert load(tmp_path, HULL + FOUR).limits == pytest.approx((28.284, 28.284, 14.142), rel=1e-4)
    # What is stated stays.
    assert load(tmp_path, HULL + "Fx = 20\nMz = 3\n" + FOUR).limits == pytest.approx((20, 28.284, 3), rel=1e-4)
    # Two thrusters side by side: nobody has to declare that the boat is under-actuated.
    for declared in ("", 'actuation = "under"\n'):
        twin = load(tmp_path, HULL + declared + TWO)
        assert twin.limits == pytest.approx((20, 0, 5))
        assert twin.actuation == "under"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (HULL, "boat.toml: Fx is missing"),
        (
            HULL + "Fx = 20\nFy = 5.5\nMz = 5\n" + TWO,
            "boat.toml: Fy = 5.5: must be at most 0, which the thrusters can give",
        ),
        (
            HULL + "Fx = 21.5\n" + FOUR.replace("forward = 10", "forward = 5"),
            "boat.toml: Fx = 21.5: must be at most 14.14",
        ),
        (
            HULL + FOUR.replace("x = 0.3", "x = 3.5"),
            "boat.toml: thrusters[0].x = 3.5: must be within length = 2 of the centre of gravity",
        ),
        (
            HULL + '[[thrusters]]\nkind = "fixed"\nx = -1\ny = 0\nforward = 10\n',
            "boat.toml: thrusters: cannot turn the boat to both sides: turn or add one, or state Mz",
        ),
        (
            HULL + '[[thrusters]]\nkind = "tunnel"\nx = 1\ny = 0\nforward = 10\nangle = 90\n',
            "boat.toml: thrusters: cannot push the boat ahead: turn or add one, or state Fx",
        ),
        (
            HULL + FOUR + '[[thrusters]]\nkind = "tunnel"\nx = 1\ny = 0\nforward = 10\n',
            "boat.toml: thrusters[4].angle = 0.0: must be 90 or -90 for a tunnel, which pushes across the boat",
        ),
        (HULL + FOUR + "rate = 0.0\n", "boat.toml: thrusters[3].rate = 0.0: must be positive"),
        (
            HULL + FOUR + "turn_rate = 9.5\n",
            "boat.toml: thrusters[3].turn_rate = 9.5: must be left out: only azimuths turn",
        ),
        (
            HULL + FOUR + "deadband = 9\n",
            "boat.toml: thrusters[3].deadband = 9: unknown key; did you mean 'dead_band'?",
        ),
    ],
)
def test_errors_in_layouts_state_what_the_boat_cannot_do(tmp_path, text, expected):
    with pytest.raises(InputError) as error:
        load(tmp_path, text)
    assert expected in str(error.value)
    assert "\n" not in str(error.value)
