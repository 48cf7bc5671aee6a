"""The log of a run, its metrics and its file."""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from anyhull.backend import Array, wrap
from anyhull.errors import InputError
from anyhull.files import atomic_write
from anyhull.hydrodynamics import Normalized
from anyhull.scale import PERIOD
from anyhull.schema import shown
from anyhull.vessel import Vessel

FORMAT = 1
"""Version of the file format."""

SHAPES = {"time": (), "state": (6,), "reference": (6,), "command": (3,), "current": (2,), "force": (3,)}
OPTIONAL = ("latent", "estimate", "epoch", "thrusters", "angles", "dynamics", "sensors")
FIXED = {"estimate": (6,), "epoch": (), "dynamics": (18,), "sensors": (8,)}
"""Shapes of a row of those that have a fixed one."""
GAPS = ("dynamics", "sensors")
"""Those that may be missing in some rows, which hold NaN then."""
SENSORS = (
    "fix time [s]",
    "fix x [m]",
    "fix y [m]",
    "fix std [m]",
    "heading [rad]",
    "gyro [rad/s]",
    "acceleration x [m/s2]",
    "acceleration y [m/s2]",
)
"""Columns of the sensors' measurements; the time of a fix is in the boat's clock."""
MOTION = ("x [m]", "y [m]", "psi [rad]", "u [m/s]", "v [m/s]", "r [rad/s]")
AXES = ("surge [-]", "sway [-]", "yaw [-]")
"""Columns of what is a fraction of the actuator limits."""

LARGEST, LARGEST_SMALL, EXPANSION = 1_000_000_000, 64_000_000, 20
"""Size of the arrays of a log that is read, bytes: three days. So that a small file cannot fill the memory, at most
`EXPANSION` times the file, or `LARGEST_SMALL`: ten hours of a boat at rest, whose log compresses most."""

LARGEST_VALUE = 1e12
"""Magnitude of a number in a log, SI units."""


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
    epoch: Array | None = None
    """Absolute time, s since 1970 UTC by the computer's clock, (n,)."""
    thrusters: Array | None = None
    """Commands of the thrusters in [-1, 1], (n, thrusters)."""
    angles: Array | None = None
    """Directions of the thrusters from the bow toward positive sway, rad, (n, thrusters)."""
    dynamics: Array | None = None
    """The controller's estimate of the nine components e, then their spreads (`anyhull.pilot.Dynamics`); NaN where it
    did not steer; (n, 18)."""
    sensors: Array | None = None
    """The last measurement of each sensor in the period, by `SENSORS`; NaN where there is none; (n, 8)."""

    @property
    def period(self) -> float:
        """The control period, s: the median time between two rows."""
        return float(np.round(np.median(np.diff(self.time)), 6)) if len(self.time) > 1 else PERIOD

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

    def save_csv(self, path: str | Path) -> Path:
        """Write one line for each period, with the columns' units in the header; never over another file."""
        path, columns = Path(path), {"time [s]": self.time}
        if self.epoch is not None:
            columns["epoch [s]"] = self.epoch
        e = (f"{kind}{name}" for kind in ("", "spread ") for name in Normalized._fields)
        for name, units in (
            ("state", MOTION),
            ("reference", MOTION),
            ("estimate", MOTION),
            ("command", AXES),
            ("sensors", SENSORS),
            ("dynamics", e),
        ):
            if (array := getattr(self, name)) is not None:
                columns |= {f"{name} {unit}": array[:, i] for i, unit in enumerate(units)}
        columns |= {f"current {unit}": self.current[:, i] for i, unit in enumerate(("x [m/s]", "y [m/s]"))}
        columns |= {f"force {unit}": self.force[:, i] for i, unit in enumerate(AXES)}
        for name, unit in (("thrusters", "-"), ("angles", "rad"), ("latent", "-")):
            if (array := getattr(self, name)) is not None:
                columns |= {f"{name} {i} [{unit}]": array[:, i] for i in range(array.shape[1])}
        if path.exists():
            raise InputError(f"{path}: exists, and a record is never replaced: give another path")
        # An epoch has ten digits before the point. What is not measured is empty: spreadsheets take "nan" for a text.
        formats = ["%.14g" if name == "epoch [s]" else "%.9g" for name in columns]
        with atomic_write(path) as temporary, temporary.open("w") as file:
            file.write(",".join(columns) + "\n")
            for row in zip(*(array.tolist() for array in columns.values()), strict=True):
                file.write(",".join("" if x != x else form % x for form, x in zip(formats, row, strict=True)) + "\n")
        return path

    @staticmethod
    def load(path: str | Path) -> Log:
        """Read a saved run; executes no code from the file."""
        try:
            content = _read(path)
            about = json.loads(str(content.pop("about")[()]))
            if not isinstance(about, dict):
                raise ValueError("about is not a table")
        except InputError:
            raise
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
        except Exception as error:  # zipfile and NumPy raise a dozen kinds for damaged bytes
            raise InputError(f"{path}: not a log of a run, or damaged: {error or type(error).__name__}") from None
        if (version := about.pop("format", None)) != FORMAT:
            raise InputError(f"{path}: format = {shown(version)}: must be {FORMAT}, which this version reads")
        rows = content["time"].shape[:1]
        for name, array in content.items():
            shape = SHAPES.get(name, FIXED.get(name, array.shape[-1:]))
            if array.shape != (*rows, *shape) or rows in ((), (0,)):
                raise InputError(f"{path}: {name} has shape {array.shape}: must be (n, {', '.join(map(str, shape))})")
            # The type first: the numbers of others may overflow.
            if array.dtype != np.float64 or not _within(array, name in GAPS):
                raise InputError(f"{path}: {name} must hold double-precision numbers up to {LARGEST_VALUE:g}")
        if (np.diff(content["time"]) < 0).any():
            raise InputError(f"{path}: time runs backward: must not decrease from row to row")
        return Log(**content, about=about)


