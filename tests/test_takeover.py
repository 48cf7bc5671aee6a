"""The takeover of a boat or a pilot by someone without the key, over real sockets and with real processes."""

import json
import random
import select
import signal
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from pond import process, waits_for
from test_session import KEY, forgeries, other

from anyhull.onboard.links.keys import make_key
from anyhull.onboard.links.session import NO_ECHO, TAG, Session
from anyhull.onboard.links.udp import UDP
from anyhull.onboard.messages import MAX_BYTES, Command, Gyro, encode

GYRO = Gyro(7, 3, 12.51, -0.2)
COMMAND = Command(8, 42, 12.6, (0.5, -1.0), (0.0, 1.5))


def connect(pilot, boat):
    """Let two ends of a link exchange their hellos."""
    for _ in range(8):
        pilot.receive(0.01)
        boat.receive(0.01)


@pytest.fixture
def ends():
    """A pilot's and a boat's end of a link with a key, and the datagrams that the pilot has received."""
    boat = UDP("127.0.0.1:0", "127.0.0.1:9", KEY, "boat")
    pilot = UDP("127.0.0.1:0", boat.address, KEY, "pilot")
    boat.peer = pilot.address
    connect(pilot, boat)
    yield pilot, boat
    pilot.close()
    boat.close()


def test_messages_cross_in_both_directions_with_a_key(ends):
    pilot, boat = ends
    boat.send(GYRO)
    pilot.send(COMMAND)
    assert [entry.message for entry in pilot.receive(1.0)] == [GYRO]
    assert [entry.message for entry in boat.receive(1.0)] == [COMMAND]
    assert not pilot.rejected
    assert not boat.rejected


def test_a_message_of_the_largest_size_still_crosses(ends):
    pilot, boat = ends
    largest = encode(COMMAND).ljust(MAX_BYTES)
    boat._socket.sendto(boat._session.seal(largest + b" "), pilot.address)
    pilot._socket.sendto(pilot._session.seal(largest), boat.address)
    assert [entry.message for entry in boat.receive(1.0)] == [COMMAND]
    assert pilot.receive(1.0) == []
    assert pilot.rejected == {"too long": 1}


def test_thousands_of_forged_datagrams_take_nothing_over(ends):
    """From the peer's own address and from another, as plain messages and as changed ones."""
    pilot, boat = ends
    rng, keys = random.Random(0), boat._session._keys
    genuine = [encode(Command(k, k, 0.0, (1.0,) * 4, (0.0,) * 4)) for k in range(20)] + [pilot._session.seal(b"{}")]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.bind(("127.0.0.1", 0))
        for sender in (pilot._socket, stranger):
            for k, datagram in enumerate(forgeries(rng, genuine, 4000)):
                sender.sendto(datagram, boat.address)
                if k % 100 == 99:
                    assert boat.receive(0.1) == []
    assert boat.rejected == {"not authentic": 4000, "not from the peer": 4000}
    assert boat._session._keys is keys
    pilot.send(COMMAND)
    assert [entry.message for entry in boat.receive(1.0)] == [COMMAND]


@pytest.mark.parametrize("victim", ["pilot", "boat"])
def test_a_second_process_on_the_port_after_a_kill_is_not_believed(ends, victim):
    recorded: list[bytes] = []
    alive, dead = ends if victim == "pilot" else ends[::-1]

    def record(datagram):
        recorded.append(datagram)
        UDP._send(dead, datagram)

    dead._send = record
    # A handshake and messages on record: a restart of the end that is killed later.
    dead._session = Session(KEY, other(victim))
    connect(*ends)
    for k in range(50):
        dead.send(Gyro(1, k, 0.0, 0.0))
    assert len(alive.receive(1.0)) == 50
    dead.close()
    address, plain = alive.peer, encode(GYRO)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as attacker:
        attacker.bind(address)
        for datagram in [*recorded, *recorded, plain, *forgeries(random.Random(1), recorded, 500)] * 2:
            attacker.sendto(datagram, alive.address)
            assert alive.receive(0.1) == []
        # Nor after a restart of the other end, on the same port.
        here = alive.address
        alive.close()
        again: Any = UDP(here, address, KEY, victim)
        for datagram in recorded * 2:
            attacker.sendto(datagram, here)
            assert again.receive(0.1) == []
        assert not again._session.established
        again.close()


