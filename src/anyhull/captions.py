"""A run in words: the titles and captions of its pictures."""

from __future__ import annotations

from dataclasses import asdict

from anyhull.log import Log
from anyhull.sea import PRESETS


def controller(log: Log) -> str:
    """The name of what steered."""
    return str(log.about.get("controller", "controller"))


def sea_in_words(log: Log) -> str:
    """The sea of a run in words: the name of the preset, or what it is made of."""
    if "water" in log.about:
        return f"sea trial, {log.about['sea_name']} sea" if "sea_name" in log.about else "sea trial"
    about = log.about.get("sea")
    if not about:
        return "sea unknown"
    about = {**about, "delay": tuple(about["delay"])}
    for name, sea in PRESETS.items():
        if asdict(sea) == about:
            return f"{name} sea"
    low, high = (1000 * value for value in about["delay"])
    return f"current {about['current']:g} m/s, wind {100 * about['force']:g} %, delay {low:.0f} to {high:.0f} ms"


def headline(log: Log) -> str:
    """Boat, controller and sea."""
    return f"{log.about.get('vessel', 'vessel')}  ·  {controller(log)}  ·  {sea_in_words(log)}"


def result(log: Log) -> str:
    """The metrics in one line."""
    m = log.metrics()
    position, spread, most = (short(v) for v in (m.position_cm, m.position_std_cm, m.position_max_cm))
    heading, turn, worst = (short(v) for v in (m.heading_deg, m.heading_std_deg, m.heading_max_deg))
    return (
        f"position {position} ± {spread} cm (at most {most}),  heading {heading} ± {turn}° (at most {worst}),  "
        f"commands at a limit {short(100 * m.saturation)} %,  roughness {short(m.roughness)}"
    )


def short(value: float) -> str:
    """Three digits, and none beyond the fourth decimal."""
    return f"{round(value, 4):.3g}" if value < 1000 else f"{value:.0f}"


def counted(boats: int) -> str:
    """A number of boats, the small ones as a word."""
    words = ("no boats", "one boat", "two boats", "three boats", "four boats", "five boats", "six boats")
    return words[boats] if boats < len(words) else f"{boats} boats"
