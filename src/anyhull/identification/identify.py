"""A boat's dynamics from a recorded voyage, and how well they predict what they have not seen.

The filters of `anyhull.control.identifier` go over the record once, as they would have on board. What they have found
is where the search for the maximum of the likelihood begins. A second search has the first two thirds of the record
only, and is judged by the last: from every fifth second of it the motion is predicted from the recorded commands.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from anyhull.backend import Array
from anyhull.control.filters import AGES, EDGES, TO_COARSE, TO_FINE
from anyhull.control.hypotheses import CURRENT_DECAY, NOISES, PRIORS
from anyhull.control.identifier import Identifier
from anyhull.control.unknown_boat import (
    BOAT,
    CURRENT,
    DELAY,
    LAG,
    PUSH,
    STATE,
    Buffered,
    Commands,
    components,
    thrust,
    transition,
)
from anyhull.dynamics import PERIOD
from anyhull.errors import InputError
from anyhull.identification.likelihood import (
    DELAY_AT,
    LAG_AT,
    NOISE,
    PARAMETERS,
    Fitted,
    Series,
    dithered,
    exact_delay,
    fit,
    prior,
    run,
    sizes,
)
from anyhull.identification.voyage import Voyage
from anyhull.identified import COMPONENTS, Estimate, Identified, Prior, identified

HORIZONS = (10, 50)
"""Periods of the predictions beside that of one."""

EXCITED = (0.1, 0.5)
"""Standard deviation below which a component was excited, and the share of the prior's above which it was not."""

LEAST_STD = 0.01
"""Least standard deviation of a component, as a share: what a long or exact record cannot say is whether a linear boat,
integrated in a few steps a period, is the right model."""

NOISY, MORE_NOISE = "noisy", 0.5
"""The assumption of a noisy state, and the logarithm of the noise above which an exact one is doubted."""

START = (0.04, 0.02)
"""Least delay and lag at which a search begins, s."""

FINEST = 1e-3
"""Least standard deviation of delay and lag, s: commands and states are recorded once a period."""


class History(NamedTuple):
    """What the filters knew in each period, SI."""

    time: Array
    """s, (n,)."""
    mean: Array
    """Components e, (n, 9)."""
    spread: Array
    """Standard deviations of their logarithms, of asinh(c_uv l²) in the vessel's scale, (n, 9)."""


class Fit(NamedTuple):
    """Prediction of surge, sway and yaw velocity in the last third, with what the first two thirds have told."""

    seconds: float
    """Ahead."""
    rmse: Array
    """Root mean square error, m/s, m/s, rad/s."""
    percent: Array
    """100 (1 - |error| / |measured - its mean|); 100 is perfect, zero no better than the mean."""


@dataclass(frozen=True)
class Identification:
    """What a voyage tells of a boat."""

    found: Identified
    excitation: dict[str, str]
    """For each component `yes`, `weakly` or `no`."""
    delay_and_lag: Estimate
    """Their sum, s: short delays and lags are hardly told apart, but their sum is."""
    noise: str
    """What was assumed of sea and sensors (`anyhull.control.hypotheses.NOISES`)."""
    settled: bool
    """Whether the search converged."""
    fits: tuple[Fit, ...]
    """One period ahead, and `HORIZONS`; empty where the record is too short."""
    history: History


