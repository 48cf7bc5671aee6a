"""Straight legs between waypoints, joined by arcs inside a corridor, at speeds that the boat can follow.

The boat starts from rest, slows down for the arcs, stops where it holds or where no arc fits, and ends at rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from anyhull.backend import Array, wrap
from anyhull.errors import InputError
from anyhull.paths import Arcs, distance_to_legs
from anyhull.speeds import FORCE_SHARE, feasible_speed, spare_acceleration, speed_profile, turn_rate
from anyhull.trajectory import Chain, Follow, Hold, Reference, Stage, Turn, check_waypoints, positive
from anyhull.vessel import Vessel

SMALLEST_RADIUS = 0.25
"""Radius below which a boat stops and turns on the spot instead, m."""

CLOSEST = 0.01
"""Smallest distance between consecutive waypoints, m."""

LARGEST_RATE = 10.0
"""Largest acceleration, m/s², and yaw rate, rad/s."""

SMALL_TURN = math.radians(1.0)
"""Largest change of course that never needs a stop, rad."""


Heading = Callable[[Array], tuple[Array, Array]]
"""Heading (rad) and its slope (rad/m) at distances along a path (m)."""


class Leg(NamedTuple):
    """One straight leg of a plan."""

    start: tuple[float, float]
    """Its first waypoint, m."""
    end: tuple[float, float]
    """Its last waypoint, m."""
    course: float
    """rad, from x toward y."""
    length: float
    """Between its waypoints, m."""
    speed: float
    """m/s, outside the ramps and arcs."""
    begins: float
    """Time at which the reference passes or leaves `start`, s."""
    duration: float
    """Time from there to `end`, without a hold there, s."""


class Legs(Chain):
    """The reference along straight legs, with what a report needs."""

    def __init__(self, parts: Sequence[Reference], legs: Sequence[Leg], stages: Sequence[Stage], **report: Any) -> None:
        super().__init__(parts)
        self.legs = tuple(legs)
        self.stages = tuple(stages)
        self.corridor: float | None = report["corridor"]
        """Largest distance allowed from the path to the legs and from the waypoints to the path, m."""
        self.deviation: float = report["deviation"]
        """Largest distance from the path to the legs, m: R (1 - cos(turn / 2)) in the middle of an arc."""
        self.missed: float = report["missed"]
        """Largest distance from a waypoint to the path, m: R (1 / cos(turn / 2) - 1)."""
        self.notes: tuple[str, ...] = tuple(report["notes"])
        """Where the plan differs from what was asked for, and why."""

    def cross_track(self, time: Array, points: Array) -> Array:
        """Distances (m) of positions (n, 2) at times (n,) to the leg of that time or to one beside it."""
        starts, ends = (np.array([getattr(leg, name) for leg in self.legs]) for name in ("start", "end"))
        now = np.searchsorted([leg.begins for leg in self.legs], time, side="right") - 1
        near = [np.clip(now + step, 0, len(self.legs) - 1) for step in (-1, 0, 1)]
        return np.asarray(np.min([distance_to_legs(points, starts[i], ends[i]) for i in near], axis=0))


def legs(
    waypoints: Sequence[Sequence[float]],
    *,
    speed: float | Sequence[float] = 0.6,
    radius: float | Sequence[float] = 2.0,
    corridor: float | None = 1.0,
    holds: Sequence[float] | None = None,
    heading: float | Sequence[float] | None = None,
    acceleration: float = 0.1,
    yaw_rate: float = 0.5,
    closed: bool = False,
    laps: int = 1,
    vessel: Vessel | None = None,
) -> Legs:
    """Straight legs between `waypoints`, each (x, y) in m, from rest to rest.

    `speed` (m/s) may be given for each leg, `radius` (m) of the arcs and `holds` (s) for each waypoint. An arc is
    smaller than its radius where the length of its legs needs it, or the `corridor` (m, the largest distance from the
    path to the legs, and from a waypoint to the path); where none fits, the boat stops and turns on the spot.

    `heading` (rad) is tangential, fixed, or given for each waypoint. `acceleration` (m/s²) and `yaw_rate` (rad/s) are
    the largest; a `vessel` lowers them and the speeds to what its actuators can give. `closed` returns to the first
    waypoint, `laps` times.
    """
    points = check_waypoints(waypoints, closed)
    if laps != int(laps) or laps < 1 or (laps > 1 and not closed):
        raise InputError(f"laps = {laps!r}: must be a whole number, and 1 for an open path")
    count = len(points)
    order = np.concatenate([np.tile(np.arange(count), int(laps)), [0]]) if closed else np.arange(count)
    points = points[order]
    gaps = np.linalg.norm(np.diff(points, axis=0), axis=1)
    if gaps.min() < CLOSEST:
        i = int(gaps.argmin())
        raise InputError(f"waypoints {order[i] + 1} and {order[i + 1] + 1}: must be at least {CLOSEST:g} m apart")
    radii = _each("radius", radius, count, "waypoints", 0.0)[order]
    waits = _each("holds", 0.0 if holds is None else holds, count, "waypoints", 0.0)[order]
    if closed:
        waits[0] = 0.0  # the hold at the first waypoint is at the end of each lap
    speeds = _each("speed", speed, count - 1 + closed, "legs", 1e-3)
    speeds = np.tile(speeds, int(laps)) if closed else speeds
    if corridor is not None:
        positive("corridor", corridor)
    for name, value in (("acceleration", acceleration), ("yaw_rate", yaw_rate)):
        if not 1e-6 <= value <= LARGEST_RATE:
            raise InputError(f"{name} = {value!r}: must be from 1e-06 to {LARGEST_RATE:g}")
    headings = None if heading is None else np.unwrap(_each("heading", heading, count, "waypoints", -math.inf)[order])

    courses = np.arctan2(*np.diff(points, axis=0).T[::-1])
    turns = np.concatenate([[0.0], wrap(np.diff(courses)), [0.0]])
    arcs, stops = _arcs(gaps, turns, radii, waits, corridor)
    notes = _arc_notes(arcs, radii, stops & (waits == 0), order)
    crab = np.zeros_like(courses) if headings is None else courses - headings[:-1]
    speeds, acceleration = _lowered(speeds, acceleration, crab, vessel, notes)
    path = _Path(points, gaps, courses, turns, arcs, speeds, headings, acceleration, yaw_rate, vessel)

    parts: list[Reference] = []
    stages: list[Stage] = []
    passed = np.zeros((len(points), 2))  # times of arrival at each waypoint and of departure from it
    clock, psi, a = 0.0, float(courses[0] if headings is None else headings[0]), 0
    for b in np.flatnonzero(stops).tolist():
        if b > 0:
            if headings is None and abs(angle := float(wrap(courses[a] - psi))) > 1e-9:
                parts.append(Turn((*_pair(points[a]), psi), psi + angle, turn_rate(yaw_rate, abs(angle), vessel)))
                clock += parts[-1].duration
            run, at = path.between(a, b)
            times = clock + run.time_at(at)
            parts.append(run)
            passed[a, 1], passed[a + 1 : b + 1] = times[0], times[1:, None]
            for i in range(a, b):
                stages.append(Stage(float(times[i - a]), f"leg {i + 1} of {len(gaps)}, to waypoint {order[i + 1] + 1}"))
            clock, psi, a = clock + run.duration, float(run.at(run.duration)[2]), b
        if waits[b] > 0:
            stages.append(Stage(clock, f"hold of {waits[b]:g} s at waypoint {order[b] + 1}"))
            parts.append(Hold((*_pair(points[b]), psi), float(waits[b])))
            clock += float(waits[b])
    table = [
        Leg(_pair(one), _pair(two), float(course), float(length), float(top), float(left), float(arrived - left))
        for one, two, course, length, top, left, arrived in zip(
            points[:-1], points[1:], courses, gaps, speeds, passed[:-1, 1], passed[1:, 0], strict=True
        )
    ]
    slow = np.flatnonzero(path.turn_speeds < np.minimum(speeds[:-1], speeds[1:]) - 1e-9) + 1
    if len(slow):
        lowest = path.turn_speeds[slow - 1].min()
        notes.append(f"slower in the turn at {_named('waypoint', order[slow] + 1)}, down to {lowest:.2f} m/s")
    half = np.where(arcs > 0, np.abs(turns) / 2, 0.0)
    deviation, missed = float((arcs * (1 - np.cos(half))).max()), float((arcs * (1 / np.cos(half) - 1)).max())
    return Legs(parts, table, stages, corridor=corridor, deviation=deviation, missed=missed, notes=notes)


class _Path:
    """The straights and arcs of all legs, and the references between two stops."""

    def __init__(
        self,
        points: Array,
        gaps: Array,
        courses: Array,
        turns: Array,
        arcs: Array,
        speeds: Array,
        headings: Array | None,
        acceleration: float,
        yaw_rate: float,
        vessel: Vessel | None,
    ) -> None:
        self._points, self._courses, self._headings = points, courses, headings
        self._acceleration, self._yaw_rate, self._vessel = acceleration, yaw_rate, vessel
        tangents = arcs * np.tan(np.where(arcs > 0, np.abs(turns) / 2, 0.0))
        # Straight, arc, straight, ..., straight.
        self._lengths = np.zeros(2 * len(gaps) - 1)
        self._lengths[::2] = gaps - tangents[:-1] - tangents[1:]
        self._lengths[1::2] = (arcs * np.abs(turns))[1:-1]
        self._curvatures = np.zeros_like(self._lengths)
        self._curvatures[1::2] = (np.sign(turns) / np.maximum(arcs, 1e-9))[1:-1]
        self._limits = np.repeat(speeds, 2)[:-1]
        self._limits[1::2] = np.minimum(speeds[:-1], speeds[1:])
        self.turn_speeds = self._limits[1::2].copy()
        """Highest speed at each waypoint but the first and the last, m/s."""

    def between(self, a: int, b: int) -> tuple[Follow, Array]:
        """The reference from a stop at waypoint a to one at b, and the distances of these waypoints along it, m."""
        pieces = slice(2 * a, 2 * b - 1)
        ends = np.cumsum(self._lengths[pieces])
        at = np.concatenate([[0.0], (ends - self._lengths[pieces] / 2)[1::2], ends[-1:]])
        keep = self._lengths[pieces] > 1e-9
        lengths, limits = self._lengths[pieces][keep], self._limits[pieces].copy()
        path = Arcs(
            lengths.tolist(),
            self._curvatures[pieces][keep].tolist(),
            closed=False,
            start=(*_pair(self._points[a]), float(self._courses[a])),
        )
        heading = None if self._headings is None else _between(at, self._headings[a : b + 1])
        limits[keep] = self._capped(path, lengths, limits[keep], heading)
        self.turn_speeds[a : b - 1] = limits[1::2]
        distances, speeds = speed_profile(lengths, limits[keep], self._acceleration)
        distances[-1] = path.length
        return Follow(path, distances, speeds, heading), at

    def _capped(self, path: Arcs, lengths: Array, limits: Array, heading: Heading | None) -> Array:
        """The speed limits of pieces, lowered to the yaw rate and to the vessel at places along each, m/s."""
        # Off the ends, which belong to two pieces; a given heading turns faster in some places than in others.
        shares = np.linspace(0.999, 0.001, 5 if heading is None else 41)
        places = np.cumsum(lengths)[:, None] - lengths[:, None] * shares
        _, _, course, slope = path(places)
        crab = np.zeros_like(course)
        if heading is not None:
            psi, slope = heading(places)
            crab = course - psi
        limits = np.minimum(limits[:, None], self._yaw_rate / np.maximum(np.abs(slope), 1e-9))
        if self._vessel is not None:
            limits = feasible_speed(self._vessel, limits, crab, slope)
        return np.asarray(limits.min(axis=1))


def _arcs(gaps: Array, turns: Array, radii: Array, waits: Array, corridor: float | None) -> tuple[Array, Any]:
    """The radius of the arc at each waypoint, 0 where there is none, and at which ones the boat stops."""
    stops = waits > 0
    stops[[0, -1]] = True
    half = np.minimum(np.abs(turns) / 2, math.radians(89.9))
    # An arc takes half of each leg, or all of one whose other end has none.
    room = np.where(stops[:-1] | stops[1:], gaps, gaps / 2)
    room = np.concatenate([[0.0], np.minimum(room[:-1], room[1:]), [0.0]])
    largest = room / np.maximum(np.tan(half), 1e-12)
    if corridor is not None:
        largest = np.minimum(largest, corridor / np.maximum(1 / np.cos(half) - 1, 1e-12))
    small = np.abs(turns) < SMALL_TURN
    arcs = np.minimum(np.where(small, np.maximum(radii, SMALLEST_RADIUS), radii), largest)
    stops |= (arcs < SMALLEST_RADIUS) & ~small
    return np.where(stops | (np.abs(turns) < 1e-9), 0.0, arcs), stops


def _arc_notes(arcs: Array, radii: Array, turned: Any, order: Any) -> list[str]:
    """Where arcs are smaller than asked for, or none fits, with the waypoints' numbers."""
    notes = []
    smaller = np.flatnonzero((arcs > 0) & (arcs < 0.99 * radii))
    if len(smaller):
        names = _named("waypoint", order[smaller] + 1)
        notes.append(f"smaller arc at {names}, down to {arcs[smaller].min():.2f} m, to fit the corridor and the legs")
    inner = np.flatnonzero(turned[1:-1]) + 1
    if len(inner):
        notes.append(f"stop and turn on the spot at {_named('waypoint', order[inner] + 1)}: no arc fits")
    return notes


