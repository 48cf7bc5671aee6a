"""The appendix: one vessel scaled in inertia and damping, one latent number, and a drop of the scale under way."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from anyhull.dynamics import PERIOD
from anyhull.learn import files, runs
from anyhull.learn.networks import Student
from anyhull.learn.task import Task
from anyhull.observation import scale_privileged
from anyhull.pilot import Pilot
from anyhull.reference import rounded_rectangle
from anyhull.simulate import simulate
from anyhull.study.curves import convergence, monotone
from anyhull.study.learned import Plan, Training, train
from anyhull.vessel import Vessel

Array = NDArray[np.float64]

VESSEL = "platform-b"
"""The paper does not say which; this one can still move ten times as heavy, at 0.16 m/s."""

SCALES = np.geomspace(0.1, 10.0, 41)
RUNS = 16
"""References for each scale."""

SECONDS, LAST = 20.0, 5.0
"""Length of a run, and the end of it over which the estimate is averaged, s."""

DROP, WHEN, END = 0.3, 10.0, 15.0
"""The scale that 1.0 drops to, when, and the end of the run, s."""

TRAINING = Training("sweep", "sweep", vessels=(VESSEL,), row="sweep", ships=(("sweep", "sweep"),))


def study(plan: Plan) -> tuple[dict[str, Any], dict[str, Any], bool]:
    """Train the variant, then sweep and drop with every seed."""
    trained, config, begun = train(TRAINING, plan)
    paths = runs.paths(plan.work / TRAINING.piece, "policy", plan.seeds, TRAINING.vessels)
    seeds = []
    for i, path in enumerate(paths):
        student, its_config, _ = files.load_policy(path)
        assert isinstance(student, Student)
        curves = sweep(student, its_config.task, SCALES[::10] if plan.quick else SCALES, 2.0 if plan.quick else SECONDS)
        dropped = drop(student, Pilot.load(path))
        seeds.append(curves | {"drop": dropped})
        plan.say(f"  seed {i}: encoder monotone {monotone(curves['encoder'])[0]}, adapter {dropped['seconds']:.1f} s")
    return trained | {"vessel": VESSEL, "seeds": seeds}, config, begun


def sweep(student: Student, task: Task, scales: Array, seconds: float) -> dict[str, Any]:
    """z₀ of the encoder and of the adapter at each scale; the adapter's is a mean over runs and their last seconds."""
    told, estimates = _sweep(student, task, jnp.array(scales, jnp.float32), round(seconds / PERIOD))
    late = np.asarray(estimates, float)[-round(min(LAST, seconds / 2) / PERIOD) :].mean(axis=0)  # (scales, runs)
    return {
        "scale": scales.tolist(),
        "encoder": np.asarray(told, float).tolist(),
        "adapter": late.mean(axis=1).tolist(),
        "adapter_std": late.std(axis=1).tolist(),
    }


@eqx.filter_jit
def _sweep(student: Student, task: Task, scales: jax.Array, steps: int) -> tuple[jax.Array, jax.Array]:
    """z₀ (scales,) and its estimates (steps, scales, runs) along references that each boat can follow."""
    one, two = jax.random.split(jax.random.key(2))
    # The first uniform number of a reset is the scale's place in its range, in logarithm.
    place = (jnp.log(scales) / task.boats.width + 1) / 2
    uniforms = jax.random.uniform(one, (len(scales), RUNS, task.reset_draws)).at[..., 0].set(place[:, None])
    fleet = jax.vmap(task.reset)(uniforms.reshape(-1, task.reset_draws))
    told = jax.vmap(task.privileged)(fleet)

    def step(carry: Any, draws: Any) -> Any:
        fleet, memory = carry
        command, z, memory = student.act(jax.vmap(task.observe)(fleet), jax.vmap(task.recall)(fleet), memory)
        moved, _ = jax.vmap(task.step)(fleet, command, draws)
        return (moved, memory), z[:, 0]

    count = len(scales) * RUNS
    memory = jnp.zeros((count, student.memory_size))
    _, estimates = jax.lax.scan(step, (fleet, memory), task.draws(two, (steps, count)))
    z = student.teacher.latent(told)[:, 0].reshape(-1, RUNS)[:, 0]
    return z, estimates.reshape(steps, len(scales), RUNS)


def scaled(vessel: Vessel, s: float) -> Vessel:
    """A vessel with all inertia and damping times s and its limits as they are."""
    parts = ("m", "X_udot", "Y_vdot", "I_comb", "X_u", "Y_v", "N_r")
    return replace(vessel, **{name: s * getattr(vessel, name) for name in parts})


def drop(student: Student, pilot: Pilot) -> dict[str, Any]:
    """One run on the rectangle in which the boat becomes lighter, of which nobody tells the student."""
    vessel = Vessel.load(VESSEL)
    lighter = scaled(vessel, DROP)
    log = simulate(pilot, vessel, rounded_rectangle(), duration=END, becomes=(WHEN, lighter))
    assert log.latent is not None
    before, after = (
        float(student.teacher.latent(jnp.asarray(scale_privileged(np.array(boat.normalized)), jnp.float32))[0])
        for boat in (vessel, lighter)
    )
    estimate = np.asarray(log.latent[:, 0], float)
    first, stays = convergence(log.time, estimate, WHEN)
    return {
        "time": log.time.tolist(),
        "scale": np.where(log.time < WHEN - 1e-9, 1.0, DROP).tolist(),
        "encoder": np.where(log.time < WHEN - 1e-9, before, after).tolist(),
        "adapter": estimate.tolist(),
        "position_cm": (100 * log.position_error).tolist(),
        "first": first,
        "seconds": stays,
        "covered": (float(estimate[-1]) - before) / (after - before) if after != before else math.nan,
    }
