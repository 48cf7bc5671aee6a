"""`anyhull listen` and `anyhull thrusters`: a boat on the bench, before it is in the water."""

from __future__ import annotations

import math
import os
import select
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anyhull.cli.onboard import open_pilot_link, until_signal
from anyhull.cli.output import AsJson, new_table, open_console, print_json
from anyhull.dynamics import PERIOD
from anyhull.errors import InputError, RunError
from anyhull.onboard.links import ConfiguredLink
from anyhull.onboard.setup import Setup

if TYPE_CHECKING:
    from anyhull.onboard.bench import Bench

Boat = Annotated[str, typer.Argument(help=r"The boat's TOML file: vessel, thrusters, \[link] and other tables.")]
Listen = Annotated[str | None, typer.Option("--listen", help="Address of the pilot; by default the file's.")]
Peer = Annotated[str | None, typer.Option(help="Address of the boat; by default the file's.")]

LEAST_COMMAND, MOST_COMMAND = 0.05, 0.5
"""Range of the level of a thruster test."""

PARAMETER_TIME = 15.0
"""Longest time for an autopilot's parameters, s: those that it does not have take longest."""

WAIT = 3.0
"""Time in which a boat must be heard before its thrusters are tested, s."""


def listen(
    boat: Boat,
    seconds: Annotated[float, typer.Option(help="How long to listen, s.")] = 5.0,
    address: Listen = None,
    peer: Peer = None,
    as_json: AsJson = False,
) -> None:
    """Listen to a boat and say what would keep it from starting. Sends no command; exits with 1 if something would."""
    if not 1 <= seconds <= 600:
        raise InputError(f"seconds = {seconds:g}: must be from 1 to 600")
    with _bench(boat, address, peer) as (bench, link):
        print(f"listening for {seconds:g} s", file=sys.stderr, flush=True)
        ended = bench.listen(seconds) or _read_parameters(bench, link)
        found = _findings(bench, link)
    missing = [*found["missing"], *([f"ended: {ended}"] if ended else [])]
    if as_json:
        print_json({"boat": boat} | found | {"missing": missing})
    else:
        console = open_console()
        table = new_table(["message", "received", "a second"])
        for kind, count in found["received"].items():
            table.add_row(kind, str(count), f"{count / seconds:.1f}")
        console.print(table)
        for name in ("state", "pose", "operator", "reported"):
            if found[name] is not None:
                console.print(f"{name}: {_words(found[name])}", soft_wrap=True)
        for reason, times in found["rejected"].items():
            console.print(f"rejected: {reason}, {times} times", soft_wrap=True)
        for reason in missing:
            console.print(f"missing: {reason}", soft_wrap=True)
        if not missing:
            console.print("ready: the pilot's own checks follow when it starts (docs/safety.md)")
    if missing:
        raise RunError(f"{boat}: the boat would not start: {'; '.join(missing)}")


def thrusters(
    boat: Boat,
    level: Annotated[
        float, typer.Option("--command", help=f"Level, as a fraction: {LEAST_COMMAND:g} to {MOST_COMMAND:g}.")
    ] = 0.2,
    seconds: Annotated[float, typer.Option(help="How long each runs at that level, s.")] = 1.5,
    only: Annotated[int | None, typer.Option(help="Only this one, from 0 in the order of the file.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before each.")] = False,
    address: Listen = None,
    peer: Peer = None,
) -> None:
    """Run one thruster after the other, ahead and astern, to see that order and direction are those of the file."""
    if not LEAST_COMMAND <= level <= MOST_COMMAND:
        raise InputError(f"command = {level:g}: must be from {LEAST_COMMAND:g} to {MOST_COMMAND:g}")
    if not 0.5 <= seconds <= 10:
        raise InputError(f"seconds = {seconds:g}: must be from 0.5 to 10")
    with _bench(boat, address, peer) as (bench, link):
        if only is not None and not 0 <= only < len(bench.outputs):
            raise InputError(f"only = {only}: must be from 0 to {len(bench.outputs) - 1}: {', '.join(bench.outputs)}")
        bench.listen(WAIT)
        _read_parameters(bench, link)
        if not math.isfinite(bench.vehicle.clock.at(0.0)):
            raise RunError(f"{link.peer}: nothing is heard from the boat: {link.hint()}")
        if reason := link.unready():
            raise RunError(f"{boat}: {reason}: no thruster is tested")
        console = open_console()
        console.print("Keep hands and ropes away from the propellers. Ctrl-C stops the boat at once.")
        for i in range(len(bench.outputs)) if only is None else (only,):
            ways = ("positive", "negative") if bench.setup.link.command == "wrench" else ("ahead", "astern")
            for sign, way in zip((1, -1), ways, strict=True):
                words = _direction(sign * bench.expected(i))
                what = f"{bench.outputs[i]} {way} at {100 * level:.0f} %: expect {words}"
                if not yes and not _confirm(f"{what}. Run it?", bench):
                    console.print(f"{bench.outputs[i]} {way}: left out")
                    continue
                if reason := link.unready():
                    raise RunError(f"{boat}: {reason}: no further thruster is tested")
                console.print(what, soft_wrap=True)
                done = bench.pulse(i, sign * level, seconds)
                if done.ended:
                    raise RunError(f"{bench.outputs[i]} {way}: ended: {done.ended}; thrusters at zero")
                said = f"the boat reported {done.reported:+.2f}" if done.reported is not None else "no report"
                said += f", measured {done.measured:+.2f} of its thrust" if done.measured is not None else ""
                console.print(f"  {said if done.confirmed else 'not confirmed: the boat took no command'}")
        console.print("thrusters at zero")


