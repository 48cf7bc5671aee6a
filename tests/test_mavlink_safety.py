"""Commands by MAVLink end in every case, and the state is used only while the autopilot vouches for it."""

from collections import Counter
from typing import Any

import pytest
from pymavlink.dialects.v20 import ardupilotmega as dialect
from rovers import Rig, packed

from anyhull.onboard.links.mavlink.commander import Commander
from anyhull.onboard.links.mavlink.config import MAVLinkConfig
from anyhull.onboard.links.mavlink.parameters import Parameters
from anyhull.onboard.messages import Command
from anyhull.twin.ardupilot_rover import ADVISED, DEFAULTS


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
