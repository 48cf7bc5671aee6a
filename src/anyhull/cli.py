"""The command `anyhull`: look at vessels, sail one, see the demonstration."""

from __future__ import annotations

import csv
import difflib
import io
import json
import math
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from anyhull.controller import Controller
from anyhull.errors import InputError
from anyhull.log import Log, Metrics
from anyhull.reference import Reference, circle, figure_eight, hold, line, rounded_rectangle, through
from anyhull.sea import PRESETS, Sea
from anyhull.simulate import simulate
from anyhull.vessel import TRAINED, Normalized, Vessel, catalogue

SYMBOLS = dict(zip(TRAINED, ("αu", "αv", "αr", "1/τu", "1/τv", "1/τr", "crv", "cru", "cuv"), strict=True))
"""The components of e as a narrow table spells them."""

PLATFORMS = ("platform-a", "platform-b", "roboat-1", "roboat-2", "roboat-3")
"""The paper's five."""

PAPER_MPC = {"position_cm": 0.33, "heading_deg": 0.07}
"""The paper's MPC in ideal conditions, averaged over its five platforms."""

LONGEST = 24 * 3600.0
"""Longest run, s."""

WIDTH = 100
"""Columns that tables are made for, and take where the output is no terminal."""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, help="Simulate and steer any surface vessel.")
vessels_app = typer.Typer(help="List the vessels of the catalogue, or show one.")
app.add_typer(vessels_app, name="vessels")

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]


class RunError(Exception):
    """A run that could not be finished, though the input was in order."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit status.

    1 after a run that a controller gave up, 2 after a mistake in the input, 130 when interrupted.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without Greek letters shows question marks instead
    usage_error: Any = typer.BadParameter.__base__  # Typer's own in new versions, Click's in older ones
    try:
        status = app(arguments, standalone_mode=False) or 0
    except usage_error as error:
        return _fail(error.format_message(), 2)
    except InputError as error:
        return _fail(str(error), 2)
    except RunError as error:
        return _fail(str(error), 1)
    except OSError as error:
        return _fail(f"{error.filename or 'output'}: {error.strerror or error}", 2)
    except (KeyboardInterrupt, typer.Abort):
        status = 130
    return _fail("interrupted", 130) if status == 130 else int(status)


def _fail(message: str, status: int) -> int:
    print("error:", " ".join(message.split()), file=sys.stderr)
    return status


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"anyhull {metadata.version('anyhull')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Simulate and steer any surface vessel."""
    if context.invoked_subcommand is None:
        print(context.get_help())


@vessels_app.callback(invoke_without_command=True)
def vessels(context: typer.Context, as_json: AsJson = False) -> None:
    """List the vessels of the catalogue: e, top speed, yaw stability, and whether the paper's training held them."""
    if context.invoked_subcommand is not None:
        return
    fleet = {name: Vessel.load(name) for name in catalogue()}
    if as_json:
        _print_json([_facts(name, vessel) for name, vessel in fleet.items()])
        return
    table = _table(["name", *SYMBOLS.values(), "top", "yaw", "acts", "outside"], left=("name", "outside"), gap=1)
    for name, vessel in fleet.items():
        outside = " ".join(SYMBOLS[entry.component] for entry in vessel.envelope())
        yaw = "stable" if math.isinf(vessel.yaw_unstable_above) else f">{vessel.yaw_unstable_above:.2g}"
        e = (f"{value:.2g}" for value in vessel.normalized)
        row = [name, *e, f"{vessel.top_speeds[0]:.2g}", yaw, vessel.actuation, outside or "inside"]
        table.add_row(*row, style="" if outside == "" else "dim")
    console = _console()
    console.print(table)
    console.print(
        "\nαu … cuv: the nine components of e, SI units. top: surge speed under full command, m/s.\n"
        "yaw: stable, or unstable above that speed in m/s. acts: under, where the boat cannot push surge,\n"
        "sway and yaw independently. outside: inside the paper's training ranges, or the components outside\n"
        "(with damping beyond linear read at 0.6 m/s). One in full: anyhull vessels show NAME"
    )


