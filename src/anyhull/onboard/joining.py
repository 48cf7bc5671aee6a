"""References from where the boat is: the approach to a pose, and the way back along the track."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from anyhull.backend import wrap
from anyhull.reference import Chain, Reference, Turn, legs
from anyhull.schema import check_types, require

SHORT = 2.0
"""Distance, m, that a boat with sway covers without turning toward it."""


@dataclass(frozen=True)
class Approach:
    """How the boat goes to the start of its reference, and back to it after a stop."""

    speed: float = 0.3
    """m/s."""
    distance: float = 50.0
    """Largest distance, m; further away the boat does not start."""
    turn_rate: float = 0.2
    """Yaw rate of turns on the spot, rad/s."""

    def __post_init__(self) -> None:
        check_types(self)
        for field in self.__dataclass_fields__:
            require(self, field, getattr(self, field) > 0, "positive")


def approach(pose: Sequence[float], target: Sequence[float], how: Approach, *, sway: bool) -> Reference:
    """From rest at `pose` to rest at `target`, each (x, y, psi) in m and rad: turn, straight, turn.

    A boat with sway covers a short distance sideways.
    """
    (x, y, psi), end = (float(value) for value in pose), [float(value) for value in target]
    distance, course = math.dist((x, y), end[:2]), math.atan2(end[1] - y, end[0] - x)
    parts: list[Reference] = []
    if distance > 0.1:
        heading = psi if sway and distance < SHORT else psi + wrap(course - psi)
        parts.append(Turn((x, y, psi), heading, how.turn_rate))
        parts.append(legs([(x, y), (end[0], end[1])], speed=how.speed, heading=heading))
        psi = heading
    return Chain([*parts, Turn((end[0], end[1], psi), end[2], how.turn_rate)])


def retrace(pose: Sequence[float], track: Sequence[tuple[float, float]], how: Approach) -> Reference:
    """From rest at `pose` back along the points of a track, the last one first, to rest at the first."""
    points = [(float(pose[0]), float(pose[1]))]
    for point in reversed(track):
        if math.dist(point, points[-1]) > how.speed:
            points.append(point)
    psi = float(pose[2])
    if len(points) < 2:
        return Turn((*points[0], psi), psi, how.turn_rate)
    course = math.atan2(points[1][1] - points[0][1], points[1][0] - points[0][0])
    return Chain([Turn((*points[0], psi), course, how.turn_rate), legs(points, speed=how.speed)])
