"""The autopilot's state as our odometry: its clock, its local frame and the frame of a mission.

ArduPilot's filter has its position in metres north and east of an origin. It makes them from latitude and longitude on
a sphere (`Location::get_distance_NE`): a degree is `DEGREE` everywhere, of longitude times the cosine of the mean
latitude. That differs from WGS84 by up to 0.5 %, so a geographic mission gets the latitude and longitude back the same
way, and only then its own projection.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

from anyhull.backend import to_body, wrap
from anyhull.errors import InputError
from anyhull.frames import Axes, heading_of, mirror_body, swap_pose
from anyhull.hydrodynamics import Triple
from anyhull.mission.geodesy import LocalFrame

DEGREE = 111318.84502145034
"""Length of a degree of latitude in ArduPilot, m."""

WRAP = 2**32
"""Milliseconds after which `time_boot_ms` starts again: 49.7 days."""

WRAP_MARGIN = 60_000
"""Distance to it at which a step back is taken for it, ms."""

STEP_BACK, REPEATED = 1000, 4
"""A step back of the time since boot, ms, that so many messages in succession have means that the autopilot
restarted; one alone was late."""

MOVED = 0.05
"""Distance from which on an origin or home is another, m: they are given in steps of 1.1 cm."""

ATTITUDE_AGE = 0.25
"""Largest difference in time between position and attitude, s."""

STATUS_AGE = 1.5
"""Time for which EKF_STATUS_REPORT holds, s: it is asked for at 10 Hz, and a third may be lost."""

Health = Literal["ok", "dead reckoning", "lost"]

ATTITUDE, VELOCITY, RELATIVE, ABSOLUTE, CONSTANT, UNINITIALIZED, GLITCH = 1, 2, 8, 16, 128, 1024, 32768
"""Flags of EKF_STATUS_REPORT."""

TEST_RATIO = 1.0
"""Of the filter's innovations, beyond which it rejects its measurements."""


class Place(NamedTuple):
    """Latitude and longitude, degrees."""

    latitude: float
    longitude: float

    @staticmethod
    def of(latitude: int, longitude: int) -> Place | None:
        """From the integers of a message, 1e-7 degrees; None where they are no place, or not known (both 0)."""
        place = Place(latitude * 1e-7, longitude * 1e-7)
        known = (latitude, longitude) != (0, 0) and abs(place.latitude) <= 90 and abs(place.longitude) <= 180
        return place if known else None

    def offset(self, north: float, east: float) -> Place:
        """The place so far away, as ArduPilot counts, m."""
        latitude = self.latitude + north / DEGREE
        scale = max(math.cos(math.radians((self.latitude + latitude) / 2)), 0.01)
        return Place(latitude, self.longitude + east / (DEGREE * scale))

    def to(self, other: Place) -> tuple[float, float]:
        """North and east from here to there, as ArduPilot counts, m."""
        scale = max(math.cos(math.radians((self.latitude + other.latitude) / 2)), 0.01)
        turn = (other.longitude - self.longitude + 180) % 360 - 180
        return (other.latitude - self.latitude) * DEGREE, turn * DEGREE * scale


class BootTime:
    """The autopilot's time since boot: continuous where its counter wraps, anew where it restarts."""

    def __init__(self) -> None:
        self._last: int | None = None
        self._wraps = 0
        self._back = 0

    def seconds(self, milliseconds: int) -> tuple[float, bool]:
        """The time of a message in s, and whether the autopilot has restarted with it."""
        if self._last is None:
            self._last = milliseconds
            return milliseconds / 1000, False
        restarted, step = False, milliseconds - self._last
        if step < -STEP_BACK and self._last > WRAP - WRAP_MARGIN and milliseconds < WRAP_MARGIN:
            self._wraps, step = self._wraps + 1, 0
            self._last, self._back = milliseconds, 0
        elif self._wraps and self._last < WRAP_MARGIN and milliseconds > WRAP - WRAP_MARGIN:
            return (self._wraps - 1) * WRAP / 1000 + milliseconds / 1000, False  # late, from before the wrap
        elif step < -STEP_BACK:
            self._back += 1
            if self._back >= REPEATED:
                restarted, self._wraps, self._back, self._last = True, 0, 0, milliseconds
        else:
            self._back = 0
            self._last = max(self._last, milliseconds)
        return self._wraps * WRAP / 1000 + milliseconds / 1000, restarted


