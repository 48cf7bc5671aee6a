"""Plausible hulls: mass and hydrodynamics that a boat of known length and thrust may have, drawn from estimates.

Symbols: length L, beam B, draught T, displaced volume V = m / rho, block coefficient C_B, n hulls of breadth b each.
Every estimate is a median and a factor: log-normal, with 90 % between median / factor and median * factor. The factors
are chosen so that the 5 to 95 % ranges contain nine tenths of the components of the 20 published vessels whose length
is known (tests/test_plausible.py). They are far wider than the error of towing-tank methods, since published models
are identified at one speed, with one load, and often leave terms out.

- Geometry: one hull or two; B, b, T and C_B by ratios common in small craft (Larsson and Eliasson, Principles of Yacht
  Design); a known mass gives T = m / (rho n C_B L b) instead.
- Surge added mass 2.7 rho V^(5/3) / L² (Söding 1982, in Fossen 2011).
- Sway added mass by strip theory with the semi-ellipse at zero frequency, pi/2 rho T² per length (Newman 1977). Blunt
  hulls have about as much in surge as in sway: nine of the 23 published sets have m22 <= m11.
- Yaw: radius of gyration 0.29 L (0.25 L for ships, Fossen 2011; more where thrusters and batteries are at the ends) and
  added inertia by strip theory, Y_vdot L² / 12, less at tapered ends.
- Surge drag: resistance at top speed U is the full thrust, F_x = rho/2 S C_T U² with wetted surface
  S = 2.6 sqrt(n V L) (Taylor). C_T on S: 0.004 for friction alone (ITTC 1957), 0.01 to 0.03 with wave resistance, 0.1
  with bluff ends, pods and thruster legs. Part of F_x is linear: thrust falls with speed.
- Sway drag: cross-flow rho/2 C_D n T L |v| v with C_D 0.4 to 1.8 (Hoerner 1965, Faltinsen 1990), and a linear part with
  the time constant sqrt(m L / F_x), the time in which full thrust moves the boat by half its length: linear damping
  stands for drag at the speeds that a boat reaches.
- Yaw drag: the same integrated along the hull, Y_v L² / 12 and rho/2 C_D n T L⁴ / 32.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from anyhull.errors import InputError
from anyhull.hydrodynamics import Hydrodynamics, Triple

WATER_DENSITY = 1000.0
"""Fresh water, kg/m³; sea water is 2.5 % more, less than any spread here."""

GRAVITY = 9.81
"""m/s²."""


class Estimate(NamedTuple):
    """A log-normal estimate; 90 % lie between median / factor and median * factor."""

    median: float
    factor: float

    def draw(self, z: float) -> float:
        """The value at a standard normal number."""
        value: float = self.median * self.factor ** (z / 1.6449)
        return value


TWO_HULLS = 0.5
"""Share of hulls with L/B below `ONE_HULL_ABOVE` that are catamarans; all others have one hull."""

ONE_HULL_ABOVE = 3.0
"""L/B above which a boat has one hull."""

BLUNT = 0.2
"""Share of blunt hulls, whose added mass in sway is about that in surge."""

LENGTH_BEAM = (Estimate(3.2, 1.8), Estimate(1.9, 1.4))
"""L/B with one hull and with two."""

HULL_BREADTH = Estimate(0.22, 1.4)
"""Breadth of one hull of two, in beams."""

BLOCK = Estimate(0.55, 1.4)
"""Block coefficient C_B, at most 0.95."""

DRAUGHT = (Estimate(0.28, 2.3), Estimate(0.45, 2.3))
"""Draught in breadths of a hull, with one hull and with two."""

SURGE_ADDED_MASS = Estimate(1.0, 4.0)
"""Surge added mass by 2.7 rho V^(5/3) / L²."""

SWAY_ADDED_MASS = Estimate(1.0, 2.5)
"""Sway added mass by strip theory."""

BLUNT_ADDED_MASS = Estimate(1.0, 3.0)
"""Sway by surge added mass of a blunt hull."""

GYRATION = Estimate(0.29, 1.35)
"""Radius of gyration in yaw, without water, in lengths."""

YAW_ADDED_INERTIA = Estimate(0.07, 1.6)
"""Added inertia in yaw by sway added mass times L²; 1/12 with parallel sides."""

RESISTANCE = Estimate(0.026, 4.5)
"""Coefficient C_T of the total resistance at top speed, on the wetted surface."""

SWAY_DAMPING = Estimate(0.35, 6.0)
"""Linear sway damping rate by sqrt(F_x / (m L))."""

CROSS_FLOW = Estimate(0.8, 2.2)
"""Cross-flow drag coefficient C_D."""

YAW_DAMPING = Estimate(0.8, 6.0)
"""Linear yaw damping by Y_v L² / 12."""

YAW_DRAG = Estimate(1.0, 4.0)
"""Quadratic yaw damping by rho/2 C_D n T L⁴ / 32."""

LEAST_DRAUGHT, MOST_DRAUGHT = 0.02, 1.5
"""Draught in breadths: a mass that asks for more or less is not afloat, and gets no hull beyond them."""

MOST_SURGE_ADDED, MOST_SWAY_ADDED = 2.0, 3.0
"""Largest added masses, in masses."""


STREAM = 7
"""Of the random numbers of a seed, so that hulls are independent of what else a run draws from it."""


class Hull(NamedTuple):
    """What a plausible hull adds to a boat's file."""

    m: float
    """Mass as it floats, kg."""
    hydrodynamics: Hydrodynamics


