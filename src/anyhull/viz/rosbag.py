"""A run as a ROS 2 bag of standard messages, in the axes of REP-103: x east, y north, body y to port. Needs rosbags.

Storage is MCAP, metadata version 9: what `ros2 bag` of ROS 2 Jazzy writes and plays by default.
"""

from __future__ import annotations

import math
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from anyhull.backend import Array
from anyhull.errors import InputError
from anyhull.frames import quaternion_of
from anyhull.log import Log
from anyhull.viz.facts import Entry, Facts, Nanoseconds, events_of, facts_of, stamps
from anyhull.viz.topics import PATH_POINTS, WARNINGS

LOCAL, BOAT = "odom", "base_link"
"""Frames, by the names of REP-105."""

VERSION = 9
"""Of the bag's metadata."""

UNKNOWN = -1.0
"""First covariance of what an Imu message does not hold, by its definition."""


def import_rosbags() -> tuple[Any, Any]:
    """rosbags' bag format and the types of ROS 2 Jazzy, or one line that says how to install them."""
    try:
        from rosbags import rosbag2
        from rosbags.typesys import Stores, get_typestore
    except ImportError:
        raise InputError("rosbags is not installed: pip install 'anyhull[ros2]'") from None
    return rosbag2, get_typestore(Stores.ROS2_JAZZY)


def check_bag(path: Path) -> None:
    """Raise unless `path` is a new folder and rosbags is there."""
    if path.exists():
        raise InputError(f"{path}: exists: a bag must be a new folder")
    import_rosbags()


