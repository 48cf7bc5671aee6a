"""Output of the commands: tables, JSON and progress bars."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from anyhull.errors import InputError
from anyhull.log import Log
from anyhull.study.results import finite

WIDTH = 100
"""Width of the tables, and of the output where it is no terminal."""

Mcap = Annotated[Path | None, typer.Option(help="Write the run to this new .mcap, for Foxglove.")]
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


def check_outputs(
    plot: Path | None, animate: Path | None, out: Path | None, mcap: Path | None = None, *, numbered: bool = False
) -> None:
    """Raise before a run if one of its files could not be written after it, or if its log would replace another.

    A `numbered` log gets the next free name.
    """
    if plot:
        from anyhull.viz.plots import check_picture

        check_picture(plot)
    if animate:
        from anyhull.viz.animation import check_animation

        check_animation(animate)
    if out and out.suffix != ".npz":
        raise InputError(f"{out}: a log is saved as a NumPy archive: give a path that ends in .npz")
    if out and not numbered and out.is_file():
        raise InputError(f"{out}: exists, and a log is never replaced: give another path")
    if mcap:
        from anyhull.viz.foxglove import check_new
        from anyhull.viz.topics import import_foxglove

        check_new(mcap, ".mcap", "an MCAP file")
        import_foxglove()
    for path in (plot, animate, out, mcap):
        if path:
            check_writable(path)


def check_writable(path: Path) -> None:
    """Raise unless a file can be written there."""
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    try:
        if path.is_dir():
            raise IsADirectoryError(None, "Is a directory")
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        hint = "give a path in a folder you may write to"
        raise InputError(f"{path}: cannot be written: {error.strerror}; {hint}") from None


def write_files(
    log: Log, plot: Path | None, animate: Path | None, out: Path | None, mcap: Path | None = None
) -> dict[str, str]:
    """Write the files that were asked for; their paths by content."""
    from anyhull import viz

    files = {}
    if out:
        files["log"] = str(log.save(out))
    if mcap:
        from anyhull.viz.foxglove import write_mcap

        files["mcap"] = str(write_mcap(log, mcap))
    if plot:
        viz.plot(log, plot)
        files["plot"] = str(plot)
    if animate:
        with progress("drawing frames") as on_frame:
            files["animation"] = str(viz.animate(log, animate, on_frame=on_frame))
    return files
