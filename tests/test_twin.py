"""The twin: its physics by hand, its sensors and thrusters by statistics, its board by its rules, and sea trials."""

import json
import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anyhull import viz
from anyhull.cli import main
from anyhull.control import PID
from anyhull.dynamics import physical_acceleration
from anyhull.errors import InputError
from anyhull.log import Log
from anyhull.onboard.messages import (
    Acceleration,
    Battery,
    Command,
    Gyro,
    Heading,
    Leak,
    Operator,
    Position,
    Status,
    Tilt,
    decode,
    encode,
)
from anyhull.onboard.setup import Setup
from anyhull.paper import PLATFORMS
from anyhull.reference import hold, line, rounded_rectangle
from anyhull.thrusters import Thruster, derived_limits
from anyhull.twin import WATERS, Twin, TwinConfig, Water, with_thrusters
from anyhull.twin.firmware import BoardConfig, Firmware
from anyhull.twin.hull import Hull, HullUncertainty, size
from anyhull.twin.propulsion import Propulsion, ThrusterUncertainty, default_layout
from anyhull.twin.report import report
from anyhull.twin.sea_trial import sea_trial
from anyhull.twin.sensors import SensorConfig, SensorSuite
from anyhull.twin.twin import TICK
from anyhull.twin.water import Weather
from anyhull.vessel import WORKING_POINT, Vessel, catalogue

EXAMPLES = Path(__file__).parents[1] / "examples"
KNOWN = HullUncertainty(inertia=0.0, damping=0.0, quadratic=(0.0, 0.0), centre_of_gravity=0.0, centre_of_drag=0.0)
NEW = ThrusterUncertainty(gain=0.0, exponent=(1.0, 1.0), dead_band=0.0, lag=(1.0, 1.0), steps=10**9)
STILL = WATERS["still"]


def test_a_hull_without_uncertainty_is_the_vessels_model_in_still_water():
    vessel = Vessel.load("roboat-2")
    hull = Hull.draw(vessel, KNOWN, np.random.default_rng(0))
    for seed in range(5):
        nu, tau = np.random.default_rng(seed).normal(size=(2, 3))
        expected = physical_acceleration(nu.tolist(), (100 * tau).tolist(), vessel)
        assert hull.acceleration(tuple(nu), tuple(100 * tau)) == pytest.approx(expected)


def test_drag_at_the_working_point_is_the_files_and_elsewhere_it_is_not():
    vessel = Vessel.load("platform-a")
    hull = Hull.draw(vessel, replace(KNOWN, quadratic=(0.5, 0.5)), np.random.default_rng(0))
    u = WORKING_POINT[0]
    assert hull.drag((u, 0.0, 0.0))[0] == pytest.approx(54 * u)
    # Half of it linear, half quadratic: at twice the speed 54·u·(1 + 2), at half of it 54·u·(1/4 + 1/8).
    assert hull.drag((2 * u, 0.0, 0.0))[0] == pytest.approx(3 * 54 * u)
    assert hull.drag((u / 2, 0.0, 0.0))[0] == pytest.approx(0.375 * 54 * u)


def test_the_hull_gives_no_energy():
    # With x_g and x_l off the origin, free motion loses energy by drag alone: nuᵀ M nu' = -nuᵀ D.
    rng = np.random.default_rng(1)
    for seed in range(20):
        hull = Hull.draw(
            Vessel.load(PLATFORMS[seed % 5]), HullUncertainty(centre_of_gravity=0.1, centre_of_drag=0.2), rng
        )
        inertia = np.array([[hull.m11, 0, 0], [0, hull.m22, hull.m23], [0, hull.m23, hull.m33]])
        assert np.linalg.eigvalsh(inertia).min() > 0
        nu = rng.normal(size=3)
        power = nu @ inertia @ hull.acceleration(tuple(nu), (0.0, 0.0, 0.0))
        assert power == pytest.approx(-nu @ hull.drag(tuple(nu)))
        assert power < 0


def test_a_sway_force_turns_a_boat_whose_centre_of_gravity_is_off():
    hull = replace(Hull.draw(Vessel.load("platform-a"), KNOWN, np.random.default_rng(0)), m23=1.0)
    _, v, r = hull.acceleration((0.0, 0.0, 0.0), (0.0, 1.0, 0.0))
    # M22 v' + M23 r' = 1 and M23 v' + M33 r' = 0.
    assert r == pytest.approx(-v / hull.m33)
    assert r < 0


