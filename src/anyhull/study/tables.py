"""Tables from result files: ours beside the paper's, and its claims."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from anyhull import paper
from anyhull.study.budgets import budgets
from anyhull.study.claims import claims
from anyhull.study.convergence import BAND, scale_step, summary
from anyhull.study.entries import Table, name_of, spread, text, warnings
from anyhull.study.field_tables import field
from anyhull.study.ideal_tables import ideal
from anyhull.study.results import Result

RECIPES = {
    "latent-ppo": "PPO, the paper's recipe",
    "latent-raw": "PPO, e unscaled",
    "latent-linear": "PPO, boats uniform in e",
    "latent-raw-linear": "PPO, e unscaled, boats uniform in e",
    "latent-apg": "APG, ours",
}
"""The students that a job of the latent study analyses."""

READ_OUT = ("latent-ppo", "latent-apg")
"""Of these, those whose latents are read out and followed in time."""

READOUT = {"from_latent": "z", "from_estimate": "ẑ"}
"""What e is read out of."""


def of(results: dict[str, Result]) -> list[Table]:
    """All tables that the results allow."""
    made = claims(results)
    for study, build in BUILDERS.items():
        if own := {name: result for name, result in results.items() if result.study == study}:
            made += build(own)
    return made + budgets(results)


def latent(results: dict[str, Result]) -> list[Table]:
    """Principal components, readout and error in time, of the students of each recipe."""
    seeds = {RECIPES[name]: result.data["seeds"] for name, result in results.items()}
    some = next(iter(results.values())).data
    theirs = paper.VARIANCE_SHARES
    shares = [("the paper", *(f"{share:.1f}" for share in (*theirs, sum(theirs))), "", "", "")]
    for recipe, several in seeds.items():
        parts = 100 * np.array([seed["shares"] for seed in several])
        first, second, both = (spread(list(x)).text(1) for x in (parts[:, 0], parts[:, 1], parts[:, :2].sum(axis=1)))
        enough = [int(np.argmax(np.cumsum(one) >= 99)) + 1 for one in parts]
        uniform, told = ([100 * sum(one[key][:2]) for one in several] for key in ("uniform_shares", "told_shares"))
        others = text(spread(uniform), 1), f"{np.mean(enough):.1f}", f"{told[0]:.1f}"
        shares.append((recipe, first, second, both, *others))
    columns = (
        "",
        "PC1, %",
        "PC2, %",
        "both, %",
        "both, boats uniform in e, %",
        "components for 99 %",
        "both, of e, %",
    )
    note = (
        f"Shares of the variance of z over {some['boats']} boats of the training distribution, and for the sum of both "
        "also over boats drawn uniformly in their components; mean ± deviation over seeds. Last the sum of both for e "
        "itself as the encoder is given it, on a logarithmic scale unless unscaled."
    )
    made = [Table("latent", "Principal components of the latent", columns, tuple(shares), (note, *warnings(results)))]

    seeds = {RECIPES[name]: results[name].data["seeds"] for name in READ_OUT if name in results}
    if not seeds:
        return made
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
        (
            "settling time of ẑ₀ about the encoder's new z₀, s (median, range)",
            found.adapted,
            f"about {paper.ADAPTATION_TIME}",
        ),
        ("the same, drops on the lap's straights (median, quartiles)", found.adapted_straight, ""),
        ("the same, drops in its corners (median, quartiles)", found.adapted_corner, ""),
        ("settling time of ẑ₀ about its own last second, s (median, range)", found.settled, ""),
        ("first time of ẑ₀ in that band, s (median, range)", found.reached, ""),
        (f"fraction of the encoder's step that ẑ₀ covers after {paper.ADAPTATION_TIME} s, %", found.covered_then, ""),
        ("the same at the end, %", f"{100 * found.covered:.0f}", ""),
    )
    notes = (
        f"{name_of(data['vessel'])} with all inertia and damping multiplied by s and fixed actuator limits; one latent "
        f"number. On the rectangle s drops from {before:.1f} to {after:.1f} at {when:g} s, and in other runs at every "
        f"whole second of the lap from 4 to 35. Settling band: ± {100 * BAND:.0f} % of the whole change.",
        *warnings(results),
    )
    return [Table("sweep", "One vessel scaled (appendix)", ("", "ours", "the paper"), rows, notes)]


BUILDERS: dict[str, Callable[[dict[str, Result]], list[Table]]] = {
    "ideal": ideal,
    "latent": latent,
    "sweep": sweep,
    "field": field,
}
