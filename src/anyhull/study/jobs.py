"""The jobs of the studies. Each runs once and writes its result at once; a job that has a result is skipped."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from anyhull.errors import InputError, unknown
from anyhull.paper import FIELD_PLATFORMS, PLATFORMS
from anyhull.study import results, simulation_jobs, train_jobs
from anyhull.study.results import Result
from anyhull.study.train_jobs import FINAL, MEAN_LATENT, Plan, TrainJob, policy

STUDIES = {
    "ideal": "the paper's simulation table",
    "latent": "the content of the latent",
    "sweep": "the appendix: one vessel scaled",
    "field": "the paper's field table, in simulation and in the sea-trial twin",
}

SEEDS = {"ideal": 10, "latent": 10, "sweep": 3, "field": 3}
"""Training seeds of every learned method. The paper has ten in ideal conditions, and one policy in the field."""

LEARN = ("jax", "equinox", "optax")

Findings = tuple[dict[str, Any], dict[str, Any], bool]
"""Data and config of a result, and whether the job was resumed."""


@dataclass(frozen=True)
class Job:
    """A part of a study with a result of its own."""

    name: str
    study: str
    make: Callable[[Plan], Findings]
    packages: tuple[str, ...] = ()
    """Packages that it needs."""
    policies: tuple[str, ...] = ()
    """Policies of seed 0 that it needs."""
    trains: bool = False
    seeds: int = 0
    """Training seeds, where they differ from the study's own number."""

    def missing(self, plan: Plan) -> str | None:
        """What the job needs and is not there, if anything."""
        if packages := [package for package in self.packages if find_spec(package) is None]:
            return f"needs {', '.join(packages)}: run it where that is installed"
        paths = (policy(plan, name) for name in self.policies)
        return next((f"needs {path}, which another job writes" for path in paths if not path.exists()), None)


def _train(study: str, job: TrainJob, seeds: int = 0) -> Job:
    return Job(job.name, study, lambda plan: train_jobs.train(job, plan), LEARN, trains=True, seeds=seeds)


def _simulate(name: str, study: str, run: Callable[[Plan], dict[str, Any]], packages: Any, *policies: str) -> Job:
    settings = {"runs": simulation_jobs.RUNS, "first_seed": simulation_jobs.FIRST_SEED}
    return Job(name, study, lambda plan: (run(plan), settings, False), tuple(packages), policies)


def _latent(name: str, job: str, policy: str) -> Job:
    def make(plan: Plan) -> Findings:
        from anyhull.study import latent

        return *latent.study(plan, job, policy), False

    return Job(name, "latent", make, LEARN, (policy,))


def _sweep(plan: Plan) -> Findings:
    from anyhull.study import sweep

    return sweep.study(plan)


TWINS: dict[str, str | None] = {
    "mpc-field": None,
    "adaptive": None,
    "pid": None,
    "our-student": "field",
    "student": "field-student",
    "ppo-general": "field-ppo-general",
    "ppo-specific": "field-ppo-specific-{}",
}
"""Rows of the sea trials in the twin, and the policy of each, with {} for the platform; None is a classical one."""


LONG = ("ppo.total_steps=60000000", "distillation.total_steps=45000000")
"""The student's budget where each phase has one of its own, 1.75 times the paper's."""

PRINTED = ("scales.printed=true",)
"""Observation and history as the paper prints them."""

RAW, LINEAR = "environment.log_dynamics=false", "environment.randomization.spacing=linear"
SAMPLINGS = {"raw": (RAW,), "linear": (LINEAR,), "raw-linear": (RAW, LINEAR)}
"""What the encoder may be given instead: e unscaled, and boats drawn uniformly in their components."""

FEW = 3
"""Training seeds of the variants."""


