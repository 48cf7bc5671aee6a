"""The same seeded trial through UDP, MAVLink and ROS 2: every message through its link's own bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from ros2_doubles import Network

from anyhull.controller import Controller
from anyhull.log import Log
from anyhull.onboard.links import Received
from anyhull.onboard.links.link import LinkConfig
from anyhull.onboard.links.mavlink.config import MAVLinkConfig
from anyhull.onboard.links.mavlink.link import MAVLink
from anyhull.onboard.links.ros2 import ROS2Config
from anyhull.onboard.links.ros2.node import ROS2Link
from anyhull.onboard.links.udp import UDPConfig
from anyhull.onboard.messages import decode, encode
from anyhull.onboard.setup import Setup
from anyhull.pilot import Pilot
from anyhull.reference import Reference, rounded_rectangle
from anyhull.twin.ardupilot import ArduPilot
from anyhull.twin.ardupilot_rover import ADVISED
from anyhull.twin.byte_pipe import byte_pipe
from anyhull.twin.link_trial import SimulatedClock, link_trial
from anyhull.twin.ros2_boat import ROS2Boat
from anyhull.vessel import Vessel

START = 12.0
"""Time at which all boats may start, s: MAVLink reads parameters first, and the sea must be the same."""

LINKS: dict[str, LinkConfig] = {
    "udp": UDPConfig(state="odometry", command="wrench"),
    "mavlink": MAVLinkConfig(lateral=True, axes="enu"),
    "ros2": ROS2Config(),
}


class Datagrams:
    """One end of a UDP link in simulated time: our own encoder and decoder."""

    def __init__(self, clock):
        self.clock, self.peer = clock, self
        self.rejected: Counter[str] = Counter()
        self._inbox: list[bytes] = []

    def receive(self, timeout):
        waiting, self._inbox = self._inbox, []
        return [Received(decode(datagram), self.clock()) for datagram in waiting]

    def send(self, message):
        self.peer._inbox.append(encode(message))

    def close(self): ...


class NetworkClock(SimulatedClock):
    """The clock of a ROS 2 network in memory."""

    def __init__(self, network):
        self._network = network

    @property
    def now(self):
        return self._network.now

    @now.setter
    def now(self, now):
        self._network.now = now


def trial(kind: str, controller: Controller, vessel: Vessel, reference: Reference, seed: int, **options) -> Log:
    """A trial over one kind of link."""
    config = replace(LINKS[kind], **options)
    checks: list[Callable[[], str]] = []
    clock: SimulatedClock
    pilot_end: Any
    boat_end: Any
    if isinstance(config, MAVLinkConfig):
        clock = SimulatedClock()
        near, far = byte_pipe(clock)
        pilot_end = MAVLink(config, near, clock=clock)
        boat_end = ArduPilot(config, [far], parameters=ADVISED, armed=True, clock=clock)
        checks = [pilot_end.unready]
    elif isinstance(config, ROS2Config):
        network = Network(seed)
        clock = NetworkClock(network)
        pilot_end = ROS2Link(config, network.node(), vessel, clock=network.clock)
        boat_end = ROS2Boat(config, network.node(), vessel)
        checks = [pilot_end.unready]
    else:
        clock = SimulatedClock()
        pilot_end, boat_end = Datagrams(clock), Datagrams(clock)
        pilot_end.peer, boat_end.peer = boat_end, pilot_end
    return link_trial(
        controller,
        Setup(vessel, config),
        reference,
        pilot_end=pilot_end,
        boat_end=boat_end,
        clock=clock,
        seed=seed,
        lead_in=10.0,
        checks=[*checks, lambda: "" if clock.now >= START else "before the start"],
    )


def test_the_same_trial_through_udp_mavlink_and_ros_2_has_the_same_error():
    vessel, lap = Vessel.load("platform-b"), rounded_rectangle(4.0, 3.0, 1.0, speed=0.4)
    errors = {}
    for kind in LINKS:
        log = trial(kind, Pilot.load("field"), vessel, lap, seed=1)
        assert log.about["arrived"]
        errors[kind] = log.metrics().position_cm
    assert errors["mavlink"] == pytest.approx(errors["udp"], rel=0.1)
    assert errors["ros2"] == pytest.approx(errors["udp"], rel=0.1)
