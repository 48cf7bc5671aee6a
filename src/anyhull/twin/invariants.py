"""What must hold under any fault, judged by the true state of the boat and by its control board.

- Every command is in [-1, 1], and within the guard's step of the previous one or of zero.
- After a stop by the boat's watchdog the first command is within that step of zero.
- The thrusters are at zero when no command was accepted for the watchdog's timeout.
- The boat is nowhere further outside the fence than its stopping distance, and the way that it drifts there with the
  thrusters at zero or in the operator's hands: nobody can hold a boat whose state is unknown. A lasting error of the
  fixes moves the fence with it, since no pilot can tell it from motion.
- No more than `STALL_TIME` of high command without progress, except by a boat that is within `STATION` of its
  reference: against a wind, a current or a stuck thruster, keeping station may take all of its force. No pilot can tell
  that from a boat aground where it should be. The longest such time is measured, `longest_station`.
- The boat runs again within `RECOVERY_TIME` of the end of a fault, except after a failsafe or a handover by a rule of
  the guard. Then the operator must be able to rearm it within `REARM_TIME`.
"""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from anyhull.backend import Array, wrap
from anyhull.onboard.autopilot import Autopilot
from anyhull.onboard.fence import Fence
from anyhull.onboard.limits import Limits
from anyhull.onboard.step_record import StepRecord
from anyhull.twin.fault_schedule import Schedule
from anyhull.twin.twin import TICK, Twin

TOP_SPEED = 1.0
"""Speed, m/s, from which the boat may have to stop at the fence: above that of the boats in the tests."""

STALL_TIME = 10.0
"""Longest time of high command without progress, s."""

HIGH = 0.6
"""Command on an axis that is high."""

PROGRESS = 0.3
"""Movement within `STALL_TIME` that is progress, m, unless the boat moves away from its reference."""

AWAY = (1.0, 6.0)
"""Growth of the distance to the reference within `STALL_TIME`, m, and the distance, m, beyond which it counts."""

STATION = (0.5, 0.3)
"""Distance, m, and angle, rad, to the reference within which a boat needs no progress; without sway force, within
`Vessel.hold_radius` at any angle."""

RECOVERY_TIME = 15.0
"""Time in which the boat must run again after a fault, s."""

REARM_TIME = 60.0
"""Time without an active fault, in all, in which the operator must be able to rearm the boat, s."""


