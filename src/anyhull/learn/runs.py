"""Training runs: progress, checkpoints and files around the pure functions that learn."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import wait
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from anyhull.errors import InputError, RunError
from anyhull.files import whole
from anyhull.learn import events, files, hosts
from anyhull.learn.ahead import Compiled, compiling
from anyhull.learn.boats import Boats
from anyhull.learn.evaluate import latent_range, track
from anyhull.learn.methods import Config, Phase, acting, phases
from anyhull.learn.networks import Student
from anyhull.learn.task import Task
from anyhull.reference import rounded_rectangle
from anyhull.sea import Sea
from anyhull.vessel import PLATFORMS, Normalized, Vessel

PAUSE = 1.0
"""Seconds between two looks at the metrics, about: the devices do not wait for the host in between."""

MOST = 100
"""Iterations between two looks at most."""


class Report(NamedTuple):
    """How a run is getting on."""

    phase: str
    iteration: int
    iterations: int
    rate: float
    """Environment steps per second, of all seeds together."""
    left: float
    """Seconds to the end of the phase at that rate."""
    metrics: dict[str, float]
    """Means over seeds: reward terms by name, and what the method reports."""
    tracking: dict[str, Any] | None
    """Errors of the first seed on the paper's rectangle, where they were just measured."""
    seeds: int = 1


def train(
    config: Config | Mapping[str, Config],
    folder: str | Path,
    *,
    seeds: int = 1,
    seed: int = 0,
    resume: bool = False,
    checkpoint_every: float = 20.0,
    every_phase: bool = False,
    report: Callable[[Report], None] | None = None,
) -> list[Path]:
    """Train a method in `folder` and return the paths of its policies, one a seed.

    Several seeds are one vmapped program. So are several configs by name, which may differ in the boat that theirs are
    drawn around and in nothing else: each is trained with every seed, and its name is in the files'. A checkpoint is
    written every so many seconds; with `resume`, a run that was stopped goes on from it and ends with the same weights.
    With `every_phase`, the policies of the phases on the way are written as well, in files named for them. Of several
    processes (`hosts.join`) the first alone uses the folder and reports; the others return no paths.
    """
    folder = Path(folder)
    configs = {"": config} if isinstance(config, Config) else dict(config)
    config, count = next(iter(configs.values())), len(configs) * seeds
    if any(around(other, None) != around(config, None) for other in configs.values()):
        raise InputError(f"configs {', '.join(configs)}: may differ in task.boats.center alone")
    record = json.loads(json.dumps({"config": recorded(configs), "seeds": seeds, "seed": seed}))
    hosts.check_same(record)
    for part in (config.ppo, config.distillation, config.descent, config.joint):
        pieces = getattr(part, "minibatches", 1)
        if part.envs % pieces or part.envs % len(jax.devices()):
            must = f"a multiple of minibatches = {pieces} and of the {len(jax.devices())} devices"
            raise InputError(f"envs = {part.envs}: must be {must}")
    with hosts.first() as leader:
        if leader:
            begin(folder, record, resume)
    owners = [config for config in configs.values() for _ in range(seeds)]
    centers = None if len(configs) == 1 else jnp.array([owner.task.boats.center for owner in owners])
    parts = [spread(config, number, count, centers) for number in range(len(phases(config)))]

    def keys() -> list[jax.Array]:
        own = [jax.random.fold_in(jax.random.key(seed), i) for i in range(seeds)]
        every = [[jax.random.fold_in(key, number) for key in own] for number in range(len(parts))]
        return [jnp.stack(several * len(configs)) if count > 1 else several[0] for several in every]

    checkpoints = [folder / f"checkpoint-{number}.safetensors" for number in range(len(parts))]
    with hosts.first() as leader:
        found = [path if leader and resume and path.exists() else None for path in checkpoints]
        told = [files.read_about(path)["about"]["iteration"] if path else 0 for path in found]
    wanted = [done < phase.iterations for done, phase in zip(hosts.agreed(*told), parts, strict=True)]
    policy: Any = None
    written: list[Path] = []
    with compiling(parts, keys, wanted, count, lambda policy: measured(policy, config)) as compiled:
        starts = keys()
        for number, phase in enumerate(parts):
            wait([compiled[number].start])
            state = phase.initial(starts[number], policy)
            with hosts.first() as leader:
                if path := found[number]:
                    state, _ = files.load_state(path, state)
            state = hosts.place(hosts.shared(state), count)
            saving = folder, checkpoints[number], count, checkpoint_every, report
            state = hosts.whole(run(phase, state, compiled[number], config, *saving))
            policy = jax.device_get(phase.policy(state))
            last = number == len(parts) - 1
            if not last and not every_phase:
                continue
            with hosts.first() as leader:
                if leader:
                    names = paths(folder, "policy" if last else phase.name, seeds, list(configs))
                    every = zip(names, policies(phase, state, count), owners, strict=True)
                    written = [files.save_policy(*saved, measured(*saved[1:])) for saved in every]
    return written


