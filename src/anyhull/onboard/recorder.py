"""The record of a run: a journal while it lasts, and the log that is made of it.

A journal has one line for each period: an array of time, progress, following, epoch, state (6), reference (6), command
(3), current (2) and sensors (8, null where there is no measurement), followed by four arrays: the thrusters' commands,
the angles of azimuths, the dynamics estimate and the latent, each empty where there is none. There is one line for each
event, one with the boat's time of the first period, and every ten seconds one with the loop's statistics. The first
line of a segment describes the run, and the last line of the journal says how the run ended; where that is missing, the
pilot was killed.
"""

from __future__ import annotations

import json
import math
import tempfile
import time
from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from anyhull.backend import Array
from anyhull.errors import InputError, RunError
from anyhull.files import atomic_write
from anyhull.log import FIXED, Log, describe_vessel
from anyhull.onboard import journal
from anyhull.onboard.autopilot import Autopilot
from anyhull.onboard.event_log import CAPACITY
from anyhull.onboard.journal import Journal
from anyhull.onboard.step_record import StepRecord
from anyhull.schema import FieldError

FORMAT = 4
"""Version of the file format."""

COLUMNS, MEASURED = 29, 21
"""Numbers of a period before its arrays, and the first of them that may be missing: the sensors'."""

ARRAYS = ("thrusters", "angles", "dynamics", "latent")
"""Arrays of a period."""

EMPTY = {"dynamics": (math.nan,) * FIXED["dynamics"][0]}
"""What stands for an array in a period without it: the estimate is missing while the controller does not steer."""

LARGEST_ARRAY = 1000
"""Numbers of one of them."""

LARGEST = 1e11
"""Largest number of a period, as of a time in a message; a larger one is damage."""

PERIOD_LINE = "[%.3f,%.3f,%d,%.3f" + ",%.7g" * (MEASURED - 4)


def describe(autopilot: Autopilot) -> dict[str, Any]:
    """What a log states about the run of an autopilot."""
    return describe_vessel(autopilot.setup.vessel) | {"controller": type(autopilot.controller).__name__}


