"""Pieces that train: all seeds of a method in one program, measured seed by seed on every platform."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyhull.errors import InputError
from anyhull.files import whole

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
    seeds: int = 10
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
    vessel: str | None = None
    phases: tuple[tuple[str, str], ...] = ()
    """Earlier phases that are rows too: the phase's name, and the row's."""
    row: str = ""
    """The row of the policy in the end."""
    mean_latent: str | None = None
    """The row of the student with its latent held at the mean, where that is one."""
    ships: tuple[tuple[str, str], ...] = ()
    """Rows of which the policy of seed 0 is kept, and under what name."""

    def config(self, quick: bool) -> Config:
        """The method's own, or one that is over in seconds."""
        from anyhull.learn import methods

        build = methods.paper if self.recipe == "ppo" else methods.first_order
        config = build(self.method, self.sea, self.vessel)
        return tiny(config) if quick else config


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

    config = training.config(plan.quick)
    folder = plan.work / training.piece
    begun = (folder / "config.json").exists()
    paths = runs.train(config, folder, seeds=plan.seeds, resume=begun, every_phase=True, report=plan.report)
    found: dict[str, list[Path]] = {training.row: paths}
    for phase, row in training.phases:
        found[row] = policies(folder, phase, plan.seeds)
    rows: Rows = {row: [files.read_about(path)["metrics"] for path in several] for row, several in found.items()}
    if training.mean_latent:
        ablated = []
        for path in paths:
            student, _, _ = files.load_policy(path)
            held = methods.mean_latent(student, config.task)  # type: ignore[arg-type]
            ablated.append((held, runs.tracking(held, config)))
        rows[training.mean_latent] = [metrics for _, metrics in ablated]
        as_ablation = replace(config, method="student-mean-latent")
        path = folder / "mean-latent.safetensors"
        found[training.mean_latent] = [files.save_policy(path, ablated[0][0], as_ablation, ablated[0][1])]
    for row, name in training.ships:
        keep(found[row][0], policy_path(plan, name))
    platform = training.vessel
    named = {row: [_renamed(metrics, platform) for metrics in several] for row, several in rows.items()}
    return {"rows": named}, dataclasses.asdict(config), begun


def policies(folder: Path, stem: str, seeds: int) -> list[Path]:
    """The files of a run's policies, or of those of one of its phases."""
    return [folder / (f"{stem}.safetensors" if seeds == 1 else f"{stem}-{i}.safetensors") for i in range(seeds)]


def students(plan: Plan, piece: str, shipped: str) -> list[Path]:
    """The policies of every seed of a run where they lie, else that of seed 0 alone."""
    every = policies(plan.work / piece, "policy", plan.seeds)
    if all(path.exists() for path in every):
        return every
    if (one := policy_path(plan, shipped)).exists():
        plan.say(f"  {plan.work / piece}: the other seeds are not there, so seed 0 alone")
        return [one]
    raise InputError(f"{one}: is missing: piece {piece!r} makes it; run that first")


def policy_path(plan: Plan, name: str) -> Path:
    """Where the policy of seed 0 of that name is kept."""
    return plan.out / "policies" / f"{name}.safetensors"


def keep(source: Path, target: Path) -> None:
    """A copy, whole or not at all."""
    with whole(target) as temporary:
        shutil.copyfile(source, temporary)


def _renamed(metrics: dict[str, Any], platform: str | None) -> dict[str, Any]:
    """Metrics with the vessel's name in place of 'trained for'."""
    if platform is None:
        return metrics
    changed = metrics | {"platforms": {platform: next(iter(metrics["platforms"].values()))}}
    if "sea" in metrics:
        changed["sea"] = _renamed(metrics["sea"], platform)
    return changed
