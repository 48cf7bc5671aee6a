"""The MAVLink link: its settings, what it sends and understands, parameters, frames, signing and failsafes."""

import math
import subprocess
import sys

import pytest
from pymavlink.dialects.v20 import ardupilotmega as dialect
from rovers import BOAT, Rig, Trial, packed

from anyhull.errors import InputError
from anyhull.mission.geodesy import LocalFrame
from anyhull.onboard.links.mavlink.channels import Calibration, Mixer
from anyhull.onboard.links.mavlink.config import MAVLinkConfig
from anyhull.onboard.links.mavlink.telemetry import BootTime, Frame, Place, filter_health
from anyhull.onboard.links.mavlink.wire import Wire
from anyhull.onboard.messages import Battery, Command, Odometry, Status, Tilt
from anyhull.onboard.setup import Setup
from anyhull.reference import rounded_rectangle
from anyhull.twin.byte_pipe import byte_pipe
from anyhull.twin.sea_trial import sea_trial

KEY = bytes(range(32))


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"address": "udp:14550"}, "address = 'udp:14550': must be as 'udp:127.0.0.1:14550'"),
        ({"address": "serial:/dev/ttyACM0"}, "must be as"),
        (
            {"address": "tcp:192.168.4.1:5760"},
            "must be on loopback (127.0.0.0/8) without signing_key or unsigned = true",
        ),
        ({"rate": 60.0}, "rate = 60.0: must be from 10 to 50 Hz"),
        ({"shares": (0.6, 0.0, 0.6)}, "sum of at most 1"),
        ({"shares": (0.3, 0.3, 0.3)}, "lateral = true"),
        ({"command": "thrusters"}, "servos = (): must be different numbers"),
        ({"servos": (1,)}, "command = 'thrusters' only"),
        ({"system": 0}, "system = 0: must be from 1 to 255"),
        ({"source_system": 1}, "source_system = 1: must be another number than system"),
    ],
)
def test_settings_that_cannot_work_are_refused_in_one_line(options, error):
    with pytest.raises(InputError) as raised:
        MAVLinkConfig(**options)
    assert error in str(raised.value)
    assert "\n" not in str(raised.value)


def test_addresses_beyond_loopback_need_a_key_or_a_word():
    assert MAVLinkConfig(address="tcp:192.168.4.1:5760", unsigned=True).endpoint.exposed
    assert MAVLinkConfig(address="tcp:192.168.4.1:5760", signing_key="boat.key").endpoint.exposed
    assert MAVLinkConfig(address="serial:/dev/ttyACM0:115200").endpoint.baud == 115200


def test_a_boats_file_is_read_without_pymavlink_and_opening_it_says_what_to_install():
    code = (
        "import sys; sys.modules['pymavlink'] = None\n"
        "from anyhull.onboard.setup import Setup; from anyhull.onboard.links import open_link\n"
        f"setup = Setup.load({str(BOAT)!r}); print(setup.link.shares)\n"
        "try: open_link(setup.link, 'pilot')\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "(0.33, 0.33, 0.33)",
        "InputError link.kind = 'mavlink': pymavlink is not installed: pip install 'anyhull[mavlink]'",
    ]


def test_the_whole_box_of_wrenches_fits_the_mixer():
    config = MAVLinkConfig(lateral=True)
    mixer = Mixer(config.mixer_shares, (3, 4, 1), (Calibration(),) * 3)
    corner = mixer.pulses((1.0, -1.0, 1.0))
    # A third of 400 us: throttle and lateral in whole percents, 33 % of 400 us is 132 us.
    assert corner == {3: 1632, 4: 1368, 1: 1633}
    assert sum(abs(pulse - 1500) for pulse in corner.values()) <= 400


