"""The messages that an ArduPilot-like vehicle sends on one connection, each at the interval that was asked for."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from anyhull.backend import to_inertial
from anyhull.onboard.links.mavlink.telemetry import ABSOLUTE, ATTITUDE, CONSTANT, RELATIVE, VELOCITY, Place
from anyhull.onboard.links.mavlink.wire import dialect
from anyhull.twin.ardupilot_rover import Rover

SHORTEST = 0.025
"""Shortest interval, s: ArduPilot keeps a fifth of its main loop's rate free."""

GROUPS = {
    2: ("SYS_STATUS",),
    3: ("RC_CHANNELS", "SERVO_OUTPUT_RAW"),
    6: ("LOCAL_POSITION_NED", "GLOBAL_POSITION_INT"),
    10: ("ATTITUDE",),
    12: ("EKF_STATUS_REPORT",),
}
"""Messages of the groups of REQUEST_DATA_STREAM."""


@dataclass
class State:
    """What the autopilot knows of itself, north-east-down and forward-starboard."""

    system: int
    origin: Place
    time: float = 0.0
    """Since boot, s."""
    pose: tuple[float, float, float] | None = None
    pose_time: float = 0.0
    """When it was there, s."""
    velocity: tuple[float, float, float] = (0.0, 0.0, 0.0)
    tilt: tuple[float, float] = (0.0, 0.0)
    charge: float | None = None
    health: Literal["ok", "dead reckoning", "lost"] = "lost"


class Streams:
    """What one connection gets, and when."""

    def __init__(self, send: Callable[[Any], None]) -> None:
        self.send = send
        self._intervals = {"HEARTBEAT": 1.0}
        self._due: dict[str, float] = {}

    def set_interval(self, number: int, microseconds: float) -> bool:
        """SET_MESSAGE_INTERVAL: 0 is the default, -1 is none; whether the message is known."""
        name = next((name for name in BUILDERS if getattr(dialect, f"MAVLINK_MSG_ID_{name}") == number), None)
        if name is None:
            return False
        if microseconds < 0:
            self._intervals.pop(name, None)
        else:
            self._intervals[name] = max(microseconds / 1e6, SHORTEST) if microseconds else 1.0
        return True

    def request_group(self, group: int, rate: int) -> None:
        """REQUEST_DATA_STREAM: all messages of a group."""
        for name in GROUPS.get(group, ()):
            if rate > 0:
                self._intervals[name] = max(1 / rate, SHORTEST)
            else:
                self._intervals.pop(name, None)

    def once(self, number: int, rover: Rover, state: State) -> bool:
        """Send a message now; whether it is known."""
        for name, build in BUILDERS.items():
            if getattr(dialect, f"MAVLINK_MSG_ID_{name}") == number:
                if (message := build(rover, state)) is not None:
                    self.send(message)
                return True
        return False

    def step(self, now: float, rover: Rover, state: State) -> None:
        """Send what is due."""
        for name, interval in self._intervals.items():
            due = self._due.get(name, now)
            if now < due - 1e-9:
                continue
            self._due[name] = max(due + interval, now)
            if (message := BUILDERS[name](rover, state)) is not None:
                self.send(message)

    def parameter(self, name: str, parameters: dict[str, float]) -> None:
        """Send a parameter, if there is one of that name."""
        if name in parameters:
            index, real = list(parameters).index(name), dialect.MAV_PARAM_TYPE_REAL32
            self.send(
                dialect.MAVLink_param_value_message(name.encode(), parameters[name], real, len(parameters), index)
            )


def _milliseconds(time: float) -> int:
    return round(time * 1000) % 2**32


def _degrees(place: Place) -> tuple[int, int]:
    return round(place.latitude * 1e7), round(place.longitude * 1e7)


def _heartbeat(rover: Rover, state: State) -> Any:
    flags = dialect.MAV_MODE_FLAG_CUSTOM_MODE_ENABLED | dialect.MAV_MODE_FLAG_MANUAL_INPUT_ENABLED
    flags |= dialect.MAV_MODE_FLAG_SAFETY_ARMED if rover.armed else 0
    condition = dialect.MAV_STATE_CRITICAL if rover.failsafe else dialect.MAV_STATE_ACTIVE
    kind, autopilot = dialect.MAV_TYPE_SURFACE_BOAT, dialect.MAV_AUTOPILOT_ARDUPILOTMEGA
    return dialect.MAVLink_heartbeat_message(kind, autopilot, flags, rover.mode, condition, 3)


