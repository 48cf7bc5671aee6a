"""The twin of a boat: hull, weather, thrusters, sensors and board, integrated in steps of 5 ms.

It has the interface of a boat: it returns the messages of its sensors and accepts commands for its thrusters. Its true
state is in `state`, which no pilot receives.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

import numpy as np

from anyhull.backend import to_body, to_inertial, wrap
from anyhull.dynamics import rk4
from anyhull.errors import InputError
from anyhull.hulls import simulated
from anyhull.hydrodynamics import Triple
from anyhull.onboard.messages import MAX_INTEGER, Command, Message
from anyhull.twin.firmware import BoardConfig, Firmware
from anyhull.twin.hull import Hull, HullUncertainty, size
from anyhull.twin.monitors import STATUS_PERIOD, Mode, Monitors, Reading
from anyhull.twin.propulsion import Propulsion, ThrusterUncertainty, default_layout
from anyhull.twin.sensors import SensorConfig, SensorSuite
from anyhull.twin.water import WATERS, Water, WaterMotion, Weather
from anyhull.vessel import Vessel

T = TypeVar("T")

TICK = 0.005
"""Integration step, s: 200 Hz."""

GROUND_FRICTION = 0.1
"""Time constant with which ground stops a hull, s."""

CALM = WaterMotion(0.0, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class TwinConfig:
    """The parts of the twin that are not in the vessel's file."""

    water: Water = WATERS["lake"]
    hull: HullUncertainty = field(default_factory=HullUncertainty)
    thrusters: ThrusterUncertainty = field(default_factory=ThrusterUncertainty)
    sensors: SensorConfig = field(default_factory=SensorConfig)
    board: BoardConfig = field(default_factory=BoardConfig)


class InTransit(Generic[T]):
    """Items on their way, by the time of their arrival; those of the same time stay in order."""

    def __init__(self) -> None:
        self._items: list[tuple[float, int, T]] = []
        self._sent = 0

    def send(self, arrival: float, item: T) -> None:
        """Add an item that arrives at a time."""
        heapq.heappush(self._items, (arrival, self._sent, item))
        self._sent += 1

    def arrived(self, now: float) -> Iterator[T]:
        """Remove and return the items that have arrived, in order of their arrival."""
        while self._items and self._items[0][0] <= now:
            yield heapq.heappop(self._items)[2]