def test_throttle_is_rounded_to_the_percent_that_ardupilot_keeps():
    # 437 us above the trim: 10.5 % is 45.9 us. The nearest percent is 10 (half to even), 43.7 us, and the pulse must
    # not fall short of it, since ArduPilot truncates: 44 us, which it reads as 100 x 44 / 437 = 10.07, so 10.
    calibration = Calibration(1063, 1500, 1937)
    assert calibration.pulse(0.105, 100) == 1544
    assert calibration.value(1544, 100) == 0.1
    for percent in range(-100, 101):
        assert calibration.value(calibration.pulse(percent / 100, 100), 100) == pytest.approx(percent / 100)


def test_pulses_follow_trim_range_and_reversal():
    uneven = Calibration(1000, 1600, 1900)
    assert [uneven.pulse(value) for value in (-1.0, -0.5, 0.0, 0.5, 1.0)] == [1000, 1300, 1600, 1750, 1900]
    turned = Calibration(1000, 1600, 1900, reversed=True)
    assert [turned.pulse(value) for value in (-1.0, 0.0, 1.0)] == [1900, 1600, 1000]
    assert turned.value(1000) == 1.0
    assert not Calibration(1100, 1100, 1900).valid


def test_the_state_is_the_filters_position_turned_to_the_boats_axes():
    rig = Rig()
    rig.state = (3.0, 4.0, 0.5, 0.8, -0.1, 0.2)
    rig.run(2.0)
    odometry = rig.last(Odometry)
    found = (*odometry.pose, *odometry.velocity)
    assert found == pytest.approx(rig.state, abs=1e-5)
    assert odometry.time == pytest.approx(rig.boat_time, abs=0.06)
    assert odometry.health == "ok"
    assert (rig.last(Tilt).roll, rig.last(Tilt).pitch) == (0.0, 0.0)


def test_a_frame_with_north_to_the_left_is_the_same_boat():
    rig = Rig(axes="enu", lateral=True)
    rig.state = (3.0, 4.0, 0.5, 0.8, -0.1, 0.2)
    rig.wrench = (0.3, 0.6, -0.9)
    rig.run(3.0)
    odometry = rig.last(Odometry)
    found = (*odometry.pose, *odometry.velocity)
    assert found == pytest.approx(rig.state, abs=1e-5)
    # Positive sway is to port and positive yaw turns to port: lateral to the left, steering to starboard.
    # Shares of a third: throttle 10 %, lateral -20 %, steering +30 % of 400 us.
    assert rig.overrides()[-1][1] == (1620, 1540, 1420)
    assert rig.commands[-1].wrench == pytest.approx(rig.wrench, abs=0.01)
    assert rig.status.wrench == pytest.approx(rig.wrench, abs=0.01)


def test_messages_are_asked_for_until_they_come_at_their_rates():
    rig = Rig(rate=20.0)
    received = rig.run(6.0)
    # From the first heartbeat on: 20 Hz of the state and 10 Hz of what is in force.
    assert len([m for m in received if isinstance(m, Odometry)]) == pytest.approx(120, abs=6)
    assert len([m for m in received if isinstance(m, Status)]) == pytest.approx(60, abs=4)
    asked = [m for _, m in rig.sent("COMMAND_LONG") if m.command == dialect.MAV_CMD_SET_MESSAGE_INTERVAL]
    assert {(m.param1, m.param2) for m in asked} >= {(32.0, 50000.0), (30.0, 50000.0), (0.0, 100000.0)}
    # Once they come they are not asked for again.
    assert len(asked) == 6


def test_a_firmware_without_message_intervals_gets_the_old_request(monkeypatch):
    rig = Rig()
    interval = dialect.MAV_CMD_SET_MESSAGE_INTERVAL
    ack = dialect.MAVLink_command_ack_message(interval, dialect.MAV_RESULT_UNSUPPORTED)
    for streams in rig.double._streams:
        monkeypatch.setattr(streams, "set_interval", lambda number, interval: False)
    rig.run(0.5)
    rig.pilot_end.inject(packed(ack))
    rig.run(6.0)
    assert {m.req_stream_id for _, m in rig.sent("REQUEST_DATA_STREAM")} == {2, 3, 6, 10, 12}
    assert rig.last(Odometry).pose[0] == pytest.approx(3.0)


