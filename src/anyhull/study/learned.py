"""Pieces that train: all seeds of a method in one program, measured seed by seed on every platform."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyhull.errors import InputError
from anyhull.files import whole
from anyhull.pilot import shipped, shipped_path

if TYPE_CHECKING:
    from anyhull.learn.methods import Config
    from anyhull.learn.runs import Report

Rows = dict[str, list[dict[str, Any]]]
"""For each method the metrics of each seed, as `anyhull.learn.runs.tracking` gives them."""


@dataclass(frozen=True)
class Plan:
    """How a study is carried out."""

    out: Path
    """Folder of the result files, and, under `policies`, of the policies of seed 0."""
    work: Path
    """Folder of the training runs, with checkpoints and the policies of every seed."""
    seeds: int = 0
    """Seeds of every learned method; 0 is each study's own number."""
    quick: bool = False
    """Tiny sizes, to try the pipeline."""
    commit: str | None = None
    """What to write down as the commit; by default what git says."""
    report: Callable[[Report], None] | None = None
    """Told how a training run is getting on."""
    told: Callable[[str], None] | None = None
    """Told which piece begins, is done, is there or is left out."""

    def say(self, line: str) -> None:
        if self.told:
            self.told(line)


@dataclass(frozen=True)
class Training:
    """One training run, and the rows of a table that come out of it."""

    piece: str
    method: str
    recipe: str = "ppo"
    sea: str = "ideal"
    vessels: tuple[str, ...] = ()
    """Those that a policy each is trained for; without any, one for all boats."""
    phases: tuple[tuple[str, str], ...] = ()
    """Earlier phases that are rows too: the phase's name, and the row's."""
    row: str = ""
    """The row of the policy in the end."""
    mean_latent: str | None = None
    """The row of the student with its latent held at the mean, where that is one."""
    ships: tuple[tuple[str, str], ...] = ()
    """Rows of which the policy of seed 0 is kept, and under what name; the vessel's is added to it."""

    def configs(self, quick: bool) -> dict[str, Config]:
        """For each vessel, or under "" for all, the method's own, or one that is over in seconds."""
        from anyhull.learn import methods

        build = methods.paper if self.recipe == "ppo" else methods.first_order
        found = {vessel: build(self.method, self.sea, vessel or None) for vessel in self.vessels or ("",)}
        return {vessel: tiny(config) if quick else config for vessel, config in found.items()}


def tiny(config: Config) -> Config:
    """Two iterations of a few boats."""
    few: dict[str, Any] = {"envs": 16, "steps": 8, "total": 256, "minibatches": 2}
    return replace(
        config,
        ppo=replace(config.ppo, epochs=1, **few),
        distillation=replace(config.distillation, **few),
        descent=replace(config.descent, updates=2, envs=16, steps=8),
        joint=replace(config.joint, updates=2, envs=16, steps=8),
    )


def train(training: Training, plan: Plan) -> tuple[dict[str, Any], dict[str, Any], bool]:
    """Train or go on training, measure; the rows, the config, and whether the run had been begun before."""
    from anyhull.learn import files, methods, runs

    configs = training.configs(plan.quick)
    folder = plan.work / training.piece
    begun = (folder / "config.json").exists()
    runs.train(configs, folder, seeds=plan.seeds, resume=begun, every_phase=True, report=plan.report)
    stems = {training.row: "policy"} | {row: phase for phase, row in training.phases}
    found = {row: runs.paths(folder, stem, plan.seeds, list(configs)) for row, stem in stems.items()}
    rows: Rows = {row: [files.read_about(path)["metrics"] for path in several] for row, several in found.items()}
    if training.mean_latent:
        config = configs[""]
        ablated = []
        for path in found[training.row]:
            student, _, _ = files.load_policy(path)
            held = methods.mean_latent(student, config.task)  # type: ignore[arg-type]
            ablated.append((held, runs.tracking(held, config)))
        rows[training.mean_latent] = [metrics for _, metrics in ablated]
        as_ablation = replace(config, method="student-mean-latent")
        path = folder / "mean-latent.safetensors"
        found[training.mean_latent] = [files.save_policy(path, ablated[0][0], as_ablation, ablated[0][1])]
    for row, name in training.ships:
        for i, vessel in enumerate(configs):
            keep(found[row][i * plan.seeds], policy_path(plan, f"{name}{vessel and '-'}{vessel}"))
    if training.vessels:
        rows = {row: beside(several, training.vessels) for row, several in rows.items()}
    return {"rows": rows}, runs.recorded(configs), begun


def beside(metrics: list[dict[str, Any]], vessels: tuple[str, ...]) -> list[dict[str, Any]]:
    """The metrics of policies for a vessel each, which stand vessel by vessel, as one a seed on all of them."""
    seeds = len(metrics) // len(vessels)
    return [_beside(metrics[i::seeds], vessels) for i in range(seeds)]


def _beside(several: list[dict[str, Any]], vessels: tuple[str, ...]) -> dict[str, Any]:
    own = [next(iter(metrics["platforms"].values())) for metrics in several]
    result: dict[str, Any] = {what: sum(one[what] for one in own) / len(own) for what in own[0]}
    result["platforms"] = dict(zip(vessels, own, strict=True))
    if "sea" in several[0]:
        result["sea"] = _beside([metrics["sea"] for metrics in several], vessels)
    return result


def students(plan: Plan, piece: str, name: str) -> list[Path]:
    """The policies of every seed of a run where they lie, else that of seed 0 alone."""
    from anyhull.learn.runs import paths

    every = paths(plan.work / piece, "policy", plan.seeds)
    if all(path.exists() for path in every):
        return every
    if (one := found_policy(plan, name)).exists():
        plan.say(f"  {plan.work / piece}: the other seeds are not there, so seed 0 alone")
        return [one]
    raise InputError(f"{one}: is missing: piece {piece!r} makes it; run that first")


def policy_path(plan: Plan, name: str) -> Path:
    """Where the policy of seed 0 of that name is kept."""
    return plan.out / "policies" / f"{name}.safetensors"


def found_policy(plan: Plan, name: str) -> Path:
    """The policy of seed 0 of that name: this study's own, or where it has none the shipped one."""
    own = policy_path(plan, name)
    return own if own.exists() or name not in shipped() else shipped_path(name)


def keep(source: Path, target: Path) -> None:
    """A copy, whole or not at all."""
    with whole(target) as temporary:
        shutil.copyfile(source, temporary)
