"""The search for the constants of `L1` and `RLS`, which `rivals.py tune` runs.

Boats: made-up files with a length of 0.5 to 2.5 m, a mass within a factor of two of the usual, and limits that give the
peak accelerations of `ACCELERATIONS`; half of the files do not state the length. Each gets a plausible hull
(`Vessel.plausible`) that it can drive along the reference with 70 % of its thrust, and whose Munk moment is within the
bound of training. None is of the catalogue.

Conditions: still water; the field sea; and the field sea with the measurement errors of an estimator, Gauss-Markov as
in training. The delays are spread evenly over their range, another for each boat. The current is at most what half of a
boat's forces hold from the side, as in `catalogue.py`. The references are a figure eight, a square and a circle, each
boat on one of them, at a speed of its own.

Score: the mean over boats and conditions of log sqrt(mean position error x mean heading error), with errors capped at
1 m and 45°, so that no boat dominates; plus twice the logarithm of the factor by which mean |Δτ| is above `SMOOTH`.

Search: `DRAWN` candidates log-uniform in `RANGES`, then `NEAR` around the best so far, at a deviation that shrinks from
0.15 to 0.05 of each logarithmic range, on 24 s with 9 boats; the best five on whole references with 24 other boats.
A candidate whose scores add up to `WORSE` more than the best's is not tried in the remaining conditions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from anyhull import Sea, Vessel, circle, figure_eight, rounded_rectangle, simulate
from anyhull.backend import Array
from anyhull.control import l1, rls
from anyhull.controller import Controller
from anyhull.errors import InputError
from anyhull.learn.environment import NOISE_MEMORY
from anyhull.reference import Reference
from anyhull.scale import ADDED, DISPLACEMENT, GYRATION

RANGES: dict[str, dict[str, tuple[float, float]]] = {
    "l1": {
        "pose": (0.3, 6.0),
        "heading": (0.3, 10.0),
        "velocity": (0.7, 15.0),
        "yaw_rate": (0.7, 15.0),
        "filter": (0.3, 20.0),
        "yaw_filter": (0.3, 20.0),
        "decay": (0.01, 3.0),
        "delay": (0.01, 0.19),
    },
    "rls": {
        "pose": (0.3, 6.0),
        "heading": (0.3, 10.0),
        "velocity": (0.7, 15.0),
        "yaw_rate": (0.7, 15.0),
        "filter": (0.5, 40.0),
        "noise": (1e-3, 0.3),
        "memory": (5.0, 1000.0),
        "bias_memory": (0.5, 30.0),
        "dead_zone": (1e-5, 1e-2),
    },
}
"""Smallest and largest value of each constant; set after one earlier search, whose best lay at some of its bounds."""

ACCELERATIONS = ((0.5, 8.0), (0.25, 8.0), (0.4, 40.0))
"""Estimated peak accelerations of the boats in surge, sway and yaw (m/s², rad/s²)."""

ERRORS = (0.0075, 0.0075, 0.0026, 0.015, 0.015, 0.0087)
"""Standard deviations of the measurement (m, rad, m/s, rad/s): half of the largest in training."""

SMOOTH = {"field": 0.04, "noise": 0.08}
"""Mean |Δτ| per step up to which a candidate is not penalized."""

DRAWN, NEAR, FINAL = 120, 200, 5
"""Candidates from the whole ranges, near the best, and in the second stage."""

COARSE, FINE = range(9), range(100, 124)
"""Numbers of the boats of the two stages, and seeds of their seas."""

WORSE = 1.5
"""How much worse than the best, summed over the conditions tried so far, a candidate may be."""

CAP = (100.0, 45.0)
"""Largest error that counts, cm and degrees."""


@dataclass(frozen=True)
class Case:
    """A boat on its reference."""

    vessel: Vessel
    known: Vessel
    """What its file states."""
    reference: Reference
    share: float
    """Its place in the range of the delays, 0 to 1."""
    seed: int


def case(number: int, share: float) -> Case:
    """The boat of that number."""
    random = np.random.default_rng([number, 19])
    while True:
        length, speed = math.exp(random.uniform(math.log(0.5), math.log(2.5))), random.uniform(0.3, 0.8)
        mass = DISPLACEMENT * length**3 * 2 ** random.uniform(-1, 1)
        surge, sway, yaw = (math.exp(random.uniform(*np.log(ends))) for ends in ACCELERATIONS)
        limits = surge * ADDED[0] * mass, sway * ADDED[1] * mass, yaw * mass * (GYRATION * length) ** 2
        file = Vessel(f"boat {number}", *limits, m=mass, length=length)
        hull = int(random.integers(2**31))
        shapes = (
            figure_eight(12, 8, speed=speed),
            rounded_rectangle(8, 8, 1.5, speed=speed),
            circle(-3.0, speed=speed),
        )
        reference = shapes[number % 3]
        vessel = file.plausible(hull)
        weaker = replace(vessel, Fx=0.7 * file.Fx, Fy=0.7 * file.Fy, Mz=0.7 * file.Mz)
        munk = abs(vessel.normalized.c_uv) * 0.06 / vessel.normalized.alpha_r  # as in training
        if not reference.infeasible(weaker) and vessel.scale.identity and munk <= 1:
            break
    if number % 2:  # neither the boat nor its controller then has a scale other than 1
        vessel = replace(vessel, length=None)
    return Case(vessel, vessel, reference, share, number)


def cases(numbers: range) -> list[Case]:
    # The order of the delays is shuffled, so that no shape has one delay.
    shares = np.random.default_rng(7).permutation(np.linspace(0.0, 1.0, len(numbers)))
    return [case(number, float(share)) for number, share in zip(numbers, shares, strict=True)]


class Noisy:
    """A controller that sees the state with the errors of an estimator."""

    def __init__(self, controller: Controller, seed: int) -> None:
        self.controller, self.seed = controller, seed
        self.reset()

    def reset(self) -> None:
        self.controller.reset()
        self._random = np.random.default_rng([self.seed, 3])
        self._error = np.array(ERRORS) * self._random.standard_normal(6)

    def step(self, pose: ArrayLike, velocity: ArrayLike, window: ArrayLike) -> Array:
        seen = np.concatenate([np.asarray(pose), np.asarray(velocity)]) + self._error
        command = self.controller.step(seen[:3], seen[3:], window)
        new = math.sqrt(1 - NOISE_MEMORY**2) * np.array(ERRORS) * self._random.standard_normal(6)
        self._error = NOISE_MEMORY * self._error + new
        return command


def run(controller: Controller, case: Case, condition: str, duration: float | None) -> tuple[float, float, float]:
    """Position error (cm), heading error (degrees), both capped, and mean |Δτ|."""
    sea = Sea.ideal()
    if condition != "still":
        delay = 0.2 * (case.share if condition == "field" else 1 - case.share)
        sea, e = replace(Sea.field(), delay=(delay, delay)), case.vessel.normalized
        munk = 0.5 * e.alpha_r / max(abs(e.c_uv) * case.reference.at(0.0)[3], 1e-9)
        sea = replace(sea, current=min(sea.current, 0.5 * case.vessel.top_speeds[1], munk))
    if condition == "noise":
        controller = Noisy(controller, case.seed)
    duration = min(duration or math.inf, case.reference.duration)
    try:
        m = simulate(controller, case.vessel, case.reference, sea, seed=case.seed, duration=duration).metrics()
    except InputError:
        return (*CAP, 2.0)
    return min(m.position_cm, CAP[0]), min(m.heading_deg, CAP[1]), m.delta_tau


def build(kind: str, vessel: Vessel, drawn: dict[str, float]) -> Controller:
    if kind == "l1":
        return l1.L1(vessel, replace(l1.TUNED, **drawn))
    return rls.RLS(vessel, replace(rls.TUNED, **drawn))


def score(
    kind: str, drawn: dict[str, float], boats: list[Case], duration: float | None, best: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The score of a candidate and what it has in each condition; infinite once it is `WORSE` than the best."""
    found: dict[str, Any] = {}
    for condition in ("still", "field", "noise"):
        rows = [run(build(kind, case.vessel, drawn), case, condition, duration) for case in boats]
        (position, heading, change), products = np.mean(rows, axis=0).tolist(), np.prod(np.array(rows)[:, :2], axis=1)
        part = float(np.mean(np.log(products))) / 2
        part += 2 * max(0.0, math.log(change / SMOOTH.get(condition, SMOOTH["field"])))
        found[condition] = {"score": part, "position_cm": position, "heading_deg": heading, "delta_tau": change}
        if best and sum(found[key]["score"] - best[key]["score"] for key in found) > WORSE:
            return found | {"score": math.inf}
    return found | {"score": sum(found[key]["score"] for key in found) / 3}


