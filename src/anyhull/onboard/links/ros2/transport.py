"""What a transport of ROS 2 messages does for our node: publish, subscribe, and know who else is there.

To publish, a message is a dictionary of its fields, nested; fields left out are zero. A message received has its fields
as attributes, as rclpy's and rosbags' classes have. Types are written as `nav_msgs/msg/Odometry`.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

T = TypeVar("T")

QUEUE = 200
"""Messages of a topic that wait for the loop: seconds of a boat's. The oldest is dropped for a new one."""

MAX_BURST = 500
"""Messages given to the loop at once, so that a flood cannot block it."""


class Arrived(NamedTuple):
    """A message of a topic."""

    topic: str
    message: Any
    arrival: float
    """s, in the receiver's own clock."""
    source: bytes = b""
    """GID of its publisher, where the transport tells."""


class Transport(Protocol):
    """Publishes and receives on behalf of one node; topics are fully qualified."""

    rejected: Counter[str]
    """Messages rejected, and errors of the network, by reason."""

    @property
    def address(self) -> str:
        """Its own end, as a text for people."""

    def advertise(self, topic: str, kind: str, *, latched: bool = False) -> None:
        """Declare a publisher; `latched` keeps the last message for late subscribers (transient local)."""

    def publish(self, topic: str, fields: dict[str, Any]) -> None:
        """Publish on a topic that was advertised, or lose it; never waits."""

    def subscribe(self, topic: str, kind: str, *, queue: int = QUEUE, first: bool = False) -> None:
        """Declare a subscription of which `queue` messages may wait; those of `first` go before others that wait."""

    def receive(self, timeout: float) -> list[Arrived]:
        """The messages received; waits up to `timeout` s for the first."""

    def subscribers(self, topic: str) -> int:
        """How many subscriptions others have on a topic that was advertised."""

    def publishers(self, topic: str) -> int:
        """How many publishers others have on a topic."""

    def other_types(self, topic: str) -> list[str]:
        """Types with which others use a topic, where they are not ours."""

    def close(self) -> None:
        """Leave the graph."""


class Inbox(Generic[T]):
    """Messages from the transport's own thread, for the loop; each topic has a queue, and none crowds out another."""

    def __init__(self) -> None:
        self._queues: dict[str, deque[tuple[int, T]]] = {}
        self._first: list[str] = []
        self._count = 0
        self._noted: Counter[str] = Counter()
        self._ready = threading.Condition()

    def open(self, topic: str, most: int = QUEUE, *, first: bool = False) -> None:
        """Begin a queue of at most this many messages; those of `first` are given to the loop before others."""
        with self._ready:
            self._queues[topic] = deque(maxlen=most)
            self._first += [topic] if first else []

    def put(self, topic: str, item: T) -> None:
        """Add a message of a topic that has a queue; never waits."""
        with self._ready:
            queue = self._queues[topic]
            if len(queue) == queue.maxlen:
                self._noted[f"queue of {topic} full"] += 1
            self._count += 1
            queue.append((self._count, item))
            self._ready.notify()

    def note(self, reason: str) -> None:
        """Count what the transport's thread rejects; `take` adds it to the counts that the loop reads."""
        with self._ready:
            self._noted[reason] += 1

    def take(self, timeout: float, rejected: Counter[str]) -> list[T]:
        """The oldest messages, up to `MAX_BURST`; waits up to `timeout` s for the first."""
        with self._ready:
            rejected.update(self._noted)
            self._noted.clear()
            if timeout > 0 and not any(self._queues.values()):
                self._ready.wait(timeout)
            first = [self._queues[topic] for topic in self._first]
            taken: list[T] = []
            for queues in (first, list(self._queues.values())):
                while len(taken) < MAX_BURST and (waiting := [queue for queue in queues if queue]):
                    taken.append(min(waiting, key=lambda queue: queue[0][0]).popleft()[1])
            return taken
