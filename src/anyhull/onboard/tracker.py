"""The reference as the boat follows it: it starts where the boat is, waits for it, and slows down with it.

The boat first goes to the start of the reference (`anyhull.onboard.joining`), keeps station there for `settle` s, and
continues along the reference from `lead_in` s before its start. The reference

- waits while the guard stops the boat, and goes on from the boat's own speed; a boat that has drifted away comes to
  rest and goes back first;
- slows down when the boat is further than `Limits.slow_distance` away, and stands at `Limits.off_path`;
- has arrived when the boat is at its end.

After a failure the boat keeps station or returns along its track, as `Limits.on_failure` says.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import Literal

import numpy as np

from anyhull.backend import Array, to_inertial, wrap
from anyhull.onboard.joining import Approach, approach, retrace
from anyhull.onboard.limits import Limits
from anyhull.reference import PREVIEW, Hold, Reference
from anyhull.vessel import Vessel

Phase = Literal["waiting", "joining", "holding", "leading in", "under way", "failsafe", "arrived"]

# Lengths, times and speeds are in the units of the vessel's scale.
NEAR = (1.0, 0.8)
"""Distance, and angle, rad, to the start of the reference within which no approach is needed."""

REJOIN = (0.5, 0.5)
"""The same after a stop on the way."""

JOINED, JOIN_TIME = (0.3, 0.2), 10.0
"""The same at the end of an approach; after this time `REJOIN` is enough, or to be within `Vessel.hold_radius`.

