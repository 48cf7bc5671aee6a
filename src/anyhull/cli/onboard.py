"""Shared by the commands for a boat on the water: its file, reference, outputs, warnings, and a stop by signal."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Annotated, Any

import typer

from anyhull.cli.references import shape
from anyhull.controller import Controller
from anyhull.errors import InputError
from anyhull.reference import Reference
from anyhull.vessel import Vessel

TimeFactor = Annotated[float, typer.Option(help="Speed of time relative to the wall clock, for a simulated boat.")]


def check_time_factor(time_factor: float) -> None:
    """Raise for a time factor that cannot be used."""
    if not 0 < time_factor <= 100:
        raise InputError(f"time-factor = {time_factor:g}: must be positive and at most 100")


def read_reference(name: str, speed: float | None, laps: float | None) -> tuple[Reference, dict[str, Any]]:
    """The reference of that name with the options given, and what was asked for, as a log states it."""
    options = {option: value for option, value in (("speed", speed), ("laps", laps)) if value is not None}
    return shape(name, options, None), {"shape": name} | options


def warn(vessel: Vessel, reference: Reference | None = None, controller: Controller | None = None) -> None:
    """Print the limitations of a boat to stderr: thrusters, the envelope of the controller's policy, the reference."""
    for short in vessel.shortcomings():
        given = f"{short.axis} limit {short.limit:.4g}, thrusters give {short.attainable:.4g}"
        print(f"warning: {vessel.name}: {given}: {short.advice}", file=sys.stderr)
    envelope = getattr(controller, "envelope", None)
    for outside in vessel.outside(envelope) if envelope else []:
        print(f"warning: {vessel.name}: {outside.component} = {outside.value:.3g}: {outside.advice}", file=sys.stderr)
    for reason in reference.infeasible(vessel) if reference else []:
        print("warning: infeasible reference:", reason, file=sys.stderr)


@contextmanager
def until_signal() -> Iterator[Callable[[], str]]:
    """A function that returns the name of the first SIGINT or SIGTERM received, or empty; a second one interrupts."""
    received: list[str] = []

    def handle(number: int, frame: FrameType | None) -> None:
        if received:
            raise KeyboardInterrupt
        received.append(signal.Signals(number).name)

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: received[0] if received else ""
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
