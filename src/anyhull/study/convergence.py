"""Monotonicity of a curve, and the settling time of an estimate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anyhull import paper
from anyhull.backend import Array
from anyhull.dynamics import PERIOD

BAND = 0.1
"""Half width of the settling band, as a fraction of the whole change."""


@dataclass(frozen=True)
class Summary:
    """The appendix over seeds."""

    encoder_monotone: int
    """Seeds whose curve is monotone."""
    encoder_reversal: float
    """Largest step against the trend over the range of the curve, of any seed."""
    adapter_monotone: int
    adapter_reversal: float
    reached: str
    """Time until the estimate first enters the band about its own end, s: median and range."""
    settled: str
    """Settling time in that band, s: median and range."""
    adapted: str
    """Settling time in the band about the encoder's new value, s: median and range."""
    adapted_straight: str
    """The same for steps at other times of the lap, on its straights: median and quartiles over seeds and times."""
    adapted_corner: str
    """The same in its corners."""
    covered: float
    """Median fraction of the encoder's step that the estimate has covered at the end."""
    covered_then: str
    """Percentage of the encoder's step that the estimate has covered after the paper's time: median and range."""
    fastest: float
    """The shortest settling time of any seed, s."""


def summary(seeds: Sequence[dict[str, Any]]) -> Summary:
    """The summary of the seeds that `sweep.study` returns."""
    encoder, adapter = ([monotone(seed[which]) for seed in seeds] for which in ("encoder", "adapter"))
    drops = [seed["drop"] for seed in seeds]
    covered = [drop["covered"] for drop in drops if drop["covered"] is not None]
    others = [other for seed in seeds for other in seed["drops"]]
    straight, corner = ([o["adapted"] for o in others if o["corner"] is here] for here in (False, True))
    return Summary(
        sum(yes for yes, _ in encoder),
        max(reversal for _, reversal in encoder),
        sum(yes for yes, _ in adapter),
        max(reversal for _, reversal in adapter),
        _range([drop["first"] for drop in drops]),
        _range([drop["seconds"] for drop in drops]),
        _range([drop["adapted"] for drop in drops]),
        _quartiles(straight),
        _quartiles(corner),
        float(np.median(covered)) if covered else math.nan,
        _range([100 * covered_after(drop, paper.ADAPTATION_TIME) for drop in drops], 0),
        min(math.inf if drop["adapted"] is None else drop["adapted"] for drop in drops),
    )


def covered_after(drop: dict[str, Any], seconds: float) -> float:
    """The fraction of the encoder's step that the estimate has covered a time after a step of the scale."""
    time, adapter, encoder = (np.asarray(drop[name]) for name in ("time", "adapter", "encoder"))
    when, *_ = scale_step(drop)
    return float((adapter[np.searchsorted(time, when + seconds - 1e-9)] - encoder[0]) / (encoder[-1] - encoder[0]))


def monotone(values: Sequence[float]) -> tuple[bool, float]:
    """Whether a curve is strictly monotone, and its largest step against the trend over its range."""
    steps = np.diff(values) * np.sign(values[-1] - values[0])
    span = float(np.ptp(values))
    reversal = float(max(0.0, -steps.min())) / span if span else 0.0
    return bool((steps > 0).all()), reversal


def settling(time: Array, estimate: Array, when: float, step: tuple[float, float] | None = None) -> tuple[float, float]:
    """Seconds from `when` until the estimate first enters its settling band, and until it stays inside.

    The band is about the end of the `step`, by default from the estimate's mean over the second before `when` to that
    over the last second. Infinite for an estimate that does not stay inside to the end.
    """
    if step is None:
        step = estimate[(time >= when - 1) & (time < when - 1e-9)].mean(), estimate[time >= time[-1] - 1].mean()
    start, end = step
    outside = np.abs(estimate[time >= when - 1e-9] - end) > BAND * abs(end - start)
    reached = PERIOD * int(np.argmin(outside)) if not outside.all() else math.inf
    settled = PERIOD * (int(np.flatnonzero(outside)[-1]) + 1) if outside.any() else 0.0
    return reached, math.inf if outside[-1] else settled


def scale_step(drop: dict[str, Any]) -> tuple[float, float, float]:
    """Time of the step of the scale in a run, s, and the scale before and after it."""
    before, after = drop["scale"][0], drop["scale"][-1]
    return drop["time"][next(i for i, s in enumerate(drop["scale"]) if s != before)], before, after


def _quartiles(seconds: Sequence[float | None]) -> str:
    """Median and quartiles of times, the nearest of them, where None is never."""
    return _three(seconds, (0.25, 0.5, 0.75))


def _range(values: Sequence[float | None], digits: int = 1) -> str:
    """Median and range."""
    return _three(values, (0.0, 0.5, 1.0), digits)


def _three(values: Sequence[float | None], shares: tuple[float, float, float], digits: int = 1) -> str:
    if not values:
        return ""
    ordered = sorted(math.inf if value is None else value for value in values)
    low, middle, high = (f"{ordered[round(share * (len(ordered) - 1))]:.{digits}f}" for share in shares)
    return f"{middle} ({low} to {high})".replace("inf", "never")
