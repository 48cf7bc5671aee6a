"""Tables for people, JSON for machines, progress for the patient."""

from __future__ import annotations

import json
import math
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

WIDTH = 100
"""Columns that tables are made for, and take where the output is no terminal."""

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]


def new_table(columns: list[str], left: tuple[str, ...] = (), gap: int = 2) -> Table:
    """An empty table: numbers to the right, the first column and those named in `left` to the left."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, gap - 1, 0, 0), show_edge=False)
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 or column in left else "right", no_wrap=column != "outside")
    return table


def open_console() -> Console:
    columns = shutil.get_terminal_size((WIDTH, 24)).columns
    return Console(width=max(WIDTH, columns), markup=False, highlight=False)


@contextmanager
def progress(what: str) -> Iterator[Callable[[float, float], None] | None]:
    """A bar on a terminal's stderr, told how much is done of how much; nothing elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def print_json(document: Any) -> None:
    """One JSON document on stdout, with null for what JSON has no number for."""

    def strict(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: strict(entry) for key, entry in value.items()}
        if isinstance(value, list | tuple):
            return [strict(entry) for entry in value]
        return None if isinstance(value, float) and not math.isfinite(value) else value

    print(json.dumps(strict(document), indent=2, allow_nan=False))
