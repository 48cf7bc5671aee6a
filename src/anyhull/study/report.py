"""The report: one self-contained HTML page, and the same as Markdown with its figures in a folder beside it.

Commentary is written by hand in OUT/notes/STUDY.md; its paragraphs go below the tables of that study.
"""

from __future__ import annotations

import html
from pathlib import Path
from typing import NamedTuple

from anyhull.files import atomic_write
from anyhull.study import figures, tables
from anyhull.study.entries import Table
from anyhull.study.figures import Picture
from anyhull.study.jobs import JOBS
from anyhull.study.results import Result
from anyhull.viz.page import html_figure, html_page, html_table, inline

TITLE = "anyhull: results beside the paper's"

HEADINGS = {
    "claims": "The paper's claims",
    "ideal": "Ideal conditions",
    "latent": "Content of the latent",
    "sweep": "One vessel scaled",
    "field": "Field",
    "budgets": "Budgets",
}

COMMANDS = {"claims": "anyhull study all --render", "budgets": "anyhull study all"}
"""Where it is not `anyhull study` with the study's name."""

INTRODUCTION = (
    "The paper is Cross-Platform Control for Autonomous Surface Vehicles via Adaptive Reinforcement Learning (Jiang, "
    "Bi, D'Andrea, Ramachandran). Each table gives the paper's figures, ours and the command that reproduces ours.",
    "The paper leaves open: the size of the rectangle, the start of a lap, the distributions of boats and references "
    "in training, the rates of the disturbances, the length of Phase 2, the weights of the MPC, the vessel of the "
    "appendix. docs/differences.md states our choices and their reasons.",
)


STYLE = "body { max-width: 84rem; } p { max-width: 62rem; }"
"""The tables of the study are wide."""


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
            COMMANDS.get(study, f"anyhull study {study}"),
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
    body = [f"<h1>{TITLE}</h1>", *(f"<p>{inline(text)}</p>" for text in INTRODUCTION)]
    for section in sections:
        body += [f"<h2>{section.heading}</h2>", f"<p><code>{section.command}</code></p>"]
        body += map(_html_table, section.tables)
        body += [f"<p>{inline(text)}</p>" for text in section.comments]
        body += [html_figure(picture.figure, picture.caption) for picture in section.pictures]
    return html_page(TITLE, [*body, "<h2>Provenance</h2>", _html_table(last)], STYLE)


def _html_table(table: Table) -> str:
    notes = "".join(f'<p class="note">{inline(note)}</p>' for note in table.notes)
    return f"<h3>{html.escape(table.title)}</h3>{html_table(table.columns, table.rows)}{notes}"


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