@vessels_app.command("show")
def show(
    vessel: Annotated[str, typer.Argument(help="A name of the catalogue, or a path to a TOML file.")],
    as_json: AsJson = False,
) -> None:
    """Show everything that is known of one vessel."""
    boat = Vessel.load(vessel)
    if as_json:
        _print_json(_facts(vessel, boat) | {"effective": boat.effective()._asdict(), **asdict(boat)})
        return
    console = _console()
    console.print(Text(boat.name, style="bold"))
    size = [f"{what} {value:g} m" for what, value in (("length", boat.length), ("beam", boat.beam)) if value]
    under = "under-actuated" if boat.actuation == "under" else "fully actuated"
    console.print(", ".join([under, *size, *([f"quality {boat.quality}"] if boat.quality else [])]), "\n")
    console.print(_physics(boat))
    unstable = boat.yaw_unstable_above
    stability = "stable at any speed" if math.isinf(unstable) else f"unstable above {unstable:.2g} m/s, open loop"
    console.print(f"mass {boat.m:g} kg.  Yaw: {stability}.\n")
    console.print(_components(boat))
    envelope = boat.envelope()
    for entry in envelope:
        console.print(
            f"{entry.component} = {entry.value:.3g} is outside [{entry.low:g}, {entry.high:g}]: {entry.advice}"
        )
    if not envelope:
        console.print("Inside the paper's training ranges.")
    if boat.thrusters:
        console.print()
        console.print(_layout(boat))
    for what, text in (("Source", boat.source), ("Caveats", boat.caveats)):
        if text:
            console.print(f"\n{what}: {text}")


def _physics(boat: Vessel) -> Table:
    """Inertia, damping, limit and top speed of each axis."""
    table = _table(["axis", "added mass", "inertia", "damping", "quadratic", "cubic", "limit", "top speed"])
    rows = (
        ("surge", boat.X_udot, (boat.X_u, boat.X_uu, boat.X_uuu), "m/s", "N"),
        ("sway", boat.Y_vdot, (boat.Y_v, boat.Y_vv, boat.Y_vvv), "m/s", "N"),
        ("yaw", None, (boat.N_r, boat.N_rr, boat.N_rrr), "rad/s", "N·m"),
    )
    for i, (axis, added, damping, speed, force) in enumerate(rows):
        inertia = f"{boat.inertia[i]:.5g} {'kg·m²' if axis == 'yaw' else 'kg'}"
        drag = [f"{value:.5g}" if value else "-" for value in damping]
        top = "unlimited" if math.isinf(boat.top_speeds[i]) else f"{boat.top_speeds[i]:.3g} {speed}"
        given = "-" if added is None else f"{added:.5g} kg"
        table.add_row(axis, given, inertia, *drag, f"{boat.limits[i]:.5g} {force}", top)
    return table


def _components(boat: Vessel) -> Table:
    """e beside the ranges that the paper trained on."""
    table = _table(["component", "e", "at 0.6 m/s", "trained from", "to", ""], left=("component", ""))
    outside = {entry.component for entry in boat.envelope()}
    for name, value, effective in zip(Normalized._fields, boat.normalized, boat.effective(), strict=True):
        low, high = TRAINED[name]
        verdict = "outside" if name in outside else "inside"
        table.add_row(name, f"{value:.4g}", f"{effective:.4g}", f"{low:g}", f"{high:g}", verdict)
    return table


def _layout(boat: Vessel) -> Table:
    table = _table(["thruster", "x (m)", "y (m)", "angle (°)", "forward (N)", "reverse (N)", "dead band", "lag (s)"])
    for t in boat.thrusters:
        angle = "any" if t.kind == "azimuth" else f"{t.angle:g}"
        reverse = t.forward if t.reverse is None else t.reverse
        numbers = (f"{t.forward:.5g}", f"{reverse:.5g}", f"{t.dead_band:g}", f"{t.lag:g}")
        table.add_row(t.kind, f"{t.x:g}", f"{t.y:g}", angle, *numbers)
    return table


