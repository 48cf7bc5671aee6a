"""Thruster layouts: the thrust of a command, and the attainable body forces of a layout.

A body force is (F_x, F_y, M_z) in N, N, N·m. A thruster at (x, y) with thrust (f_x, f_y) gives
(f_x, f_y, x·f_y - y·f_x); a layout gives the sum. The attainable set is a Minkowski sum of segments (fixed and
tunnel thrusters) and discs (azimuths): convex, and a polytope once each disc is a polygon.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from anyhull.backend import Array
from anyhull.schema import check_types, require

Triple = tuple[float, float, float]
Kind = Literal["fixed", "azimuth", "tunnel"]

SIDES = 24
"""Sides of the polygon that approximates an azimuth's disc of thrust.

It is inscribed, with corners on the axes, so that it contains no unattainable thrust. It lacks up to
1 - cos(pi / 24) = 0.9 % of the radius between two corners.
"""

_CORNERS = np.array([(math.cos(a), math.sin(a)) for a in 2 * math.pi * np.arange(SIDES) / SIDES])

NORMALS = np.array([(math.cos(a), math.sin(a)) for a in 2 * math.pi * (np.arange(SIDES // 2) + 0.5) / SIDES])
"""Unit normals of half of the polygon's sides; the other half are opposite."""

APOTHEM = math.cos(math.pi / SIDES)
"""Distance of the sides from the centre, in radii."""

REST = 1e-3
"""Fraction of the limit below which thrusters with a dead band, and azimuths, stop: they would chatter or spin."""

MAX_THRUSTERS = 32
"""Thrusters of a vessel: those that one message of the link carries."""

LARGEST = 1e9
"""Largest number of a thruster (N, m, s, degrees), far beyond any: with more, sums of forces and moments overflow."""

SLACK = 0.01
"""Fraction by which a stated limit may exceed the attainable force: sources round, and polygons lack 0.9 %."""


@dataclass(frozen=True)
class Thruster:
    """One thruster of a layout, in the body frame: x forward, y to the side of positive sway."""

    kind: Kind
    """`fixed` pushes along `angle`, `azimuth` in any direction, `tunnel` across the boat."""
    x: float
    """Position ahead of the centre of gravity, m."""
    y: float
    """Position to the side of positive sway, m."""
    forward: float
    """Largest thrust, N."""
    reverse: float | None = None
    """Largest reverse thrust, N; by default `forward`. Azimuths use it only while they turn."""
    angle: float = 0.0
    """Direction of positive thrust from the bow toward positive sway, degrees; of an azimuth, initially."""
    dead_band: float = 0.0
    """Fraction of the command around zero that gives no thrust."""
    lag: float = 0.0
    """Time constant of the thrust, s."""
    rate: float | None = None
    """Largest change of the thrust, N/s; by default unlimited."""
    turn_rate: float | None = None
    """Largest turning rate of an azimuth, degrees/s; by default unlimited."""

    def __post_init__(self) -> None:
        check_types(self)
        for field in ("x", "y", "forward", "reverse", "angle", "lag", "rate", "turn_rate"):
            require(self, field, abs(getattr(self, field) or 0) <= LARGEST, f"at most {LARGEST:g}")
        for field in ("forward", "reverse", "lag"):
            require(self, field, (getattr(self, field) or 0) >= 0, "zero or more")
        require(self, "dead_band", 0 <= self.dead_band < 1, "at least 0 and below 1")
        for field in ("rate", "turn_rate"):
            value = getattr(self, field)
            require(self, field, value is None or value > 0, "positive")
        across = self.kind != "tunnel" or abs(self.angle) == 90
        require(self, "angle", across, "90 or -90 for a tunnel, which pushes across the boat")
        turns = self.turn_rate is None or self.kind == "azimuth"
        require(self, "turn_rate", turns, "left out: only azimuths turn")

    @property
    def bounds(self) -> tuple[float, float]:
        """Least and largest thrust, N."""
        return -(self.forward if self.reverse is None else self.reverse), self.forward

    def thrust(self, command: float) -> float:
        """Steady thrust (N) of a command in [-1, 1]: none in the dead band, linear from its edge to the limit."""
        size = max(0.0, min(abs(command), 1.0) - self.dead_band) / (1 - self.dead_band)
        return size * (self.bounds[1] if command > 0 else self.bounds[0])

    def command(self, thrust: float) -> float:
        """The command in [-1, 1] that gives a thrust (N), with dead-band compensation; zero below `REST`."""
        limit = self.bounds[1] if thrust > 0 else -self.bounds[0]
        size = abs(thrust) / limit if limit > 0 else 0.0
        if size < REST and (self.dead_band > 0 or self.kind == "azimuth"):
            return 0.0
        return math.copysign(self.dead_band + (1 - self.dead_band) * min(size, 1.0), thrust)

    def column(self, angle: float) -> Array:
        """Body force of one newton of thrust toward `angle` (rad from the bow)."""
        # Rounded, so that the cosine of 90° is zero and gives no authority.
        cos, sin = round(math.cos(angle), 15), round(math.sin(angle), 15)
        return np.array([cos, sin, self.x * sin - self.y * cos])


