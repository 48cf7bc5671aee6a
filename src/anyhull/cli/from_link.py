"""The mission of a path that the boat's link brings: the points of a nav_msgs/Path."""

from __future__ import annotations

import sys
from typing import Any

from anyhull.cli.onboard import until_signal
from anyhull.cli.references import IN_MISSION
from anyhull.errors import InputError, RunError
from anyhull.mission import Mission, Plan, Waypoint
from anyhull.onboard.links import open_link
from anyhull.onboard.links.ros2 import ROS2Config
from anyhull.onboard.links.ros2.node import ROS2Link
from anyhull.onboard.setup import Setup

WAIT = 0.2
"""Time between two looks at the signals, s."""


def mission_from_link(setup: Setup, options: dict[str, Any]) -> tuple[Mission, dict[str, Any]]:
    """Wait for a path until a signal: straight legs through its points, and what was asked, for a log.

    `options` are those of a mission file, by name; None is as not given.
    """
    options = {name: value for name, value in options.items() if value is not None}
    if unfit := [name for name in options if name not in IN_MISSION or name in ("spacing", "angle")]:
        raise InputError(f"--{unfit[0]} {options[unfit[0]]}: not for a path of the link")
    if isinstance(setup.link, ROS2Config) and not setup.link.path:
        raise InputError("--from-link: [link] path is empty: must be a topic")
    if setup.link.kind != "ros2":
        raise InputError(f"--from-link: only for [link] kind = 'ros2', and this boat's is {setup.link.kind!r}")
    link = open_link(setup.link, "pilot", vessel=setup.vessel)
    assert isinstance(link, ROS2Link)
    try:
        link.listen_for_path()
        print(f"waiting for a path at {link.address}", file=sys.stderr, flush=True)
        with until_signal() as ended:
            while not (points := link.path):
                if reason := ended():
                    raise RunError(f"{reason} before a path was received")
                link.receive(WAIT)
    finally:
        link.close()
    try:
        plan = Plan(coordinates="local", waypoints=tuple(Waypoint(at=point) for point in points))
        mission = Mission.of_plan(plan, "path", vessel=setup.vessel, **options)
    except InputError as error:
        raise InputError(f"--from-link: a path of {len(points)} points: {error}") from None
    return mission, {"shape": "path", "waypoints": len(points)} | options
