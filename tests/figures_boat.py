"""The rows of docs/identify.md, docs/twin.md, docs/lab.md, docs/logs.md and docs/ros2.md, from their records."""

from collections.abc import Iterator
from typing import Any

from figures import Key, Row, benchmark, row


def calibration() -> Iterator[Row]:
    whole, under_way = (benchmark("identify")["field"][part] for part in ("whole record", "under way"))

    def within(one: dict[str, Any]) -> str:
        return ", ".join(f"{100 * share:.0f}" for share in one["within_sd"])

    for name in ("alpha_u", "alpha_v", "alpha_r", "inv_tau_u", "inv_tau_v", "inv_tau_r", "c_rv", "c_uv"):
        one, before = whole[name], under_way[name]
        yield row(
            f"`{name}`",
            f"{100 * one['excited']:.0f}",
            f"{100 * one['within_10_percent_where_excited']:.0f}",
            within(one),
            f"{100 * before['within_10_percent_where_excited']:.0f}",
            within(before),
        )


def next_voyage() -> Iterator[Row]:
    voyages = benchmark("identify")["next"]
    for boat, heavier in (("same", ""), ("30 % heavier", ", 30 % heavier")):
        for label, start in (
            ("without", "without"),
            ("from `--save-boat`", "under way"),
            ("from `anyhull identify`", "whole record"),
        ):
            errors = voyages[boat][start]["mean"]
            yield row(label + heavier, f"{errors['first_2_s_cm']:.2f}", f"{errors['first_10_s_cm']:.2f}")


def budget() -> Iterator[Row]:
    for label, name in (
        ("–", "all"),
        ("antenna's error", "antenna exact"),
        ("slow error of fixes", "no slow error of fixes"),
        ("slow error of headings", "no slow error of headings"),
        ("sway of the mast", "no sway of the mast"),
        ("antenna's error, slow error of fixes", "antenna exact, no slow error of fixes"),
        ("any error of the acceleration, which the filter knows", "exact acceleration"),
    ):
        one = benchmark("estimate")["budget"][f"platform-b, {name}"]
        yield row(label, f"{one['true_position_cm']:.2f}", f"{one['estimate_error_cm']:.2f}")


def antenna() -> Iterator[Row]:
    for case in ("field, lap only", "field, after a turn", "adaptive, after a turn"):
        controller, course = case.split(", ")
        for platform in ("a", "b"):
            one = benchmark("estimate")["trials"][f"platform-{platform}, {case}"]
            before, after = one["before"], one["after"]
            fields = (
                "true_position_cm",
                "true_position_cm_median",
                "estimate_error_cm",
                "antenna_error_cm",
                "nees_per_number",
            )
            errors = (f"{before[field]:.2f} → {after[field]:.2f}" for field in fields)
            yield row(f"{platform.upper()}, `{controller}`, {course}", *errors)


def model() -> Iterator[Row]:
    found = benchmark("estimate")["model"]
    names = [name.split(", ")[1] for name in found if name.startswith("platform-a")]
    for name in names:
        both = [found[f"platform-{platform}, {name}"] for platform in ("a", "b")]
        errors = (
            ", ".join(f"{one[f'true_position_cm{what}']:.1f}" for what in ("", "_median", "_worst")) for one in both
        )
        rest = (
            ", ".join(f"{one[what]:.{n}f}" for one in both)
            for what, n in (("estimate_error_cm", 1), ("nees_per_number", 2))
        )
        yield row(name, *errors, *rest)


def lab() -> Iterator[Row]:
    found = benchmark("lab")["largest_difference_m"]
    boats = f"{found['boats']} random boats of 0.6 to 10 m with seas and delays"
    yield row(f"student, {boats}", f"{power(found['student'])} m")
    yield row("PID, the same", f"{power(found['pid'])} m")
    tunings = f"{power(found['mpc-tight'])} m, {power(found['mpc-field'])} m"
    yield row("MPC `tight` and `field`, five platforms", tunings)


def power(number: float) -> str:
    """One digit and a power of ten."""
    return f"{number:.0e}".replace("e-0", "e-")


def sizes() -> Iterator[Row]:
    formats = benchmark("log_sizes")["formats"]
    yield row("journal, during the run", f"{formats['journal']['mb_an_hour']:.1f}", "")
    for label, name, digits in (
        ("`.npz`", "npz", 1),
        ("`.csv`", "csv", 1),
        ("`.mcap`", "mcap", 0),
        ("ROS 2 bag, not compressed", "bag", 0),
    ):
        one = formats[name]
        yield row(label, f"{one['mb_an_hour']:.1f}", f"{one['seconds_an_hour']:.{digits}f}")


def ros2() -> Iterator[Row]:
    links = benchmark("links-ros2")
    state, command = links["state_age_ms"], links["command_age_ms"]
    yield row(
        "state, from its stamp to the loop",
        f"{state['p50']:.2f}",
        f"{state['p99']:.2f}",
        f"{state['max']:.0f}",
    )
    yield row(
        "command, from its stamp to the boat's callback",
        f"{command['p50']:.2f}",
        f"{command['p99']:.2f}",
        f"{command['max']:.1f}",
    )


BOAT = {
    Key("docs/identify.md", "Calibration", "component"): calibration,
    Key("docs/identify.md", "Calibration", "position error, cm"): next_voyage,
    Key("docs/twin.md", "Without an accelerometer", "model of the boat"): model,
    Key("docs/twin.md", "The antenna's place", "without"): budget,
    Key("docs/twin.md", "The antenna's place", "mean of six trials in cm, before → after"): antenna,
    Key("docs/lab.md", "What equals the package, and how that is tested", "part"): lab,
    Key("docs/logs.md", "Sizes", "format"): sizes,
    Key("docs/ros2.md", "Measured", "age, ms"): ros2,
}
