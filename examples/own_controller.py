"""Your own controller: any object with `reset` and `step` steers a boat.

Prints the mean errors of a P controller on heading and speed, with gains set by hand, and of the package's PID, which
is tuned from the boat's parameters. The figure out/own_controller.png shows the lap of the P controller.
Takes 1 second.
"""

import math

import numpy as np

from anyhull import Sea, Vessel, rounded_rectangle, simulate, viz
from anyhull.control import PID


class HeadingAndSpeed:
    """Steers to the reference of one second ahead, at the speed that reaches it in one second."""

    def reset(self):
        """The controller has no state."""

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
    print(f"{type(controller).__name__}: mean error {metrics.position_cm:.1f} cm and {metrics.heading_deg:.1f}°")

viz.plot(log, "out/own_controller.png")
print("figure: out/own_controller.png")
