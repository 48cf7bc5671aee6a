"""Conversion between the two conventions of axes that autopilots, ROS and surveyors use.

| axes | inertial frame | body frame | heading | used by |
| --- | --- | --- | --- | --- |
| `ned` | x north, y east | x forward, y starboard | clockwise from north | MAVLink, Fossen |
| `enu` | x east, y north | x forward, y port | counterclockwise from east | ROS (REP-103) |

In both, heading runs from x toward y, and the third axis (down, up) completes a right-handed frame. The equations of
motion are the same in both, so the local frame of a boat may be either; its thrusters and its mission have the same.
Each conversion is its own inverse.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from anyhull.backend import wrap

Axes = Literal["ned", "enu"]
"""Axes of a local frame and of the body frame that goes with it."""

Quaternion = tuple[float, float, float, float]
"""w, x, y, z: the attitude of the body in the inertial frame."""


def swap_pose(pose: Sequence[float]) -> tuple[float, float, float]:
    """A pose (x, y, psi) of one convention in the other; m, m, rad in [-pi, pi)."""
    x, y, psi = pose
    return float(y), float(x), float(wrap(math.pi / 2 - psi))


def mirror_body(vector: Sequence[float]) -> tuple[float, float, float]:
    """A body-frame velocity (u, v, r) or wrench (surge, sway, yaw) of one convention in the other."""
    surge, sway, yaw = vector
    return float(surge), -float(sway), -float(yaw)


def quaternion_of(psi: float) -> Quaternion:
    """The attitude of a level boat of heading psi, rad, both in the same convention."""
    return math.cos(psi / 2), 0.0, 0.0, math.sin(psi / 2)


def heading_of(attitude: Sequence[float]) -> float:
    """The heading of an attitude (w, x, y, z), rad in [-pi, pi]; NaN for a quaternion of length zero."""
    w, x, y, z = attitude
    square = w * w + x * x + y * y + z * z
    if not square > 1e-12:
        return math.nan
    return math.atan2(2 * (w * z + x * y), square - 2 * (y * y + z * z))
