"""`anyhull pilot`: the loop on the boat, in real time."""

from __future__ import annotations

import math
import os
import sys
from contextlib import ExitStack, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from anyhull.cli.controllers import SaveBoat, check_save_boat, controller, names, save_boat
from anyhull.cli.foxglove import Foxglove, FoxgloveAt, Steps, frame_of, live_view
from anyhull.cli.onboard import TimeFactor, check_time_factor, open_pilot_link, pose_of_boat, until_signal, warn
from anyhull.cli.output import AsJson, Mcap, check_outputs, open_console, print_json, write_files
from anyhull.cli.references import (
    Angle,
    Axes,
    Corridor,
    DryRun,
    Heading,
    Laps,
    MissionFile,
    Origin,
    Radius,
    ShapeName,
    Spacing,
    Speed,
    Waypoints,
    chosen_mission,
    print_plan,
)
from anyhull.errors import InputError, RunError
from anyhull.log import Log, describe_vessel
from anyhull.mission import Mission
from anyhull.onboard.fence import Fence, Polygon, Within
from anyhull.onboard.setup import Setup
from anyhull.reference import Moved
from anyhull.vessel import Vessel

if TYPE_CHECKING:
    from anyhull.cli.records import Say
    from anyhull.onboard.autopilot import Autopilot
    from anyhull.onboard.links import ConfiguredLink
    from anyhull.onboard.step_record import StepRecord

SILENT_PERIODS = 600
"""Periods between two lines that nothing is heard from the boat; the first comes after a tenth of them."""

PATH_POINTS = 2000
"""At which a path is compared with the fence of the boat's file."""

PRIORITY = -10
"""Of the loop, as of `nice`; needs the privilege for it."""


