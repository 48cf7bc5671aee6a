"""What a link between pilot and boat is: it sends messages and returns those received."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple, Protocol

from anyhull.onboard.messages import Message


class Received(NamedTuple):
    """A message and the time of its arrival."""

    message: Message
    arrival: float
    """s, in the receiver's own clock."""


class Link(Protocol):
    """One end of a connection to the peer."""

    rejected: Counter[str]
    """Datagrams rejected, and errors of the network, by reason."""

    def receive(self, timeout: float) -> list[Received]:
        """The messages received; waits up to `timeout` s for the first."""

    def send(self, message: Message) -> None:
        """Send a message or lose it; never waits, and never raises for a link that is down."""

    def close(self) -> None:
        """End the connection."""