def _facts(name: str, vessel: Vessel) -> dict[str, Any]:
    """What the list says of a vessel, for machines."""
    surge, sway, yaw = vessel.top_speeds
    return {
        "id": name,
        "name": vessel.name,
        "normalized": vessel.normalized._asdict(),
        "top_speeds": {"surge": surge, "sway": sway, "yaw": yaw},
        "yaw_unstable_above": vessel.yaw_unstable_above,
        "actuation": vessel.actuation,
        "outside": [entry._asdict() for entry in vessel.envelope()],
    }


@app.command()
def sail(
    controller_name: Annotated[str, typer.Option("--controller", help="mpc, mpc-paper or pid.")] = "mpc",
    vessel: Annotated[str, typer.Option(help="A name of the catalogue, or a path to a TOML file.")] = "platform-a",
    reference: Annotated[
        str | None, typer.Option(help="line, circle, rectangle, eight or hold; by default the paper's rectangle.")
    ] = None,
    waypoints: Annotated[
        str | None,
        typer.Option(
            help="Instead of a shape: 'x,y x,y ...' in m, or a CSV file; columns x,y[,speed[,heading in degrees]]. "
            "A path that ends where it began is closed."
        ),
    ] = None,
    speed: Annotated[float | None, typer.Option(help="m/s.")] = None,
    laps: Annotated[float | None, typer.Option(help="Times round a closed path.")] = None,
    heading: Annotated[float | None, typer.Option(help="A fixed heading apart from the path, degrees.")] = None,
    length: Annotated[float | None, typer.Option(help="Of a line, rectangle or eight, m.")] = None,
    width: Annotated[float | None, typer.Option(help="Of a rectangle or eight, m.")] = None,
    radius: Annotated[float | None, typer.Option(help="Of a circle (negative: to the right) or of corners, m.")] = None,
    sea: Annotated[str, typer.Option(help=f"{', '.join(PRESETS)}.")] = "ideal",
    seed: Annotated[int, typer.Option(min=0, help="Draws the sea.")] = 0,
    duration: Annotated[float | None, typer.Option(help="s; by default as long as the reference takes.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Write path, errors and commands to this picture.")] = None,
    animate: Annotated[Path | None, typer.Option(help="Write an animation to this .gif or .mp4.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the log to this .npz.")] = None,
    as_json: AsJson = False,
) -> None:
    """Sail one vessel along a reference, and say how well it went."""
    _check_outputs(plot, animate, out)
    boat = Vessel.load(vessel)
    options = {"length": length, "width": width, "radius": radius, "speed": speed, "laps": laps, "heading": heading}
    wanted = {name: value for name, value in options.items() if value is not None}
    if waypoints is not None and reference is not None:
        raise InputError(f"--reference {reference} with --waypoints: give one of them")
    path = _through(waypoints, wanted) if waypoints is not None else _shape(reference or "rectangle", wanted, duration)
    duration = path.duration if duration is None else duration
    if duration > LONGEST:
        raise InputError(f"duration = {duration:g} s: must be at most {LONGEST:g}, a day")
    water = Sea.preset(sea)
    steers = controller(controller_name, boat)
    infeasible = path.infeasible(boat)
    for complaint in infeasible:
        print("warning: infeasible reference:", complaint, file=sys.stderr)

    with _progress(f"sailing {boat.name}") as on_step:
        log = _run(steers, boat, path, water, seed=seed, duration=duration, on_step=on_step)
    told = {"shape": "waypoints", "waypoints": waypoints} if waypoints else {"shape": reference or "rectangle"}
    log = replace(log, about=log.about | {"controller": controller_name, "reference": told | wanted})
    files = _write(log, plot, animate, out)
    if as_json:
        run = {"vessel": vessel, "controller": controller_name, "reference": told | wanted, "sea": sea, "seed": seed}
        run |= {"duration": duration, "delay": log.about["delay"], "metrics": asdict(log.metrics())}
        _print_json(run | {"infeasible": infeasible, "files": files})
        return
    console = _console()
    console.print(f"{boat.name}, {controller_name}, {told['shape']}, {sea} sea, {duration:.1f} s\n")
    console.print(_result(log.metrics()))
    for what, file in files.items():
        console.print(f"{what}: {file}", soft_wrap=True)


