"""The hulls that a boat may have: its own where its file has hydrodynamics, else plausible ones."""

from __future__ import annotations

import functools

import numpy as np

from anyhull.backend import Array
from anyhull.hydrodynamics import Normalized
from anyhull.vessel import Vessel

COUNT = 16
"""Plausible hulls of a bound."""

MANY = 200
"""Plausible hulls of a range that a person reads."""

CAUTION = 0.8
"""Share of these hulls for which a bound holds."""


@functools.lru_cache(maxsize=64)
def possible(vessel: Vessel) -> tuple[Vessel, ...]:
    """The boat itself where its hydrodynamics are known, else its first `COUNT` plausible hulls."""
    return (vessel,) if vessel.hydrodynamics else tuple(vessel.plausible(seed) for seed in range(COUNT))


@functools.lru_cache(maxsize=64)
def models(vessel: Vessel) -> tuple[Array, tuple[Array, Array]]:
    """Of the possible hulls e, shape (9, hulls, 1), and quadratic and cubic drag, each (3, hulls, 1)."""
    hulls = possible(vessel)
    drag = [np.array(terms).T[..., None] for terms in zip(*(hull.drag for hull in hulls), strict=True)]
    return np.array([hull.normalized for hull in hulls]).T[..., None], (drag[0], drag[1])


def at_most(values: Array) -> Array:
    """A bound that `CAUTION` of the hulls stay below, of values of shape (hulls, …)."""
    found: Array = np.sort(values, axis=0)[int(np.ceil(CAUTION * (len(values) - 1)))]
    return found


def at_least(values: Array) -> Array:
    """A bound that `CAUTION` of the hulls stay above, of values of shape (hulls, …)."""
    return -at_most(-values)


def ranges(vessel: Vessel) -> dict[str, tuple[float, float]]:
    """The 5 to 95 % range over `MANY` plausible hulls: mass, top speeds, and the nine components at working speed."""
    hulls = [vessel.plausible(seed) for seed in range(MANY)]
    found: dict[str, list[float]] = {"m": [hull.mass for hull in hulls]}
    for i, name in enumerate(("top_speed", "top_sway_speed", "top_yaw_rate")):
        found[name] = [hull.top_speeds[i] for hull in hulls]
    found |= {name: [hull.effective()[i] for hull in hulls] for i, name in enumerate(Normalized._fields)}
    bounds = {name: np.quantile(values, [0.05, 0.95]).tolist() for name, values in found.items()}
    return {name: (low, high) for name, (low, high) in bounds.items()}


def simulated(vessel: Vessel, seed: int) -> Vessel:
    """What a simulation sails: the boat itself where its hydrodynamics are known, else the plausible hull `seed`."""
    return vessel if vessel.hydrodynamics else vessel.plausible(seed)


def note(vessel: Vessel, seed: int, runs: int = 1) -> str:
    """One line that says so where a simulation draws plausible hulls; empty otherwise."""
    if vessel.hydrodynamics:
        return ""
    which = f"hull {seed}" if runs == 1 else f"hulls {seed} to {seed + runs - 1}"
    return f"no [hydrodynamics]: simulating plausible {which} of its file"


def drawn(vessel: Vessel, seed: int) -> dict[str, str]:
    """`note` for a log's `about`."""
    return {"hull": note(vessel, seed)} if not vessel.hydrodynamics else {}
