"""A trained policy as deployed: NumPy only."""

from __future__ import annotations

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
    body = "teacher." if kind in ("student", "mean-latent") else ""
    fixed_latent = np.zeros(0, np.float32)
    if kind == "mean-latent":
        fixed_latent = weights["fixed_latent"]
    elif kind == "teacher" and (encoder := _layers(weights, "encoder.")):
        if vessel is None:
            raise InputError("this policy is a teacher, whose input includes the boat's dynamics: give it a vessel")
        privileged = np.zeros(encoder[0].weight.shape[0], np.float32)  # entries of the sea stay zero
        privileged[PRIVILEGED.e] = scale_privileged(np.array(vessel.normalized))
        fixed_latent = MLP(encoder)(privileged)
    cell = {"student": "adapter.cell.", "recurrent": "cell."}.get(kind)
    modulation = f"{body}modulation."
    return Parts(
        # Layers are stacked in pairs, the actor's first.
        actor=[Layer(weight[0], bias[0]) for weight, bias in _layers(weights, f"{body}actor_critic.")],
        modulation=_layer(weights, modulation) if f"{modulation}weight" in weights else None,
        fixed_latent=fixed_latent,
        cell=Cell(*(weights[cell + field] for field in Cell._fields)) if cell else None,
        head=_layers(weights, "adapter.projection."),
        dynamics_head=_layers(weights, "adapter.dynamics_head."),
        compress=_layers(weights, "compress."),
    )


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
        weights, about = policy_file.read(path)
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
        # Copies, since the caller may reuse the arrays.
        self._previous, self._previous_pose = command.copy(), now.copy()
        return command

    @property
    def memory(self) -> Tensor | None:
        """A copy of the hidden state after the last step; None for a policy without one."""
        return self._gru.memory.copy() if self._gru else None

    @property
    def latent_range(self) -> tuple[Array, Array] | None:
        """The smallest and largest estimate of the latent in training; None if unknown."""
        found = self.about.get("metrics", {}).get("latent_range")
        return (np.array(found[0]), np.array(found[1])) if found else None

    @property
    def dynamics(self) -> Dynamics | None:
        """The dynamics head's estimate after the last step; None for a policy without that head."""
        if not (self._dynamics_head and self._gru):
            return None
        mean, log_std = np.split(self._dynamics_head(self._gru.memory).astype(np.float64), 2)
        spread, at = np.exp(np.clip(log_std, *LOG_STD_RANGE)), PRIVILEGED
        has_sea = mean.size > at.e.stop
        return Dynamics(
            e=Normalized(*map(float, unscale_privileged(mean[at.e]))),
            spread=Normalized(*map(float, spread[at.e])),
            delay=float(mean[at.delay][0]) / DELAY_SCALE if has_sea else None,
            current=mean[at.current] / CURRENT_SCALE if has_sea else None,
            force=mean[at.force] / FORCE_SCALE if has_sea else None,
        )


def _layers(weights: Weights, prefix: str) -> list[Layer]:
    """The layers under a prefix, in order."""
    found: list[Layer] = []
    while (name := f"{prefix}layers.{len(found)}.") + "weight" in weights:
        found.append(_layer(weights, name))
    return found


def _layer(weights: Weights, prefix: str) -> Layer:
    return Layer(*(weights[prefix + field] for field in Layer._fields))
