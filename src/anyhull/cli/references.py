"""What to follow, of the command line: a shape with its sizes, waypoints or a mission file; and the plan of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from anyhull.cli.output import new_table, open_console, print_json
from anyhull.dynamics import PERIOD
from anyhull.errors import InputError, unknown
from anyhull.legs import Legs
from anyhull.mission import Mission, Plan, Waypoint
from anyhull.paths import Curve, Repeated, distance_to_legs
from anyhull.reference import Follow, Reference, circle, figure_eight, hold, line, rounded_rectangle, through
from anyhull.vessel import Vessel

SHAPES: dict[str, tuple[Callable[..., Reference], tuple[str, ...]]] = {
    "line": (line, ("length", "speed", "heading")),
    "circle": (circle, ("radius", "speed", "laps", "heading")),
    "rectangle": (rounded_rectangle, ("length", "width", "radius", "speed", "laps", "heading")),
    "eight": (figure_eight, ("length", "width", "speed", "laps", "heading")),
    "hold": (lambda heading=0.0, **given: hold((0.0, 0.0, heading), **given), ("heading",)),
}
"""References by name, and the options of each."""

ON_LEGS = ("speed", "heading", "laps", "radius", "corridor")
ON_SPLINE = ("speed", "heading", "laps", "spline")
IN_MISSION = (*ON_LEGS, "spacing", "angle")
"""Options for waypoints, for a spline through them, and for a mission file."""

MOST_ROWS = 60
"""Longest table of legs; of more, the first and last ones are printed."""

ShapeName = Annotated[
    str | None,
    typer.Option("--reference", help="line, circle, rectangle, eight or hold; by default the paper's rectangle."),
]
MissionFile = Annotated[
    Path | None, typer.Option("--mission", help="A mission file: .toml, .csv, .gpx, .geojson or .plan.")
]
Waypoints = Annotated[
    str | None,
    typer.Option(
        help="Straight legs through 'x,y x,y ...' in m, each with [,speed in m/s[,heading in degrees]], or through "
        "those of a CSV file. The path is closed if the last waypoint is the first."
    ),
]
Origin = Annotated[
    str | None,
    typer.Option(help="LAT,LON of the zero of the boat's local frame, degrees, or 'home' for the home of a .plan."),
]
Axes = Annotated[
    str | None, typer.Option(help="Axes of the local frame: ned (x north, y east) or enu (x east, y north).")
]
Speed = Annotated[float | None, typer.Option(help="m/s.")]
Laps = Annotated[float | None, typer.Option(help="Laps of a closed path.")]
Heading = Annotated[float | None, typer.Option(help="A fixed heading, degrees; by default along the path.")]
Length = Annotated[float | None, typer.Option(help="Of a line, rectangle or eight, m.")]
Width = Annotated[float | None, typer.Option(help="Of a rectangle or eight, m.")]
Radius = Annotated[float | None, typer.Option(help="Of a circle (negative: to the right), of corners or of turns, m.")]
Corridor = Annotated[
    float | None, typer.Option(help="Largest distance of the path off its legs and waypoints, m; by default 1.")
]
Spacing = Annotated[float | None, typer.Option(help="Largest distance between the legs of a survey area, m.")]
Angle = Annotated[
    float | None, typer.Option(help="Of the legs of a survey area, degrees; by default its longest side.")
]
Spline = Annotated[bool, typer.Option("--spline", help="A smooth curve through the waypoints instead of legs.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the plan, draw it with --plot, and do not run.")]


def chosen_mission(
    reference: str | None,
    mission: Path | str | None,
    waypoints: str | None,
    options: dict[str, Any],
    *,
    origin: str | None = None,
    axes: str | None = None,
    vessel: Vessel | None = None,
    duration: float | None = None,
) -> tuple[Mission, dict[str, Any]]:
    """The mission that the command line asks for, by default the paper's rectangle, and what was asked, for a log.

    `options` are by name, angles in degrees; None and False are as not given. `vessel` lowers speeds to what it can
    follow. `duration` (s) is that of a hold, or of a station whose file states none.
    """
    options = {name: value for name, value in options.items() if value is not None and value is not False}
    given = {"--reference": reference, "--mission": mission, "--waypoints": waypoints}
    asked = [f"{name} {value}" if name != "--waypoints" else name for name, value in given.items() if value is not None]
    if len(asked) > 1:
        raise InputError(f"{' with '.join(asked)}: give one of the two")
    if waypoints is not None and Path(waypoints).suffix.lower() != ".csv":
        _accept(options, ON_SPLINE if options.get("spline") else ON_LEGS, "waypoints")
        _no_frame(origin, axes)
        rows = _inline(waypoints)
        if options.pop("spline", False):
            found = _spline(rows, options)
            return found, {"shape": "spline", "waypoints": waypoints} | options
        plan = Plan(coordinates="local", waypoints=tuple(rows))
        try:
            return Mission.of_plan(plan, "waypoints", vessel=vessel, **options), {
                "shape": "waypoints",
                "waypoints": waypoints,
            } | options
        except InputError as error:
            raise InputError(f"--waypoints: {error}") from None
    if (file := mission or waypoints) is not None:
        _accept(options, IN_MISSION, "a mission file")
        place = _origin(origin)
        found = Mission.load(file, origin=place, axes=axes, vessel=vessel, duration=duration, **options)
        return found, {"shape": "mission", "mission": str(file), "origin": origin, "axes": axes} | options
    name = reference or "rectangle"
    _no_frame(origin, axes)
    return Mission.of(shape(name, options, duration), name), {"shape": name} | options


def shape(name: str, options: dict[str, Any], duration: float | None) -> Reference:
    """The reference of that name with these options, angles in degrees."""
    if name not in SHAPES:
        raise InputError(unknown("reference", name, SHAPES))
    build, accepted = SHAPES[name]
    _accept(options, accepted, name)
    given = {option: math.radians(value) if option == "heading" else value for option, value in options.items()}
    if name == "hold" and duration is not None:
        given["duration"] = duration
    return build(**given)


def print_plan(
    mission: Mission, vessel: Vessel | None, plot: Path | None, as_json: bool = False, infeasible: Sequence[str] = ()
) -> None:
    """Print the plan of a mission as tables or as one JSON document, and draw it to `plot` if given.

    `infeasible` are further reasons why the boat cannot follow it.
    """
    document = plan_document(mission, vessel)
    document["infeasible"] += infeasible
    if plot is not None:
        from anyhull.viz.plan import draw_plan

        draw_plan(mission, plot)
        document["files"] = {"plot": str(plot)}
    if as_json:
        print_json(document)
        return
    console = open_console()
    console.print(f"{mission.name}{f', {vessel.name}' if vessel else ''}\n")
    if isinstance(mission.reference, Legs):
        console.print(_leg_table(mission, mission.reference))
        console.print(
            f"path: at most {mission.deviation:.2f} m off the legs, waypoints passed within "
            f"{mission.reference.missed:.2f} m"
            + (f"; corridor {mission.corridor:g} m" if mission.corridor is not None else "")
        )
    elif mission.waypoints:
        console.print(
            f"spline through {len(mission.waypoints)} waypoints, at most {mission.deviation:.2f} m off the legs"
        )
    if mission.frame is not None:
        frame = mission.frame
        console.print(f"local frame: {frame.axes}, zero at latitude {frame.latitude:g}, longitude {frame.longitude:g}")
    console.print(
        f"total: {document['length']:.1f} m in {document['duration']:.1f} s ({_clock(document['duration'])}), "
        f"at most {document['speed']:.2f} m/s"
    )
    console.print(f"approach: at {mission.approach_speed:g} m/s, from at most {mission.approach_distance:g} m away")
    if mission.fence_corners is not None:
        console.print(f"fence: {len(mission.fence_corners)} corners, the path lies inside")
    for note in mission.notes:
        console.print(f"note: {note}", soft_wrap=True)
    for reason in document["infeasible"]:
        console.print(f"infeasible: {reason}", soft_wrap=True)
    if vessel is not None and not document["infeasible"]:
        console.print(f"feasible: within the limits of {vessel.name} in still water")
    if plot is not None:
        console.print(f"plot: {plot}", soft_wrap=True)


def plan_document(mission: Mission, vessel: Vessel | None = None) -> dict[str, Any]:
    """The plan of a mission for a JSON document: SI units, angles in degrees."""
    reference = mission.reference
    times = np.arange(0.0, reference.duration, PERIOD)
    speeds = np.hypot(*reference.at(times)[:, 3:5].T)
    legs = reference.legs if isinstance(reference, Legs) else ()
    return {
        "name": mission.name,
        "digest": mission.digest,
        "duration": reference.duration,
        "length": float(PERIOD * speeds.sum()),
        "speed": float(speeds.max()),
        "waypoints": mission.waypoints,
        "legs": [leg._asdict() | {"course": _degrees(mission, leg.course)} for leg in legs],
        "deviation": mission.deviation,
        "missed": reference.missed if isinstance(reference, Legs) else None,
        "corridor": mission.corridor,
        "stages": [stage._asdict() for stage in reference.stages],
        "approach_speed": mission.approach_speed,
        "approach_distance": mission.approach_distance,
        "fence": mission.fence_corners,
        "area": mission.area,
        "frame": mission.frame and vars(mission.frame),
        "notes": mission.notes,
        "infeasible": reference.infeasible(vessel) if vessel else [],
    }


def _leg_table(mission: Mission, reference: Legs) -> Any:
    """One row a leg; the time stopped is that at its end, to wait and to turn."""
    legs = list(enumerate(reference.legs, 1))
    left = [*(leg.begins for leg in reference.legs[1:]), reference.duration]
    stopped = [following - leg.begins - leg.duration for (_, leg), following in zip(legs, left, strict=True)]
    columns = ["leg", "from, m", "to, m", "course, °", "length, m", "speed, m/s", "time, s"]
    table = new_table([*columns, *(["stopped, s"] if max(stopped) > 0.05 else [])])
    for i, leg in legs:
        if len(legs) > MOST_ROWS and i == MOST_ROWS // 2:
            table.add_row("…", f"{len(legs) - MOST_ROWS} more", *[""] * (len(table.columns) - 2))
        if len(legs) > MOST_ROWS and MOST_ROWS // 2 <= i <= len(legs) - MOST_ROWS // 2:
            continue
        ends = [f"{round(x, 1) + 0.0:.1f}, {round(y, 1) + 0.0:.1f}" for x, y in (leg.start, leg.end)]
        numbers = [
            f"{round(_degrees(mission, leg.course), 1) % 360:.1f}",
            f"{leg.length:.1f}",
            f"{leg.speed:.2f}",
            f"{leg.duration:.1f}",
        ]
        table.add_row(str(i), *ends, *numbers, *([f"{stopped[i - 1]:.1f}"] if max(stopped) > 0.05 else []))
    return table


def _degrees(mission: Mission, course: float) -> float:
    """A course from x toward y, or of a geographic mission clockwise from north, in [0, 360)."""
    degrees = math.degrees(course)
    return round(degrees if mission.frame is None else mission.frame.to_heading(degrees), 9) % 360.0


def _clock(seconds: float) -> str:
    return f"{seconds // 3600:.0f} h {seconds % 3600 // 60:.0f} min" if seconds >= 3600 else f"{seconds / 60:.1f} min"


def _inline(text: str) -> list[Waypoint]:
    """Waypoints from 'x,y x,y ...', with one number of columns."""
    parts = [part.split(",") for part in text.split()]
    if len(parts) < 2:
        raise InputError("--waypoints: must hold two or more waypoints")
    rows = []
    for i, cells in enumerate(parts, 1):
        where = f"--waypoints: waypoint {i}: {','.join(cells)!r}"
        numbers = [number for cell in cells if (number := _number(cell)) is not None]
        if len(cells) not in (2, 3, 4) or len(numbers) < len(cells):
            raise InputError(f"{where}: must be finite numbers x,y[,speed[,heading]]")
        if len(cells) != len(parts[0]):
            raise InputError(f"{where}: must have {len(parts[0])} columns, as the first row")
        try:
            speed, heading = (numbers[k] if len(numbers) > k else None for k in (2, 3))
            rows.append(Waypoint((numbers[0], numbers[1]), speed, heading=heading))
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
    return rows


def _spline(rows: list[Waypoint], options: dict[str, Any]) -> Mission:
    """The smooth path through waypoints, with its largest distance from the straight legs between them."""
    closed = len(rows) > 3 and rows[0].at == rows[-1].at
    if "laps" in options and not closed:
        raise InputError(f"--laps {options['laps']:g}: only for a closed path, whose last waypoint is the first")
    rows = rows[:-1] if closed else rows
    given: dict[str, Any] = {"closed": closed, "laps": options.get("laps", 1.0), "acceleration": 0.1}
    for name, convert in (("speed", float), ("heading", math.radians)):
        stated = [convert(getattr(row, name)) for row in rows if getattr(row, name) is not None]
        if stated and name in options:
            raise InputError(f"--{name} {options[name]:g}: the waypoints have a column for it: give one of the two")
        if stated or name in options:
            given[name] = stated or convert(options[name])
    reference = through([row.at for row in rows], **given)
    assert isinstance(reference, Follow)
    points = np.array([row.at for row in rows] + [rows[0].at] * closed)
    curve = reference.path.lap if isinstance(reference.path, Repeated) else reference.path
    assert isinstance(curve, Curve)
    pieces = np.linspace(curve.at_knots[:-1], curve.at_knots[1:], 100, axis=1)
    path = np.stack(curve(pieces)[:2], axis=-1)
    off = distance_to_legs(path, points[:-1, None], points[1:, None])
    corners = tuple((float(x), float(y)) for x, y in points)
    return Mission("spline", reference, waypoints=corners, deviation=float(off.max()))


def _accept(options: dict[str, Any], accepted: tuple[str, ...], what: str) -> None:
    for option, value in options.items():
        if option not in accepted:
            shown = "" if value is True else f" {value:g}"
            raise InputError(f"--{option}{shown}: {what} takes {_list(f'--{other}' for other in accepted)} only")


def _no_frame(origin: str | None, axes: str | None) -> None:
    if origin is not None or axes is not None:
        raise InputError("--origin and --axes: only for a mission file with latitude and longitude")


def _origin(text: str | None) -> tuple[float, float] | str | None:
    if text is None or text == "home":
        return text
    numbers = [_number(part) for part in text.split(",")]
    if len(numbers) != 2 or numbers[0] is None or numbers[1] is None:
        raise InputError(f"--origin {text}: must be LAT,LON in degrees, or home")
    return numbers[0], numbers[1]


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _list(words: Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last
