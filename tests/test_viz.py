"""Figures and animations: their files, and the numbers of the run in them."""

import math
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from PIL import Image
from PIL.GifImagePlugin import GifImageFile

from anyhull import InputError, Log, Mission, Vessel, rounded_rectangle, simulate
from anyhull.mission import Lawnmower, Plan, Waypoint
from anyhull.sea import Sea
from anyhull.viz import animate, animation, fleet, plot, plots
from anyhull.viz.plan import draw_plan


def made(n=40, **about):
    """A run along y at 1 m/s, the boat 2 cm to the side and 3° off, its surge command saturated half the time."""
    time = 0.1 * np.arange(n)
    reference = np.zeros((n, 6))
    reference[:, 1], reference[:, 2] = time, math.pi / 2
    state = reference + np.array([0.02, 0, math.radians(3), 0, 0, 0])
    command = np.stack([np.where(time < time.mean(), 1.0, 0.2), np.zeros(n), -0.5 * np.ones(n)], axis=1)
    known = {"vessel": "Test boat", "controller": "test", "length": 2.0, "beam": 0.5, "sea": vars(Sea.field())}
    return Log(time, state, reference, command, np.zeros((n, 2)), np.zeros((n, 3)), about=known | about)


def texts(figure):
    return " ".join(text.get_text() for text in figure.texts)


def legend(panel):
    """Its labels."""
    return [text.get_text() for text in panel.get_legend().get_texts()]


def test_a_plot_is_one_page_with_the_runs_own_numbers():
    log = made()
    figure = plot(log)
    path, position, heading, *commands = figure.axes
    assert len(commands) == 3
    np.testing.assert_allclose(np.asarray(position.lines[0].get_ydata()), 2.0)
    np.testing.assert_allclose(np.asarray(heading.lines[0].get_ydata()), 3.0)
    for axis, panel in enumerate(commands):
        drawn = [line.get_ydata() for line in panel.lines if np.shape(line.get_xdata()) == log.time.shape]
        np.testing.assert_array_equal(drawn[0], log.command[:, axis])
        assert {-1.0, 1.0} <= {float(np.ravel(line.get_ydata())[0]) for line in panel.lines}
    assert path.get_aspect() == 1
    assert [path.get_xlabel(), path.get_ylabel(), commands[-1].get_xlabel()] == ["x (m)", "y (m)", "time (s)"]
    assert "(cm)" in position.get_ylabel()
    assert "(deg)" in heading.get_ylabel()
    assert all(
        word in texts(figure) for word in ("Test boat", "test", "field sea", "2 ± 0 cm", "3 ± 0°", "saturated 16.7 %")
    )
    # One step of 0.8 on one of three axes in 39 steps: 0.8 / (3 · 39) = 0.0068.
    assert "mean |Δτ| per step 0.0068" in texts(figure)


def test_the_hull_is_drawn_to_scale_where_the_length_is_known():
    outline = plots.hull_outline(2.0, 0.5, np.array([3.0, 4.0, math.pi / 2]))
    assert np.ptp(outline[:, 1]) == pytest.approx(2.0)
    assert np.ptp(outline[:, 0]) == pytest.approx(0.5)
    bow = outline[np.argmax(outline[:, 1])]
    np.testing.assert_allclose(bow, [3.0, 5.0], atol=1e-9)
    assert "hull" in legend(plot(made()).axes[0])
    assert "hull, not to scale" in legend(plot(made(length=None, beam=None)).axes[0])


@pytest.mark.parametrize("suffix", plots.PICTURES)
def test_a_plot_is_written_in_every_format_it_offers(tmp_path, suffix):
    path = tmp_path / "new" / f"run{suffix}"
    plot(made(), path)
    assert path.read_bytes()[:5] in (b"\x89PNG\r", b"%PDF-", b"<?xml")
    assert list(path.parent.iterdir()) == [path]


def test_a_png_is_large_enough_to_read_and_not_blank(tmp_path):
    plot(made(), tmp_path / "run.png")
    with Image.open(tmp_path / "run.png") as image:
        assert image.width >= 1600
        assert image.height >= 900
        colours = image.convert("RGB").getcolors(1 << 20)
        assert colours is not None
        assert len(colours) > 50


