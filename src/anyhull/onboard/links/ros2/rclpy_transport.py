"""ROS 2 messages by rclpy, over whichever middleware the ROS installation has."""

from __future__ import annotations

import importlib
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from anyhull.errors import InputError
from anyhull.onboard.links.ros2.config import ROS2Config
from anyhull.onboard.links.ros2.transport import QUEUE, Arrived, Inbox


class RclpyTransport:
    """One node of rclpy in a context of its own, which a thread spins."""

    def __init__(self, config: ROS2Config, *, clock: Callable[[], float] = time.monotonic) -> None:
        try:
            import rclpy
            from rclpy.context import Context
            from rclpy.executors import SingleThreadedExecutor
            from rclpy.signals import SignalHandlerOptions
        except ImportError:
            hint = "source a ROS 2 installation, or set [link] transport = 'zenoh'"
            raise InputError(f"rclpy cannot be imported: {hint}") from None
        self.rejected: Counter[str] = Counter()
        self._config, self._clock = config, clock
        self._inbox = Inbox[Arrived]()
        self._context = Context()
        # The signals are the pilot's own: it ramps down.
        options = {"domain_id": config.domain_id, "signal_handler_options": SignalHandlerOptions.NO}
        try:
            rclpy.init(context=self._context, **options)
            self._node = rclpy.create_node(config.node, context=self._context, namespace=config.own_namespace)
        except Exception as error:  # of the middleware, by many names
            reason = " ".join(str(error).split())[:150]
            raise InputError(f"link.transport = 'rclpy': no node {config.node!r}: {reason}") from None
        self._publishers: dict[str, Any] = {}
        self._kinds: dict[str, str] = {}
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)
        self._closing = False
        self._thread = threading.Thread(target=self._spin, name="rclpy", daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """The node."""
        return f"{self._config.own_namespace.rstrip('/')}/{self._config.node} (rclpy)"

    def advertise(self, topic: str, kind: str, *, latched: bool = False) -> None:
        """Declare a publisher; `latched` keeps the last message for late subscribers."""
        profile = self._profile(best_effort=False, latched=latched)
        self._publishers[topic] = self._node.create_publisher(message_class(kind), topic, profile)
        self._kinds[topic] = kind

    def publish(self, topic: str, fields: dict[str, Any]) -> None:
        """Publish on a topic that was advertised, or lose it."""
        try:
            self._publishers[topic].publish(filled(message_class(self._kinds[topic]), fields))
        except Exception:  # of the middleware, by many names, as of a context that was shut down
            self.rejected["not sent"] += 1

    def subscribe(self, topic: str, kind: str, *, queue: int = QUEUE, first: bool = False) -> None:
        """Declare a subscription."""
        profile = self._profile(best_effort=self._config.reliability == "best_effort", most=queue)
        self._inbox.open(topic, queue, first=first)

        def on_message(message: Any) -> None:
            self._inbox.put(topic, Arrived(topic, message, self._clock()))

        self._node.create_subscription(message_class(kind), topic, on_message, profile)
        self._kinds[topic] = kind

    def receive(self, timeout: float) -> list[Arrived]:
        """The messages received; waits up to `timeout` s for the first."""
        return self._inbox.take(timeout, self.rejected)

    def subscribers(self, topic: str) -> int:
        """How many subscriptions are matched with a topic that was advertised."""
        try:
            return int(self._publishers[topic].get_subscription_count())
        except RuntimeError:  # of a context that was shut down
            return 0

    def publishers(self, topic: str) -> int:
        """How many publishers others have on a topic."""
        try:
            return int(self._node.count_publishers(topic)) - (topic in self._publishers)
        except RuntimeError:
            return 0

    def other_types(self, topic: str) -> list[str]:
        """Types with which others use a topic, where they are not ours."""
        try:
            ends = self._node.get_publishers_info_by_topic(topic) + self._node.get_subscriptions_info_by_topic(topic)
        except RuntimeError:
            return []
        return sorted({end.topic_type for end in ends} - {self._kinds[topic]})

    def close(self) -> None:
        """Leave the graph."""
        self._closing = True
        self._thread.join(1.0)
        self._executor.shutdown(timeout_sec=1.0)
        self._node.destroy_node()
        self._context.try_shutdown()

    def _spin(self) -> None:
        while not self._closing and self._context.ok():
            try:
                self._executor.spin_once(timeout_sec=0.1)
            except Exception as error:  # of one message; the next is received
                if not self._closing:
                    self._inbox.note(f"rclpy: {type(error).__name__}")
                    time.sleep(0.001)

    def _profile(self, *, best_effort: bool, latched: bool = False, most: int = QUEUE) -> Any:
        from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

        return QoSProfile(
            history=HistoryPolicy.KEEP_LAST,
            depth=1 if latched else min(self._config.depth, most),
            reliability=ReliabilityPolicy.BEST_EFFORT if best_effort else ReliabilityPolicy.RELIABLE,
            durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
        )


def message_class(kind: str) -> Any:
    """The class of a type such as `nav_msgs/msg/Odometry`."""
    package, folder, name = kind.split("/")
    try:
        return getattr(importlib.import_module(f"{package}.{folder}"), name)
    except (ImportError, AttributeError):
        raise InputError(f"{kind} cannot be imported: install the ROS 2 package {package}") from None


def filled(kind: Any, fields: dict[str, Any]) -> Any:
    """A message of a generated class with these fields; those left out keep their default."""
    message = kind()
    types = kind.get_fields_and_field_types()
    for name, value in fields.items():
        default = getattr(message, name)
        if isinstance(value, dict):
            value = filled(type(default), value)
        elif isinstance(value, list | tuple) and value and isinstance(value[0], dict):
            package, _, element = types[name].removeprefix("sequence<").partition(">")[0].partition("/")
            element_class = message_class(f"{package}/msg/{element}")
            value = [filled(element_class, item) for item in value]
        elif isinstance(default, bytes):  # a byte, as the level of a diagnostic status
            value = bytes([value])
        setattr(message, name, value)
    return message
