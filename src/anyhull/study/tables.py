"""Tables from result files: ours, and the paper's beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from anyhull.study import published
from anyhull.study.curves import summary
from anyhull.study.driven import FIELD_PLATFORMS
from anyhull.study.published import Printed
from anyhull.study.results import Result
from anyhull.vessel import PLATFORMS, Vessel

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
    "our-student": "Student, first-order (ours)",
    "our-adapter": "the same before joint training",
    "our-teacher": "Teacher†, first-order (ours)",
}
"""Rows by name, in the order of the tables."""

KNOWING = "* made or trained for the one boat that it steers.  † told the boat's dynamics."
FEW = "These are tiny sizes to try the pipeline: the figures mean nothing."

Entries = dict[str, dict[str, list[dict[str, float]]]]
"""For each row and platform the metrics, one of each seed."""


@dataclass(frozen=True)
class Spread:
    """A number over seeds."""

    mean: float
    std: float | None
    """Sample standard deviation; None of a single number."""

    def text(self, digits: int = 2) -> str:
        """As in 0.84 ± 0.11; a single number too small for these digits keeps two of its own."""
        if self.std is not None:
            return f"{self.mean:.{digits}f} ± {self.std:.{digits}f}"
        return f"{self.mean:.2g}" if 0 < abs(self.mean) < 10 ** (1 - digits) else f"{self.mean:.{digits}f}"


@dataclass(frozen=True)
class Table:
    """A table as a person reads it, and its numbers as a program does."""

    study: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    numbers: tuple[dict[str, Any], ...] = ()

    def document(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def spread(values: Sequence[float]) -> Spread:
    """Mean and sample standard deviation."""
    return Spread(float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else None)


def gather(results: Iterable[Result], sea: bool = False) -> Entries:
    """The metrics of the rows that results hold, in still water or in the `sea` trained for."""
    found: Entries = {}
    for result in results:
        for row, seeds in result.data.get("rows", {}).items():
            for metrics in seeds:
                platforms = metrics.get("sea", {}).get("platforms", {}) if sea else metrics["platforms"]
                for platform, numbers in platforms.items():
                    found.setdefault(row, {}).setdefault(platform, []).append(numbers)
    return {row: found[row] for row in LABELS if row in found}


def over_platforms(platforms: dict[str, list[dict[str, float]]], what: str) -> Spread:
    """A metric averaged over platforms within each seed, then over seeds."""
    by_platform = [[numbers[what] for numbers in seeds] for seeds in platforms.values()]
    return spread([float(np.mean(seed)) for seed in zip(*by_platform, strict=True)])


def of(results: dict[str, Result]) -> list[Table]:
    """All tables of the results that there are."""
    makers: dict[str, Callable[[dict[str, Result]], list[Table]]] = {
        "ideal": ideal,
        "latent": latent,
        "sweep": sweep,
        "field": field,
    }
    made = []
    for study, maker in makers.items():
        own = {name: result for name, result in results.items() if result.study == study}
        if own:
            made += maker(own)
    return made


def ideal(results: dict[str, Result]) -> list[Table]:
    """The simulation table, the same for each platform, and what the paper concludes from it."""
    entries = gather(results.values())
    rows, numbers = [], []
    for row, platforms in entries.items():
        means = {what: over_platforms(platforms, what) for what in next(iter(platforms.values()))[0]}
        printed = published.IDEAL.get(row)
        short = len(platforms) < len(PLATFORMS)
        rows.append(
            (
                LABELS[row] + (f" ({len(platforms)} of {len(PLATFORMS)} platforms)" if short else ""),
                means["position_cm"].text(3),
                _position(printed),
                means["heading_deg"].text(3),
                _heading(printed),
                means["roughness"].text(4),
                f"{100 * means['saturation'].mean:.1f} %",
                str(len(next(iter(platforms.values())))),
            )
        )
        numbers.append({"row": row} | {what: asdict(value) for what, value in means.items()})
    columns = ("", "position, cm", "the paper's", "heading, °", "the paper's", "|Δτ̄|", "at a limit", "seeds")
    notes = (
        "One lap of the rectangle (10 × 6 m, 2 m corners, 0.6 m/s) in still water, from the reference state; mean over "
        "the five platforms within a seed, then mean ± sample standard deviation over seeds. |Δτ̄| is the mean change "
        "of the normalized command a period; at a limit, the share of commands at full power.",
        KNOWING,
        *_warnings(results),
    )
    made = [Table("ideal", "Still water, five platforms", columns, tuple(rows), notes, tuple(numbers))]
    for what, unit, digits in (("position_cm", "position, cm", 2), ("heading_deg", "heading, °", 2)):
        each = [
            (
                LABELS[row],
                *(spread([n[what] for n in platforms[p]]).text(digits) if p in platforms else "" for p in PLATFORMS),
            )
            for row, platforms in entries.items()
        ]
        names = tuple(Vessel.load(name).name for name in PLATFORMS)
        made.append(Table("ideal", f"Still water, each platform: {unit}", ("", *names), tuple(each)))
    return made + claims(entries)


def claims(entries: Entries) -> list[Table]:
    """The paper's comparisons, of its figures and of ours, where all that they compare is there."""
    rows = []
    for what, unit in (("position_cm", "position"), ("heading_deg", "heading")):
        for better, worse in (("student", "ppo-general"), ("student", "student-mean-latent"), ("student", "recurrent")):
            if better not in entries or worse not in entries:
                continue
            theirs = getattr(published.IDEAL[worse], what) / getattr(published.IDEAL[better], what)
            ours = over_platforms(entries[worse], what).mean / over_platforms(entries[better], what).mean
            rows.append((f"{LABELS[worse]} over {LABELS[better]}, {unit}", f"{theirs:.2f}", f"{ours:.2f}"))
    title = "How many times worse without adaptation"
    return [Table("ideal", title, ("", "the paper", "ours"), tuple(rows))] if rows else []


