"""Figures from result files. Lines differ by dash and marker as well as by colour, so that they are legible in grey."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from anyhull import paper
from anyhull.paper import FIELD_PLATFORMS
from anyhull.study.convergence import scale_step
from anyhull.study.entries import LABELS, Spread, by_seed, gather, name_of, published, trials
from anyhull.study.results import Result
from anyhull.study.tables import READ_OUT, READOUT, RECIPES
from anyhull.viz.plots import BLUE, GREY, INK, LINES, ORANGE, RED, legend_key, new_figure, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLES: dict[str, dict[str, Any]] = {
    "latent-ppo": {"color": BLUE, "marker": "o"},
    "latent-raw": {"color": GREY, "marker": "^", "ls": ":"},
    "latent-linear": {"color": INK, "marker": "v", "ls": "-."},
    "latent-raw-linear": {"color": LINES[3], "marker": "x", "ls": ":"},
    "latent-apg": {"color": ORANGE, "marker": "s", "ls": "--"},
}
"""Line of each recipe."""

MARKERS: tuple[dict[str, Any], ...] = (
    {"color": BLUE, "marker": "o", "ms": 6, "mec": INK, "mew": 0.6},
    {"color": BLUE, "marker": "|", "ms": 9, "mec": BLUE, "mew": 1.2},
    {"color": ORANGE, "marker": "D", "ms": 6, "mec": INK, "mew": 0.6},
    {"marker": "o", "ms": 6, "mfc": "none", "mec": BLUE, "mew": 1.4},
)
"""Markers of our mean, of our seeds or median, of the paper's mean, and of our mean from rest."""


class Picture(NamedTuple):
    """A figure of a study."""

    study: str
    name: str
    """Name of its file, without suffix."""
    caption: str
    figure: Figure


def of(results: dict[str, Result]) -> list[Picture]:
    """The figures that the results allow, in the order of the report."""
    by_study = {study: {n: r for n, r in results.items() if r.study == study} for study in ("ideal", "latent")}
    made = []
    if gather(by_study["ideal"].values()):
        caption = (
            "Mean errors over five platforms in ideal conditions: from the reference's velocity, seeds and their mean; "
            "from rest, their mean; the paper's mean ± deviation."
        )
        made.append(Picture("ideal", "ideal", caption, ideal(by_study["ideal"])))
    if found := by_study["latent"]:
        caption = "Share of the latent's variance in each principal component: mean and range over seeds."
        made.append(Picture("latent", "scree", caption, scree(found)))
    if found := {name: by_study["latent"][name] for name in READ_OUT if name in by_study["latent"]}:
        caption = "R² on held-out boats of each component of e, read out of the latent z and of its estimate ẑ."
        made.append(Picture("latent", "readout", caption, readout(found)))
        caption = "Error of the adapter's estimate in percent of the latent's variance, against time since reset."
        made.append(Picture("latent", "estimate", caption, estimate(found)))
    if "sweep" in results:
        seed = results["sweep"].data["seeds"][0]
        caption = "The latent number against the scale of inertia and damping, seed 0."
        made.append(Picture("sweep", "scale", caption, scale(seed)))
        caption = "Latent number and position error when the scale drops, without notice to the student; seed 0."
        made.append(Picture("sweep", "drop", caption, drop(seed["drop"])))
    if trials(results):
        caption = (
            "Position error of the estimated state in the twin, beside the paper's mean ± deviation on real boats."
        )
        made.append(Picture("field", "field", caption, field(results)))
    return made


def ideal(results: dict[str, Result]) -> Figure:
    """Two panels, cm and degrees, one line for each row of the table."""
    entries, rest = gather(results.values()), gather(results.values(), "rest")
    names = list(entries)[::-1]
    figure, panels = _row_panels(names)
    for panel, what in zip(panels, ("position_cm", "heading_deg"), strict=True):
        for place, row in enumerate(names):
            seeds = by_seed(entries[row], what)
            if row in rest:
                panel.plot(np.mean(by_seed(rest[row], what)), place, ls="", **MARKERS[3])
            _draw_row(panel, place, float(np.mean(seeds)), seeds, published(paper.IDEAL.get(row), what))
        _finish_rows(panel, names, {"position_cm": "position error (cm)", "heading_deg": "heading error (°)"}[what])
    return _add_legend(figure, "ours, mean", "ours, each seed", "the paper", "ours from rest, mean")


