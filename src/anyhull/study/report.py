"""The report: one self-contained HTML page, and the same as Markdown with its figures in a folder beside it.

Commentary is written by hand in OUT/notes/STUDY.md; its paragraphs go below the tables of that study.
"""

from __future__ import annotations

import base64
import html
import io
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from anyhull.files import atomic_write
from anyhull.study import figures, tables
from anyhull.study.figures import Picture
from anyhull.study.jobs import JOBS
from anyhull.study.results import Result
from anyhull.study.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "anyhull: results beside the paper's"

HEADINGS = {
    "ideal": "Ideal conditions",
    "latent": "Content of the latent",
    "sweep": "One vessel scaled",
    "field": "Field",
}

INTRODUCTION = (
    "The paper is Cross-Platform Control for Autonomous Surface Vehicles via Adaptive Reinforcement Learning (Jiang, "
    "Bi, D'Andrea, Ramachandran). Each table gives the paper's figures, ours and the command that reproduces ours.",
    "The paper leaves open: the size of the rectangle, the distributions of boats and references in training, the "
    "rates of the disturbances, the length of Phase 2, the weights of the MPC, the vessel of the appendix. "
    "docs/differences.md states our choices and their reasons.",
)

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

HEAD = f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{TITLE}</title><style>{STYLE}</style></head>
<body>"""


class Section(NamedTuple):
    """The part of the report on one study."""

    heading: str
    command: str
    tables: list[Table]
    comments: list[str]
    pictures: list[Picture]


def write(results: dict[str, Result], page: Path, markdown: Path) -> None:
    """Write both forms of the report on these results."""
    made, drawn = tables.of(results), figures.of(results)
    sections = [
        Section(
            heading,
            f"anyhull study {study}",
            [table for table in made if table.study == study],
            _comments(page.parent / "notes" / f"{study}.md"),
            [picture for picture in drawn if picture.study == study],
        )
        for study, heading in HEADINGS.items()
        if any(table.study == study for table in made)
    ]
    last = provenance(results)
    folder = markdown.parent / markdown.stem
    for picture in drawn:
        with atomic_write(folder / f"{picture.name}.png") as temporary:
            picture.figure.savefig(temporary, dpi=130)
    for path, text in ((page, _html(sections, last)), (markdown, _markdown(sections, last, folder.name))):
        with atomic_write(path) as temporary:
            temporary.write_text(text, encoding="utf-8")


def provenance(results: dict[str, Result]) -> Table:
    """Time, hardware, versions and commit of each job."""
    rows = tuple(
        (
            name,
            f"{result.seconds:.0f}" + " (resumed)" * result.resumed,
            str(result.hardware.get("device", result.hardware.get("processor", ""))),
            " ".join(
                f"{what} {result.versions[what]}" for what in ("python", "jax", "casadi") if what in result.versions
            ),
            result.commit,
        )
        for name, result in results.items()
    )
    total = sum(result.seconds for result in results.values())
    ideal = sum(result.seconds for result in results.values() if result.study == "ideal")
    missing = [name for name in JOBS if name not in results]
    notes = (
        f"{total:.0f} s in total, of which {ideal:.0f} s for ideal conditions; compilation included.",
        *([f"Not run yet: {', '.join(missing)}."] if missing else []),
    )
    return Table("all", "Jobs", ("job", "seconds", "hardware", "versions", "commit"), rows, notes)


def _comments(path: Path) -> list[str]:
    return [" ".join(part.split()) for part in path.read_text(encoding="utf-8").split("\n\n")] if path.exists() else []


def _html(sections: list[Section], last: Table) -> str:
    body = [f"<h1>{TITLE}</h1>", *(f"<p>{_inline(text)}</p>" for text in INTRODUCTION)]
    for section in sections:
        body += [f"<h2>{section.heading}</h2>", f"<p><code>{section.command}</code></p>"]
        body += map(_html_table, section.tables)
        body += [f"<p>{_inline(text)}</p>" for text in section.comments]
        for picture in section.pictures:
            caption = html.escape(picture.caption)
            image = f'<img alt="{caption}" src="data:image/svg+xml;base64,{_svg(picture.figure)}">'
            body.append(f"<figure>{image}<figcaption>{caption}</figcaption></figure>")
    body += ["<h2>Provenance</h2>", _html_table(last)]
    return "\n".join([HEAD, *body, "</body></html>", ""])


def _html_table(table: Table) -> str:
    head = "".join(f"<th>{html.escape(column)}</th>" for column in table.columns)
    rows = "\n".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in table.rows)
    notes = "".join(f'<p class="note">{_inline(note)}</p>' for note in table.notes)
    grid = f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>\n{rows}\n</tbody></table></div>'
    return f"<h3>{html.escape(table.title)}</h3>{grid}{notes}"


def _cell(text: str) -> str:
    kind = "" if re.match(r"-?\d", text) else ' class="text"'
    return f"<td{kind}>{html.escape(text)}</td>"


def _inline(text: str) -> str:
    """Text with `code` and **words** as HTML."""
    coded = re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False))
    return re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", coded)


def _svg(figure: Figure) -> str:
    import matplotlib as mpl

    buffer = io.BytesIO()
    # Equal results give equal bytes: no date, and no random names.
    with mpl.rc_context({"svg.hashsalt": "anyhull"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return base64.b64encode(buffer.getvalue()).decode("ascii")


def _markdown(sections: list[Section], last: Table, folder: str) -> str:
    parts = [f"# {TITLE}", "Written by `anyhull study all --render` from `results/*.json`.", *INTRODUCTION]
    for section in sections:
        parts += [f"## {section.heading}", f"```sh\n{section.command}\n```"]
        parts += map(_markdown_table, section.tables)
        parts += section.comments
        parts += [f"![{picture.caption}]({folder}/{picture.name}.png)" for picture in section.pictures]
    parts += ["## Provenance", _markdown_table(last)]
    return "\n\n".join(parts) + "\n"


def _markdown_table(table: Table) -> str:
    def line(cells: tuple[str, ...]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|").replace("*", "\\*") for cell in cells) + " |"

    grid = [line(table.columns), "|" + " --- |" * len(table.columns), *map(line, table.rows)]
    notes = [note.replace("*", "\\*") for note in table.notes]
    return "\n\n".join([f"### {table.title}", "\n".join(grid), *notes])
