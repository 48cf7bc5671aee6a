"""Tables from result files: ours beside the paper's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from anyhull import paper
from anyhull.paper import FIELD_PLATFORMS, PLATFORMS, Printed
from anyhull.study.convergence import BAND, scale_step, summary
from anyhull.study.results import Result
from anyhull.vessel import Vessel
from anyhull.viz.captions import IDEAL_CONDITIONS, METRICS

LABELS = {
    "mpc-paper": "MPC*, paper tuning",
    "mpc-tight": "MPC*, tight tuning",
    "mpc-field": "MPC*, field tuning",
    "pid": "PID*",
    "ppo-specific": "PPO (specific)*",
    "student": "Student",
    "teacher": "Teacher†",
    "recurrent": "Recurrent",
    "ppo-general": "PPO (general)",
    "student-mean-latent": "Student avg. z",
    "our-student": "Student, APG (ours)",
    "our-adapter": "Student, APG (ours), before fine-tuning",
    "our-teacher": "Teacher†, APG (ours)",
}
"""Rows by name, in the order of the tables."""

RECIPES = {"latent-ppo": "PPO, the paper's recipe", "latent-apg": "APG, ours"}
"""Recipe of the students that a job of the latent study analyses."""

READOUT = {"from_latent": "z", "from_estimate": "ẑ"}
"""What e is read out of."""

PRIOR_KNOWLEDGE = "* has a perfect model of its vessel, or was trained for that vessel alone.  † is given the true e."
QUICK = "Tiny sizes, to test the pipeline: these figures mean nothing."

POSITION, HEADING, DELTA_TAU, SATURATED = METRICS.values()

Entries = dict[str, dict[str, list[dict[str, float]]]]
"""For each row and platform the metrics of each seed."""


@dataclass(frozen=True)
class Spread:
    """A number over seeds."""

    mean: float
    std: float | None
    """Sample standard deviation; None of a single number."""

    def text(self, digits: int = 2) -> str:
        """As in 0.84 ± 0.11; a single number too small for these digits is given with two significant ones."""
        if self.std is not None:
            return f"{self.mean:.{digits}f} ± {self.std:.{digits}f}"
        return f"{self.mean:.2g}" if 0 < abs(self.mean) < 10 ** (1 - digits) else f"{self.mean:.{digits}f}"


@dataclass(frozen=True)
class Table:
    """A table as text, and its numbers."""

    study: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    numbers: tuple[dict[str, Any], ...] = ()


def spread(values: Sequence[float]) -> Spread:
    """Mean and sample standard deviation."""
    return Spread(float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else None)


def gather(results: Iterable[Result], sea: bool = False) -> Entries:
    """The metrics of the rows of these results, in ideal conditions or in the `sea` trained for."""
    found: Entries = {}
    for result in results:
        for row, seeds in result.data.get("rows", {}).items():
            for metrics in seeds:
                platforms = metrics.get("sea", {}).get("platforms", {}) if sea else metrics["platforms"]
                for platform, numbers in platforms.items():
                    found.setdefault(row, {}).setdefault(platform, []).append(numbers)
    return {row: found[row] for row in LABELS if row in found}


def by_seed(platforms: dict[str, list[dict[str, float]]], what: str) -> list[float]:
    """A metric of each seed, averaged over platforms."""
    by_platform = [[numbers[what] for numbers in seeds] for seeds in platforms.values()]
    return [float(np.mean(seed)) for seed in zip(*by_platform, strict=True)]


def published(row: Printed | None, what: str) -> Spread | None:
    """The paper's figure for a metric, where it has that row."""
    return Spread(getattr(row, what), getattr(row, what.replace("_", "_std_"))) if row else None


def trials(results: dict[str, Result]) -> dict[str, dict[str, Any]]:
    """Reports of the trials in the twin by row, in the order of the tables, and platform."""
    found = {result.data["row"]: result.data["platforms"] for result in results.values() if "row" in result.data}
    return {row: found[row] for row in LABELS if row in found}


def name_of(platform: str) -> str:
    """The name of a platform for people."""
    return Vessel.load(platform).name


def of(results: dict[str, Result]) -> list[Table]:
    """All tables that the results allow."""
    made = []
    for study, build in BUILDERS.items():
        if own := {name: result for name, result in results.items() if result.study == study}:
            made += build(own)
    return made


