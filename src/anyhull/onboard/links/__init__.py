"""Links between pilot and boat, see docs/link.md."""

from anyhull.onboard.links.link import ConfiguredLink, Link, LinkConfig, Received
from anyhull.onboard.links.opening import open_link
from anyhull.onboard.links.udp import UDP

__all__ = ["UDP", "ConfiguredLink", "Link", "LinkConfig", "Received", "open_link"]
