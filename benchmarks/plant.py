"""A plant with what real thrusters, hulls and estimators add to the paper's: closed loop of one boat, as a Log.

Delay, then a first-order lag; weaker reverse thrust in surge; a dead band; a share of the drag at top speed that is
quadratic; and errors of the state that the controller gets, white or Gauss-Markov. Written apart from the package's
simulator and from the training's random thrusters.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from anyhull import Sea, Vessel
from anyhull.backend import Array
from anyhull.controller import Controller
from anyhull.dynamics import step
from anyhull.log import Log, Recorder, describe_vessel
from anyhull.reference import Reference
from anyhull.sea import clip_current, delayed, drift_current, drift_force

PARTS = 10
"""Integration steps in a period."""


@dataclass(frozen=True)
class Plant:
    """One boat's thrusters, drag and errors of the estimated state. The defaults are the paper's ideal ones."""

    delay: float = 0.0
    """From a command to when it begins to act, s."""
    lag: float = 0.0
    """Time constant of the thrust, s."""
    reverse: float = 1.0
    """Share of the surge force that is left when it is reversed."""
    dead_band: float = 0.0
    """Fraction of the command around zero without effect."""
    quadratic: float = 0.0
    """Share of the drag at top speed that is quadratic."""
    errors: tuple[float, ...] = (0.0,) * 6
    """Standard deviations of the estimate (m, m, rad, m/s, m/s, rad/s)."""
    memory: float = 0.0
    """Share of these errors that remains a period later; zero for white ones."""

    def thrust(self, command: Array) -> Array:
        """The steady thrust under a command, fractions of the limits."""
        size = np.maximum(np.abs(command) - self.dead_band, 0.0) / (1 - self.dead_band)
        steady: Array = np.sign(command) * size
        if steady[0] < 0:
            steady[0] *= self.reverse
        return steady

    def run(
        self,
        controller: Controller,
        vessel: Vessel,
        reference: Reference,
        sea: Sea,
        seed: int,
        measure: Callable[[float, Array, Array], None] | None = None,
    ) -> Log:
        """The closed loop along the reference, from its state; `Log.state` is the truth, `Log.estimate` was seen.

        `measure` is called `PARTS` times a period with the time, the state, and (surge, sway) as an accelerometer
        measures it.
        """
        e, drag = vessel.disturbed, vessel.drag
        rates = tuple(self.quadratic * d * d / a if a else 0.0 for d, a in zip(e[3:6], e[:3], strict=True))
        e = e._replace(**{name: (1 - self.quadratic) * getattr(e, name) for name in e._fields[3:6]})
        drag = (tuple(q + more for q, more in zip(drag[0], rates, strict=True)), drag[1])  # type: ignore[assignment]
        random, period = np.random.default_rng(seed), vessel.scale.period
        boat = tuple(reference.at(0.0).tolist())
        current = clip_current(tuple(sea.current / 2 * random.standard_normal(2)), sea)
        force = tuple(np.clip(sea.force / 2 * random.standard_normal(3), -sea.force, sea.force))
        errors = np.array(self.errors)
        commands, thrust, error = [(0.0, 0.0, 0.0)] * 8, np.zeros(3), errors * random.standard_normal(6)
        keep = math.exp(-period / PARTS / self.lag) if self.lag else 0.0
        recorder = Recorder()
        controller.reset()
        for k in range(round(reference.duration / period)):
            estimate, window = np.array(boat) + error, reference.window(k * period, period)
            command = np.asarray(controller.step(estimate[:3], estimate[3:], window))
            row = {"state": boat, "estimate": estimate, "current": current, "force": force}
            dynamics = getattr(getattr(controller, "dynamics", None), "components", None)
            recorder.add(time=k * period, reference=window[0], command=command, dynamics=dynamics, **row)
            commands = [(float(command[0]), float(command[1]), float(command[2])), *commands[:-1]]
            for part, active in enumerate(delayed(commands, self.delay, PARTS, period)):
                thrust, before = keep * thrust + (1 - keep) * self.thrust(np.array(active)), boat
                boat = step(boat, [tuple(thrust + force)], e, current, drag, period / PARTS)
                if measure is not None:
                    (du, dv), (u, v, r) = (np.array(boat[3:5]) - before[3:5]) * PARTS / period, boat[3:]
                    t = (k + (part + 1) / PARTS) * period
                    measure(t, np.array(boat), np.array([du - r * v, dv + r * u]))
            current = drift_current(current, random.standard_normal(2), sea, period)
            force = drift_force(force, random.standard_normal(3), sea, period)
            error = self.memory * error + math.sqrt(1 - self.memory**2) * errors * random.standard_normal(6)
        return recorder.log(describe_vessel(vessel) | {"controller": type(controller).__name__, "seed": seed})
