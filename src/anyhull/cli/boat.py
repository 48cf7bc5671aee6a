"""`anyhull boat`: a simulated boat in a process of its own, at the other end of a link."""

from __future__ import annotations

import math
import random
import sys
import time
from typing import Annotated

import typer

from anyhull.boat.messages import COUNT
from anyhull.cli.boats import load, until_signal, warn
from anyhull.cli.output import AsJson, print_json
from anyhull.errors import InputError
from anyhull.trial.water import WATERS, Water


def boat(
    vessel: Annotated[str, typer.Option(help="A name of the catalogue, or a path to a TOML file.")] = "platform-a",
    sea: Annotated[str, typer.Option(help=f"{', '.join(WATERS)}.")] = "lake",
    seed: Annotated[int, typer.Option(min=0, help="Draws the boat and the weather.")] = 0,
    listen: Annotated[str | None, typer.Option(help="Address of the boat; by default its file's [link] peer.")] = None,
    peer: Annotated[str | None, typer.Option(help="Address of the pilot; by default its file's [link] listen.")] = None,
    time_factor: Annotated[float, typer.Option(help="How much faster than the wall clock.")] = 1.0,
    duration: Annotated[
        float, typer.Option(help="How long to live, in s of the boat's; until a signal else.")
    ] = math.inf,
    as_json: AsJson = False,
) -> None:
    """Simulate a boat: sensors out, thruster commands in, over UDP. Its watchdog stops it when no commands come."""
    if not 0 < time_factor <= 100:
        raise InputError(f"time-factor = {time_factor:g}: must be positive and at most 100")
    if not duration > 0:
        raise InputError(f"duration = {duration:g}: must be positive")
    setup = load(vessel)
    water = Water.preset(sea)
    from anyhull.boat.link import UDP
    from anyhull.trial.serve import serve
    from anyhull.trial.twin import Nature, Twin

    antenna = (setup.sensors.antenna_x, setup.sensors.antenna_y)
    session = random.SystemRandom().randrange(COUNT)
    twin = Twin(setup.vessel, Nature(water=water), seed=seed, antenna=antenna, session=session)
    warn(twin.vessel)
    link = UDP(listen or setup.link.peer, peer or setup.link.listen)
    print(f"{twin.vessel.name} at {link.address}, for a pilot at {link.peer} alone", file=sys.stderr, flush=True)
    told = [True]

    def tell() -> None:
        board = twin.firmware
        if board.stopped != told[0]:
            told[0] = board.stopped
            what = "watchdog: no commands, thrusters at zero" if board.stopped else "commands come in"
            print(f"{twin.time:9.2f} s  {what}", file=sys.stderr, flush=True)

    began = time.monotonic()
    try:
        with until_signal() as signalled:
            over = lambda: bool(signalled()) or (time.monotonic() - began) * time_factor >= duration  # noqa: E731
            serve(twin, link, speed=time_factor, stop=over, on_tick=tell)
    finally:
        link.close()
    board = twin.firmware
    rejected = dict(board.rejected + link.refused)
    if as_json:
        counts = {"taken": board.taken, "rejected": rejected, "watchdog": board.trips, "stopped": board.stopped}
        print_json({"vessel": vessel, "time": twin.time, "state": twin.state, **counts})
        return
    print(f"{twin.time:.1f} s, {board.taken} commands taken, watchdog stopped the boat {board.trips} times")
    if rejected:
        print("not taken: " + ", ".join(f"{reason} {times}" for reason, times in rejected.items()))
