"""`anyhull pilot`: the loop on the boat, in real time."""

from __future__ import annotations

import itertools
import sys
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from anyhull.cli.controllers import controller, names
from anyhull.cli.onboard import TimeFactor, check_time_factor, read_reference, until_signal, warn
from anyhull.cli.output import AsJson, check_outputs, open_console, print_json, write_files
from anyhull.dynamics import PERIOD
from anyhull.errors import InputError
from anyhull.onboard.links import UDP
from anyhull.onboard.setup import Setup


def pilot(
    boat: Annotated[str, typer.Argument(help="The boat's TOML file: vessel, thrusters, [link] and other tables.")],
    controller_name: Annotated[str, typer.Option("--controller", help=f"{', '.join(names())}.")] = "field",
    reference: Annotated[str, typer.Option(help="line, circle, rectangle, eight or hold.")] = "rectangle",
    speed: Annotated[float | None, typer.Option(help="m/s.")] = None,
    laps: Annotated[float | None, typer.Option(help="Laps of a closed path.")] = None,
    listen: Annotated[str | None, typer.Option(help="Address of the pilot; by default the file's.")] = None,
    peer: Annotated[str | None, typer.Option(help="Address of the boat; by default the file's.")] = None,
    time_factor: TimeFactor = 1.0,
    plot: Annotated[Path | None, typer.Option(help="Write path, errors and commands to this figure.")] = None,
    out: Annotated[
        Path, typer.Option(help="Write the log to this .npz; during the run it grows in a .jsonl beside it.")
    ] = Path("pilot.npz"),
    as_json: AsJson = False,
) -> None:
    """Steer a boat along a reference that starts at the origin; SIGINT or SIGTERM ramp down and end the run."""
    check_outputs(plot, None, out)
    check_time_factor(time_factor)
    setup = Setup.load(boat)
    path, asked = read_reference(reference, speed, laps)
    from anyhull.cli.live import Lines, View
    from anyhull.onboard.autopilot import Autopilot
    from anyhull.onboard.loop import run_autopilot

    autopilot = Autopilot(setup, controller(controller_name, setup.vessel), path)
    warn(setup.vessel, path, autopilot.controller)
    link = UDP(listen or setup.link.listen, peer or setup.link.peer)
    journal = out.with_suffix(".jsonl")
    about = {"controller": controller_name, "reference": asked}
    print(
        f"pilot of {setup.vessel.name} at {link.address}, only for a boat at {link.peer}", file=sys.stderr, flush=True
    )
    with ExitStack() as stack:
        stack.callback(link.close)
        stopped = stack.enter_context(until_signal())
        _recover_killed_run(journal, out)
        shown: View | Lines = View(autopilot) if sys.stderr.isatty() else Lines(autopilot)
        stack.callback(shown.close)
        log = run_autopilot(
            autopilot, link, time_factor=time_factor, stop=stopped, on_step=shown.show, journal=journal, about=about
        )
    if not len(log.time):
        journal.unlink()
        raise InputError(f"{link.peer}: no state received; check that the boat runs and sends to {link.address}")
    files = write_files(log, plot, None, out)
    journal.unlink()
    ended = stopped() or autopilot.phase
    followed = log.during(log.about["following"]) if log.about["following"] else None
    metrics = followed.metrics() if followed else None
    if as_json:
        document = {"boat": boat, "controller": controller_name, "ended": ended, "metrics": metrics and asdict(metrics)}
        print_json(document | {name: log.about[name] for name in ("event_counts", "received")} | {"files": files})
        return
    console = open_console()
    console.print(f"ended: {ended}, thrusters at zero, {log.time[-1]:.1f} s")
    if followed and metrics:
        console.print(
            f"{PERIOD * len(followed.time):.1f} s along the reference: position {metrics.position_cm:.1f} cm, "
            f"heading {metrics.heading_deg:.1f}°, of the estimated state"
        )
    for what, file in files.items():
        console.print(f"{what}: {file}", soft_wrap=True)


def _recover_killed_run(journal: Path, out: Path) -> None:
    """Save the journal of a run that was killed as a log; rename one that cannot be read."""
    from anyhull.onboard.recorder import in_use, recover

    if not journal.exists():
        return
    if in_use(journal):
        raise InputError(f"{journal}: another pilot writes to it: give another --out")
    try:
        log = recover(journal)
        if not len(log.time):
            raise InputError(f"{journal}: holds no period")
    except InputError as error:
        renamed = journal.replace(journal.with_suffix(".jsonl.old"))
        print(f"{error}; renamed to {renamed}", file=sys.stderr, flush=True)
        return
    candidates = (out.with_stem(f"{out.stem}-killed-{i}") for i in itertools.count(1))
    saved = log.save(next(path for path in candidates if not path.exists()))
    print(f"{journal}: from a run that was killed; saved as {saved}", file=sys.stderr, flush=True)
    journal.unlink()
