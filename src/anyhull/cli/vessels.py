"""`anyhull vessels`: the catalogue, and one vessel in full."""

from __future__ import annotations

import functools
import math
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from anyhull.cli.output import AsJson, new_table, open_console, print_json
from anyhull.pilot import Pilot
from anyhull.vessel import Normalized, Vessel, catalogue

POLICY = "field"
"""The default policy, whose envelope is shown."""

SYMBOLS = dict(zip(Normalized._fields, ("αu", "αv", "αr", "1/τu", "1/τv", "1/τr", "crv", "cru", "cuv"), strict=True))
"""The components of e in a narrow table."""

app = typer.Typer(help="List the vessels of the catalogue, or show one.")


@functools.cache
def _envelope() -> dict[str, tuple[float, float]]:
    return Pilot.load(POLICY).envelope


@app.callback(invoke_without_command=True)
def vessels(context: typer.Context, as_json: AsJson = False) -> None:
    """List the vessels of the catalogue: e, top speed, yaw stability, and whether the default policy covers them."""
    if context.invoked_subcommand is not None:
        return
    fleet = {name: Vessel.load(name) for name in catalogue()}
    if as_json:
        print_json([_facts(name, vessel) for name, vessel in fleet.items()])
        return
    table = new_table(["name", *SYMBOLS.values(), "top", "yaw", "acts", "outside"], left=("name", "outside"), gap=1)
    for name, vessel in fleet.items():
        outside = " ".join(SYMBOLS[entry.component] for entry in vessel.outside(_envelope()))
        yaw = "stable" if math.isinf(vessel.yaw_unstable_above) else f">{vessel.yaw_unstable_above:.2g}"
        e = (f"{value:.2g}" for value in vessel.normalized)
        row = [name, *e, f"{vessel.top_speeds[0]:.2g}", yaw, vessel.actuation, outside or "inside"]
        table.add_row(*row, style="" if outside == "" else "dim")
    console = open_console()
    console.print(table)
    console.print(
        "\nαu … cuv: the nine components of e, SI units. top: surge speed under full command, m/s.\n"
        "yaw: stable, or unstable above that speed in m/s. acts: full, or under where surge, sway and yaw\n"
        f"are not independent. outside: components of e outside the envelope of the policy '{POLICY}'\n"
        "(nonlinear damping is evaluated at 0.6 m/s). Details: anyhull vessels show NAME"
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
        print_json(_facts(vessel, boat) | {"effective": boat.effective()._asdict(), **asdict(boat)})
        return
    console = open_console()
    console.print(Text(boat.name, style="bold"))
    size = [f"{what} {value:g} m" for what, value in (("length", boat.length), ("beam", boat.beam)) if value]
    under = "under-actuated" if boat.actuation == "under" else "fully actuated"
    console.print(", ".join([under, *size, *([f"quality {boat.quality}"] if boat.quality else [])]), "\n")
    console.print(_physics(boat))
    unstable = boat.yaw_unstable_above
    stability = "stable at any speed" if math.isinf(unstable) else f"unstable above {unstable:.2g} m/s, open loop"
    console.print(f"mass {boat.m:g} kg.  Yaw: {stability}.\n")
    console.print(_components(boat))
    outside = boat.outside(_envelope())
    for entry in outside:
        console.print(
            f"{entry.component} = {entry.value:.3g} is outside [{entry.low:g}, {entry.high:g}]: {entry.advice}"
        )
    if not outside:
        console.print(f"Inside the envelope of the policy '{POLICY}'.")
    if boat.thrusters:
        console.print()
        console.print(_layout(boat))
    for short in boat.shortcomings():
        given = f"{short.axis} limit {short.limit:.4g}, thrusters give {short.attainable:.4g}"
        console.print(f"warning: {given}: {short.advice}", soft_wrap=True)
    for what, text in (("Source", boat.source), ("Caveats", boat.caveats)):
        if text:
            console.print(f"\n{what}: {text}")


def _physics(boat: Vessel) -> Table:
    """Inertia, damping, limit and top speed of each axis."""
    table = new_table(["axis", "added mass", "inertia", "damping", "quadratic", "cubic", "limit", "top speed"])
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
    """e beside the envelope of the default policy."""
    table = new_table(["component", "e", "at 0.6 m/s", "envelope from", "to", ""], left=("component", ""))
    outside = {entry.component for entry in boat.outside(_envelope())}
    for name, value, effective in zip(Normalized._fields, boat.normalized, boat.effective(), strict=True):
        low, high = _envelope()[name]
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


def _facts(name: str, vessel: Vessel) -> dict[str, Any]:
    """The data of a vessel in the list, for JSON."""
    surge, sway, yaw = vessel.top_speeds
    return {
        "id": name,
        "name": vessel.name,
        "normalized": vessel.normalized._asdict(),
        "top_speeds": {"surge": surge, "sway": sway, "yaw": yaw},
        "yaw_unstable_above": vessel.yaw_unstable_above,
        "actuation": vessel.actuation,
        "outside": [entry._asdict() for entry in vessel.outside(_envelope())],
        "shortcomings": [entry._asdict() for entry in vessel.shortcomings()],
    }
