"""Similarity: one policy for boats of any size, in units that the boat's file says."""

from dataclasses import replace

import numpy as np
import pytest

from anyhull import Pilot, Sea, Vessel, line, rounded_rectangle, simulate
from anyhull.control import MPC, PID
from anyhull.hydrodynamics import Hydrodynamics
from anyhull.onboard.autopilot import Autopilot
from anyhull.onboard.limits import Limits
from anyhull.onboard.setup import Setup
from anyhull.paper import RANGES
from anyhull.scale import FULL, IDENTITY, PERIOD, Scale, accelerations, derated, derating
from anyhull.twin.sea_trial import sea_trial
from anyhull.twin.twin import Twin, TwinConfig, with_thrusters
from anyhull.twin.water import WATERS
from anyhull.vessel import catalogue

SCALED = ("biling", "csad", "cse1", "gunnerus", "milliampere1", "seacat2", "supply", "wamv-vrx-t", "wamv-vrx-x")
"""The fully actuated vessels of the catalogue that need a scale."""


CALM = TwinConfig(water=WATERS["light-air"])


def similar(vessel: Vessel) -> Vessel:
    """The boat in SI whose e and drag are those of `vessel` in its scale."""
    e, (quadratic, cubic) = vessel.scale.normalized(vessel.normalized), vessel.scale.drag(vessel.drag)
    # m11 = 1, m22 = c_rv and m66 from c_uv = (Y_vdot - X_udot) / m66 = -(m22 - m11) / m66, where that is not 0 / 0.
    inertia = 1.0, e.c_rv, (1.0 - e.c_rv) / e.c_uv if e.c_uv else 1.0
    m = 0.5 * min(1.0, e.c_rv)
    names = ("X_u", "Y_v", "N_r", "X_uu", "Y_vv", "N_rr", "X_uuu", "Y_vvv", "N_rrr")
    damping = dict(zip(names, np.array([e[3:6], quadratic, cubic]).ravel() * np.tile(inertia, 3), strict=True))
    hull = Hydrodynamics(
        X_udot=m - 1.0, Y_vdot=m - e.c_rv, I_comb=inertia[2], **{k: float(v) for k, v in damping.items()}
    )
    limits = [a * i for a, i in zip(e[:3], inertia, strict=True)]
    return Vessel("similar", limits[0], limits[1], limits[2], m, hull)


def rectangle(unit: float, time: float):
    return rounded_rectangle(5.0 * unit, 3.0 * unit, unit, speed=0.3 * unit / time)


