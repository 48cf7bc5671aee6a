"""Jobs that train: all seeds of a method in one program, each evaluated on every platform."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from anyhull.errors import InputError
from anyhull.files import atomic_write
from anyhull.policy_file import SUFFIX, shipped

if TYPE_CHECKING:
    from anyhull.learn.config import Config
    from anyhull.learn.trainer import Report

FINAL = "policy"
"""Stem of the files of the last phase; an earlier phase's files have its name."""

MEAN_LATENT: Literal["student-mean-latent"] = "student-mean-latent"
"""Row of the student whose latent is fixed to the mean."""


@dataclass(frozen=True)
class Plan:
    """How a study is run."""

    out: Path
    """Folder of the result files and, under `policies`, of the policies of seed 0."""
    work: Path
    """Folder of the training runs, with checkpoints and the policies of every seed."""
    seeds: int = 0
    """Training seeds of every learned method; 0 is each study's own number."""
    quick: bool = False
    """Tiny sizes, to test the pipeline."""
    commit: str | None = None
    """Commit to record; by default git's."""
    report: Callable[[Report], None] | None = None
    """Called with the progress of a training run."""
    log: Callable[[str], None] = lambda line: None
    """Called with a line when a job starts, ends or is skipped."""
    cache: bool = False
    """Whether to keep compiled programs for the next run."""


@dataclass(frozen=True)
class TrainJob:
    """One training run, and the rows of a table that it gives."""

    name: str
    method: str
    recipe: str = "ppo"
    sea: str = "ideal"
    vessels: tuple[str, ...] = ()
    """Vessels with one policy each; without any, one policy for all boats."""
    rows: Mapping[str, str] = field(default_factory=dict)
    """Each row of the table, and the phase whose policy it is; `FINAL` for the last."""
    mean_latent: bool = False
    """Whether to add the row `MEAN_LATENT`."""
    keep: Mapping[str, str] = field(default_factory=dict)
    """Rows whose policy of seed 0 is stored, and its name, to which the vessel's is appended."""
    settings: tuple[str, ...] = ()
    """What differs from the preset, as in `ppo.total_steps=6e7`."""

    def configs(self, quick: bool) -> dict[str, Config]:
        """A config for each vessel, or under "" one for all boats; with `quick`, one that takes seconds."""
        from anyhull.learn import config

        preset = config.paper if self.recipe == "ppo" else config.apg
        found = {vessel: preset(self.method, self.sea, vessel or None) for vessel in self.vessels or ("",)}
        for setting in self.settings:
            found = {vessel: config.override(one, setting) for vessel, one in found.items()}
        return {vessel: tiny(one) if quick else one for vessel, one in found.items()}


def tiny(config: Config) -> Config:
    """Two iterations of a few boats."""
    ppo: dict[str, Any] = {"num_envs": 16, "rollout_steps": 8, "total_steps": 256, "minibatches": 2}
    apg: dict[str, Any] = {"num_envs": 16, "horizon": 8, "updates": 2}
    return replace(
        config,
        ppo=replace(config.ppo, epochs=1, **ppo),
        distillation=replace(config.distillation, **ppo),
        apg=replace(config.apg, **apg),
        finetune=replace(config.finetune, **apg),
    )


def train(job: TrainJob, plan: Plan) -> tuple[dict[str, Any], dict[str, Any], bool]:
    """Train, or resume, and evaluate: the rows, the config, and whether the run was resumed."""
    from anyhull.learn import checkpoints, trainer
    from anyhull.learn.precompile import use_cache

    if plan.cache:
        use_cache()
    configs = job.configs(plan.quick)
    folder = plan.work / job.name
    resumed = (folder / "config.json").exists()
    trainer.train(configs, folder, seeds=plan.seeds, resume=resumed, every_phase=True, report=plan.report)
    paths = {row: trainer.paths(folder, phase, plan.seeds, list(configs)) for row, phase in job.rows.items()}
    rows = {row: [checkpoints.read_about(path)["metrics"] for path in found] for row, found in paths.items()}
    if job.mean_latent:
        students = next(paths[row] for row, phase in job.rows.items() if phase == FINAL)
        paths[MEAN_LATENT] = [folder / f"mean-latent{SUFFIX}"]
        rows[MEAN_LATENT] = mean_latents(students, configs[""], paths[MEAN_LATENT][0])
    for row, name in job.keep.items():
        for i, vessel in enumerate(configs):
            with atomic_write(kept_policy(plan, f"{name}{vessel and '-'}{vessel}")) as temporary:
                shutil.copyfile(paths[row][i * plan.seeds], temporary)
    if job.vessels:
        rows = {row: join_vessels(metrics, job.vessels) for row, metrics in rows.items()}
    return {"rows": rows}, trainer.recorded(configs), resumed


def mean_latents(students: list[Path], config: Config, path: Path) -> list[dict[str, Any]]:
    """Metrics of the students with their latents fixed to the mean; that of seed 0 is saved to `path`."""
    from anyhull.learn import checkpoints, evaluate, phases
    from anyhull.learn.policies import Student

    metrics = []
    for i, file in enumerate(students):
        student, _, _ = checkpoints.load_policy(file)
        assert isinstance(student, Student)
        fixed = phases.mean_latent(student, config.environment)
        metrics.append(evaluate.tracking_metrics(fixed, config))
        if i == 0:
            checkpoints.save_policy(path, fixed, replace(config, method=MEAN_LATENT), metrics[0])
    return metrics


def join_vessels(metrics: list[dict[str, Any]], vessels: tuple[str, ...]) -> list[dict[str, Any]]:
    """Metrics of policies for one vessel each, ordered by vessel and then by seed, as one entry a seed."""
    seeds = len(metrics) // len(vessels)
    return [_join(metrics[i::seeds], vessels) for i in range(seeds)]


def _join(metrics: list[dict[str, Any]], vessels: tuple[str, ...]) -> dict[str, Any]:
    own = [next(iter(one["platforms"].values())) for one in metrics]
    numbers = [what for what, value in own[0].items() if not isinstance(value, list)]
    joined: dict[str, Any] = {what: sum(one[what] for one in own) / len(own) for what in numbers}
    joined["platforms"] = dict(zip(vessels, own, strict=True))
    for case in ("rest", "sea"):
        if case in metrics[0]:
            joined[case] = _join([one[case] for one in metrics], vessels)
    return joined


def seed_policies(plan: Plan, job: str, name: str) -> list[Path]:
    """The policies of all seeds of a training job; where they are missing, that of seed 0, stored as `name`."""
    from anyhull.learn.trainer import paths

    found = paths(plan.work / job, FINAL, plan.seeds)
    if all(path.exists() for path in found):
        return found
    if (first := policy(plan, name)).exists():
        plan.log(f"  {plan.work / job}: policies of the other seeds are missing; seed 0 only")
        return [first]
    raise InputError(f"{first}: is missing: run job {job!r} first, which writes it")


def kept_policy(plan: Plan, name: str) -> Path:
    """Where this study stores the policy of seed 0 of that name."""
    return plan.out / "policies" / f"{name}{SUFFIX}"


def policy(plan: Plan, name: str) -> Path:
    """The policy of seed 0 of that name: this study's own, else the shipped one."""
    own = kept_policy(plan, name)
    return own if own.exists() else shipped().get(name, own)
