"""The heading that the paper's reward itself prefers in a steady turn: no learner is asked.

    python turn.py

A boat that stays on the path at constant speed may still point beside it: it then moves sideways through the water,
whose resistance does some of the sway actuator's work, and the reward has a price on effort. For each platform, on the
rectangle's corners (0.6 m/s, 2 m) and on its sides: the heading error at which the reward is largest, what it gains
over pointing along the path, and by how much the reward falls 2 degrees from that optimum.
"""

from __future__ import annotations

import numpy as np

from anyhull.dynamics import balance
from anyhull.learn.reward import Weights, terms
from anyhull.vessel import PLATFORMS, Vessel

SPEED, RADIUS = 0.6, 2.0
ANGLES = np.radians(np.linspace(-15.0, 15.0, 601))


def reward(vessel: Vessel, error: float, rate: float) -> float:
    """Of a steady motion along the path, heading `error` to its right, under the command that keeps it up."""
    velocity = (SPEED * np.cos(error), SPEED * np.sin(error), rate)
    command = np.array(balance(velocity, (0.0, 0.0, 0.0), vessel.normalized))
    if np.abs(command).max() > 1:
        return -np.inf
    state, reference = np.array([0.0, 0.0, -error, *velocity]), np.array([0.0, 0.0, 0.0, SPEED, 0.0, rate])
    return float(sum(terms(state, reference, command, command, 1.0, Weights()).values()))


def main() -> None:
    print(f"{'':12s} {'':8s} {'optimum, °':>10s} {'gain':>8s} {'2° off':>8s}")
    for name in PLATFORMS:
        vessel = Vessel.load(name)
        for where, rate in (("corner", SPEED / RADIUS), ("side", 0.0)):
            found = np.array([reward(vessel, angle, rate) for angle in ANGLES])
            best = int(found.argmax())
            near = np.interp(ANGLES[best] + np.radians([-2.0, 2.0]), ANGLES, found)
            gain = found[best] - reward(vessel, 0.0, rate)
            print(
                f"{name:12s} {where:8s} {np.degrees(ANGLES[best]):10.2f} {gain:8.4f} {found[best] - near.mean():8.4f}"
            )


if __name__ == "__main__":
    main()
