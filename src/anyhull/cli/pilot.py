"""`anyhull pilot`: the loop on the boat, by the wall clock."""

from __future__ import annotations

import itertools
import sys
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from anyhull.boat.link import UDP
from anyhull.cli.boats import load, until_signal, warn
from anyhull.cli.controllers import controller, names
from anyhull.cli.output import AsJson, open_console, print_json
from anyhull.cli.references import shape
from anyhull.cli.sail import check_outputs
from anyhull.dynamics import PERIOD
from anyhull.errors import InputError


def pilot(
    boat: Annotated[
        str, typer.Argument(help="The boat's TOML file: the vessel, its thrusters, and [link] and others.")
    ],
    controller_name: Annotated[str, typer.Option("--controller", help=f"{', '.join(names())}.")] = "field",
    reference: Annotated[str, typer.Option(help="line, circle, rectangle, eight or hold.")] = "rectangle",
    speed: Annotated[float | None, typer.Option(help="m/s.")] = None,
    laps: Annotated[float | None, typer.Option(help="Times round a closed path.")] = None,
    listen: Annotated[str | None, typer.Option(help="Address of the pilot; by default the file's.")] = None,
    peer: Annotated[str | None, typer.Option(help="Address of the boat; by default the file's.")] = None,
    time_factor: Annotated[
        float, typer.Option(help="How much faster than the wall clock, for a simulated boat.")
    ] = 1.0,
    plot: Annotated[Path | None, typer.Option(help="Write path, errors and commands to this picture.")] = None,
    out: Annotated[
        Path, typer.Option(help="Write the log to this .npz; under way it grows in a .jsonl beside it.")
    ] = Path("pilot.npz"),
    as_json: AsJson = False,
) -> None:
    """Steer a boat along a reference that starts at the origin; SIGINT or SIGTERM stop it in order."""
    check_outputs(plot, None, out)
    if not 0 < time_factor <= 100:
        raise InputError(f"time-factor = {time_factor:g}: must be positive and at most 100")
    setup = load(boat)
    wanted = {name: value for name, value in (("speed", speed), ("laps", laps)) if value is not None}
    path = shape(reference, wanted, None)
    from anyhull.boat.helm import Helm
    from anyhull.boat.loop import drive
    from anyhull.cli.live import Lines, View

    helm = Helm(setup, controller(controller_name, setup.vessel), path)
    warn(setup.vessel, path)
    link = UDP(listen or setup.link.listen, peer or setup.link.peer)
    journal = out.with_suffix(".jsonl")
    about = {"controller": controller_name, "reference": {"shape": reference} | wanted}
    print(
        f"pilot of {setup.vessel.name} at {link.address}, for a boat at {link.peer} alone", file=sys.stderr, flush=True
    )
    with ExitStack() as stack:
        stack.callback(link.close)
        stopped = stack.enter_context(until_signal())
        _keep(journal, out)
        shown: View | Lines = View(helm) if sys.stderr.isatty() else Lines(helm)
        stack.enter_context(shown)
        log = drive(helm, link, speed=time_factor, stop=stopped, on_beat=shown.show, journal=journal, about=about)
    if not len(log.time):
        journal.unlink()
        raise InputError(
            f"{link.peer}: nothing heard that gives a state; is the boat there, and sends to {link.address}?"
        )
    files = {"log": str(log.save(out))}
    journal.unlink()
    if plot:
        log.plot(plot)
        files["plot"] = str(plot)
    ended = stopped() or helm.phase
    followed = log.during(log.about["following"]) if log.about["following"] else None
    metrics = followed.metrics() if followed else None
    if as_json:
        told = {"boat": boat, "controller": controller_name, "ended": ended, "metrics": metrics and asdict(metrics)}
        print_json(told | {"noted": log.about["noted"], "heard": log.about["heard"], "files": files})
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


def _keep(journal: Path, out: Path) -> None:
    """Make a log of the journal of a run that was killed, where there is one; one that cannot be read is set aside."""
    from anyhull.boat.journal import in_use, recover

    if not journal.exists():
        return
    if in_use(journal):
        raise InputError(f"{journal}: another pilot writes to it: give another --out")
    try:
        log = recover(journal)
        if not len(log.time):
            raise InputError(f"{journal}: holds no period")
    except InputError as error:
        aside = journal.replace(journal.with_suffix(".jsonl.old"))
        print(f"{error}; set aside as {aside}", file=sys.stderr, flush=True)
        return
    free = (out.with_stem(f"{out.stem}-killed-{i}") for i in itertools.count(1))
    kept = log.save(next(path for path in free if not path.exists()))
    print(f"{journal}: is of a run that was killed; kept as {kept}", file=sys.stderr, flush=True)
    journal.unlink()
