"""A run for Foxglove: written as an MCAP file, and watched while it lasts. Needs foxglove-sdk.

The server has no capability: a client can neither publish nor set anything. Rows wait in a bounded queue for a thread,
so that neither encoding nor a client delays the caller.
"""

from __future__ import annotations

import ipaddress
import json
import logging
import threading
from contextlib import suppress
from pathlib import Path
from queue import Empty, Full, Queue
from typing import Any

import numpy as np

from anyhull.backend import Array
from anyhull.errors import InputError
from anyhull.files import atomic_write
from anyhull.log import Log
from anyhull.viz.facts import Entry, Facts, Nanoseconds, events_of, facts_of, reactions, stamps
from anyhull.viz.topics import Publisher, Row, import_foxglove

ADDRESS = "127.0.0.1:8765"
"""Where a client finds the server, by default."""

LAYOUT = Path(__file__).with_name("foxglove-layout.json")
"""The layout to import into Foxglove."""

QUEUE = 50
"""Rows that may wait for the server: five seconds."""

REPEAT = 50
"""Rows between two messages of what does not change, for clients that come later."""

LIVE_POINTS = 500
"""Largest number of poses of a path that is repeated: they take 0.6 ms."""

PATIENCE = 2.0
"""Longest wait for the last rows at the end, s."""


def check_new(path: Path, suffix: str, what: str) -> None:
    """Raise unless `path` is a new file with that suffix."""
    if path.exists():
        raise InputError(f"{path}: exists, and is not replaced: {what} must be a new file that ends in {suffix}")
    if path.suffix != suffix:
        raise InputError(f"{path}: {what} must be a new file that ends in {suffix}")


def write_mcap(log: Log, path: str | Path) -> Path:
    """Write a run to a new MCAP file, atomically."""
    path = Path(path)
    check_new(path, ".mcap", "an MCAP file")
    foxglove, facts, (times, kind) = import_foxglove(), facts_of(log.about), stamps(log)
    try:
        with atomic_write(path) as temporary:
            context = foxglove.Context()
            with foxglove.open_mcap(temporary, allow_overwrite=True, context=context) as writer:
                writer.write_metadata("anyhull", _metadata(log, facts, kind))
                publisher = Publisher(context, facts)
                _publish(publisher, log, facts, times)
                publisher.close()
    except (RuntimeError, OSError) as error:  # a full disk, which the SDK reports as the former
        reason = getattr(error, "strerror", None) or str(error).removeprefix("FoxgloveError: ")
        raise InputError(f"{path}: cannot be written: {reason}") from None
    return path


def _metadata(log: Log, facts: Facts, kind: str) -> dict[str, str]:
    note = "s since 1970 UTC" if kind == "epoch" else "s since the start of the run: the log has no absolute time"
    axes = "x east, y north" if facts.axes else "x and y as in the log, whose axes are not stated"
    return {"about": json.dumps(log.about), "log_time": note, "axes": axes}


def _publish(publisher: Publisher, log: Log, facts: Facts, times: Nanoseconds) -> None:
    """Send a whole run, in order of time."""
    events, start = events_of(log, times), int(times[0])
    guard, waiting = reactions(events, times), events[::-1]
    publisher.hull(start)
    publisher.path("/path", start, log.state)
    if facts.reference:
        publisher.path("/reference_path", start, log.reference)
    for i, time in enumerate(times.tolist()):
        while waiting and waiting[-1].time <= time:
            publisher.event(waiting.pop())
        publisher.row(row_of(log, i, time, guard[i]))
    for entry in reversed(waiting):
        publisher.event(entry)


def row_of(log: Log, i: int, time: int, guard: tuple[str, str]) -> Row:
    """Row i of a log."""

    def part(name: str) -> Array | None:
        array: Array | None = getattr(log, name)
        return None if array is None else array[i]

    optional = {name: part(name) for name in ("estimate", "thrusters", "angles", "dynamics", "sensors", "latent")}
    return Row(time, log.state[i], log.reference[i], log.command[i], log.current[i], **optional, guard=guard)


