"""The reference of a plan: legs through waypoints or over a survey area, laps of a circle, or a station."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from anyhull.errors import InputError
from anyhull.legs import Legs, legs
from anyhull.mission.geodesy import FARTHEST, LocalFrame
from anyhull.mission.plan import MOST_WAYPOINTS, Circle, Place, Plan, Station, Waypoint
from anyhull.mission.survey import Point, check_polygon, inside, lawnmower, uncovered
from anyhull.paths import Arcs
from anyhull.speeds import FORCE_SHARE, feasible_speed, spare_acceleration, speed_profile
from anyhull.trajectory import Follow, Hold, Reference, Stage, positive
from anyhull.vessel import Vessel


def reference_of(
    plan: Plan, frame: LocalFrame | None, vessel: Vessel | None, duration: float | None, notes: list[str]
) -> Reference:
    """The reference of a plan in the local frame; where it differs from the plan is added to `notes`."""
    if plan.station is not None:
        return _station(plan, plan.station, frame, duration)
    if plan.circle is not None:
        return _circle(plan, plan.circle, frame, vessel, notes)
    return _legs(plan, frame, vessel, notes)


@contextmanager
def naming(what: str | Path) -> Iterator[None]:
    """Name a file, or a part of it, in every error."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{what}: {error}") from None


def places(stated: Sequence[Place], frame: LocalFrame | None, what: str) -> list[Point]:
    """Places in the local frame, m."""
    found = []
    for i, place in enumerate(stated, 1):
        with naming(f"{what} {i}"):
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
        raise InputError(
            "duration is missing: a station needs the time to stay there, s; state it in the [station] of a .toml file"
        )
    (point,) = places([station.point], frame, "station")
    pose = (*point, _heading(plan.heading or 0.0, frame))
    return Hold(pose, positive("duration", duration), (Stage(0.0, f"station for {duration:g} s"),))


def _circle(plan: Plan, circle: Circle, frame: LocalFrame | None, vessel: Vessel | None, notes: list[str]) -> Reference:
    """Laps from the point of the circle in the direction of x, from rest to rest."""
    (centre,) = places([circle.centre], frame, "circle")
    radius, side = abs(circle.radius), math.copysign(1.0, circle.radius)
    start = (centre[0] + radius, centre[1], side * math.pi / 2)
    lap = 2 * math.pi * radius
    path = Arcs([lap * circle.laps], [side / radius], closed=False, start=start)
    heading = None if plan.heading is None else _heading(plan.heading, frame)
    speed, acceleration = _circle_speed(plan, radius, heading is None, vessel, notes)
    reference = Follow(path, *speed_profile(np.array([path.length]), np.array([speed]), acceleration), heading)
    starts = reference.time_at(lap * np.arange(math.ceil(circle.laps - 1e-9), dtype=float))
    laps = (Stage(float(time), f"lap {i} of {circle.laps:g}") for i, time in enumerate(starts, 1))
    return replace(reference, stages=tuple(laps))


def _circle_speed(
    plan: Plan, radius: float, tangential: bool, vessel: Vessel | None, notes: list[str]
) -> tuple[float, float]:
    """Speed and acceleration on a circle, lowered to the yaw rate and to what the vessel can give, with notes."""
    asked, acceleration, yaw_rate = plan.speed or 0.6, plan.acceleration or 0.1, plan.yaw_rate or 0.5
    speed = min(asked, yaw_rate * radius) if tangential else asked
    why = f"it turns at {yaw_rate:g} rad/s at most"
    if vessel is not None:
        crab = np.zeros(1) if tangential else np.radians(np.arange(0.0, 360.0, 5.0))
        slope = np.full_like(crab, 1 / radius if tangential else 0.0)
        feasible = float(feasible_speed(vessel, np.full_like(crab, speed), crab, slope).min())
        if feasible < speed * (1 - 1e-6):
            speed, why = feasible, f"{vessel.name} may use {100 * FORCE_SHARE:.0f} % of its force at a constant speed"
        spare = spare_acceleration(vessel, np.full_like(crab, speed), crab, slope)
        if spare < acceleration * (1 - 1e-6):
            notes.append(f"acceleration {spare:.2g} m/s²: {vessel.name} has no more force to spare at this speed")
            acceleration = spare
    if speed < asked * (1 - 1e-6):
        notes.append(f"slower on the circle, {speed:.2f} instead of {asked:g} m/s: {why}")
    return speed, acceleration


def _legs(plan: Plan, frame: LocalFrame | None, vessel: Vessel | None, notes: list[str]) -> Legs:
    rows, closed = list(plan.waypoints), plan.returns
    if closed and len(rows) > 3 and rows[0].at == rows[-1].at:
        rows = [_merged(rows[0], rows[-1]), *rows[1:-1]]
    points = places([row.at for row in rows], frame, "waypoint")
    if plan.lawnmower is not None:
        points = _survey(plan, frame, notes)
        rows = [Waypoint(at=point) for point in points]
    if len(points) * plan.laps > MOST_WAYPOINTS:
        raise InputError(f"gives {len(points) * plan.laps} waypoints: must be at most {MOST_WAYPOINTS}")
    if plan.laps > 1 and not closed:
        raise InputError(f"laps = {plan.laps}: only for a closed path, whose last waypoint is the first")
    to = rows[1:] + rows[:1] * closed
    given: dict[str, Any] = {"speed": [row.speed or plan.speed or 0.6 for row in to]}
    radius = 2.0 if plan.radius is None else plan.radius
    given["radius"] = [radius if row.radius is None else row.radius for row in rows]
    given["holds"] = [row.hold for row in rows]
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


def _merged(first: Waypoint, last: Waypoint) -> Waypoint:
    """The one waypoint of a closed path that is stated first and last, with all that either states."""
    return Waypoint(
        first.at,
        speed=first.speed if last.speed is None else last.speed,
        hold=max(first.hold, last.hold),
        radius=last.radius if first.radius is None else first.radius,
        heading=last.heading if first.heading is None else first.heading,
    )


def _survey(plan: Plan, frame: LocalFrame | None, notes: list[str]) -> list[Point]:
    """The waypoints of a lawnmower; a transit that leaves its area is noted."""
    task = plan.lawnmower
    assert task is not None
    if task.spacing is None:
        raise InputError("spacing is missing: a survey area needs the distance between legs, m; state it or --spacing")
    area = places(task.area, frame, "area corner")
    points = lawnmower(area, spacing=task.spacing, angle=None if task.angle is None else _heading(task.angle, frame))
    corners = check_polygon(area, "area")
    for i in range(1, len(points) - 1, 2):
        between = np.linspace(points[i], points[i + 1], 50)
        if not inside(corners, between, margin=0.01).all():
            notes.append(f"the way from waypoint {i + 1} to waypoint {i + 2} leaves the survey area")
    if (share := uncovered(corners, points, task.spacing)) >= 0.001:
        notes.append(f"{100 * share:.1f} % of the survey area is farther than half a spacing from every leg")
    return points