class Twin:
    """A simulated boat."""

    def __init__(
        self,
        vessel: Vessel,
        config: TwinConfig | None = None,
        *,
        seed: int = 0,
        pose: Sequence[float] = (0.0, 0.0, 0.0),
        antenna: tuple[float, float] = (0.0, 0.0),
        session: int | None = None,
    ) -> None:
        """At rest at `pose` (m, m, rad); `seed` draws its errors, and its hull if its file has none. `antenna` is its
        position in the boat's file, m.

        A twin on a network needs a `session` that was not used before.
        """
        self.vessel, self.config = with_thrusters(simulated(vessel, seed)), config or TwinConfig()
        c = self.config
        # Each part has its own random stream, so that a further draw in one does not change the others.
        hull, weather, thrusters, sensors, self._random = (np.random.default_rng([seed, i]) for i in range(5))
        length, beam = size(self.vessel)
        self.hull = Hull.draw(self.vessel, c.hull, hull)
        self.weather = Weather(c.water, length, beam, weather)
        self.propulsion = Propulsion(self.vessel.thrusters, c.thrusters, thrusters)
        self.sensors = SensorSuite(c.sensors, length, antenna, sensors)
        self.monitors = Monitors(np.random.default_rng([seed, 6]))
        self.operator: Mode = "auto"
        """Position of the operator's switch."""
        self.manual: Sequence[float] = (0.0,) * len(self.vessel.thrusters)
        """The operator's thruster commands, in force in `manual`."""
        self._aground = False
        self.time = 0.0
        """s, the boat's clock."""
        self._ticks = 0
        self._power_on_tick = 0
        self._clock_offset = 0.0
        self._pose: Triple = (float(pose[0]), float(pose[1]), float(pose[2]))
        self._water, self._through_water = CALM, (0.0, 0.0, 0.0)
        self._set_water(self.weather.motion(0.0, *self._pose))
        self._power_on()
        if session is not None:
            self._session = session

    @property
    def state(self) -> tuple[float, ...]:
        """The true state: x, y, psi and over ground u, v, r."""
        u, v, r = self._through_water
        c_u, c_v = to_body(self._water.x, self._water.y, self._pose[2])
        return *self._pose, u + c_u, v + c_v, r + self._water.yaw_rate

    @property
    def commands(self) -> Sequence[float]:
        """The thruster commands in force, in [-1, 1]: those that the board has accepted, or the operator's."""
        if self.operator == "auto":
            return self.firmware.commands
        return self.manual if self.operator == "manual" else (0.0,) * len(self.manual)

    @property
    def aground(self) -> bool:
        """Whether the hull is aground. Setting it stops the hull within `GROUND_FRICTION`, or sets it afloat."""
        return self._aground

    @aground.setter
    def aground(self, aground: bool) -> None:
        self._aground = aground
        self._set_water(CALM if aground else self.weather.motion(self._elapsed, *self._pose))

    def advance(self) -> list[Message]:
        """Advance by one tick; the messages that arrive at the peer within it."""
        self._sense()
        self.firmware.step(self._elapsed)
        tau = self.propulsion.step(self.commands, self.firmware.angles, TICK)
        self.weather.step(TICK)
        if self._aground:
            self._move_aground()
        else:
            self._move(tau)
        self._ticks += 1
        self.time = self._clock_offset + (self._ticks - self._power_on_tick) * TICK
        return self._arrived()

    def on_command(self, command: Command) -> bool:
        """Pass a command to the board; whether accepted. It acts as soon as the operator's switch is at `auto`."""
        return self.firmware.on_command(command, self.time, self._elapsed)

    def restart(self) -> None:
        """Power the board off and on: thrusters at zero, clock from zero, another session."""
        self._clock_offset, self._power_on_tick, self.time = 0.0, self._ticks, 0.0
        self._power_on()

    def set_clock(self, by: float) -> None:
        """Set the boat's clock forward or back by seconds, as a receiver does when it finds the time."""
        self._clock_offset += by
        self.time += by

    def _move(self, tau: Triple) -> None:
        """Move the hull by a tick under the thrusters' force (N, N, N·m), wind and water."""
        self._water = water = self.weather.motion(self._elapsed, *self._pose)
        _, _, psi, u, v, _ = self.state
        wind = self.weather.wind_force(psi, to_inertial(u, v, psi))
        total = (tau[0] + wind[0], tau[1] + wind[1], tau[2] + wind[2])

        def rate(s: tuple[float, ...]) -> tuple[float, ...]:
            v_x, v_y = to_inertial(s[3], s[4], s[2])
            acceleration = self.hull.acceleration((s[3], s[4], s[5]), total)
            return (v_x + water.x, v_y + water.y, s[5] + water.yaw_rate, *acceleration)

        x, y, psi, u, v, r = rk4(rate, (*self._pose, *self._through_water), TICK)
        if not all(map(math.isfinite, (x, y, psi, u, v, r))):
            reason = "the state of the hull is no longer finite; check length, mass and damping of its file"
            raise InputError(f"{self.vessel.name} at t = {self._elapsed:.1f} s: {reason}")
        self._pose, self._through_water = (x, y, float(wrap(psi))), (u, v, r)

    def _move_aground(self) -> None:
        """Slow a hull that is aground for a tick: the ground is stronger than thrusters, wind and waves."""
        (x, y, psi), (u, v, r) = self._pose, self._through_water
        v_x, v_y = to_inertial(u, v, psi)
        self._pose = (x + v_x * TICK, y + v_y * TICK, float(wrap(psi + r * TICK)))
        keep = math.exp(-TICK / GROUND_FRICTION)
        self._through_water = (keep * u, keep * v, keep * r)

    def _set_water(self, water: WaterMotion) -> None:
        """Let the water move otherwise and the hull as before."""
        _, _, psi, u, v, r = self.state
        c_u, c_v = to_body(water.x, water.y, psi)
        self._water, self._through_water = water, (u - c_u, v - c_v, r - water.yaw_rate)

    def _power_on(self) -> None:
        self.firmware = Firmware(self.config.board, len(self.vessel.thrusters), self._random, self._elapsed)
        self._session, self._seq = int(self._random.integers(MAX_INTEGER)), 0
        self._in_transit = InTransit[Reading]()
        self._next_status = 0.0

    @property
    def _elapsed(self) -> float:
        """Time since the beginning, independent of the boat's clock, s."""
        return self._ticks * TICK

    def _sense(self) -> None:
        now = self._elapsed
        slope = (self._water.slope_x, self._water.slope_y)
        readings = self.sensors.read(now, self.state, slope)
        if now >= self._next_status - 1e-9:
            self._next_status = now + STATUS_PERIOD
            readings += self.monitors.read(now, self._status(), self.propulsion, slope, self._pose[2], self.operator)
        for reading in readings:
            self._in_transit.send(reading.arrival, reading._replace(time=self.time + reading.time - now))

    def _status(self) -> dict[str, Any]:
        # In `manual` the watchdog holds nothing, in `stop` the switch does.
        stopped = self.operator == "stop" or (self.firmware.stopped and self.operator != "manual")
        return {"thrusters": tuple(self.commands), "stopped": stopped, "accepted": self.firmware.last_seq}

    def _arrived(self) -> list[Message]:
        messages = []
        for reading in self._in_transit.arrived(self._elapsed):
            messages.append(reading.kind(self._session, self._seq, reading.time, **reading.values))
            self._seq += 1
        return messages


def with_thrusters(vessel: Vessel) -> Vessel:
    """The vessel with its thrusters, or with the default layout where its file has none."""
    return vessel if vessel.thrusters else replace(vessel, thrusters=default_layout(vessel))
