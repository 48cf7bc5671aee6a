"""A mission: a reference with its legs, approach and fence, from a plan or a file."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from anyhull.errors import InputError, unknown
from anyhull.frames import Axes
from anyhull.legs import Legs
from anyhull.mission.files import read_plan
from anyhull.mission.geodesy import LocalFrame
from anyhull.mission.plan import Plan
from anyhull.mission.resolve import naming, places, reference_of
from anyhull.mission.survey import Point, check_polygon, inside
from anyhull.trajectory import Reference
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
    area: tuple[Point, ...] | None = None
    """Corners of the survey area, m."""
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
        `options` are those of `OPTIONS`; a speed or radius is for those waypoints that state none.
        """
        with naming(path):
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
        reference = reference_of(plan, frame, vessel, duration, notes)
        if reference.duration > LONGEST:
            raise InputError(f"lasts {reference.duration:.0f} s: must be at most {LONGEST:g} s, one day")
        fence = None
        if plan.fence:
            fence = check_polygon(places(plan.fence, frame, "fence"), "fence")
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
            area=None if plan.lawnmower is None else tuple(places(plan.lawnmower.area, frame, "area corner")),
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
        elif name == "laps" and plan.circle is not None:
            stated = None if plan.circle.laps == 1 else plan.circle.laps
            changed = {"circle": _changed(plan.circle, {name: value})}
        elif name == "laps":
            stated, changed = None if plan.laps == 1 else plan.laps, {"laps": _whole(value)}
        else:
            stated = getattr(plan, name)
            if _by_waypoints(plan, name):
                raise InputError(f"{name} = {value:g}: the waypoints state their own: give one of the two")
            changed = {name: value}
        if stated is not None:
            raise InputError(f"{name} = {value:g}: the file states {stated}: give one of the two")
        plan = _changed(plan, changed)
    return plan


def _by_waypoints(plan: Plan, name: str) -> bool:
    """Whether the waypoints leave nothing to a speed or radius for all; a heading they state for all or for none."""
    if name == "heading":
        return any(waypoint.heading is not None for waypoint in plan.waypoints)
    ends = {"speed": plan.waypoints[0 if plan.closed else 1 :]}  # of legs
    corners = {"radius": plan.waypoints if plan.returns else plan.waypoints[1:-1]}
    own = (ends | corners).get(name, ())
    return bool(own) and all(getattr(waypoint, name) is not None for waypoint in own)


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
