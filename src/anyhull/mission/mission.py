"""A mission: a reference with its legs, approach and fence, from a plan or a file."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from anyhull.errors import InputError, unknown
from anyhull.legs import Legs, legs
from anyhull.mission.files import read_plan
from anyhull.mission.geodesy import FARTHEST, Axes, LocalFrame
from anyhull.mission.plan import MOST_WAYPOINTS, Circle, Place, Plan, Station, Waypoint
from anyhull.mission.survey import Point, check_polygon, inside, lawnmower, uncovered
from anyhull.paths import Arcs
from anyhull.speeds import FORCE_SHARE, feasible_speed, speed_profile
from anyhull.trajectory import Follow, Hold, Reference, positive
from anyhull.vessel import Vessel

LONGEST = 24 * 3600.0
"""Longest mission, s."""

OPTIONS = ("speed", "radius", "corridor", "acceleration", "yaw_rate", "heading", "laps", "spacing", "angle")
"""What a caller may state that the file does not, in the units of `Plan`; `spacing` and `angle` are a lawnmower's."""

Origin = Sequence[float] | str


@dataclass(frozen=True)
class Mission:
    """What a boat is to do: a reference in its local frame, and the terms of following it."""

    name: str
    reference: Reference
    approach_speed: float = 0.3
    """To the first point, m/s."""
    approach_distance: float = 50.0
    """Largest distance to the first point at which the boat approaches it, m; beyond it the pilot refuses."""
    waypoints: tuple[Point, ...] = ()
    """Corners of the legs, m; empty for a shape."""
    deviation: float = 0.0
    """Largest distance between path and legs, m."""
    corridor: float | None = None
    """Largest distance allowed between path and legs, m."""
    fence_corners: tuple[Point, ...] | None = None
    """Corners of the water in which the boat may be, m."""
    notes: tuple[str, ...] = ()
    """Where the mission differs from what was asked for, and why."""
    frame: LocalFrame | None = None
    """Origin and axes of the local frame, of a geographic mission."""

    @staticmethod
    def load(
        path: str | Path,
        *,
        origin: Origin | None = None,
        axes: Axes | str | None = None,
        vessel: Vessel | None = None,
        duration: float | None = None,
        **options: float,
    ) -> Mission:
        """The mission of a .toml, .csv, .gpx, .geojson, .json or .plan file.

        `origin` (latitude, longitude in degrees, or "home" for a plan's home position) and `axes` ("ned" or "enu") are
        those of the boat's local frame, where the file does not state them. A `vessel` lowers speeds to what it can
        follow; without one only the yaw rate does. `duration` (s) is that of a station whose file states none, and
        `options` are those of `OPTIONS`.
        """
        with _naming(path):
            plan = read_plan(Path(path))
            return Mission.of_plan(
                plan, Path(path).stem, origin=origin, axes=axes, vessel=vessel, duration=duration, **options
            )

    @staticmethod
    def of_plan(
        plan: Plan,
        name: str = "",
        *,
        origin: Origin | None = None,
        axes: Axes | str | None = None,
        vessel: Vessel | None = None,
        duration: float | None = None,
        **options: float,
    ) -> Mission:
        """The mission of a plan, called `name` if the plan has no name; the rest is as in `load`."""
        plan = _with_options(plan, options)
        frame = _frame(plan, origin, axes)
        notes: list[str] = list(plan.notes)
        if plan.station is not None:
            reference: Reference = _station(plan, plan.station, frame, duration)
        elif plan.circle is not None:
            reference = _circle(plan, plan.circle, frame, vessel)
        else:
            reference = _legs(plan, frame, vessel, notes)
        if reference.duration > LONGEST:
            raise InputError(f"lasts {reference.duration:.0f} s: must be at most {LONGEST:g} s, one day")
        fence = None
        if plan.fence:
            fence = check_polygon(_places(plan.fence, frame, "fence"), "fence")
            times = np.arange(0.0, reference.duration + 0.5, 0.5)
            states = reference.at(times)
            outside = np.flatnonzero(~inside(fence, states[:, :2]))
            if len(outside):
                x, y = states[outside[0], :2]
                raise InputError(f"fence: the path leaves it at x = {x:.1f} m, y = {y:.1f} m: must lie inside")
        mission = Mission(
            name=plan.name or name,
            reference=reference,
            approach_speed=plan.approach_speed,
            approach_distance=plan.approach_distance,
            fence_corners=None if fence is None else tuple((x, y) for x, y in fence.tolist()),
            notes=tuple(notes),
            frame=frame,
        )
        return mission._with_legs(reference) if isinstance(reference, Legs) else mission

    @staticmethod
    def of(reference: Reference, name: str = "") -> Mission:
        """The mission of following a reference."""
        mission = Mission(name, reference)
        return mission._with_legs(reference) if isinstance(reference, Legs) else mission

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the reference at every second, the approach and the fence: equal for equal missions."""
        times = np.arange(0.0, self.reference.duration + 1.0)
        terms = [self.reference.duration, self.approach_speed, self.approach_distance, self.fence_corners]
        # Adding zero makes -0 and 0 the same.
        states = np.round(self.reference.at(times), 6) + 0.0
        return hashlib.sha256(json.dumps(terms).encode() + states.astype("<f8").tobytes()).hexdigest()

    def _with_legs(self, reference: Legs) -> Mission:
        return replace(
            self,
            waypoints=(reference.legs[0].start, *(leg.end for leg in reference.legs)),
            deviation=reference.deviation,
            corridor=reference.corridor,
            notes=(*self.notes, *reference.notes),
        )


@contextmanager
def _naming(path: str | Path) -> Iterator[None]:
    """Name the file in every error."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _with_options(plan: Plan, options: dict[str, float]) -> Plan:
    """The plan with what a caller states; raise for what the file states too."""
    stated: Any
    changed: dict[str, Any]
    for name, value in options.items():
        if name not in OPTIONS:
            raise InputError(unknown("option", name, OPTIONS))
        if name in ("spacing", "angle"):
            if plan.lawnmower is None:
                raise InputError(f"{name} = {value:g}: only for a survey area")
            stated, changed = getattr(plan.lawnmower, name), {"lawnmower": _changed(plan.lawnmower, {name: value})}
        elif name == "laps":
            stated, changed = None if plan.laps == 1 else plan.laps, {"laps": _whole(value)}
        else:
            stated = getattr(plan, name)
            if name in ("speed", "radius", "heading") and any(getattr(w, name) is not None for w in plan.waypoints):
                raise InputError(f"{name} = {value:g}: the waypoints state their own: give one of the two")
            changed = {name: value}
        if stated is not None:
            raise InputError(f"{name} = {value:g}: the file states {stated}: give one of the two")
        plan = _changed(plan, changed)
    return plan


