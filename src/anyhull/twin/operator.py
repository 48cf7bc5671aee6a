"""The operator of a simulated boat, who rearms the pilot and, where that does not help, steers the boat by hand."""

from __future__ import annotations

import math

import numpy as np

from anyhull.backend import Array, to_body
from anyhull.onboard.autopilot import Autopilot
from anyhull.twin.twin import Twin

REARM_AFTER, STEER_AFTER = 10.0, 30.0
"""Times after a failsafe or a handover at which the operator rearms, again every second, and steers by hand, s."""

GIVE_UP = 60.0
"""Longest time of steering by hand, s: the boat may be aground."""

NEAR, GAIN, EFFORT = 1.0, 0.3, 0.5
"""Distance at which the boat is back, m; command per metre of distance, 1/m; largest command."""


class Operator:
    """Watches one boat from the shore."""

    def __init__(self, twin: Twin) -> None:
        self.steering = False
        """Whether the operator steers."""
        self.rearmed = self.steered = 0
        """How often the pilot was rearmed, and the boat steered back."""
        self._twin = twin
        self._since: float | None = None
        self._next = 0.0
        columns = [t.column(math.radians(t.angle)) for t in twin.vessel.thrusters]
        self._allocation = np.linalg.pinv(np.stack(columns, axis=1))

    def act(self, time: float, autopilot: Autopilot, home: Array, down: bool) -> None:
        """Act at a time, s, for a boat that belongs at `home` (m, m); `down` is whether its pilot has been killed."""
        if self.steering:
            assert self._since is not None
            self._twin.manual = self._commands(home)
            if math.dist(home, self._twin.state[:2]) < NEAR or time - self._since > GIVE_UP:
                self.steering, self._since = False, None
                self._twin.operator = "auto"  # which rearms the pilot
            return
        if down or autopilot.guard.reaction not in ("failsafe", "handover"):
            self._since = None
            return
        if self._since is None:
            self._since, self._next = time, time + REARM_AFTER
        if time - self._since >= STEER_AFTER:
            self.steering, self._since, self.steered = True, time, self.steered + 1
            self._twin.operator = "manual"
        elif time >= self._next:
            self._next = time + 1.0
            self.rearmed += autopilot.rearm()

    def _commands(self, home: Array) -> tuple[float, ...]:
        """Thruster commands straight to `home`, without turning."""
        x, y, psi, _, _, r = self._twin.state
        ahead, aside = to_body(float(home[0]) - x, float(home[1]) - y, psi)
        command = np.clip([GAIN * ahead, GAIN * aside, -r], -EFFORT, EFFORT)
        thrusts = self._allocation @ (command * self._twin.vessel.limits)
        return tuple(t.command(float(f)) for t, f in zip(self._twin.vessel.thrusters, thrusts, strict=True))
