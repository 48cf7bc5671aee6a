"""The journal of a run: on a good disk, a full one, a slow one, after damage, and when it is resumed."""

import errno
import json
import os
import resource
import threading
import time

import numpy as np
import pytest
from pond import BOAT, run

from anyhull.cli import main
from anyhull.cli.records import free_path, resumed_at, save_killed, save_log, set_aside
from anyhull.control import PID
from anyhull.errors import InputError, RunError
from anyhull.log import Log
from anyhull.mission import Mission
from anyhull.onboard import journal as journals
from anyhull.onboard.autopilot import Autopilot
from anyhull.onboard.journal import Journal
from anyhull.onboard.recorder import COLUMNS, FORMAT, RunRecorder, keep_progress, last_of, recover
from anyhull.onboard.setup import Setup
from anyhull.pilot import Pilot
from anyhull.reference import line

HEADER = json.dumps({"format": FORMAT, "about": {"vessel": "Test boat", "mission": "m"}}).encode() + b"\n"


def period(time, progress=0.0, following=1, latent=()):
    arrays: list[list[float]] = [[0.5, -0.5], [], [], list(latent)]
    return json.dumps([time, progress, following, *[0.5] * (COLUMNS - 3), *arrays]).encode() + b"\n"


def written(path, *lines, header=HEADER):
    path.write_bytes(header + b"".join(lines))
    return path


def wait_until(condition, seconds=5.0):
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, "waited in vain"
        time.sleep(0.005)


def test_a_journal_holds_the_log_and_loses_only_a_torn_line(tmp_path):
    path = tmp_path / "run.jsonl"
    log, _, _ = run(line(0.5, speed=0.3), Pilot.load("field"), journal=path)
    again = recover(path)
    recorded = (
        "time",
        "epoch",
        "state",
        "reference",
        "command",
        "current",
        "sensors",
        "thrusters",
        "dynamics",
        "latent",
    )
    for name in recorded:
        np.testing.assert_array_equal(getattr(again, name), getattr(log, name))
    assert again.latent is not None
    assert again.latent.shape == (len(log.time), 16)
    assert again.about["events"] == log.about["events"]
    assert again.about["following"] == log.about["following"]
    assert (again.about["ended"], last_of(path).ended) == ("arrived", "arrived")
    data = path.read_bytes()
    lines = data.splitlines(keepends=True)
    periods = sum(entry.startswith(b"[") for entry in lines)
    assert periods == len(log.time)
    # A period is 650 bytes with a latent of 16: a day is 560 MB.
    assert max(map(len, lines[1:])) < 700
    torn = written(tmp_path / "torn.jsonl", data[: data.rindex(b"\n[") + 30], header=b"")
    assert len(recover(torn).time) == periods - 1


def test_a_run_without_a_journal_leaves_no_file_and_has_the_same_log(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    log, _, _ = run(line(0.5, speed=0.3))
    assert len(log.time) > 20
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "damage",
    [
        b"\0" * 1000 + b"\n",
        b"[1,2,3]\n",
        b'{"event":[1,2]}\n',
        b"[" * 60_000 + b"\n",
        b'"' + b"x" * 10_000_000 + b'"\n',
        b"\xff\xfe\x00\xd8\n",
        b"null\n",
        b"1" * 5000 + b"\n",
        period(0.15),
        period(1e308),
        period(float("nan")),
        period(0.3, latent=["x"]),
        period(0.3).replace(b"0.5", b"null", 1),
        period(0.3).replace(b"0.5", b"1" + b"0" * 400, 1),
        HEADER,
    ],
    ids=range(15),
)
def test_what_stands_before_damage_is_kept(tmp_path, damage):
    lines = [period(0.1), period(0.2, progress=7.0)]
    path = written(tmp_path / "run.jsonl", *lines, damage, period(0.4), period(0.5))
    assert recover(path).time.tolist() == [0.1, 0.2]
    assert last_of(path).progress == 7.0
    # The next segment is read again.
    written(tmp_path / "run.jsonl.1", period(0.6))
    assert recover(path).time.tolist() == [0.1, 0.2, 0.6]


