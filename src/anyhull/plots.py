"""Pictures of runs: one page for a run, one for a fleet, and an animation. Needs Matplotlib."""

from __future__ import annotations

import math
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anyhull.dynamics import PERIOD
from anyhull.errors import InputError
from anyhull.files import whole
from anyhull.log import Log
from anyhull.sea import PRESETS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

PICTURES = (".png", ".pdf", ".svg")
ANIMATIONS = (".gif", ".mp4")
FRAMES = 500
"""Most frames in an animation: a longer run skips some and stays in real time."""

# Okabe and Ito's colours: told apart by colour-blind eyes, and as greys by their lightness.
BLUE, ORANGE, RED, SKY = "#0072B2", "#E69F00", "#D55E00", "#CFE6F5"
INK, GREY, FAINT = "#222222", "#8C8C8C", "#E4E4E4"
AXES = ("surge", "sway", "yaw")


def check_picture(path: str | Path) -> None:
    """Raise unless a picture can be drawn and its format is one of `PICTURES`."""
    _suffix(path, PICTURES, "a picture")
    _figure((1, 1))


def check_animation(path: str | Path) -> None:
    """Raise unless an animation can be drawn and encoded as the ending of `path` asks."""
    _suffix(path, ANIMATIONS, "an animation")
    if Path(path).suffix == ".mp4" and not shutil.which("ffmpeg"):
        raise InputError(
            f"{path}: MP4 needs ffmpeg, which is not on the PATH: install it, or give a path ending in .gif"
        )
    _figure((1, 1))


def plot(log: Log, path: str | Path | None = None) -> Figure:
    """Path, errors and commands of one run on one page, saved to `path` if given."""
    if path is not None:
        check_picture(path)
    figure = _figure((12, 6.75))
    grid = {"top": 0.845, "bottom": 0.085}
    left = figure.add_gridspec(1, 1, left=0.055, right=0.49, **grid)
    right = figure.add_gridspec(5, 1, left=0.58, right=0.975, hspace=0.22, height_ratios=(1.5, 1.5, 1, 1, 1), **grid)
    _draw_path(figure.add_subplot(left[0]), log)
    panels = [figure.add_subplot(right[i]) for i in range(5)]
    _draw_errors(panels[0], panels[1], log)
    for axis, panel in enumerate(panels[2:]):
        _draw_command(panel, log, axis)
    for panel in panels:
        panel.set_xlim(log.time[0], log.time[-1] + PERIOD)
        panel.tick_params(labelbottom=panel is panels[-1])
        panel.spines[["top", "right"]].set_visible(False)
    panels[-1].set_xlabel("time (s)")
    figure.align_ylabels(panels)
    figure.text(0.055, 0.95, _headline(log), fontsize=14, weight="bold", color=INK)
    figure.text(0.055, 0.915, _metrics(log), fontsize=10.5, color=INK)
    _save(figure, path)
    return figure


