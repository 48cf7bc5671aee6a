"""References from where the boat is: the approach to a pose, and the way back along the track."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from anyhull.backend import wrap
from anyhull.reference import Brake, Chain, Reference, Turn, legs
from anyhull.scale import Scale
from anyhull.schema import check_types, require
from anyhull.speeds import turn_rate
from anyhull.vessel import Vessel

SHORT, THERE = 2.0, 0.1
"""Distances, in the vessel's length unit, that a boat with sway covers without turning toward it, and that are none."""

SLOW, DECELERATION = 0.05, 0.15
"""Speed above which a boat first comes to rest, and by how much it slows down, in the vessel's units: for a scale of
one m/s and rad/s, m/s² and rad/s²."""

AT_REST = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Approach:
    """How the boat goes to the start of its reference, and back to it after a stop."""

    speed: float = 0.3
    """m/s."""
    distance: float = 50.0
    """Largest distance, m; further away the boat does not start."""
    turn_rate: float = 0.2
    """Yaw rate of turns on the spot, rad/s."""

    def scaled(self, scale: Scale) -> Approach:
        """This approach for a boat of that scale: its units count for what is at its default."""
        return scale.defaults(self, {"speed": (1, -1), "distance": (1, 0), "turn_rate": (0, -1)})

    def __post_init__(self) -> None:
        check_types(self)
        for field in self.__dataclass_fields__:
            require(self, field, getattr(self, field) > 0, "positive")


def approach(
    pose: Sequence[float],
    target: Sequence[float],
    how: Approach,
    *,
    vessel: Vessel,
    velocity: Sequence[float] = AT_REST,
) -> Reference:
    """From `pose` to rest at `target`, each (x, y, psi) in m and rad: brake, turn, straight, turn.

    `velocity` is (u, v, r) over ground. A boat with sway covers a short distance sideways. The vessel's limits lower
    the speed.
    """
    parts, (x, y, psi) = _at_rest(pose, velocity, vessel.scale)
    end = [float(value) for value in target]
    distance, course = math.dist((x, y), end[:2]), math.atan2(end[1] - y, end[0] - x)
    if distance > THERE * vessel.scale.length:
        sideways = not vessel.under_actuated and distance < SHORT * vessel.scale.length
        heading = psi if sideways else psi + wrap(course - psi)
        parts.append(_turn((x, y, psi), heading, how, vessel))
        parts.append(legs([(x, y), (end[0], end[1])], speed=how.speed, heading=heading, vessel=vessel))
        psi = heading
    parts.append(_turn((end[0], end[1], psi), end[2], how, vessel))
    return _chain(parts)


def retrace(
    pose: Sequence[float],
    track: Sequence[tuple[float, float]],
    how: Approach,
    *,
    vessel: Vessel,
    velocity: Sequence[float] = AT_REST,
) -> Reference:
    """From `pose` back along the points of a track, the last one first, to rest at the first; see `approach`."""
    parts, (x, y, psi) = _at_rest(pose, velocity, vessel.scale)
    points = [(x, y)]
    for point in reversed(track):
        if math.dist(point, points[-1]) > how.speed * vessel.scale.time:
            points.append(point)
    if len(points) >= 2:
        course = math.atan2(points[1][1] - points[0][1], points[1][0] - points[0][0])
        parts.append(_turn((x, y, psi), course, how, vessel))
        parts.append(legs(points, speed=how.speed, vessel=vessel))
    return _chain(parts, (x, y, psi))


def _at_rest(
    pose: Sequence[float], velocity: Sequence[float], scale: Scale
) -> tuple[list[Reference], tuple[float, float, float]]:
    """What brings a boat to rest, and the pose where it is then."""
    x, y, psi = (float(value) for value in pose)
    u, v, r = (float(value) for value in velocity)
    if max(math.hypot(u, v) / scale.speed, abs(r) * scale.time) <= SLOW:
        return [], (x, y, psi)
    brake = Brake((x, y, psi), (u, v, r), DECELERATION * scale.speed / scale.time, DECELERATION / scale.time**2)
    x, y, psi = brake.at(brake.duration)[:3].tolist()
    return [brake], (x, y, psi)


def _turn(pose: tuple[float, float, float], heading: float, how: Approach, vessel: Vessel) -> Turn:
    angle = abs(float(wrap(heading - pose[2])))
    return Turn(pose, heading, turn_rate(how.turn_rate, angle, vessel) if angle > 0 else how.turn_rate)


def _chain(parts: list[Reference], pose: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> Reference:
    """The parts one after the other; without any that takes time, no turn at `pose`."""
    return Chain(parts) if any(part.duration > 0 for part in parts) else Turn(pose, pose[2], 1.0)
