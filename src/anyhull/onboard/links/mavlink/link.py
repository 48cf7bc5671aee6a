"""The pilot's end of the link to an ArduPilot Rover or boat; docs/mavlink.md describes it.

The autopilot's messages become ours (`anyhull.onboard.messages`). Commands go out only while the autopilot is armed and
in MANUAL: any other mode, chosen by the operator, his transmitter or a failsafe, has precedence at once.
"""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from anyhull.mission.geodesy import LocalFrame
from anyhull.onboard.links.keys import load_key
from anyhull.onboard.links.link import Received
from anyhull.onboard.links.mavlink.commander import Commander
from anyhull.onboard.links.mavlink.config import MAVLinkConfig
from anyhull.onboard.links.mavlink.heartbeat import Heartbeat
from anyhull.onboard.links.mavlink.parameters import Parameters, decoded
from anyhull.onboard.links.mavlink.requests import Requests
from anyhull.onboard.links.mavlink.telemetry import (
    ATTITUDE_AGE,
    Attitude,
    BootTime,
    FilterStatus,
    Frame,
    Place,
    body_velocity,
    odometry_of,
)
from anyhull.onboard.links.mavlink.transports import Transport, open_transport
from anyhull.onboard.links.mavlink.wire import Wire, dialect
from anyhull.onboard.messages import MAX_INTEGER, RANGES, Battery, Command, Message, Odometry, Operator, Status, Tilt

HEARTBEAT = 1.0
"""Time between two of our heartbeats, s."""

GAP = 1.0
"""Time between two calls of `receive` after which what has waited is not used, s."""

OPERATOR_PERIOD, TILT_PERIOD = 1.0, 0.1
"""Longest time between two reports of the operator's switch, and shortest between two of roll and pitch, s."""


