"""Tables of the study in ideal conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from anyhull import paper
from anyhull.paper import PLATFORMS
from anyhull.study.entries import (
    DELTA_TAU,
    HEADING,
    LABELS,
    POSITION,
    PRIOR_KNOWLEDGE,
    SATURATED,
    VARIANTS,
    Entries,
    Table,
    by_seed,
    gather,
    metric_cells,
    name_of,
    published,
    spread,
    text,
    warnings,
)
from anyhull.study.results import Result
from anyhull.viz.captions import IDEAL_CONDITIONS, METRICS


def ideal(results: dict[str, Result]) -> list[Table]:
    """The simulation table, its variants, the same for each platform, and the budgets."""
    entries, rest = gather(results.values()), gather(results.values(), "rest")
    main = [row for row in entries if row not in VARIANTS]
    columns = (
        *("", POSITION, "from rest", "the paper's", HEADING, "from rest", "the paper's"),
        *(DELTA_TAU, SATURATED, "seeds"),
    )
    notes = (
        f"One lap of the rectangle (10 × 6 m, 2 m corners, 0.6 m/s) in {IDEAL_CONDITIONS}, from the reference's pose: "
        "with its velocity, and from rest. Mean over the five platforms within a seed, then mean ± sample standard "
        f"deviation over seeds. '{DELTA_TAU}' is the change of the normalized command from one control period to the "
        f"next, '{SATURATED}' the fraction of commands at an actuator limit, both from the reference's velocity.",
        PRIOR_KNOWLEDGE,
        "The weights of the MPC's tuning `paper` were fitted to the paper's figure, from the reference's velocity.",
        *warnings(results),
    )
    rows, numbers = _ideal_rows(main, entries, rest)
    made = [Table("ideal", "Ideal conditions, five platforms", columns, rows, notes, numbers)]
    if variants := [row for row in entries if row in VARIANTS]:
        rows, numbers = _ideal_rows(variants, entries, rest)
        made.append(Table("ideal", "The paper's recipe with other inputs and boats", columns, rows, (), numbers))
    for found, start in ((entries, ""), (rest, ", from rest")):
        for what in ("position_cm", "heading_deg"):
            each = tuple(
                (LABELS[row], *(_mean(found[row], p, what) for p in PLATFORMS)) for row in main if row in found
            )
            title = f"Ideal conditions{start}, each platform: {METRICS[what]}"
            made.append(Table("ideal", title, ("", *map(name_of, PLATFORMS)), each))
    return [*made, budgets(results)]


def _ideal_rows(names: Sequence[str], entries: Entries, rest: Entries) -> tuple[Any, Any]:
    """Rows of the simulation table as text and as numbers."""
    rows, numbers = [], []
    for row in names:
        platforms = entries[row]
        seeds = next(iter(platforms.values()))
        means, others = ({what: spread(by_seed(p, what)) for what in METRICS if p} for p in (platforms, rest.get(row)))
        position, heading, *command = metric_cells(means, 3)
        partial = f" ({len(platforms)} of {len(PLATFORMS)} platforms)" * (len(platforms) < len(PLATFORMS))
        cells = []
        for what, mean in (("position_cm", position), ("heading_deg", heading)):
            cells += [mean, text(others.get(what), 3), text(published(paper.IDEAL.get(row), what))]
        rows.append((LABELS[row] + partial, *cells, *command, str(len(seeds))))
        by_start = {what: asdict(value) for what, value in means.items()}
        numbers.append({"row": row} | by_start | {"rest": {what: asdict(value) for what, value in others.items()}})
    return tuple(rows), tuple(numbers)


def _mean(platforms: dict[str, list[dict[str, float]]], platform: str, what: str) -> str:
    return spread([numbers[what] for numbers in platforms[platform]]).text() if platform in platforms else ""


def budgets(results: dict[str, Result]) -> Table:
    """Steps of the simulator for one seed of each trained row, and the time of its job."""
    rows = tuple(
        (
            ", ".join(LABELS[row] for row in result.data["rows"]),
            " + ".join(_steps(steps) for steps in _phase_steps(result.config)),
            f"{result.seconds:.0f}",
            str(result.seeds),
            str(result.hardware.get("device", "")),
        )
        for result in results.values()
        if result.seeds and result.config
    )
    notes = (
        "Steps of one seed (of one vessel for PPO (specific)), phase by phase; the paper has 6 × 10⁷ for both phases. "
        "Seconds are wall-clock time of all seeds together, with compilation and evaluation. Where jobs ran side by "
        "side on one device, the time of each includes the others' share of it.",
    )
    return Table("ideal", "Budgets", ("", "steps", "seconds", "seeds", "device"), rows, notes)


def _phase_steps(config: dict[str, Any]) -> list[int]:
    """Environment steps of each phase."""
    config = config[config["order"][0]] if "order" in config else config
    ppo, adapter = config["ppo"]["total_steps"], config["distillation"]["total_steps"]
    if config["recipe"] == "apg":
        windows = [config[phase] for phase in ("apg", "finetune")]
        teacher, student = (w["updates"] * w["num_envs"] * w["horizon"] for w in windows)
        return [teacher, adapter, student]
    return [ppo, adapter] if config["method"] in ("student", "sweep") else [ppo]


def _steps(number: int) -> str:
    """As in 4.5 × 10⁷."""
    return f"{number / 1e7:.3g} × 10⁷"
