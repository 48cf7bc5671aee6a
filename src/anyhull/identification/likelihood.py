"""Maximum likelihood of a boat's unknowns, given recorded states and commands: the prediction error method.

Given the parameters theta (boat, delay, lag, and the sizes of force, measurement noise and current), an extended Kalman
filter over state, push and current predicts each state from those before. With its innovations eps, of covariance S,

    minimize  1/2 sum (eps' S^-1 eps + log det S) + 1/2 (theta - prior)' P^-1 (theta - prior)

by Fisher scoring; the covariance of theta is the inverse of the expected information at the minimum,
sum (d eps' S^-1 d eps + 1/2 tr(S^-1 dS S^-1 dS)) + P^-1. One row of the filter's arrays is one theta: the estimate,
and the estimate with each parameter moved a little, from which the derivatives follow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from anyhull.backend import Array, wrap
from anyhull.control.filters import AGES, EDGES, TO_COARSE, TO_FINE
from anyhull.control.hypotheses import CURRENT_DECAY, LONGEST_DELAY, LONGEST_LAG, NOISES, PRIORS, START_LAG
from anyhull.control.unknown_boat import (
    BOAT,
    CURRENT,
    DELAY,
    LAG,
    PUSH,
    SHORTEST_LAG,
    STATE,
    UNKNOWNS,
    Buffered,
    Commands,
    thrust,
    transition,
)
from anyhull.dynamics import PERIOD

DELAY_AT, LAG_AT, FORCE, NOISE, FLOW = 8, 9, 10, 11, 12
"""Places in theta after the boat's eight; the last three are logarithms of the standard deviations of force, of
measurement noise (as a factor of what is assumed) and of current."""

PARAMETERS = 13

STEPS = np.array([1e-3] * 8 + [1e-3, 1e-3, 1e-2, 1e-2, 1e-2])
"""Differences from which the derivatives follow."""

DELAY_PRIOR = (0.1, 0.1)
"""Mean and standard deviation of the delay, s."""

SIZE_STD = 1.0
"""Standard deviation of the logarithms of force, noise and current."""

LARGEST_NOISE = 1.5
"""Of its logarithm: more noise than was assumed would explain any record by a boat far from the true one."""

EVALUATIONS = 30
"""Of the likelihood and its derivatives, at most."""

SETTLED, GAINED = 0.03, 0.01
"""Largest step, in standard deviations, and nats gained by one, at which the estimate is final."""

LEAST_DAMPING = 1e-2
"""Of a scoring step after one that made it worse (Levenberg-Marquardt)."""

WALK = 0.01
"""Variance that a period adds to the state, as a share of that of a measurement."""

_DYNAMIC = np.r_[0:6, 14:19]
"""Places of the filter's own state: state, push, current."""


class Series(NamedTuple):
    """Consecutive periods of a voyage, in the units of the vessel's scale."""

    state: Array
    """Measured x, y, psi, u, v, r, (n, 6); the heading without jumps."""
    command: Array
    """Normalized commands, each issued at its state, (n, 3)."""


class Fitted(NamedTuple):
    """The most likely parameters."""

    theta: Array
    covariance: Array
    cost: float
    settled: bool
    """Whether the scoring converged."""


class Pass(NamedTuple):
    """A filter's pass over a series, for m thetas."""

    cost: Array
    """(m,)"""
    innovations: Array
    """(n - 1, m, 6)"""
    covariances: Array
    """(n - 1, m, 6, 6)"""
    unknowns: Array
    """All unknowns after each measurement, (n, m, 21)."""


def prior(under: bool, noise: str) -> tuple[Array, Array]:
    """Mean and covariance of theta: the boats of training, and sea and sensors of that name."""
    mean, std, correlations = PRIORS[under]
    p = np.eye(PARAMETERS)
    for (i, j), value in correlations.items():
        p[i, j] = p[j, i] = value
    deviations = np.array([*std, DELAY_PRIOR[1], START_LAG[1], *[SIZE_STD] * 3])
    center = np.concatenate([mean, [DELAY_PRIOR[0], START_LAG[0]], sizes(noise)])
    return center, p * np.outer(deviations, deviations)


