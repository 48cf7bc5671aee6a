"""The pieces that studies are made of: each is done once, writes its result at once, and is skipped when done."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

from anyhull.errors import InputError, unknown
from anyhull.study import driven, results
from anyhull.study.learned import Plan, Training, found_policy, train
from anyhull.study.results import Result
from anyhull.vessel import PLATFORMS

STUDIES = {
    "ideal": "the paper's simulation table",
    "latent": "what the latent holds",
    "sweep": "the appendix: one vessel scaled",
    "field": "the paper's table of the field, in simulation and in the sea-trial twin",
}

SEEDS = {"ideal": 10, "latent": 10, "sweep": 3, "field": 3}
"""Of every method that is trained. The paper has ten in still water; on the water it has one policy."""

Made = tuple[dict[str, Any], dict[str, Any], bool]
"""Findings, config, and whether the piece had been begun before."""


@dataclass(frozen=True)
class Piece:
    """A part of a study that is done in one go."""

    name: str
    study: str
    make: Callable[[Plan], Made]
    needs: tuple[str, ...] = ()
    """Packages that it takes."""
    policies: tuple[str, ...] = ()
    """Policies of seed 0 that other pieces must have left."""
    trains: bool = False

    def obstacle(self, plan: Plan) -> str | None:
        """Why it cannot be done here and now, if so."""
        if missing := [package for package in self.needs if find_spec(package) is None]:
            return f"needs {', '.join(missing)}: do it where that is installed"
        for name in self.policies:
            if not (path := found_policy(plan, name)).exists():
                return f"needs {path}, which another piece makes"
        return None


def trained(study: str, training: Training) -> Piece:
    """A piece that trains."""
    return Piece(training.piece, study, lambda plan: train(training, plan), ("jax", "equinox", "optax"), trains=True)


def driving(name: str, study: str, drive: Callable[[Plan], dict[str, Any]], *policies: str, needs: Any = ()) -> Piece:
    """A piece that drives boats with controllers that are there."""

    def make(plan: Plan) -> Made:
        return drive(plan), {"runs": driven.RUNS, "first_seed": driven.FRESH}, False

    return Piece(name, study, make, tuple(needs), policies)


def latent(name: str, piece: str, shipped: str) -> Piece:
    """A piece that looks into the students of another."""

    def make(plan: Plan) -> Made:
        from anyhull.study import latent

        return *latent.study(plan, piece, shipped), False

    return Piece(name, "latent", make, ("jax", "equinox", "optax"), (shipped,))


def sweep(plan: Plan) -> Made:
    """The piece of the appendix."""
    from anyhull.study import sweep

    return sweep.study(plan)


def _all() -> Iterable[Piece]:
    both = (("teacher", "teacher"), ("student", "student"), ("student-mean-latent", "student-mean-latent"))
    yield trained(
        "ideal",
        Training(
            "ideal-student",
            "student",
            phases=(("teacher", "teacher"),),
            row="student",
            mean_latent="student-mean-latent",
            ships=both,
        ),
    )
    for method in ("recurrent", "ppo-general"):
        yield trained("ideal", Training(f"ideal-{method}", method, row=method, ships=((method, method),)))
    yield trained(
        "ideal",
        Training(
            "ideal-ppo-specific",
            "ppo-specific",
            vessels=PLATFORMS,
            row="ppo-specific",
            ships=(("ppo-specific", "ppo-specific"),),
        ),
    )
    ours = (("teacher", "our-teacher"), ("adapter", "our-adapter"))
    yield trained(
        "ideal",
        Training(
            "ideal-gradient",
            "student",
            "gradient",
            phases=ours,
            row="our-student",
            ships=(("our-student", "ideal"), ("our-teacher", "ideal-teacher")),
        ),
    )
    yield driving("ideal-classic", "ideal", driven.ideal, needs=("casadi",))
    yield latent("latent-ppo", "ideal-student", "student")
    yield latent("latent-gradient", "ideal-gradient", "ideal")
    yield Piece("sweep", "sweep", sweep, ("jax", "equinox", "optax"), trains=True)
    yield trained("field", Training("field-student", "student", "ppo", "field", row="student", ships=_as("student")))
    yield trained(
        "field",
        Training(
            "field-gradient",
            "student",
            "gradient",
            "field",
            phases=(("teacher", "our-teacher"),),
            row="our-student",
            ships=(("our-student", "field"),),
        ),
    )
    yield trained(
        "field",
        Training("field-ppo-general", "ppo-general", "ppo", "field", row="ppo-general", ships=_as("ppo-general")),
    )
    yield trained(
        "field",
        Training(
            "field-ppo-specific",
            "ppo-specific",
            "ppo",
            "field",
            driven.FIELD_PLATFORMS,
            row="ppo-specific",
            ships=_as("ppo-specific"),
        ),
    )
    yield driving("field-classic", "field", driven.field, needs=("casadi",))
    for row, policy in TWINS.items():
        policies = dict.fromkeys(policy.format(name) for name in driven.FIELD_PLATFORMS) if policy else {}
        needs = ("daqp",) if policy or row == "pid" else ("daqp", "casadi")
        yield driving(f"field-twin-{row}", "field", driven.twin(row, policy), *policies, needs=needs)


def _as(row: str) -> tuple[tuple[str, str], ...]:
    return ((row, f"field-{row}"),)


TWINS: dict[str, str | None] = {
    "mpc-field": None,
    "pid": None,
    "our-student": "field",
    "student": "field-student",
    "ppo-general": "field-ppo-general",
    "ppo-specific": "field-ppo-specific-{}",
}
"""What is driven in the sea-trial twin: the row, and the policy, with {} for the platform."""

PIECES = {piece.name: piece for piece in _all()}


def chosen(studies: Iterable[str], names: Iterable[str] = ()) -> list[Piece]:
    """The pieces of these studies, or those of them that are named."""
    within = {name: piece for name, piece in PIECES.items() if piece.study in studies}
    for name in names:
        if name not in within:
            raise InputError(unknown("piece", name, within))
    return [piece for name, piece in within.items() if not names or name in names]


def carry_out(pieces: Iterable[Piece], plan: Plan) -> list[str]:
    """Do the pieces that are not done; the names of those that could not be done here."""
    left = []
    pieces = list(pieces)
    for piece in pieces:  # before any work is done
        if results.path_of(plan.out, piece.name).exists():
            check(results.load(results.path_of(plan.out, piece.name)), piece, plan)
    for piece in pieces:
        own = replace(plan, seeds=plan.seeds or SEEDS[piece.study])
        if results.path_of(plan.out, piece.name).exists():
            plan.say(f"{piece.name}: done before")
            continue
        if obstacle := piece.obstacle(plan):
            plan.say(f"{piece.name}: left out: {obstacle}")
            left.append(piece.name)
            continue
        plan.say(f"{piece.name}: begun")
        started = time.monotonic()
        data, config, resumed = piece.make(own)
        result = Result(
            piece.name,
            piece.study,
            own.seeds if piece.trains else 0,
            plan.quick,
            time.monotonic() - started,
            resumed,
            results.finite(data),
            results.finite(config),
            results.versions(),
            results.hardware("jax" in piece.needs),
            plan.commit or results.commit(),
        )
        results.save(plan.out, result)
        plan.say(f"{piece.name}: done in {result.seconds:.0f} s")
    return left


def check(result: Result, piece: Piece, plan: Plan) -> None:
    """Refuse a result of another plan. Without a number of seeds in the plan, any will do: the tables tell it."""
    path = results.path_of(plan.out, result.piece)
    for name in ("seeds", "quick") if piece.trains and plan.seeds else ("quick",):
        if (was := getattr(result, name)) != (wanted := getattr(plan, name)):
            raise InputError(
                f"{path}: {name} = {was}: must be {wanted} for this study; give another folder, or remove it"
            )


def stored(out: Any) -> dict[str, Result]:
    """The results that there are, by piece, in the order of the pieces."""
    if not out.is_dir():
        raise InputError(f"{out}: is no folder of results: run a study first, or give another folder")
    found = {name: results.load(path) for name in PIECES if (path := results.path_of(out, name)).exists()}
    if not found:
        raise InputError(f"{out}: holds no results of a study: run one first")
    return found
