"""Vessels: parameters, actuator limits, thrusters, and the nine normalized components of a boat."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from anyhull.envelope import OutOfRange, outside
from anyhull.errors import InputError, unknown
from anyhull.files import parse_toml, read_toml
from anyhull.hydrodynamics import (
    DAMPING,
    MAX_COMPONENT,
    MAX_STIFFNESS,
    MIN_COMPONENT,
    Hydrodynamics,
    Normalized,
    Theta,
    Triple,
    terminal,
)
from anyhull.identified import Identified
from anyhull.plausible import draw
from anyhull.scale import Scale, choose, derated, derating
from anyhull.schema import FieldError, check_types, decode, require, type_hints, unknown_key
from anyhull.thrusters import MAX_THRUSTERS, SLACK, Shortcoming, Thruster, derived_limits, reaches, shortcomings

Actuation = Literal["full", "under"]


WORKING_POINT: Triple = (0.6, 0.1, 0.3)
"""Speeds, in the vessel's scale, at which nonlinear drag is converted to an effective damping rate.

The paper's rectangle: 0.6 m/s, 2 m corners, so 0.3 rad/s, and a sway of some centimetres per second.
"""

MAX_LENGTH = 1000.0
"""Largest length and beam, m: twice those of the largest ship."""

BOAT_TABLES = ("link", "guard", "fence", "sensors")
"""Tables of a boat's file that do not describe the vessel; `anyhull.onboard.setup` reads them."""


