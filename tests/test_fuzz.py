"""Readers accept a file or refuse it in one line: kept inputs that once broke something, and a short fuzz of each."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

from fuzz import outcome  # noqa: E402
from fuzz_targets import CORPUS, TARGETS  # noqa: E402

INPUTS = {"decoder": 2000, "journal": 100, "mission": 200, "cli": 40}
"""Inputs of a short run, 300 for other targets; `benchmarks/results/fuzz.json` has the long ones."""

KEPT = [path for path in sorted(CORPUS.glob("*/*")) if path.is_file()]


@pytest.mark.parametrize("path", KEPT, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_a_kept_input_is_accepted_or_refused_in_one_line(path):
    expected = ("refused", "accepted") if path.name.startswith("found-") else ("accepted",)
    assert outcome(TARGETS[path.parent.name], path) in expected


def test_the_corpus_has_valid_files_and_stays_small():
    assert {path.parent.name for path in KEPT if not path.name.startswith("found-")} >= {"toml", "mission", "result"}
    assert sum(path.stat().st_size for path in KEPT) < 300_000


@pytest.mark.parametrize("target", TARGETS)
def test_damaged_input_is_refused_in_one_line_within_a_second_and_200_mb(target):
    command = [sys.executable, "fuzz.py", "--target", target, "--inputs", str(INPUTS.get(target, 300)), "--seed", "1"]
    run = subprocess.run(command, cwd=BENCHMARKS, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stdout + run.stderr
    assert " 0 findings" in run.stdout


def test_a_reader_that_raises_another_error_or_is_slow_is_found(tmp_path, monkeypatch):
    # The fuzzer itself must be able to fail.
    def raises(path):
        raise KeyError("x")

    def spins(path):
        while True:
            pass

    path = tmp_path / "fuzz-input.json"
    path.write_text("{}")
    target = TARGETS["result"]
    for read, finding in ((raises, "KeyError at test_fuzz.py"), (spins, "OutOfTime at test_fuzz.py")):
        monkeypatch.setattr("fuzz.SECONDS", 0.05)
        assert outcome(type(target)(read, target.mutate, target.suffixes), path).startswith(finding)
