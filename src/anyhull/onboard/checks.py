"""Checks of the guard on untrusted values: a state, a latent, a command of any type."""

from __future__ import annotations

from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike

from anyhull.backend import Array, to_inertial
from anyhull.controller import Controller
from anyhull.errors import InputError
from anyhull.hydrodynamics import Normalized
from anyhull.onboard.fence import Fence

Fault = Literal[
    "command",
    "state",
    "clock",
    "lost",
    "dead_reckoning",
    "overrun",
    "rate",
    "fence",
    "out_of_distribution",
    "arming",
    "uplink",
    "off_path",
    "no_progress",
    "mismatch",
    "thruster",
    "battery",
    "leak",
    "tilt",
    "operator",
]

LATENT_MARGIN = 0.25
"""Fraction of the latent's range in training by which it may leave that range on either side."""

DYNAMICS_MARGIN = 2.0
"""Factor by which the estimate of e may leave its range in training at either end. What a boat's file says gives its
accelerations to this factor, and by them its scale and derating are chosen."""

SIGNIFICANT = 2.0
"""Standard deviations of the estimate of e by which it must be outside as well: at rest nothing tells the dynamics."""

MOST_SPREAD = 5.0
"""Largest standard deviation of the logarithm that counts."""

KNOWN = ("ok", "dead reckoning")
"""Healths of an estimate whose position can be judged."""

TIME_TOLERANCE = 1e-3
"""Rounding of clocks, s."""

Bounds = tuple[ArrayLike, ArrayLike]
"""Least and largest values, each of shape (n,)."""


class EstimatedState(Protocol):
    """The state that the guard checks; `anyhull.onboard.Estimate` is one."""

    @property
    def time(self) -> float: ...
    @property
    def pose(self) -> Array: ...
    @property
    def velocity(self) -> Array: ...
    @property
    def health(self) -> str: ...
    @property
    def reason(self) -> str: ...


def check_state(
    state: Any, now: float | None, max_age: float, fence: Fence | None, stopping_time: float
) -> dict[Fault, str]:
    """Faults of an estimated state at `now`, s, in its clock."""
    if state is None:
        return {"state": "missing"}
    pose, velocity = numbers(getattr(state, "pose", None), 3), numbers(getattr(state, "velocity", None), 3)
    time = numbers(getattr(state, "time", None), None)
    health, reason = brief(getattr(state, "health", None)), brief(getattr(state, "reason", ""))
    faults: dict[Fault, str] = {}
    if health == "dead reckoning":
        faults["dead_reckoning"] = reason
    elif health != "ok":
        faults["lost"] = f"{health}, {reason}"
    if pose is None or velocity is None or time is None:
        faults["state"] = "not finite"
        return faults
    if now is not None and abs(now - float(time)) > max_age + TIME_TOLERANCE:
        faults["state"] = f"{now - float(time):.2g} s old"
    if fence is not None and health in KNOWN:
        x, y, psi = pose.tolist()
        v_x, v_y = to_inertial(float(velocity[0]), float(velocity[1]), psi)
        margin = fence.margin(x, y)
        stopped = fence.margin(x + v_x * stopping_time, y + v_y * stopping_time)
        # A margin that is not a number is outside too.
        if not margin >= 0:
            faults["fence"] = f"{-margin:.2f} m outside"
        elif not stopped >= 0:
            faults["fence"] = f"{margin:.2f} m inside, too close to stop"
    return faults


def check_range(name: str, value: Any, bounds: tuple[Array, Array] | None) -> dict[Fault, str]:
    """The fault of a vector outside its range in training; none where one of the two is not known."""
    if value is None or bounds is None:
        return {}
    low, high = bounds
    found = numbers(value, low.size)
    if found is None:
        return {"out_of_distribution": f"{name} not {low.size} finite numbers"}
    for i in np.flatnonzero((found < low) | (found > high)):
        detail = f"{name}[{i}] = {found[i]:.3g} outside [{low[i]:.3g}, {high[i]:.3g}]"
        return {"out_of_distribution": detail}
    return {}


def check_dynamics(e: Any, spread: Any, bounds: tuple[Array, Array] | None) -> dict[Fault, str]:
    """The fault of an estimate of e outside its range in training by more than its margins, see `SIGNIFICANT`.

    `spread` is the standard deviation of the logarithm of each component, or None.
    """
    if e is None or bounds is None:
        return {}
    low, high = bounds
    if spread is None:
        factor = np.full(low.size, DYNAMICS_MARGIN)
    elif (found := numbers(spread, low.size)) is None:
        return {"out_of_distribution": f"spread of dynamics not {low.size} finite numbers"}
    else:
        factor = np.maximum(np.exp(SIGNIFICANT * np.clip(found, 0.0, MOST_SPREAD)), DYNAMICS_MARGIN)
    return check_range("dynamics", e, (_beyond(low, factor, -1), _beyond(high, factor, 1)))


def _beyond(bound: Array, factor: Array, side: int) -> Array:
    """A bound moved outward by a factor; `side` is 1 for an upper one."""
    return np.where(side * bound > 0, bound * factor, bound / factor)


def numbers(value: Any, size: int | None) -> Array | None:
    """Finite numbers of shape (size,), or () for None; None for any other value."""
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "iuf" or array.shape != (() if size is None else (size,)):
            return None
        array = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    return array if np.isfinite(array).all() else None


def brief(value: Any) -> str:
    """A value on one line of a log."""
    return " ".join((value if isinstance(value, str) else repr(value)).split())[:60]


def checked(name: str, bounds: Bounds | None) -> tuple[Array, Array] | None:
    if bounds is None:
        return None
    low, high = (np.asarray(bound, dtype=np.float64) for bound in bounds)
    if low.ndim != 1 or low.shape != high.shape or not (low <= high).all():
        raise InputError(f"{name} of shapes {low.shape}, {high.shape}: must be two rows of numbers, the lower first")
    return low, high


def latent_range(controller: Controller) -> tuple[Array, Array] | None:
    """The latent's range in training, widened by `LATENT_MARGIN`."""
    bounds = getattr(controller, "latent_range", None)
    if bounds is None:
        return None
    margin = LATENT_MARGIN * (bounds[1] - bounds[0])
    return bounds[0] - margin, bounds[1] + margin


def dynamics_range(controller: Controller) -> tuple[Array, Array] | None:
    """The range of e, in SI, on which the controller's policy was trained."""
    envelope = getattr(controller, "envelope", None)
    if envelope is None:
        return None
    ranges = np.array([envelope[component] for component in Normalized._fields], dtype=np.float64)
    low, high = (Normalized(*column) for column in ranges.T.tolist())
    in_si = getattr(controller, "in_si", Normalized._make)
    return np.array(in_si(low)), np.array(in_si(high))