def paths(folder: Path, stem: str, seeds: int, names: Sequence[str] = ("",)) -> list[Path]:
    """The files of a run's policies, or of those of one of its phases: for each config, of every seed."""
    ends = [""] if seeds == 1 else [f"-{i}" for i in range(seeds)]
    return [folder / f"{stem}{name and '-'}{name}{end}.safetensors" for name in names for end in ends]


def recorded(configs: dict[str, Config]) -> dict[str, Any]:
    """What configs are, for a file: by name, or the only one that has none."""
    every = {name: dataclasses.asdict(config) for name, config in configs.items()}
    return every[""] if list(every) == [""] else every | {"order": list(every)}


def run(
    phase: Phase,
    state: Any,
    compiled: Compiled,
    config: Config,
    folder: Path,
    checkpoint: Path,
    seeds: int,
    checkpoint_every: float,
    report: Callable[[Report], None] | None,
) -> Any:
    """Iterate a phase to its end, with checkpoints and reports."""
    done = begun = int(np.ravel(hosts.whole(state.iteration))[0])
    if done == phase.iterations:
        return state
    # Not a scan over iterations: loops inside loops are slow on a GPU, and here the host can look in.
    step = compiled.program.result()
    with hosts.first() as leader:
        log = events.Writer(folder / "events") if leader else None
    whose = "" if seeds == 1 else "_seed_0"
    saved = tracked = started = seen = time.monotonic()
    count = 1
    while done < phase.iterations:
        for _ in range(count):
            state, metrics = step(state)
        done += count
        values = {name: float(np.mean(value)) for name, value in hosts.whole(metrics).items()}  # waits for the devices
        if lost := [name for name, value in values.items() if not np.isfinite(value)]:
            told = f"{folder}: {phase.name} diverged by iteration {done}: {', '.join(lost)} not finite"
            raise RunError(f"{told}; try a smaller learning rate")
        now, over = time.monotonic(), done == phase.iterations
        rate = (done - begun) * phase.steps * seeds / (now - started)
        pace = int(count * min(PAUSE, checkpoint_every) / (now - seen))
        measure, save, count = hosts.agreed(
            over or (now - tracked > checkpoint_every / 2 and compiled.measure.done()),
            over or now - saved > checkpoint_every,
            min(max(pace, 1), MOST, phase.iterations - done),
        )
        kept = hosts.whole(state) if measure or save else None
        if over:
            wait([compiled.measure])
        with hosts.first() as leader:
            errors = tracking(policies(phase, kept, seeds)[0], config) if leader and measure else None
            if errors:
                values |= {name + whose: errors[name] for name in ("position_cm", "heading_deg")}
                tracked = time.monotonic()
            if log:
                log.write({f"{phase.name}/{name}": value for name, value in values.items()}, done * phase.steps)
            if leader and report:
                left = (phase.iterations - done) * phase.steps * seeds / rate
                report(Report(phase.name, done, phase.iterations, rate, left, values, errors, seeds))
            if leader and save:
                files.save_state(checkpoint, kept, {"iteration": done})
                saved = time.monotonic()
        seen = time.monotonic()
    return state


