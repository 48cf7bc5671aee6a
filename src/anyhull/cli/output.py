"""Output of the commands: tables, JSON and progress bars."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from anyhull.study.results import finite

WIDTH = 100
"""Width of the tables, and of the output where it is no terminal."""

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]


def new_table(columns: list[str], left: tuple[str, ...] = (), gap: int = 2) -> Table:
    """An empty table: numbers right-aligned, the first column and those named in `left` left-aligned."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, gap - 1, 0, 0), show_edge=False)
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 or column in left else "right", no_wrap=column != "outside")
    return table


def open_console() -> Console:
    columns = shutil.get_terminal_size((WIDTH, 24)).columns
    return Console(width=max(WIDTH, columns), markup=False, highlight=False)


@contextmanager
def progress(what: str) -> Iterator[Callable[[float, float], None] | None]:
    """A progress bar on stderr, to be called with the amount done and the total; None where that is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def print_json(document: Any) -> None:
    """One JSON document on stdout, with null for infinities and NaN."""
    print(json.dumps(finite(document), indent=2, allow_nan=False))
