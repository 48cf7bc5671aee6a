"""What sails of many hulls say: their errors, the worst of them and why, the thrusters, and what to measure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from anyhull.backend import Array
from anyhull.log import Log
from anyhull.preflight.capability import MEASUREMENTS, PlausibleHull
from anyhull.preflight.sails import Outcome

BANDS = (0.10, 0.50)
"""Distances within which hulls are counted, m; the third is one length."""

AT_LIMIT = 0.99
"""Command of a thruster from which it is at its limit."""

ODD = 1.5
"""Standard deviations from the other hulls from which a component is named as a cause."""

LEAST_SAILS = 6
"""Sails below which nothing is said of what explains their error."""


@dataclass(frozen=True)
class HullResult:
    """One hull and its sail."""

    seed: int
    fit: bool
    """Whether it arrived, was never stopped by the guard, and stayed within the limit."""
    mean_cm: float
    """Mean true distance to the reference; NaN where the boat never got under way, as in the next two."""
    p95_cm: float
    """95th percentile over the run."""
    worst_cm: float
    """At the worst moment."""
    heading_deg: float
    arrived: bool
    """Whether it was at the end of the reference in time."""
    stops: int
    """Stops by the guard."""
    stopped: str
    """Its reaction and reason at the last stop, or empty."""
    unmet: float
    """Share of time in which the thrusters could not give the force that was asked for."""
    at_limit: tuple[float, ...]
    """Share of time at its limit, for each thruster."""
    used: tuple[float, ...]
    """Share of its range that each thruster stays within for 95 % of the time."""
    events: dict[str, int]
    """Events of guard and estimator."""
    failure: str
    """Why there was no run, or empty."""
    measurable: dict[str, float]
    """What an owner could measure of it, SI units."""


@dataclass(frozen=True)
class Thruster:
    """How far a thruster, or the axis of a boat that allocates by itself, was used."""

    name: str
    at_limit: float
    """Share of time at its limit, mean of all sails."""
    at_limit_worst: float
    """Of the sail with most."""
    used: float
    """Share of its range that it stays within for 95 % of the time, mean of all sails."""


@dataclass(frozen=True)
class Measurement:
    """What measuring one quantity would tell."""

    quantity: str
    unit: str
    low: float
    """5th percentile over the hulls."""
    high: float
    """95th percentile."""
    error: float | None
    """Share of the variance of the hulls' log error that it explains, left-out hulls predicted; None with few sails."""
    speed: float
    """The same of the highest speed."""
    turn: float
    """The same of the tightest turn."""
    narrows: float
    """Share of the variance of all three that it explains: what it would narrow the answer by."""


def hull_result(hull: PlausibleHull, outcome: Outcome, limit: float) -> HullResult:
    """The result of a sail; `limit` is the distance (m) within which the boat must stay."""
    log = outcome.log
    if log is None:
        nan = math.nan
        return HullResult(
            hull.seed, False, nan, nan, nan, nan, False, 0, "", nan, (), (), {}, outcome.failure, hull.measurable
        )
    error, commands = 100 * log.position_error, np.abs(_commands(log))
    events = {what: int(n) for what, n in sorted(log.about["event_counts"].items()) if what != "reaction"}
    stops = events.pop("stop", 0)
    arrived, worst = bool(log.about["arrived"]), float(error.max())
    fit = arrived and not stops and worst <= 100 * limit
    return HullResult(
        hull.seed,
        fit,
        float(error.mean()),
        float(np.percentile(error, 95)),
        worst,
        log.metrics().heading_deg,
        arrived,
        stops,
        _stopped(log) if stops else "",
        float(log.about["unmet"]),
        tuple((commands >= AT_LIMIT).mean(axis=0).tolist()),
        tuple(np.percentile(commands, 95, axis=0).tolist()),
        events,
        "",
        hull.measurable,
    )


def _stopped(log: Log) -> str:
    """The last reaction of the guard by which the boat stopped, with its reason."""
    details = [str(detail) for _, what, detail in log.about["events"] if what == "reaction"]
    return next((text for text in reversed(details) if text.startswith(("ramp", "handover"))), "")


def within(results: Sequence[HullResult], distance: float) -> float:
    """The share of the hulls that arrived and were within a distance (m) of the reference at every moment."""
    return sum(r.arrived and r.worst_cm <= 100 * distance for r in results) / len(results)


def at_least(successes: int, trials: int, confidence: float = 0.95) -> float:
    """The share of all hulls that is fit at least, by the sails, with a confidence (Clopper and Pearson, 1934)."""
    if successes == 0:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(50):
        p = (low + high) / 2
        tail = sum(math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(successes, trials + 1))
        low, high = (p, high) if tail < 1 - confidence else (low, p)
    return low


def worst_of(results: Sequence[HullResult]) -> int:
    """The index of the worst hull: one that never sailed, else one that did not arrive, else the farthest off."""

    def badness(i: int) -> tuple[bool, bool, float]:
        r = results[i]
        return (r.failure != "", not r.arrived, r.worst_cm if math.isfinite(r.worst_cm) else 0.0)

    return max(range(len(results)), key=badness)


