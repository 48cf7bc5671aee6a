"""The few functions that floats, NumPy, JAX and CasADi spell differently."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

Number = Any
"""A float, a NumPy or JAX array, or a CasADi symbol: whatever the caller computes with."""

Numbers = Any
"""Some of them in a row: a tuple or list, or an array along its first axis."""


def namespace(*values: Number) -> Any:
    """The library whose functions take these values: JAX's or CasADi's where one of them is theirs, else NumPy's."""
    for value in values:
        if hasattr(value, "aval"):
            return value.__array_namespace__()
        if type(value).__module__.startswith("casadi"):
            return sys.modules["casadi"]
    return np


def sin_cos(angle: Number) -> tuple[Number, Number]:
    """Sine and cosine of an angle in radians."""
    if isinstance(angle, float):
        return math.sin(angle), math.cos(angle)
    xp = namespace(angle)
    return xp.sin(angle), xp.cos(angle)


def clip(value: Number, low: Number, high: Number) -> Number:
    """`value`, no less than `low` and no more than `high`; not for CasADi, which needs no bounds inside a model."""
    xp = namespace(value, low, high)
    return xp.minimum(xp.maximum(value, low), high)


def wrap(angle: Number) -> Number:
    """The same direction in [-pi, pi)."""
    return (angle + math.pi) % (2 * math.pi) - math.pi
