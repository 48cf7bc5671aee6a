"""Our ROS 2 node: the boat's topics as messages for the loop, and its commands as topics.

It knows nothing of the transport. A plain ROS boat confirms no commands, so the node makes the `Status` itself: the
commands in force are the last ones published, as long as someone subscribes to them and the operator's switch is at
`auto`. With any other the boat counts as stopped, since nobody tells what the operator commands. The first publisher of
a topic of the boat is believed until it has been silent for `SOURCE_TIMEOUT`; what others publish there is rejected.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from anyhull.errors import InputError
from anyhull.frames import mirror_body
from anyhull.mission.geodesy import LocalFrame
from anyhull.onboard.links.link import Received
from anyhull.onboard.links.ros2 import conversion
from anyhull.onboard.links.ros2.config import ROS2Config
from anyhull.onboard.links.ros2.conversion import Rejected
from anyhull.onboard.links.ros2.operator_topics import SILENCE, Mode, OperatorTopics
from anyhull.onboard.links.ros2.reports import Reports
from anyhull.onboard.links.ros2.transport import QUEUE, Arrived, Transport
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
    Status,
)
from anyhull.vessel import Vessel

if TYPE_CHECKING:
    from anyhull.onboard.step_record import StepRecord
    from anyhull.reference import Reference

ODOMETRY, FIX, IMU = "nav_msgs/msg/Odometry", "sensor_msgs/msg/NavSatFix", "sensor_msgs/msg/Imu"
WRENCH, FLOAT, PATH = "geometry_msgs/msg/WrenchStamped", "std_msgs/msg/Float64", "nav_msgs/msg/Path"
STRING, BOOL = "std_msgs/msg/String", "std_msgs/msg/Bool"

SOURCE_TIMEOUT = 1.0
"""Silence of a publisher after which another one of the same topic is believed, s."""

STATUS_PERIOD = 0.1
"""Time between two statuses, s."""

LAST_ZEROS = 3
"""Zero commands published once the pilot has handed the boat over; then it gives way to others."""


class ROS2Link:
    """The pilot's end of the link to a ROS 2 boat."""

    def __init__(
        self,
        config: ROS2Config,
        transport: Transport,
        vessel: Vessel,
        frame: LocalFrame | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`frame` is the local frame of a geographic mission; `clock` is that of the transport's arrivals."""
        self.config, self.transport = config, transport
        self._vessel, self._clock = vessel, clock
        self._frame = check_frame(config, frame)
        self.rejected = transport.rejected
        """Messages rejected, and errors of the network, by reason."""
        self._session, self._seq = random.SystemRandom().randrange(MAX_INTEGER), 0
        self._sources: dict[str, tuple[bytes, float]] = {}
        self._stamp: tuple[float, float] | None = None
        self._published: Command | None = None
        self._zeros = 0
        self._next_status = -math.inf
        self._strange_frame = ""
        self.path: list[tuple[float, float]] | None = None
        """Points of the first path received, m in the local frame."""
        name = config.topic
        self.state_topics = [name(config.odometry)]
        if config.state == "sensors":
            self.state_topics = [name(config.fix), name(config.imu)]
        self.command_topics = command_topics(config, vessel)
        self._handlers: dict[str, Callable[[Any, float], Iterator[Message]]] = {}
        listens = [(config.odometry, ODOMETRY, self._odometry)]
        if config.state == "sensors":
            listens = [(config.fix, FIX, self._fix), (config.imu, IMU, self._imu)]
        for topic, kind, handler in listens:
            self._listen(topic, kind, handler)
        self._operator = OperatorTopics([name(topic) for topic in (config.operator, config.estop) if topic])
        self._told: Mode | None = None
        self._listen(config.operator, STRING, self._on_switch, queue=10, first=True)
        self._listen(config.estop, BOOL, self._on_estop, queue=10, first=True)
        for topic in self.command_topics:
            transport.advertise(topic, WRENCH if config.command == "wrench" else FLOAT)
        self._reports = Reports(config, transport)

    @property
    def address(self) -> str:
        """Our node."""
        return self.transport.address

    @property
    def peer(self) -> str:
        """The boat's topics."""
        return f"{' and '.join(self.state_topics)} with {' and '.join(self.command_topics[:2])}"

    def receive(self, timeout: float) -> list[Received]:
        """The messages of the boat; waits up to `timeout` s for the first."""
        received: list[Received] = []
        for arrived in self.transport.receive(max(0.0, timeout)):
            try:
                received += [Received(message, arrived.arrival) for message in self._read(arrived)]
            except Rejected as reason:
                self.rejected[str(reason)] += 1
            except Exception as error:  # whatever a message holds
                self.rejected[f"message failed: {type(error).__name__}"] += 1
        now = self._clock()
        for topic in self._operator.find_silent(now):
            self.rejected[f"{topic} silent for {SILENCE:g} s, which counts as stop"] += 1
        if self._stamp is not None and (now >= self._next_status or self._operator.mode != self._told):
            received += [Received(message, now) for message in (*self._tell_mode(now), self._status(now))]
            self._next_status = now + STATUS_PERIOD
        return received

    def send(self, message: Message) -> None:
        """Publish a command."""
        if not isinstance(message, Command):
            return
        values = (*message.thrusters, *message.angles, *message.wrench)
        if not all(map(math.isfinite, values)):
            self.rejected["command not finite"] += 1
            return
        self._zeros = 0 if message.engaged else self._zeros + 1
        if self._zeros <= LAST_ZEROS:
            self._publish(message)
        self._published = message

    def report(self, step: StepRecord, reference: Reference) -> None:
        """Publish the reference, the diagnostics and the estimate of the dynamics; never waits, and never raises."""
        age = step.time - self._stamp[0] if self._stamp else math.nan
        try:
            self._reports.publish(step, reference, age, self.rejected.total())
        except Exception as error:  # a report must not end the run
            self.rejected[f"report failed: {type(error).__name__}"] += 1

    def listen_for_path(self) -> None:
        """Take a path, into `path`. Not while the boat is steered: to decode a long one takes longer than a period."""
        self._listen(self.config.path, PATH, self._path, queue=1)

    def unready(self) -> str:
        """Why the boat must not start yet, or empty."""
        for topic in self.command_topics:
            if not self.transport.subscribers(topic):
                return f"nobody subscribes to {topic}{self._as_other(topic)}"
            if self.transport.publishers(topic):
                return f"someone else publishes {topic}"
        heard = (*self.state_topics, *self._operator.topics)
        several = [topic for topic in heard if self.transport.publishers(topic) > 1]
        return f"{several[0]} has several publishers" if several else self._operator.unready(self._clock())

    def hint(self) -> str:
        """What to look at while nothing is heard from the boat."""
        for topic in self.state_topics:
            if not self.transport.publishers(topic):
                return f"nobody publishes {topic}{self._as_other(topic)}; check the boat, ROS_DOMAIN_ID and the router"
        if self._strange_frame:
            return self._strange_frame
        return f"check that the boat publishes {' and '.join(self.state_topics)}"

    def close(self) -> None:
        """Leave the graph."""
        self.transport.close()

    def _listen(
        self,
        topic: str,
        kind: str,
        handler: Callable[[Any, float], Iterator[Message]],
        *,
        queue: int = QUEUE,
        first: bool = False,
    ) -> None:
        if topic:
            self._handlers[self.config.topic(topic)] = handler
            self.transport.subscribe(self.config.topic(topic), kind, queue=queue, first=first)

    def _as_other(self, topic: str) -> str:
        others = self.transport.other_types(topic)
        return f", others use it as {', '.join(others[:3])[:150]!r} with another type or hash" if others else ""

    def _read(self, arrived: Arrived) -> list[Message]:
        """The messages of one that arrived; raises for one that is not used, whose publisher is not believed then."""
        before = self._session, self._seq, self._stamp
        self._admit(arrived)
        try:
            found = list(self._handlers[arrived.topic](arrived.message, arrived.arrival))
        except Exception:
            self._session, self._seq, self._stamp = before
            raise
        self._sources[arrived.topic] = (arrived.source, arrived.arrival)
        return found

    def _admit(self, arrived: Arrived) -> None:
        """Raise for a message of another publisher than the one believed; begin anew with a new one."""
        known, heard = self._sources.get(arrived.topic, (None, -math.inf))
        if known is not None and arrived.source != known:
            rare = arrived.topic in self._operator.topics  # once a second
            if rare and arrived.message.data in (True, "stop"):
                return  # whoever presses it
            if arrived.arrival - heard <= (SILENCE if rare else SOURCE_TIMEOUT):
                raise Rejected(f"another publisher of {arrived.topic}")
            if arrived.topic in self.state_topics:
                self._session, self._seq = random.SystemRandom().randrange(MAX_INTEGER), 0
                self._stamp = None

    def _next(self) -> tuple[int, int]:
        self._seq += 1
        return self._session, self._seq - 1

    def _time(self, stamp: Any, arrival: float) -> float:
        """The boat's time of a stamped message; of one without a stamp its arrival."""
        stated = conversion.time_of(stamp) or arrival
        self._stamp = (stated, arrival)
        return stated

    def _now(self, arrival: float) -> float:
        """The boat's time of a message that has no stamp."""
        if self._stamp is None:
            raise Rejected("before the first state")
        return self._stamp[0] + arrival - self._stamp[1]

    def _in_frames(self, frame: str, child: str | None = None) -> None:
        for what, wanted, given in (
            ("frame_id", self.config.frame_id, frame),
            ("base_frame", self.config.base_frame, child),
        ):
            if wanted and given and given.strip("/") != wanted.strip("/"):
                self._strange_frame = f"messages are in frame {given[:60]!r}, and [link] {what} = {wanted!r}"
                raise Rejected(f"not in {what} {wanted!r}")

    def _odometry(self, message: Any, arrival: float) -> Iterator[Message]:
        self._in_frames(message.header.frame_id, message.child_frame_id)
        state, std = conversion.read_odometry(message, self.config.axes)
        yield Odometry(*self._next(), self._time(message.header.stamp, arrival), state[:3], state[3:], std)

    def _fix(self, message: Any, arrival: float) -> Iterator[Message]:
        assert self._frame is not None
        x, y, std = conversion.read_fix(message, self._frame)
        yield Position(*self._next(), self._time(message.header.stamp, arrival), x, y, std)

    def _imu(self, message: Any, arrival: float) -> Iterator[Message]:
        psi, std, rate, acceleration = conversion.read_imu(message, self.config.axes)
        at = self._time(message.header.stamp, arrival)
        if rate is not None:
            yield Gyro(*self._next(), at, rate)
        if acceleration is not None:
            yield Acceleration(*self._next(), at, *acceleration)
        yield Heading(*self._next(), at, psi, std)

    def _on_switch(self, message: Any, arrival: float) -> Iterator[Message]:
        if (mode := message.data.strip().lower()) not in ("auto", "manual", "stop"):
            raise Rejected("operator: must be auto, manual or stop")
        return self._on_operator(self.config.operator, mode, arrival)

    def _on_estop(self, message: Any, arrival: float) -> Iterator[Message]:
        return self._on_operator(self.config.estop, "stop" if message.data else "auto", arrival)

    def _on_operator(self, name: str, mode: Mode, arrival: float) -> Iterator[Message]:
        topic = self.config.topic(name)
        if not self._operator.hear(topic, mode, arrival):
            self.rejected[f"{topic} was silent: set it to stop and back"] += 1
        return self._tell_mode(arrival)

    def _tell_mode(self, arrival: float) -> Iterator[Message]:
        """What the operator wants; before the first state it waits for the boat's time."""
        mode = self._operator.mode
        if mode is None or self._stamp is None:
            return
        if mode != self._told:  # the status must not be of the mode before
            self._told, self._next_status = mode, -math.inf
        yield Operator(*self._next(), self._now(arrival), mode)

    def _path(self, message: Any, arrival: float) -> Iterator[Message]:
        self._in_frames(message.header.frame_id)
        self.path = self.path or conversion.read_path(message, self.config.axes)
        yield from ()

    def _status(self, now: float) -> Status:
        command = self._published
        heard = all(self.transport.subscribers(topic) for topic in self.command_topics)
        accepted = -1 if command is None or not heard else command.seq
        stopped = not heard or self._operator.mode not in (None, "auto")
        wrench, thrusters = (0.0, 0.0, 0.0), (0.0,) * len(self._vessel.thrusters)
        if command is not None and not stopped:
            wrench, thrusters = command.wrench, command.thrusters
        whole = self.config.command == "wrench"
        at = self._now(now)
        return Status(*self._next(), at, () if whole else thrusters, stopped, accepted, None, wrench if whole else None)

    def _publish(self, command: Command) -> None:
        config = self.config
        if config.command == "wrench":
            wrench = [
                min(max(part, -1.0), 1.0) * limit
                for part, limit in zip(command.wrench, self._vessel.limits, strict=True)
            ]
            surge, sway, yaw = wrench if config.axes == "enu" else mirror_body(wrench)
            fields = {"force": {"x": surge, "y": sway}, "torque": {"z": yaw}}
            stamped = conversion.header(command.time, config.base_frame)
            self.transport.publish(self.command_topics[0], {"header": stamped, "wrench": fields})
            return
        side = 1.0 if config.axes == "enu" else -1.0
        for i, (thruster, part) in enumerate(zip(self._vessel.thrusters, command.thrusters, strict=True)):
            if config.thruster_angles and config.thruster_angles[i]:
                angle = math.remainder(side * command.angles[i], 2 * math.pi)
                self.transport.publish(config.topic(config.thruster_angles[i]), {"data": angle})
            bounded = min(max(part, -1.0), 1.0)
            value = thruster.thrust(bounded) if config.thruster_unit == "newton" else bounded
            self.transport.publish(config.topic(config.thrusters[i]), {"data": float(value)})


def command_topics(config: ROS2Config, vessel: Vessel) -> list[str]:
    """The topics of the commands; raise for thrusters that do not fit the vessel."""
    if config.command == "wrench":
        return [config.topic(config.wrench)]
    if len(config.thrusters) != len(vessel.thrusters):
        stated = f"link.thrusters: {len(config.thrusters)} topics for the {len(vessel.thrusters)} thrusters"
        raise InputError(f"{stated} of {vessel.name}: must be one for each, in the order of the file")
    return [config.topic(name) for name in (*config.thrusters, *filter(None, config.thruster_angles))]


def check_frame(config: ROS2Config, frame: LocalFrame | None) -> LocalFrame | None:
    """The local frame of fixes; raise where there is none, or another."""
    if frame is not None and frame.axes != config.axes:
        raise InputError(f"link.axes = {config.axes!r}: the mission has {frame.axes!r}; give both the same")
    frame = frame or config.local_frame()
    if frame is None and config.state == "sensors":
        raise InputError("link.origin is missing: must be [latitude, longitude] of the local frame's zero, in degrees")
    return frame
