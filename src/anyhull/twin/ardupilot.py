"""The twin as an ArduPilot-like vehicle: a boat's end of the link that speaks MAVLink as the autopilot does.

It is for trials of behaviour, not a replacement for ArduPilot's own simulation (SITL). `ardupilot_rover` lists where
its behaviour is taken from; the messages follow MAVLink's common and ardupilotmega dialects, and streams of messages
ArduPilot's dev page "Requesting Data From The Autopilot". A ground station may connect beside the pilot.
"""

from __future__ import annotations

import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from anyhull.dynamics import PERIOD
from anyhull.errors import InputError
from anyhull.frames import mirror_body, swap_pose
from anyhull.onboard.links.keys import load_key
from anyhull.onboard.links.link import Received
from anyhull.onboard.links.mavlink.channels import Calibration
from anyhull.onboard.links.mavlink.config import MAVLinkConfig
from anyhull.onboard.links.mavlink.heartbeat import MANUAL, MODES
from anyhull.onboard.links.mavlink.telemetry import Place
from anyhull.onboard.links.mavlink.transports import Datagrams, Transport, open_far_end
from anyhull.onboard.links.mavlink.wire import Wire, dialect
from anyhull.onboard.links.udp import Address
from anyhull.onboard.messages import Battery, Command, Message, Odometry, Tilt
from anyhull.twin.ardupilot_rover import ADVISED, LOOP, Rover
from anyhull.twin.ardupilot_streams import State, Streams

GROUND_STATION = 5
"""Distance of the ground stations' port from the pilot's."""

MAX_CATCH_UP = 25
"""Periods of the main loop made up for at once."""


