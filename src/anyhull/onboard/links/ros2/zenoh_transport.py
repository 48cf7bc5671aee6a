"""ROS 2 messages over zenoh as rmw_zenoh sends them, without a ROS installation."""

from __future__ import annotations

import json
import os
import socket
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from anyhull.errors import InputError
from anyhull.onboard.links.ros2 import zenoh_dialect as dialect
from anyhull.onboard.links.ros2.cdr import BadCDR, decode, encode, most_bytes, type_hash
from anyhull.onboard.links.ros2.config import ROS2Config
from anyhull.onboard.links.ros2.transport import QUEUE, Arrived, Inbox

MAX_TOKENS = 4096
"""Publishers and subscriptions of others that are remembered."""

LONGEST_TOKEN = 1000
"""Characters of one that is remembered."""

MAX_ATTACHMENT = 100
"""Bytes of an attachment that are kept; it has 33."""

FIRST_NUMBER = 10
"""Of our publishers and subscriptions; those before are the node's own."""

ANSWER_TIME = 0.3
"""Time in which a router must answer, s."""

HEARTBEAT = 0.5
"""Period in which a latched publisher tells the number of its last message, s, as rmw_zenoh's."""


class _Raw(NamedTuple):
    topic: str
    kind: str
    content: bytes
    attachment: bytes
    arrival: float


class _Publisher(NamedTuple):
    kind: str
    put: Callable[..., None]
    gid: bytes
    sequence: list[int]


