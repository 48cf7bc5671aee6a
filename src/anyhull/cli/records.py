"""The files of a pilot's runs: none is written over another, and a run that was killed is saved and may be resumed."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from anyhull.errors import InputError, RunError
from anyhull.log import Log
from anyhull.mission import Mission
from anyhull.onboard import journal
from anyhull.onboard.recorder import Unfinished, last_of, recover

AT_ONCE = 4 * 2**20
"""Largest journal that is made a log before a run, bytes: the boat waits meanwhile, for half a second."""

HOUR, DAY = 25 * 2**20, 600 * 2**20
"""Size of the record of an hour and of a day, bytes."""

Say = Callable[[str], None]


def free_path(out: Path) -> Path:
    """`out`, or with a number after its stem where there is such a file: run.npz, run-2.npz, run-3.npz."""
    names = itertools.chain([out], (out.with_stem(f"{out.stem}-{i}") for i in itertools.count(2)))
    return next(path for path in names if not path.exists())


def save_log(log: Log, out: Path, say: Say) -> Path:
    """Write the log of a run to a free path at `out`, or if that disk is full to the folder for temporary files."""
    spare = Path(tempfile.gettempdir()) / out.name
    for path in (free_path(out), free_path(spare)):
        try:
            return log.save(path)
        except (InputError, OSError) as error:
            say(f"{path}: cannot be written: {getattr(error, 'strerror', None) or error}")
    journal_path = out.with_suffix(".jsonl")
    raise RunError(f"{out}: cannot be written: the record stays in {journal_path} as far as it was written")


def set_aside(out: Path, say: Say) -> Unfinished | None:
    """Make room for the journal of a new run; how the last run ended, None where there was none or nobody can tell."""
    path = out.with_suffix(".jsonl")
    if not journal.segments(path):
        return None
    if journal.in_use(path):
        raise InputError(f"{path}: another pilot writes to it: give another --out")
    present = [file.name for file in path.parent.iterdir()]
    stems = (f"{out.stem}-killed-{i}" for i in itertools.count(1))
    stem = next(stem for stem in stems if not any(name.startswith(f"{stem}.") for name in present))
    aside = path.with_name(f"{stem}.jsonl")
    journal.rename(path, aside)
    try:
        last = last_of(aside)
    except InputError as error:
        say(f"{error}; the file is kept")
        return None
    if not last.ended:
        say(f"{path}: from a run that was killed; renamed to {aside}")
    elif last.progress is not None:
        say(f"{path}: from a run that ended without a log; renamed to {aside}")
    return last


def save_killed(out: Path, say: Say, most: float = float("inf")) -> None:
    """Make logs of the journals that were set aside, of those of at most `most` bytes."""
    for path in sorted(out.parent.glob("*-killed-*.jsonl*")):
        first = path.with_name(path.name.partition(".jsonl")[0] + ".jsonl")
        stem, _, number = first.stem.rpartition("-killed-")
        files = journal.segments(first)
        if stem != out.stem or not number.isdecimal() or not files or path != files[0] or journal.in_use(first):
            continue
        try:
            if sum(file.stat().st_size for file in files) > most:
                continue
            log = recover(first)
            if not len(log.time) and log.about["ended"]:
                journal.remove(first)
                continue
            if not len(log.time):
                raise InputError(f"{first}: holds no period")
        except InputError as error:
            damaged = first.with_suffix(".damaged")
            journal.rename(first, damaged)
            say(f"{error}; renamed to {damaged}")
            continue
        except OSError as error:
            say(f"{first}: cannot be read: {error.strerror or error}; the file is kept")
            continue
        try:
            saved = log.save(free_path(first.with_suffix(".npz")))
            journal.remove(first)
            say(f"{first}: saved as {saved}")
        except (InputError, OSError) as error:  # a full disk: the journal stays
            say(f"{first}: cannot be saved as a log: {getattr(error, 'strerror', None) or error}; the file is kept")


def no_room(out: Path, least: int) -> str:
    """What is free on the disk of the record, where that is less than `least` bytes, or empty."""
    folder = next(parent for parent in out.absolute().parents if parent.exists())
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return f"disk of {folder}: {error.strerror}"
    return f"disk of {folder}: {free / 2**20:.0f} MB free, {least / 2**20:.0f} needed" if free < least else ""


def resumed_at(last: Unfinished | None, mission: Mission, from_start: bool, say: Say) -> float:
    """Time of the reference at which to begin, s."""
    if last is None or from_start:
        return 0.0
    # A run that never got a state leaves things as the one before it did.
    progress = last.about.get("resumed_at") if last.progress is None else last.progress
    if not isinstance(progress, int | float) or (last.ended and last.progress is not None):
        return 0.0
    if not 1 <= progress < mission.reference.duration:
        say("the last run had not begun its mission; this one begins at its start")
        return 0.0
    if last.about.get("mission") != mission.digest:
        say("the last run had another mission; this one begins at its start")
        return 0.0
    say(f"resuming at {progress:.1f} of {mission.reference.duration:.1f} s; --from-start begins anew")
    return progress
