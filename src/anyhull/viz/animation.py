"""A run as an animation in real time: a GIF, or an MP4 where ffmpeg is on the PATH. Needs Matplotlib."""

from __future__ import annotations

import math
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from anyhull.backend import Array
from anyhull.errors import InputError
from anyhull.files import atomic_write
from anyhull.log import Log
from anyhull.viz.captions import headline
from anyhull.viz.plots import (
    BLUE,
    DASHED,
    FAINT,
    INK,
    RED,
    SKY,
    check_suffix,
    drawn_size,
    frame_map,
    hull_outline,
    legend_key,
    new_figure,
    rotated,
)

ANIMATIONS = (".gif", ".mp4")
FRAMES = 500
"""Largest number of frames; a longer run skips some and stays in real time."""


def check_animation(path: str | Path) -> None:
    """Raise unless an animation can be drawn and encoded in the format of the suffix of `path`."""
    check_suffix(path, ANIMATIONS, "an animation")
    if Path(path).suffix == ".mp4" and not shutil.which("ffmpeg"):
        raise InputError(
            f"{path}: MP4 needs ffmpeg, which is not on the PATH: install it, or give a path ending in .gif"
        )
    new_figure((1, 1))


def animate(log: Log, path: str | Path, *, on_frame: Callable[[int, int], None] | None = None) -> Path:
    """Write the run in real time as a GIF, or as an MP4 where ffmpeg is on the PATH, by the suffix of `path`.

    `on_frame` is called with the number of frames drawn and their total.
    """
    check_animation(path)
    path = Path(path)
    stride = math.ceil(len(log.time) / FRAMES)
    interval = stride * log.period
    frames = _frames(log, range(0, len(log.time), stride), on_frame)
    with atomic_write(path) as temporary:
        (_write_gif if path.suffix == ".gif" else _write_mp4)(frames, interval, temporary)
    return path


def _frames(log: Log, rows: range, on_frame: Callable[[int, int], None] | None) -> Iterator[Array]:
    """The frames at those rows of the log as RGB images, (480, 640, 3) bytes."""
    figure = new_figure((6.4, 4.8))
    panel = figure.add_axes((0.09, 0.1, 0.89, 0.715))
    length, beam, _ = drawn_size(log, least=0.1)
    panel.plot(*log.reference[:, :2].T, **DASHED, lw=1.4, label="reference")
    frame_map(panel, log, 1.8 * length)
    panel.set_xlabel("x (m)", labelpad=1)
    panel.set_ylabel("y (m)", labelpad=1)
    figure.text(0.02, 0.95, headline(log), fontsize=11, weight="bold", color=INK)

    live: dict[str, Any] = {"animated": True}
    (trail,) = panel.plot([], [], color=BLUE, lw=2, label="boat", **live)
    (hull,) = panel.fill([0], [0], fc=SKY, ec=BLUE, lw=1.4, zorder=3, **live)
    push = panel.quiver([0, 0], [0, 0], [0, 0], [0, 0], angles="xy", scale_units="xy", scale=1, width=0.007,
                        color=RED, zorder=5, **live)  # fmt: skip
    (turn,) = panel.plot([], [], color=RED, lw=2.2, zorder=5, **live)
    (tip,) = panel.plot([], [], color=RED, ms=8, ls="none", zorder=5, **live)
    (target,) = panel.plot([], [], "o", ms=7, mfc="none", mec=INK, mew=1.4, zorder=4, **live)
    words = figure.text(0.02, 0.902, "", fontsize=10.5, color=INK, **live)
    legend = {"reference": legend_key(**DASHED, lw=1.4), "boat": legend_key(color=BLUE, lw=2)}
    legend |= {"command": legend_key(color=RED, lw=2.2), "target": legend_key(marker="o", ms=7, mfc="none", ls="none")}
    place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0.008, 0.895)}
    figure.legend(legend.values(), legend.keys(), **place, ncols=4, frameon=False, fontsize=9)
    canvas: Any = figure.canvas
    canvas.draw()
    still = canvas.copy_from_bbox(figure.bbox)
    for count, k in enumerate(rows, 1):
        pose, (surge, sway, yaw) = log.state[k, :3], log.command[k]
        trail.set_data(*log.state[: k + 1, :2].T)
        hull.set_xy(hull_outline(length, beam, pose))
        target.set_data(*log.reference[k : k + 1, :2].T)
        # Each arrow starts at the hull on the side of its force; at the limit it is as long as the boat.
        edge = np.array([[math.copysign(length, surge), 0.0], [0.0, math.copysign(beam, sway)]]) / 2
        push.set_offsets(pose[:2] + rotated(edge, pose[2]))
        push.set_UVC(*rotated(length * np.array([[surge, 0.0], [0.0, sway]]), pose[2]).T)
        # The yaw command is an arc beside the bow; at the limit it spans a right angle.
        angles = math.copysign(0.35, yaw) + np.linspace(0, yaw * math.pi / 2, 20)
        arc = pose[:2] + 0.8 * length * rotated(np.stack([np.cos(angles), np.sin(angles)], axis=1), pose[2])
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

    # One palette for all frames, so that unchanged pixels stay equal and compress well: the colours of the figure, and
    # their antialiased shades on white.
    palette = Image.new("P", (1, 1))
    drawn = np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in (BLUE, RED, INK, SKY, FAINT)])
    mixed = [255 + shade * (drawn[:3] - 255) for shade in np.linspace(1, 0.25, 9)]
    palette.putpalette(np.concatenate([*mixed, drawn[3:], [[255] * 3]]).round().astype(np.uint8).tobytes())
    first = Image.fromarray(next(frames))
    images = (Image.fromarray(frame).quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames)
    # Pillow does not close a file of its own when a frame raises.
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
            pass  # ffmpeg has ended; its reason is read below
        reason = encoder.stderr.read().decode(errors="replace").strip().splitlines()
    if encoder.returncode != 0:
        raise InputError(
            f"ffmpeg could not write the animation: {reason[-1] if reason else 'no reason given'}; try .gif"
        )
