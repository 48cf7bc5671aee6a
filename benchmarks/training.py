"""Training speed of a method: steps per second against environments and seeds, compile time, memory, a profile.

    python training.py --envs 256 1024 4096 --seeds 1 10 --json results/training-h200.json
    python training.py --method student --recipe apg    # the phases of the APG recipe
    python training.py --profile 20                     # time of an iteration by kernel

Each figure is the mean over whole iterations after a warm-up, synchronized with the device at the end.
"""

from __future__ import annotations

import argparse
import collections
import resource
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
from machine import describe, save

from anyhull.learn import config as presets
from anyhull.learn.config import METHODS, Config
from anyhull.learn.phases import Phase, phases
from anyhull.learn.trainer import spread

WARM_UP = 8
"""Iterations before the measurement: a GPU records its command buffers in the first ones."""


def resize(config: Config, envs: int) -> Config:
    """The config with that many environments in every phase."""
    parts = {name: replace(getattr(config, name), num_envs=envs) for name in ("ppo", "distillation", "apg", "finetune")}
    return replace(config, **parts)


def start(config: Config, number: int, seeds: int, policy: Any) -> tuple[Phase, Any, Any]:
    """A phase for that many seeds, its compiled iteration, and its state at the start."""
    phase, keys = spread(config, number, seeds), jax.random.split(jax.random.key(0), seeds)
    return phase, jax.jit(phase.iterate, donate_argnums=0), phase.initial(keys if seeds > 1 else keys[0], policy)


def iterate(step: Any, state: Any, count: int) -> tuple[Any, float]:
    """The state after `count` iterations, and the seconds that they took."""
    begin = time.perf_counter()
    for _ in range(count):
        state, _ = step(state)
    jax.block_until_ready(state)  # type: ignore[no-untyped-call]
    return state, time.perf_counter() - begin


def measure(config: Config, seeds: int, iterations: int) -> list[dict[str, Any]]:
    """One row for each phase."""
    rows = []
    policy: Any = None
    for number in range(len(phases(config))):
        phase, step, state = start(config, number, seeds, policy)
        state, compiled = iterate(step, state, 1)
        state, _ = iterate(step, state, WARM_UP)
        state, seconds = iterate(step, state, iterations)
        each = seconds / iterations
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
    """Peak memory so far, MB: of the device where it reports it, else of the process."""
    stats = jax.devices()[0].memory_stats() or {}
    peak: int = stats.get("peak_bytes_in_use", 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    return peak / 1e6


def profile(config: Config, seeds: int, most: int) -> list[dict[str, Any]]:
    """The kernels or operations of one iteration of the first phase that take the most time."""
    _, step, state = start(config, 0, seeds, None)
    state, _ = iterate(step, state, WARM_UP)
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            iterate(step, state, 1)
        trace = next(Path(folder).rglob("*.xplane.pb"))
        planes = list(jax.profiler.ProfileData.from_file(str(trace)).planes)
    found = [plane for plane in planes if "GPU" in plane.name] or [plane for plane in planes if "CPU" in plane.name]
    spent: collections.Counter[str] = collections.Counter()
    times: collections.Counter[str] = collections.Counter()
    for event in (event for plane in found for line in plane.lines for event in line.events):
        spent[event.name] += event.duration_ns
        times[event.name] += 1
    total = sum(spent.values())
    rows: list[dict[str, Any]] = [
        {"name": name, "ms": ns / 1e6, "times": times[name], "share": ns / total}
        for name, ns in spent.most_common(most)
    ]
    for row in rows:
        print(f"{row['ms']:9.3f} ms {row['times']:6d} x {100 * row['share']:5.1f} %  {row['name'][:80]}")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description="Training speed of a method.")
    parser.add_argument("--method", default="teacher", choices=METHODS)
    parser.add_argument("--recipe", default="ppo", choices=("ppo", "apg"))
    parser.add_argument("--envs", type=int, nargs="+", default=[1024])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--iterations", type=int, default=40)
    parser.add_argument("--profile", type=int, default=0, metavar="N", help="show the N costliest kernels too")
    parser.add_argument("--json", type=Path, metavar="PATH")
    arguments = parser.parse_args()
    config = (presets.paper if arguments.recipe == "ppo" else presets.apg)(arguments.method)
    results: dict[str, Any] = {"machine": describe(), "method": arguments.method, "recipe": arguments.recipe}
    results["rows"] = []
    for envs in arguments.envs:
        for seeds in arguments.seeds:
            rows = measure(resize(config, envs), seeds, arguments.iterations)
            results["rows"] += [{"envs": envs, **row} for row in rows]
    if arguments.profile:
        results["profile"] = {seeds: profile(config, seeds, arguments.profile) for seeds in arguments.seeds}
    save(arguments.json, results)


if __name__ == "__main__":
    main()
