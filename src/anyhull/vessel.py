"""Vessels: parameters, actuator limits, thrusters, and the nine normalized components of a boat."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Literal, NamedTuple

from anyhull.errors import InputError, unknown
from anyhull.files import parse_toml, read_toml
from anyhull.schema import FieldError, check_types, decode, require, type_hints, unknown_key
from anyhull.thrusters import MAX_THRUSTERS, SLACK, Shortcoming, Thruster, derived_limits, reaches, shortcomings

Triple = tuple[float, float, float]
Actuation = Literal["full", "under"]


class Normalized(NamedTuple):
    """The privileged vector e: the coefficients of the equations of motion per unit of inertia."""

    alpha_u: float
    """Peak surge acceleration F_x^max / (m - X_udot), m/s²."""
    alpha_v: float
    """Peak sway acceleration F_y^max / (m - Y_vdot), m/s²."""
    alpha_r: float
    """Peak yaw acceleration M_z^max / I_comb, rad/s²."""
    inv_tau_u: float
    """Surge damping rate X_u / (m - X_udot), 1/s."""
    inv_tau_v: float
    """Sway damping rate Y_v / (m - Y_vdot), 1/s."""
    inv_tau_r: float
    """Yaw damping rate N_r / I_comb, 1/s."""
    c_rv: float
    """Coriolis coupling of r·v into surge, (m - Y_vdot) / (m - X_udot)."""
    c_ru: float
    """Coriolis coupling of r·u into sway, -1 / c_rv."""
    c_uv: float
    """Munk coupling of u·v into yaw, (Y_vdot - X_udot) / I_comb, 1/m²."""


WORKING_POINT: Triple = (0.6, 0.1, 0.3)
"""Speeds (m/s, m/s, rad/s) at which nonlinear drag is converted to an effective damping rate.

The paper's rectangle: 0.6 m/s, 2 m corners, so 0.3 rad/s, and a sway of some centimetres per second.
"""

DAMPING = (("X_u", "X_uu", "X_uuu"), ("Y_v", "Y_vv", "Y_vvv"), ("N_r", "N_rr", "N_rrr"))
"""Fields of linear, quadratic and cubic damping, for each axis."""

MIN_COMPONENT, MAX_COMPONENT = 1e-9, 1e6
"""Least magnitude of the accelerations and ratios of inertia in e, by which controllers divide, and the largest of any
component: far beyond every boat, from models to tankers."""

MAX_LENGTH = 1000.0
"""Largest length and beam, m: twice those of the largest ship."""

MAX_STIFFNESS = 7000.0
"""Largest damping rate, 1/s: 1000 integration steps a control period, and 200 times that of any boat in training."""

BOAT_TABLES = ("link", "guard", "fence", "sensors")
"""Tables of a boat's file that do not describe the vessel; `anyhull.onboard.setup` reads them."""


class OutOfRange(NamedTuple):
    """A component of e that lies outside the range that a policy was trained on, and what to do about it."""

    component: str
    value: float
    low: float
    high: float
    advice: str


