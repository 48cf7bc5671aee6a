"""The modules of a policy from the tensors of its file, checked for shapes and magnitude: NumPy only."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from anyhull.errors import InputError
from anyhull.numpy_policy import MLP, Cell, Layer, Tensor
from anyhull.observation import HISTORY_SIZE, MODULATION, OBSERVATION_SIZE, PRIVILEGED, scale_privileged
from anyhull.scale import derating
from anyhull.vessel import Vessel

Weights = dict[str, Tensor]

KINDS = ("teacher", "student", "mean-latent", "recurrent")
"""Kinds of policies."""

LARGEST_INPUT, LARGEST_OUTPUT = 1e9, 1e35
"""Magnitude of an observation (m, m/s), and that of a number in the networks, which hold at most 3e38."""


class Parts(NamedTuple):
    """The modules of a policy of any kind; a module that the kind lacks is empty or None."""

    actor: list[Layer]
    """From observation and latent to the command; for a recurrent policy, from the memory."""
    modulation: Layer | None
    """From the latent to the logarithms of factors on the actor's last features."""
    fixed_latent: Tensor
    """The latent of a policy that does not estimate it, (n,)."""
    cell: Cell | None
    """From the history to the memory."""
    head: list[Layer]
    """From the memory to the latent."""
    dynamics_head: list[Layer]
    """From the memory to mean and logarithm of the standard deviation of the scaled privileged vector."""
    compress: list[Layer]
    """From the observation to the first part of the GRU's input; the history is the second."""


def unpack(weights: Weights, about: dict[str, Any], vessel: Vessel | None = None) -> Parts:
    """The modules of a policy; `vessel` is for teachers only: their privileged input is its dynamics."""
    kind = about["kind"]
    if kind not in KINDS:
        raise InputError(f"kind = {kind!r}: must be a policy, one of {', '.join(KINDS)}")
    body = "teacher." if kind in ("student", "mean-latent") else ""
    latent = np.zeros(0, np.float32)
    cell, head, dynamics_head, compress = None, list[Layer](), list[Layer](), list[Layer]()
    if kind == "mean-latent":
        latent = tensor(weights, "fixed_latent", (len(weights["fixed_latent"]),))
    elif kind == "teacher":
        latent = _encode(weights, about, vessel)
    elif kind == "student":
        cell = _cell(weights, "adapter.cell.", HISTORY_SIZE)
        head = _layers(weights, "adapter.projection.", cell.bias_n.size)
        latent = np.zeros_like(head[-1].bias)
        dynamics_head = _layers(weights, "adapter.dynamics_head.", cell.bias_n.size)
        if dynamics_head and dynamics_head[-1].bias.size not in (2 * PRIVILEGED.e.stop, 2 * PRIVILEGED.force.stop):
            raise InputError(f"adapter.dynamics_head: gives {dynamics_head[-1].bias.size} numbers: must be 18 or 30")
    else:
        compress = _layers(weights, "compress.", OBSERVATION_SIZE)
        cell = _cell(weights, "cell.", HISTORY_SIZE + compress[-1].bias.size)
    inputs = cell.bias_n.size if cell and compress else OBSERVATION_SIZE + latent.size
    actor = _layers(weights, f"{body}actor_critic.", inputs, pair=True)
    if actor[-1].bias.size != 3:
        raise InputError(f"{body}actor_critic: gives {actor[-1].bias.size} numbers: must be 3, surge, sway and yaw")
    modulation = None
    if f"{body}modulation.weight" in weights:
        modulation = _layer(weights, f"{body}modulation.", latent.size, actor[-1].weight.shape[0])
    # The memory lies in [-1, 1].
    estimate = max(_largest(head, 1.0), _largest(dynamics_head, 1.0), *np.abs(latent).tolist())
    compressed = _largest(compress, LARGEST_INPUT)
    largest = [_largest(actor, max(LARGEST_INPUT, estimate)) * math.exp(MODULATION[1])]
    largest += [_largest([modulation], estimate)] if modulation else []
    largest += [_largest([Layer(w.T, cell.bias)], compressed) for w in (cell.weight_ih, cell.weight_hh)] if cell else []
    _check_size(max(largest))
    return Parts(actor, modulation, np.zeros(0, np.float32) if head else latent, cell, head, dynamics_head, compress)