def _within(array: Array, gaps: bool) -> bool:
    """Whether all numbers are of a size that a run has; with `gaps`, some may be missing."""
    sizes = np.abs(array)
    return bool(((sizes <= LARGEST_VALUE) | (np.isnan(sizes) & gaps)).all())


def _read(path: str | Path) -> dict[str, Array]:
    """The arrays of a log's archive, none of which may be larger than the archive says and than is allowed."""
    with zipfile.ZipFile(path) as archive:
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        names = ["about", *SHAPES, *(name for name in OPTIONAL if name in members)]
        size = sum(members[name].file_size for name in names)
        limit = min(LARGEST, max(LARGEST_SMALL, EXPANSION * Path(path).stat().st_size))
        if size > limit:
            raise InputError(f"{path}: expands to {size / 1e6:.0f} MB: must be at most {limit / 1e6:.0f} MB")
        return {name: _array(archive.read(members[name])) for name in names}


def _array(data: bytes) -> Array:
    """The array of a .npy file in memory; NumPy's own reader reserves what the header states before it reads."""
    file = io.BytesIO(data)
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError("an array of another version than 1.0")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
    if fortran or dtype.kind not in "fU" or math.prod(shape) * dtype.itemsize != len(data) - file.tell():
        raise ValueError(f"an array {dtype}{list(shape)} in {len(data)} bytes")
    array: Array = np.frombuffer(data, dtype, offset=file.tell()).reshape(shape)
    return array


def describe_vessel(vessel: Vessel) -> dict[str, Any]:
    """What a log states about its vessel, from which other tools draw it."""
    size = {"length": vessel.length, "beam": vessel.beam, "limits": list(vessel.limits)}
    return {"vessel": vessel.name} | size | {"layout": [asdict(thruster) for thruster in vessel.thrusters]}


class Recorder:
    """Collects a run row by row; keywords are the fields of a Log."""

    def __init__(self, on_row: Callable[[dict[str, Any]], None] | None = None) -> None:
        """`on_row` gets each row as it is recorded."""
        self._rows: list[dict[str, Any]] = []
        self._on_row = on_row

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, **row: Any) -> None:
        """Record one control period; what is None or empty is omitted."""
        self._rows.append(
            {name: np.array(value) for name, value in row.items() if value is not None and np.size(value)}
        )
        if self._on_row:
            self._on_row(self._rows[-1])

    def log(self, about: dict[str, Any]) -> Log:
        """The run so far. A missing field is zero, one of `GAPS` NaN; others are None unless every row has them."""

        def column(name: str) -> Array:
            shape = (len(self._rows), *SHAPES.get(name, (-1,)))
            return np.array([row.get(name, np.zeros(SHAPES[name])) for row in self._rows], float).reshape(shape)

        kept = {name: sum(name in row for row in self._rows) for name in OPTIONAL}
        optional = [name for name, rows in kept.items() if rows and (name in GAPS or rows == len(self._rows))]
        empty = {name: np.full(FIXED[name], np.nan) for name in GAPS}
        extra = {name: np.array([row.get(name, empty.get(name)) for row in self._rows], float) for name in optional}
        return Log(**{name: column(name) for name in SHAPES}, **extra, about=about)
