"""`anyhull twin`: the twin of a boat in its own process, at one end of a link."""

from __future__ import annotations

import math
import os
import random
import sys
import time
from dataclasses import replace
from typing import Annotated

import typer

from anyhull.cli.hulls import say_hull
from anyhull.cli.onboard import TimeFactor, check_time_factor, until_signal, warn
from anyhull.cli.output import AsJson, print_json
from anyhull.errors import InputError
from anyhull.onboard.messages import MAX_INTEGER
from anyhull.onboard.setup import Setup
from anyhull.twin.water import WATERS, Water


def twin(
    vessel: Annotated[str, typer.Option(help="A name of the catalogue, or a path to a TOML file.")] = "platform-a",
    sea: Annotated[str, typer.Option(help=f"{', '.join(WATERS)}.")] = "lake",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the boat and the weather.")] = 0,
    listen: Annotated[
        str | None, typer.Option(help=r"Address of the boat; by default the file's \[link] peer.")
    ] = None,
    peer: Annotated[
        str | None, typer.Option(help=r"Address of the pilot; by default the file's \[link] listen.")
    ] = None,
    time_factor: TimeFactor = 1.0,
    duration: Annotated[float, typer.Option(help="In s of the boat's time; by default until a signal.")] = math.inf,
    as_json: AsJson = False,
) -> None:
    """Simulate a boat at the end of its link: state out, commands in. It stops when no commands arrive."""
    check_time_factor(time_factor)
    if not duration > 0:
        raise InputError(f"duration = {duration:g}: must be positive")
    setup = Setup.load(vessel)
    water = Water.preset(sea)
    from anyhull.twin.autopilot_board import AutopilotBoard
    from anyhull.twin.opening import open_boat_end
    from anyhull.twin.serve import serve
    from anyhull.twin.twin import Twin, TwinConfig

    antenna = (setup.sensors.antenna_x, setup.sensors.antenna_y)
    session = random.SystemRandom().randrange(MAX_INTEGER)
    boat = Twin(setup.vessel, TwinConfig(water=water), seed=seed, antenna=antenna, session=session)
    warn(replace(setup.vessel, thrusters=boat.vessel.thrusters))
    say_hull(setup.vessel, seed)
    link = open_boat_end(setup.link, boat.vessel, listen, peer)
    print(f"{boat.vessel.name} at {link.address}, only for a pilot at {link.peer}", file=sys.stderr, flush=True)
    was_stopped, skipped, situation = True, 0.0, ""
    too_slow = f"this machine is too slow for --time-factor {time_factor:g}"

    def report_changes() -> None:
        nonlocal was_stopped, situation
        if (now := getattr(link, "situation", "")) != situation:
            situation = now
            hint = "" if now.startswith("armed, MANUAL") else f"; kill -USR1 {os.getpid()} arms it, in MANUAL"
            print(f"{boat.time:9.2f} s  {now}{hint}", file=sys.stderr, flush=True)
        if boat.firmware.stopped != was_stopped:
            was_stopped = boat.firmware.stopped
            what = "watchdog: no commands, thrusters at zero" if was_stopped else "commands received"
            print(f"{boat.time:9.2f} s  {what}", file=sys.stderr, flush=True)

    def report_skipped(seconds: float) -> None:
        nonlocal skipped
        if not skipped:
            print(f"{boat.time:9.2f} s  time is skipped: {too_slow}", file=sys.stderr, flush=True)
        skipped += seconds

    began = time.monotonic()
    try:
        switch_back = getattr(link, "switch_back", None)
        with until_signal({"SIGUSR1": switch_back} if switch_back else None) as signalled:
            ended = lambda: bool(signalled()) or (time.monotonic() - began) * time_factor >= duration  # noqa: E731
            board = AutopilotBoard(boat, setup.link, setup.sensors)
            serve(board, link, time_factor=time_factor, stop=ended, on_tick=report_changes, on_skip=report_skipped)
    finally:
        link.close()
    firmware = boat.firmware
    rejected = dict(firmware.rejected + link.rejected)
    if as_json:
        counts = {"accepted": firmware.accepted, "rejected": rejected, "watchdog": firmware.trips}
        counts |= {"stopped": firmware.stopped}
        print_json({"vessel": vessel, "time": boat.time, "skipped": skipped, "state": boat.state, **counts})
        return
    print(
        f"{boat.time:.1f} s, {firmware.accepted} commands accepted, {firmware.trips} stops by the watchdog under thrust"
    )
    if skipped:
        print(f"skipped {skipped:.1f} s: {too_slow}")
    if rejected:
        print("rejected: " + ", ".join(f"{reason} {times}" for reason, times in rejected.items()))
