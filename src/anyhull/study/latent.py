"""What the latent holds: its principal components, what can be read out of it, and how fast the adapter finds it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyhull.dynamics import PERIOD
from anyhull.learn import files
from anyhull.learn.evaluate import rollout
from anyhull.learn.networks import Student
from anyhull.learn.task import Task
from anyhull.study.learned import Plan, students

Array = NDArray[np.float64]

BOATS = 4096
"""Boats of the training distribution; half are fitted to, half are held out."""

SECONDS = 20.0
"""Length of the rollouts."""

RIDGE = 1e-3
"""Penalty of the regression, relative to the number of boats, on standardized numbers."""

COMPONENTS = ("α_u", "α_v", "α_r", "1/τ_u", "1/τ_v", "1/τ_r", "c_rv", "c_ru", "c_uv")


def study(plan: Plan, piece: str, shipped: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Findings for each seed of the students that a piece trained, and which they are."""
    count, seconds = (64, 2.0) if plan.quick else (BOATS, SECONDS)
    paths = students(plan, piece, shipped)
    seeds = []
    for i, path in enumerate(paths):
        student, config, _ = files.load_policy(path)
        assert isinstance(student, Student)
        seeds.append(of_student(student, config.task, count, seconds))
        shares = ", ".join(f"{100 * share:.1f} %" for share in seeds[-1]["shares"][:2])
        plan.say(f"  seed {i}: first two principal components {shares}")
    found = {"components": list(COMPONENTS), "period": PERIOD, "boats": count, "seeds": seeds}
    return found, {"of": piece, "policies": [path.name for path in paths]}


def of_student(student: Student, task: Task, count: int, seconds: float) -> dict[str, Any]:
    """Shares of variance; R² of each component of e from z and from its estimate; the estimate's error in time."""
    steps = round(seconds / PERIOD)
    told, z, estimates = (np.asarray(x, float) for x in rollout(student, task, count, steps))
    half = count // 2
    spread = z.var(axis=0).sum()
    error = ((estimates - z) ** 2).sum(axis=-1) / spread  # (steps, boats)
    e = told[:, : len(COMPONENTS)]
    return {
        "shares": principal(z)[0].tolist(),
        "told_shares": principal(told)[0].tolist(),
        "from_latent": readout(z[:half], e[:half], z[half:], e[half:]).tolist(),
        "from_estimate": readout(estimates[-1][:half], e[:half], estimates[-1][half:], e[half:]).tolist(),
        "error_mean": error.mean(axis=1).tolist(),
        "error_median": np.median(error, axis=1).tolist(),
    }


def principal(z: Array) -> tuple[Array, Array]:
    """Shares of the variance of (n, d), the largest first, and the directions (d, d) in columns."""
    values, directions = np.linalg.eigh(np.atleast_2d(np.cov(z, rowvar=False)))
    values = np.maximum(values[::-1], 0.0)
    return values / max(values.sum(), 1e-30), directions[:, ::-1]


def readout(x: Array, y: Array, x_held: Array, y_held: Array) -> Array:
    """R² on held-out boats of ridge regression from x (n, d) to each column of y (n, k)."""
    middle, scale = x.mean(axis=0), x.std(axis=0) + 1e-12
    a, b = (x - middle) / scale, y - y.mean(axis=0)
    weights = np.linalg.solve(a.T @ a + RIDGE * len(a) * np.eye(a.shape[1]), a.T @ b)
    off = y_held - y.mean(axis=0) - (x_held - middle) / scale @ weights
    left: Array = 1 - (off**2).mean(axis=0) / y_held.var(axis=0)
    return left
