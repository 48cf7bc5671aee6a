"""`anyhull train`: a method of the paper, from nothing to a policy file."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.text import Text

from anyhull.cli.output import AsJson, new_table, open_console, print_json
from anyhull.errors import InputError, unknown

if TYPE_CHECKING:
    from anyhull.learn.runs import Report

PAPER = {
    "teacher": (0.85, 1.79),
    "student": (0.84, 1.81),
    "ppo-general": (1.49, 3.98),
    "ppo-specific": (0.65, 0.97),
    "recurrent": (0.96, 2.34),
    "student-mean-latent": (2.18, 4.06),
}
"""The paper's figures in ideal conditions: position (cm) and heading (degrees), means over ten seeds."""


def train(
    method: Annotated[
        str,
        typer.Argument(
            help="teacher, student, ppo-general, ppo-specific, recurrent, student-mean-latent or sweep (the appendix)."
        ),
    ] = "student",
    recipe: Annotated[
        str | None,
        typer.Option(
            "--method",
            help="gradient: through the simulator, for teacher and student. ppo: the paper's, for all the others too.",
        ),
    ] = None,
    preset: Annotated[
        str, typer.Option(help="full: ours, or the paper's budget. fast: minutes on two cores.")
    ] = "full",
    conditions: Annotated[str, typer.Option(help="ideal or field.")] = "ideal",
    vessel: Annotated[str | None, typer.Option(help="For ppo-specific and sweep: a name or a TOML file.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Train so many seeds in one program.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Draws weights, boats and references.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder of the run; by default runs/METHOD.")] = None,
    resume: Annotated[bool, typer.Option(help="Go on with the run in that folder.")] = False,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Any hyperparameter, as in --set ppo.rate=1e-3; repeat for more.")
    ] = None,
    coordinator: Annotated[
        str | None,
        typer.Option(help="To train over several processes or hosts: ADDRESS:PORT of process 0; under Slurm, auto."),
    ] = None,
    processes: Annotated[int | None, typer.Option(min=1, help="How many they are.")] = None,
    process: Annotated[int | None, typer.Option(min=0, help="Which of them this one is, from 0.")] = None,
    as_json: AsJson = False,
) -> None:
    """Train a policy."""
    try:
        from anyhull.learn import files, hosts, methods, runs
    except ImportError as error:
        raise InputError(f"training needs JAX ({error.name} is missing): pip install 'anyhull[learn]'") from None
    recipe = recipe or ("gradient" if method in ("teacher", "student") else "ppo")
    recipes: dict[str, dict[str, Callable[..., Any]]] = {
        "gradient": {"full": methods.first_order, "fast": methods.first_order_fast},
        "ppo": {"full": methods.paper, "paper": methods.paper, "fast": methods.fast},
    }
    if recipe not in recipes:
        raise InputError(unknown("method", recipe, recipes))
    presets = recipes[recipe]
    if preset not in presets:
        raise InputError(unknown("preset", preset, presets))
    if conditions not in ("ideal", "field"):
        raise InputError(unknown("conditions", conditions, ("ideal", "field")))
    config = presets[preset](method, conditions, vessel)
    for setting in settings or []:
        config = files.override(config, setting)
    folder = out or Path("runs") / method
    if coordinator is not None:
        hosts.join(coordinator, processes, process)
    elif processes is not None or process is not None:
        raise InputError("several processes need a coordinator: give ADDRESS:PORT of process 0")
    started = time.monotonic()
    with no_output(), display(method) if hosts.leads() else nullcontext() as report:
        paths = runs.train(config, folder, seeds=seeds, seed=seed, resume=resume, report=report)
    if not hosts.leads():
        return
    taken = time.monotonic() - started
    results = [files.read_about(path)["metrics"] for path in paths]
    if as_json:
        written = [str(path) for path in paths]
        print_json(
            {"method": method, "seconds": taken, "files": written, "metrics": results, "paper": PAPER.get(method)}
        )
        return
    show(method, results, paths, taken)


@contextmanager
def no_output() -> Iterator[None]:
    """Standard output is for results: JAX's transport between CPUs would announce itself there."""
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def show(method: str, results: list[dict[str, Any]], paths: list[Path], taken: float) -> None:
    """Errors of each seed on each platform beside the paper's average."""
    console = open_console()
    table = new_table(["", "position (cm)", "heading (deg)"])
    for i, result in enumerate(results):
        prefix = f"seed {i}, " if len(results) > 1 else ""
        for name, errors in result["platforms"].items():
            table.add_row(prefix + name, f"{errors['position_cm']:.3f}", f"{errors['heading_deg']:.3f}")
        table.add_row(f"{prefix}mean", f"{result['position_cm']:.3f}", f"{result['heading_deg']:.3f}", style="bold")
        table.add_section()
    if method in PAPER:
        position, heading = PAPER[method]
        table.add_row("the paper, mean", f"{position:.2f}", f"{heading:.2f}")
    console.print(f"{method}, {taken:.0f} s. One lap of the paper's rectangle, ideal conditions:\n")
    console.print(table)
    for path in paths:
        console.print(f"policy: {path}", soft_wrap=True)


@contextmanager
def display(method: str) -> Iterator[Callable[[Report], None]]:
    """What is shown of a run: a live view on a terminal, else a line every ten seconds; all on stderr."""
    console = Console(stderr=True)
    errors: dict[str, float] = {}
    if not console.is_terminal:
        said = [0.0]

        def line(report: Report) -> None:
            now, told = time.monotonic(), _line(report, errors)
            if now - said[0] > 10 or report.iteration == report.iterations:
                said[0] = now
                print(told, file=sys.stderr, flush=True)

        yield line
        return
    with Live(Text(f"{method}: compiling"), console=console, transient=True, refresh_per_second=4) as live:
        yield lambda report: live.update(_view(report, errors))


def _line(report: Report, errors: dict[str, float]) -> str:
    """The report in a line, with the errors that were measured last, which are kept in `errors`."""
    if report.tracking:
        errors |= {name: report.tracking[name] for name in ("position_cm", "heading_deg")}
    whose = "seed 0: " if report.seeds > 1 else ""
    tracked = f", {whose}{errors['position_cm']:.2f} cm, {errors['heading_deg']:.2f}°" if errors else ""
    share = f"{100 * report.iteration / report.iterations:.0f} %"
    return f"{report.phase} {share}, {report.rate:,.0f} steps/s, {report.left:.0f} s left{tracked}"


def _view(report: Report, errors: dict[str, float]) -> Group:
    table = new_table(["", ""])
    for name, value in report.metrics.items():
        table.add_row(name, f"{value:.4f}")
    bar = ProgressBar(total=report.iterations, completed=report.iteration, width=60)
    return Group(Text(_line(report, errors)), bar, table)