def _read_parameters(bench: Bench, link: ConfiguredLink) -> str:
    """Listen on while an autopilot's parameters are read; why that ended early, or empty."""
    ends = time.monotonic() + PARAMETER_TIME
    while link.unready().startswith("parameters not read yet") and time.monotonic() < ends:
        if reason := bench.listen(PERIOD):
            return reason
    return ""


def _confirm(question: str, bench: Bench) -> bool:
    """Ask, and keep listening meanwhile: an autopilot that does not hear us for seconds takes it for a failure."""
    try:
        number = sys.stdin.fileno()
        select.select([number], [], [], 0)
    except (AttributeError, OSError, ValueError):  # closed, an object in memory, or a system that cannot wait for it
        return typer.confirm(question, default=False, err=True)
    print(f"{question} [y/N]: ", end="", file=sys.stderr, flush=True)
    answer = b""
    # Byte by byte, since what Python reads ahead would not be waited for again.
    while not answer.endswith(b"\n"):
        if not select.select([number], [], [], 0)[0]:
            if reason := bench.listen(PERIOD):
                raise RunError(f"ended: {reason}; thrusters at zero")
        elif byte := os.read(number, 1):
            answer += byte
        else:
            break
    return answer.strip().lower() in (b"y", b"yes")


@contextmanager
def _bench(boat: str, address: str | None, peer: str | None) -> Iterator[tuple[Bench, ConfiguredLink]]:
    from anyhull.onboard.bench import Bench

    setup = Setup.load(boat)
    link = open_pilot_link(boat, setup, address, peer)
    try:
        with until_signal() as stopped:
            yield Bench(setup, link, stop=stopped), link
    finally:
        link.close()


def _findings(bench: Bench, link: ConfiguredLink) -> dict[str, Any]:
    vehicle, setup = bench.vehicle, bench.setup
    estimate = vehicle.estimator.at(vehicle.clock.at(time.monotonic()))
    state = f"{estimate.health} {estimate.reason}".strip()
    status = vehicle.status
    missing = [] if vehicle.received else [f"nothing is heard from {link.peer}: {link.hint()}"]
    missing += [unready] if (unready := link.unready()) else []
    missing += [] if estimate.health == "ok" else [f"state {state}"]
    if status is None:
        missing.append("no status, which confirms commands")
    elif setup.link.command == "thrusters" and len(status.thrusters) != len(setup.vessel.thrusters):
        given = f"{len(status.thrusters)} thrusters reported, {len(setup.vessel.thrusters)} in the boat's file"
        missing.append(given)
    if vehicle.operator != "auto":
        missing.append(f"the operator's switch is at {vehicle.operator}")
    faults = {name: why for name, why in vehicle.faults(0.0).items() if name in ("battery", "leak", "tilt", "thruster")}
    missing += [f"{name}: {why}" for name, why in faults.items()]
    return {
        "received": dict(vehicle.received),
        "rejected": dict(bench.link.rejected),
        "state": state,
        "pose": estimate.pose.tolist() if estimate.valid else None,
        "operator": vehicle.operator if "operator" in vehicle.received else None,
        "reported": None if status is None else list(status.wrench or status.thrusters),
        "missing": missing,
    }


def _words(value: Any) -> str:
    return ", ".join(f"{number:.3f}" for number in value) if isinstance(value, list) else str(value)


def _direction(force: Any) -> str:
    """Where a force (surge, sway, yaw) pushes, in words."""
    surge, sway, yaw = (float(value) for value in force)
    largest = max(abs(surge), abs(sway), abs(yaw), 1e-9)
    words = [
        word
        for value, (positive, negative) in (
            (surge, ("ahead", "astern")),
            (sway, ("to the side of positive y", "to the side of negative y")),
            (yaw, ("a turn of the bow toward positive y", "a turn of the bow toward negative y")),
        )
        if abs(value) > 0.15 * largest and (word := positive if value > 0 else negative)
    ]
    return ", ".join(words) or "nothing"