def drift(water, seconds, seed=0, hull=KNOWN):
    twin = Twin(Vessel.load("platform-a"), TwinConfig(water=water, hull=hull), seed=seed)
    for _ in range(round(seconds / TICK)):
        twin.advance()
    return twin


def test_a_boat_adrift_takes_the_velocity_of_the_water_and_turning_does_not_change_that():
    # But for the air, which stands still.
    water = Water(wind=0.0, fetch=0.0, current=0.3, eddies=0.0)
    twin = drift(water, 30.0)
    c_x, c_y = twin.weather.current
    assert math.hypot(c_x, c_y) > 0.05
    _, _, psi, u, v, _ = twin.state
    over_ground = (math.cos(psi) * u - math.sin(psi) * v, math.sin(psi) * u + math.cos(psi) * v)
    assert over_ground == pytest.approx((c_x, c_y), abs=1e-4)
    twin._through_water = (*twin._through_water[:2], 1.0)
    for _ in range(400):
        twin.advance()
    _, _, psi, u, v, _ = twin.state
    over_ground = (math.cos(psi) * u - math.sin(psi) * v, math.sin(psi) * u + math.cos(psi) * v)
    assert over_ground == pytest.approx((c_x, c_y), abs=1e-4)


def test_waves_are_as_high_and_long_as_wind_and_fetch_make_them():
    # Wind 3 m/s over 300 m: g·F/U² = 327; Hs = 0.0016·√327·9/9.81 = 2.65 cm, Tp = 0.286·327^(1/3)·3/9.81 = 0.60 s.
    height, period = WATERS["lake"].waves
    assert height == pytest.approx(0.0265, abs=5e-4)
    assert period == pytest.approx(0.603, abs=2e-3)
    weather = Weather(WATERS["lake"], 1e-3, 1e-3, np.random.default_rng(0))
    # A speck feels all of it: orbital velocity of variance sum of (a·omega)²/2.
    speeds = np.array([weather.motion(t, 0.0, 0.0, 0.0)[:2] for t in np.arange(0, 200, 0.05)]) - weather.current
    expected = np.sqrt((weather._amplitude**2 * weather._omega**2).sum() / 2)
    assert np.sqrt((speeds**2).sum(axis=1).mean()) == pytest.approx(expected, rel=0.05)
    assert np.sqrt((weather._amplitude**2).sum() / 2) == pytest.approx(height / 4)
    # A hull as long as a dozen waves hardly moves.
    long = Weather(WATERS["lake"], 6.0, 3.0, np.random.default_rng(0))
    moved = np.array([long.motion(t, 0.0, 0.0, 0.0)[:2] for t in np.arange(0, 20, 0.05)]) - long.current
    assert np.abs(moved).max() < expected / 3


def test_wind_pushes_with_the_square_of_its_speed_and_along_it():
    steady = replace(WATERS["lake"], turbulence=0.0, veer=0.0)
    force = {}
    for wind in (3.0, 6.0):
        weather = Weather(replace(steady, wind=wind), 1.0, 0.5, np.random.default_rng(0))
        force[wind] = weather.wind_force(weather._wind_heading, (0.0, 0.0))
    # From astern: 0.7·1.23/2·9·(1·0.5/7) = 0.277 N.
    assert force[3.0] == pytest.approx((0.277, 0.0, 0.0), abs=1e-3)
    assert force[6.0][0] == pytest.approx(4 * force[3.0][0])


def test_thrusters_lag_and_have_steps_and_a_dead_band():
    thruster = Thruster("fixed", x=0.0, y=0.5, forward=10.0, reverse=4.0, dead_band=0.1, lag=0.2)
    propulsion = Propulsion([thruster], replace(NEW, steps=400), np.random.default_rng(0))
    assert propulsion.steady(0, 0.1) == 0
    assert propulsion.steady(0, 1.0) == 10
    assert propulsion.steady(0, -1.0) == -4
    assert propulsion.steady(0, 7.0) == 10
    assert propulsion.steady(0, 0.55) == pytest.approx(5.0)
    assert propulsion.steady(0, 0.5501) == propulsion.steady(0, 0.55)
    for _ in range(40):
        force = propulsion.step([1.0], [0.0], TICK)
    # After one time constant 63 % of 10 N, half a metre to the side.
    assert force == pytest.approx((6.32, 0.0, -3.16), abs=0.01)


