"""The content of the latent: principal components, readout of e, and the error of the estimate in time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import numpy as np

from anyhull.backend import Array
from anyhull.dynamics import PERIOD
from anyhull.learn import checkpoints, evaluate
from anyhull.learn.environment import TrackingEnv
from anyhull.learn.policies import Student
from anyhull.observation import PRIVILEGED, scale_privileged
from anyhull.study.train_jobs import Plan, seed_policies

BOATS = 4096
"""Boats of the training distribution; the regression is fitted to half of them and tested on the other half."""

SECONDS = 20.0
"""Length of the rollouts."""

RIDGE = 1e-3
"""Penalty of the regression on standardized inputs, relative to the number of boats."""

COMPONENTS = ("α_u", "α_v", "α_r", "1/τ_u", "1/τ_v", "1/τ_r", "c_rv", "c_ru", "c_uv")


def study(plan: Plan, job: str, policy: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Findings for each student that `job` trained, and the config; `policy` is that of seed 0."""
    count, seconds = (64, 2.0) if plan.quick else (BOATS, SECONDS)
    paths = seed_policies(plan, job, policy)
    seeds = []
    for i, path in enumerate(paths):
        student, config, _ = checkpoints.load_policy(path)
        assert isinstance(student, Student)
        seeds.append(analyse(student, config.environment, count, seconds))
        shares = ", ".join(f"{100 * share:.1f} %" for share in seeds[-1]["shares"][:2])
        plan.log(f"  seed {i}: first two principal components {shares}")
    found = {"components": list(COMPONENTS), "period": PERIOD, "boats": count, "seeds": seeds}
    return found, {"of": job, "policies": [path.name for path in paths]}


def analyse(student: Student, environment: TrackingEnv, count: int, seconds: float) -> dict[str, Any]:
    """Shares of variance; R² of each component of e from z and from its estimate; error of the estimate in time."""
    uniforms, key = evaluate.training_draws(environment, count)
    found = evaluate.estimates(student, environment, uniforms, round(seconds / PERIOD), key)
    privileged, z, estimates = (np.asarray(x, float) for x in found)
    error = ((estimates - z) ** 2).sum(axis=-1) / z.var(axis=0).sum()  # (steps, boats)
    uniform = replace(environment, randomization=replace(environment.randomization, spacing="linear"))
    e = privileged[:, PRIVILEGED.e]
    if not environment.log_dynamics:
        e = scale_privileged(e)
    return {
        "shares": principal(z)[0].tolist(),
        "uniform_shares": principal(latents(student, uniform, uniforms))[0].tolist(),
        "told_shares": principal(privileged)[0].tolist(),
        "from_latent": readout(z, e).tolist(),
        "from_estimate": readout(estimates[-1], e).tolist(),
        "error_mean": error.mean(axis=1).tolist(),
        "error_median": np.median(error, axis=1).tolist(),
    }


def latents(student: Student, environment: TrackingEnv, uniforms: Any) -> Array:
    """The teacher's latents of the boats that an environment draws by these numbers."""
    privileged = jax.vmap(environment.privileged)(jax.vmap(environment.reset)(uniforms))
    return np.asarray(student.teacher.latent(privileged), float)


def principal(z: Array) -> tuple[Array, Array]:
    """Shares of the variance of z (n, d) in descending order, and the principal directions (d, d) as columns."""
    values, directions = np.linalg.eigh(np.atleast_2d(np.cov(z, rowvar=False)))
    values = np.maximum(values[::-1], 0.0)
    return values / max(values.sum(), 1e-30), directions[:, ::-1]


def readout(x: Array, y: Array) -> Array:
    """R² of ridge regression from x (n, d) to each column of y (n, k): fitted to the first half, tested on the rest."""
    half = len(x) // 2
    mean, scale = x[:half].mean(axis=0), x[:half].std(axis=0) + 1e-12
    standardized, target = (x - mean) / scale, y - y[:half].mean(axis=0)
    a, b = standardized[:half], target[:half]
    weights = np.linalg.solve(a.T @ a + RIDGE * half * np.eye(a.shape[1]), a.T @ b)
    residual = target[half:] - standardized[half:] @ weights
    r2: Array = 1 - (residual**2).mean(axis=0) / y[half:].var(axis=0)
    return r2