def test_our_heartbeat_is_that_of_a_companion_computer_once_a_second():
    rig = Rig()
    rig.run(5.0)
    beats = [m for _, m in rig.sent("HEARTBEAT")]
    assert len(beats) in (5, 6)
    assert {(m.type, m.autopilot, m.get_srcSystem(), m.get_srcComponent()) for m in beats} == {(18, 8, 255, 191)}


def test_commands_are_overrides_in_manual_and_the_report_confirms_them():
    rig = Rig()
    rig.wrench = (0.5, 0.0, -0.4)
    rig.run(3.0)
    # Half shares: throttle 25 % and steering -20 % of 400 us; the lateral channel and all others are left alone.
    _, override = rig.sent()[-1]
    assert (override.chan1_raw, override.chan3_raw) == (1420, 1600)
    others = [getattr(override, f"chan{n}_raw") for n in range(1, 19) if n not in (1, 3)]
    assert set(others) == {65535}
    assert (override.target_system, override.target_component) == (1, 1)
    assert rig.status.wrench == pytest.approx((0.5, 0.0, -0.4), abs=1e-9)
    assert not rig.status.stopped
    assert next(rig._seq) - rig.status.accepted <= 3
    assert rig.commands[-1].wrench == pytest.approx((0.5, 0.0, -0.4), abs=1e-3)


def test_nothing_is_sent_to_a_disarmed_boat_or_in_another_mode():
    rig = Rig(armed=False)
    rig.wrench = (0.5, 0.0, 0.5)
    rig.run(4.0)
    assert rig.overrides() == []
    assert (rig.operator, rig.status.stopped) == ("stop", True)
    assert rig.link.unready() == "disarmed: arm the autopilot"
    rig.rover.arm(True)
    rig.rover.set_mode(10)
    rig.run(2.0)
    assert rig.overrides() == []
    assert (rig.operator, rig.status.stopped) == ("manual", True)
    assert rig.link.unready() == "mode AUTO: switch to MANUAL"
    rig.rover.set_mode(0)
    rig.run(2.0)
    assert rig.overrides()[-1][1][:2] == (1600, 1600)
    assert (rig.operator, rig.status.stopped, rig.link.unready()) == ("auto", False, "")


@pytest.mark.parametrize(("change", "seen"), [("disarm", "stop"), ("HOLD", "stop"), ("ACRO", "manual")])
def test_the_operators_switch_wins_at_once_and_the_channels_are_his(change, seen):
    rig = Rig()
    rig.wrench = (0.8, 0.0, 0.3)
    rig.run(3.0)
    assert not rig.status.stopped
    rig.rover.transmitter = {1: 1555, 3: 1444}
    switched = rig.clock.now
    if change == "disarm":
        rig.rover.arm(False)
    else:
        rig.rover.set_mode({"HOLD": 4, "ACRO": 1}[change])
    rig.run(3.0)
    after = rig.overrides(since=switched)
    # Mode and arming are reported ten times a second.
    steering = [at for at, (steer, throttle, _) in after if (steer, throttle) != (0, 0)]
    assert all(at - switched <= 0.15 for at in steering)
    released = [at for at, (steer, throttle, _) in after if (steer, throttle) == (0, 0)]
    assert len(released) == 5
    assert released[0] - switched <= 0.15
    assert (rig.rover.inputs[1], rig.rover.inputs[3]) == (1555, 1444)
    assert (rig.operator, rig.status.stopped) == (seen, True)


