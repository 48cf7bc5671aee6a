"""The journal of a run on disk: lines in segments, written by a thread, so that no disk can delay the loop.

The segments are NAME.jsonl, NAME.jsonl.1, NAME.jsonl.2 and so on. Each begins with the same header, and the one being
written is locked. Where the disk is full, the oldest segment of the run is deleted; where there is none to delete, the
newest lines are kept in memory and written as soon as there is space.
"""

from __future__ import annotations

import errno
import os
import shutil
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from queue import Empty, Full, Queue, SimpleQueue

from anyhull.dynamics import PERIOD
from anyhull.errors import InputError

SEGMENT = 16 * 2**20
"""Largest size of a segment, bytes; on a small disk an eighth of what is free, so that there is an older one."""

LEAST_SEGMENT = 16 * 2**10
"""Smallest size at which a segment ends, bytes."""

MAX_LINE = 64 * 2**10
"""Longest line of a journal, bytes; a longer one is damage."""

MEMORY = 6000
"""Lines that wait for the writer, and as many that wait for space: ten minutes each."""

RETRY = 1.0
"""Time between two attempts to write, s."""

PATIENCE = 2.0
"""Longest wait for the writer when the journal is closed, s."""

FULL = (errno.ENOSPC, errno.EDQUOT)
"""Errors of a disk without space."""


class Journal:
    """Writes lines to a new journal; its methods never wait for the disk, except `close`, for `PATIENCE`."""

    def __init__(self, path: Path, header: bytes) -> None:
        """Raises where a journal is there, or may not be written; a full disk is only reported."""
        self.path = path
        self.header = header
        self.unwritten: deque[bytes] = deque(maxlen=MEMORY)
        """Lines in memory; read it only after `close`."""
        self._refused = self._lost = 0
        self._reports: SimpleQueue[str] = SimpleQueue()
        self._queue: Queue[bytes | None] = Queue(MEMORY)
        self._closing = threading.Event()
        self._segments: list[tuple[Path, int]] = []
        self._file: int | None = None
        self._number = self._size = self._limit = self._lines = 0
        self._failing, self._retry = False, 0.0
        try:
            self._open()
        except OSError as error:
            if error.errno not in FULL:
                raise InputError(f"{path}: cannot be written: {error.strerror}; give another path") from None
            self._fail(error)
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """Lines lost, since the writer did not keep up or had no space; not those of deleted segments."""
        return self._refused + self._lost

    def write(self, line: bytes) -> None:
        """Pass a line, with its end of line, to the writer."""
        try:
            self._queue.put_nowait(line)
        except Full:
            self._refused += 1

    def reports(self) -> Iterator[str]:
        """What has happened to the disk since the last call, one line each."""
        with suppress(Empty):
            while True:
                yield self._reports.get_nowait()

    def close(self) -> bool:
        """Write what is left; whether the disk answered."""
        self._closing.set()
        with suppress(Full):
            self._queue.put_nowait(None)
        self._thread.join(PATIENCE)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not (self._closing.is_set() and self._queue.empty()):
            with suppress(Empty):
                if (line := self._queue.get(timeout=RETRY)) is not None:
                    self._lost += len(self.unwritten) == MEMORY
                    self.unwritten.append(line)
            if time.monotonic() >= self._retry:
                self._flush()
        self._flush()
        self._close_segment()

    def _flush(self) -> None:
        """Write the lines in memory as far as there is space for them."""
        while self.unwritten:
            try:
                self._write(self.unwritten[0])
                self.unwritten.popleft()
            except OSError as error:
                # What is deleted for another reason than space would be lost for nothing.
                if error.errno not in FULL or not self._delete_oldest():
                    self._fail(error)
                    return
        if self._failing:
            self._failing = False
            self._reports.put("written again")

    def _write(self, line: bytes) -> None:
        if self._file is None or self._size >= self._limit or os.fstat(self._file).st_nlink == 0:
            self._open()
        assert self._file is not None
        try:
            if os.write(self._file, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError:
            # Half a line would hide those after it.
            try:
                os.ftruncate(self._file, self._size)
            except OSError:
                self._close_segment()
            raise
        self._size += len(line)
        self._lines += 1

    def _open(self) -> None:
        """Begin the next segment."""
        self._close_segment()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        path = self.path.with_name(f"{self.path.name}.{self._number}") if self._number else self.path
        try:
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o666)
        except FileExistsError:
            self._number += bool(self._number)
            raise
        try:
            lock(file)
            if os.write(file, self.header) < len(self.header):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            free = shutil.disk_usage(path.parent).free
        except OSError:
            os.close(file)
            path.unlink(missing_ok=True)
            raise
        self._file, self._size, self._lines = file, len(self.header), 0
        self._limit = min(SEGMENT, max(free // 8, LEAST_SEGMENT))
        self._number += 1
        self._segments.append((path, 0))

    def _close_segment(self) -> None:
        if self._file is not None:
            self._segments[-1] = (self._segments[-1][0], self._lines)
            with suppress(OSError):
                os.close(self._file)
            self._file = None

    def _delete_oldest(self) -> bool:
        """Make space; whether there was a segment before the present one."""
        if len(self._segments) < 2:
            return False
        oldest, lines = self._segments.pop(0)
        with suppress(OSError):
            oldest.unlink()
        self._reports.put(f"disk full, oldest {lines * PERIOD / 60:.1f} min dropped")
        return True

    def _fail(self, error: OSError) -> None:
        self._retry = time.monotonic() + RETRY
        if not self._failing:
            self._failing = True
            what = "disk full" if error.errno in FULL else str(error.strerror)
            self._reports.put(f"{what}, the newest {MEMORY * PERIOD / 60:.0f} min are kept in memory")


def segments(path: Path) -> list[Path]:
    """The files of a journal, oldest first; empty where there is none."""
    numbers = {}
    with suppress(OSError):
        for file in path.parent.iterdir():
            name, _, number = file.name.rpartition(".")
            if not file.is_file():
                continue
            if file.name == path.name:
                numbers[file] = 0
            elif name == path.name and number.isdecimal() and number.isascii():
                numbers[file] = int(number[:9])
    return sorted(numbers, key=numbers.__getitem__)


def lines(segment: Path) -> Iterator[bytes]:
    """The lines of a segment, up to one that is too long."""
    try:
        with segment.open("rb") as file:
            while (line := file.readline(MAX_LINE + 1)) and len(line) <= MAX_LINE:
                yield line
    except OSError as error:
        raise InputError(f"{segment}: cannot be read: {error.strerror or error}") from None


def rename(path: Path, to: Path) -> None:
    """Rename a journal."""
    for segment in segments(path):
        segment.rename(to.with_name(to.name + segment.name[len(path.name) :]))


def remove(path: Path) -> None:
    """Delete a journal."""
    for segment in segments(path):
        segment.unlink(missing_ok=True)


def in_use(path: Path) -> bool:
    """Whether a pilot is writing to a journal."""
    for segment in segments(path):
        with suppress(OSError), segment.open("rb") as file:
            if not lock(file.fileno()):
                return True
    return False


def lock(file: int) -> bool:
    """Lock a file for as long as it is open; whether it was free. Without file locks every file counts as free."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in (errno.EWOULDBLOCK, errno.EACCES)
    return True
