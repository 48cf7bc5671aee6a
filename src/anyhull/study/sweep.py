"""The appendix: one vessel scaled in inertia and damping, one latent number, and a step of the scale during a run."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from anyhull.backend import Array
from anyhull.dynamics import PERIOD
from anyhull.hydrodynamics import Hydrodynamics
from anyhull.learn import checkpoints, evaluate, trainer
from anyhull.learn.environment import TrackingEnv
from anyhull.learn.policies import Student
from anyhull.log import Log
from anyhull.observation import scale_privileged
from anyhull.pilot import Pilot
from anyhull.reference import rounded_rectangle
from anyhull.simulate import simulate
from anyhull.study.convergence import monotone, settling
from anyhull.study.train_jobs import FINAL, Plan, TrainJob, train
from anyhull.vessel import Vessel

VESSEL = "platform-b"
"""The paper does not name the vessel. At ten times the mass this one still reaches 0.16 m/s."""

SCALES = np.geomspace(0.1, 10.0, 41)
RUNS = 16
"""References for each scale."""

SECONDS, LAST = 20.0, 5.0
"""Length of a run, and the part at its end over which the estimate is averaged, s."""

DROP, WHEN, END = 0.3, 10.0, 15.0
"""The scale that 1.0 drops to, the time of the drop and the end of the run, s."""

TIMES, AFTER = np.arange(4.0, 36.0), 10.0
"""Times of the drop in other runs, and the length of those from there, s."""

JOB = TrainJob("sweep", "sweep", vessels=(VESSEL,), rows={"sweep": FINAL}, keep={"sweep": "sweep"})


def study(plan: Plan) -> tuple[dict[str, Any], dict[str, Any], bool]:
    """Train the variant, then sweep the scale and drop it with every seed."""
    data, config, resumed = train(JOB, plan)
    scales, seconds = (SCALES[::10], 2.0) if plan.quick else (SCALES, SECONDS)
    seeds = []
    for i, path in enumerate(trainer.paths(plan.work / JOB.name, FINAL, plan.seeds, list(JOB.vessels))):
        student, its_config, _ = checkpoints.load_policy(path)
        assert isinstance(student, Student)
        pilot = Pilot.load(path)
        found = sweep(student, its_config.environment, scales, seconds) | {"drop": drop(student, pilot)}
        found["drops"] = drops(student, pilot, TIMES[::10] if plan.quick else TIMES)
        seeds.append(found)
        settled = found["drop"]["adapted"]
        plan.log(f"  seed {i}: encoder monotone: {monotone(found['encoder'])[0]}, settling time {settled:.1f} s")
    return data | {"vessel": VESSEL, "seeds": seeds}, config, resumed


def sweep(student: Student, environment: TrackingEnv, scales: Array, seconds: float) -> dict[str, Any]:
    """z₀ of encoder and adapter at each scale; the adapter's is the mean over runs and over their last seconds."""
    one, two = jax.random.split(jax.random.key(2))
    # The first uniform number of a reset is the place of the scale in its range, in logarithm.
    place = (jnp.log(jnp.array(scales, jnp.float32)) / environment.randomization.width + 1) / 2
    shape = (len(scales), RUNS, environment.reset_draws)
    uniforms = jax.random.uniform(one, shape).at[..., 0].set(place[:, None]).reshape(-1, shape[-1])
    found = evaluate.estimates(student, environment, uniforms, round(seconds / PERIOD), two)
    _, z, estimates = (np.asarray(x, float) for x in found)
    last = estimates[-round(min(LAST, seconds / 2) / PERIOD) :, :, 0].mean(axis=0).reshape(len(scales), RUNS)
    return {
        "scale": scales.tolist(),
        "encoder": z[::RUNS, 0].tolist(),
        "adapter": last.mean(axis=1).tolist(),
        "adapter_std": last.std(axis=1).tolist(),
    }


def scaled(vessel: Vessel, s: float) -> Vessel:
    """The vessel with all inertia and damping multiplied by s and the same actuator limits."""
    heavier = Hydrodynamics(**{name: s * value for name, value in asdict(vessel.hull).items()})
    return replace(vessel, m=s * vessel.mass, hydrodynamics=heavier)


def drop(student: Student, pilot: Pilot) -> dict[str, Any]:
    """One run on the rectangle during which the scale of the boat drops, without notice to the student."""
    log, estimate, (before, after) = _dropped(student, pilot, WHEN, END)
    reached, settled = settling(log.time, estimate, WHEN)
    adapted = settling(log.time, estimate, WHEN, (before, after))[1]
    return {
        "time": log.time.tolist(),
        "scale": np.where(log.time < WHEN - 1e-9, 1.0, DROP).tolist(),
        "encoder": np.where(log.time < WHEN - 1e-9, before, after).tolist(),
        "adapter": estimate.tolist(),
        "position_cm": (100 * log.position_error).tolist(),
        "first": reached,
        "seconds": settled,
        "adapted": adapted,
        "covered": (float(estimate[-1]) - before) / (after - before) if after != before else math.nan,
    }


def drops(student: Student, pilot: Pilot, times: Array) -> list[dict[str, Any]]:
    """Runs in which the scale drops at other times of the lap: whether in a corner, and the settling time.

    Adaptation needs excitation: a straight side that is tracked well has hardly any.
    """
    found = []
    for when in times.tolist():
        log, estimate, step = _dropped(student, pilot, when, when + AFTER)
        corner = bool(log.reference[round(when / PERIOD), 5] != 0.0)
        found.append({"when": when, "corner": corner, "adapted": settling(log.time, estimate, when, step)[1]})
    return found


def _dropped(student: Student, pilot: Pilot, when: float, end: float) -> tuple[Log, Array, tuple[float, float]]:
    """A run whose scale drops, the estimate in it, and the encoder's values before and after."""
    vessel = Vessel.load(VESSEL)
    lighter = scaled(vessel, DROP)
    log = simulate(pilot, vessel, rounded_rectangle(), duration=end, vessel_change=(when, lighter))
    assert log.latent is not None
    before, after = (
        float(student.teacher.latent(jnp.asarray(scale_privileged(np.array(boat.normalized)), jnp.float32))[0])
        for boat in (vessel, lighter)
    )
    return log, np.asarray(log.latent[:, 0], float), (before, after)
