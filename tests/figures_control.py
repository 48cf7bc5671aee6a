"""The rows of docs/adaptive.md, docs/notes/policies.md and docs/differences.md, from their records."""

from collections.abc import Iterator

from figures import Key, Row, benchmark, mean, record, rounded, row

BOATS = ("platform-a", "platform-b", "roboat-1", "roboat-2", "roboat-3")
LOST = 500
"""A mean error in cm from which on a cell says `lost`: the distance at which an episode of training ends."""


def lap() -> Iterator[Row]:
    adaptive, students = benchmark("adaptive"), benchmark("students")["field"]
    still = adaptive["still"]
    at_sea = {boat: adaptive["field"]["adaptive"][boat] for boat in BOATS}
    for label, calm, digits, sea in (
        ("Adaptive, zero-shot", still["adaptive"], 3, at_sea),
        ("Student, zero-shot (`ideal`, `field`)", still["student ideal"], 3, of_boats(students["student field"])),
        ("MPC with a perfect model (`tight`, `field`)", still["mpc tight"], 4, of_boats(students["mpc field"])),
    ):
        position, heading, step = (mean(calm, what) for what in ("position_cm", "heading_deg", "delta_tau"))
        wet, turned, rough = (mean(sea, what) for what in ("position_cm", "heading_deg", "delta_tau"))
        yield row(
            label,
            f"{position:.{digits}f} cm, {heading:.3f}°, {step:.3f}",
            f"{wet:.2f} cm, {turned:.2f}°, {rough:.3f}",
        )


