"""Rows and cells of the tables: numbers over seeds, as text, beside the paper's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anyhull.paper import Printed
from anyhull.study.results import Result
from anyhull.vessel import Vessel
from anyhull.viz.captions import METRICS

LABELS = {
    "mpc-paper": "MPC*, fitted to the paper",
    "mpc-tight": "MPC*, tight tuning",
    "mpc-field": "MPC*, field tuning",
    "pid": "PID*",
    "adaptive": "Adaptive (ours)",
    "ppo-specific": "PPO (specific)*",
    "student": "Student",
    "teacher": "Teacher†",
    "recurrent": "Recurrent",
    "ppo-general": "PPO (general)",
    "student-mean-latent": "Student avg. z",
    "student-long": "Student, longer training",
    "teacher-long": "Teacher†, longer training",
    "our-student": "Student, APG (ours)",
    "our-adapter": "Student, APG (ours), before fine-tuning",
    "our-teacher": "Teacher†, APG (ours)",
    "student-printed": "Student, inputs as printed",
    "recurrent-printed": "Recurrent, inputs as printed",
    "ppo-general-printed": "PPO (general), inputs as printed",
    "student-raw": "Student, encoder given e unscaled",
    "student-linear": "Student, boats uniform in e",
    "student-raw-linear": "Student, e unscaled, boats uniform in e",
}
"""Rows by name, in the order of the tables."""

VARIANTS = tuple(row for row in LABELS if row.endswith(("-printed", "-raw", "-linear")))
"""Rows of the paper's recipe with other inputs or boats."""

PRIOR_KNOWLEDGE = "* has a perfect model of its vessel, or was trained for that vessel alone.  † is given the true e."
QUICK = "Tiny sizes, to test the pipeline: these figures mean nothing."

POSITION, HEADING, DELTA_TAU, SATURATED = METRICS.values()

Entries = dict[str, dict[str, list[dict[str, float]]]]
"""For each row and platform the metrics of each seed."""


@dataclass(frozen=True)
class Spread:
    """A number over seeds."""

    mean: float
    std: float | None
    """Sample standard deviation; None of a single number."""

    def text(self, digits: int = 2) -> str:
        """As in 0.84 ± 0.11; a single number too small for these digits is given with two significant ones."""
        if self.std is not None:
            return f"{self.mean:.{digits}f} ± {self.std:.{digits}f}"
        return f"{self.mean:.2g}" if 0 < abs(self.mean) < 10 ** (1 - digits) else f"{self.mean:.{digits}f}"


@dataclass(frozen=True)
class Table:
    """A table as text, and its numbers."""

    study: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    numbers: tuple[dict[str, Any], ...] = ()


def spread(values: Sequence[float]) -> Spread:
    """Mean and sample standard deviation."""
    return Spread(float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else None)


def gather(results: Iterable[Result], case: str = "") -> Entries:
    """The metrics of the rows of these results: in ideal conditions, or from `rest` there, or in the `sea`."""
    found: Entries = {}
    for result in results:
        for row, seeds in result.data.get("rows", {}).items():
            for metrics in seeds:
                platforms = (metrics.get(case, {}) if case else metrics).get("platforms", {})
                for platform, numbers in platforms.items():
                    found.setdefault(row, {}).setdefault(platform, []).append(numbers)
    return {row: found[row] for row in LABELS if row in found}


def by_seed(platforms: dict[str, list[dict[str, float]]], what: str) -> list[float]:
    """A metric of each seed, averaged over platforms."""
    by_platform = [[numbers[what] for numbers in seeds] for seeds in platforms.values()]
    return [float(np.mean(seed)) for seed in zip(*by_platform, strict=True)]


def published(row: Printed | None, what: str) -> Spread | None:
    """The paper's figure for a metric, where it has that row."""
    return Spread(getattr(row, what), getattr(row, what.replace("_", "_std_"))) if row else None


def trials(results: dict[str, Result]) -> dict[str, dict[str, Any]]:
    """Reports of the trials in the twin by row, in the order of the tables, and platform."""
    found = {result.data["row"]: result.data["platforms"] for result in results.values() if "row" in result.data}
    return {row: found[row] for row in LABELS if row in found}


def name_of(platform: str) -> str:
    """The name of a platform for people."""
    return Vessel.load(platform).name


def metric_cells(means: dict[str, Spread], digits: int) -> tuple[str, str, str, str]:
    """Cells of the four metrics."""
    position, heading = (means[what].text(digits) for what in ("position_cm", "heading_deg"))
    return position, heading, means["delta_tau"].text(4), f"{100 * means['saturation'].mean:.1f} %"


def text(number: Spread | None, digits: int = 2) -> str:
    return number.text(digits) if number else ""


def warnings(results: dict[str, Result]) -> tuple[str, ...]:
    return (QUICK,) if any(result.quick for result in results.values()) else ()
