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
    """The simulation table, its variants, and the same for each platform."""
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
    return made


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