def fleet(
    logs: dict[str, Log],
    path: str | Path | None = None,
    *,
    beside: dict[str, Log] | None = None,
    published: tuple[str, float, float] | None = None,
) -> Figure:
    """A panel for each run, by name, and their mean errors side by side.

    Deviations from the path are drawn enlarged, all by the same factor, since good ones would not show.
    `beside` holds other runs of the same names to compare with; `published` a label, cm and degrees to mark.
    """
    if path is not None:
        check_picture(path)
    sets = [logs, {name: beside[name] for name in logs} if beside else {}]
    columns = min(3, len(logs) + 1)
    rows = math.ceil((len(logs) + 1) / columns)
    height = 1 + 3.4 * rows
    figure = _figure((1 + 4.2 * columns, height))
    grid = figure.add_gridspec(
        rows, columns, left=0.05, right=0.985, top=1 - 1.15 / height, bottom=0.55 / height, wspace=0.16, hspace=0.26
    )
    every = [log for runs in sets for log in runs.values()]
    extent = max(_extent(log) for log in every)
    gain = _round_down(0.1 * extent / max(1e-9, *(float(log.position_error.max()) for log in every)))
    gain = min(max(gain, 1.0), 1e4)
    for i, name in enumerate(logs):
        panel = figure.add_subplot(grid[i // columns, i % columns])
        _draw_deviation(panel, name, [runs[name] for runs in sets if runs], gain)
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
    kinds = [_controller(next(iter(runs.values()))) for runs in sets if runs]
    figure.text(0.05, 1 - 0.42 / height, "One path, " + _counted(len(logs)), fontsize=15, weight="bold", color=INK)
    detail = f"{_sea(first)}; deviation from the path drawn {gain:g} times larger" if gain > 1 else _sea(first)
    figure.text(0.05, 1 - 0.7 / height, detail, fontsize=10.5, color=INK)
    handles = [_key(color=GREY, ls=(0, (4, 2)), lw=1.4), *(_key(**_STYLES[i]) for i in range(len(kinds)))]
    figure.legend(
        handles, ["reference", *kinds], loc="upper right", ncols=3, frameon=False, bbox_to_anchor=(0.985, 0.995)
    )
    _save(figure, path)
    return figure


def animate(log: Log, path: str | Path, *, on_frame: Callable[[int, int], None] | None = None) -> Path:
    """The run in real time as a GIF, or as an MP4 where ffmpeg is on the PATH, by the ending of `path`.

    `on_frame` is told how many frames are drawn and how many there are.
    """
    check_animation(path)
    path = Path(path)
    stride = math.ceil(len(log.time) / FRAMES)
    interval = stride * PERIOD
    frames = _frames(log, range(0, len(log.time), stride), on_frame)
    with whole(path) as temporary:
        (_write_gif if path.suffix == ".gif" else _write_mp4)(frames, interval, temporary)
    return path


def _draw_path(panel: Axes, log: Log) -> None:
    length, beam, to_scale = _size(log)
    panel.plot(*log.reference[:, :2].T, color=GREY, ls=(0, (4, 2)), lw=1.6, label="reference", zorder=2)
    panel.plot(*log.state[:, :2].T, color=BLUE, lw=1.6, label="boat", zorder=4)
    _draw_hulls(panel, log, length, beam, spacing=1.7)
    panel.fill([], [], fc=SKY, ec=BLUE, lw=0.9, label="hull" if to_scale else "hull, not to scale")
    panel.plot(*log.state[0, :2], "o", ms=7, mfc="white", mec=INK, mew=1.6, label="start", zorder=5)
    _frame_map(panel, log, length)
    panel.set_xlabel("x (m)")
    panel.set_ylabel("y (m)")
    panel.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, frameon=False, fontsize=9.5)


def _draw_errors(position: Axes, heading: Axes, log: Log) -> None:
    for panel, values, label in (
        (position, 100 * log.position_error, "position\nerror (cm)"),
        (heading, np.degrees(log.heading_error), "heading\nerror (deg)"),
    ):
        panel.plot(log.time, values, color=BLUE, lw=1.3)
        panel.fill_between(log.time, values, color=SKY, lw=0)
        panel.axhline(0, color=INK, lw=0.7)
        panel.set_ylabel(label)
        # Rounding errors are not worth a look.
        low, high = min(float(values.min()), -1e-3), max(float(values.max()), 1e-3)
        panel.set_ylim(low - 0.12 * (high - low), high + 0.12 * (high - low))
        panel.ticklabel_format(axis="y", useOffset=False, scilimits=(-4, 5))
    position.set_ylim(bottom=0)


def _draw_command(panel: Axes, log: Log, axis: int) -> None:
    command = log.command[:, axis]
    panel.axhline(0, color=FAINT, lw=0.8)
    for limit in (-1, 1):
        panel.axhline(limit, color=INK, lw=0.9, ls=(0, (3, 2)))
    panel.step(log.time, command, where="post", color=BLUE, lw=1.2)
    at_limit = np.abs(command) >= 1 - 1e-6
    panel.hlines(command[at_limit], log.time[at_limit], log.time[at_limit] + PERIOD, color=RED, lw=3)
    panel.set_ylim(-1.35, 1.35)
    panel.set_yticks((-1, 0, 1))
    panel.set_ylabel(f"{AXES[axis]}\ncommand")


def _draw_deviation(panel: Axes, name: str, runs: list[Log], gain: float) -> None:
    log = runs[0]
    length, beam, _ = _size(log)
    panel.plot(*log.reference[:, :2].T, color=GREY, ls=(0, (4, 2)), lw=1.4, zorder=3)
    for run, style in reversed(list(zip(runs, _STYLES, strict=False))):
        wanted = run.reference[:, :2]
        drawn = wanted + gain * (run.state[:, :2] - wanted)
        panel.fill(*np.concatenate([wanted, drawn[::-1]]).T, color=style["color"], alpha=0.3, lw=0, zorder=3)
        panel.plot(*drawn.T, color=style["color"], lw=style["lw"], zorder=4)
    _draw_hulls(panel, log, length, beam, spacing=3.5, zorder=5)
    _frame_map(panel, log, max(length, 0.15 * _extent(log)))
    panel.set_title(name, fontsize=12, weight="bold", loc="left", color=INK)
    panel.set_title(
        f"{_short(log.metrics().position_cm)} cm,  {_short(log.metrics().heading_deg)}°",
        fontsize=10,
        loc="right",
        color=BLUE,
    )


def _compare(panel: Axes, names: list[str], sets: list[list[float]], what: str, mark: float | None, label: str) -> None:
    rows = np.arange(len(names))[::-1]
    for values, style in zip(sets, _STYLES, strict=False):
        panel.plot(
            values, rows, ls="none", marker=style["marker"], ms=7, mfc=style["color"], mec=INK, mew=0.7, zorder=3
        )
    panel.set_xscale("log")
    shown = [value for values in [*sets, [mark or 0.0]] for value in values if value > 0]
    low, high = min(shown, default=0.1), max(shown, default=1.0)
    panel.set_xlim(10 ** math.floor(math.log10(low / 1.5)), 10 ** math.ceil(math.log10(1.5 * high)))
    if mark is not None:
        panel.axvline(mark, color=INK, lw=1, ls=(0, (3, 2)), zorder=1)
        # The label leans away from the nearer edge.
        left, right = panel.get_xlim()
        side = "right" if mark * mark > left * right else "left"
        panel.text(mark, 1.03, label, ha=side, fontsize=8.5, transform=panel.get_xaxis_transform())
    panel.xaxis.set_major_formatter("{x:g}")
    panel.minorticks_off()
    panel.grid(axis="x", color=FAINT, lw=0.7)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)
    panel.set_yticks(rows, names, fontsize=9)
    panel.set_ylim(-0.6, len(names) - 0.4)
    panel.axhline(0.5, color=INK, lw=0.6)
    panel.set_xlabel(f"mean error in {what}", labelpad=2)


