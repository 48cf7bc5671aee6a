"""The figures of README.md, its table and the phrases of its text, and of the paper's recipe beside earlier ones."""

from collections.abc import Iterator
from statistics import fmean, stdev
from typing import Any

from figures import Key, Row, benchmark, mean, record, rounded, row, stated
from figures_control import of_boats

from anyhull.paper import IDEAL

PLAIN = (
    "Python 3.11",
    "10 × 6 m, 2 m corners, 0.6 m/s",
    "waves of 10 % of the actuator limits",
    "current up to 0.2 m/s",
    "delay of 0 to 200 ms",
    "ROS 2",
    "at 10 Hz",
)
"""What is no measurement: versions, names and settings."""

STATED = ("5.5 minutes on two CPU cores", "72 to 81 s on one NVIDIA H200 (version 0.1.0)")
"""Times of whole commands with version 0.1.0, of which no record is stored."""


def readme() -> Iterator[str]:
    """The phrases of the text that have a measured number; each must be there as it is."""
    vessels = benchmark("catalogue")["vessels"].values()
    ratios = [
        boat["policy_field"]["mean_cm"] / boat["mpc_field"]["mean_cm"]
        for boat in vessels
        if boat["class"] == "without sway"
    ]
    yield f"{min(ratios):.1f} to {max(ratios):.0f} times the error of the MPC that knows the boat"
    field = benchmark("students")["field"]
    mpc, policy = (field[name]["platform-a"]["position_cm"] for name in ("mpc field", "student field"))
    yield f"{mpc:.1f} cm against {policy:.1f}"


def results() -> Iterator[Row]:
    students, adaptive = benchmark("students")["field"], benchmark("adaptive")["field"]["adaptive"]
    for label, job, name, digits, sea in (
        ("MPC with a perfect model, tuned for each sea", "classic", "mpc-tight", (4, 3), students["mpc field"]),
        ("[Adaptive](docs/adaptive.md), zero-shot: identifies, then plans", "classic", "adaptive", (3, 3), adaptive),
        ("Student, zero-shot (`ideal`, `field`)", "apg", "our-student", (2, 2), students["student field"]),
        (
            f"Student by the paper's recipe {of_paper('student')}",
            "student",
            "student",
            (2, 1),
            students["student by ppo"],
        ),
        (
            f"PPO without adaptation {of_paper('ppo-general')}",
            "ppo-general",
            "ppo-general",
            (2, 1),
            students["ppo-general"],
        ),
    ):
        position, heading = digits
        yield row(
            label,
            f"{ideal(job, name, 'position_cm', position)} cm, {ideal(job, name, 'heading_deg', heading)}°",
            f"{rest(job, name, 'position_cm', 2)} cm, {rest(job, name, 'heading_deg', heading)}°",
            at_sea(sea),
        )


def of_paper(name: str) -> str:
    """The errors that the paper prints."""
    printed = IDEAL[name]
    return f"(the paper: {printed.position_cm:.2f} cm, {printed.heading_deg:.2f}°)"


def ideal(job: str, name: str, what: str, digits: int) -> str:
    """A metric in ideal conditions, from the reference's state."""
    seeds = record(f"results/ideal-{job}.json")["data"]["rows"][name]
    return spread([mean(of_boats(seed["platforms"]), what) for seed in seeds], what, digits)


def rest(job: str, name: str, what: str, digits: int) -> str:
    """A metric in ideal conditions, from rest."""
    seeds = record(f"results/ideal-{job}.json")["data"]["rows"][name]
    return spread([mean(of_boats(seed["rest"]["platforms"]), what) for seed in seeds], what, digits)


def spread(seeds: list[float], what: str, digits: int) -> str:
    """The mean over training seeds; of a position also ± the sample standard deviation over several."""
    deviation = f" ± {stdev(seeds):.{digits}f}" if what == "position_cm" and len(seeds) > 1 else ""
    return f"{fmean(seeds):.{digits}f}{deviation}"


def at_sea(boats: dict[str, Any]) -> str:
    """Both errors in the field sea, mean of the platforms; where a few runs make the mean, with the median of all."""
    position, heading = (mean(of_boats(boats), what) for what in ("position_cm", "heading_deg"))
    median = f" (median {rounded(boats['quartiles_cm'][1], 1)})" if position > 10 else ""
    return f"{rounded(position)} cm{median}, {rounded(heading)}°"


def ten_seeds() -> Iterator[Row]:
    """Teacher and student of the paper's recipe, in three states of the study; the last has records."""
    yield stated("first ten", "0.17 ± 0.03 cm, 1.75 ± 0.27°", "0.32 ± 0.06 cm, 1.66 ± 0.39°", "2.8 and 3.0°")
    label = "again, the results of version 0.2"
    yield stated(label, "0.20 ± 0.04 cm, 1.72 ± 0.23°", "0.29 ± 0.06 cm, 1.63 ± 0.19°", "3.2 and 3.4°")
    seeds = record("results/ideal-student.json")["data"]["rows"]
    errors, third = [], []
    for name in ("teacher", "student"):
        heading = [mean(of_boats(seed["platforms"]), "heading_deg") for seed in seeds[name]]
        position = ideal("student", name, "position_cm", 2)
        errors.append(f"{position} cm, {fmean(heading):.2f} ± {stdev(heading):.2f}°")
        third.append(f"{fmean(seed['platforms']['roboat-3']['heading_deg'] for seed in seeds[name]):.1f}")
    label = "both phases within 6 × 10⁷ steps, the present results"
    yield row(label, *errors, f"{third[0]} and {third[1]}°")


STUDY = {
    Key("README.md", "Results", "ideal conditions"): results,
    Key("docs/notes/training.md", "Scaling of the adapter's history", "ten seeds"): ten_seeds,
}