@dataclass(frozen=True)
class Vessel:
    """A surface vessel: theta of the paper, actuator limits, layout and sources. SI units."""

    name: str
    """Display name."""
    m: float
    """Rigid mass, kg. Only the sums m - X_udot and m - Y_vdot matter to the motion."""
    X_udot: float
    """Added mass in surge, kg, negative."""
    Y_vdot: float
    """Added mass in sway, kg, negative."""
    X_u: float
    """Linear damping in surge, kg/s."""
    Y_v: float
    """Linear damping in sway, kg/s."""
    N_r: float
    """Linear damping in yaw, kg·m²/s."""
    I_comb: float
    """Yaw inertia with added inertia, kg·m²."""
    Fx: float
    """Largest surge force, N; in a file, derived from `thrusters` if omitted, as the next two."""
    Fy: float
    """Largest sway force, N; zero for a boat that cannot push sideways."""
    Mz: float
    """Largest yaw moment, N·m."""
    X_uu: float = 0.0
    """Quadratic damping in surge, kg/m."""
    Y_vv: float = 0.0
    """Quadratic damping in sway, kg/m."""
    N_rr: float = 0.0
    """Quadratic damping in yaw, kg·m²."""
    X_uuu: float = 0.0
    """Cubic damping in surge, kg·s/m²."""
    Y_vvv: float = 0.0
    """Cubic damping in sway, kg·s/m²."""
    N_rrr: float = 0.0
    """Cubic damping in yaw, kg·m²·s."""
    actuation: Actuation = "full"
    """`under` where the boat cannot push surge, sway and yaw independently."""
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

    def __post_init__(self) -> None:
        check_types(self)
        for field in ("m", "I_comb", "Fx", "Mz", "length", "beam"):
            value = getattr(self, field)
            require(self, field, value is None or value > 0, "positive")
        for field in ("length", "beam"):
            require(self, field, (getattr(self, field) or 0) <= MAX_LENGTH, f"at most {MAX_LENGTH:g}")
        for field in ("X_u", "Y_v", "N_r", "Fy"):
            require(self, field, getattr(self, field) >= 0, "zero or more")
        for field in ("X_udot", "Y_vdot"):
            require(self, field, getattr(self, field) < self.m, f"less than m = {self.m:g} (added mass is negative)")
        for linear, quadratic, cubic in DAMPING:
            a, b, c = getattr(self, linear), getattr(self, quadratic), getattr(self, cubic)
            require(self, cubic, c >= 0, "zero or more")
            require(self, quadratic, b >= 0 or b * b < 4 * a * c, "large enough that the drag always decelerates")
        require(self, "actuation", self.actuation == "under" or self.Fy > 0, "'under' for a boat with Fy = 0")
        if self.thrusters:
            self._check_layout()
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
    def inertia(self) -> Triple:
        """Diagonal of the inertia matrix M (kg, kg, kg·m²)."""
        return self.m - self.X_udot, self.m - self.Y_vdot, self.I_comb

    @property
    def limits(self) -> Triple:
        """Largest control force (N, N, N·m)."""
        return self.Fx, self.Fy, self.Mz

    @property
    def normalized(self) -> Normalized:
        """The nine components e."""
        m11, m22, m66 = self.inertia
        return Normalized(
            alpha_u=self.Fx / m11,
            alpha_v=self.Fy / m22,
            alpha_r=self.Mz / m66,
            inv_tau_u=self.X_u / m11,
            inv_tau_v=self.Y_v / m22,
            inv_tau_r=self.N_r / m66,
            c_rv=m22 / m11,
            c_ru=-m11 / m22,
            c_uv=(self.Y_vdot - self.X_udot) / m66,
        )

    @property
    def drag(self) -> tuple[Triple, Triple]:
        """Quadratic and cubic damping per unit of inertia (1/m, 1/m, 1/rad), (s/m², s/m², s/rad²)."""
        m11, m22, m66 = self.inertia
        return (self.X_uu / m11, self.Y_vv / m22, self.N_rr / m66), (
            self.X_uuu / m11,
            self.Y_vvv / m22,
            self.N_rrr / m66,
        )

    @property
    def top_speeds(self) -> Triple:
        """Terminal speeds under full command on one axis at a time (m/s, m/s, rad/s); inf without damping."""
        e, (quadratic, cubic) = self.normalized, self.drag
        return (
            _terminal(e.alpha_u, e.inv_tau_u, quadratic[0], cubic[0]),
            _terminal(e.alpha_v, e.inv_tau_v, quadratic[1], cubic[1]),
            _terminal(e.alpha_r, e.inv_tau_r, quadratic[2], cubic[2]),
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
        sway_speed = _terminal(e.alpha_v - e.c_ru * u * r, e.inv_tau_v, quadratic[1], cubic[1])
        linear = (e.inv_tau_u, e.inv_tau_v, e.inv_tau_r)
        speeds = (u, min(sway_speed, 30.0), r)
        return [d + 2 * q * s + 3 * c * s * s for d, q, c, s in zip(linear, quadratic, cubic, speeds, strict=True)]

    def effective(self, speeds: Triple = WORKING_POINT) -> Normalized:
        """e with nonlinear drag converted to damping rates at the given speeds (m/s, m/s, rad/s)."""
        e, (quadratic, cubic) = self.normalized, self.drag
        rates = [d + q * s + c * s * s for d, q, c, s in zip(e[3:6], quadratic, cubic, speeds, strict=True)]
        return e._replace(inv_tau_u=rates[0], inv_tau_v=rates[1], inv_tau_r=rates[2])

    def outside(self, envelope: Mapping[str, tuple[float, float]]) -> list[OutOfRange]:
        """The components of e outside the `envelope` that a policy was trained on (`Pilot.envelope`), with advice."""
        return [
            OutOfRange(component, value, low, high, self._advice(component, value < low, high))
            for component, value in self.effective()._asdict().items()
            for low, high in [envelope[component]]
            if not low <= value <= high
        ]

    def shortcomings(self) -> list[Shortcoming]:
        """The axes on which the thrusters cannot give the limit; empty if the layout is unknown."""
        return shortcomings(self.thrusters, self.limits) if self.thrusters else []

    def _check_magnitude(self) -> None:
        """Raise for figures each of which is valid, but whose ratios no simulation can follow."""
        fields = ("Fx", "Fy", "Mz", "X_u", "Y_v", "N_r", "Y_vdot", "X_udot", "I_comb")
        for field, name, value in zip(fields, Normalized._fields, self.normalized, strict=True):
            divisor = name in ("alpha_u", "alpha_r", "c_rv", "c_ru") or (name == "alpha_v" and self.Fy > 0)
            least = MIN_COMPONENT if divisor else 0.0
            if not least <= abs(value) <= MAX_COMPONENT:
                accepted = f"such that |{name}| = {abs(value):.4g} is from {least:g} to {MAX_COMPONENT:g}"
                raise FieldError(field, getattr(self, field), accepted)
        rates = [max(pair) for pair in zip(self._rates, self.effective()[3:6], strict=True)]
        if not max(rates) <= MAX_STIFFNESS:
            axis = rates.index(max(rates))
            field = max(DAMPING[axis], key=lambda name: float(getattr(self, name)))
            accepted = f"smaller: it gives a damping rate of {rates[axis]:.4g} 1/s, more than {MAX_STIFFNESS:g}"
            raise FieldError(field, getattr(self, field), accepted)

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

    def _advice(self, component: str, below: bool, high: float) -> str:
        kind, axis = component.rsplit("_", 1)
        if kind == "alpha":
            i = "uvr".index(axis)
            limit, unit = ("Fx", "Fy", "Mz")[i], ("N", "N", "N·m")[i]
            if self.limits[i] == 0:
                return f"no authority on this axis ({limit} = 0): no trained policy steers an under-actuated boat"
            if below:
                return "weaker than any boat in training: ask for slower references and try it in simulation first"
            return f"derate {limit} to {self.inertia[i] * high:.4g} {unit} or less"
        if kind == "inv_tau":
            return (
                "hardly any damping: expect overshoot, and try it in simulation first"
                if below
                else "more damping than any boat in training: expect lag, and try it in simulation first"
            )
        return "a coupling no boat in training had: try it in simulation at low speed first"


def catalogue() -> list[str]:
    """Names of the vessels that come with the package."""
    folder = resources.files("anyhull") / "vessels"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def _terminal(alpha: float, linear: float, quadratic: float, cubic: float) -> float:
    """The speed s at which linear·s + quadratic·s² + cubic·s³ = alpha, by bisection."""
    if alpha == 0:
        return 0.0
    if linear == quadratic == cubic == 0:
        return math.inf
    low, high = 0.0, 1.0
    while (linear + (quadratic + cubic * high) * high) * high < alpha:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        if (linear + (quadratic + cubic * middle) * middle) * middle < alpha:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _with_limits(table: dict[str, Any]) -> dict[str, Any]:
    """A vessel's table with the limits that it leaves out derived from its thrusters."""
    missing = [field for field in ("Fx", "Fy", "Mz") if field not in table]
    if not missing or not table["thrusters"]:
        return table
    derived = dict(zip(("Fx", "Fy", "Mz"), derived_limits(table["thrusters"]), strict=True))
    for field, cannot in (("Fx", "push the boat ahead"), ("Mz", "turn the boat to both sides")):
        if field in missing and derived[field] == 0:
            raise InputError(f"thrusters: cannot {cannot}: turn or add one, or state {field}")
    if "Fy" in missing and derived["Fy"] == 0 and table.get("actuation", "full") == "full":
        raise InputError("thrusters: cannot push sideways without turning: add one, or set actuation to 'under'")
    return table | {field: derived[field] for field in missing}


def _decode(content: dict[str, Any], where: str) -> Vessel:
    table = {key: value for key, value in content.items() if key not in BOAT_TABLES}
    thrusters, accepted = table.get("thrusters", []), (*type_hints(Vessel), *BOAT_TABLES)
    try:
        for key in table:
            if key not in accepted:
                raise unknown_key(key, table[key], accepted)
        if isinstance(thrusters, list) and len(thrusters) > MAX_THRUSTERS:
            raise InputError(f"thrusters: {len(thrusters)} tables: must be at most {MAX_THRUSTERS}")
        table["thrusters"] = decode(tuple[Thruster, ...], thrusters, "thrusters")
        return decode(Vessel, _with_limits(table))
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