def parse_address(text: str) -> tuple[str, int]:
    """Host and port of 'HOST:PORT', or of one of them alone; the other is that of `ADDRESS`."""
    host, _, port = ADDRESS.partition(":")
    given, colon, number = text.rpartition(":")
    given, number = (given, number) if colon else ("", text) if text.isdecimal() else (text, "")
    try:
        host = str(ipaddress.IPv4Address(given or host))
        if not 0 <= int(number or port) <= 65535:
            raise ValueError
    except ValueError:
        raise InputError(f"--foxglove-at {text}: must be HOST:PORT, an IPv4 address and a port, as {ADDRESS}") from None
    return host, int(number or port)


class LiveView:
    """A server for Foxglove, from its start until `close`."""

    def __init__(self, address: str, about: dict[str, Any], path: Array | None = None) -> None:
        """Raise if the address cannot be used; `path` is the reference to show, (n, 3) or more columns."""
        foxglove, self._facts = import_foxglove(), facts_of(about)
        self._host, port = parse_address(address or ADDRESS)
        self.dropped = 0
        """Rows that were not sent, since too many waited."""
        self._path = None if path is None or not self._facts.reference else path[:: -(-len(path) // LIVE_POINTS)]
        self._track: list[Array] = []
        self._every = self._rows = 0
        context = foxglove.Context()
        name = f"anyhull {about.get('vessel', '')}".strip()
        try:
            self._server = foxglove.start_server(
                name=name, host=self._host, port=port, capabilities=[], context=context, message_backlog_size=256
            )
        except Exception as error:  # the SDK raises its own for each cause
            reason = str(error).removeprefix("FoxgloveError: ").partition(" (os error")[0]
            raise InputError(f"--foxglove {self._host}:{port}: {reason}: give another address") from None
        # A client that goes without a word is no error to print over the console.
        logging.getLogger("foxglove").addHandler(logging.NullHandler())
        self._publisher = Publisher(context, self._facts)
        self._queue: Queue[tuple[Row, tuple[Entry, ...]] | None] = Queue(QUEUE)
        self._thread = threading.Thread(target=self._run, name="foxglove", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The port of the server."""
        return int(self._server.port)

    @property
    def said(self) -> str:
        """What to tell the person who started it."""
        open_to = "" if ipaddress.IPv4Address(self._host).is_loopback else "; everyone who reaches it can watch"
        return f"Foxglove: open ws://{self._host}:{self.port}, layout {LAYOUT}{open_to}"

    def show(self, row: Row, events: tuple[Entry, ...] = ()) -> None:
        """Pass on a row, now or never."""
        try:
            self._queue.put_nowait((row, events))
        except Full:
            self.dropped += 1

    def close(self) -> None:
        """Send what waits, for at most `PATIENCE`, and end the server."""
        with suppress(Full):
            self._queue.put(None, timeout=PATIENCE)
        self._thread.join(PATIENCE)
        self._server.stop()

    def _run(self) -> None:
        while (entry := self._queue.get()) is not None:
            try:
                self._send(*entry)
            except Exception:  # a number that no message can hold must not end the view
                self.dropped += 1
        with suppress(Empty):
            self._publisher.close()

    def _send(self, row: Row, events: tuple[Entry, ...]) -> None:
        for event in events:
            self._publisher.event(event)
        self._publisher.row(row)
        self._keep(row.state)
        if self._rows % REPEAT == 1:
            self._publisher.hull(row.time)
            self._publisher.path("/path", row.time, np.array(self._track))
            if self._path is not None:
                self._publisher.path("/reference_path", row.time, self._path)

    def _keep(self, state: Array) -> None:
        """Keep the track; where it gets long, every second pose of it."""
        if self._rows % (1 << self._every) == 0:
            self._track.append(np.array(state[:3]))
        self._rows += 1
        if len(self._track) > LIVE_POINTS:
            self._track, self._every = self._track[::2], self._every + 1
