"""Authenticity without a network: the handshake under loss and restarts; forged, replayed and reflected datagrams."""

import hashlib
import random
import tracemalloc
from collections import Counter
from pathlib import Path

import pytest

from anyhull.onboard.links.session import (
    ANSWER_INTERVAL,
    HELLO_INTERVAL,
    NO_ECHO,
    SILENCE,
    TAG,
    Session,
)
from anyhull.onboard.messages import BadMessage

KEY = bytes(range(32))


class Network:
    """A pilot and a boat whose datagrams arrive at once or are lost, in simulated time."""

    def __init__(self):
        self.time, self.messages, self.sent, self.rejected = 0.0, [], [], []
        self.lose = set()
        """Numbers of the hellos that are lost."""
        self.hellos = 0
        self.sides = {}

    def start(self, role, key=KEY):
        """Start or restart one side."""
        self.sides[role] = Session(key, role, lambda: self.time)

    def deliver(self, to, datagram):
        if to not in self.sides:
            return
        try:
            message = self.sides[to].open(datagram)
        except BadMessage as bad:
            self.rejected.append((to, str(bad)))
            return
        if message is not None:
            self.messages.append((to, message))

    def hello(self):
        """Let both say their hellos until nobody has one to say."""
        for _ in range(5):
            due = [(other(role), hello) for role, side in self.sides.items() for hello in side.outgoing()]
            for to, hello in due:
                self.sent.append((to, hello))
                self.hellos += 1
                if self.hellos - 1 not in self.lose:
                    self.deliver(to, hello)
            if not due:
                return
        raise AssertionError("the hellos do not end")

    def send(self, role, message):
        datagram = self.sides[role].seal(message) if role in self.sides else None
        if datagram is not None:
            self.sent.append((other(role), datagram))
            self.deliver(other(role), datagram)

    def run(self, seconds, speakers=("pilot", "boat")):
        """Let the time pass in steps of 50 ms, in which each speaker sends a message."""
        for _ in range(round(seconds / 0.05)):
            self.time += 0.05
            self.hello()
            for role in speakers:
                self.send(role, f"{role} {self.time:.2f}".encode())

    def heard(self, role):
        return [message for to, message in self.messages if to == role]

    def works(self):
        """Whether a message of each side arrives now."""
        for role in ("pilot", "boat"):
            message = f"{role} {random.random()}".encode()
            self.send(role, message)
            if self.messages[-1:] != [(other(role), message)]:
                return False
        return True


def other(role):
    return "boat" if role == "pilot" else "pilot"


@pytest.fixture
def network():
    """Both sides started, the handshake done."""
    network = Network()
    network.start("pilot")
    network.start("boat")
    network.hello()
    assert network.works()
    return network


@pytest.mark.parametrize("first", ["pilot", "boat"])
def test_three_hellos_begin_a_session_whoever_starts_first(first):
    network = Network()
    network.start(first)
    network.run(0.2)
    assert network.hellos == 1
    assert network.sides[first].seal(b"early") is None
    network.start(other(first))
    # The later one's hello is answered, and its answer to that begins the session at the earlier one.
    network.hello()
    assert network.hellos == 4
    assert network.works()
    assert not network.rejected


def test_two_that_start_at_once_agree_on_one_session(network):
    assert network.hellos == 4
    assert not network.rejected
    network.run(5.0)
    assert network.hellos == 4
    assert not network.rejected


@pytest.mark.parametrize("late", [0.0, 0.2])
@pytest.mark.parametrize("lost", [*({k} for k in range(4)), {0, 1}, {1, 2}, {2, 3}, {1, 3}, set(range(5))])
@pytest.mark.parametrize("speakers", [("pilot", "boat"), ("boat",)])
def test_the_loss_of_any_hello_delays_the_session_by_seconds_at_most(lost, late, speakers):
    network = Network()
    network.lose = lost
    network.start("boat")
    if late:
        network.run(late, speakers)
    network.start("pilot")
    network.run(SILENCE + 3 * HELLO_INTERVAL, speakers)
    assert network.works()


@pytest.mark.parametrize("role", ["pilot", "boat"])
@pytest.mark.parametrize("lost", [set(), {4}, {5}, {6}])
def test_a_side_that_restarts_is_heard_again(network, role, lost):
    network.run(1.0)
    network.lose = lost
    network.start(role)
    network.run(SILENCE + 3 * HELLO_INTERVAL)
    assert network.works()
    # Of the new session, the other side has accepted nothing of before.
    assert len(set(network.messages)) == len(network.messages)


def test_a_lost_last_hello_is_replaced_by_the_first_message():
    network = Network()
    network.start("boat")
    network.hello()
    network.start("pilot")
    # The pilot's hello, the boat's answer, and then the pilot's, which is lost.
    network.lose = {3}
    network.hello()
    assert not network.sides["boat"].established
    network.send("pilot", b"first")
    assert network.heard("boat") == [b"first"]
    assert network.works()