@pytest.mark.parametrize("content", [b"", b"\0" * 100, period(0.1), HEADER[:20], b'{"format":3,"about":7}\n'])
def test_a_journal_without_a_header_holds_nothing(tmp_path, content):
    path = written(tmp_path / "run.jsonl", content, header=b"")
    assert len(recover(path).time) == 0
    assert last_of(path).progress is None


def test_a_journal_of_another_format_or_none_is_refused_in_one_line(tmp_path):
    path = written(tmp_path / "run.jsonl", header=b'{"format":2,"about":{}}\n')
    with pytest.raises(InputError, match=r"run\.jsonl: format = 2: must be 4"):
        recover(path)
    with pytest.raises(InputError, match=r"no\.jsonl: cannot be read"):
        recover(tmp_path / "no.jsonl")


def test_the_latent_is_there_only_if_every_period_has_it(tmp_path):
    lines = [period(0.1 * k, latent=[1.0, 2.0]) for k in range(3)]
    latent = recover(written(tmp_path / "a.jsonl", *lines)).latent
    assert latent is not None
    assert latent.tolist() == [[1.0, 2.0]] * 3
    assert recover(written(tmp_path / "b.jsonl", *lines, period(0.4))).latent is None


def test_the_periods_on_the_reference_are_intervals_of_time(tmp_path):
    flags = [0, 1, 1, 0, 1]
    path = written(tmp_path / "run.jsonl", *(period(k / 10, following=flag) for k, flag in enumerate(flags)))
    assert recover(path).about["following"] == [[0.1, 0.2], [0.4, 0.4]]


def test_a_long_journal_is_recovered_in_little_memory(tmp_path):
    # A tenth of a day.
    one = period(0.0, latent=[0.123456] * 16)
    count = 86_400
    with (tmp_path / "run.jsonl").open("wb") as file:
        file.write(HEADER)
        file.writelines(one.replace(b"[0.0", b"[%.1f" % (k / 10), 1) for k in range(count))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    log = recover(tmp_path / "run.jsonl")
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert len(log.time) == count
    # 36 numbers of 8 bytes are 288 bytes a period, 25 MB; lists of objects would be four times that.
    assert grown < 60


def test_segments_follow_one_another_and_the_oldest_goes_when_the_disk_is_full(tmp_path, monkeypatch):
    monkeypatch.setattr(journals, "SEGMENT", 4000)
    limit, usual = 20_000, os.write

    def write(file, data):
        held = sum(path.stat().st_size for path in tmp_path.iterdir())
        if held + len(data) > limit:
            raise OSError(errno.ENOSPC, "No space left on device")
        return usual(file, data)

    monkeypatch.setattr(os, "write", write)
    path = tmp_path / "run.jsonl"
    journal = Journal(path, HEADER)
    for k in range(400):
        journal.write(period(k / 10))
    assert journal.close()
    times = recover(path).time
    assert len(journals.segments(path)) > 2
    assert not path.exists()
    assert times[-1] == pytest.approx(39.9)
    assert np.diff(times) == pytest.approx(0.1)
    assert len(times) * len(period(1.0)) > limit / 2
    assert all(report.startswith("disk full, oldest ") for report in journal.reports())
    assert journal.dropped == 0


def test_a_disk_that_is_full_from_the_start_keeps_the_newest_in_memory_until_there_is_space(tmp_path, monkeypatch):
    monkeypatch.setattr(journals, "MEMORY", 50)
    monkeypatch.setattr(journals, "RETRY", 0.01)
    full, usual = [True], os.write

    def write(file, data):
        if full[0]:
            usual(file, data[:10])  # half a line
            raise OSError(errno.ENOSPC, "No space left on device")
        return usual(file, data)

    monkeypatch.setattr(os, "write", write)
    path = tmp_path / "run.jsonl"
    journal = Journal(path, HEADER)
    for k in range(200):
        journal.write(period(k / 10))
        wait_until(journal._queue.empty)
    wait_until(lambda: journal.dropped == 150)
    full[0] = False
    wait_until(lambda: not journal.unwritten)
    journal.write(period(30.0))
    assert journal.close()
    assert recover(path).time == pytest.approx([*np.arange(150, 200) / 10, 30.0])
    assert list(journal.reports()) == ["disk full, the newest 0 min are kept in memory", "written again"]