def field(results: dict[str, Result]) -> Figure:
    """One panel for each platform, one line for each controller in the twin."""
    found = trials(results)
    names = list(found)[::-1]
    figure, panels = _row_panels(names)
    for panel, platform in zip(panels, FIELD_PLATFORMS, strict=True):
        for place, row in enumerate(names):
            position = found[row][platform]["estimated_position_cm"]
            printed = published(paper.FIELD[platform].get(row), "position_cm")
            _draw_row(panel, place, position["mean"], [position["median"]], printed)
        _finish_rows(panel, names, f"{name_of(platform)}: position error (cm)")
    return _add_legend(figure, "ours, mean over trials", "ours, median over trials", "the paper")


def _row_panels(names: list[str]) -> tuple[Figure, Any]:
    figure = new_figure((9, 1.3 + 0.42 * len(names)))
    return figure, figure.subplots(1, 2, sharey=True)


def _draw_row(panel: Axes, place: int, mean: float, ticks: list[float], printed: Spread | None) -> None:
    """Our mean and ticks on a line, and the paper's figure below them."""
    panel.plot(ticks, [place] * len(ticks), ls="", **MARKERS[1])
    panel.plot(mean, place, ls="", **MARKERS[0])
    if printed and printed.std is not None:
        error = min(printed.std, 0.9 * printed.mean)
        panel.errorbar(printed.mean, place - 0.28, xerr=error, ls="", capsize=2.5, **MARKERS[2])


def _finish_rows(panel: Axes, names: list[str], unit: str) -> None:
    """Names of the rows on the left, a logarithmic axis below."""
    from matplotlib.ticker import LogLocator, NullFormatter

    panel.set_xscale("log")
    low, high = panel.get_xlim()
    if high < 100 * low:
        panel.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    panel.xaxis.set_major_formatter("{x:g}")
    panel.xaxis.set_minor_formatter(NullFormatter())
    panel.set_xlabel(unit)
    panel.set_yticks(range(len(names)), [LABELS[row] for row in names], fontsize=9)
    panel.set_ylim(-0.7, len(names) - 0.4)
    style(panel)


def _add_legend(figure: Figure, *labels: str) -> Figure:
    keys = [legend_key(**marker, ls="") for marker in MARKERS[: len(labels)]]
    figure.legend(keys, labels, loc="upper right", ncols=len(labels), frameon=False, fontsize=9)
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.35 / figure.get_figheight()))
    return figure


def scree(results: dict[str, Result]) -> Figure:
    """Shares of variance of the principal components."""
    figure, panel = _panel("principal component", "share of variance (%)")
    found = {name: results[name] for name in RECIPES if name in results}
    for i, (name, result) in enumerate(found.items()):
        shares = 100 * np.array([seed["shares"] for seed in result.data["seeds"]])
        place = np.arange(1, shares.shape[1] + 1) + (i - (len(results) - 1) / 2) * 0.14
        reach = np.stack([shares.mean(0) - shares.min(0), shares.max(0) - shares.mean(0)])
        panel.errorbar(
            place, shares.mean(0), yerr=reach, capsize=2.5, label=RECIPES[name], lw=1.4, ms=6, **STYLES[name]
        )
    panel.plot([1, 2], paper.VARIANCE_SHARES, "D", color=RED, ms=8, mec=INK, label="the paper", zorder=5)
    panel.set_ylim(0, None)
    panel.legend(frameon=False)
    figure.tight_layout()
    return figure


def readout(results: dict[str, Result]) -> Figure:
    """R² of each component, from z and from its estimate; one panel for each recipe."""
    figure = new_figure((4.2 * len(results) + 1, 3.6))
    panels = figure.subplots(1, len(results), sharey=True, squeeze=False)[0]
    for panel, (name, result) in zip(panels, results.items(), strict=True):
        names = result.data["components"]
        for i, (key, label) in enumerate(READOUT.items()):
            r2 = np.mean([seed[key] for seed in result.data["seeds"]], axis=0)
            look = {"color": (BLUE, "white")[i], "edgecolor": INK, "hatch": ("", "////")[i], "lw": 0.7}
            # A negative R² says no more than zero, and would compress the scale.
            panel.bar(np.arange(len(names)) + 0.4 * (i - 0.5), np.maximum(r2, 0), 0.38, label=f"from {label}", **look)
        panel.set_xticks(range(len(names)), names, fontsize=9)
        panel.set_ylim(0, 1)
        panel.set_title(RECIPES[name], fontsize=10)
        style(panel)
    panels[0].set_ylabel("R² on held-out boats")
    panels[-1].legend(frameon=False, fontsize=9, loc="upper right", bbox_to_anchor=(1, 1.18), ncols=2)
    figure.tight_layout()
    return figure