def test_a_session_is_made_while_forged_datagrams_arrive(ends):
    pilot, boat = ends
    boat._session = Session(KEY, "boat")
    for _ in range(8):
        for datagram in forgeries(random.Random(2), [boat._session._hello(NO_ECHO)], 50):
            boat._socket.sendto(datagram, pilot.address)
            pilot._socket.sendto(datagram, boat.address)
        connect(pilot, boat)
    boat.send(GYRO)
    assert [entry.message for entry in pilot.receive(1.0)] == [GYRO]


class Relay(threading.Thread):
    """Stands between the processes of pilot and boat, at the address that each takes for its peer's, and records all.

    It is the attacker: after `taken` it passes nothing on.
    """

    def __init__(self, pilot, boat):
        super().__init__(daemon=True)
        self.sockets = {role: socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for role in ("pilot", "boat")}
        for side in self.sockets.values():
            side.bind(("127.0.0.1", 0))
        self.addresses = {"pilot": pilot, "boat": boat}
        self.recorded: dict[str, list[bytes]] = {"pilot": [], "boat": []}
        self.taken = False

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *error):
        self.taken = True
        self.join()
        for side in self.sockets.values():
            side.close()

    def run(self):
        while not self.taken:
            for side in select.select(list(self.sockets.values()), [], [], 0.05)[0]:
                to = "boat" if side is self.sockets["pilot"] else "pilot"
                datagram = side.recv(2000)
                self.recorded[to].append(datagram)
                self.send(to, datagram)

    def send(self, to, datagram):
        self.sockets[to].sendto(datagram, self.addresses[to])

    def attack(self, to):
        """Send everything that was recorded for one side, in order, and forgeries, for some two seconds."""
        plain = [encode(GYRO), encode(Command(1, 1, 0.0, (1.0,) * 4, (0.0,) * 4))]
        forged = forgeries(random.Random(0), [*self.recorded[to][:50], *plain], 4000)
        for k, datagram in enumerate([*self.recorded[to][:2000], *forged, *plain]):
            self.send(to, datagram)
            if k % 20 == 19:
                time.sleep(0.005)


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()


def interrupt(running):
    """The JSON document of a process that is asked to end."""
    running.send_signal(signal.SIGINT)
    return json.loads(running.communicate(timeout=10)[0])


def test_the_process_of_a_killed_boat_or_pilot_cannot_be_replaced_by_a_recording(tmp_path):
    file, example = tmp_path / "boat.toml", Path(__file__).parents[1] / "examples" / "boat.toml"
    make_key(tmp_path / "boat.key")
    file.write_text(example.read_text(encoding="utf-8") + '[link]\nkey = "boat.key"\n')
    pilot, boat = free_port(), free_port()
    with Relay(pilot, boat) as relay:
        # Each end's peer is the relay.
        ends = [
            ["--listen", "{}:{}".format(*own), "--peer", "{}:{}".format(*relay.sockets[role].getsockname())]
            for role, own in (("pilot", pilot), ("boat", boat))
        ]
        twin = ["twin", "--vessel", file, "--sea", "light-air", *ends[1], "--json"]
        with process(
            "pilot", file, "--controller", "pid", *ends[0], "--json", "--out", tmp_path / "run.npz"
        ) as steering:
            with process(*twin) as at_sea:
                waits_for(at_sea.stderr, "commands received", 15.0)
                waits_for(steering.stderr, "reaction: run", 15.0)
                at_sea.send_signal(signal.SIGKILL)
                at_sea.wait()
            relay.taken = True
            relay.join()
            relay.attack("pilot")
            answer = interrupt(steering)
        data = sum(datagram[TAG] == 2 for datagram in relay.recorded["pilot"])
        assert 0 < sum(answer["received"].values()) <= data
        assert any(what.startswith("message rejected: ") for what in answer["event_counts"])
        # The boat begins again, where its pilot was killed: nothing that this pilot has said starts it.
        assert sum(datagram[TAG] == 2 for datagram in relay.recorded["boat"]) > 5
        with process(*twin) as at_sea:
            waits_for(at_sea.stderr, "only for a pilot", 15.0)
            relay.attack("boat")
            report = interrupt(at_sea)
        assert (report["accepted"], report["stopped"], report["watchdog"]) == (0, True, 0)
        assert report["rejected"]["not authentic"] > 4000