A boat without sway force has no heading of its own choice in wind or current: only the distance counts."""

START_TIME, SLOW_TIME = 3.0, 1.0
"""Time in which the reference gets to its full speed, and slows down to rest."""

SLOW = 0.05
"""Speed of a reference, also of its heading, below which it starts from rest by itself."""

TRACK_SPACING, TRACK_POINTS = 2.0, 5000
"""Distance between two points of the track, and their largest number; the oldest are dropped."""

RETRACED = 200
"""Points of the track that a way back takes at once: a plan for all of them would take longer than a period."""


class Tracker:
    """The reference for each period: `step`."""

    def __init__(
        self,
        reference: Reference,
        limits: Limits,
        how: Approach,
        vessel: Vessel,
        *,
        settle: float = 1.0,
        lead_in: float = 0.0,
        resume: float = 0.0,
    ) -> None:
        """`resume` is the time of the reference, s, at which to begin."""
        self.reference, self.how = reference, how
        self.phase: Phase = "waiting"
        self.progress = resume - lead_in
        """Time of the reference, s; negative while leading in."""
        self.track: deque[tuple[float, float]] = deque(maxlen=TRACK_POINTS)
        """Where the boat has been under way."""
        self._limits, self._vessel, self._settle, self._scale = limits, vessel, settle, vessel.scale
        self._held = 0.0
        self._on_track = False
        self._running = False
        # A boat that leads in has the time to catch up.
        self._rate = 1.0 if lead_in > 0 else 0.0
        self._detour: Reference | None = None
        self._detour_time = 0.0
        self._retraced = 0
        self._good: Array | None = None

    @property
    def target(self) -> Array:
        """The pose of the reference at its present time."""
        pose: Array = self.reference.at(self.progress)[:3]
        return pose

    @property
    def overdue(self) -> float:
        """Time since the end of the way to the reference, or back along the track, s; negative on it."""
        return self._detour_time - self._detour.duration if self._detour is not None else -math.inf

    def _away(self, pose: Array) -> float:
        """Distance from a pose to where the detour is, m."""
        assert self._detour is not None
        here = self._detour.at(min(self._detour_time, self._detour.duration))
        return math.dist(pose[:2], here[:2])

    def distance(self, pose: Array) -> float:
        """From a pose to the target, m."""
        return math.dist(pose[:2], self.target[:2])

    def step(self, passed: float, running: bool, failed: bool, pose: Array, velocity: Array) -> Array:
        """The window for the coming period, `passed` s after the last one.

        `running` is whether the boat follows its commands, `failed` whether the failure action is in force.
        """
        began, self._running = running and not self._running, running
        if not running:
            return self._stopped()
        if failed:
            strayed = began and self._detour is not None and self._away(pose) > self._limits.slow_distance
            if self.phase != "failsafe" or strayed:
                self._fail(pose, velocity)
            elif self.overdue > 0 and self._retraced > 0 and self._away(pose) <= self._limits.arrival:
                self._fail(pose, velocity, self._retraced)
            return self._along_detour(passed, pose)
        if self.phase == "failsafe" or began:
            self._join(pose, velocity)
        if self.phase == "joining":
            window = self._along_detour(passed, pose)
            if self._joined(pose):
                self.phase, self._detour, self._held = "holding", None, 0.0
            return window
        if self.phase == "holding":
            self._held += passed
            if not self._on_track and self._held < self._settle - 1e-9:
                return _still(self.target)
            self._on_track, passed = True, 0.0
        return self._along_reference(passed, pose)

    def mark_good(self, pose: Array) -> None:
        """Note a pose without any fault, to which the boat may be brought back."""
        self._good = pose.copy()
        point = (float(pose[0]), float(pose[1]))
        if not self.track or math.dist(self.track[-1], point) >= TRACK_SPACING * self._scale.length:
            self.track.append(point)

    def _near(self, pose: Array, near: Sequence[float]) -> bool:
        turned = self._vessel.under_actuated or abs(wrap(pose[2] - self.target[2])) <= near[1]
        return turned and self.distance(pose) <= near[0] * self._scale.length

    def _joined(self, pose: Array) -> bool:
        """Whether the boat is at the end of its approach."""
        late = self.overdue
        if late < JOIN_TIME * self._scale.time:
            return late >= 0 and self._near(pose, JOINED)
        within = self._vessel.under_actuated and self.distance(pose) <= self._vessel.hold_radius
        return within or self._near(pose, REJOIN)

    def _stopped(self) -> Array:
        if self.phase in ("joining", "holding"):
            self.phase = "waiting"
        return _still(self.target)

    def _join(self, pose: Array, velocity: Array) -> None:
        """Begin, or begin again, from where the boat is."""
        near = self._near(pose, REJOIN if self._on_track else NEAR)
        if self._on_track:
            self._rate = self._pace(pose, velocity) if near else 0.0
        elif self.progress >= 0 and np.abs(self._scale.velocity(self.reference.at(self.progress)[3:])).max() < SLOW:
            self._rate = 1.0
        if near:
            self.phase, self._held = "leading in" if self._on_track else "holding", 0.0
        else:
            self.phase = "joining"
            self._detour, self._detour_time = (
                approach(
                    pose.tolist(), self.target.tolist(), self.how, vessel=self._vessel, velocity=velocity.tolist()
                ),
                0.0,
            )

    def _pace(self, pose: Array, velocity: Array) -> float:
        """The boat's speed along the reference, as a fraction of the reference's."""
        _, _, psi, u, v, _ = self.reference.at(self.progress)
        r_x, r_y = to_inertial(u, v, psi)
        v_x, v_y = to_inertial(velocity[0], velocity[1], pose[2])
        square = r_x * r_x + r_y * r_y
        return (
            min(max(float(v_x * r_x + v_y * r_y) / square, 0.0), 1.0)
            if square > (SLOW * self._scale.speed) ** 2
            else 0.0
        )

    def _fail(self, pose: Array, velocity: Array, left: int | None = None) -> None:
        """Begin the failure action: station keeping at the last good pose, if it is near, or the way back.

        `left` is how many points of the track are left to go back along.
        """
        good, self._retraced = self._good, 0
        if self._limits.on_failure == "return":
            here, track = (float(pose[0]), float(pose[1])), list(self.track)
            if left is None:
                # Of points equally near, the last: a track may cross itself.
                left = 1 + min(range(len(track)), key=lambda i: (math.dist(track[i], here), -i), default=-1)
            self._retraced = max(left - RETRACED, 0)
            back = track[self._retraced : left]
            self._detour = retrace(pose.tolist(), back, self.how, vessel=self._vessel, velocity=velocity.tolist())
        else:
            near = good is not None and math.dist(good[:2], pose[:2]) < self._limits.off_path
            x, y, psi = (good if near and good is not None else pose).tolist()
            self._detour = Hold((x, y, psi), math.inf)
        self.phase, self._detour_time = "failsafe", 0.0

    def _along_detour(self, passed: float, pose: Array) -> Array:
        assert self._detour is not None
        rate = self._wanted_rate(self._away(pose))
        self._detour_time += rate * passed
        if self._detour_time >= self._detour.duration:
            return _still(self._detour.at(self._detour.duration)[:3])
        return self._window(self._detour, self._detour_time, rate)

    def _wanted_rate(self, away: float) -> float:
        """The speed of time of a reference that is `away` m from the boat."""
        li = self._limits
        return min(max((li.off_path - away) / (li.off_path - li.slow_distance), 0.0), 1.0)

    def _along_reference(self, passed: float, pose: Array) -> Array:
        li, end = self._limits, self.reference.duration
        change = self._wanted_rate(self.distance(pose)) - self._rate
        share = passed / self._scale.time
        self._rate += min(change, share / START_TIME) if change > 0 else max(change, -share / SLOW_TIME)
        self.progress = min(self.progress + self._rate * passed, end)
        if self.progress >= end:
            if self.distance(pose) > li.arrival:
                return _still(self.target)
            self.phase = "arrived"
        else:
            self.phase = "under way" if self.progress > -1e-9 else "leading in"
        return self._window(self.reference, self.progress, self._rate)

    def _window(self, reference: Reference, time: float, rate: float) -> Array:
        """The window of a reference at a time, s, whose time runs at `rate`."""
        window = reference.window(time, rate * self._scale.period)
        if rate != 1.0:
            window[:, 3:] *= rate
        return window


def _still(pose: Array) -> Array:
    """Station keeping at a pose."""
    return np.tile(np.append(pose, np.zeros(3)), (PREVIEW + 1, 1))
