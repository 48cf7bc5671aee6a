"""Figures of runs: one page for a run, and one that compares several vessels. Needs Matplotlib."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from anyhull.backend import Array, to_inertial
from anyhull.errors import InputError
from anyhull.files import atomic_write
from anyhull.log import Log
from anyhull.viz.captions import controller_of, headline, sea_of, short, summary
from anyhull.viz.facts import has_reference

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PICTURES = (".png", ".pdf", ".svg")

# Colours of Okabe and Ito: distinct to colour-blind eyes, and by their lightness in grey.
BLUE, ORANGE, RED, SKY = "#0072B2", "#E69F00", "#D55E00", "#CFE6F5"
INK, GREY, FAINT = "#222222", "#8C8C8C", "#E4E4E4"
DASHED: dict[str, Any] = {"color": GREY, "ls": (0, (4, 2))}
"""Line of a reference."""

LINES = (BLUE, ORANGE, RED, "#009E73", "#CC79A7", INK)
"""Of thrusters, solid and then dashed; twelve at most are drawn."""

AXES = ("surge", "sway", "yaw")


def check_picture(path: str | Path) -> None:
    """Raise unless a figure can be drawn and its format is one of `PICTURES`."""
    check_suffix(path, PICTURES, "a figure")
    new_figure((1, 1))


def plot(log: Log, path: str | Path | None = None) -> Figure:
    """Path, errors and commands of one run on one page, saved to `path` if given."""
    if path is not None:
        check_picture(path)
    extra = [name for name in ("thrusters", "angles") if _drawn(log, name)]
    figure = new_figure((12, 6.75 + 1.15 * len(extra)))
    grid = {"top": 0.845, "bottom": 0.085}
    left = figure.add_gridspec(1, 1, left=0.07, right=0.49, **grid)
    heights = (1.5, 1.5, 1, 1, 1, *(1.5 for _ in extra))
    spacing = {"left": 0.58, "right": 0.975 - 0.012 * bool(extra), "hspace": 0.22, "height_ratios": heights}
    right = figure.add_gridspec(len(heights), 1, **spacing, **grid)
    _draw_path(figure.add_subplot(left[0]), log)
    panels = [figure.add_subplot(right[i]) for i in range(len(heights))]
    if has_reference(log.about):
        _draw_errors(panels[0], panels[1], log)
    else:
        _draw_motion(panels[0], panels[1], log)
    for axis, panel in enumerate(panels[2:5]):
        _draw_command(panel, log, axis)
    for name, panel in zip(extra, panels[5:], strict=True):
        _draw_thrusters(panel, log, name)
    for panel in panels:
        panel.set_xlim(log.time[0], log.time[-1] + log.period)
        panel.tick_params(labelbottom=panel is panels[-1])
        panel.spines[["top", "right"]].set_visible(False)
    panels[-1].set_xlabel("time (s)")
    figure.align_ylabels(panels)
    figure.text(0.055, 0.95, headline(log), fontsize=14, weight="bold", color=INK)
    figure.text(0.055, 0.915, summary(log), fontsize=10.5, color=INK)
    save(figure, path)
    return figure


def fleet(
    logs: dict[str, Log],
    path: str | Path | None = None,
    *,
    baseline: dict[str, Log] | None = None,
    published: tuple[str, float, float] | None = None,
) -> Figure:
    """One panel for each vessel's run, by name, and their mean errors side by side.

    Deviations from the path are drawn enlarged by one common factor, since small ones would not be visible.
    `baseline` holds runs of another controller under the same names; `published` is a label, cm and degrees to mark.
    """
    if path is not None:
        check_picture(path)
    sets = [logs, *([{name: baseline[name] for name in logs}] if baseline else [])]
    columns = min(3, len(logs) + 1)
    rows = math.ceil((len(logs) + 1) / columns)
    height = 1 + 3.4 * rows
    figure = new_figure((1 + 4.2 * columns, height))
    grid = figure.add_gridspec(
        rows, columns, left=0.05, right=0.985, top=1 - 1.15 / height, bottom=0.55 / height, wspace=0.16, hspace=0.26
    )
    every = [log for runs in sets for log in runs.values()]
    extent = max(_extent(log) for log in every)
    gain = _round_down(0.1 * extent / max(1e-9, *(float(log.position_error.max()) for log in every)))
    gain = min(max(gain, 1.0), 1e4)
    for i, name in enumerate(logs):
        panel = figure.add_subplot(grid[i // columns, i % columns])
        _draw_deviation(panel, name, [runs[name] for runs in sets], gain)
        if i % columns == 0:
            panel.set_ylabel("y (m)")
        if i + columns > len(logs):
            panel.set_xlabel("x (m)")
    # The narrow first column leaves room for the names.
    pair = grid[-1, len(logs) % columns :].subgridspec(2, 2, hspace=0.7, width_ratios=(0.13, 1))
    label, *marks = published or ("", None, None)
    for i, (what, value, mark) in enumerate(zip(("position (cm)", "heading (deg)"), _means(sets), marks, strict=True)):
        panel = figure.add_subplot(pair[i, 1])
        _compare(panel, [*logs, "average"], value, what, mark, label)
    first = next(iter(logs.values()))
    controllers = [controller_of(next(iter(runs.values()))) for runs in sets]
    title = f"One path, {len(logs)} vessel{'s' * (len(logs) > 1)}"
    figure.text(0.05, 1 - 0.42 / height, title, fontsize=15, weight="bold", color=INK)
    detail = f"; deviation from the path enlarged {gain:g} times" if gain > 1 else ""
    figure.text(0.05, 1 - 0.7 / height, sea_of(first) + detail, fontsize=10.5, color=INK)
    keys = [legend_key(**DASHED, lw=1.4), *(legend_key(**look) for look in _STYLES[: len(sets)])]
    labels = ["reference", *controllers]
    figure.legend(keys, labels, loc="upper right", ncols=3, frameon=False, bbox_to_anchor=(0.985, 0.995))
    save(figure, path)
    return figure


def _draw_path(panel: Axes, log: Log) -> None:
    length, beam, to_scale = drawn_size(log)
    if has_reference(log.about):
        if np.ptp(log.reference[:, :2], axis=0).max() < 1e-6:  # a line of no length would not be seen
            panel.plot(*log.reference[0, :2], "+", ms=14, mew=2.0, color=INK, label="station", zorder=6)
        else:
            panel.plot(*log.reference[:, :2].T, **DASHED, lw=1.6, label="reference", zorder=2)
    panel.plot(*log.state[:, :2].T, color=BLUE, lw=1.6, label="boat", zorder=4)
    _draw_hulls(panel, log, length, beam, spacing=1.7)
    panel.fill([], [], fc=SKY, ec=BLUE, lw=0.9, label="hull" if to_scale else "hull, not to scale")
    panel.plot(*log.state[0, :2], "o", ms=7, mfc="white", mec=INK, mew=1.6, label="start", zorder=5)
    frame_map(panel, log, length)
    panel.set_xlabel("x (m)")
    panel.set_ylabel("y (m)")
    panel.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, frameon=False, fontsize=9.5)


def _draw_errors(position: Axes, heading: Axes, log: Log) -> None:
    for panel, values, estimated, label in (
        (position, 100 * log.position_error, 100 * log.estimated.position_error, "position\nerror (cm)"),
        (heading, np.degrees(log.heading_error), np.degrees(log.estimated.heading_error), "heading\nerror (deg)"),
    ):
        panel.plot(log.time, values, color=BLUE, lw=1.3, label="true")
        panel.fill_between(log.time, values, color=SKY, lw=0)
        if log.estimate is not None:
            panel.plot(log.time, estimated, color=ORANGE, lw=0.9, label="estimated")
        panel.axhline(0, color=INK, lw=0.7)
        panel.set_ylabel(label)
        both = np.concatenate([values, estimated])
        low, high = min(float(both.min()), -1e-3), max(float(both.max()), 1e-3)  # a scale that hides rounding errors
        panel.set_ylim(low - 0.12 * (high - low), high + 0.12 * (high - low))
        panel.ticklabel_format(axis="y", useOffset=False, scilimits=(-4, 5))
    position.set_ylim(bottom=0)
    if log.estimate is not None:
        position.legend(loc="lower right", bbox_to_anchor=(1.0, 0.97), ncols=2, frameon=False, fontsize=9.5)


def _draw_command(panel: Axes, log: Log, axis: int) -> None:
    command = log.command[:, axis]
    panel.axhline(0, color=FAINT, lw=0.8)
    for limit in (-1, 1):
        panel.axhline(limit, color=INK, lw=0.9, ls=(0, (3, 2)))
    panel.step(log.time, command, where="post", color=BLUE, lw=1.2)
    saturated = np.abs(command) >= 1 - 1e-6
    panel.hlines(command[saturated], log.time[saturated], log.time[saturated] + log.period, color=RED, lw=3)
    panel.set_ylim(-1.35, 1.35)
    panel.set_yticks((-1, 0, 1))
    panel.set_ylabel(f"{AXES[axis]}\ncommand")


def _draw_motion(speed: Axes, heading: Axes, log: Log) -> None:
    """In place of the errors of a run without a reference."""
    for panel, values in ((speed, np.hypot(*log.state[:, 3:5].T)), (heading, np.degrees(np.unwrap(log.state[:, 2])))):
        panel.plot(log.time, values, color=BLUE, lw=1.3)
        panel.set_ylabel("speed (m/s)" if panel is speed else "heading (deg)")


def _drawn(log: Log, name: str) -> bool:
    """Whether there is anything to draw; the angles of fixed thrusters stay as they are."""
    values: Array | None = getattr(log, name)
    return values is not None and bool((values != (0 if name == "thrusters" else values[0])).any())


def _draw_thrusters(panel: Axes, log: Log, name: str) -> None:
    values: Array = getattr(log, name)
    values = values if name == "thrusters" else np.degrees(np.unwrap(values, axis=0))
    panel.axhline(0, color=FAINT, lw=0.8)
    for i, (column, colour) in enumerate(zip(values.T, LINES * 2, strict=False)):
        dashes: Any = "-" if i < len(LINES) else (0, (4, 1.5))
        panel.step(log.time, column, where="post", lw=0.9, color=colour, ls=dashes, label=str(i))
    if name == "thrusters":
        panel.set(ylim=(-1.35, 1.35), yticks=(-1, 0, 1))
    panel.set_ylabel("thrusters" if name == "thrusters" else "azimuths\n(deg)")
    panel.legend(loc="center left", bbox_to_anchor=(0.995, 0.5), frameon=False, fontsize=7, handlelength=0.8)


def _draw_deviation(panel: Axes, name: str, runs: list[Log], gain: float) -> None:
    log = runs[0]
    length, beam, _ = drawn_size(log)
    panel.plot(*log.reference[:, :2].T, **DASHED, lw=1.4, zorder=3)
    for run, look in reversed(list(zip(runs, _STYLES, strict=False))):
        reference = run.reference[:, :2]
        drawn = reference + gain * (run.state[:, :2] - reference)
        panel.fill(*np.concatenate([reference, drawn[::-1]]).T, color=look["color"], alpha=0.3, lw=0, zorder=3)
        panel.plot(*drawn.T, color=look["color"], lw=look["lw"], zorder=4)
    _draw_hulls(panel, log, length, beam, spacing=3.5, zorder=5)
    frame_map(panel, log, max(length, 0.15 * _extent(log)))
    panel.set_title(name, fontsize=12, weight="bold", loc="left", color=INK)
    errors = f"{short(log.metrics().position_cm)} cm,  {short(log.metrics().heading_deg)}°"
    panel.set_title(errors, fontsize=10, loc="right", color=BLUE)


def _compare(panel: Axes, names: list[str], sets: list[list[float]], what: str, mark: float | None, label: str) -> None:
    rows = np.arange(len(names))[::-1]
    for values, look in zip(sets, _STYLES, strict=False):
        panel.plot(values, rows, **look | {"ls": "", "ms": 7, "mec": INK, "mew": 0.7, "zorder": 3})
    panel.set_xscale("log")
    shown = [value for values in [*sets, [mark or 0.0]] for value in values if value > 0]
    low, high = min(shown, default=0.1), max(shown, default=1.0)
    panel.set_xlim(10 ** math.floor(math.log10(low / 1.5)), 10 ** math.ceil(math.log10(1.5 * high)))
    if mark is not None:
        panel.axvline(mark, color=INK, lw=1, ls=(0, (3, 2)), zorder=1)
        # The label extends away from the nearer edge.
        left, right = panel.get_xlim()
        side = "right" if mark * mark > left * right else "left"
        panel.text(mark, 1.03, label, ha=side, fontsize=8.5, transform=panel.get_xaxis_transform())
    panel.xaxis.set_major_formatter("{x:g}")
    panel.minorticks_off()
    style(panel, axis="x")
    panel.set_yticks(rows, names, fontsize=9)
    panel.set_ylim(-0.6, len(names) - 0.4)
    panel.axhline(0.5, color=INK, lw=0.6)
    panel.set_xlabel(f"mean error in {what}", labelpad=2)


_STYLES: tuple[dict[str, Any], ...] = (
    {"color": BLUE, "lw": 1.8, "marker": "o"},
    {"color": ORANGE, "lw": 1.8, "marker": "s"},
)
"""Lines of the first and the second of two runs: distinct by lightness, and their means by marker."""


def _means(sets: list[dict[str, Log]]) -> tuple[list[list[float]], list[list[float]]]:
    """Mean errors of each set of runs, with their average last: in cm, and in degrees."""
    position = [[log.metrics().position_cm for log in runs.values()] for runs in sets]
    heading = [[log.metrics().heading_deg for log in runs.values()] for runs in sets]
    return [[*v, float(np.mean(v))] for v in position], [[*v, float(np.mean(v))] for v in heading]


def new_figure(size: tuple[float, float]) -> Figure:
    """A figure of that size in inches on its own canvas, independent of pyplot's global state."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError("a figure needs Matplotlib: pip install 'anyhull[plot]'") from None
    figure = Figure(figsize=size, dpi=100, facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def legend_key(**look: Any) -> Any:
    """A line for a legend."""
    from matplotlib.lines import Line2D

    edge: dict[str, Any] = {"mec": INK, "mew": 0.7}
    return Line2D([], [], **edge | look)


def style(panel: Axes, axis: Any = "both") -> None:
    """A faint grid behind the data, and no frame above and on the right."""
    panel.grid(axis=axis, color=FAINT, lw=0.7)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)


