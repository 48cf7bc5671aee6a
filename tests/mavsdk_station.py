"""MAVSDK as the ground station of the double, in a process of its own: its library has threads that outlive a test."""

import sys
import threading
import time

from mavsdk import ComponentType, Configuration, Mavsdk
from mavsdk.plugins.action import Action
from mavsdk.plugins.telemetry import Telemetry

from anyhull.onboard.links.mavlink.config import Endpoint, MAVLinkConfig
from anyhull.onboard.links.mavlink.transports import open_far_end
from anyhull.onboard.messages import Odometry
from anyhull.twin.ardupilot import ArduPilot

address = sys.argv[1]
double = ArduPilot(MAVLinkConfig(), [open_far_end(Endpoint.read(f"udp:{address}"))])
double.rover.transmitter = {}
stop, began = threading.Event(), time.monotonic()


def serve():
    number = 0
    while not stop.is_set():
        double.receive(0.01)
        number += 1
        double.send(Odometry(1, number, time.monotonic() - began, (3.0, 4.0, 0.0), (0.1, 0.0, 0.0)))


running = threading.Thread(target=serve)
running.start()
try:
    station = Mavsdk(Configuration.create_with_component_type(ComponentType.GROUND_STATION))
    station.add_any_connection(f"udpin://{address}")
    system = station.first_autopilot(10.0)
    action, telemetry = Action(system), Telemetry(system)
    action.arm()
    telemetry.set_rate_position_velocity_ned(10.0)
    ends = time.monotonic() + 5
    while time.monotonic() < ends and not (
        telemetry.armed() and telemetry.position_velocity_ned().position.north_m > 0
    ):
        time.sleep(0.05)  # it knows of both by messages alone
    position = telemetry.position_velocity_ned().position
    print("position", position.north_m, position.east_m)
    print("armed", double.rover.armed, telemetry.armed())
    action.hold()
    print("mode", double.rover.mode)
finally:
    stop.set()
    running.join()