def _encode(weights: Weights, about: dict[str, Any], vessel: Vessel | None) -> Tensor:
    """The latent of a teacher for a vessel; empty for a policy without privileged input."""
    if "encoder.layers.0.weight" not in weights:
        return np.zeros(0, np.float32)
    inputs = weights["encoder.layers.0.weight"].shape[0]
    encoder = _layers(weights, "encoder.", inputs)
    _check_size(_largest(encoder, 100.0))  # logarithms of the components of e
    if inputs not in (PRIVILEGED.e.stop, PRIVILEGED.force.stop):
        raise InputError(f"encoder: takes {inputs} numbers: must be 9 or 15")
    if vessel is None:
        raise InputError("this policy is a teacher, whose input includes the boat's dynamics: give it a vessel")
    if 0.0 in vessel.normalized[:8]:
        raise InputError(f"this policy is a teacher, which takes no boat without damping or sway force: {vessel.name}")
    privileged = np.zeros(inputs, np.float32)  # entries of the sea stay zero
    e = np.array(vessel.scale.normalized(vessel.normalized, derating(vessel)))
    logarithmic = about["config"].get("environment", {}).get("log_dynamics", True)
    privileged[PRIVILEGED.e] = scale_privileged(e) if logarithmic else e
    return MLP(encoder)(privileged)


def tensor(weights: Weights, name: str, shape: tuple[int, ...]) -> Tensor:
    """The tensor of that name, of that shape."""
    found = weights[name]
    if found.dtype != np.float32 or found.shape != shape or 0 in shape:
        raise InputError(f"tensor {name!r} = {found.dtype}{list(found.shape)}: must be float32{list(shape)}")
    return found


def _layers(weights: Weights, prefix: str, inputs: int, pair: bool = False) -> list[Layer]:
    """The layers under a prefix, in order; of layers stacked in pairs the first, which is the actor's."""
    found: list[Layer] = []
    while (name := f"{prefix}layers.{len(found)}.") + "weight" in weights:
        found.append(_layer(weights, name, inputs, weights[name + "bias"].shape[-1], pair))
        inputs = found[-1].bias.size
    return found


def _layer(weights: Weights, prefix: str, inputs: int, outputs: int, pair: bool = False) -> Layer:
    lead = (2,) if pair else ()
    layer = Layer(
        tensor(weights, f"{prefix}weight", (*lead, inputs, outputs)), tensor(weights, f"{prefix}bias", (*lead, outputs))
    )
    return Layer(layer.weight[0], layer.bias[0]) if pair else layer


def _cell(weights: Weights, prefix: str, inputs: int) -> Cell:
    n = len(weights[prefix + "bias_n"])
    shapes = ((3 * n, inputs), (3 * n, n), (3 * n,), (n,))
    return Cell(*(tensor(weights, prefix + field, shape) for field, shape in zip(Cell._fields, shapes, strict=True)))


def _largest(layers: list[Layer], size: float) -> float:
    """A bound on the magnitude of all numbers within layers whose inputs have at most the magnitude `size`."""
    largest = size
    for weight, bias in layers:
        inward = np.abs(weight.astype(np.float64)).sum(axis=0)
        size = max(1.0, float((inward * size + np.abs(bias)).max()))
        largest = max(largest, size)
    return largest


def _check_size(largest: float) -> None:
    if not largest < LARGEST_OUTPUT:
        raise InputError(f"weights that give numbers up to {largest:.2g}: must be smaller, since commands may overflow")
