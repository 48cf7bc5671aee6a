"""What a link between pilot and boat is: it sends messages and returns those received."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

from anyhull.onboard.messages import Message


@dataclass(frozen=True)
class LinkConfig:
    """What the table `[link]` of a boat's file states for every kind of link."""

    kind: str = ""
    """`udp`, `mavlink` or `ros2`."""
    state: Literal["sensors", "odometry"] = "sensors"
    """What the boat sends: its sensors' measurements, for our estimator, or a finished estimate."""
    command: Literal["thrusters", "wrench"] = "thrusters"
    """What it takes: commands of our allocation for each thruster, or a body wrench, which it allocates itself."""


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


class ConfiguredLink(Link, Protocol):
    """A link of a boat's file, with what an operator wants to know of it."""

    @property
    def address(self) -> Any:
        """Its own end, as a text for people."""

    @property
    def peer(self) -> Any:
        """The other end, as a text for people."""

    def unready(self) -> str:
        """Why the boat must not start yet, or empty."""

    def hint(self) -> str:
        """What to look at while nothing is heard from the peer."""
