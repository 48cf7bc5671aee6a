"""A figure of a mission before it is run: legs, corridor, path, waypoints, survey area and fence. Needs Matplotlib."""

from __future__ import annotations

import math
import textwrap
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

TITLE_WIDTH, TITLE_HEIGHT = 0.13, 0.25
"""Of the name: room for a letter and for a line, inches."""

ENTRY_WIDTH, ENTRY_HEIGHT = 1.15, 0.22
"""Of the legend: room for an entry, inches."""

DIGIT, LABEL_DISTANCE = (6.0, 10.0), 13.0
"""Width and height of a digit of a waypoint's number, and the number's distance from the waypoint, points."""

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
    fence, area = (np.array(line or ()).reshape(-1, 2)[:, turn] for line in (mission.fence_corners, mission.area))
    drawn = np.concatenate([track, corners, fence, area])
    low, high = drawn.min(axis=0), drawn.max(axis=0)
    margin = max(0.06 * float((high - low).max()), 1.5 * (mission.corridor or 0.0), 1.0)
    wide, tall = high - low + 2 * margin
    scale = min(9.6 / wide, 7.6 / tall)
    width = max(scale * wide, 5.0) + 1.2
    title = textwrap.wrap(mission.name, int((width - 1.1) / TITLE_WIDTH), max_lines=4, placeholder=" …")
    entries = 3 + 2 * bool(mission.waypoints) + sum(map(bool, (mission.corridor, mission.area, mission.fence_corners)))
    columns = int((width - 1.1) / ENTRY_WIDTH)
    above = 0.58 + TITLE_HEIGHT * max(len(title), 1) + ENTRY_HEIGHT * math.ceil(entries / columns)
    height = max(scale * tall, 2.5) + 0.65 + above
    figure = new_figure((width, height))
    inches, middle = np.array([width - 1.1, height - 0.6 - above]), (low + high) / 2
    panel = figure.add_axes((0.85 / width, 0.6 / height, *(inches / (width, height))))
    # One scale for both axes; the panel is filled where the figure is larger than the mission needs.
    half = inches / 2 / min(inches[0] / wide, inches[1] / tall)
    panel.set_xlim(middle[0] - half[0], middle[0] + half[0])
    panel.set_ylim(middle[1] - half[1], middle[1] + half[1])
    if len(corners):
        _draw_corridor(panel, corners, mission.corridor)
        panel.plot(*corners.T, **DASHED, lw=1.3, label="legs", zorder=3)
    if len(area):
        panel.fill(*area.T, fc="none", ec=INK, lw=1.0, ls=":", label="survey area", zorder=2)
    if len(fence):
        panel.fill(*fence.T, fc="none", ec=RED, lw=1.3, label="fence", zorder=2)
    panel.plot(*track.T, color=BLUE, lw=1.8, label="path", zorder=4)
    _draw_arrows(panel, track)
    if len(corners):
        _draw_waypoints(panel, corners)
    panel.plot(*track[0], "o", ms=9, mfc="white", mec=INK, mew=1.8, label="start", zorder=6)
    panel.plot(*track[-1], "s", ms=5, mfc=INK, mec=INK, label="end", zorder=6)
    style(panel)
    panel.set_xlabel("y, east (m)" if north_up else "x, east (m)" if mission.frame else "x (m)")
    panel.set_ylabel("x, north (m)" if north_up else "y, north (m)" if mission.frame else "y (m)")
    key: dict[str, Any] = {"frameon": False, "fontsize": 9.5, "borderaxespad": 0.2, "columnspacing": 1.5}
    panel.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=columns, **key)
    minutes = f"{reference.duration / 60:.1f} min"
    off = f",  path at most {mission.deviation:.2f} m off the legs" if len(corners) else ""
    # A name is text: dollar signs in it are no formula.
    look: dict[str, Any] = {"color": INK, "va": "top", "parse_math": False}
    figure.text(0.85 / width, 1 - 0.18 / height, "\n".join(title), fontsize=14, weight="bold", linespacing=1.2, **look)
    figure.text(
        0.85 / width, 1 - (0.25 + TITLE_HEIGHT * max(len(title), 1)) / height, minutes + off, fontsize=10.5, **look
    )
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
    taken: list[Array] = []
    for i in np.sort(numbered)[::step]:
        place = _label_place(panel, corners, int(i), taken)
        if place is None:
            continue
        look: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "va": "center"}
        panel.annotate(str(i + 1), corners[i], tuple(place), fontsize=9, color=INK, zorder=7, **look)


def _label_place(panel: Axes, corners: Array, i: int, taken: list[Array]) -> Array | None:
    """Where the number of a waypoint goes relative to it, points; None where it would be over or beside another."""
    before, after = corners[max(i - 1, 0)], corners[min(i + 1, len(corners) - 1)]
    sides = [vector / max(float(np.hypot(*vector)), 1e-9) for vector in (corners[i] - before, corners[i] - after)]
    out = sides[0] + sides[1]
    # On the outer side of the corner, or else turned from there to either side.
    course = math.atan2(out[1], out[0]) if np.hypot(*out) > 1e-3 else math.pi / 2
    marks = panel.transData.transform(corners) * 72 / panel.figure.dpi
    size = np.array([len(str(len(corners))) * DIGIT[0] + 1.0, DIGIT[1]])
    others = marks[np.hypot(*(marks - marks[i]).T) > 1.0]
    for turn in (0.0, math.pi / 4, -math.pi / 4):
        place = LABEL_DISTANCE * np.array([math.cos(course + turn), math.sin(course + turn)])
        label = marks[i] + place
        free = all((np.abs(label - other) >= size).any() for other in taken)
        if free and (np.hypot(*(others - label).T) >= 0.7 * LABEL_DISTANCE).all():
            taken.append(label)
            return place
    return None