class MAVLink:
    """Messages to and from an autopilot."""

    def __init__(
        self,
        config: MAVLinkConfig,
        transport: Transport,
        *,
        frame: LocalFrame | None = None,
        key: bytes | None = None,
        stamps: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`frame` is the local frame of a geographic mission; `key` and `stamps` are for signing, see `Wire`."""
        self.config, self._clock = config, clock
        self._frame = Frame(config.axes, config.zero, frame)
        self.rejected: Counter[str] = Counter()
        """What was not used, by reason."""
        source = config.source_system, dialect.MAV_COMP_ID_ONBOARD_COMPUTER
        self._wire = Wire(transport, source, self._is_vehicle, clock, self.rejected, key, stamps)
        self.parameters = Parameters(config)
        self._requests = Requests(config, frame is not None, self._wire.send)
        self._commander = Commander(config, self.parameters, self._wire.send, self.rejected)
        self._geographic = frame is not None
        self._received = clock()
        self._heartbeat_due = -math.inf
        self._session, self._seq = _draw(), 0
        self._start()

    def _start(self) -> None:
        """Forget the autopilot."""
        self._boot = BootTime()
        self._time, self._arrival = math.nan, math.nan
        self._heartbeat = Heartbeat(self.config.system)
        self._attitude: Attitude | None = None
        self._local_time = self._tilt_time = self._operator_time = -math.inf
        self._echo_time = -1.0
        self._filter = FilterStatus(self._geographic)
        self._mode = ""

    @property
    def address(self) -> str:
        """Our end."""
        return self._wire.transport.address

    @property
    def peer(self) -> str:
        """The autopilot's end."""
        return f"{self._wire.transport.peer}, system {self.config.system}"

    def receive(self, timeout: float) -> list[Received]:
        """The messages of the autopilot; waits up to `timeout` s for the first bytes."""
        if self._clock() - self._received > GAP:
            # As while an operator reads a prompt: what waits may be of before a switch.
            self._heartbeat.expire()
            self.rejected["not read in time"] += 1
            if not self._wire.discard():
                return []
        self._step()
        received = []
        for message, arrival in self._wire.receive(timeout):
            try:
                found = self._on_message(message, arrival)
            except Exception as error:  # whatever it sends
                self.rejected[f"{message.get_type()}: {type(error).__name__}"] += 1
                continue
            received += [Received(ours, arrival) for ours in found if self._in_range(ours)]
        self._step()
        self._received = self._clock()
        return received

    def send(self, message: Message) -> None:
        """Send a command, if the autopilot is armed and in MANUAL."""
        if isinstance(message, Command):
            now = self._clock()
            self._commander.command(message, self._permitted(now), now)

    def unready(self) -> str:
        """Why the boat must not start yet: the first thing to mend."""
        now = self._clock()
        if not self._heartbeat.alive(now):
            return self._heartbeat.foreign() or f"no heartbeat of system {self.config.system}"
        return (
            self.parameters.unready() or self._frame.unready() or self._filter.unready(now) or self._heartbeat.unready()
        )

    def hint(self) -> str:
        """What to look at while there is no state."""
        counts = self.rejected
        if counts["not signed by our key"]:
            return "messages are not signed by our key: check signing_key and the autopilot's signing"
        if counts["old time stamp"] and not self._heartbeat.seen:
            return "the autopilot's signatures have old time stamps, and it does not hear ours: check the line to it"
        if counts["not from the vehicle"] and not self._heartbeat.seen:
            return f"others are heard, but not system {self.config.system}: check [link] system"
        if not self._heartbeat.seen:
            return f"check that the autopilot runs and is reached by {self.config.address!r}"
        return (
            self._heartbeat.foreign()
            or self._frame.unready()
            or "it is heard, but has no position: check its GPS and filter"
        )

    def close(self) -> None:
        """End at once after a run: while we may, neutral for 0.15 s; then the channels are given back."""
        if not self._permitted(now := self._clock()):
            self._commander.let_go(now)
        self._commander.close(now, self._wire.transport.pause)
        self._wire.close()

    def _permitted(self, now: float) -> bool:
        """Whether the autopilot is known to be armed and in MANUAL, by messages read just now."""
        return self._heartbeat.permits(now) and now - self._received <= GAP

    def _is_vehicle(self, message: Any) -> bool:
        """Whether a message is of the vehicle's autopilot, not of a gimbal, a ground station or another vehicle."""
        header = message.get_srcSystem(), message.get_srcComponent()
        return header == (self.config.system, dialect.MAV_COMP_ID_AUTOPILOT1)

    def _step(self) -> None:
        """Send what is due."""
        now = self._clock()
        if now >= self._heartbeat_due:
            self._heartbeat_due = now + HEARTBEAT
            kind, none = dialect.MAV_TYPE_ONBOARD_CONTROLLER, dialect.MAV_AUTOPILOT_INVALID
            self._wire.send(dialect.MAVLink_heartbeat_message(kind, none, 0, 0, dialect.MAV_STATE_ACTIVE, 3))
        if not self._heartbeat.permits(now):
            self._commander.let_go(now)
        self._commander.step(now)
        if not self._heartbeat.alive(now):
            return
        self._requests.step(now, self._frame.origin is not None and self._frame.home is not None)
        target = self.config.system, dialect.MAV_COMP_ID_AUTOPILOT1
        for name in self.parameters.to_ask(now):
            self._wire.send(dialect.MAVLink_param_request_read_message(*target, name.encode(), -1))

    def _on_message(self, message: Any, arrival: float) -> list[Message]:
        """Ours for one of the autopilot's."""
        name = message.get_type()
        self._requests.on_message(name)
        stamped = hasattr(message, "time_boot_ms")
        at = self._set_time(message.time_boot_ms, arrival) if stamped else self._time_at(arrival)
        match name:
            case "HEARTBEAT":
                return self._on_heartbeat(message, arrival)
            case "ATTITUDE":
                return self._on_attitude(message, at)
            case "LOCAL_POSITION_NED" if self.config.position == "local":
                self._local_time = arrival
                velocity = (message.vx, message.vy)
                xy, health = self._frame.local(message.x, message.y), self._filter.health(arrival)
                return self._odometry(at, xy, velocity, health)
            case "GLOBAL_POSITION_INT" if self.config.position == "local" and arrival - self._local_time > 1.0:
                place = Place.of(message.lat, message.lon)
                velocity = (message.vx / 100, message.vy / 100)
                xy, health = place and self._frame.geographic(place), self._filter.health(arrival, cached=True)
                return self._odometry(at, xy, velocity, health)
            case "ODOMETRY" if self.config.position == "odometry":
                return self._on_odometry(message, arrival)
            case "RC_CHANNELS" if self.config.command == "wrench":
                reported = {number: getattr(message, f"chan{number}_raw") for number in range(1, 17)}
                return self._status(reported, at, arrival)
            case "SERVO_OUTPUT_RAW" if self.config.command == "thrusters" and message.port == 0:
                reported = {number: getattr(message, f"servo{number}_raw") for number in range(1, 17)}
                return self._status(reported, at, arrival)
            case "EKF_STATUS_REPORT":
                ratios = (message.velocity_variance, message.pos_horiz_variance, message.compass_variance)
                self._filter.take(message.flags, ratios, arrival)
            case "SYS_STATUS" if 0 <= message.battery_remaining <= 100:
                return self._emit(Battery, at, message.battery_remaining / 100)
            case "GPS_GLOBAL_ORIGIN":
                self._on_place("origin", message)
            case "HOME_POSITION":
                self._on_place("home", message)
            case "PARAM_VALUE":
                if (found := decoded(message)) is not None:
                    self.parameters.take(*found)
            case "COMMAND_ACK":
                self._requests.on_ack(message.command, message.result)
        return []

    def _on_heartbeat(self, message: Any, arrival: float) -> list[Message]:
        if not self._heartbeat.seen:
            self._heartbeat_due = -math.inf  # where we listen, ours has had nowhere to go so far
        if not self._heartbeat.take(message, arrival):
            self.rejected["late heartbeat"] += 1
            return []
        if not self._heartbeat.permits(arrival):
            self._commander.let_go(arrival)
        if self._heartbeat.foreign():
            return []
        mode = self._heartbeat.operator()
        if mode == self._mode and arrival - self._operator_time < OPERATOR_PERIOD:
            return []
        found = self._emit(Operator, self._time_at(arrival), mode)
        if found:
            self._mode, self._operator_time = mode, arrival
        return found

    def _on_place(self, name: Literal["origin", "home"], message: Any) -> None:
        """Take the origin or home; under way they stay, or the reference would move with them."""
        place = Place.of(message.latitude, message.longitude)
        if refused := self._frame.take(name, place, self._commander.steered):
            self.rejected[refused] += 1

    def _on_attitude(self, message: Any, at: float) -> list[Message]:
        numbers = message.roll, message.pitch, message.yaw, message.yawspeed
        if not all(map(math.isfinite, numbers)):
            self.rejected["attitude not finite"] += 1
            return []
        if self._attitude is None or at > self._attitude.time or at < self._attitude.time - 1:
            self._attitude = Attitude(at, message.yaw, message.yawspeed)
        if at - self._tilt_time < TILT_PERIOD and at > self._tilt_time:
            return []
        self._tilt_time = at
        return self._emit(Tilt, at, float(message.roll), float(message.pitch))

    def _on_odometry(self, message: Any, arrival: float) -> list[Message]:
        frames = message.frame_id, message.child_frame_id
        body = dialect.MAV_FRAME_BODY_FRD
        if frames[0] not in (dialect.MAV_FRAME_LOCAL_NED, dialect.MAV_FRAME_LOCAL_FRD) or frames[1] != body:
            self.rejected[f"ODOMETRY in the frames {frames[0]} and {frames[1]}: must be 1 or 20, and 12"] += 1
            return []
        at, (north, east), yaw, velocity, std = odometry_of(message)
        # A time of years is Unix time: then the stamps of other messages hold.
        at = self._set_time(round(at * 1000) % 2**32, arrival) if at < 1e8 else self._time_at(arrival)
        xy = self._frame.local(north, east)
        if xy is None or not math.isfinite(at):
            return []
        deviations = tuple(std) if all(map(math.isfinite, std)) else None
        health = "lost" if self._frame.lost else self._filter.health(arrival)
        return self._emit(Odometry, at, *self._frame.state(xy, yaw, velocity), deviations, health)

    def _odometry(
        self, at: float, xy: tuple[float, float] | None, ground: tuple[float, float], health: str
    ) -> list[Message]:
        """The state from a position and a velocity over ground, north and east, and the last attitude."""
        attitude = self._attitude
        if xy is None or attitude is None or abs(at - attitude.time) > ATTITUDE_AGE:
            return []
        yaw = attitude.at(at)
        state = self._frame.state(xy, yaw, body_velocity(*ground, yaw, attitude.rate))
        return self._emit(Odometry, at, *state, None, "lost" if self._frame.lost else health)

    def _status(self, reported: dict[int, int], at: float, arrival: float) -> list[Message]:
        if at < self._echo_time:
            self.rejected["late report of the commands"] += 1
            return []
        self._echo_time = at
        values, stopped, accepted = self._commander.in_force(reported, self._heartbeat.permits(arrival), arrival)
        if self.config.command == "wrench":
            return self._emit(Status, at, (), stopped, accepted, None, values)
        return self._emit(Status, at, values, stopped, accepted)

    def _emit(self, kind: type[Message], at: float, *values: Any) -> list[Message]:
        if not math.isfinite(at):  # the autopilot's time is not known yet
            return []
        self._seq += 1
        return [kind(self._session, self._seq - 1, at, *values)]

    def _set_time(self, milliseconds: int, arrival: float) -> float:
        """The time of a message, s, by which that of others is known."""
        at, restarted = self._boot.seconds(milliseconds)
        if restarted:
            self.rejected["the autopilot restarted"] += 1
            self._start()
            self._boot.seconds(milliseconds)
            self._session, self._seq = _draw(), 0
            self._commander.forget(arrival)
            for part in (self.parameters, self._requests, self._frame):
                part.forget()
        if not at <= self._time - 1:
            self._time, self._arrival = at, arrival
        return at

    def _time_at(self, arrival: float) -> float:
        """The autopilot's time, from the last stamp."""
        return self._time + arrival - self._arrival

    def _in_range(self, message: Message) -> bool:
        """Whether all numbers are finite and in their ranges, as of a message by UDP."""
        kind = type(message).__name__.lower()
        for name, value in vars(message).items():
            low, high = RANGES.get(f"{kind}.{name}") or RANGES.get(name) or (-math.inf, math.inf)
            for number in value if isinstance(value, tuple) else (value,):
                if isinstance(number, float) and not low <= number <= high:
                    self.rejected[f"{kind}.{name}: not from {low:.5g} to {high:.5g}"] += 1
                    return False
        return True


def open_mavlink(config: MAVLinkConfig, frame: LocalFrame | None) -> MAVLink:
    """The pilot's end of the link of a boat's file."""
    key = None if config.signing_key is None else load_key(Path(config.signing_key))
    stamps = None if config.signing_key is None else Path(f"{config.signing_key}.stamp")
    Frame(config.axes, config.zero, frame)  # raises before a port is taken
    return MAVLink(config, open_transport(config.endpoint), frame=frame, key=key, stamps=stamps)


def _draw() -> int:
    return random.SystemRandom().randrange(MAX_INTEGER)
