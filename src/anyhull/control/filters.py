"""Extended Kalman filters over the state of a boat and what is unknown of it, any number of them in one array.

Each estimates z, all of `anyhull.control.unknown_boat`, from a measured state y in each period:

    z_{k+1} = (transition(z_k), K z_k) + w        y = s + n

K is the identity for the boat, delay and lag, which walk slowly, and e^{-lambda dt} for force and current, which are
Ornstein-Uhlenbeck processes as in `anyhull.sea`. A measurement is used together with the period before it, so that the
linearization can be repeated about the corrected z: at first a single command may tell more of the boat than all that
was known.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from anyhull.backend import Array, wrap
from anyhull.control.hypotheses import (
    CURRENT_DECAY,
    LONGEST_DELAY,
    LONGEST_LAG,
    NOISES,
    PRIORS,
    START_DELAY,
    START_LAG,
    WALK,
)
from anyhull.control.unknown_boat import (
    ALPHA,
    BOAT,
    CURRENT,
    DELAY,
    LAG,
    MEMORY,
    PUSH,
    STATE,
    UNKNOWNS,
    Buffered,
    disturbance_score,
    thrust,
    transition,
)
from anyhull.dynamics import PERIOD

FASTEST_DAMPING = float(np.log(40.0))
"""Largest logarithm of 1/tau: faster damping than any in training would be unstable in the integration."""

LIMIT = 3.5
"""Largest distance of a boat's unknowns from the mean of the prior, in its standard deviations."""

ITERATIONS = 3
"""Linearizations per period, at most."""

SETTLED = 0.3
"""Change between two linearizations, in standard deviations, below which no further one is made."""

INEXPLICABLE = 1e4
"""Normalized innovation squared of one measurement that no boat explains."""

KINK = 0.1
"""Variance that the linearization by delay and lag leaves out, as a share of the linearized one."""

AGES = PERIOD * np.arange(float(MEMORY))

EDGES = PERIOD * np.array([0.0, 0.2, 0.4, 0.5, 0.6, 0.8, 1.0])
TO_FINE = np.array(
    [[1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0], [0, 0, 0.5, 0.5, 0, 0], [0, 0, 0, 0, 1, 0], [0, 0, 0, 0, 0, 1]]
)
TO_COARSE = np.array([[0.4, 0.4, 0.2, 0, 0, 0], [0, 0, 0, 0.2, 0.4, 0.4]])


def prior(under: bool) -> tuple[Array, Array]:
    """Mean and covariance of the boat's eight unknowns in the training distribution."""
    mean, std, correlations = PRIORS[under]
    correlation = np.eye(8)
    for (i, j), value in correlations.items():
        correlation[i, j] = correlation[j, i] = value
    return mean, correlation * np.outer(std, std)


