"""A trained policy as deployed: NumPy only."""

from __future__ import annotations

import json
from dataclasses import fields
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from safetensors import SafetensorError, safe_open

from anyhull.controller import Array, checked
from anyhull.errors import InputError, unknown
from anyhull.inference import GRU, MLP, Cell, Layer, Senses, Tensor, elu
from anyhull.observation import (
    CURRENT_SCALE,
    DELAY_SCALE,
    FORCE_SCALE,
    HISTORY_SIZE,
    MODULATION,
    OBSERVATION_SIZE,
    SURENESS,
    Scales,
    scale_privileged,
    unscale_privileged,
)
from anyhull.vessel import Normalized, Vessel

FORMAT = "2"
"""Version of the policy file that this package writes and reads."""

Weights = dict[str, Tensor]


def shipped() -> list[str]:
    """Names of the policies that come with the package."""
    folder = resources.files("anyhull") / "policies"
    return sorted(
        entry.name.removesuffix(".safetensors") for entry in folder.iterdir() if entry.name.endswith(".safetensors")
    )


def shipped_path(name: str) -> Path:
    """Where the shipped policy of that name lies."""
    return Path(str(resources.files("anyhull") / "policies" / f"{name}.safetensors"))


def read(path: str | Path) -> tuple[Weights, dict[str, Any]]:
    """Tensors by name, and what the file says of itself: kind, config, metrics, versions. Runs no code from it."""
    try:
        with safe_open(str(path), framework="numpy") as file:
            about: dict[str, Any] = dict(file.metadata() or {})
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except SafetensorError as error:
        raise InputError(f"{path}: not a file of tensors, or a damaged one: {error}") from None
    if "format" not in about or "kind" not in about:
        raise InputError(f"{path}: not a policy of anyhull: its metadata has no format and kind")
    if about["format"] != FORMAT:
        raise InputError(f"{path}: format = {about['format']!r}: must be {FORMAT!r}, which this version reads")
    try:
        about |= {name: json.loads(about.get(name, "{}")) for name in ("config", "metrics", "versions")}
    except json.JSONDecodeError as error:
        raise InputError(f"{path}: its metadata is not valid JSON: {error}") from None
    scales = about["config"].get("scales") if isinstance(about["config"], dict) else None
    named = {field.name for field in fields(Scales)}
    if (
        not isinstance(scales, dict)
        or set(scales) != named
        or not all(type(x) in (int, float) for x in scales.values())
    ):
        accepted = f"a number each for {', '.join(sorted(named))}"
        raise InputError(f"{path}: config.scales = {scales!r}: must be {accepted}")
    return weights, about


class Dynamics(NamedTuple):
    """What a pilot takes the boat to be."""

    e: Normalized
    """The most likely components."""
    spread: Normalized
    """Standard deviation of the logarithm of each, so 0.1 is about 10 %; of asinh for c_uv."""
    delay: float | None
    """Actuator delay, s; None for a policy that was trained without a sea, as the next two."""
    current: Array | None
    """Current in the body frame, (2,), m/s."""
    force: Array | None
    """Wind and wave force in the body frame as fractions of the actuator limits, (3,)."""


class Parts(NamedTuple):
    """A policy of any kind as a step uses it: what its kind does not have is empty or None."""

    actor: list[Layer]
    """From observation and latent to the command; from the memory where the observation is compressed into that."""
    modulation: Layer | None
    """From the latent to the logarithms of factors on the actor's last features."""
    known: Tensor
    """The latent of a policy that does not estimate it, (n,)."""
    cell: Cell | None
    """From the history to the memory."""
    head: list[Layer]
    """From the memory to the latent."""
    reader: list[Layer]
    """From the memory to mean and logarithm of the standard deviation of the scaled privileged vector."""
    compress: list[Layer]
    """From the observation to what goes into the memory before the history."""


def take_apart(weights: Weights, about: dict[str, Any], vessel: Vessel | None = None) -> Parts:
    """The parts of a policy; `vessel` is for teachers alone, which are told the boat that the others find out."""
    kind = about["kind"]
    body = "teacher." if kind in ("student", "mean-latent") else ""
    known = np.zeros(0, np.float32)
    if kind == "mean-latent":
        known = weights["mean"]
    elif kind == "teacher" and (encoder := _layers(weights, "encoder.")):
        if vessel is None:
            raise InputError("this policy is a teacher, which is told the boat's dynamics: give it a vessel")
        told = np.zeros(encoder[0].weight.shape[0], np.float32)  # of the sea, nothing
        told[:9] = scale_privileged(np.array(vessel.normalized))
        known = MLP(encoder)(told)
    cell = {"student": "adapter.cell.", "recurrent": "cell."}.get(kind)
    modulation = f"{body}modulation."
    return Parts(
        # Of each stacked pair of layers the actor's is the first.
        actor=[Layer(weight[0], bias[0]) for weight, bias in _layers(weights, f"{body}body.")],
        modulation=_layer(weights, modulation) if f"{modulation}weight" in weights else None,
        known=known,
        cell=Cell(*(weights[cell + field] for field in Cell._fields)) if cell else None,
        head=_layers(weights, "adapter.projection."),
        reader=_layers(weights, "adapter.reader."),
        compress=_layers(weights, "compress."),
    )


