"""Commands by MAVLink end in every case, and the state is used only while the autopilot vouches for it."""

import math
from collections import Counter
from typing import Any

import pytest
from pymavlink.dialects.v20 import ardupilotmega as dialect
from rovers import Rig, packed

from anyhull.onboard.links.mavlink.commander import Commander
from anyhull.onboard.links.mavlink.config import MAVLinkConfig
from anyhull.onboard.links.mavlink.parameters import Parameters
from anyhull.onboard.links.mavlink.telemetry import BootTime, FilterStatus, Place, filter_health
from anyhull.onboard.messages import Command, Odometry
from anyhull.twin.ardupilot_rover import ADVISED, DEFAULTS
from anyhull.twin.ardupilot_streams import BUILDERS


class Bench:
    """A commander of two servos with right parameters, and the pulses that it has sent."""

    def __init__(self):
        config = MAVLinkConfig(command="thrusters", servos=(5, 6))
        self.parameters = Parameters(config)
        for name, value in (DEFAULTS | ADVISED).items():
            self.parameters.take(name, value)
        assert self.parameters.unready() == ""
        self._sent: list[Any] = []
        self.commander = Commander(config, self.parameters, self._sent.append, Counter())

    def command(self, now, thrusters=(0.8, 0.8), engaged=True):
        self.commander.command(Command(1, 0, 0.0, thrusters, (0.0, 0.0), (0.0, 0.0, 0.0), engaged), True, now)

    def sent(self):
        found = [(round(message.param1), round(message.param2)) for message in self._sent]
        self._sent.clear()
        return found


def test_thrusters_stop_where_a_servos_range_becomes_invalid_under_way():
    bench = Bench()
    bench.command(0.0)
    # 0.8 of 400 us above 1500.
    assert bench.sent() == [(5, 1820), (6, 1820)]
    bench.parameters.take("SERVO5_MIN", 1500.0)
    bench.command(0.1)
    assert bench.sent() == [(5, 1500), (6, 1500)]
    for tick in range(2, 20):
        bench.command(tick / 10)
        bench.commander.step(tick / 10)
    after = bench.sent()
    assert len(after) >= 10
    assert set(after) == {(5, 1500), (6, 1500)}


@pytest.mark.parametrize("end", ["let go", "close", "restart"])
def test_thrusters_end_at_the_neutral_pulse_that_was_known_when_they_started(end):
    bench = Bench()
    bench.command(0.0)
    bench.sent()
    bench.parameters.forget()
    if end == "let go":
        bench.commander.let_go(0.1)
    elif end == "close":
        bench.commander.close(0.1, lambda seconds: None)
    else:
        bench.commander.forget(0.1)
    for tick in range(1, 8):
        bench.commander.step(0.1 + tick / 10)
    after = bench.sent()
    assert len(after) >= 8
    assert set(after) == {(5, 1500), (6, 1500)}


def test_overrides_end_neutral_where_a_parameter_is_spoiled_under_way():
    rig = Rig()
    rig.wrench = (0.5, 0.0, 0.2)
    rig.run(3.0)
    assert not rig.status.stopped
    spoiled = rig.clock.now
    rig.pilot_end.inject(packed(dialect.MAVLink_param_value_message(b"RC_OVERRIDE_TIME", -1.0, 9, 100, 1)))
    rig.run(2.0)
    after = [pulses[:2] for _, pulses in rig.overrides(since=spoiled)]
    # Neutral for 0.15 s, then given back five times; nothing of the commands that go on.
    assert after[0] == (1500, 1500)
    assert after[-5:] == [(0, 0)] * 5
    assert set(after) == {(1500, 1500), (0, 0)}
    assert rig.status.stopped


def asked(parameters, seconds, start=0.0, answered=()):
    """Names asked for while some of them are answered at once."""
    names = []
    for tick in range(round(seconds / 0.1)):
        for name in parameters.to_ask(start + tick * 0.1):
            names.append(name)
            if name in answered:
                parameters.take(name, answered[name])
    return names


def test_parameters_of_a_line_that_is_deaf_do_not_count_as_absent():
    parameters = Parameters(MAVLinkConfig())
    asked(parameters, 20.0)
    assert parameters.unready().startswith("parameters not read yet: RCMAP_THROTTLE")
    # One that others asked for is no answer either.
    known = DEFAULTS | ADVISED
    for name in ("RCMAP_THROTTLE", "RCMAP_ROLL", "RCMAP_YAW"):
        parameters.take(name, known[name])
    asked(parameters, 20.0, 20.0)
    assert not parameters._settled("RC_OPTIONS")


def test_a_parameter_that_was_left_out_is_asked_for_slowly_and_judged_when_it_comes():
    parameters, known = Parameters(MAVLinkConfig()), DEFAULTS | ADVISED
    option = known.pop("RC_OPTIONS")
    asked(parameters, 12.0, answered=known)
    assert parameters.unready() == ""
    assert 3 <= asked(parameters, 20.0, 12.0, known).count("RC_OPTIONS") <= 4
    parameters.take("RC_OPTIONS", option + 2)
    assert parameters.unready().endswith("clear bit 1: it ignores overrides")


@pytest.mark.parametrize("name", ["RCMAP_YAW", "RC3_MIN", "RC1_TRIM", "RC1_MAX"])
def test_channels_and_their_calibration_are_never_assumed(name):
    parameters, known = Parameters(MAVLinkConfig(allow=(name,))), DEFAULTS | ADVISED
    del known[name]
    asked(parameters, 30.0, answered=known)
    assert parameters.unready().startswith(f"parameters not read yet: {name}")
    assert parameters.mixer() is None


