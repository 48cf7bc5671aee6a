"""The twin's control board: accepts valid commands in order, and stops the thrusters when none arrive.

A command is accepted if it is for these thrusters, in [-1, 1], newer by its number than the last one accepted, and not
older than `BoardConfig.max_age` by its time; it acts after a delay. After `BoardConfig.watchdog_timeout` without an
accepted command the watchdog sets the thrusters to zero, until the next.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anyhull.onboard.clock import SequenceCheck
from anyhull.onboard.messages import Command


@dataclass(frozen=True)
class BoardConfig:
    """Times of the board, s."""

    delay: tuple[float, float] = (0.02, 0.08)
    """Range of the delay from a command's arrival to the thrusters, drawn for every trial: a serial line, an
    autopilot's loop, a speed controller's pulse. The lag of the thrusters adds to it."""
    jitter: float = 0.01
    """Mean of the additional delay of each command, exponential."""
    watchdog_timeout: float = 0.5
    """Time without a command after which the thrusters stop."""
    max_age: float = 0.5
    """Largest difference between a command's time and the board's clock."""


class Firmware:
    """The board of one boat, from power-on."""

    def __init__(self, config: BoardConfig, thrusters: int, random: np.random.Generator, time: float = 0.0) -> None:
        self.config = config
        self.rejected: Counter[str] = Counter()
        """Commands rejected, by reason."""
        self.accepted = 0
        """Commands accepted."""
        self.last_seq = -1
        """`seq` of the last command accepted."""
        self.trips = 0
        """Stops of running thrusters by the watchdog."""
        self.stopped = True
        self.commands: Sequence[float] = (0.0,) * thrusters
        """In force, in [-1, 1]."""
        self.angles: Sequence[float] = (0.0,) * thrusters
        """In force, rad."""
        self._random = random
        self._delay = random.uniform(*config.delay)
        self._sequence = SequenceCheck()
        self._last_time = time
        self._pending: deque[tuple[float, Command]] = deque()

    def on_command(self, command: Command, clock: float, time: float) -> bool:
        """Accept or reject a command that arrives when the boat's clock is `clock`; whether it was accepted.

        `time` is of a counter that is never set; the watchdog uses it alone.
        """
        reason = self._fault(command, clock)
        if reason:
            self.rejected[reason] += 1
            return False
        self.accepted += 1
        self.last_seq, self._last_time = command.seq, time
        acts = time + self._delay + self._random.exponential(self.config.jitter)
        # Commands stay in order on one wire.
        self._pending.append((max(acts, self._pending[-1][0] if self._pending else acts), command))
        return True

    def step(self, time: float) -> None:
        """Apply the commands that are due, and run the watchdog."""
        while self._pending and self._pending[0][0] <= time:
            _, command = self._pending.popleft()
            self.commands, self.angles, self.stopped = command.thrusters, command.angles, False
        if time - self._last_time > self.config.watchdog_timeout and not self.stopped:
            self.stopped = True
            self.trips += any(command != 0 for command in self.commands)
            self.commands = (0.0,) * len(self.commands)
            self._pending.clear()

    def _fault(self, command: Command, clock: float) -> str:
        if len(command.thrusters) != len(self.commands) or len(command.angles) != len(self.commands):
            return "not for these thrusters"
        if not all(math.isfinite(value) for value in (*command.thrusters, *command.angles, command.time)):
            return "not finite"
        if any(abs(value) > 1 for value in command.thrusters):
            return "outside [-1, 1]"
        if abs(command.time - clock) > self.config.max_age:
            return "stale"
        order = self._sequence.check(command.session, command.seq)
        return "" if order in ("new", "restarted") else order
