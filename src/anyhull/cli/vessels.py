"""`anyhull vessels`: the catalogue, and one vessel in full."""

from __future__ import annotations

import functools
import math
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from anyhull.cli.output import AsJson, new_table, open_console, print_json
from anyhull.hulls import MANY, ranges
from anyhull.hydrodynamics import Normalized
from anyhull.pilot import Pilot, policy_for
from anyhull.scale import derated, derating
from anyhull.sea import Sea
from anyhull.unusual import warnings
from anyhull.vessel import Vessel, catalogue
from anyhull.viz.captions import SYMBOLS

POLICY = "field"
"""The default policy, whose envelope is shown."""

LISTED = 6
"""Components of e in that table: accelerations and damping rates."""

LABELS = {
    "m": ("mass", "kg"),
    "top_speed": ("top speed", "m/s"),
    "top_sway_speed": ("top sway speed", "m/s"),
    "top_yaw_rate": ("top yaw rate", "rad/s"),
}
"""What is drawn for a boat without hydrodynamics."""

app = typer.Typer(help="List the vessels of the catalogue, or show one.")


@functools.cache
def _policy_envelope(name: str) -> dict[str, tuple[float, float]]:
    return Pilot.load(name).envelope


def _policy(vessel: Vessel) -> str:
    """The default policy of a vessel."""
    return str(policy_for(vessel, POLICY))


def _envelope(vessel: Vessel) -> dict[str, tuple[float, float]]:
    """That policy's envelope."""
    return _policy_envelope(_policy(vessel))


@app.callback(invoke_without_command=True)
def vessels(context: typer.Context, as_json: AsJson = False) -> None:
    """List the vessels of the catalogue: e, top speed, yaw stability, and the policy and scale that each gets."""
    if context.invoked_subcommand is not None:
        return
    fleet = {name: Vessel.load(name) for name in catalogue()}
    if as_json:
        print_json([_facts(name, vessel) for name, vessel in fleet.items()])
        return
    columns = ["name", *list(SYMBOLS.values())[:LISTED], "top", "yaw", "policy", "l", "T", "outside"]
    table = new_table(columns, left=("name", "policy", "outside"), gap=1)
    for name, vessel in fleet.items():
        outside = " ".join(SYMBOLS[entry.component] for entry in vessel.outside(_envelope(vessel)))
        yaw = "stable" if math.isinf(vessel.yaw_unstable_above) else f">{vessel.yaw_unstable_above:.2g}"
        e = (f"{value:.2g}" for value in vessel.normalized[:LISTED])
        scale = f"{vessel.scale.length:g}", f"{vessel.scale.time:g}"
        row = [name, *e, f"{vessel.top_speeds[0]:.2g}", yaw, _policy(vessel), *scale, outside or "inside"]
        table.add_row(*row, style="" if outside == "" else "dim")
    console = open_console()
    console.print(table)
    console.print(
        "\nαu … 1/τr: peak accelerations and damping rates, SI units. top: surge speed under full command, m/s.\n"
        "yaw: stable, or unstable above that speed in m/s. policy: the default one for it. l, T: its units of\n"
        "length (m) and time (s) with that policy. outside: components of e in these units outside the\n"
        "policy's envelope (nonlinear damping at 0.6 l/T). Details: anyhull vessels show NAME"
    )