def _changed(instance: Any, changed: dict[str, Any]) -> Any:
    return replace(instance, **changed)


def _whole(laps: float) -> int:
    if not math.isfinite(laps) or laps != round(laps):
        raise InputError(f"laps = {laps!r}: must be a whole number")
    return round(laps)


def _frame(plan: Plan, origin: Origin | None, axes: str | None) -> LocalFrame | None:
    """The local frame of a geographic plan, from the file or the caller; None for local coordinates."""
    if plan.coordinates == "local":
        if origin is not None or axes is not None:
            raise InputError("origin and axes: only for latitude and longitude; the file has x and y")
        return None
    if isinstance(origin, str):
        if origin != "home":
            raise InputError(
                f"origin = {origin!r}: must be LAT,LON in degrees, or 'home' for the home position of a plan"
            )
        if plan.home is None:
            raise InputError("origin = 'home': only for a .plan file with a planned home position")
        origin = plan.home
    for name, stated, given in (("origin", plan.origin, origin), ("axes", plan.axes, axes)):
        if stated is not None and given is not None and stated != (tuple(given) if name == "origin" else given):
            raise InputError(f"{name} = {given!r}: the file states {stated!r}: give one of the two")
    origin, axes = plan.origin or origin, plan.axes or axes
    if origin is None:
        raise InputError(
            "origin is missing: latitude and longitude need the place where the boat's local frame has its zero; "
            "state origin in the file or by --origin LAT,LON"
        )
    if axes is None:
        raise InputError("axes are missing: state 'ned' (x north, y east) or 'enu' (x east, y north), or use --axes")
    if len(origin) != 2 or not all(isinstance(value, Real) for value in origin):
        raise InputError(f"origin = {origin!r}: must be a latitude and a longitude in degrees")
    return LocalFrame(float(origin[0]), float(origin[1]), axes)  # type: ignore[arg-type]


def _places(places: Sequence[Place], frame: LocalFrame | None, what: str) -> list[Point]:
    """Places in the local frame, m."""
    found = []
    for i, place in enumerate(places, 1):
        with _naming(f"{what} {i}"):
            if frame is not None:
                found.append(frame.to_local(*place))
            elif math.hypot(*place) <= FARTHEST:
                found.append(place)
            else:
                raise InputError(f"x, y = {place!r} m: must lie within {FARTHEST / 1000:g} km of the origin")
    return found


def _heading(degrees: float, frame: LocalFrame | None) -> float:
    """A heading of the plan in the local frame, rad."""
    return math.radians(degrees if frame is None else frame.to_heading(degrees))