def test_thrust_changes_no_faster_than_its_rate_and_azimuths_turn_no_faster_than_theirs():
    fast = Thruster("azimuth", x=-1.0, y=0.0, forward=10.0, rate=20.0, turn_rate=90.0)
    propulsion = Propulsion([fast], NEW, np.random.default_rng(0))
    for _ in range(20):
        propulsion.step([1.0], [math.pi / 2], TICK)
    assert propulsion.thrusts[0] == pytest.approx(2.0)
    assert propulsion.angles[0] == pytest.approx(math.radians(9.0))


def test_every_vessel_without_thrusters_gets_some_that_reach_its_limits():
    for name in catalogue():
        vessel = Vessel.load(name)
        layout = default_layout(vessel)
        assert derived_limits(layout)[0] >= vessel.Fx * 0.999
        assert derived_limits(layout)[2] >= vessel.Mz * 0.999
        whole = with_thrusters(vessel)
        assert whole.thrusters
        if not vessel.thrusters:
            assert not [short for short in whole.shortcomings() if short.limit > 0]
    # About the examples', which are for the same hulls.
    example = Vessel.load(EXAMPLES / "boat.toml").thrusters[0]
    assert default_layout(Vessel.load("platform-a"))[0].forward == pytest.approx(example.forward, rel=0.02)


def test_sensors_come_at_their_rates_late_and_with_their_errors():
    config = SensorConfig(outage_interval=1e9)
    sensors = SensorSuite(config, 0.8, (0.3, 0.0), np.random.default_rng(0))
    readings = []
    for k in range(20000):
        readings += sensors.read(k * TICK, (1.0, 2.0, 0.5, 0.0, 0.0, 0.1), (0.0, 0.0))
    by = {kind: [reading for reading in readings if reading.kind is kind] for kind in (Position, Heading, Gyro)}
    assert len(by[Heading]) == len(by[Gyro]) == 10000
    assert len(by[Position]) == pytest.approx(0.98 * 700, abs=12)
    late = np.array([reading.arrival - reading.time for reading in by[Position]])
    assert late.min() >= 0.08
    assert late.mean() == pytest.approx(0.1, abs=0.005)
    assert all(a.arrival <= b.arrival for kind in by.values() for a, b in pairwise(kind))
    fixes = np.array([(reading.values["x"], reading.values["y"]) for reading in by[Position]])
    antenna = np.array([1 + 0.3 * math.cos(0.5), 2 + 0.3 * math.sin(0.5)])
    # Four standard deviations of bias and antenna; the noise from one fix to the next is √2 cm.
    assert np.abs(fixes.mean(axis=0) - antenna).max() < 4 * math.hypot(0.01, 0.02)
    assert np.diff(fixes, axis=0).std() == pytest.approx(0.01 * math.sqrt(2), rel=0.1)
    rates = np.array([reading.values["rate"] for reading in by[Gyro]])
    assert abs(rates.mean() - 0.1) < 4 * 5e-3
    assert np.diff(rates).std() == pytest.approx(2e-3 * math.sqrt(2), rel=0.05)


def test_a_mast_sways_with_the_slope_of_the_water():
    config = SensorConfig(fix_noise=0.0, fix_bias=0.0, fix_loss=0.0, antenna=0.0, mast=0.5)
    found = SensorSuite(config, 2.0, (0.0, 0.0), np.random.default_rng(0))
    fix = next(r for k in range(40) for r in found.read(k * TICK, (0.0,) * 6, (0.1, -0.05)) if r.kind is Position)
    # One metre high, against the slope.
    assert (fix.values["x"], fix.values["y"]) == pytest.approx((-0.1, 0.05))


def test_the_accelerometer_measures_a_boat_that_brakes_in_a_turn():
    config = SensorConfig(accelerometer_noise=0.0, accelerometer_bias=0.0)
    sensors, readings = SensorSuite(config, 1.0, (0.0, 0.0), np.random.default_rng(0)), []
    for k in range(200):
        t = k * TICK
        readings += sensors.read(t, (0.0, 0.0, 0.4 * t, 1 - 0.5 * t, 0.0, 0.4), (0.0, 0.0))
    last = [reading.values for reading in readings if reading.kind is Acceleration][-1]
    # At the end u = 0.5 m/s: u' = -0.5 m/s² ahead, r·u = 0.2 m/s² aside.
    assert (last["x"], last["y"]) == pytest.approx((-0.5, 0.2), abs=0.01)


