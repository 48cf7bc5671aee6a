"""Boats that cannot push sideways: physics, controllers that know them, references and the way to a start."""

from dataclasses import replace

import numpy as np
import pytest
from doubles import BOAT, Constant

from anyhull import InputError, Sea, Vessel, circle, hold, line, rounded_rectangle, simulate
from anyhull.control import LOS, MPC, PID, mpc
from anyhull.control.los import advance, steering
from anyhull.legs import legs
from anyhull.onboard.joining import Approach, approach


@pytest.fixture
def boat(tmp_path):
    """Fx = 30 N, m22 = 20 + 10 = 30 kg, 1/tau_v = 20/30 1/s, without sway force."""
    path = tmp_path / "boat.toml"
    path.write_text(BOAT.replace("Fy = 30", "Fy = 0"))
    return Vessel.load(path)


def test_the_sea_pushes_a_boat_sideways_that_cannot(boat):
    # A force of f of the surge limit: v' = f·30/30 - v/1.5, so v = 1.5·f·(1 - exp(-t/1.5)) until the boat turns.
    sea = Sea(force=0.2, force_decay=1e-9)
    log = simulate(Constant(0.0, 0.0, 0.0), boat, hold(), sea, seed=1, duration=0.3)
    push = log.force[0, 1]
    assert abs(push) > 0.02
    expected = 1.5 * push * (1 - np.exp(-log.time / 1.5))
    np.testing.assert_allclose(log.state[:, 4], expected, atol=1e-3 * abs(push))


def test_a_sway_command_has_no_effect_without_sway_force(boat):
    for vessel in (boat, Vessel.load("viknes")):  # Viknes has a sideways limit that its rudder shares with yaw
        still, pushed = (simulate(Constant(0.5, v, 0.1), vessel, hold(), duration=5.0) for v in (0.0, 1.0))
        np.testing.assert_array_equal(still.state, pushed.state)


def test_with_sway_force_wind_is_a_fraction_of_it():
    vessel = Vessel.load("platform-a")
    assert vessel.disturbed == vessel.normalized
    assert not vessel.under_actuated


RECTANGLE = rounded_rectangle(14.0, 10.0, 4.0, speed=0.6)


@pytest.mark.parametrize("name", ["heron", "qiuxin5"])
def test_mpc_tracks_to_half_a_millimetre_in_still_water(name):
    # 0.02 and 0.03 cm for the whole lap; with the ten periods of the window alone Qiuxin is metres off.
    vessel = Vessel.load(name)
    controller = MPC(vessel)
    log = simulate(controller, vessel, RECTANGLE, duration=15.0)
    assert log.metrics().position_cm < 0.05
    assert (log.command[:, 1] == 0).all()
    assert controller.failures == 0


def test_field_mpc_is_ahead_of_los_in_the_field_sea_and_finds_current_and_delay():
    vessel, sea = Vessel.load("otter-25"), replace(Sea.field(), delay=(0.2, 0.2))
    controller = MPC(vessel, "field")
    log = simulate(controller, vessel, RECTANGLE, sea, seed=7, duration=15.0)
    assert log.metrics().position_cm < 5.0
    los = simulate(LOS(vessel), vessel, RECTANGLE, sea, seed=7, duration=15.0)
    assert log.metrics().position_cm < los.metrics().position_cm
    assert controller.delay == pytest.approx(0.2, abs=0.03)
    assert controller.current == pytest.approx(log.current[-1], abs=0.1)


@pytest.mark.parametrize(
    ("name", "still", "field"), [("heron", 0.4, 20.0), ("otter-25", 0.4, 3.0), ("qiuxin5", 0.8, 10.0)]
)
def test_los_follows_in_still_water_and_in_the_field_sea(name, still, field):
    vessel = Vessel.load(name)
    log = simulate(LOS(vessel), vessel, RECTANGLE, duration=30.0)
    assert log.metrics().position_cm < still
    assert (log.command[:, 1] == 0).all()
    log = simulate(LOS(vessel), vessel, RECTANGLE, Sea.field(), seed=7, duration=30.0)
    assert log.metrics().position_cm < field
    assert log.metrics().delta_tau < 0.2


