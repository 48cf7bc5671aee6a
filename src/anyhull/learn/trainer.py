"""Training runs over seeds, devices and processes, with progress reports, checkpoints and files."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from anyhull.errors import InputError, RunError
from anyhull.files import atomic_write
from anyhull.hydrodynamics import Theta
from anyhull.learn import checkpoints, distributed, evaluate
from anyhull.learn.config import Config
from anyhull.learn.phases import Phase, phases
from anyhull.learn.policies import Policy
from anyhull.learn.precompile import precompile

LOOK_INTERVAL = 1.0
"""Approximate time between two reads of the metrics, s; the devices do not wait for the host in between."""

MAX_ITERATIONS = 100
"""Largest number of iterations between two reads."""


class Report(NamedTuple):
    """Progress of a run."""

    phase: str
    iteration: int
    iterations: int
    rate: float
    """Environment steps per second, of all seeds together."""
    left: float
    """Remaining time of the phase at that rate, s."""
    metrics: dict[str, float]
    """Means over seeds: reward terms by name, and metrics of the method."""
    tracking: dict[str, Any] | None
    """Errors of the first seed on the paper's rectangle, if just measured."""
    seeds: int = 1


def train(
    config: Config | Mapping[str, Config],
    folder: str | Path,
    *,
    start: Policy | None = None,
    seeds: int = 1,
    seed: int = 0,
    resume: bool = False,
    checkpoint_interval: float = 20.0,
    every_phase: bool = False,
    report: Callable[[Report], None] | None = None,
) -> list[Path]:
    """Train a method in `folder` and return the paths of its policies, one a seed.

    Several seeds are one vmapped program. So are several configs by name, which may differ only in
    `randomization.center`: each is trained with every seed, and its name is part of the file names. A checkpoint is
    written every `checkpoint_interval` s; with `resume`, a stopped run continues from it with the same final weights.
    With a policy to `start` from, as `config` describes it, only the last phase runs, and goes on with its weights.
    With `every_phase`, the policies of intermediate phases are written too, in files named after the phase. Of several
    processes (`distributed.join`) only the first uses the folder and reports; the others return no paths.
    """
    folder = Path(folder)
    configs = {"": config} if isinstance(config, Config) else dict(config)
    config, count = next(iter(configs.values())), len(configs) * seeds
    check_configs(configs)
    origin = {} if start is None else {"start": checkpoints.digest(start)}
    record = json.loads(json.dumps(origin | {"config": recorded(configs), "seeds": seeds, "seed": seed}))
    distributed.check_equal(record)
    distributed.on_leader(open_folder, folder, record, resume)
    owners = [owner for owner in configs.values() for _ in range(seeds)]
    centers = None if len(configs) == 1 else jnp.array([owner.environment.randomization.center for owner in owners])
    last = len(phases(config)) - 1
    numbers = range(last + 1) if start is None else [last]
    parts = [spread(config, number, count, centers) for number in numbers]
    own = [jax.random.fold_in(jax.random.key(seed), i) for i in range(seeds)] * len(configs)
    keys = [[jax.random.fold_in(key, number) for key in own] for number in numbers]
    starts = [jnp.stack(several) if count > 1 else several[0] for several in keys]

    files = [folder / f"checkpoint-{number}.safetensors" for number in numbers]
    done = distributed.on_leader(lambda: [iterations_done(file) for file in files]) or [0] * len(parts)
    wanted = [n < phase.iterations for n, phase in zip(distributed.broadcast(*done), parts, strict=True)]
    policy: Any = start
    if start is not None and count > 1:
        policy = jax.tree.map(lambda leaf: jnp.stack([leaf] * count), start)
    written: list[Path] = []
    with precompile(parts, starts, policy, wanted, count, partial(evaluate.lower_metrics, config=config)) as programs:
        for phase, key, file, (program, measures) in zip(parts, starts, files, programs, strict=True):
            state = phase.initial(key, policy)
            state = distributed.on_leader(restored, file, state) or state
            state = distributed.shard(distributed.broadcast_tree(state), count)
            place = folder, file, count, checkpoint_interval
            state = run_phase(phase, state, program, Monitor(phase, config, *place, measures, report))
            policy = jax.device_get(phase.policy(distributed.gather(state)))
            if phase is parts[-1] or every_phase:
                names = paths(folder, "policy" if phase is parts[-1] else phase.name, seeds, list(configs))
                saved = zip(names, policies(policy, count), owners, strict=True)
                written = distributed.on_leader(save_policies, saved, origin) or written
    return written


