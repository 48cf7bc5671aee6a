"""The paper's claims beside what the results say of each."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from anyhull import paper
from anyhull.paper import FIELD_PLATFORMS
from anyhull.study.convergence import summary
from anyhull.study.entries import LABELS, Entries, Table, by_seed, gather, name_of, published, spread, trials
from anyhull.study.field_tables import median_interval
from anyhull.study.results import Result

LEARNED = tuple(row for row in paper.IDEAL if row != "mpc-paper")
"""The paper's learned methods, in the order of its table."""

MEASURES = {"position_cm": ("position", " cm"), "heading_deg": ("heading", "°")}
"""Name and unit of each error."""

COMPARED = {
    "teacher": "Student over Teacher†, level",
    "recurrent": "Student over Recurrent, ahead",
    "ppo-general": "Student over PPO (general)",
    "student-mean-latent": "Student over Student avg. z, below half",
}
"""What the paper says of the student beside each of these."""

Judged = tuple[str, bool]
"""Our figures, and whether the claim holds by them."""

Judge = Callable[[Entries], Judged]

Starts = dict[str, Entries]
"""The results in ideal conditions by the start of the lap."""

NOTE = (
    "A lap starts with the reference's pose, from rest or also with its velocity; the paper does not say. An error "
    "agrees with the paper's if they differ by at most two deviations, of the paper's seeds and ours combined. One of "
    "our methods is ahead of another if their means differ by more than two standard errors."
)
ADAPTATION_NOTE = "ẑ₀ has converged when it stays within a tenth of the encoder's step."
FIELD_NOTE = (
    "Medians over the trials in the twin of the student's position error and of the other's: of the estimated state, "
    "as in the paper, and of the true one. Policies of seed 0, the same trials for all. In brackets the median of the "
    "other's error minus the student's in the same trial, with its interval of 95 % confidence. A claim holds if this "
    "interval allows it for both errors."
)


def claims(results: dict[str, Result]) -> list[Table]:
    """The tables "claim / the paper / ours / holds?" of the claims that the results say something about."""
    ideal = [result for result in results.values() if result.study == "ideal"]
    starts = {"from rest": gather(ideal, "rest"), "from its velocity": gather(ideal)}
    several = (
        (
            "In ideal conditions",
            tuple(f"ours, {start}" for start in starts),
            NOTE,
            (_errors(starts), _comparisons(starts)),
        ),
        ("Latent and adaptation", ("ours",), ADAPTATION_NOTE, (_latent(results), _sweep(results))),
        ("Boats, in the twin", ("ours, estimated", "ours, true"), FIELD_NOTE, (_field(results),)),
    )
    made = ((title, heads, note, tuple(row for part in parts for row in part)) for title, heads, note, parts in several)
    return [
        Table("claims", title, ("claim", "the paper", *heads, "holds?"), rows, (note,))
        for title, heads, note, rows in made
        if rows
    ]


def _errors(starts: Starts) -> Iterator[tuple[str, ...]]:
    """The figures of the table in ideal conditions."""
    for row, printed in paper.IDEAL.items():
        for what, (metric, unit) in MEASURES.items():
            theirs = published(printed, what)
            assert theirs is not None

            def judge(found: Entries, row: str = row, what: str = what, unit: str = unit) -> Judged:
                ours, theirs = spread(by_seed(found[row], what)), published(paper.IDEAL[row], what)
                assert theirs is not None
                combined = math.hypot(ours.std or 0.005, theirs.std or 0.0)
                return ours.text() + unit, abs(ours.mean - theirs.mean) <= 2 * combined

            yield from _by_start(f"{LABELS[row]}: {metric} error", theirs.text() + unit, starts, (row,), judge)


def _comparisons(starts: Starts) -> Iterator[tuple[str, ...]]:
    """The paper's comparisons between methods in ideal conditions."""
    yield from _by_start("smallest position error", "MPC*", starts, ("mpc-tight", "student"), _first)
    yield from _by_start("order of the learned methods by position", "as above", starts, ("student", "teacher"), _order)
    for other, claim in COMPARED.items():
        for what, (metric, _) in MEASURES.items():
            theirs = f"{getattr(paper.IDEAL['student'], what) / getattr(paper.IDEAL[other], what):.2f}"

            def judge(found: Entries, other: str = other, what: str = what, theirs: str = theirs) -> Judged:
                ours = f"{_mean(found, 'student', what) / _mean(found, other, what):.2f}"
                held = {
                    "teacher": not _ahead(found, other, "student", what),
                    "recurrent": _ahead(found, "student", other, what),
                    "ppo-general": float(ours) <= float(theirs),
                    "student-mean-latent": float(ours) < 0.5,
                }
                return ours, held[other]

            yield from _by_start(f"{claim}: {metric}", theirs, starts, ("student", other), judge)


