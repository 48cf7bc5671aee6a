"""What a mission file states, whatever its format: places as written, speeds, radii, holds and patterns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from anyhull.errors import InputError
from anyhull.schema import check_types, require

Place = tuple[float, float]
"""x and y in m, or latitude and longitude in degrees, as the plan's `coordinates` say."""

MOST_WAYPOINTS = 10_000
"""Largest number of waypoints in a mission."""

WITHOUT_MEANING = {
    "circle": ("radius", "corridor", "closed", "laps"),
    "station": ("speed", "radius", "corridor", "acceleration", "yaw_rate", "closed", "laps"),
}
"""Fields of a plan that say nothing about a circle or a station; a circle has its own radius and laps."""


@dataclass(frozen=True)
class Waypoint:
    """A waypoint, with what differs there from the rest of the mission."""

    at: Place
    speed: float | None = None
    """On the leg that ends here, m/s."""
    hold: float = 0.0
    """Time to wait here, s."""
    radius: float | None = None
    """Of the arc here, m."""
    heading: float | None = None
    """Here, degrees."""

    def __post_init__(self) -> None:
        check_types(self)
        require(self, "speed", self.speed is None or 1e-3 <= self.speed <= 100, "from 0.001 to 100 m/s")
        require(self, "hold", 0 <= self.hold <= 86400, "zero or more, and at most 86400 s")
        require(self, "radius", self.radius is None or self.radius >= 0, "zero or more")


@dataclass(frozen=True)
class Lawnmower:
    """Parallel legs over an area."""

    area: tuple[Place, ...]
    """Corners in order."""
    spacing: float | None = None
    """Largest distance between the legs, m."""
    angle: float | None = None
    """Direction of the legs as a heading, degrees; by default along the longest side."""

    def __post_init__(self) -> None:
        check_types(self)
        require(self, "spacing", self.spacing is None or 0.01 <= self.spacing <= 1e5, "from 0.01 to 100000 m")
        require(self, "area", len(self.area) <= 1000, "at most 1000 corners")


@dataclass(frozen=True)
class Circle:
    """Laps around a place."""

    centre: Place
    radius: float
    """m; positive: turns from x toward y; negative: the other way."""
    laps: float = 1.0

    def __post_init__(self) -> None:
        check_types(self)
        require(self, "radius", 0.1 <= abs(self.radius) <= 1e5, "from 0.1 to 100000 m, or negative")
        require(self, "laps", 0.001 <= self.laps <= 1000, "from 0.001 to 1000")


@dataclass(frozen=True)
class Station:
    """Station keeping at a place."""

    point: Place
    duration: float | None = None
    """s."""

    def __post_init__(self) -> None:
        check_types(self)
        require(self, "duration", self.duration is None or self.duration > 0, "positive")


@dataclass(frozen=True)
class Plan:
    """The content of a mission file: one of `waypoints`, `lawnmower`, `circle` and `station`, and how to follow it."""

    coordinates: Literal["local", "geographic"]
    """`local`: places are x, y in m, and headings from x toward y. `geographic`: places are latitude, longitude in
    degrees, and headings are clockwise from true north."""
    name: str = ""
    origin: Place | None = None
    """Latitude and longitude of the zero of the boat's local frame, degrees; for geographic coordinates."""
    axes: str | None = None
    """Of the local frame, `ned` or `enu`; for geographic coordinates."""
    waypoints: tuple[Waypoint, ...] = ()
    lawnmower: Lawnmower | None = None
    circle: Circle | None = None
    station: Station | None = None
    speed: float | None = None
    """m/s; 0.6 if nothing says otherwise."""
    radius: float | None = None
    """Of the arcs, m; 2 if nothing says otherwise."""
    corridor: float | None = None
    """Largest distance of the path off its legs and waypoints, m; 1 if nothing says otherwise."""
    acceleration: float | None = None
    """m/s²; 0.1 if nothing says otherwise."""
    yaw_rate: float | None = None
    """In turns, rad/s; 0.5 if nothing says otherwise."""
    heading: float | None = None
    """Fixed, degrees; by default along the path."""
    closed: bool = False
    """Whether to return to the first waypoint."""
    laps: int = 1
    """Of a closed path."""
    approach_speed: float = 0.3
    """To the first point, m/s."""
    approach_distance: float = 50.0
    """Largest distance to the first point at which the boat approaches it, m."""
    fence: tuple[Place, ...] = ()
    """Corners in order; empty: none."""
    home: Place | None = None
    """Planned home position of a QGroundControl plan, degrees."""
    notes: tuple[str, ...] = ()
    """What the file holds and the mission leaves out."""

    @property
    def returns(self) -> bool:
        """Whether the path is closed, by the field or since the last waypoint is the first."""
        return self.closed or (len(self.waypoints) > 3 and self.waypoints[0].at == self.waypoints[-1].at)

    def __post_init__(self) -> None:
        check_types(self)
        for field, least, most in (("speed", 1e-3, 100), ("acceleration", 1e-6, 10), ("yaw_rate", 1e-6, 10)):
            value = getattr(self, field)
            require(self, field, value is None or least <= value <= most, f"from {least:g} to {most:g}")
        require(self, "corridor", self.corridor is None or self.corridor > 0, "positive")
        require(self, "radius", self.radius is None or self.radius >= 0, "zero or more")
        require(self, "axes", self.axes in (None, "ned", "enu"), "'ned' (x north, y east) or 'enu' (x east, y north)")
        require(self, "approach_speed", self.approach_speed > 0, "positive")
        require(self, "approach_distance", self.approach_distance > 0, "positive")
        require(self, "laps", 1 <= self.laps <= 1000, "from 1 to 1000")
        if self.coordinates == "local" and (self.origin is not None or self.axes is not None):
            raise InputError("origin and axes: only for geographic coordinates; these are local")
        given = [name for name in ("waypoints", "lawnmower", "circle", "station") if getattr(self, name)]
        if len(given) != 1:
            held = " and ".join(given) or "none"
            raise InputError(f"holds {held}: must hold one of waypoints, lawnmower, circle and station")
        for field in WITHOUT_MEANING.get(given[0], ()):
            if (value := getattr(self, field)) != getattr(Plan, field):
                own = f"; [{given[0]}] has its own" if hasattr(getattr(self, given[0]), field) else ""
                raise InputError(f"{field} = {value!r}: has no meaning for a {given[0]}: must be left out{own}")
        count = len(self.waypoints) * self.laps
        if count > MOST_WAYPOINTS:
            raise InputError(f"holds {count} waypoints: must be at most {MOST_WAYPOINTS}")
