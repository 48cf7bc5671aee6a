"""What the curves of the appendix say: whether they only rise or fall, and when an estimate has arrived."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyhull.dynamics import PERIOD

Array = NDArray[np.float64]

NEAR = 0.1
"""An estimate has arrived within this part of its whole change of where it ends."""


@dataclass(frozen=True)
class Summary:
    """The appendix over seeds."""

    encoder_monotone: int
    """Seeds whose curve only rises or only falls."""
    encoder_worst: float
    """Largest step the wrong way as a part of the curve's range, of any seed."""
    adapter_monotone: int
    adapter_worst: float
    first: str
    """Seconds to the first arrival: median and range."""
    stays: str
    """Seconds to the last arrival: median and range."""
    covered: float
    """Median share of the encoder's step that the estimate has made at the end."""


def summary(seeds: Sequence[dict[str, Any]]) -> Summary:
    """Of the seeds as `sweep.study` stores them."""
    encoder, adapter = ([monotone(seed[which]) for seed in seeds] for which in ("encoder", "adapter"))
    drops = [seed["drop"] for seed in seeds]
    covered = [drop["covered"] for drop in drops if drop["covered"] is not None]
    return Summary(
        sum(whether for whether, _ in encoder),
        max(worst for _, worst in encoder),
        sum(whether for whether, _ in adapter),
        max(worst for _, worst in adapter),
        _range([drop["first"] for drop in drops]),
        _range([drop["seconds"] for drop in drops]),
        float(np.median(covered)) if covered else math.nan,
    )


def monotone(values: Sequence[float]) -> tuple[bool, float]:
    """Whether a curve only rises or only falls, and the largest step the wrong way as a part of its whole range."""
    steps = np.diff(values) * np.sign(values[-1] - values[0])
    span = float(np.ptp(values))
    worst = float(max(0.0, -steps.min())) / span if span else 0.0
    return bool((steps > 0).all()), worst


def convergence(time: Array, estimate: Array, when: float) -> tuple[float, float]:
    """Seconds from `when` until the estimate first comes, and until it stays, within a tenth of its whole change.

    The change is from the mean over the second before to the mean over the last second.
    """
    start = estimate[(time >= when - 1) & (time < when - 1e-9)].mean()
    end = estimate[time >= time[-1] - 1].mean()
    far = np.abs(estimate[time >= when - 1e-9] - end) > NEAR * abs(end - start)
    first = PERIOD * int(np.argmin(far)) if not far.all() else math.inf
    stays = PERIOD * (int(np.flatnonzero(far)[-1]) + 1) if far.any() else 0.0
    return first, stays


def _range(seconds: Sequence[float | None]) -> str:
    known = [value for value in seconds if value is not None]
    return f"{np.median(known):.1f} ({min(known):.1f} to {max(known):.1f})" if known else "never"
