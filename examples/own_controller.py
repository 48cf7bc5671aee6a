"""Your own controller: any object with `reset` and `step` drives a boat.

You will see a P controller on heading and speed, with gains set by hand, beside the PID that comes with the package
and is tuned from the boat's parameters: a line of errors each, and our own's lap in out/own_controller.png.
Takes 1 second.
"""

import math

import numpy as np

from anyhull import Sea, Vessel, rounded_rectangle, simulate
from anyhull.control import PID


class HeadingAndSpeed:
    """Points at where the reference will be in a second, at the speed that gets there in a second."""

    def reset(self):
        """Nothing is remembered from one step to the next."""

    def step(self, pose, velocity, window):
        """pose (x, y, psi), velocity (u, v, r), window (11, 6) -> surge, sway and yaw command, each in [-1, 1]."""
        dx, dy = window[10, :2] - pose[:2]
        turn = math.remainder(math.atan2(dy, dx) - pose[2], math.tau)
        surge = 0.8 * math.hypot(dx, dy) + 1.5 * (math.hypot(dx, dy) - velocity[0])
        yaw = 0.5 * turn - 0.3 * velocity[2]
        return np.clip([surge, 0.0, yaw], -1, 1)


boat = Vessel.load("platform-a")
for controller in (PID(boat), HeadingAndSpeed()):
    log = simulate(controller, boat, rounded_rectangle(), Sea.field())
    metrics = log.metrics()
    print(f"{type(controller).__name__}: {metrics.position_cm:.1f} cm and {metrics.heading_deg:.1f}° off")

log.plot("out/own_controller.png")
print("picture: out/own_controller.png")
