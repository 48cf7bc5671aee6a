"""What the boat does against what it was told: its commands, its thrusters, its movement."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from anyhull.backend import Array, wrap
from anyhull.onboard.limits import Limits
from anyhull.onboard.messages import Command, Status
from anyhull.thrusters import Thruster, attainable, derived_limits

ECHO_TOLERANCE = 0.05
"""Difference between a command in force and those sent, on top of their range: boards round and limit the slew rate."""

ECHO_COMMANDS = 20
"""Commands remembered: two seconds, longer than any delay of a boat that is steered."""

FILTER_TIME = 0.5
"""Time constant of the thrusts that are compared, s: longer than the lag of a thruster."""

SWING_TIME = 1.0
"""Time constant of the sizes that are compared, s. A command that swings through zero hides a deviation again and
again, but not the size of what is missing; and a size hardly depends on the lag of a thruster."""

TOLERANCE = (0.1, 0.25)
"""Deviation of a thruster, as a fraction of full thrust, plus a share of what is expected: thrust is not exactly
proportional to command, nor propellers alike."""

DEAD, WEAK = 0.15, 0.85
"""Shares of the expected thrust below which a thruster counts as dead, and as weak."""

AWAY = (0.5, 0.3)
"""Distance, in the vessel's length unit, and angle, rad, to the reference beyond which a high command must lead to
progress."""


class CommandEcho:
    """Whether the boat confirms the commands, and has in force what it was sent."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._sent: deque[tuple[Command, float]] = deque(maxlen=ECHO_COMMANDS)
        self._confirmed = -math.inf
        self.status: Status | None = None
        """The boat's last status."""
        self.mismatch = ""
        """The difference between the commands in force and those sent, or empty."""

    def sent(self, command: Command, now: float) -> None:
        """Note a command that was sent at the caller's time `now`, s."""
        self._sent.append((command, now))

    def on_status(self, status: Status) -> None:
        """Compare a status with the commands sent."""
        self.status, self.mismatch = status, ""
        accepted = [(command, at) for command, at in self._sent if command.seq <= status.accepted]
        last = self._sent[-1][0].seq if self._sent else -1
        if status.accepted > last or not accepted:
            return  # of another pilot, or of none
        self._confirmed = max(self._confirmed, accepted[-1][1])
        if status.stopped:
            return
        wrench = status.wrench is not None
        given = np.array(status.wrench if wrench else status.thrusters)
        values = np.array([command.wrench if wrench else command.thrusters for command, _ in accepted])
        if values.shape[1] != len(given):
            self.mismatch = f"{len(given)} thrusters reported, {values.shape[1]} commanded"
            return
        beyond = np.maximum(values.min(axis=0) - given, given - values.max(axis=0)) > ECHO_TOLERANCE
        for i in np.flatnonzero(beyond):
            name = ("surge", "sway", "yaw")[i] if wrench else f"thruster {i}"
            self.mismatch = f"{name} at {given[i]:.2f}, commanded {values[-1, i]:.2f}"

    def uplink(self, now: float) -> str:
        """The reason why commands do not act on the boat at the caller's time `now`, or empty."""
        if self.status is None:
            return "no status from the boat"
        if self.status.stopped:
            return "the boat has stopped its thrusters"
        age = now - self._confirmed
        if age == math.inf:
            return "no command confirmed yet"
        return f"no command confirmed for {age:.1f} s" if age > self._limits.uplink else ""


@dataclass(frozen=True)
class Condition:
    """What is known of one thruster."""

    kind: Literal["good", "dead", "weak", "stuck"] = "good"
    share: float = 1.0
    """Of the thrust expected, that it gives."""
    stuck_at: float = 0.0
    """Thrust at which it is stuck, as a fraction of the largest."""