RECIPES = {"latent-ppo": "PPO, as the paper's", "latent-gradient": "first-order, ours"}


def latent(results: dict[str, Result]) -> list[Table]:
    """Principal components, readout and error in time, of each recipe's students."""
    seeds = {RECIPES[name]: result.data["seeds"] for name, result in results.items()}
    shares = [("the paper", *(f"{share:.1f}" for share in published.SHARES), f"{sum(published.SHARES):.1f}", "")]
    told = {"what the encoder is told": [{"shares": next(iter(seeds.values()))[0]["told_shares"]}]}
    for recipe, several in (told | seeds).items():
        parts = 100 * np.array([seed["shares"] for seed in several])
        first, second, both = (spread(list(x)).text(1) for x in (parts[:, 0], parts[:, 1], parts[:, :2].sum(axis=1)))
        enough = [int(np.argmax(np.cumsum(one) >= 99)) + 1 for one in parts]
        shares.append((recipe, first, second, both, f"{np.mean(enough):.1f}"))
    columns = ("", "PC1, %", "PC2, %", "both, %", "components for 99 %")
    some = next(iter(results.values())).data
    note = (
        f"Variance over {some['boats']} boats of the training distribution: of z, mean ± deviation over seeds, and of "
        "the logarithms of e that the encoder is told."
    )
    made = [Table("latent", "Principal components of the latent", columns, tuple(shares), (note, *_warnings(results)))]

    read = [
        (name, *(spread([seed[key][i] for seed in several]).text() for several in seeds.values() for key in READ))
        for i, name in enumerate(some["components"])
    ]
    heads = tuple(f"{what}, {recipe.split(',')[0]}" for recipe in seeds for what in READ.values())
    note = (
        "R² on held-out boats of ridge regression to the logarithm of each component (asinh for c_uv); ẑ after the "
        "whole run. c_ru is −1 / c_rv, so the two are one number. 0 is no better than the mean."
    )
    made.append(Table("latent", "What can be read out of the latent", ("component", *heads), tuple(read), (note,)))

    period, steps = some["period"], len(some["seeds"][0]["error_mean"])
    moments = [t for t in (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0) if round(t / period) <= steps]
    left = [
        (
            recipe,
            *(spread([100 * seed["error_mean"][round(t / period) - 1] for seed in several]).text(0) for t in moments),
        )
        for recipe, several in seeds.items()
    ]
    heads = tuple(f"{t:g} s" for t in moments)
    note = "Mean |ẑ − z|² in percent of the variance of z, under the student's own steering."
    made.append(Table("latent", "Error of the estimate against time since reset", ("", *heads), tuple(left), (note,)))
    return made


READ = {"from_latent": "z", "from_estimate": "ẑ"}