@app.command("show")
def show(
    vessel: Annotated[str, typer.Argument(help="A name of the catalogue, or a path to a TOML file.")],
    as_json: AsJson = False,
) -> None:
    """Show all data of one vessel, and check its file, with the tables for the loop on the boat."""
    from anyhull.onboard.setup import Setup

    boat = Setup.load(vessel).vessel
    if as_json:
        print_json(_facts(vessel, boat) | asdict(boat))
        return
    console = open_console()
    console.print(Text(boat.name, style="bold"))
    size = [f"{what} {value:g} m" for what, value in (("length", boat.length), ("beam", boat.beam)) if value]
    under = "under-actuated" if boat.actuation == "under" else "fully actuated"
    console.print(", ".join([under, *size, *([f"quality {boat.quality}"] if boat.quality else [])]), "\n")
    (_print_identified if boat.hydrodynamics else _print_plausible)(boat, console)
    if found := boat.identified:
        when = f", {found.date}" if found.date else ""
        console.print(f"Identified from {found.source or 'a voyage'}{when}, {found.seconds:.0f} s, ± 1 sd:")
        console.print(", ".join(f"{SYMBOLS[name]} {v:.3g} ± {std:.2g}" for name, (v, std) in found.components.items()))
    console.print(_scale_in_words(boat))
    if boat.thrusters:
        console.print()
        console.print(_layout(boat))
    for line in warnings(boat):
        console.print(f"warning: {line}", soft_wrap=True)
    for short in boat.shortcomings():
        given = f"{short.axis} limit {short.limit:.4g}, thrusters give {short.attainable:.4g}"
        console.print(f"warning: {given}: {short.advice}", soft_wrap=True)
    for what, text in (("Source", boat.source), ("Caveats", boat.caveats)):
        if text:
            console.print(f"\n{what}: {text}")


def _print_identified(boat: Vessel, console: Console) -> None:
    """What follows from the hydrodynamics in a boat's file."""
    console.print(_physics(boat))
    unstable = boat.yaw_unstable_above
    stability = "stable at any speed" if math.isinf(unstable) else f"unstable above {unstable:.2g} m/s, open loop"
    console.print(f"mass {boat.mass:g} kg.  Yaw: {stability}.\n")
    console.print(_components(boat))
    outside = boat.outside(_envelope(boat))
    for entry in outside:
        console.print(
            f"{entry.component} = {entry.value:.3g} is outside [{entry.low:g}, {entry.high:g}]: {entry.advice}"
        )
    if not outside:
        console.print("Inside the policy's envelope.")


def _print_plausible(boat: Vessel, console: Console) -> None:
    """What is known of a boat without hydrodynamics, and the ranges over its plausible hulls."""
    surge, sway, yaw = (f"{limit:.4g}" for limit in boat.limits)
    mass = f"{boat.m:g} kg" if boat.m else "not stated"
    console.print(f"limits: surge {surge} N, sway {sway} N, yaw {yaw} N·m.  Mass: {mass}.")
    console.print("No hydrodynamics: policies need none; MPC and PID do, and simulations draw plausible hulls.\n")
    table = new_table(["drawn from the above", "5 %", "95 %", "unit"], left=("drawn from the above", "unit"))
    for name, (low, high) in ranges(boat).items():
        if (name == "m" and boat.m) or low == high == 0:
            continue
        text, unit = LABELS.get(name, (f"{name} at 0.6 m/s" if name.startswith("inv_tau") else name, ""))
        table.add_row(text, f"{low:.3g}", f"{high:.3g}", unit)
    console.print(table)
    console.print(f"Ranges over {MANY} plausible hulls; docs/vessels.md states the estimates.")


def _physics(boat: Vessel) -> Table:
    """Inertia, damping, limit and top speed of each axis."""
    table = new_table(["axis", "added mass", "inertia", "damping", "quadratic", "cubic", "limit", "top speed"])
    rows = (
        ("surge", boat.hull.X_udot, (boat.hull.X_u, boat.hull.X_uu, boat.hull.X_uuu), "m/s", "N"),
        ("sway", boat.hull.Y_vdot, (boat.hull.Y_v, boat.hull.Y_vv, boat.hull.Y_vvv), "m/s", "N"),
        ("yaw", None, (boat.hull.N_r, boat.hull.N_rr, boat.hull.N_rrr), "rad/s", "N·m"),
    )
    for i, (axis, added, damping, speed, force) in enumerate(rows):
        inertia = f"{boat.inertia[i]:.5g} {'kg·m²' if axis == 'yaw' else 'kg'}"
        drag = [f"{value:.5g}" if value else "-" for value in damping]
        top = "unlimited" if math.isinf(boat.top_speeds[i]) else f"{boat.top_speeds[i]:.3g} {speed}"
        given = "-" if added is None else f"{added:.5g} kg"
        table.add_row(axis, given, inertia, *drag, f"{boat.limits[i]:.5g} {force}", top)
    return table