@pytest.mark.parametrize("sea", ["ideal", "field"])
@pytest.mark.parametrize(
    "drive", [lambda v: Pilot.load("field", v), lambda v: MPC(v, "field"), PID], ids=["pilot", "mpc", "pid"]
)
def test_a_ship_moves_as_the_boat_that_is_similar_to_it(drive, sea):
    ship = Vessel.load("gunnerus")
    boat, scale = similar(ship), ship.scale
    assert boat.scale is IDENTITY
    assert not scale.identity
    still = Sea.preset(sea)
    large = simulate(drive(ship), ship, rectangle(scale.length, scale.time), scale.sea(still), duration=20 * scale.time)
    small = simulate(drive(boat), boat, rectangle(1.0, 1.0), still, duration=20.0)
    np.testing.assert_allclose(large.time / scale.time, small.time, atol=1e-9)
    np.testing.assert_allclose(scale.window(large.state), small.state, atol=1e-9)
    np.testing.assert_allclose(large.command, small.command, atol=1e-6)
    assert np.ptp(large.state[:, 0]) > scale.length
    if large.dynamics is not None:
        assert small.dynamics is not None
        in_si = [ship.scale.inverse.normalized(type(ship.normalized)(*row[:9])) for row in small.dynamics]
        np.testing.assert_allclose(large.dynamics[:, :9], in_si, rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("name", [n for n in catalogue() if Vessel.load(n).actuation == "full"])
def test_every_fully_actuated_vessel_comes_inside_what_policies_are_trained_on(name):
    vessel = Vessel.load(name)
    assert vessel.outside(RANGES) == []
    assert vessel.scale.identity == (name not in SCALED)
    assert derating(vessel) == FULL


def test_the_scale_follows_from_the_file_and_not_from_hydrodynamics():
    for name in SCALED:
        vessel = Vessel.load(name)
        assert replace(vessel, hydrodynamics=None).scale == vessel.scale
    # Without a mass, 9.5 kg/m³ times 1000 m³ in place of 20 t; the time unit grows with the root of the mass.
    heavy = Vessel("Ten metres", Fx=2000.0, Fy=1000.0, Mz=5000.0, m=38000.0, length=10.0)
    assert heavy.scale.time == pytest.approx(2 * replace(heavy, m=None).scale.time, abs=0.05)


def test_models_keep_si_and_the_loop_is_never_faster_than_ten_hertz():
    assert Vessel.load("platform-a").scale == Vessel.load("heron").scale == IDENTITY
    assert IDENTITY.period == PERIOD == 0.1
    for name in catalogue():
        scale = Vessel.load(name).scale
        assert scale.time >= 1.0
        # The twin's tick of 5 ms, and three figures in what people read.
        assert round(scale.period / 0.005) * 0.005 == pytest.approx(scale.period, abs=1e-12)
        assert (f"{scale.time:.3g}", f"{scale.length:.3g}") == (f"{scale.time:.9g}", f"{scale.length:.9g}")


def test_a_boat_stronger_than_any_in_training_is_derated():
    # a_u = 300 / (1.1 · 10) = 27 m/s² against 8 l / T² = 8.88 m/s² with l = 1.11 m, T = 1 s.
    strong = Vessel("Strong", Fx=300.0, Fy=50.0, Mz=10.0, m=10.0, length=1.0)
    assert accelerations(strong)[0] == pytest.approx(27.3, abs=0.1)
    assert strong.scale == Scale(1.11, 1.0)
    assert derating(strong) == (0.32, 1.0, 1.0)
    assert derated(strong) == pytest.approx((96.0, 50.0, 10.0))
    pilot, weak = Pilot.load("field", strong), Pilot.load("field", replace(strong, Fx=96.0))
    window = rectangle(1.0, 1.0).window(3.0, strong.scale.period)
    commands = [p.step(np.zeros(3), np.zeros(3), window) for p in (pilot, weak)]
    np.testing.assert_allclose(commands[0], commands[1] * (0.32, 1.0, 1.0), rtol=1e-12)
    # The estimate is of the boat with all its force.
    assert pilot.dynamics is not None
    assert weak.dynamics is not None
    assert pilot.dynamics.e.alpha_u == pytest.approx(weak.dynamics.e.alpha_u / 0.32)


def test_a_sea_in_the_policys_units_is_known_in_si():
    sea = Scale(30.0, 6.0).sea(Sea.field())
    # 0.2 · 30 / 6 m/s, 0.2 · 6 s, and the rates over 6.
    assert (sea.current, sea.force, *sea.delay) == pytest.approx((1.0, 0.1, 0.0, 1.2))
    assert (sea.current_decay, sea.force_decay) == pytest.approx((0.05 / 6, 0.5 / 6))
    assert IDENTITY.sea(sea) is sea


def test_the_loop_on_the_boat_follows_the_scale():
    # C/S Enterprise I: l = 1.23 m, T = 1.75 s, so that the loop runs at 5.7 Hz.
    setup = Setup(Vessel.load("cse1"))
    assert setup.limits.period == pytest.approx(0.175)
    assert (setup.limits.off_path, setup.limits.hold) == pytest.approx((5 * 1.23, 0.5 * 1.75))
    # What the file states is in SI, and a copy is not scaled again.
    stated = Setup(setup.vessel, limits=Limits(hold=0.6))
    assert stated.limits.hold == replace(stated, fence=None).limits.hold == 0.6
    log = sea_trial(Pilot.load("field", setup.vessel), setup, line(2.0, speed=0.2), CALM)
    assert log.period == pytest.approx(0.175)
    assert len(log.time) == pytest.approx(10.0 / 0.175, abs=3)
    assert log.about["arrived"]
    assert log.metrics().position_cm < 5.0


def test_commands_are_repeated_within_a_long_period_for_the_boats_watchdog():
    setup = Setup(with_thrusters(Vessel.load("supply")))
    boat = Autopilot(setup, PID(setup.vessel), line(1000.0, speed=3.0))
    assert boat.repeat_after == PERIOD
    assert boat.repeat(0.0) is None
    twin = Twin(setup.vessel, CALM)
    for message in twin.advance() + twin.advance():
        boat.on_message(message, 0.01)
    step = boat.step(0.02)
    assert step is not None
    repeated = boat.repeat(0.12)
    assert repeated is not None
    assert repeated.time == pytest.approx(step.command.time + 0.1)
    assert repeated == replace(step.command, seq=step.command.seq + 1, time=repeated.time)
    # A model's period is short enough.
    model = Setup(with_thrusters(Vessel.load("platform-a")))
    assert Autopilot(model, PID(model.vessel), line()).repeat_after == np.inf