def _first(found: Entries) -> Judged:
    """Whether the MPC, in our best tuning, has the smallest position error."""
    best = _sorted(found)[0]
    cells = ", ".join(f"{LABELS[row]} {_mean(found, row):.2g} cm" for row in ("mpc-tight", best))
    return cells, _mean(found, "mpc-tight") < _mean(found, best)


def _order(found: Entries) -> Judged:
    """The learned methods that are ahead of one that the paper has before them."""
    ours = _sorted(found)
    pairs = ((one, other) for i, one in enumerate(ours) for other in ours[i + 1 :])
    turned = [pair for pair in pairs if LEARNED.index(pair[0]) > LEARNED.index(pair[1])]
    ahead = [
        f"{LABELS[one]} ahead of {LABELS[other]}" for one, other in turned if _ahead(found, one, other, "position_cm")
    ]
    return ", ".join(ahead) or "the paper's", not ahead


def _latent(results: dict[str, Result]) -> Iterator[tuple[str, ...]]:
    if latent := results.get("latent-ppo"):
        ours = spread([100 * sum(seed["shares"][:2]) for seed in latent.data["seeds"]])
        theirs = sum(paper.VARIANCE_SHARES)
        holds = ours.mean + 2 * (ours.std or 0.0) >= theirs
        claim = "share of the latent's variance in two principal components"
        yield claim, f"{theirs:.0f} %", f"{ours.text(0)} %", _word(holds)


def _sweep(results: dict[str, Result]) -> Iterator[tuple[str, ...]]:
    if sweep := results.get("sweep"):
        found, seeds = summary(sweep.data["seeds"]), len(sweep.data["seeds"])
        monotone = min(found.encoder_monotone, found.adapter_monotone)
        yield "z₀ and ẑ₀ monotone in the scale", "yes", f"{monotone} of {seeds} seeds", _word(monotone == seeds)
        ours = f"{found.adapted} s to within a tenth of the encoder's step; after 1.0 s {found.covered_then} % of it"
        holds = found.adapted_median <= 1.5 * paper.ADAPTATION_TIME
        yield "ẑ₀ converges after the scale drops", f"about {paper.ADAPTATION_TIME} s", ours, _word(holds)


def _field(results: dict[str, Result]) -> Iterator[tuple[str, ...]]:
    """Claims on the real boats, in the twin."""
    found = trials(results)
    for platform in FIELD_PLATFORMS if "student" in found else ():
        student, printed = found["student"][platform], paper.FIELD[platform]
        for row, claim in (
            ("ppo-general", "Student ahead of PPO (general)"),
            ("mpc-field", "Student not behind MPC*"),
            ("ppo-specific", "Student not behind PPO (specific)*"),
        ):
            if row in found:
                theirs = f"{printed['student'].position_cm:.1f}, {printed[row].position_cm:.1f} cm"
                judged = [_beside(student, found[row][platform], what) for what in ("estimated", "true")]
                held = all(low > 0 if row == "ppo-general" else high >= 0 for _, low, high in judged)
                yield f"{name_of(platform)}: {claim}", theirs, *(cell for cell, _, _ in judged), _word(held)


def _beside(student: dict[str, Any], other: dict[str, Any], what: str) -> tuple[str, float, float]:
    """A position error of the student beside that of another row, and the interval of the difference."""
    own, its = (np.array(one[f"{what}_position_cm"]["each"]) for one in (student, other))
    low, high = median_interval((its - own).tolist())
    difference = f"{np.median(its - own):+.1f}, {low:+.1f} to {high:+.1f}"
    return f"{np.median(own):.1f}, {np.median(its):.1f} cm ({difference})", low, high


def _by_start(claim: str, theirs: str, starts: Starts, needs: Sequence[str], judge: Judge) -> Iterator[tuple[str, ...]]:
    """The row of a claim, judged for each start of the lap that has the rows that it needs."""
    judged = {start: judge(found) for start, found in starts.items() if all(row in found for row in needs)}
    if judged:
        held = [start for start, (_, holds) in judged.items() if holds]
        word = _word(bool(held)) if len(held) in (0, len(starts)) else ", ".join(held)
        yield claim, theirs, *(judged[start][0] if start in judged else "" for start in starts), word


def _word(holds: bool) -> str:
    return "yes" if holds else "no"


def _mean(found: Entries, row: str, what: str = "position_cm") -> float:
    return spread(by_seed(found[row], what)).mean


def _sorted(found: Entries) -> list[str]:
    """The learned methods, the best position first."""
    return sorted((row for row in LEARNED if row in found), key=lambda row: _mean(found, row))


def _ahead(found: Entries, one: str, other: str, what: str) -> bool:
    """Whether the mean error of a row is smaller than that of another by more than two standard errors."""
    values = [by_seed(found[row], what) for row in (one, other)]
    error = math.sqrt(sum((spread(several).std or 0.0) ** 2 / len(several) for several in values))
    return float(np.mean(values[1]) - np.mean(values[0])) > 2 * error
