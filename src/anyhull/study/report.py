"""The report: one HTML page with everything in it, and the same as Markdown with pictures beside it.

What is said of the results by hand stands in OUT/notes/STUDY.md, paragraph by paragraph, and goes under the tables.
"""

from __future__ import annotations

import base64
import html
import io
import re
from pathlib import Path
from typing import TYPE_CHECKING

from anyhull.files import whole
from anyhull.study import figures, tables
from anyhull.study.pieces import PIECES
from anyhull.study.results import Result
from anyhull.study.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "anyhull: results beside the paper's"

HEADINGS = {
    "ideal": "Still water",
    "latent": "What the latent holds",
    "sweep": "One vessel scaled",
    "field": "The field",
}

INTRODUCTION = (
    "The paper is Cross-Platform Control for Autonomous Surface Vehicles via Adaptive Reinforcement Learning (Jiang, "
    "Bi, D'Andrea, Ramachandran). Every table has its figures and ours, and the command that makes it.",
    "What the paper leaves open and we chose: the size of the rectangle, how boats and references are drawn in "
    "training, the rates of the disturbances, Phase 2's length, the weights of the MPC, the vessel of the appendix. "
    "docs/differences.md has all of them with reasons.",
)

PICTURES = {
    "ideal": ("ideal",),
    "latent": ("scree", "readout", "estimate"),
    "sweep": ("scale", "drop"),
    "field": ("field",),
}
"""Figures of each study."""

STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #222; background: #fff; margin: 0 auto; padding: 1rem;
  max-width: 62rem; }
