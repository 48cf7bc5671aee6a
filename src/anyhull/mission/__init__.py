"""Missions: waypoints, surveys, circles and stations from files of several formats, resolved to a reference."""

from anyhull.mission.geodesy import LocalFrame
from anyhull.mission.mission import Mission
from anyhull.mission.plan import Circle, Lawnmower, Plan, Station, Waypoint
from anyhull.mission.survey import lawnmower

__all__ = ["Circle", "Lawnmower", "LocalFrame", "Mission", "Plan", "Station", "Waypoint", "lawnmower"]