def save(figure: Figure, path: str | Path | None) -> None:
    """Write a figure, if there is a path."""
    if path is not None:
        with atomic_write(path) as temporary:
            figure.savefig(temporary, dpi=150)


def check_suffix(path: str | Path, accepted: tuple[str, ...], what: str) -> None:
    """Raise unless the path has one of the accepted suffixes."""
    if Path(path).suffix not in accepted:
        raise InputError(f"{path}: {what} is written as {', '.join(accepted)}: give a path with one of these endings")


def frame_map(panel: Axes, log: Log, margin: float) -> None:
    """Equal axes around all of the run, with room of `margin` m for the hull."""
    points = np.concatenate([log.state[:, :2], log.reference[:, :2]])
    panel.update_datalim([points.min(axis=0) - 0.75 * margin, points.max(axis=0) + 0.75 * margin])
    panel.margins(0)
    panel.set_aspect("equal", adjustable="datalim")
    style(panel)


def _extent(log: Log) -> float:
    points = np.concatenate([log.state[:, :2], log.reference[:, :2]])
    return max(float(np.ptp(points, axis=0).max()), 1.0)


def drawn_size(log: Log, least: float = 0.03) -> tuple[float, float, bool]:
    """Length and beam to draw, m, and whether to scale: at least the fraction `least` of the extent of the path."""
    length, beam = log.about.get("length"), log.about.get("beam")
    slender = beam / length if length and beam else 0.42
    drawn = max(length or 0.09 * _extent(log), least * _extent(log))
    return drawn, slender * drawn, drawn == length


