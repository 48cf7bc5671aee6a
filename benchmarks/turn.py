"""What the paper's reward pays for heading: in steady motion, and to controllers over a lap.

    python turn.py

A boat that stays on the path at constant speed may still point beside it: it then moves sideways through the water,
whose resistance does some of the sway actuator's work, and the reward has a price on effort. For each platform, on the
rectangle's corners (0.6 m/s, 2 m) and on its sides: the heading error at which the reward is largest, what it gains
over pointing along the path, and by how much the reward falls 2 degrees from that optimum. Then what it pays a step,
from two seconds after the start of a lap on, to the MPC and to the shipped policies that the paper's recipe made.
"""

from __future__ import annotations

import numpy as np

from anyhull import Pilot, rounded_rectangle, simulate
from anyhull.control import MPC
from anyhull.controller import Controller
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


def paid(controller: Controller, vessel: Vessel) -> tuple[float, float]:
    """The mean reward of a step on the rectangle, and the mean heading error in degrees."""
    log = simulate(controller, vessel, rounded_rectangle())
    before = np.vstack([np.zeros(3), log.command[:-1]])
    # A command is rewarded by the state that it leads to.
    rows = zip(log.state[21:], log.reference[21:], log.command[20:-1], before[20:-1], strict=True)
    steps = [float(sum(terms(*row, 1.0, Weights()).values())) for row in rows]
    return float(np.mean(steps)), log.metrics().heading_deg


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
    print()
    for name in PLATFORMS:
        vessel = Vessel.load(name)
        for who, controller in {
            "mpc": MPC(vessel),
            "ppo-specific": Pilot.load(f"ppo-specific-{name}"),
            "teacher": Pilot.load("teacher", vessel),
            "ideal": Pilot.load("ideal"),
        }.items():
            reward_of, heading = paid(controller, vessel)
            print(f"{name:12s} {who:14s} {reward_of:8.3f} a step, heading {heading:.2f}°")


if __name__ == "__main__":
    main()
