"""The link: messages and malformed datagrams, its peer only, clock synchronization and sequence numbers."""

import json
import math
import re
import socket
import stat
import tracemalloc
from typing import Any

import numpy as np
import pytest
from doubles import BOAT

from anyhull.cli import main
from anyhull.errors import InputError
from anyhull.onboard.clock import FORMER_SESSIONS, ClockSync, SequenceCheck
from anyhull.onboard.links import open_link
from anyhull.onboard.links.keys import load_key, make_key
from anyhull.onboard.links.udp import MAX_BURST, UDP, Address, UDPConfig
from anyhull.onboard.messages import (
    MAX_BYTES,
    Acceleration,
    BadMessage,
    Command,
    Gyro,
    Heading,
    Position,
    Status,
    decode,
    encode,
)
from anyhull.onboard.setup import Setup
from anyhull.twin.serve import serve
from anyhull.twin.twin import TICK

MESSAGES = [
    Position(7, 0, 12.5, 1.0, -2.0),
    Position(7, 1, 12.5, 1.0, -2.0, 0.02),
    Heading(7, 2, 12.51, 3.1),
    Gyro(7, 3, 12.51, -0.2),
    Acceleration(7, 3, 12.51, -0.2, 1.0),
    Status(7, 4, 12.6, (0.5, -1.0), False, 41),
    Command(8, 42, 12.6, (0.5, -1.0), (0.0, 1.5)),
]


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_comes_out_as_it_went_in(message):
    assert decode(encode(message)) == message


def changed(message, **values):
    return json.dumps(json.loads(encode(message)) | values).encode()


@pytest.mark.parametrize(
    ("datagram", "reason"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (b"[" * MAX_BYTES, "not JSON"),
        (b"[]", "not an object"),
        (b"null", "not an object"),
        (b" " * (MAX_BYTES + 1), "too long"),
        (changed(MESSAGES[0], v=1), "another version"),
        (changed(MESSAGES[0], type="position "), "unknown type"),
        (changed(MESSAGES[0], type=["position"]), "unknown type"),
        (b'{"v":2,"type":"gyro","session":1,"seq":1,"time":1}', "rate is missing: must be a finite number"),
        (changed(MESSAGES[0], x=math.nan), "x: must be a finite number"),
        (changed(MESSAGES[0], x=math.inf), "x: must be a finite number"),
        (changed(MESSAGES[0], x="1"), "x: must be a finite number"),
        (changed(MESSAGES[0], x=True), "x: must be a finite number"),
        (changed(MESSAGES[0], x=None), "x: must be a finite number"),
        (changed(MESSAGES[0], x=10**400), "x: must be a finite number"),
        (changed(MESSAGES[0], seq=1.5), "seq: must be a whole number"),
        (changed(MESSAGES[0], seq=-2), "seq: must be from -1 to 2**53 - 1"),
        (changed(MESSAGES[0], seq=2**53), "seq: must be from -1 to 2**53 - 1"),
        (changed(MESSAGES[0], seq=2**60), "seq: must be from -1 to 2**53 - 1"),
        (changed(MESSAGES[0], seq=10**400), "seq: must be a whole number"),
        (changed(MESSAGES[0], x=-1e300), "x: must be from -1e+06 to 1e+06"),
        (changed(MESSAGES[5], stopped=0), "stopped: must be true or false"),
        (changed(MESSAGES[6], thrusters=[0.5, 1.001]), "thrusters: must be from -1 to 1"),
        (changed(MESSAGES[6], thrusters=[0.5]), "angles: must be one for each thruster"),
        (changed(MESSAGES[6], thrusters=[0.1] * 33, angles=[0.1] * 33), "thrusters: must be at most 32 numbers"),
        (changed(MESSAGES[6], angles=[math.nan, 0.0]), "angles: must be a finite number"),
        (changed(MESSAGES[6], angles=0.0), "angles: must be a list of finite numbers"),
    ],
)
def test_a_malformed_message_is_rejected_with_a_reason(datagram, reason):
    with pytest.raises(BadMessage) as rejected:
        decode(datagram)
    assert str(rejected.value) == reason