class RunRecorder:
    """Records an autopilot's run from its first valid state on in a journal at `path`, by default a temporary one."""

    def __init__(self, autopilot: Autopilot, path: Path | None = None, about: dict[str, Any] | None = None) -> None:
        """`about` is added to the description of the run."""
        self._autopilot = autopilot
        self._azimuths = any(thruster.kind == "azimuth" for thruster in autopilot.setup.vessel.thrusters)
        self._began: float | None = None
        self._events = autopilot.event_log.total
        self._dropped = self._invalid = 0
        self._folder = tempfile.TemporaryDirectory(prefix="anyhull-") if path is None else None
        path = Path(self._folder.name, "run.jsonl") if self._folder else path
        assert path is not None
        header = _line({"format": FORMAT, "about": describe(autopilot) | (about or {})})
        if len(header) > journal.MAX_LINE:
            raise InputError(f"about: {len(header)} bytes as JSON: must be at most {journal.MAX_LINE}")
        self._journal = Journal(path, header)

    @property
    def dropped(self) -> int:
        """Lines of the journal that were lost."""
        return self._journal.dropped + self._invalid

    def add(self, step: StepRecord, now: float) -> None:
        """Record a period at the caller's time, since the boat's clock may be set."""
        self._report(step.time)
        self._write_events()
        if not step.estimate.valid:
            return
        if self._began is None:
            # The times of events and fixes are in the boat's clock.
            self._began = now
            self._journal.write(_line({"boat_time": step.time}))
        # Before "under way" the boat holds its start; while it is stopped, the reference waits.
        following = step.phase == "under way" and step.decision.reaction in ("run", "hold")
        parts = (step.estimate.state, step.reference, step.decision.command, step.estimate.current)
        timing = (now - self._began, step.progress, following, time.time())
        numbers = (*timing, *(n for part in parts for n in part.tolist()))
        if not all(abs(number) <= LARGEST for number in numbers):
            self._invalid += 1
            return
        sensors = "".join(f",{n:.9g}" if abs(n) <= LARGEST else ",null" for n in step.sensors.tolist())
        angles = step.command.angles if self._azimuths else None
        arrays = (step.command.thrusters, angles, step.dynamics, step.latent)
        rest = "".join(f",[{','.join(f'{n:.6g}' for n in _finite(array))}]" for array in arrays)
        self._journal.write(f"{PERIOD_LINE % numbers}{sensors}{rest}]\n".encode())

    def note(self, statistics: dict[str, float]) -> None:
        """Record the loop's statistics so far."""
        self._journal.write(_line({"loop": statistics}))

    def close(self, ended: str = "") -> None:
        """Close the journal; `ended` is why the run ended, empty for one that failed: there is no log of it then."""
        self._write_events()
        if ended:
            self._journal.write(_line({"ended": ended}))
        answered = self._journal.close()
        if self._folder and not ended:
            self._folder.cleanup()
        if not answered:
            hint = "the record stays there as far as it was written"
            raise RunError(f"{self._journal.path}: the disk does not answer: {hint}")

    def log(self, about: dict[str, Any] | None = None) -> Log:
        """The run as far as the disk held it, with `about` added; states and currents are the boat's estimates."""
        rows, autopilot = _Rows(), self._autopilot
        for segment in journal.segments(self._journal.path):
            rows.read(segment)
        rows.take([self._journal.header, *self._journal.unwritten])
        counts = {"event_counts": dict(autopilot.event_log.counts), "received": dict(autopilot.received)}
        events = [list(event) for event in autopilot.event_log.events]
        log = rows.log(counts | {"events": events} | (about or {}))
        if self._folder:
            self._folder.cleanup()
        return log

    def _report(self, at: float) -> None:
        """Record what has happened to the journal."""
        log = self._autopilot.event_log
        for report in self._journal.reports():
            log.record(at, "journal", report)
        if (dropped := self.dropped) > self._dropped:
            log.record(at, "journal lines dropped", "", dropped - self._dropped)
            self._dropped = dropped

    def _write_events(self) -> None:
        log = self._autopilot.event_log
        if log.total > self._events:
            for event in log.since(self._events):
                self._journal.write(_line({"event": event}))
            self._events = log.total


class Unfinished(NamedTuple):
    """The end of a journal."""

    about: dict[str, Any]
    """The description of its run."""
    progress: float | None
    """Time of the reference in its last period, s; None without a period."""
    ended: str
    """The reason for which the run ended; empty for one that was killed."""


def keep_progress(path: Path, about: dict[str, Any], progress: float, ended: str) -> None:
    """Leave a journal without periods, from which the next run resumes at the time `progress` of the reference, s."""
    header = {"format": FORMAT, "about": about | {"resumed_at": progress}}
    with atomic_write(path) as temporary:
        temporary.write_bytes(_line(header) + _line({"ended": ended}))


def recover(path: str | Path) -> Log:
    """The run of a journal; of each segment what stands before its first damaged line."""
    rows = _Rows()
    for segment in _existing(Path(path)):
        rows.read(segment)
    return rows.log({"events": list(rows.events)})


def last_of(path: str | Path) -> Unfinished:
    """The end of a journal, from its newest segment that holds a period: in a second, however long the run."""
    found = Unfinished({}, None, "")
    for segment in reversed(_existing(Path(path))):
        rows = _Rows()
        rows.read(segment)
        progress = rows.numbers[-COLUMNS + 1] if rows.numbers else None
        found = Unfinished(rows.about or found.about, progress, rows.ended or found.ended)
        if progress is not None:
            break
    return found


def _existing(path: Path) -> list[Path]:
    if not (found := journal.segments(path)):
        raise InputError(f"{path}: cannot be read: No such file")
    return found


