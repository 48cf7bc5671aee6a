"""Faults of a MAVLink link: no crash, no command outside its limits, no conflict with the operator."""

import math
import os
import pty
import random
import socket
import subprocess
import sys
import threading
import time
import tty
from pathlib import Path

import pytest
from pond import free_ports
from pymavlink import mavutil
from pymavlink.dialects.v20 import ardupilotmega as dialect
from rovers import Rig, Trial, packed

from anyhull.onboard.links.mavlink.config import Endpoint, MAVLinkConfig
from anyhull.onboard.links.mavlink.link import MAVLink
from anyhull.onboard.links.mavlink.streams import Stream
from anyhull.onboard.links.mavlink.transports import open_far_end, open_transport
from anyhull.onboard.messages import Command, Odometry, Status
from anyhull.twin.ardupilot_rover import ADVISED, DEFAULTS


def events(trial, what):
    return [detail for _, name, detail in trial.log.about["events"] if name == what]


def test_a_third_of_all_messages_lost_and_the_rest_out_of_order():
    def on_tick(trial, now, autopilot, twin):
        for end in (trial.pilot_end, trial.boat_end):
            end.loss, end.delay = 0.3, (0.0, 0.06)

    trial = Trial(on_tick)
    log = trial.run()
    assert log.about["arrived"]
    assert log.metrics().position_cm < 10
    trial.check_overrides(reaction_time=0.9)


def test_an_autopilot_that_is_killed_and_starts_again():
    def on_tick(trial, now, autopilot, twin):
        if trial.double is not None and 9.0 <= now < 9.1:
            trial.double = None
        if trial.double is None and now >= 13.0:
            twin.restart()
            trial.double = trial.new_double()

    trial = Trial(on_tick)
    log = trial.run()
    assert log.about["arrived"]
    assert events(trial, "boat restarted")
    assert any("no odometry" in detail for detail in events(trial, "lost"))


@pytest.mark.parametrize("step", [100.0, -3.0])
def test_a_step_of_the_autopilots_clock(step):
    done: list[float] = []

    def on_tick(trial, now, autopilot, twin):
        if now >= 9.0 and not done:
            done.append(now)
            twin.set_clock(step)

    trial = Trial(on_tick)
    assert trial.run().about["arrived"]
    trial.check_overrides()


@pytest.mark.parametrize("switch", ["HOLD", "disarm", "LOITER"])
def test_a_switch_by_the_operator_under_way_and_back(switch):
    def on_tick(trial, now, autopilot, twin):
        rover = trial.double.rover
        if 9.0 <= now < 12.0:
            if switch == "disarm":
                rover.armed = False
            else:
                rover.mode = {"HOLD": 4, "LOITER": 5}[switch]
        elif 12.0 <= now < 12.1:
            rover.armed, rover.mode = True, 0

    trial = Trial(on_tick)
    log = trial.run()
    # Back in MANUAL the pilot is rearmed by that, and finishes its reference from where the boat is.
    assert log.about["arrived"]
    assert any("switch" in detail or "operator" in detail for detail in events(trial, "reaction"))
    trial.check_overrides(reaction_time=0.15)
    steered = [at for at, _, reaction in trial.history if 9.5 < at < 12.0 and reaction == "run"]
    assert steered == []


def test_wrong_system_ids_are_not_the_vehicle():
    rig = Rig(system=2)
    rig.double.config = MAVLinkConfig()
    for wire in rig.double._wires:
        wire._mav.srcSystem = 1
    rig.run(2.0)
    assert rig.received == []
    assert rig.overrides() == []
    assert rig.link.hint() == "others are heard, but not system 2: check [link] system"
    assert rig.link.unready() == "no heartbeat of system 2"


def test_heartbeats_of_others_change_nothing():
    rig = Rig()
    rig.wrench = (0.5, 0.0, 0.0)
    rig.run(2.5)
    hold = dialect.MAVLink_heartbeat_message(11, 3, 81, 4, 4, 3)
    ground = dialect.MAVLink_heartbeat_message(6, 8, 0, 0, 4, 3)
    for number in range(50):
        for system, component, beat in ((2, 1, hold), (1, 154, hold), (255, 190, ground), (1, 191, hold)):
            rig.pilot_end.inject(packed(beat, system, component, number))
        rig.run(0.02)
    assert rig.operator == "auto"
    assert rig.status.wrench == pytest.approx((0.5, 0.0, 0.0))
    assert rig.link.rejected["not from the vehicle"] == 200