class ThrusterMonitor:
    """Finds dead, weak and stuck thrusters by their own measurements."""

    def __init__(self, thrusters: Sequence[Thruster], limits: Limits) -> None:
        self.thrusters, self._limits = tuple(thrusters), limits
        self.reset()

    def reset(self) -> None:
        """Take all thrusters for good."""
        n = len(self.thrusters)
        self.conditions = [Condition()] * n
        self._expected, self._measured = np.zeros(n), np.zeros(n)
        self._deviates = np.zeros(n)
        self._expected_size, self._measured_size, self._silent = np.zeros(n), np.zeros(n), np.zeros(n)
        self._last: float | None = None

    def on_status(self, status: Status) -> list[str]:
        """Compare measured thrust with the commands in force; a line for each thruster whose condition changed."""
        if status.thrust is None or len(status.thrust) != len(self.thrusters):
            return []
        dt = 0.0 if self._last is None else min(max(status.time - self._last, 0.0), 0.5)
        self._last = status.time
        fractions = np.array([_fraction(t, c) for t, c in zip(self.thrusters, status.thrusters, strict=True)])
        thrusts = np.array(status.thrust)
        share, swing = (-math.expm1(-dt / time) for time in (FILTER_TIME, SWING_TIME))
        self._expected += share * (fractions - self._expected)
        self._measured += share * (thrusts - self._measured)
        self._expected_size += swing * (np.abs(fractions) - self._expected_size)
        self._measured_size += swing * (np.abs(thrusts) - self._measured_size)
        silent = (self._expected_size > 2 * TOLERANCE[0]) & (self._measured_size < DEAD * self._expected_size)
        self._silent = np.where(silent, self._silent + dt, 0.0)
        changed = []
        for i, known in enumerate(self.conditions):
            model = known.stuck_at if known.kind == "stuck" else known.share * self._expected[i]
            off = abs(self._measured[i] - model) > TOLERANCE[0] + TOLERANCE[1] * abs(model)
            self._deviates[i] = self._deviates[i] + dt if off else 0.0
            found = known
            if self._silent[i] >= self._limits.thruster:
                found = Condition("dead", 0.0)
            elif self._deviates[i] >= self._limits.thruster:
                self._deviates[i] = 0.0
                found = _diagnose(float(self._expected[i]), float(self._measured[i]))
            if found != known:
                self.conditions[i] = found
                changed.append(f"thruster {i} {_describe(found)}")
        return changed

    @property
    def usable(self) -> tuple[Thruster, ...]:
        """The thrusters as they are now: without those dead or stuck, weak ones weaker."""
        return tuple(_weaker(t, known) for t, known in zip(self.thrusters, self.conditions, strict=True))

    @property
    def stuck_force(self) -> Array:
        """Body force of the thrusters that are stuck (N, N, N·m)."""
        total = np.zeros(3)
        for t, known in zip(self.thrusters, self.conditions, strict=True):
            if known.kind == "stuck":
                bound = t.bounds[1] if known.stuck_at > 0 else -t.bounds[0]
                total += known.stuck_at * bound * t.column(math.radians(t.angle))
        return total

    def ability(self) -> tuple[str, bool]:
        """What the boat can still do, in words, and whether that is enough to steer it."""
        before, left = derived_limits(self.thrusters), derived_limits(self.usable)
        pairs = zip(("Fx", "Fy", "Mz"), left, before, ("N", "N", "N·m"), strict=True)
        words = ", ".join(f"{name} {now:.3g} of {was:.3g} {unit}" for name, now, was, unit in pairs)
        enough = all(now > 0.1 * was for now, was in zip(left, before, strict=True) if was > 0)
        if enough and (stuck := self.stuck_force).any():
            enough = attainable(self.usable).contains(-stuck)
        return words, enough


class ProgressMonitor:
    """Finds a boat that does not move at high command: aground, or caught."""

    def __init__(self, limits: Limits, length: float = 1.0, hold_radius: float = 0.0) -> None:
        """`length` is the vessel's length unit, m; `hold_radius` that of a boat without sway force, which keeps no
        heading, else zero."""
        self._limits, self._away = limits, max(AWAY[0] * length, hold_radius)
        self._angle = AWAY[1] if hold_radius == 0 else math.inf
        self.reset()

    def reset(self) -> None:
        """Begin anew."""
        self._track: deque[tuple[float, float, float]] = deque(maxlen=1000)
        self._time = 0.0
        self._turned_to = math.inf
        self._pushed = 0.0

    def step(self, passed: float, command: Array, pose: Array, reference: Array) -> str:
        """The reason to stop after `passed` s under a command, or empty."""
        li = self._limits
        away = math.dist(pose[:2], reference[:2])
        turn = abs(float(wrap(pose[2] - reference[2])))
        # Movement is from where the boat was `no_progress` s ago: one that circles or rocks gets nowhere.
        self._time += passed
        self._track.append((self._time, float(pose[0]), float(pose[1])))
        while self._track[0][0] < self._time - li.no_progress:
            self._track.popleft()
        moved = math.dist(pose[:2], self._track[0][1:]) >= li.progress_distance
        # Away from the reference a boat has to move; only near it is turning all that is left to do.
        turned = away <= self._away and turn <= self._turned_to - AWAY[1]
        if moved or turned:
            self._turned_to = turn
        high = float(np.abs(command).max()) >= li.high_command and (away > self._away or turn > self._angle)
        self._pushed = 0.0 if turned else min(max(0.0, self._pushed + (passed if high else -passed)), li.no_progress)
        if moved or self._pushed < li.no_progress - 1e-6:
            return ""
        return f"{self._pushed:.1f} s of high command, less than {li.progress_distance:g} m of movement"


def _fraction(thruster: Thruster, command: float) -> float:
    """The steady thrust of a command as a fraction of the largest in that direction."""
    bound = thruster.bounds[1] if command > 0 else -thruster.bounds[0]
    return thruster.thrust(command) / bound if bound > 0 else 0.0


def _diagnose(expected: float, measured: float) -> Condition:
    """The condition of a thruster that gives another thrust than expected, both as fractions."""
    share = measured / expected if abs(expected) > TOLERANCE[0] else math.inf
    if abs(measured) <= DEAD * abs(expected) or abs(measured) < TOLERANCE[0] / 2:
        return Condition("dead", 0.0)
    if 0 < share < WEAK:
        return Condition("weak", round(share, 2))
    if WEAK <= share <= 1 + TOLERANCE[1]:
        return Condition()
    return Condition("stuck", 0.0, round(measured, 2))


def _describe(condition: Condition) -> str:
    match condition.kind:
        case "weak":
            return f"weak, {100 * condition.share:.0f} % of its thrust"
        case "stuck":
            return f"stuck at {100 * condition.stuck_at:.0f} % of its thrust"
        case kind:
            return kind


def _weaker(t: Thruster, condition: Condition) -> Thruster:
    low, high = t.bounds
    return replace(t, forward=condition.share * high, reverse=-condition.share * low)
