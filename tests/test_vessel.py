"""Vessels: the catalogue, the nine components, derived quantities, and invalid files."""

import math
from dataclasses import replace

import pytest
from doubles import DINGHY

from anyhull import Pilot
from anyhull.errors import InputError
from anyhull.paper import RANGES
from anyhull.thrusters import Thruster
from anyhull.vessel import Vessel, catalogue

GOOD = DINGHY + "Fx = 20\nFy = 10\nMz = 5\n"


def load(tmp_path, text):
    path = tmp_path / "boat.toml"
    path.write_text(text)
    return Vessel.load(path)


def test_the_papers_five_and_eighteen_published_vessels_are_there():
    assert {"platform-a", "platform-b", "roboat-1", "roboat-2", "roboat-3"} <= set(catalogue())
    assert len(catalogue()) == 23
    for name in catalogue():
        assert Vessel.load(name).source, name


def test_normalized_components_of_roboat_1_by_hand():
    # m11 = 9.2 + 3.8 = 13, m22 = 9.2 + 14 = 23.2, I = 1.3.
    e = Vessel.load("roboat-1").normalized
    expected = (40 / 13, 40 / 23.2, 27 / 1.3, 6 / 13, 7.1 / 23.2, 0.8 / 1.3, 23.2 / 13, -13 / 23.2, -10.2 / 1.3)
    assert e == pytest.approx(expected, rel=1e-12)


def test_coriolis_components_multiply_to_minus_one(platform):
    assert platform.normalized.c_rv * platform.normalized.c_ru == pytest.approx(-1, rel=1e-12)


def test_rigid_mass_alone_does_not_matter(platform):
    hull = replace(platform.hull, X_udot=platform.hull.X_udot + 3, Y_vdot=platform.hull.Y_vdot + 3)
    shifted = replace(platform, m=platform.mass + 3, hydrodynamics=hull)
    assert shifted.normalized == pytest.approx(platform.normalized, rel=1e-12)


@pytest.mark.parametrize("policy", ["ideal", "field"])
def test_the_five_platforms_lie_inside_the_envelopes_of_the_shipped_policies(platform, policy):
    envelope = Pilot.load(policy).envelope
    assert envelope == RANGES
    assert platform.outside(envelope) == []


def test_a_component_outside_an_envelope_is_named_with_its_value_and_range(platform):
    # The envelope of a policy for one boat, 20 % to either side: the others lie outside.
    e = platform.normalized._asdict()
    envelope = {name: tuple(sorted((0.8 * value, 1.2 * value))) for name, value in e.items()}
    assert platform.outside(envelope) == []
    low, high = envelope["alpha_r"]
    (found,) = replace(platform, Mz=2 * platform.Mz).outside(envelope)
    assert found[:4] == ("alpha_r", pytest.approx(2 * e["alpha_r"]), low, high)
    assert found.advice == f"derate Mz to {1.2 * platform.Mz:.4g} N·m or less"


def test_published_top_speeds():
    # As the sources' own drag and thrust give them, linear, quadratic and cubic.
    speeds = {"otter-0": 3.0864, "cse1": 0.766561, "heron": 2.741217, "viknes": 9.667293, "qiuxin5": 2.005288}
    for name, speed in speeds.items():
        assert Vessel.load(name).top_speeds[0] == pytest.approx(speed, rel=1e-5), name


def test_roboat_1_is_unstable_in_yaw_above_21_cm_per_second():
    assert Vessel.load("roboat-1").yaw_unstable_above == pytest.approx(0.207, abs=1e-3)
    assert Vessel.load("platform-a").yaw_unstable_above == math.inf


def test_under_actuated_vessels_are_marked():
    under = {name for name in catalogue() if Vessel.load(name).actuation == "under"}
    assert under == {
        "blueboat-nmpc", "heron", "kingfisher-sysid", "otter-0", "otter-25", "qiuxin5", "viknes", "vtec-s3",
    }  # fmt: skip


def test_layouts_reach_the_stated_surge_limit():
    # The sum of what each thruster can push ahead, where the layout is given. The drillship's and the other
    # azimuths may all point ahead.
    for name in catalogue():
        vessel = Vessel.load(name)
        ahead = 0.0
        for thruster in vessel.thrusters:
            share = 1.0 if thruster.kind == "azimuth" else math.cos(math.radians(thruster.angle))
            ahead += thruster.forward * share
        if vessel.thrusters:
            assert ahead == pytest.approx(vessel.Fx, rel=2e-3), name


def test_the_advice_for_too_strong_a_boat_is_the_limit_to_derate_to():
    # Without a length it has no scale: SI.
    boat = replace(Vessel.load("wamv-vrx-t"), length=None)
    outside = {found.component: found for found in boat.outside(RANGES)}
    # 211 kg at no more than 12 m/s² is 2532 N.
    assert "derate Fx to 2532 N" in outside["alpha_u"].advice
    assert outside["alpha_u"].value == pytest.approx(4707.07 / 211, rel=1e-4)
    assert (outside["alpha_u"].low, outside["alpha_u"].high) == RANGES["alpha_u"]