def ideal(results: dict[str, Result]) -> list[Table]:
    """The simulation table, the same for each platform, and the paper's comparisons."""
    entries = gather(results.values())
    rows, numbers = [], []
    for row, platforms in entries.items():
        seeds = next(iter(platforms.values()))
        means = {what: spread(by_seed(platforms, what)) for what in seeds[0]}
        position, heading, *command = _metrics(means, 3)
        partial = f" ({len(platforms)} of {len(PLATFORMS)} platforms)" * (len(platforms) < len(PLATFORMS))
        printed = (_text(published(paper.IDEAL.get(row), what)) for what in ("position_cm", "heading_deg"))
        both = zip((position, heading), printed, strict=True)
        rows.append((LABELS[row] + partial, *(cell for pair in both for cell in pair), *command, str(len(seeds))))
        numbers.append({"row": row} | {what: asdict(value) for what, value in means.items()})
    columns = ("", POSITION, "the paper's", HEADING, "the paper's", DELTA_TAU, SATURATED, "seeds")
    notes = (
        f"One lap of the rectangle (10 × 6 m, 2 m corners, 0.6 m/s) in {IDEAL_CONDITIONS}, from the reference state. "
        "Mean over the five platforms within a seed, then mean ± sample standard deviation over seeds. "
        f"'{DELTA_TAU}' is the change of the normalized command from one control period to the next, '{SATURATED}' the "
        "fraction of commands at an actuator limit.",
        PRIOR_KNOWLEDGE,
        *_warnings(results),
    )
    made = [Table("ideal", "Ideal conditions, five platforms", columns, tuple(rows), notes, tuple(numbers))]
    for what in ("position_cm", "heading_deg"):
        each = tuple(
            (LABELS[row], *(spread([n[what] for n in found[p]]).text() if p in found else "" for p in PLATFORMS))
            for row, found in entries.items()
        )
        title = f"Ideal conditions, each platform: {METRICS[what]}"
        made.append(Table("ideal", title, ("", *map(name_of, PLATFORMS)), each))
    return made + comparisons(entries)


def comparisons(entries: Entries) -> list[Table]:
    """The paper's ratios of errors, by its figures and by ours, where both methods have results."""
    rows = []
    for what in ("position_cm", "heading_deg"):
        for baseline in ("ppo-general", "student-mean-latent", "recurrent"):
            if "student" in entries and baseline in entries:
                theirs = getattr(paper.IDEAL[baseline], what) / getattr(paper.IDEAL["student"], what)
                ours = spread(by_seed(entries[baseline], what)).mean / spread(by_seed(entries["student"], what)).mean
                metric = what.split("_")[0]
                rows.append((f"{LABELS[baseline]} over {LABELS['student']}, {metric}", f"{theirs:.2f}", f"{ours:.2f}"))
    title = "Ratio of errors: baseline over student"
    return [Table("ideal", title, ("", "the paper", "ours"), tuple(rows))] if rows else []


def latent(results: dict[str, Result]) -> list[Table]:
    """Principal components, readout and error in time, of the students of each recipe."""
    seeds = {RECIPES[name]: result.data["seeds"] for name, result in results.items()}
    some = next(iter(results.values())).data
    theirs = paper.VARIANCE_SHARES
    shares = [("the paper", *(f"{share:.1f}" for share in (*theirs, sum(theirs))), "")]
    inputs = {"input of the encoder": [{"shares": some["seeds"][0]["told_shares"]}]}
    for recipe, several in (inputs | seeds).items():
        parts = 100 * np.array([seed["shares"] for seed in several])
        first, second, both = (spread(list(x)).text(1) for x in (parts[:, 0], parts[:, 1], parts[:, :2].sum(axis=1)))
        enough = [int(np.argmax(np.cumsum(one) >= 99)) + 1 for one in parts]
        shares.append((recipe, first, second, both, f"{np.mean(enough):.1f}"))
    columns = ("", "PC1, %", "PC2, %", "both, %", "components for 99 %")
    note = (
        f"Shares of the variance of z over {some['boats']} boats of the training distribution, mean ± deviation over "
        "seeds. The input of the encoder is e on a logarithmic scale."
    )
    made = [Table("latent", "Principal components of the latent", columns, tuple(shares), (note, *_warnings(results)))]

    rows = tuple(
        (name, *(spread([seed[key][i] for seed in several]).text() for several in seeds.values() for key in READOUT))
        for i, name in enumerate(some["components"])
    )
    heads = tuple(f"{source}, {recipe.split(',')[0]}" for recipe in seeds for source in READOUT.values())
    note = (
        "R² on held-out boats of a ridge regression to the logarithm of each component (asinh for c_uv); ẑ is taken at "
        "the end of the run. R² = 0 is the error of predicting the mean. c_ru = −1 / c_rv, so their rows are equal."
    )
    made.append(Table("latent", "Readout of e from the latent", ("component", *heads), rows, (note,)))

    period, steps = some["period"], len(some["seeds"][0]["error_mean"])
    times = [t for t in (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0) if round(t / period) <= steps]
    rows = tuple(
        (name, *(spread([100 * seed["error_mean"][round(t / period) - 1] for seed in several]).text(0) for t in times))
        for name, several in seeds.items()
    )
    heads = tuple(f"{t:g} s" for t in times)
    note = "Mean |ẑ − z|² in percent of the variance of z, in closed loop under the student."
    made.append(Table("latent", "Error of the estimate against time since reset", ("", *heads), rows, (note,)))
    return made