def run_phase(phase: Phase, state: Any, program: Future[Callable[[Any], Any]], monitor: Monitor) -> Any:
    """Run the remaining iterations of a phase, with periodic monitoring."""
    done, count = int(np.ravel(distributed.gather(state.iteration))[0]), 1
    if done == phase.iterations:
        return state
    # Not a scan over iterations: nested loops are slow on a GPU, and the host monitors the run.
    step = program.result()
    monitor.start(done)
    while done < phase.iterations:
        for _ in range(count):
            state, metrics = step(state)
        done += count
        values = {name: float(np.mean(value)) for name, value in distributed.gather(metrics).items()}  # waits
        measure, save, count = distributed.broadcast(*monitor.plan(done, count))
        whole = distributed.gather(state) if measure or save else None
        distributed.on_leader(monitor.look, done, values, whole if measure else None, whole if save else None)
    return state


@dataclass
class Monitor:
    """Progress reports, metrics and checkpoints of one phase."""

    phase: Phase
    config: Config
    folder: Path
    checkpoint: Path
    seeds: int
    interval: float
    """Seconds between checkpoints."""
    measures: list[Future[Any]]
    """Compilations of the metrics."""
    report: Callable[[Report], None] | None

    def start(self, done: int) -> None:
        """Start the clock and the count of iterations."""
        self._events: Any = distributed.on_leader(event_writer, self.folder / "events")
        self._begun, self._started = done, time.monotonic()
        self._saved = self._measured = self._seen = self._started

    def plan(self, done: int, count: int) -> tuple[bool, bool, int]:
        """Whether to measure and to save now, and the number of iterations before the next `look`."""
        now, over = time.monotonic(), done == self.phase.iterations
        pace = int(count * min(LOOK_INTERVAL, self.interval) / (now - self._seen))
        measure = now - self._measured > self.interval / 2 and all(program.done() for program in self.measures)
        save = now - self._saved > self.interval
        return over or measure, over or save, min(max(pace, 1), MAX_ITERATIONS, self.phase.iterations - done)

    def look(self, done: int, values: dict[str, float], measured: Any, saved: Any) -> None:
        """Check, log and report; measure and save the states that are not None."""
        phase, seeds = self.phase, self.seeds
        if lost := [name for name, value in values.items() if not np.isfinite(value)]:
            message = f"{self.folder}: {phase.name} diverged by iteration {done}: {', '.join(lost)} not finite"
            raise RunError(f"{message}; try a smaller learning rate")
        rate = (done - self._begun) * phase.steps * seeds / (time.monotonic() - self._started)
        errors = None
        if measured is not None:
            wait(self.measures)
            first = policies(jax.device_get(phase.policy(measured)), seeds)[0]
            errors, suffix = evaluate.tracking_metrics(first, self.config), "_seed_0" * (seeds > 1)
            values |= {name + suffix: errors[name] for name in ("position_cm", "heading_deg")}
            self._measured = time.monotonic()
        for name, value in values.items() if self._events else ():
            self._events.add_scalar(f"{phase.name}/{name}", value, done * phase.steps)
        if self.report:
            left = (phase.iterations - done) * phase.steps * seeds / rate
            self.report(Report(phase.name, done, phase.iterations, rate, left, values, errors, seeds))
        if saved is not None:
            checkpoints.save_state(self.checkpoint, saved, {"iteration": done})
            self._saved = time.monotonic()
        if self._events and done == phase.iterations:
            self._events.close()
        self._seen = time.monotonic()


def event_writer(folder: Path) -> Any:
    """A writer of TensorBoard's event files, where tensorboardX is installed."""
    try:
        from tensorboardX import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(folder), flush_secs=10)


def check_configs(configs: dict[str, Config]) -> None:
    """Reject configs that cannot be trained together, or not on these devices."""
    config = next(iter(configs.values()))
    if any(around(other, None) != around(config, None) for other in configs.values()):
        raise InputError(f"configs {', '.join(configs)}: may differ only in environment.randomization.center")
    for name in ("ppo", "distillation", "apg", "finetune"):
        part = getattr(config, name)
        pieces = getattr(part, "minibatches", 1)
        if part.num_envs % pieces or part.num_envs % len(jax.devices()):
            must = f"a multiple of minibatches = {pieces} and of the {len(jax.devices())} devices"
            raise InputError(f"{name}.num_envs = {part.num_envs}: must be {must}")


