"""What a benchmark ran on."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from pathlib import Path


def describe(*packages: str) -> dict[str, object]:
    """Processor, cores, Python and the versions of `packages` (by default JAX's and NumPy's)."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    found: dict[str, object] = {
        "processor": names[0] if names else platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }
    for package in packages or ("jax", "numpy"):
        found[package] = importlib.metadata.version(package)
    if "jax" in found:
        import jax

        found["device"] = jax.devices()[0].device_kind
    return found