def sizes(noise: str) -> Array:
    """The last three of theta as the noise of that name assumes them."""
    return np.array([np.log(NOISES[noise].force), 0.0, np.log(NOISES[noise].current)])


def dithered(series: Series) -> Series:
    """The series with the measurement noise of an exact state, which the states of a simulation lack.

    Without any, the likelihood would be all log det S, whose least is not at the true boat.
    """
    noise = np.array(NOISES["exact"].measurement) * np.random.default_rng(0).standard_normal(series.state.shape)
    return Series(series.state + noise, series.command)


def fit(
    voyage: Sequence[Series], under: bool, noise: str, start: Array, on_pass: Callable[[], None] | None = None
) -> Fitted:
    """The most likely theta of a voyage, searched from `start`."""
    center, p = prior(under, noise)
    precision = np.linalg.inv(p)

    def evaluate(theta: Array) -> tuple[float, Array, Array]:
        """Cost, gradient and information at theta."""
        thetas = np.vstack([theta, theta + np.diag(STEPS)])
        off = thetas - center
        costs = 0.5 * np.einsum("mi,ij,mj->m", off, precision, off)
        information: Array = np.array(precision, float)
        for series in voyage:
            found = run(series, under, noise, thetas)
            costs += found.cost
            slope = (found.innovations[:, 1:] - found.innovations[:, :1]) / STEPS[:, None]
            inverse = np.linalg.inv(found.covariances[:, 0])
            weighted = slope @ inverse
            information += np.einsum("nia,nja->ij", weighted, slope)
            change = (found.covariances[:, 1:] - found.covariances[:, :1]) / STEPS[:, None, None]
            relative = inverse[:, None] @ change
            information += 0.5 * np.einsum("niab,njba->ij", relative, relative)
        if on_pass:
            on_pass()
        gradient: Array = (costs[1:] - costs[0]) / STEPS
        return float(costs[0]), gradient, information

    low, high = bounds(under, noise)
    theta = np.clip(start, low, high)
    cost, gradient, information = evaluate(theta)
    damping, settled = 0.0, False
    for _ in range(EVALUATIONS):
        step = _step(theta, gradient, information * (1 + damping * np.eye(PARAMETERS)), low, high)
        following = np.clip(theta + step, low, high)
        moved = np.abs(following - theta) * np.sqrt(1 / np.diag(np.linalg.inv(information)))
        if settled := bool(moved.max() < SETTLED):
            break
        try:
            found = evaluate(following)
        except np.linalg.LinAlgError:  # a filter that has diverged
            found = np.inf, gradient, information
        if not found[0] <= cost:
            damping = max(10 * damping, LEAST_DAMPING)
            continue
        gained = cost - found[0]
        theta, (cost, gradient, information) = following, found
        if settled := gained < GAINED:
            break
        damping = damping / 10 if damping > LEAST_DAMPING else 0.0
    return Fitted(theta, np.asarray(np.linalg.inv(information), float), cost, settled)


