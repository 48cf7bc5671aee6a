"""The figure of an identification: each component over time with a band of one standard deviation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from anyhull.backend import Array
from anyhull.hydrodynamics import Normalized
from anyhull.identified import COMPONENTS, Identified
from anyhull.viz.plots import BLUE, DASHED, GREY, INK, ORANGE, SKY, check_picture, legend_key, new_figure, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from anyhull.identification.identify import History

LABELS = {
    "alpha_u": "peak surge acceleration (m/s²)",
    "alpha_v": "peak sway acceleration (m/s²)",
    "alpha_r": "peak yaw acceleration (rad/s²)",
    "inv_tau_u": "surge damping rate (1/s)",
    "inv_tau_v": "sway damping rate (1/s)",
    "inv_tau_r": "yaw damping rate (1/s)",
    "c_rv": "sway over surge inertia (–)",
    "c_uv": "Munk coupling (1/m²)",
}

SETTLED = 0.2
"""Share of the voyage at its start that may be cut off by the axes."""


def plot_estimates(
    history: History,
    found: Identified,
    path: str | Path | None = None,
    *,
    title: str = "",
    true: tuple[float, ...] | None = None,
) -> Figure:
    """What the filters knew over time, what the whole record tells, and the file's own components where it has them."""
    if path is not None:
        check_picture(path)
    figure = new_figure((12, 7.6))
    panels = figure.subplots(3, 3, sharex=True)
    figure.subplots_adjust(left=0.06, right=0.975, top=0.85, bottom=0.075, hspace=0.36, wspace=0.22)
    time = history.time - history.time[0]
    for panel, name in zip(panels.flat, COMPONENTS, strict=False):
        i = Normalized._fields.index(name)
        _draw(panel, time, history.mean[:, i], history.spread[:, i], getattr(found, name), name)
        if true is not None:
            panel.axhline(true[i], **DASHED, lw=1.4, zorder=5)
        panel.set_title(LABELS[name], fontsize=10.5, loc="left", color=INK)
        panel.spines[["top", "right"]].set_visible(False)
        panel.set_xlim(0.0, 1.04 * time[-1])
    for panel in panels[1, :]:
        panel.tick_params(labelbottom=True)
    for panel in panels[2, :2]:
        panel.set_xlabel("time (s)")
    panels[1, 2].set_xlabel("time (s)")
    _state(panels[2, 2], found, true)
    figure.text(
        0.05, 0.945, f"Identified from {title}" if title else "Identified", fontsize=14, weight="bold", color=INK
    )
    what = (
        f"{found.seconds:.0f} s. Line and band: under way, with one standard deviation. Point: from the whole record."
    )
    figure.text(0.05, 0.905, what, fontsize=10.5, color=INK)
    save(figure, path)
    return figure


def _draw(panel: Axes, time: Array, mean: Array, spread: Array, final: tuple[float, float], name: str) -> None:
    spread = np.minimum(spread, 10.0)
    if name == "c_uv":
        low, high = np.sinh(np.arcsinh(mean) - spread), np.sinh(np.arcsinh(mean) + spread)
    else:
        low, high = mean * np.exp(-spread), mean * np.exp(spread)
    panel.fill_between(time, low, high, color=SKY, lw=0)
    panel.plot(time, mean, color=BLUE, lw=1.4)
    value, std = final
    at = 1.02 * time[-1]
    panel.errorbar([at], [value], yerr=[std], fmt="o", color=ORANGE, ms=5, capsize=3, lw=1.6, zorder=6, clip_on=False)
    # The first seconds know nothing: the axis shows the rest.
    late = time >= SETTLED * time[-1]
    bottom = min(low[late].min(), value - 2 * std)
    top = max(high[late].max(), value + 2 * std)
    reach = max(top - bottom, 0.1 * abs(value))
    middle = (top + bottom) / 2
    panel.set_ylim(middle - 0.6 * reach, middle + 0.6 * reach)
    panel.grid(axis="y", alpha=0.25)


def _state(panel: Axes, found: Identified, true: Any) -> None:
    """Delay, lag and the legend."""
    panel.axis("off")
    keys = [legend_key(color=BLUE, lw=1.6), legend_key(color=ORANGE, marker="o", lw=0)]
    labels = ["under way", "whole record"]
    if true is not None:
        keys, labels = [*keys, legend_key(**DASHED, lw=1.4)], [*labels, "of the vessel's file"]
    panel.legend(keys, labels, loc="upper left", frameon=False, fontsize=10.5)
    for row, name in enumerate(("delay", "lag")):
        value, std = getattr(found, name)
        text = f"{name} {1e3 * value:.0f} ± {1e3 * std:.0f} ms"
        panel.text(0.03, 0.32 - 0.14 * row, text, fontsize=10.5, color=GREY if std > value else INK)
