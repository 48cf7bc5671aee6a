"""The interface of every controller."""

from __future__ import annotations

import math
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from anyhull.backend import Array
from anyhull.errors import InputError
from anyhull.reference import PREVIEW

SHAPES = {"pose": (3,), "velocity": (3,), "window": (PREVIEW + 1, 6)}
"""Shapes of the inputs of `Controller.step`."""


class Controller(Protocol):
    """Steers one boat: `reset` before a run, then `step` once per control period."""

    def reset(self) -> None:
        """Clear the internal state before a new run."""

    def step(self, pose: ArrayLike, velocity: ArrayLike, window: ArrayLike) -> Array:
        """The normalized command in [-1, 1]³ for the coming period.

        `pose` is (x, y, psi) in the inertial frame, `velocity` (u, v, r) in the body frame, `window` (11, 6) the
        reference now and over the next ten periods.
        """


@runtime_checkable
class Informed(Protocol):
    """A controller that is told before a step what was sent to the boat, where a guard may change its command."""

    def sent(self, command: ArrayLike) -> None:
        """What was sent to the boat in place of the last command."""


@runtime_checkable
class Timed(Protocol):
    """A controller that has a simpler command at hand where its own would be late."""

    budget: float
    """Time after which a step goes on with the simpler command, s."""


def check_inputs(pose: ArrayLike, velocity: ArrayLike, window: ArrayLike) -> tuple[Array, Array, Array]:
    """The inputs of a step as float64 arrays; raises for a wrong shape or a non-finite value."""
    arrays = []
    for name, value, shape in zip(SHAPES, (pose, velocity, window), SHAPES.values(), strict=True):
        array = np.asarray(value, dtype=np.float64)
        if array.shape != shape:
            raise InputError(f"{name} of shape {array.shape}: must have shape {shape}")
        # A finite sum of squares implies finite elements, in a quarter of the time of np.isfinite.
        if not math.isfinite(np.vdot(array, array)) and not np.isfinite(array).all():
            index = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
            raise InputError(f"{name}{list(index)} = {array[index]}: must be a finite number")
        arrays.append(array)
    return arrays[0], arrays[1], arrays[2]