def _attitude(rover: Rover, state: State) -> Any:
    if state.pose is None:
        return None
    yaw = math.remainder(state.pose[2], 2 * math.pi)
    return dialect.MAVLink_attitude_message(
        _milliseconds(state.pose_time), *state.tilt, yaw, 0.0, 0.0, state.velocity[2]
    )


def _local_position(rover: Rover, state: State) -> Any:
    if state.pose is None or state.health == "lost":
        return None
    north, east, psi = state.pose
    ground = to_inertial(state.velocity[0], state.velocity[1], psi)
    return dialect.MAVLink_local_position_ned_message(_milliseconds(state.pose_time), north, east, 0.0, *ground, 0.0)


def _global_position(rover: Rover, state: State) -> Any:
    if state.pose is None:
        return None
    north, east, psi = state.pose
    ground = [round(100 * float(v)) for v in to_inertial(state.velocity[0], state.velocity[1], psi)]
    place, compass = state.origin.offset(north, east), round(math.degrees(psi) % 360 * 100) % 36000
    return dialect.MAVLink_global_position_int_message(
        _milliseconds(state.pose_time), *_degrees(place), 0, 0, *ground, 0, compass
    )


def _odometry(rover: Rover, state: State) -> Any:
    if state.pose is None or state.health == "lost":
        return None
    north, east, psi = state.pose
    u, v, r = state.velocity
    level = [math.cos(psi / 2), 0.0, 0.0, math.sin(psi / 2)]
    frames, unknown = (dialect.MAV_FRAME_LOCAL_NED, dialect.MAV_FRAME_BODY_FRD), [math.nan] * 21
    return dialect.MAVLink_odometry_message(
        round(state.pose_time * 1e6), *frames, north, east, 0.0, level, u, v, 0.0, 0.0, 0.0, r, unknown, unknown
    )


def _rc_channels(rover: Rover, state: State) -> Any:
    pulses = [*rover.inputs.values(), 0, 0]
    return dialect.MAVLink_rc_channels_message(_milliseconds(state.time), 16, *pulses, 255)


def _servo_output(rover: Rover, state: State) -> Any:
    return dialect.MAVLink_servo_output_raw_message(
        round(state.time * 1e6) % 2**32, 0, *list(rover.servos.values())[:8], *list(rover.servos.values())[8:]
    )


def _system_status(rover: Rover, state: State) -> Any:
    charge = -1 if state.charge is None else round(100 * state.charge)
    return dialect.MAVLink_sys_status_message(0, 0, 0, 0, 12000, -1, charge, 0, 0, 0, 0, 0, 0)


def _filter_status(rover: Rover, state: State) -> Any:
    flags = {"ok": ATTITUDE | VELOCITY | RELATIVE | ABSOLUTE, "dead reckoning": ATTITUDE | VELOCITY | RELATIVE}
    ratio = 0.1 if state.health == "ok" else 2.0
    given = flags.get(state.health, ATTITUDE | CONSTANT)
    return dialect.MAVLink_ekf_status_report_message(given, ratio, ratio, 0.1, 0.1, 0.0)


def _origin(rover: Rover, state: State) -> Any:
    return dialect.MAVLink_gps_global_origin_message(*_degrees(state.origin), 0)


def _home(rover: Rover, state: State) -> Any:
    # ArduPilot leaves all but the place at zero.
    level = [1.0, 0.0, 0.0, 0.0]
    return dialect.MAVLink_home_position_message(*_degrees(state.origin), 0, 0.0, 0.0, 0.0, level, 0.0, 0.0, 0.0)


def _version(rover: Rover, state: State) -> Any:
    can = dialect.MAV_PROTOCOL_CAPABILITY_MAVLINK2 | dialect.MAV_PROTOCOL_CAPABILITY_PARAM_FLOAT
    none = [0] * 8
    return dialect.MAVLink_autopilot_version_message(can, 0, 0, 0, 0, none, none, none, 0, 0, state.system)


BUILDERS: dict[str, Callable[[Rover, State], Any]] = {
    "HEARTBEAT": _heartbeat,
    "ATTITUDE": _attitude,
    "LOCAL_POSITION_NED": _local_position,
    "GLOBAL_POSITION_INT": _global_position,
    "ODOMETRY": _odometry,
    "RC_CHANNELS": _rc_channels,
    "SERVO_OUTPUT_RAW": _servo_output,
    "SYS_STATUS": _system_status,
    "EKF_STATUS_REPORT": _filter_status,
    "GPS_GLOBAL_ORIGIN": _origin,
    "HOME_POSITION": _home,
    "AUTOPILOT_VERSION": _version,
}
"""The messages it has, by name."""
