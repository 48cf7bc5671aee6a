"""One period of a run as messages in Foxglove's well-known schemas. Needs foxglove-sdk.

`TOPICS` is the contract with the layout file and with docs/logs.md.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from anyhull.backend import Array, wrap
from anyhull.errors import InputError
from anyhull.frames import quaternion_of
from anyhull.hydrodynamics import Normalized
from anyhull.viz.captions import SYMBOLS
from anyhull.viz.facts import Entry, Facts, finite
from anyhull.viz.plots import hull_outline

TOPICS = {
    "/pose": "PoseInFrame",
    "/estimate": "PoseInFrame",
    "/reference": "PoseInFrame",
    "/path": "PosesInFrame",
    "/reference_path": "PosesInFrame",
    "/tf": "FrameTransforms",
    "/gps": "LocationFix",
    "/hull": "SceneUpdate",
    "/forces": "SceneUpdate",
    "/events": "Log",
}
"""Topics with a schema of Foxglove's, by its name."""

SENSORS = ("fix_time", "fix_x", "fix_y", "fix_std", "heading", "gyro", "acceleration_x", "acceleration_y")
"""Names of `anyhull.log.SENSORS` in a message."""

NUMBERS = {
    "/command": ("fractions of the limits; body frame of the boat's file", ("surge", "sway", "yaw")),
    "/velocity": ("m/s, m/s, rad/s; body frame of the boat's file", ("u", "v", "r", "u_ref", "v_ref", "r_ref")),
    "/error": (
        "m and rad; along and across are in the frame of the reference",
        ("along", "across", "position", "heading"),
    ),
    "/sensors": ("m, rad, SI; as received, absent where there was none in the period", SENSORS),
    "/water": ("m/s; in the local frame of the log", ("current_x", "current_y")),
}
"""Topics of numbers, as JSON, with their units and fields."""

LOCAL, BOAT, TARGET = "local", "boat", "reference"
"""Names of the frames."""

PATH_POINTS = 2000
"""Largest number of poses of a path."""

WARNINGS = ("hold", "ramp", "failsafe", "handover")


class Row(NamedTuple):
    """One period of a run; fields as of `anyhull.log.Log`."""

    time: int
    """ns."""
    state: Array
    reference: Array
    command: Array
    current: Array
    estimate: Array | None = None
    thrusters: Array | Sequence[float] | None = None
    angles: Array | Sequence[float] | None = None
    dynamics: Array | None = None
    sensors: Array | None = None
    latent: Array | None = None
    guard: tuple[str, str] = ("", "")
    """The reaction and its reason."""


def import_foxglove() -> Any:
    """foxglove-sdk, or one line that says how to install it."""
    try:
        import foxglove
        import foxglove.channels
        import foxglove.messages
    except ImportError:
        raise InputError("foxglove-sdk is not installed: pip install 'anyhull[foxglove]'") from None
    return foxglove