_STYLES: tuple[dict[str, Any], ...] = (
    {"color": BLUE, "lw": 1.8, "marker": "o"},
    {"color": ORANGE, "lw": 1.8, "marker": "s"},
)
"""How the first and the second of two runs are drawn: apart by lightness, and their means by marker."""


def _means(sets: list[dict[str, Log]]) -> tuple[list[list[float]], list[list[float]]]:
    """Mean errors of each set of runs, with their average last: in cm, and in degrees."""
    position = [[log.metrics().position_cm for log in runs.values()] for runs in sets if runs]
    heading = [[log.metrics().heading_deg for log in runs.values()] for runs in sets if runs]
    return [[*v, float(np.mean(v))] for v in position], [[*v, float(np.mean(v))] for v in heading]


def _frames(log: Log, rows: range, on_frame: Callable[[int, int], None] | None) -> Iterator[Array]:
    """The frames at those rows of the log as RGB images, (480, 640, 3) bytes."""
    figure = _figure((6.4, 4.8))
    panel = figure.add_axes((0.09, 0.1, 0.89, 0.715))
    length, beam, _ = _size(log, least=0.1)
    panel.plot(*log.reference[:, :2].T, color=GREY, ls=(0, (4, 2)), lw=1.4, label="reference")
    _frame_map(panel, log, 1.8 * length)
    panel.set_xlabel("x (m)", labelpad=1)
    panel.set_ylabel("y (m)", labelpad=1)
    figure.text(0.02, 0.95, _headline(log), fontsize=11, weight="bold", color=INK)

    live: dict[str, Any] = {"animated": True}
    (trail,) = panel.plot([], [], color=BLUE, lw=2, label="boat", **live)
    (hull,) = panel.fill([0], [0], fc=SKY, ec=BLUE, lw=1.4, zorder=3, **live)
    push = panel.quiver([0, 0], [0, 0], [0, 0], [0, 0], angles="xy", scale_units="xy", scale=1, width=0.007,
                        color=RED, zorder=5, **live)  # fmt: skip
    (turn,) = panel.plot([], [], color=RED, lw=2.2, zorder=5, **live)
    (tip,) = panel.plot([], [], color=RED, ms=8, ls="none", zorder=5, **live)
    (target,) = panel.plot([], [], "o", ms=7, mfc="none", mec=INK, mew=1.4, zorder=4, **live)
    words = figure.text(0.02, 0.902, "", fontsize=10.5, color=INK, **live)
    keys = [_key(color=GREY, ls=(0, (4, 2)), lw=1.4), _key(color=BLUE, lw=2), _key(color=RED, lw=2.2)]
    keys.append(_key(marker="o", ms=7, mfc="none", ls="none"))
    names = ["reference", "boat", "command", "target"]
    figure.legend(keys, names, loc="upper left", ncols=4, frameon=False, fontsize=9, bbox_to_anchor=(0.008, 0.895))
    canvas: Any = figure.canvas
    canvas.draw()
    still = canvas.copy_from_bbox(figure.bbox)
    for count, k in enumerate(rows, 1):
        pose, (surge, sway, yaw) = log.state[k, :3], log.command[k]
        trail.set_data(*log.state[: k + 1, :2].T)
        hull.set_xy(_hull(length, beam, pose))
        target.set_data(*log.reference[k : k + 1, :2].T)
        # Each arrow starts at the hull on the side it pushes to, and is as long as the boat at the limit.
        edge = np.array([[math.copysign(length, surge), 0.0], [0.0, math.copysign(beam, sway)]]) / 2
        push.set_offsets(pose[:2] + _turned(edge, pose[2]))
        push.set_UVC(*_turned(length * np.array([[surge, 0.0], [0.0, sway]]), pose[2]).T)
        # The yaw command is an arc beside the bow, a right angle long at the limit.
        angles = math.copysign(0.35, yaw) + np.linspace(0, yaw * math.pi / 2, 20)
        arc = pose[:2] + 0.8 * length * _turned(np.stack([np.cos(angles), np.sin(angles)], axis=1), pose[2])
        turn.set_data(*arc.T)
        tip.set_data(*arc[-1:].T)
        tip.set_marker((3, 0, round(math.degrees(pose[2] + angles[-1])) + (0 if yaw >= 0 else 180)))
        tip.set_visible(abs(yaw) > 0.05)
        error = f"{100 * log.position_error[k]:.2f} cm, {abs(math.degrees(log.heading_error[k])):.2f}°"
        words.set_text(f"t = {log.time[k]:.1f} s    error {error}")
        canvas.restore_region(still)
        for artist in (trail, hull, target, push, turn, tip, words):
            figure.draw_artist(artist)
        if on_frame:
            on_frame(count, len(rows))
        yield np.array(canvas.buffer_rgba())[..., :3]


