"""Training speed of our PPO and of other libraries': whole iterations of the same task at the same sizes.

    pip install --no-deps --no-compile --target benchmarks/vendor rsl-rl-lib==2.3.3 equinox==0.13.8 optax==0.2.8 \\
        wadler-lindig==0.1.8 absl-py==2.5.1 stable-baselines3==2.9.2 gymnasium==1.4.0 cloudpickle==3.1.2 \\
        farama-notifications==0.0.6
    PYTHONPATH=src python benchmarks/compare_libraries.py --device cuda --json benchmarks/results/compare_libraries.json

`benchmarks/vendor` is last on the path and holds pure-Python packages for a machine without a network. `--check`
compares the PyTorch environment with ours and measures nothing.

ours         `anyhull.learn.ppo.iterate`, jitted, called in a Python loop; one seed, and ten at once by vmap
rsl_rl       rsl_rl's runner, storage, networks and PPO on the environment in PyTorch (`rsl_rl_environment.py`)
sb3          Stable-Baselines3's PPO on `anyhull.gym.TrackingVector`

All perform all epochs x minibatches gradient steps, on actors and critics of the paper's size. Ours also trains the
encoder and evaluates the observation before each reset. The networks of rsl_rl read the nine privileged numbers
directly. Those of Stable-Baselines3 do without them, and exchange every step with the environment through the host.
"""

from __future__ import annotations

import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # PyTorch needs room beside JAX; read by its import

import argparse
import ast
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from machine import describe, save

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE / "vendor"))

Row = dict[str, float]

PARTS = {"iteration_s": 13, "rollout_s": 11, "update_s": 10}
"""Columns of the table and their widths."""


def ours(config: Any, warm: int, iterations: int, seeds: int) -> Row:
    """Mean seconds of an iteration of `seeds` runs at once; the rollout's are those of `collect` on its own."""
    import jax
    import jax.numpy as jnp

    from anyhull.learn import ppo
    from anyhull.learn.environment import TrackingEnv
    from anyhull.learn.policies import Teacher

    env = TrackingEnv()

    def each(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return jax.vmap(function) if seeds > 1 else function

    def initial(key: Any) -> Any:
        one, two = jax.random.split(key)
        teacher = Teacher(env.observation_size, env.privileged_size, env.action_size, key=one)
        return ppo.initial(two, config, env, teacher)

    def collect(state: Any) -> Any:
        policy, env_state, memory, key = state.policy, state.env_state, state.memory, state.key
        env_state, memory, *rest = ppo.collect(policy, env_state, memory, key, jnp.zeros(()), config, env)
        return state._replace(env_state=env_state, memory=memory, key=jax.random.split(key)[0]), rest

    def times(function: Callable[[Any], Any], state: Any) -> tuple[Any, float, float]:
        """The state after all calls, the seconds of the warm-up, with compilation, and those of a call after it."""
        program = jax.jit(each(function), donate_argnums=0)
        start = time.perf_counter()
        for _ in range(warm):
            state, rest = program(state)
        jax.block_until_ready((state, rest))  # type: ignore[no-untyped-call]
        first = time.perf_counter()
        for _ in range(iterations):
            state, rest = program(state)
        jax.block_until_ready((state, rest))  # type: ignore[no-untyped-call]
        return state, first - start, (time.perf_counter() - first) / iterations

    keys = jax.random.split(jax.random.key(0), seeds)
    # Not jitted: on a CPU of few cores, orthogonal initializers that run in parallel deadlock (jaxlib 0.10.2).
    state = each(initial)(keys if seeds > 1 else keys[0])
    state, warmed, total = times(lambda s: ppo.iterate(s, config, env), state)
    _, _, rollout = times(collect, state)
    return {"warm_up_s": warmed, "iteration_s": total, "rollout_s": rollout, "update_s": total - rollout}


def rsl_rl(config: Any, device: str, warm: int, iterations: int, **options: Any) -> Row:
    """rsl_rl's runner, eager or compiled."""
    import rsl_rl_runner

    return rsl_rl_runner.measure(config, device, warm, iterations, **options)


def sb3(config: Any, device: str, warm: int, iterations: int) -> Row:
    """Stable-Baselines3's PPO through the adapter of examples/sb3_ppo.py."""
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback

    from anyhull.gym import TrackingVector
    from anyhull.learn.policies import ACTOR

    class Marks(BaseCallback):  # type: ignore[misc]
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
        example("sb3_ppo.py", "SB3Env")(TrackingVector(config.num_envs, progress=0.0)),
        learning_rate=config.learning_rate,
        n_steps=config.rollout_steps,
        batch_size=config.num_envs * config.rollout_steps // config.minibatches,
        n_epochs=config.epochs,
        gamma=config.gamma,
        gae_lambda=config.gae_lambda,
        clip_range=config.clip_range,
        ent_coef=config.entropy_coef,
        vf_coef=config.value_coef,
        max_grad_norm=config.max_grad_norm,
        policy_kwargs={"net_arch": list(ACTOR), "activation_fn": torch.nn.ELU},
        device=device,
    )
    marks = Marks()
    start = finished(device)
    model.learn((warm + iterations) * config.num_envs * config.rollout_steps, callback=marks)
    begins = [*marks.rollouts, finished(device)]
    total = (begins[-1] - begins[warm]) / iterations
    rolled = sum(u - r for r, u in list(zip(marks.rollouts, marks.updates, strict=True))[warm:]) / iterations
    return {"warm_up_s": begins[warm] - start, "iteration_s": total, "rollout_s": rolled, "update_s": total - rolled}