def test_a_pilot_that_hands_over_leaves_neutral_inputs_and_can_take_the_boat_back():
    # Without a receiver ArduPilot keeps the last input that it read, so it must be neutral.
    rig = Rig(receiver=False)
    rig.wrench = (0.8, 0.0, 0.3)
    rig.run(1.5)
    rig.wrench, rig.engaged = (0.0, 0.0, 0.0), False
    rig.run(0.6)
    assert (rig.rover.inputs[1], rig.rover.inputs[3]) == (1500, 1500)
    assert rig.overrides()[-1][1][:2] == (0, 0)
    # That is no fault of the uplink, which would keep the guard from rearming.
    assert (rig.status.stopped, rig.status.wrench) == (False, (0.0, 0.0, 0.0))
    assert next(rig._seq) - rig.status.accepted <= 3
    rig.wrench, rig.engaged = (0.2, 0.0, 0.0), True
    rig.run(0.5)
    assert rig.status.wrench == pytest.approx((0.2, 0.0, 0.0))


def test_closing_the_link_leaves_neutral_and_gives_the_channels_back():
    rig = Rig()
    rig.wrench = (0.8, 0.0, 0.3)
    rig.run(3.0)
    rig.link.close()
    assert [pulses[:2] for _, pulses in rig.overrides()[-5:]] == [(1500, 1500), *[(0, 0)] * 4]


def test_commands_that_are_not_in_force_are_reported_as_stopped(monkeypatch):
    rig = Rig()
    rig.wrench = (0.5, 0.0, 0.0)
    rig.run(3.0)
    # As by the switch "RC Override Enable" of the transmitter.
    monkeypatch.setattr(rig.rover, "override", lambda *_: None)
    rig.rover.transmitter = {1: 1500, 3: 1550}
    rig.run(2.5)
    assert rig.status.stopped
    assert rig.rover.inputs[3] == 1550


SPOILED = {
    "MOT_SLEWRATE": (100.0, "MOT_SLEWRATE = 100: set it to 0"),
    "MOT_THST_EXPO": (0.3, "MOT_THST_EXPO = 0.3: set it to 0"),
    "PILOT_STEER_TYPE": (0.0, "PILOT_STEER_TYPE = 0: set it to 3"),
    "RC1_DZ": (30.0, "RC1_DZ = 30: set it to 0"),
    "RC_OVERRIDE_TIME": (-1.0, "RC_OVERRIDE_TIME = -1: set it to 1"),
    "RC_OPTIONS": (34.0, "RC_OPTIONS = 34: clear bit 1"),
    "SYSID_MYGCS": (252.0, "SYSID_MYGCS = 252: set it to 255"),
    "FS_GCS_ENABLE": (0.0, "FS_GCS_ENABLE = 0: set it to 1"),
    "FS_THR_ENABLE": (0.0, "FS_THR_ENABLE = 0: set it to 1"),
    "FS_ACTION": (1.0, "FS_ACTION = 1: set it to 2"),
    "FS_THR_VALUE": (1100.0, "FS_THR_VALUE = 1100: must be below RC3_MIN = 1100"),
    "MOT_THR_MIN": (5.0, "MOT_THR_MIN = 5: set it to 0"),
    "RC3_TRIM": (1100.0, "RC3_TRIM = 1100: must be between RC3_MIN and RC3_MAX"),
}


@pytest.mark.parametrize("name", SPOILED)
def test_a_parameter_that_would_spoil_the_run_is_named_with_the_value_to_set(name):
    value, line = SPOILED[name]
    rig = Rig(parameters={name: value})
    rig.run(0.3)
    assert rig.link.unready().startswith("parameters not read yet")
    rig.run(3.0)
    assert rig.link.unready().startswith(line)
    assert rig.overrides() == []
    # Somebody sets it: the autopilot says so to all.
    rig.boat_end.inject(packed(dialect.MAVLink_param_set_message(1, 1, name.encode(), ADVICE[name], 9), 255, 190))
    rig.run(0.5)
    assert rig.link.unready() == ""