class Frame:
    """Positions of the autopilot in the pilot's local frame."""

    def __init__(self, axes: Axes, zero: Literal["origin", "home"], mission: LocalFrame | None) -> None:
        if mission is not None and mission.axes != axes:
            raise InputError(f"link.axes = {axes!r}: must be {mission.axes!r}, the axes of the mission")
        self.axes, self._zero, self._mission = axes, zero, mission
        self.origin: Place | None = None
        """Of the autopilot's filter."""
        self.home: Place | None = None
        self._anchor: Place | None = None
        self._moved: dict[str, str] = {}
        self._far = ""

    @property
    def lost(self) -> bool:
        """Whether the autopilot counts from another origin than the one that we started with."""
        return "origin" in self._moved and (self._mission is not None or self._zero == "home")

    def forget(self) -> None:
        """Forget where the origin is, as after the autopilot has restarted; the zero of a local mission stays."""
        self._anchor = self._anchor or (self.home if self._zero == "home" else self.origin)
        self.origin = self.home = None
        self._moved.clear()

    def take(self, name: Literal["origin", "home"], place: Place | None, frozen: bool) -> str:
        """Take the origin or home; why it was not taken, or empty. A `frozen` one stays where it is."""
        known: Place | None = getattr(self, name)
        if place is None:
            return ""
        if not frozen or known is None:
            setattr(self, name, place)
        elif (distance := math.hypot(*known.to(place))) > MOVED:
            self._moved[name] = f"the autopilot's {name} moved by {distance:.1f} m: start the pilot again"
            return f"{name} moved under way"
        self._moved.pop(name, None)
        return ""

    def unready(self) -> str:
        """What is not known yet or has moved, or empty."""
        if found := self._incomplete() or self._far:
            return found
        used = ("origin", "home") if self._zero == "home" else ("origin",) if self._mission is not None else ()
        return next((self._moved[name] for name in used if name in self._moved), "")

    def _incomplete(self) -> str:
        if self.origin is None and (self._mission is not None or self._zero == "home" or self._anchor is not None):
            return "no origin of the autopilot's filter yet: wait for its GPS"
        return "no home yet: wait for the autopilot's GPS" if self._zero == "home" and self.home is None else ""

    def local(self, north: float, east: float) -> tuple[float, float] | None:
        """x and y of a position relative to the autopilot's origin, m; None while that is not known."""
        if self._incomplete():
            return None
        if self._mission is None:
            zero = self._anchor or (self.home if self._zero == "home" else None)
            if zero is not None and self.origin is not None:
                back = self.origin.to(zero)
                north, east = north - back[0], east - back[1]
            return (north, east) if self.axes == "ned" else (east, north)
        assert self.origin is not None
        return self.geographic(self.origin.offset(north, east))

    def geographic(self, place: Place) -> tuple[float, float] | None:
        """x and y of a place, m; None where that is not known or too far away."""
        if self._mission is None:
            return self.local(*self.origin.to(place)) if self.origin else None
        self._far = ""
        try:
            return self._mission.to_local(place.latitude, place.longitude)
        except InputError:
            here, zero = (f"{at.latitude:.4f}, {at.longitude:.4f}" for at in (place, self._mission))
            self._far = f"the boat is at {here}, too far from the mission's origin at {zero}: check --origin"
            return None

    def state(self, xy: tuple[float, float], yaw: float, body: Sequence[float]) -> tuple[Triple, Triple]:
        """Pose and velocity from a position in this frame, and heading and body velocity in NED and FRD."""
        if self.axes == "enu":
            return (*xy, swap_pose((0.0, 0.0, yaw))[2]), mirror_body(body)
        u, v, r = (float(number) for number in body)
        return (*xy, float(wrap(yaw))), (u, v, r)


class Attitude(NamedTuple):
    """The last ATTITUDE."""

    time: float
    yaw: float
    rate: float

    def at(self, time: float) -> float:
        """The heading at a time close by, rad."""
        return self.yaw + self.rate * (time - self.time)


class FilterStatus:
    """The last EKF_STATUS_REPORT, for as long as it holds."""

    def __init__(self, geographic: bool) -> None:
        self._geographic = geographic
        self._health: Health = "lost"
        self._absolute = False
        self._time = -math.inf

    def take(self, flags: int, ratios: Sequence[float], arrival: float) -> None:
        """Take a report."""
        self._health, self._time = filter_health(flags, ratios, self._geographic), arrival
        self._absolute = bool(flags & ABSOLUTE)

    def health(self, now: float, cached: bool = False) -> Health:
        """Of a state; of a `cached` one, which ArduPilot goes on to send, only with a filter that has a position."""
        if now - self._time > STATUS_AGE or (cached and not self._absolute):
            return "lost"
        return self._health

    def unready(self, now: float) -> str:
        """Why the filter cannot be relied on, or empty."""
        return "no EKF_STATUS_REPORT of the autopilot's filter" if now - self._time > STATUS_AGE else ""


def body_velocity(north: float, east: float, yaw: float, rate: float) -> tuple[float, float, float]:
    """u, v and r (forward, starboard) of a velocity over ground, m/s."""
    u, v = to_body(north, east, yaw)
    return float(u), float(v), rate


def filter_health(flags: int, ratios: Sequence[float], geographic: bool) -> Health:
    """What EKF_STATUS_REPORT says of the filter; `ratios` are of its innovations to what it accepts."""
    if not all(map(math.isfinite, ratios)):
        return "lost"
    if flags & (CONSTANT | UNINITIALIZED) or not flags & ATTITUDE or not flags & VELOCITY:
        return "lost"
    if not flags & (ABSOLUTE | RELATIVE):
        return "lost"
    aided = flags & ABSOLUTE or not geographic
    return "ok" if aided and not flags & GLITCH and max(ratios) <= TEST_RATIO else "dead reckoning"


def odometry_of(message: object) -> tuple[float, tuple[float, float], float, tuple[float, float, float], list[float]]:
    """Time (s), north and east, heading, body velocity and standard deviations of an ODOMETRY in NED and FRD."""
    get = message.__getattribute__
    q = get("q")
    std = [_deviation(get("pose_covariance"), i) for i in (0, 6, 20)]
    std += [_deviation(get("velocity_covariance"), i) for i in (0, 6, 20)]
    velocity = (float(get("vx")), float(get("vy")), float(get("yawspeed")))
    return get("time_usec") / 1e6, (float(get("x")), float(get("y"))), heading_of(q), velocity, std


def _deviation(covariance: Sequence[float], index: int) -> float:
    """From the upper triangle of a covariance; NaN where it is not given."""
    value = covariance[index]
    return math.sqrt(value) if math.isfinite(value) and value >= 0 else math.nan
