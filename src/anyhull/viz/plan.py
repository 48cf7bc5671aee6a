"""A figure of a mission before it is run: legs, corridor, path, numbered waypoints and fence. Needs Matplotlib."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from anyhull.backend import Array
from anyhull.mission import Mission
from anyhull.viz.plots import BLUE, DASHED, FAINT, INK, ORANGE, RED, check_picture, new_figure, save, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_NUMBERS = 60
"""Largest number of waypoints with a number at each; of more, some are numbered."""


def draw_plan(mission: Mission, path: str | Path | None = None) -> Figure:
    """The plan of a mission, saved to `path` if given.

    Geographic missions have north up, so with axes `ned` x points up; others have x to the right.
    """
    if path is not None:
        check_picture(path)
    reference = mission.reference
    north_up = mission.frame is not None and mission.frame.axes == "ned"
    turn = slice(None, None, -1 if north_up else 1)
    states = reference.at(np.linspace(0.0, reference.duration, 20_000))
    track, corners = states[:, :2][:, turn], np.array(mission.waypoints).reshape(-1, 2)[:, turn]
    drawn = np.concatenate([track, corners, np.array(mission.fence_corners or ()).reshape(-1, 2)[:, turn]])
    low, high = drawn.min(axis=0), drawn.max(axis=0)
    margin = max(0.06 * float((high - low).max()), 1.5 * (mission.corridor or 0.0), 1.0)
    wide, tall = high - low + 2 * margin
    scale = min(9.6 / wide, 7.6 / tall)
    figure = new_figure((max(scale * wide, 5.0) + 1.2, max(scale * tall, 2.5) + 1.7))
    width, height = figure.get_size_inches()
    panel = figure.add_axes((0.85 / width, 0.6 / height, 1 - 1.1 / width, 1 - 1.65 / height))
    # One scale for both axes; the panel is filled where the figure is larger than the mission needs.
    inches, middle = np.array([width - 1.1, height - 1.65]), (low + high) / 2
    half = inches / 2 / min(inches[0] / wide, inches[1] / tall)
    panel.set_xlim(middle[0] - half[0], middle[0] + half[0])
    panel.set_ylim(middle[1] - half[1], middle[1] + half[1])
    if len(corners):
        _draw_corridor(panel, corners, mission.corridor)
        panel.plot(*corners.T, **DASHED, lw=1.3, label="legs", zorder=3)
    if mission.fence_corners:
        panel.fill(*np.array(mission.fence_corners)[:, turn].T, fc="none", ec=RED, lw=1.3, label="fence", zorder=2)
    panel.plot(*track.T, color=BLUE, lw=1.8, label="path", zorder=4)
    _draw_arrows(panel, track)
    if len(corners):
        _draw_waypoints(panel, corners)
    panel.plot(*track[0], "o", ms=9, mfc="white", mec=INK, mew=1.8, label="start", zorder=6)
    panel.plot(*track[-1], "s", ms=5, mfc=INK, mec=INK, label="end", zorder=6)
    style(panel)
    panel.set_xlabel("y, east (m)" if north_up else "x, east (m)" if mission.frame else "x (m)")
    panel.set_ylabel("x, north (m)" if north_up else "y, north (m)" if mission.frame else "y (m)")
    panel.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=7, frameon=False, fontsize=9.5, borderaxespad=0.2)
    minutes = f"{reference.duration / 60:.1f} min"
    off = f",  path at most {mission.deviation:.2f} m off the legs" if len(corners) else ""
    figure.text(0.85 / width, 1 - 0.4 / height, mission.name, fontsize=14, weight="bold", color=INK)
    figure.text(0.85 / width, 1 - 0.65 / height, minutes + off, fontsize=10.5, color=INK)
    save(figure, path)
    return figure


def _draw_corridor(panel: Axes, corners: Array, corridor: float | None) -> None:
    """All points within the corridor of a leg: each leg as a band with round ends."""
    if corridor is None:
        return
    half = np.linspace(-math.pi / 2, math.pi / 2, 16)
    for i, (start, end) in enumerate(pairwise(corners)):
        course = math.atan2(*(end - start)[::-1])
        round_end = corridor * np.stack([np.cos(course + half), np.sin(course + half)], axis=1)
        label = f"corridor of {corridor:g} m" if i == 0 else None
        panel.fill(*np.concatenate([end + round_end, start - round_end]).T, color=FAINT, lw=0, label=label, zorder=1)


def _draw_arrows(panel: Axes, track: Array) -> None:
    """The direction of travel at some places along the path."""
    travelled = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(track, axis=0).T))])
    if travelled[-1] < 1e-6:
        return
    count = 12
    for share in (np.arange(count) + 0.5) / count:
        i = int(np.searchsorted(travelled, share * travelled[-1]))
        ahead = int(np.searchsorted(travelled, share * travelled[-1] + 0.002 * travelled[-1]))
        if i < ahead < len(track):
            look = {"arrowstyle": "-|>", "color": BLUE, "lw": 0, "mutation_scale": 16, "shrinkA": 0, "shrinkB": 0}
            panel.annotate("", track[ahead], track[i], arrowprops=look, zorder=5)


def _draw_waypoints(panel: Axes, corners: Array) -> None:
    closed = len(corners) > 2 and np.allclose(corners[0], corners[-1])
    numbered = np.unique(corners, axis=0, return_index=True)[1] if closed else np.arange(len(corners))
    panel.plot(*corners.T, "o", ms=4, mfc=ORANGE, mec=INK, mew=0.6, ls="", label="waypoints", zorder=5)
    step = math.ceil(len(numbered) / MOST_NUMBERS)
    for i in np.sort(numbered)[::step]:
        # Beside the corner, on its outer side.
        before, after = corners[max(i - 1, 0)], corners[min(i + 1, len(corners) - 1)]
        sides = [vector / max(float(np.hypot(*vector)), 1e-9) for vector in (corners[i] - before, corners[i] - after)]
        out = sides[0] + sides[1]
        out = out / np.hypot(*out) if np.hypot(*out) > 1e-3 else np.array([0.0, 1.0])
        place: dict[str, Any] = {
            "xytext": tuple(13 * out),
            "textcoords": "offset points",
            "ha": "center",
            "va": "center",
        }
        panel.annotate(str(i + 1), corners[i], fontsize=9, color=INK, zorder=7, **place)
