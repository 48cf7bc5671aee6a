"""The twin as a ROS 2 boat: its messages as topics, and topics as commands for its board.

It is the other end of `anyhull.onboard.links.ros2.node`, by the same table `[link]`. Its clock is in the stamps of its
messages, and commands are for that clock. It publishes nav_msgs/Odometry, or sensor_msgs/NavSatFix and Imu, and takes a
geometry_msgs/WrenchStamped or a std_msgs/Float64 for each thruster.
"""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import Any

from anyhull.errors import InputError
from anyhull.frames import mirror_body
from anyhull.onboard.links.link import Received
from anyhull.onboard.links.ros2 import conversion
from anyhull.onboard.links.ros2.config import ROS2Config
from anyhull.onboard.links.ros2.conversion import Rejected
from anyhull.onboard.links.ros2.node import (
    BOOL,
    FIX,
    FLOAT,
    IMU,
    ODOMETRY,
    SOURCE_TIMEOUT,
    STRING,
    WRENCH,
    command_topics,
)
from anyhull.onboard.links.ros2.opening import open_transport
from anyhull.onboard.links.ros2.transport import Arrived, Transport
from anyhull.onboard.messages import (
    MAX_INTEGER,
    Acceleration,
    Command,
    Gyro,
    Heading,
    Message,
    Odometry,
    Operator,
    Position,
)
from anyhull.vessel import Vessel

LATEST = 1.0
"""Time by which a command may be late, s; one that is later is of a clock that was set."""

TOLERANCE = 1.001
"""Size of a command, in limits, up to which it is rounded down to one."""