@dataclass(frozen=True)
class Vessel:
    """A surface vessel: actuator limits, layout, hydrodynamics where they are known, and sources. SI units."""

    name: str
    """Display name."""
    Fx: float
    """Largest surge force, N; in a file, derived from `thrusters` if omitted, as the next two."""
    Fy: float
    """Largest sway force, N; zero for a boat that cannot push sideways."""
    Mz: float
    """Largest yaw moment, N·m."""
    m: float | None = None
    """Mass as it floats, kg. Only the sums m - X_udot and m - Y_vdot matter to the motion."""
    hydrodynamics: Hydrodynamics | None = None
    """Added mass and damping where they are known: for controllers with a model, and to simulate exactly this boat."""
    actuation: Actuation = "full"
    """`under` where the boat cannot push surge, sway and yaw independently; without sway force it is."""
    thrusters: tuple[Thruster, ...] = ()
    """The layout, if known."""
    length: float | None = None
    """Length, m."""
    beam: float | None = None
    """Beam, m."""
    source: str = ""
    """Where the figures come from."""
    caveats: str = ""
    """Known limitations of the figures."""
    quality: str = ""
    """Quality of the figures, A (identified) to C (borrowed)."""
    identified: Identified | None = None
    """What a voyage has told of it, from which `anyhull.control.Adaptive` starts."""

    def __post_init__(self) -> None:
        check_types(self)
        for field in ("m", "Fx", "Mz", "length", "beam"):
            value = getattr(self, field)
            require(self, field, value is None or value > 0, "positive")
        for field in ("length", "beam"):
            require(self, field, (getattr(self, field) or 0) <= MAX_LENGTH, f"at most {MAX_LENGTH:g}")
        require(self, "Fy", self.Fy >= 0, "zero or more")
        if self.Fy == 0:
            object.__setattr__(self, "actuation", "under")
        if self.thrusters:
            self._check_layout()
        if self.hydrodynamics is None:
            require(self, "length", self.length is not None, "given for a boat without [hydrodynamics]")
            return
        require(self, "m", self.m is not None, "given for a boat with [hydrodynamics]")
        for field in ("X_udot", "Y_vdot"):
            added = getattr(self.hydrodynamics, field)
            if not added < self.mass:
                accepted = f"less than m = {self.mass:g} (added mass is negative)"
                raise FieldError(f"hydrodynamics.{field}", added, accepted)
        self._check_magnitude()

    @staticmethod
    def load(name_or_path: str | Path) -> Vessel:
        """The vessel of that name in the catalogue, or the one that a TOML file describes."""
        path = Path(name_or_path)
        if path.suffix == ".toml":
            return _decode(read_toml(path), where=str(path))
        names = catalogue()
        if str(name_or_path) not in names:
            hint = "'anyhull vessels' lists them, and a path must end in .toml"
            raise InputError(unknown("vessel", str(name_or_path), names, hint))
        file = resources.files("anyhull") / "vessels" / f"{name_or_path}.toml"
        where = f"{name_or_path}.toml"
        return _decode(parse_toml(file.read_text(encoding="utf-8"), where), where)

    @property
    def hull(self) -> Hydrodynamics:
        """The hydrodynamics; raises for a boat whose file has none."""
        if self.hydrodynamics is None:
            hint = "needed to predict its motion; Vessel.plausible(seed) draws a hull that it may have"
            raise InputError(f"{self.name}: hydrodynamics is missing: {hint}")
        return self.hydrodynamics

    def plausible(self, seed: int) -> Vessel:
        """This boat with the plausible hull of that number: the same seed gives the same hull (`anyhull.plausible`).

        Mass is drawn where the file has none; a [hydrodynamics] table is replaced.
        """
        if self.length is None:
            raise InputError(f"{self.name}: length is missing: needed to draw plausible hulls")
        span = 2 * max((abs(t.y) for t in self.thrusters), default=0.0)
        hull = draw(seed, self.length, self.beam, self.m, self.limits, span)
        try:
            return replace(
                self, m=hull.m, hydrodynamics=hull.hydrodynamics, source=f"plausible hull {seed}", quality=""
            )
        except FieldError as error:
            raise InputError(f"{self.name}: no plausible hull: {error}; check length, m and thrust") from None

    @property
    def mass(self) -> float:
        """Mass as it floats, kg; raises for a boat whose file has none."""
        if self.m is None:
            raise InputError(f"{self.name}: m is missing: must be the mass as it floats, kg")
        return self.m

    @property
    def inertia(self) -> Triple:
        """Diagonal of the inertia matrix M (kg, kg, kg·m²)."""
        hull = self.hull
        return self.mass - hull.X_udot, self.mass - hull.Y_vdot, hull.I_comb

    @cached_property
    def scale(self) -> Scale:
        """The units in which a policy steers it, and its control period."""
        return choose(self)

    @property
    def limits(self) -> Triple:
        """Largest control force (N, N, N·m)."""
        return self.Fx, self.Fy, self.Mz

    @property
    def theta(self) -> Theta:
        """The paper's parameters theta, with the actuator limits."""
        hull = self.hull
        damping = hull.X_u, hull.Y_v, hull.N_r
        return Theta(self.mass, hull.X_udot, hull.Y_vdot, hull.I_comb, *damping, *self.limits)

    @property
    def normalized(self) -> Normalized:
        """The nine components e."""
        return self.theta.normalized

    @property
    def under_actuated(self) -> bool:
        """Whether it cannot push sideways independently of surge and yaw; a sway command then has no effect."""
        return self.actuation == "under"

    @property
    def hold_radius(self) -> float:
        """Radius of the circle in which a boat without sway force keeps station, m: one length, at least 0.5 m.

        It turns into what pushes it.
        """
        return max(self.length or 0.0, 0.5)

    @property
    def disturbed(self) -> Normalized:
        """e with alpha_v as the scale of wind and waves: where no actuator pushes sideways, that of the surge force."""
        e = self.normalized
        return e._replace(alpha_v=e.alpha_u / e.c_rv) if self.under_actuated else e

    @property
    def drag(self) -> tuple[Triple, Triple]:
        """Quadratic and cubic damping per unit of inertia (1/m, 1/m, 1/rad), (s/m², s/m², s/rad²)."""
        (m11, m22, m66), hull = self.inertia, self.hull
        quadratic = hull.X_uu / m11, hull.Y_vv / m22, hull.N_rr / m66
        return quadratic, (hull.X_uuu / m11, hull.Y_vvv / m22, hull.N_rrr / m66)

    @property
    def top_speeds(self) -> Triple:
        """Terminal speeds under full command on one axis at a time (m/s, m/s, rad/s); inf without damping."""
        e, (quadratic, cubic) = self.normalized, self.drag
        return (
            terminal(e.alpha_u, e.inv_tau_u, quadratic[0], cubic[0]),
            terminal(e.alpha_v, e.inv_tau_v, quadratic[1], cubic[1]),
            terminal(e.alpha_r, e.inv_tau_r, quadratic[2], cubic[2]),
        )

    @property
    def yaw_unstable_above(self) -> float:
        """Surge speed above which straight running is open-loop unstable in yaw, m/s; inf if never.

        Linear sway and yaw about (u, 0, 0) are stable while c_ru·c_uv·u² < 1/(tau_v·tau_r).
        """
        e = self.normalized
        munk = e.c_ru * e.c_uv
        return math.sqrt(e.inv_tau_v * e.inv_tau_r / munk) if munk > 0 else math.inf

    @property
    def stiffness(self) -> float:
        """Upper bound on the damping rate at all speeds that the actuators can reach, 1/s."""
        return max(self._rates)

    @property
    def _rates(self) -> list[float]:
        """That bound for each axis, 1/s."""
        e, (quadratic, cubic) = self.normalized, self.drag
        u, _, r = (min(speed, 30.0) for speed in self.top_speeds)
        sway_speed = terminal(e.alpha_v - e.c_ru * u * r, e.inv_tau_v, quadratic[1], cubic[1])
        linear = (e.inv_tau_u, e.inv_tau_v, e.inv_tau_r)
        speeds = (u, min(sway_speed, 30.0), r)
        return [d + 2 * q * s + 3 * c * s * s for d, q, c, s in zip(linear, quadratic, cubic, speeds, strict=True)]

    def effective(self, speeds: Triple | None = None) -> Normalized:
        """e with nonlinear drag converted to damping rates at speeds (m/s, m/s, rad/s), by default `WORKING_POINT`."""
        speeds = self.scale.speeds(WORKING_POINT) if speeds is None else speeds
        e, (quadratic, cubic) = self.normalized, self.drag
        rates = [d + q * s + c * s * s for d, q, c, s in zip(e[3:6], quadratic, cubic, speeds, strict=True)]
        return e._replace(inv_tau_u=rates[0], inv_tau_v=rates[1], inv_tau_r=rates[2])

    @property
    def for_policy(self) -> Normalized:
        """`effective` as a policy sees it: in the vessel's scale, derated, with `disturbed`'s scale of wind in sway."""
        return self.scale.normalized(self.effective()._replace(alpha_v=self.disturbed.alpha_v), derating(self))

    def outside(self, envelope: Mapping[str, tuple[float, float]]) -> list[OutOfRange]:
        """The components of e, as a policy sees them, outside its `envelope`, with advice."""
        return [] if self.hydrodynamics is None else outside(self.for_policy, derated(self), envelope)

    def shortcomings(self) -> list[Shortcoming]:
        """The axes on which the thrusters cannot give the limit; empty if the layout is unknown.

        Sway is none for a boat of the class without: its policies and references need none.
        """
        found = shortcomings(self.thrusters, self.limits) if self.thrusters else []
        return [short for short in found if not (self.under_actuated and short.axis == "sway")]

    def _check_magnitude(self) -> None:
        """Raise for figures each of which is valid, but whose ratios no simulation can follow."""
        hull = self.hull
        fields = (
            "Fx",
            "Fy",
            "Mz",
            *(f"hydrodynamics.{name}" for name in ("X_u", "Y_v", "N_r", "Y_vdot", "X_udot", "I_comb")),
        )
        values = (*self.limits, hull.X_u, hull.Y_v, hull.N_r, hull.Y_vdot, hull.X_udot, hull.I_comb)
        for field, given, (name, value) in zip(fields, values, self.normalized._asdict().items(), strict=True):
            divisor = name in ("alpha_u", "alpha_r", "c_rv", "c_ru") or (name == "alpha_v" and self.Fy > 0)
            least = MIN_COMPONENT if divisor else 0.0
            if not least <= abs(value) <= MAX_COMPONENT:
                accepted = f"such that |{name}| = {abs(value):.4g} is from {least:g} to {MAX_COMPONENT:g}"
                if name == "alpha_r" and hull.I_comb < 1e-6 * self.mass:
                    field, given = "hydrodynamics.I_comb", hull.I_comb
                raise FieldError(field, given, accepted)
        rates = [max(pair) for pair in zip(self._rates, self.effective()[3:6], strict=True)]
        if not max(rates) <= MAX_STIFFNESS:
            axis = rates.index(max(rates))
            field = max(DAMPING[axis], key=lambda name: float(getattr(hull, name)))
            accepted = f"smaller: it gives a damping rate of {rates[axis]:.4g} 1/s, more than {MAX_STIFFNESS:g}"
            raise FieldError(f"hydrodynamics.{field}", getattr(hull, field), accepted)

    def _check_layout(self) -> None:
        for i, thruster in enumerate(self.thrusters):
            for field, size, name in (("x", self.length, "length"), ("y", self.beam, "beam")):
                place = getattr(thruster, field)
                if size is not None and abs(place) > size:
                    accepted = f"within {name} = {size:g} of the centre of gravity"
                    raise InputError(f"thrusters[{i}].{field} = {place!r}: must be {accepted}")
        for field, reach in zip(("Fx", "Fy", "Mz"), reaches(self.thrusters), strict=True):
            possible = getattr(self, field) <= reach * (1 + SLACK)
            require(self, field, possible, f"at most {reach:.4g}, which the thrusters can give")