def sweep(results: dict[str, Result]) -> list[Table]:
    """Monotonicity and settling time over seeds."""
    data = next(iter(results.values())).data
    found, seeds = summary(data["seeds"]), len(data["seeds"])
    when, before, after = scale_step(data["seeds"][0]["drop"])
    reversal = "largest step against the trend, % of the range"
    rows = (
        ("z₀ of the encoder monotone in s", f"{found.encoder_monotone} of {seeds} seeds", "yes"),
        (reversal, f"{100 * found.encoder_reversal:.2f}", ""),
        ("ẑ₀ of the adapter monotone in s", f"{found.adapter_monotone} of {seeds} seeds", "yes"),
        (reversal, f"{100 * found.adapter_reversal:.2f}", ""),
        ("first time of ẑ₀ in its settling band, s (median, range)", found.reached, ""),
        ("settling time of ẑ₀, s (median, range)", found.settled, f"about {paper.ADAPTATION_TIME}"),
        ("fraction of the encoder's step that ẑ₀ covers at the end, %", f"{100 * found.covered:.0f}", ""),
    )
    notes = (
        f"{name_of(data['vessel'])} with all inertia and damping multiplied by s and fixed actuator limits; one latent "
        f"number. On the rectangle s drops from {before:.1f} to {after:.1f} at {when:g} s. Settling band: "
        f"± {100 * BAND:.0f} % of the whole change about the mean over the last second.",
        *_warnings(results),
    )
    return [Table("sweep", "One vessel scaled (appendix)", ("", "ours", "the paper"), rows, notes)]


def field(results: dict[str, Result]) -> list[Table]:
    """Platforms A and B in the simulated field sea, and in the sea-trial twin."""
    entries = gather(results.values(), sea=True)
    rows = []
    for platform in FIELD_PLATFORMS:
        for row, platforms in entries.items():
            if seeds := platforms.get(platform):
                means = {what: spread([numbers[what] for numbers in seeds]) for what in seeds[0]}
                rows.append((name_of(platform), LABELS[row], *_metrics(means, 2), str(len(seeds))))
    if not rows:
        return twin(results)
    columns = ("platform", "", POSITION, HEADING, DELTA_TAU, SATURATED, "n")
    notes = (
        "Wind and waves up to 10 % of the actuator limits, current up to 0.2 m/s, delay up to 200 ms. Learned methods: "
        "mean ± deviation over n training seeds, 20 runs each. MPC and PID: over n runs. The paper has no such table.",
        PRIOR_KNOWLEDGE,
        *_warnings(results),
    )
    return [Table("field", "Field sea, simulated", columns, tuple(rows), notes), *twin(results)]


def twin(results: dict[str, Result]) -> list[Table]:
    """Trials in the twin beside the paper's trials."""
    rows = []
    for platform in FIELD_PLATFORMS:
        for row, platforms in trials(results).items():
            found, printed = platforms[platform], paper.FIELD[platform].get(row)
            position, heading = found["estimated_position_cm"], found["estimated_heading_deg"]
            rows.append(
                (
                    name_of(platform),
                    LABELS[row],
                    Spread(position["mean"], position["within"]).text(1),
                    _text(published(printed, "position_cm"), 1),
                    f"{position['std']:.1f}",
                    f"{position['median']:.1f}",
                    f"{found['true_position_cm']['mean']:.1f}",
                    Spread(heading["mean"], heading["within"]).text(1),
                    _text(published(printed, "heading_deg"), 1),
                    f"{found['delta_tau']:.3f}",
                    f"{100 * found['saturation']:.1f} %",
                    f"{found['arrived']}/{found['trials']}",
                )
            )
    columns = (
        *("platform", "", POSITION, "the paper's", "± trials", "median", "true"),
        *(HEADING, "the paper's", DELTA_TAU, SATURATED, "completed"),
    )
    notes = (
        "The onboard loop in closed loop with a twin in the lake sea. The twin has sensors, thrusters, waves and "
        "parameter errors that no controller is given; policies of seed 0. Errors of the estimated state, as in the "
        "paper: mean ± deviation over time, deviation and median over trials, and the mean error of the true position. "
        "The paper's figures are of real boats.",
        PRIOR_KNOWLEDGE,
    )
    title = "Sea trials: the twin beside the paper's boats"
    return [Table("field", title, columns, tuple(rows), notes)] if rows else []


BUILDERS: dict[str, Callable[[dict[str, Result]], list[Table]]] = {
    "ideal": ideal,
    "latent": latent,
    "sweep": sweep,
    "field": field,
}


def _metrics(means: dict[str, Spread], digits: int) -> tuple[str, str, str, str]:
    """Cells of the four metrics."""
    position, heading = (means[what].text(digits) for what in ("position_cm", "heading_deg"))
    return position, heading, means["delta_tau"].text(4), f"{100 * means['saturation'].mean:.1f} %"


def _text(number: Spread | None, digits: int = 2) -> str:
    return number.text(digits) if number else ""


def _warnings(results: dict[str, Result]) -> tuple[str, ...]:
    return (QUICK,) if any(result.quick for result in results.values()) else ()
