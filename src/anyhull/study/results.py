"""Result files: what a piece of a study found, with what it was made by; written whole, read with care."""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from anyhull.errors import InputError
from anyhull.files import whole

FORMAT = 1
"""Version of the file format."""

PACKAGES = ("anyhull", "numpy", "jax", "equinox", "optax", "casadi")


@dataclass(frozen=True)
class Result:
    """What one piece found."""

    piece: str
    study: str
    seeds: int
    """Seeds of what was trained; 0 where nothing was."""
    quick: bool
    """Whether it was a trial of the pipeline at tiny sizes: its figures mean nothing."""
    seconds: float
    """Wall-clock time, compilation and evaluation included."""
    resumed: bool
    """Whether the piece was stopped and taken up again: `seconds` then are those of the last stretch."""
    data: dict[str, Any]
    """The findings."""
    config: dict[str, Any] = field(default_factory=dict)
    """Everything that decided them."""
    versions: dict[str, str] = field(default_factory=dict)
    hardware: dict[str, Any] = field(default_factory=dict)
    commit: str = "unknown"
    """Of the source, with a + where it was changed since."""


def path_of(out: Path, piece: str) -> Path:
    """Where a piece's result lies."""
    return out / f"{piece}.json"


def save(out: Path, result: Result) -> Path:
    """Write a result; its path."""
    path = path_of(out, result.piece)
    with whole(path) as temporary:
        temporary.write_text(json.dumps({"format": FORMAT} | asdict(result), indent=1, allow_nan=False) + "\n")
    return path


def load(path: Path) -> Result:
    """Read a result."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        version = content.pop("format", None)
        if version != FORMAT:
            raise InputError(f"{path}: format = {version!r}: must be {FORMAT}, which this version reads")
        return Result(**content)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, TypeError, AttributeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: not a result of a study: {error}; remove it to have it made again") from None


def finite(value: Any) -> Any:
    """`value` with None for numbers that JSON does not have, and plain numbers for NumPy's."""
    if isinstance(value, dict):
        return {str(key): finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [finite(entry) for entry in value]
    if hasattr(value, "tolist"):
        return finite(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def versions() -> dict[str, str]:
    """Of Python and of the packages that are there."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def hardware(device: bool) -> dict[str, Any]:
    """Processor and cores, and JAX's `device` where one was used."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    found: dict[str, Any] = {"processor": names[0] if names else platform.machine(), "cores": os.cpu_count()}
    if device:
        import jax

        found |= {"device": jax.devices()[0].device_kind, "devices": len(jax.devices())}
    return found


def commit() -> str:
    """The commit of the source tree that this runs from, where it is one."""
    here = Path(__file__).parent

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(here), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no", "--", str(here.parent))
        return git("rev-parse", "--short=12", "HEAD") + "+" * bool(changed)
    except (OSError, subprocess.SubprocessError):
        return "unknown"
