"""The boat's end of the link in a boat's file, for the twin."""

from __future__ import annotations

from anyhull.onboard.links import ConfiguredLink, LinkConfig, open_link
from anyhull.onboard.links.mavlink.config import MAVLinkConfig
from anyhull.onboard.links.ros2 import ROS2Config
from anyhull.vessel import Vessel


def open_boat_end(
    config: LinkConfig, vessel: Vessel, listen: str | None = None, peer: str | None = None
) -> ConfiguredLink:
    """What the pilot's link connects to; `listen` and `peer` replace the addresses, of UDP only."""
    if isinstance(config, MAVLinkConfig) and listen is None and peer is None:
        from anyhull.twin.ardupilot import open_ardupilot

        return open_ardupilot(config)
    if isinstance(config, ROS2Config):
        from anyhull.twin.ros2_boat import open_boat

        return open_boat(config, vessel, listen or peer)
    return open_link(config, "boat", listen, peer)
