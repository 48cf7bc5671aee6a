"""`anyhull log`: what a run recorded, as a summary, a figure, or a file for other tools."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from anyhull.backend import Array
from anyhull.cli.output import AsJson, Mcap, check_outputs, new_table, open_console, print_json, write_files
from anyhull.errors import InputError
from anyhull.files import atomic_write
from anyhull.log import Log
from anyhull.schema import decode
from anyhull.viz.captions import METRICS
from anyhull.viz.facts import has_reference
from anyhull.viz.topics import estimates, summarize

EVENTS = 20
"""Events printed; of more, the last ones."""

STRETCH, EVENT = (float, float), (float, str, str)
"""Types of a time interval, and of an event: time, name and detail."""


def log(
    file: Annotated[
        Path, typer.Argument(help="A log (.npz), the journal (.jsonl) of a run that was killed, or ArduPilot's .BIN.")
    ],
    plot: Annotated[Path | None, typer.Option(help="Write path, errors and commands to this figure.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Write every period to this new .csv.")] = None,
    mcap: Mcap = None,
    bag: Annotated[Path | None, typer.Option(help="Write a ROS 2 bag to this new folder.")] = None,
    layout: Annotated[
        Path | None, typer.Option(help="Write Foxglove's layout for these topics to this new .json.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print what a run recorded: how it ended, its errors along the reference, and its events."""
    check_outputs(plot, None, None, mcap)
    from anyhull.viz.foxglove import check_new

    for output, suffix, kind in ((csv, ".csv", "a table"), (layout, ".json", "a layout")):
        if output is not None:
            check_new(output, suffix, kind)
    if bag is not None:
        from anyhull.viz.rosbag import check_bag

        check_bag(bag)
    found = read_log(file)
    stretches, events = _about(file, found, "following", STRETCH), _about(file, found, "events", EVENT) or []
    # Of a pilot's run the time on the reference counts; what was simulated is on it from the start.
    followed = found if stretches is None else found.during(stretches) if stretches else None
    compared = has_reference(found.about)
    files = _convert(file, found, csv, mcap, bag, layout)
    files |= write_files(followed or found, plot, None, None)
    errors = _errors(followed) if compared else {}
    if as_json:
        about = {name: value for name, value in found.about.items() if name not in ("following", "events")}
        document: dict[str, Any] = {"file": str(file), "duration": float(found.time[-1] - found.time[0])}
        document |= {"periods": len(found.time), "metrics": {name: asdict(of) for name, of in errors.items()}}
        if (last := _dynamics(found)) is not None:
            document |= {"dynamics": estimates(last)}
        print_json(document | {"about": about, "events": events, "files": files})
        return
    console = open_console()
    words = (found.about.get(name) for name in ("vessel", "controller"))
    how = f", ended: {found.about['ended'] or 'killed'}" if "ended" in found.about else ""
    named = ", ".join(str(word) for word in words if word)
    console.print(f"{named or file.name}, {found.time[-1] - found.time[0]:.1f} s, {len(found.time)} periods{how}\n")
    if errors:
        table = new_table(["state", "position, cm", "largest", "heading, °", "largest", METRICS["delta_tau"]])
        for name, of in errors.items():
            figures = (of.position_cm, of.position_max_cm, of.heading_deg, of.heading_max_deg)
            table.add_row(name, *(f"{value:.2f}" for value in figures), f"{of.delta_tau:.4f}")
        console.print(table)
    else:
        console.print("never on its reference" if compared else "no reference in the log, so no errors")
    if (last := _dynamics(found)) is not None:
        console.print(f"the controller's estimate of the boat at the end, ± 1 sd: {summarize(last)}", soft_wrap=True)
    if len(events) > EVENTS:
        console.print(f"the last {EVENTS} of {len(events)} events; --json has all")
    # A pilot's events have the boat's own time; those of a simulation, and figures and tables, count from the start.
    start = found.about.get("boat_time")
    start = float(start) if isinstance(start, float | int) else 0.0
    for time, what, detail in events[-EVENTS:]:
        time = time - start if time > 0 else 0.0  # zero is before the boat's time was known
        console.print(f"{time:9.2f} s  {what}{f': {detail}' if detail else ''}", soft_wrap=True)
    for what, path in files.items():
        console.print(f"{what}: {path}", soft_wrap=True)


def read_log(file: Path) -> Log:
    """A log, the journal of a run that was killed, or ArduPilot's log."""
    if file.suffix == ".npz":
        return Log.load(file)
    if file.suffix in (".bin", ".BIN"):
        from anyhull.viz.ardupilot import read_ardupilot

        return read_ardupilot(file)
    if file.suffix != ".jsonl":
        raise InputError(f"{file}: must be a log that ends in .npz, a journal (.jsonl) or ArduPilot's (.BIN)")
    from anyhull.onboard.recorder import recover

    found = recover(file)
    if not len(found.time):
        raise InputError(f"{file}: holds no period")
    return found


def _dynamics(log: Log) -> Array | None:
    """The last estimate of e that the controller had, with its spreads; None where it had none."""
    if log.dynamics is None:
        return None
    rows = log.dynamics[np.isfinite(log.dynamics).all(axis=1)]
    return rows[-1] if len(rows) else None


def _convert(
    file: Path, log: Log, csv: Path | None, mcap: Path | None, bag: Path | None, layout: Path | None
) -> dict[str, str]:
    """Write the log in other formats; their paths by format."""
    files = {}
    try:
        if csv:
            files["csv"] = str(log.save_csv(csv))
        if bag:
            from anyhull.viz.rosbag import write_bag

            files["bag"] = str(write_bag(log, bag))
        files |= write_files(log, None, None, None, mcap)
    except InputError as error:
        named = str(error)  # of an output by its own name, of the log by its field alone
        known = named.startswith(tuple(f"{path}: " for path in (csv, mcap, bag)))
        raise InputError(named if known else f"{file}: {named}") from None
    if layout:
        from anyhull.viz.foxglove import LAYOUT

        with atomic_write(layout) as temporary:
            temporary.write_bytes(LAYOUT.read_bytes())
        files["layout"] = str(layout)
    return files


def _about(file: Path, log: Log, name: str, types: tuple[type, ...]) -> list[Any] | None:
    """The rows of a list in the log's description, None where there is none; raise for others than of these types."""
    rows = log.about.get(name)
    try:
        return None if rows is None else list(decode(tuple[tuple[*types], ...], rows, name))  # type: ignore[valid-type]
    except InputError as error:
        raise InputError(f"{file}: {error}") from None


def _errors(log: Log | None) -> dict[str, Any]:
    """Metrics by which state they are of; those of a pilot's run are of its estimate, which it has as the state."""
    if log is None:
        return {}
    if log.estimate is not None:
        return {"true": log.metrics(), "estimated": log.estimated.metrics()}
    return {"estimated" if "following" in log.about else "true": log.metrics()}