def draw(kind: str, random: np.random.Generator, near: dict[str, float] | None, width: float) -> dict[str, float]:
    """A candidate from the whole ranges, or near another, rounded to two digits."""
    drawn = {}
    for name, (low, high) in RANGES[kind].items():
        span = math.log(high / low)
        step = width * span * random.standard_normal() if near else span * random.uniform()
        value = (near[name] if near else low) * math.exp(step)
        drawn[name] = float(f"{min(max(value, low), high):.2g}")
    return drawn


def search(kind: str, log: Callable[[str], None]) -> dict[str, Any]:
    """The best constants of a controller, with its scores, and the number of evaluations."""
    random, boats = np.random.default_rng(0), cases(COARSE)
    trials: list[dict[str, Any]] = []
    for i in range(DRAWN + NEAR):
        best = min(trials, key=by_score) if trials else None
        width = 0.15 - 0.1 * (i - DRAWN) / NEAR
        drawn = draw(kind, random, best["constants"] if best and i >= DRAWN else None, width)
        found = {"constants": drawn} | score(kind, drawn, boats, 24.0, best)
        trials.append(found)
        if best is None or found["score"] < best["score"]:
            log(f"{kind} {i:4d} {line(found)}")
    final = []
    others = cases(FINE)
    for trial in sorted(trials, key=by_score)[:FINAL]:
        final.append({"constants": trial["constants"]} | score(kind, trial["constants"], others, None))
        log(f"{kind} final {line(final[-1])}")
    final.sort(key=by_score)
    return {
        "constants": final[0]["constants"],
        "evaluations": len(trials),
        "final": final,
        "coarse": min(trials, key=by_score),
    }


def by_score(found: dict[str, Any]) -> float:
    value: float = found["score"]
    return value


def line(found: dict[str, Any]) -> str:
    parts = [f"{found['score']:7.3f}"]
    for key in ("still", "field", "noise"):
        if key in found:
            row = found[key]
            parts.append(f"{key} {row['position_cm']:.2f} cm {row['heading_deg']:.2f}° {row['delta_tau']:.3f}")
    return f"{', '.join(parts)} {found['constants']}"
