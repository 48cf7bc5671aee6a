"""The paper's claims beside what the results say of each."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from anyhull import paper
from anyhull.study.convergence import summary
from anyhull.study.entries import (
    LABELS,
    Entries,
    Table,
    by_seed,
    gather,
    name_of,
    published,
    spread,
    text,
    trials,
    warnings,
)
from anyhull.study.field_tables import median_interval
from anyhull.study.results import Result

LEARNED = tuple(row for row in paper.IDEAL if row != "mpc-paper")
"""The paper's learned methods, in the order of its table."""

COMPARED = ("teacher", "recurrent", "ppo-general", "student-mean-latent")
"""Methods with which the paper compares its student."""

MEASURES = {"position_cm": ("position", " cm"), "heading_deg": ("heading", "°")}
"""Name and unit of each error."""

PRINTED = 0.005
"""Half of the last place of the paper's table."""

CLEAR = 0.25
"""Two standard errors, as a share of the paper's figure, above which nothing is said of agreement; likewise the end of
an interval that contains zero, as a share of the student's error."""

ON_BOATS = (
    ("platform-a", "ppo-general", "position", "ahead"),
    ("platform-a", "ppo-general", "heading", "level"),
    ("platform-a", "mpc-field", "position", "ahead"),
    ("platform-a", "mpc-field", "heading", "behind"),
    ("platform-a", "ppo-specific", "position", "ahead"),
    ("platform-a", "ppo-specific", "heading", "ahead"),
    ("platform-b", "ppo-general", "position", "ahead"),
    ("platform-b", "ppo-general", "heading", "level"),
    ("platform-b", "mpc-field", "position", "level"),
    ("platform-b", "mpc-field", "heading", "ahead"),
    ("platform-b", "ppo-specific", "position", "ahead"),
)
"""Where the paper says its student is on a boat, beside another method, by an error."""

CONNECTED = {"ahead": " of ", "level": " with ", "behind": " "}
"""The word between a finding and what it is beside."""

IDEAL_NOTE = (
    "A lap starts at the reference's pose, at rest or at the reference's speed; the paper does not say which. Errors "
    "and ratios differ from the paper's if they are more than two standard errors apart, of the paper's ten seeds and "
    "of ours combined, beyond the rounding of its table. Else the claim holds, or is undecided where two standard "
    "errors are more than a quarter of the paper's figure. The MPC's weights were fitted to its row of the paper at "
    "speed, so that row shows nothing. The recipe has scales of the inputs, offsets and limits on turns that the paper "
    "does not print and that were chosen on this lap. Recurrent and PPO (specific) are records of version 0.2."
)
ADAPTATION_NOTE = (
    "Shares agree if they differ by at most two deviations over our seeds. ẑ₀ has converged when it stays within a "
    "tenth of the encoder's step; the paper does not say how near its estimate comes."
)
FIELD_NOTE = (
    "Medians over the trials in the twin of the student's error and of the other's, then the median of the other's "
    "minus the student's in the same trial with its interval of 95 % confidence: of the estimated state, as in the "
    "paper, by which a claim is judged, and of the true one. The student is ahead or behind if the interval excludes "
    "zero, else level; undecided where the interval reaches beyond a quarter of the student's error. Each method has "
    "one policy, of seed 0; one that does not complete its trials decides nothing."
)


class Mean(NamedTuple):
    """A mean and its standard error."""

    mean: float
    error: float

    def apart(self, other: Mean) -> float:
        """How far the two are apart beyond two standard errors; negative if that may be chance."""
        return abs(self.mean - other.mean) - 2 * math.hypot(self.error, other.error)

    def agrees(self, theirs: Mean) -> str:
        """Whether this is the paper's figure."""
        if self.apart(theirs) > PRINTED:
            return "no"
        return "yes" if 2 * math.hypot(self.error, theirs.error) <= CLEAR * theirs.mean else "undecided"

    def over(self, other: Mean) -> Mean:
        """The ratio of the two."""
        ratio = self.mean / other.mean
        return Mean(ratio, ratio * math.hypot(self.error / self.mean, other.error / other.mean))


Judged = tuple[str, str]
"""Our figures, and whether the claim holds by them: yes, no or undecided."""

Starts = dict[str, Entries]
"""The results in ideal conditions by the start of the lap."""


