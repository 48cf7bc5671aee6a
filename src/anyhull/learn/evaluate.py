"""Vectorized closed loop: many boats along one reference, in JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from anyhull.arithmetic import wrap
from anyhull.dynamics import PERIOD
from anyhull.learn.motion import move
from anyhull.learn.task import PARTS
from anyhull.observation import observe, pack, recall
from anyhull.reference import PREVIEW, Reference

Act = Callable[[Any, Float[Array, "n o"], Float[Array, "n h"]], tuple[Any, Float[Array, "n 3"]]]
"""(memory, observations, histories) -> memory and commands, before clipping."""


def track(act: Act, memory: Any, e: Float[Array, "n 9"], reference: Reference) -> tuple[Array, Array, Array]:
    """Distances (m), heading errors (rad) and commands of boats `e` in ideal conditions, each (steps, n[, 3]).

    Starts at the reference, as `simulate` does.
    """
    steps = round(reference.duration / PERIOD)
    points = jnp.array(reference.at(PERIOD * np.arange(steps + PREVIEW, dtype=np.float64)), jnp.float32)
    windows = jnp.stack([points[k : k + steps] for k in range(PREVIEW + 1)], axis=1)
    boats = jnp.tile(points[0], (len(e), 1))
    still = jnp.zeros(2)

    def step(carry: Any, window: Array) -> Any:
        boat, before, previous, memory = carry
        o = jax.vmap(lambda b, p: pack(observe(b[:3], b[3:], window, p)))(boat, previous)
        h = jax.vmap(lambda b, last, p: pack(recall(b[:3], last, b[3:], p)))(boat, before, previous)
        memory, command = act(memory, o, h)
        command = jnp.clip(command, -1.0, 1.0)
        off = window[0] - boat
        seen = jnp.hypot(off[:, 0], off[:, 1]), wrap(off[:, 2]), command
        moved = jax.vmap(lambda b, c, e: move(b, jnp.tile(c, (PARTS, 1)), e, still))(boat, command, e)
        return (moved, boat[:, :3], command, memory), seen

    _, (distance, turn, command) = jax.lax.scan(step, (boats, boats[:, :3], jnp.zeros((len(e), 3)), memory), windows)
    return distance, turn, command