def test_outages_last_as_long_as_they_should():
    sensors = SensorSuite(
        SensorConfig(outage_interval=10.0, outage_duration=2.0, fix_loss=0.0), 1.0, (0, 0), np.random.default_rng(3)
    )
    times = [
        r.time for k in range(100000) for r in sensors.read(k * TICK, (0.0,) * 6, (0.0, 0.0)) if r.kind is Position
    ]
    # A sixth of the time is lost: 2 of 12 s.
    assert len(times) == pytest.approx(7 * 500 * 10 / 12, rel=0.15)


def order(seq, time, thrusters=(0.5, -0.5), session=1):
    return Command(session, seq, time, thrusters, (0.0,) * len(thrusters))


def test_the_board_accepts_only_new_commands_in_order():
    board = Firmware(BoardConfig(delay=(0.05, 0.05), jitter=0.0), 2, np.random.default_rng(0))
    assert board.on_command(order(0, 0.0), 0.0, 0.0)
    assert not board.on_command(order(0, 0.0), 0.0, 0.0)
    assert board.on_command(order(2, 0.1), 0.1, 0.1)
    assert not board.on_command(order(1, 0.1), 0.1, 0.1)
    assert not board.on_command(order(3, 0.1, (0.5, 1.5)), 0.1, 0.1)
    assert not board.on_command(order(3, 0.1, (0.5, math.nan)), 0.1, 0.1)
    assert not board.on_command(order(3, 0.1, (0.5,)), 0.1, 0.1)
    assert not board.on_command(order(3, -1.0), 0.1, 0.1)
    # A pilot that restarted counts from zero, and the former session is rejected.
    assert board.on_command(order(0, 0.1, session=2), 0.1, 0.1)
    assert not board.on_command(order(9, 0.1), 0.1, 0.1)
    assert board.rejected == {
        "duplicate": 1,
        "late": 1,
        "outside [-1, 1]": 1,
        "not finite": 1,
        "not for these thrusters": 1,
        "stale": 1,
        "former session": 1,
    }


def test_the_board_acts_after_its_delay_and_stops_without_commands():
    board = Firmware(BoardConfig(delay=(0.05, 0.05), jitter=0.0, watchdog_timeout=0.5), 2, np.random.default_rng(0))
    board.on_command(order(0, 10.0), 10.0, 0.0)
    board.step(0.04)
    assert (board.commands, board.stopped) == ((0.0, 0.0), True)
    board.step(0.05)
    assert (board.commands, board.stopped) == ((0.5, -0.5), False)
    board.step(0.5)
    assert board.commands == (0.5, -0.5)
    board.step(0.505)
    assert (board.commands, board.stopped, board.trips) == ((0.0, 0.0), True, 1)


def test_a_twin_is_the_same_for_the_same_seed_and_another_for_another():
    def messages(seed):
        twin = Twin(Vessel.load("platform-b"), seed=seed)
        return [message for _ in range(200) for message in twin.advance()], twin.state

    first, state = messages(3)
    assert messages(3) == (first, state)
    assert messages(4)[1] != state
    sent = {Position, Heading, Gyro, Acceleration, Status, Tilt, Operator, Battery, Leak}
    assert {type(message) for message in first} == sent
    assert [message.seq for message in first] == list(range(len(first)))


def test_a_board_that_restarts_has_another_session_and_a_clock_from_zero():
    twin = Twin(Vessel.load("platform-b"))
    before = [message for _ in range(100) for message in twin.advance()]
    place = twin.state[:2]
    twin.restart()
    after = [message for _ in range(100) for message in twin.advance()]
    assert {m.session for m in before}.isdisjoint({m.session for m in after})
    assert after[0].seq == 0
    assert max(m.time for m in after) < 0.51
    assert twin.state[:2] == pytest.approx(place, abs=0.1)


def easy(**changes):
    """A twin that is the vessel's own model, with good sensors and no delay."""
    sensors = SensorConfig(
        fix_noise=2e-3,
        fix_bias=0.0,
        fix_loss=0.0,
        outage_interval=1e9,
        fix_delay=0.0,
        fix_jitter=1e-6,
        antenna=0.0,
        heading_noise=1e-3,
        heading_bias=0.0,
        gyro_noise=1e-4,
        gyro_bias=0.0,
    )
    parts: dict[str, Any] = {"water": STILL, "hull": KNOWN, "thrusters": NEW, "sensors": sensors}
    return TwinConfig(**(parts | changes))