def claims(results: dict[str, Result]) -> list[Table]:
    """The tables "claim / the paper / ours / holds?" of the claims that the results say something about."""
    ideal = [result for result in results.values() if result.study == "ideal"]
    starts = {"from rest": gather(ideal, "rest"), "at speed": gather(ideal)}
    heads = tuple(f"ours, {start}" for start in starts)
    several = (
        ("In ideal conditions", heads, IDEAL_NOTE, (*_errors(starts), *_comparisons(starts))),
        ("Latent and adaptation", ("ours",), ADAPTATION_NOTE, (*_latent(results), *_sweep(results))),
        ("Boats, in the twin", ("ours, estimated", "ours, true"), FIELD_NOTE, tuple(_field(results))),
    )
    return [
        Table("claims", title, ("claim", "the paper", *heads, "holds?"), rows, (note, *warnings(results)))
        for title, heads, note, rows in several
        if rows
    ]


def _errors(starts: Starts) -> Iterator[tuple[str, ...]]:
    """The figures of the table in ideal conditions."""
    for row, printed in paper.IDEAL.items():
        for what, (metric, unit) in MEASURES.items():
            theirs = text(published(printed, what)) + unit
            judge = partial(_agrees, row, what)
            for made in _by_start(f"{LABELS[row]}: {metric} error", theirs, starts, (row,), judge):
                yield (*made[:-1], "fitted") if row == "mpc-paper" else made


def _agrees(row: str, what: str, found: Entries) -> Judged:
    """Whether an error is the paper's."""
    ours = spread(by_seed(found[row], what)).text() + MEASURES[what][1]
    return ours, _mean(found, row, what).agrees(_printed(row, what))


def _comparisons(starts: Starts) -> Iterator[tuple[str, ...]]:
    """The paper's comparisons between methods in ideal conditions."""
    claim = "smallest position error of the paper's methods (MPC: our tight tuning)"
    yield from _by_start(claim, "MPC*", starts, ("mpc-tight", "student"), _smallest)
    order = ", ".join(LABELS[row] for row in LEARNED)
    yield from _by_start("order of the learned methods by position", order, starts, ("student", "teacher"), _order)
    for other in COMPARED:
        for what, (metric, _) in MEASURES.items():
            theirs = _printed("student", what).over(_printed(other, what))
            claim, judge = f"Student's {metric} error over that of {LABELS[other]}", partial(_same, other, what, theirs)
            yield from _by_start(claim, f"{theirs.mean:.2f}", starts, ("student", other), judge)


def _same(other: str, what: str, theirs: Mean, found: Entries) -> Judged:
    """Whether the ratio of the student's error to that of another row is the paper's."""
    ours = _mean(found, "student", what).over(_mean(found, other, what))
    return f"{ours.mean:.2f}", ours.agrees(theirs)


def _smallest(found: Entries) -> Judged:
    """Whether the MPC, in our tight tuning, has the smallest position error."""
    best = _sorted(found)[0]
    cells = ", ".join(f"{LABELS[row]} {_mean(found, row).mean:.2g} cm" for row in ("mpc-tight", best))
    return cells, _word(_ahead(found, "mpc-tight", best))


def _order(found: Entries) -> Judged:
    """The learned methods that are ahead of one that the paper has before them.

    The order is the paper's if each method is ahead of the next beyond chance.
    """
    ours = _sorted(found)
    pairs = ((one, other) for i, one in enumerate(ours) for other in ours[i + 1 :])
    turned = (pair for pair in pairs if LEARNED.index(pair[0]) > LEARNED.index(pair[1]))
    ahead = [" ahead of ".join(LABELS[row] for row in pair) for pair in turned if _ahead(found, *pair)]
    clear = all(_ahead(found, *pair) for pair in pairwise(row for row in LEARNED if row in found))
    return ", ".join(ahead) or "none beyond chance", "no" if ahead else "yes" if clear else "undecided"


def _latent(results: dict[str, Result]) -> Iterator[tuple[str, ...]]:
    if latent := results.get("latent-ppo"):
        ours, theirs = spread([100 * sum(seed["shares"][:2]) for seed in latent.data["seeds"]]), paper.VARIANCE_SHARES
        claim = "share of the latent's variance in two principal components"
        holds = abs(ours.mean - sum(theirs)) <= 2 * (ours.std or 0.0)
        yield claim, f"{sum(theirs):.0f} %", f"{ours.text(0)} %", _word(holds)