ADVICE = {"MOT_SLEWRATE": 0, "MOT_THST_EXPO": 0, "PILOT_STEER_TYPE": 3, "RC1_DZ": 0, "RC_OVERRIDE_TIME": 1}
ADVICE |= {"RC_OPTIONS": 32, "SYSID_MYGCS": 255, "FS_GCS_ENABLE": 1, "FS_THR_ENABLE": 1, "FS_ACTION": 2}
ADVICE |= {"RC3_TRIM": 1500, "FS_THR_VALUE": 910, "MOT_THR_MIN": 0}


def test_a_parameter_may_be_allowed_and_one_that_the_firmware_lacks_is_skipped():
    rig = Rig(parameters={"MOT_THST_EXPO": 0.3}, allow=("MOT_THST_EXPO",))
    del rig.rover.parameters["MANUAL_STR_EXPO"]
    rig.run(3.0)
    assert rig.link.unready().startswith("parameters not read yet: MANUAL_STR_EXPO")
    rig.run(4.0)
    assert rig.link.unready() == ""


def test_newer_firmware_takes_overrides_of_a_range_of_senders():
    parameters = {"MAV_GCS_SYSID": 240.0, "MAV_GCS_SYSID_HI": 250.0}
    rig = Rig(parameters=parameters, source_system=245)
    del rig.rover.parameters["SYSID_MYGCS"]
    rig.run(8.0)
    assert rig.link.unready() == ""
    rig.link.parameters.take("MAV_GCS_SYSID_HI", 241.0)
    assert rig.link.unready() == "MAV_GCS_SYSID = 240: set it to 245, our source_system"


def test_no_pulse_is_sent_before_the_calibration_of_its_channel_is_known():
    rig = Rig()
    rig.boat_end.loss = 0.0
    names = ("RC1_TRIM",)
    read, trim = rig.rover.parameters, rig.rover.parameters.pop(names[0])
    rig.run(6.0)
    assert rig.overrides() == []
    assert "RC1_TRIM" in rig.link.unready()
    read["RC1_TRIM"] = trim
    rig.run(1.5)
    assert rig.overrides()


def test_silence_leads_to_the_radio_failsafe_without_a_receiver():
    # Neutral 0.5 s after the last override (Rover's radio failsafe), HOLD after FS_TIMEOUT, 1.5 s more.
    rig = Rig(receiver=False)
    rig.wrench = (0.8, 0.0, 0.0)
    rig.run(1.8)
    assert rig.commands[-1].wrench[0] == pytest.approx(0.8)
    rig.commanding = False
    rig.run(0.4)
    assert rig.commands[-1].wrench[0] == pytest.approx(0.8)
    rig.run(0.2)
    assert rig.commands[-1].wrench == (0.0, 0.0, 0.0)
    assert rig.rover.mode == 0
    rig.run(1.6)
    assert rig.rover.mode == 4
    assert rig.operator == "stop"


def test_silence_with_a_receiver_gives_the_sticks_back_and_then_the_ground_station_failsafe():
    rig = Rig()
    rig.wrench = (0.8, 0.0, 0.0)
    rig.run(3.0)
    rig.pilot_end.loss = 1.0
    # The last override is at most 0.1 s old, and lasts for RC_OVERRIDE_TIME, 1 s.
    rig.run(0.85)
    assert rig.commands[-1].wrench[0] == pytest.approx(0.8)
    rig.run(0.3)
    assert rig.commands[-1].wrench == (0.0, 0.0, 0.0)
    # FS_GCS_TIMEOUT, 5 s, and FS_TIMEOUT, 1.5 s.
    rig.run(5.0)
    assert rig.rover.mode == 0
    rig.run(0.7)
    assert (rig.rover.mode, rig.rover.failsafe, rig.operator) == (4, True, "stop")