def test_unknown_keys_are_ignored():
    assert decode(changed(MESSAGES[0], satellites=12)) == MESSAGES[0]


def test_random_bytes_and_mangled_messages_never_raise_anything_else():
    rng, reasons = np.random.default_rng(0), set()
    whole = [encode(message) for message in MESSAGES]
    for k in range(3000):
        datagram = bytearray(whole[k % len(whole)] if k % 2 else rng.bytes(int(rng.integers(1, 300))))
        for _ in range(int(rng.integers(1, 6))):
            datagram[int(rng.integers(len(datagram)))] = int(rng.integers(256))
        try:
            message = decode(bytes(datagram))
        except BadMessage as bad:
            reasons.add(str(bad))
            continue
        if isinstance(message, Command):
            assert all(abs(command) <= 1 for command in message.thrusters)
    # They are counted by reason, so none may hold anything that the sender has chosen.
    assert len(reasons) < 40
    for field in json.loads(encode(MESSAGES[5])):
        for value in ("secret", ["secret"], {"secret": 1}, -7777, 1e99, None, [[["secret"]]], ["secret"] * 5):
            for name in (field, "secret"):
                try:
                    decode(changed(MESSAGES[5], **{name: value}))
                except BadMessage as bad:
                    assert not any(text in str(bad) for text in ("secret", "7777", "e+99"))  # noqa: PT017


def test_nesting_of_any_depth_is_rejected():
    for depth in range(1, 650):
        with pytest.raises(BadMessage):
            decode(b'{"v":2,"type":"gyro","session":1,"seq":1,"time":1,"rate":' + b"[" * depth + b"]" * depth + b"}")


@pytest.fixture
def ends():
    """A pilot's and a boat's end of a link on free ports of loopback."""
    boat = UDP("127.0.0.1:0", "127.0.0.1:9")
    pilot = UDP("127.0.0.1:0", boat.address)
    boat.peer = pilot.address
    yield pilot, boat
    pilot.close()
    boat.close()


def test_messages_cross_in_order_and_garbage_is_counted(ends):
    pilot, boat = ends
    for message in MESSAGES[:6]:
        boat.send(message)
    boat._socket.sendto(b"garbage", pilot.address)
    boat._socket.sendto(encode(MESSAGES[0]).replace(b"1.0", b"NaN"), pilot.address)
    received = pilot.receive(1.0)
    assert [entry.message for entry in received] == MESSAGES[:6]
    assert pilot.rejected == {"not JSON": 1, "x: must be a finite number": 1}
    assert pilot.receive(0.0) == []


def test_datagrams_from_others_than_the_peer_are_rejected(ends):
    pilot, boat = ends
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.sendto(encode(MESSAGES[6]), boat.address)
        pilot.send(MESSAGES[6])
        boat.receive(1.0)
        stranger.sendto(encode(MESSAGES[6]), boat.address)
        assert boat.receive(1.0) == []
    assert boat.rejected == {"not from the peer": 2}


def test_a_peer_that_is_down_is_no_error(ends):
    pilot, boat = ends
    boat.close()
    for _ in range(5):
        pilot.send(MESSAGES[6])
        assert pilot.receive(0.01) == []


def test_it_listens_on_loopback_by_default(tmp_path):
    assert Address.read(UDPConfig().listen).host == Address.read(UDPConfig().peer).host == "127.0.0.1"
    first = UDP("127.0.0.1:0", "127.0.0.1:9")
    with pytest.raises(InputError, match=r"127.0.0.1:\d+: cannot listen there: Address already in use"):
        UDP(first.address, "127.0.0.1:9")
    first.close()


@pytest.mark.parametrize("address", ["192.0.2.1:5", "0.0.0.0:0", "126.255.255.255:5", "128.0.0.1:5"])
def test_without_a_key_only_loopback_is_spoken(address):
    words = r"must be on loopback \(127.0.0.0/8\) without a key: make a key with 'anyhull key boat.key'"
    with pytest.raises(InputError, match=f"{address}: {words}"):
        UDP(address, "127.0.0.1:9")
    with pytest.raises(InputError, match=f"{address}: {words}"):
        UDP("127.0.0.1:0", address)
    UDP("127.0.0.2:0", "127.255.255.254:9").close()