class Filters:
    """m filters, each with one of `NOISES`; they share no information."""

    def __init__(self, under: bool, names: NDArray[np.str_], delays: Array) -> None:
        """`names` are of the noises, and `delays` those that the filters start at, s; both (m,)."""
        self.under = under
        self._transition, self._score = Buffered(transition(under)), Buffered(disturbance_score(under))
        mean, covariance = prior(under)
        std = np.sqrt(np.diag(covariance))
        self._low, self._high = mean - LIMIT * std, mean + LIMIT * std
        self._high[3:6] = np.minimum(self._high[3:6], FASTEST_DAMPING)
        m = len(names)
        self.names, self.delays = names, delays
        self.z, self.covariance = np.zeros((m, UNKNOWNS)), np.zeros((m, UNKNOWNS, UNKNOWNS))
        self.nis, self.fit = np.zeros(m), np.zeros(m)
        """Normalized innovation squared of the last measurement, six on average, and its log-likelihood."""
        self.factor = np.ones(m)
        """Factor of the standard deviations of a noise that adapts, of each filter."""
        self.assume()

    def assume(self) -> None:
        """Take the constants of the noises in `names`."""
        noises = [NOISES[name] for name in self.names]
        self.adapts = np.array([noise.adapts for noise in noises])
        self.measurement = np.array([noise.measurement for noise in noises]) ** 2
        self.pull = np.array([noise.pull for noise in noises])
        keep, variance = np.ones((len(noises), UNKNOWNS)), np.zeros((len(noises), UNKNOWNS))
        variance[:, BOAT.start :] = WALK**2
        for i, noise in enumerate(noises):
            keep[i, PUSH] = np.exp(-PERIOD * noise.force_decay)
            keep[i, CURRENT] = np.exp(-PERIOD * CURRENT_DECAY)
            variance[i, CURRENT] = (1 - keep[i, CURRENT] ** 2) * noise.current**2
        self._keep, self._process = keep, variance
        self._force = np.array([noise.force for noise in noises])

    def keep_only(self, kept: NDArray[np.intp]) -> None:
        """Drop all filters but those with these indices."""
        for name in ("names", "delays", "z", "covariance", "nis", "fit", "factor"):
            setattr(self, name, getattr(self, name)[kept])
        self.assume()

    def start(self, i: int, state: Array, boat: tuple[Array, Array], spread: float = START_DELAY) -> None:
        """Start filter i at a measured state, a mean and covariance of the boat, and its delay with a deviation, s."""
        noise = NOISES[self.names[i]]
        self.z[i] = np.concatenate([state, boat[0], np.zeros(5), [self.delays[i], START_LAG[0]]])
        variances = [*self.measurement[i], *np.zeros(8), *self.push[i] ** 2, *[noise.current**2] * 2]
        self.covariance[i] = np.diag([*variances, spread**2, START_LAG[1] ** 2])
        self.covariance[i][BOAT, BOAT] = boat[1]

    @property
    def push(self) -> Array:
        """Standard deviation of the push of each filter, (m, 3): a share of the limits as now estimated.

        With the force in the unit of an unknown acceleration, a larger one would explain every error by less of it.
        """
        return self._push(self.z)

    def _push(self, z: Array) -> Array:
        alpha = np.exp(z[:, ALPHA])
        if self.under:
            alpha[:, 1] = alpha[:, 0] / np.exp(z[:, ALPHA.stop + 3])
        return np.asarray(alpha * self._force[:, None])

    def correct(self, changes: Array, state: Array, about: Array | None = None) -> None:
        """Use the `state` measured now, and the steps of the commands before it, newest first (n, 3).

        With `about`, (21,), the boat, delay and lag are linearized there and only once.
        """
        z, covariance, count = self.z, self.covariance, len(self.z)
        p = covariance
        variance = self.measurement * np.where(self.adapts, self.factor**2, 1.0)[:, None]
        noise = variance[:, :, None] * np.eye(6)
        variances = np.einsum("mii->mi", p)
        at, jacobian, predicted = z.copy(), np.empty((count, 6, UNKNOWNS)), np.empty((count, 6))
        if about is not None:
            at[:, BOAT], at[:, DELAY:] = about[BOAT], about[DELAY:]
        # Errors along and across the boat, so that what is learned does not depend on the axes of the world.
        to_body, (c, s) = np.eye(6), (math.cos(state[2]), math.sin(state[2]))
        to_body[:2, :2] = (c, s), (-s, c)
        for _ in range(ITERATIONS if about is None else 1):
            means = thrust(changes, AGES, EDGES, at[:, DELAY], at[:, LAG])
            fine, coarse = TO_FINE @ means[0], [TO_COARSE @ mean for mean in means]
            for i in range(count):
                found = self._transition(at[i], fine[i], coarse[0][i], coarse[1][i], coarse[2][i])
                predicted[i], jacobian[i] = found[0].ravel(), found[1].T
            error = state - predicted
            # The headings of filters and measurement may differ by full turns.
            error[:, 2] = wrap(error[:, 2])
            error = (error - (jacobian @ (z - at)[:, :, None])[:, :, 0]) @ to_body.T
            seen = to_body @ jacobian
            jp = seen @ p
            innovation = jp @ seen.transpose(0, 2, 1) + noise
            if about is None:
                innovation += _left_out(seen, variances) * np.eye(6)
            inverse = _inverse(innovation)
            gain = jp.transpose(0, 2, 1) @ inverse
            step = (gain @ error[:, :, None])[:, :, 0]
            smoothed = self._bounded(z + step, p[:, :, DELAY:] - gain @ jp[:, :, DELAY:])
            moved = np.abs(smoothed - at) / np.sqrt(np.maximum(variances, 1e-12))
            before, at = at, smoothed
            if moved.max() < SETTLED:
                break
        predicted += (jacobian @ (smoothed - before)[:, :, None])[:, :, 0]
        p = p - gain @ jp
        for i in range(count):
            score = self._score(before[i], coarse[0][i], gain[i, PUSH.start : CURRENT.stop] @ to_body)[0].ravel()
            smoothed[i] -= p[i, :, BOAT] @ score
        smoothed = self._bounded(smoothed, p[:, :, DELAY:])
        self.z, self.covariance = smoothed * self._keep, self._predicted(p, jacobian, smoothed, variance)
        self.z[:, STATE] = predicted
        self.nis = np.einsum("mi,mij,mj->m", error, inverse, error)
        self._ignore(np.flatnonzero(self.nis > INEXPLICABLE), state, z, covariance)
        self.fit = -0.5 * (self.nis + np.linalg.slogdet(innovation)[1])

    def _ignore(self, members: NDArray[np.intp], state: Array, z: Array, covariance: Array) -> None:
        """Go on from the measured state without having learned from it: it jumped, or the boat is another."""
        for i in members:
            self.z[i], self.covariance[i] = z[i], covariance[i]
            self.z[i, STATE] = state
            self.covariance[i][STATE, :] = self.covariance[i][:, STATE] = 0.0
            self.covariance[i][STATE, STATE] = np.diag(self.measurement[i])

    def _predicted(self, p: Array, jacobian: Array, z: Array, variance: Array) -> Array:
        """The covariance a period later."""
        jp, keep = jacobian @ p, self._keep
        after = keep[:, :, None] * p * keep[:, None, :]
        after[:, STATE, :] = jp * keep[:, None, :]
        after[:, :, STATE] = after[:, STATE, :].transpose(0, 2, 1)
        after[:, STATE, STATE] = jp @ jacobian.transpose(0, 2, 1)
        after = (after + after.transpose(0, 2, 1)) / 2
        index = np.arange(UNKNOWNS)
        after[:, index, index] = np.maximum(after[:, index, index], 0.0) + self._process
        after[:, index[PUSH], index[PUSH]] += (1 - keep[:, PUSH] ** 2) * self._push(z) ** 2
        after[:, index[STATE], index[STATE]] += 0.01 * variance
        return np.asarray(after)

    def _bounded(self, z: Array, covariance: Array) -> Array:
        """The estimates within their bounds; `covariance` (m, 21, 2) is of all unknowns with delay and lag.

        What is correlated with delay or lag moves with them, as under the measurement that they are at the bound: many
        boats have hardly any delay or lag, so the bounds matter.
        """
        for i, longest in enumerate((LONGEST_DELAY, LONGEST_LAG)):
            own = z[:, DELAY + i]
            beyond = np.clip(own, 0.0, longest) - own
            share = covariance[:, :, i] / np.maximum(covariance[:, DELAY + i, i], 1e-12)[:, None]
            z = z + beyond[:, None] * share
        z[:, BOAT] = np.clip(z[:, BOAT], self._low, self._high)
        z[:, CURRENT] = np.clip(z[:, CURRENT], -1.0, 1.0)
        z[:, DELAY:] = np.clip(z[:, DELAY:], 0.0, (LONGEST_DELAY, LONGEST_LAG))
        return z


def _inverse(matrices: Array) -> Array:
    """The inverses of matrices (m, n, n); NaN for one that has none, so that its filter starts anew."""
    try:
        return np.asarray(np.linalg.inv(matrices))
    except np.linalg.LinAlgError:
        singular = (np.linalg.det(matrices) == 0)[:, None, None]
        return np.where(singular, np.nan, np.linalg.inv(np.where(singular, np.eye(matrices.shape[-1]), matrices)))


def _left_out(jacobian: Array, variances: Array) -> Array:
    """The variance that the linearization leaves out, (m, 6, 1).

    The second derivative of an exponential is its first. A thrust that begins later acts in proportion to alpha, and
    its derivative by the delay changes abruptly at the ends of the parts of a period.
    """
    exponential = 0.5 * jacobian[:, :, BOAT] ** 2 @ variances[:, BOAT, None] ** 2
    bend = KINK + variances[:, ALPHA].max(axis=1)
    return np.asarray(exponential + bend[:, None, None] * (jacobian[:, :, DELAY:] ** 2 @ variances[:, DELAY:, None]))
