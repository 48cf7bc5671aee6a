"""Identification of a boat under way: a bank of Kalman filters, weighted by the likelihood of the measurements.

One filter (`anyhull.control.filters`) for each of `DELAYS` and each of `NOISES`. Of the log-likelihood each period
forgets half a per cent. The prior is the distribution of boats in training.

A filter linearizes each measurement about what it knew then, which at first is little. In still water, with an exact
state, it would be far too sure of what it learned in the first seconds. So there one more filter goes through the
first measurements again from the prior, with the boat linearized at the present estimate, some in each period; when it
has caught up, the bank continues from it. That is the Gauss-Newton method on all of these measurements, with a Kalman
filter as its linear solver.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyhull.backend import Array
from anyhull.control.filters import Filters, prior
from anyhull.control.hypotheses import DELAYS, NOISES, START_DELAY
from anyhull.control.unknown_boat import ALPHA, BOAT, CURRENT, DELAY, LAG, PUSH, STATE, UNKNOWNS, Commands
from anyhull.identified import Prior

FORGET = 0.995
"""Share of the log-likelihood that is left after a period."""

BEHIND, RESTARTED = 25.0, 10.0
"""Nats behind the best of its noise at which a filter starts anew from it, and by which it then trails."""

DECIDED = 300.0
"""Log odds at which another noise is given up."""

OUTLIER = 22.5
"""Normalized innovation squared that one measurement of a thousand exceeds, six degrees of freedom."""

CHANGED, MISFIT = 3.0, 8.0
"""Outliers in quick succession that mean another boat, and those that mean a noise that does not fit."""

CONTRADICTION = 50.0
"""Normalized innovation squared at which a boat in still water, that has become sure, is another one at once."""

ANOTHER = np.ones(8)
"""Standard deviation of what is unknown of that boat, beside what was before."""

RECALL = 0.9
"""Share of the count of outliers that is left after a period."""

INFLATION = np.array([0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.2, 0.5])
"""Standard deviation that a change of boat adds to its unknowns."""

PULLED, PULL = 50, 0.05
"""Periods after a change of boat in which the pull to the policy's estimate is this strong."""

UNDISTURBED = "still"
"""The noise under which measurements are gone through again: with others, noise is larger than linearization errors."""

REPEATED, PER_PERIOD, FIRST = 120, 5, 10
"""Measurements that are gone through again, how many of them in a period, and how many there are at the first time."""

ANY_DELAY = 0.1, 0.08
"""Mean and standard deviation of the delay before any measurement, s."""


