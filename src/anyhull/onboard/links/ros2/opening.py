"""Which transport carries the link to a ROS 2 boat."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from anyhull.errors import InputError
from anyhull.mission.geodesy import LocalFrame
from anyhull.onboard.links.link import ConfiguredLink
from anyhull.onboard.links.ros2.config import ROS2Config
from anyhull.vessel import Vessel

if TYPE_CHECKING:
    from anyhull.onboard.links.ros2.transport import Transport


def open_ros2(config: ROS2Config, vessel: Vessel | None, frame: LocalFrame | None) -> ConfiguredLink:
    """The pilot's end of the link."""
    if vessel is None:
        raise InputError("link.kind = 'ros2': needs a vessel, for its limits and thrusters")
    from anyhull.onboard.links.ros2.node import ROS2Link, check_frame, command_topics

    check_frame(config, frame)  # before the session is opened
    command_topics(config, vessel)
    return ROS2Link(config, open_transport(config), vessel, frame)


def open_transport(config: ROS2Config, *, route: bool = False) -> Transport:
    """The transport of a link; with `route` zenoh takes the router's place where none answers."""
    wanted = config.transport
    if wanted == "auto":
        wanted = "rclpy" if importlib.util.find_spec("rclpy") else "zenoh"
    if wanted == "rclpy":
        from anyhull.onboard.links.ros2.rclpy_transport import RclpyTransport

        return RclpyTransport(config)
    from anyhull.onboard.links.ros2.zenoh_transport import ZenohTransport

    return ZenohTransport(config, route=route)