def test_a_run_at_rest_and_a_run_of_one_row_can_be_drawn(tmp_path):
    rest = made(length=None, sea=None)
    rest.state[:] = rest.reference[:] = 0.0
    plot(rest, tmp_path / "rest.png")
    plot(made(n=1), tmp_path / "one.png")
    animate(made(n=1), tmp_path / "one.gif")


def test_a_fleet_has_one_panel_for_each_vessel_and_compares_their_means(tmp_path):
    logs = {name: made(vessel=name) for name in ("A", "B", "C", "D", "E")}
    path = tmp_path / "fleet.png"
    figure = fleet(logs, path, baseline=logs, published=("published", 0.33, 0.07))
    *panels, position, heading = figure.axes
    assert [panel.get_title(loc="left") for panel in panels] == list(logs)
    # 2 cm on a path of 3.9 m: ten times would be 20 cm, twenty times 40 cm and more than a tenth of it.
    assert "5 vessels" in texts(figure)
    assert "enlarged 10 times" in texts(figure)
    np.testing.assert_allclose(np.asarray(panels[0].lines[1].get_xdata()), 0.2)
    np.testing.assert_allclose(np.asarray(position.lines[0].get_xdata()), 2.0)
    np.testing.assert_allclose(np.asarray(heading.lines[0].get_xdata()), 3.0)
    assert [label.get_text() for label in position.get_yticklabels()] == [*logs, "average"]
    with Image.open(path) as image:
        assert min(image.size) >= 900


@pytest.mark.parametrize("boats", [1, 2, 3, 7])
def test_a_fleet_may_have_any_size(boats):
    figure = fleet({str(i): made() for i in range(boats)})
    assert len(figure.axes) == boats + 2


def test_a_gif_plays_in_real_time(tmp_path):
    path = animate(made(n=30), tmp_path / "run.gif")
    with Image.open(path) as film:
        assert isinstance(film, GifImageFile)
        assert film.size == (640, 480)
        assert film.n_frames == 30
        durations = []
        for frame in range(film.n_frames):
            film.seek(frame)
            durations.append(film.info["duration"])
        assert sum(durations) == 3000
        film.seek(0)
        first = np.asarray(film.convert("RGB"), dtype=int)
        assert tuple(first[0, 0]) == (255, 255, 255)
        film.seek(29)
        assert (np.abs(np.asarray(film.convert("RGB"), dtype=int) - first).max(axis=2) > 60).sum() > 200


def test_a_long_run_skips_frames_and_stays_in_real_time(tmp_path, monkeypatch):
    monkeypatch.setattr(animation, "FRAMES", 10)
    counted = []
    path = animate(made(n=40), tmp_path / "run.gif", on_frame=lambda done, total: counted.append((done, total)))
    with Image.open(path) as film:
        assert isinstance(film, GifImageFile)
        assert film.n_frames == 10
        assert film.info["duration"] == 400
    assert counted == [(i, 10) for i in range(1, 11)]


def test_a_lap_of_the_papers_rectangle_is_a_gif_below_two_megabytes(tmp_path):
    class Coast:
        def reset(self): ...

        def step(self, pose, velocity, window):
            return np.array([0.81, 0.05 * math.sin(pose[0]), 0.02])

    log = simulate(Coast(), Vessel.load("platform-a"), rounded_rectangle(), Sea.field())
    assert animate(log, tmp_path / "lap.gif").stat().st_size < 2e6


@pytest.mark.parametrize(
    ("draw", "name", "accepted"),
    [
        (plot, "a.bmp", plots.PICTURES),
        (plot, "a", plots.PICTURES),
        (animate, "a.avi", animation.ANIMATIONS),
    ],
)
def test_an_unknown_format_is_refused_with_the_accepted_ones(tmp_path, draw, name, accepted):
    with pytest.raises(InputError) as error:
        draw(made(), tmp_path / name)
    assert all(word in str(error.value) for word in (name, *accepted))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("draw", [plot, animate])
def test_without_matplotlib_it_says_what_to_install(tmp_path, monkeypatch, draw):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(InputError, match=r"needs Matplotlib: pip install 'anyhull\[plot\]'"):
        draw(made(), tmp_path / ("a.png" if draw is plot else "a.gif"))


def test_an_animation_that_fails_leaves_nothing_behind(tmp_path):
    def fail(done, total):
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        animate(made(), tmp_path / "a.gif", on_frame=fail)
    assert list(tmp_path.iterdir()) == []


