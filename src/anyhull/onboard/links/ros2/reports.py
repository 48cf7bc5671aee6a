"""What our node publishes beside its commands: reference, setpoint, diagnostics and the estimate of the dynamics."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from anyhull.onboard.links.ros2 import conversion
from anyhull.onboard.links.ros2.config import ROS2Config
from anyhull.onboard.links.ros2.conversion import Fields
from anyhull.onboard.links.ros2.transport import Transport

if TYPE_CHECKING:
    from anyhull.onboard.step_record import StepRecord
    from anyhull.reference import Reference

PERIOD = 1.0
"""Time between two reports, s."""

MOST_POINTS = 500
"""Of the reference as a path."""

LEVELS = {"run": 0, "hold": 1, "ramp": 1, "failsafe": 2, "handover": 2}
"""Level of a diagnostic status by the guard's reaction: ok, warning, error."""


class Reports:
    """Publishes once a second, and the reference once."""

    def __init__(self, config: ROS2Config, transport: Transport) -> None:
        self._config, self._transport = config, transport
        self._next = -math.inf
        self._reference: Reference | None = None
        for topic, kind, latched in (
            (config.reference, "nav_msgs/msg/Path", True),
            (config.setpoint, "geometry_msgs/msg/PoseStamped", False),
            (config.diagnostics, "diagnostic_msgs/msg/DiagnosticArray", False),
            (config.dynamics, "std_msgs/msg/Float64MultiArray", False),
        ):
            if topic:
                transport.advertise(config.topic(topic), kind, latched=latched)

    def publish(self, step: StepRecord, reference: Reference, age: float, rejected: int) -> None:
        """Publish what is due in a period; `age` is that of the last state, s."""
        config = self._config
        stamped = conversion.header(step.time, config.frame_id)
        if config.reference and reference is not self._reference:
            self._reference = reference
            self._send(config.reference, path_fields(reference, stamped, config))
        if config.setpoint:
            pose = conversion.pose_fields(step.reference[:3].tolist(), config.axes)
            self._send(config.setpoint, {"header": stamped, "pose": pose})
        if abs(step.time - self._next) < PERIOD and step.time < self._next:
            return
        self._next = step.time + PERIOD
        if config.diagnostics:
            self._send(config.diagnostics, _diagnostics(step, config.node, stamped, age, rejected))
        if config.dynamics and step.dynamics is not None:
            self._send(config.dynamics, _dynamics(step.dynamics.tolist()))

    def _send(self, topic: str, fields: Fields) -> None:
        self._transport.publish(self._config.topic(topic), fields)


def path_fields(reference: Reference, header: Fields, config: ROS2Config) -> Fields:
    """nav_msgs/Path of a whole reference."""
    count = min(MOST_POINTS, max(2, math.ceil(reference.duration) + 1))
    states = reference.at(np.linspace(0.0, reference.duration, count))
    poses = [conversion.pose_fields(pose, config.axes) for pose in states[:, :3].tolist()]
    return {"header": header, "poses": [{"header": header, "pose": pose} for pose in poses]}


def _diagnostics(step: StepRecord, node: str, header: Fields, age: float, rejected: int) -> Fields:
    decision, estimate = step.decision, step.estimate
    away = math.dist(estimate.pose[:2], step.reference[:2])
    values = {
        "reaction": decision.reaction,
        "reason": decision.reason,
        "phase": step.phase,
        "progress_s": f"{step.progress:.1f}",
        "estimator": estimate.health,
        "estimator_reason": estimate.reason,
        "position_error_m": f"{away:.3f}",
        "state_age_s": f"{age:.3f}",
        "compute_time_s": f"{step.compute_time:.4f}",
        "rejected": str(rejected),
    }
    status = {
        "level": LEVELS.get(decision.reaction, 1),
        "name": f"{node}: guard",
        "message": decision.reason or decision.reaction,
        "hardware_id": node,
        "values": [{"key": key, "value": str(value)[:200]} for key, value in values.items()],
    }
    return {"header": header | {"frame_id": ""}, "status": [status]}


def _dynamics(components: list[float]) -> Fields:
    """std_msgs/Float64MultiArray with two rows: the estimates, and their spreads."""
    count = len(components) // 2
    rows = {"label": "estimate, spread", "size": 2, "stride": 2 * count}
    columns = {"label": "component", "size": count, "stride": count}
    return {"layout": {"dim": [rows, columns]}, "data": [float(value) for value in components]}
