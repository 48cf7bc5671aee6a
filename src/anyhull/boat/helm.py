"""The loop on the boat, one period of it: measurements in, thruster commands out.

    messages -> Clock -> Estimator -> Controller -> Guard -> Allocator -> command

The same object steers a simulated boat in simulated time and a real one by the wall clock: its caller says what has
been heard and what time it is, and sends what it gives. Times are the caller's own; all else is in the boat's clock.

A voyage begins with station keeping at the first pose of the reference, until the guard has let commands pass for
`settle` s, and goes on along the reference from `lead` s before its start. While the guard stops the boat the reference
waits, and when the boat runs again the controller starts afresh: what it remembers is of before.
"""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyhull.boat.allocation import Allocation, Allocator
from anyhull.boat.clock import Clock, Sequence
from anyhull.boat.estimator import Estimate, Estimator
from anyhull.boat.guard import Decision, Guard
from anyhull.boat.messages import COUNT, Acceleration, Command, Gyro, Heading, Message, Position, Status
from anyhull.boat.notes import Notes
from anyhull.boat.setup import Setup
from anyhull.controller import Controller
from anyhull.errors import InputError
from anyhull.reference import PREVIEW, Reference

Array = NDArray[np.float64]
Phase = Literal["waiting", "holding", "leading in", "under way", "arrived"]


MARGIN = 0.25
"""How far outside the range of training a latent may be, as a share of its width."""


class Beat(NamedTuple):
    """What one period saw and did."""

    time: float
    """s, in the boat's clock."""
    phase: Phase
    progress: float
    """Time of the reference, s; negative while leading in."""
    estimate: Estimate
    reference: Array
    """Where the boat should be, (x, y, psi, u, v, r)."""
    decision: Decision
    allocation: Allocation
    command: Command
    """What to send."""
    effort: float
    """Time that the controller took, s."""