def test_mp4_without_ffmpeg_names_gif_instead(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match=r"a\.mp4: MP4 needs ffmpeg.*\.gif"):
        animate(made(), tmp_path / "a.mp4")


@pytest.fixture
def ffmpeg(tmp_path, monkeypatch):
    """Puts a stand-in for ffmpeg on the PATH: a shell script with this body."""

    def install(body):
        tool = tmp_path / "bin" / "ffmpeg"
        tool.parent.mkdir()
        tool.write_text(f"#!/bin/sh\n{body}\n")
        tool.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tool.parent}{os.pathsep}{os.environ['PATH']}")

    return install


def test_mp4_hands_every_frame_to_ffmpeg(tmp_path, ffmpeg):
    ffmpeg('for last; do :; done; cat > "$last"')
    path = animate(made(n=4), tmp_path / "a.mp4")
    assert path.stat().st_size == 4 * 640 * 480 * 3


def test_ffmpegs_own_complaint_is_passed_on_and_nothing_left(tmp_path, ffmpeg):
    ffmpeg("echo 'no encoder' >&2; exit 1")
    with pytest.raises(InputError, match="no encoder"):
        animate(made(), tmp_path / "a.mp4")
    assert [path.name for path in tmp_path.iterdir()] == ["bin"]


def test_drawing_leaves_pyplot_alone():
    code = (
        "import sys, numpy as np; from anyhull import Log, viz; z = np.zeros;"
        "viz.plot(Log(0.1 * np.arange(9), z((9, 6)), z((9, 6)), z((9, 3)), z((9, 2)), z((9, 3))));"
        "print('matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def numbers(figure):
    """The numbers of the waypoints and the boxes that they take, pixels."""
    figure.canvas.draw()
    found = [text for text in figure.axes[0].texts if text.get_text()]
    return [text.get_text() for text in found], [text.get_window_extent() for text in found]


def overlaps(boxes):
    return any(one.overlaps(two) for i, one in enumerate(boxes) for two in boxes[:i])


def test_the_plan_of_a_survey_has_the_outline_of_its_area():
    area = ((0.0, 0.0), (40.0, 0.0), (40.0, 25.0), (0.0, 25.0))
    figure = draw_plan(Mission.of_plan(Plan(coordinates="local", lawnmower=Lawnmower(area, 5.0))))
    (panel,) = figure.axes
    assert "survey area" in legend(panel)
    (outline,) = [patch for patch in panel.patches if patch.get_label() == "survey area"]
    np.testing.assert_allclose(np.asarray(outline.get_path().vertices, dtype=float)[:4], area)
    assert [str(n) for n in range(1, 11)] == numbers(figure)[0]


@pytest.mark.parametrize("width", [30.0, 1.0])
def test_a_long_name_is_wrapped_and_text_above_the_plan_does_not_overlap(width):
    name = "A survey of the northern basin, part two, for $5 and $6 " * 2
    corners = ((0.0, 0.0), (width, 0.0), (width, 30.0))
    figure = draw_plan(Mission.of_plan(Plan("local", name=name, waypoints=tuple(map(Waypoint, corners)))))
    figure.canvas.draw()
    title, summary = figure.texts
    assert " ".join(title.get_text().split()) == name.strip()
    above: list[Any] = [title, summary, figure.axes[0].get_legend()]
    boxes = [text.get_window_extent() for text in above]
    assert not overlaps(boxes)
    assert all(box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1 for box in boxes)


def test_numbers_of_waypoints_that_lie_close_together_do_not_overlap():
    corners = ((0.0, 0.0), (1000.0, 0.0), (1000.0, 5.0), (0.0, 5.0))
    names, boxes = numbers(draw_plan(Mission.of_plan(Plan("local", waypoints=tuple(map(Waypoint, corners))))))
    assert names == ["1", "2", "3", "4"]
    assert not overlaps(boxes)
    zigzag = tuple((0.5 * i, 100.0 * (i % 2)) for i in range(120))
    names, boxes = numbers(draw_plan(Mission.of_plan(Plan("local", waypoints=tuple(map(Waypoint, zigzag))))))
    assert 2 <= len(names) < 60
    assert not overlaps(boxes)
