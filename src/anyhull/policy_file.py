"""Files of policies and training states: tensors by name as safetensors, with JSON metadata.

Reading executes no code from a file.
"""

from __future__ import annotations

import hashlib
import json
import re
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from anyhull.errors import InputError, unknown
from anyhull.files import atomic_write, parse_json
from anyhull.schema import shown

FORMAT = 3
"""Version of the file that this package writes and reads."""

SUFFIX = ".safetensors"

Tensors = dict[str, np.ndarray[Any, Any]]


def write(path: str | Path, tensors: Tensors, about: dict[str, Any]) -> Path:
    """Write tensors bit for bit, with the entries of `about` as JSON metadata; returns the path."""
    plain = {name: np.ascontiguousarray(tensor).reshape(tensor.shape) for name, tensor in tensors.items()}
    about = {"format": FORMAT, "sha256": digest(plain)} | about
    with atomic_write(path) as temporary:
        save_file(plain, temporary, {name: json.dumps(value) for name, value in about.items()})
    return Path(path)


def digest(tensors: Tensors) -> str:
    """SHA-256 over name, type, shape and bytes of each tensor, in order of name."""
    sha = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name]
        sha.update(f"{name} {tensor.dtype.str} {tensor.shape} ".encode() + tensor.tobytes())
    return sha.hexdigest()


def read(path: str | Path, about_only: bool = False, limit: int | None = None) -> tuple[Tensors, dict[str, Any]]:
    """Tensors by name, and metadata; with `about_only`, no tensors. A file of more than `limit` bytes is refused."""
    try:
        if limit is not None and (size := Path(path).stat().st_size) > limit:
            raise InputError(f"{path}: {size / 1e6:.0f} MB: must be at most {limit / 1e6:.0f} MB")
        with safe_open(str(path), framework="numpy") as file:
            metadata = file.metadata() or {}
            tensors = {} if about_only else {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise InputError(f"{path}: truncated, or not a safetensors file: {error}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (AttributeError, KeyError, TypeError) as error:
        raise InputError(f"{path}: a tensor is of a type that NumPy does not have: {error}") from None
    if not re.fullmatch("[0-9]{1,9}", metadata.get("format", "")) or "kind" not in metadata:
        raise InputError(f"{path}: not a file of anyhull: its metadata has no format and kind")
    if (version := int(metadata["format"])) != FORMAT:
        remedy = "a newer anyhull, so upgrade this one" if version > FORMAT else "an older one, so train it again"
        raise InputError(f"{path}: format = {version}: must be {FORMAT}; it was written by {remedy}")
    about = {name: parse_json(text, f"{path}: its metadata") for name, text in metadata.items()}
    if not isinstance(about["kind"], str):
        raise InputError(f"{path}: kind = {shown(about['kind'])}: must be a string")
    if not about_only and about.get("sha256") != digest(tensors):
        raise InputError(
            f"{path}: sha256 = {shown(about.get('sha256'))}: does not match its tensors: the file is damaged"
        )
    for name, tensor in tensors.items():
        # A training state may hold an infinity, such as the lowest cost before the first one.
        if about["kind"] != "state" and not np.isfinite(tensor).all():
            raise InputError(f"{path}: tensor {name!r} holds a number that is not finite")
    return tensors, about


def shipped() -> dict[str, Path]:
    """The policies that come with the package, by name; in a clone of the repository the paper's baselines too."""
    folder = Path(str(resources.files("anyhull") / "policies"))
    found = sorted(folder.glob(f"*{SUFFIX}")) + sorted(folder.glob(f"baselines/*{SUFFIX}"))
    return {path.stem: path for path in found}


def locate(name_or_path: str | Path) -> Path:
    """The path of the shipped policy of that name, or the path itself if it ends in .safetensors."""
    path = Path(name_or_path)
    if path.suffix == SUFFIX:
        return path
    if str(name_or_path) not in (names := shipped()):
        raise InputError(unknown("policy", str(name_or_path), names))
    return names[str(name_or_path)]