def causes(result: HullResult, hull: PlausibleHull, fleet: Sequence[PlausibleHull], speed: float) -> list[str]:
    """Why a hull may be the worst: its extreme components, thrusters at their limits, events."""
    found = [result.failure] if result.failure else []
    own, others = hull.components(speed), [other.components(speed) for other in fleet]
    scores = {}
    for name, value in own.items():
        values = np.array([other[name] for other in others])
        logs = "centre" not in name and values.min() > 0 and value > 0
        values, value = (np.log(values), math.log(value)) if logs else (values, value)
        spread = float(values.std())
        scores[name] = (value - float(values.mean())) / spread if spread > 1e-9 else 0.0
    ranked = sorted(scores, key=lambda name: -abs(scores[name]))
    for name in [name for name in ranked[:3] if abs(scores[name]) >= ODD]:
        side = "above" if scores[name] > 0 else "below"
        found.append(f"{name} {abs(scores[name]):.1f} standard deviations {side} the mean of the hulls")
    if abs(scores[ranked[0]]) < ODD:
        found.append("an ordinary hull")
    for i, share in enumerate(result.at_limit):
        if share >= 0.01:
            found.append(f"{thruster_name(hull, i)} at its limit {100 * share:.0f} % of the time")
    if result.stops:
        found.append(f"stopped by the guard {times(result.stops)} ({result.stopped})")
    found += [f"event {what} {times(n)}" for what, n in result.events.items()]
    if not result.arrived and not result.failure:
        found.append("not at the end of the course in time")
    return found


def times(n: int) -> str:
    """How often, in words."""
    return "once" if n == 1 else f"{n} times"


def thruster_name(hull: PlausibleHull, i: int) -> str:
    """As `anyhull thrusters` numbers it, with its place."""
    if i >= len(hull.thrusters):
        return f"thruster {i}"
    t = hull.thrusters[i]
    return f"thruster {i} ({t.kind}, x {t.x:+.2f} m, y {t.y:+.2f} m)"


def thruster_use(results: Sequence[HullResult], hull: PlausibleHull) -> list[Thruster]:
    """How long each thruster was at its limit; most used first."""
    shares = np.array([r.at_limit for r in results if r.at_limit])
    if not shares.size:
        return []
    used = np.mean([r.used for r in results if r.used], axis=0).tolist()
    means, most = shares.mean(axis=0).tolist(), shares.max(axis=0).tolist()
    axes = ("surge", "sway", "yaw")
    wrench = len(means) == 3 and len(hull.thrusters) != 3
    names = [axes[i] if wrench else thruster_name(hull, i) for i in range(len(means))]
    rows = [Thruster(*row) for row in zip(names, means, most, used, strict=True)]
    return sorted(rows, key=lambda t: (-t.at_limit, -t.at_limit_worst, -t.used))


def measurements(
    quantities: Sequence[str],
    sailed: Sequence[PlausibleHull],
    results: Sequence[HullResult],
    fleet: Sequence[PlausibleHull],
    speeds: Sequence[float],
    radii: Sequence[float],
    room: float,
) -> list[Measurement]:
    """What each quantity would tell, that which narrows the answer most first.

    The answer has three parts: the error of the hulls that were sailed, and the highest speed and the tightest turn
    of all. Each is a logarithm regressed on that of the quantity, and counts by its variance. The error of a hull that
    is not fit counts as `room` (m) at least.
    """
    errors = [r.mean_cm if r.fit else max(np.nan_to_num(r.mean_cm), 100 * room) for r in results]
    seen = [i for i, error in enumerate(errors) if math.isfinite(error) and error > 0]
    values = {q: [hull.measurable[q] for hull in fleet] for q in quantities}
    own = {q: [sailed[i].measurable[q] for i in seen] for q in quantities}
    found = []
    for q in quantities:
        parts = [
            explained(own[q], [errors[i] for i in seen]) if len(seen) >= LEAST_SAILS else None,
            explained(values[q], speeds),
            explained(values[q], radii),
        ]
        known = [(share, variance) for part in parts if part is not None for share, variance in [part]]
        total = sum(variance for _, variance in known)
        narrows = sum(share * variance for share, variance in known) / total if total > 0 else 0.0
        error, speed, turn = (None if part is None else part[0] for part in parts)
        low, high = np.percentile(values[q], [5, 95]).tolist()
        found.append(Measurement(q, MEASUREMENTS[q], low, high, error, speed or 0.0, turn or 0.0, narrows))
    return sorted(found, key=lambda m: -m.narrows)


def explained(quantity: ArrayLike, answer: ArrayLike) -> tuple[float, float]:
    """The share of the variance of log answer that a parabola in log quantity predicts, and that variance.

    Each hull is predicted from the others, so that chance explains nothing: 1 - PRESS / SS, at least 0. A parabola,
    since hulls may fail at either end.
    """
    pairs = np.stack([np.asarray(quantity, float), np.asarray(answer, float)])
    pairs = pairs[:, ((pairs > 0) & np.isfinite(pairs)).all(axis=0)]
    if pairs.shape[1] < 5:
        return 0.0, 0.0
    x, y = np.log(pairs)
    n, dy, variance, spread = len(x), y - y.mean(), float(y.var()), float(x.std())
    if spread < 1e-6 or variance < 1e-12:
        return 0.0, variance
    z = (x - x.mean()) / spread
    basis, _ = np.linalg.qr(np.stack([np.ones(n), z, z * z], axis=1))
    leverage = (basis**2).sum(axis=1)
    press = (((y - basis @ (basis.T @ y)) / np.maximum(1 - leverage, 1e-9)) ** 2).sum()
    left_out = ((dy * n / (n - 1)) ** 2).sum()
    return max(0.0, float(1 - press / left_out)), variance


def _commands(log: Log) -> Array:
    """Commands of the thrusters, or of the axes where the boat allocates by itself."""
    return log.thrusters if log.thrusters is not None and log.thrusters.size else log.command


def in_words(quantity: str, value: float) -> str:
    """A measurable quantity with its unit, as an owner reads it off."""
    if quantity == "turning rate":
        return f"{math.degrees(value):.3g} °/s"
    return f"{value:.3g} {MEASUREMENTS[quantity]}" if value < 1000 else f"{value:.0f} {MEASUREMENTS[quantity]}"