class Helm:
    """Steers one boat; `hear` what comes in, and `step` once per control period."""

    def __init__(
        self,
        setup: Setup,
        controller: Controller,
        reference: Reference,
        *,
        settle: float = 1.0,
        lead: float = 0.0,
        session: int | None = None,
    ) -> None:
        """`session` is the number under which commands are sent, by default a random one."""
        if not setup.vessel.thrusters:
            hint = "the loop on a boat needs a layout; docs/vessels.md describes it"
            raise InputError(f"{setup.vessel.name}: thrusters is missing: {hint}")
        self.setup, self.controller, self.reference = setup, controller, reference
        self.estimator = Estimator(setup.sensors)
        self.guard = Guard(setup.limits, setup.fence, _widened(getattr(controller, "latent_range", None)))
        self.notes = Notes()
        self.heard: Counter[str] = Counter()
        """Messages taken, by type."""
        self.status: Status | None = None
        """What the boat said last of itself."""
        self.phase: Phase = "waiting"
        self.commanding = False
        """Whether the last command was for any force."""
        self._allocator = Allocator(setup.vessel.thrusters, setup.limits.period)
        self._limits = np.array(setup.vessel.limits)
        self._settle, self._progress = settle, -lead
        self._session = random.SystemRandom().randrange(COUNT) if session is None else session
        self._clock, self._order = Clock(), Sequence()
        self._seq = 0
        self._held: float | None = None
        self._before: float | None = None
        self._told: Counter[str] = Counter()
        self._rejected: Counter[str] = Counter()
        controller.reset()

    def hear(self, message: Message, arrival: float) -> None:
        """Take a message that came in at one's own time `arrival`."""
        kind = type(message).__name__.lower()
        order = self._order.check(message.session, message.seq)
        now = self._clock.at(arrival)
        if order in ("duplicate", "former session"):
            self.notes.note(now, f"{order} message", kind)
            return
        if order == "restarted":
            # Another clock and perhaps another place: nothing of before holds.
            self.estimator.reset("the boat started again: ")
            self._clock = Clock()
        elif order == "late":
            self.notes.note(now, "late message", kind)
        self.heard[kind] += 1
        if self._clock.hear(message.time, arrival):
            self.notes.note(message.time, "clock set", f"by {message.time - now:.3g} s")
        if order == "restarted":
            self.notes.note(message.time, "boat restarted", f"session {message.session}")
        match message:
            case Position(time=at, x=x, y=y, std=std):
                self.estimator.position(at, (x, y), std)
            case Heading(time=at, psi=psi, std=std):
                self.estimator.heading(at, psi, std)
            case Gyro(time=at, rate=rate):
                self.estimator.gyro(at, rate)
            case Acceleration(time=at, x=x, y=y):
                self.estimator.acceleration(at, (x, y))
            case Status() if order != "late":
                if message.stopped and self.phase != "waiting":
                    self.notes.note(message.time, "watchdog", "the boat has stopped its thrusters")
                self.status = message
            case Status():
                pass
            case _:
                self.notes.note(message.time, "strange message", kind)

    def refuse(self, refused: Counter[str], now: float) -> None:
        """Note what the link has not taken, by its running counts."""
        for reason, times in (refused - self._told).items():
            self.notes.note(self._clock.at(now), "refused", reason, times)
        self._told = refused.copy()

    def step(self, now: float) -> Beat | None:
        """The command for the coming period at one's own time `now`; nothing before the boat was heard of."""
        at = self._clock.at(now)
        if not math.isfinite(at):
            return None
        estimate = self.estimator.at(at)
        window = self._window(at)
        began = time.perf_counter()
        asked = self._ask(at, estimate, window)
        effort = time.perf_counter() - began
        before = self.guard.reaction
        # A controller that was not asked, or whose commands do not go out, has nothing to say of the boat.
        told = self.controller if asked is not None and before != "ramp" else None
        latent, read = (getattr(told, name, None) for name in ("latent", "dynamics"))
        dynamics = None if read is None else np.array(read.e)
        if self.status is not None and self.status.stopped:
            # As long as it says so, whatever was sent did not arrive: each command is the first one.
            self.guard.stopped()
            self._allocator.reset()
        # The guard goes by one's own clock, which nobody sets, and is told of a state that is as old by that.
        seen = replace(estimate, time=estimate.time + now - at)
        decision = self.guard.step(now, asked, seen, _some(latent), _some(dynamics))
        if decision.reaction == "run" and before not in ("run", "hold"):
            self.controller.reset()
        allocation = self._allocator.allocate(decision.command * self._limits)
        self.commanding = bool(decision.command.any())
        self.notes.add(*(event._replace(time=at) for event in decision.events))
        self.notes.counts["stop"] += before in ("run", "hold") and decision.reaction in ("ramp", "hand over")
        self._note_estimator(at)
        self.notes.settle(at)
        return Beat(
            at, self.phase, self._progress, estimate, window[0], decision, allocation, self._say(at, allocation), effort
        )

    def relieve(self, reason: str) -> None:
        """Ramp down, and give no more commands."""
        if self.guard.reaction != "hand over":
            self.guard.relieve(reason)
            self.notes.add(self.guard.events[-1]._replace(time=self._before or 0.0))

    def zero(self, now: float) -> Command | None:
        """The command that stops the thrusters where they stand; nothing before the boat was heard of."""
        if not math.isfinite(at := self._clock.at(now)):
            return None
        self._allocator.reset()
        return self._say(at, self._allocator.allocate(np.zeros(3)))

    def _say(self, at: float, allocation: Allocation) -> Command:
        self._seq += 1
        thrusters, angles = (tuple(values.tolist()) for values in (allocation.commands, allocation.angles))
        return Command(self._session, self._seq - 1, at, thrusters, angles)

    def _window(self, at: float) -> Array:
        """The reference for the coming period, which moves on while the boat runs."""
        passed = 0.0 if self._before is None else min(max(at - self._before, 0.0), 2 * self.setup.limits.period)
        self._before = at
        running = self.guard.reaction in ("run", "hold")
        if self.phase in ("waiting", "holding"):
            self._held = (self._held or 0.0) + passed if running else None
            self.phase = "waiting" if self._held is None else "holding"
            if self._held is not None and self._held >= self._settle - 1e-9:
                self.phase = "leading in"
        elif running:
            self._progress += passed
        if self.phase in ("leading in", "under way", "arrived"):
            end = self.reference.duration
            self.phase = "arrived" if self._progress >= end else "under way" if self._progress > -1e-9 else "leading in"
            return self.reference.window(self._progress)
        still = np.append(self.reference.at(self._progress)[:3], np.zeros(3))
        return np.tile(still, (PREVIEW + 1, 1))

    def _ask(self, at: float, estimate: Estimate, window: Array) -> Array | None:
        """The controller's command, or nothing where there is no state or it has none to give."""
        if not (np.isfinite(estimate.pose).all() and np.isfinite(estimate.velocity).all()):
            return None
        try:
            return self.controller.step(estimate.pose, estimate.velocity, window)
        except Exception as error:  # whatever a controller does wrong, the boat must be stopped in order
            self.notes.note(at, "controller failed", f"{type(error).__name__}: {error}"[:100])
            return None

    def _note_estimator(self, at: float) -> None:
        """Enter what the estimator has rejected since the last period, and whether it started anew."""
        counts = Counter({f"{stream} {reason}": n for (stream, reason), n in self.estimator.rejected.items()})
        counts.update({f"estimator restarted, {reason}": n for reason, n in self.estimator.restarts.items()})
        for what, times in (counts - self._rejected).items():
            self.notes.note(at, what, "", times)
        self._rejected = counts


def _widened(bounds: tuple[Array, Array] | None) -> tuple[Array, Array] | None:
    """What was met in training, and on either side `MARGIN` of its width more."""
    if bounds is None:
        return None
    more = MARGIN * (bounds[1] - bounds[0])
    return bounds[0] - more, bounds[1] + more


def _some(value: Array | None) -> Array | None:
    """A latent, unless the controller has none."""
    return value if value is not None and np.size(value) else None