def test_a_copter_is_not_steered_whose_mode_0_is_another():
    rig = Rig()
    rig.commanding = False
    for number in range(5):
        rig.pilot_end.inject(packed(dialect.MAVLink_heartbeat_message(2, 3, 209, 0, 4, 3), seq=number))
    rig.link.receive(0.0)
    rig.link.send(Command(7, 0, 0.0, (), (), (0.5, 0.0, 0.0)))
    assert rig.overrides() == []
    assert rig.link.unready() == "vehicle type 2 of system 1: must be a rover (10) or a boat (11)"


def test_a_late_heartbeat_of_before_a_switch_does_not_take_the_boat_back():
    rig = Rig()
    rig.run(2.5)
    last = rig.link._heartbeat._last
    armed = packed(dialect.MAVLink_heartbeat_message(11, 3, 209, 0, 4, 3), seq=(last.get_seq() - 3) % 256)
    rig.rover.set_mode(4)
    rig.run(0.3)
    switched = rig.clock.now
    rig.wrench = (0.9, 0.0, 0.0)
    rig.pilot_end.inject(armed)
    rig.run(0.1)
    assert rig.link.rejected["late heartbeat"] == 1
    assert {pulses[:2] for _, pulses in rig.overrides(since=switched)} <= {(0, 0)}


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e30])
def test_numbers_that_are_none_do_not_get_through(bad):
    rig = Rig()
    rig.run(2.0)
    for message in (
        dialect.MAVLink_local_position_ned_message(9000, bad, 0, 0, 0, 0, 0),
        dialect.MAVLink_local_position_ned_message(9000, 0, 0, 0, bad, 0, 0),
        dialect.MAVLink_attitude_message(9000, 0, 0, bad, 0, 0, 0),
        dialect.MAVLink_attitude_message(9000, 0, 0, 0, 0, 0, bad),
        dialect.MAVLink_ekf_status_report_message(31, bad, bad, bad, bad, bad),
        dialect.MAVLink_param_value_message(b"RC1_TRIM", bad, 9, 10, 1),
    ):
        rig.pilot_end.inject(packed(message))
    received = rig.run(0.2)
    for message in received:
        if isinstance(message, Odometry):
            assert all(abs(number) < 1e4 for number in (*message.pose, *message.velocity))
    rig.wrench = (bad, 0.2, 0.3)
    rig.run(0.5)
    pulses = {pulse for _, three in rig.overrides() for pulse in three}
    assert all(pulse in (0, 65535) or 1100 <= pulse <= 1900 for pulse in pulses)


def test_bytes_that_are_not_mavlink_neither_raise_nor_fill_the_memory():
    rig, draw = Rig(), random.Random(1)
    rig.run(2.0)
    whole = packed(dialect.MAVLink_attitude_message(7000, 0, 0, 0, 0, 0, 0))
    for number in range(400):
        junk = bytearray(draw.randbytes(draw.randrange(1, 400)))
        if number % 3 == 0:
            junk = bytearray(whole)
            junk[draw.randrange(len(junk))] ^= 1 << draw.randrange(8)
        elif number % 3 == 1:
            junk = bytearray(whole[: draw.randrange(1, len(whole))])
        rig.pilot_end.inject(bytes(junk))
        rig.run(0.01)
    assert rig.link.rejected["not MAVLink"] > 100
    assert len(rig.link._wire._mav.buf) < 600
    assert rig.run(1.0)[-1].time == pytest.approx(rig.boat_time, abs=0.2)


def test_every_message_of_the_dialect_with_random_contents_is_survived():
    rig, draw = Rig(), random.Random(2)
    rig.run(2.0)
    sender = dialect.MAVLink(None, 1, 1)
    for kind in list(dialect.mavlink_map.values()):
        for _ in range(3):
            payload = draw.randbytes(kind.unpacker.size)
            message = kind.__new__(kind)
            dialect.MAVLink_message.__init__(message, kind.id, kind.msgname)
            rig.pilot_end.inject(bytes(message._pack(sender, kind.crc_extra, payload)))
    rig.run(0.5)
    pulses = {pulse for _, three in rig.overrides() for pulse in three}
    assert all(pulse in (0, 65535) or 1100 <= pulse <= 1900 for pulse in pulses)