def sweep(results: dict[str, Result]) -> list[Table]:
    """Monotonicity and convergence over seeds."""
    data = next(iter(results.values())).data
    found = summary(data["seeds"])
    count = len(data["seeds"])
    rows = (
        ("z₀ of the encoder monotone in s", f"{found.encoder_monotone} of {count} seeds", "yes"),
        ("its largest step the wrong way, % of its range", f"{100 * found.encoder_worst:.2f}", ""),
        ("ẑ₀ of the adapter monotone in s", f"{found.adapter_monotone} of {count} seeds", "yes"),
        ("its largest step the wrong way, % of its range", f"{100 * found.adapter_worst:.2f}", ""),
        ("after the drop, ẑ₀ is there, s (median, range)", found.first, ""),
        ("after the drop, ẑ₀ stays there, s (median, range)", found.stays, f"about {published.CONVERGENCE}"),
        ("share of the encoder's step that ẑ₀ has made at the end, %", f"{100 * found.covered:.0f}", ""),
    )
    notes = (
        f"{Vessel.load(data['vessel']).name} with all inertia and damping times s, limits fixed; one latent number. "
        "s drops from 1.0 to 0.3 at 10 s on the rectangle. There: within a tenth of its whole change of where it is "
        "in the last second.",
        *_warnings(results),
    )
    return [Table("sweep", "One vessel scaled (appendix)", ("", "ours", "the paper"), rows, notes)]


def field(results: dict[str, Result]) -> list[Table]:
    """Platforms A and B in the field sea of the simulator, and in the sea-trial twin."""
    entries = gather(results.values(), sea=True)
    made = []
    rows = []
    for platform in FIELD_PLATFORMS:
        for row, platforms in entries.items():
            if platform not in platforms:
                continue
            seeds = platforms[platform]
            one = {what: spread([numbers[what] for numbers in seeds]) for what in seeds[0]}
            rows.append(
                (
                    Vessel.load(platform).name,
                    LABELS[row],
                    one["position_cm"].text(),
                    one["heading_deg"].text(),
                    one["roughness"].text(4),
                    f"{100 * one['saturation'].mean:.1f} %",
                    str(len(seeds)),
                )
            )
    if rows:
        columns = ("platform", "", "position, cm", "heading, °", "|Δτ̄|", "at a limit", "n")
        notes = (
            "Wind and waves of 10 %, current up to 0.2 m/s, delay up to 200 ms. Learned: mean ± deviation over n "
            "training seeds, each over 20 runs. MPC and PID: over n runs. The paper has no such table.",
            KNOWING,
            *_warnings(results),
        )
        made.append(Table("field", "The simulator's field sea", columns, tuple(rows), notes))
    return made + twin(results)


def trials(results: dict[str, Result]) -> dict[str, Any]:
    """What the twin's pieces found, by row and platform."""
    return {result.data["row"]: result.data["platforms"] for result in results.values() if "row" in result.data}


def twin(results: dict[str, Result]) -> list[Table]:
    """Trials of the twin beside the paper's trials."""
    every = trials(results)
    rows = []
    for platform in FIELD_PLATFORMS:
        for row in (name for name in LABELS if name in every):
            found = every[row][platform]
            position, heading = found["estimated_position_cm"], found["estimated_heading_deg"]
            printed = published.FIELD[platform].get(row)
            rows.append(
                (
                    Vessel.load(platform).name,
                    LABELS[row],
                    f"{position['mean']:.1f} ± {position['within']:.1f}",
                    _position(printed, 1),
                    f"{position['std']:.1f}",
                    f"{position['median']:.1f}",
                    f"{found['true_position_cm']['mean']:.1f}",
                    f"{heading['mean']:.1f} ± {heading['within']:.1f}",
                    _heading(printed, 1),
                    f"{found['roughness']:.3f}",
                    f"{100 * found['saturation']:.1f} %",
                    f"{found['arrived']}/{found['trials']}",
                )
            )
    if not rows:
        return []
    columns = (
        *("platform", "", "position, cm", "the paper's", "± trials", "median", "true"),
        *("heading, °", "the paper's", "|Δτ̄|", "at a limit", "arrived"),
    )
    notes = (
        "The loop as on the boat around a twin with sensors, thrusters, waves and errors that no controller is told "
        "of, lake sea; policies of seed 0. Errors of the estimated state, as the paper has them, mean ± deviation over "
        "time; then the deviation and the median over trials, and the mean error of the true position. The paper's are "
        "of real boats on the water.",
        KNOWING,
    )
    return [Table("field", "Sea trials: the twin, and the paper's boats", columns, tuple(rows), notes)]


def _position(printed: Printed | None, digits: int = 2) -> str:
    return Spread(printed.position_cm, printed.position_std_cm).text(digits) if printed else ""


def _heading(printed: Printed | None, digits: int = 2) -> str:
    return Spread(printed.heading_deg, printed.heading_std_deg).text(digits) if printed else ""


def _warnings(results: dict[str, Result]) -> tuple[str, ...]:
    return (FEW,) if any(result.quick for result in results.values()) else ()
