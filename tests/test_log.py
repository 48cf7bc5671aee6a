"""The file of a run: what it keeps, and what is refused."""

import io
import json
import zipfile
from typing import Any

import numpy as np
import pytest

from anyhull import InputError
from anyhull.cli import main
from anyhull.log import FORMAT, SENSORS, SHAPES, Log, Recorder
from anyhull.onboard.recorder import FORMAT as JOURNAL_FORMAT


@pytest.fixture
def log():
    """Three rows."""
    recorder = Recorder()
    for k in range(3):
        recorder.add(time=0.1 * k, state=np.full(6, 0.5 * k), command=np.zeros(3), latent=np.ones(4))
    return recorder.log({"vessel": "Dinghy"})


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewrite(path, **changed):
    """Replace arrays, given as arrays, or as the bytes of a .npy; None removes one."""
    content = members(path)
    for name, value in changed.items():
        if value is None:
            del content[f"{name}.npy"]
        elif isinstance(value, bytes):
            content[f"{name}.npy"] = value
        else:
            file = io.BytesIO()
            np.save(file, value)
            content[f"{name}.npy"] = file.getvalue()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            archive.writestr(name, data)


def test_a_log_is_read_as_it_was_written(log, tmp_path):
    read = Log.load(log.save(tmp_path / "run.npz"))
    assert read.about == {"vessel": "Dinghy"}
    for name in ("time", "state", "reference", "command", "current", "force", "latent"):
        np.testing.assert_array_equal(getattr(read, name), getattr(log, name))
    assert read.estimate is None


def npy(header, data=b""):
    text = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"state": None}, "'state'"),
        ({"state": np.zeros((2, 6))}, r"state has shape \(2, 6\): must be \(n, 6\)"),
        ({"latent": np.zeros(3)}, r"latent has shape \(3,\)"),
        ({"estimate": np.zeros((3, 5))}, r"estimate has shape \(3, 5\): must be \(n, 6\)"),
        ({"time": np.zeros(0)}, r"time has shape \(0,\)"),
        ({"time": np.array([0.0, 0.2, 0.1])}, "time runs backward"),
        ({"state": np.full((3, 6), np.nan)}, r"state must hold double-precision numbers up to 1e\+12"),
        ({"force": np.full((3, 3), 1e300)}, "force must hold double-precision"),
        ({"state": np.zeros((3, 6), np.float32)}, "state must hold double-precision"),
        ({"state": np.zeros((3, 6), np.int64)}, "an array int64"),
        ({"about": np.array("[1]")}, "about is not a table"),
        ({"about": np.array(json.dumps({"format": FORMAT + 1}))}, "format = 2: must be 1"),
        ({"about": np.array("[" * 20_000)}, "maximum recursion"),
        ({"state": npy("{'descr': '|O', 'fortran_order': False, 'shape': (3, 6), }")}, "an array object"),
        # 48 GB by the header, none in the file.
        ({"state": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000, 6), }")}, "an array float64"),
        ({"state": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (")}, ".*EOF"),
    ],
)
def test_a_damaged_log_is_refused_by_name(log, tmp_path, changed, complaint):
    path = log.save(tmp_path / "run.npz")
    rewrite(path, **changed)
    with pytest.raises(InputError, match=rf"run\.npz: (not a log of a run, or damaged: )?{complaint}"):
        Log.load(path)


def test_a_small_file_that_expands_to_much_is_refused_before_it_is_read(log, tmp_path):
    # 80 MB of zeros take 80 kB: more than the 64 MB of a small file, and than 20 times its size.
    path = log.save(tmp_path / "run.npz")
    rewrite(path, state=np.zeros((80_000_000 // 48, 6)))
    assert path.stat().st_size < 200_000
    with pytest.raises(InputError, match=r"run\.npz: expands to 80 MB: must be at most 64 MB"):
        Log.load(path)


def test_a_log_is_summed_up_drawn_and_written_as_csv(tmp_path, capsys):
    file, table = tmp_path / "run.npz", tmp_path / "run.csv"
    assert main(["simulate", "--reference", "line", "--length", "3", "--controller", "field", "--out", str(file)]) == 0
    capsys.readouterr()
    assert main(["log", str(file), "--csv", str(table), "--plot", str(tmp_path / "run.png")]) == 0
    shown, log = capsys.readouterr().out, Log.load(file)
    assert f"{log.metrics().position_cm:.2f}" in shown
    header, *rows = table.read_text().splitlines()
    names, numbers = header.split(","), np.array([row.split(",") for row in rows], float)
    np.testing.assert_allclose(numbers[:, names.index("state psi [rad]")], log.state[:, 2], atol=1e-9)
    np.testing.assert_allclose(numbers[:, names.index("command yaw [-]")], log.command[:, 2], atol=1e-9)
    assert numbers.shape == (len(log.time), 1 + 6 + 6 + 3 + 2 + 3 + 16 + 18)
    assert main(["log", str(file), "--csv", str(table)]) == 2
    assert "run.csv: exists, and is not replaced" in capsys.readouterr().err


def test_a_log_of_a_killed_run_is_that_of_its_journal(tmp_path, capsys):
    file = tmp_path / "run.jsonl"
    header = json.dumps({"format": JOURNAL_FORMAT, "about": {"vessel": "Test boat"}})
    rows = [json.dumps([0.1 * k, 0.1 * k, 1, 1e9, k, *[0.0] * 16, *[None] * 8, [], [], [], []]) for k in range(5)]
    file.write_text("\n".join([header, *rows, '{"event": [1.0, "fence", "0.1 m outside"]}', "damaged"]))
    assert main(["log", str(file), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    # 0, 1, 2, 3 and 4 m off along x.
    assert found["metrics"]["estimated"]["position_cm"] == pytest.approx(200)
    assert (found["periods"], found["events"]) == (5, [[1.0, "fence", "0.1 m outside"]])
    assert main(["log", str(file)]) == 0
    assert "Test boat, 0.4 s, 5 periods, ended: killed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("about", "words"),
    [({"events": [1]}, "events[0] = 1"), ({"following": "abc"}, "following = 'abc'"), ({"events": [[1, 2, 3]]}, "= 2")],
)
def test_a_log_with_an_odd_description_is_refused_in_one_line(tmp_path, capsys, about, words):
    zeros = np.zeros((2, 6))
    run = Log(np.arange(2.0), zeros, zeros, zeros[:, :3], zeros[:, :2], zeros[:, :3], about=about)
    assert main(["log", str(run.save(tmp_path / "odd.npz"))]) == 2
    error = capsys.readouterr().err
    assert "odd.npz: " in error
    assert words in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.longdouble])
def test_numbers_of_another_size_are_refused_before_they_are_looked_at(tmp_path, kind):
    rows: dict[str, Any] = {name: np.zeros((2, *shape)) for name, shape in SHAPES.items()}
    wild = np.full((2, len(SENSORS)), np.finfo(kind).max, kind)
    file = tmp_path / "run.npz"
    np.savez(file, about=json.dumps({"format": FORMAT}), **rows, sensors=wild)
    with pytest.raises(InputError, match="sensors must hold double-precision numbers"):
        Log.load(file)
