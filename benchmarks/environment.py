"""Environment steps per second against the number of environments, on whatever device JAX finds."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array
from machine import describe, save

from anyhull.learn.environment import EnvState, TrackingEnv, auto_reset
from anyhull.sea import Sea

STEPS = 100

Means = tuple[Array, Array]
"""Of reward and observation, at every step."""


def rollout(count: int, env: TrackingEnv) -> Callable[[EnvState, Array], tuple[EnvState, Means]]:
    """A jitted program: `STEPS` steps of `count` environments under random actions, with resets."""

    def body(carry: tuple[EnvState, Array], key: Array) -> tuple[tuple[EnvState, Array], Means]:
        state, action = carry
        one, two, three = jax.random.split(key, 3)
        draws = env.draws(one, (count,))
        uniforms = jax.random.uniform(two, (count, env.reset_draws))
        action = 0.9 * action + 0.1 * jax.random.normal(three, (count, 3))
        state, outcome = jax.vmap(env.step)(state, action, draws)
        state = auto_reset(outcome.terminated | outcome.truncated, jax.vmap(env.reset)(uniforms), state)
        return (state, action), (outcome.reward.mean(), jax.vmap(env.observe)(state).mean())

    @jax.jit
    def program(state: EnvState, key: Array) -> tuple[EnvState, Means]:
        (state, _), out = jax.lax.scan(body, (state, jnp.zeros((count, 3))), jax.random.split(key, STEPS))
        return state, out

    return program


def measure(count: int, env: TrackingEnv, repeats: int = 5) -> dict[str, float]:
    """Compile time and the median rate of `repeats` rollouts."""
    state = jax.vmap(env.reset)(jax.random.uniform(jax.random.key(0), (count, env.reset_draws)))
    program = rollout(count, env)
    start = time.perf_counter()
    state, _ = jax.block_until_ready(program(state, jax.random.key(1)))  # type: ignore[no-untyped-call]
    compiled = time.perf_counter() - start
    times = []
    for i in range(repeats):
        start = time.perf_counter()
        state, _ = jax.block_until_ready(program(state, jax.random.key(i)))  # type: ignore[no-untyped-call]
        times.append(time.perf_counter() - start)
    return {"compile_s": compiled, "steps_per_s": count * STEPS / sorted(times)[repeats // 2]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the results here as well")
    parser.add_argument("--counts", type=int, nargs="+", default=[1, 16, 128, 1024, 8192])
    options = parser.parse_args()
    results: dict[str, Any] = {"machine": describe(), "steps": STEPS, "seas": {}}
    print(f"{results['machine']}\n{'sea':>8} {'envs':>8} {'compile s':>10} {'steps/s':>14}")
    for name in ("ideal", "field"):
        results["seas"][name] = rows = {}
        for count in options.counts:
            rows[count] = row = measure(count, TrackingEnv(sea=Sea.preset(name)))
            print(f"{name:>8} {count:>8} {row['compile_s']:>10.1f} {row['steps_per_s']:>14,.0f}", flush=True)
    save(options.json, results)


if __name__ == "__main__":
    main()
