"""A vessel's file with what a voyage has identified: its own tables, `[identified]`, and the hull that follows."""

from __future__ import annotations

from dataclasses import asdict
from importlib import resources
from pathlib import Path
from typing import Any

from anyhull.errors import InputError
from anyhull.files import atomic_write, parse_toml, read_toml, toml_text
from anyhull.hydrodynamics import Hydrodynamics, Triple
from anyhull.identification.hull import fit_hull
from anyhull.identified import Identified
from anyhull.log import Log
from anyhull.schema import decode, type_hints
from anyhull.vessel import Vessel

DERIVED = "[identified], and [hydrodynamics] as derived from it"


def table_of(name_or_path: str | Path) -> dict[str, Any]:
    """The tables of a vessel's file, or of one of the catalogue."""
    if Path(name_or_path).suffix == ".toml":
        return read_toml(name_or_path)
    file = resources.files("anyhull") / "vessels" / f"{name_or_path}.toml"
    return parse_toml(file.read_text(encoding="utf-8"), f"{name_or_path}.toml")


def table_of_log(log: Log, where: str | Path) -> dict[str, Any]:
    """The tables of a vessel's file from what a log says of its vessel."""
    about = log.about
    if "limits" not in about or "vessel" not in about:
        raise InputError(f"{where}: does not say which vessel it is of: give --vessel")
    limits = decode(tuple[float, float, float], about["limits"], "limits")
    if not (limits[0] > 0 and limits[1] >= 0 and limits[2] > 0):
        raise InputError(f"limits = {limits}: must be positive, and zero at most in sway")
    table: dict[str, Any] = {"name": str(about["vessel"]), **dict(zip(("Fx", "Fy", "Mz"), limits, strict=True))}
    table |= {key: about[key] for key in ("length", "beam") if about.get(key) is not None}
    if layout := about.get("layout"):
        if not (isinstance(layout, list) and all(isinstance(thruster, dict) for thruster in layout)):
            raise InputError("layout: must be a list of tables")
        kept = [{key: value for key, value in thruster.items() if value is not None} for thruster in layout]
        table["thrusters"] = kept
    return table


def write_boat(path: Path, table: dict[str, Any], found: Identified, limits: Triple) -> Path:
    """Write a vessel's tables with what was identified to a new file."""
    check_new_boat(path)
    hull = fit_hull(found, limits)
    out = {key: value for key, value in table.items() if key not in (*type_hints(Hydrodynamics), "hydrodynamics")}
    if hull.consistent:
        mass, coefficients = hull.hydrodynamics(table.get("m"))
        out["m"] = round(mass, 6)
        out["hydrodynamics"] = {name: float(f"{value:.6g}") for name, value in asdict(coefficients).items() if value}
        out["hydrodynamics"] |= {name: 0.0 for name in ("X_udot", "Y_vdot") if name not in out["hydrodynamics"]}
        what = DERIVED
    else:
        what = "[identified]; no hull with these limits moves so, so there is no [hydrodynamics]"
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(found).items()}
    for name, value in plain.items():
        if isinstance(value, list) and name != "correlation":
            plain[name] = [float(f"{number:.6g}") for number in value]
    plain["correlation"] = [list(row) for row in found.correlation]
    out["identified"] = plain
    lines = [
        f"# Identified on {found.date} from {found.source}: {found.seconds:.0f} s.".replace("\n", " "),
        f"# By anyhull: {what}.",
        "# In [identified] each entry is a value and its standard deviation in the same units (docs/identify.md).",
        "",
    ]
    with atomic_write(path) as temporary:
        temporary.write_text("\n".join(lines) + "\n" + toml_text(out), encoding="utf-8")
        try:
            Vessel.load(temporary)
        except InputError as error:
            reason = str(error).removeprefix(f"{temporary}: ")
            raise InputError(f"{path}: not written: {reason}; give --vessel, or correct that file") from None
    return path


def check_new_boat(path: Path) -> None:
    """Raise unless a vessel's file may be written there."""
    if path.suffix != ".toml":
        raise InputError(f"{path}: a vessel's file is TOML: give a path that ends in .toml")
    if path.exists():
        raise InputError(f"{path}: exists, and a vessel's file is never replaced: give another path")