class Invariants:
    """The checks of one run; `violations` are lines with the time."""

    def __init__(self, twin: Twin, limits: Limits, fence: Fence | None, schedule: Schedule) -> None:
        self.violations: list[str] = []
        self.farthest_outside = 0.0
        """Largest distance outside the fence, m."""
        self.farthest_adrift = 0.0
        """Longest way outside the fence with the thrusters at zero, m."""
        self.longest_stop = 0.0
        """Longest time without commands while no fault was active and no rule had stopped the boat, s."""
        self.accepted_at = -math.inf
        """Time of the last command that the boat accepted, s."""
        self._twin, self._limits, self._fence, self._schedule = twin, limits, fence, schedule
        self._last_command = np.zeros(3)
        self._frames = [(0.0, 0.0)]
        self._adrift, self._outside = 0.0, False
        self._pushes: deque[tuple[float, bool, float, float, float]] = deque(
            maxlen=round(STALL_TIME / limits.period) + 5
        )
        self.longest_station = 0.0
        """Longest time of high command without progress by a boat within `STATION` of its reference, s."""
        self._on_station, self._anchor = 0.0, (math.inf, math.inf)
        self._offset = (0.0, 0.0)
        self._ran_at, self._by_rule = 0.0, False
        self._quiet, self._reported = 0.0, False

    def violate(self, time: float, what: str) -> None:
        """Add a violation, with the faults of the time before."""
        faults = ", ".join(self._schedule.recent(time - RECOVERY_TIME))
        self.violations.append(f"{time:.2f} s: {what} [{faults}]")

    def pilot_started(self) -> None:
        """Expect commands from zero."""
        self._last_command = np.zeros(3)

    def check_command(self, time: float, command: Array) -> None:
        """Check a body command before it is sent."""
        limit = self._limits.step + 1e-9
        if not np.isfinite(command).all() or np.abs(command).max() > 1:
            self.violate(time, f"body command {command}")
        if np.abs(command - self._last_command).max() > limit and np.abs(command).max() > limit:
            self.violate(time, f"command moved from {self._last_command} to {command}")
        self._last_command = command

    def command_accepted(self, time: float, command: Array, known_stopped: bool) -> None:
        """Check a body command that the boat has accepted; `known_stopped`: after a stop that the pilot knew of."""
        if known_stopped and self._twin.firmware.stopped and np.abs(command).max() > self._limits.step + 1e-9:
            self.violate(time, f"command {command} after a stop")
        self.accepted_at = time

    def check_watchdog(self, time: float) -> None:
        """Check the thrusters' commands after a tick."""
        board = self._twin.firmware
        silent = time - self.accepted_at
        if silent > board.config.watchdog_timeout + 2 * TICK and any(board.commands):
            self.violate(time, f"thrusters at {board.commands} without a command for {silent:.2f} s")

    def check_fence(self, time: float, offset: tuple[float, float], stopping_time: float) -> None:
        """Check the true position in the frame of the fixes, which is `offset` (m) away, once a period."""
        if self._fence is None:
            return
        x, y, _, u, v, _ = self._twin.state
        if math.dist(offset, self._frames[-1]) > 0.1:
            self._frames.append(offset)  # a jump: the boat needs time to find itself outside
        self._frames[-1] = offset
        outside = [-self._fence.margin(x + d_x, y + d_y) for d_x, d_y in self._frames]
        if outside[-1] <= 0:
            self._frames = [offset]
        if (least := min(outside)) <= 0:
            self._adrift, self._outside = 0.0, False
            return
        if self._twin.operator != "auto" or not any(self._twin.commands):
            self._adrift += math.hypot(u, v) * self._limits.period
        self.farthest_outside = max(self.farthest_outside, least)
        self.farthest_adrift = max(self.farthest_adrift, self._adrift)
        if least > stopping_time * TOP_SPEED + self._adrift and not self._outside:
            self._outside = True
            self.violate(time, f"{least:.2f} m outside the fence, {self._adrift:.2f} m of that adrift")

    def check_progress(self, time: float, step: StepRecord, offset: tuple[float, float]) -> None:
        """Check the true movement under the commands in force, once a period."""
        x, y = (true + error for true, error in zip(self._twin.state[:2], offset, strict=True))
        pushes, auto = self._pushes, self._twin.operator == "auto"
        jumped = math.dist(offset, self._offset) > 0.1  # to the pilot that is a movement
        self._offset = offset
        if pushes and (jumped or time - pushes[-1][0] > 5 * self._limits.period):
            pushes.clear()
        away = math.dist((x, y), step.reference[:2])
        turned = abs(wrap(float(step.estimate.pose[2] - step.reference[2])))
        high = bool(np.abs(step.decision.command).max() >= HIGH and auto and any(self._twin.commands))
        vessel = self._twin.vessel
        circle = vessel.under_actuated and away <= vessel.hold_radius
        on_station = circle or (away <= STATION[0] and turned <= STATION[1])
        self._on_station = self._on_station + self._limits.period if high and on_station and self._still(x, y) else 0.0
        self.longest_station = max(self.longest_station, self._on_station)
        pushes.append((time, high and not on_station, x, y, away))
        if len(pushes) < (pushes.maxlen or 0) or sum(push[1] for push in pushes) < 0.95 * len(pushes):
            return
        moved = max(math.dist((x, y), push[2:4]) for push in pushes)
        before, now = pushes[0][4], pushes[-1][4]
        if moved < PROGRESS or (now > before + AWAY[0] and now > AWAY[1]):
            where = f"{moved:.2f} m of movement, {before:.2f} to {now:.2f} m from the reference"
            self.violate(time, f"{len(pushes) * self._limits.period:.1f} s of high command with {where}")
            pushes.clear()

    def _still(self, x: float, y: float) -> bool:
        """Whether the boat is within `PROGRESS` of where it was when it last was not."""
        if math.dist((x, y), self._anchor) < PROGRESS:
            return True
        self._anchor = (x, y)
        return False

    def check_running(self, time: float, autopilot: Autopilot) -> None:
        """Check once a period that the boat runs again after the last fault."""
        last_end = self._schedule.last_end
        by_rule = autopilot.guard.reaction in ("failsafe", "handover") or self._twin.operator != "auto"
        self._by_rule = self._by_rule or by_rule
        began = max(last_end, self._ran_at)
        if autopilot.guard.reaction == "run" and time - self.accepted_at < 1.0:
            if not self._by_rule:
                self.longest_stop = max(self.longest_stop, time - began)
            self._ran_at, self._by_rule, self._quiet, self._reported = time, False, 0.0, False
            return
        if self._schedule.active or self._reported:
            return
        self._quiet += self._limits.period
        waited, limit = (self._quiet, REARM_TIME) if by_rule else (time - began, RECOVERY_TIME)
        if waited > limit + 1e-6:
            self._reported = True
            self.violate(time, f"not running {limit:g} s after the last fault: {_state(autopilot)}")


def _state(autopilot: Autopilot) -> str:
    events = autopilot.guard.events
    last = next((event.detail for event in reversed(events) if event.what in ("reaction", "arming")), "")
    return f"{autopilot.guard.reaction}, {autopilot.phase}; {last}"[:200]
