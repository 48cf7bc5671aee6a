"""`anyhull train`: trains a method of the paper and writes a policy file."""

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

from anyhull import policy_file
from anyhull.cli.output import AsJson, new_table, open_console, print_json
from anyhull.errors import InputError, unknown
from anyhull.paper import IDEAL

if TYPE_CHECKING:
    from anyhull.learn.trainer import Report

Cache = Annotated[bool, typer.Option(help="Keep compiled programs in the user's cache folder for the next run.")]


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
            help="apg: analytic policy gradients, for teacher and student. ppo: the paper's, for all methods."
        ),
    ] = None,
    preset: Annotated[
        str, typer.Option(help="full: ours, or the paper's budget. fast: minutes on two cores.")
    ] = "full",
    sea: Annotated[str, typer.Option(help="ideal or field.")] = "ideal",
    vessel: Annotated[str | None, typer.Option(help="For ppo-specific and sweep: a name or a TOML file.")] = None,
    start: Annotated[
        str | None,
        typer.Option(
            help="Train this student further, a name or a file: the last phase of its recipe with its settings."
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds, trained in one program.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Draws weights, boats and references.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder of the run; by default runs/METHOD.")] = None,
    resume: Annotated[bool, typer.Option(help="Go on with the run in that folder.")] = False,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Any hyperparameter, as in --set ppo.epochs=5; repeat for more.")
    ] = None,
    coordinator: Annotated[
        str | None,
        typer.Option(help="To train over several processes or hosts: ADDRESS:PORT of process 0; under Slurm, auto."),
    ] = None,
    processes: Annotated[int | None, typer.Option(min=1, help="Number of processes.")] = None,
    process: Annotated[int | None, typer.Option(min=0, help="Number of this process, from 0.")] = None,
    cache: Cache = True,
    as_json: AsJson = False,
) -> None:
    """Train a policy."""
    try:
        from anyhull.learn import checkpoints, distributed, trainer
        from anyhull.learn.config import PRESETS, override
        from anyhull.learn.precompile import use_cache
    except ImportError as error:
        raise InputError(f"training needs JAX ({error.name} is missing): pip install 'anyhull[learn]'") from None
    chosen, recipe = recipe, recipe or ("apg" if method in ("teacher", "student") else "ppo")
    for what, value, accepted in (
        ("recipe", recipe, PRESETS),
        ("preset", preset, PRESETS.get(recipe, {})),
        ("sea", sea, ("ideal", "field")),
    ):
        if value not in accepted:
            raise InputError(unknown(what, value, accepted))
    config, policy = PRESETS[recipe][preset](method, sea, vessel), None
    if start is not None:
        if (method, chosen, preset, sea, vessel) != ("student", None, "full", "ideal", None):
            must = "must stand without method, recipe, preset, sea and vessel; change its own settings by --set"
            raise InputError(f"start = {start!r}: {must}")
        policy, config, _ = checkpoints.load_policy(file := policy_file.locate(start))
    for setting in settings or []:
        config = override(config, setting)
    if policy is not None:
        checkpoints.check_shapes(policy, config, file)
    if cache:
        use_cache()
    folder = out or Path("runs") / method
    if coordinator is not None:
        distributed.join(coordinator, processes, process)
    elif processes is not None or process is not None:
        raise InputError("several processes need a coordinator: give ADDRESS:PORT of process 0")
    started = time.monotonic()
    with no_output(), display(method) if distributed.is_leader() else nullcontext() as report:
        paths = trainer.train(config, folder, start=policy, seeds=seeds, seed=seed, resume=resume, report=report)
    if not distributed.is_leader():
        return
    taken = time.monotonic() - started
    results = [checkpoints.read_about(path)["metrics"] for path in paths]
    if as_json:
        printed = IDEAL[method]._asdict() if method in IDEAL else None
        written = {"files": [str(path) for path in paths], "metrics": results, "paper": printed}
        print_json({"method": method, "recipe": recipe, "seconds": taken} | written)
        return
    show(method, results, paths, taken)


@contextmanager
def no_output() -> Iterator[None]:
    """Redirect stdout to stderr: stdout is for results, and JAX's CPU transport writes there."""
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
    if printed := IDEAL.get(method):
        table.add_row("the paper, mean", f"{printed.position_cm:.2f}", f"{printed.heading_deg:.2f}")
    console.print(f"{method}, {taken:.0f} s. One lap of the paper's rectangle, ideal conditions:\n")
    console.print(table)
    for path in paths:
        console.print(f"policy: {path}", soft_wrap=True)


@contextmanager
def display(method: str) -> Iterator[Callable[[Report], None]]:
    """Progress display: a live view on a terminal, else a line every ten seconds; all on stderr."""
    console = Console(stderr=True)
    errors: dict[str, float] = {}
    if not console.is_terminal:
        last_printed = [0.0]

        def line(report: Report) -> None:
            now, text = time.monotonic(), _line(report, errors)
            if now - last_printed[0] > 10 or report.iteration == report.iterations:
                last_printed[0] = now
                print(text, file=sys.stderr, flush=True)

        yield line
        return
    with Live(Text(f"{method}: compiling"), console=console, transient=True, refresh_per_second=4) as live:
        yield lambda report: live.update(_view(report, errors))


def _line(report: Report, errors: dict[str, float]) -> str:
    """The report in one line, with the last measured errors, which are kept in `errors`."""
    if report.tracking:
        errors |= {name: report.tracking[name] for name in ("position_cm", "heading_deg")}
    prefix = "seed 0: " if report.seeds > 1 else ""
    tracked = f", {prefix}{errors['position_cm']:.2f} cm, {errors['heading_deg']:.2f}°" if errors else ""
    share = f"{100 * report.iteration / report.iterations:.0f} %"
    return f"{report.phase} {share}, {report.rate:,.0f} steps/s, {report.left:.0f} s left{tracked}"


def _view(report: Report, errors: dict[str, float]) -> Group:
    table = new_table(["", ""])
    for name, value in report.metrics.items():
        table.add_row(name, f"{value:.4f}")
    bar = ProgressBar(total=report.iterations, completed=report.iteration, width=60)
    return Group(Text(_line(report, errors)), bar, table)
