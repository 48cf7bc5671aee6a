"""What the commands for a boat on the water share: its file, what it cannot do, and stopping by a signal."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from anyhull.boat.setup import Setup
from anyhull.errors import InputError
from anyhull.reference import Reference
from anyhull.vessel import Vessel


def load(name_or_path: str) -> Setup:
    """A boat's file, or a vessel of the catalogue, where there is a solver for its thrusters."""
    try:
        from anyhull.boat import allocation  # noqa: F401
    except ImportError as error:
        raise InputError(str(error)) from None
    return Setup.load(name_or_path)


def warn(vessel: Vessel, path: Reference | None = None) -> None:
    """Say on stderr what a boat cannot do."""
    for short in vessel.shortcomings():
        given = f"{short.axis} limit {short.limit:.4g}, thrusters give {short.attainable:.4g}"
        print(f"warning: {vessel.name}: {given}: {short.advice}", file=sys.stderr)
    for outside in vessel.envelope():
        print(f"warning: {vessel.name}: {outside.component} = {outside.value:.3g}: {outside.advice}", file=sys.stderr)
    for complaint in path.infeasible(vessel) if path else []:
        print("warning: infeasible reference:", complaint, file=sys.stderr)


@contextmanager
def until_signal() -> Iterator[Callable[[], str]]:
    """A function that gives the name of the signal to stop that has come, or nothing; a second signal interrupts."""
    came: list[str] = []

    def handle(number: int, frame: FrameType | None) -> None:
        if came:
            raise KeyboardInterrupt
        came.append(signal.Signals(number).name)

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: came[0] if came else ""
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
