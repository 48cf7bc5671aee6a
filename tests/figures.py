"""Tables of the documentation as data, and the stored records that their figures come from.

A generator of expected rows yields `row(...)` for a row whose figures come from records, and `stated(...)` for one
that has no record. `tests/test_figures.py` compares the rows with the page.
"""

import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
GENERATED = "docs/results.md"
"""Written by `anyhull study all --render`; compared as a whole."""
NUMBER = re.compile(r"\d+(?:\.\d+)?")


class Key(NamedTuple):
    """Where a table is: its page, the nearest heading above, and its first header cell that is not empty."""

    page: str
    heading: str
    column: str
    """With (2), (3) where a heading has several tables that begin alike."""


class Table(NamedTuple):
    """A Markdown table."""

    key: Key
    header: tuple[str, ...]
    rows: list[tuple[str, ...]]


class Row(NamedTuple):
    """A row that a page must have."""

    cells: tuple[str, ...]
    recorded: bool


def row(*cells: str) -> Row:
    """A row whose figures come from records."""
    return Row(tuple(" ".join(cell.split()) for cell in cells), True)


def stated(*cells: str) -> Row:
    """A row whose figures have no record."""
    return Row(row(*cells).cells, False)


@cache
def load(path: str) -> Any:
    return json.loads((ROOT / path).read_text(encoding="utf-8"))


def record(path: str) -> Any:
    """A record, by its path in the repository."""
    return load(path)


def benchmark(name: str) -> Any:
    return record(f"benchmarks/results/{name}.json")


def mean(boats: dict[str, dict[str, float]], what: str) -> float:
    """A metric's mean over boats."""
    return fmean(boat[what] for boat in boats.values())


def rounded(number: float, digits: int = 2) -> str:
    """With this many digits after the point, and from ten on with none."""
    return f"{number:.{digits}f}" if float(f"{number:.{digits}f}") < 10 else f"{number:.0f}"


def pages() -> Iterator[str]:
    """README and docs/, but for the page that is generated."""
    yield "README.md"
    for path in sorted((ROOT / "docs").rglob("*.md")):
        if (name := path.relative_to(ROOT).as_posix()) != GENERATED:
            yield name


def prose(text: str) -> str:
    """A page without its fenced blocks."""
    return re.sub(r"^([ \t]*)```.*?^\1```$", "", text, flags=re.MULTILINE | re.DOTALL)


def cells(line: str) -> tuple[str, ...]:
    """The cells of a table's line."""
    parts = re.split(r"(?<!\\)\|", line.strip())[1:-1]
    return tuple(" ".join(part.replace("\\|", "|").split()) for part in parts)


def line(parts: Iterable[str]) -> str:
    """A table's line."""
    return "| " + " | ".join(part.replace("|", "\\|") for part in parts) + " |"


def first(header: Iterable[str]) -> str:
    """The first header cell that is not empty."""
    return next((cell for cell in header if cell), "")


def tables(page: str, text: str) -> list[Table]:
    """The tables of a page."""
    found: list[Table] = []
    heading, lines = "", prose(text).splitlines()
    for i, here in enumerate(lines):
        if re.match(r"#+ ", here):
            heading = here.lstrip("#").strip()
        if i == 0 or not re.fullmatch(r"\s*\|(\s*:?-+:?\s*\|)+\s*", here):
            continue
        header = cells(lines[i - 1])
        key = Key(page, heading, first(header))
        if same := sum(table.key[:2] == key[:2] and first(table.header) == key.column for table in found):
            key = key._replace(column=f"{key.column} ({same + 1})")
        body = []
        for after in lines[i + 1 :]:
            if not after.lstrip().startswith("|"):
                break
            body.append(cells(after))
        found.append(Table(key, header, body))
    return found


def has_number(parts: Iterable[str]) -> bool:
    return any(re.search(r"\d", part) for part in parts)


def problems(table: Table, expected: Iterable[Row]) -> list[str]:
    """What differs between a page's table and the rows that its records give; rows without a digit do not count."""
    there = [part for part in table.rows if has_number(part)]
    wanted = [part.cells for part in expected if has_number(part.cells)]
    found = [f"the page has   {line(part)}" for part in there if part not in wanted]
    found += [f"the records give {line(part)}" for part in wanted if part not in there]
    return found or (["the same rows in another order, or twice"] if there != wanted else [])


def readable(text: str) -> str:
    """A page's running text in one line: of code the comments alone, no tables, no targets of links."""
    text = re.sub(r"^([ \t]*)```.*?^\1```$", comments, text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^\s*\|.*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"`[^`]*`", "", text)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    return " ".join(re.sub(r"https?://\S+", "", text).split())


def comments(block: re.Match[str]) -> str:
    """The comments of a fenced block."""
    return "\n".join(re.findall(r"# (.*)$", block[0], flags=re.MULTILINE))


def loose(text: str, phrases: Iterable[str]) -> list[str]:
    """Phrases that a page's running text lacks, and its numbers that stand in none of them."""
    text = readable(text)
    phrases = sorted((" ".join(phrase.split()) for phrase in phrases), key=len, reverse=True)
    found = [f"the text has no {phrase!r}" for phrase in phrases if phrase not in text]
    for phrase in phrases:
        text = text.replace(phrase, "…")
    return found + [
        f"a number that no record gives: {text[max(at.start() - 40, 0) : at.end() + 40]!r}"
        for at in NUMBER.finditer(text)
    ]


def changed(text: str) -> Iterator[str]:
    """The text with one of its numbers changed by one in its last place, for each number."""
    for number in NUMBER.finditer(text):
        last = number.end() - 1
        yield text[:last] + (str(int(text[last]) + 1) if text[last] != "9" else "8") + text[last + 1 :]