def begin(folder: Path, record: dict[str, Any], resume: bool) -> None:
    """Write down what the run is, or check that a run to be resumed is the same."""
    path = folder / "config.json"
    if not path.exists():
        with whole(path) as temporary:
            temporary.write_text(json.dumps(record, indent=2) + "\n")
        return
    if not resume:
        raise InputError(f"{folder}: holds a run already: resume it, or give another folder")
    for half in folder.glob(".*-*.safetensors"):
        half.unlink()  # what a kill left of a file that was being written
    before, now = _flat(json.loads(path.read_text())), _flat(record)
    for name in now | before:
        if before.get(name) != now.get(name):
            raise InputError(f"{path}: {name} = {before.get(name)!r}: must be {now.get(name)!r} to resume this run")


def _flat(tree: Any, prefix: str = "") -> dict[str, Any]:
    if not isinstance(tree, dict):
        return {prefix.rstrip("."): tree}
    return {key: value for name, branch in tree.items() for key, value in _flat(branch, f"{prefix}{name}.").items()}


def spread(config: Config, number: int, count: int, centers: jax.Array | None = None) -> Phase:
    """A phase of one run, or of several at once, each of boats around one of `centers` where there are any.

    Runs are started one after the other: compiled for several, the orthogonal initializers can wait for each other for
    ever on a CPU (jaxlib 0.10.2).
    """
    own = None if centers is None else 0

    def phase_of(center: jax.Array | None) -> Phase:
        return phases(config if center is None else around(config, Normalized(*center)))[number]

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


def around(config: Config, center: Normalized | None) -> Config:
    """The config with another boat to draw boats around."""
    boats = dataclasses.replace(config.task.boats, center=center)
    return dataclasses.replace(config, task=dataclasses.replace(config.task, boats=boats))


def policies(phase: Phase, state: Any, seeds: int) -> list[Any]:
    """The policies of the seeds so far, one by one, in the host's memory: a device takes long to cut them apart."""
    every = jax.device_get(phase.policy(state))
    return [jax.tree.map(lambda leaf, i=i: leaf[i], every) for i in range(seeds)] if seeds > 1 else [every]


def measured(policy: Any, config: Config) -> dict[str, Any]:
    """What is written into a policy's file: how it tracks, and for a student where its latents lay."""
    where = {"latent_range": latent_range(policy, config.task)} if isinstance(policy, Student) else {}
    return tracking(policy, config) | where


RUNS = 20
"""Runs of each boat that are averaged where the sea is random."""


def tracking(policy: Any, config: Config) -> dict[str, Any]:
    """Errors on the paper's rectangle: five platforms, or the one that a policy was trained for.

    In ideal conditions, and for a policy trained for another sea also, under `sea`, in that.
    """
    center = config.task.boats.center
    boats = {name: Vessel.load(name).normalized for name in PLATFORMS} if center is None else {"trained for": center}
    # Which boats were trained on does not matter here, and would compile this anew for each.
    task = dataclasses.replace(config.task, boats=Boats())
    calm = dataclasses.replace(task, sea=Sea.ideal())
    result = _measured(policy, boats, calm, 1)
    if task.sea != calm.sea:
        result["sea"] = _measured(policy, boats, task, RUNS)
    return result


def _measured(policy: Any, boats: dict[str, Any], task: Task, runs: int) -> dict[str, Any]:
    """Mean errors and roughness, over all and for each boat."""
    distance, turn, command = _track(policy, jnp.repeat(jnp.array(list(boats.values())), runs, axis=0), task)

    def by_boat(values: Any) -> Any:
        return np.mean(values, axis=0).reshape(len(boats), runs, -1).mean(axis=(1, 2))

    position, heading = by_boat(100 * distance), by_boat(np.degrees(np.abs(turn)))
    roughness, full = by_boat(np.abs(np.diff(command, axis=0))), by_boat(np.abs(command) >= 1)
    columns = {"position_cm": position, "heading_deg": heading, "roughness": roughness, "saturation": full}
    return {name: float(column.mean()) for name, column in columns.items()} | {
        "platforms": {
            boat: {name: float(column[i]) for name, column in columns.items()} for i, boat in enumerate(boats)
        }
    }


@eqx.filter_jit
def _track(policy: Any, e: jax.Array, task: Task) -> Any:
    # A GPU would round the networks' products to ten bits, by which a recurrent policy was off by 0.15 degrees.
    with jax.default_matmul_precision("highest"):
        return track(*acting(policy, len(e)), e, rounded_rectangle(), task)
