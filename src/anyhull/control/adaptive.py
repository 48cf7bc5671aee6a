"""Adaptive model predictive control: identifies the boat under way, and plans with what it has found.

An `Identifier` estimates the boat, the sea, delay and lag; a `Planner` plans with the estimate. The learned policy
steers until the estimate has converged, axis by axis, and again in every period in which it is too uncertain, or in
which no plan was found in time.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from anyhull.backend import Array, to_body
from anyhull.control.filters import INEXPLICABLE
from anyhull.control.hypotheses import NOISES
from anyhull.control.identifier import Identifier
from anyhull.control.planner import Planner, Weights
from anyhull.control.unknown_boat import ALPHA, BOAT, CURRENT, DELAY, LAG, PUSH, components
from anyhull.controller import check_inputs
from anyhull.dynamics import PERIOD
from anyhull.errors import InputError
from anyhull.hydrodynamics import Normalized
from anyhull.identified import Identified, identified
from anyhull.pilot import Dynamics, Pilot
from anyhull.vessel import Vessel

WEIGHTS = {
    "still": Weights(q=(100.0, 100.0, 90.0, 2.6, 2.6, 3.3), r=1e-3, rate=3e-4, power=0.48),
    "exact": Weights(q=(100.0, 100.0, 170.0, 1.0, 1.0, 1.0), r=0.01, rate=0.37, power=0.48),
    "noisy": Weights(q=(100.0, 100.0, 200.0, 10.0, 10.0, 20.0), r=0.03, rate=0.2, power=0.5),
    "drift": Weights(q=(100.0, 100.0, 320.0, 6.2, 6.2, 12.5), r=0.03, rate=0.2, power=0.5),
}
UNDER_ACTUATED = {
    "still": Weights(q=(100.0, 100.0, 0.0063, 0.033, 0.033, 0.011), r=3.4e-5, rate=6.6e-5, power=0.5),
    "exact": Weights(q=(100.0, 100.0, 1.2, 0.29, 0.29, 0.12), r=1.1e-3, rate=0.16, power=0.5),
    "noisy": Weights(q=(100.0, 100.0, 5.0, 3.0, 3.0, 3.0), r=0.1, rate=0.4, power=0.8),
    "drift": Weights(q=(100.0, 100.0, 5.0, 3.0, 3.0, 3.0), r=0.1, rate=0.4, power=0.8),
}

HORIZON = {False: 10, True: 25}
"""Periods of a plan, by whether the boat is without sway force."""

CONVERGED, UNKNOWN = 0.5, 1.0
"""Standard deviation of log alpha of an axis below which the plan steers it, and above which the policy does; between
them both do, in proportion."""

DISTANT = np.array([0.1, 0.25])
"""Distance (m) and angle (rad) at which a farther reference is put, in the units of the vessel's scale."""

CAUTION = 0.2
"""Weight that is added to that of changes of the command, times the fourth power of the largest standard deviation."""

TRANSFER = 0.5
"""Share of the step from a plan that failed to the policy that is left after a period."""


NOT_YET = "not yet identified"