def _sweep(results: dict[str, Result]) -> Iterator[tuple[str, ...]]:
    if sweep := results.get("sweep"):
        found, seeds = summary(sweep.data["seeds"]), len(sweep.data["seeds"])
        monotone = min(found.encoder_monotone, found.adapter_monotone)
        yield "z₀ and ẑ₀ monotone in the scale", "yes", f"{monotone} of {seeds} seeds", _word(monotone == seeds)
        when = paper.ADAPTATION_TIME
        ours = f"{found.adapted} s; after {when} s {found.covered_then} % of the step"
        yield "ẑ₀ converges after the scale drops", f"about {when} s", ours, _word(found.fastest <= when)


def _field(results: dict[str, Result]) -> Iterator[tuple[str, ...]]:
    """Claims on the real boats, in the twin."""
    found = trials(results)
    for platform, row, metric, where in ON_BOATS:
        if "student" in found and row in found:
            student, other = found["student"][platform], found[row][platform]
            what, unit = next((what, unit) for what, (name, unit) in MEASURES.items() if name == metric)
            printed = [getattr(paper.FIELD[platform][one], what) for one in ("student", row)]
            (ours, finding), (true, _) = (_beside(student, other, f"{state}_{what}") for state in ("estimated", "true"))
            completed = all(one["arrived"] == one["trials"] for one in (student, other))
            claim = f"{name_of(platform)}, {metric}: Student {where}{CONNECTED[where]}{LABELS[row]}"
            word = "undecided" if finding == "undecided" or not completed else _word(finding == where)
            yield claim, _pair(printed[0], printed[1], unit), ours, true, word


def _beside(student: dict[str, Any], other: dict[str, Any], what: str) -> tuple[str, str]:
    """An error of the student beside that of another row, and where the student is."""
    own, its = (np.array(one[what]["each"]) for one in (student, other))
    low, high = median_interval((its - own).tolist())
    narrow = max(-low, high) <= CLEAR * np.median(own)
    finding = "ahead" if low > 0 else "behind" if high < 0 else "level" if narrow else "undecided"
    difference = f"{np.median(its - own):+.2f} ({low:+.2f} to {high:+.2f})"
    unit = "°" if what.endswith("deg") else " cm"
    return f"{_pair(float(np.median(own)), float(np.median(its)), unit)}: {difference}, {finding}", finding


def _pair(own: float, its: float, unit: str) -> str:
    """Two errors, and by how much the first is below the second."""
    return f"{own:.1f}, {its:.1f}{unit} ({100 * (own / its - 1):+.0f} %)"


def _by_start(
    claim: str, theirs: str, starts: Starts, needs: tuple[str, ...], judge: Callable[[Entries], Judged]
) -> Iterator[tuple[str, ...]]:
    """The row of a claim, judged for each start of the lap that has the rows that it needs."""
    judged = {start: judge(found) for start, found in starts.items() if all(row in found for row in needs)}
    if not judged:
        return
    words = {start: judged[start][1] if start in judged else "not run" for start in starts}
    same = set(words.values())
    word = same.pop() if len(same) == 1 else "; ".join(f"{start}: {word}" for start, word in words.items())
    yield claim, theirs, *(judged[start][0] if start in judged else "" for start in starts), word


def _word(holds: bool) -> str:
    return "yes" if holds else "no"


def _printed(row: str, what: str) -> Mean:
    """The paper's figure of a learned method over its ten seeds; its MPC's has no deviation."""
    printed = published(paper.IDEAL[row], what)
    assert printed is not None
    return Mean(printed.mean, (printed.std or 0.0) / math.sqrt(paper.SEEDS))


def _mean(found: Entries, row: str, what: str = "position_cm") -> Mean:
    values = by_seed(found[row], what)
    ours = spread(values)
    return Mean(ours.mean, (ours.std or 0.0) / math.sqrt(len(values)))


def _sorted(found: Entries) -> list[str]:
    """The learned methods, the best position first."""
    return sorted((row for row in LEARNED if row in found), key=lambda row: _mean(found, row).mean)


def _ahead(found: Entries, one: str, other: str) -> bool:
    """Whether the position error of a row is smaller than that of another beyond chance."""
    ours, theirs = _mean(found, one), _mean(found, other)
    return ours.mean < theirs.mean and ours.apart(theirs) > 0
