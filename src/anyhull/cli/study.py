"""`anyhull study`: the paper's tables and figures with ours beside them, in pieces that can be stopped and resumed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anyhull.cli.output import AsJson, new_table, open_console, print_json
from anyhull.cli.train import display, no_output
from anyhull.errors import InputError

if TYPE_CHECKING:
    from anyhull.study.tables import Table

WIDE = 140
"""Columns that the widest of these tables takes."""

app = typer.Typer(help="The paper's tables and figures, and ours beside them.", no_args_is_help=True)

Seeds = Annotated[int | None, typer.Option(min=1, help="Seeds of every learned method; 10, or 2 with --quick.")]
Out = Annotated[Path | None, typer.Option(help="Folder of the result files; results, or out/quick with --quick.")]
Work = Annotated[Path | None, typer.Option(help="Folder of the training runs and checkpoints; by default runs/study.")]
Quick = Annotated[bool, typer.Option("--quick", help="Tiny sizes, to try the pipeline: the figures mean nothing.")]
Render = Annotated[bool, typer.Option("--render", help="Nothing is run: tables from the results that are there.")]
Pieces = Annotated[list[str] | None, typer.Option("--piece", help="Do this piece alone; repeat for more.")]
Commit = Annotated[str | None, typer.Option(help="What to write down as the commit where git cannot say.")]
Markdown = Annotated[Path | None, typer.Option(help="The report as Markdown; by default docs/results.md.")]


@app.command("ideal")
def ideal(
    seeds: Seeds = None,
    out: Out = None,
    work: Work = None,
    quick: Quick = False,
    render: Render = False,
    piece: Pieces = None,
    commit: Commit = None,
    as_json: AsJson = False,
) -> None:
    """The simulation table: every method on the five platforms in still water."""
    _study(("ideal",), seeds, out, work, quick, render, piece, commit, as_json)


@app.command("latent")
def latent(
    seeds: Seeds = None,
    out: Out = None,
    work: Work = None,
    quick: Quick = False,
    render: Render = False,
    piece: Pieces = None,
    commit: Commit = None,
    as_json: AsJson = False,
) -> None:
    """What the latent holds: principal components, what can be read out of it, how fast it is found."""
    _study(("latent",), seeds, out, work, quick, render, piece, commit, as_json)


@app.command("sweep")
def sweep(
    seeds: Seeds = None,
    out: Out = None,
    work: Work = None,
    quick: Quick = False,
    render: Render = False,
    piece: Pieces = None,
    commit: Commit = None,
    as_json: AsJson = False,
) -> None:
    """The appendix: one vessel scaled, one latent number, and a drop of the scale under way."""
    _study(("sweep",), seeds, out, work, quick, render, piece, commit, as_json)


@app.command("field")
def field(
    seeds: Seeds = None,
    out: Out = None,
    work: Work = None,
    quick: Quick = False,
    render: Render = False,
    piece: Pieces = None,
    commit: Commit = None,
    as_json: AsJson = False,
) -> None:
    """The table of the field: Platforms A and B in the field sea and in the sea-trial twin."""
    _study(("field",), seeds, out, work, quick, render, piece, commit, as_json)


@app.command("all")
def every(
    seeds: Seeds = None,
    out: Out = None,
    work: Work = None,
    quick: Quick = False,
    render: Render = False,
    piece: Pieces = None,
    commit: Commit = None,
    markdown: Markdown = None,
    as_json: AsJson = False,
) -> None:
    """All of it, and the report: OUT/report.html, and the same as Markdown."""
    from anyhull.study.pieces import STUDIES

    _study(tuple(STUDIES), seeds, out, work, quick, render, piece, commit, as_json, report=True, markdown=markdown)


@app.command("pieces")
def pieces(out: Out = None, quick: Quick = False, as_json: AsJson = False) -> None:
    """The pieces, and which of them are done."""
    from anyhull.study import results
    from anyhull.study.pieces import PIECES

    folder = _out(out, quick)
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


def _out(out: Path | None, quick: bool) -> Path:
    return out or Path("out/quick" if quick else "results")


def _study(
    studies: tuple[str, ...],
    seeds: int | None,
    out: Path | None,
    work: Path | None,
    quick: bool,
    render: bool,
    names: list[str] | None,
    commit: str | None,
    as_json: bool,
    report: bool = False,
    markdown: Path | None = None,
) -> None:
    """Carry out the pieces of `studies`, then show their tables; with `report`, write the report."""
    from anyhull.study import tables
    from anyhull.study.learned import Plan
    from anyhull.study.pieces import carry_out, chosen, stored

    folder = _out(out, quick)
    if render and names:
        raise InputError("--render and --piece: with --render nothing is run; give one of them")
    left: list[str] = []
    if not render:
        todo = chosen(studies, names or ())
        plan = Plan(folder, work or Path("runs/quick" if quick else "runs/study"), seeds or (2 if quick else 10), quick)
        with no_output(), display("study") as shown:
            plan = Plan(plan.out, plan.work, plan.seeds, quick, commit, shown, _tell)
            left = carry_out(todo, plan)
    found = {name: result for name, result in stored(folder).items() if result.study in studies}
    made = tables.of(found)
    written: dict[str, str] = {}
    if report:
        from anyhull.study.report import write

        page, text = folder / "report.html", markdown or (folder / "results.md" if quick else Path("docs/results.md"))
        write(found, page, text)
        written = {"report": str(page), "markdown": str(text)}
    if as_json:
        print_json({"left_out": left, "tables": [table.document() for table in made], "files": written})
        return
    _show(made)
    for what, path in written.items():
        open_console().print(f"{what}: {path}", soft_wrap=True)
    if left:
        print(f"left out: {', '.join(left)}", file=sys.stderr)


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
