"""ROS 2 messages to the numbers of our own and back: stamps, poses, covariances, fixes and inertial measurements.

ROS has x east, y north in the inertial frame and x forward, y to port in the body frame (REP-103); `axes` are those of
the boat's file. What a message says that cannot be used raises `Rejected` with one of a few reasons.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from anyhull.backend import wrap
from anyhull.errors import InputError
from anyhull.frames import Axes, heading_of, mirror_body, quaternion_of, swap_pose
from anyhull.mission.geodesy import LocalFrame
from anyhull.onboard.messages import RANGES

Fields = dict[str, Any]
Six = tuple[float, float, float, float, float, float]

UNIT = 0.1
"""Largest deviation of a quaternion's length from one."""

GRAVITY = 9.80665
"""m/s²."""

LARGEST_STD = 1e6
"""Of a standard deviation; a filter that does not know writes more."""


MOST_POSES = 10_000
"""Of a path."""


class Rejected(ValueError):
    """A message that is not used, with its reason."""


def stamp_of(time: float) -> Fields:
    """builtin_interfaces/Time of a time, s; of one that it cannot hold, zero."""
    ns = round(1e9 * time) if 0 <= time < 2**31 else 0
    return {"sec": ns // 10**9, "nanosec": ns % 10**9}


def time_of(stamp: Any) -> float:
    """The time of a stamp, s; zero if it is not stated."""
    return int(stamp.sec) + 1e-9 * int(stamp.nanosec)


def header(time: float, frame_id: str) -> Fields:
    """std_msgs/Header."""
    return {"stamp": stamp_of(time), "frame_id": frame_id}


def pose_fields(pose: Sequence[float], axes: Axes) -> Fields:
    """geometry_msgs/Pose of our pose (x, y, psi)."""
    x, y, psi = pose if axes == "enu" else swap_pose(pose)
    return {"position": {"x": float(x), "y": float(y)}, "orientation": quaternion_fields(psi)}


def quaternion_fields(psi: float) -> Fields:
    """geometry_msgs/Quaternion of a level boat."""
    w, x, y, z = quaternion_of(psi)
    return {"x": x, "y": y, "z": z, "w": w}


def read_pose(pose: Any, axes: Axes) -> tuple[float, float, float]:
    """Our pose of a geometry_msgs/Pose."""
    psi = heading_of(_rotation(pose.orientation))
    found = _finite(pose.position.x, pose.position.y, psi)
    x, y, psi = (found[0], found[1], found[2]) if axes == "enu" else swap_pose(found)
    return x, y, float(wrap(psi))


def odometry_fields(state: Six, std: Sequence[float] | None, axes: Axes) -> tuple[Fields, Fields]:
    """The pose and twist, with covariance, of a nav_msgs/Odometry."""
    velocity = state[3:] if axes == "enu" else mirror_body(state[3:])
    pose: Fields = {"pose": pose_fields(state[:3], axes)}
    u, v, r = map(float, velocity)
    twist: Fields = {"twist": {"linear": {"x": u, "y": v}, "angular": {"z": r}}}
    if std is not None:
        x, y, psi = std[:3] if axes == "enu" else (std[1], std[0], std[2])
        pose["covariance"] = _diagonal(x, y, psi)
        twist["covariance"] = _diagonal(*std[3:])
    return pose, twist


def read_odometry(message: Any, axes: Axes) -> tuple[Six, Six | None]:
    """State (x, y, psi, u, v, r) and standard deviations of a nav_msgs/Odometry.

    Those of a pose or a twist that states none are zero; None if neither does.
    """
    pose = read_pose(message.pose.pose, axes)
    twist = message.twist.twist
    velocity = _finite(twist.linear.x, twist.linear.y, twist.angular.z)
    velocity = velocity if axes == "enu" else mirror_body(velocity)
    state = (*pose, *velocity)
    for name, values in (("pose", pose), ("velocity", velocity)):
        low, high = RANGES[f"odometry.{name}"]
        if not all(low <= value <= high for value in values):
            raise Rejected(f"odometry.{name} out of range")
    first, second = _deviations(message.pose.covariance), _deviations(message.twist.covariance)
    if first is None and second is None:
        return state, None  # type: ignore[return-value]
    x, y, psi = first or (0.0, 0.0, 0.0)
    x, y = (x, y) if axes == "enu" else (y, x)
    return state, (x, y, psi, *(second or (0.0, 0.0, 0.0)))  # type: ignore[return-value]


def read_fix(message: Any, frame: LocalFrame) -> tuple[float, float, float | None]:
    """x, y and standard deviation (m) of a sensor_msgs/NavSatFix; None where its covariance is unknown."""
    if int(message.status.status) < 0:
        raise Rejected("no fix")
    latitude, longitude = _finite(message.latitude, message.longitude)
    try:
        x, y = frame.to_local(latitude, longitude)
    except InputError:
        raise Rejected("fix too far from the origin") from None
    covariance = message.position_covariance
    variance = max(float(covariance[0]), float(covariance[4])) if int(message.position_covariance_type) > 0 else 0.0
    low, high = RANGES["position.std"]
    return x, y, min(max(math.sqrt(variance), low), high) if 0 < variance < math.inf else None


def read_imu(message: Any, axes: Axes) -> tuple[float, float | None, float | None, tuple[float, float] | None]:
    """Heading with its standard deviation, yaw rate and level acceleration of a sensor_msgs/Imu.

    The acceleration is turned by roll and pitch into the level frame, where gravity has no x and y.
    """
    if float(message.orientation_covariance[0]) < 0:
        raise Rejected("imu without orientation")
    w, x, y, z = rotation = _rotation(message.orientation)
    psi = heading_of(rotation)
    variance = float(message.orientation_covariance[8])
    low, high = RANGES["heading.std"]
    std = min(max(math.sqrt(variance), low), high) if 0 < variance < math.inf else None
    rate: float | None = None
    if float(message.angular_velocity_covariance[0]) >= 0:
        # The yaw rate is about the vertical; p and q of a boat that rolls are not in it.
        (rate,) = _finite(message.angular_velocity.z)
        if abs(rate) > RANGES["gyro.rate"][1]:
            raise Rejected("gyro.rate out of range")
    level: tuple[float, float] | None = None
    if float(message.linear_acceleration_covariance[0]) >= 0:
        a = message.linear_acceleration
        ax, ay, az = _finite(a.x, a.y, a.z)
        east = (1 - 2 * (y * y + z * z)) * ax + 2 * (x * y - w * z) * ay + 2 * (x * z + w * y) * az
        north = 2 * (x * y + w * z) * ax + (1 - 2 * (x * x + z * z)) * ay + 2 * (y * z - w * x) * az
        level = (
            math.cos(psi) * east + math.sin(psi) * north,
            math.cos(psi) * north - math.sin(psi) * east,
        )
        if max(map(abs, level)) > RANGES["acceleration.x"][1]:
            raise Rejected("acceleration out of range")
    if axes == "ned":
        psi = swap_pose((0.0, 0.0, psi))[2]
        rate = None if rate is None else -rate
        level = None if level is None else (level[0], -level[1])
    return float(wrap(psi)), std, rate, level


def read_path(message: Any, axes: Axes) -> list[tuple[float, float]]:
    """The points of a nav_msgs/Path, m, without repetitions."""
    if len(message.poses) > MOST_POSES:
        raise Rejected(f"path of more than {MOST_POSES} poses")
    points: list[tuple[float, float]] = []
    for stamped in message.poses:
        x, y = _finite(stamped.pose.position.x, stamped.pose.position.y)
        point = (x, y) if axes == "enu" else (y, x)
        if not points or math.dist(points[-1], point) > 1e-3:
            points.append(point)
    return points


def imu_fields(
    psi: float, std: float | None, rate: float | None, acceleration: tuple[float, float] | None, axes: Axes
) -> Fields:
    """sensor_msgs/Imu of a level boat, without its header."""
    if axes == "ned":
        psi = swap_pose((0.0, 0.0, psi))[2]
        rate = None if rate is None else -rate
        acceleration = None if acceleration is None else (acceleration[0], -acceleration[1])
    unknown = [-1.0, *[0.0] * 8]
    turned = [0.0] * 8 + [(std or 0.0) ** 2]
    ax, ay = acceleration or (0.0, 0.0)
    return {
        "orientation": quaternion_fields(psi),
        "orientation_covariance": turned,
        "angular_velocity": {"z": rate or 0.0},
        "angular_velocity_covariance": unknown if rate is None else [0.0] * 9,
        "linear_acceleration": {"x": ax, "y": ay, "z": GRAVITY},
        "linear_acceleration_covariance": unknown if acceleration is None else [0.0] * 9,
    }


def _rotation(q: Any) -> tuple[float, float, float, float]:
    """The unit quaternion (w, x, y, z)."""
    values = _finite(q.w, q.x, q.y, q.z)
    length = math.hypot(*values)
    if abs(length - 1) > UNIT:
        raise Rejected("orientation is no unit quaternion")
    w, x, y, z = (value / length for value in values)
    return w, x, y, z


def _finite(*values: Any) -> tuple[float, ...]:
    numbers = tuple(map(float, values))
    if not all(map(math.isfinite, numbers)):
        raise Rejected("not finite")
    return numbers


def _diagonal(x: float, y: float, yaw: float) -> list[float]:
    """A 6x6 covariance of x, y, z and the rotations about them."""
    covariance = [0.0] * 36
    for i, std in ((0, x), (7, y), (35, yaw)):
        covariance[i] = float(std) ** 2
    return covariance


def _deviations(covariance: Any) -> tuple[float, float, float] | None:
    """Standard deviations of x, y and yaw; None if the covariance is not stated: -1 first, or all zero."""
    variances = [float(covariance[i]) for i in (0, 7, 35)]
    if variances[0] == -1 or not any(variances):
        return None
    if not all(0 <= variance < math.inf for variance in variances):
        raise Rejected("covariance is not one")
    x, y, yaw = (min(math.sqrt(variance), LARGEST_STD) for variance in variances)
    return x, y, yaw
