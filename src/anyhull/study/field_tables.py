"""Tables of the study in the field: the simulated sea, and the twin beside the paper's boats."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from anyhull import paper
from anyhull.paper import FIELD_PLATFORMS
from anyhull.study.entries import (
    DELTA_TAU,
    HEADING,
    LABELS,
    POSITION,
    PRIOR_KNOWLEDGE,
    SATURATED,
    Spread,
    Table,
    gather,
    metric_cells,
    name_of,
    published,
    spread,
    text,
    trials,
    warnings,
)
from anyhull.study.results import Result
from anyhull.viz.captions import METRICS


def field(results: dict[str, Result]) -> list[Table]:
    """Platforms A and B in the simulated field sea, and in the sea-trial twin."""
    entries = gather(results.values(), "sea")
    rows = []
    for platform in FIELD_PLATFORMS:
        for row, platforms in entries.items():
            if seeds := platforms.get(platform):
                means = {what: spread([numbers[what] for numbers in seeds]) for what in METRICS}
                _, *others = metric_cells(means, 2)
                runs = _runs(seeds)
                low, middle, high = np.percentile(runs, [25, 50, 75])
                position = spread(runs).text(), f"{middle:.2f} ({low:.2f} to {high:.2f})"
                count = f"{len(seeds)} × {len(runs) // len(seeds)}" if len(runs) > len(seeds) else str(len(runs))
                rows.append((name_of(platform), LABELS[row], *position, *others, count))
    if not rows:
        return twin(results)
    columns = ("platform", "", POSITION, "median (quartiles)", HEADING, DELTA_TAU, SATURATED, "n")
    notes = (
        "Wind and waves up to 10 % of the actuator limits, current up to 0.2 m/s, delay up to 200 ms. Position: mean ± "
        "deviation, median and quartiles over all n runs, of several training seeds where n is a product; a few runs "
        "that leave the path can make the mean. Heading and |Δτ|: the deviation is over seeds where there are several, "
        "else over runs. The paper has no such table.",
        PRIOR_KNOWLEDGE,
        *warnings(results),
    )
    return [Table("field", "Field sea, simulated", columns, tuple(rows), notes), *twin(results)]


def _runs(seeds: Sequence[dict[str, Any]]) -> list[float]:
    """Position errors of all runs, cm."""
    return [run for numbers in seeds for run in numbers.get("runs_cm", [numbers["position_cm"]])]


def twin(results: dict[str, Result]) -> list[Table]:
    """Trials in the twin beside the paper's trials."""
    rows = []
    for platform in FIELD_PLATFORMS:
        for row, platforms in trials(results).items():
            found, printed = platforms[platform], paper.FIELD[platform].get(row)
            position, heading = found["estimated_position_cm"], found["estimated_heading_deg"]
            rows.append(
                (
                    name_of(platform),
                    LABELS[row],
                    Spread(position["mean"], position["within"]).text(1),
                    text(published(printed, "position_cm"), 1),
                    _median(position["each"]),
                    f"{found['true_position_cm']['mean']:.1f}",
                    _median(found["true_position_cm"]["each"]),
                    Spread(heading["mean"], heading["within"]).text(1),
                    text(published(printed, "heading_deg"), 1),
                    f"{found['delta_tau']:.3f}",
                    f"{100 * found['saturation']:.1f} %",
                    f"{found['arrived']}/{found['trials']}",
                )
            )
    columns = (
        *("platform", "", POSITION, "the paper's", "median (95 %)", "true", "median (95 %)"),
        *(HEADING, "the paper's", DELTA_TAU, SATURATED, "completed"),
    )
    notes = (
        "The onboard loop in closed loop with a twin in the lake sea. The twin has sensors, thrusters, waves and "
        "parameter errors that no controller is given; policies of seed 0. Errors of the estimated state, as in the "
        "paper: mean ± deviation over time, and median over trials with its interval of 95 % confidence, which order "
        "statistics give; the same of the true position. The paper's figures are of real boats.",
        "* has the model in the file, which is not the twin's, or was trained for that vessel alone.",
    )
    title = "Sea trials: the twin beside the paper's boats"
    return [Table("field", title, columns, tuple(rows), notes), *paired(results)] if rows else []


def paired(results: dict[str, Result], base: str = "our-student") -> list[Table]:
    """How far each row of the twin is behind our student, trial by trial: all rows have the same draws."""
    found = trials(results)
    rows = []
    for platform in FIELD_PLATFORMS if base in found else ():
        for row in found:
            if row != base:
                pairs = (
                    zip(found[row][platform][what]["each"], found[base][platform][what]["each"], strict=True)
                    for what in ("estimated_position_cm", "true_position_cm")
                )
                behind = (_median([other - ours for other, ours in pair], "+.2f") for pair in pairs)
                rows.append((name_of(platform), LABELS[row], *behind))
    columns = ("platform", "", "estimated, cm", "true, cm")
    note = (
        "Median over the trials of the row's mean position error minus that of our student in the same trial, with its "
        "interval of 95 % confidence. Where the interval contains zero, neither is ahead."
    )
    return (
        [Table("field", "Sea trials: position error behind our student", columns, tuple(rows), (note,))] if rows else []
    )


def _median(values: Sequence[float], form: str = ".1f") -> str:
    """As in 2.1 (2.0 to 2.4)."""
    low, high = median_interval(values)
    return f"{np.median(values):{form}} ({low:{form}} to {high:{form}})"


def median_interval(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """The narrowest interval of order statistics that holds the distribution's median with this confidence.

    The k-th smallest of n values exceeds the median with the probability that fewer than k of n coins show heads.
    """
    n, ordered, below, k = len(values), sorted(values), 0.0, 0
    while k < (n - 1) // 2 and below + math.comb(n, k) / 2**n <= (1 - confidence) / 2:
        below += math.comb(n, k) / 2**n
        k += 1
    k = max(k, 1)
    return ordered[k - 1], ordered[n - k]
