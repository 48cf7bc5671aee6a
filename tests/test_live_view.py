"""The live view for Foxglove: what a client gets, and that none delays the run."""

import base64
import json
import os
import signal
import socket
import struct
import threading
import time

import numpy as np
import pytest
from mcap.reader import make_reader
from pond import boat_and_pilot, free_ports, process, run, waits_for

from anyhull import InputError
from anyhull.cli import main
from anyhull.cli.foxglove import Steps, paced
from anyhull.log import Log
from anyhull.pilot import Pilot
from anyhull.reference import line
from anyhull.viz.facts import Entry
from anyhull.viz.foxglove import QUEUE, LiveView, parse_address
from anyhull.viz.topics import Row

ANY_PORT = "127.0.0.1:0"
PROTOCOL = "foxglove.sdk.v1"


def row(k=0):
    state = np.array([1.0, 2.0, 0.5, 0.1, 0.0, 0.0])
    return Row(10**9 + k * 10**8, state, state, np.zeros(3), np.zeros(2), thrusters=[0.5], guard=("run", ""))


class Client:
    """A WebSocket client (RFC 6455) of the few things needed here."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        key = base64.b64encode(os.urandom(16)).decode()
        fields = ("Upgrade: websocket", "Connection: Upgrade", f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13")
        lines = ("GET / HTTP/1.1", f"Host: 127.0.0.1:{port}", *fields, f"Sec-WebSocket-Protocol: {PROTOCOL}")
        self.socket.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        self.answer = b""
        while not self.answer.endswith(b"\r\n\r\n"):
            self.answer += self.socket.recv(1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def receive(self):
        """Opcode and content of a frame."""
        first, second = self._exactly(2)
        length = second & 127
        if length > 125:
            length = int.from_bytes(self._exactly(2 if length == 126 else 8), "big")
        return first & 15, self._exactly(length)

    def until(self, wanted):
        """The first message for which `wanted` holds: a table of a text, or the bytes of another."""
        while True:
            kind, data = self.receive()
            message = json.loads(data) if kind == 1 else data
            if wanted(message):
                return message

    def send(self, message):
        data, mask = json.dumps(message).encode(), b"\0\0\0\0"
        length = bytes([0x80 | len(data)]) if len(data) < 126 else b"\xfe" + struct.pack(">H", len(data))
        self.socket.sendall(b"\x81" + length + mask + data)

    def _exactly(self, size):
        data = b""
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                raise ConnectionError("closed")
            data += part
        return data


@pytest.fixture
def view():
    view = LiveView(ANY_PORT, {"vessel": "Dinghy"}, np.zeros((10, 6)))
    yield view
    view.close()


def op(name):
    return lambda message: isinstance(message, dict) and message["op"] == name


def test_a_client_sees_topics_and_messages_and_may_command_nothing(view):
    with Client(view.port) as client:
        assert b"101" in client.answer.splitlines()[0]
        information = client.until(op("serverInfo"))
        assert information["name"] == "anyhull Dinghy"
        assert not information.get("capabilities")
        view.show(row(), (Entry(10**9, "fence", "0.1 m outside"),))
        channels: dict[str, int] = {}
        while not {"/guard", "/pose", "/events", "/path", "/reference_path", "/hull"} <= channels.keys():
            channels |= {c["topic"]: c["id"] for c in client.until(op("advertise"))["channels"]}
        client.send({"op": "subscribe", "subscriptions": [{"id": 7, "channelId": channels["/thrusters"]}]})
        # The server says nothing when a subscription is in force: send until a message comes.
        client.socket.settimeout(0.2)
        for k in range(1, 50):
            view.show(row(k))
            try:
                data = client.until(lambda message: isinstance(message, bytes))
                break
            except TimeoutError:
                continue
        # A byte for "message", the subscription, the time in ns, and the message itself.
        kind, subscription, when = struct.unpack_from("<BIQ", data)
        assert (kind, subscription) == (1, 7)
        assert when > 10**9
        assert json.loads(data[13:]) == {"commands": [0.5]}


def test_a_client_that_does_not_read_delays_neither_the_run_nor_its_end(view):
    with Client(view.port) as client:
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        view.show(row())
        channels: dict[str, int] = {}
        while not {"/pose", "/tf", "/hull"} <= channels.keys():
            channels |= {c["topic"]: c["id"] for c in client.until(op("advertise"))["channels"]}
        subscriptions = [{"id": i, "channelId": number} for i, number in enumerate(channels.values())]
        client.send({"op": "subscribe", "subscriptions": subscriptions})
        sent = 2000
        for k in range(1, sent + 1):
            view.show(row(k))
            while view._queue.full():  # as many as the thread takes, so that it is the client who is slow
                time.sleep(1e-3)
        view.close()
        assert not view._thread.is_alive()
        assert view.dropped == 0


def test_rows_beyond_the_queue_are_dropped_and_counted(view, monkeypatch):
    gate = threading.Event()
    monkeypatch.setattr(view, "_send", lambda *_: gate.wait(30))
    for k in range(QUEUE + 20):
        view.show(row(k))
    # The thread may have taken one of them.
    assert view.dropped in (19, 20)
    gate.set()


def test_a_row_that_no_message_can_hold_does_not_end_the_view(view):
    view.show(row()._replace(time=-1))
    view.show(row())
    view.close()
    assert view.dropped == 1


def test_a_port_in_use_and_an_odd_address_are_one_line_before_the_run(view, capsys):
    common = ["simulate", "--reference", "line", "--controller", "pid"]
    assert main([*common, "--foxglove-at", f"127.0.0.1:{view.port}"]) == 2
    error = capsys.readouterr().err
    assert f"--foxglove 127.0.0.1:{view.port}: " in error
    assert "in use" in error
    assert error.count("\n") == 1
    assert main([*common, "--foxglove-at", "boat.local:1"]) == 2
    assert "must be HOST:PORT" in capsys.readouterr().err


def test_an_address_may_leave_out_host_or_port():
    assert parse_address("127.0.0.1:8765") == ("127.0.0.1", 8765)
    assert parse_address("9000") == ("127.0.0.1", 9000)
    assert parse_address("0.0.0.0") == ("0.0.0.0", 8765)
    for text in ("", "1.2.3:4", "127.0.0.1:70000", "::1", "127.0.0.1:x"):
        with pytest.raises(InputError, match="must be HOST:PORT") if text else pytest.raises(InputError):
            parse_address(text or "x")


def test_another_host_is_said_to_be_open_to_all(view):
    assert "everyone" not in view.said
    other = LiveView("0.0.0.0:0", {})
    try:
        assert "everyone who reaches it can watch" in other.said
    finally:
        other.close()


def test_a_missing_sdk_is_one_line(monkeypatch, capsys):
    monkeypatch.setitem(__import__("sys").modules, "foxglove", None)
    assert main(["simulate", "--reference", "line", "--controller", "pid", "--foxglove"]) == 2
    assert capsys.readouterr().err == "error: foxglove-sdk is not installed: pip install 'anyhull[foxglove]'\n"


def test_the_steps_of_an_autopilot_become_rows_with_its_new_events():
    shown = []

    class Kept:
        def show(self, row, events=()):
            shown.append((row, events))

    steps = []

    def on_step(step, delay):
        steps.append(step)

    log, autopilot, _ = run(line(2.0, speed=0.5), Pilot.load("field"), on_step=on_step)
    watched = Steps(Kept(), autopilot)  # type: ignore[arg-type]
    watched._shown = 0
    for step in steps:
        watched.show(step)
    assert len(shown) == len(log.time)
    np.testing.assert_allclose([row.state for row, _ in shown], log.state, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose([row.thrusters for row, _ in shown], log.thrusters, rtol=1e-5, atol=1e-6)
    # The estimate is of a controller that steers; before and after it there is none.
    estimated = [row.dynamics is not None for row, _ in shown]
    assert not estimated[0]
    assert sum(estimated) > 20
    np.testing.assert_array_equal(np.isfinite(log.dynamics).all(axis=1), estimated)
    assert np.isnan(log.dynamics[~np.array(estimated)]).all()
    assert "run" in {row.guard[0] for row, _ in shown}
    assert sum(len(events) for _, events in shown) == len(log.about["events"])


def test_a_pilot_is_watched_while_it_runs_and_leaves_an_mcap(tmp_path):
    boat, pilot = boat_and_pilot(free_ports(), tmp_path)
    at = free_ports()[0]
    options = ["--reference", "line", "--mcap", tmp_path / "run.mcap", "--foxglove-at", at]
    with process(*boat), process(*pilot, *options) as steering:
        waits_for(steering.stderr, f"Foxglove: open ws://{at}", seconds=15.0)
        waits_for(steering.stderr, "reaction: run", seconds=15.0)
        with Client(int(at.split(":")[1])) as client:
            topics = {channel["topic"] for channel in client.until(op("advertise"))["channels"]}
        steering.send_signal(signal.SIGINT)
        out, _ = steering.communicate(timeout=15)
    assert {"/pose", "/reference_path", "/thrusters", "/guard", "/sensors", "/tf"} <= topics
    assert "foxglove_rows_dropped" in json.loads(out)["loop"]
    log = Log.load(tmp_path / "run.npz")
    with (tmp_path / "run.mcap").open("rb") as file:
        summary = make_reader(file).get_summary()
    assert summary is not None
    assert summary.statistics is not None
    assert log.epoch is not None
    counts = {summary.channels[k].topic: n for k, n in summary.statistics.channel_message_counts.items()}
    assert counts["/pose"] == counts["/thrusters"] == len(log.time)
    assert summary.statistics.message_start_time / 1e9 == pytest.approx(log.epoch[0], abs=5.0)


def test_a_simulation_is_watched_at_the_pace_of_the_clock():
    shown = []

    class Kept:
        def show(self, row, events=()):
            shown.append((row, time.time_ns()))

    show = paced(Kept())  # type: ignore[arg-type]
    assert show is not None
    state = np.zeros(6)
    for k in range(4):
        show({"time": 0.05 * k, "state": state, "reference": state, "command": np.zeros(3), "current": np.zeros(2)})
    times = [row.time for row, _ in shown]
    np.testing.assert_allclose(np.diff(times), 5e7, atol=1e3)
    # No row comes before its time.
    assert all(at >= row.time - 1e6 for row, at in shown)
    assert paced(None) is None