class ROS2Boat:
    """The twin's end of the link."""

    def __init__(self, config: ROS2Config, transport: Transport, vessel: Vessel) -> None:
        self.config, self.transport, self.rejected = config, transport, transport.rejected
        self._vessel = vessel
        self._frame = config.local_frame()
        self._time = 0.0
        self._inertial: dict[type[Message], Message] = {}
        self._source: tuple[bytes, float] = (b"", -math.inf)
        self._session, self._seq, self._stamp = self._draw(), 0, -math.inf
        topic = config.topic
        names = (*config.thrusters, *config.thruster_angles)
        self._indices = {topic(name): i for i, name in enumerate(names) if name}
        self._values = [0.0] * len(vessel.thrusters)
        self._angles = [math.radians(thruster.angle) for thruster in vessel.thrusters]
        self.command_topics = command_topics(config, vessel)
        for name in self.command_topics:
            transport.subscribe(name, WRENCH if config.command == "wrench" else FLOAT)
        says = [(config.odometry, ODOMETRY)] if config.state == "odometry" else [(config.fix, FIX), (config.imu, IMU)]
        for name, kind in (*says, (config.operator, STRING), (config.estop, BOOL)):
            if name:
                transport.advertise(topic(name), kind)

    @property
    def address(self) -> str:
        """The twin's node."""
        return self.transport.address

    @property
    def peer(self) -> str:
        """The topics of the commands."""
        return " and ".join(self.command_topics[:2])

    def receive(self, timeout: float) -> list[Received]:
        """The commands; waits up to `timeout` s for the first."""
        received, changed, last = [], False, 0.0
        for arrived in self.transport.receive(max(0.0, timeout)):
            before = self._session, self._seq, self._stamp
            try:
                self._admit(arrived)
                if self.config.command == "wrench":
                    received.append(Received(self._wrench(arrived.message), arrived.arrival))
                else:
                    self._thruster(arrived)
                    changed, last = True, arrived.arrival
                if arrived.topic == self.command_topics[0]:
                    self._source = (arrived.source, arrived.arrival)
                continue
            except Rejected as reason:
                self.rejected[str(reason)] += 1
            except Exception as error:  # whatever a message holds
                self.rejected[f"message failed: {type(error).__name__}"] += 1
            self._session, self._seq, self._stamp = before  # its publisher is not believed
        if changed:  # those of one period come together
            at = self._time
            command = Command(self._session, self._count(), at, tuple(self._values), tuple(self._angles))
            received.append(Received(command, last))
        return received

    def send(self, message: Message) -> None:
        """Publish what ROS has a type for."""
        config, topic, axes = self.config, self.config.topic, self.config.axes
        fields: dict[str, Any]
        self._time = message.time
        match message:
            case Odometry(pose=at, velocity=velocity, std=std):
                pose, twist = conversion.odometry_fields((*at, *velocity), std, axes)
                stamped = conversion.header(message.time, config.frame_id)
                fields = {"header": stamped, "child_frame_id": config.base_frame, "pose": pose, "twist": twist}
                self.transport.publish(topic(config.odometry), fields)
            case Position(x=x, y=y, std=std) if self._frame is not None:
                latitude, longitude = self._frame.to_geographic(x, y)
                fields = {"header": conversion.header(message.time, "gps"), "latitude": latitude}
                fields |= {"longitude": longitude, "status": {"service": 1}}
                if std is not None:
                    fields["position_covariance"] = [std**2, 0.0, 0.0, 0.0, std**2, 0.0, 0.0, 0.0, (2 * std) ** 2]
                    fields["position_covariance_type"] = 2
                self.transport.publish(topic(config.fix), fields)
            case Gyro() | Acceleration():
                self._inertial[type(message)] = message
            case Heading(psi=psi, std=std) if config.state == "sensors":
                gyro, level = self._inertial.pop(Gyro, None), self._inertial.pop(Acceleration, None)
                rate = gyro.rate if isinstance(gyro, Gyro) else None
                acceleration = (level.x, level.y) if isinstance(level, Acceleration) else None
                fields = conversion.imu_fields(psi, std, rate, acceleration, axes)
                fields["header"] = conversion.header(message.time, config.base_frame)
                self.transport.publish(topic(config.imu), fields)
            case Operator(mode=mode):
                if config.operator:
                    self.transport.publish(topic(config.operator), {"data": mode})
                if config.estop:
                    self.transport.publish(topic(config.estop), {"data": mode == "stop"})

    def unready(self) -> str:
        """A boat does not wait for its pilot."""
        return ""

    def hint(self) -> str:
        """What to look at while nothing is heard from the pilot."""
        return f"check that the pilot publishes {self.peer}"

    def close(self) -> None:
        """Leave the graph."""
        self.transport.close()

    def _admit(self, arrived: Arrived) -> None:
        """Raise for a command of another publisher than the one believed; begin anew with a new one."""
        # Each topic has a publisher of its own; of several topics the first tells.
        if arrived.topic != self.command_topics[0]:
            return
        known, heard = self._source
        if arrived.source != known:
            if arrived.arrival - heard <= SOURCE_TIMEOUT:
                raise Rejected(f"another publisher of {arrived.topic}")
            self._session, self._seq, self._stamp = self._draw(), 0, -math.inf

    def _wrench(self, message: Any) -> Command:
        at = conversion.time_of(message.header.stamp) or self._time
        if self._stamp - LATEST < at <= self._stamp:
            raise Rejected("command out of order")
        force, torque = message.wrench.force, message.wrench.torque
        wrench: tuple[float, ...] = (float(force.x), float(force.y), float(torque.z))
        if self.config.axes == "ned":
            wrench = mirror_body(wrench)
        parts = []
        for part, limit in zip(wrench, self._vessel.limits, strict=True):
            share = part / limit if limit > 0 else 0.0
            if not abs(share) <= TOLERANCE:
                raise Rejected("command outside the limits")
            parts.append(min(max(share, -1.0), 1.0))
        self._stamp = at
        surge, sway, yaw = parts
        return Command(self._session, self._count(), at, (), (), (surge, sway, yaw))

    def _thruster(self, arrived: Arrived) -> None:
        index, value = self._indices[arrived.topic], float(arrived.message.data)
        count = len(self._values)
        if not math.isfinite(value):
            raise Rejected("command not finite")
        if index >= count:
            self._angles[index - count] = value if self.config.axes == "enu" else -value
            return
        thruster = self._vessel.thrusters[index]
        low, high = thruster.bounds if self.config.thruster_unit == "newton" else (-1.0, 1.0)
        if not TOLERANCE * low <= value <= TOLERANCE * high:
            raise Rejected("command outside the limits")
        value = thruster.command(value) if self.config.thruster_unit == "newton" else value
        self._values[index] = min(max(value, -1.0), 1.0)

    def _count(self) -> int:
        self._seq += 1
        return self._seq - 1

    @staticmethod
    def _draw() -> int:
        return random.SystemRandom().randrange(MAX_INTEGER)


def open_boat(config: ROS2Config, vessel: Vessel, address: str | None = None) -> ROS2Boat:
    """The twin's end of a boat's link; over zenoh it takes the router's place where none answers."""
    if address is not None:
        raise InputError(f"--listen or --peer {address}: only for [link] kind = 'udp', and this boat's is 'ros2'")
    config = replace(config, node="anyhull_twin")
    if config.state == "sensors" and config.origin is None:
        raise InputError("link.origin is missing: the twin needs [latitude, longitude] of its zero, in degrees")
    command_topics(config, vessel)
    return ROS2Boat(config, open_transport(config, route=True), vessel)