def finished(device: str) -> float:
    """The time (s) at which PyTorch's work on the device is done."""
    import rsl_rl_runner

    return rsl_rl_runner.now(device)


def example(script: str, name: str) -> Any:
    """A class defined in a script of examples/, without running the script."""
    tree = ast.parse((HERE.parent / "examples" / script).read_text())
    tree.body = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom | ast.ClassDef)]
    scope: dict[str, Any] = {"__name__": script}
    exec(compile(tree, script, "exec"), scope)
    return scope[name]


def measurements(config: Any, options: argparse.Namespace) -> dict[str, Callable[[], Row]]:
    """Every measurement by name."""
    times = (options.warm, options.iterations)

    def in_torch(**how: Any) -> Callable[[], Row]:
        return lambda: rsl_rl(config, options.device, *times, **how)

    named: dict[str, Callable[[], Row]] = {
        "ours, 1 seed": lambda: ours(config, *times, seeds=1),
        f"ours, {options.seeds} seeds": lambda: ours(config, *times, seeds=options.seeds),
        "rsl_rl, eager": in_torch(),
        "rsl_rl, compiled step": in_torch(compiled=True),
        "rsl_rl, compiled step and networks": in_torch(compiled=True, networks="default"),
        "sb3": lambda: sb3(config, options.device, *times),
    }
    if options.device.startswith("cuda"):  # last, since a failed capture can affect later measurements
        named["rsl_rl, both as CUDA graphs"] = in_torch(compiled=True, networks="reduce-overhead")
    return {name: run for name, run in named.items() if any(name.startswith(p) for p in options.libraries)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare the PyTorch environment with ours, and stop")
    parser.add_argument("--device", default="cuda", help="cpu or cuda")
    parser.add_argument("--libraries", nargs="+", default=["ours", "rsl_rl", "sb3"], help="first words of the rows")
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
        import rsl_rl_environment

        for name, difference in rsl_rl_environment.check(options.device).items():
            print(f"{name:>20} {difference:.1e}")
        return

    # On a GPU JAX rounds the networks' products to TF32 by default; PyTorch is set to the same.
    torch.set_float32_matmul_precision("high")

    from anyhull.learn.config import PPO

    sizes = {name: getattr(options, name) for name in ("envs", "steps", "epochs", "minibatches")}
    config = PPO(
        num_envs=options.envs, rollout_steps=options.steps, epochs=options.epochs, minibatches=options.minibatches
    )
    machine = describe("jax", "numpy", "torch", "rsl-rl-lib", "stable-baselines3")
    results: dict[str, Any] = {"machine": machine, **sizes, "iterations": options.iterations}
    results |= {"rows": {}, "skipped": {}}
    print(machine)
    print(f"{'':>36} {'warm-up s':>10} {'iteration ms':>13} {'rollout ms':>11} {'update ms':>10} {'steps/s':>12}")
    for name, run in measurements(config, options).items():
        try:
            row = run()
        except Exception as error:  # a library that is missing or fails must not stop the others
            results["skipped"][name] = f"{type(error).__name__}: {error}"[:400]
            print(f"{name:>36} skipped: {results['skipped'][name].splitlines()[0]}", flush=True)
        else:
            runs = options.seeds if name.endswith("seeds") else 1
            row["steps_per_s"] = runs * options.envs * options.steps / row["iteration_s"]
            results["rows"][name] = row
            times = " ".join(f"{1e3 * row[part]:>{width}.1f}" for part, width in PARTS.items())
            print(f"{name:>36} {row['warm_up_s']:>10.1f} {times} {row['steps_per_s']:>12,.0f}", flush=True)
        save(options.json, results)


if __name__ == "__main__":
    main()