class Pilot:
    """Steers a boat with a trained policy."""

    def __init__(self, weights: Weights, about: dict[str, Any], vessel: Vessel | None = None) -> None:
        """`vessel` is for teachers alone, which are told the boat that the others find out."""
        self.about = about
        self.parts = parts = take_apart(weights, about, vessel)
        self.scales = Scales(**about["config"]["scales"])
        """How the policy magnifies small numbers."""
        self._senses = Senses(self.scales)
        self._actor = MLP(parts.actor)
        self._modulation = MLP([parts.modulation]) if parts.modulation else None
        self._gru = GRU(parts.cell) if parts.cell else None
        self._head = MLP(parts.head) if parts.head else None
        self._reader = MLP(parts.reader) if parts.reader else None
        self._compress = MLP(parts.compress) if parts.compress else None
        # What GRU and actor read, filled anew in every step.
        self._history = np.zeros(parts.cell.weight_ih.shape[1] if parts.cell else 0, np.float32)
        self._inputs = np.zeros(parts.actor[0].weight.shape[0], np.float32)
        self.reset()

    @staticmethod
    def load(name_or_path: str | Path = "field", vessel: Vessel | None = None) -> Pilot:
        """The shipped policy of that name, or the one in a .safetensors file."""
        path = Path(name_or_path)
        if path.suffix != ".safetensors":
            if str(name_or_path) not in (names := shipped()):
                raise InputError(unknown("policy", str(name_or_path), names))
            path = shipped_path(str(name_or_path))
        return Pilot(*read(path), vessel=vessel)

    def reset(self) -> None:
        """Forget the boat."""
        if self._gru:
            self._gru.memory[:] = 0.0
        self._previous = np.zeros(3)
        self._before: Array | None = None
        self.latent = np.zeros(len(self.parts.head[-1].bias), np.float32) if self.parts.head else self.parts.known
        """The latent z that the policy acts on: the adapter's estimate, at first zeros; the teacher's; or nothing."""

    def step(self, pose: ArrayLike, velocity: ArrayLike, window: ArrayLike) -> Array:
        """The normalized command in [-1, 1]³ for the coming period."""
        now, nu, reference = checked(pose, velocity, window)
        before = now if self._before is None else self._before
        self._senses(now, before, nu, reference, self._previous)
        o, history, inputs = self._senses.o, self._history, self._inputs
        if self._gru:
            history[-HISTORY_SIZE:] = self._senses.h
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
        wanted = self._actor(inputs, factors).astype(np.float64)
        command: Array = np.maximum(np.minimum(wanted, 1.0, out=wanted), -1.0, out=wanted)
        # Copies, since the caller may reuse the arrays.
        self._previous, self._before = command.copy(), now.copy()
        return command

    @property
    def memory(self) -> Tensor | None:
        """A copy of the hidden state after the last step; None where the policy has none."""
        return self._gru.memory.copy() if self._gru else None

    @property
    def latent_range(self) -> tuple[Array, Array] | None:
        """The least and largest estimate of the latent that was met in training; None where that is not known."""
        found = self.about.get("metrics", {}).get("latent_range")
        return (np.array(found[0]), np.array(found[1])) if found else None

    @property
    def dynamics(self) -> Dynamics | None:
        """The boat as the adapter takes it to be after the last step; None where the policy cannot say."""
        if not (self._reader and self._gru):
            return None
        mean, log_std = np.split(self._reader(self._gru.memory).astype(np.float64), 2)
        spread = np.exp(np.clip(log_std, *SURENESS))
        sea = mean[9:] if mean.size > 9 else None
        return Dynamics(
            e=Normalized(*map(float, unscale_privileged(mean[:9]))),
            spread=Normalized(*map(float, spread[:9])),
            delay=None if sea is None else float(sea[0]) / DELAY_SCALE,
            current=None if sea is None else sea[1:3] / CURRENT_SCALE,
            force=None if sea is None else sea[3:] / FORCE_SCALE,
        )


def _layers(weights: Weights, prefix: str) -> list[Layer]:
    """The layers under a prefix, in order."""
    found: list[Layer] = []
    while (name := f"{prefix}layers.{len(found)}.") + "weight" in weights:
        found.append(_layer(weights, name))
    return found


def _layer(weights: Weights, prefix: str) -> Layer:
    return Layer(*(weights[prefix + field] for field in Layer._fields))
