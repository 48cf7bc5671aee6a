"""What a policy computes in a step, in NumPy for one boat: each part has buffers of its own and allocates nothing."""

from __future__ import annotations

import cmath
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyhull.backend import Array, wrap
from anyhull.dynamics import PERIOD
from anyhull.observation import ERRORS, HISTORY, HISTORY_SIZE, OBSERVATION, OBSERVATION_SIZE, STILL, Scales
from anyhull.reference import PREVIEW

Tensor = NDArray[np.float32]


class Layer(NamedTuple):
    """An affine map."""

    weight: Tensor
    """(inputs, outputs)."""
    bias: Tensor
    """(outputs,)."""


class Cell(NamedTuple):
    """A gated recurrent unit as Equinox's GRUCell has it: rows for reset, update and the new memory, in this order."""

    weight_ih: Tensor
    """(3 n, inputs)."""
    weight_hh: Tensor
    """(3 n, n)."""
    bias: Tensor
    """(3 n,)."""
    bias_n: Tensor
    """Of what the new memory keeps of the old, (n,)."""


class Features:
    """Observation and history as a network reads them: `observe`, `history` and their scales in a tenth of the time."""

    def __init__(self, scales: Scales) -> None:
        self._scale = scales.error
        self._magnify = np.repeat([scales.gain, scales.velocity, scales.command], 3)
        self.o = np.zeros(OBSERVATION_SIZE, np.float32)
        """The scaled observation of the last call."""
        self.h = np.zeros(HISTORY_SIZE, np.float32)
        """The scaled history of the last call."""
        self._past = np.zeros(HISTORY_SIZE)
        self._origin = np.zeros(6)
        self._seen = np.zeros((PREVIEW + 1, 6))
        self._places = self._seen.view(np.complex128)[:, 0]  # x + iy, which one product turns
        self._turns = self._seen[:, 2]
        self._errors = self._seen[0]
        at = OBSERVATION
        self._error, self._velocity, self._previous = (self.o[part] for part in (ERRORS, at.velocity, at.previous))
        self._lookahead = self.o[at.lookahead].reshape(PREVIEW, 6)
        self._gained, self._speed, self._given = (self._past[part] for part in HISTORY)

    def __call__(self, pose: Array, previous_pose: Array, velocity: Array, window: Array, previous: Array) -> None:
        """Fill `o` and `h`, given also the pose one period ago and the `previous` command."""
        x, y, psi = pose.tolist()
        into_body = cmath.rect(1.0, -psi)
        self._origin[:3] = pose
        np.subtract(window, self._origin, out=self._seen)
        np.multiply(self._places, into_body, out=self._places)
        turns, errors, gained = self._turns, self._errors, self._gained
        turns += math.pi
        turns %= 2 * math.pi
        turns -= math.pi
        errors[3:] -= velocity
        errors *= self._scale
        np.arcsinh(errors, out=errors)
        self._error[...] = errors
        self._velocity[...] = velocity
        self._lookahead[...] = self._seen[1:]
        self._previous[...] = previous

        x_before, y_before, psi_before = previous_pose.tolist()
        moved = complex(x - x_before, y - y_before) * into_body
        turned = wrap(psi - psi_before)
        gained[...] = self._speed[...] = velocity
        if moved.real**2 + moved.imag**2 + turned**2 > STILL**2:
            gained -= (moved.real / PERIOD, moved.imag / PERIOD, turned / PERIOD)
        else:
            gained[...] = 0.0
        self._given[...] = previous
        self._past *= self._magnify
        self.h[:] = np.arcsinh(self._past, out=self._past)


class MLP:
    """Hidden layers with ELU, and a linear output, which the next call overwrites."""

    def __init__(self, layers: list[Layer]) -> None:
        self._hidden = [(*layer, np.empty_like(layer.bias), np.empty_like(layer.bias)) for layer in layers[:-1]]
        self._last = (*layers[-1], np.empty_like(layers[-1].bias))

    def __call__(self, x: Tensor, factors: Tensor | None = None) -> Tensor:
        """The output for input `x`; `factors` multiply what goes into the last layer."""
        for weight, bias, y, scratch in self._hidden:
            x.dot(weight, y)
            y += bias
            x = elu(y, scratch)
        if factors is not None:
            x *= factors
        weight, bias, y = self._last
        x.dot(weight, y)
        y += bias
        return y


class GRU:
    """A gated recurrent unit and its memory."""

    def __init__(self, cell: Cell) -> None:
        self.memory = np.zeros_like(cell.bias_n)
        size = self.memory.size
        self._inwards, self._back = (np.ascontiguousarray(weight.T) for weight in (cell.weight_ih, cell.weight_hh))
        self._bias, self._bias_n = cell.bias, cell.bias_n
        self._seen, self._kept = np.empty_like(cell.bias), np.empty_like(cell.bias)
        self._gates, self._kept_gates = self._seen[: 2 * size], self._kept[: 2 * size]
        self._reset, self._update = self._seen[:size], self._seen[size : 2 * size]
        self._seen_new, self._new = self._seen[2 * size :], self._kept[2 * size :]

    def __call__(self, x: Tensor) -> Tensor:
        """The memory after input `x`, which the next call overwrites."""
        gates, new, memory = self._gates, self._new, self.memory
        x.dot(self._inwards, self._seen)
        memory.dot(self._back, self._kept)
        self._seen += self._bias
        gates += self._kept_gates
        # The logistic function by way of tanh, which cannot overflow.
        gates *= 0.5
        np.tanh(gates, out=gates)
        gates += 1.0
        gates *= 0.5
        new += self._bias_n
        new *= self._reset
        new += self._seen_new
        np.tanh(new, out=new)
        memory -= new
        memory *= self._update
        memory += new
        return memory


def elu(y: Tensor, scratch: Tensor) -> Tensor:
    """`y`, with exp(y) - 1 in place of what is negative."""
    np.minimum(y, 0.0, out=scratch)
    np.expm1(scratch, out=scratch)
    # exp(y) - 1 is never less than y, and of a positive number, cut to zero above, it is zero.
    np.maximum(y, scratch, out=y)
    return y