def _jobs() -> Iterator[Job]:
    rows = {"student": FINAL, "teacher": "teacher"}
    keep = {row: row for row in (*rows, MEAN_LATENT)}
    yield _train("ideal", TrainJob("ideal-student", "student", rows=rows, mean_latent=True, keep=keep))
    rows = {"student-long": FINAL, "teacher-long": "teacher"}
    yield _train("ideal", TrainJob("ideal-student-long", "student", rows=rows, settings=LONG))
    for method, vessels in (("recurrent", ()), ("ppo-general", ()), ("ppo-specific", PLATFORMS)):
        final, keep = {method: FINAL}, {method: method}
        yield _train("ideal", TrainJob(f"ideal-{method}", method, vessels=vessels, rows=final, keep=keep))
    rows = {"our-student": FINAL, "our-teacher": "teacher", "our-adapter": "adapter"}
    keep = {"our-student": "ideal", "our-teacher": "ideal-teacher"}
    yield _train("ideal", TrainJob("ideal-apg", "student", "apg", rows=rows, keep=keep))
    for method in ("student", "recurrent", "ppo-general"):
        yield _variant(method, "printed", PRINTED)
    for sampling, settings in SAMPLINGS.items():
        yield _variant("student", sampling, settings)
    yield _simulate("ideal-classic", "ideal", simulation_jobs.ideal, ("casadi", "daqp"))
    yield _latent("latent-ppo", "ideal-student", "student")
    yield _latent("latent-apg", "ideal-apg", "ideal")
    for sampling in SAMPLINGS:
        job = _latent(f"latent-{sampling}", f"ideal-student-{sampling}", f"student-{sampling}")
        yield replace(job, seeds=FEW)
    yield Job("sweep", "sweep", _sweep, LEARN, trains=True)
    yield _train("field", _field("student"))
    yield _train("field", _field("ppo-general"))
    yield _train("field", _field("ppo-specific", FIELD_PLATFORMS))
    yield _simulate("field-classic", "field", simulation_jobs.field, ("casadi", "daqp"))
    for row, name in TWINS.items():
        policies = dict.fromkeys(name.format(platform) for platform in FIELD_PLATFORMS) if name else {}
        packages = ("daqp", "casadi") if row in ("mpc-field", "adaptive") else ("daqp",)
        yield _simulate(f"field-twin-{row}", "field", simulation_jobs.twin(row, name), packages, *policies)


def _variant(method: str, name: str, settings: tuple[str, ...]) -> Job:
    row = f"{method}-{name}"
    job = TrainJob(f"ideal-{row}", method, rows={row: FINAL}, keep={row: row}, settings=settings)
    return _train("ideal", job, FEW)


def _field(method: str, vessels: tuple[str, ...] = ()) -> TrainJob:
    name = f"field-{method}"
    return TrainJob(name, method, sea="field", vessels=vessels, rows={method: FINAL}, keep={method: name})


JOBS = {job.name: job for job in _jobs()}


def select(studies: Iterable[str], names: Iterable[str] = ()) -> list[Job]:
    """The jobs of these studies, or those of them with these names."""
    within = {name: job for name, job in JOBS.items() if job.study in studies}
    for name in names:
        if name not in within:
            raise InputError(unknown("job", name, within))
    return [job for name, job in within.items() if not names or name in names]


def run(jobs: Iterable[Job], plan: Plan) -> list[str]:
    """Run the jobs that have no result; the names of those that cannot run here."""
    jobs, skipped = list(jobs), []
    for job in jobs:  # before any work is done
        if (path := results.path_of(plan.out, job.name)).exists():
            check(path, job, plan)
    for job in jobs:
        if results.path_of(plan.out, job.name).exists():
            plan.log(f"{job.name}: has a result")
        elif missing := job.missing(plan):
            plan.log(f"{job.name}: skipped: {missing}")
            skipped.append(job.name)
        else:
            plan.log(f"{job.name}: started")
            result = _run(job, replace(plan, seeds=plan.seeds or job.seeds or SEEDS[job.study]))
            plan.log(f"{job.name}: finished in {result.seconds:.0f} s")
    return skipped


def _run(job: Job, plan: Plan) -> Result:
    start = time.monotonic()
    data, config, resumed = job.make(plan)
    result = Result(
        job=job.name,
        study=job.study,
        seeds=plan.seeds if job.trains else 0,
        quick=plan.quick,
        seconds=time.monotonic() - start,
        resumed=resumed,
        data=results.finite(data),
        config=results.finite(config),
        versions=results.versions(),
        hardware=results.hardware("jax" in job.packages),
        commit=plan.commit or results.commit(),
    )
    results.save(plan.out, result)
    return result


def check(path: Path, job: Job, plan: Plan) -> None:
    """Refuse a result of another plan. Without a number of seeds in the plan, any number is accepted."""
    result = results.load(path)
    for name in ("seeds", "quick") if job.trains and plan.seeds else ("quick",):
        if (found := getattr(result, name)) != (wanted := getattr(plan, name)):
            raise InputError(f"{path}: {name} = {found}: must be {wanted}; give another folder, or remove the file")


def load(out: Path) -> dict[str, Result]:
    """The results in a folder by job, in the order of the jobs."""
    if not out.is_dir():
        raise InputError(f"{out}: is no folder of results: run a study first, or give another folder")
    found = {name: results.load(path) for name in JOBS if (path := results.path_of(out, name)).exists()}
    if not found:
        raise InputError(f"{out}: holds no results of a study: run one first")
    return found
