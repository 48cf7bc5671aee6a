"""What several trials together say: the errors of the estimated state, as the paper has them, and of the true one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anyhull.log import Array, Log


@dataclass(frozen=True)
class Spread:
    """A number over several trials."""

    mean: float
    std: float
    """Standard deviation over the trials."""
    within: float
    """Mean standard deviation over the time of a trial."""
    most: float
    """The largest of any time and trial."""
    median: float
    """Of the trials, which one that went wrong does not move."""


@dataclass(frozen=True)
class Report:
    """How a boat did in its trials."""

    trials: int
    arrived: int
    """Trials that came to their end in time."""
    estimated_position_cm: Spread
    estimated_heading_deg: Spread
    true_position_cm: Spread
    true_heading_deg: Spread
    roughness: float
    """Mean absolute change of the normalized command from one period to the next, over the three axes."""
    saturation: float
    """Share of commands at a limit."""
    unmet: float
    """Share of periods in which the thrusters could not give what was commanded, to 1 % of a limit on some axis."""
    stops: int
    """How often the guard stopped the boat in the measured part."""
    events: dict[str, int]
    """What else was noted, over all trials, by what it was."""


def report(logs: Sequence[Log]) -> Report:
    """The trials of one boat and controller together."""
    events: Counter[str] = Counter()
    for log in logs:
        events.update(log.about["noted"])
    return Report(
        trials=len(logs),
        arrived=sum(bool(log.about["arrived"]) for log in logs),
        estimated_position_cm=_spread([100 * log.believed.position_error for log in logs]),
        estimated_heading_deg=_spread([np.degrees(np.abs(log.believed.heading_error)) for log in logs]),
        true_position_cm=_spread([100 * log.position_error for log in logs]),
        true_heading_deg=_spread([np.degrees(np.abs(log.heading_error)) for log in logs]),
        roughness=float(np.mean([log.metrics().roughness for log in logs])),
        saturation=float(np.mean([log.metrics().saturation for log in logs])),
        unmet=float(np.mean([log.about["unmet"] for log in logs])),
        stops=events.pop("stop", 0),
        events={what: times for what, times in sorted(events.items()) if what != "reaction"},
    )


def _spread(errors: Sequence[Array]) -> Spread:
    means = [float(error.mean()) for error in errors]
    within = float(np.mean([error.std() for error in errors]))
    most = float(max(error.max() for error in errors))
    return Spread(float(np.mean(means)), float(np.std(means)), within, most, float(np.median(means)))