def _components(boat: Vessel) -> Table:
    """e, and in the policy's units beside its envelope."""
    table = new_table(["component", "e", "for the policy", "envelope from", "to", ""], left=("component", ""))
    envelope = _envelope(boat)
    outside = {entry.component for entry in boat.outside(envelope)}
    for name, value, effective in zip(Normalized._fields, boat.normalized, boat.for_policy, strict=True):
        low, high = envelope[name]
        verdict = "outside" if name in outside else "inside"
        table.add_row(name, f"{value:.4g}", f"{effective:.4g}", f"{low:g}", f"{high:g}", verdict)
    return table


def _layout(boat: Vessel) -> Table:
    table = new_table(["thruster", "x (m)", "y (m)", "angle (°)", "forward (N)", "reverse (N)", "dead band", "lag (s)"])
    for t in boat.thrusters:
        angle = "any" if t.kind == "azimuth" else f"{t.angle:g}"
        reverse = t.forward if t.reverse is None else t.reverse
        numbers = (f"{t.forward:.5g}", f"{reverse:.5g}", f"{t.dead_band:g}", f"{t.lag:g}")
        table.add_row(t.kind, f"{t.x:g}", f"{t.y:g}", angle, *numbers)
    return table


def _scale(boat: Vessel) -> dict[str, Any]:
    """The units in which a policy steers the boat, and what it then knows, for JSON; SI."""
    scale = boat.scale
    sea = scale.sea(Sea.field())
    return {
        "length": scale.length,
        "time": scale.time,
        "period": round(scale.period, 6),
        "derating": dict(zip(("Fx", "Fy", "Mz"), derating(boat), strict=True)),
        "derated": dict(zip(("Fx", "Fy", "Mz"), derated(boat), strict=True)),
        "knows": {"current": sea.current, "delay": sea.delay[1], "force": sea.force},
    }


def _scale_in_words(boat: Vessel) -> str:
    """The same for people."""
    facts = _scale(boat)
    knows, shares = facts["knows"], facts["derating"]
    words = f"Policy: {_policy(boat)}. Scale: l = {facts['length']:g} m, T = {facts['time']:g} s"
    words += f"; control period {facts['period']:g} s ({1 / facts['period']:.3g} Hz).\n"
    words += f"The policy then knows a current up to {knows['current']:.2g} m/s, a delay up to {knows['delay']:.2g} s "
    words += f"and wind and waves up to {100 * knows['force']:g} % of the force."
    units = {"Fx": "N", "Fy": "N", "Mz": "N·m"}
    for axis, share in shares.items():
        if share < 1:
            limit = f"{facts['derated'][axis]:.4g} of {getattr(boat, axis):.4g} {units[axis]}"
            words += f"\nDerated: {axis} to {limit} ({100 * share:.2g} %), stronger than any boat in training."
    return words


def _facts(name: str, vessel: Vessel) -> dict[str, Any]:
    """The data of a vessel in the list, for JSON."""
    found = {
        "id": name,
        "name": vessel.name,
        "actuation": vessel.actuation,
        "policy": _policy(vessel),
        "scale": _scale(vessel),
        "outside": [entry._asdict() for entry in vessel.outside(_envelope(vessel))],
        "shortcomings": [entry._asdict() for entry in vessel.shortcomings()],
        "warnings": warnings(vessel),
    }
    if vessel.hydrodynamics is None:
        return found | {"plausible": ranges(vessel)}
    surge, sway, yaw = vessel.top_speeds
    return found | {
        "normalized": vessel.normalized._asdict(),
        "effective": vessel.effective()._asdict(),
        "top_speeds": {"surge": surge, "sway": sway, "yaw": yaw},
        "yaw_unstable_above": vessel.yaw_unstable_above,
    }
