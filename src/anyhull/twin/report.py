"""Statistics of several trials: errors of the estimated state, as in the paper, and of the true state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anyhull.backend import Array
from anyhull.log import Log


@dataclass(frozen=True)
class Spread:
    """Statistics of an error over several trials."""

    mean: float
    std: float
    """Standard deviation over the trials."""
    within: float
    """Mean standard deviation over the time of a trial."""
    most: float
    """Maximum over time and trials."""
    median: float
    """Of the trials' means, robust against a single outlier."""
    each: tuple[float, ...]
    """The mean of each trial."""


@dataclass(frozen=True)
class Report:
    """Results of the trials of one boat and controller."""

    trials: int
    arrived: int
    """Trials that reached the end of the reference in time."""
    estimated_position_cm: Spread
    estimated_heading_deg: Spread
    true_position_cm: Spread
    true_heading_deg: Spread
    delta_tau: float
    """Mean |Δτ| per step."""
    saturation: float
    """Fraction of commands that are saturated."""
    unmet: float
    """Fraction of periods in which the thrusters could not give the commanded force, to 1 % of a limit on some axis."""
    stops: int
    """Stops by the guard in the measured part."""
    events: dict[str, int]
    """Counts of all other events over all trials."""


def report(logs: Sequence[Log]) -> Report:
    """Statistics of the trials of one boat and controller."""
    events: Counter[str] = Counter()
    for log in logs:
        events.update(log.about["event_counts"])
    return Report(
        trials=len(logs),
        arrived=sum(bool(log.about["arrived"]) for log in logs),
        estimated_position_cm=_spread([100 * log.estimated.position_error for log in logs]),
        estimated_heading_deg=_spread([np.degrees(np.abs(log.estimated.heading_error)) for log in logs]),
        true_position_cm=_spread([100 * log.position_error for log in logs]),
        true_heading_deg=_spread([np.degrees(np.abs(log.heading_error)) for log in logs]),
        delta_tau=float(np.mean([log.metrics().delta_tau for log in logs])),
        saturation=float(np.mean([log.metrics().saturation for log in logs])),
        unmet=float(np.mean([log.about["unmet"] for log in logs])),
        stops=events.pop("stop", 0),
        events={what: times for what, times in sorted(events.items()) if what != "reaction"},
    )


def _spread(errors: Sequence[Array]) -> Spread:
    means = [float(error.mean()) for error in errors]
    within = float(np.mean([error.std() for error in errors]))
    most = float(max(error.max() for error in errors))
    return Spread(float(np.mean(means)), float(np.std(means)), within, most, float(np.median(means)), tuple(means))
