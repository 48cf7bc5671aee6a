"""Figures of an assessment. Needs Matplotlib."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from anyhull.preflight.assessment import Assessment
from anyhull.viz.plots import BLUE, DASHED, GREY, INK, ORANGE, RED, SKY, new_figure, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Picture(NamedTuple):
    """A figure and what it shows."""

    figure: Figure
    caption: str


def pictures(found: Assessment) -> list[Picture]:
    """Paths and errors of the sails, what may be asked for, the thrusters, and what a measurement would tell."""
    drawn = [
        Picture(
            _paths(found),
            f"Left: the course and the path of each hull; orange is the worst, hull {found.results[found.worst].seed}. "
            f"Right: the distance of each hull from the reference over time; the dashed line is the limit, "
            f"{found.room:.2g} m.",
        ),
        Picture(
            _limits(found),
            "Left: the highest steady speed on circles. All but the weakest 5 % of the hulls can do what lies in the "
            "blue area. Right: the share of its range within which each thruster stays for 95 % of the time, and the "
            "share of time that it is at its limit, on the hull with most of it.",
        ),
    ]
    if any(math.isfinite(result.mean_cm) for result in found.results):
        text = "The mean error of each hull over what could be measured of it. A slope means that measuring helps."
        drawn.append(Picture(_scatter(found), text))
    return drawn


def _paths(found: Assessment) -> Figure:
    figure = new_figure((11, 4.6))
    grid = figure.add_gridspec(1, 2, left=0.07, right=0.985, top=0.91, bottom=0.13, wspace=0.2)
    path, error = figure.add_subplot(grid[0]), figure.add_subplot(grid[1])
    reference = found.course.reference
    x, y = reference.at(np.linspace(0.0, reference.duration, 400))[:, :2].T
    path.plot(x, y, **DASHED, lw=1.6, zorder=2, label="reference")
    highest = 100 * found.room
    for i, log in enumerate(found.logs):
        if log is None:
            continue
        worst = i == found.worst
        look: dict[str, Any] = {
            "color": RED if worst else BLUE,
            "lw": 1.5 if worst else 0.8,
            "zorder": 4 if worst else 3,
        }
        look |= {"alpha": 1.0 if worst else 0.55}
        path.plot(*log.state[:, :2].T, **look)
        error.plot(log.time, 100 * log.position_error, **look)
        highest = max(highest, float(100 * log.position_error.max()))
    path.plot([], [], color=BLUE, lw=1, label="hulls")
    path.plot([], [], color=RED, lw=1.5, label="worst hull")
    path.set_aspect("equal", adjustable="datalim")
    path.set(xlabel="x (m)", ylabel="y (m)")
    path.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False)
    error.axhline(100 * found.room, color=INK, lw=1, ls=(0, (4, 3)))
    # A logarithm, since hulls differ by orders of magnitude.
    error.set_yscale("log")
    error.set_ylim(0.1, 2 * highest)
    error.yaxis.set_major_formatter("{x:g}")
    error.set(xlabel="time (s)", ylabel="distance from the reference (cm)")
    for panel in (path, error):
        style(panel)
    return figure


def _limits(found: Assessment) -> Figure:
    figure = new_figure((11, 4.2))
    grid = figure.add_gridspec(1, 2, left=0.07, right=0.985, top=0.93, bottom=0.15, wspace=0.55)
    speed, use = figure.add_subplot(grid[0]), figure.add_subplot(grid[1])
    radii, weak, median = np.array(found.curve).T
    speed.fill_between(radii, weak, color=SKY, lw=0)
    speed.plot(radii, weak, color=BLUE, lw=1.6, label="all but the weakest 5 % of hulls")
    speed.plot(radii, median, color=GREY, lw=1.2, ls=(0, (4, 2)), label="half of the hulls")
    course, top, turn = found.course, found.highest_speed, found.tightest_turn
    points = (
        (course.radius, course.speed, "s", "sailed by all", True),
        (2.5 * found.length, top.value, "^", "highest speed", top.confirmed),
        (turn.value, course.speed, "<", "tightest turn", turn.confirmed),
    )
    for x, y, marker, label, confirmed in points:
        label += "" if confirmed else " (not reached)"
        speed.plot(x, y, marker, ms=8, mfc=ORANGE if confirmed else "white", mec=INK, ls="", label=label, zorder=5)
    speed.set_xscale("log")
    speed.xaxis.set_major_formatter("{x:g}")
    speed.xaxis.set_minor_formatter("")
    ticks = [value for value in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)]
    low, high = min(radii.min(), turn.value) / 1.15, radii.max()
    speed.set_xticks([tick for tick in ticks if low <= tick <= high])
    speed.set_xlim(low, high)
    speed.set_ylim(0, 1.45 * max(median.max(), top.value))
    speed.set(xlabel="radius of the turn (m)", ylabel="speed (m/s)")
    speed.legend(loc="upper left", frameon=False, fontsize=8, ncols=2)
    style(speed)
    _bars(use, found)
    return figure


def _bars(panel: Axes, found: Assessment) -> None:
    used = found.thrusters[:8]
    rows = np.arange(len(used))[::-1]
    panel.barh(rows, [100 * t.used for t in used], color=SKY, height=0.6, label="range used, mean")
    panel.barh(
        rows, [100 * t.at_limit_worst for t in used], color=RED, height=0.25, label="time at its limit, worst hull"
    )
    panel.set_yticks(rows, [t.name.replace(" (", "\n(") for t in used], fontsize=8.5)
    panel.set_xlim(0, 105)
    panel.set_xlabel("%")
    if used:
        panel.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False, fontsize=8.5)
    style(panel, axis="x")


def _scatter(found: Assessment) -> Figure:
    shown = found.measurements
    figure = new_figure((11, 3.4))
    grid = figure.add_gridspec(1, len(shown), left=0.07, right=0.985, top=0.9, bottom=0.19, wspace=0.25)
    first: Axes | None = None
    for i, m in enumerate(shown):
        panel = figure.add_subplot(grid[i], sharey=first)
        first = first or panel
        factor, unit = (180 / math.pi, "°/s") if m.unit == "rad/s" else (1.0, m.unit)
        for j, result in enumerate(found.results):
            if math.isfinite(result.mean_cm):
                look: dict[str, Any] = {"mfc": RED if j == found.worst else BLUE, "mec": INK, "mew": 0.6}
                panel.plot(factor * result.measurable[m.quantity], result.mean_cm, "o", ms=7, **look)
        panel.set_yscale("log")
        panel.yaxis.set_major_formatter("{x:g}")
        panel.yaxis.set_minor_formatter("")
        panel.set_xlabel(f"{m.quantity} ({unit})")
        panel.set_title(f"narrows the answer by {100 * m.narrows:.0f} %", fontsize=10, loc="left", color=INK)
        style(panel)
    if first is not None:
        first.set_ylabel("mean error (cm)")
        low, high = first.get_ylim()
        decades = [v * 10.0**k for k in range(-2, 5) for v in (1, 2, 5) if low <= v * 10.0**k <= high]
        first.set_yticks(decades)
    return figure