def test_los_gains_keep_a_steady_turn_and_are_mirrored_astern():
    u, damping, c_ru = 0.6, 0.8, -0.7
    gains = steering(u, damping, c_ru, 0.01)
    # In a steady turn v = c_ru u r / damping and, on the path, psi = -v / u. No yaw acceleration, so r_d = r:
    # r = (-K_V v - psi) / T_PSI + sum(G) r.
    v = c_ru * u / damping
    assert gains.preview.sum() == pytest.approx(1 + (gains.drift * v - v / u) / gains.t_psi)
    astern = steering(-u, damping, c_ru, 0.01)
    assert (astern.t_e, astern.t_psi, astern.t) == pytest.approx((gains.t_e, gains.t_psi, gains.t))
    assert astern.drift == pytest.approx(-gains.drift)
    np.testing.assert_allclose(astern.preview, gains.preview, atol=1e-9)


def test_los_surge_gains_are_those_of_a_double_integrator():
    # Continuous time: T_X = sqrt(2) w^(1/4) and T_U = w^(1/4) / sqrt(2); a period of 0.1 s is short beside 10 s.
    np.testing.assert_allclose(advance(1e4), (np.sqrt(2) * 10, 10 / np.sqrt(2)), rtol=0.02)


def test_a_continued_reference_keeps_its_twist():
    path = circle(4.0, speed=0.6)
    expected = path.at(1.0 + 0.1 * np.arange(6.0))
    np.testing.assert_allclose(mpc.continued(path.at(np.array([1.0])), 5), expected, atol=1e-9)


@pytest.mark.parametrize("delay", [0.0, 0.5, 1.0, 2.0 - 1e-12, 2.0, 2.0 + 1e-12])
def test_the_reference_of_a_plan_begins_after_the_delay(delay):
    path = line(speed=0.6)
    ahead = MPC(Vessel.load("heron"), "field")._ahead(path.window(0.0), delay)
    # The ends of 19 periods of 6 cm each.
    np.testing.assert_allclose(ahead[:, 0], 0.06 * (delay + np.arange(1.0, 20.0)), atol=1e-9)


def test_los_keeps_station_within_its_circle():
    vessel = Vessel.load("otter-25")
    log = simulate(LOS(vessel), vessel, hold(duration=60.0), Sea.field(), seed=1)
    assert np.hypot(*log.state[200:, :2].T).max() < vessel.hold_radius == 2.0
    # In still water there is no reason to turn.
    still = simulate(LOS(vessel), vessel, hold((0.0, 0.0, 1.0), duration=10.0))
    np.testing.assert_allclose(still.state[:, 2], 1.0, atol=1e-9)


def test_pid_names_the_controllers_for_boats_without_sway():
    with pytest.raises(InputError, match="use los or mpc"):
        PID(Vessel.load("heron"))


def test_what_a_boat_without_sway_cannot_follow_is_named():
    heron = Vessel.load("heron")
    assert RECTANGLE.infeasible(heron) == []
    (crab,) = line(heading=1.0, speed=0.3).infeasible(heron)
    assert "cannot push sideways" in crab
    # Damping at 0.24 m/s of sway: 0.564 + 0.0986·0.24 = 0.588 1/s; |c_ru| = 1: at most 0.4·0.588 = 0.235 rad/s.
    (turn,) = rounded_rectangle(radius=2.0).infeasible(heron)
    assert "at most 0.23 rad/s" in turn or "at most 0.24 rad/s" in turn


def test_legs_slow_down_in_turns_of_a_boat_without_sway():
    heron = Vessel.load("heron")
    slow = legs([(0, 0), (10, 0), (10, 10)], radius=1.5, speed=0.6, vessel=heron)
    assert slow.infeasible(heron) == []
    assert any("slower in the turn" in note for note in slow.notes)


@pytest.mark.parametrize("target", [(0.5, 1.0, 0.0), (-4.0, 3.0, 2.0)])
def test_a_boat_without_sway_drives_forward_to_a_start_aside(target):
    otter = Vessel.load("otter-25")
    way = approach((0.0, 0.0, 0.0), target, Approach(), vessel=otter)
    states = way.at(np.arange(0.0, way.duration, 0.1))
    assert np.abs(states[:, 4]).max() < 1e-9
    assert states[:, 3].min() > -1e-9
    log = simulate(LOS(otter), otter, way, duration=way.duration + 10.0)
    assert np.hypot(*(log.state[-1, :2] - target[:2])) < 0.3