def _run(steers: Controller, boat: Vessel, path: Reference, water: Sea, **options: Any) -> Log:
    try:
        return simulate(steers, boat, path, water, **options)
    except RuntimeError as error:  # a controller that has no command to give, as when a solver fails
        raise RunError(str(error)) from error


def controller(name: str, vessel: Vessel) -> Controller:
    """The controller of that name for a vessel."""
    if name not in CONTROLLERS:
        raise InputError(_unknown("controller", name, CONTROLLERS))
    return CONTROLLERS[name](vessel)


def _mpc(tuning: str) -> Callable[[Vessel], Controller]:
    def build(vessel: Vessel) -> Controller:
        # CasADi takes a while to import, and only those who use it should need it.
        from anyhull.control import MPC

        built: Controller = MPC(vessel, tuning=tuning)
        return built

    return build


def _pid(vessel: Vessel) -> Controller:
    from anyhull.control import PID

    built: Controller = PID(vessel)
    return built


CONTROLLERS: dict[str, Callable[[Vessel], Controller]] = {
    "mpc": _mpc("tight"),
    "mpc-paper": _mpc("paper"),
    "pid": _pid,
}
"""Controllers by name: each builds one for a vessel."""

SHAPES: dict[str, tuple[Callable[..., Reference], tuple[str, ...]]] = {
    "line": (line, ("length", "speed", "heading")),
    "circle": (circle, ("radius", "speed", "laps", "heading")),
    "rectangle": (rounded_rectangle, ("length", "width", "radius", "speed", "laps", "heading")),
    "eight": (figure_eight, ("length", "width", "speed", "laps", "heading")),
    "hold": (lambda heading=0.0, **given: hold((0.0, 0.0, heading), **given), ("heading",)),
}
"""References by name, and the options that each takes."""


def _shape(name: str, wanted: dict[str, float], duration: float | None) -> Reference:
    if name not in SHAPES:
        raise InputError(_unknown("reference", name, SHAPES))
    build, takes = SHAPES[name]
    for option, value in wanted.items():
        if option not in takes:
            raise InputError(f"--{option} {value:g}: {name} takes {_listed(f'--{other}' for other in takes)} only")
    given = {option: math.radians(value) if option == "heading" else value for option, value in wanted.items()}
    if name == "hold" and duration is not None:
        given["duration"] = duration
    return build(**given)


def _through(text: str, wanted: dict[str, float]) -> Reference:
    """The path through waypoints written out or in a CSV file."""
    rows = _waypoints(text)
    columns = len(rows[0])
    closed = len(rows) > 3 and rows[0][:2] == rows[-1][:2]
    for option, value in wanted.items():
        if option not in ("speed", "heading", "laps"):
            raise InputError(f"--{option} {value:g}: waypoints take --speed, --heading and, if closed, --laps only")
        if (option == "speed" and columns > 2) or (option == "heading" and columns > 3):
            raise InputError(f"--{option} {value:g}: the waypoints have a column for it: give one of them")
        if option == "laps" and not closed:
            raise InputError(f"--laps {value:g}: only for waypoints that end where they began")
    if not wanted.get("laps", 1.0) > 0:
        raise InputError(f"laps = {wanted['laps']!r}: must be a positive number")
    table = np.array(rows[:-1] if closed else rows)
    given: dict[str, Any] = {"laps": wanted.get("laps", 1.0), "closed": closed}
    if columns > 2 or "speed" in wanted:
        given["speed"] = table[:, 2].tolist() if columns > 2 else wanted["speed"]
    if columns > 3 or "heading" in wanted:
        given["heading"] = np.radians(table[:, 3]).tolist() if columns > 3 else math.radians(wanted["heading"])
    return through(table[:, :2].tolist(), **given)


