"""`anyhull identify`: a boat's dynamics, with their uncertainty, from a recorded voyage."""

from __future__ import annotations

from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anyhull.cli.log import read_log
from anyhull.cli.output import AsJson, check_writable, new_table, open_console, print_json, progress
from anyhull.errors import InputError
from anyhull.hydrodynamics import Triple
from anyhull.identified import COMPONENTS
from anyhull.schema import decode
from anyhull.vessel import Vessel

if TYPE_CHECKING:
    from anyhull.identification.hull import Hull
    from anyhull.identification.identify import Identification

SYMBOLS = {
    "alpha_u": ("peak surge acceleration", "m/s²"),
    "alpha_v": ("peak sway acceleration", "m/s²"),
    "alpha_r": ("peak yaw acceleration", "rad/s²"),
    "inv_tau_u": ("surge damping rate", "1/s"),
    "inv_tau_v": ("sway damping rate", "1/s"),
    "inv_tau_r": ("yaw damping rate", "1/s"),
    "c_rv": ("sway over surge inertia", ""),
    "c_uv": ("Munk coupling", "1/m²"),
}

LABELS = ("inertia in surge, m - X_udot", "inertia in sway, m - Y_vdot", "inertia in yaw", "X_u", "Y_v", "N_r")

ADVICE = {
    "alpha_u": "changes of speed",
    "inv_tau_u": "several speeds",
    "alpha_v": "steps of the sway command",
    "inv_tau_v": "drift: tight turns, or sway at several speeds",
    "alpha_r": "a zig-zag",
    "inv_tau_r": "steady turns of several rates",
    "c_rv": "tight turns at speed",
    "c_uv": "tight turns at speed",
}
"""What excites a component."""


def identify(
    file: Annotated[
        Path,
        typer.Argument(help="A log (.npz), a journal (.jsonl), ArduPilot's .BIN, or a table (.csv; docs/identify.md)."),
    ],
    vessel: Annotated[
        str | None, typer.Option(help="The boat's TOML file, or a name of the catalogue; by default what the log says.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the identified boat to this new .toml.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Write the estimates over time to this figure.")] = None,
    as_json: AsJson = False,
) -> None:
    """Identify a boat's dynamics from a recorded voyage, with standard deviations.

    Peak accelerations, damping rates, coupling, delay and lag by maximum likelihood; in kg and N s/m where the limits
    of the boat are known.
    """
    from anyhull.identification.boat_file import check_new_boat, table_of, table_of_log, write_boat
    from anyhull.identification.hull import fit_hull
    from anyhull.identification.identify import identify as identify_voyage
    from anyhull.identification.table import read_table
    from anyhull.identification.voyage import voyage

    if out:
        check_new_boat(out)
        check_writable(out)
    if plot:
        from anyhull.viz.plots import check_picture

        check_picture(plot)
        check_writable(plot)
    boat = Vessel.load(vessel) if vessel else None
    log = read_table(file, boat) if file.suffix.lower() == ".csv" else read_log(file)
    table: dict[str, Any] | None = table_of(vessel) if vessel else None
    limits: Triple | None = boat.limits if boat else None
    if table is None and "limits" in log.about:
        try:
            table = table_of_log(log, file)
            limits = decode(tuple[float, float, float], log.about["limits"], "limits")
            boat = decode(Vessel, table) if "length" in table else None
        except InputError as error:
            raise InputError(f"{file}: {error}; give --vessel") from None
    if out and table is None:
        raise InputError(f"{file}: does not say which vessel it is of: give --vessel, whose file --out completes")
    try:
        recorded = voyage(log, boat)
        with progress(f"identifying {file.name}") as on_step:
            found = identify_voyage(recorded, file.name, date.today().isoformat(), on_step)
    except InputError as error:
        raise InputError(f"{file}: {error}") from None
    hull = fit_hull(found.found, limits) if limits else None
    files = {}
    if out and table and limits:
        files["vessel"] = str(write_boat(out, table, found.found, limits))
    if plot:
        from anyhull.viz.estimates import plot_estimates

        plot_estimates(found.history, found.found, plot, title=file.name, true=_stated(boat))
        files["plot"] = str(plot)
    if as_json:
        print_json(
            _document(file, found, hull) | {"resampled": recorded.resampled, "gaps": recorded.gaps, "files": files}
        )
        return
    console = open_console()
    name = boat.name if boat else str(log.about.get("vessel") or "boat of unknown limits")
    kind = ", without sway force" if recorded.under else ""
    console.print(f"{name}{kind}: {found.found.seconds:.1f} s of {file.name}\n")
    _print(console.print, found, hull, recorded.under)
    if recorded.resampled:
        console.print(f"rows are uneven: resampled to {recorded.scale.period:g} s")
    if recorded.gaps:
        console.print(f"{recorded.gaps} gaps, across which nothing is predicted")
    for what, path in files.items():
        console.print(f"{what}: {path}", soft_wrap=True)