def advance(twin, seconds, commands=None):
    """Advance under constant thruster commands; the messages."""
    messages = []
    for k in range(round(seconds / TICK)):
        if commands is not None and k % 20 == 0:
            twin.on_command(order(twin._ticks, twin.time, commands))
        messages += twin.advance()
    return messages


def the(kind, messages):
    return [message for message in messages if isinstance(message, kind)]


AHEAD = (1.0, 1.0, 1.0, 1.0)
"""Full thrust of four thrusters at 45°, each of 18 N: 4·18·cos 45° = 50.9 N ahead."""


def test_the_board_reports_thrust_battery_leak_tilt_and_switch_at_their_rates():
    twin = Twin(Vessel.load(EXAMPLES / "boat.toml"), easy(), session=1)
    messages = advance(twin, 10.0, AHEAD)
    assert [len(the(kind, messages)) for kind in (Status, Tilt, Operator, Battery, Leak)] == [100, 100, 20, 10, 10]
    assert all(isinstance(decode(encode(message)), type(message)) for message in messages)
    thrust = np.array([message.thrust for message in the(Status, messages)[50:]])
    # All at full thrust, with a noise of 2 %.
    assert thrust.mean() == pytest.approx(1.0, abs=0.01)
    assert thrust.std() == pytest.approx(0.02, rel=0.25)
    # Ten seconds at full thrust and 5 % for the rest, of a day's; the thrusters take 0.3 s.
    used = 1 - the(Battery, messages)[-1].charge
    assert used == pytest.approx(1.05 * 9 / 86400, rel=0.05)
    assert not any(message.water for message in the(Leak, messages))
    assert max(abs(message.roll) for message in the(Tilt, messages)) < 5 * 0.005
    twin.monitors.water, twin.monitors.charge, twin.monitors.heel = True, 0.1, 0.5
    messages = advance(twin, 1.0)
    assert the(Leak, messages)[-1].water
    assert the(Battery, messages)[-1].charge == pytest.approx(0.1, abs=1e-4)
    assert the(Tilt, messages)[-1].roll == pytest.approx(0.5, abs=0.03)


def test_the_boat_tilts_with_the_slope_of_the_water_along_and_across_it():
    twin = Twin(Vessel.load(EXAMPLES / "boat.toml"), easy(), pose=(0.0, 0.0, math.pi / 2))
    readings = twin.monitors.read(0.0, twin._status(), twin.propulsion, (0.2, 0.1), math.pi / 2, "auto")
    tilt = next(reading.values for reading in readings if reading.kind is Tilt)
    # With the bow toward y the water rises by 0.1 ahead and falls by 0.2 to the side of positive sway.
    assert tilt["pitch"] == pytest.approx(math.atan(0.1), abs=0.025)
    assert tilt["roll"] == pytest.approx(math.atan(0.2), abs=0.025)


def test_the_operators_switch_decides_who_commands_the_thrusters():
    twin = Twin(Vessel.load(EXAMPLES / "boat.toml"), easy())
    advance(twin, 1.0, AHEAD)
    twin.operator, twin.manual = "manual", (0.5, -0.5, 0.0, 0.0)
    messages = advance(twin, 1.0, AHEAD)
    assert not twin.firmware.stopped
    # Told with the next status, and the board has none but the operator's commands in force.
    assert the(Operator, messages)[0].mode == "manual"
    assert (the(Status, messages)[-1].thrusters, the(Status, messages)[-1].stopped) == (twin.manual, False)
    # A dead band of 5 %: (0.5 - 0.05) / 0.95 of 18 N forward and of 14.2 N in reverse.
    assert twin.propulsion.thrusts == pytest.approx([8.526, -6.726, 0.0, 0.0], abs=0.01)
    twin.operator = "stop"
    messages = advance(twin, 1.0, AHEAD)
    assert twin.propulsion.thrusts == pytest.approx([0.0] * 4, abs=0.01)
    assert (the(Operator, messages)[-1].mode, the(Status, messages)[-1].stopped) == ("stop", True)
    twin.operator = "auto"
    messages = advance(twin, 1.0, AHEAD)
    assert the(Operator, messages)[-1].mode == "auto"
    assert twin.propulsion.thrusts == pytest.approx([18.0] * 4, abs=0.1)


