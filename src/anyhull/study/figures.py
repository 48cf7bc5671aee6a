"""Figures from result files. Lines differ by dash and marker as well as by colour, so that greys will do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from anyhull.plots import BLUE, FAINT, GREY, INK, ORANGE, RED, new_figure
from anyhull.study import published
from anyhull.study.driven import FIELD_PLATFORMS
from anyhull.study.results import Result
from anyhull.study.tables import LABELS, READ, RECIPES, gather, over_platforms, trials
from anyhull.vessel import Vessel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLES: tuple[dict[str, Any], ...] = ({"color": BLUE, "marker": "o"}, {"color": ORANGE, "marker": "s", "ls": "--"})
"""How the first and the second of two recipes are drawn."""


def of(results: dict[str, Result]) -> dict[str, tuple[str, Figure]]:
    """The figures that the results allow: by file name the caption and the figure."""
    by_study = {study: {n: r for n, r in results.items() if r.study == study} for study in ("ideal", "latent")}
    made: dict[str, tuple[str, Figure]] = {}
    if gather(by_study["ideal"].values()):
        made["ideal"] = (
            "Mean errors over five platforms in still water: every seed, their mean, and the paper's mean ± deviation.",
            ideal(by_study["ideal"]),
        )
    if by_study["latent"]:
        made["scree"] = (
            "Share of the latent's variance in each principal component: mean over seeds, with the range.",
            scree(by_study["latent"]),
        )
        made["estimate"] = (
            "How far the adapter's estimate is from the encoder's latent, in percent of its variance, against time.",
            estimate(by_study["latent"]),
        )
        made["readout"] = (
            "How well each component of e can be read out of the latent and of its estimate, on held-out boats.",
            readout(by_study["latent"]),
        )
    if trials(results):
        made["field"] = (
            "Position error in trials of the twin, estimated state, beside the paper's mean ± deviation on the water.",
            field(results),
        )
    if "sweep" in results:
        seeds = results["sweep"].data["seeds"]
        made["scale"] = ("One latent number against the scale of inertia and damping, seed 0.", scale(seeds[0]))
        made["drop"] = ("The scale drops at 10 s, and nobody tells the student; seed 0.", drop(seeds[0]["drop"]))
    return made


def ideal(results: dict[str, Result]) -> Figure:
    """Two panels, cm and degrees, a line for each row."""
    entries = gather(results.values())
    names = list(entries)[::-1]
    figure = new_figure((9, 1.3 + 0.42 * len(names)))
    panels = figure.subplots(1, 2, sharey=True)
    for panel, what, unit in zip(
        panels, ("position_cm", "heading_deg"), ("position error (cm)", "heading error (°)"), strict=True
    ):
        for place, row in enumerate(names):
            platforms = entries[row]
            seeds = [np.mean(one) for one in zip(*([n[what] for n in p] for p in platforms.values()), strict=True)]
            panel.plot(seeds, [place] * len(seeds), "|", color=BLUE, ms=9, mew=1.2)
            panel.plot(over_platforms(platforms, what).mean, place, "o", color=BLUE, ms=6, mec=INK, mew=0.6)
            if printed := published.IDEAL.get(row):
                _published(panel, place, getattr(printed, what), getattr(printed, what.replace("_", "_std_")))
        _listed(panel, names, unit)
    return _explained(figure, "ours, mean", "ours, each seed")


def field(results: dict[str, Result]) -> Figure:
    """A panel for each platform, a line for each controller in the twin."""
    found = trials(results)
    names = [row for row in LABELS if row in found][::-1]
    figure = new_figure((9, 1.3 + 0.42 * len(names)))
    for panel, platform in zip(figure.subplots(1, len(FIELD_PLATFORMS), sharey=True), FIELD_PLATFORMS, strict=True):
        for place, row in enumerate(names):
            position = found[row][platform]["estimated_position_cm"]
            panel.plot(position["median"], place, "|", color=BLUE, ms=9, mew=1.2)
            panel.plot(position["mean"], place, "o", color=BLUE, ms=6, mec=INK, mew=0.6)
            if printed := published.FIELD[platform].get(row):
                _published(panel, place, printed.position_cm, printed.position_std_cm)
        _listed(panel, names, f"{Vessel.load(platform).name}: position error (cm)")
    return _explained(figure, "ours, mean of the trials", "their median")


def _published(panel: Axes, place: int, middle: float, deviation: float) -> None:
    """The paper's figure under ours."""
    style: dict[str, Any] = {"color": ORANGE, "ms": 6, "mec": INK, "mew": 0.6, "capsize": 2.5}
    panel.errorbar(middle, place - 0.28, xerr=min(deviation, 0.9 * middle), fmt="D", **style)


def _listed(panel: Axes, names: list[str], unit: str) -> None:
    """Rows by name on the left, a logarithmic scale below."""
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
    _clean(panel)


def _explained(figure: Figure, dot: str, tick: str) -> Figure:
    keys = [_key(BLUE, "o", dot), _key(BLUE, "|", tick), _key(ORANGE, "D", "the paper")]
    figure.legend(handles=keys, loc="upper right", ncols=3, frameon=False, fontsize=9)
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.35 / figure.get_figheight()))
    return figure


def scree(results: dict[str, Result]) -> Figure:
    """Shares of variance, component by component."""
    figure, panel = _one((7, 3.8), "principal component", "share of variance (%)")
    for i, (name, result) in enumerate(results.items()):
        shares = 100 * np.array([seed["shares"] for seed in result.data["seeds"]])
        place = np.arange(1, shares.shape[1] + 1) + (i - (len(results) - 1) / 2) * 0.14
        reach = np.stack([shares.mean(0) - shares.min(0), shares.max(0) - shares.mean(0)])
        panel.errorbar(place, shares.mean(0), yerr=reach, capsize=2.5, label=RECIPES[name], lw=1.4, ms=6, **STYLES[i])
    panel.plot([1, 2], published.SHARES, "D", color=RED, ms=8, mec=INK, label="the paper", zorder=5)
    panel.set_ylim(0, None)
    panel.legend(frameon=False)
    figure.tight_layout()
    return figure


