"""A first run: Roboat 1 drives the rectangle through current, wind and delay, once by MPC and once by PID.

You will see one line of errors for each controller, and the MPC's lap as a picture in out/first_run.png.
Takes some 4 seconds.
"""

from anyhull import Sea, Vessel, rounded_rectangle, simulate
from anyhull.control import MPC, PID

boat = Vessel.load("roboat-1")
path = rounded_rectangle(length=10, width=6, radius=2, speed=0.6)

logs = {}
for controller in (MPC(boat, tuning="paper"), PID(boat)):
    log = simulate(controller, boat, path, Sea.field(), seed=1)
    metrics = log.metrics()
    name = type(controller).__name__
    print(f"{name}: {metrics.position_cm:.2f} cm, {metrics.heading_deg:.2f}° from the reference on average")
    logs[name] = log

logs["MPC"].plot("out/first_run.png")
print("picture: out/first_run.png")
