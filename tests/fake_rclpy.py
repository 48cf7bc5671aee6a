"""A small stand-in for rclpy and generated message classes, strict where the real ones are.

It follows rclpy's documented interface and shows nothing about a real installation.
"""

from __future__ import annotations

import queue
import sys
from enum import Enum
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from anyhull.onboard.links.ros2.cdr import typestore

BUS: list[FakeNode] = []
"""Nodes of all contexts."""

PLAIN = {"float64": float, "float32": float, "string": str, "bool": bool}


class Context:
    def __init__(self):
        self._ok = False

    def ok(self):
        return self._ok

    def try_shutdown(self):
        self._ok = False


class RCLError(RuntimeError):
    pass


class FakePublisher:
    def __init__(self, node, kind, topic, profile):
        self.node, self.kind, self.topic, self.profile = node, kind, topic, profile

    def publish(self, message):
        assert type(message) is self.kind
        if not self.node.context.ok():
            raise RCLError("context is not valid")
        for subscription in self._matched():
            subscription.node.waiting.put((subscription.callback, message))

    def get_subscription_count(self):
        return len(self._matched())

    def _matched(self):
        return [s for node in BUS for s in node.subscriptions_ if s.topic == self.topic and s.kind is self.kind]


class FakeNode:
    def __init__(self, name, context, namespace):
        self.name, self.context, self.namespace = name, context, namespace
        self.publishers_, self.subscriptions_ = [], []
        self.waiting: queue.Queue[Any] = queue.Queue()
        BUS.append(self)

    def create_publisher(self, kind, topic, profile):
        self.publishers_.append(FakePublisher(self, kind, topic, profile))
        return self.publishers_[-1]

    def create_subscription(self, kind, topic, callback, profile):
        self.subscriptions_.append(
            SimpleNamespace(node=self, kind=kind, topic=topic, callback=callback, profile=profile)
        )
        return self.subscriptions_[-1]

    def count_publishers(self, topic):
        return sum(p.topic == topic for node in BUS for p in node.publishers_)

    def get_publishers_info_by_topic(self, topic):
        ends = [p for node in BUS for p in node.publishers_ if p.topic == topic]
        return [SimpleNamespace(topic_type=p.kind.type_name) for p in ends]

    def get_subscriptions_info_by_topic(self, topic):
        ends = [s for node in BUS for s in node.subscriptions_ if s.topic == topic]
        return [SimpleNamespace(topic_type=s.kind.type_name) for s in ends]

    def destroy_node(self):
        BUS.remove(self)


class SingleThreadedExecutor:
    def __init__(self, *, context):
        self.context, self.nodes = context, []

    def add_node(self, node):
        self.nodes.append(node)

    def spin_once(self, timeout_sec=None):
        try:
            callback, message = self.nodes[0].waiting.get(timeout=timeout_sec)
        except queue.Empty:
            return
        callback(message)

    def shutdown(self, timeout_sec=None):
        return True


class SignalHandlerOptions(Enum):
    ALL = 3
    NO = 0


class QoSProfile:
    def __init__(self, *, history, depth, reliability, durability):
        self.history, self.depth, self.reliability, self.durability = history, depth, reliability, durability


def _message_class(kind):
    """A class as rosidl generates it: fields with defaults, and setters that check types."""
    fields = dict(typestore().fielddefs[kind][1])

    def __init__(self):
        for name, (node, about) in fields.items():
            object.__setattr__(self, name, _default(node, about))

    def __setattr__(self, name, value):
        node, about = fields[name]
        _check(node, about, value)
        object.__setattr__(self, name, value)

    def get_fields_and_field_types(cls):
        return {name: _written(*entry) for name, entry in fields.items()}

    members = {"__init__": __init__, "__setattr__": __setattr__, "type_name": kind}
    members["get_fields_and_field_types"] = classmethod(get_fields_and_field_types)
    return type(kind.rpartition("/")[2], (), members)


_CLASSES: dict[str, type] = {}


def message_class(kind):
    if kind not in _CLASSES:
        _CLASSES[kind] = _message_class(kind)
    return _CLASSES[kind]


def _default(node, about):
    if node.name == "NAME":
        return message_class(about)()
    if node.name == "BASE":
        return {"string": "", "bool": False, "byte": b"\0", "octet": b"\0"}.get(
            about[0], 0.0 if "float" in about[0] else 0
        )
    return np.zeros(about[1]) if node.name == "ARRAY" else []


def _check(node, about, value):
    if node.name == "NAME":
        assert type(value) is message_class(about), about
    elif node.name == "BASE" and about[0] in ("byte", "octet"):
        assert type(value) is bytes
        assert len(value) == 1
    elif node.name == "BASE":
        assert type(value) is PLAIN.get(about[0], int), (about, value)
    else:
        element, length = about
        assert isinstance(value, list | np.ndarray)
        assert node.name != "ARRAY" or len(value) == length
        for item in value if isinstance(value, list) else ():
            _check(element[0], element[1], item)


def _written(node, about):
    if node.name == "NAME":
        return about.replace("/msg/", "/")
    if node.name == "BASE":
        return {"float64": "double", "float32": "float", "bool": "boolean", "byte": "octet"}.get(about[0], about[0])
    element = _written(*about[0])
    return f"{element}[{about[1]}]" if node.name == "ARRAY" else f"sequence<{element}>"


def install(monkeypatch):
    """Put the stand-ins into `sys.modules` for the duration of a test."""
    BUS.clear()

    def init(*, context, domain_id, signal_handler_options):
        assert signal_handler_options is SignalHandlerOptions.NO
        context.domain_id, context._ok = domain_id, True

    modules: dict[str, dict[str, Any]] = {
        "rclpy": {"init": init, "create_node": lambda name, *, context, namespace: FakeNode(name, context, namespace)},
        "rclpy.context": {"Context": Context},
        "rclpy.executors": {"SingleThreadedExecutor": SingleThreadedExecutor},
        "rclpy.signals": {"SignalHandlerOptions": SignalHandlerOptions},
        "rclpy.qos": {
            "QoSProfile": QoSProfile,
            "DurabilityPolicy": Enum("DurabilityPolicy", "TRANSIENT_LOCAL VOLATILE"),
            "HistoryPolicy": Enum("HistoryPolicy", "KEEP_LAST KEEP_ALL"),
            "ReliabilityPolicy": Enum("ReliabilityPolicy", "RELIABLE BEST_EFFORT"),
        },
    }
    for kind in typestore().fielddefs:
        package, folder, name = kind.split("/")
        if package in ("std_msgs", "nav_msgs", "geometry_msgs", "sensor_msgs", "diagnostic_msgs"):
            modules.setdefault(package, {})
            modules.setdefault(f"{package}.{folder}", {})[name] = message_class(kind)
    for name, members in modules.items():
        module = ModuleType(name)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)