def paths(folder: Path, stem: str, seeds: int, names: Sequence[str] = ("",)) -> list[Path]:
    """The files of the policies of a run or of one of its phases: for each config, one per seed."""
    ends = [""] if seeds == 1 else [f"-{i}" for i in range(seeds)]
    return [folder / f"{stem}{name and '-'}{name}{end}.safetensors" for name in names for end in ends]


def recorded(configs: dict[str, Config]) -> dict[str, Any]:
    """The configs as plain values: by name, or the only one if it has no name."""
    every = {name: dataclasses.asdict(config) for name, config in configs.items()}
    return every[""] if list(every) == [""] else every | {"order": list(every)}


def open_folder(folder: Path, record: dict[str, Any], resume: bool) -> None:
    """Write `record` to config.json, or check that the run to resume has the same."""
    path = folder / "config.json"
    if not path.exists():
        with atomic_write(path) as temporary:
            temporary.write_text(json.dumps(record, indent=2) + "\n")
        return
    if not resume:
        raise InputError(f"{folder}: holds a run already: resume it, or give another folder")
    for leftover in folder.glob(".*-*.safetensors"):
        leftover.unlink()  # partial files of a killed run
    before, now = _flat(json.loads(path.read_text())), _flat(record)
    for name in now | before:
        if before.get(name) != now.get(name):
            raise InputError(f"{path}: {name} = {before.get(name)!r}: must be {now.get(name)!r} to resume this run")


def _flat(tree: Any, prefix: str = "") -> dict[str, Any]:
    if not isinstance(tree, dict):
        return {prefix.rstrip("."): tree}
    return {key: value for name, branch in tree.items() for key, value in _flat(branch, f"{prefix}{name}.").items()}


def iterations_done(checkpoint: Path) -> int:
    """Completed iterations of a checkpoint's phase."""
    return int(checkpoints.read_about(checkpoint)["about"]["iteration"]) if checkpoint.exists() else 0


def restored(checkpoint: Path, state: Any) -> Any:
    """The state of a checkpoint if there is one, else `state`."""
    return checkpoints.load_state(checkpoint, state)[0] if checkpoint.exists() else state


def save_policies(several: Iterable[tuple[Path, Any, Config]], origin: dict[str, str]) -> list[Path]:
    """Write each (path, policy, config) with its metrics and its origin; returns the paths."""
    measured = ((path, policy, config, evaluate.policy_metrics(policy, config)) for path, policy, config in several)
    return [checkpoints.save_policy(*saved, origin) for saved in measured]


def spread(config: Config, number: int, count: int, centers: jax.Array | None = None) -> Phase:
    """A phase of one run, or of `count` vmapped runs, each with its own center if `centers` are given.

    Runs are initialized one after the other: vmapped orthogonal initializers can deadlock on a CPU (jaxlib 0.10.2).
    """
    own = None if centers is None else 0

    def phase_of(center: jax.Array | None) -> Phase:
        return phases(config if center is None else around(config, Theta(*center)))[number]

    begin = eqx.filter_jit(lambda key, policy, center: phase_of(center).initial(key, policy))
    one = phase_of(None)
    if count == 1:
        return one._replace(initial=lambda key, policy: begin(key, policy, None))

    def initial(keys: Any, policies: Any) -> Any:
        starts = [begin(*jax.tree.map(lambda leaf, i=i: leaf[i], (keys, policies, centers))) for i in range(count)]
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *starts)

    def iterate(states: Any) -> Any:
        return jax.vmap(lambda state, center: phase_of(center).iterate(state), in_axes=(0, own))(states, centers)

    return one._replace(initial=initial, iterate=iterate, policy=eqx.filter_vmap(one.policy))


def around(config: Config, center: Theta | None) -> Config:
    """The config with another `randomization.center`."""
    boats = dataclasses.replace(config.environment.randomization, center=center)
    return dataclasses.replace(config, environment=dataclasses.replace(config.environment, randomization=boats))


def policies(every: Any, count: int) -> list[Any]:
    """The policies of vmapped runs as a list, sliced in host memory, which is faster than on a device."""
    return [jax.tree.map(lambda leaf, i=i: leaf[i], every) for i in range(count)] if count > 1 else [every]