def estimate(results: dict[str, Result]) -> Figure:
    """Error of the estimate in time."""
    figure, panel = _panel("time since reset (s)", "|ẑ − z|² (% of the variance of z)")
    for name, result in results.items():
        for key, label, width, fill in (("error_mean", "mean", 1.8, None), ("error_median", "median", 0.9, "white")):
            error = 100 * np.array([seed[key] for seed in result.data["seeds"]])
            time = result.data["period"] * np.arange(1, error.shape[1] + 1)
            look = {**STYLES[name], "lw": width, "ms": 5, "markevery": max(1, len(time) // 10), "mfc": fill}
            panel.plot(time, error.mean(0), label=f"{RECIPES[name]}, {label} over boats", **look)
            if key == "error_mean" and len(error) > 1:
                panel.fill_between(time, error.min(0), error.max(0), color=STYLES[name]["color"], alpha=0.2, lw=0)
    panel.set_xlim(0, None)
    panel.set_ylim(0, None)
    panel.legend(frameon=False, fontsize=9)
    figure.tight_layout()
    return figure


def scale(seed: dict[str, Any]) -> Figure:
    """z₀ against s, of encoder and adapter."""
    figure, panel = _panel("scale factor s", "latent number z₀")
    s, adapter, deviation = (np.array(seed[name]) for name in ("scale", "adapter", "adapter_std"))
    low, high = adapter - deviation, adapter + deviation
    panel.fill_between(s, low, high, color=ORANGE, alpha=0.3, lw=0, label="± deviation over runs")
    _draw_latents(panel, s, seed)
    panel.set_xscale("log")
    panel.xaxis.set_major_formatter("{x:g}")
    panel.set_xlim(s[0], s[-1])
    panel.legend(frameon=False)
    figure.tight_layout()
    return figure


def drop(run: dict[str, Any]) -> Figure:
    """Latent and position error about the drop of the scale."""
    when, before, after = scale_step(run)
    start, end = when - 5, run["time"][-1]
    figure = new_figure((7, 5))
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(1.6, 1))
    _draw_latents(upper, run["time"], run, drawstyle="steps-post")
    upper.set_ylabel("latent number z₀")
    upper.legend(frameon=False)
    lower.plot(run["time"], run["position_cm"], color=INK, lw=1.4)
    lower.set_ylabel("position error (cm)")
    lower.set_xlabel("time (s)")
    for panel in (upper, lower):
        panel.axvline(when, color=GREY, lw=1, ls=":")
        panel.set_xlim(start, end)
        style(panel)
    # Only the part in view sets the scale.
    visible = np.array(run["position_cm"])[np.array(run["time"]) >= start]
    lower.set_ylim(0, 1.1 * max(visible.max(), 1e-3))
    for place, side, s in ((when - 0.1, "right", before), (when + 0.1, "left", after)):
        # Above the panel, clear of the curves.
        upper.text(place, 1.02, f"s = {s:.1f}", ha=side, color=INK, fontsize=9, transform=upper.get_xaxis_transform())
    figure.tight_layout()
    return figure


def _draw_latents(panel: Axes, x: Any, found: dict[str, Any], **encoder: Any) -> None:
    panel.plot(x, found["encoder"], color=BLUE, lw=2, label="z₀ encoder", **encoder)
    panel.plot(x, found["adapter"], color=ORANGE, lw=2, ls="--", label="ẑ₀ adapter")


def _panel(x: str, y: str) -> tuple[Figure, Axes]:
    figure = new_figure((7, 3.8))
    panel = figure.subplots()
    panel.set_xlabel(x)
    panel.set_ylabel(y)
    style(panel)
    return figure, panel