def test_thrusters_are_servo_outputs_and_end_at_their_neutral_pulse():
    rig = Rig(command="thrusters", servos=(5, 6))
    rig.commanding = False
    rig.run(3.0)
    assert rig.link.unready() == ""
    from anyhull.onboard.messages import Command

    for seq, thrusters in enumerate([(0.5, -0.25), (0.5, -0.25)]):
        rig.link.send(Command(7, seq, 0.0, thrusters, (0.0, 0.0)))
        rig.run(0.3)
    assert (rig.rover.servos[5], rig.rover.servos[6]) == (1700, 1400)
    assert rig.status.thrusters == pytest.approx((0.5, -0.25))
    assert (rig.status.stopped, rig.status.accepted) == (False, 1)
    assert rig.commands[-1].thrusters == pytest.approx((0.5, -0.25))
    rig.rover.arm(False)
    rig.run(0.5)
    # ArduPilot does not stop an output without function when it is disarmed; we do.
    assert (rig.rover.servos[5], rig.rover.servos[6]) == (1500, 1500)
    assert rig.status.stopped
    assert "RC_CHANNELS_OVERRIDE" not in {m.get_type() for _, m in rig.sent()}


def test_a_servo_that_ardupilot_drives_is_refused():
    rig = Rig(command="thrusters", servos=(5, 6), parameters={"SERVO6_FUNCTION": 73.0})
    rig.run(3.0)
    assert rig.link.unready() == "SERVO6_FUNCTION = 73: set it to 0: else ArduPilot drives that output"


def test_time_since_boot_goes_on_where_its_counter_wraps():
    boot = BootTime()
    assert boot.seconds(2**32 - 20) == ((2**32 - 20) / 1000, False)
    at, restarted = boot.seconds(20)
    assert at == pytest.approx((2**32 + 20) / 1000)
    assert not restarted
    # One late message is no restart, four in succession are.
    boot = BootTime()
    boot.seconds(60_000)
    assert [boot.seconds(ms)[1] for ms in (55_000, 60_040, 500, 520, 540, 560)] == [False] * 5 + [True]


def test_an_autopilot_that_restarts_is_another_session_and_is_asked_again():
    rig = Rig()
    rig.run(3.0)
    session = rig.last(Odometry).session
    rig.boat_time, rig.boat_session = 0.0, 2
    restarted = rig.clock.now
    rig.run(3.0)
    assert rig.last(Odometry).session != session
    assert rig.last(Odometry).time == pytest.approx(3.0, abs=0.1)
    # It is disarmed after its restart, and its parameters may be others.
    assert rig.operator == "stop"
    assert {
        bytes(m.param_id) if isinstance(m.param_id, bytes) else m.param_id
        for _, m in rig.sent("PARAM_REQUEST_READ", restarted)
    }
    # What was in force is given back, in case that it only seemed to restart.
    later = {pulses[:2] for at, pulses in rig.overrides(since=restarted + 0.3)}
    assert later == {(0, 0)}