def test_reordered_messages_pass_once_and_very_old_ones_never(network):
    sealed = [network.sides["boat"].seal(str(k).encode()) for k in range(2000)]
    network.messages.clear()
    for k in (1, 0, 1, 0, 3, 1999, 3, 1998, 1998, 977, 976, 975):
        network.deliver("pilot", sealed[k])
    # A window of 1024 reaches from 1999 back to 976.
    assert network.heard("pilot") == [b"1", b"0", b"3", b"1999", b"1998", b"977", b"976"]


@pytest.mark.parametrize("restart", [None, "pilot", "boat", "both"])
def test_a_recorded_session_is_never_accepted_again(network, restart):
    network.run(3.0)
    recording, before = list(network.sent), None
    if restart:
        for role in ("pilot", "boat") if restart == "both" else (restart,):
            network.start(role)
    if restart in ("pilot", "boat"):  # the other is gone: the attacker has its address
        alone = network.sides[restart]
        network.sides = {restart: alone}
    before = len(network.messages)
    for _ in range(2):
        for to, datagram in recording:
            network.deliver(to, datagram)
            network.time += 0.01
            network.hello()
    assert len(network.messages) == before
    if restart in ("pilot", "boat"):
        assert not alone.established
    else:
        network.run(2.0)
        assert network.works()


def test_recorded_hellos_do_not_end_a_session_in_use(network):
    """Each provokes at most an answer that the peer does not use, and few of them."""
    recording = [datagram for to, datagram in network.sent if to == "boat"]
    hello = next(datagram for datagram in recording if datagram.endswith(NO_ECHO))
    keys = [network.sides[role]._keys for role in ("pilot", "boat")]
    before = network.hellos
    for _ in range(100):
        network.deliver("boat", hello)
        network.run(0.05)
    assert [network.sides[role]._keys for role in ("pilot", "boat")] == keys
    assert network.hellos - before <= 100 * 0.05 / ANSWER_INTERVAL + 1
    assert network.works()


@pytest.mark.parametrize("role", ["pilot", "boat"])
def test_a_side_can_restart_while_recorded_hellos_arrive(network, role):
    recording = [(to, datagram) for to, datagram in network.sent if datagram.endswith(NO_ECHO)]
    assert {to for to, _ in recording} == {"pilot", "boat"}
    network.start(role)
    for _ in range(60):
        network.time += 0.05
        for to, datagram in recording * 5:
            network.deliver(to, datagram)
        network.hello()
    assert network.works()


def test_two_ends_with_different_sessions_find_each_other_again(network):
    hello = next(datagram for to, datagram in network.sent if to == "boat" and datagram.endswith(NO_ECHO))
    network.run(1.0)
    # The pilot restarts. Its last hello is lost, and a recorded one replaces its nonce at the boat.
    network.start("pilot")
    network.lose = {network.hellos + 2}
    network.hello()
    network.time += ANSWER_INTERVAL
    network.deliver("boat", hello)
    assert network.sides["pilot"].established
    assert not network.works()
    network.run(SILENCE + HELLO_INTERVAL)
    assert network.works()


def test_a_reflected_datagram_is_refused(network):
    network.start("pilot")  # without a session, when it would take any hello
    for to, datagram in list(network.sent):
        network.deliver(other(to), datagram)
    for session in (network.sides["pilot"], network.sides["boat"]):
        for hello in session.outgoing():
            with pytest.raises(BadMessage, match="not authentic"):
                session.open(hello)
    sealed = network.sides["boat"].seal(b"message")
    with pytest.raises(BadMessage, match="not authentic"):
        network.sides["boat"].open(sealed)
    assert {reason for _, reason in network.rejected} == {"not authentic"}


@pytest.mark.parametrize("which", ["hello", "data"])
def test_every_bit_of_a_datagram_is_protected(network, which):
    session, network.time = Session(KEY, "pilot"), 1.0
    datagram = session.outgoing()[0] if which == "hello" else network.sides["pilot"].seal(b'{"seq":1}')
    for bit in range(8 * len(datagram)):
        forged = bytearray(datagram)
        forged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(BadMessage, match="not authentic"):
            network.sides["boat"].open(bytes(forged))
    for length in range(len(datagram)):
        with pytest.raises(BadMessage, match="not authentic"):
            network.sides["boat"].open(datagram[:length])
    with pytest.raises(BadMessage, match="not authentic"):
        network.sides["boat"].open(datagram + b"\0")
    assert network.sides["boat"].open(datagram) == (None if which == "hello" else b'{"seq":1}')