def hull_outline(length: float, beam: float, pose: Array) -> Array:
    """The outline of a hull at a pose (x, y, psi) with a pointed bow and a transom stern, (n, 2)."""
    forward = np.linspace(0, 1, 12)
    x = np.concatenate([[-0.5], -0.1 + 0.6 * forward])
    y = np.concatenate([[0.42], 0.5 * (1 - forward**2.2)])
    side = np.stack([length * x, beam * y], axis=1)
    outline = np.concatenate([side, side[::-1] * (1, -1)])
    return pose[:2] + rotated(outline, pose[2])


def rotated(points: Array, psi: float) -> Array:
    """Vectors (n, 2) of the frame of a body with heading psi in the inertial frame."""
    return np.stack(to_inertial(points[:, 0], points[:, 1], float(psi)), axis=1)


def _draw_hulls(panel: Axes, log: Log, length: float, beam: float, spacing: float, zorder: float = 3) -> None:
    """The hull along its path, about `spacing` lengths apart, at most sixteen times, and at the end."""
    travelled = float(np.hypot(*np.diff(log.state[:, :2], axis=0).T).sum())
    step = max(1, math.ceil(len(log.time) * max(spacing * length / max(travelled, 1e-9), 1 / 16)))
    drawn: list[Array] = []
    for pose in (*log.state[::step, :3], log.state[-1, :3]):
        if all(np.hypot(*(pose - other)[:2]) > 0.9 * length for other in drawn):
            panel.fill(*hull_outline(length, beam, pose).T, fc=SKY, ec=BLUE, lw=0.9, zorder=zorder)
            drawn.append(pose)


def _round_down(value: float) -> float:
    """The largest of 1, 2, 5, 10, 20, 50, ... that does not exceed `value`."""
    decade = 10.0 ** math.floor(math.log10(value))
    return max(step for step in (1, 2, 5) if step * decade <= value) * decade