def test_a_disk_that_hangs_delays_nobody_and_its_lines_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(journals, "MEMORY", 50)
    monkeypatch.setattr(journals, "PATIENCE", 0.05)
    hangs, usual = threading.Event(), os.write

    def write(file, data):
        if data != HEADER:
            hangs.wait(20.0)
        return usual(file, data)

    monkeypatch.setattr(os, "write", write)
    journal = Journal(tmp_path / "run.jsonl", HEADER)
    for k in range(100):
        journal.write(period(k / 10))
    assert 49 <= journal.dropped <= 50  # the writer may have taken one
    assert not journal.close()
    hangs.set()


def test_an_error_other_than_a_full_disk_deletes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(journals, "SEGMENT", 1000)
    usual, broken = os.write, [False]

    def write(file, data):
        if broken[0]:
            raise OSError(errno.EIO, "Input/output error")
        return usual(file, data)

    monkeypatch.setattr(os, "write", write)
    path = tmp_path / "run.jsonl"
    journal = Journal(path, HEADER)
    for k in range(30):
        journal.write(period(k / 10))
    wait_until(lambda: journal._queue.empty() and not journal.unwritten)
    broken[0] = True
    journal.write(period(4.0))
    assert journal.close()
    assert len(recover(path).time) == 30
    assert list(journal.unwritten) == [period(4.0)]
    assert next(journal.reports()).startswith("Input/output error, the newest")


def test_a_journal_that_is_deleted_goes_on_in_another_file(tmp_path):
    path = tmp_path / "run.jsonl"
    journal = Journal(path, HEADER)
    journal.write(period(0.1))
    wait_until(lambda: journal._queue.empty() and not journal.unwritten)
    path.unlink()
    journal.write(period(0.2))
    journal.close()
    assert recover(path).time.tolist() == [0.2]