def _lowered(
    speeds: Array, acceleration: float, crab: Array, vessel: Vessel | None, notes: list[str]
) -> tuple[Array, float]:
    """Speeds of the legs and the acceleration, lowered to what the vessel's actuators can give, with notes."""
    if vessel is None:
        return speeds, acceleration
    straight = np.zeros_like(speeds)
    lowered = feasible_speed(vessel, speeds, crab, straight)
    slower = np.flatnonzero(lowered < speeds * (1 - 1e-6))
    if len(slower):
        notes.append(
            f"slower on {_named('leg', slower + 1)}, down to {lowered[slower].min():.2f} m/s: at a constant speed "
            f"{vessel.name} may use {100 * FORCE_SHARE:.0f} % of its force"
        )
    spare = spare_acceleration(vessel, lowered, crab, straight)
    if spare < acceleration * (1 - 1e-6):
        notes.append(f"acceleration {spare:.2g} m/s²: {vessel.name} has no more force to spare at these speeds")
    return lowered, min(acceleration, spare)


def _between(at: Array, headings: Array) -> Heading:
    """Headings between waypoints at distances `at`, with a slope of zero at each: a cubic in between."""

    def heading(s: Array) -> tuple[Array, Array]:
        i = np.clip(np.searchsorted(at, s, side="right") - 1, 0, len(at) - 2)
        gap = at[i + 1] - at[i]
        share, change = np.clip((s - at[i]) / gap, 0.0, 1.0), headings[i + 1] - headings[i]
        return headings[i] + change * share**2 * (3 - 2 * share), 6 * change * share * (1 - share) / gap

    return heading


def _each(name: str, value: float | Sequence[float], count: int, what: str, least: float) -> Array:
    """One number for each of `count`, from one for all or one for each; raise for one below `least`."""
    given = np.asarray(value, dtype=float)
    if given.shape not in ((), (count,)) or not np.isfinite(given).all() or given.min() < least:
        bound = "" if least == -math.inf else " of zero or more" if least == 0 else f" of at least {least:g}"
        raise InputError(f"{name} = {value!r}: must be one finite number{bound}, or one for each of {count} {what}")
    return np.broadcast_to(given, (count,)).copy()


def _pair(point: Array) -> tuple[float, float]:
    return float(point[0]), float(point[1])


def _named(what: str, numbers: Any) -> str:
    """Such as "waypoints 2, 3 and 5", of many the first eight."""
    names = sorted({int(number) for number in numbers})
    shown = [str(name) for name in names[:8]] + ([f"{len(names) - 8} more"] if len(names) > 8 else [])
    listed = shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
    return f"{what}{'s' * (len(names) > 1)} {listed}"
