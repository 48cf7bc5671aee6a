"""The rows of docs/speed.md, docs/notes/speed.md and the times of docs/training.md, from their records."""

from collections.abc import Iterator
from typing import Any

from figures import Key, Row, benchmark, record, row, stated


def mpc() -> Iterator[Row]:
    for label, file, tuning in (
        ("`tight`", "mpc", "tight"),
        ("`paper`", "mpc", "paper"),
        ("`tight`, a later run on a busier machine (`results/mpc-field.json`)", "mpc-field", "tight"),
        ("`field`, that run", "mpc-field", "field"),
    ):
        ms = benchmark(file)["step_ms"][tuning]
        yield row(label, f"{ms['p50']:.2f}", f"{ms['p99']:.2f}", f"{ms['worst_p99']:.2f}", f"{ms['max']:.2f}")


def pilot() -> Iterator[Row]:
    steps = benchmark("pilot")["step_us"]
    for label, name, goal in (
        ("`Pilot.step`, `field`", "pilot, field", "60"),
        ("`Pilot.step`, `ideal`", "pilot, ideal", "60"),
        ("ONNX graph, `field`, arrays bound once", "onnx, bound, field", "40"),
        ("ONNX graph, `ideal`, arrays bound once", "onnx, bound, ideal", "40"),
        ("ONNX graph, `field`, a dictionary in and arrays out", "onnx, dictionary, field", ""),
        ("ONNX graph, `ideal`, a dictionary in and arrays out", "onnx, dictionary, ideal", ""),
    ):
        us = steps[name]
        yield row(label, f"{us['p50']:.0f}", f"{us['p99']:.0f}", f"{us['of_mpc']:.3f}", goal)
    us = steps["mpc, field"]
    yield row("MPC, `field` tuning", f"{us['p50']:.0f}", f"{us['p99']:.0f}", f"{us['of_mpc']:.0f}", "")


def environment() -> Iterator[Row]:
    def steps(machine: str, sea: str, number: str) -> str:
        measured = benchmark(f"environment-{machine}")["seas"][sea].get(number)
        return rate(measured["steps_per_s"]) if measured else ""

    for number in ("1", "16", "128", "1024", "8192", "65536"):
        yield row(number, *(steps(machine, sea, number) for machine in ("cpu", "h200") for sea in ("ideal", "field")))


def rate(steps_per_s: float) -> str:
    """In thousands or millions, with two digits or more."""
    size, unit = (1e6, "M") if steps_per_s >= 1e6 else (1e3, "k")
    return f"{steps_per_s / size:.{int(steps_per_s < 10 * size)}f} {unit}"


def libraries() -> Iterator[Row]:
    rows = benchmark("compare_libraries-h200")["rows"]
    best = rows["rsl_rl, compiled step"]["steps_per_s"]
    for label, name in (("ours, one seed", "ours, 1 seed"), ("ours, ten seeds", "ours, 10 seeds")):
        one = rows[name]
        times = [f"{1000 * one[part + '_s']:.1f}" for part in ("iteration", "rollout", "update")]
        speed = one["steps_per_s"]
        yield row(label, f"{one['warm_up_s']:.0f}", *times, f"{speed / 1e6:.2f} M", f"{speed / best:.0f}")
    for label, name in (
        ("rsl_rl, eager", "rsl_rl, eager"),
        ("rsl_rl, compiled step as a CUDA graph", "rsl_rl, compiled step"),
        ("rsl_rl, that and compiled networks", "rsl_rl, compiled step and networks"),
        ("rsl_rl, step and networks as CUDA graphs", "rsl_rl, both as CUDA graphs"),
        ("Stable-Baselines3", "sb3"),
    ):
        one = rows[name]
        times = [f"{1000 * one[part + '_s']:.0f}" for part in ("iteration", "rollout", "update")]
        speed = one["steps_per_s"]
        ratio = "1" if speed == best else f"{speed / best:.2f}"
        yield row(label, f"{one['warm_up_s']:.0f}", *times, f"{speed / 1e3:.0f} k", ratio)


