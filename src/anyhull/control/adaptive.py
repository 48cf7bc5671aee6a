"""Adaptive model predictive control: identifies the boat under way, and plans with what it has found.

An `Identifier` estimates the boat, the sea, delay and lag; a `Planner` plans with the estimate. The learned policy
steers until the estimate has converged, and again in every period in which it is too uncertain, or nothing was solved.
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from anyhull.backend import Array, to_body
from anyhull.control.hypotheses import NOISES
from anyhull.control.identifier import Identifier
from anyhull.control.planner import Planner, Weights
from anyhull.control.unknown_boat import BOAT, CURRENT, DELAY, LAG, PUSH, components
from anyhull.controller import check_inputs
from anyhull.dynamics import PERIOD
from anyhull.hydrodynamics import Normalized
from anyhull.pilot import Dynamics, Pilot
from anyhull.vessel import Vessel

WEIGHTS = {
    "still": Weights(q=(100.0, 100.0, 90.0, 2.6, 2.6, 3.3), r=1e-3, rate=1e-3, power=0.48),
    "exact": Weights(q=(100.0, 100.0, 90.0, 2.6, 2.6, 3.3), r=1e-3, rate=0.3, power=0.48),
    "noisy": Weights(q=(100.0, 100.0, 200.0, 10.0, 10.0, 50.0), r=0.3, rate=0.4, power=0.8),
}
UNDER_ACTUATED = {
    "still": Weights(q=(100.0, 100.0, 0.0063, 0.033, 0.033, 0.011), r=3.4e-5, rate=6.6e-5, power=0.5),
    "exact": Weights(q=(100.0, 100.0, 1.2, 0.29, 0.29, 0.12), r=1.1e-3, rate=0.16, power=0.5),
    "noisy": Weights(q=(100.0, 100.0, 5.0, 3.0, 3.0, 3.0), r=0.1, rate=0.4, power=0.8),
}

HORIZON = {False: 10, True: 25}
"""Periods of a plan, by whether the boat is without sway force."""

CONVERGED, LOST = 0.35, 0.7
"""Largest standard deviation of log alpha at which the plan takes over, and above which the policy does."""

LEAST_PERIODS = 5
"""Periods of convergence before the plan takes over."""

INEXPLICABLE = 1e4
"""Normalized innovation squared of one measurement that no boat explains."""

DISTANT = np.array([0.1, 0.25])
"""Distance (m) and angle (rad) at which a farther reference is put, in the units of the vessel's scale."""

TRANSFER = 0.5
"""Share of the step between two controllers that is left after a period."""


class Adaptive:
    """Steers any boat, with what it learns of it on the way; zero-shot."""

    def __init__(self, vessel: Vessel | None = None, *, policy: str = "field", budget: float = math.inf) -> None:
        """Of the `vessel` only the units of its scale and its class are used; without one they are those of SI, with
        sway force. A plan is not improved further once the step has taken `budget` s: on a boat, a share of the period.
        """
        self._policy = Pilot.load(policy, vessel)
        self._budget = budget
        self._scale = self._policy.scale
        self._share = np.array(self._policy.derating)
        self.under = not self._policy.sway
        self._identifier = Identifier(self.under)
        self._planner = Planner(self.under, HORIZON[self.under])
        self._weights = UNDER_ACTUATED if self.under else WEIGHTS
        self.reset()

    def reset(self) -> None:
        self._policy.reset()
        self._identifier.reset()
        self._planner.reset()
        self._converged = 0
        self._offset = np.zeros(3)
        self.planning = False
        """Whether the last command was the plan's."""
        self.reason = "not yet identified"
        """Why it was not."""
        self.failures = 0

    @property
    def latent(self) -> Any:
        return self._policy.latent

    def step(self, pose: ArrayLike, velocity: ArrayLike, window: ArrayLike) -> Array:
        began = time.perf_counter()
        now, nu, reference = check_inputs(pose, velocity, window)
        commands = self._identifier.commands
        fallback = self._policy.step(now, nu, reference) / self._share
        now, nu, reference = self._scale.pose(now), self._scale.velocity(nu), self._scale.window(reference)
        with np.errstate(all="ignore"):
            self._identifier.update(np.concatenate([now, nu]), self._head())
            reason = self._doubt()
            if not reason and not self._plan(now, reference, began):
                reason = "not solved"
        command = fallback if reason else self._planner.plan[0]
        if bool(reason) == self.planning:  # bumpless: the step fades out
            self._offset = commands.last - command
        self._offset = TRANSFER * self._offset
        self.planning, self.reason = not reason, reason
        command = np.clip(command + self._offset, -1.0, 1.0)
        if self.under:
            command[1] = 0.0
        self._policy.issued(command)
        commands.add(command)
        self._planner.shift(command)
        issued: Array = command * self._share
        return issued

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

    def _head(self) -> Array | None:
        scaled = self._policy.boat
        return None if scaled is None else np.delete(scaled, 7)

    def _doubt(self) -> str:
        found = self._identifier
        if not np.isfinite(found.estimate).all():
            return "estimate not finite"
        if found.nis > INEXPLICABLE:
            return "measurement inexplicable"
        limit = LOST if self.planning else CONVERGED
        self._converged = self._converged + 1 if found.uncertainty < limit else 0
        return "" if self._converged >= (1 if self.planning else LEAST_PERIODS) else "not yet identified"

    def _plan(self, pose: Array, reference: Array, began: float) -> bool:
        found = self._identifier
        z = found.estimate.copy()
        noise = NOISES[found.noise]
        reference = reference.copy()
        reference[:, 2] += math.tau * round((z[2] - reference[0, 2]) / math.tau)
        # A distant reference is approached at a distance that the linearization covers.
        away = reference[0, :3] - z[:3]
        distance = float(np.hypot(*away[:2]))
        if distance > DISTANT[0]:
            reference[:, :2] -= (1 - DISTANT[0] / distance) * away[:2]
        if not self.under:
            reference[:, 2] -= away[2] - np.clip(away[2], -DISTANT[1], DISTANT[1])
        keep = math.exp(-PERIOD * noise.force_decay)
        deadline = began + self._budget
        commands = found.commands
        return self._planner.solve(
            z, commands.changes, commands.last, reference, self._weights[found.noise], keep, deadline
        )