class _Rows:
    """The content of a journal's lines."""

    def __init__(self) -> None:
        self.about: dict[str, Any] = {}
        self.events: deque[list[Any]] = deque(maxlen=CAPACITY)
        self.ended = ""
        self.loop: dict[str, Any] = {}
        self.boat_time: float | None = None
        # A day is 864 000 periods: arrays of numbers, no objects.
        self.numbers, self._arrays = array("d"), {name: array("d") for name in ARRAYS}
        self._rows, self._widths = 0, [len(EMPTY.get(name, ())) for name in ARRAYS]

    def read(self, segment: Path) -> None:
        """Take the lines of a segment, up to the first damaged one."""
        try:
            self.take(journal.lines(segment))
        except FieldError as error:
            raise InputError(f"{segment}: {error}") from None

    def take(self, lines: Iterable[bytes]) -> None:
        """Take a header and lines, up to the first damaged one."""
        for number, entry in enumerate(_entries(lines)):
            match entry:
                case {"format": version, "about": dict() as about} if number == 0:
                    if version != FORMAT:
                        raise FieldError("format", version, f"{FORMAT}, which this version reads")
                    self.about = self.about or about
                case [*values] if number and self._is_period(values):
                    self.numbers.extend(math.nan if value is None else value for value in values[:COLUMNS])
                    for (name, numbers), more in zip(self._arrays.items(), values[COLUMNS:], strict=True):
                        numbers.extend(more or EMPTY.get(name, ()))
                    self._widths = [
                        width or len(more) for width, more in zip(self._widths, values[COLUMNS:], strict=True)
                    ]
                    self._rows += 1
                case {"event": [int() | float(), str(), str()] as event} if number:
                    self.events.append(event)
                case {"loop": dict() as statistics} if number:
                    self.loop = statistics
                case {"boat_time": int() | float() as boat_time} if number and _is_number(boat_time):
                    self.boat_time = boat_time
                case {"ended": str() as ended} if number:
                    self.ended = ended
                case _:
                    return

    def _is_period(self, values: list[Any]) -> bool:
        """Whether the values are those of a period, which does not precede the last one."""
        arrays = values[COLUMNS:]
        return (
            len(arrays) == len(ARRAYS)
            and all(isinstance(more, list) and len(more) <= LARGEST_ARRAY for more in arrays)
            and all(len(more) in (0, width or len(more)) for more, width in zip(arrays, self._widths, strict=True))
            and all(_is_number(n) for n in chain(values[:MEASURED], *arrays))
            and all(n is None or _is_number(n) for n in values[MEASURED:COLUMNS])
            and (not self.numbers or values[0] >= self.numbers[-COLUMNS])
        )

    def log(self, about: dict[str, Any]) -> Log:
        """The periods as a log; each array only if every period has it, but the dynamics if one has."""
        table = np.asarray(self.numbers).reshape(-1, COLUMNS)
        when, following = table[:, 0], table[:, 2] > 0
        edges = np.flatnonzero(np.diff(following, prepend=False, append=False))
        stretches = np.stack([when[edges[::2]], when[edges[1::2] - 1]], axis=1).tolist()
        progress = {"progress": float(table[-1, 1])} if self._rows else {}
        if self.boat_time is not None:
            progress["boat_time"] = self.boat_time
        arrays = {
            name: np.asarray(numbers).reshape(self._rows, width)
            for (name, numbers), width in zip(self._arrays.items(), self._widths, strict=True)
            if len(numbers) == self._rows * width > 0 and not all(map(math.isnan, numbers))
        }
        return Log(
            time=when,
            epoch=table[:, 3],
            state=table[:, 4:10],
            reference=table[:, 10:16],
            command=table[:, 16:19],
            current=table[:, 19:21],
            sensors=table[:, MEASURED:],
            force=np.zeros((self._rows, 3)),
            **arrays,
            about=self.about | progress | {"ended": self.ended, "following": stretches, "loop": self.loop} | about,
        )


def _finite(values: Sequence[float] | Array | None) -> Sequence[float]:
    """The numbers of an array, or none where one of them is not finite."""
    numbers = [] if values is None else [float(value) for value in values]
    return numbers if all(abs(number) <= LARGEST for number in numbers) else []


def _is_number(value: Any) -> bool:
    return type(value) in (float, int) and -LARGEST <= value <= LARGEST


def _entries(lines: Iterable[bytes]) -> Iterator[Any]:
    """The values of JSON lines, up to the first that is none."""
    for line in lines:
        try:
            yield json.loads(line.decode())
        except (ValueError, RecursionError):
            return


def _line(entry: dict[str, Any]) -> bytes:
    return json.dumps(entry, separators=(",", ":")).encode() + b"\n"
