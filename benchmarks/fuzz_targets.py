"""The readers that `fuzz.py` tests: for each its seeds, its mutation, and the call that must succeed or refuse."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from fuzz_mutations import (
    Mutation,
    mutate_bytes,
    mutate_command,
    mutate_log,
    mutate_message,
    mutate_policy,
    mutate_text,
)

from anyhull import policy_file
from anyhull.errors import InputError
from anyhull.paper import RANGES
from anyhull.vessel import Vessel

CORPUS = Path(__file__).parents[1] / "tests" / "corpus"
"""Valid files and inputs that once broke something, in a folder for each target."""

VESSEL = Vessel.load("roboat-1")
WINDOW = np.zeros((11, 6))


class Unsafe(Exception):
    """Input that was accepted, with a result that it must not have."""


@dataclass(frozen=True)
class Target:
    """A reader under test."""

    read: Callable[[Path], None]
    """Reads a file; raises what the reader raises, or `Unsafe`."""
    mutate: Mutation
    suffixes: tuple[str, ...]
    """Of the files, each with its own seeds."""
    made: Callable[[], dict[str, bytes]] = dict
    """Seeds made by code, by file name, beside those of the corpus."""
    names_file: bool = True
    """Whether an error has to name the file."""

    def seeds(self, name: str) -> dict[str, bytes]:
        """The files from which inputs are mutated, by name."""
        kept = {path.name: path.read_bytes() for path in sorted((CORPUS / name).glob("*")) if path.is_file()}
        return self.made() | kept


def read_message(path: Path) -> None:
    from anyhull.onboard.messages import decode, encode

    encode(decode(path.read_bytes()))


def messages() -> dict[str, bytes]:
    """A message of each type, with every field."""
    from anyhull.onboard import messages as m

    fill: dict[Any, Any] = {"int": 7, "float": 0.25, "bool": True, "tuple[float, ...]": (0.5, -0.5), "str": "auto"}
    found = {}
    for name, kind in m.TYPES.items():
        hints = {field.name: str(field.type) for field in kind.__dataclass_fields__.values()}
        values = {field: fill.get(hint.removesuffix(" | None"), "auto") for field, hint in hints.items()}
        found[f"{name}.json"] = m.encode(kind(**values))
    return found


def read_policy(path: Path) -> None:
    from anyhull.pilot import Pilot

    pilot = Pilot.load(path, VESSEL)
    for k in range(3):
        command = pilot.step((0.1 * k, -0.1, 0.2), (0.3, 0.1, -0.1), WINDOW)
        if not (command.shape == (3,) and (np.abs(command) <= 1).all()):
            raise Unsafe("a command that is not three numbers in [-1, 1]")
        if not np.isfinite(pilot.latent).all() or (pilot.memory is not None and not np.isfinite(pilot.memory).all()):
            raise Unsafe("latent or memory not finite")
    _ = pilot.dynamics, pilot.latent_range, pilot.envelope


def policies() -> dict[str, bytes]:
    """A policy of each kind with layers of a few units."""
    random = np.random.default_rng(0)

    def mlp(prefix: str, *sizes: int, pair: bool = False) -> dict[str, Any]:
        layers = {}
        for i, (n, m) in enumerate(itertools.pairwise(sizes)):
            lead = (2,) if pair else ()
            layers[f"{prefix}layers.{i}.weight"] = random.normal(size=(*lead, n, m)) / 4
            layers[f"{prefix}layers.{i}.bias"] = random.normal(size=(*lead, m)) / 4
        return layers

    def cell(prefix: str, inputs: int, n: int) -> dict[str, Any]:
        shapes = {"weight_ih": (3 * n, inputs), "weight_hh": (3 * n, n), "bias": (3 * n,), "bias_n": (n,)}
        return {prefix + name: random.normal(size=shape) / 4 for name, shape in shapes.items()}

    teacher = mlp("teacher.actor_critic.", 76, 5, 3, pair=True) | mlp("teacher.encoder.", 9, 4)
    modulation = mlp("teacher.modulation.", 4, 5)
    modulation = {name.replace("layers.0.", ""): tensor for name, tensor in modulation.items()}
    adapter = cell("adapter.cell.", 9, 4) | mlp("adapter.projection.", 4, 4) | mlp("adapter.dynamics_head.", 4, 30)
    kinds = {
        "student": teacher | modulation | adapter,
        "teacher": {name.removeprefix("teacher."): tensor for name, tensor in teacher.items()},
        "mean-latent": teacher | {"fixed_latent": random.normal(size=4)},
        "recurrent": mlp("actor_critic.", 4, 5, 3, pair=True) | cell("cell.", 15, 4) | mlp("compress.", 72, 6),
    }
    scales = {"error": 30.0, "gain": 300.0, "velocity": 20.0, "command": 20.0}
    about = {"config": {"scales": scales}, "envelope": RANGES, "metrics": {"latent_range": [[-4.0] * 4, [4.0] * 4]}}
    found = {}
    with _folder() as folder:
        for kind, tensors in kinds.items():
            weights = {name: np.asarray(tensor, np.float32) for name, tensor in tensors.items()}
            path = policy_file.write(folder / f"{kind}.safetensors", weights, {"kind": kind} | about)
            found[path.name] = path.read_bytes()
    return found


def read_log(path: Path) -> None:
    from anyhull.log import Log

    log = Log.load(path)
    metrics = log.metrics()
    if not all(map(np.isfinite, vars(metrics).values())):
        raise Unsafe("metrics that are not finite")
    log.estimated.metrics()
    log.during([(0.0, 0.5)])


def logs() -> dict[str, bytes]:
    from anyhull import Sea, rounded_rectangle, simulate
    from anyhull.pilot import Pilot

    log = simulate(Pilot.load("field"), VESSEL, rounded_rectangle(), Sea.preset("field"), duration=1.0)
    from dataclasses import replace

    with _folder() as folder:
        plain = log.save(folder / "log.npz").read_bytes()
        estimated = replace(log, estimate=log.state + 0.01, latent=None).save(folder / "estimated.npz").read_bytes()
    return {"log.npz": plain, "estimated.npz": estimated}


def read_journal(path: Path) -> None:
    """Recover a run as the next start of a pilot does, and save it as a log that can be read."""
    from anyhull.log import Log
    from anyhull.onboard.recorder import last_of, recover

    last_of(path)
    log = recover(path)
    if len(log.time):
        try:
            Log.load(log.save(path.with_suffix(".npz")))
        except InputError as error:
            raise Unsafe("a recovered log that cannot be read") from error


def journals() -> dict[str, bytes]:
    """The journal of a short run around a twin, as this version writes it."""
    from anyhull import rounded_rectangle
    from anyhull.control import CONTROLLERS
    from anyhull.dynamics import PERIOD
    from anyhull.onboard.autopilot import Autopilot
    from anyhull.onboard.recorder import RunRecorder
    from anyhull.onboard.setup import Setup
    from anyhull.twin.twin import TICK, Twin, with_thrusters

    vessel = with_thrusters(VESSEL)
    twin, autopilot = Twin(vessel), Autopilot(Setup(vessel), CONTROLLERS["pid"](vessel), rounded_rectangle())
    with _folder() as folder:
        recorder = RunRecorder(autopilot, folder / "run.jsonl")
        for tick in range(round(5 / TICK)):
            if tick % round(PERIOD / TICK) == 0 and (step := autopilot.step(tick * TICK)) is not None:
                recorder.add(step, tick * TICK)
                twin.on_command(step.command)
            for message in twin.advance():
                autopilot.on_message(message, (tick + 1) * TICK)
        recorder.close()
        return {"run.jsonl": (folder / "run.jsonl").read_bytes()}


def read_boat(path: Path) -> None:
    from anyhull.dynamics import substeps
    from anyhull.onboard.setup import Setup

    setup = Setup.load(path)
    vessel = setup.vessel
    derived = (*vessel.normalized, *vessel.effective(), vessel.stiffness)
    if not all(map(np.isfinite, derived)) or any(map(np.isnan, (*vessel.top_speeds, vessel.yaw_unstable_above))):
        raise Unsafe("derived values that are not finite")
    if substeps(vessel) > 10_000:
        raise Unsafe("more than 10,000 substeps")
    vessel.outside(RANGES)
    vessel.shortcomings()
    if setup.fence is not None and np.isnan(setup.fence.margin(1.0, 2.0)):
        raise Unsafe("the margin of the fence is not a number")


def read_dataflash(path: Path) -> None:
    from anyhull.viz.ardupilot import read_ardupilot

    log = read_ardupilot(path)
    for name in ("time", "state", "reference", "command"):
        if not np.isfinite(getattr(log, name)).all():
            raise Unsafe(f"{name} that is not finite")
    json.dumps(log.about, allow_nan=False)


def read_mission(path: Path) -> None:
    from anyhull.mission import Mission

    geographic = path.suffix in (".gpx", ".geojson", ".plan") or path.read_bytes().startswith(b"lat")
    frame: dict[str, Any] = {"origin": (63.44, 10.4), "axes": "ned"} if geographic else {}
    mission = Mission.load(path, vessel=VESSEL, **frame)
    states = mission.reference.at(np.linspace(0.0, mission.reference.duration, 7))
    if not (np.isfinite(mission.reference.duration) and np.isfinite(states).all()):
        raise Unsafe("a reference that is not finite")


def read_result(path: Path) -> None:
    from anyhull.study.results import load

    load(path)


def read_setting(path: Path) -> None:
    from anyhull.learn.config import override, paper

    override(paper("student"), path.read_bytes().decode(errors="replace"))


def run_command(path: Path) -> None:
    """Run a command line `{"arguments", "keep", "files"}` in a folder with these files."""
    from anyhull.cli import main

    command = json.loads(path.read_bytes())
    out, err = io.StringIO(), io.StringIO()
    before = Path.cwd()
    with _folder() as folder:
        for name, content in command["files"].items():
            (folder / name).write_bytes(content.encode("latin-1"))
        os.chdir(folder)
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                status = main([*command["arguments"], *command["keep"]])
        finally:
            os.chdir(before)
    lines = err.getvalue().splitlines()
    notes = ("note: ", " at 127.0.0.1:", "too slow for --time-factor")
    if any(not line.startswith(("warning: ", "error: ")) and not any(n in line for n in notes) for line in lines):
        raise Unsafe(f"stderr: {err.getvalue()[-60:]}")
    if status not in (0, 1, 2) or (status > 0) != (sum(line.startswith("error: ") for line in lines) == 1):
        raise Unsafe(f"status {status}, stderr: {err.getvalue()[-60:]}")
    if status:
        raise InputError(lines[-1])


def commands() -> dict[str, bytes]:
    """Every command that reads a file, with short runs."""
    import inspect

    from anyhull.cli import pilot, simulate

    boat = (CORPUS / "toml" / "boat.toml").read_text()
    files: dict[str, str] = {"boat.toml": boat, "w.csv": "x [m],y [m],speed [m/s]\n0,0,0.5\n9,0,0.6\n9,9,0.5\n"}
    files["run.npz"] = next(iter(logs().values())).decode("latin-1")
    files["run.jsonl"] = next(iter(journals().values())).decode("latin-1")
    files["p.safetensors"] = policies()["student.safetensors"].decode("latin-1")
    lines = [
        ("vessels show boat.toml", ""),
        ("vessels show boat.toml --json", ""),
        ("simulate --vessel boat.toml --controller pid --speed 0.5 --sea field --seed 3", "--duration 0.3"),
        ("simulate --waypoints w.csv --controller pid --heading 10 --json", "--duration 0.3"),
        ("simulate --reference rectangle --length 8 --width 5 --radius 1 --controller pid --laps 1", "--duration 0.3"),
        ("simulate --reference circle --radius -3 --controller p.safetensors --out log.npz", "--duration 0.3"),
        ("simulate --reference eight --length 8 --width 5 --heading 20 --controller pid", "--duration 0.3"),
        ("export p.safetensors --onnx p.onnx", ""),
        ("log run.npz --csv run.csv", ""),
        ("log run.jsonl --json", ""),
        ("twin --vessel boat.toml --listen 127.0.0.1:0 --sea lake --seed 1", "--time-factor 20 --duration 0.5"),
        ("twin --vessel boat.toml --peer 127.0.0.1:47123 --listen 127.0.0.1:0", "--time-factor 20 --duration 0.5"),
    ]
    if "mission" in inspect.signature(simulate.simulate).parameters:
        for path in sorted((CORPUS / "mission").glob("valid.*")):
            files[path.name] = path.read_bytes().decode("latin-1")
            origin = "" if path.suffix in (".csv", ".toml") else " --origin 63.44,10.4 --axes ned"
            lines.append((f"simulate --mission {path.name} --controller pid{origin}", "--duration 0.3"))
    if "dry_run" in inspect.signature(pilot.pilot).parameters:
        lines.append(("pilot boat.toml --controller pid --reference circle --speed 0.5", "--dry-run"))
    found = {}
    for i, (line, keep) in enumerate(lines):
        used = {name: content for name, content in files.items() if name in line}
        command = {"arguments": line.split(), "keep": keep.split(), "files": used}
        found[f"{i}.json"] = json.dumps(command).encode()
    return found


@contextlib.contextmanager
def _folder() -> Any:
    import tempfile

    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:
        yield Path(name)


def catalogue() -> dict[str, bytes]:
    """The vessel files of the package."""
    import anyhull

    folder = Path(anyhull.__file__).parent / "vessels"
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.toml"))}


TARGETS: dict[str, Target] = {
    "decoder": Target(read_message, mutate_message, (".json",), messages, names_file=False),
    "policy": Target(read_policy, mutate_policy, (".safetensors",), policies),
    "log": Target(read_log, mutate_log, (".npz",), logs),
    "journal": Target(read_journal, mutate_text, (".jsonl",), journals),
    "dataflash": Target(read_dataflash, mutate_bytes, (".bin",)),
    "toml": Target(read_boat, mutate_text, (".toml",), catalogue),
    "mission": Target(read_mission, mutate_text, (".csv", ".toml", ".gpx", ".geojson", ".plan")),
    "result": Target(read_result, mutate_text, (".json",)),
    "setting": Target(read_setting, mutate_text, (".txt",), names_file=False),
    "cli": Target(run_command, mutate_command, (".json",), commands, names_file=False),
}
"""Readers by name."""