def ppo() -> Iterator[Row]:
    one, ten = benchmark("training-h200")["rows"]
    yield row(
        "teacher, one seed",
        f"{one['compile_s']:.0f}",
        f"{one['iteration_ms']:.1f}",
        f"{one['steps_per_s'] / 1e6:.2f} M",
        f"{one['whole_phase_s']:.1f}",
        f"{one['memory_MB'] / 1000:.1f}",
    )
    yield row(
        "teacher, ten seeds",
        f"{ten['compile_s']:.0f}",
        f"{ten['iteration_ms']:.1f} (54.7 in two more runs)",  # which were not stored
        f"{ten['steps_per_s'] / 1e6:.2f} M (5.99 M)",
        f"{ten['whole_phase_s']:.0f}",
        f"{ten['memory_MB'] / 1000:.1f}",
    )
    yield stated("PPO (general), fifty runs in one program", "12", "167", "9.79 M", "307", "5.2")


def environments_gpu() -> Iterator[Row]:
    for one in benchmark("training-envs-h200")["rows"]:
        ms = one["iteration_ms"]
        yield row(*sized(one), f"{ms:.{int(ms < 100)}f}", f"{one['steps_per_s'] / 1e6:.2f} M", memory(one))


def environments_cpu() -> Iterator[Row]:
    for one in benchmark("training-envs-cpu")["rows"]:
        yield row(*sized(one), f"{one['iteration_ms']:.0f}", rate(one["steps_per_s"]), memory(one))


def sized(one: dict[str, Any]) -> tuple[str, str]:
    return f"{one['envs']}", f"{one['compile_s']:.0f}"


def memory(one: dict[str, Any]) -> str:
    return f"{one['memory_MB'] / 1000:.1f}"


def apg() -> Iterator[Row]:
    for one in benchmark("training-apg-h200")["rows"]:
        whole = one["whole_phase_s"]
        yield row(
            one["phase"],
            *sized(one),
            f"{one['iteration_ms']:.1f}",
            f"{one['steps_per_s'] / 1e6:.1f} M",
            f"{whole:.{int(whole < 10)}f}",
        )


def solvers() -> Iterator[Row]:
    measured = benchmark("mpc")["solvers_ms"]
    yield solver("sqpmethod + qrqp, Gauss-Newton (shipped)", measured["shipped"])
    for name in (
        "sqpmethod + osqp",
        "sqpmethod + daqp",
        "sqpmethod + qrqp, exact Hessian",
        "sqpmethod + hpipm",
        "sqpmethod + qrqp, single shooting",
        "sqpmethod + piqp",
        "fatrop",
        "ipopt, warm",
        "ipopt",
        "sqpmethod + proxqp",
    ):
        yield solver(name, measured[name])


def solver(label: str, ms: dict[str, float]) -> Row:
    solved = f"{100 * ms['success']:.0f} %"
    return row(label, f"{ms['p50']:.2f}", f"{ms['p99']:.2f}", f"{ms['max']:.2f}", solved)


def training() -> Iterator[Row]:
    yield stated("`anyhull train --preset fast`", "two cores of an AMD EPYC, otherwise idle", "300 to 330 s")
    yield stated("`anyhull train`", "one NVIDIA H200", "72 to 81 s, the whole process")
    yield stated("`anyhull study ideal --job ideal-apg`, ten seeds", "one NVIDIA H200", "189 s")  # with version 0.1
    yield row(
        "`anyhull study ideal --job ideal-student`, the paper's recipe, ten seeds",
        "one NVIDIA H200, beside three other jobs",
        f"{record('results/ideal-student.json')['seconds']:.0f} s",
    )


SPEED = {
    Key("docs/speed.md", "MPC", "tuning"): mpc,
    Key("docs/speed.md", "Pilot", "p50, µs"): pilot,
    Key("docs/speed.md", "Environment", "environments"): environment,
    Key("docs/speed.md", "Training: PPO beside other libraries", "warm-up, s"): libraries,
    Key("docs/speed.md", "Training: PPO", "1024 × 32 a seed"): ppo,
    Key("docs/speed.md", "Training: PPO", "environments × 32"): environments_gpu,
    Key("docs/speed.md", "Training: PPO", "environments × 32 (2)"): environments_cpu,
    Key("docs/speed.md", "Training: analytic policy gradients", "phase"): apg,
    Key("docs/notes/speed.md", "MPC solvers", "solver"): solvers,
    Key("docs/training.md", "How long it takes", "command"): training,
}
