"""Arithmetic for floats, NumPy, JAX and CasADi: its types, and the functions whose names differ between them."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@runtime_checkable
class Number(Protocol):
    """A float, a NumPy or JAX array, or a CasADi symbol."""

    def __add__(self, other: Any, /) -> Any: ...
    def __radd__(self, other: Any, /) -> Any: ...
    def __sub__(self, other: Any, /) -> Any: ...
    def __rsub__(self, other: Any, /) -> Any: ...
    def __mul__(self, other: Any, /) -> Any: ...
    def __rmul__(self, other: Any, /) -> Any: ...
    def __truediv__(self, other: Any, /) -> Any: ...
    def __rtruediv__(self, other: Any, /) -> Any: ...
    def __neg__(self) -> Any: ...
    def __rpow__(self, other: Any, /) -> Any: ...
    def __abs__(self) -> Any: ...


@runtime_checkable
class Numbers(Protocol):
    """A sequence of them: a tuple, a list, or an array along its first axis."""

    def __getitem__(self, index: Any, /) -> Any: ...
    def __iter__(self) -> Iterator[Any]: ...


def namespace(*values: Any) -> Any:
    """The array library of these values: JAX or CasADi if one value belongs to it, else NumPy."""
    for value in values:
        if hasattr(value, "aval"):
            return value.__array_namespace__()
        if type(value).__module__.startswith("casadi"):
            return sys.modules["casadi"]
    return np


def sin_cos(angle: Any) -> tuple[Any, Any]:
    """Sine and cosine of an angle in radians."""
    if isinstance(angle, float):
        return math.sin(angle), math.cos(angle)
    xp = namespace(angle)
    return xp.sin(angle), xp.cos(angle)


def clip(value: Any, low: Any, high: Any) -> Any:
    """`value` limited to [`low`, `high`]; not for CasADi, whose models need no bounds."""
    xp = namespace(value, low, high)
    return xp.minimum(xp.maximum(value, low), high)


def wrap(angle: Any) -> Any:
    """The angle wrapped to [-pi, pi)."""
    return (angle + math.pi) % (2 * math.pi) - math.pi


def to_body(x: Number, y: Number, psi: Number) -> tuple[Any, Any]:
    """An inertial-frame vector in the body frame at heading psi, R(psi)ᵀ (x, y)."""
    sin, cos = sin_cos(psi)
    return cos * x + sin * y, cos * y - sin * x


def to_inertial(x: Number, y: Number, psi: Number) -> tuple[Any, Any]:
    """A body-frame vector at heading psi in the inertial frame, R(psi) (x, y)."""
    sin, cos = sin_cos(psi)
    return cos * x - sin * y, sin * x + cos * y
