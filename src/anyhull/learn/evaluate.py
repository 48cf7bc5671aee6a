"""Vectorized closed loop in JAX: many boats along one reference, or along those of training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from anyhull.arithmetic import wrap
from anyhull.dynamics import PERIOD
from anyhull.learn.networks import Student
from anyhull.learn.task import Task
from anyhull.reference import PREVIEW, Reference

Act = Callable[[Any, Float[Array, "n o"], Float[Array, "n h"], Float[Array, "n e"]], tuple[Any, Float[Array, "n 3"]]]
"""(memory, observations, histories, privileged vectors) -> memory and commands, before clipping."""


def track(
    act: Act,
    memory: Any,
    e: Float[Array, "n 9"],
    reference: Reference,
    task: Task | None = None,
    key: Array | None = None,
) -> tuple[Array, Array, Array]:
    """Distances (m), heading errors (rad) and commands of boats `e` in the task's sea, each (steps, n[, 3]).

    Starts at the reference, and measures without error, as `simulate` does; `key` draws the sea.
    """
    task, key = replace(task or Task(), noise=Task.noise), jax.random.key(0) if key is None else key
    steps, count = round(reference.duration / PERIOD), len(e)
    points = jnp.array(reference.at(PERIOD * np.arange(steps + PREVIEW + 1, dtype=np.float64)), float)
    windows = jnp.stack([points[k : k + steps + 1] for k in range(PREVIEW + 1)], axis=1)
    one, two = jax.random.split(key)

    def along(fleet: Any, window: Array) -> Any:
        return fleet._replace(window=jnp.broadcast_to(window, (count, *window.shape)))

    start = jnp.tile(points[0], (count, 1))
    fleet = jax.vmap(task.reset)(jax.random.uniform(one, (count, task.reset_draws)))
    fleet = along(fleet._replace(boat=start, before=start[:, :3], e=e), windows[0])

    def step(carry: Any, inputs: Any) -> Any:
        fleet, memory = carry
        draws, following = inputs
        o, h, p = (jax.vmap(look)(fleet) for look in (task.observe, task.recall, task.privileged))
        memory, command = act(memory, o, h, p)
        off = fleet.window[:, 0] - fleet.boat
        seen = jnp.hypot(off[:, 0], off[:, 1]), wrap(off[:, 2]), jnp.clip(command, -1.0, 1.0)
        moved, _ = jax.vmap(task.step)(fleet, command, draws)
        return (along(moved, following), memory), seen

    draws = task.draws(two, (steps, count))
    _, (distance, turn, command) = jax.lax.scan(step, (fleet, memory), (draws, windows[1:]))
    return distance, turn, command


@eqx.filter_jit
def rollout(student: Student, task: Task, count: int, steps: int) -> tuple[Array, Array, Array]:
    """Privileged vectors (n, p), latents (n, z), estimates (steps, n, z) of boats that the student meets and steers.

    Every boat has a reference of the training stream that it can follow, and starts off it as in training.
    """
    one, two = jax.random.split(jax.random.key(1))
    fleet = jax.vmap(task.reset)(jax.random.uniform(one, (count, task.reset_draws)))
    told = jax.vmap(task.privileged)(fleet)

    def step(carry: Any, draws: Any) -> Any:
        fleet, memory = carry
        o, h = jax.vmap(task.observe)(fleet), jax.vmap(task.recall)(fleet)
        command, z, memory = student.act(o, h, memory)
        moved, _ = jax.vmap(task.step)(fleet, command, draws)
        return (moved, memory), z

    memory = jnp.zeros((count, student.memory_size))
    _, estimates = jax.lax.scan(step, (fleet, memory), task.draws(two, (steps, count)))
    return told, student.teacher.latent(told), estimates


def latent_range(student: Student, task: Task, count: int = 1024, steps: int = 100) -> tuple[list[float], list[float]]:
    """The least and the largest estimate of each number of z over boats and seas of the task."""
    estimates = np.asarray(rollout(student, task, count, steps)[2]).reshape(count * steps, -1)
    return estimates.min(0).tolist(), estimates.max(0).tolist()
