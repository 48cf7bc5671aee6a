"""A trained policy as deployed: NumPy only."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from anyhull import policy_file
from anyhull.backend import Array
from anyhull.controller import check_inputs
from anyhull.errors import InputError
from anyhull.numpy_policy import GRU, MLP, Cell, Features, Layer, Tensor, elu
from anyhull.observation import (
    CURRENT_SCALE,
    DELAY_SCALE,
    FORCE_SCALE,
    HISTORY_SIZE,
    LOG_STD_RANGE,
    MODULATION,
    OBSERVATION_SIZE,
    PRIVILEGED,
    Scales,
    scale_privileged,
    unscale_privileged,
)
from anyhull.schema import decode
from anyhull.vessel import Normalized, Vessel

Weights = dict[str, Tensor]

KINDS = ("teacher", "student", "mean-latent", "recurrent")
"""Kinds of policies."""

LARGEST_FILE = 50_000_000
"""Size of a policy's file, bytes."""

LARGEST_INPUT, LARGEST_OUTPUT = 1e9, 1e35
"""Magnitude of an observation (m, m/s), and that of a number in the networks, which hold at most 3e38."""


class Dynamics(NamedTuple):
    """Estimated dynamics, delay and disturbances."""

    e: Normalized
    """The most likely components."""
    spread: Normalized
    """Standard deviation of the logarithm of each, so 0.1 is about 10 %; of asinh for c_uv."""
    delay: float | None
    """Actuator delay, s; None, as the next two, for a policy trained without `privileged_sea`."""
    current: Array | None
    """Current in the body frame, (2,), m/s."""
    force: Array | None
    """Wind and wave force in the body frame as fractions of the actuator limits, (3,)."""

    @property
    def components(self) -> Array:
        """The components, then their spreads, (18,)."""
        return np.concatenate([self.e, self.spread])


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
        latent = _encode(weights, vessel)
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


def _encode(weights: Weights, vessel: Vessel | None) -> Tensor:
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
    privileged[PRIVILEGED.e] = scale_privileged(np.array(vessel.normalized))
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


