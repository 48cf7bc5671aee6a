"""How fast a method trains: steps per second against environments and seeds, compilation apart, memory, a profile.

    python training.py --envs 256 1024 4096 --seeds 1 10 --json results/training-h200.json
    python training.py --method student --recipe gradient    # the phases of the first-order recipe
    python training.py --profile 20                          # where an iteration's time goes, by kernel

Each figure is the mean over whole iterations after a warm-up, the device waited for at the end.
"""

from __future__ import annotations

import argparse
import collections
import json
import resource
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
from machine import describe

from anyhull.files import whole
from anyhull.learn import methods
from anyhull.learn.runs import spread

WARM = 8
"""Iterations before the clock starts: a GPU's command buffers are recorded in the first ones."""


def sized(config: methods.Config, envs: int) -> methods.Config:
    """The config with that many environments in every phase."""
    parts = {name: replace(getattr(config, name), envs=envs) for name in ("ppo", "distillation", "descent", "joint")}
    return replace(config, **parts)


def measure(config: methods.Config, seeds: int, iterations: int) -> list[dict[str, Any]]:
    """A row for each phase."""
    rows = []
    policy: Any = None
    for number in range(len(methods.phases(config))):
        phase = spread(config, number, seeds)
        keys = jax.random.split(jax.random.key(0), seeds)
        state = phase.initial(keys if seeds > 1 else keys[0], policy)
        step = jax.jit(phase.iterate, donate_argnums=0)
        begin = time.perf_counter()
        state, _ = step(state)
        jax.block_until_ready(state)
        compiled = time.perf_counter() - begin
        for _ in range(WARM):
            state, _ = step(state)
        jax.block_until_ready(state)
        begin = time.perf_counter()
        for _ in range(iterations):
            state, _ = step(state)
        jax.block_until_ready(state)
        each = (time.perf_counter() - begin) / iterations
        rows.append(
            {
                "phase": phase.name,
                "seeds": seeds,
                "steps_per_iteration": phase.steps,
                "compile_s": compiled,
                "iteration_ms": 1e3 * each,
                "steps_per_s": seeds * phase.steps / each,
                "memory_MB": memory(),
                "whole_phase_s": each * phase.iterations,
            }
        )
        print({name: round(v, 2) if isinstance(v, float) else v for name, v in rows[-1].items()}, flush=True)
        policy = jax.tree.map(lambda leaf: leaf.copy(), phase.policy(state))
    return rows


def memory() -> float:
    """Largest use so far: of the device where it says, else of the process."""
    stats = jax.devices()[0].memory_stats() or {}
    return stats.get("peak_bytes_in_use", 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) / 1e6


def profile(config: methods.Config, seeds: int, most: int) -> list[dict[str, Any]]:
    """The kernels or operations of one iteration of the first phase that take the most time."""
    phase = spread(config, 0, seeds)
    keys = jax.random.split(jax.random.key(0), seeds)
    state = phase.initial(keys if seeds > 1 else keys[0], None)
    step = jax.jit(phase.iterate, donate_argnums=0)
    for _ in range(WARM):
        state, _ = step(state)
    jax.block_until_ready(state)
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            state, _ = step(state)
            jax.block_until_ready(state)
        trace = next(Path(folder).rglob("*.xplane.pb"))
        planes = list(jax.profiler.ProfileData.from_file(str(trace)).planes)
    wanted = [plane for plane in planes if "GPU" in plane.name] or [plane for plane in planes if "CPU" in plane.name]
    spent: collections.Counter[str] = collections.Counter()
    times: collections.Counter[str] = collections.Counter()
    for event in (event for plane in wanted for line in plane.lines for event in line.events):
        spent[event.name] += event.duration_ns
        times[event.name] += 1
    total = sum(spent.values())
    rows = [
        {"name": name, "ms": ns / 1e6, "times": times[name], "share": ns / total}
        for name, ns in spent.most_common(most)
    ]
    for row in rows:
        print(f"{row['ms']:9.3f} ms {row['times']:6d} x {100 * row['share']:5.1f} %  {row['name'][:80]}")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description="How fast a method trains.")
    parser.add_argument("--method", default="teacher", choices=methods.METHODS)
    parser.add_argument("--recipe", default="ppo", choices=("ppo", "gradient"))
    parser.add_argument("--envs", type=int, nargs="+", default=[1024])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--iterations", type=int, default=40)
    parser.add_argument("--profile", type=int, default=0, metavar="N", help="show the N costliest kernels too")
    parser.add_argument("--json", type=Path, metavar="PATH")
    arguments = parser.parse_args()
    build = methods.paper if arguments.recipe == "ppo" else methods.first_order
    config = build(arguments.method)
    results: dict[str, Any] = {
        "machine": describe(),
        "method": arguments.method,
        "recipe": arguments.recipe,
        "rows": [],
    }
    for envs in arguments.envs:
        for seeds in arguments.seeds:
            rows = measure(sized(config, envs), seeds, arguments.iterations)
            results["rows"] += [{"envs": envs, **row} for row in rows]
    if arguments.profile:
        results["profile"] = {seeds: profile(config, seeds, arguments.profile) for seeds in arguments.seeds}
    if arguments.json:
        with whole(arguments.json) as temporary:
            temporary.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