def _write_gif(frames: Iterator[Array], interval: float, path: Path) -> None:
    from PIL import Image

    # One palette for all frames, so that unchanged pixels stay equal and cost next to nothing: the colours drawn
    # with, and what antialiasing makes of them on white.
    palette = Image.new("P", (1, 1))
    drawn = np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in (BLUE, RED, INK, SKY, FAINT)])
    mixed = [255 + shade * (drawn[:3] - 255) for shade in np.linspace(1, 0.25, 9)]
    palette.putpalette(np.concatenate([*mixed, drawn[3:], [[255] * 3]]).round().astype(np.uint8).tobytes())
    first = Image.fromarray(next(frames))
    images = (Image.fromarray(frame).quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames)
    # Pillow would leave a file it opened itself open if a frame failed.
    with path.open("wb") as file:
        first.quantize(palette=palette, dither=Image.Dither.NONE).save(
            file, "GIF", save_all=True, append_images=images, duration=round(1000 * interval), loop=0
        )


def _write_mp4(frames: Iterator[Array], interval: float, path: Path) -> None:
    first = next(frames)
    height, width, _ = first.shape
    source = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", f"{1 / interval:g}", "-i", "-"]
    command = ["ffmpeg", "-y", "-loglevel", "error", *source, "-pix_fmt", "yuv420p", str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as encoder:
        assert encoder.stdin is not None
        assert encoder.stderr is not None
        try:
            encoder.stdin.write(first.tobytes())
            for frame in frames:
                encoder.stdin.write(frame.tobytes())
            encoder.stdin.close()
        except BrokenPipeError:
            pass  # ffmpeg has given up, and says why below
        reason = encoder.stderr.read().decode(errors="replace").strip().splitlines()
    if encoder.returncode != 0:
        raise InputError(
            f"ffmpeg could not write the animation: {reason[-1] if reason else 'no reason given'}; try .gif"
        )


def _figure(size: tuple[float, float]) -> Figure:
    """A figure of that size in inches on its own canvas, apart from pyplot's global state."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError("a picture needs Matplotlib: pip install 'anyhull[plot]'") from None
    figure = Figure(figsize=size, dpi=100, facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def _key(**style: Any) -> Any:
    """A sample of a line for a legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], markeredgecolor=INK, markeredgewidth=0.7, **style)


def _save(figure: Figure, path: str | Path | None) -> None:
    if path is not None:
        with whole(path) as temporary:
            figure.savefig(temporary, dpi=150)


def _suffix(path: str | Path, accepted: tuple[str, ...], what: str) -> None:
    if Path(path).suffix not in accepted:
        raise InputError(f"{path}: {what} is written as {', '.join(accepted)}: give a path with one of these endings")


