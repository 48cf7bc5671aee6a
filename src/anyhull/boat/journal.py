"""What a voyage records, line by line as it happens: a pilot that is killed leaves all but its last period.

The first line tells of the boat; then comes a line for every period and one for every event. Each is handed to the
operating system at once, which keeps it whatever becomes of the process. While it is written to the file is locked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

from anyhull.boat.helm import Beat, Helm
from anyhull.errors import InputError
from anyhull.log import Log

FORMAT = 1
"""Version of the file format."""

ROW = 18
"""Numbers of a period: time, state, reference, command, current."""


class Recorder:
    """Gathers what a helm does into a Log, from when it first has a state, and keeps a journal at `path` on the way."""

    def __init__(self, helm: Helm, path: Path | None = None, about: dict[str, Any] | None = None) -> None:
        """`about` is what the log is to say of the run beside what the helm knows."""
        vessel = helm.setup.vessel
        self._helm = helm
        self._about = {
            "vessel": vessel.name,
            "controller": type(helm.controller).__name__,
            "length": vessel.length,
            "beam": vessel.beam,
        } | (about or {})
        self._periods: list[dict[str, Any]] = []
        self._began: float | None = None
        self._entered = helm.notes.entered
        self._file: IO[str] | None = None
        if path is not None:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                self._file = path.open("x", encoding="utf-8", buffering=1)
            except OSError as error:
                raise InputError(f"{path}: cannot be written: {error.strerror}") from None
            _lock(self._file)
        self._write({"format": FORMAT, "about": self._about}, 0.0)

    def add(self, beat: Beat, now: float) -> None:
        """Record a period at one's own time, since the boat's clock may be set."""
        notes = self._helm.notes
        fresh = min(notes.entered - self._entered, len(notes.events))
        for event in list(notes.events)[len(notes.events) - fresh :]:
            self._write({"event": event}, beat.time)
        self._entered = notes.entered
        estimate = beat.estimate
        if not (np.isfinite(estimate.pose).all() and np.isfinite(estimate.velocity).all()):
            return
        self._began = now if self._began is None else self._began
        known = (*estimate.pose, *estimate.velocity, *beat.reference, *beat.decision.command, *estimate.current)
        latent = getattr(self._helm.controller, "latent", None)
        period = {
            "row": [now - self._began, *map(float, known)],
            "latent": None if latent is None else np.asarray(latent, float).tolist(),
            # Before, the boat holds its start; when it is stopped, the reference waits.
            "following": beat.phase == "under way" and beat.decision.reaction in ("run", "hold"),
        }
        self._periods.append(period)
        self._write(period, beat.time)

    def close(self) -> None:
        """Write no more."""
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._file = None

    def log(self) -> Log:
        """All of it: states and currents are the boat's estimates."""
        notes = self._helm.notes
        about = {"noted": dict(notes.counts), "heard": dict(self._helm.heard)}
        return _log(self._periods, self._about | about | {"events": [list(event) for event in notes.events]})

    def _write(self, line: dict[str, Any], time: float) -> None:
        if self._file is None:
            return
        try:
            self._file.write(json.dumps(line) + "\n")
        except OSError as error:  # a full disk is no reason to leave the boat
            self.close()
            self._helm.notes.note(time, "journal ends", str(error))


def recover(path: str | Path) -> Log:
    """The run that a journal tells of, as far as it can be read."""
    path = Path(path)
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            first, *entries = list(_entries(file)) or [{}]
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    if entries and first.get("format") != FORMAT:
        raise InputError(f"{path}: format = {first.get('format')!r}: must be {FORMAT}, which this version reads")
    events = [entry["event"] for entry in entries if "event" in entry]
    return _log([entry for entry in entries if "row" in entry], first.get("about", {}) | {"events": events})


def in_use(path: Path) -> bool:
    """Whether a pilot is writing to a journal."""
    with path.open(encoding="utf-8") as file:
        return not _lock(file)


def _lock(file: IO[str]) -> bool:
    """Hold a file for as long as it is open; whether it was free. Where files cannot be locked, all are."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _entries(lines: IO[str]) -> Iterator[dict[str, Any]]:
    """The lines up to the first that is torn or damaged."""
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:
            return
        if not isinstance(entry, dict) or ("row" in entry and len(entry["row"]) != ROW):
            return
        yield entry


def _log(periods: list[dict[str, Any]], about: dict[str, Any]) -> Log:
    every = np.array([period["row"] for period in periods], float).reshape(-1, ROW)
    state, reference, command, current = (every[:, i:j] for i, j in ((1, 7), (7, 13), (13, 16), (16, ROW)))
    latents = [period["latent"] for period in periods if period["latent"] is not None]
    known = np.array(latents) if len(latents) == len(every) > 0 else None
    about["following"] = _stretches([bool(period["following"]) for period in periods], every[:, 0].tolist())
    return Log(every[:, 0], state, reference, command, current, np.zeros((len(every), 3)), known, about)


def _stretches(following: list[bool], times: list[float]) -> list[list[float]]:
    """From when to when the reference was being followed, each time that it was."""
    found: list[list[float]] = []
    for before, now, time in zip([False, *following], following, times, strict=False):
        if now and not before:
            found.append([time, time])
        elif now:
            found[-1][1] = time
    return found
