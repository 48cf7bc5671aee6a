"""`anyhull study`: the paper's tables and figures with ours beside them, in jobs that can be resumed."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anyhull.cli.output import AsJson, new_table, open_console, print_json
from anyhull.cli.train import Cache, display, no_output
from anyhull.errors import InputError, unknown

if TYPE_CHECKING:
    from anyhull.study.entries import Table

WIDE = 170
"""Columns of the widest table."""


def study(
    what: Annotated[str, typer.Argument(help="ideal, latent, sweep or field; all, with a report; or jobs, a list.")],
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1, help="Seeds of every learned method; by default 10 (ideal, latent), 3 (sweep, field), 2 (--quick)."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the result files; by default results, or out/quick with --quick.")
    ] = None,
    work: Annotated[
        Path | None, typer.Option(help="Folder of the training runs and checkpoints; by default runs/study.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Tiny sizes, to test the pipeline: the figures mean nothing.")
    ] = False,
    render: Annotated[bool, typer.Option("--render", help="Run nothing: tables from the existing results.")] = False,
    job: Annotated[list[str] | None, typer.Option("--job", help="Run this job only; repeat for more.")] = None,
    cache: Cache = True,
    commit: Annotated[str | None, typer.Option(help="Commit to record where there is no git repository.")] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="The report of all as Markdown; by default docs/results.md.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """The paper's tables and figures, with ours beside them."""
    from anyhull.study import jobs, tables
    from anyhull.study.train_jobs import Plan

    if what not in (accepted := (*jobs.STUDIES, "all", "jobs")):
        raise InputError(unknown("study", what, accepted))
    if markdown and what != "all":
        raise InputError(f"--markdown {markdown}: goes with 'study all', which writes the report")
    folder = out or Path("out/quick" if quick else "results")
    if what == "jobs":
        if seeds or job or render or commit or work:
            raise InputError("study jobs: lists the jobs, and takes --out, --quick and --json only")
        _show_jobs(folder, as_json)
        return
    if render and job:
        raise InputError("--render and --job: --render runs nothing; give one of the two")
    studies = tuple(jobs.STUDIES) if what == "all" else (what,)
    skipped: list[str] = []
    if not render:
        selected = jobs.select(studies, job or ())
        if not (quick or out or folder.is_dir()):
            raise InputError(f"{folder}: no such folder: run in a clone of the repository, or give --out or --quick")
        work = work or Path("runs/quick" if quick else "runs/study")
        with no_output(), display("study") as report:
            plan = Plan(folder, work, seeds or (2 if quick else 0), quick, commit, report, _log, cache)
            skipped = jobs.run(selected, plan)
    found = {name: result for name, result in jobs.load(folder).items() if result.study in studies}
    made = tables.of(found)
    files: dict[str, str] = {}
    if what == "all":
        from anyhull.study.report import write

        page, text = folder / "report.html", markdown or (folder / "results.md" if quick else Path("docs/results.md"))
        write(found, page, text)
        files = {"report": str(page), "markdown": str(text)}
    if as_json:
        print_json({"skipped": skipped, "tables": [asdict(table) for table in made], "files": files})
        return
    _show(made)
    for name, path in files.items():
        open_console().print(f"{name}: {path}", soft_wrap=True)
    if skipped:
        print(f"skipped: {', '.join(skipped)}", file=sys.stderr)


def _show_jobs(folder: Path, as_json: bool) -> None:
    """The jobs, and which of them have a result."""
    from anyhull.study.jobs import JOBS
    from anyhull.study.results import path_of

    done = {name: path_of(folder, name).exists() for name in JOBS}
    if as_json:
        rows = [{"job": name, "study": job.study, "done": done[name]} for name, job in JOBS.items()]
        print_json({"out": str(folder), "jobs": rows})
        return
    table = new_table(["job", "study", "done"], left=("study", "done"))
    for name, job in JOBS.items():
        table.add_row(name, job.study, "yes" if done[name] else "")
    open_console().print(table)


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _show(made: list[Table]) -> None:
    console = open_console()
    console.width = max(console.width, WIDE)
    for table in made:
        console.print(table.title + "\n")
        drawn = new_table(list(table.columns), left=("",), gap=3)
        for row in table.rows:
            drawn.add_row(*row)
        console.print(drawn)
        for note in table.notes:
            console.print(note)
        console.print()