class Publisher:
    """Sends rows to whatever is open on a Foxglove context: a file, or a server."""

    def __init__(self, context: Any, facts: Facts) -> None:
        self._sdk, self._context, self._facts = import_foxglove(), context, facts
        self._channels: dict[str, Any] = {}

    def row(self, row: Row) -> None:
        """Send all that a period has."""
        m, facts, stamp = self._sdk.messages, self._facts, self._stamp(row.time)
        pose, target = facts.pose(row.state), facts.pose(row.reference)
        frames = [(BOAT, pose), *([(TARGET, target)] if facts.reference else [])]
        self._send("/tf", row.time, m.FrameTransforms(transforms=[self._transform(stamp, *frame) for frame in frames]))
        self._send("/pose", row.time, m.PoseInFrame(timestamp=stamp, frame_id=LOCAL, pose=self._pose(*pose)))
        if row.estimate is not None:
            estimate = self._pose(*facts.pose(row.estimate))
            self._send("/estimate", row.time, m.PoseInFrame(timestamp=stamp, frame_id=LOCAL, pose=estimate))
        if facts.reference:
            self._send("/reference", row.time, m.PoseInFrame(timestamp=stamp, frame_id=LOCAL, pose=self._pose(*target)))
            self._numbers("/error", row.time, errors(row.state, row.reference))
        if facts.frame is not None:
            latitude, longitude = facts.frame.to_geographic(*row.state[:2].tolist())
            self._send(
                "/gps", row.time, m.LocationFix(timestamp=stamp, frame_id=LOCAL, latitude=latitude, longitude=longitude)
            )
        if (arrows := self._arrows(row)) is not None:
            entity = m.SceneEntity(timestamp=stamp, frame_id=BOAT, id="forces", frame_locked=True, arrows=arrows)
            self._send("/forces", row.time, m.SceneUpdate(entities=[entity]))
        self._numbers("/command", row.time, row.command)
        velocity = [*row.state[3:], *(row.reference[3:] if facts.reference else ())]
        self._numbers("/velocity", row.time, velocity)
        self._numbers("/water", row.time, row.current)
        if row.sensors is not None:
            self._numbers("/sensors", row.time, row.sensors)
        if row.thrusters is not None:
            angles = {} if row.angles is None else {"angles": [float(angle) for angle in row.angles]}
            self._json("/thrusters", row.time, {"commands": [float(value) for value in row.thrusters]} | angles)
        if row.dynamics is not None and np.isfinite(row.dynamics).all():
            self._json("/dynamics", row.time, estimates(row.dynamics))
        if row.latent is not None:
            self._json("/latent", row.time, {"z": [float(value) for value in row.latent]})
        if row.guard[0]:
            self._json("/guard", row.time, {"reaction": row.guard[0], "reason": row.guard[1]})

    def path(self, topic: str, time: int, poses: Array) -> None:
        """Send a path, (n, 3) or more columns, of at most `PATH_POINTS`."""
        some = poses[:: math.ceil(len(poses) / PATH_POINTS) or 1]
        drawn = [self._pose(*self._facts.pose(pose)) for pose in some]
        self._send(
            topic, time, self._sdk.messages.PosesInFrame(timestamp=self._stamp(time), frame_id=LOCAL, poses=drawn)
        )

    def hull(self, time: int) -> None:
        """Send the outline of the hull at true size."""
        m, facts = self._sdk.messages, self._facts
        points = [m.Point3(x=x, y=y) for x, y in hull_outline(facts.length, facts.beam, np.zeros(3)).tolist()]
        line = m.LinePrimitive(
            type=m.LinePrimitiveLineType.LineLoop,
            pose=self._pose(0.0, 0.0, 0.0),
            thickness=2.0,
            scale_invariant=True,
            points=points,
            color=m.Color(r=0.0, g=0.45, b=0.7, a=1.0),
        )
        entity = m.SceneEntity(timestamp=self._stamp(time), frame_id=BOAT, id="hull", frame_locked=True, lines=[line])
        self._send("/hull", time, m.SceneUpdate(entities=[entity]))

    def event(self, entry: Entry) -> None:
        """Send an event; one by which the guard left `run` is a warning."""
        m, words = self._sdk.messages, entry.detail.split(":")[0]
        warns = entry.what == "reaction" and words in WARNINGS
        level = m.LogLevel.Warning if warns else m.LogLevel.Info
        text = f"{entry.what}: {entry.detail}" if entry.detail else entry.what
        stamp = self._stamp(entry.time)
        self._send("/events", entry.time, m.Log(timestamp=stamp, level=level, message=text, name=entry.what))

    def close(self) -> None:
        """Close the channels."""
        for channel in self._channels.values():
            channel.close()

    def _arrows(self, row: Row) -> list[Any] | None:
        """The thrusters' forces in the body frame, or the command's where the thrusters are unknown."""
        facts, sign = self._facts, -1.0 if self._facts.mirrored else 1.0
        reach = 0.5 * facts.length
        if row.thrusters is None or len(facts.layout) != len(row.thrusters):
            surge, sway, _ = facts.body(row.command)
            return [self._arrow(0.0, 0.0, math.atan2(sway, surge), reach * math.hypot(surge, sway))]
        largest = max((thruster.forward for thruster in facts.layout), default=0.0) or 1.0
        arrows = []
        for i, thruster in enumerate(facts.layout):
            force = thruster.thrust(float(row.thrusters[i])) / largest
            angle = math.radians(thruster.angle)
            if thruster.kind == "azimuth" and row.angles is not None and len(row.angles) == len(facts.layout):
                angle = float(row.angles[i])
            angle = angle + math.pi if force < 0 else angle
            arrows.append(self._arrow(thruster.x, sign * thruster.y, sign * angle, reach * abs(force)))
        return arrows

    def _arrow(self, x: float, y: float, angle: float, length: float) -> Any:
        m, width = self._sdk.messages, 0.03 * self._facts.length
        color = m.Color(r=0.84, g=0.37, b=0.0, a=1.0)
        pose = self._pose(x, y, angle)
        shaft, head = 0.75 * length, 0.25 * length
        return m.ArrowPrimitive(
            pose=pose, shaft_length=shaft, shaft_diameter=width, head_length=head, head_diameter=2 * width, color=color
        )

    def _transform(self, stamp: Any, child: str, pose: tuple[float, float, float]) -> Any:
        m, (x, y, psi) = self._sdk.messages, pose
        return m.FrameTransform(
            timestamp=stamp,
            parent_frame_id=LOCAL,
            child_frame_id=child,
            translation=m.Vector3(x=x, y=y),
            rotation=self._quaternion(psi),
        )

    def _pose(self, x: float, y: float, psi: float) -> Any:
        m = self._sdk.messages
        return m.Pose(position=m.Vector3(x=x, y=y), orientation=self._quaternion(psi))

    def _quaternion(self, psi: float) -> Any:
        w, x, y, z = quaternion_of(psi)
        return self._sdk.messages.Quaternion(x=x, y=y, z=z, w=w)

    def _stamp(self, time: int) -> Any:
        return self._sdk.messages.Timestamp(sec=time // 10**9, nsec=time % 10**9)

    def _numbers(self, topic: str, time: int, values: Any) -> None:
        fields = NUMBERS[topic][1]
        self._json(topic, time, finite({name: float(v) for name, v in zip(fields, values, strict=False)}))

    def _json(self, topic: str, time: int, message: dict[str, Any]) -> None:
        if topic not in self._channels:
            self._channels[topic] = self._sdk.Channel(topic, schema=json_schema(topic), context=self._context)
        self._channels[topic].log(json.dumps(message, allow_nan=False), log_time=time)

    def _send(self, topic: str, time: int, message: Any) -> None:
        if topic not in self._channels:
            kind = getattr(self._sdk.channels, f"{TOPICS[topic]}Channel")
            self._channels[topic] = kind(topic, context=self._context)
        self._channels[topic].log(message, log_time=time)


def json_schema(topic: str) -> dict[str, Any]:
    """The JSON schema of a topic of numbers."""
    text_type = {"type": "string"}
    number, numbers = {"type": "number"}, {"type": "array", "items": {"type": "number"}}
    table = {"type": "object", "properties": dict.fromkeys(("value", "low", "high", "spread"), number)}
    known: dict[str, tuple[str, dict[str, Any]]] = {
        "/thrusters": ("commands in [-1, 1], angles of azimuths in rad", {"commands": numbers, "angles": numbers}),
        "/dynamics": (
            "the controller's estimate of e with one standard deviation",
            dict.fromkeys(Normalized._fields, table),
        ),
        "/latent": ("the controller's latent", {"z": numbers}),
        "/guard": ("the guard's reaction and its reason", {"reaction": text_type, "reason": text_type}),
    }
    units, fields = NUMBERS.get(topic, ("", ()))
    text, properties = known.get(topic) or (units, dict.fromkeys(fields, number))
    return {
        "type": "object",
        "title": f"anyhull{topic.replace('/', '.')}",
        "description": text,
        "properties": properties,
    }


def errors(state: Array, reference: Array) -> tuple[float, float, float, float]:
    """Along and across the reference's heading (m), their length (m), and heading (rad)."""
    dx, dy, psi = (float(state[0] - reference[0]), float(state[1] - reference[1]), float(reference[2]))
    along = math.cos(psi) * dx + math.sin(psi) * dy
    across = math.cos(psi) * dy - math.sin(psi) * dx
    return along, across, math.hypot(dx, dy), float(wrap(state[2] - reference[2]))


def estimates(dynamics: Array) -> dict[str, dict[str, float]]:
    """Each component of e with the ends of one standard deviation, which is of its logarithm, of asinh for c_uv."""
    found = {}
    for name, value, spread in zip(Normalized._fields, dynamics[:9].tolist(), dynamics[9:].tolist(), strict=True):
        if name == "c_uv":
            ends = [math.sinh(math.asinh(value) + side * min(abs(spread), 50.0)) for side in (-1, 1)]
        else:
            ends = sorted(value * math.exp(side * min(abs(spread), 50.0)) for side in (-1, 1))
        found[name] = finite({"value": value, "low": ends[0], "high": ends[1], "spread": spread})
    return found


def summarize(dynamics: Array) -> str:
    """The free components with one standard deviation, in one line; SI."""
    parts = []
    for name, of in estimates(dynamics).items():
        if name == "c_ru":  # -1 / c_rv
            continue
        # Where the errors are larger than the value they are not symmetric.
        around = (
            f"± {(of['high'] - of['low']) / 2:.2g}" if of["spread"] < 1 else f"({of['low']:.2g} to {of['high']:.2g})"
        )
        parts.append(f"{SYMBOLS[name]} {of['value']:.3g} {around}")
    return ", ".join(parts)