def test_a_dead_a_weak_and_a_stuck_thruster_give_what_is_left_of_them():
    twin = Twin(Vessel.load(EXAMPLES / "boat.toml"), easy(), session=1)
    twin.propulsion.strength = [0.0, 0.5, 1.0, 1.0]
    twin.propulsion.stuck = [None, None, -1.0, None]
    status = the(Status, advance(twin, 2.0, AHEAD))[-1]
    # Nothing, half of 18 N, 14.2 N in reverse, 18 N; in force are the commands as they were sent.
    assert twin.propulsion.thrusts == pytest.approx([0.0, 9.0, -14.2, 18.0], abs=0.01)
    assert status.thrust == pytest.approx((0.0, 0.5, -1.0, 1.0), abs=0.1)
    assert status.thrusters == AHEAD
    twin.propulsion.strength, twin.propulsion.stuck = [1.0] * 4, [None] * 4
    advance(twin, 2.0, AHEAD)
    assert twin.propulsion.thrusts == pytest.approx([18.0] * 4, abs=0.01)


def test_ground_stops_the_hull_within_a_time_constant_and_holds_it():
    water = Water(wind=3.0, fetch=300.0, current=0.3)
    twin = Twin(Vessel.load(EXAMPLES / "boat.toml"), easy(water=water), seed=2)
    advance(twin, 5.0, AHEAD)
    x, y, psi, u, v, _ = twin.state
    twin.aground = True
    # The velocity over ground decays with 0.1 s: 0.1 s of the way at the former speed are left.
    assert twin.state[3:5] == pytest.approx((u, v))
    advance(twin, 2.0, AHEAD)
    expected = (0.1 * (math.cos(psi) * u - math.sin(psi) * v), 0.1 * (math.sin(psi) * u + math.cos(psi) * v))
    assert (twin.state[0] - x, twin.state[1] - y) == pytest.approx(expected, abs=0.03 * math.hypot(u, v))
    assert math.hypot(u, v) > 0.5
    held = twin.state
    assert np.abs(held[3:]).max() < 1e-8
    messages = advance(twin, 5.0, AHEAD)
    assert twin.state[:3] == pytest.approx(held[:3], abs=1e-8)
    # What the sensors say: no turn but the gyro's noise.
    assert np.std([message.rate for message in the(Gyro, messages)]) < 3e-4
    twin.aground = False
    assert np.abs(twin.state[3:]).max() < 1e-8
    advance(twin, 5.0, AHEAD)
    assert math.dist(twin.state[:2], held[:2]) > 1.0


def test_faulty_sensors_have_offsets_and_state_the_accuracy_that_they_are_told_to():
    twin = Twin(Vessel.load(EXAMPLES / "boat.toml"), easy(), session=1)
    sound = advance(twin, 2.0)
    assert the(Position, sound)[-1].std is the(Heading, sound)[-1].std is None
    faults = twin.sensors.faults
    faults.position, faults.heading, faults.gyro = (3.0, -4.0), 0.5, 19.0
    faults.position_std, faults.heading_std = 1e-4, 1e-3
    faulty = advance(twin, 2.0)
    fix, heading = the(Position, faulty)[-1], the(Heading, faulty)[-1]
    # A boat at rest, with 2 mm of noise.
    assert (fix.x, fix.y, fix.std) == pytest.approx((3.0, -4.0, 1e-4), abs=0.01)
    assert (heading.psi, heading.std) == pytest.approx((0.5, 1e-3), abs=0.01)
    assert the(Gyro, faulty)[-1].rate == pytest.approx(19.0, abs=0.01)


def test_a_trial_records_truth_and_estimate_from_an_established_track():
    setup, path = Setup.load(EXAMPLES / "boat-b.toml"), line(6.0, speed=0.3)
    log = sea_trial(PID(setup.vessel), setup, path, easy(), seed=1, lead_in=8.0)
    assert log.about["arrived"]
    # Twenty seconds at ten a second, from the start of the line, under way.
    assert len(log.time) == pytest.approx(200, abs=1)
    assert log.time[0] == pytest.approx(0.0, abs=0.1)
    assert log.reference[0, 0] == pytest.approx(0.0, abs=0.03)
    assert log.state[0, 3] == pytest.approx(0.3, abs=0.05)
    assert log.metrics().position_cm < 3
    assert log.estimated.metrics().position_cm < 3
    assert log.estimate is not None
    # The sensors have millimetres of noise, and so has the estimate.
    assert np.abs(log.estimate - log.state)[:, :2].mean() < 0.01