def test_a_geographic_mission_has_the_place_that_the_autopilot_has():
    # 0.001 degrees north and east of the mission's origin, at 60 degrees north, by WGS84: 111.4 m and 55.8 m.
    frame = LocalFrame(60.0, 10.0, "ned")
    rig = Rig(frame=frame, twin_origin=(60.001, 10.001))
    rig.state = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    rig.run(3.0)
    assert rig.last(Odometry).pose[:2] == pytest.approx((111.41, 55.80), abs=0.01)
    # ArduPilot's metre north is a degree / 111318.8; 100 of them are 0.0008983 degrees, 100.09 m of WGS84 there.
    rig.state = (100.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    rig.run(1.0)
    assert rig.last(Odometry).pose[0] == pytest.approx(frame.to_local(60.001 + 100 / 111318.845, 10.001)[0], abs=0.01)
    assert rig.last(Odometry).pose[0] - 111.41 == pytest.approx(100.09, abs=0.02)


def test_without_a_local_position_the_global_one_takes_its_place(monkeypatch):
    rig = Rig(frame=LocalFrame(47.3977, 8.5456, "enu"), axes="enu")
    streams = rig.double._streams[0]
    known = streams.set_interval
    monkeypatch.setattr(streams, "set_interval", lambda number, us: number != 32 and known(number, us))
    rig.run(8.0)
    # Resolution of a position as integers: 1e-7 degrees, 1.1 cm; ArduPilot's sphere at 47 degrees: 0.13 %.
    assert rig.last(Odometry).pose[:2] == pytest.approx((3.0, 4.0), abs=0.03)


def test_home_or_the_filters_origin_is_zero():
    frame = Frame("ned", "home", None)
    frame.origin = Place(47.0, 8.0)
    assert frame.local(1.0, 2.0) is None
    frame.home = frame.origin.offset(10.0, -5.0)
    assert frame.local(1.0, 2.0) == pytest.approx((-9.0, 7.0), abs=1e-6)


def test_a_mission_with_other_axes_is_refused():
    with pytest.raises(InputError, match=r"link.axes = 'ned': must be 'enu', the axes of the mission"):
        Rig(frame=LocalFrame(60.0, 10.0, "enu"))


def test_the_filters_health_is_what_its_flags_say():
    good = 1 | 2 | 8 | 16
    assert filter_health(good, (0.1, 0.2, 0.3), True) == "ok"
    assert filter_health(1 | 2 | 8, (0.1, 0.2, 0.3), False) == "ok"
    assert filter_health(1 | 2 | 8, (0.1, 0.2, 0.3), True) == "dead reckoning"
    assert filter_health(good, (0.1, 1.2, 0.3), True) == "dead reckoning"
    assert filter_health(good | 128, (0.1, 0.1, 0.1), True) == "lost"
    assert filter_health(0, (0.0, 0.0, 0.0), True) == "lost"


def test_odometry_messages_are_taken_where_they_are_asked_for():
    rig = Rig(position="odometry")
    rig.run(1.0)
    half = 0.25
    q = [math.cos(half), 0.0, 0.0, math.sin(half)]
    variance = [0.04] * 21
    message = dialect.MAVLink_odometry_message(
        6_000_000, 1, 12, 1.0, 2.0, 0.0, q, 0.5, -0.1, 0.0, 0.0, 0.0, 0.2, variance, variance
    )
    rig.pilot_end.inject(packed(message))
    odometry = next(m for m in rig.run(0.1) if isinstance(m, Odometry))
    assert odometry.pose == pytest.approx((1.0, 2.0, 0.5), abs=1e-6)
    assert odometry.velocity == pytest.approx((0.5, -0.1, 0.2), abs=1e-6)
    assert odometry.std == pytest.approx((0.2,) * 6)


def test_the_battery_is_reported_where_it_is_known():
    rig = Rig()
    rig.run(1.5)
    assert not any(isinstance(message, Battery) for message in rig.received)
    rig.double._state.charge = 0.42
    rig.run(1.5)
    assert rig.last(Battery).charge == 0.42


def test_signed_ends_understand_each_other_and_nobody_else():
    rig = Rig(key=KEY)
    rig.run(3.0)
    assert rig.link.unready() == ""
    assert rig.last(Odometry)
    before = rig.link.rejected["not signed by our key"]
    hold = dialect.MAVLink_heartbeat_message(11, 3, 81, 4, 4, 3)
    rig.pilot_end.inject(packed(hold))
    other = dialect.MAVLink(None, 1, 1)
    other.signing.secret_key, other.signing.sign_outgoing, other.signing.timestamp = bytes(32), True, 2**47
    rig.pilot_end.inject(bytes(hold.pack(other)))
    rig.run(1.0)
    assert rig.link.rejected["not signed by our key"] == before + 2
    # A forged stamp from the future has not shut the vehicle out.
    assert rig.operator == "auto"
    assert rig.last(Odometry).time == pytest.approx(rig.boat_time, abs=0.1)


def test_a_boat_with_another_key_is_not_heard():
    rig = Rig(key=KEY, boat_key=bytes(32))
    rig.run(2.0)
    assert rig.received == []
    assert rig.link.hint().startswith("messages are not signed by our key")


def test_the_stamps_of_signatures_rise_across_restarts_of_a_computer_without_a_clock(tmp_path, monkeypatch):
    stamps, found = tmp_path / "boat.key.stamp", []
    for now in (1.8e9, 1.0e9, 1.0e9):  # the clock goes back by decades
        monkeypatch.setattr("time.time", lambda now=now: now)
        end, _ = byte_pipe(lambda: 0.0)
        wire = Wire(end, (255, 191), lambda _: True, lambda: 0.0, end.rejected, KEY, stamps)
        for _ in range(3):
            wire.send(dialect.MAVLink_heartbeat_message(18, 8, 0, 0, 4, 3))
        found += [int.from_bytes(data[-12:-6], "little") for _, data in end.written]
    assert found == sorted(set(found))
    assert found[0] == int((1.8e9 - 1420070400) * 1e5)


def test_a_trial_by_mavlink_tracks_as_by_udp():
    from dataclasses import replace

    from rovers import LIGHT_AIR

    from anyhull.control import PID
    from anyhull.onboard.links.udp import UDPConfig

    path = rounded_rectangle(speed=0.4)
    setup = replace(Setup.load(BOAT), link=UDPConfig())
    by_udp = sea_trial(PID(setup.vessel), setup, path, LIGHT_AIR, seed=1, lead_in=4.0).metrics()
    by_mavlink = Trial(reference=path).run(seed=1).metrics()
    assert by_mavlink.position_cm == pytest.approx(by_udp.position_cm, rel=0.1)


def test_a_boat_far_from_the_missions_origin_is_told_so():
    rig = Rig(frame=LocalFrame(63.44, 10.4, "ned"))
    rig.run(3.0)
    # 3 m north and 4 m east of the double's origin.
    assert "the boat is at 47.3977, 8.5457, too far from the mission's origin at 63.4400, 10.4000" in rig.link.hint()
    assert not any(isinstance(message, Odometry) for message in rig.received)


def test_closing_after_a_silence_gives_the_channels_back_without_another_pulse():
    # Two seconds without `receive`: somebody may have switched or taken the sticks.
    rig = Rig()
    rig.wrench = (0.8, 0.0, 0.3)
    rig.run(3.0)
    before = len(rig.overrides())
    rig.clock.now += 2.0
    rig.link.close()
    assert {pulses[:2] for _, pulses in rig.overrides()[before:]} == {(0, 0)}


def test_a_command_after_a_silence_waits_for_a_heartbeat():
    rig = Rig()
    rig.wrench = (0.8, 0.0, 0.3)
    rig.run(3.0)
    before = len(rig.overrides())
    rig.clock.now += 1.5
    rig.link.send(Command(7, 10_000, 0.0, (), (), (0.8, 0.0, 0.3), True))
    assert {pulses[:2] for _, pulses in rig.overrides()[before:]} == {(0, 0)}


@pytest.mark.parametrize("zero", ["origin", "home"])
def test_after_a_restart_of_the_autopilot_a_local_mission_lies_where_it_was(zero):
    frame = Frame("ned", zero, None)
    here = Place(47.0, 8.0)
    frame.take("origin", here, False)
    frame.take("home", here, False)
    assert frame.local(3.0, 4.0) == pytest.approx((3.0, 4.0))
    frame.forget()
    assert frame.local(3.0, 4.0) is None
    # Its filter begins anew 10 m north and 20 m east: what is there at (-7, -16) is where (3, 4) was.
    there = here.offset(10.0, 20.0)
    frame.take("origin", there, False)
    frame.take("home", there, False)
    assert frame.local(-7.0, -16.0) == pytest.approx((3.0, 4.0), abs=1e-3)