h1 { font-size: 1.5rem; line-height: 1.25; } h2 { font-size: 1.25rem; margin-top: 2.2rem; }
h3 { font-size: 1rem; margin: 1.4rem 0 .4rem; }
.wide { overflow-x: auto; -webkit-overflow-scrolling: touch; }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .7rem; text-align: right; white-space: nowrap; border-bottom: 1px solid #e4e4e4; }
th { border-bottom: 2px solid #222; font-weight: 600; vertical-align: bottom; }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0; background: #fff; }
td.text { text-align: left; }
p.note { font-size: .85rem; color: #555; margin: .4rem 0; }
figure { margin: 1.2rem 0; } figure img { width: 100%; max-width: 44rem; height: auto; }
figcaption { font-size: .85rem; color: #555; }
code { background: #f4f4f4; padding: .1rem .3rem; }
"""


HEAD = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>{style}</style></head>
<body>"""


def write(results: dict[str, Result], page: Path, markdown: Path) -> None:
    """Both forms of the report on these results."""
    made = tables.of(results)
    drawn = figures.of(results)
    notes = {study: _notes(page.parent / "notes" / f"{study}.md") for study in HEADINGS}
    studies = [study for study in HEADINGS if any(table.study == study for table in made)]
    pictures = markdown.parent / markdown.stem
    for name, (_, figure) in drawn.items():
        with whole(pictures / f"{name}.png") as temporary:
            figure.savefig(temporary, dpi=130)
    with whole(page) as temporary:
        temporary.write_text(_page(results, studies, made, drawn, notes), encoding="utf-8")
    with whole(markdown) as temporary:
        temporary.write_text(_markdown(results, studies, made, drawn, notes, pictures.name), encoding="utf-8")


def provenance(results: dict[str, Result]) -> Table:
    """What was made where, by what, in what time."""
    rows = tuple(
        (
            name,
            f"{result.seconds:.0f}" + " (resumed)" * result.resumed,
            str(result.hardware.get("device", result.hardware.get("processor", ""))),
            " ".join(
                f"{what} {version}" for what, version in result.versions.items() if what in ("python", "jax", "casadi")
            ),
            result.commit,
        )
        for name, result in results.items()
    )
    total = sum(result.seconds for result in results.values())
    ideal = sum(result.seconds for result in results.values() if result.study == "ideal")
    missing = [name for name in PIECES if name not in results]
    notes = (
        f"{total:.0f} s in all, {ideal:.0f} s of it the table in still water; compilation included.",
        *([f"Not run yet: {', '.join(missing)}."] if missing else []),
    )
    return Table("all", "Pieces", ("piece", "seconds", "on", "versions", "commit"), rows, notes)


def _notes(path: Path) -> list[str]:
    return [" ".join(part.split()) for part in path.read_text(encoding="utf-8").split("\n\n")] if path.exists() else []


Drawn = dict[str, tuple[str, "Figure"]]


def _page(
    results: dict[str, Result], studies: list[str], made: list[Table], drawn: Drawn, notes: dict[str, list[str]]
) -> str:
    body = [f"<h1>{TITLE}</h1>", *(f"<p>{_inline(text)}</p>" for text in INTRODUCTION)]
    for study in studies:
        body += [f"<h2>{HEADINGS[study]}</h2>", f"<p><code>anyhull study {study}</code></p>"]
        body += [_html_table(table) for table in made if table.study == study]
        body += [f"<p>{_inline(text)}</p>" for text in notes[study]]
        for name in PICTURES[study]:
            if name in drawn:
                caption, figure = drawn[name]
                image = f'<img alt="{html.escape(caption)}" src="data:image/svg+xml;base64,{_svg(figure)}">'
                body.append(f"<figure>{image}<figcaption>{html.escape(caption)}</figcaption></figure>")
    body += ["<h2>How it was made</h2>", _html_table(provenance(results))]
    return "\n".join([HEAD.format(title=TITLE, style=STYLE), *body, "</body></html>", ""])


def _html_table(table: Table) -> str:
    head = "".join(f"<th>{html.escape(column)}</th>" for column in table.columns)
    rows = "\n".join("<tr>" + "".join(_cell(cell) for cell in row) + "</tr>" for row in table.rows)
    notes = "".join(f'<p class="note">{_inline(note)}</p>' for note in table.notes)
    grid = f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>\n{rows}\n</tbody></table></div>'
    return f"<h3>{html.escape(table.title)}</h3>{grid}{notes}"


def _cell(text: str) -> str:
    number = re.match(r"-?\d", text)
    return f"<td>{html.escape(text)}</td>" if number else f'<td class="text">{html.escape(text)}</td>'


def _inline(text: str) -> str:
    """Text with `code` and **words** as HTML."""
    coded = re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False))
    return re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", coded)


def _svg(figure: Figure) -> str:
    import matplotlib as mpl

    buffer = io.BytesIO()
    # The same results give the same bytes: no date, and names that are not random.
    with mpl.rc_context({"svg.hashsalt": "anyhull"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return base64.b64encode(buffer.getvalue()).decode("ascii")


def _markdown(
    results: dict[str, Result],
    studies: list[str],
    made: list[Table],
    drawn: Drawn,
    notes: dict[str, list[str]],
    pictures: str,
) -> str:
    parts = [f"# {TITLE}", "Written by `anyhull study all --render` from `results/*.json`.", *INTRODUCTION]
    for study in studies:
        parts += [f"## {HEADINGS[study]}", f"```sh\nanyhull study {study}\n```"]
        parts += [_markdown_table(table) for table in made if table.study == study]
        parts += notes[study]
        parts += [f"![{drawn[name][0]}]({pictures}/{name}.png)" for name in PICTURES[study] if name in drawn]
    parts += ["## How it was made", _markdown_table(provenance(results))]
    return "\n\n".join(parts) + "\n"


def _markdown_table(table: Table) -> str:
    def line(cells: tuple[str, ...]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|").replace("*", "\\*") for cell in cells) + " |"

    grid = [line(table.columns), "|" + " --- |" * len(table.columns), *map(line, table.rows)]
    notes = [note.replace("*", "\\*") for note in table.notes]
    return "\n\n".join([f"### {table.title}", "\n".join(grid), *notes])
