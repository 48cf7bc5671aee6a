"""Environment steps per second against the number of environments, on whatever device JAX finds."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import jax
import jax.numpy as jnp
from machine import describe

from anyhull.learn.task import Task, renew
from anyhull.sea import Sea

STEPS = 100


def rollout(count: int, task: Task):
    """A jitted program: `STEPS` steps of `count` environments under random actions, with resets."""

    def body(carry, key):
        fleet, action = carry
        one, two, three = jax.random.split(key, 3)
        draws = task.draws(one, (count,))
        uniforms = jax.random.uniform(two, (count, task.reset_draws))
        action = 0.9 * action + 0.1 * jax.random.normal(three, (count, 3))
        fleet, outcome = jax.vmap(task.step)(fleet, action, draws)
        fresh = jax.vmap(task.reset)(uniforms)
        fleet = renew(outcome.terminated | outcome.truncated, fresh, fleet)
        return (fleet, action), (outcome.reward.mean(), jax.vmap(task.observe)(fleet).mean())

    @jax.jit
    def program(fleet, key):
        (fleet, _), out = jax.lax.scan(body, (fleet, jnp.zeros((count, 3))), jax.random.split(key, STEPS))
        return fleet, out

    return program


def measure(count: int, task: Task, repeats: int = 5) -> dict[str, float]:
    """Compile time and the median rate of `repeats` rollouts."""
    uniforms = jax.random.uniform(jax.random.key(0), (count, task.reset_draws))
    fleet = jax.vmap(task.reset)(uniforms)
    program = rollout(count, task)
    start = time.perf_counter()
    fleet, _ = jax.block_until_ready(program(fleet, jax.random.key(1)))
    compiled = time.perf_counter() - start
    times = []
    for i in range(repeats):
        start = time.perf_counter()
        fleet, _ = jax.block_until_ready(program(fleet, jax.random.key(i)))
        times.append(time.perf_counter() - start)
    return {"compile_s": compiled, "steps_per_s": count * STEPS / sorted(times)[repeats // 2]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the results here as well")
    parser.add_argument("--counts", type=int, nargs="+", default=[1, 16, 128, 1024, 8192])
    options = parser.parse_args()
    results: dict[str, object] = {"machine": describe(), "steps": STEPS, "seas": {}}
    print(f"{results['machine']}\n{'sea':>8} {'envs':>8} {'compile s':>10} {'steps/s':>14}")
    for name in ("ideal", "field"):
        rows = {}
        for count in options.counts:
            rows[count] = row = measure(count, Task(sea=Sea.preset(name)))
            print(f"{name:>8} {count:>8} {row['compile_s']:>10.1f} {row['steps_per_s']:>14,.0f}", flush=True)
        results["seas"][name] = rows  # type: ignore[index]
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