def test_with_a_key_other_addresses_are_spoken_too():
    link = UDP("0.0.0.0:0", "192.0.2.1:9", bytes(32), "boat")
    link.send(MESSAGES[0])
    link.close()


def test_a_flood_is_received_in_parts(ends):
    pilot, boat = ends
    for _ in range(2):
        for _ in range(150):
            pilot._socket.sendto(b"x", boat.address)
    assert boat.receive(0.1) == []
    assert 0 < boat.rejected["not JSON"] <= MAX_BURST
    # All of them wait in the receive buffer, and the peer's own message with them.
    pilot.send(MESSAGES[6])
    assert [entry.message for entry in boat.receive(0.1)] == [MESSAGES[6]]
    assert boat.rejected["not JSON"] == 300


def test_the_two_ends_of_a_boats_file_speak_to_each_other(tmp_path):
    file, ports = tmp_path / "boat.toml", []
    for _ in range(2):
        link = UDP("127.0.0.1:0", "127.0.0.1:9")
        ports.append(str(link.address))
        link.close()
    make_key(tmp_path / "boat.key")
    file.write_text(BOAT + f'[link]\nlisten = "{ports[0]}"\npeer = "{ports[1]}"\nkey = "boat.key"\n')
    setup = Setup.load(file)
    pilot, boat = open_link(setup.link, "pilot"), open_link(setup.link, "boat")
    for _ in range(6):
        pilot.receive(0.01)
        boat.receive(0.01)
    boat.send(MESSAGES[0])
    assert [entry.message for entry in pilot.receive(1.0)] == [MESSAGES[0]]
    boat.close()
    pilot.close()
    elsewhere = open_link(setup.link, "boat", "127.0.0.1:0", "127.0.0.1:9")
    assert str(elsewhere.address) not in ports
    assert str(elsewhere.peer) == "127.0.0.1:9"
    elsewhere.close()