def test_a_thousand_messages_each_way_with_pymavlinks_own_connection():
    (address, _) = free_ports()
    link = MAVLink(MAVLinkConfig(address=f"udp:{address}"), open_transport(Endpoint.read(f"udp:{address}")))
    peer = mavutil.mavlink_connection(f"udpout:{address}", source_system=1, source_component=1, dialect="ardupilotmega")
    try:
        beat = (11, 3, 209, 0, 4)
        received, sent = [], 0
        overrides = []
        peer.mav.heartbeat_send(*beat)
        link.receive(1.0)
        limits = {
            f"RC{number}_{end}": 1500 + 500 * sign for number in (1, 3) for end, sign in (("MIN", -1), ("MAX", 1))
        }
        for name, value in (DEFAULTS | ADVISED | limits).items():
            peer.mav.param_value_send(name.encode(), value, 9, 100, 0)
            link.receive(0.0)
        ends = time.monotonic() + 5
        while link.parameters.unready() and time.monotonic() < ends:
            link.receive(0.01)
        while sent < 1000:
            if sent % 20 == 0:
                peer.mav.heartbeat_send(*beat)
            peer.mav.attitude_send(1000 + sent, 0.0, 0.0, 0.1, 0.0, 0.0, 0.0)
            peer.mav.local_position_ned_send(1000 + sent, sent * 0.01, 0.0, 0.0, 0.0, 0.0, 0.0)
            received += [message for message, _ in link.receive(0.0)]
            link.send(Command(1, sent, 0.0, (), (), ((sent % 100) / 100, 0.0, (sent % 200 - 100) / 100)))
            sent += 1
            while (message := peer.recv_match(type=["RC_CHANNELS_OVERRIDE", "HEARTBEAT"], blocking=False)) is not None:
                overrides.append(message)
        ends = time.monotonic() + 5
        while time.monotonic() < ends and len(received) < 1000:
            received += [message for message, _ in link.receive(0.05)]
        while (message := peer.recv_match(blocking=True, timeout=0.2)) is not None:
            overrides.append(message)
        positions = [message.pose[0] for message in received if isinstance(message, Odometry)]
        assert positions == pytest.approx([0.01 * n for n in range(1000)], abs=1e-5)
        steering = [message.chan1_raw for message in overrides if message.get_type() == "RC_CHANNELS_OVERRIDE"]
        # Half of the steering's 500 us at a full yaw.
        assert steering == [1500 + round((n % 200 - 100) / 100 * 250) for n in range(1000)]
        beats = [message for message in overrides if message.get_type() == "HEARTBEAT"]
        assert beats
        assert beats[0].get_srcComponent() == 191
    finally:
        peer.close()
        link.close()


def test_a_stranger_on_the_port_is_not_heard_while_the_vehicle_is():
    (address, _) = free_ports()
    host, port = address.split(":")
    transport = open_transport(Endpoint.read(f"udp:{address}"))
    link = MAVLink(MAVLinkConfig(address=f"udp:{address}"), transport)
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as vehicle,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other,
    ):
        manual, hold = (dialect.MAVLink_heartbeat_message(11, 3, 209, mode, 4, 3) for mode in (0, 4))
        vehicle.sendto(packed(manual), (host, int(port)))
        link.receive(1.0)
        other.sendto(packed(hold, seq=1), (host, int(port)))
        link.receive(1.0)
        assert link._heartbeat.operator() == "auto"
        assert link.rejected["not from the peer"] == 1
    link.close()


def test_a_tcp_connection_is_made_again_after_the_vehicle_was_away():
    (address, _) = free_ports()
    endpoint = Endpoint.read(f"tcp:{address}")
    client = open_transport(endpoint)
    began = time.monotonic()
    client.wait(0.02)
    assert client.read() == []
    client.write(b"lost")
    assert time.monotonic() - began < 0.5  # nobody listens, and nothing waits for it
    for _ in range(2):
        server = open_far_end(endpoint)
        ends = time.monotonic() + 5
        heard = b""
        while heard == b"" and time.monotonic() < ends:
            client.wait(0.01)
            client.read()
            client.write(b"here")
            heard = b"".join(data for data, _ in server.read())
        assert heard.startswith(b"here")
        server.write(b"back")
        client.wait(1.0)
        assert b"".join(data for data, _ in client.read()) == b"back"
        server.close()
        client.wait(1.0)
        client.read()
    client.close()