def test_a_full_disk_does_not_stop_the_boat_and_the_log_is_whole(tmp_path, monkeypatch):
    def write(file, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", write)
    log, autopilot, _ = run(line(0.5, speed=0.3), journal=tmp_path / "run.jsonl")
    assert autopilot.phase == "arrived"
    assert log.about["ended"] == "arrived"
    assert len(log.time) > 30
    assert ["journal", "disk full, the newest 10 min are kept in memory"] in [e[1:] for e in log.about["events"]]


def test_a_journal_in_use_is_kept_and_one_that_cannot_be_read_is_set_aside(tmp_path, capsys):
    setup, out = Setup.load(BOAT), tmp_path / "run.npz"
    recorder = RunRecorder(Autopilot(setup, PID(setup.vessel), line(1.0)), out.with_suffix(".jsonl"))
    ports = ["--listen", "127.0.0.1:0", "--peer", "127.0.0.1:9"]
    assert main(["pilot", str(BOAT), "--out", str(out), *ports]) == 2
    assert "run.jsonl: another pilot writes to it: give another --out" in capsys.readouterr().err
    recorder.close()
    said: list[str] = []
    last = set_aside(out, said.append)
    assert last is not None
    assert last.progress is None
    save_killed(out, said.append)
    assert "run-killed-1.jsonl: holds no period; renamed to" in said[-1]
    written(out.with_suffix(".jsonl"), header=b'{"format":2,"about":{}}\n')
    assert set_aside(out, said.append) is None
    assert said[-1].endswith("run-killed-2.jsonl: format = 2: must be 4, which this version reads; the file is kept")
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["run-killed-1.damaged", "run-killed-2.jsonl"]


def test_the_journals_of_killed_runs_become_logs_with_names_of_their_own(tmp_path):
    out, said = tmp_path / "run.npz", list[str]()
    (tmp_path / "run-killed-1.npz").write_text("an older one")
    for progress in (3.0, 4.0):
        written(tmp_path / "run.jsonl", period(0.1))
        written(tmp_path / "run.jsonl.1", period(0.2, progress=progress))
        last = set_aside(out, said.append)
        assert last is not None
        assert (last.progress, last.ended, last.about["mission"]) == (progress, "", "m")
    save_killed(out, said.append, most=10)
    assert sorted(path.name for path in tmp_path.iterdir())[1] == "run-killed-2.jsonl"
    save_killed(out, said.append)
    logs = [Log.load(tmp_path / f"run-killed-{i}.npz") for i in (2, 3)]
    assert [log.about["progress"] for log in logs] == [3.0, 4.0]
    assert (tmp_path / "run-killed-1.npz").read_text() == "an older one"
    assert len(list(tmp_path.iterdir())) == 3


def test_a_log_for_which_its_disk_has_no_space_is_saved_among_the_temporary_files(tmp_path, monkeypatch):
    (tmp_path / "spare").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "spare"))
    log, said = recover(written(tmp_path / "a.jsonl", period(0.1))), list[str]()
    usual, full = Log.save, [tmp_path]

    def save(self, path):
        if path.parent in full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return usual(self, path)

    monkeypatch.setattr(Log, "save", save)
    saved = save_log(log, tmp_path / "run.npz", said.append)
    assert saved == tmp_path / "spare" / "run.npz"
    assert said == [f"{tmp_path / 'run.npz'}: cannot be written: No space left on device"]
    full.append(tmp_path / "spare")
    with pytest.raises(RunError, match=r"run\.npz: cannot be written: the record stays in .*run\.jsonl"):
        save_log(log, tmp_path / "run.npz", said.append)


def test_a_log_never_takes_the_place_of_another(tmp_path):
    out = tmp_path / "run.npz"
    for name in ("run.npz", "run-2.npz", "run-3.npz"):
        assert free_path(out).name == name
        free_path(out).write_text("")


def test_a_journal_that_cannot_be_saved_for_want_of_space_is_kept(tmp_path, monkeypatch):
    out, said = tmp_path / "run.npz", list[str]()
    written(tmp_path / "run-killed-1.jsonl", period(0.1))

    def save(self, path):
        raise InputError(f"{path}: cannot be written: No space left on device")

    monkeypatch.setattr(Log, "save", save)
    save_killed(out, said.append)
    assert [path.name for path in tmp_path.iterdir()] == ["run-killed-1.jsonl"]
    assert said[-1].endswith("No space left on device; the file is kept")


@pytest.mark.parametrize("resumed", [7.5, "abc", [1], None, -3.0, 1e9, float("nan")])
def test_a_run_that_sigterm_ended_is_resumed_where_it_was(tmp_path, resumed):
    out, said, mission = tmp_path / "run.npz", list[str](), Mission.of(line(10.0, speed=0.6))
    keep_progress(out.with_suffix(".jsonl"), {"mission": mission.digest}, resumed, "SIGTERM")
    last = set_aside(out, said.append)
    assert resumed_at(last, mission, False, said.append) == (7.5 if resumed == 7.5 else 0.0)
    assert resumed_at(last, mission, True, said.append) == 0.0
    save_killed(out, said.append)
    assert list(tmp_path.iterdir()) == []


def test_a_second_run_gets_a_name_of_its_own_and_a_plan_needs_none(tmp_path, capsys):
    out = tmp_path / "run.npz"
    out.write_text("an older one")
    assert main(["pilot", str(BOAT), "--out", str(out), "--dry-run"]) == 0
    assert out.read_text() == "an older one"
    assert "feasible" in capsys.readouterr().out
