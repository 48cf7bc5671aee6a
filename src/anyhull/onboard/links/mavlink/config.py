"""The table `[link]` of a boat with an ArduPilot autopilot."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Literal, NamedTuple

from anyhull.errors import InputError
from anyhull.frames import Axes
from anyhull.onboard.links.link import LinkConfig
from anyhull.onboard.links.udp import Address
from anyhull.schema import FieldError, check_types, require

ADDRESSES = "'udp:127.0.0.1:14550', 'udpout:127.0.0.1:14550', 'tcp:127.0.0.1:5760' or 'serial:/dev/ttyACM0:115200'"
"""Examples of an address, one of each kind."""


class Endpoint(NamedTuple):
    """Where the autopilot is: a network address, or a serial line and its speed."""

    kind: Literal["udp", "udpout", "tcp", "serial"]
    """`udp` listens, `udpout` sends first, `tcp` connects."""
    address: Address | None
    device: str = ""
    baud: int = 0

    @staticmethod
    def read(text: str) -> Endpoint:
        """From a text such as those of `ADDRESSES`."""
        kind, _, rest = text.partition(":")
        try:
            if kind in ("udp", "udpin"):
                return Endpoint("udp", Address.read(rest))
            if kind == "udpout":
                return Endpoint("udpout", Address.read(rest))
            if kind == "tcp":
                return Endpoint("tcp", Address.read(rest))
            device, _, baud = rest.rpartition(":")
            if kind == "serial" and device and int(baud) > 0:
                return Endpoint("serial", None, device, int(baud))
        except (InputError, ValueError):
            pass
        raise InputError(f"{text!r}: must be as {ADDRESSES}")

    @property
    def exposed(self) -> bool:
        """Whether others on a network can reach it."""
        return self.address is not None and not ipaddress.IPv4Address(self.address.host).is_loopback


@dataclass(frozen=True)
class MAVLinkConfig(LinkConfig):
    """How an ArduPilot autopilot is reached and what it is sent."""

    kind: Literal["mavlink"] = "mavlink"
    state: Literal["odometry"] = "odometry"
    """Always the estimate of the autopilot's own filter."""
    command: Literal["wrench", "thrusters"] = "wrench"
    """`wrench`: throttle, steering and lateral as an RC transmitter gives them, in the mode MANUAL. `thrusters`: a
    servo output for each thruster; ArduPilot's failsafes do not stop those by themselves."""
    address: str = "udp:127.0.0.1:14550"
    """`udp:HOST:PORT` listens there, `udpout:HOST:PORT` sends there, `tcp:HOST:PORT` connects, `serial:DEVICE:BAUD`."""
    system: int = 1
    """System id of the autopilot (its parameter SYSID_THISMAV or MAV_SYSID)."""
    source_system: int = 255
    """Our own; ArduPilot takes overrides from SYSID_MYGCS (MAV_GCS_SYSID) only, which is 255 by default."""
    axes: Axes = "ned"
    """Of the local frame and of the boat's file: y to starboard (`ned`) or to port (`enu`)."""
    zero: Literal["origin", "home"] = "origin"
    """Zero of the local frame without a geographic mission: the origin of the autopilot's filter, or its home."""
    position: Literal["local", "odometry"] = "local"
    """Messages of the state: LOCAL_POSITION_NED and ATTITUDE, or ODOMETRY, which stock ArduPilot does not send."""
    rate: float = 40.0
    """Of the state, Hz."""
    lateral: bool = False
    """Whether the frame takes lateral commands, as an omni frame does."""
    shares: tuple[float, float, float] | None = None
    """Throttle, lateral and steering at the vessel's limits of surge, sway and yaw; their sum is at most 1, since the
    mixer saturates beyond. By default 0.5, 0, 0.5, and a third each with `lateral`."""
    servos: tuple[int, ...] = ()
    """With `command = "thrusters"`: the number of the servo output of each thruster."""
    allow: tuple[str, ...] = ()
    """Parameters of the autopilot that are not checked."""
    signing_key: str | None = None
    """Path of the key for MAVLink 2 signing, in the file relative to its folder."""
    unsigned: bool = False
    """Whether an address other than loopback may be used without a key."""
    twin_origin: tuple[float, float] = (47.3977, 8.5456)
    """Latitude and longitude of the zero of the twin's local frame, degrees; of use to `anyhull twin` alone."""

    def __post_init__(self) -> None:
        check_types(self)
        try:
            endpoint = Endpoint.read(self.address)
        except InputError as error:
            raise InputError(f"address = {error}") from None
        if endpoint.exposed and not self.unsigned and self.signing_key is None:
            raise FieldError(
                "address", self.address, "on loopback (127.0.0.0/8) without signing_key or unsigned = true"
            )
        require(self, "system", 1 <= self.system <= 255, "from 1 to 255")
        require(self, "source_system", 1 <= self.source_system <= 255, "from 1 to 255")
        require(self, "source_system", self.source_system != self.system, "another number than system, the autopilot's")
        require(self, "rate", 10 <= self.rate <= 50, "from 10 to 50 Hz")
        if self.shares is not None:
            fits = min(self.shares) >= 0 and sum(self.shares) <= 1 + 1e-9 and self.shares[0] > 0 and self.shares[2] > 0
            require(self, "shares", fits, "three numbers >= 0 with a sum of at most 1, the first and last above 0")
            require(
                self, "shares", self.lateral == (self.shares[1] > 0), "above 0 in its second with lateral = true only"
            )
        if self.command == "thrusters":
            numbers = self.servos
            fits = bool(numbers) and len(set(numbers)) == len(numbers) and all(1 <= n <= 16 for n in numbers)
            require(self, "servos", fits, "different numbers from 1 to 16, one for each thruster")
        else:
            require(self, "servos", not self.servos, "given with command = 'thrusters' only")
        lat, lon = self.twin_origin
        require(self, "twin_origin", abs(lat) <= 90 and abs(lon) <= 180, "a latitude and a longitude in degrees")

    @property
    def endpoint(self) -> Endpoint:
        """The address, taken apart."""
        return Endpoint.read(self.address)

    @property
    def mixer_shares(self) -> tuple[float, float, float]:
        """`shares`, or its default."""
        if self.shares is not None:
            return self.shares
        return (1 / 3, 1 / 3, 1 / 3) if self.lateral else (0.5, 0.0, 0.5)
