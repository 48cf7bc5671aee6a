"""A bank of iterated extended Kalman filters over the state of a boat and what it is unknown of it.

One filter for each of `DELAYS` and each of `NOISES`, weighted by the likelihood of the measurements, of which each
period forgets half a per cent. Each estimates all of `anyhull.control.unknown_boat`, its own delay included:

    z_{k+1} = (predict(z_k), K z_k) + w        y = s + n

K is the identity for the boat, delay and lag, which walk slowly, and e^{-lambda dt} for force and current, which are
Ornstein-Uhlenbeck processes as in `anyhull.sea`. The linearization is repeated about the smoothed state of the last
period, since at first a single command may tell more of the boat than all that was known. The prior is the
distribution of boats in training.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyhull.backend import Array, wrap
from anyhull.control.hypotheses import (
    CURRENT_DECAY,
    DELAYS,
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
    Commands,
    disturbance_score,
    thrust,
    transition,
)
from anyhull.dynamics import PERIOD

FASTEST_DAMPING = float(np.log(40.0))
"""Largest logarithm of 1/tau."""

FORGET = 0.995
"""Share of the log-likelihood that is left after a period."""

BEHIND, RESTARTED = 25.0, 10.0
"""Nats behind the best of its noise at which a filter starts anew from it, and by which it then trails."""

DECIDED = 300.0
"""Log odds at which another noise is given up."""

ITERATIONS = 3
"""Linearizations per period, at most."""

KINK = 0.1
"""Variance that the linearization by delay and lag leaves out, as a share of the linearized one."""

OUTLIER = 22.5
"""Normalized innovation squared that one measurement of a thousand exceeds, six degrees of freedom."""

CHANGED, MISFIT = 3.0, 8.0
"""Outliers in quick succession that mean another boat, and those that mean a noise that does not fit."""

RECALL = 0.9
"""Share of the count of outliers that is left after a period."""

INFLATION = np.array([0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.2, 0.5])
"""Standard deviation that a change of boat adds to its unknowns."""

PULLED, PULL = 50, 0.05
"""Periods after a change of boat in which the pull to the policy's estimate is this strong."""


AGES = PERIOD * np.arange(float(MEMORY))

_EDGES = PERIOD * np.array([0.0, 0.2, 0.4, 0.5, 0.6, 0.8, 1.0])
_TO_FINE = np.array(
    [[1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0], [0, 0, 0.5, 0.5, 0, 0], [0, 0, 0, 0, 1, 0], [0, 0, 0, 0, 0, 1]]
)
_TO_COARSE = np.array([[0.4, 0.4, 0.2, 0, 0, 0], [0, 0, 0, 0.2, 0.4, 0.4]])


