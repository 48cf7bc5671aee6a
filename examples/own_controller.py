"""Your own controller: any object with `reset` and `step` drives a boat.

You will see a P controller on heading and speed, which knows nothing of the boat and never looks sideways, beside PID,
which corrects its place as well: one line of errors each, and out/own_controller.png. Takes some 2 seconds.
"""

import math

import numpy as np

from anyhull import Sea, Vessel, rounded_rectangle, simulate
from anyhull.control import PID
from anyhull.plots import fleet


class HeadingAndSpeed:
    """Aims at where the reference will be in a second, and drives faster the farther that is."""

    def reset(self):
        """Nothing is remembered from one step to the next."""

    def step(self, pose, velocity, window):
        """pose (x, y, psi), velocity (u, v, r), window (11, 6): the command for surge, sway and yaw, each in [-1, 1]."""
        ahead, aside = window[-1, :2] - pose[:2]
        turn = math.remainder(math.atan2(aside, ahead) - pose[2], math.tau)
        surge = 1.5 * (math.hypot(ahead, aside) - velocity[0])
        yaw = 1.5 * turn - 0.5 * velocity[2]
        return np.clip([surge, 0.0, yaw], -1, 1)


boat = Vessel.load("platform-b")
logs = {}
for controller in (HeadingAndSpeed(), PID(boat)):
    name = type(controller).__name__
    logs[name] = simulate(controller, boat, rounded_rectangle(), Sea.field())
    metrics = logs[name].metrics()
    print(f"{name}: {metrics.position_cm:.1f} cm, {metrics.heading_deg:.1f}°")

