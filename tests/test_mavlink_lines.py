"""The lines under MAVLink: connections that stall, serial lines that are unplugged, and stamps of signatures."""

import contextlib
import os
import pty
import socket
import termios
import threading
import time
import tty
from collections import Counter

import pytest
from pymavlink.dialects.v20 import ardupilotmega as dialect
from rovers import Rig, packed

from anyhull.files import atomic_write
from anyhull.onboard.links.mavlink import wire as wire_module
from anyhull.onboard.links.mavlink.config import Endpoint, MAVLinkConfig
from anyhull.onboard.links.mavlink.link import MAVLink
from anyhull.onboard.links.mavlink.streams import TCPClient
from anyhull.onboard.links.mavlink.transports import Datagrams, open_transport
from anyhull.onboard.links.mavlink.wire import STAMPS, Wire
from anyhull.onboard.links.udp import Address
from anyhull.onboard.messages import Odometry
from anyhull.twin.byte_pipe import byte_pipe

KEY = bytes(range(32))
BEAT = dialect.MAVLink_heartbeat_message(11, 3, 209, 0, 4, 3)


def override(pulse):
    return packed(dialect.MAVLink_rc_channels_override_message(1, 1, *[pulse] * 18), 255, 191)


@pytest.fixture
def stalled():
    """A connection to somebody who does not read, with all its buffers full."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(1)
        client = TCPClient(Address("127.0.0.1", listening.getsockname()[1]))
        ends = time.monotonic() + 5
        while client._file is None and time.monotonic() < ends:
            client.wait(0.01)
        with listening.accept()[0]:
            while not client._rest:
                client.write(bytes(1000))
            yield client
        client.close()


def test_little_waits_in_a_connection(stalled):
    connection = stalled._file
    assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    # Linux doubles what is asked for.
    assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) <= 2 * 8192
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 2000


def test_the_newest_override_takes_the_place_of_those_that_wait(stalled):
    beat = packed(BEAT, 255, 191)
    for message in (override(1600), beat, override(1700), override(1500)):
        stalled.write(message)
    assert [message for message in stalled._outgoing if message[:1] == b"\xfd"] == [beat, override(1500)]
    assert stalled.rejected["not sent"] == 2


def test_a_connection_on_which_nothing_gets_through_is_dropped(stalled):
    stalled.write(override(1700))
    stalled.read()
    assert stalled._file is not None
    stalled._progress_time -= 1.1  # as if a second had passed
    stalled.read()
    assert stalled._file is None
    assert stalled.rejected["connection stalled"] == 1
    assert not stalled._outgoing
    assert not stalled._rest


def test_a_connection_that_takes_its_time_is_kept():
    near, far = socket.socketpair()
    near.setblocking(False)
    client = TCPClient(Address("127.0.0.1", 9))
    client._file = near
    with far:
        for _ in range(5):
            client._progress_time -= 1.1
            client.write(override(1500))
            far.recv(1000)
            client.read()
        assert client._file is near
        client.close()


@pytest.mark.parametrize("error", [termios.error(5, "Input/output error"), ValueError("speed"), OSError(5, "gone")])
def test_a_serial_line_that_cannot_be_opened_again_is_tried_once_a_second(error, monkeypatch):
    far, near = pty.openpty()
    tty.setraw(near)
    line = open_transport(Endpoint.read(f"serial:{os.ttyname(near)}:115200"))
    os.close(far)
    line.wait(0.1)
    assert line.read() == []
    attempts = []

    def fail():
        attempts.append(1)
        raise error

    monkeypatch.setattr(line, "_open", fail)
    monkeypatch.setattr(line, "_next_attempt", 0.0)
    for _ in range(10):
        assert line.read() == []
    assert len(attempts) == 1
    line.close()
    os.close(near)


def test_an_autopilot_with_old_stamps_gets_our_time_where_we_listen():
    transport = Datagrams(Address("127.0.0.1", 0), None)
    listening = transport._socket.getsockname()
    link = MAVLink(MAVLinkConfig(), transport, key=KEY)
    autopilot = dialect.MAVLink(None, 1, 1)
    signing = autopilot.signing
    signing.secret_key, signing.sign_outgoing = KEY, True
    signing.timestamp = link._wire._mav.signing.timestamp - 3600 * STAMPS
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as vehicle:
        vehicle.bind(("127.0.0.1", 0))
        vehicle.settimeout(3.0)
        vehicle.sendto(BEAT.pack(autopilot), listening)
        link.receive(1.0)
        assert (link.rejected["old time stamp"], link.rejected["not signed by our key"]) == (1, 0)
        assert not link._heartbeat.seen
        assert "old time stamps" in link.hint()
        link._heartbeat_due = 0.0
        link.receive(0.0)
        answer = vehicle.recv(300)
        # As ArduPilot does, which follows the newest stamp of its key.
        signing.timestamp = int.from_bytes(answer[-12:-6], "little")
        vehicle.sendto(BEAT.pack(autopilot), listening)
        link.receive(1.0)
        assert link._heartbeat.seen
    link.close()


def test_stamps_are_reserved_for_a_minute_by_one_writer_at_a_time(tmp_path, monkeypatch):
    stamps, end = tmp_path / "boat.key.stamp", byte_pipe(lambda: 0.0)[0]
    wire = Wire(end, (255, 191), lambda _: True, lambda: 0.0, Counter(), KEY, stamps)
    signing = wire._mav.signing
    assert int(stamps.read_text()) - signing.timestamp == 60 * STAMPS
    go, begun = threading.Event(), []

    @contextlib.contextmanager
    def slow(path):
        begun.append(path)
        go.wait(5.0)
        with atomic_write(path) as temporary:
            yield temporary

    monkeypatch.setattr(wire_module, "atomic_write", slow)
    for _ in range(50):  # the autopilot's stamps leap by a minute each time
        signing.timestamp += 60 * STAMPS
        wire.send(BEAT)
    assert len(begun) == 1
    go.set()
    for _ in range(2):
        if wire._writer is not None:
            wire._writer.join(5.0)
        wire.send(BEAT)
    if wire._writer is not None:
        wire._writer.join(5.0)
    assert len(begun) == 2
    assert int(stamps.read_text()) >= signing.timestamp


def test_the_state_may_be_odometry_messages():
    rig = Rig(position="odometry")
    rig.state = (3.0, 4.0, 0.5, 0.8, -0.1, 0.2)
    rig.run(3.0)
    odometry = rig.last(Odometry)
    assert (*odometry.pose, *odometry.velocity) == pytest.approx(rig.state, abs=1e-5)
    assert (odometry.health, odometry.std, rig.link.unready()) == ("ok", None, "")
