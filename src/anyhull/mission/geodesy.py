"""Latitude and longitude in the boat's local frame: the azimuthal equidistant projection about an origin on WGS84.

A point at the geodesic distance s and azimuth a from the origin has the coordinates s·cos(a) north and s·sin(a) east.
From a plane that touches the Earth at the origin it differs by s³/(6R²): 4 µm at 1 km, 4 mm at 10 km.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from anyhull.errors import InputError
from anyhull.frames import Axes
from anyhull.schema import check_types, require

FARTHEST = 100e3
"""Largest distance of a point from the origin, m."""


@dataclass(frozen=True)
class LocalFrame:
    """A local frame with its zero at a place on the Earth."""

    latitude: float
    """Of the origin, degrees north."""
    longitude: float
    """Of the origin, degrees east."""
    axes: Axes
    """`ned`: x north and y east. `enu`: x east and y north."""

    def __post_init__(self) -> None:
        check_types(self)
        require(self, "latitude", abs(self.latitude) <= 90, "from -90 to 90 degrees")
        require(self, "longitude", abs(self.longitude) <= 180, "from -180 to 180 degrees")

    def to_local(self, latitude: float, longitude: float) -> tuple[float, float]:
        """x and y (m) of a place (degrees); raise for one that is not on the Earth or too far away."""
        from geographiclib.geodesic import Geodesic

        LocalFrame(latitude, longitude, self.axes)
        found = Geodesic.WGS84.Inverse(self.latitude, self.longitude, latitude, longitude)
        distance, azimuth = float(found["s12"]), math.radians(found["azi1"])
        if distance > FARTHEST:
            raise InputError(
                f"latitude {latitude:g}, longitude {longitude:g}: {distance / 1000:.0f} km from the origin: must be at "
                f"most {FARTHEST / 1000:g} km; latitude comes first, except in GeoJSON"
            )
        north, east = distance * math.cos(azimuth), distance * math.sin(azimuth)
        return (north, east) if self.axes == "ned" else (east, north)

    def to_geographic(self, x: float, y: float) -> tuple[float, float]:
        """Latitude and longitude (degrees) of a point (m)."""
        from geographiclib.geodesic import Geodesic

        north, east = (x, y) if self.axes == "ned" else (y, x)
        azimuth = math.degrees(math.atan2(east, north))
        found = Geodesic.WGS84.Direct(self.latitude, self.longitude, azimuth, math.hypot(north, east))
        return float(found["lat2"]), float(found["lon2"])

    def to_heading(self, compass: float) -> float:
        """The local heading, from x toward y, of a compass heading, clockwise from true north; both in degrees."""
        return compass if self.axes == "ned" else 90.0 - compass