def _waypoints(text: str) -> list[list[float]]:
    """Rows of two to four numbers, from a CSV file or from 'x,y x,y ...'."""
    file = Path(text)
    if file.suffix == ".csv":
        try:
            lines = list(csv.reader(file.read_text(encoding="utf-8-sig").splitlines()))
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{file}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
        entries = [(f"{file}: line {i}", cells) for i, cells in enumerate(lines, 1) if any(map(str.strip, cells))]
        if entries and not any(_number(cell) is not None for cell in entries[0][1]):
            entries = entries[1:]  # a header
    else:
        entries = [(f"--waypoints: waypoint {i}", part.split(",")) for i, part in enumerate(text.split(), 1)]
    if len(entries) < 2:
        raise InputError(f"{file if file.suffix == '.csv' else '--waypoints'}: must hold two or more waypoints")
    rows = []
    for where, cells in entries:
        numbers = [_number(cell) for cell in cells]
        if len(cells) not in (2, 3, 4) or None in numbers:
            raise InputError(f"{where}: {','.join(cells)!r}: must be finite numbers x,y[,speed[,heading]]")
        if len(cells) != len(entries[0][1]):
            raise InputError(f"{where}: {','.join(cells)!r}: must have {len(entries[0][1])} columns, as the first has")
        rows.append([number for number in numbers if number is not None])
    return rows


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("out"),
    as_json: AsJson = False,
) -> None:
    """Drive the paper's five platforms around its rectangle, and compare with the paper."""
    from anyhull import plots

    picture = out / "demo.png"
    _check_outputs(picture, None, None)
    tunings = {"tight": "MPC, our tight tuning", "paper": "MPC, the paper's tuning"}
    boats = {name: Vessel.load(name) for name in PLATFORMS}
    path = rounded_rectangle()
    logs: dict[str, dict[str, Log]] = {tuning: {} for tuning in tunings}
    with _progress("sailing five platforms, twice") as on_step:
        for i, (tuning, label) in enumerate(tunings.items()):
            for j, boat in enumerate(boats.values()):
                done = (len(boats) * i + j) * path.duration
                report = on_step and _share_of(on_step, done, len(tunings) * len(boats) * path.duration)
                log = _run(_mpc(tuning)(boat), boat, path, Sea.ideal(), on_step=report)
                logs[tuning][boat.name] = replace(log, about=log.about | {"controller": label})
    plots.fleet(
        logs["tight"],
        picture,
        beside=logs["paper"],
        published=("the paper's average", PAPER_MPC["position_cm"], PAPER_MPC["heading_deg"]),
    )

    metrics = {tuning: [log.metrics() for log in runs.values()] for tuning, runs in logs.items()}
    averages = {
        tuning: {what: float(np.mean([getattr(m, what) for m in several])) for what in PAPER_MPC}
        for tuning, several in metrics.items()
    }
    if as_json:
        runs = {tuning: dict(zip(boats, map(asdict, several), strict=True)) for tuning, several in metrics.items()}
        _print_json({"runs": runs, "averages": averages, "published": PAPER_MPC, "picture": str(picture)})
        return
    table = _table(["", "tight: cm", "deg", "paper: cm", "deg", "published: cm", "deg"])
    for name, tight, paper in zip(boats, metrics["tight"], metrics["paper"], strict=True):
        row = (tight.position_cm, tight.heading_deg, paper.position_cm, paper.heading_deg)
        table.add_row(name, *(f"{value:.4f}" for value in row), "-", "-")
    table.add_section()
    means = [f"{averages[tuning][what]:.4f}" for tuning in tunings for what in PAPER_MPC]
    table.add_row("average", *means, *(f"{value:.2f}" for value in PAPER_MPC.values()), style="bold")
    console = _console()
    console.print("Mean position and heading error of an MPC that knows each boat: one lap of the paper's rectangle")
    console.print(f"(10 x 6 m, 0.6 m/s, {path.duration:.0f} s), ideal sea, from the reference state.\n")
    console.print(table)
    console.print(
        "\ntight: our tuning of the MPC. paper: our MPC with weights chosen to reproduce the paper's.\n"
        "published: the paper's own MPC; it gives the average only, no figure for each platform.\n"
    )
    console.print(f"picture: {picture}", soft_wrap=True)


