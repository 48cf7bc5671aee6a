"""Shared by the commands for a boat on the water: speed of time, warnings and signals."""

from __future__ import annotations

import signal
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Annotated, Any

import typer

from anyhull.cli.hulls import print_line, say_warnings
from anyhull.controller import Controller
from anyhull.errors import InputError, RunError
from anyhull.mission.geodesy import LocalFrame
from anyhull.onboard.links import ConfiguredLink, open_link
from anyhull.onboard.setup import Setup
from anyhull.reference import Reference
from anyhull.vessel import Vessel

TimeFactor = Annotated[float, typer.Option(help="Speed of time relative to the wall clock, for a simulated boat.")]


HERE_TIME = 60.0
"""Time in which the boat's pose must be known for `--here`, s."""

HINT_TIME = 6.0
"""Time between two lines that it is not, s."""

ENDING = ("SIGINT", "SIGTERM", *(["SIGQUIT"] if hasattr(signal, "SIGQUIT") else []))
"""Signals that end a run in order."""


def check_time_factor(time_factor: float) -> None:
    """Raise for a time factor that cannot be used."""
    if not 0 < time_factor <= 100:
        raise InputError(f"time-factor = {time_factor:g}: must be positive and at most 100")


def open_pilot_link(
    boat: str, setup: Setup, listen: str | None, peer: str | None, frame: LocalFrame | None = None
) -> ConfiguredLink:
    """The link of a boat's file at the pilot's end; `frame` is the local frame of a geographic mission."""
    axes = getattr(setup.link, "axes", None)
    if frame is not None and axes is not None and frame.axes != axes:
        hint = f"must be those of the mission, {frame.axes!r}; the axes of the file are those of its thrusters too"
        raise InputError(f"{boat}: link.axes = {axes!r}: {hint}")
    try:
        return open_link(setup.link, "pilot", listen, peer, frame, setup.vessel)
    except InputError as error:
        raise InputError(f"{boat}: [link]: {error}") from None


def pose_of_boat(setup: Setup, link: ConfiguredLink, say: Callable[[str], None]) -> tuple[float, float, float]:
    """Where the boat is, as soon as that is known; says what to look at while it is not."""
    from anyhull.onboard.bench import Bench

    with until_signal() as stopped:
        bench, ends = Bench(setup, link, stop=stopped), time.monotonic() + HERE_TIME
        while (pose := bench.wait_for_pose(HINT_TIME)) is None:
            if reason := stopped():
                raise RunError(f"the boat's pose is not known: {reason}")
            heard = sum(bench.vehicle.received.values())
            if time.monotonic() >= ends and not heard:
                raise InputError(f"{link.peer}: no state received; {link.hint()}")
            missing = bench.state if heard else f"no messages from {link.peer} yet: {link.hint()}"
            if time.monotonic() >= ends:
                raise RunError(f"the boat's pose is not known: {missing}")
            say(f"waiting for the boat's pose: {missing}")
    x, y, psi = pose.tolist()
    return x, y, psi


def warn(
    vessel: Vessel,
    reference: Reference | None = None,
    controller: Controller | None = None,
    say: Callable[[str], None] = print_line,
) -> None:
    """Print odd values of a boat's file, and limitations: thrusters, the policy's envelope, the reference."""
    say_warnings(vessel, say)
    for short in vessel.shortcomings():
        given = f"{short.axis} limit {short.limit:.4g}, thrusters give {short.attainable:.4g}"
        say(f"warning: {vessel.name}: {given}: {short.advice}")
    envelope = getattr(controller, "envelope", None)
    for outside in vessel.outside(envelope) if envelope else []:
        say(f"warning: {vessel.name}: {outside.component} = {outside.value:.3g}: {outside.advice}")
    for reason in reference.infeasible(vessel) if reference else []:
        say(f"warning: infeasible reference: {reason}")


@contextmanager
def until_signal(actions: Mapping[str, Callable[[], None]] | None = None) -> Iterator[Callable[[], str]]:
    """A function that returns the name of the first signal to end the run, or empty; a second one interrupts.

    `actions` are for other signals, by name. The function calls them, so that none happens in the midst of a period.
    """
    received, waiting = list[str](), deque[str](maxlen=100)
    actions = {name: action for name, action in (actions or {}).items() if hasattr(signal, name)}

    def handle(number: int, frame: FrameType | None) -> None:
        if received:
            raise KeyboardInterrupt
        received.append(signal.Signals(number).name)

    def defer(number: int, frame: FrameType | None) -> None:
        waiting.append(signal.Signals(number).name)

    def poll() -> str:
        while waiting:
            actions[waiting.popleft()]()
        return received[0] if received else ""

    handlers: dict[str, Any] = dict.fromkeys(ENDING, handle) | dict.fromkeys(actions, defer)
    if hasattr(signal, "SIGTTOU"):
        handlers["SIGTTOU"] = signal.SIG_IGN  # in the background, output to the terminal would suspend the process
    before = {
        number: signal.signal(number, handler) for name, handler in handlers.items() if (number := signal.Signals[name])
    }
    try:
        yield poll
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
