"""A first run: MPC and PID steer Platform A along the rectangle, in ideal conditions and in the field sea.

Prints the mean errors of each run, and draws the last lap in out/first_run.png. The MPC has a perfect model of the boat
and none of the sea: it has the smaller errors without delay, and the larger ones with it. Takes 3 seconds.
"""

from anyhull import Sea, Vessel, rounded_rectangle, simulate, viz
from anyhull.control import MPC, PID

boat = Vessel.load("platform-a")
path = rounded_rectangle(length=10, width=6, radius=2, speed=0.6)

for sea in ("ideal", "field"):
    for controller in (MPC(boat), PID(boat)):
        log = simulate(controller, boat, path, Sea.preset(sea))
        name, metrics = type(controller).__name__, log.metrics()
        print(f"{name}, {sea} sea: mean error {metrics.position_cm:.2f} cm and {metrics.heading_deg:.2f}°")

viz.plot(log, "out/first_run.png")
print("figure: out/first_run.png")