@dataclass(frozen=True)
class Attainable:
    """The attainable body forces tau (N, N, N·m) of a layout: those with normals · tau <= offsets."""

    normals: Array
    """Outward normals, shape (planes, 3)."""
    offsets: Array
    """Offsets of the planes, shape (planes,), zero or more, since zero force is attainable."""
    arm: float
    """Length (m) that scales moments to forces."""

    def contains(self, force: ArrayLike, slack: float = 1e-9) -> bool:
        """Whether a force is attainable, within the fraction `slack` of the largest offset."""
        return bool((self.normals @ np.asarray(force) <= self.offsets + slack * self.offsets.max()).all())

    def reach(self, direction: ArrayLike) -> float:
        """The largest attainable multiple of a force; inf for zero force."""
        along = self.normals @ np.asarray(direction, dtype=np.float64)
        size = np.linalg.norm(np.asarray(direction) / (1, 1, self.arm))
        outward = along > 1e-9 * size
        return float((self.offsets[outward] / along[outward]).min()) if outward.any() else math.inf

    @property
    def alone(self) -> tuple[tuple[float, float], ...]:
        """Largest force on each axis with zero on the others, backward and forward: ((Fx-, Fx+), (Fy-, Fy+), …)."""
        return tuple((self.reach(-axis), self.reach(axis)) for axis in np.eye(3))


class Shortcoming(NamedTuple):
    """An axis on which the thrusters cannot give the vessel's limit."""

    axis: str
    """`surge`, `sway` or `yaw`."""
    limit: float
    """The vessel's limit, N or N·m."""
    attainable: float
    """Attainable force on this axis in the weaker direction, with zero on the other two."""
    advice: str


def attainable(thrusters: Sequence[Thruster], free: Sequence[int] = ()) -> Attainable:
    """The attainable set of a layout, azimuths as inscribed polygons; force on the axes in `free` is unconstrained.

    Every face of a sum of segments and polygons has two of their edges, so the cross products of all pairs of edges
    include all normals. Directions without authority count as edges too, so that the set has zero width there.
    """
    arm = max([math.hypot(t.x, t.y) for t in thrusters if t.forward > 0] or [1.0])
    arm = arm if arm > 1e-6 else 1.0  # a lever below a micrometre is none, and dividing by it overflows
    edges = np.concatenate([_edges(t) for t in thrusters if max(t.bounds[1], -t.bounds[0]) > 0] or [np.zeros((0, 3))])
    edges = np.concatenate([edges / (1, 1, arm), np.eye(3)[list(free)]])
    _, strengths, axes = np.linalg.svd(edges)
    rank = int((strengths > 1e-9 * max(1.0, *strengths)).sum()) if strengths.size else 0
    edges = np.concatenate([edges, axes[rank:]])

    first, second = np.triu_indices(len(edges), k=1)
    normals = np.cross(edges[first], edges[second])
    size = np.linalg.norm(normals, axis=1)
    normals = normals[size > 1e-9] / size[size > 1e-9, None]
    normals = normals[(np.abs(normals[:, list(free)]) < 1e-9).all(axis=1)]
    normals = np.concatenate([normals, -normals]) / (1, 1, arm)
    offsets = support(thrusters, normals, inscribed=True)
    offsets[offsets < 1e-12 * offsets.max()] = 0.0
    return Attainable(normals, offsets, arm)