class Identifier:
    """Estimates state, boat, force, current, delay and lag from a state and a command in each period."""

    def __init__(self, under: bool) -> None:
        self._transition, self._score = Buffered(transition(under)), Buffered(disturbance_score(under))
        mean, std, correlations = PRIORS[under]
        correlation = np.eye(8)
        for (i, j), value in correlations.items():
            correlation[i, j] = correlation[j, i] = value
        self.prior = mean, correlation * np.outer(std, std)
        """Mean and covariance of the boat's unknowns before any measurement."""
        self._low, self._high = mean - 3.5 * std, mean + 3.5 * std
        # Faster damping than any in training would be unstable in the integration.
        self._high[3:6] = np.minimum(self._high[3:6], FASTEST_DAMPING)
        self.under = under
        self.reset()

    def reset(self) -> None:
        """Forget all measurements."""
        self.commands = Commands()
        self.names = np.repeat(list(NOISES), len(DELAYS))
        n = len(self.names)
        self.z, self.covariance = np.zeros((n, UNKNOWNS)), np.zeros((n, UNKNOWNS, UNKNOWNS))
        self.log_likelihood = np.zeros(n)
        self._home = np.tile(DELAYS, len(NOISES))
        self.factor = 1.0
        """Factor of the measurement noise that adapts."""
        self.nis = 0.0
        """Normalized innovation squared of the last measurement for the best filter; six on average."""
        self._outliers, self._pulled = 0.0, 0
        self.changes = 0
        """Changes of the boat that were detected."""
        self._started = False
        self._assume()
        self._choose()

    def _assume(self) -> None:
        """Constants of the filters that are left."""
        noises = [NOISES[name] for name in self.names]
        self._adapts = np.array([noise.adapts for noise in noises])
        self._measurement = np.array([noise.measurement for noise in noises]) ** 2
        self._pull = np.array([noise.pull for noise in noises])
        keep, variance = np.ones((len(noises), UNKNOWNS)), np.zeros((len(noises), UNKNOWNS))
        variance[:, BOAT.start :] = WALK**2
        for i, noise in enumerate(noises):
            keep[i, PUSH] = np.exp(-PERIOD * noise.force_decay)
            keep[i, CURRENT] = np.exp(-PERIOD * CURRENT_DECAY)
            variance[i, CURRENT] = (1 - keep[i, CURRENT] ** 2) * noise.current**2
        self._keep, self._process = keep, variance
        self._force = np.array([noise.force for noise in noises])

    def _start(self, state: Array, chosen: NDArray[np.bool_]) -> None:
        """Start the filters `chosen` at the prior and a measured state."""
        mean, covariance = self.prior
        for i in np.flatnonzero(chosen):
            noise = NOISES[self.names[i]]
            self.z[i] = np.concatenate([state, mean, np.zeros(5), [self._home[i], START_LAG[0]]])
            p = np.zeros((UNKNOWNS, UNKNOWNS))
            p[BOAT, BOAT] = covariance
            push = self._push(self.z)[i]
            diagonal = [*self._measurement[i], *np.zeros(8), *push**2, *[noise.current**2] * 2]
            self.covariance[i] = p + np.diag([*diagonal, START_DELAY**2, START_LAG[1] ** 2])

    def update(self, state: Array, head: Array | None) -> None:
        """Correct by the measured `state` now; `head`: the policy's own estimate of the boat."""
        if not self._started:
            self._start(state, np.ones(len(self.z), bool))
            self._started = True
            self._choose()
            return
        # The headings of filters and measurement may differ by full turns.
        self._predict_and_correct(state)
        finite = np.isfinite(self.z).all(axis=1) & np.isfinite(self.log_likelihood)
        if not finite.all():
            self._start(state, ~finite)
            self.log_likelihood[~finite] = self.log_likelihood[finite].min() if finite.any() else 0.0
        self._watch(state)
        if head is not None and np.isfinite(head).all():
            pull = np.where(self._pulled > 0, PULL, self._pull)[:, None]
            self.z[:, BOAT] += pull * (head - self.z[:, BOAT])
        self._pulled = max(self._pulled - 1, 0)
        self._select()
        self._choose()

    def _predict_and_correct(self, state: Array) -> None:
        z, p, count = self.z, self.covariance, len(self.z)
        variance = self._measurement * np.where(self._adapts, self.factor**2, 1.0)[:, None]
        noise = variance[:, :, None] * np.eye(6)
        variances = np.einsum("mii->mi", p)
        at, jacobian, predicted = z.copy(), np.empty((count, 6, UNKNOWNS)), np.empty((count, 6))
        for _ in range(ITERATIONS):
            means = thrust(self.commands.changes, AGES, _EDGES, at[:, DELAY], at[:, LAG])
            fine, coarse = _TO_FINE @ means[0], [_TO_COARSE @ mean for mean in means]
            for i in range(count):
                found = self._transition(at[i], fine[i], coarse[0][i], coarse[1][i], coarse[2][i])
                predicted[i], jacobian[i] = found[0].ravel(), found[1].T
            error = state - predicted
            error[:, 2] = wrap(error[:, 2])
            error -= (jacobian @ (z - at)[:, :, None])[:, :, 0]
            jp = jacobian @ p
            # The variance that the linearization leaves out. The second derivative of an exponential is its first.
            curvature = 0.5 * jacobian[:, :, BOAT] ** 2 @ variances[:, BOAT, None] ** 2
            # A thrust that begins later acts in proportion to alpha, and changes abruptly at the ends of the parts.
            bend = KINK + variances[:, ALPHA].max(axis=1)
            curvature += bend[:, None, None] * (jacobian[:, :, DELAY:] ** 2 @ variances[:, DELAY:, None])
            innovation = jp @ jacobian.transpose(0, 2, 1) + noise + curvature * np.eye(6)
            inverse = np.linalg.inv(innovation)
            gain = jp.transpose(0, 2, 1) @ inverse
            step = (gain @ error[:, :, None])[:, :, 0]
            smoothed = self._bounded(z + step)
            moved = np.abs(smoothed - at) / np.sqrt(np.maximum(variances, 1e-12))
            before, at = at, smoothed
            if moved.max() < 0.3:
                break
        predicted += (jacobian @ (smoothed - before)[:, :, None])[:, :, 0]
        p = p - gain @ jp
        for i in range(count):
            score = self._score(before[i], coarse[0][i], gain[i, PUSH.start : CURRENT.stop])[0].ravel()
            smoothed[i] -= p[i, :, BOAT] @ score
        smoothed = self._bounded(smoothed)
        jp = jacobian @ p
        keep = self._keep
        after = keep[:, :, None] * p * keep[:, None, :]
        after[:, STATE, :] = jp * keep[:, None, :]
        after[:, :, STATE] = after[:, STATE, :].transpose(0, 2, 1)
        after[:, STATE, STATE] = jp @ jacobian.transpose(0, 2, 1)
        after = (after + after.transpose(0, 2, 1)) / 2
        index = np.arange(UNKNOWNS)
        after[:, index, index] = np.maximum(after[:, index, index], 0.0) + self._process
        # A share of the limits, of the peak acceleration as now estimated: with the force in the unit of an unknown
        # acceleration, a larger one would explain every error by less of it.
        after[:, index[PUSH], index[PUSH]] += (1 - keep[:, PUSH] ** 2) * self._push(smoothed) ** 2
        after[:, index[STATE], index[STATE]] += 0.01 * variance
        self.z, self.covariance = smoothed * keep, after
        self.z[:, STATE] = predicted
        nis = np.einsum("mi,mij,mj->m", error, inverse, error)
        fit = -0.5 * (nis + np.linalg.slogdet(innovation)[1])
        self.log_likelihood = FORGET * self.log_likelihood + fit
        self._nis = nis

    def _push(self, z: Array) -> Array:
        """Standard deviation of the push of each filter, (m, 3)."""
        alpha = np.exp(z[:, ALPHA])
        if self.under:
            alpha[:, 1] = alpha[:, 0] / np.exp(z[:, ALPHA.stop + 3])
        return np.asarray(alpha * self._force[:, None])

    def _bounded(self, z: Array) -> Array:
        z[:, BOAT] = np.clip(z[:, BOAT], self._low, self._high)
        z[:, CURRENT] = np.clip(z[:, CURRENT], -1.0, 1.0)
        z[:, DELAY] = np.clip(z[:, DELAY], 0.0, LONGEST_DELAY)
        z[:, LAG] = np.clip(z[:, LAG], 0.0, LONGEST_LAG)
        return z

    def _watch(self, state: Array) -> None:
        """Notice a change of the boat, or a noise that does not fit."""
        best = int(np.argmax(self.log_likelihood))
        self.nis = float(self._nis[best])
        adapting = np.flatnonzero(self._adapts)
        if adapting.size:
            own = self._nis[adapting[np.argmax(self.log_likelihood[adapting])]]
            self.factor = float(np.clip(self.factor * np.exp(0.02 * (min(own / 6, 3.0) - 1)), 0.01, 5.0))
        self._outliers = RECALL * self._outliers + (self.nis > OUTLIER)
        if self._outliers < CHANGED:
            return
        names = list(NOISES)
        following = names[names.index(self.names[best]) + 1 :]
        if self._outliers >= MISFIT and following:
            # The next noise takes over from here.
            self._replace(np.flatnonzero(self.names == self.names[best]), following[0], state)
            self._outliers = 0.0
        elif self._pulled == 0:
            self.changes += 1
            self._pulled = PULLED
            index = np.arange(BOAT.start, BOAT.stop)
            self.covariance[:, index, index] += INFLATION**2

    def _replace(self, members: NDArray[np.intp], name: str, state: Array) -> None:
        """Continue the filters `members` with another noise."""
        self.names = self.names[members]
        self.names[:] = name
        self.z, self.covariance = self.z[members], self.covariance[members]
        self.log_likelihood, self._home = np.zeros(len(members)), self._home[members]
        self._nis = self._nis[members]
        self.z[:, STATE] = state
        self._assume()
        noise, index = NOISES[name], np.arange(UNKNOWNS)
        self.covariance[:, index[STATE], index[STATE]] += self._measurement
        self.covariance[:, index[PUSH], index[PUSH]] += self._push(self.z) ** 2
        self.covariance[:, index[CURRENT], index[CURRENT]] += noise.current**2
        self.covariance[:, index[BOAT], index[BOAT]] += INFLATION**2

    def _select(self) -> None:
        """Start filters far behind anew from the best of their noise, and drop noises that the evidence excludes."""
        best = float(self.log_likelihood.max())
        kept = np.ones(len(self.z), bool)
        for name in dict.fromkeys(self.names):
            own = np.flatnonzero(self.names == name)
            leader = own[np.argmax(self.log_likelihood[own])]
            top = float(self.log_likelihood[leader])
            if best - top > DECIDED:
                kept[own] = False
                continue
            for i in own[self.log_likelihood[own] < top - BEHIND]:
                self.z[i], self.covariance[i] = self.z[leader], self.covariance[leader]
                self.z[i, DELAY] = self._home[i]
                self.covariance[i, DELAY, :] = self.covariance[i, :, DELAY] = 0.0
                self.covariance[i, DELAY, DELAY] = START_DELAY**2
                self.log_likelihood[i] = top - RESTARTED
        if not kept.all():
            self.names, self._home, self._nis = self.names[kept], self._home[kept], self._nis[kept]
            self.z, self.covariance = self.z[kept], self.covariance[kept]
            self.log_likelihood = self.log_likelihood[kept]
            self._assume()
        self.log_likelihood -= self.log_likelihood.max()

    def _choose(self) -> None:
        """The estimate: the mean of the filters of the best noise, weighted by their likelihood."""
        self.noise = str(self.names[int(np.argmax(self.log_likelihood))])
        own = self.names == self.noise
        weights = np.exp(self.log_likelihood[own] - self.log_likelihood[own].max())
        weights /= weights.sum()
        self.estimate = weights @ self.z[own]
        """The unknowns, (21,)."""
        spread = self.z[own] - self.estimate
        variance = weights @ (np.einsum("mii->mi", self.covariance[own]) + spread**2)
        self.std = np.sqrt(variance)
        """Their standard deviations."""

    @property
    def uncertainty(self) -> float:
        """The largest standard deviation of the logarithm of a peak acceleration."""
        std = self.std[ALPHA]
        return float(max(std[0], std[2]) if self.under else std.max())
