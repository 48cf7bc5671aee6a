"""The twin of a boat on the water: hull, weather, thrusters, sensors and board, advanced in steps of 5 ms.

It speaks as a boat does: it gives the messages that its sensors send, and takes commands for its thrusters. What it
really does is in `state`, which no pilot sees.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from anyhull.arithmetic import wrap
from anyhull.boat.messages import COUNT, Command, Message, Status
from anyhull.dynamics import rk4
from anyhull.trial.firmware import Board, Firmware
from anyhull.trial.hull import Hull, Unknowns, size
from anyhull.trial.instruments import Instruments, Reading, Sensing
from anyhull.trial.propulsion import Propulsion, Wear, usual_layout
from anyhull.trial.water import WATERS, Water, Weather
from anyhull.vessel import Triple, Vessel

TICK = 0.005
"""Integration step, s: 200 Hz."""

STATUS = 0.1
"""Time between two messages of the board's status, s."""


@dataclass(frozen=True)
class Nature:
    """All that the twin has and the pilot is not told."""

    water: Water = WATERS["lake"]
    unknowns: Unknowns = field(default_factory=Unknowns)
    wear: Wear = field(default_factory=Wear)
    instruments: Instruments = field(default_factory=Instruments)
    board: Board = field(default_factory=Board)


class Twin:
    """A simulated boat."""

    def __init__(
        self,
        vessel: Vessel,
        nature: Nature | None = None,
        *,
        seed: int = 0,
        pose: Sequence[float] = (0.0, 0.0, 0.0),
        antenna: tuple[float, float] = (0.0, 0.0),
        session: int | None = None,
    ) -> None:
        """At rest at `pose` (m, m, rad); `seed` draws all that is left open. `antenna` is where the file has it, m.

        A boat that talks to others needs a `session` that no boat had before it.
        """
        self.vessel, self.nature = fitted(vessel), nature or Nature()
        n = self.nature
        # Each part has a stream of its own, so that one more draw in one of them changes nothing in the others.
        hull, weather, wear, sensing, self._random = (np.random.default_rng([seed, i]) for i in range(5))
        length, beam = size(vessel)
        self.hull = Hull.draw(vessel, n.unknowns, hull)
        self.weather = Weather(n.water, length, beam, weather)
        self.propulsion = Propulsion(self.vessel.thrusters, n.wear, wear)
        self.sensing = Sensing(n.instruments, length, antenna, sensing)
        self.time = 0.0
        """s, the boat's clock."""
        self._ticks = 0
        self._began = 0
        self._origin = 0.0
        self._pose: Triple = (float(pose[0]), float(pose[1]), float(pose[2]))
        self._moved = self.weather.at(0.0, *self._pose)
        # At rest over ground, so the water passes by.
        self._through: Triple = self._over_water((0.0, 0.0, 0.0))
        self._switch_on()
        if session is not None:
            self._session = session

    @property
    def state(self) -> tuple[float, ...]:
        """The truth: x, y, psi and over ground u, v, r."""
        x, y, psi = self._pose
        u, v, r = self._through
        c_x, c_y = _turned(self._moved.x, self._moved.y, -psi)
        return x, y, psi, u + c_x, v + c_y, r + self._moved.turn

    def advance(self) -> list[Message]:
        """Let one tick pass; the messages that arrive at the other end by its end."""
        self._sense()
        self.firmware.step(self._elapsed)
        tau = self.propulsion.step(self.firmware.commands, self.firmware.angles, TICK)
        self.weather.step(TICK)
        x, y, psi = self._pose
        self._moved = moved = self.weather.at(self._elapsed, x, y, psi)
        u, v = self.state[3:5]
        push = self.weather.wind_force(psi, _turned(u, v, psi))
        total = (tau[0] + push[0], tau[1] + push[1], tau[2] + push[2])

        def rate(s: tuple[float, ...]) -> tuple[float, ...]:
            nu: Triple = (s[3], s[4], s[5])
            v_x, v_y = _turned(s[3], s[4], s[2])
            return (v_x + moved.x, v_y + moved.y, s[5] + moved.turn, *self.hull.acceleration(nu, total))

        x, y, psi, u, v, r = rk4(rate, (*self._pose, *self._through), TICK)
        self._pose, self._through = (x, y, float(wrap(psi))), (u, v, r)
        self._ticks += 1
        self.time = self._origin + (self._ticks - self._began) * TICK
        return self._arrived()

    def take(self, command: Command) -> bool:
        """Hear a command; whether the board takes it."""
        return self.firmware.take(command, self.time, self._elapsed)

    def restart(self) -> None:
        """Switch the board off and on: thrusters at zero, its clock from zero, another session."""
        self._origin, self._began, self.time = 0.0, self._ticks, 0.0
        self._switch_on()

    def set_clock(self, by: float) -> None:
        """Set the boat's clock forward, or back, by seconds, as a receiver does that finds the time."""
        self._origin += by
        self.time += by

    def _switch_on(self) -> None:
        self.firmware = Firmware(self.nature.board, len(self.vessel.thrusters), self._random, self._elapsed)
        self._session, self._seq = int(self._random.integers(COUNT)), 0
        self._mail: list[tuple[float, int, Reading]] = []
        self._posted = 0
        self._status = 0.0

    @property
    def _elapsed(self) -> float:
        """Time since the beginning, whatever the boat's clock says, s."""
        return self._ticks * TICK

    def _sense(self) -> None:
        now = self._elapsed
        readings = self.sensing.read(now, self.state, (self._moved.slope_x, self._moved.slope_y))
        if now >= self._status - 1e-9:
            self._status = now + STATUS
            board = self.firmware
            told = {"thrusters": tuple(board.commands), "stopped": board.stopped, "accepted": board.accepted}
            readings.append(Reading(now, Status, now, told))
        for reading in readings:
            stamped = reading._replace(time=self.time + reading.time - now)
            heapq.heappush(self._mail, (reading.arrives, self._posted, stamped))
            self._posted += 1

    def _arrived(self) -> list[Message]:
        messages = []
        while self._mail and self._mail[0][0] <= self._elapsed:
            _, _, reading = heapq.heappop(self._mail)
            messages.append(reading.kind(self._session, self._seq, reading.time, **reading.values))
            self._seq += 1
        return messages

    def _over_water(self, ground: Triple) -> Triple:
        c_x, c_y = _turned(self._moved.x, self._moved.y, -self._pose[2])
        return ground[0] - c_x, ground[1] - c_y, ground[2] - self._moved.turn


def fitted(vessel: Vessel) -> Vessel:
    """A vessel with its thrusters, or with the usual ones where its file has none."""
    return vessel if vessel.thrusters else replace(vessel, thrusters=usual_layout(vessel))


def _turned(x: float, y: float, angle: float) -> tuple[float, float]:
    cos, sin = math.cos(angle), math.sin(angle)
    return cos * x - sin * y, sin * x + cos * y
