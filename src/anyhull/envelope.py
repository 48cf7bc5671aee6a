"""The envelope of a policy, the range of each component of e in its training, and boats outside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from anyhull.hydrodynamics import Normalized, Triple


class OutOfRange(NamedTuple):
    """A component of e that lies outside the range that a policy was trained on, and what to do about it."""

    component: str
    value: float
    low: float
    high: float
    advice: str


def outside(e: Normalized, limits: Triple, envelope: Mapping[str, tuple[float, float]]) -> list[OutOfRange]:
    """The components of e, in a policy's units, outside its `envelope`; `limits` are what it uses (N, N, N·m)."""
    return [
        OutOfRange(component, value, low, high, _advice(component, value, low, high, limits))
        for component, value in e._asdict().items()
        for low, high in [envelope[component]]
        if not low <= value <= high
    ]


def _advice(component: str, value: float, low: float, high: float, limits: Triple) -> str:
    kind, axis = component.rsplit("_", 1)
    if kind == "alpha":
        i = "uvr".index(axis)
        limit, unit = ("Fx", "Fy", "Mz")[i], ("N", "N", "N·m")[i]
        if value == 0:
            return f"no authority on this axis ({limit} = 0): it needs a policy for boats without sway force"
        if value < low:
            return "weaker than any boat in training: ask for slower references and try it in simulation first"
        return f"derate {limit} to {limits[i] * high / value:.4g} {unit} or less"
    if kind == "inv_tau":
        return (
            "hardly any damping: expect overshoot, and try it in simulation first"
            if value < low
            else "more damping than any boat in training: expect lag, and try it in simulation first"
        )
    return "a coupling no boat in training had: try it in simulation at low speed first"