def _station(plan: Plan, station: Station, frame: LocalFrame | None, duration: float | None) -> Reference:
    duration = station.duration or duration
    if duration is None:
        raise InputError("duration is missing: a station needs the time to stay there, s; state it or use --duration")
    (point,) = _places([station.point], frame, "station")
    return Hold((*point, _heading(plan.heading or 0.0, frame)), positive("duration", duration))


def _circle(plan: Plan, circle: Circle, frame: LocalFrame | None, vessel: Vessel | None) -> Reference:
    """Laps from the point of the circle in the direction of x, from rest to rest."""
    (centre,) = _places([circle.centre], frame, "circle")
    radius, side = abs(circle.radius), math.copysign(1.0, circle.radius)
    start = (centre[0] + radius, centre[1], side * math.pi / 2)
    path = Arcs([2 * math.pi * radius * circle.laps * plan.laps], [side / radius], closed=False, start=start)
    heading = None if plan.heading is None else _heading(plan.heading, frame)
    speed, acceleration = plan.speed or 0.6, plan.acceleration or 0.1
    if heading is None:
        speed = min(speed, (plan.yaw_rate or 0.5) * radius)
    if vessel is not None:
        crab = np.zeros(1) if heading is None else np.radians(np.arange(0.0, 360.0, 5.0))
        slope = np.full_like(crab, side / radius if heading is None else 0.0)
        speed = float(feasible_speed(vessel, np.full_like(crab, speed), crab, slope).min())
        acceleration = min(acceleration, (1 - FORCE_SHARE) * vessel.normalized.alpha_u)
    return Follow(path, *speed_profile(np.array([path.length]), np.array([speed]), acceleration), heading)


def _legs(plan: Plan, frame: LocalFrame | None, vessel: Vessel | None, notes: list[str]) -> Legs:
    rows = list(plan.waypoints)
    closed = plan.closed or (len(rows) > 3 and rows[0].at == rows[-1].at)
    last = rows[0] if rows and plan.closed else None
    if closed and len(rows) > 3 and rows[0].at == rows[-1].at:
        last = rows.pop()
    points = _places([row.at for row in rows], frame, "waypoint")
    if plan.lawnmower is not None:
        points = _survey(plan, frame, notes)
        rows = [Waypoint(at=point) for point in points]
    if len(points) * plan.laps > MOST_WAYPOINTS:
        raise InputError(f"gives {len(points) * plan.laps} waypoints: must be at most {MOST_WAYPOINTS}")
    if plan.laps > 1 and not closed:
        raise InputError(f"laps = {plan.laps}: only for a closed path, whose last waypoint is the first")
    if closed and last is None:
        last = rows[0]
    to = [*rows[1:], *([last] if closed and last is not None else [])]
    given: dict[str, Any] = {"speed": [row.speed or plan.speed or 0.6 for row in to]}
    radius = 2.0 if plan.radius is None else plan.radius
    given["radius"] = [radius if row.radius is None else row.radius for row in rows]
    given["holds"] = [row.hold for row in rows]
    if closed and last is not None:
        given["holds"][0] = last.hold
    stated = [row.heading for row in rows if row.heading is not None]
    if stated and len(stated) < len(rows):
        raise InputError(f"heading of {len(stated)} of {len(rows)} waypoints: must be stated for all or for none")
    if stated:
        given["heading"] = [_heading(heading, frame) for heading in stated]
    elif plan.heading is not None:
        given["heading"] = _heading(plan.heading, frame)
    for name in ("corridor", "acceleration", "yaw_rate"):
        if (value := getattr(plan, name)) is not None:
            given[name] = value
    return legs(points, closed=closed, laps=plan.laps, vessel=vessel, **given)


def _survey(plan: Plan, frame: LocalFrame | None, notes: list[str]) -> list[Point]:
    """The waypoints of a lawnmower; a transit that leaves its area is noted."""
    task = plan.lawnmower
    assert task is not None
    if task.spacing is None:
        raise InputError("spacing is missing: a survey area needs the distance between legs, m; state it or --spacing")
    area = _places(task.area, frame, "area corner")
    points = lawnmower(area, spacing=task.spacing, angle=None if task.angle is None else _heading(task.angle, frame))
    corners = check_polygon(area, "area")
    for i in range(1, len(points) - 1, 2):
        between = np.linspace(points[i], points[i + 1], 50)
        if not inside(corners, between, margin=0.01).all():
            notes.append(f"the way from waypoint {i + 1} to waypoint {i + 2} leaves the survey area")
    if (share := uncovered(corners, points, task.spacing)) >= 0.001:
        notes.append(f"{100 * share:.1f} % of the survey area is farther than half a spacing from every leg")
    return points
