"""What other tools need of a log beside its numbers: times, events, the local frame and the boat, all checked."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyhull.backend import Array
from anyhull.errors import InputError
from anyhull.frames import Axes, mirror_body, swap_pose
from anyhull.hydrodynamics import Triple
from anyhull.log import Log
from anyhull.mission.geodesy import LocalFrame
from anyhull.schema import decode
from anyhull.thrusters import Thruster

Nanoseconds = NDArray[np.int64]

LATEST = 2.0**31 - 1
"""Largest time, s: that of ROS's message headers."""

LONGEST_TEXT = 1000
"""Characters of an event."""


class Entry(NamedTuple):
    """An event at its time in the file."""

    time: int
    """ns."""
    what: str
    detail: str


class Facts(NamedTuple):
    """The boat and its local frame, as far as the log states them."""

    frame: LocalFrame | None = None
    layout: tuple[Thruster, ...] = ()
    limits: Triple | None = None
    """Largest control force, N, N and N·m."""
    length: float = 1.0
    beam: float = 0.4
    reference: bool = True
    """Whether the log has a reference."""
    axes: Axes | None = None
    """Of the local frame; None where the log does not state them."""

    @property
    def mirrored(self) -> bool:
        """Whether the axes are x north, y east, which other tools show as x east, y north."""
        return self.axes == "ned"

    def pose(self, pose: Array) -> tuple[float, float, float]:
        """A pose with its heading counterclockwise, x east and y north; as it is where the axes are unknown."""
        x, y, psi = pose[:3].tolist()
        return swap_pose((x, y, psi)) if self.mirrored else (x, y, psi)

    def body(self, vector: Array) -> tuple[float, float, float]:
        """A velocity or wrench in the body frame with y to port, as `pose`."""
        surge, sway, yaw = vector[:3].tolist()
        return mirror_body((surge, sway, yaw)) if self.mirrored else (surge, sway, yaw)


def facts_of(about: dict[str, Any]) -> Facts:
    """The facts in a log's description; raise for a description that is none of ours."""
    stated, limits, axes = about.get("frame"), about.get("limits"), about.get("axes")
    frame = None if stated is None else decode(LocalFrame, stated, "frame")
    axes = None if axes is None else decode(Axes, axes, "axes")  # type: ignore[arg-type]
    sizes = {name: about.get(name) for name in ("length", "beam")}
    known = {name: decode(float, size, name) for name, size in sizes.items() if size is not None}
    for name, size in known.items():
        if not 0 < size <= 1e4:
            raise InputError(f"{name} = {size:g}: must be positive, in m")
    length = known.get("length", 1.0)
    return Facts(
        frame=frame,
        layout=decode(tuple[Thruster, ...], about.get("layout", []), "layout"),
        limits=None if limits is None else decode(tuple[float, float, float], limits, "limits"),
        length=length,
        beam=known.get("beam", 0.4 * length),
        reference=has_reference(about),
        axes=axes if frame is None else frame.axes,
    )


def has_reference(about: dict[str, Any]) -> bool:
    """Whether a run had a reference; that of an autopilot's log may have none."""
    return bool(about.get("reference") != "none")


def stamps(log: Log) -> tuple[Nanoseconds, Literal["epoch", "run"]]:
    """The time of each row, ns, never falling: since 1970 UTC where the log has that, else since its own zero.

    Where the computer's clock was set back during the run, the time of the run is used from a common offset on.
    """
    times, kind = log.time, "run"
    if log.epoch is not None:
        kind = "epoch"
        falls = bool((np.diff(log.epoch) < 0).any())
        times = log.time + np.median(log.epoch - log.time) if falls else log.epoch
    if not (times[0] >= 0 and times[-1] <= LATEST):
        raise InputError(f"time: {times[0]:g} to {times[-1]:g} s: must be from 0 to {LATEST:g} s for other tools")
    return np.round(1e9 * times).astype(np.int64), "epoch" if kind == "epoch" else "run"


def events_of(log: Log, times: Nanoseconds) -> list[Entry]:
    """The events of a log at its rows' times `times`; theirs are in the boat's clock."""
    rows = decode(tuple[tuple[float, str, str], ...], log.about.get("events") or [], "events")
    zero = decode(float, log.about.get("boat_time", _boat_time(log)), "boat_time")
    entries = []
    for when, what, detail in rows:
        since = min(max(when - zero, log.time[0] - 3600.0), log.time[-1] + 3600.0)
        at = np.interp(since, log.time, times) + 1e9 * (min(since - log.time[0], 0.0) + max(since - log.time[-1], 0.0))
        entries.append(Entry(max(int(at), 0), what[:LONGEST_TEXT], detail[:LONGEST_TEXT]))
    return sorted(entries, key=lambda entry: entry.time)


def _boat_time(log: Log) -> float:
    """The boat's time at the log's zero, from the fixes: some 0.1 s early; 0 without fixes."""
    offsets = np.empty(0) if log.sensors is None else log.sensors[:, 0] - log.time
    known = offsets[np.isfinite(offsets)]
    return float(np.median(known)) if len(known) else 0.0


def reactions(events: list[Entry], times: Nanoseconds) -> list[tuple[str, str]]:
    """The guard's reaction and its reason in each row, from its changes; empty before the first."""
    changes = [entry for entry in events if entry.what == "reaction"]
    found, at, now = [], 0, ("", "")
    for time in times.tolist():
        while at < len(changes) and changes[at].time <= time:
            reaction, _, reason = changes[at].detail.partition(": ")
            now, at = (reaction, reason), at + 1
        found.append(now)
    return found


def finite(values: dict[str, float]) -> dict[str, float]:
    """Those that are numbers: JSON has none for others."""
    return {name: value for name, value in values.items() if math.isfinite(value)}
