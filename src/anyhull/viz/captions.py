"""Labels of metrics and seas, and the titles of a run's figures."""

from __future__ import annotations

from dataclasses import asdict

from anyhull.hydrodynamics import Normalized
from anyhull.log import Log
from anyhull.sea import PRESETS
from anyhull.viz.facts import has_reference

METRICS = {
    "position_cm": "position, cm",
    "heading_deg": "heading, °",
    "delta_tau": "mean |Δτ| per step",
    "saturation": "saturated",
}
"""Labels of the metrics, the same in tables, figures and on the command line."""

SYMBOLS = dict(zip(Normalized._fields, ("αu", "αv", "αr", "1/τu", "1/τv", "1/τr", "crv", "cru", "cuv"), strict=True))
"""The components of e in a narrow table or a line."""

IDEAL_CONDITIONS = "ideal conditions (still water, no wind, no delay, exact state)"


def sea_label(preset: str) -> str:
    """The name of a preset for people."""
    return "ideal conditions" if preset == "ideal" else f"{preset} sea"


def controller_of(log: Log) -> str:
    """The controller of a run."""
    return str(log.about.get("controller", "controller"))


def sea_of(log: Log) -> str:
    """The sea of a run: the name of the preset, or its parameters."""
    if log.about.get("water") == "not measured":
        return "pilot"
    if "water" in log.about:
        return f"sea trial, {log.about['sea_name']} sea" if "sea_name" in log.about else "sea trial"
    about = log.about.get("sea")
    if not about:
        return "sea unknown"
    about = {**about, "delay": tuple(about["delay"])}
    for name, sea in PRESETS.items():
        if asdict(sea) == about:
            return sea_label(name)
    low, high = (1000 * value for value in about["delay"])
    return f"current {about['current']:g} m/s, wind {100 * about['force']:g} %, delay {low:.0f} to {high:.0f} ms"


def headline(log: Log) -> str:
    """Vessel, controller and sea."""
    return f"{log.about.get('vessel', 'vessel')}  ·  {controller_of(log)}  ·  {sea_of(log)}"


def summary(log: Log) -> str:
    """The metrics in one line."""
    m = log.metrics()
    if not has_reference(log.about):
        return f"{log.time[-1] - log.time[0]:.0f} s without a reference,  {METRICS['delta_tau']} {short(m.delta_tau)}"
    position, position_std, position_max = map(short, (m.position_cm, m.position_std_cm, m.position_max_cm))
    heading, heading_std, heading_max = map(short, (m.heading_deg, m.heading_std_deg, m.heading_max_deg))
    return (
        f"position {position} ± {position_std} cm (max {position_max}),  "
        f"heading {heading} ± {heading_std}° (max {heading_max}),  "
        f"{METRICS['delta_tau']} {short(m.delta_tau)},  {METRICS['saturation']} {short(100 * m.saturation)} %"
    )


def short(value: float) -> str:
    """Three significant digits, and none beyond the fourth decimal."""
    return f"{round(value, 4):.3g}" if value < 1000 else f"{value:.0f}"
