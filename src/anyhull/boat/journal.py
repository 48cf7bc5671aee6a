"""What a voyage records, line by line as it happens: a pilot that is killed leaves all but its last period.

The first line tells of the boat; then comes a line for every period and one for every event. Each is handed to the
operating system at once, which keeps it whatever becomes of the process.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

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

    def __init__(self, helm: Helm, path: Path | None = None) -> None:
        self._helm = helm
        self._rows: list[list[float]] = []
        self._latents: list[list[float]] = []
        self._began: float | None = None
        self._under_way: list[float] = []
        self._entered = helm.notes.entered
        self._file: TextIO | None = None
        if path is not None:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                self._file = path.open("x", encoding="utf-8", buffering=1)
            except OSError as error:
                raise InputError(f"{path}: cannot be written: {error.strerror}") from None
        self._write({"format": FORMAT, "about": self._about()})

    def add(self, beat: Beat, now: float) -> None:
        """Record a period at one's own time, since the boat's clock may be set."""
        notes = self._helm.notes
        for event in list(notes.events)[len(notes.events) - min(notes.entered - self._entered, len(notes.events)) :]:
            self._write({"event": event})
        self._entered = notes.entered
        estimate = beat.estimate
        if not (np.isfinite(estimate.pose).all() and np.isfinite(estimate.velocity).all()):
            return
        self._began = now if self._began is None else self._began
        known = (*estimate.pose, *estimate.velocity, *beat.reference, *beat.decision.command, *estimate.current)
        self._rows.append([now - self._began, *map(float, known)])
        if beat.phase == "under way":
            self._under_way = [(self._under_way or self._rows[-1])[0], self._rows[-1][0]]
        if (latent := getattr(self._helm.controller, "latent", None)) is not None:
            self._latents.append(np.asarray(latent, float).tolist())
        self._write({"row": self._rows[-1], "latent": self._latents[-1] if self._latents else None})

    def close(self) -> None:
        """Write no more."""
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._file = None

    def log(self) -> Log:
        """All of it: states and currents are the boat's estimates."""
        helm = self._helm
        about = self._about() | {"noted": dict(helm.notes.counts), "heard": dict(helm.heard)}
        # When the reference was being followed: before, the boat holds its start; after, it comes to rest.
        about["under_way"] = self._under_way
        return _log(self._rows, self._latents, about | {"events": [list(event) for event in helm.notes.events]})

    def _about(self) -> dict[str, Any]:
        vessel, controller = self._helm.setup.vessel, self._helm.controller
        return {
            "vessel": vessel.name,
            "controller": type(controller).__name__,
            "length": vessel.length,
            "beam": vessel.beam,
        }

    def _write(self, line: dict[str, Any]) -> None:
        if self._file is None:
            return
        try:
            self._file.write(json.dumps(line) + "\n")
        except OSError as error:  # a full disk is no reason to leave the boat
            self.close()
            self._helm.notes.note(self._rows[-1][0] if self._rows else 0.0, "journal ends", str(error))


def recover(path: str | Path) -> Log:
    """The run that a journal tells of, as far as it goes."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
        first = json.loads(lines[0])
        if first["format"] != FORMAT:
            raise InputError(f"{path}: format = {first['format']!r}: must be {FORMAT}, which this version reads")
        entries = [json.loads(line) for line in lines[1:-1]]
        with suppress(ValueError):  # the last may have been cut off
            entries += [json.loads(line) for line in lines[1:][-1:]]
        periods = [entry for entry in entries if "row" in entry]
        events = [entry["event"] for entry in entries if "event" in entry]
        latents = [entry["latent"] for entry in periods if entry["latent"] is not None]
        return _log([entry["row"] for entry in periods], latents, first["about"] | {"events": events})
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, KeyError, IndexError, TypeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: not a pilot's journal: {error}") from None


def _log(rows: list[list[float]], latents: list[list[float]], about: dict[str, Any]) -> Log:
    every = np.array(rows, float).reshape(-1, ROW)
    state, reference, command, current = (every[:, i:j] for i, j in ((1, 7), (7, 13), (13, 16), (16, ROW)))
    known = np.array(latents) if len(latents) == len(every) > 0 else None
    return Log(every[:, 0], state, reference, command, current, np.zeros((len(every), 3)), known, about)