def of_boats(part: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    """Without the means that some records hold beside the boats."""
    return {boat: part[boat] for boat in BOATS}


def plants() -> Iterator[Row]:
    judged = benchmark("adaptive")["plants"]
    for lag in ("0.05", "0.1", "0.2", "0.3"):
        for noise in ("none", "white", "correlated"):
            runs = (judged[name][lag][noise] for name in ("adaptive", "student field", "mpc field"))
            errors = (f"{rounded(run['position_cm'])}, {rounded(run['heading_deg'])}" for run in runs)
            yield row(f"{1000 * float(lag):.0f} ms, {noise}", *errors)


def twin() -> Iterator[Row]:
    for label, job in (
        ("Adaptive", "adaptive"),
        ("Student `field`", "our-student"),
        ("MPC `field`, the file's model", "mpc-field"),
    ):
        boats = record(f"results/field-twin-{job}.json")["data"]["platforms"]
        pair = boats["platform-a"], boats["platform-b"]
        errors = [boat[f"{what}_position_cm"] for boat in pair for what in ("estimated", "true")]
        yield row(
            label,
            *(f"{one['mean']:.1f}, {one['median']:.1f}, {rounded(max(one['each']), 1)}" for one in errors),
            ", ".join(f"{boat['estimated_heading_deg']['mean']:.2f}°" for boat in pair),
            ", ".join(f"{boat['delta_tau']:.3f}" for boat in pair),
        )


def changes() -> Iterator[Row]:
    measured = benchmark("adaptive")["change"]
    adaptive, student = measured["adaptive"], measured["student field"]

    def largest(part: dict[str, dict[str, dict[str, float]]], change: str) -> list[float]:
        return sorted(part[boat][change]["largest_cm"] for boat in BOATS)

    def listed(change: str) -> list[str]:
        return [", ".join(f"{error:.1f}" for error in largest(part, change)) for part in (adaptive, student)]

    yield row("mass × 3", *listed("mass x 3"))
    yield row("40 % of surge lost", *listed("40 % of surge lost"))
    ours, theirs = (
        [error for axis in ("sway", "yaw") for error in largest(part, f"40 % of {axis} lost")]
        for part in (adaptive, student)
    )
    yield row("40 % of sway or yaw lost", f"{max(ours):.1f} or less", f"{min(theirs):.1f} to {max(theirs):.1f}")
    yield row("damping × 0.3", *listed("damping x 0.3"))


def vessels() -> Iterator[Row]:
    judged = benchmark("adaptive")["vessels"]

    def at_sea(run: dict[str, float]) -> str:
        errors = run["position_cm"], run["worst_cm"]
        return ", ".join("lost" if error > LOST else rounded(error) for error in errors)

    for name in judged["adaptive"]:
        ours, student = judged["adaptive"][name], judged["student"][name]
        still = (rounded(run["ideal"]["position_cm"]) for run in (ours, student))
        yield row(name, *still, at_sea(ours["field"]), at_sea(student["field"]))


def policies() -> Iterator[Row]:
    students, tunings = benchmark("students")["field"], benchmark("field_mpc")["validation"]
    for label, name in (
        ("Student `field`, zero-shot", "student field"),
        ("MPC with a perfect model, `field` tuning", "mpc field"),
        ("PID with a perfect model", "pid"),
        ("Student `field-student`, zero-shot, the paper's recipe", "student by ppo"),
        ("PPO (general) `field-ppo-general`, no adaptation", "ppo-general"),
        ("Student `ideal`, not trained for this sea", "student ideal"),
    ):
        run = students[name]["mean"]
        degrees = f"{run['heading_deg']:.1f}" if name == "student ideal" else rounded(run["heading_deg"])
        share = f"{rounded(100 * run['saturation'], 1)} %"
        low, median, high = (rounded(number) for number in students[name]["quartiles_cm"])
        quartiles = f"{median} ({low} to {high})"
        yield row(label, rounded(run["position_cm"]), quartiles, degrees, f"{run['delta_tau']:.3f}", share)
    for tuning in ("tight", "paper"):
        run = tunings[f"mpc {tuning}"]["mean"]
        yield row(
            f"MPC with a perfect model, `{tuning}` tuning (20 runs)",
            rounded(run["position_cm"]),
            "",
            rounded(run["heading_deg"]),
            f"{run['delta_tau']:.2f}",
            f"{rounded(100 * run['saturation'], 1)} %",
        )


def shapes() -> Iterator[Row]:
    runs = benchmark("students")["shapes"]["runs"]
    shapes = ("rectangle", "tight corners, 1 m", "figure eight", "slalom", "circle", "station keeping")
    for policy in ("ideal", "field"):
        for vessel in ("freya", *BOATS):
            mine = [run for run in runs if run["policy"] == policy and run["vessel"] == vessel]
            errors = []
            for shape in shapes:
                of_shape = [run for run in mine if run["shape"] == shape]
                position, heading = (max(run[what] for run in of_shape) for what in ("position_cm", "heading_deg"))
                errors.append(f"{position:.2f}, {heading:.2f}")
            yield row(f"{vessel.replace('-', ' ').title()}, `{policy}`", *errors)


def catalogue() -> Iterator[Row]:
    for name, boat in benchmark("catalogue")["vessels"].items():
        length, time = boat["scale"]
        field = boat["policy_field"]
        yield row(
            name,
            f"{boat['length']:.3g}" + "*" * boat["length_estimated"],
            f"{length:g}, {time:g}",
            f"{boat['speed']:.2f}",
            f"{boat['radius_lengths']:.1f}",
            relative(boat["deployed_ideal"]),
            f"{boat['policy_ideal']['mean_cm']:.2f}",
            f"{boat['mpc_ideal']['mean_cm']:.2f}",
            relative(field) + ("" if field["diverged"] else f", {field['worst_cm']:.1f}"),
            relative(boat["mpc_field"]),
        )


def under() -> Iterator[Row]:
    errors = benchmark("without_sway")["position_cm"]
    for boat in errors["policy, field, corners 4 m"]:
        found = []
        for sea, kinds in (("ideal", ("policy", "policy ideal", "mpc", "los")), ("field", ("policy", "mpc", "los"))):
            for radius in (4, 2):
                runs = (errors[f"{kind}, {sea}, corners {radius} m"][boat] for kind in kinds)
                found.append(", ".join(rounded(run) for run in runs))
        yield row(boat, *found)


def station() -> Iterator[Row]:
    kept = benchmark("under_hold")
    for boat, policy in kept["policy"].items():
        los = kept["los"][boat]
        cells = (f"{run['distance_m']:.2f}, {run['turns']:.1f}, {run['delta_tau']:.3f}" for run in (policy, los))
        yield row(boat, f"{policy['radius_m']:.2f}", *cells)


def thrusters() -> Iterator[Row]:
    for case, rows in benchmark("real_thrusters")["cases"].items():
        runs = (rows[name]["mean"] for name in ("field", "mpc"))
        errors = (f"{run['position_cm']:.2f}, {run['heading_deg']:.2f}°, {run['delta_tau']:.3f}" for run in runs)
        yield row(case, *errors)


def relative(run: dict[str, float]) -> str:
    """In cm and in per cent of the length."""
    return f"{run['diverged']} diverged" if run["diverged"] else f"{run['mean_cm']:.2f} ({run['mean_percent']:.2f} %)"


def rivals() -> Iterator[Row]:
    judged = benchmark("rivals")["judged"]
    for label, name in (
        ("Student `field`, zero-shot", "pilot"),
        ("RLS, zero-shot", "rls"),
        ("L1, zero-shot", "l1"),
        ("MPC `field`, perfect model", "mpc"),
        ("MPC, mass and damping +30 %", "mpc, all +30 %"),
        ("MPC, mass and damping −30 %", "mpc, all -30 %"),
        ("MPC, mass +30 %, damping −30 %", "mpc, mass +30 %, damping -30 %"),
        ("MPC, mass −30 %, damping +30 %", "mpc, mass -30 %, damping +30 %"),
    ):
        found = []
        for case in ("still", "field", "plant", "plant, noise"):
            run = judged[name][case]["all"]
            median = f" ({run['position_cm_median']:.2f})" if case in ("field", "plant, noise") else ""
            position, heading = f"{run['position_cm']:.2f}{median}", f"{run['heading_deg']:.2f}°"
            found.append(f"{position}, {heading}, {run['delta_tau']:.3f}")
        yield row(label, *found)


def pairs() -> Iterator[Row]:
    for pair, seas in benchmark("rivals")["pairs"].items():
        found = []
        for name in ("mpc", "mpc, other identification", "pilot", "rls", "l1"):
            if name in seas["ideal"]:
                still, field = seas["ideal"][name]["position_cm"], seas["field"][name]
                heading = f"{field['heading_deg']:.1f}°"
                found.append(f"{still:.2f}; {field['position_cm']:.2f}, {heading}, {field['delta_tau']:.3f}")
            else:
                found.append("–")
        yield row(pair.replace(" by ", ", "), *found)


CONTROL = {
    Key("docs/adaptive.md", "Measured", "position, heading, mean |Δτ| per step"): lap,
    Key("docs/adaptive.md", "Measured", "lag, noise"): plants,
    Key("docs/adaptive.md", "Measured", "position in cm"): twin,
    Key("docs/adaptive.md", "Measured", "Adaptive"): changes,
    Key("docs/adaptive.md", "Measured", "vessel"): vessels,
    Key("docs/notes/policies.md", "Field sea, five platforms", "controller"): policies,
    Key("docs/notes/policies.md", "Other shapes and vessels", "cm, °"): shapes,
    Key("docs/notes/policies.md", "All vessels of the catalogue", "vessel"): catalogue,
    Key("docs/notes/policies.md", "Boats without sway force", "boat"): under,
    Key("docs/notes/policies.md", "Boats without sway force", "boat, station"): station,
    Key("docs/notes/policies.md", "Real thrusters and an estimator", "case"): thrusters,
    Key("docs/differences.md", "Rivals", "still water"): rivals,
    Key("docs/differences.md", "Rivals", "boat, other model"): pairs,
}
