"""A ROS 2 network in memory and in simulated time, a trial through it, and definitions for zenoh-ros2-sdk."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from anyhull.control import PID
from anyhull.dynamics import PERIOD
from anyhull.log import Recorder
from anyhull.onboard.autopilot import Autopilot
from anyhull.onboard.links.ros2 import ROS2Config
from anyhull.onboard.links.ros2.cdr import BadCDR, decode, encode, typestore
from anyhull.onboard.links.ros2.node import ROS2Link
from anyhull.onboard.links.ros2.transport import QUEUE, Arrived, Inbox
from anyhull.onboard.links.udp import UDPConfig
from anyhull.onboard.messages import decode as decode_datagram
from anyhull.onboard.messages import encode as encode_datagram
from anyhull.onboard.setup import Setup
from anyhull.twin import WATERS, Twin, TwinConfig
from anyhull.twin.autopilot_board import AutopilotBoard
from anyhull.twin.ros2_boat import ROS2Boat
from anyhull.twin.twin import TICK, InTransit

BOAT = Path(__file__).parents[1] / "examples" / "boat-ros2.toml"


class Network:
    """What lies between nodes: CDR bytes, which may be lost, late, changed or stopped."""

    def __init__(self, seed=0):
        self.now, self.random = 0.0, random.Random(seed)
        self.nodes: list[Node] = []
        self.loss, self.delay, self.jitter = 0.0, 0.0, 0.0
        self.silent: set[str] = set()
        """Topics whose messages are lost."""

    def clock(self):
        return self.now

    def node(self):
        self.nodes.append(Node(self, f"node {len(self.nodes)} {self.now}".ljust(16)[:16].encode()))
        return self.nodes[-1]

    def deliver(self, topic, content, source):
        for node in self.nodes:
            heard = topic in node.subscribed and node.gid != source and topic not in self.silent
            if heard and self.random.random() >= self.loss:
                at = self.now + self.delay + self.random.uniform(0.0, self.jitter)
                node.incoming.send(at, (topic, content, source))


class Node:
    """A transport to the network."""

    address = "in memory"

    def __init__(self, network, gid):
        self.network, self.gid = network, gid
        self.rejected: Counter[str] = Counter()
        self.advertised: dict[str, str] = {}
        self.subscribed: dict[str, str] = {}
        self.latched: dict[str, bytes] = {}
        self.incoming = InTransit[Any]()
        self.inbox = Inbox[Any]()

    def advertise(self, topic, kind, *, latched=False):
        self.advertised[topic] = kind

    def subscribe(self, topic, kind, *, queue=QUEUE, first=False):
        self.subscribed[topic] = kind
        self.inbox.open(topic, queue, first=first)

    def publish(self, topic, fields):
        self.network.deliver(topic, encode(self.advertised[topic], fields), self.gid)

    def receive(self, timeout):
        arrived = []
        for message in self.incoming.arrived(self.network.now):
            self.inbox.put(message[0], message)
        for topic, content, source in self.inbox.take(0.0, self.rejected):
            try:
                arrived.append(Arrived(topic, decode(self.subscribed[topic], content), self.network.now, source))
            except BadCDR as bad:
                self.rejected[str(bad)] += 1
        return arrived

    def subscribers(self, topic):
        return sum(topic in node.subscribed for node in self.network.nodes if node is not self)

    def publishers(self, topic):
        return sum(topic in node.advertised for node in self.network.nodes if node is not self)

    def other_types(self, topic):
        return []

    def close(self):
        if self in self.network.nodes:
            self.network.nodes.remove(self)


class Trial:
    """A pilot and a twin at the two ends of a link in simulated time; over UDP where the setup's link is."""

    def __init__(self, setup, reference, *, seed=0, sea="light-air", controller=None, settle=1.0):
        self.setup, self.network, self.reference = setup, Network(seed), reference
        pose = reference.at(0.0)[:3].tolist()
        self.twin = Twin(setup.vessel, TwinConfig(water=WATERS[sea]), seed=seed, pose=pose)
        self.board = AutopilotBoard(self.twin, setup.link, setup.sensors)
        self.udp = isinstance(setup.link, UDPConfig)
        self.autopilot = Autopilot(
            setup,
            controller or PID(setup.vessel),
            reference,
            settle=settle,
            lead_in=0.0,
            session=seed,
            checks=() if self.udp else (lambda: self.link.unready(),),
        )
        if not self.udp:
            self.link, self.boat = self.connect_pilot(), self.connect_boat()
        self.datagrams: list[bytes] = []
        self.recorder, self.steps, self.applied = Recorder(), [], []
        self.skewed = 0.0
        """Error of the pilot's clock, s."""

    def connect_pilot(self):
        return ROS2Link(self.setup.link, self.network.node(), self.setup.vessel, clock=self.network.clock)

    def connect_boat(self):
        return ROS2Boat(self.setup.link, self.network.node(), self.setup.vessel)

    def run(self, seconds=200.0, on_tick=None, until_arrival=True):
        """Run for some seconds of simulated time, or until the boat has arrived."""
        every, network = round(PERIOD / TICK), self.network
        for tick in range(round(seconds / TICK)):
            network.now += TICK
            if on_tick:
                on_tick(network.now)
            for message in self.board.advance():
                if self.udp:
                    self.autopilot.on_message(_through_udp(message), network.now)
                elif self.boat is not None:
                    self.boat.send(message)
            for message, arrival in [] if self.udp else self.link.receive(0.0):
                self.autopilot.on_message(message, arrival)
            if tick % every == 0:
                self._step()
                if until_arrival and self.autopilot.phase == "arrived":
                    break
            for command, _ in [] if self.udp or self.boat is None else self.boat.receive(0.0):
                self.board.on_command(command)
                self.applied.append(command)
        return self

    def _step(self):
        if not self.udp:
            self.autopilot.on_rejected(self.link.rejected, self.network.now)
        if (step := self.autopilot.step(self.network.now)) is None:
            return
        self.steps.append(step)
        if self.udp:
            self.board.on_command(_through_udp(step.command))
        else:
            self.link.send(step.command)
            self.link.report(step, self.reference)
        if step.phase == "under way":
            self.recorder.add(
                time=step.progress,
                state=self.twin.state,
                estimate=step.estimate.state,
                reference=step.reference,
                command=step.decision.command,
                current=self.twin.weather.current,
            )

    def log(self):
        return self.recorder.log({})

    def within_limits(self):
        """Whether every command that reached the boat is in its limits."""
        values = np.array([(*command.wrench, *command.thrusters) for command in self.applied])
        return bool(len(values) and np.isfinite(values).all() and np.abs(values).max() <= 1.0)


def _through_udp(message):
    return decode_datagram(encode_datagram(message))


def setup(**link):
    """The example boat, with changes of its link."""
    loaded = Setup.load(BOAT)
    return replace(loaded, link=replace(loaded.link, **link)) if link else loaded


def write_definitions(folder, *kinds):
    """Definitions of messages as files, which zenoh-ros2-sdk would else fetch from the network."""
    store, todo = typestore(), list(kinds)
    while todo:
        kind = todo.pop()
        package, _, name = kind.split("/")
        file = Path(folder) / package / "msg" / f"{name}.msg"
        if file.exists():
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        text, _ = store.generate_msgdef(kind, ros_version=2)
        file.write_text(text.partition("=" * 80)[0])
        for _, (node, about) in store.fielddefs[kind][1]:
            node, about = about[0] if node.name in ("ARRAY", "SEQUENCE") else (node, about)
            if node.name == "NAME":
                todo.append(about)


def message(**fields):
    """A message with attributes, as either transport returns it."""
    return SimpleNamespace(**{k: message(**v) if isinstance(v, dict) else v for k, v in fields.items()})


__all__ = ["BOAT", "Network", "ROS2Config", "Trial", "message", "setup", "write_definitions"]
