"""Evaluation of policies: many boats along one reference or those of training; metrics for policy files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from anyhull.backend import wrap
from anyhull.dynamics import PERIOD
from anyhull.hydrodynamics import Normalized
from anyhull.learn.config import Config
from anyhull.learn.environment import EnvState, Outcome, TrackingEnv
from anyhull.learn.policies import Policy, Student
from anyhull.learn.randomization import Randomization
from anyhull.learn.rollout import Step, rollout
from anyhull.learn.thrust import ThrusterModel
from anyhull.paper import PLATFORMS
from anyhull.reference import PREVIEW, Reference, rounded_rectangle
from anyhull.sea import Sea
from anyhull.vessel import Vessel

WITHOUT_SWAY = ("blueboat-nmpc", "heron", "kingfisher-sysid", "otter-0", "otter-25", "qiuxin5", "vtec-s3")
"""Vessels of the catalogue without sway force."""

LARGE_RECTANGLE = {"length": 14.0, "width": 10.0, "radius": 4.0}
"""The rectangle (m) that all of them can follow."""

RUNS = 20
"""Runs of each boat to average in a random sea."""


@dataclass(frozen=True)
class GivenReference(TrackingEnv):
    """The tracking environment with a given reference: `draws` is (draws, next window)."""

    def step(self, state: EnvState, action: Array, draws: Any, progress: Any = 1.0) -> tuple[EnvState, Outcome]:
        after, outcome = super().step(state, action, draws[0], progress)
        return after._replace(window=draws[1]), outcome


def track(
    policy: Policy,
    e: Float[Array, "n 9"],
    reference: Reference,
    environment: TrackingEnv | None = None,
    key: Array | None = None,
    *,
    at_rest: bool = False,
) -> tuple[Float[Array, "t n"], Float[Array, "t n"], Float[Array, "t n 3"]]:
    """Position errors (m), heading errors (rad) and commands of boats `e` in the environment's sea.

    Boats start at the reference, with its velocity or `at_rest`, and measure without error, as in `simulate`; `key`
    draws the sea.
    """
    environment, key = environment or TrackingEnv(), jax.random.key(0) if key is None else key
    given = GivenReference(**vars(replace(environment, sensor_noise=TrackingEnv.sensor_noise)))
    steps, count = round(reference.duration / PERIOD), len(e)
    points = jnp.array(reference.at(PERIOD * np.arange(steps + PREVIEW + 1, dtype=np.float64)), float)
    windows = jnp.stack([points[k : k + steps + 1] for k in range(PREVIEW + 1)], axis=1)
    windows = jnp.broadcast_to(windows[:, None], (steps + 1, count, PREVIEW + 1, 6))
    one, two = jax.random.split(key)
    start = jnp.tile(points[0].at[3:].set(0.0) if at_rest else points[0], (count, 1))
    state = jax.vmap(given.reset)(jax.random.uniform(one, (count, given.reset_draws)))
    state = state._replace(boat=start, previous_pose=start[:, :3], e=e, window=windows[0])

    def record(s: Step) -> tuple[Array, Array, Array]:
        error = s.state.window[:, 0] - s.state.boat
        return jnp.hypot(error[:, 0], error[:, 1]), wrap(error[:, 2]), jnp.clip(s.action, -1.0, 1.0)

    draws = given.draws(two, (steps, count)), windows[1:]
    memory = jnp.zeros((count, policy.memory_size))
    errors: tuple[Array, Array, Array] = rollout(policy.act, given, state, memory, draws, record)[2]
    return errors


@eqx.filter_jit
def estimates(
    student: Student, environment: TrackingEnv, uniforms: Float[Array, "n d"], steps: int, key: Array
) -> tuple[Float[Array, "n p"], Float[Array, "n z"], Float[Array, "t n z"]]:
    """Privileged vectors, latents and the student's estimates, of boats drawn by `uniforms` under its control.

    Every boat has a reference of the training distribution that it can follow, and an initial offset as in training.
    """
    state = jax.vmap(environment.reset)(uniforms)
    privileged = jax.vmap(environment.privileged)(state)
    memory = jnp.zeros((len(uniforms), student.memory_size))
    draws = environment.draws(key, (steps, len(uniforms)))
    found = rollout(student.act, environment, state, memory, draws, lambda s: s.latent)[2]
    return privileged, student.teacher.latent(privileged), found


def training_draws(environment: TrackingEnv, count: int) -> tuple[Float[Array, "n d"], Array]:
    """Uniform numbers for `count` boats of the training distribution, and a key for their rollouts."""
    one, two = jax.random.split(jax.random.key(1))
    return jax.random.uniform(one, (count, environment.reset_draws)), two


def latent_range(student: Student, environment: TrackingEnv) -> tuple[list[float], list[float]]:
    """The smallest and largest estimate of each component of z over boats and seas of the environment."""
    found = np.asarray(estimates(*_latent_range_inputs(student, environment))[2])
    return found.min((0, 1)).tolist(), found.max((0, 1)).tolist()


def _latent_range_inputs(student: Student, environment: TrackingEnv) -> Any:
    uniforms, key = training_draws(environment, 1024)
    return student, environment, uniforms, 100, key


def policy_metrics(policy: Policy, config: Config) -> dict[str, Any]:
    """Metrics of a policy file: tracking errors, and for a student the range of its latents."""
    tracked = tracking_metrics(policy, config)
    if not isinstance(policy, Student):
        return tracked
    return tracked | {"latent_range": latent_range(policy, config.environment)}


def lower_metrics(policy: Policy, config: Config) -> list[Any]:
    """The programs of `policy_metrics`, lowered for a policy of these shapes."""
    boats, cases = _cases(config)
    programs = [_track_rectangle.lower(policy, *_inputs(boats, *case)) for case in cases.values()]  # type: ignore[attr-defined]
    if isinstance(policy, Student):
        programs.append(estimates.lower(*_latent_range_inputs(policy, config.environment)))  # type: ignore[attr-defined]
    return programs


def tracking_metrics(policy: Policy, config: Config) -> dict[str, Any]:
    """Errors on the paper's rectangle: five platforms, or the one that a policy was trained for.

    In ideal conditions from the reference's velocity and, under `rest`, from rest; for a policy trained in another sea
    also in that, under `sea`.
    """
    boats, cases = _cases(config)
    found = {name: _metrics(policy, boats, *case) for name, case in cases.items()}
    return found.pop("ideal") | found


def _cases(config: Config) -> tuple[dict[str, Any], dict[str, tuple[TrackingEnv, int, bool]]]:
    """Boats by name; the cases of the evaluation: environment, runs of each boat, and whether they start at rest."""
    center = config.environment.randomization.center
    sway = config.environment.randomization.sway
    boats = (
        {name: Vessel.load(name).normalized for name in PLATFORMS}
        if center is None
        else {"trained for": center.normalized}
    )
    if not sway:
        boats = {name: _pushed(Vessel.load(name).effective()) for name in WITHOUT_SWAY}
    # The training distribution has no effect here, and would cause a recompilation for each.
    environment = replace(config.environment, randomization=Randomization(sway=sway), thrusters=ThrusterModel())
    ideal = replace(environment, sea=Sea.ideal())
    cases = {"ideal": (ideal, 1, False), "rest": (ideal, 1, True)}
    return boats, cases | ({} if environment == ideal else {"sea": (environment, RUNS, False)})


def _pushed(e: Normalized) -> Normalized:
    """A boat without sway force in wind that is measured by its surge force, as in training."""
    return e._replace(alpha_v=e.alpha_u / e.c_rv)


def _inputs(boats: dict[str, Any], environment: TrackingEnv, runs: int, at_rest: bool) -> tuple[Array, Any, bool]:
    return jnp.repeat(jnp.array(list(boats.values())), runs, axis=0), environment, at_rest


def _metrics(
    policy: Policy, boats: dict[str, Any], environment: TrackingEnv, runs: int, at_rest: bool
) -> dict[str, Any]:
    """Mean errors, |Δτ| and saturation, over all and for each boat, with the position error of each of several runs."""
    distance, turn, command = _track_rectangle(policy, *_inputs(boats, environment, runs, at_rest))

    def by_boat(values: Any) -> Any:
        return np.mean(values, axis=0).reshape(len(boats), runs, -1).mean(axis=(1, 2))

    columns = {
        "position_cm": by_boat(100 * distance),
        "heading_deg": by_boat(np.degrees(np.abs(turn))),
        "delta_tau": by_boat(np.abs(np.diff(command, axis=0))),
        "saturation": by_boat(np.abs(command) >= 1),
    }
    each: dict[str, dict[str, Any]]
    each = {boat: {name: float(column[i]) for name, column in columns.items()} for i, boat in enumerate(boats)}
    if runs > 1:
        by_run = 100 * np.mean(distance, axis=0).reshape(len(boats), runs)
        for boat, errors in zip(boats, by_run, strict=True):
            each[boat]["runs_cm"] = errors.tolist()
    return {name: float(column.mean()) for name, column in columns.items()} | {"platforms": each}


@eqx.filter_jit
def _track_rectangle(policy: Policy, e: Array, environment: TrackingEnv, at_rest: bool) -> Any:
    # TF32 rounds products to ten bits on a GPU: an error of 0.15 degrees for a recurrent policy.
    with jax.default_matmul_precision("highest"):
        rectangle = {} if environment.randomization.sway else LARGE_RECTANGLE
        return track(policy, e, rounded_rectangle(**rectangle), environment, at_rest=at_rest)
