"""Inference of a policy in NumPy for one boat; each module has preallocated buffers."""

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
    """Weights of a GRU in the layout of Equinox's GRUCell: rows for reset gate, update gate and candidate."""

    weight_ih: Tensor
    """(3 n, inputs)."""
    weight_hh: Tensor
    """(3 n, n)."""
    bias: Tensor
    """(3 n,)."""
    bias_n: Tensor
    """Recurrent bias of the candidate, (n,)."""


class Features:
    """Scaled inputs of the networks: `observe`, `history` and their scaling in a tenth of the time."""

    def __init__(self, scales: Scales) -> None:
        self._printed = scales.printed
        self._scale = scales.error
        self._history_scale = np.repeat([scales.gain, scales.velocity, scales.command], 3)
        self.o = np.zeros(OBSERVATION_SIZE, np.float32)
        """The scaled observation of the last call."""
        self.h = np.zeros(HISTORY_SIZE, np.float32)
        """The scaled history of the last call."""
        self._history = np.zeros(HISTORY_SIZE)
        self._origin = np.zeros(6)
        self._relative = np.zeros((PREVIEW + 1, 6))
        self._positions = self._relative.view(np.complex128)[:, 0]  # x + iy, rotated by one product
        self._headings = self._relative[:, 2]
        self._errors = self._relative[0]
        at = OBSERVATION
        self._error, self._velocity, self._previous = (self.o[part] for part in (ERRORS, at.velocity, at.previous))
        self._lookahead = self.o[at.lookahead].reshape(PREVIEW, 6)
        self._gain, self._history_velocity, self._history_command = (self._history[part] for part in HISTORY)

    def __call__(self, pose: Array, previous_pose: Array, velocity: Array, window: Array, previous: Array) -> None:
        """Fill `o` and `h`, given also the pose one period ago and the `previous` command."""
        x, y, psi = pose.tolist()
        rotation = cmath.rect(1.0, -psi)
        self._origin[:3] = pose
        np.subtract(window, self._origin, out=self._relative)
        np.multiply(self._positions, rotation, out=self._positions)
        headings, errors, gain = self._headings, self._errors, self._gain
        headings += math.pi
        headings %= 2 * math.pi
        headings -= math.pi
        errors[3:] -= velocity
        if not self._printed:
            errors *= self._scale
            np.arcsinh(errors, out=errors)
        self._error[...] = errors
        self._velocity[...] = velocity
        self._lookahead[...] = self._relative[1:]
        self._previous[...] = previous

        x_before, y_before, psi_before = previous_pose.tolist()
        displacement = complex(x - x_before, y - y_before) * rotation
        heading_change = wrap(psi - psi_before)
        gain[...] = self._history_velocity[...] = velocity
        self._history_command[...] = previous
        moved = displacement.real**2 + displacement.imag**2 + heading_change**2 > STILL**2
        if self._printed:
            gain[...] = (displacement.real, displacement.imag, heading_change) if moved else PERIOD * velocity
            self.h[:] = self._history
            return
        if moved:
            gain -= (displacement.real / PERIOD, displacement.imag / PERIOD, heading_change / PERIOD)
        else:
            gain[...] = 0.0
        self._history *= self._history_scale
        self.h[:] = np.arcsinh(self._history, out=self._history)


class MLP:
    """Hidden layers with ELU and a linear output; the next call overwrites the result."""

    def __init__(self, layers: list[Layer]) -> None:
        self._hidden = [(*layer, np.empty_like(layer.bias), np.empty_like(layer.bias)) for layer in layers[:-1]]
        self._last = (*layers[-1], np.empty_like(layers[-1].bias))

    def __call__(self, x: Tensor, factors: Tensor | None = None) -> Tensor:
        """The output for input `x`; `factors` multiply the input of the last layer."""
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
        self._weight_ih, self._weight_hh = map(np.ascontiguousarray, (cell.weight_ih.T, cell.weight_hh.T))
        self._bias, self._bias_n = cell.bias, cell.bias_n
        self._from_input, self._from_memory = np.empty_like(cell.bias), np.empty_like(cell.bias)
        self._gates, self._memory_gates = self._from_input[: 2 * size], self._from_memory[: 2 * size]
        self._reset, self._update = self._from_input[:size], self._from_input[size : 2 * size]
        self._input_new, self._new = self._from_input[2 * size :], self._from_memory[2 * size :]

    def __call__(self, x: Tensor) -> Tensor:
        """The memory after input `x`; the next call overwrites it."""
        gates, new, memory = self._gates, self._new, self.memory
        x.dot(self._weight_ih, self._from_input)
        memory.dot(self._weight_hh, self._from_memory)
        self._from_input += self._bias
        gates += self._memory_gates
        # The logistic function as (1 + tanh(x / 2)) / 2, which cannot overflow.
        gates *= 0.5
        np.tanh(gates, out=gates)
        gates += 1.0
        gates *= 0.5
        new += self._bias_n
        new *= self._reset
        new += self._input_new
        np.tanh(new, out=new)
        memory -= new
        memory *= self._update
        memory += new
        return memory


def elu(y: Tensor, scratch: Tensor) -> Tensor:
    """ELU of `y`, in place."""
    np.minimum(y, 0.0, out=scratch)
    np.expm1(scratch, out=scratch)
    # ELU(y) = max(y, exp(min(y, 0)) - 1), since exp(y) - 1 >= y.
    np.maximum(y, scratch, out=y)
    return y
