"""`anyhull study`: the paper's tables and figures with ours beside them, in pieces that can be stopped and resumed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anyhull.cli.output import AsJson, new_table, open_console, print_json
from anyhull.cli.train import display, no_output
from anyhull.errors import InputError, unknown

if TYPE_CHECKING:
    from anyhull.study.tables import Table

WIDE = 140
"""Columns that the widest of these tables takes."""

EVERYTHING = "all"


def study(
    what: Annotated[str, typer.Argument(help="ideal, latent, sweep or field; all, with a report; or pieces, a list.")],
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1, help="Seeds of every learned method; by default 10 (ideal, latent), 3 (sweep, field), 2 (--quick)."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the result files; results, or out/quick with --quick.")
    ] = None,
    work: Annotated[
        Path | None, typer.Option(help="Folder of the training runs and checkpoints; by default runs/study.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Tiny sizes, to try the pipeline: the figures mean nothing.")
    ] = False,
    render: Annotated[
        bool, typer.Option("--render", help="Nothing is run: tables from the results that are there.")
    ] = False,
    piece: Annotated[list[str] | None, typer.Option("--piece", help="Do this piece alone; repeat for more.")] = None,
    commit: Annotated[str | None, typer.Option(help="What to write down as the commit where git cannot say.")] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="The report of all as Markdown; by default docs/results.md.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """The paper's tables and figures, and ours beside them."""
    from anyhull.study import tables
    from anyhull.study.learned import Plan
    from anyhull.study.pieces import STUDIES, carry_out, chosen, stored

    if what not in (accepted := (*STUDIES, EVERYTHING, "pieces")):
        raise InputError(unknown("study", what, accepted))
    if markdown and what != EVERYTHING:
        raise InputError(f"--markdown {markdown}: goes with 'study {EVERYTHING}', which writes the report")
    folder = out or Path("out/quick" if quick else "results")
    if what == "pieces":
        if seeds or piece or render or commit or work:
            raise InputError("study pieces: lists them, and takes --out, --quick and --json alone")
        _show_pieces(folder, as_json)
        return
    if render and piece:
        raise InputError("--render and --piece: with --render nothing is run; give one of them")
    studies = tuple(STUDIES) if what == EVERYTHING else (what,)
    left: list[str] = []
    if not render:
        todo = chosen(studies, piece or ())
        work = work or Path("runs/quick" if quick else "runs/study")
        with no_output(), display("study") as shown:
            left = carry_out(todo, Plan(folder, work, seeds or (2 if quick else 0), quick, commit, shown, _tell))
    found = {name: result for name, result in stored(folder).items() if result.study in studies}
    made = tables.of(found)
    written: dict[str, str] = {}
    if what == EVERYTHING:
        from anyhull.study.report import write

        page, text = folder / "report.html", markdown or (folder / "results.md" if quick else Path("docs/results.md"))
        write(found, page, text)
        written = {"report": str(page), "markdown": str(text)}
    if as_json:
        print_json({"left_out": left, "tables": [table.document() for table in made], "files": written})
        return
    _show(made)
    for name, path in written.items():
        open_console().print(f"{name}: {path}", soft_wrap=True)
    if left:
        print(f"left out: {', '.join(left)}", file=sys.stderr)


def _show_pieces(folder: Path, as_json: bool) -> None:
    """The pieces, and which of them are done."""
    from anyhull.study import results
    from anyhull.study.pieces import PIECES

    rows = [
        {"piece": name, "study": piece.study, "done": results.path_of(folder, name).exists()}
        for name, piece in PIECES.items()
    ]
    if as_json:
        print_json({"out": str(folder), "pieces": rows})
        return
    table = new_table(["piece", "study", "done"], left=("study", "done"))
    for row in rows:
        table.add_row(str(row["piece"]), str(row["study"]), "yes" if row["done"] else "")
    open_console().print(table)


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _show(made: list[Table]) -> None:
    console = open_console()
    console.width = max(console.width, WIDE)
    for table in made:
        console.print(table.title + "\n")
        drawn: Any = new_table(list(table.columns), left=("",), gap=3)
        for row in table.rows:
            drawn.add_row(*row)
        console.print(drawn)
        for note in table.notes:
            console.print(note)
        console.print()