def run(series: Series, under: bool, noise: str, thetas: Array) -> Pass:
    """Filter a series with each of `thetas` (m, 13)."""
    count, (measured, commands) = len(thetas), series
    assumed, function = NOISES[noise], Buffered(transition(under))
    variance = np.exp(2 * thetas[:, NOISE, None]) * np.array(assumed.measurement) ** 2
    r = variance[:, :, None] * np.eye(6)
    alpha = np.exp(thetas[:, :3])
    if under:
        alpha[:, 1] = alpha[:, 0] / np.exp(thetas[:, 6])
    push = (alpha * np.exp(thetas[:, FORCE, None])) ** 2
    current = np.exp(2 * thetas[:, FLOW, None]) * np.ones(2)
    keep = np.exp(-PERIOD * np.array([assumed.force_decay] * 3 + [CURRENT_DECAY] * 2))
    added = np.concatenate([WALK * variance, (1 - keep**2) * np.hstack([push, current])], axis=1)
    z = np.zeros((count, UNKNOWNS))
    z[:, STATE], z[:, BOAT], z[:, DELAY], z[:, LAG] = measured[0], thetas[:, :8], thetas[:, 8], thetas[:, 9]
    p = np.einsum("mi,ij->mij", np.hstack([variance, push, current]), np.eye(11))
    jacobian = np.zeros((count, 11, 11))
    jacobian[:, np.arange(6, 11), np.arange(6, 11)] = keep
    memory, empty = Commands(), np.zeros(6)
    n = len(measured)
    innovations, covariances = np.empty((n - 1, count, 6)), np.empty((n - 1, count, 6, 6))
    unknowns = np.empty((n, count, UNKNOWNS))
    unknowns[0] = z
    diagonal = np.arange(11)
    # Most rows have the same delay and lag.
    pairs, which = np.unique([exact_delay(z[:, DELAY], z[:, LAG]), z[:, LAG]], axis=1, return_inverse=True)
    for k in range(1, n):
        memory.add(commands[k - 1])
        mean = thrust(memory.changes, AGES, EDGES, *pairs)[0][which]
        fine, coarse = TO_FINE @ mean, TO_COARSE @ mean
        for i in range(count):
            after, slope = function(z[i], fine[i], coarse[i], empty, empty)
            z[i, STATE], jacobian[i, :6] = after.ravel(), slope.T[:, _DYNAMIC]
        z[:, PUSH] *= keep[:3]
        z[:, CURRENT] *= keep[3:]
        p = jacobian @ p @ jacobian.transpose(0, 2, 1)
        p[:, diagonal, diagonal] += added
        error = measured[k] - z[:, STATE]
        error[:, 2] = wrap(error[:, 2])
        s = p[:, :6, :6] + r
        gain = p[:, :, :6] @ np.linalg.inv(s)
        z[:, _DYNAMIC] += (gain @ error[:, :, None])[:, :, 0]
        p = p - gain @ p[:, :6]
        p = (p + p.transpose(0, 2, 1)) / 2
        innovations[k - 1], covariances[k - 1], unknowns[k] = error, s, z
    nis = np.einsum("nmi,nmij,nmj->m", innovations, np.linalg.inv(covariances), innovations)
    cost = 0.5 * (nis + np.linalg.slogdet(covariances)[1].sum(axis=0))
    return Pass(np.where(np.isfinite(cost), cost, np.inf), innovations, covariances, unknowns)


def exact_delay(delay: Array, lag: Array) -> Array:
    """The delay that makes up for the time constant which `thrust` has where there is none."""
    return delay - np.maximum(SHORTEST_LAG - lag, 0.0)


def bounds(under: bool, noise: str) -> tuple[Array, Array]:
    """Least and largest theta; no state is measured better than the noise of an exact one."""
    center, p = prior(under, noise)
    reach = 3.5 * np.sqrt(np.diag(p))
    low, high = center - reach, center + reach
    low[DELAY_AT], low[LAG_AT] = 0.0, 0.0
    low[NOISE] = np.log(min(NOISES["exact"].measurement) / min(NOISES[noise].measurement))
    high[NOISE] = LARGEST_NOISE
    high[DELAY_AT], high[LAG_AT] = LONGEST_DELAY, LONGEST_LAG
    return low, high


def _step(theta: Array, gradient: Array, information: Array, low: Array, high: Array) -> Array:
    """The scoring step; parameters that it would move beyond a bound at which they are stay there."""
    free = np.ones(len(theta), bool)
    while True:
        step = np.zeros(len(theta))
        step[free] = -np.linalg.solve(information[np.ix_(free, free)], gradient[free])
        beyond = ((theta <= low) & (step < 0)) | ((theta >= high) & (step > 0))
        if not beyond.any():
            return step
        free &= ~beyond
