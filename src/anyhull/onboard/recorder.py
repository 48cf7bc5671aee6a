"""The record of a run, written line by line: a pilot that is killed loses at most its last period.

The first line describes the run; then follow one line for each period and one for each event. Each is passed to the
operating system at once, so it survives the process. The file is locked while a pilot writes to it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import IO, Any

import numpy as np

from anyhull.backend import Array
from anyhull.errors import InputError
from anyhull.log import Log, Recorder
from anyhull.onboard.autopilot import Autopilot, StepRecord
from anyhull.schema import decode

FORMAT = 2
"""Version of the file format."""

State = tuple[float, float, float, float, float, float]


@dataclass(frozen=True)
class Period:
    """One line of a journal: what the log holds of a period, and whether the boat followed the reference."""

    time: float
    state: State
    reference: State
    command: tuple[float, float, float]
    current: tuple[float, float]
    latent: tuple[float, ...] | None
    following: bool


def describe(autopilot: Autopilot) -> dict[str, Any]:
    """What a log states about the run of an autopilot."""
    vessel, controller = autopilot.setup.vessel, type(autopilot.controller).__name__
    return {"vessel": vessel.name, "controller": controller, "length": vessel.length, "beam": vessel.beam}


class RunRecorder:
    """Records an autopilot's run from its first valid state on, and keeps a journal of it at `path`."""

    def __init__(self, autopilot: Autopilot, path: Path | None = None, about: dict[str, Any] | None = None) -> None:
        """`about` is added to the description of the run."""
        self._autopilot = autopilot
        self._about = describe(autopilot) | (about or {})
        self._periods: list[Period] = []
        self._began: float | None = None
        self._events = autopilot.event_log.total
        self._file: IO[str] | None = None
        if path is not None:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                self._file = path.open("x", encoding="utf-8", buffering=1)
            except OSError as error:
                raise InputError(f"{path}: cannot be written: {error.strerror}") from None
            _lock(self._file)
        self._write({"format": FORMAT, "about": self._about}, 0.0)

    def add(self, step: StepRecord, now: float) -> None:
        """Record a period at the caller's time, since the boat's clock may be set."""
        log = self._autopilot.event_log
        for event in log.since(self._events):
            self._write({"event": event}, step.time)
        self._events = log.total
        if not step.estimate.valid:
            return
        self._began = now if self._began is None else self._began
        period = Period(
            time=now - self._began,
            state=_numbers(step.estimate.state),
            reference=_numbers(step.reference),
            command=_numbers(step.decision.command),
            current=_numbers(step.estimate.current),
            latent=None if step.latent is None or not np.isfinite(step.latent).all() else _numbers(step.latent),
            # Before "under way" the boat holds its start; while it is stopped, the reference waits.
            following=step.phase == "under way" and step.decision.reaction in ("run", "hold"),
        )
        self._periods.append(period)
        self._write(vars(period), step.time)

    def close(self) -> None:
        """Close the journal."""
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._file = None

    def log(self) -> Log:
        """The whole run; states and currents are the boat's estimates."""
        events = self._autopilot.event_log
        counts = {"event_counts": dict(events.counts), "received": dict(self._autopilot.received)}
        return _log(self._periods, self._about | counts, events.events)

    def _write(self, line: dict[str, Any], time: float) -> None:
        if self._file is None:
            return
        try:
            self._file.write(json.dumps(line) + "\n")
        except OSError as error:  # a full disk must not stop the boat
            self.close()
            self._autopilot.event_log.record(time, "journal ends", str(error))


def recover(path: str | Path) -> Log:
    """The run of a journal, up to its first damaged line."""
    version, about = FORMAT, dict[Any, Any]()
    periods, events = list[Period](), list[list[Any]]()
    try:
        with Path(path).open(encoding="utf-8", errors="replace") as file:
            for line in file:
                match json.loads(line):
                    case {"format": version, "about": {**about}}:
                        pass
                    case {"event": [*event]}:
                        events.append(event)
                    case entry:
                        periods.append(decode(Period, entry))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, OverflowError, RecursionError):
        pass  # what stands before the damage is kept
    if version != FORMAT:
        raise InputError(f"{path}: format = {version!r}: must be {FORMAT}, which this version reads")
    return _log(periods, about, events)


def in_use(path: Path) -> bool:
    """Whether a pilot is writing to a journal."""
    with path.open(encoding="utf-8") as file:
        return not _lock(file)


def _lock(file: IO[str]) -> bool:
    """Lock a file for as long as it is open; whether it was free. Without file locks every file counts as free."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _numbers(values: Array) -> tuple[Any, ...]:
    return tuple(values.tolist())


def _log(periods: Sequence[Period], about: dict[str, Any], events: Iterable[Sequence[Any]]) -> Log:
    recorder, following = Recorder(), list[list[float]]()
    for period in periods:
        recorder.add(**vars(period))
    for is_following, group in groupby(periods, lambda period: period.following):
        times = [period.time for period in group]
        following += [[times[0], times[-1]]] * is_following
    return recorder.log(about | {"following": following, "events": [list(event) for event in events]})
