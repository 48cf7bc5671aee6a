"""Links between pilot and boat, see docs/link.md."""

from anyhull.onboard.links.link import Link, Received
from anyhull.onboard.links.udp import UDP, open_link

__all__ = ["UDP", "Link", "Received", "open_link"]
