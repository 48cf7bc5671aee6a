"""The error of Runge-Kutta steps of 20 ms against an eighth-order integrator, over 10 s on the paper's platforms.

    python integration.py --json results/integration.json

Moderate commands of incommensurate frequencies reach about 0.6 m/s, 0.3 m/s and 0.5 rad/s, as in the tests. Full
commands are at the actuator limit on every axis at once. The largest difference of any state is in m, rad, m/s and
rad/s; that of the position in m.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from machine import describe, save
from scipy.integrate import solve_ivp

from anyhull.backend import Array
from anyhull.dynamics import PERIOD, SUBSTEP, derivative, step
from anyhull.paper import PLATFORMS
from anyhull.vessel import Vessel

SECONDS = 10.0
FASTEST = (0.6, 0.3, 0.5)
"""Largest velocities of the moderate commands, m/s, m/s and rad/s."""


def moderate(vessel: Vessel, k: int) -> Array:
    """Commands in period `k`."""
    wanted = np.minimum(np.array(FASTEST) / np.array(vessel.top_speeds), 1.0)
    return np.asarray(wanted * np.sin(np.array([0.7, 1.1, 0.9]) * k * PERIOD + np.array([1.0, 0.3, 0.0])))


def full(vessel: Vessel, k: int) -> Array:
    """The limit on every axis."""
    return np.ones(3)


def differences(vessel: Vessel, command: Any) -> Array:
    """Differences of the states after each control period, (periods, 6)."""
    ours, truth = (0.0,) * 6, np.zeros(6)
    found = []
    for k in range(round(SECONDS / PERIOD)):
        action = command(vessel, k)
        ours = step(ours, [action] * round(PERIOD / SUBSTEP), vessel.normalized)

        def rate(_: float, state: Array, action: Array = action) -> Any:
            return derivative(tuple(state), action, vessel.normalized)

        truth = solve_ivp(rate, (0, PERIOD), truth, method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
        found.append(np.array(ours) - truth)
    return np.array(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results: dict[str, Any] = {}
    for name, command in (("moderate", moderate), ("full", full)):
        for platform in PLATFORMS:
            vessel = Vessel.load(platform)
            found = differences(vessel, command)
            position = float(np.hypot(found[:, 0], found[:, 1]).max())
            results.setdefault(name, {})[platform] = {"state": float(np.abs(found).max()), "position_m": position}
            print(f"{name:9s} {platform:11s} {np.abs(found).max():.1e}, position {position:.1e} m")
    save(options.json, {"machine": describe("numpy", "scipy"), **results})


if __name__ == "__main__":
    main()
