"""Result files: what a job of a study found, and by what code, versions and hardware."""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from anyhull.errors import InputError
from anyhull.files import atomic_write, parse_json, read_text
from anyhull.schema import decode, shown

FORMAT = 2
"""Version of the file format."""

LARGEST = 20_000_000
"""Size of a result file that is read, bytes."""

PACKAGES = ("anyhull", "numpy", "jax", "equinox", "optax", "casadi")


@dataclass(frozen=True)
class Result:
    """What one job found."""

    job: str
    study: str
    seeds: int
    """Number of training seeds; 0 where nothing was trained."""
    quick: bool
    """Whether it was a test of the pipeline at tiny sizes; its figures mean nothing."""
    seconds: float
    """Wall-clock time with compilation and evaluation."""
    resumed: bool
    """Whether the job was interrupted and resumed; `seconds` then counts from the last start."""
    data: dict[str, Any]
    """The findings."""
    config: dict[str, Any] = field(default_factory=dict)
    """The settings that determine them."""
    versions: dict[str, str] = field(default_factory=dict)
    hardware: dict[str, Any] = field(default_factory=dict)
    commit: str = "unknown"
    """Commit of the source, with a + where the working tree differs from it."""


def path_of(out: Path, job: str) -> Path:
    """The result file of a job."""
    return out / f"{job}.json"


def save(out: Path, result: Result) -> Path:
    """Write a result and return its path."""
    path = path_of(out, result.job)
    with atomic_write(path) as temporary:
        temporary.write_text(json.dumps({"format": FORMAT} | asdict(result), indent=1, allow_nan=False) + "\n")
    return path


def load(path: Path) -> Result:
    """Read a result."""
    text = read_text(path, LARGEST)
    try:
        content = parse_json(text, "the file")
        if not isinstance(content, dict):
            raise InputError("must be an object")
        if (version := content.pop("format", None)) == FORMAT:
            return decode(Result, content)
    except InputError as error:
        raise InputError(f"{path}: not a result of a study: {error}; remove it to run the job again") from None
    raise InputError(f"{path}: format = {shown(version)}: must be {FORMAT}, which this version reads")


def finite(value: Any) -> Any:
    """`value` as JSON has it: None for infinities and NaN, plain numbers and lists for NumPy's."""
    if isinstance(value, dict):
        return {str(key): finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [finite(entry) for entry in value]
    if hasattr(value, "tolist"):
        return finite(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def versions(packages: Iterable[str] = PACKAGES) -> dict[str, str]:
    """Versions of Python and of those of the packages that are installed."""
    found = {"python": platform.python_version()}
    for name in packages:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def hardware(device: bool) -> dict[str, Any]:
    """Processor and number of cores, and the accelerator where JAX's `device` was used."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    found: dict[str, Any] = {"processor": names[0] if names else platform.machine(), "cores": os.cpu_count()}
    if device:
        import jax

        found |= {"device": jax.devices()[0].device_kind, "devices": len(jax.devices())}
    return found


def commit() -> str:
    """The commit of the source tree that this module belongs to; "unknown" outside of a repository."""
    here = Path(__file__).parent

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(here), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no", "--", str(here.parent))
        return git("rev-parse", "--short=12", "HEAD") + "+" * bool(changed)
    except (OSError, subprocess.SubprocessError):
        return "unknown"