def test_a_serial_line_is_read_and_written_without_waiting():
    far, near = pty.openpty()
    tty.setraw(near)
    line = open_transport(Endpoint.read(f"serial:{os.ttyname(near)}:115200"))
    os.write(far, b"abc")
    line.wait(1.0)
    assert line.read() == [(b"abc", None)]
    line.write(b"def")
    assert os.read(far, 10) == b"def"
    os.close(far)
    line.wait(0.1)
    assert line.read() == []
    assert line.rejected["connection lost"] == 1
    line.close()
    os.close(near)


@pytest.fixture
def client():
    """A TCP connection whose other end does not read."""
    endpoint = Endpoint.read(f"tcp:{free_ports()[0]}")
    server, client = open_far_end(endpoint), open_transport(endpoint)
    assert isinstance(client, Stream)
    ends = time.monotonic() + 5
    while client._file is None and time.monotonic() < ends:
        client.wait(0.01)
    yield client
    client.close()
    server.close()


def test_what_does_not_fit_a_stream_is_dropped_and_nothing_waits(client):
    for _ in range(20_000):  # nobody reads
        client.write(bytes(1000))
    assert client.rejected["not sent"] > 1000
    assert sum(map(len, client._outgoing)) <= 8192


def test_the_twin_is_a_vehicle_that_pymavlinks_own_ground_station_can_switch():
    pilot, _ = free_ports()
    config = MAVLinkConfig(address=f"udpout:{pilot}")
    from anyhull.twin.ardupilot import ArduPilot

    double = ArduPilot(config, [open_far_end(config.endpoint)])
    double.rover.transmitter = {}
    double.send(Odometry(1, 0, 1.0, (3.0, 4.0, 0.5), (0.0, 0.0, 0.0)))
    stop = threading.Event()

    def serve():
        while not stop.is_set():
            double.receive(0.01)

    running = threading.Thread(target=serve)
    running.start()
    station = mavutil.mavlink_connection(f"udpout:{pilot}", source_system=255, dialect="ardupilotmega")
    try:
        station.mav.heartbeat_send(6, 8, 0, 0, 4)
        assert station.wait_heartbeat(timeout=5) is not None
        assert station.mode_mapping()["HOLD"] == 4
        station.arducopter_arm()
        station.set_mode("HOLD")
        ends = time.monotonic() + 5
        while time.monotonic() < ends and not (double.rover.armed and double.rover.mode == 4):
            station.recv_match(blocking=True, timeout=0.1)
        assert (double.rover.armed, double.rover.mode) == (True, 4)
        station.param_fetch_one("MOT_SLEWRATE")
        assert station.recv_match(type="PARAM_VALUE", blocking=True, timeout=5).param_value == 100
    finally:
        stop.set()
        running.join()
        station.close()
        double.close()


def test_statuses_are_of_the_newest_report_only():
    rig = Rig()
    rig.wrench = (0.5, 0.0, 0.0)
    rig.run(3.0)
    neutral = [1500] * 18
    rig.pilot_end.inject(packed(dialect.MAVLink_rc_channels_message(6000, 16, *neutral, 255)))
    received = rig.run(0.02)
    assert not any(isinstance(message, Status) and message.wrench == (0.0, 0.0, 0.0) for message in received)
    assert rig.link.rejected["late report of the commands"] == 1


def test_a_pilot_that_runs_before_the_boat_is_armed_starts_when_it_is():
    def on_tick(trial, now, autopilot, twin):
        if now < 6.0:
            trial.double.rover.armed = False
        elif now < 6.1:
            trial.double.rover.armed = True

    trial = Trial(on_tick)
    assert trial.run().about["arrived"]
    trial.check_overrides()
    assert any("disarmed: arm the autopilot" in detail for detail in events(trial, "arming"))


def test_mavsdk_is_a_ground_station_of_the_double():
    pytest.importorskip("mavsdk")
    (address, _) = free_ports()
    script = Path(__file__).with_name("mavsdk_station.py")
    done = subprocess.run([sys.executable, str(script), address], capture_output=True, text=True, timeout=30)
    lines = [line for line in done.stdout.splitlines() if line.startswith(("position", "armed", "mode"))]
    assert lines == ["position 3.0 4.0", "armed True True", "mode 4"], done.stderr


def test_a_pause_of_ours_does_not_drop_a_sound_connection(client):
    client.read()
    client._progress_time -= 10.0  # as after a pause of ten seconds
    client.write(b"\xfd")
    assert client._file is not None
    assert not client.rejected["connection stalled"]