def test_a_key_is_new_and_of_its_owner_alone_and_is_never_overwritten(tmp_path, capsys):
    file = tmp_path / "boat.key"
    assert main(["key", str(file)]) == 0
    out, _ = capsys.readouterr()
    assert 'key = "boat.key"' in out
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    text = file.read_text()
    assert text.strip() not in out
    assert load_key(file) == bytes.fromhex(text.rstrip("\n"))
    assert len(load_key(file)) == 32
    assert main(["key", str(file)]) == 2
    assert "boat.key: exists: a key is never overwritten" in capsys.readouterr().err
    assert file.read_text() == text
    assert main(["key", str(tmp_path / "other.key"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"key": str(tmp_path / "other.key")}
    assert load_key(tmp_path / "other.key") != load_key(file)
    assert main(["key", str(tmp_path / "no" / "boat.key")]) == 2
    assert "boat.key: cannot be written: No such file or directory" in capsys.readouterr().err
    file.with_suffix(".link").symlink_to(tmp_path / "elsewhere")
    assert main(["key", str(file.with_suffix(".link"))]) == 2
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    ("content", "mode", "words"),
    [
        ("00" * 32, 0o640, "mode = 640: must be 600"),
        ("00" * 32, 0o604, "mode = 604: must be 600"),
        ("00" * 32, 0o620, "mode = 620: must be 600"),
        ("00" * 31, 0o600, "must be one line of 64 hexadecimal digits"),
        ("00" * 33, 0o600, "must be one line of 64 hexadecimal digits"),
        ("0x" * 32, 0o600, "must be one line of 64 hexadecimal digits"),
        ("\xff" * 64, 0o600, "must be one line of 64 hexadecimal digits"),
        ("", 0o600, "must be one line of 64 hexadecimal digits"),
        (None, 0o600, "cannot be read: No such file or directory; 'anyhull key FILE' makes a key"),
    ],
)
def test_a_key_file_that_cannot_be_used_is_named(tmp_path, capsys, content, mode, words):
    file, key = tmp_path / "boat.toml", tmp_path / "boat.key"
    file.write_text(BOAT + '[link]\nkey = "boat.key"\n')
    if content is not None:
        key.write_text(content, encoding="latin-1")
        key.chmod(mode)
    assert main(["twin", "--vessel", str(file), "--duration", "0.1", "--listen", "127.0.0.1:0"]) == 2
    out, err = capsys.readouterr()
    (line,) = [line for line in err.splitlines() if line.startswith("error: ")]
    assert line.startswith(f"error: {key}: {words}")
    assert out == ""


def test_a_boats_file_holds_link_guard_fence_and_sensors(tmp_path):
    file = tmp_path / "boat.toml"
    file.write_text(
        BOAT + '[link]\nlisten = "127.0.0.1:5000"\n[guard]\nstep = 0.2\n'
        "[fence]\ncorners = [[-5, -5], [5, -5], [5, 5]]\n[sensors]\nantenna_x = 0.3\n"
    )
    setup = Setup.load(file)
    assert isinstance(setup.link, UDPConfig)
    assert (setup.link.listen, setup.limits.step, setup.sensors.antenna_x) == ("127.0.0.1:5000", 0.2, 0.3)
    assert setup.fence is not None
    assert setup.fence.margin(0, -1) > 0 > setup.fence.margin(0, 3)
    assert Setup.load("platform-a").fence is None


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("[link]\nport = 5\n", "link.port = 5: unknown key"),
        ('[link]\nlisten = "localhost:5"\n', "link.listen = 'localhost:5': must be an IPv4 address and a port"),
        ('[link]\npeer = "127.0.0.1:0"\n', "link.peer = '127.0.0.1:0': must be an address with a port other than 0"),
        ('[link]\npeer = "127.0.0.1:47001"\n', "link.peer = '127.0.0.1:47001': must be another address than listen"),
        ('[link]\npeer = "127.0.0.1:99999"\n', "at most 65535"),
        ("[guard]\nstep = 0.0\n", "guard.step = 0.0: must be positive"),
        ("[guard]\nstpe = 0.1\n", "guard.stpe = 0.1: unknown key; did you mean 'step'?"),
        ("[fence]\nx = 0\ny = 0\n", "fence.radius is missing"),
        ("[fence]\ncorners = [[0, 0], [1, 0]]\n", "fence.corners = .* three or more"),
        (
            '[fence]\ncorners = "all"\n',
            "fence.corners = 'all': must be a list of lists, each a list of 2 finite numbers",
        ),
        ("[sensors]\nposition = -0.5\n", "sensors.position = -0.5: must be positive"),
    ],
)
def test_a_mistake_in_a_boats_file_is_named(tmp_path, table, words):
    file = tmp_path / "boat.toml"
    file.write_text(BOAT + table)
    with pytest.raises(InputError, match=words) as error:
        Setup.load(file)
    assert str(error.value).startswith(str(file))


def test_the_clock_is_that_of_the_fastest_message_and_follows_drift():
    clock, rng = ClockSync(), np.random.default_rng(0)
    assert math.isnan(clock.at(1.0))
    for k in range(3000):
        # A clock 1000 s ahead that loses 100 ppm, messages 5 ms late and more.
        arrival = k * 0.01
        assert not clock.update(1000 + arrival * (1 - 1e-4) - 0.005 - rng.exponential(0.01), arrival)
    assert clock.at(30.0) == pytest.approx(1030 - 0.003 - 0.005, abs=1e-3)


def test_one_bad_stamp_or_a_burst_of_late_ones_sets_no_clock_and_many_do():
    clock = ClockSync()
    for k in range(100):
        clock.update(k * 0.01, k * 0.01)
    assert not clock.update(1e9, 1.0)
    # A link that stood still for a second lets everything go at once.
    assert not any(clock.update(1.0 + k * 0.01, 2.0) for k in range(100))
    assert clock.at(2.0) == pytest.approx(2.0)
    was_set = [clock.update(5000 + k * 0.01, 2.0 + k * 0.01) for k in range(100)]
    assert was_set.count(True) == 1
    assert 0.45 < was_set.index(True) * 0.01 < 0.55
    assert clock.at(3.0) == pytest.approx(5001.0)


