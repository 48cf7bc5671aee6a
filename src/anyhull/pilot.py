"""A trained policy as deployed: NumPy only."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from safetensors import SafetensorError, safe_open

from anyhull.controller import Array, checked
from anyhull.errors import InputError, unknown
from anyhull.observation import observe, pack, recall, scale_history, scale_observation, scale_privileged
from anyhull.vessel import Vessel

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
        self._known = np.zeros(0, np.float32)
        if kind == "mean-latent":
            self._known = weights["mean"]
        elif kind == "teacher" and (encoder := _layers(weights, "encoder.")):
            if vessel is None:
                raise InputError("this policy is a teacher, which is told the boat's dynamics: give it a vessel")
            self._known = _mlp(encoder, scale_privileged(np.array(vessel.normalized)).astype(np.float32))
        self._cell = {"student": "adapter.cell.", "recurrent": "cell."}.get(kind)
        self._head = _layers(weights, "adapter.projection.")
        self._compress = _layers(weights, "compress.")
        self._memory_size = weights[f"{self._cell}weight_hh"].shape[1] if self._cell else 0
        self.reset()

    @staticmethod
    def load(name_or_path: str | Path, vessel: Vessel | None = None) -> Pilot:
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
        command: Array = np.clip(_mlp(self._actor, inputs).astype(np.float64), -1.0, 1.0)
        self._previous, self._before = command, now
        return command


def _layers(weights: Weights, prefix: str) -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
    """Weight and bias of the layers under a prefix, in order."""
    found: list[tuple[NDArray[np.float32], NDArray[np.float32]]] = []
    while (name := f"{prefix}layers.{len(found)}.") + "weight" in weights:
        found.append((weights[name + "weight"], weights[name + "bias"]))
    return found


def _elu(x: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))


def _mlp(layers: list[tuple[Any, Any]], x: Any) -> NDArray[np.float32]:
    for weight, bias in layers[:-1]:
        x = _elu(x @ weight + bias)
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