def write_bag(log: Log, path: str | Path) -> Path:
    """Write a run to a new folder, which appears when it is complete."""
    path = Path(path)
    check_bag(path)
    (rosbag2, store), facts, (times, kind) = import_rosbags(), facts_of(log.about), stamps(log)
    events, messages = events_of(log, times), _Messages(store, facts)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Within it the bag has its final name, after which its file is called.
        folder = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}; give a path you may write to") from None
    try:
        writer = rosbag2.Writer(folder / path.name, version=VERSION, storage_plugin=rosbag2.StoragePlugin.MCAP)
        writer.set_custom_data("log_time", "since 1970 UTC" if kind == "epoch" else "since the start of the run")
        writer.set_custom_data("command", "N, N and N m" if facts.limits else "fractions of the limits")
        with writer:
            connections: dict[str, Any] = {}

            def send(topic: str, time: int, message: Any) -> None:
                name = message.__msgtype__
                if topic not in connections:
                    connections[topic] = writer.add_connection(topic, name, typestore=store)
                writer.write(connections[topic], time, store.serialize_cdr(message, name))

            _write(send, messages, log, times, events)
        if path.exists():
            raise InputError(f"{path}: exists: a bag must be a new folder")
        os.rename(folder / path.name, path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return path


def _write(
    send: Callable[[str, int, Any], None], make: _Messages, log: Log, times: Nanoseconds, events: list[Entry]
) -> None:
    facts, start = make.facts, int(times[0])
    if facts.reference:
        some = log.reference[:: math.ceil(len(log.time) / PATH_POINTS)]
        send("/reference_path", start, make.path(start, some))
    known = log.estimated.state
    fixed = log.sensors is not None and bool(np.isfinite(log.sensors[:, 1]).any())
    waiting = events[::-1]
    for i, time in enumerate(times.tolist()):
        while waiting and waiting[-1].time <= time:
            send("/events", waiting[-1].time, make.event(waiting.pop()))
        send("/odom", time, make.odometry(time, known[i]))
        send("/tf", time, make.transform(time, known[i]))
        if log.estimate is not None:
            send("/ground_truth", time, make.odometry(time, log.state[i]))
        if facts.reference:
            send("/reference", time, make.pose_stamped(time, log.reference[i]))
        send("/command", time, make.wrench(time, log.command[i]))
        for k, value in enumerate([] if log.thrusters is None else log.thrusters[i].tolist()):
            send(f"/thruster_{k}/command", time, make.number(value))
        for k, value in enumerate([] if log.angles is None else log.angles[i].tolist()):
            send(f"/thruster_{k}/angle", time, make.number(-value if facts.mirrored else value))
        if log.sensors is not None and np.isfinite(log.sensors[i, 4:]).any():
            send("/imu", time, make.imu(time, log.sensors[i]))
        if facts.frame is not None and not fixed:
            send("/fix", time, make.fix(time, log.state[i, :2], math.nan))
        elif facts.frame is not None and log.sensors is not None and np.isfinite(log.sensors[i, 1:3]).all():
            send("/fix", time, make.fix(time, log.sensors[i, 1:3], float(log.sensors[i, 3])))
    for entry in reversed(waiting):
        send("/events", entry.time, make.event(entry))


class _Messages:
    """Standard messages from rows of a log."""

    def __init__(self, store: Any, facts: Facts) -> None:
        self._types, self.facts = store.types, facts
        self._no_covariance = np.zeros(36)

    def odometry(self, time: int, state: Array) -> Any:
        u, v, r = self.facts.body(state[3:])
        twist = self._make("geometry_msgs/msg/Twist", self._vector(u, v), self._vector(0.0, 0.0, r))
        pose = self._make("geometry_msgs/msg/PoseWithCovariance", self._pose(state), self._no_covariance)
        speed = self._make("geometry_msgs/msg/TwistWithCovariance", twist, self._no_covariance)
        return self._make("nav_msgs/msg/Odometry", self._header(time, LOCAL), BOAT, pose, speed)

    def transform(self, time: int, state: Array) -> Any:
        x, y, psi = self.facts.pose(state)
        placed = self._make("geometry_msgs/msg/Transform", self._vector(x, y), self._quaternion(psi))
        stamped = self._make("geometry_msgs/msg/TransformStamped", self._header(time, LOCAL), BOAT, placed)
        return self._make("tf2_msgs/msg/TFMessage", [stamped])

    def pose_stamped(self, time: int, state: Array) -> Any:
        return self._make("geometry_msgs/msg/PoseStamped", self._header(time, LOCAL), self._pose(state))

    def path(self, time: int, states: Array) -> Any:
        poses = [self.pose_stamped(time, state) for state in states]
        return self._make("nav_msgs/msg/Path", self._header(time, LOCAL), poses)

    def wrench(self, time: int, command: Array) -> Any:
        surge, sway, yaw = self.facts.body(command * np.array(self.facts.limits or (1.0, 1.0, 1.0)))
        wrench = self._make("geometry_msgs/msg/Wrench", self._vector(surge, sway), self._vector(0.0, 0.0, yaw))
        return self._make("geometry_msgs/msg/WrenchStamped", self._header(time, BOAT), wrench)

    def number(self, value: float) -> Any:
        return self._make("std_msgs/msg/Float64", value)

    def imu(self, time: int, sensors: Array) -> Any:
        heading, rate, ax, ay = sensors[4:].tolist()
        _, _, psi = self.facts.pose(np.array([0.0, 0.0, heading]))
        ax, ay, rate = self.facts.body(np.array([ax, ay, rate]))
        known = [math.isfinite(value) for value in (psi, rate, ax + ay)]
        first, second, third = (np.array([0.0 if is_known else UNKNOWN, *[0.0] * 8]) for is_known in known)
        return self._make(
            "sensor_msgs/msg/Imu",
            self._header(time, BOAT),
            self._quaternion(psi if known[0] else 0.0),
            first,
            self._vector(0.0, 0.0, rate if known[1] else 0.0),
            second,
            self._vector(ax, ay) if known[2] else self._vector(0.0, 0.0),
            third,
        )

    def fix(self, time: int, place: Array, std: float) -> Any:
        assert self.facts.frame is not None
        latitude, longitude = self.facts.frame.to_geographic(*place.tolist())
        known = math.isfinite(std)
        covariance = np.diag([std**2, std**2, 0.0]).ravel() if known else np.zeros(9)
        status = self._make("sensor_msgs/msg/NavSatStatus", 0, 0)
        kind = 1 if known else 0  # approximated, unknown
        header = self._header(time, BOAT)
        return self._make("sensor_msgs/msg/NavSatFix", header, status, latitude, longitude, 0.0, covariance, kind)

    def event(self, entry: Entry) -> Any:
        warns = entry.what == "reaction" and entry.detail.split(":")[0] in WARNINGS
        text = f"{entry.what}: {entry.detail}" if entry.detail else entry.what
        level = 30 if warns else 20  # WARN, INFO
        return self._make("rcl_interfaces/msg/Log", self._time(entry.time), level, "anyhull", text, "", "", 0)

    def _pose(self, state: Array) -> Any:
        x, y, psi = self.facts.pose(state)
        point = self._make("geometry_msgs/msg/Point", x, y, 0.0)
        return self._make("geometry_msgs/msg/Pose", point, self._quaternion(psi))

    def _quaternion(self, psi: float) -> Any:
        w, x, y, z = quaternion_of(psi)
        return self._make("geometry_msgs/msg/Quaternion", x, y, z, w)

    def _vector(self, x: float, y: float, z: float = 0.0) -> Any:
        return self._make("geometry_msgs/msg/Vector3", x, y, z)

    def _header(self, time: int, frame: str) -> Any:
        return self._make("std_msgs/msg/Header", self._time(time), frame)

    def _time(self, time: int) -> Any:
        return self._make("builtin_interfaces/msg/Time", *divmod(time, 10**9))

    def _make(self, name: str, *fields: Any) -> Any:
        return self._types[name](*fields)
