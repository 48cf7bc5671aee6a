"""The table `[link]` of a boat that speaks ROS 2: topics, quality of service and frames."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any, Literal

from anyhull.frames import Axes
from anyhull.mission.geodesy import LocalFrame
from anyhull.onboard.links.link import LinkConfig
from anyhull.schema import FieldError, check_types, require

NAME = re.compile(r"/?[A-Za-z_][A-Za-z0-9_]*(/[A-Za-z_][A-Za-z0-9_]*)*")
"""Of a topic; one with a leading slash is absolute, others are within the namespace."""

MAX_DOMAIN = 232
"""Largest ROS_DOMAIN_ID."""

PRESETS: dict[str, dict[str, Any]] = {
    "vrx": {
        "state": "sensors",
        "command": "thrusters",
        "namespace": "/wamv",
        "fix": "sensors/gps/gps/fix",
        "imu": "sensors/imu/imu/data",
        "thrusters": ["thrusters/left/thrust", "thrusters/right/thrust"],
        "frame_id": "",
        "base_frame": "",
    }
}
"""Fields by the name of a preset; those of the file go before them. `vrx` is the WAM-V of Virtual RobotX with its two
stern thrusters, left and right in this order. Their angles are `thrusters/left/pos` and `thrusters/right/pos`."""


@dataclass(frozen=True)
class ROS2Config(LinkConfig):
    """The table `[link]` of a boat's file with `kind = "ros2"`; an empty topic is not used."""

    kind: Literal["ros2"] = "ros2"
    state: Literal["sensors", "odometry"] = "odometry"
    """nav_msgs/Odometry, or sensor_msgs/NavSatFix and Imu for our estimator."""
    command: Literal["thrusters", "wrench"] = "wrench"
    """geometry_msgs/WrenchStamped, or a std_msgs/Float64 for each thruster."""
    preset: str = ""
    """Of topics: `vrx`, or none."""
    transport: Literal["auto", "rclpy", "zenoh"] = "auto"
    """`auto` is rclpy where it can be imported, which needs ROS 2 to be sourced, and else zenoh."""
    router: str = "tcp/localhost:7447"
    """Zenoh locator of the router (rmw_zenohd), of zenoh only."""
    domain: int | None = None
    """By default the environment's ROS_DOMAIN_ID, or 0."""
    namespace: str = "/"
    """Of our node and of topics without a leading slash."""
    node: str = "anyhull_pilot"
    """Name of our node."""
    odometry: str = "odom"
    """nav_msgs/Odometry, from the boat."""
    fix: str = "fix"
    """sensor_msgs/NavSatFix of the antenna, from the boat."""
    imu: str = "imu/data"
    """sensor_msgs/Imu with its orientation, from the boat."""
    operator: str = ""
    """std_msgs/String with the operator's switch: `auto`, `manual` or `stop`; from the boat, once a second."""
    estop: str = ""
    """std_msgs/Bool, true while the emergency stop is pressed; from the boat, once a second."""
    path: str = "path"
    """nav_msgs/Path with the waypoints of a mission, for `anyhull pilot --from-link`."""
    wrench: str = "cmd_wrench"
    """geometry_msgs/WrenchStamped in N and N·m, to the boat."""
    thrusters: tuple[str, ...] = ()
    """std_msgs/Float64 for each thruster in the order of the vessel's file, to the boat."""
    thruster_angles: tuple[str, ...] = ()
    """std_msgs/Float64 with the direction of each thruster, rad from the bow to port; empty for a fixed one."""
    thruster_unit: Literal["newton", "fraction"] = "newton"
    """Of the thrusters' topics: thrust in N, or the command in [-1, 1]."""
    reference: str = "reference"
    """nav_msgs/Path with the whole reference, by us, for late subscribers too."""
    setpoint: str = "setpoint"
    """geometry_msgs/PoseStamped with the present reference, by us."""
    diagnostics: str = "/diagnostics"
    """diagnostic_msgs/DiagnosticArray, by us, once a second."""
    dynamics: str = "dynamics"
    """std_msgs/Float64MultiArray with the controller's estimate of the dynamics, by us, once a second."""
    reliability: Literal["best_effort", "reliable"] = "best_effort"
    """Of our subscriptions; best effort receives from every publisher. What we publish is reliable."""
    depth: int = 10
    """Of the history of publishers and subscriptions."""
    axes: Axes = "enu"
    """Of the boat's file and mission: `enu` as in ROS (REP-103), or `ned`, which is converted."""
    frame_id: str = "odom"
    """Inertial frame of odometry and path; messages in another are rejected. Empty admits any."""
    base_frame: str = "base_link"
    """Body frame, at the centre of gravity. Empty admits any."""
    origin: tuple[float, float] | None = None
    """Latitude and longitude of the local frame's zero, degrees, for fixes without a geographic mission."""

    @staticmethod
    def with_preset(table: Any) -> Any:
        """The table of a boat's file, completed by its preset."""
        preset = table.get("preset", "") if isinstance(table, dict) else ""
        if preset == "" or not isinstance(preset, str):
            return table
        if preset not in PRESETS:
            raise FieldError("link.preset", preset, " or ".join(map(repr, PRESETS)))
        return PRESETS[preset] | table

    def __post_init__(self) -> None:
        check_types(self)
        for field in ("odometry", "fix", "imu", "operator", "estop", "path", "wrench"):
            require(self, field, _is_name(getattr(self, field)), "a topic such as 'odom' or '/boat/odom'")
        for field in ("reference", "setpoint", "diagnostics", "dynamics"):
            require(self, field, _is_name(getattr(self, field)), "a topic, or empty")
        for field in ("thrusters", "thruster_angles"):
            require(self, field, all(map(_is_name, getattr(self, field))), "a list of topics")
        require(self, "thrusters", all(self.thrusters), "a list of topics, none of them empty")
        needs = {"wrench": self.wrench if self.command == "wrench" else "-"}
        needs |= {"odometry": self.odometry} if self.state == "odometry" else {"fix": self.fix, "imu": self.imu}
        for field, topic in needs.items():
            require(self, field, bool(topic), "a topic")
        require(self, "thrusters", self.command == "wrench" or bool(self.thrusters), "a topic for each thruster")
        unused = self.command == "wrench" and bool(self.thrusters)
        require(self, "thrusters", not unused, "left out with command = 'wrench'")
        angles = len(self.thruster_angles)
        require(self, "thruster_angles", angles in (0, len(self.thrusters)), "as many topics as thrusters, or none")
        require(self, "namespace", self.namespace == "/" or _is_name(self.namespace), "a namespace such as '/boat'")
        require(self, "node", bool(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", self.node)), "a name without slashes")
        require(self, "domain", self.domain is None or 0 <= self.domain <= MAX_DOMAIN, f"from 0 to {MAX_DOMAIN}")
        require(self, "depth", 1 <= self.depth <= 1000, "from 1 to 1000")
        locator = re.fullmatch(r"(tcp|tls|quic|udp|ws)/[^/?#\s]+:\d+", self.router)
        fits = locator is not None and int(self.router.rpartition(":")[2]) <= 65535
        require(self, "router", fits, "a locator such as 'tcp/localhost:7447'")
        if self.origin is not None:
            require(self, "origin", abs(self.origin[0]) <= 90 and abs(self.origin[1]) <= 180, "latitude and longitude")

    @property
    def domain_id(self) -> int:
        """The ROS domain."""
        if self.domain is not None:
            return self.domain
        stated = os.environ.get("ROS_DOMAIN_ID") or "0"
        if not stated.isdecimal() or int(stated) > MAX_DOMAIN:
            raise FieldError("ROS_DOMAIN_ID", stated, f"from 0 to {MAX_DOMAIN}")
        return int(stated)

    @property
    def own_namespace(self) -> str:
        """The namespace, with a leading slash."""
        return "/" + self.namespace.strip("/")

    def topic(self, name: str) -> str:
        """The fully qualified name of a topic."""
        return name if name.startswith("/") else f"{self.own_namespace.rstrip('/')}/{name}"

    def local_frame(self) -> LocalFrame | None:
        """The local frame of `origin`."""
        return None if self.origin is None else LocalFrame(*self.origin, self.axes)


def _is_name(name: str) -> bool:
    return name == "" or NAME.fullmatch(name) is not None