def catalogue() -> list[str]:
    """Names of the vessels that come with the package."""
    folder = resources.files("anyhull") / "vessels"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def _with_limits(table: dict[str, Any]) -> dict[str, Any]:
    """A vessel's table with the limits that it leaves out derived from its thrusters."""
    missing = [field for field in ("Fx", "Fy", "Mz") if field not in table]
    if not missing or not table["thrusters"]:
        return table
    derived = dict(zip(("Fx", "Fy", "Mz"), derived_limits(table["thrusters"]), strict=True))
    for field, cannot in (("Fx", "push the boat ahead"), ("Mz", "turn the boat to both sides")):
        if field in missing and derived[field] == 0:
            raise InputError(f"thrusters: cannot {cannot}: turn or add one, or state {field}")
    return table | {field: derived[field] for field in missing}


def _decode(content: dict[str, Any], where: str) -> Vessel:
    table = {key: value for key, value in content.items() if key not in BOAT_TABLES}
    thrusters, accepted = table.get("thrusters", []), (*type_hints(Vessel), *type_hints(Hydrodynamics), *BOAT_TABLES)
    try:
        for key in table:
            if key not in accepted:
                raise unknown_key(key, table[key], accepted)
        if isinstance(thrusters, list) and len(thrusters) > MAX_THRUSTERS:
            raise InputError(f"thrusters: {len(thrusters)} tables: must be at most {MAX_THRUSTERS}")
        table["thrusters"] = decode(tuple[Thruster, ...], thrusters, "thrusters")
        flat = {key: table.pop(key) for key in type_hints(Hydrodynamics) if key in table}
        if flat and "hydrodynamics" not in table:
            # Files of version 0.2 have these fields at the top.
            table["hydrodynamics"] = flat
        elif flat:
            raise InputError(f"{next(iter(flat))}: must be in [hydrodynamics] only")
        vessel = decode(Vessel, _with_limits(table))
        if table.get("actuation") == "full" and vessel.Fy == 0:
            raise FieldError("actuation", "full", "'under' or left out: the boat has no sway force")
        return vessel
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