def healths(rig, seconds):
    return [message.health for message in rig.run(seconds) if isinstance(message, Odometry)]


def silence(rig, monkeypatch, name):
    """Let the boat send no more messages of a name."""
    monkeypatch.setitem(BUILDERS, name, lambda rover, state: None)


def test_a_state_is_lost_before_the_filters_status_is_known(monkeypatch):
    silence(rig := Rig(), monkeypatch, "EKF_STATUS_REPORT")
    assert set(healths(rig, 3.0)) == {"lost"}
    assert rig.link.unready() == "no EKF_STATUS_REPORT of the autopilot's filter"


def test_a_status_of_the_filter_holds_for_a_second_and_a_half(monkeypatch):
    rig = Rig()
    rig.run(3.0)
    assert rig.link.unready() == ""
    silence(rig, monkeypatch, "EKF_STATUS_REPORT")
    # The last report is at most 0.1 s old.
    assert set(healths(rig, 1.35)) == {"ok"}
    rig.run(0.2)
    assert set(healths(rig, 1.0)) == {"lost"}


def test_a_filter_whose_ratios_are_no_numbers_is_lost():
    assert filter_health(1 | 2 | 8 | 16, (0.1, math.nan, 0.1), True) == "lost"
    assert filter_health(1 | 2 | 8 | 16, (0.1, 0.1, math.inf), True) == "lost"


def test_a_global_position_is_used_only_while_the_filter_has_one():
    # ArduPilot sends its last place on and on, also when the filter has none.
    status = FilterStatus(geographic=False)
    status.take(1 | 2 | 8, (0.1, 0.1, 0.1), 5.0)
    assert (status.health(5.1), status.health(5.1, cached=True)) == ("ok", "lost")
    status.take(1 | 2 | 8 | 16, (0.1, 0.1, 0.1), 5.0)
    assert status.health(5.1, cached=True) == "ok"


def home_north(rig, metres):
    """HOME_POSITION so far north of the boat's origin."""
    place = Place(*rig.config.twin_origin).offset(metres, 0.0)
    numbers = round(place.latitude * 1e7), round(place.longitude * 1e7)
    return packed(dialect.MAVLink_home_position_message(*numbers, 0, 0, 0, 0, [1, 0, 0, 0], 0, 0, 0))


def test_a_home_that_moves_under_way_does_not_move_the_reference():
    rig = Rig(zero="home")
    rig.run(3.0)
    # At neutral it is taken.
    rig.pilot_end.inject(home_north(rig, 2.0))
    rig.run(0.1)
    assert rig.last(Odometry).pose[:2] == pytest.approx((1.0, 4.0), abs=0.02)
    rig.pilot_end.inject(home_north(rig, 0.0))
    rig.wrench = (0.3, 0.0, 0.0)
    rig.run(1.0)
    rig.pilot_end.inject(home_north(rig, 20.0))
    rig.run(0.2)
    assert rig.last(Odometry).pose[:2] == pytest.approx((3.0, 4.0), abs=0.02)
    assert rig.last(Odometry).health == "ok"
    assert rig.link.rejected["home moved under way"] == 1
    assert rig.link.unready() == "the autopilot's home moved by 20.0 m: start the pilot again"


def test_an_origin_that_moves_under_way_leaves_no_position_until_the_autopilot_restarts():
    rig = Rig(zero="home")
    rig.wrench = (0.3, 0.0, 0.0)
    rig.run(3.0)
    rig.double._state.origin = rig.double._state.origin.offset(50.0, 0.0)
    rig.run(11.0)  # origin and home are asked for every 10 s
    assert rig.last(Odometry).health == "lost"
    assert rig.link.unready() == "the autopilot's origin moved by 50.0 m: start the pilot again"
    rig.boat_time, rig.boat_session = 0.0, 2
    rig.run(3.0)
    assert rig.last(Odometry).health == "ok"
    assert rig.link.unready() == "disarmed: arm the autopilot"


def test_what_has_waited_while_nobody_read_gives_no_permission():
    rig = Rig()
    rig.run(3.0)
    for _ in range(40):  # the operator reads a prompt, and switches to HOLD before he answers it
        rig.double.receive(0.0)
        rig.clock.now += 0.05
    asked = rig.clock.now
    assert rig.link.receive(0.0) == []
    rig.link.send(Command(7, 999, 0.0, (), (), (0.5, 0.0, 0.0)))
    assert [pulses[:2] for _, pulses in rig.overrides(since=asked)] == [(0, 0)]
    assert rig.link.unready() == "no heartbeat of system 1"
    rig.run(0.5)
    assert rig.link.unready() == ""
    assert not rig.status.stopped


def test_a_message_of_before_the_counters_wrap_is_not_another_wrap():
    boot = BootTime()
    wrap = 2**32
    assert boot.seconds(wrap - 40)[0] == pytest.approx((wrap - 40) / 1000)
    assert boot.seconds(20)[0] == pytest.approx((wrap + 20) / 1000)
    assert boot.seconds(wrap - 10)[0] == pytest.approx((wrap - 10) / 1000)
    assert boot.seconds(40)[0] == pytest.approx((wrap + 40) / 1000)