def _frame_map(panel: Axes, log: Log, margin: float) -> None:
    """Equal axes around all of the run, with room of `margin` m for the hull."""
    points = np.concatenate([log.state[:, :2], log.reference[:, :2]])
    panel.update_datalim([points.min(axis=0) - 0.75 * margin, points.max(axis=0) + 0.75 * margin])
    panel.margins(0)
    panel.set_aspect("equal", adjustable="datalim")
    panel.grid(color=FAINT, lw=0.7)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)


def _extent(log: Log) -> float:
    points = np.concatenate([log.state[:, :2], log.reference[:, :2]])
    return max(float(np.ptp(points, axis=0).max()), 1.0)


def _size(log: Log, least: float = 0.03) -> tuple[float, float, bool]:
    """Length and beam to draw, m, and whether they are the boat's own; no shorter than that part of the path."""
    length, beam = log.about.get("length"), log.about.get("beam")
    slender = beam / length if length and beam else 0.42
    drawn = max(length or 0.09 * _extent(log), least * _extent(log))
    return drawn, slender * drawn, drawn == length


def _hull(length: float, beam: float, pose: Array) -> Array:
    """The outline of a boat at a pose (x, y, psi): a pointed bow, a transom stern, (n, 2)."""
    forward = np.linspace(0, 1, 12)
    x = np.concatenate([[-0.5], -0.1 + 0.6 * forward])
    y = np.concatenate([[0.42], 0.5 * (1 - forward**2.2)])
    side = np.stack([length * x, beam * y], axis=1)
    outline = np.concatenate([side, side[::-1] * (1, -1)])
    return pose[:2] + _turned(outline, pose[2])


def _turned(points: Array, angle: float) -> Array:
    cos, sin = math.cos(angle), math.sin(angle)
    turned: Array = points @ np.array([[cos, sin], [-sin, cos]])
    return turned


def _draw_hulls(panel: Axes, log: Log, length: float, beam: float, spacing: float, zorder: float = 3) -> None:
    """The boat along its way, some `spacing` lengths apart, at most sixteen times, and at the end."""
    way = float(np.hypot(*np.diff(log.state[:, :2], axis=0).T).sum())
    step = max(1, math.ceil(len(log.time) * max(spacing * length / max(way, 1e-9), 1 / 16)))
    drawn: list[Array] = []
    for pose in (*log.state[::step, :3], log.state[-1, :3]):
        if all(np.hypot(*(pose - other)[:2]) > 0.9 * length for other in drawn):
            panel.fill(*_hull(length, beam, pose).T, fc=SKY, ec=BLUE, lw=0.9, zorder=zorder)
            drawn.append(pose)


def _round_down(value: float) -> float:
    """The largest of 1, 2, 5, 10, 20, 50, ... that does not exceed `value`."""
    decade = 10.0 ** math.floor(math.log10(value))
    return max(step for step in (1, 2, 5) if step * decade <= value) * decade


def _controller(log: Log) -> str:
    return str(log.about.get("controller", "controller"))


def _sea(log: Log) -> str:
    """The sea of a run in words: the name of the preset, or what it is made of."""
    about = log.about.get("sea")
    if not about:
        return "sea unknown"
    about = {**about, "delay": tuple(about["delay"])}
    for name, sea in PRESETS.items():
        if asdict(sea) == about:
            return f"{name} sea"
    low, high = (1000 * value for value in about["delay"])
    return f"current {about['current']:g} m/s, wind {100 * about['force']:g} %, delay {low:.0f} to {high:.0f} ms"


def _headline(log: Log) -> str:
    return f"{log.about.get('vessel', 'vessel')}  ·  {_controller(log)}  ·  {_sea(log)}"


def _metrics(log: Log) -> str:
    m = log.metrics()
    position, spread, most = (_short(v) for v in (m.position_cm, m.position_std_cm, m.position_max_cm))
    heading, turn, worst = (_short(v) for v in (m.heading_deg, m.heading_std_deg, m.heading_max_deg))
    return (
        f"position {position} ± {spread} cm (at most {most}),  heading {heading} ± {turn}° (at most {worst}),  "
        f"commands at a limit {_short(100 * m.saturation)} %,  roughness {_short(m.roughness)}"
    )


def _short(value: float) -> str:
    """Three digits, and none beyond the fourth decimal."""
    return f"{round(value, 4):.3g}" if value < 1000 else f"{value:.0f}"


def _counted(boats: int) -> str:
    words = ("no boats", "one boat", "two boats", "three boats", "four boats", "five boats", "six boats")
    return words[boats] if boats < len(words) else f"{boats} boats"