def pilot(
    boat: Annotated[str, typer.Argument(help=r"The boat's TOML file: vessel, thrusters, \[link] and other tables.")],
    controller_name: Annotated[str, typer.Option("--controller", help=f"{', '.join(names())}.")] = "field",
    reference: ShapeName = None,
    mission: MissionFile = None,
    waypoints: Waypoints = None,
    origin: Origin = None,
    axes: Axes = None,
    speed: Speed = None,
    laps: Laps = None,
    heading: Heading = None,
    radius: Radius = None,
    corridor: Corridor = None,
    spacing: Spacing = None,
    angle: Angle = None,
    duration: Annotated[float | None, typer.Option(help="Of --reference hold, or a station without one, s.")] = None,
    here: Annotated[
        bool, typer.Option("--here", help="Begin where the boat is: the reference is moved and turned as a whole.")
    ] = False,
    dry_run: DryRun = False,
    from_link: Annotated[
        bool, typer.Option("--from-link", help="Wait for a nav_msgs/Path of the boat's link, and follow its points.")
    ] = False,
    from_start: Annotated[
        bool, typer.Option("--from-start", help="Do not resume a run that was killed or ended by SIGTERM.")
    ] = False,
    listen: Annotated[str | None, typer.Option(help="Address of the pilot; by default the file's.")] = None,
    peer: Annotated[str | None, typer.Option(help="Address of the boat; by default the file's.")] = None,
    time_factor: TimeFactor = 1.0,
    plot: Annotated[Path | None, typer.Option(help="Write path, errors and commands to this figure.")] = None,
    out: Annotated[
        Path,
        typer.Option(
            help="Write the log to this .npz, or the next free name; during the run a .jsonl grows beside it."
        ),
    ] = Path("pilot.npz"),
    save: SaveBoat = None,
    mcap: Mcap = None,
    foxglove: Foxglove = False,
    foxglove_at: FoxgloveAt = None,
    as_json: AsJson = False,
) -> None:
    """Steer a boat along a mission or a reference.

    SIGINT or SIGTERM ramp down and end the run, SIGUSR1 rearms the guard. A run that was killed, or ended by SIGTERM,
    is resumed.
    """
    check_outputs(plot, None, out, mcap, numbered=True)
    check_time_factor(time_factor)
    setup = Setup.load(boat)
    sizes = {"speed": speed, "laps": laps, "heading": heading, "radius": radius, "corridor": corridor}
    options = sizes | {"spacing": spacing, "angle": angle}
    if from_link:
        if here:
            raise InputError("--here: not for a path of the link, which has its own place")
        from anyhull.cli.from_link import mission_from_link

        stated = {"reference": reference, "mission": mission, "waypoints": waypoints, "origin": origin, "axes": axes}
        chosen, asked = mission_from_link(setup, stated | options | {"duration": duration})
    else:
        chosen, asked = chosen_mission(
            reference, mission, waypoints, options, origin=origin, axes=axes, vessel=setup.vessel, duration=duration
        )
    if here and (chosen.frame is not None or chosen.fence_corners is not None):
        raise InputError("--here: only for a shape or local waypoints; this mission has its own place")
    outside = [] if here else _outside(setup.fence, chosen)
    if dry_run:
        print_plan(chosen, setup.vessel, plot, as_json, outside)
        return
    if infeasible := [*_infeasible(chosen, setup.vessel), *outside]:
        raise InputError(infeasible[0])
    setup = replace(setup, fence=_fence(setup.fence, chosen))
    from anyhull.cli.live import Lines, Printer, View
    from anyhull.cli.records import AT_ONCE, DAY, HOUR, no_room, resumed_at, save_killed, save_log, set_aside
    from anyhull.onboard import journal as journals
    from anyhull.onboard.autopilot import Autopilot
    from anyhull.onboard.joining import Approach
    from anyhull.onboard.loop import run_autopilot
    from anyhull.onboard.recorder import keep_progress

    steering = controller(controller_name, setup.vessel)
    check_save_boat(save, steering)
    journal = out.with_suffix(".jsonl")
    about = {"controller": controller_name, "reference": asked, "mission": chosen.digest, "water": "not measured"}
    axes_of_link = {"axes": getattr(setup.link, "axes", None)}
    about |= frame_of(chosen) | axes_of_link
    with ExitStack() as stack:
        printer = Printer()
        stack.callback(printer.close)
        link = open_pilot_link(boat, setup, listen, peer, chosen.frame)
        stack.callback(link.close)
        if here:
            chosen, about["reference"] = _moved(setup, link, chosen, printer.say), asked | {"here": True}
            about["mission"] = chosen.digest
        known = describe_vessel(setup.vessel) | axes_of_link
        view = stack.enter_context(live_view(foxglove, foxglove_at, known, chosen, printer.say))
        last = set_aside(out, printer.say)
        if here and last is not None and not last.ended and last.progress:
            printer.say("--here begins anew: the last run is saved, not resumed")
        resume = resumed_at(last, chosen, from_start or here, printer.say)
        save_killed(out, printer.say, AT_ONCE)
        if small := no_room(out, DAY):
            printer.say(f"warning: {small}: the record keeps its newest part only")
        autopilot = Autopilot(
            setup,
            steering,
            chosen.reference,
            approach=Approach(chosen.approach_speed, chosen.approach_distance).scaled(setup.vessel.scale),
            resume=resume,
            # A mission that has begun goes on, with a record of its newest part.
            checks=(link.unready, *(() if resume else (lambda: no_room(out, HOUR),))),
            default_fence=True,
        )
        warn(setup.vessel, chosen.reference, steering, printer.say)
        printer.say(f"pilot of {setup.vessel.name} at {link.address}, only for a boat at {link.peer}")
        with suppress(OSError, AttributeError):  # where the system permits it, before other programs of the computer
            os.setpriority(os.PRIO_PROCESS, 0, PRIORITY)
        signals, silence = _Signals(autopilot), Silence(link, printer.say)
        stopped = stack.enter_context(until_signal(signals.actions))
        shown: View | Lines = View(autopilot, printer) if sys.stderr.isatty() else Lines(autopilot, printer)
        stack.callback(shown.close)

        watched = Steps(view, autopilot) if view else None

        def on_step(step: StepRecord | None, delay: float) -> None:
            signals.time = signals.time if step is None else step.time
            silence.note(step)
            shown.show(step, delay)
            if watched:
                watched.show(step)
            if step is not None and hasattr(link, "report"):
                link.report(step, chosen.reference)

        hint = ""

        def give_back() -> None:
            nonlocal hint
            hint = link.hint()
            link.close()

        log = run_autopilot(
            autopilot,
            link,
            time_factor=time_factor,
            stop=stopped,
            on_step=on_step,
            journal=journal,
            about=about | {"resumed_at": resume},
            on_end=give_back,
        )
        log.about["loop"]["console_lines_dropped"] = printer.dropped
        if view:
            log.about["loop"]["foxglove_rows_dropped"] = view.dropped
        shown.close()
        if not len(log.time):
            if not resume:
                journals.remove(journal)
            raise InputError(f"{link.peer}: no state received; {hint}")
        files = {"log": str(save_log(log, out, printer.say))}
        journals.remove(journal)
        # SIGTERM is of a computer that shuts down, SIGINT the operator's own.
        if log.about["ended"] == "SIGTERM" or autopilot.refused:
            try:
                keep_progress(journal, about, autopilot.tracker.progress, log.about["ended"])
            except (InputError, OSError) as error:  # a full disk: the log is saved, and the next run begins anew
                printer.say(f"the next run begins at its start: {error}")
        save_killed(out, printer.say)
        # Figure and metrics are of the time on the reference; the log has the whole run.
        followed = log.during(log.about["following"]) if log.about["following"] else None
        files |= write_files(followed or log, plot, None, None) | _write_mcap(log, mcap, printer.say)
        try:
            files |= save_boat(save, steering, boat, Path(files["log"]))
        except InputError as error:  # the log is saved already
            printer.say(f"{error}; anyhull identify writes the boat from the log")
    if autopilot.refused or not autopilot.guard.has_run:
        why = autopilot.refused or f"the boat was not armed: {signals.missing()}"
        raise RunError(f"{why}; log: {files['log']}")
    _print_summary(boat, log, followed, files, as_json)