def test_a_good_file_loads_with_its_thrusters(tmp_path):
    text = GOOD + '[[thrusters]]\nkind = "fixed"\nx = -1\ny = 0.5\nforward = 30\nangle = 45\n'
    vessel = load(tmp_path, text)
    assert vessel.inertia == (11, 15, 2)
    assert vessel.thrusters == (Thruster(kind="fixed", x=-1, y=0.5, forward=30, angle=45),)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("m = 10\n", ""), "boat.toml: m = None: must be given for a boat with [hydrodynamics]"),
        (("m = 10", "m = -10"), "boat.toml: m = -10: must be positive"),
        (("X_u = 3", "X_u = nan"), "boat.toml: hydrodynamics.X_u = nan: must be a finite number"),
        (("X_u = 3", "X_u = inf"), "boat.toml: hydrodynamics.X_u = inf: must be a finite number"),
        (("X_u = 3", "X_u = 3\nX_uuuu = 1"), "boat.toml: X_uuuu = 1: unknown key; did you mean 'X_uuu'?"),
        (("X_u = 3", 'X_u = "3"'), "boat.toml: hydrodynamics.X_u = '3': must be a finite number"),
        (("X_u = 3", "X_u = true"), "boat.toml: hydrodynamics.X_u = True: must be a finite number"),
        (("Y_vdot = -5", "Y_vdot = 12"), "boat.toml: hydrodynamics.Y_vdot = 12.0: must be less than m = 10"),
        (
            ("X_u = 3", "X_u = 3\nX_uu = -1"),
            "boat.toml: hydrodynamics.X_uu = -1: must be large enough that the drag always decelerates",
        ),
        (("m = 10", "m = = 10"), "boat.toml: not valid TOML"),
        (("Mz = 5", "Mz = 5\nthrusters = 3"), "boat.toml: thrusters = 3: must be a list of tables"),
        (
            ("Mz = 5", 'Mz = 5\n[[thrusters]]\nkind = "jet"\nx = 0\ny = 0\nforward = 1'),
            "boat.toml: thrusters[0].kind = 'jet': must be 'fixed', 'azimuth' or 'tunnel'",
        ),
        (
            ("Mz = 5", 'Mz = 5\n[[thrusters]]\nkind = "fixed"\nx = 0\ny = 0\nforward = -1'),
            "boat.toml: thrusters[0].forward = -1: must be zero or more",
        ),
        (("m = 10", "m = 1" + 5000 * "0"), "boat.toml: not valid TOML: Exceeds the limit"),
        (("m = 10", "m = 1" + 400 * "0"), "boat.toml: m = 1000000"),
        (("m = 10", "m = " + 3000 * "["), "boat.toml: not valid TOML: nested too deeply"),
        (("m = 10", "m = 10\n" + 60_000 * "a." + "a = 1"), "boat.toml: not valid TOML: a key of more than 50 parts"),
        (("m = 10", "m = 10\n[" + 30_000 * '"a" . ' + "a]"), "boat.toml: not valid TOML: a key of more than 50 parts"),
        (("m = 10", "m = 10\nlength = 1e9"), "boat.toml: length = 1000000000.0: must be at most 1000"),
        (("m = 10", "m = 1e308"), "boat.toml: Fx = 20: must be such that |alpha_u| = 2e-307 is from 1e-09 to 1e+06"),
        (
            ("I_comb = 2", "I_comb = 1e-300"),
            "boat.toml: hydrodynamics.I_comb = 1e-300: must be such that |alpha_r| = 5e+300 is from 1e-09",
        ),
        # 1e5 / 11 per second.
        (
            ("X_u = 3", "X_u = 1e5"),
            "boat.toml: hydrodynamics.X_u = 100000.0: must be smaller: it gives a damping rate of 9091 1/s",
        ),
        (("X_u = 3", "X_u = 3\nX_uu = 1e9"), "boat.toml: hydrodynamics.X_uu = 1000000000.0: must be smaller"),
        (('"Dinghy"', '"Dinghy"\n"a\\nb" = 1'), "boat.toml: a\\nb = 1: unknown key"),
        (
            ("Mz = 5", "Mz = 5\n" + 33 * '[[thrusters]]\nkind = "fixed"\nx = 0\ny = 0\nforward = 1\n'),
            "boat.toml: thrusters: 33 tables: must be at most 32",
        ),
        (
            ("Mz = 5", 'Mz = 5\n[[thrusters]]\nkind = "fixed"\nx = 0\ny = 0\nforward = 1e300'),
            "boat.toml: thrusters[0].forward = 1e+300: must be at most 1e+09",
        ),
        (("m = 10", "m = 10\n" + 210_000 * "#"), "boat.toml: larger than 0.2 MB"),
    ],
)
def test_an_invalid_file_is_named_with_field_value_and_accepted_values(tmp_path, change, expected):
    with pytest.raises(InputError) as error:
        load(tmp_path, GOOD.replace(*change))
    assert expected in str(error.value)
    assert "\n" not in str(error.value)


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(InputError, match=r"vessel 'platfrom-a' is unknown: did you mean 'platform-a'\?"):
        Vessel.load("platfrom-a")


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match=r"none\.toml: cannot be read: No such file"):
        Vessel.load(tmp_path / "none.toml")


def test_a_file_that_is_not_text_is_refused(tmp_path):
    (tmp_path / "boat.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match=r"boat\.toml: cannot be read: 'utf-8' codec"):
        Vessel.load(tmp_path / "boat.toml")