def _print(write: Any, found: Identification, hull: Hull | None, under: bool) -> None:
    table = new_table(["component", "estimate", "± 1 sd", "%", "unit", "excited"], left=("unit", "excited"))
    shown = [name for name in COMPONENTS if not (under and name == "alpha_v")]
    for name in shown:
        value, std = getattr(found.found, name)
        label, unit = SYMBOLS[name]
        share = "" if name == "c_uv" else f"{100 * std / value:.1f}"
        table.add_row(f"{name}, {label}", f"{value:.4g}", f"{std:.2g}", share, unit, found.excitation[name])
    rows = {"delay of the thrust": found.found.delay, "lag of the thrust": found.found.lag}
    for name, (value, std) in (rows | {"delay and lag together": found.delay_and_lag}).items():
        table.add_row(name, f"{1e3 * value:.0f}", f"{1e3 * std:.0f}", "", "ms", "")
    if hull is not None:
        from anyhull.identification.hull import LIMITS, UNITS

        table.add_section()
        for name, value, std, unit in zip(LABELS, hull.values, hull.std, UNITS, strict=True):
            table.add_row(name, f"{value:.4g}", f"{value * std:.2g}", f"{100 * std:.0f}", unit, "")
    write(table)
    if hull is not None:
        write(f"kg and N s/m are as good as the limits of the file; ± includes {100 * LIMITS:.0f} % of them")
        if not hull.consistent:
            write("the limits do not fit: no hull with them has these components, so no [hydrodynamics] follows")
    if found.fits:
        table = new_table(
            ["prediction of the last third", "u, m/s", "fit, %", "v, m/s", "fit, %", "r, rad/s", "fit, %"]
        )
        for of in found.fits:
            pairs = zip(of.rmse, of.percent, strict=True)
            cells = [cell for rmse, percent in pairs for cell in (f"{rmse:.4f}", f"{percent:.0f}")]
            table.add_row(f"{of.seconds:g} s ahead", *cells)
        write(table)
        write("rms errors with what the first two thirds tell; fit is 100 (1 - |error| / |deviation from the mean|)")
    unexcited = [name for name in shown if found.excitation[name] == "no"]
    if unexcited:
        needs = list(dict.fromkeys(ADVICE[name] for name in unexcited))
        write(f"\nnot excited: {', '.join(unexcited)}. What is stated of them is hardly more than that it is a boat.")
        write(f"To identify them, record {'; '.join(needs)}.")
    if not found.settled:
        write("the search did not converge: take the standard deviations with caution")


def _stated(boat: Vessel | None) -> tuple[float, ...] | None:
    """The components by the vessel's file."""
    return tuple(boat.effective()) if boat and boat.hydrodynamics else None


def _document(file: Path, found: Identification, hull: Hull | None) -> dict[str, Any]:
    fits = [{"seconds": f.seconds, "rmse": f.rmse.tolist(), "fit_percent": f.percent.tolist()} for f in found.fits]
    document: dict[str, Any] = {"file": str(file), "identified": asdict(found.found), "excited": found.excitation}
    document |= {
        "delay_and_lag": found.delay_and_lag,
        "noise": found.noise,
        "settled": found.settled,
        "prediction": fits,
    }
    if hull is None:
        return document
    from anyhull.identification.hull import NAMES

    pairs = {name: [v, v * s] for name, v, s in zip(NAMES, hull.values.tolist(), hull.std.tolist(), strict=True)}
    return document | {"hull": pairs | {"misfit": hull.misfit, "consistent": hull.consistent}}
