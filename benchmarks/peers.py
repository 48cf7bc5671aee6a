"""Training speed beside other people's learners: whole PPO iterations of the same task at the same shapes.

    pip install --no-deps --no-compile --target benchmarks/vendor rsl-rl-lib==2.3.3 equinox==0.13.8 optax==0.2.8 \\
        wadler-lindig==0.1.8 absl-py==2.5.1 stable-baselines3==2.9.2 gymnasium==1.4.0 cloudpickle==3.1.2 \\
        farama-notifications==0.0.6
    PYTHONPATH=src python benchmarks/peers.py --device cuda --json benchmarks/results/peers.json

`benchmarks/vendor` is looked in last, for what is not installed: pure-Python packages to take to a machine without a
network. `--check` holds the PyTorch task against ours instead of timing anything.

ours         `anyhull.learn.ppo.iterate`, jitted, called in a Python loop; one seed, and ten at once by vmap
rsl_rl       rsl_rl's runner, storage, networks and PPO on the task in PyTorch (`peer_rsl_rl.py`)
sb3          Stable-Baselines3's PPO on `anyhull.gym.TrackingFleet`

All do every one of the epochs x minibatches gradient steps, on actors and critics of the paper's size. Ours also trains
the encoder and sees the observation before each reset; rsl_rl's networks read the nine privileged numbers themselves;
Stable-Baselines3's do without them, and its boats and its networks exchange every step through the host.
"""

from __future__ import annotations

import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # PyTorch needs room beside JAX; read by its import

import argparse
import ast
import importlib.metadata
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from machine import describe

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE / "vendor"))

Row = dict[str, float]

PARTS = {"iteration_s": 13, "rollout_s": 11, "update_s": 10}
"""Columns of the table and their widths."""


def ours(config: Any, warm: int, iterations: int, seeds: int) -> Row:
    """Mean seconds of an iteration of `seeds` runs at once; the rollout's are those of `collect` on its own."""
    import jax

    from anyhull.learn import ppo
    from anyhull.learn.networks import Teacher
    from anyhull.learn.task import Task

    task = Task()

    def each(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return jax.vmap(function) if seeds > 1 else function

    def initial(key: Any) -> Any:
        one, two = jax.random.split(key)
        teacher = Teacher(task.observation_size, task.privileged_size, task.action_size, key=one)
        return ppo.initial(two, config, task, teacher)

    def collect(training: Any) -> Any:
        policy, fleet, memory, key = training.policy, training.fleet, training.memory, training.key
        fleet, memory, *rest = ppo.collect(policy, fleet, memory, key, 0.0, config, task)
        return training._replace(fleet=fleet, memory=memory, key=jax.random.split(key)[0]), rest

    def times(function: Callable[[Any], Any], training: Any) -> tuple[Any, float, float]:
        """What became of `training`, and the seconds of the warm-up, with compilation, and of a call after it."""
        program = jax.jit(each(function), donate_argnums=0)
        start = time.perf_counter()
        for _ in range(warm):
            training, rest = program(training)
        jax.block_until_ready((training, rest))
        first = time.perf_counter()
        for _ in range(iterations):
            training, rest = program(training)
        jax.block_until_ready((training, rest))
        return training, first - start, (time.perf_counter() - first) / iterations

    keys = jax.random.split(jax.random.key(0), seeds)
    # Not jitted: on a CPU of few cores, orthogonal initializers that run side by side wait for each other forever.
    training = each(initial)(keys if seeds > 1 else keys[0])
    training, warmed, total = times(lambda t: ppo.iterate(t, config, task), training)
    _, _, rollout = times(collect, training)
    return {"warm_up_s": warmed, "iteration_s": total, "rollout_s": rollout, "update_s": total - rollout}


def rsl_rl(config: Any, device: str, warm: int, iterations: int, **options: Any) -> Row:
    """rsl_rl's runner, eager or compiled: `peer_rsl_rl.measure`."""
    import peer_rsl_rl

    return peer_rsl_rl.measure(config, device, warm, iterations, **options)


def sb3(config: Any, device: str, warm: int, iterations: int) -> Row:
    """Stable-Baselines3's PPO through the adapter of examples/sb3_ppo.py."""
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback

    from anyhull.gym import TrackingFleet
    from anyhull.learn.networks import ACTOR

    class Marks(BaseCallback):
        """When rollouts and updates began (s)."""

        def _on_training_start(self) -> None:
            self.rollouts: list[float] = []
            self.updates: list[float] = []

        def _on_rollout_start(self) -> None:
            self.rollouts.append(finished(device))

        def _on_rollout_end(self) -> None:
            self.updates.append(finished(device))

        def _on_step(self) -> bool:
            return True

    model = PPO(
        "MlpPolicy",
        example("sb3_ppo.py", "Boats")(TrackingFleet(config.envs, progress=0.0)),
        learning_rate=config.rate,
        n_steps=config.steps,
        batch_size=config.envs * config.steps // config.minibatches,
        n_epochs=config.epochs,
        gamma=config.gamma,
        gae_lambda=config.lam,
        clip_range=config.clip,
        ent_coef=config.entropy,
        vf_coef=config.value,
        max_grad_norm=config.max_norm,
        policy_kwargs={"net_arch": list(ACTOR), "activation_fn": torch.nn.ELU},
        device=device,
    )
    marks = Marks()
    start = finished(device)
    model.learn((warm + iterations) * config.envs * config.steps, callback=marks)
    begins = [*marks.rollouts, finished(device)]
    total = (begins[-1] - begins[warm]) / iterations
    rolled = sum(u - r for r, u in list(zip(marks.rollouts, marks.updates, strict=True))[warm:]) / iterations
    return {"warm_up_s": begins[warm] - start, "iteration_s": total, "rollout_s": rolled, "update_s": total - rolled}


def finished(device: str) -> float:
    """The time (s) at which all that PyTorch gave to the device is done."""
    import peer_rsl_rl

    return peer_rsl_rl.now(device)


def example(script: str, name: str) -> Any:
    """A class defined in a script of examples/, without running the script."""
    tree = ast.parse((HERE.parent / "examples" / script).read_text())
    tree.body = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom | ast.ClassDef)]
    scope: dict[str, Any] = {"__name__": script}
    exec(compile(tree, script, "exec"), scope)
    return scope[name]


