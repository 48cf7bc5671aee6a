"""A boat in simulated time for the loop, and processes that do not outlive a test."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

from anyhull.control import PID
from anyhull.onboard.autopilot import Autopilot
from anyhull.onboard.links import Received
from anyhull.onboard.loop import run_autopilot
from anyhull.onboard.setup import Setup
from anyhull.twin import WATERS, Twin, TwinConfig
from anyhull.twin.twin import TICK

BOAT = Path(__file__).parents[1] / "examples" / "boat-b.toml"
# A shell's background job ignores Ctrl-C, and so would the processes that tests start.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

LIGHT_AIR = TwinConfig(water=WATERS["light-air"])


class Pond:
    """A link with a twin at the other end, in simulated time, which advances while one waits."""

    def __init__(self, vessel):
        self.twin = Twin(vessel, LIGHT_AIR)
        self.now, self.sent = 100.0, []
        self.rejected: Counter[str] = Counter()

    def clock(self):
        return self.now

    def receive(self, timeout):
        received = []
        for _ in range(max(0, round(timeout / TICK))):
            self.now += TICK
            received += [Received(message, self.now) for message in self.twin.advance()]
        if timeout > 0 and not received:
            self.now += timeout % TICK
        return received

    def send(self, message):
        self.sent.append(message)
        self.twin.on_command(message)

    def close(self): ...


def run(reference, controller=None, link=Pond, **options):
    """The log, the autopilot and the link of a run in simulated time."""
    setup = Setup.load(BOAT)
    pond = link(setup.vessel)
    autopilot = Autopilot(setup, controller or PID(setup.vessel), reference)
    return run_autopilot(autopilot, pond, clock=pond.clock, **options), autopilot, pond


def free_ports():
    """Two free ports."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as a, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as b:
        a.bind(("127.0.0.1", 0))
        b.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{a.getsockname()[1]}", f"127.0.0.1:{b.getsockname()[1]}"


@contextmanager
def process(*arguments):
    """The command line in a process of its own, which does not outlive the test."""
    command = [sys.executable, "-m", "anyhull.cli", *map(str, arguments)]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    # One that says nothing more would be waited for without end.
    limit = threading.Timer(40.0, running.kill)
    limit.start()
    try:
        yield running
    finally:
        limit.cancel()
        if running.poll() is None:
            running.kill()
        running.communicate()


def boat_and_pilot(ports, folder, controller="pid"):
    boat = ["twin", "--vessel", BOAT, "--sea", "light-air", "--listen", ports[0], "--peer", ports[1], "--json"]
    pilot = ["pilot", BOAT, "--controller", controller, "--listen", ports[1], "--peer", ports[0], "--json"]
    return [*boat, "--time-factor", "3"], [*pilot, "--time-factor", "3", "--out", folder / "run.npz"]


def waits_for(stream, words, seconds=6.0):
    """Lines until one that holds the words."""
    ends, lines = time.monotonic() + seconds, []
    while time.monotonic() < ends:
        lines.append(stream.readline())
        if words in lines[-1]:
            return lines
    raise AssertionError(f"{words!r} not in {lines}")