class ZenohTransport:
    """One ROS 2 node in one zenoh session."""

    def __init__(self, config: ROS2Config, *, route: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        """With `route` it takes the router's place where none answers."""
        try:
            import zenoh
            import zenoh.ext
        except ImportError:
            raise InputError("zenoh is not installed: pip install 'anyhull[ros2]'") from None
        self.rejected: Counter[str] = Counter()
        self._zenoh, self._config, self._clock = zenoh, config, clock
        self._routes = route and not _answers(config.router)
        try:
            self._session = zenoh.open(_settings(zenoh, config.router, self._routes))
        except zenoh.ZError as error:
            reason = " ".join(str(error).split())[:150]
            raise InputError(f"link.router = {config.router!r}: zenoh cannot open a session: {reason}") from None
        self._inbox = Inbox[_Raw]()
        self._graph = dialect.Graph(config.domain_id, str(self._session.info.zid()), config.own_namespace, config.node)
        self._number = FIRST_NUMBER
        self._publishers: dict[str, _Publisher] = {}
        self._kinds: dict[str, str] = {}
        self._others: dict[str, dialect.Endpoint] = {}
        self._declared: list[Any] = [self._session.liveliness().declare_token(self._graph.node_token())]
        watch = self._session.liveliness().declare_subscriber
        self._declared.append(watch(self._graph.watched(), self._on_token, history=True))

    @property
    def address(self) -> str:
        """The node and its router."""
        where = f"a router at {self._config.router}" if self._routes else f"router {self._config.router}"
        return f"{self._config.own_namespace.rstrip('/')}/{self._config.node} (zenoh, {where})"

    def advertise(self, topic: str, kind: str, *, latched: bool = False) -> None:
        """Declare a publisher; `latched` keeps the last message for late subscribers."""
        encode(kind, {})  # compiles its code, which takes longer than a period
        zenoh, key = self._zenoh, self._graph.key(topic, kind, type_hash(kind))
        drop = {"congestion_control": zenoh.CongestionControl.DROP, "reliability": zenoh.Reliability.RELIABLE}
        if latched:
            ext = zenoh.ext
            keeps = {"cache": ext.CacheConfig(max_samples=1), "publisher_detection": True}
            keeps["sample_miss_detection"] = ext.MissDetectionConfig(heartbeat=None, sporadic_heartbeat=HEARTBEAT)
            publisher = ext.declare_advanced_publisher(self._session, key, **drop, **keeps)
        else:
            publisher = self._session.declare_publisher(key, **drop)
        depth = 1 if latched else self._config.depth
        self._declare("MP", topic, kind, dialect.qos(depth, latched=latched), publisher)
        self._publishers[topic] = _Publisher(kind, publisher.put, os.urandom(dialect.GID), [0])

    def publish(self, topic: str, fields: dict[str, Any]) -> None:
        """Publish on a topic that was advertised, or lose it."""
        kind, put, gid, sequence = self._publishers[topic]
        sequence[0] += 1
        attachment = dialect.Attachment(sequence[0], time.time_ns(), gid)
        try:
            put(encode(kind, fields), attachment=attachment.encode())
        except self._zenoh.ZError:
            self.rejected["not sent"] += 1

    def subscribe(self, topic: str, kind: str, *, queue: int = QUEUE, first: bool = False) -> None:
        """Declare a subscription."""
        decode(kind, encode(kind, {}))
        self._inbox.open(topic, queue, first=first)
        clock, inbox, most = self._clock, self._inbox, most_bytes(kind)

        def on_sample(sample: Any) -> None:
            if len(sample.payload) > most:
                inbox.note("too long")
                return
            content, attached = sample.payload.to_bytes(), sample.attachment
            known = attached.to_bytes()[:MAX_ATTACHMENT] if attached else b""
            inbox.put(topic, _Raw(topic, kind, content, known, clock()))

        subscriber = self._session.declare_subscriber(self._graph.key(topic, kind, type_hash(kind)), on_sample)
        best_effort = self._config.reliability == "best_effort"
        self._declare(
            "MS", topic, kind, dialect.qos(min(self._config.depth, queue), best_effort=best_effort), subscriber
        )

    def receive(self, timeout: float) -> list[Arrived]:
        """The messages received; waits up to `timeout` s for the first."""
        arrived = []
        for topic, kind, content, attachment, arrival in self._inbox.take(timeout, self.rejected):
            known = dialect.Attachment.decode(attachment)
            try:
                arrived.append(Arrived(topic, decode(kind, content), arrival, b"" if known is None else known.gid))
            except BadCDR as bad:
                self.rejected[str(bad)] += 1
        return arrived

    def subscribers(self, topic: str) -> int:
        """How many subscriptions others have on a topic that was advertised."""
        return self._count("MS", topic)

    def publishers(self, topic: str) -> int:
        """How many publishers others have on a topic."""
        return self._count("MP", topic)

    def other_types(self, topic: str) -> list[str]:
        """Types with which others use a topic, where they are not ours; one that is ours by name differs by hash."""
        own = self._kinds[topic]
        others = {
            end.type for end in self._ends() if end.topic == topic and (end.type, end.hash) != (own, type_hash(own))
        }
        return sorted(others)

    def close(self) -> None:
        """Leave the graph."""
        try:
            self._session.close()  # type: ignore[no-untyped-call]
        except self._zenoh.ZError:
            self.rejected["not closed"] += 1

    def _declare(self, entity: dialect.Kind, topic: str, kind: str, qos: str, declared: Any) -> None:
        token = self._graph.token(self._number, entity, topic, kind, type_hash(kind), qos)
        self._declared += [declared, self._session.liveliness().declare_token(token)]
        self._number += 1
        self._kinds[topic] = kind

    def _on_token(self, sample: Any) -> None:
        token = str(sample.key_expr)
        if sample.kind != self._zenoh.SampleKind.PUT:
            self._others.pop(token, None)
        elif len(self._others) < MAX_TOKENS and len(token) <= LONGEST_TOKEN:
            end = dialect.endpoint(token)
            if end is not None and end.session != self._graph.session:
                self._others[token] = end

    def _ends(self) -> list[dialect.Endpoint]:
        return list(self._others.copy().values())

    def _count(self, entity: str, topic: str) -> int:
        kind = self._kinds[topic]
        wanted = (entity, topic, kind, type_hash(kind))
        return sum(end[1:] == wanted for end in self._ends())


def _settings(zenoh: Any, router: str, routes: bool) -> Any:
    """The session's settings, as in rmw_zenoh's default: a peer of the router, which tells the other peers of it."""
    settings = zenoh.Config()
    for key, value in {
        "mode": "router" if routes else "peer",
        "listen/endpoints": [router] if routes else ["tcp/localhost:0"],
        "connect/endpoints": [] if routes else [router],
        "connect/timeout_ms": -1,
        "connect/exit_on_failure": False,
        "scouting/multicast/enabled": False,
        "scouting/gossip/enabled": True,
        "timestamping/enabled": True,  # of latched messages
    }.items():
        settings.insert_json5(key, json.dumps(value))
    return settings


def _answers(router: str) -> bool:
    """Whether something listens at a locator."""
    host, _, port = router.partition("/")[2].rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), ANSWER_TIME).close()
    except (OSError, OverflowError):
        return False
    return True