def test_another_key_begins_no_session():
    network = Network()
    network.start("pilot")
    network.start("boat", bytes(32))
    network.run(10.0)
    assert not any(side.established for side in network.sides.values())
    assert {reason for _, reason in network.rejected} == {"not authentic"}


def forgeries(rng, genuine, count):
    """Datagrams of someone without the key: random ones, and genuine ones changed."""
    for k in range(count):
        datagram = bytearray(rng.choice(genuine) if k % 2 else rng.randbytes(rng.randrange(200)))
        if k % 2:
            datagram[rng.randrange(len(datagram))] ^= rng.randrange(1, 256)
        elif len(datagram) > TAG:
            datagram[TAG] = rng.randrange(4)
        yield bytes(datagram)


def reason_for(session, datagram):
    """The reason for which a datagram is refused; empty where it is not."""
    try:
        session.open(datagram)
    except BadMessage as bad:
        return str(bad)
    return ""


def test_a_hundred_thousand_forged_datagrams_change_nothing_and_take_no_memory(network):
    genuine = [datagram for to, datagram in network.sent if to == "boat"]
    boat, rng = network.sides["boat"], random.Random(0)
    before = vars(boat).copy(), boat._window._seen
    memory = []
    tracemalloc.start()
    for count in (100, 4_000, 100_000):
        reasons = Counter(reason_for(boat, datagram) for datagram in forgeries(rng, genuine, count))
        assert reasons == {"not authentic": count}
        memory.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert (vars(boat), boat._window._seen) == before
    assert max(memory) - memory[0] < 2_000
    assert network.works()


@pytest.mark.parametrize("seed", range(40))
def test_loss_delay_duplicates_restarts_and_replays_never_repeat_a_message_and_end_in_a_session(seed):
    rng, sent, heard, now = random.Random(seed), [], [], 0.0

    def start(role):
        return Session(KEY, role, lambda: now)

    sides = {role: start(role) for role in ("pilot", "boat")}
    under_way = []  # (arrival, to, datagram)
    for k in range(1200):
        now, calm = k * 0.02, k > 1000
        if not calm and rng.random() < 0.01:
            role = rng.choice(["pilot", "boat"])
            sides[role] = start(role)
        for role, side in sides.items():
            datagrams = [*side.outgoing(), side.seal(b"%s %d" % (role.encode(), k))]
            for datagram in filter(None, datagrams):
                sent.append((other(role), datagram))
                if calm or rng.random() < 0.7:
                    under_way.append((now + (0.01 if calm else rng.expovariate(10)), other(role), datagram))
        if not calm:  # the attacker sends what it has recorded, to its receiver and back to its sender
            for to, datagram in rng.choices(sent, k=5) if sent else ():
                under_way.append((now, rng.choice([to, other(to)]), datagram))
        for arrival in sorted(entry for entry in under_way if entry[0] <= now):
            under_way.remove(arrival)
            try:
                message = sides[arrival[1]].open(arrival[2])
            except BadMessage:
                continue
            if message is not None:
                heard.append((arrival[1], message))
    assert len(set(heard)) == len(heard)
    assert all(message.startswith(other(to).encode()) for to, message in heard)
    # Three seconds after the last disturbance everything arrives.
    assert {("boat", b"pilot %d" % k) for k in range(1160, 1190)} <= set(heard)
    assert {("pilot", b"boat %d" % k) for k in range(1160, 1190)} <= set(heard)


def test_the_bytes_are_those_of_the_documentation():
    """The test vector of docs/link.md, from which others write the boat's end."""
    pilot = Session(KEY, "pilot", lambda: 0.0, lambda length: b"\xa0" * length)
    boat = Session(KEY, "boat", lambda: 0.0, lambda length: b"\xb0" * length)
    (first,) = pilot.outgoing()
    boat.open(first)
    answer, _ = boat.outgoing()
    pilot.open(answer)
    (last,) = pilot.outgoing()
    boat.open(last)
    page = Path(__file__).parents[1].joinpath("docs", "link.md").read_text(encoding="utf-8")
    for datagram in (first, answer, last, pilot.seal(b"{}"), boat.seal(b"{}")):
        assert datagram is not None
        assert f" {datagram[:TAG].hex()} {datagram[TAG:].hex()}\n" in page
    # By the definition of HMAC in RFC 2104, with what the page says of the keys.
    key = hmac_sha256(KEY, b"anyhull 2 hello pilot")
    assert hmac_sha256(key, b"\x01" + b"\xa0" * 16 + bytes(16))[:16] == first[:TAG]


def hmac_sha256(key, message):
    inner, outer = (bytes(byte ^ pad for byte in key.ljust(64, b"\0")) for pad in (0x36, 0x5C))
    return hashlib.sha256(outer + hashlib.sha256(inner + message).digest()).digest()
