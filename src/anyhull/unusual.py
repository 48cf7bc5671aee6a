"""Odd values in a boat's file: signs, units and orders of magnitude, compared with those of published vessels.

A value that no simulation can follow is an error of `Vessel`; an odd one is a warning here: the field, its value, and
what is usual.
"""

from __future__ import annotations

import math

from anyhull.thrusters import Thruster
from anyhull.vessel import Vessel

GRAVITY = 9.81
"""m/s²."""

MASS = (0.4, 80.0)
"""Mass by length³, kg/m³; the catalogue has 1.8 (inflatable catamaran) to 29."""

THRUST = (0.001, 3.0)
"""Thrust by weight; the catalogue has 0.006 to 2.8."""

LEVER = (0.01, 1.2)
"""Largest moment by largest force and length; the catalogue has 0.02 to 0.75."""

GYRATION = (0.1, 0.8)
"""Radius of gyration in yaw, with added inertia, by length; the catalogue has 0.16 to 0.71."""

TOP_SPEED = (0.05, 25.0)
"""Top speed, m/s; the catalogue has 0.5 to 21."""

TOP_RATE = 60.0
"""Yaw rate at the largest moment, rad/s; the catalogue has at most 34."""

HULL = 0.6
"""Farthest place of a thruster from the centre of gravity, in lengths or beams."""

DENSITY = 10.0
"""Mass by length³ where the length is not known, kg/m³: the median of the catalogue."""


def warnings(vessel: Vessel) -> list[str]:
    """The odd values of a boat's file, one line each: `FIELD = VALUE: what is usual`."""
    found = [*_size(vessel), *_thrust(vessel)]
    for i, thruster in enumerate(vessel.thrusters):
        found += [f"thrusters[{i}].{line}" for line in _thruster(thruster, vessel)]
    return found + (_hydrodynamics(vessel) if vessel.hydrodynamics else [])


def _size(vessel: Vessel) -> list[str]:
    found, length = [], vessel.length
    if length and vessel.beam and not 1 <= length / vessel.beam <= 12:
        found.append(f"beam = {vessel.beam:g}: usual are 1/12 to 1 of the length, {length:g} m")
    if length and vessel.m and not MASS[0] <= vessel.m / length**3 <= MASS[1]:
        low, high = (share * length**3 for share in MASS)
        found.append(f"m = {vessel.m:g}: boats of {length:g} m have {low:.3g} to {high:.3g} kg; check kg and m")
    return found


def _thrust(vessel: Vessel) -> list[str]:
    found, length = [], vessel.length
    least = vessel.m or (MASS[0] * length**3 if length else None)
    most = vessel.m or (MASS[1] * length**3 if length else None)
    if least and most and not THRUST[0] * GRAVITY * least <= vessel.Fx <= THRUST[1] * GRAVITY * most:
        low, high = THRUST[0] * GRAVITY * least, THRUST[1] * GRAVITY * most
        found.append(f"Fx = {vessel.Fx:g}: usual are {low:.3g} to {high:.3g} N for a boat of this size; check N and m")
    force = max(vessel.Fx, vessel.Fy)
    if length and not LEVER[0] <= vessel.Mz / (force * length) <= LEVER[1]:
        low, high = (share * force * length for share in LEVER)
        found.append(f"Mz = {vessel.Mz:g}: usual are {low:.3g} to {high:.3g} N·m for this force and length")
    return found


def _thruster(t: Thruster, vessel: Vessel) -> list[str]:
    found = []
    for field, size, name in (("x", vessel.length, "length"), ("y", vessel.beam, "beam")):
        if size and abs(getattr(t, field)) > HULL * size:
            place = f"{field} = {getattr(t, field):g}"
            found.append(f"{place}: outside the hull: usual is up to half of the {name}, {size:g} m; check m and mm")
    parts = 12 * t.angle / math.pi
    if 0 < abs(t.angle) <= 2 * math.pi and round(parts) and abs(parts - round(parts)) < 0.02:
        found.append(f"angle = {t.angle:g}: in degrees; as radians it would be {math.degrees(t.angle):.0f}°")
    if abs(t.angle) > 360:
        found.append(f"angle = {t.angle:g}: usual are -180 to 360 degrees")
    if t.reverse is not None and t.reverse > t.forward and t.kind != "tunnel":
        found.append(f"reverse = {t.reverse:g}: usual is 0.2 to 1 of forward, {t.forward:g} N; check its direction")
    if t.lag > 10:
        found.append(f"lag = {t.lag:g}: usual are 0.05 to 1 s; check s and ms")
    if t.dead_band > 0.5:
        found.append(f"dead_band = {t.dead_band:g}: usual are 0 to 0.4 of the command")
    return found


def _hydrodynamics(vessel: Vessel) -> list[str]:
    found, hull = [], vessel.hull
    for field in ("X_udot", "Y_vdot"):
        if getattr(hull, field) > 0:
            found.append(f"{field} = {getattr(hull, field):g}: usual is a negative value, minus the added mass in kg")
    length = vessel.length or (vessel.mass / DENSITY) ** (1 / 3)
    low, high = (vessel.mass * (share * length) ** 2 for share in GYRATION)
    if not low <= hull.I_comb <= high:
        found.append(f"I_comb = {hull.I_comb:g}: usual are {low:.3g} to {high:.3g} kg·m² for this mass and length")
    surge, sway, yaw = vessel.top_speeds
    rows = (("X_u", hull.X_u, "Fx", vessel.Fx, surge), ("Y_v", hull.Y_v, "Fy", vessel.Fy, sway))
    for field, value, name, force, speed in rows:
        if force and not TOP_SPEED[0] <= speed <= TOP_SPEED[1]:
            found.append(
                f"{field} = {value:g}: gives a top speed of {speed:.3g} m/s at {name} = {force:g} N; "
                f"usual are {TOP_SPEED[0]:g} to {TOP_SPEED[1]:g}"
            )
    if yaw > TOP_RATE:
        found.append(
            f"N_r = {hull.N_r:g}: gives {yaw:.3g} rad/s at Mz = {vessel.Mz:g} N·m; usual is up to {TOP_RATE:g}"
        )
    return [f"hydrodynamics.{line}" for line in found]