def test_a_clock_set_back_a_little_is_followed_in_seconds():
    clock = ClockSync()
    for k in range(1000):
        clock.update(k * 0.01 - 0.2 * (k >= 300), k * 0.01)
    assert clock.at(10.0) == pytest.approx(9.8)


def test_sequence_numbers_separate_old_from_new():
    order = SequenceCheck()
    assert [order.check(5, seq) for seq in (3, 4, 6)] == ["new", "new", "new"]
    assert order.lost == 1
    assert order.check(5, 6) == "duplicate"
    assert order.check(5, 5) == "late"
    assert order.check(5, 5) == "duplicate"
    assert order.lost == 0
    assert order.check(9, 0) == "restarted"
    assert order.check(5, 7) == "former session"
    assert order.check(9, 1) == "new"


def test_the_order_of_any_numbers_takes_constant_memory():
    order, memory = SequenceCheck(), []
    tracemalloc.start()
    for count in (2 * FORMER_SESSIONS, 20_000):
        for k in range(count):
            order.check(k * 1000, 2**53 - 1 - k)
            order.check(k * 1000, k)
            order.check(k * 1000, 2**53 - 1)
        memory.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert memory[1] - memory[0] < 5_000


def test_a_number_far_ahead_or_far_behind_is_told_from_a_late_one():
    order = SequenceCheck()
    assert [order.check(1, seq) for seq in (10, 5000, 4999, 5000 - 1023, 5000 - 1024, 10, 4999)] == [
        *("new", "new", "late", "late"),
        *("duplicate", "duplicate", "duplicate"),
    ]


class Frozen:
    """A twin that does nothing, at the end of a link that carries nothing."""

    ticks = 0

    def advance(self):
        self.ticks += 1
        return []

    def receive(self, timeout):
        return []


def test_the_time_that_a_slow_machine_skips_is_counted():
    frozen: Any = Frozen()
    skipped: list[float] = []
    times = iter([0.0, 1.0, 1.0, 1.5, 1.5])
    # At twice the speed of time: after 1 s of the clock 2 s are due, of which 0.5 s are simulated; then 1 s, likewise.
    stops = iter([False, False, False, False, True])
    serve(frozen, frozen, time_factor=2.0, clock=lambda: next(times), stop=lambda: next(stops), on_skip=skipped.append)
    assert skipped == pytest.approx([1.5, 0.5])
    assert frozen.ticks == round(1.0 / TICK)


def test_a_twin_says_that_time_is_skipped(monkeypatch, capsys):
    monkeypatch.setattr("anyhull.twin.serve.MAX_CATCH_UP", 0.0)
    command = ["twin", "--duration", "0.3", "--time-factor", "2", "--listen", "127.0.0.1:0", "--peer", "127.0.0.1:9"]
    assert main(command) == 0
    out, err = capsys.readouterr()
    assert err.count("time is skipped: this machine is too slow for --time-factor 2\n") == 1
    assert re.search(r"^skipped 0\.[23] s: this machine is too slow for --time-factor 2$", out, re.MULTILINE)
    assert main([*command, "--json"]) == 0
    assert 0.1 < json.loads(capsys.readouterr().out)["skipped"] < 0.4


def test_messages_of_the_largest_boat_fit_a_datagram():
    values = tuple(-0.123456789012345 - 0.01 * i for i in range(32))
    angles = tuple(-1.23456789012345 - 0.1 * i for i in range(32))
    for message in (
        Command(2**53 - 1, 2**53 - 1, 1e10 / 3, values, angles),
        Status(1, 1, 1.0, values, False, 1, values),
    ):
        found = decode(encode(message))
        assert isinstance(found, Command | Status)
        assert np.allclose(found.thrusters, values, atol=1e-6)