def support(thrusters: Sequence[Thruster], directions: ArrayLike, inscribed: bool = False) -> Array:
    """Support function of the attainable set, h(d) = max d · tau, for directions d of shape (n, 3).

    It is the sum over thrusters; azimuths are discs or, with `inscribed`, polygons.
    """
    directions = np.asarray(directions, dtype=np.float64)
    total = np.zeros(len(directions))
    for t in thrusters:
        if t.kind == "azimuth":
            along = directions @ np.stack([t.column(0.0), t.column(math.pi / 2)], axis=1)
            total += t.forward * ((along @ _CORNERS.T).max(axis=1) if inscribed else np.linalg.norm(along, axis=1))
        else:
            along = directions @ t.column(math.radians(t.angle))
            total += np.maximum(along * t.bounds[0], along * t.bounds[1])
    return total


def reaches(thrusters: Sequence[Thruster]) -> Triple:
    """Largest force on each axis with any force on the others, in the stronger direction (N, N, N·m)."""
    surge, sway, yaw = support(thrusters, np.concatenate([np.eye(3), -np.eye(3)])).reshape(2, 3).max(axis=0).tolist()
    return surge, sway, yaw


def derived_limits(thrusters: Sequence[Thruster]) -> Triple:
    """Limits F_x, F_y, M_z (N, N, N·m) of a layout: the attainable force on each axis with zero on the others.

    F_x is the force ahead, F_y and M_z that of the weaker side. Without independent sway F_y is 0, and the other
    two are those with sway unconstrained.
    """
    surge, sway, yaw = _alone(thrusters)
    return surge[1], min(sway), min(yaw)


def shortcomings(thrusters: Sequence[Thruster], limits: Triple) -> list[Shortcoming]:
    """The axes on which a layout cannot give the limit, or gives no force."""
    found = []
    names = (("surge", "Fx", "N"), ("sway", "Fy", "N"), ("yaw", "Mz", "N·m"))
    rows = zip(names, limits, _alone(thrusters), reaches(thrusters), strict=True)
    for (axis, field, unit), limit, alone, reach in rows:
        weak = min(alone)
        if reach == 0:
            advice = f"no thruster gives any {axis}: add one or turn one"
        elif weak == 0:
            advice = f"{axis} comes only with force on other axes, or to one side: add a thruster or turn one"
        elif limit > weak * (1 + SLACK):
            advice = f"expect at most {weak:.4g} {unit} in the weaker direction, or set {field} to that"
        else:
            continue
        found.append(Shortcoming(axis, limit, weak, advice))
    return found


def _alone(thrusters: Sequence[Thruster]) -> tuple[tuple[float, float], ...]:
    """`Attainable.alone`; without independent sway, surge and yaw are those with sway unconstrained."""
    surge, sway, yaw = attainable(thrusters).alone
    if min(sway) == 0:
        surge, _, yaw = attainable(thrusters, free=[1]).alone
    return surge, sway, yaw


def _edges(t: Thruster) -> Array:
    """Body forces along the edges of a thruster's attainable set: its segment, or half the sides of its polygon."""
    if t.kind != "azimuth":
        return t.column(math.radians(t.angle))[None]
    return np.array([t.column(math.atan2(*normal)) for normal in NORMALS * (1, -1)])
