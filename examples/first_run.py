"""A first run: Platform A drives the rectangle by MPC and by PID, in still water and in the field.

You will see one line of errors for each run, and the last lap as a picture in out/first_run.png. The MPC knows the
boat's equations exactly and nothing of the sea: it is the better one until the command comes late. Takes 3 seconds.
"""

from anyhull import Sea, Vessel, rounded_rectangle, simulate
from anyhull.control import MPC, PID

boat = Vessel.load("platform-a")
path = rounded_rectangle(length=10, width=6, radius=2, speed=0.6)

for sea in ("ideal", "field"):
    for controller in (MPC(boat), PID(boat)):
        log = simulate(controller, boat, path, Sea.preset(sea))
        name, metrics = type(controller).__name__, log.metrics()
        print(f"{name}, {sea} sea: {metrics.position_cm:.2f} cm and {metrics.heading_deg:.2f}° off")

log.plot("out/first_run.png")
print("picture: out/first_run.png")
