"""Speed of CasADi's solvers on the problems of the MPC, and accuracy and speed of the shipped MPC.

    python benchmarks/mpc.py --json benchmarks/results/mpc.json

All candidates solve the same recorded problems: every third step of the rectangle runs of the five platforms with the
tunings `tight` and `paper`, from the initial guess of the shipped controller. The tuning `field` is left out: its
penalty on |Δτ| couples stages, which one of the candidates cannot handle. On a shared machine compare ratios only.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # one core, as on a boat; read when the libraries below are loaded

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
from machine import describe, save

from anyhull import Vessel, rounded_rectangle, simulate
from anyhull.control import mpc
from anyhull.paper import PLATFORMS
from anyhull.reference import PREVIEW

QUIET: dict[str, Any] = {"print_time": False, "error_on_fail": False}
SQP = {key: value for key, value in mpc.OPTIONS.items() if not key.startswith("qpsol")} | {"max_iter": 50}
IPOPT: dict[str, Any] = {**QUIET, "ipopt": {"print_level": 0, "sb": "yes"}}
WARM = {**QUIET, "ipopt": {**IPOPT["ipopt"], "warm_start_init_point": "yes", "mu_init": 1e-5}}
STAGES = {
    "structure_detection": "manual",
    "N": PREVIEW,
    "nx": [6] * (PREVIEW + 1),
    "nu": [3] * PREVIEW + [0],
    "ng": [6] + [0] * PREVIEW,
}


def sqp(qpsol: str, **options: Any) -> dict[str, Any]:
    return {**SQP, "qpsol": qpsol, "qpsol_options": {"error_on_fail": False, **options}}


QRQP = sqp("qrqp", print_iter=False, print_header=False, print_info=False)
OSQP = sqp("osqp", osqp={"verbose": False})

CANDIDATES: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "shipped": (mpc.SOLVER, mpc.OPTIONS, "multiple", "Gauss-Newton"),
    "sqpmethod + qrqp, tolerance 1e-6": ("sqpmethod", {**QRQP, "tol_du": 1e-6}, "multiple", "Gauss-Newton"),
    "sqpmethod + qrqp, exact Hessian": ("sqpmethod", QRQP, "multiple", "exact"),
    "sqpmethod + qrqp, single shooting": ("sqpmethod", QRQP, "single", "Gauss-Newton"),
    "sqpmethod + daqp": ("sqpmethod", sqp("daqp"), "multiple", "Gauss-Newton"),
    "sqpmethod + daqp, single shooting": ("sqpmethod", sqp("daqp"), "single", "Gauss-Newton"),
    "sqpmethod + hpipm": ("sqpmethod", sqp("hpipm"), "multiple", "Gauss-Newton"),
    "sqpmethod + piqp": ("sqpmethod", sqp("piqp"), "multiple", "Gauss-Newton"),
    "sqpmethod + osqp": ("sqpmethod", OSQP, "multiple", "Gauss-Newton"),
    "sqpmethod + proxqp": ("sqpmethod", sqp("proxqp"), "multiple", "Gauss-Newton"),
    "fatrop": ("fatrop", {**QUIET, **STAGES, "fatrop": {"print_level": 0}}, "stages", "exact"),
    "ipopt": ("ipopt", IPOPT, "multiple", "exact"),
    "ipopt, warm": ("ipopt", WARM, "multiple", "exact"),
}
"""Name -> CasADi's solver and its options, shooting, Hessian."""


class Recorder:
    """The shipped MPC, with the time of every step (s) and the problems it solved."""

    def __init__(self, vessel: Vessel, tuning: str) -> None:
        self.mpc = mpc.MPC(vessel, tuning)
        self.seconds: list[float] = []
        self.problems: list[tuple[Any, Any]] = []
        solver = self.mpc._solver

        def recorded(**call: Any) -> Any:
            self.problems.append((np.array(call["x0"]).ravel(), call["p"]))
            return solver(**call)

        recorded.stats = solver.stats  # type: ignore[attr-defined]
        self.mpc._solver = recorded

    def reset(self) -> None:
        self.mpc.reset()

    def step(self, pose: Any, velocity: Any, window: Any) -> Any:
        begin = time.perf_counter()
        command = self.mpc.step(pose, velocity, window)
        self.seconds.append(time.perf_counter() - begin)
        return command


