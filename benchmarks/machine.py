"""The machine of a benchmark, and the file of its results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from anyhull.files import atomic_write
from anyhull.study.results import commit, hardware, versions


def describe(*packages: str) -> dict[str, Any]:
    """Processor, cores and the versions of Python and of `packages` (by default JAX and NumPy), with JAX its device."""
    packages = packages or ("jax", "numpy")
    return hardware("jax" in packages) | versions(packages)


def save(path: Path | None, results: dict[str, Any], revision: str | None = None) -> None:
    """Write the results and the commit, by default git's, as JSON, if a path is given."""
    if path:
        results = results | {"commit": revision or commit()}
        with atomic_write(path) as temporary:
            temporary.write_text(json.dumps(results, indent=1) + "\n")
