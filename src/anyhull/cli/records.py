"""The files of a pilot's runs: none is written over another, and a run that was killed is saved and may be resumed."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable
from pathlib import Path

from anyhull.errors import InputError, RunError
from anyhull.log import Log
from anyhull.onboard import journal
from anyhull.onboard.recorder import Unfinished, last_of, recover

AT_ONCE = 4 * 2**20
"""Largest journal that is made a log before a run, bytes: the boat waits meanwhile, for half a second."""

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