def _share_of(on_step: Callable[[float, float], None], done: float, total: float) -> Callable[[float, float], None]:
    return lambda time, _: on_step(done + time, total)


def _check_outputs(plot: Path | None, animate: Path | None, out: Path | None) -> None:
    """Raise before a run if what it is to write could not be written after it."""
    if plot or animate:
        from anyhull import plots

        if plot:
            plots.check_picture(plot)
        if animate:
            plots.check_animation(animate)
    if out and out.suffix != ".npz":
        raise InputError(f"{out}: a log is saved as a NumPy archive: give a path that ends in .npz")
    for path in (plot, animate, out):
        if path:
            folder = next(parent for parent in path.absolute().parents if parent.exists())
            try:
                if path.is_dir():
                    raise IsADirectoryError(None, "Is a directory")
                tempfile.TemporaryFile(dir=folder).close()
            except OSError as error:
                hint = "give a path in a folder you may write to"
                raise InputError(f"{path}: cannot be written: {error.strerror}; {hint}") from None


def _write(log: Log, plot: Path | None, animate: Path | None, out: Path | None) -> dict[str, str]:
    """Write what was asked for; the paths by what they hold."""
    files = {}
    if out:
        files["log"] = str(log.save(out))
    if plot:
        log.plot(plot)
        files["plot"] = str(plot)
    if animate:
        from anyhull import plots

        with _progress("drawing frames") as on_frame:
            files["animation"] = str(plots.animate(log, animate, on_frame=on_frame))
    return files


def _result(metrics: Metrics) -> Table:
    table = _table(["error", "mean", "std", "max"])
    position = (metrics.position_cm, metrics.position_std_cm, metrics.position_max_cm)
    heading = (metrics.heading_deg, metrics.heading_std_deg, metrics.heading_max_deg)
    table.add_row("position (cm)", *(f"{value:.4f}" for value in position))
    table.add_row("heading (deg)", *(f"{value:.4f}" for value in heading))
    table.add_section()
    table.add_row("commands at a limit (%)", f"{100 * metrics.saturation:.1f}", "", "")
    table.add_row("change of command a period", f"{metrics.roughness:.4f}", "", "")
    return table


def _unknown(kind: str, name: str, accepted: Iterable[str]) -> str:
    names = list(accepted)
    near = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"{kind} {name!r} is unknown: {hint}accepted are {', '.join(names)}"


def _listed(words: Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def _table(columns: list[str], left: tuple[str, ...] = (), gap: int = 2) -> Table:
    """An empty table: numbers to the right, the first column and those named in `left` to the left."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, gap - 1, 0, 0), show_edge=False)
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 or column in left else "right", no_wrap=column != "outside")
    return table


def _console() -> Console:
    columns = shutil.get_terminal_size((WIDTH, 24)).columns
    return Console(width=max(WIDTH, columns), markup=False, highlight=False)


@contextmanager
def _progress(what: str) -> Iterator[Callable[[float, float], None] | None]:
    """A bar on a terminal's stderr, told how much is done of how much; nothing elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _print_json(document: Any) -> None:
    """One JSON document on stdout, with null for what JSON has no number for."""

    def strict(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: strict(entry) for key, entry in value.items()}
        if isinstance(value, list | tuple):
            return [strict(entry) for entry in value]
        return None if isinstance(value, float) and not math.isfinite(value) else value

    print(json.dumps(strict(document), indent=2, allow_nan=False))


if __name__ == "__main__":
    sys.exit(main())
