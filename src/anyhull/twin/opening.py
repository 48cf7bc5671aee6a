"""The boat's end of the link in a boat's file, for the twin."""

from __future__ import annotations

from anyhull.onboard.links import ConfiguredLink, LinkConfig, open_link
from anyhull.onboard.links.mavlink.config import MAVLinkConfig


def open_boat_end(config: LinkConfig, listen: str | None = None, peer: str | None = None) -> ConfiguredLink:
    """What the pilot's link connects to; `listen` and `peer` replace the addresses, of UDP only."""
    if isinstance(config, MAVLinkConfig) and listen is None and peer is None:
        from anyhull.twin.ardupilot import open_ardupilot

        return open_ardupilot(config)
    return open_link(config, "boat", listen, peer)