def _write_mcap(log: Log, mcap: Path | None, say: Say) -> dict[str, str]:
    """Write the whole run; where that fails, the log is saved already."""
    try:
        return write_files(log, None, None, None, mcap)
    except InputError as error:
        say(f"{error}; anyhull log converts the log")
        return {}


def _fence(own: Fence | None, mission: Mission) -> Fence | None:
    """The fence of the boat's file and that of the mission, together."""
    if mission.fence_corners is None:
        return own
    polygon = Polygon(mission.fence_corners)
    return polygon if own is None else Within((own, polygon))


def _infeasible(mission: Mission, vessel: Vessel) -> list[str]:
    """Why the boat cannot follow its mission; sway is no reason: a boat without it drifts in turns."""
    reasons = (reason for reason in mission.reference.infeasible(vessel) if " in sway" not in reason)
    return [reason if "; " in reason else f"{reason}; ask for a lower --speed" for reason in reasons]


def _outside(fence: Fence | None, mission: Mission) -> list[str]:
    """Where the path leaves the fence of the boat's file."""
    if fence is None:
        return []
    times = np.linspace(0.0, mission.reference.duration, PATH_POINTS)
    for time, (x, y) in zip(times, mission.reference.at(times)[:, :2].tolist(), strict=True):
        if (margin := fence.margin(x, y)) < 0:
            where = (
                f"({x:.1f}, {y:.1f}) m at t = {time:.1f} s lies {-margin:.1f} m outside the [fence] of the boat's file"
            )
            return [f"the path leaves the fence: {where}"]
    return []


def _moved(setup: Setup, link: ConfiguredLink, mission: Mission, say: Say) -> Mission:
    """The mission from where the boat is."""
    x, y, psi = pose_of_boat(setup, link, say)
    say(f"the reference begins here: x {x:.2f} m, y {y:.2f} m, heading {math.degrees(psi):.0f}°")
    moved = replace(mission, reference=Moved(mission.reference, (x, y, psi)))
    if outside := _outside(setup.fence, moved):
        raise InputError(outside[0])
    return moved


class Silence:
    """Says what to look at while nothing is heard from the boat."""

    def __init__(self, link: ConfiguredLink, say: Say) -> None:
        self._link, self._say, self._periods = link, say, 0

    def note(self, step: StepRecord | None) -> None:
        """Count a period, which has a record once the boat has been heard."""
        self._periods += step is None
        if step is None and self._periods % SILENT_PERIODS == SILENT_PERIODS // 10:
            self._say(f"no messages from {self._link.peer} yet: {self._link.hint()}")


class _Signals:
    """What the signals of a running pilot do."""

    def __init__(self, autopilot: Autopilot) -> None:
        self._autopilot, self.time = autopilot, 0.0
        self.actions = {"SIGHUP": self.hang_up, "SIGUSR1": self.rearm, "SIGTSTP": self.suspend}

    def hang_up(self) -> None:
        """The console is gone; the run goes on."""
        self._record("SIGHUP", "the console is gone, the run goes on")

    def suspend(self) -> None:
        """A pilot that is suspended does not steer."""
        self._record("SIGTSTP", "ignored: a pilot cannot be suspended")

    def rearm(self) -> None:
        """Take the boat back after a failsafe or a handover."""
        if self._autopilot.guard.reaction not in ("failsafe", "handover"):
            self._record("SIGUSR1", "nothing to rearm")
            return
        done = self._autopilot.rearm()
        self._record("SIGUSR1", "rearmed" if done else "not rearmed: there is a fault")

    def missing(self) -> str:
        """What the checks before the start last found missing."""
        events = (event.detail for event in reversed(self._autopilot.event_log.events) if event.what == "arming")
        return next(events, "no state")

    def _record(self, name: str, detail: str) -> None:
        self._autopilot.event_log.record(self.time, name, detail)


def _print_summary(boat: str, log: Log, followed: Log | None, files: dict[str, str], as_json: bool) -> None:
    metrics = followed.metrics() if followed else None
    if as_json:
        document: dict[str, Any] = {"boat": boat, "controller": log.about["controller"], "ended": log.about["ended"]}
        document["metrics"] = metrics and asdict(metrics)
        print_json(document | {key: log.about[key] for key in ("event_counts", "received", "loop")} | {"files": files})
        return
    console = open_console()
    console.print(f"ended: {log.about['ended']}, thrusters at zero, {log.time[-1]:.1f} s")
    if followed and metrics:
        console.print(
            f"{followed.period * len(followed.time):.1f} s along the reference: position {metrics.position_cm:.1f} cm, "
            f"heading {metrics.heading_deg:.1f}°, of the estimated state"
        )
    for what, file in files.items():
        console.print(f"{what}: {file}", soft_wrap=True)
