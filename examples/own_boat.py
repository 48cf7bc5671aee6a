"""Your own boat: a file with its mass, drag and limits, and what it can do.

Prints whether the boat lies inside the envelope of the default policy, why it cannot round the buoys at 1.2 m/s, and
its errors at 0.6 m/s, with a stop at the jetty. The figure is out/own_boat.png. Takes 1 second.
"""

from pathlib import Path

from anyhull import Pilot, Sea, Vessel, simulate, through, viz
from anyhull.control import PID

# Inertia from the scales, drag from a towing test, limits from a spring balance.
BOAT = """
name = "My catamaran"
length = 1.2      # m
beam = 0.8        # m
m = 18.0          # kg
X_udot = -2.0     # kg, added mass in surge
Y_vdot = -11.0    # kg, and in sway
I_comb = 2.6      # kg m^2, with added inertia
X_u = 5.0         # kg/s
X_uu = 12.0       # kg/m
Y_v = 20.0        # kg/s
Y_vv = 60.0       # kg/m
N_r = 2.0         # kg m^2/s
N_rr = 1.0        # kg m^2
Fx = 20.0         # N
Fy = 14.0         # N
Mz = 6.0          # N m
"""

BUOYS = [(0, 0), (4, 0), (8, 2), (10, 6), (6, 8), (2, 6), (0, 6)]  # m, the last one at the jetty

Path("out").mkdir(exist_ok=True)
Path("out/my-catamaran.toml").write_text(BOAT)
boat = Vessel.load("out/my-catamaran.toml")

print(f"{boat.name}: at most {boat.top_speeds[0]:.2f} m/s ahead and {boat.top_speeds[1]:.2f} m/s sideways")
outside = boat.outside(Pilot.load("field").envelope)
print("inside the envelope of the policy" if not outside else "outside the envelope of the policy:")
for entry in outside:
    print(f"  {entry.component} = {entry.value:.3g}: {entry.advice}")


def tour(speed):
    """Round the buoys; a final speed of zero is a stop."""
    return through(BUOYS, speed=[speed] * (len(BUOYS) - 1) + [0])


for reason in tour(1.2).infeasible(boat):
    print(f"infeasible at 1.2 m/s: {reason}")

path = tour(0.6)
assert not path.infeasible(boat)
# Five seconds of station keeping follow the tour.
log = simulate(PID(boat), boat, path, Sea.field(), duration=path.duration + 5)
print(f"at 0.6 m/s: {log.metrics().position_cm:.1f} cm on average, {100 * log.position_error[-1]:.1f} cm at the jetty")
viz.plot(log, "out/own_boat.png")
print("figure: out/own_boat.png")