def test_a_trial_is_the_same_for_the_same_seed():
    setup, path = Setup.load("platform-b"), line(1.5, speed=0.3)
    runs = [sea_trial(PID(setup.vessel), setup, path, seed=seed, lead_in=2.0) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(runs[0].state, runs[1].state)
    np.testing.assert_array_equal(runs[0].estimate, runs[1].estimate)
    assert len(runs[0].time) != len(runs[2].time) or not np.array_equal(runs[0].state, runs[2].state)


def test_a_report_has_estimated_and_true_errors():
    time = 0.1 * np.arange(10, dtype=np.float64)
    zero = np.zeros((10, 6))

    def log(true_cm, estimated_cm):
        state, estimate = zero.copy(), zero.copy()
        state[:, 0], estimate[:, 0] = true_cm / 100, estimated_cm / 100
        about = {"arrived": True, "unmet": 0.5, "event_counts": {"stop": 1, "reaction": 2, "rate": 3}}
        return Log(time, state, zero, np.ones((10, 3)), np.zeros((10, 2)), np.zeros((10, 3)), None, about, estimate)

    found = report([log(2.0, 1.0), log(4.0, 2.0)])
    assert found.true_position_cm.mean == pytest.approx(3.0)
    assert found.true_position_cm.std == pytest.approx(1.0)
    assert found.true_position_cm.within == pytest.approx(0.0)
    assert report([log(true, 1.0) for true in (1.0, 2.0, 30.0)]).true_position_cm.median == pytest.approx(2.0)
    assert found.estimated_position_cm.mean == pytest.approx(1.5)
    assert (found.saturation, found.stops, found.events) == (1.0, 2, {"rate": 6})


def test_a_log_with_an_estimate_can_be_saved_and_drawn(tmp_path):
    setup = Setup.load("platform-b")
    log = sea_trial(PID(setup.vessel), setup, hold(duration=2.0), easy(), lead_in=1.0)
    again = Log.load(log.save(tmp_path / "run.npz"))
    np.testing.assert_array_equal(again.estimate, log.estimate)
    assert again.about["events"]
    figure = viz.plot(again, tmp_path / "run.png")
    legend = figure.axes[1].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["true", "estimated"]


def test_a_boat_that_never_gets_a_fix_is_an_error():
    setup = Setup.load("platform-b")
    blind = easy(sensors=SensorConfig(fix_loss=1.0))
    with pytest.raises(InputError, match="Platform B: the boat never got under way; last event"):
        sea_trial(PID(setup.vessel), setup, hold(duration=1.0), blind, lead_in=0.0)


def test_the_command_prints_a_table_or_json(capsys, tmp_path):
    arguments = ["trial", "--vessel", str(EXAMPLES / "boat-b.toml"), "--controller", "pid", "--trials", "2"]
    arguments += ["--reference", "line", "--speed", "0.5", "--sea", "light-air", "--plot", str(tmp_path / "run.png")]
    assert main([*arguments, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["report"]["trials"] == len(answer["each"]) == 2
    mean = np.mean([entry["true"]["position_cm"] for entry in answer["each"]])
    assert answer["report"]["true_position_cm"]["mean"] == pytest.approx(mean)
    assert (tmp_path / "run.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--sea", "lakes"], "did you mean 'lake'"),
        (["--trials", "0"], "--trials"),
        (["--vessel", "platfrm-a"], "did you mean 'platform-a'"),
        (["--controller", "mcp"], "did you mean 'mpc'"),
        (["--reference", "spiral"], "'spiral'"),
        (["--plot", "run.txt"], "run.txt"),
    ],
)
def test_a_mistake_gets_one_line(capsys, arguments, words):
    assert main(["trial", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert words in err


def test_size_is_the_files_or_from_its_inertia():
    vessel = Vessel.load("platform-a")
    # √(1.7 / 44) = 0.197 m is a quarter of the length.
    assert size(vessel) == pytest.approx((0.786, 0.393), abs=1e-3)
    assert size(replace(vessel, length=2.0, beam=0.7)) == (2.0, 0.7)


def test_the_paper_rectangle_joins_from_the_lap_before():
    path = rounded_rectangle()
    before, after = path.at(-1.0), path.at(path.duration - 1.0)
    assert before[:2] == pytest.approx(after[:2])
