"""A boat as a voyage has identified it: the components e with standard deviations, delay and lag.

The table `[identified]` of a vessel's file. Every entry is a value and its standard deviation in the same units. The
errors are normal in the logarithm of a component, in asinh(c_uv l²) for the Munk coupling (l is the length unit of the
vessel's scale), so that 0.2 of a value 2.0 means ± 10 %.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from anyhull.backend import Array
from anyhull.errors import InputError
from anyhull.hydrodynamics import MAX_COMPONENT, MIN_COMPONENT, Normalized, Triple
from anyhull.scale import FULL, IDENTITY, Scale
from anyhull.schema import check_types, require

Estimate = tuple[float, float]
"""A value and its standard deviation."""

COMPONENTS = tuple(name for name in Normalized._fields if name != "c_ru")
"""Those that are free; c_ru is -1 / c_rv."""

MAX_RATIO = 100.0
"""Largest standard deviation over the value: a boat of which nothing is known has 10."""

LONGEST = 1000.0
"""Longest delay and lag, s."""

CHANGED = np.array([0.15, 0.15, 0.15, 0.15, 0.15, 0.15, 0.05, 0.15])
"""Standard deviation that each unknown has changed by until the next voyage, with load, fouling and battery."""


class Prior(NamedTuple):
    """What is known of a boat before a voyage, in the units of its scale."""

    mean: Array
    """log alpha (3), log 1/tau (3), log c_rv, asinh c_uv."""
    covariance: Array
    """(8, 8)."""
    delay: Estimate | None = None
    """s; None where nothing is known of it."""
    lag: Estimate | None = None


@dataclass(frozen=True)
class Identified:
    """What a voyage has told of a boat's dynamics."""

    alpha_u: Estimate
    """Peak surge acceleration, m/s²."""
    alpha_v: Estimate
    """Peak sway acceleration, m/s²; without sway force, that of a sideways push as large as the surge force."""
    alpha_r: Estimate
    """Peak yaw acceleration, rad/s²."""
    inv_tau_u: Estimate
    """Surge damping rate, 1/s."""
    inv_tau_v: Estimate
    """Sway damping rate, 1/s."""
    inv_tau_r: Estimate
    """Yaw damping rate, 1/s."""
    c_rv: Estimate
    """Inertia in sway over that in surge."""
    c_uv: Estimate
    """Munk coupling, 1/m²."""
    delay: Estimate
    """From a command to when it begins to act, s."""
    lag: Estimate
    """Time constant with which the thrust follows, s."""
    correlation: tuple[tuple[float, ...], ...]
    """Correlations of the eight components in this order, (8, 8)."""
    seconds: float
    """Time that was used, s."""
    source: str = ""
    """The log that it is from."""
    date: str = ""
    """When it was identified, as 2026-07-31."""

    def __post_init__(self) -> None:
        check_types(self)
        for name, (value, std) in self.components.items():
            if name == "c_uv":
                require(self, name, abs(value) <= MAX_COMPONENT, f"a value of at most {MAX_COMPONENT:g}")
                require(self, name, 0 < std <= MAX_COMPONENT, f"a standard deviation of at most {MAX_COMPONENT:g}")
                continue
            accepted = f"a value from {MIN_COMPONENT:g} to {MAX_COMPONENT:g}"
            require(self, name, MIN_COMPONENT <= value <= MAX_COMPONENT, accepted)
            accepted = f"a positive standard deviation, at most {MAX_RATIO:g} times the value"
            require(self, name, 0 < std <= MAX_RATIO * value, accepted)
        for name in ("delay", "lag"):
            value, std = getattr(self, name)
            accepted = f"a value from 0 to {LONGEST:g} s and a standard deviation of at most that"
            require(self, name, 0 <= value <= LONGEST and 0 < std <= LONGEST, accepted)
        rows = {len(self.correlation), *map(len, self.correlation)}
        if rows != {8}:
            raise InputError("correlation: must be 8 lists of 8 numbers")
        found = np.array(self.correlation)
        if not (np.abs(found - found.T).max() <= 1e-6 and np.abs(np.diag(found) - 1).max() <= 1e-6):
            raise InputError("correlation: must be symmetric with ones on its diagonal")
        if not np.linalg.eigvalsh(found).min() >= -1e-6:
            raise InputError("correlation: must be positive semidefinite, as correlations are")
        require(self, "seconds", self.seconds > 0, "positive")

    @property
    def components(self) -> dict[str, Estimate]:
        """The free components, by name."""
        return {name: getattr(self, name) for name in COMPONENTS}

    @property
    def e(self) -> Normalized:
        """The most likely components."""
        values = {name: value for name, (value, _) in self.components.items()}
        return Normalized(**values, c_ru=-1 / values["c_rv"])

    def prior(self, scale: Scale, derating: Triple = FULL, changed: Array = CHANGED) -> Prior:
        """The same in the units of a scale, `changed` since then by these standard deviations."""
        e = scale.normalized(self.e, derating)
        mean = np.array([*np.log([*e[:7]]), math.asinh(e.c_uv)])
        std = [std / value for value, std in list(self.components.values())[:7]]
        std.append(self.c_uv[1] * scale.length**2 / math.hypot(1, e.c_uv))
        covariance = np.array(self.correlation) * np.outer(std, std) + np.diag(changed**2)
        delay, lag = ((value / scale.time, std / scale.time) for value, std in (self.delay, self.lag))
        return Prior(mean, covariance, delay, lag)


def identified(
    prior: Prior,
    scale: Scale = IDENTITY,
    derating: Triple = FULL,
    *,
    seconds: float,
    source: str = "",
    date: str = "",
) -> Identified:
    """The table of what is known in the units of a scale; `prior` has delay and lag."""
    assert prior.delay is not None
    assert prior.lag is not None
    mean, std = prior.mean, np.sqrt(np.diag(prior.covariance))
    own = Normalized(*map(float, [*np.exp(mean[:7]), -math.exp(-mean[6]), math.sinh(mean[7])]))
    u, v, r = derating
    e = scale.inverse.normalized(own, (1 / u, 1 / v, 1 / r))
    pairs = {name: (float(value), float(value * s)) for name, value, s in zip(COMPONENTS[:7], e[:7], std, strict=False)}
    pairs["c_uv"] = float(e.c_uv), float(std[7] * math.hypot(1, own.c_uv) / scale.length**2)
    correlation = prior.covariance / np.outer(std, std)
    correlation = (correlation + correlation.T) / 2
    rows = np.where(np.eye(8, dtype=bool), 1.0, np.round(correlation, 4)).tolist()
    (delay, delay_std), (lag, lag_std) = prior.delay, prior.lag
    return Identified(
        **pairs,
        delay=(max(delay, 0.0) * scale.time, delay_std * scale.time),
        lag=(max(lag, 0.0) * scale.time, lag_std * scale.time),
        correlation=tuple(map(tuple, rows)),
        seconds=seconds,
        source=source,
        date=date,
    )