class ArduPilot:
    """A rover's firmware between the twin and MAVLink."""

    def __init__(
        self,
        config: MAVLinkConfig,
        transports: Sequence[Transport],
        *,
        parameters: dict[str, float] | None = None,
        armed: bool = False,
        key: bytes | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`parameters` replace the firmware's defaults; `armed` starts it armed, in MANUAL."""
        self.config, self._clock = config, clock
        self.rejected: Counter[str] = Counter()
        self.rover = Rover(parameters)
        self.rover.armed = armed
        self._state = State(config.system, Place(*config.twin_origin))
        source = config.system, dialect.MAV_COMP_ID_AUTOPILOT1
        self._wires = [Wire(t, source, lambda _: True, clock, self.rejected, key) for t in transports]
        self._streams = [Streams(wire.send) for wire in self._wires]
        self._next = clock()
        self._session: int | None = None
        self._seq = 0
        self._heard = (0.0, clock())
        self._outputs: tuple[float, ...] = (*self.rover.outputs, *self.rover.servos.values())
        self._command_due = -math.inf

    @property
    def address(self) -> str:
        """Where the pilot and ground stations reach it."""
        return " and ".join(wire.transport.address for wire in self._wires)

    @property
    def peer(self) -> str:
        """The pilot's end."""
        return self._wires[0].transport.peer

    def receive(self, timeout: float) -> list[Received]:
        """What the mixer has been given: a command for each change of it, and ten a second.

        The twin's board delays each command by a draw of its own and keeps their order. One for each period of the main
        loop would delay them all to the slowest of several draws.
        """
        for i, (wire, streams) in enumerate(zip(self._wires, self._streams, strict=True)):
            for message, arrival in wire.receive(timeout if i == 0 else 0.0):
                self._on_message(message, arrival, streams)
        commands, stepped, now = list[Received](), False, self._clock()
        self._state.time = self._heard[0] + now - self._heard[1]
        if now - self._next > MAX_CATCH_UP * LOOP:
            self._next = now
        while now >= self._next - 1e-9:
            self._next, stepped = self._next + LOOP, True
            self.rover.step(now)
            for severity, text in self.rover.texts:
                self._broadcast(dialect.MAVLink_statustext_message(severity, text.encode()[:50]))
            self.rover.texts.clear()
            outputs = (*self.rover.outputs, *self.rover.servos.values())
            if not self.rover.overridden and not any(outputs) and outputs == self._outputs:
                continue  # nobody steers: the twin's watchdog sees it
            if self._session is not None and (outputs != self._outputs or now >= self._command_due - 1e-9):
                self._outputs, self._command_due = outputs, now + PERIOD
                commands.append(Received(self._command(), now))
        for streams in self._streams if stepped and self._session is not None else ():
            streams.step(now, self.rover, self._state)
        return commands

    def send(self, message: Message) -> None:
        """Take a message of the boat as what the autopilot's filter and sensors have."""
        if self._session is not None and message.session != self._session:  # the board was powered on
            self.rover.power_on(self._clock())
            self._seq = 0
        self._session, self._heard = message.session, (message.time, self._clock())
        match message:
            case Odometry():
                pose, velocity = message.pose, message.velocity
                if self.config.axes == "enu":
                    pose, velocity = swap_pose(pose), mirror_body(velocity)
                self._state.pose, self._state.velocity, self._state.health = pose, velocity, message.health
                self._state.pose_time = message.time
            case Tilt(roll=roll, pitch=pitch):
                self._state.tilt = roll, pitch
            case Battery(charge=charge):
                self._state.charge = charge

    @property
    def situation(self) -> str:
        """Arming, mode and failsafe, for people."""
        rover = self.rover
        failsafe = ", failsafe" if rover.failsafe else ""
        return f"{'armed' if rover.armed else 'disarmed'}, {MODES.get(rover.mode, rover.mode)}{failsafe}"

    def switch_back(self) -> None:
        """Arm and switch to MANUAL, as an operator would."""
        self.rover.arm(True)
        self.rover.set_mode(MANUAL)

    def unready(self) -> str:
        """Nothing."""
        return ""

    def hint(self) -> str:
        """Nothing."""
        return ""

    def close(self) -> None:
        """End the connections."""
        for wire in self._wires:
            wire.close()

    def _command(self) -> Command:
        """What reaches the thrusters now."""
        self._seq += 1
        numbers = 0, self._seq - 1, self._state.time
        if self.config.command == "thrusters":
            thrusters = tuple(self._servo(number) for number in self.config.servos)
            return Command(*numbers, thrusters, (0.0,) * len(thrusters))
        shares = self.config.mixer_shares
        surge, sway, yaw = (
            max(-1.0, min(1.0, value / share)) if share > 0 else 0.0
            for value, share in zip(self.rover.outputs, shares, strict=True)
        )
        wrench = (surge, sway, yaw) if self.config.axes == "ned" else mirror_body((surge, sway, yaw))
        return Command(*numbers, (), (), wrench)

    def _servo(self, number: int) -> float:
        pulse = self.rover.servos[number]
        return Calibration.of(f"SERVO{number}", self.rover.parameters).value(pulse) if pulse else 0.0

    def _on_message(self, message: Any, now: float, streams: Streams) -> None:
        target = getattr(message, "target_system", 0)
        if target not in (0, self.config.system):
            self.rejected["for another system"] += 1
            return
        ground = self.rover.is_gcs(message.get_srcSystem())
        match message.get_type():
            case "HEARTBEAT" if ground:
                self.rover.gcs_seen(now)
            case "RC_CHANNELS_OVERRIDE" if ground:
                self.rover.gcs_seen(now)
                for channel in range(1, 17):
                    self.rover.override(channel, getattr(message, f"chan{channel}_raw"), now)
            case "RC_CHANNELS_OVERRIDE":
                self.rejected["override not of SYSID_MYGCS"] += 1
            case "SET_MODE":
                self.rover.set_mode(message.custom_mode)
            case "COMMAND_LONG" | "COMMAND_INT":
                self._on_command(message, streams)
            case "PARAM_REQUEST_READ":
                self._on_parameter_request(message, streams)
            case "PARAM_REQUEST_LIST":
                for name in self.rover.parameters:
                    streams.parameter(name, self.rover.parameters)
            case "PARAM_SET":
                name = _text(message.param_id)
                if name in self.rover.parameters and math.isfinite(message.param_value):
                    self.rover.parameters[name] = float(message.param_value)
                    streams.parameter(name, self.rover.parameters)
            case "REQUEST_DATA_STREAM":
                streams.request_group(message.req_stream_id, message.req_message_rate if message.start_stop else 0)

    def _on_command(self, message: Any, streams: Streams) -> None:
        values = [float(getattr(message, f"param{i}")) for i in range(1, 5)]
        if not all(map(math.isfinite, values[:2])):
            values[:2] = [value if math.isfinite(value) else 0.0 for value in values[:2]]
        accepted: bool | None = None
        match message.command:
            case dialect.MAV_CMD_COMPONENT_ARM_DISARM:
                accepted = self.rover.arm(values[0] == 1)
            case dialect.MAV_CMD_DO_SET_MODE:
                accepted = self.rover.set_mode(round(values[1]))
            case dialect.MAV_CMD_DO_SET_SERVO:
                accepted = self.rover.set_servo(round(values[0]), round(values[1]))
            case dialect.MAV_CMD_SET_MESSAGE_INTERVAL:
                accepted = streams.set_interval(round(values[0]), values[1])
            case dialect.MAV_CMD_REQUEST_MESSAGE:
                accepted = streams.once(round(values[0]), self.rover, self._state)
            case dialect.MAV_CMD_GET_HOME_POSITION:
                accepted = streams.once(dialect.MAVLINK_MSG_ID_HOME_POSITION, self.rover, self._state)
        ok, failed, unknown = (getattr(dialect, f"MAV_RESULT_{n}") for n in ("ACCEPTED", "FAILED", "UNSUPPORTED"))
        result = unknown if accepted is None else ok if accepted else failed
        target = message.get_srcSystem(), message.get_srcComponent()
        streams.send(dialect.MAVLink_command_ack_message(message.command, result, 0, 0, *target))

    def _on_parameter_request(self, message: Any, streams: Streams) -> None:
        names = list(self.rover.parameters)
        name = _text(message.param_id) if message.param_index < 0 else ""
        if 0 <= message.param_index < len(names):
            name = names[message.param_index]
        streams.parameter(name, self.rover.parameters)

    def _broadcast(self, message: Any) -> None:
        for streams in self._streams:
            streams.send(message)


def open_ardupilot(config: MAVLinkConfig) -> ArduPilot:
    """The far end of a boat's link, armed in MANUAL with the advised parameters, and a port for ground stations."""
    key = None if config.signing_key is None else load_key(Path(config.signing_key))
    transports: list[Transport] = [open_far_end(config.endpoint)]
    pilot = config.endpoint.address
    if pilot is not None and pilot.port:
        try:
            transports.append(Datagrams(Address("127.0.0.1", pilot.port + GROUND_STATION), None))
        except (InputError, OverflowError):
            print("no port for ground stations: it is in use", file=sys.stderr, flush=True)
    print("an ArduPilot-like vehicle, armed and in MANUAL; any ground station can change that", file=sys.stderr)
    opened = ArduPilot(config, transports, parameters=ADVISED | _gcs(config), armed=True, key=key)
    opened.rover.transmitter = {}  # switched on, its sticks at neutral: else the radio failsafe comes first
    return opened


def _gcs(config: MAVLinkConfig) -> dict[str, float]:
    """The parameter by which the pilot's overrides are taken."""
    return {"SYSID_MYGCS": float(config.source_system)}


def _text(name: Any) -> str:
    return name.decode("ascii", "replace") if isinstance(name, bytes) else str(name)
