"""The twin's own control board: takes commands, if they are in order, and stops the thrusters when none come.

It trusts nobody. A command is taken if it is for these thrusters, in [-1, 1], newer by its number than the last one
taken, and not older than `Board.stale` by its time; it acts after a delay. When none was taken for `Board.patience` the
watchdog puts the thrusters to zero, until the next.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anyhull.boat.clock import Sequence as Order
from anyhull.boat.messages import Command


@dataclass(frozen=True)
class Board:
    """What the board is like; seconds."""

    delay: tuple[float, float] = (0.02, 0.08)
    """Range of the time from a command's arrival to the thrusters' hearing of it, drawn for every trial: a serial line,
    an autopilot's loop, a speed controller's pulse. The lag of the thrusters themselves comes on top."""
    jitter: float = 0.01
    """Mean of what comes on top, exponentially, for every command."""
    patience: float = 0.5
    """How long the thrusters run on without a command."""
    stale: float = 0.5
    """How old, or how far ahead, a command may be by its time."""


class Firmware:
    """The board of one boat, from when it is switched on."""

    def __init__(self, board: Board, thrusters: int, random: Any, time: float = 0.0) -> None:
        self.board = board
        self.rejected: Counter[str] = Counter()
        """Commands not taken, by reason."""
        self.accepted = -1
        """`seq` of the last command taken."""
        self.taken = 0
        """How many commands were taken."""
        self.trips = 0
        """How often the watchdog stopped thrusters that ran."""
        self.stopped = True
        self.commands: Sequence[float] = (0.0,) * thrusters
        """In force, in [-1, 1]."""
        self.angles: Sequence[float] = (0.0,) * thrusters
        """In force, rad."""
        self._random: np.random.Generator = random
        self._delay = random.uniform(*board.delay)
        self._order = Order()
        self._last = time
        self._coming: deque[tuple[float, Command]] = deque()

    def take(self, command: Command, clock: float, time: float) -> bool:
        """Take a command that arrives when the boat's clock says `clock`; whether it will act.

        `time` is of a counter that nobody sets, and all that the watchdog goes by.
        """
        reason = self._fault(command, clock)
        if reason:
            self.rejected[reason] += 1
            return False
        self.taken += 1
        self.accepted, self._last = command.seq, time
        acts = time + self._delay + self._random.exponential(self.board.jitter)
        # Later commands do not overtake on one wire.
        self._coming.append((max(acts, self._coming[-1][0] if self._coming else acts), command))
        return True

    def step(self, time: float) -> None:
        """Let commands act whose time has come, and the watchdog look."""
        while self._coming and self._coming[0][0] <= time:
            _, command = self._coming.popleft()
            self.commands, self.angles, self.stopped = command.thrusters, command.angles, False
        if time - self._last > self.board.patience and not self.stopped:
            self.stopped = True
            self.trips += any(command != 0 for command in self.commands)
            self.commands = (0.0,) * len(self.commands)
            self._coming.clear()

    def _fault(self, command: Command, clock: float) -> str:
        if len(command.thrusters) != len(self.commands) or len(command.angles) != len(self.commands):
            return "not for these thrusters"
        if not all(math.isfinite(value) for value in (*command.thrusters, *command.angles, command.time)):
            return "not finite"
        if any(abs(value) > 1 for value in command.thrusters):
            return "outside [-1, 1]"
        if abs(command.time - clock) > self.board.stale:
            return "stale"
        order = self._order.check(command.session, command.seq)
        return "" if order in ("new", "restarted") else order