def identify(
    voyage: Voyage,
    source: str,
    date: str,
    on_step: Callable[[float, float], None] | None = None,
    *,
    judged: bool = True,
) -> Identification:
    """The most likely boat of a voyage; `on_step` is called with the work done and expected.

    Unless `judged`, nothing is held out, which takes half the time.
    """
    total = voyage.periods
    expected = 12.0 * total

    def report(done: float) -> None:
        if on_step:
            on_step(min(done, expected), expected)

    with np.errstate(all="ignore"):
        history, finals, noise = _online(voyage, report)
        series = tuple(dithered(part) for part in voyage.series)
        first, last = _thirds(series)
        passes = 0

        def on_pass() -> None:
            nonlocal passes
            passes += 1
            report((1 + passes) * total)

        whole = _search(series, voyage.under, noise, finals[-1], on_pass)
        if noise != NOISY and whole.theta[NOISE] > MORE_NOISE:
            other = _search(series, voyage.under, NOISY, finals[-1], on_pass)
            whole, noise = (other, NOISY) if other.cost < whole.cost else (whole, noise)
        fits: tuple[Fit, ...] = ()
        if judged and first and last and sum(len(series.state) for series in last) > max(HORIZONS):
            part = _search(first, voyage.under, noise, finals[2 * total // 3], on_pass)
            fits = _judge(last, voyage, noise, part.theta)
    std = np.sqrt(np.diag(whole.covariance) + np.append(np.full(8, LEAST_STD**2), np.zeros(PARAMETERS - 8)))
    found = identified(
        Prior(
            whole.theta[:8],
            whole.covariance[:8, :8] + LEAST_STD**2 * np.eye(8),
            (float(whole.theta[DELAY_AT]), max(float(std[DELAY_AT]), FINEST)),
            (float(whole.theta[LAG_AT]), max(float(std[LAG_AT]), FINEST)),
        ),
        voyage.scale,
        voyage.derating,
        seconds=round(voyage.seconds, 3),
        source=source,
        date=date,
    )
    spread = PRIORS[voyage.under][1]
    excitation = {
        name: "yes" if s < EXCITED[0] else "no" if s > EXCITED[1] * p else "weakly"
        for name, s, p in zip(COMPONENTS, std, spread, strict=False)
    }
    times = slice(DELAY_AT, LAG_AT + 1)
    together = float(whole.theta[times].sum()), max(float(np.sqrt(whole.covariance[times, times].sum())), FINEST)
    together = together[0] * voyage.scale.time, together[1] * voyage.scale.time
    return Identification(found, excitation, together, noise, whole.settled, fits, history)


def _search(series: tuple[Series, ...], under: bool, noise: str, start: Array, on_pass: Callable[[], None]) -> Fitted:
    # Away from zero, where the derivatives by delay and lag are alike; else where the filters ended, else at the prior.
    inside = np.concatenate([start[:8], np.maximum(start[8:], START), sizes(noise)])
    best: Fitted | None = None
    for theta in (inside, np.concatenate([start, sizes(noise)]), prior(under, noise)[0]):
        with suppress(np.linalg.LinAlgError):  # of a filter that has diverged
            found = fit(series, under, noise, theta, on_pass)
            if np.isfinite(found.covariance).all() and (best is None or found.cost < best.cost):
                best = found
        if best is not None and best.settled and best.theta[NOISE] <= MORE_NOISE:
            break
    if best is None or not np.isfinite(best.cost):
        raise InputError("no boat explains this record: states and commands must be of one boat, in the units stated")
    return best


def _online(voyage: Voyage, report: Callable[[float], None]) -> tuple[History, Array, str]:
    """The filters' history in SI, their estimates of boat, delay and lag in each period (n, 10), and the noise."""
    known: Prior | None = None
    finals, spreads, noise = [], [], "exact"
    for series in voyage.series:
        bank = Identifier(voyage.under, known and (known.mean, known.covariance))
        for state, command in zip(*series, strict=True):
            bank.update(state, None)
            bank.commands.add(command)
            finals.append(np.concatenate([bank.estimate[BOAT], bank.estimate[[DELAY, LAG]]]))
            spreads.append(np.insert(bank.std[BOAT], 7, bank.std[BOAT][6]))
            if len(finals) % 100 == 0:
                report(len(finals))
        known, noise = bank.boat, bank.noise
    inverse = voyage.scale.inverse
    u, v, r = voyage.derating
    own = components(np.array(finals).T[:8], voyage.under)
    e = inverse.normalized(own, (1 / u, 1 / v, 1 / r))
    return History(np.concatenate(voyage.times), np.array(e).T, np.array(spreads)), np.array(finals), noise


def _thirds(series: tuple[Series, ...]) -> tuple[tuple[Series, ...], tuple[Series, ...]]:
    """The first two thirds of the periods, and the last."""
    left = 2 * sum(len(part.state) for part in series) // 3
    first, last = [], []
    for part in series:
        cut = min(max(left, 0), len(part.state))
        first += [Series(part.state[:cut], part.command[:cut])] if cut > 1 else []
        last += [Series(part.state[cut:], part.command[cut:])] if len(part.state) - cut > 1 else []
        left -= cut
    return tuple(first), tuple(last)


def _judge(last: tuple[Series, ...], voyage: Voyage, noise: str, theta: Array) -> tuple[Fit, ...]:
    """The errors of predictions over one period and over `HORIZONS`, in SI."""
    errors: dict[int, list[Array]] = {horizon: [] for horizon in (1, *HORIZONS)}
    measured = []
    for series in last:
        passed = run(series, voyage.under, noise, theta[None])
        for horizon, found in errors.items():
            predicted = _predict(series, voyage.under, noise, passed.unknowns[:, 0], horizon)
            found.append(predicted[:, 3:] - series.state[1:, 3:])
        measured.append(series.state[1:, 3:])
    back = np.array(voyage.scale.speeds((1.0, 1.0, 1.0)))
    velocity = np.concatenate(measured)
    size = np.sqrt(np.mean((velocity - velocity.mean(axis=0)) ** 2, axis=0))
    fits = []
    for horizon, found in errors.items():
        rmse = np.sqrt(np.mean(np.concatenate(found) ** 2, axis=0))
        fits.append(Fit(horizon * voyage.scale.period, rmse * back, 100 * (1 - rmse / np.maximum(size, 1e-9))))
    return tuple(fits)


def _predict(series: Series, under: bool, noise: str, unknowns: Array, horizon: int) -> Array:
    """States (n - 1, 6) predicted from the commands, begun anew every `horizon` periods from the filter's unknowns."""
    function, memory, empty = Buffered(transition(under)), Commands(), np.zeros(6)
    predicted = np.empty((len(series.state) - 1, 6))
    lag = unknowns[:1, LAG]
    delay = exact_delay(unknowns[:1, DELAY], lag)
    for k in range(len(predicted)):
        if k % horizon == 0:
            z = unknowns[k].copy()
        memory.add(series.command[k])
        mean = thrust(memory.changes, AGES, EDGES, delay, lag)[0][0]
        z[STATE] = function(z, TO_FINE @ mean, TO_COARSE @ mean, empty, empty)[0].ravel()
        z[PUSH] *= np.exp(-PERIOD * NOISES[noise].force_decay)
        z[CURRENT] *= np.exp(-PERIOD * CURRENT_DECAY)
        predicted[k] = z[STATE]
    return predicted