def peers(config: Any, options: argparse.Namespace) -> dict[str, Callable[[], Row]]:
    """Every measurement by name."""
    times = (options.warm, options.iterations)

    def torch_peer(**how: Any) -> Callable[[], Row]:
        return lambda: rsl_rl(config, options.device, *times, **how)

    named: dict[str, Callable[[], Row]] = {
        "ours, 1 seed": lambda: ours(config, *times, seeds=1),
        f"ours, {options.seeds} seeds": lambda: ours(config, *times, seeds=options.seeds),
        "rsl_rl, eager": torch_peer(),
        "rsl_rl, compiled step": torch_peer(compiled=True),
        "rsl_rl, compiled step and networks": torch_peer(compiled=True, networks="default"),
        "sb3": lambda: sb3(config, options.device, *times),
    }
    if options.device.startswith("cuda"):  # last, since a capture that fails can spoil what follows
        named["rsl_rl, both as CUDA graphs"] = torch_peer(compiled=True, networks="reduce-overhead")
    return {name: run for name, run in named.items() if any(name.startswith(p) for p in options.peers)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare the PyTorch task with ours, and stop")
    parser.add_argument("--device", default="cuda", help="cpu or cuda")
    parser.add_argument("--peers", nargs="+", default=["ours", "rsl_rl", "sb3"], help="beginnings of the rows' names")
    parser.add_argument("--envs", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--minibatches", type=int, default=8)
    parser.add_argument("--seeds", type=int, default=10, help="runs at once in our second row")
    parser.add_argument("--warm", type=int, default=5, help="iterations before the timed ones")
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--json", type=Path, help="write the results here as well")
    options = parser.parse_args()
    if options.device == "cpu":
        os.environ["JAX_PLATFORMS"] = "cpu"

    import torch

    if options.check:
        import peer_rsl_rl

        for name, off in peer_rsl_rl.check(options.device).items():
            print(f"{name:>20} {off:.1e}")
        return

    # JAX rounds the networks' products to TF32 on a GPU by default: let PyTorch do so too.
    torch.set_float32_matmul_precision("high")

    from anyhull.learn.ppo import PPO

    shapes = {name: getattr(options, name) for name in ("envs", "steps", "epochs", "minibatches")}
    config = PPO(**shapes)
    found = ["jax", "numpy", "torch", "rsl-rl-lib", "stable-baselines3"]
    installed = {d.metadata["Name"].lower().replace("_", "-") for d in importlib.metadata.distributions()}
    machine = describe(*(package for package in found if package in installed))
    results: dict[str, Any] = {
        "machine": machine,
        **shapes,
        "iterations": options.iterations,
        "rows": {},
        "skipped": {},
    }
    print(machine)
    print(f"{'':>36} {'warm-up s':>10} {'iteration ms':>13} {'rollout ms':>11} {'update ms':>10} {'steps/s':>12}")
    for name, run in peers(config, options).items():
        try:
            row = run()
        except Exception as error:  # a peer that is missing or fails must not cost the others' numbers
            results["skipped"][name] = f"{type(error).__name__}: {error}"[:400]
            print(f"{name:>36} skipped: {results['skipped'][name].splitlines()[0]}", flush=True)
        else:
            runs = options.seeds if name.endswith("seeds") else 1
            row["steps_per_s"] = runs * options.envs * options.steps / row["iteration_s"]
            results["rows"][name] = row
            times = " ".join(f"{1e3 * row[part]:>{width}.1f}" for part, width in PARTS.items())
            print(f"{name:>36} {row['warm_up_s']:>10.1f} {times} {row['steps_per_s']:>12,.0f}", flush=True)
        if options.json:
            options.json.parent.mkdir(parents=True, exist_ok=True)
            options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