def draw(
    seed: int, length: float, beam: float | None, mass: float | None, limits: Triple, least_beam: float = 0.0
) -> Hull:
    """The plausible hull of that number for a boat's length, beam and mass where known, and limits (N, N, N·m).

    All random numbers are drawn for every boat, so that one more fact about it changes only what follows from it.
    `least_beam` (m) is what its thrusters span.
    """
    if not seed >= 0:
        raise InputError(f"seed = {seed!r}: must be zero or more")
    rng = np.random.default_rng([seed, STREAM])
    two, blunt, linear = rng.random(3).tolist()
    z = rng.standard_normal(14).tolist()

    catamaran = int(two < TWO_HULLS and (beam is None or length < ONE_HULL_ABOVE * beam))
    n = 1 + catamaran
    beam = beam or max(length / LENGTH_BEAM[catamaran].draw(z[0]), least_beam)
    breadth = beam * min(HULL_BREADTH.draw(z[1]), 0.45) if catamaran else beam
    block = min(BLOCK.draw(z[2]), 0.95)
    draught = breadth * DRAUGHT[catamaran].draw(z[3])
    if mass is not None:
        draught = mass / (WATER_DENSITY * n * block * length * breadth)
    draught = min(max(draught, LEAST_DRAUGHT * breadth), MOST_DRAUGHT * breadth)
    m = WATER_DENSITY * n * block * length * breadth * draught if mass is None else mass
    volume = m / WATER_DENSITY

    surge = min(2.7 * (volume / length**3) ** (2 / 3) * SURGE_ADDED_MASS.draw(z[4]), MOST_SURGE_ADDED)
    sway = math.pi / 2 * draught / (breadth * block) * SWAY_ADDED_MASS.draw(z[5])
    if blunt < BLUNT:
        sway = surge * BLUNT_ADDED_MASS.draw(z[6])
    sway = min(sway, MOST_SWAY_ADDED)
    inertia = m * length**2 * (GYRATION.draw(z[7]) ** 2 + sway * YAW_ADDED_INERTIA.draw(z[8]))

    wetted = 2.6 * math.sqrt(n * volume * length)
    top_speed = math.sqrt(limits[0] / (WATER_DENSITY / 2 * wetted * RESISTANCE.draw(z[9])))
    sway_damping = m * (1 + sway) * math.sqrt(limits[0] / (m * length)) * SWAY_DAMPING.draw(z[10])
    cross_flow = WATER_DENSITY / 2 * CROSS_FLOW.draw(z[11]) * n * draught
    return Hull(
        m,
        Hydrodynamics(
            X_udot=-m * surge,
            Y_vdot=-m * sway,
            I_comb=inertia,
            X_u=linear * limits[0] / top_speed,
            Y_v=sway_damping,
            N_r=sway_damping * length**2 / 12 * YAW_DAMPING.draw(z[12]),
            X_uu=(1 - linear) * limits[0] / top_speed**2,
            Y_vv=cross_flow * length,
            N_rr=cross_flow * length**4 / 32 * YAW_DRAG.draw(z[13]),
        ),
    )
