"""A trained policy as deployed: NumPy only."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from safetensors import SafetensorError, safe_open

from anyhull.controller import Array, checked
from anyhull.errors import InputError, unknown
from anyhull.observation import (
    CURRENT_SCALE,
    DELAY_SCALE,
    FORCE_SCALE,
    MODULATION,
    SURENESS,
    observe,
    pack,
    recall,
    scale_history,
    scale_observation,
    scale_privileged,
    unscale_privileged,
)
from anyhull.vessel import Normalized, Vessel

FORMAT = "1"
"""Version of the policy file that this package writes and reads."""

Weights = dict[str, NDArray[np.float32]]


def shipped() -> list[str]:
    """Names of the policies that come with the package."""
    folder = resources.files("anyhull") / "policies"
    return sorted(
        entry.name.removesuffix(".safetensors") for entry in folder.iterdir() if entry.name.endswith(".safetensors")
    )


def read(path: str | Path, policy: bool = True) -> tuple[Weights, dict[str, Any]]:
    """Tensors by name, and what the file says of itself: kind, config, metrics, versions. Runs no code from it.

    Without `policy`, any file of tensors is taken.
    """
    try:
        with safe_open(str(path), framework="numpy") as file:
            about: dict[str, Any] = dict(file.metadata() or {})
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except SafetensorError as error:
        raise InputError(f"{path}: not a file of tensors, or a damaged one: {error}") from None
    if not policy:
        return weights, about
    if "format" not in about or "kind" not in about:
        raise InputError(f"{path}: not a policy of anyhull: its metadata has no format and kind")
    if about["format"] != FORMAT:
        raise InputError(f"{path}: format = {about['format']!r}: must be {FORMAT!r}, which this version reads")
    for name in ("config", "metrics", "versions"):
        about[name] = json.loads(about.get(name, "{}"))
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


class Pilot:
    """Steers a boat with a trained policy."""

    def __init__(self, weights: Weights, about: dict[str, Any], vessel: Vessel | None = None) -> None:
        """`vessel` is for teachers alone, which are told the boat that the others find out."""
        self.about = about
        self._weights = weights
        kind = about["kind"]
        body = "teacher." if kind in ("student", "mean-latent") else ""
        # Of each stacked pair of layers the actor's is the first.
        self._actor = [(w[0], b[0]) for w, b in _layers(weights, f"{body}body.")]
        self._modulation = (
            [weights[f"{body}modulation.{part}"] for part in ("weight", "bias")]
            if (f"{body}modulation.weight" in weights)
            else None
        )
        self._known = np.zeros(0, np.float32)
        if kind == "mean-latent":
            self._known = weights["mean"]
        elif kind == "teacher" and (encoder := _layers(weights, "encoder.")):
            if vessel is None:
                raise InputError("this policy is a teacher, which is told the boat's dynamics: give it a vessel")
            told = np.zeros(encoder[0][0].shape[0], np.float32)  # of the sea, nothing
            told[:9] = scale_privileged(np.array(vessel.normalized))
            self._known = _mlp(encoder, told)
        self._cell = {"student": "adapter.cell.", "recurrent": "cell."}.get(kind)
        self._head = _layers(weights, "adapter.projection.")
        self._reader = _layers(weights, "adapter.reader.")
        self._compress = _layers(weights, "compress.")
        self._memory_size = weights[f"{self._cell}weight_hh"].shape[1] if self._cell else 0
        self.reset()

    @staticmethod
    def load(name_or_path: str | Path = "field", vessel: Vessel | None = None) -> Pilot:
        """The shipped policy of that name, or the one in a .safetensors file."""
        path = Path(name_or_path)
        if path.suffix != ".safetensors":
            if str(name_or_path) not in (names := shipped()):
                raise InputError(unknown("policy", str(name_or_path), names))
            path = Path(str(resources.files("anyhull") / "policies" / f"{name_or_path}.safetensors"))
        return Pilot(*read(path), vessel=vessel)

    def reset(self) -> None:
        """Forget the boat."""
        self._memory = np.zeros(self._memory_size, np.float32)
        self._previous = np.zeros(3)
        self._before: Array | None = None
        self.latent = self._known
        """The latent z that the policy acts on: the adapter's estimate, the teacher's, or nothing."""

    def step(self, pose: ArrayLike, velocity: ArrayLike, window: ArrayLike) -> Array:
        """The normalized command in [-1, 1]³ for the coming period."""
        now, nu, reference = checked(pose, velocity, window)
        before = now if self._before is None else self._before
        o = scale_observation(pack(observe(now, nu, reference, self._previous))).astype(np.float32)
        if self._cell:
            h = scale_history(pack(recall(now, before, nu, self._previous))).astype(np.float32)
            if self._compress:
                h = np.concatenate([_elu(_mlp(self._compress, o)), h])
            self._memory = _gru(self._weights, self._cell, h, self._memory)
            if self._head:
                self.latent = _mlp(self._head, self._memory)
        inputs = self._memory if self._compress else np.concatenate([o, self.latent])
        factors = None
        if self._modulation:
            weight, bias = self._modulation
            factors = np.exp(np.clip(self.latent @ weight + bias, *MODULATION))
        command: Array = np.clip(_mlp(self._actor, inputs, factors).astype(np.float64), -1.0, 1.0)
        self._previous, self._before = command, now
        return command

    @property
    def dynamics(self) -> Dynamics | None:
        """The boat as the adapter takes it to be after the last step; None where the policy cannot say."""
        if not self._reader:
            return None
        mean, log_std = np.split(_mlp(self._reader, self._memory).astype(np.float64), 2)
        spread = np.exp(np.clip(log_std, *SURENESS))
        sea = mean[9:] if mean.size > 9 else None
        return Dynamics(
            e=Normalized(*map(float, unscale_privileged(mean[:9]))),
            spread=Normalized(*map(float, spread[:9])),
            delay=None if sea is None else float(sea[0]) / DELAY_SCALE,
            current=None if sea is None else sea[1:3] / CURRENT_SCALE,
            force=None if sea is None else sea[3:] / FORCE_SCALE,
        )


def _layers(weights: Weights, prefix: str) -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
    """Weight and bias of the layers under a prefix, in order."""
    found: list[tuple[NDArray[np.float32], NDArray[np.float32]]] = []
    while (name := f"{prefix}layers.{len(found)}.") + "weight" in weights:
        found.append((weights[name + "weight"], weights[name + "bias"]))
    return found


def _elu(x: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))


def _mlp(layers: list[tuple[Any, Any]], x: Any, factors: Any = None) -> NDArray[np.float32]:
    for weight, bias in layers[:-1]:
        x = _elu(x @ weight + bias)
    x = x if factors is None else x * factors
    weight, bias = layers[-1]
    result: NDArray[np.float32] = x @ weight + bias
    return result


def _gru(weights: Weights, prefix: str, x: Any, memory: Any) -> NDArray[np.float32]:
    """One step of a gated recurrent unit, as Equinox's GRUCell defines it."""
    size = memory.size
    gates = weights[f"{prefix}weight_ih"] @ x + weights[f"{prefix}bias"]
    kept = weights[f"{prefix}weight_hh"] @ memory
    opened = 1 / (1 + np.exp(-(gates[: 2 * size] + kept[: 2 * size])))
    new = np.tanh(gates[2 * size :] + opened[:size] * (kept[2 * size :] + weights[f"{prefix}bias_n"]))
    moved: NDArray[np.float32] = new + opened[size:] * (memory - new)
    return moved