def estimate(results: dict[str, Result]) -> Figure:
    """Error of the estimate in time."""
    figure, panel = _one((7, 3.8), "time since reset (s)", "|ẑ − z|² (% of the variance of z)")
    for i, (name, result) in enumerate(results.items()):
        for key, shown, width in (("error_mean", "mean over boats", 1.8), ("error_median", "median", 0.9)):
            error = 100 * np.array([seed[key] for seed in result.data["seeds"]])
            time = result.data["period"] * np.arange(1, error.shape[1] + 1)
            style = {**STYLES[i], "lw": width, "ms": 5, "markevery": max(1, len(time) // 10)}
            panel.plot(
                time,
                error.mean(0),
                label=f"{RECIPES[name]}, {shown}",
                mfc="white" if "median" in key else None,
                **style,
            )
            if key == "error_mean" and len(error) > 1:
                panel.fill_between(time, error.min(0), error.max(0), color=STYLES[i]["color"], alpha=0.2, lw=0)
    panel.set_xlim(0, None)
    panel.set_ylim(0, None)
    panel.legend(frameon=False, fontsize=9)
    figure.tight_layout()
    return figure


def readout(results: dict[str, Result]) -> Figure:
    """R² of each component, from z and from its estimate; a panel for each recipe."""
    figure = new_figure((4.2 * len(results) + 1, 3.6))
    panels = figure.subplots(1, len(results), sharey=True, squeeze=False)[0]
    for panel, (name, result) in zip(panels, results.items(), strict=True):
        names = result.data["components"]
        for i, (key, label) in enumerate(READ.items()):
            r2 = np.mean([seed[key] for seed in result.data["seeds"]], axis=0)
            look = {"color": (BLUE, "white")[i], "edgecolor": INK, "hatch": ("", "////")[i], "lw": 0.7}
            # Below zero is as useless as zero, and would flatten the rest.
            panel.bar(np.arange(len(names)) + 0.4 * (i - 0.5), np.maximum(r2, 0), 0.38, label=f"from {label}", **look)
        panel.set_xticks(range(len(names)), names, fontsize=9)
        panel.set_ylim(0, 1)
        panel.set_title(RECIPES[name], fontsize=10)
        _clean(panel)
    panels[0].set_ylabel("R² on held-out boats")
    panels[-1].legend(frameon=False, fontsize=9, loc="upper right", bbox_to_anchor=(1, 1.18), ncols=2)
    figure.tight_layout()
    return figure


def scale(seed: dict[str, Any]) -> Figure:
    """z₀ against s, of encoder and adapter."""
    figure, panel = _one((7, 3.8), "scale factor s", "latent value z₀")
    s, adapter, deviation = (np.array(seed[name]) for name in ("scale", "adapter", "adapter_std"))
    panel.fill_between(s, adapter - deviation, adapter + deviation, color=ORANGE, alpha=0.3, lw=0, label="± over runs")
    panel.plot(s, seed["encoder"], color=BLUE, lw=2, label="z₀ encoder")
    panel.plot(s, adapter, color=ORANGE, lw=2, ls="--", label="ẑ₀ adapter")
    panel.set_xscale("log")
    panel.xaxis.set_major_formatter("{x:g}")
    panel.set_xlim(s[0], s[-1])
    panel.legend(frameon=False)
    figure.tight_layout()
    return figure


def drop(run: dict[str, Any]) -> Figure:
    """Latent and distance about the drop of the scale."""
    figure = new_figure((7, 5))
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(1.6, 1))
    upper.step(run["time"], run["encoder"], where="post", color=BLUE, lw=2, label="z₀ encoder")
    upper.plot(run["time"], run["adapter"], color=ORANGE, lw=2, ls="--", label="ẑ₀ adapter")
    upper.set_ylabel("latent value z₀")
    upper.legend(frameon=False)
    lower.plot(run["time"], run["position_cm"], color=INK, lw=1.4)
    lower.set_ylabel("distance (cm)")
    lower.set_xlabel("time (s)")
    for panel in (upper, lower):
        panel.axvline(10.0, color=GREY, lw=1, ls=":")
        panel.set_xlim(5, 15)
        _clean(panel)
    # The view is of the time about the drop: what came before must not set the scale.
    late = np.array(run["time"]) >= 5
    lower.set_ylim(0, 1.1 * max(np.array(run["position_cm"])[late].max(), 1e-3))
    for place, side, text in ((9.9, "right", "s = 1.0"), (10.1, "left", "s = 0.3")):
        # Above the panel, where no curve runs.
        upper.text(place, 1.02, text, ha=side, color=INK, fontsize=9, transform=upper.get_xaxis_transform())
    figure.tight_layout()
    return figure


def _one(size: tuple[float, float], x: str, y: str) -> tuple[Figure, Axes]:
    figure = new_figure(size)
    panel = figure.subplots()
    panel.set_xlabel(x)
    panel.set_ylabel(y)
    _clean(panel)
    return figure, panel


def _clean(panel: Axes) -> None:
    panel.grid(color=FAINT, lw=0.7)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)


def _key(color: str, marker: str, label: str) -> Any:
    from matplotlib.lines import Line2D

    edge = color if marker == "|" else INK
    return Line2D([], [], ls="", color=color, marker=marker, ms=7, mec=edge, label=label)