class Pilot:
    """Steers a boat with a trained policy."""

    def __init__(self, weights: Weights, about: dict[str, Any], vessel: Vessel | None = None) -> None:
        """`vessel` is for teachers only: their privileged input is its dynamics, which other policies estimate."""
        self.about = about
        self.parts = parts = unpack(weights, about, vessel)
        self.scales = decode(Scales, about["config"]["scales"], "config.scales")
        """Input scaling of the policy."""
        bounds = (about["envelope"][name] for name in Normalized._fields)
        ranges = [decode(tuple[float, float], pair, "envelope") for pair in bounds]
        self.envelope = dict(zip(Normalized._fields, ranges, strict=True))
        """The range of each component of e that the policy was trained on, by the component's name."""
        found = about.get("metrics", {}).get("latent_range")
        self._latent_range = (
            None
            if found is None
            else decode(tuple[tuple[float, ...], tuple[float, ...]], found, "metrics.latent_range")
        )
        self.restarts = 0
        """How often the memory was cleared since a command was not finite."""
        self._features = Features(self.scales)
        self._actor = MLP(parts.actor)
        self._modulation = MLP([parts.modulation]) if parts.modulation else None
        self._gru = GRU(parts.cell) if parts.cell else None
        self._head = MLP(parts.head) if parts.head else None
        self._dynamics_head = MLP(parts.dynamics_head) if parts.dynamics_head else None
        self._compress = MLP(parts.compress) if parts.compress else None
        # Input buffers of GRU and actor.
        self._history = np.zeros(parts.cell.weight_ih.shape[1] if parts.cell else 0, np.float32)
        self._inputs = np.zeros(parts.actor[0].weight.shape[0], np.float32)
        self.reset()

    @staticmethod
    def load(name_or_path: str | Path = "field", vessel: Vessel | None = None) -> Pilot:
        """The shipped policy of that name, or the one in a .safetensors file."""
        path = policy_file.locate(name_or_path)
        weights, about = policy_file.read(path, limit=LARGEST_FILE)
        try:
            return Pilot(weights, about, vessel)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        except (KeyError, TypeError, IndexError, ValueError, AttributeError) as error:
            raise InputError(f"{path}: not a policy: {error} is missing or invalid") from None

    def reset(self) -> None:
        """Clear the memory, the previous command and the previous pose."""
        if self._gru:
            self._gru.memory[:] = 0.0
        self._previous = np.zeros(3)
        self._previous_pose: Array | None = None
        self.latent = (
            np.zeros(len(self.parts.head[-1].bias), np.float32) if self.parts.head else self.parts.fixed_latent
        )
        """The latent z: the adapter's estimate, initially zero; the teacher's; a fixed one; or empty."""

    def step(self, pose: ArrayLike, velocity: ArrayLike, window: ArrayLike) -> Array:
        """The normalized command in [-1, 1]³ for the coming period."""
        now, nu, reference = check_inputs(pose, velocity, window)
        previous_pose = now if self._previous_pose is None else self._previous_pose
        self._features(now, previous_pose, nu, reference, self._previous)
        command = self._act()
        # One number that is not finite in memory or latent makes every command so. The sum is a tenth of np.isfinite.
        if not math.isfinite(command.dot(command)):
            command = self._restart(now, nu, reference)
        # Copies, since the caller may reuse the arrays.
        self._previous, self._previous_pose = command.copy(), now.copy()
        return command

    def _restart(self, pose: Array, velocity: Array, window: Array) -> Array:
        """The command of a policy that starts here; zero if that is not finite either: then the inputs are absurd."""
        self.restarts += 1
        self.reset()
        self._features(pose, pose, velocity, window, self._previous)
        command = self._act()
        if np.isfinite(command).all():
            return command
        self.reset()
        return np.zeros(3)

    def _act(self) -> Array:
        """The command for the present features."""
        o, history, inputs = self._features.o, self._history, self._inputs
        if self._gru:
            history[-HISTORY_SIZE:] = self._features.h
            if self._compress:
                compressed = self._compress(o)
                history[:-HISTORY_SIZE] = elu(compressed, np.empty_like(compressed))
            memory = self._gru(history)
            if self._head:
                self.latent = self._head(memory).copy()
        if self._gru and self._compress:
            inputs[:] = memory
        else:
            inputs[:OBSERVATION_SIZE] = o
            inputs[OBSERVATION_SIZE:] = self.latent
        factors = None
        if self._modulation:
            factors = self._modulation(self.latent)
            np.maximum(factors, MODULATION[0], out=factors)
            np.minimum(factors, MODULATION[1], out=factors)
            np.exp(factors, out=factors)
        action = self._actor(inputs, factors).astype(np.float64)
        command: Array = np.maximum(np.minimum(action, 1.0, out=action), -1.0, out=action)
        return command

    @property
    def memory(self) -> Tensor | None:
        """A copy of the hidden state after the last step; None for a policy without one."""
        return self._gru.memory.copy() if self._gru else None

    @property
    def latent_range(self) -> tuple[Array, Array] | None:
        """The smallest and largest estimate of the latent in training; None if unknown."""
        return (np.array(self._latent_range[0]), np.array(self._latent_range[1])) if self._latent_range else None

    @property
    def dynamics(self) -> Dynamics | None:
        """The dynamics head's estimate after the last step; None for a policy without that head."""
        if not (self._dynamics_head and self._gru):
            return None
        mean, log_std = np.split(self._dynamics_head(self._gru.memory).astype(np.float64), 2)
        spread, at = np.exp(np.clip(log_std, *LOG_STD_RANGE)), PRIVILEGED
        has_sea = mean.size > at.e.stop
        return Dynamics(
            e=Normalized(*map(float, unscale_privileged(np.clip(mean[at.e], -50.0, 50.0)))),
            spread=Normalized(*map(float, spread[at.e])),
            delay=float(mean[at.delay][0]) / DELAY_SCALE if has_sea else None,
            current=mean[at.current] / CURRENT_SCALE if has_sea else None,
            force=mean[at.force] / FORCE_SCALE if has_sea else None,
        )
