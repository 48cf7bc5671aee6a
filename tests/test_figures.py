"""Every figure in README and in the tables of docs/ is that of a stored record, to its last place.

A table with a number is in one list: `MEASURED`, with the function that writes its rows from records, `SETTINGS`, which
measures nothing, or `UNRECORDED`, with the reason why there is no record.
"""

import json
import shutil

import figures
import pytest
from figures import ROOT, Key, Table, changed, has_number, line, loose, pages, problems, record, tables
from figures_boat import BOAT
from figures_control import CONTROL
from figures_lists import SETTINGS, UNRECORDED
from figures_speed import SPEED
from figures_study import PLAIN, STATED, STUDY, readme

MEASURED = {**STUDY, **CONTROL, **BOAT, **SPEED}
TEXTS = {page: (ROOT / page).read_text(encoding="utf-8") for page in pages()}
TABLES = {table.key: table for page, text in TEXTS.items() for table in tables(page, text)}
NUMBERED = {key for key, table in TABLES.items() if any(has_number(row) for row in table.rows)}

measured = pytest.mark.parametrize("key", MEASURED, ids=[" / ".join(key) for key in MEASURED])


def test_every_table_with_a_number_is_tied_to_a_record_or_listed_as_one_that_is_not():
    listed = {*MEASURED, *SETTINGS, *UNRECORDED}
    assert sorted(NUMBERED - listed) == [], (
        "tables in no list: write their rows from the record (MEASURED, tests/figures_*.py); "
        "or list them in tests/figures_lists.py, if nothing is measured (SETTINGS) or no record is stored (UNRECORDED)"
    )
    assert sorted(listed - NUMBERED) == [], "no page has such a table with a number: correct or remove the entry"
    assert len(listed) == len(MEASURED) + len(SETTINGS) + len(UNRECORDED), "a table is in two lists"


@measured
def test_a_tables_figures_are_those_of_its_records(key):
    if key not in TABLES:
        pytest.fail(f"no page has the table {' / '.join(key)}")
    found = problems(TABLES[key], MEASURED[key]())
    assert not found, "\n".join([" / ".join(key), *found])


@measured
def test_a_figure_changed_by_one_in_its_last_place_is_found(key):
    rows = list(MEASURED[key]())

    def found(bodies):
        text = "\n".join([f"# {key.heading}", "", line(header), line("---" for _ in header), *bodies])
        (table,) = tables(key.page, text)
        return problems(table, rows)

    header = ("first", *("other" for _ in rows[0].cells[1:]))
    bodies = [line(row.cells) for row in rows]
    assert found(bodies) == []
    for i, row in enumerate(rows):
        if row.recorded:
            for body in changed(bodies[i]):
                assert found([*bodies[:i], body, *bodies[i + 1 :]]), body


@measured
def test_the_rows_of_a_table_follow_its_records(key, monkeypatch):
    rows = list(MEASURED[key]())
    monkeypatch.setattr(figures, "load", lambda path: larger(json.loads((ROOT / path).read_text(encoding="utf-8"))))
    for before, after in zip(rows, MEASURED[key](), strict=True):
        assert (before.cells != after.cells) == before.recorded, before.cells


def larger(value):
    """A record with every number that is not whole made larger by half."""
    if isinstance(value, dict):
        return {key: larger(part) for key, part in value.items()}
    if isinstance(value, list):
        return [larger(part) for part in value]
    return 1.5 * value if isinstance(value, float) else value


def test_every_number_in_the_text_of_the_readme_is_that_of_a_record_or_a_plain_fact():
    found = loose(TEXTS["README.md"], [*readme(), *PLAIN, *STATED])
    assert not found, "\n".join(["README.md", *found])


def test_a_number_changed_in_the_text_of_the_readme_is_found():
    phrases = [*readme(), *PLAIN, *STATED]
    text = "\n\n".join(phrases)
    assert loose(text, phrases) == []
    for other in changed(text):
        assert loose(other, phrases)
    (found,) = loose(f"{text} It takes 3 s.", phrases)
    assert found.startswith("a number that no record gives: ")
    assert "It takes 3 s." in found


def test_code_and_links_hold_no_figures_but_comments_do_and_escaped_bars_no_cells():
    text = "Steer by [a page](docs/v2.md), `--runs 20`, https://a.org/3.\n\n```sh\nrun 4  # slowly\n```\n| 5 |\n"
    assert loose(text, []) == []
    assert len(loose(text.replace("slowly", "in 6 s"), [])) == 1
    (table,) = tables("p.md", "## Of\n```sh\n| a |\n| --- |\n```\n\n| | \\|x\\| |\n|---|---|\n| b | 1 |\n\ntext\n")
    assert table == Table(Key("p.md", "Of", "|x|"), ("", "|x|"), [("b", "1")])


def test_every_record_of_the_study_is_of_a_committed_state():
    records = {path.name: record(f"results/{path.name}") for path in sorted((ROOT / "results").glob("*.json"))}
    assert records
    assert {name: found["commit"] for name, found in records.items() if "+" in found["commit"]} == {}


def test_the_page_of_results_is_what_the_stored_results_give(tmp_path):
    pytest.importorskip("matplotlib")
    from anyhull.study import jobs, report

    shutil.copytree(ROOT / "results" / "notes", tmp_path / "notes")
    report.write(jobs.load(ROOT / "results"), tmp_path / "report.html", tmp_path / "results.md")
    written = (tmp_path / "results.md").read_text(encoding="utf-8")
    assert (ROOT / "docs" / "results.md").read_text(encoding="utf-8") == written
