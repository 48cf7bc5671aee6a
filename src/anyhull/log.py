"""The log of a run, its metrics and its file."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from anyhull.backend import Array, wrap
from anyhull.errors import InputError
from anyhull.files import atomic_write

FORMAT = 1
"""Version of the file format."""

SHAPES = {"time": (), "state": (6,), "reference": (6,), "command": (3,), "current": (2,), "force": (3,)}
OPTIONAL = ("latent", "estimate")


@dataclass(frozen=True)
class Metrics:
    """Tracking errors of a run, and its use of the actuators."""

    position_cm: float
    """Mean distance to the reference, cm."""
    position_std_cm: float
    """Standard deviation of that distance over time, cm."""
    heading_deg: float
    """Mean absolute heading error, degrees."""
    heading_std_deg: float
    """Standard deviation of the absolute heading error over time, degrees."""
    position_max_cm: float
    """Largest distance, cm."""
    heading_max_deg: float
    """Largest absolute heading error, degrees."""
    delta_tau: float
    """Mean |Δτ| per step: absolute change of the normalized command, over the three axes."""
    saturation: float
    """Fraction of commands that are saturated."""


@dataclass(frozen=True, eq=False)
class Log:
    """One run, sampled at the control period: n rows."""

    time: Array
    """s, (n,)."""
    state: Array
    """x, y, psi, u, v, r of the boat, (n, 6)."""
    reference: Array
    """x, y, psi, u, v, r of the reference, (n, 6)."""
    command: Array
    """Normalized command, (n, 3)."""
    current: Array
    """Inertial-frame current, m/s, (n, 2)."""
    force: Array
    """Wind and wave force as fractions of the actuator limits, (n, 3)."""
    latent: Array | None = None
    """The controller's latent if it has one, (n, d)."""
    about: dict[str, Any] = field(default_factory=dict)
    """Vessel, controller, sea and seed of the run."""
    estimate: Array | None = None
    """The estimated state if the run had an estimator, (n, 6)."""

    @property
    def estimated(self) -> Log:
        """The log with the estimated state in place of the true state."""
        return self if self.estimate is None else replace(self, state=self.estimate, estimate=None)

    def during(self, stretches: Sequence[Sequence[float]]) -> Log:
        """The rows within the time intervals `stretches`, each [start, end] in s, concatenated."""
        rows = np.any([(self.time >= start) & (self.time <= end) for start, end in stretches], axis=0)
        arrays = {name: getattr(self, name) for name in (*SHAPES, *OPTIONAL)}
        return replace(self, **{name: array[rows] for name, array in arrays.items() if array is not None})

    @property
    def position_error(self) -> Array:
        """Distance to the reference, m, (n,)."""
        distance: Array = np.hypot(*(self.state - self.reference)[:, :2].T)
        return distance

    @property
    def heading_error(self) -> Array:
        """Heading minus reference heading in [-pi, pi), rad, (n,)."""
        error: Array = wrap((self.state - self.reference)[:, 2])
        return error

    def metrics(self) -> Metrics:
        """Errors in cm and degrees over the whole run, mean |Δτ| and saturation of the commands."""
        position, heading = 100 * self.position_error, np.degrees(np.abs(self.heading_error))
        change = np.abs(np.diff(self.command, axis=0))
        return Metrics(
            position_cm=float(position.mean()),
            position_std_cm=float(position.std()),
            heading_deg=float(heading.mean()),
            heading_std_deg=float(heading.std()),
            position_max_cm=float(position.max()),
            heading_max_deg=float(heading.max()),
            delta_tau=float(change.mean()) if len(change) else 0.0,
            saturation=float((np.abs(self.command) >= 1 - 1e-6).mean()),
        )

    def save(self, path: str | Path) -> Path:
        """Write the run to a NumPy archive (.npz), atomically."""
        path = Path(path)
        if path.suffix != ".npz":
            raise InputError(f"{path}: a log is saved as a NumPy archive: give a path that ends in .npz")
        arrays = {name: array for name in (*SHAPES, *OPTIONAL) if (array := getattr(self, name)) is not None}
        with atomic_write(path) as temporary, temporary.open("wb") as file:
            np.savez_compressed(file, about=json.dumps({"format": FORMAT, **self.about}), **arrays)
        return path

    @staticmethod
    def load(path: str | Path) -> Log:
        """Read a saved run; executes no code from the file."""
        try:
            with Path(path).open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                content = {name: file[name] for name in file.files}
            about = json.loads(str(content.pop("about")))
            arrays = {name: content[name] for name in SHAPES}
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
        except (KeyError, ValueError, EOFError, AttributeError, zipfile.BadZipFile) as error:
            raise InputError(f"{path}: not a log of a run, or damaged: {error}") from None
        if (version := about.pop("format", None)) != FORMAT:
            raise InputError(f"{path}: format = {version!r}: must be {FORMAT}, which this version reads")
        for name, shape in SHAPES.items():
            if arrays[name].shape != (len(arrays["time"]), *shape):
                raise InputError(
                    f"{path}: {name} has shape {arrays[name].shape}: must be (n, {', '.join(map(str, shape))})"
                )
        return Log(**arrays, latent=content.get("latent"), estimate=content.get("estimate"), about=about)


class Recorder:
    """Collects a run row by row; keywords are the fields of a Log."""

    def __init__(self) -> None:
        self._rows: list[dict[str, Any]] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, **row: Any) -> None:
        """Record one control period; a latent that is None or empty is omitted."""
        latent = row.pop("latent", None)
        self._rows.append(row if latent is None or not np.size(latent) else row | {"latent": np.array(latent)})

    def log(self, about: dict[str, Any]) -> Log:
        """The run so far. A missing field is zero; an optional field is None unless every row has it."""

        def column(name: str) -> Array:
            shape = (len(self._rows), *SHAPES.get(name, (-1,)))
            return np.array([row.get(name, np.zeros(SHAPES[name])) for row in self._rows], float).reshape(shape)

        optional = {name for name in OPTIONAL if self._rows and all(name in row for row in self._rows)}
        extra = {name: np.array([row[name] for row in self._rows], float) for name in optional}
        return Log(**{name: column(name) for name in SHAPES}, **extra, about=about)
