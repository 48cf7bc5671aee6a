"""A recorded voyage as the series that identification uses: states and commands at an even period, split at gaps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anyhull.backend import Array
from anyhull.dynamics import PERIOD
from anyhull.errors import InputError
from anyhull.identification.likelihood import Series
from anyhull.log import Log
from anyhull.scale import FULL, IDENTITY, Scale, derating
from anyhull.schema import decode
from anyhull.vessel import Vessel

EVEN = 0.02
"""Largest deviation of an interval from the period, as a share of it, at which rows are taken as they are."""

USABLE = (0.4, 2.0)
"""Sampling interval, in control periods of the vessel, that becomes the period of the identification."""

GAP = 3.5
"""Interval, in periods, across which nothing is interpolated."""

SHORTEST, LEAST = 20, 100
"""Periods of a stretch between gaps that is used, and of all of them together."""

FASTEST = 100.0
"""Largest speed or yaw rate in the units of the vessel's scale."""


@dataclass(frozen=True)
class Voyage:
    """Stretches of a voyage in the units of a scale."""

    series: tuple[Series, ...]
    times: tuple[Array, ...]
    """Of their rows, s."""
    scale: Scale
    derating: tuple[float, float, float]
    under: bool
    gaps: int
    """Times at which rows are missing."""
    resampled: bool
    """Whether the rows were uneven."""

    @property
    def periods(self) -> int:
        return sum(len(series.state) for series in self.series)

    @property
    def seconds(self) -> float:
        return self.periods * self.scale.period


def voyage(log: Log, vessel: Vessel | None) -> Voyage:
    """What a log has of a vessel's dynamics: as the boat knew its state, and while it was steered along its path.

    Without a vessel the units are those of SI, and a boat that was never told to push sideways cannot.
    """
    log = log.estimated
    if stretches := log.about.get("following"):
        log = log.during(decode(tuple[tuple[float, float], ...], stretches, "following"))
    time, state, command = log.time, log.state, log.command
    later = np.append(True, np.diff(time) > 1e-9)
    time, state, command = time[later], state[later], command[later]
    if len(time) < LEAST:
        raise InputError(f"{len(time)} rows: must be at least {LEAST}")
    intervals = np.diff(time)
    # The mean, since times may be rounded or jitter; without gaps.
    interval = float(intervals[intervals < 2 * np.median(intervals)].mean())
    own_scale, share = (vessel.scale, derating(vessel)) if vessel else (IDENTITY, FULL)
    under = vessel.under_actuated if vessel else not command[:, 1].any()
    own = own_scale.period
    if interval > USABLE[1] * own:
        raise InputError(f"time: one row in {interval:g} s: must be at most {USABLE[1] * own:g} s for this boat")
    # One of a faster record in so many; the others tell of the same dynamics.
    near = abs(interval - own) < EVEN * own
    period = own if near or interval < USABLE[0] * own else interval
    even = np.abs(intervals - period) <= EVEN * period
    splits = np.flatnonzero(intervals > GAP * period) + 1
    even[splits - 1] = True
    whole = bool(even.all())
    found = []
    for rows in np.split(np.arange(len(time)), splits):
        if len(rows) < 2:
            continue
        at, poses = time[rows], state[rows].copy()
        poses[:, 2] = np.unwrap(poses[:, 2])
        if not whole:
            grid = at[0] + period * np.arange(int((at[-1] - at[0]) / period + 1e-6) + 1)
            poses = np.column_stack([np.interp(grid, at, column) for column in poses.T])
            command_at = _mean_command(at, command[rows], grid, period)
        else:
            grid, command_at = at, command[rows]
        if len(grid) >= SHORTEST:
            found.append((grid, poses, command_at))
    total = sum(len(grid) for grid, _, _ in found)
    if total < LEAST:
        raise InputError(f"{total} periods of {period:g} s between gaps: must be at least {LEAST}")
    scale = Scale(own_scale.length, round(period / PERIOD, 4))
    series = []
    for _, poses, commands in found:
        own_units = scale.window(poses - np.array([*poses[0, :2], 0, 0, 0, 0]))
        if not np.abs(own_units[:, 3:]).max() <= FASTEST:
            raise InputError(f"state: a speed of {np.abs(poses[:, 3:]).max():g}: must be in m/s and rad/s")
        series.append(Series(own_units, commands / np.array(share)))
    times = tuple(grid for grid, _, _ in found)
    return Voyage(tuple(series), times, scale, share, under, len(splits), not whole)


def _mean_command(time: Array, command: Array, grid: Array, period: float) -> Array:
    """The mean over each period of commands that are held until the next."""
    ends = np.append(time[1:], max(time[-1], grid[-1]) + period)
    integral = np.vstack([np.zeros(3), np.cumsum(command * (ends - time)[:, None], axis=0)])
    knots = np.append(time[0], ends)
    edges = np.append(grid, grid[-1] + period)
    summed = np.column_stack([np.interp(edges, knots, column) for column in integral.T])
    mean: Array = np.diff(summed, axis=0) / period
    return mean