class Identifier:
    """Estimates state, boat, force, current, delay and lag from a state and a command in each period."""

    def __init__(self, under: bool, boat: tuple[Array, Array] | None = None) -> None:
        """`boat` are mean and covariance of its eight unknowns before any measurement."""
        self.prior = prior(under) if boat is None else boat
        self.under = under
        self.reset()

    def reset(self) -> None:
        """Forget all measurements and commands."""
        self.commands = Commands()
        self.forget()

    def forget(self) -> None:
        """Forget all measurements."""
        self.nis = 0.0
        """Normalized innovation squared of the last measurement for the filter that was best before; six on average."""
        self._outliers, self._pulled = 0.0, 0
        self.changes = 0
        """Changes of the boat that were detected."""
        self._started = False
        self._begin(np.zeros(6), self.prior)
        self._choose()

    def _begin(self, state: Array, boat: tuple[Array, Array]) -> None:
        """Start all filters at a measured state and a mean and covariance of the boat, with no measurements before."""
        self.filters = Filters(self.under, np.repeat(list(NOISES), len(DELAYS)), np.tile(DELAYS, len(NOISES)))
        self.log_likelihood = np.zeros(len(self.filters.z))
        for i in range(len(self.filters.z)):
            self.filters.start(i, state, boat)
        self._first, self._boat = state.copy(), boat
        self._measured: list[tuple[Array, Array]] = []
        self._again: Filters | None = None
        self._at = 0
        self._complete = False

    def update(self, state: Array, head: Array | None) -> None:
        """Correct by the measured `state` now; `head`: the policy's own estimate of the boat, (8,)."""
        if not self._started:
            self._started = True
            self._begin(state, self.prior)
            self._choose()
            return
        filters = self.filters
        expected = int(np.argmax(self.log_likelihood))
        filters.correct(self.commands.changes, state)
        self.nis = float(filters.nis[expected])
        self.log_likelihood = FORGET * self.log_likelihood + filters.fit
        finite = np.isfinite(filters.z).all(axis=1) & np.isfinite(self.log_likelihood)
        if not finite.all():
            for i in np.flatnonzero(~finite).tolist():
                filters.start(i, state, self.prior)
                filters.factor[i] = 1.0
            self.log_likelihood[~finite] = self.log_likelihood[finite].min() if finite.any() else 0.0
            filters.nis[~finite] = 0.0
        self._watch(state)
        filters = self.filters
        if head is not None and np.isfinite(head).all():
            pull = np.where(self._pulled > 0, PULL, filters.pull)[:, None]
            filters.z[:, BOAT] += pull * (head - filters.z[:, BOAT])
        self._pulled = max(self._pulled - 1, 0)
        self._select()
        if not self._complete:
            self._measured.append((self.commands.changes.copy(), state.copy()))
            if self.noise == UNDISTURBED:
                self._go_through_again()
        self._choose()

    def _go_through_again(self) -> None:
        """Some more of the first measurements, linearized at one estimate; the bank goes on from where they lead."""
        if self._again is None:
            if len(self._measured) < FIRST:
                return
            self._about = self.estimate.copy()
            self._again = Filters(self.under, np.array([self.noise]), np.array([ANY_DELAY[0]]))
            self._again.start(0, self._first, self._boat, ANY_DELAY[1])
            self._at = 0
        again = self._again
        for changes, state in self._measured[self._at : self._at + PER_PERIOD]:
            again.correct(changes, state, self._about)
            self._at += 1
        if self._at < len(self._measured):
            return
        own = self.filters.names == again.names[0]
        # Linearized at an estimate that is far off, it may lead to a boat that does not explain the last measurement.
        if np.isfinite(again.z).all() and again.nis[0] <= OUTLIER and own.any():
            best = np.flatnonzero(own)[np.argmax(self.log_likelihood[own])]
            for i in np.flatnonzero(own).tolist():
                self._continue(i, again.z[0], again.covariance[0], at_home=i != best)
                self.log_likelihood[i] = self.log_likelihood[best] - RESTARTED * (i != best)
        self._again = None
        self._complete = len(self._measured) >= REPEATED

    def _continue(self, i: int, z: Array, covariance: Array, *, at_home: bool) -> None:
        """Continue filter i from another one; `at_home`: but from the delay at which it started."""
        filters = self.filters
        filters.z[i], filters.covariance[i] = z, covariance
        if at_home:
            filters.z[i, DELAY] = filters.delays[i]
            filters.covariance[i, DELAY, :] = filters.covariance[i, :, DELAY] = 0.0
            filters.covariance[i, DELAY, DELAY] = START_DELAY**2

    def _watch(self, state: Array) -> None:
        """Notice a change of the boat, or a noise that does not fit."""
        filters = self.filters
        best = int(np.argmax(self.log_likelihood))
        step = np.exp(0.02 * (np.minimum(filters.nis / 6, 3.0) - 1))
        filters.factor = np.where(filters.adapts, np.clip(filters.factor * step, 0.01, 5.0), 1.0)
        sure = (filters.names == UNDISTURBED).all() and self._pulled == 0
        if sure and filters.nis[best] > CONTRADICTION:
            self._begin(state, (self.estimate[BOAT], self.covariance[BOAT, BOAT] + np.diag(ANOTHER**2)))
            self._outliers, self._pulled = 0.0, PULLED
            self.changes += 1
            return
        self._outliers = RECALL * self._outliers + (filters.nis[best] > OUTLIER)
        if self._outliers < CHANGED:
            return
        names = list(NOISES)
        following = names[names.index(filters.names[best]) + 1 :]
        if self._outliers >= MISFIT and following:
            # The next noise takes over from here.
            self._replace(np.flatnonzero(filters.names == filters.names[best]), following[0], state)
            self._outliers = 0.0
        elif self._pulled == 0:
            self.changes += 1
            self._pulled = PULLED
            index = np.arange(BOAT.start, BOAT.stop)
            filters.covariance[:, index, index] += INFLATION**2
            self._complete, self._again, self._measured = True, None, []

    def _replace(self, members: NDArray[np.intp], name: str, state: Array) -> None:
        """Continue the filters `members` with another noise."""
        filters = self.filters
        filters.keep_only(members)
        filters.names[:] = name
        filters.assume()
        self.log_likelihood = np.zeros(len(members))
        filters.z[:, STATE] = state
        index = np.arange(UNKNOWNS)
        filters.covariance[:, index[STATE], index[STATE]] += filters.measurement
        filters.covariance[:, index[PUSH], index[PUSH]] += filters.push**2
        filters.covariance[:, index[CURRENT], index[CURRENT]] += NOISES[name].current ** 2
        filters.covariance[:, index[BOAT], index[BOAT]] += INFLATION**2

    def _select(self) -> None:
        """Start filters far behind anew from the best of their noise, and drop noises that the evidence excludes."""
        filters = self.filters
        best = float(self.log_likelihood.max())
        kept = np.ones(len(filters.z), bool)
        for name in dict.fromkeys(filters.names):
            own = np.flatnonzero(filters.names == name)
            leader = own[np.argmax(self.log_likelihood[own])]
            top = float(self.log_likelihood[leader])
            if best - top > DECIDED:
                kept[own] = False
                continue
            for i in own[self.log_likelihood[own] < top - BEHIND]:
                self._continue(i, filters.z[leader], filters.covariance[leader], at_home=True)
                filters.factor[i] = filters.factor[leader]
                self.log_likelihood[i] = top - RESTARTED
        if not kept.all():
            filters.keep_only(np.flatnonzero(kept))
            self.log_likelihood = self.log_likelihood[kept]
        self.log_likelihood -= self.log_likelihood.max()

    def _choose(self) -> None:
        """The estimate: the mean of the filters of the best noise, weighted by their likelihood."""
        filters = self.filters
        self.noise = str(filters.names[int(np.argmax(self.log_likelihood))])
        own = filters.names == self.noise
        weights = np.exp(self.log_likelihood[own] - self.log_likelihood[own].max())
        weights /= weights.sum()
        self.estimate = weights @ filters.z[own]
        """The unknowns, (21,)."""
        spread = filters.z[own] - self.estimate
        self.covariance = np.einsum("m,mij->ij", weights, filters.covariance[own]) + (weights * spread.T) @ spread
        """Their covariance, (21, 21)."""
        self.std = np.sqrt(np.diag(self.covariance))
        """Their standard deviations."""

    @property
    def boat(self) -> Prior:
        """What is known of boat, delay and lag now."""
        delay, lag = ((float(self.estimate[i]), float(self.std[i])) for i in (DELAY, LAG))
        return Prior(self.estimate[BOAT].copy(), self.covariance[BOAT, BOAT].copy(), delay, lag)

    @property
    def uncertainty(self) -> float:
        """The largest standard deviation of the logarithm of a peak acceleration."""
        std = self.std[ALPHA]
        return float(max(std[0], std[2]) if self.under else std.max())