class Adaptive:
    """Steers any boat, with what it learns of it on the way; zero-shot."""

    def __init__(self, vessel: Vessel | None = None, policy: str = "field") -> None:
        """Of the `vessel` only its class, the units of its scale and what an earlier voyage has identified of it are
        used; without one it has sway force, and the units are those of SI."""
        self._policy = Pilot.load(policy, vessel)
        self._scale = self._policy.scale
        self._derating = np.array(self._policy.derating)
        self.under = not self._policy.sway
        """Whether the boat is without sway force."""
        earlier = vessel.identified if vessel else None
        known = earlier.prior(self._scale, self._policy.derating) if earlier else None
        self._identifier = Identifier(self.under, known and (known.mean, known.covariance))
        self._planner = Planner(self.under, HORIZON[self.under])
        self._weights = UNDER_ACTUATED if self.under else WEIGHTS
        self.budget = math.inf
        """Time after which a step goes on with the policy's command, s."""
        self.reset()

    def reset(self) -> None:
        """Forget the boat."""
        self._policy.reset()
        self._identifier.reset()
        self._planner.reset()
        self._periods = 0
        self._offset = np.zeros(3)
        self.share = np.zeros(3)
        """The share of the plan in the last command, on each axis; the rest is the policy's."""
        self.reason = NOT_YET
        """Why it was the policy's alone, or empty."""
        self.failures = 0
        """Periods without a plan since the last reset, for another reason than that the boat was not yet known."""

    @property
    def latent(self) -> Any:
        """The policy's latent."""
        return self._policy.latent

    def step(self, pose: ArrayLike, velocity: ArrayLike, window: ArrayLike) -> Array:
        """The normalized command in [-1, 1]³ for the coming period."""
        deadline = time.perf_counter() + self.budget
        now, nu, reference = check_inputs(pose, velocity, window)
        policy = self._policy.step(now, nu, reference) / self._derating
        now, nu, reference = self._scale.pose(now), self._scale.velocity(nu), self._scale.window(reference)
        with np.errstate(all="ignore"):
            self.reason = self._identify(np.concatenate([now, nu])) or self._plan(now, reference, deadline)
        if self.reason:
            # Bumpless: from the plan to the policy the step fades out.
            self._offset = TRANSFER * (self._identifier.commands.last - policy if self.share.any() else self._offset)
            self.share = np.zeros(3)
            command = policy + self._offset
        else:
            self.share, self._offset = self._certain, np.zeros(3)
            command = policy + self.share * (self._planner.plan[0] - policy)
        self.failures += self.reason not in ("", NOT_YET)
        command = np.clip(command, -1.0, 1.0)
        if self.under:
            command[1] = 0.0
        self._policy.issued(command)
        self._identifier.commands.add(command)
        self._periods += 1
        self._planner.shift(command)
        issued: Array = command * self._derating
        return issued

    def sent(self, command: ArrayLike) -> None:
        """What was sent to the boat in place of the last command."""
        own = np.asarray(command, float) / self._derating
        self._policy.issued(own)
        self._identifier.commands.correct(own)

    @property
    def dynamics(self) -> Dynamics:
        """What is identified of boat, delay, lag and sea after the last step."""
        z, std = self._identifier.estimate, self._identifier.std
        e = components(z[BOAT], self.under)
        spread = np.insert(std[BOAT], 7, std[BOAT][6])
        c_x, c_y = z[CURRENT]
        current = np.array(to_body(c_x, c_y, float(z[2])))
        push = z[PUSH] / np.array([*e[:3]])
        return self._policy.dynamics_in_si(
            Normalized(*map(float, e)), spread, float(z[DELAY]), current, push, float(z[LAG])
        )

    def identified(self, source: str, date: str) -> Identified:
        """What is identified of the boat, as the table of a vessel's file."""
        if not self._periods:
            raise InputError("no boat is identified before the first period")
        seconds = self._periods * self._scale.period
        boat, share = self._identifier.boat, self._policy.derating
        return identified(boat, self._scale, share, seconds=seconds, source=source, date=date)

    @property
    def _certain(self) -> Array:
        certain = (UNKNOWN - self._identifier.std[ALPHA]) / (UNKNOWN - CONVERGED)
        share: Array = np.clip(certain, 0.0, 1.0)
        if self.under:
            share[1] = 0.0
        return share

    def _identify(self, state: Array) -> str:
        """Correct the estimate; why it cannot be used, or an empty text."""
        found, scaled = self._identifier, self._policy.boat
        try:
            found.update(state, None if scaled is None else np.delete(scaled, 7))
        except (np.linalg.LinAlgError, ValueError, RuntimeError):
            found.forget()
            return "identification failed"
        if not (np.isfinite(found.estimate).all() and np.isfinite(found.std).all()):
            found.forget()
            return "estimate not finite"
        if found.nis > INEXPLICABLE:
            return "measurement inexplicable"
        return "" if self._certain.any() else NOT_YET

    def _plan(self, pose: Array, reference: Array, deadline: float) -> str:
        """Plan with the estimate; why the plan cannot be used, or an empty text."""
        if time.perf_counter() > deadline:
            return "out of time"
        found = self._identifier
        z, noise, weights = found.estimate.copy(), NOISES[found.noise], self._weights[found.noise]
        reference = reference.copy()
        reference[:, 2] += math.tau * round((z[2] - reference[0, 2]) / math.tau)
        # A distant reference is approached at a distance that the linearization covers.
        away = reference[0, :3] - z[:3]
        distance = float(np.hypot(*away[:2]))
        if distance > DISTANT[0]:
            reference[:, :2] -= (1 - DISTANT[0] / distance) * away[:2]
        if not self.under:
            reference[:, 2] -= away[2] - np.clip(away[2], -DISTANT[1], DISTANT[1])
        weights = replace(weights, rate=weights.rate + CAUTION * found.uncertainty**4)
        keep = math.exp(-PERIOD * noise.force_decay)
        commands = found.commands
        if not self._planner.solve(z, commands.changes, commands.last, reference, weights, keep, deadline):
            return "not solved"
        return "out of time" if time.perf_counter() > deadline else ""