def build(vessel: Vessel, tuning: str, candidate: str) -> Callable[[Any, Any], tuple[Any, bool]]:
    """The candidate as a function (start, parameters) -> first command and success."""
    solver, options, shooting, curvature = CANDIDATES[candidate]
    nlp, hessian = mpc.transcribe(vessel, mpc.TUNINGS[tuning])
    bound = np.tile([1.0] * 3 + [np.inf] * 6, PREVIEW)
    if shooting == "single":
        commands = ca.SX.sym("commands", 3, PREVIEW)
        a, p = ca.vec(commands), nlp["p"]
        path = mpc.unroll(vessel, PREVIEW)(commands, p[:3], p[3:6])
        slope = ca.jacobian(path, a)
        square = slope.T @ hessian(path, p, 1.0, 0.0) @ slope
        cost = ca.Function("cost", [nlp["x"], p], [nlp["f"]])(path, p)
        nlp = {"x": a, "p": p, "f": cost}
        scale, none = ca.SX.sym("scale"), ca.SX.sym("none", 0)
        hessian = ca.Function("hessian", [a, p, scale, none], [scale * square])
        bound = np.ones(3 * PREVIEW)
    if shooting == "stages":
        # Fatrop needs the first state among the unknowns, fixed by a constraint of the first stage, and the gaps as
        # next state minus prediction.
        first = ca.SX.sym("s_0", 6)
        gaps = -ca.substitute(nlp["g"], nlp["p"][:3], first[3:])
        fixed = first - ca.vertcat(0, 0, 0, nlp["p"][:3])
        nlp = {**nlp, "x": ca.vertcat(first, nlp["x"]), "g": ca.vertcat(gaps[:6], fixed, gaps[6:])}
    if curvature == "Gauss-Newton":
        options = {**options, "hess_lag": hessian}
    call = ca.nlpsol("candidate", solver, nlp, options)
    zero = {} if shooting == "single" else {"lbg": 0.0, "ubg": 0.0}

    def solve(start: Any, parameters: Any) -> tuple[Any, bool]:
        low, high, at = -bound, bound, 0
        if shooting == "single":
            start = start.reshape(PREVIEW, 9)[:, :3].ravel()
        elif shooting == "stages":
            free, at = np.full(6, np.inf), 6
            start = np.concatenate([np.zeros(3), parameters[:3], start])
            low, high = np.concatenate([-free, low]), np.concatenate([free, high])
        solution = call(x0=start, p=parameters, lbx=low, ubx=high, **zero)
        return np.array(solution["x"]).ravel()[at : at + 3], bool(call.stats()["success"])

    return solve


def compare(problems: dict[tuple[str, str], list[tuple[Any, Any]]]) -> dict[str, dict[str, float | str]]:
    """Time per solve, fraction of successes, and largest difference from IPOPT's first command, by candidate.

    The candidates solve each problem in random order, so that other load on the machine affects all of them equally.
    """
    seconds: dict[str, list[float]] = {name: [] for name in CANDIDATES}
    successes: dict[str, list[bool]] = {name: [] for name in CANDIDATES}
    differences: dict[str, list[float]] = {name: [] for name in CANDIDATES}
    errors: dict[str, str] = {}
    order = np.random.default_rng(0)
    for (vessel, tuning), recorded in problems.items():
        solvers = {name: build(Vessel.load(vessel), tuning, name) for name in CANDIDATES}
        for start, parameters in recorded:
            commands = {}
            for name in order.permutation(list(solvers)):
                solve = solvers[name]
                begin = time.perf_counter()
                try:
                    commands[name], success = solve(start, parameters)
                except RuntimeError as error:
                    errors[name], success = str(error).strip().splitlines()[-1], False
                seconds[name].append(time.perf_counter() - begin)
                successes[name].append(success)
            for name, command in commands.items():
                differences[name].append(float(np.abs(command - commands["ipopt"]).max()))
    return {
        name: {
            **times(seconds[name]),
            "success": float(np.mean(successes[name])),
            "difference": max(differences[name], default=np.nan),
        }
        | ({"error": errors[name]} if name in errors else {})
        for name in CANDIDATES
    }


def times(seconds: list[float]) -> dict[str, float]:
    """Median, 99th percentile and largest, ms."""
    p50, p99, largest = 1e3 * np.percentile(seconds, [50, 99, 100])
    return {"p50": float(p50), "p99": float(p99), "max": float(largest)}


@contextmanager
def quiet() -> Iterator[None]:
    """Standard output and error to /dev/null: some of the solvers have no silent mode."""
    copies, null = [os.dup(1), os.dup(2)], os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1), os.dup2(null, 2)
    try:
        yield
    finally:
        for target, copy in zip((1, 2), copies, strict=True):
            os.dup2(copy, target)
            os.close(copy)
        os.close(null)


def main() -> None:
    parser = argparse.ArgumentParser(description="Accuracy and speed of the MPC, and of the solvers it could use.")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the results here as well")
    arguments = parser.parse_args()

    results: dict[str, Any] = {"machine": describe("numpy", "casadi"), "accuracy": {}, "step_ms": {}}
    problems: dict[tuple[str, str], list[tuple[Any, Any]]] = {}
    for tuning in mpc.TUNINGS:
        print(f"{tuning}: mean error in cm and degrees over one lap, ideal conditions")
        seconds: list[float] = []
        worst = 0.0
        table = {}
        for name in PLATFORMS:
            vessel = Vessel.load(name)
            controller = Recorder(vessel, tuning)
            metrics = simulate(controller, vessel, rounded_rectangle()).metrics()
            table[name] = {"position_cm": metrics.position_cm, "heading_deg": metrics.heading_deg}
            if mpc.TUNINGS[tuning].rate == 0:
                problems[name, tuning] = controller.problems[::3]
            seconds += controller.seconds
            worst = max(worst, times(controller.seconds)["p99"])
        table["mean"] = {key: float(np.mean([row[key] for row in table.values()])) for key in table[PLATFORMS[0]]}
        results["accuracy"][tuning] = table
        for name, row in table.items():
            print(f"  {name:12s} {row['position_cm']:8.4f} cm {row['heading_deg']:8.4f}°")
        results["step_ms"][tuning] = {**times(seconds), "worst_p99": worst}
        print(
            "  a step, ms: p50 {p50:.2f}, p99 {p99:.2f} (worst run {worst_p99:.2f}), max {max:.2f}".format(
                **results["step_ms"][tuning]
            )
        )
    print("solvers, ms per solve                     p50    p99     max   success  difference")
    with quiet():
        results["solvers_ms"] = compare(problems)
    for name, row in results["solvers_ms"].items():
        print("  {:36s} {p50:6.2f} {p99:6.2f} {max:7.2f} {success:9.4f} {difference:11.1e}".format(name, **row))
    save(arguments.json, results)


if __name__ == "__main__":
    main()
