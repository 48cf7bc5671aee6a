"""One period of the loop on the boat: measurements in, thruster commands out.

    messages -> ClockSync -> Estimator -> Controller -> Guard -> Allocator -> command

The same object steers a simulated boat in simulated time and a real one by the wall clock: its caller passes messages
and the time, and sends the commands. Arguments are in the caller's clock; all other times are in the boat's.

A run begins with station keeping at the first pose of the reference, until the guard has passed commands for `settle`
s, and continues along the reference from `lead_in` s before its start. While the guard stops the boat the reference
waits, and afterwards the controller is reset: its memory is out of date.
"""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np

from anyhull.backend import Array
from anyhull.controller import Controller
from anyhull.errors import InputError
from anyhull.onboard.allocation import Allocation, Allocator
from anyhull.onboard.clock import ClockSync, SequenceCheck
from anyhull.onboard.estimator import Estimate, Estimator
from anyhull.onboard.event_log import EventLog
from anyhull.onboard.guard import Decision, Guard
from anyhull.onboard.messages import MAX_INTEGER, Acceleration, Command, Gyro, Heading, Message, Position, Status
from anyhull.onboard.setup import Setup
from anyhull.reference import PREVIEW, Reference
from anyhull.vessel import Normalized

Phase = Literal["waiting", "holding", "leading in", "under way", "arrived"]

LATENT_MARGIN = 0.25
"""Fraction of the latent's range in training by which it may leave that range on either side."""


class StepRecord(NamedTuple):
    """Inputs and outputs of one period."""

    time: float
    """s, in the boat's clock."""
    phase: Phase
    progress: float
    """Time of the reference, s; negative while leading in."""
    estimate: Estimate
    reference: Array
    """(x, y, psi, u, v, r) of the reference."""
    decision: Decision
    allocation: Allocation
    command: Command
    """The message to send."""
    latent: Array | None
    """The controller's latent where it has one."""
    compute_time: float
    """Of the controller, s."""


class Autopilot:
    """Steers one boat: `on_message` for each message, and `step` once per control period."""

    def __init__(
        self,
        setup: Setup,
        controller: Controller,
        reference: Reference,
        *,
        settle: float = 1.0,
        lead_in: float = 0.0,
        session: int | None = None,
    ) -> None:
        """`session` is the session number of the commands, by default a random one."""
        if not setup.vessel.thrusters:
            hint = "the loop on a boat needs a layout; docs/vessels.md describes it"
            raise InputError(f"{setup.vessel.name}: thrusters is missing: {hint}")
        self.setup, self.controller, self.reference = setup, controller, reference
        self.estimator = Estimator(setup.sensors)
        self.guard = Guard(setup.limits, setup.fence, _latent_range(controller), _dynamics_range(controller))
        self.event_log = EventLog()
        self.received: Counter[str] = Counter()
        """Messages accepted, by type."""
        self.status: Status | None = None
        """The boat's last status."""
        self.phase: Phase = "waiting"
        self.commanding = False
        """Whether the last command was other than zero."""
        self._allocator = Allocator(setup.vessel.thrusters, setup.limits.period)
        self._limits = np.array(setup.vessel.limits)
        self._settle, self._progress = settle, -lead_in
        self._session = random.SystemRandom().randrange(MAX_INTEGER) if session is None else session
        self._clock, self._sequence = ClockSync(), SequenceCheck()
        self._seq = 0
        self._held: float | None = None
        self._last_step: float | None = None
        self._reaction: str = "ramp"
        self._rejected_messages: Counter[str] = Counter()
        self._rejected_measurements: Counter[str] = Counter()
        controller.reset()

    def on_message(self, message: Message, arrival: float) -> None:
        """Process a message that arrived at the caller's time `arrival`."""
        kind = type(message).__name__.lower()
        order = self._sequence.check(message.session, message.seq)
        now = self._clock.at(arrival)
        if order in ("duplicate", "former session"):
            self.event_log.record(now, f"{order} message", kind)
            return
        if order == "restarted":
            # Its clock is another one, and the boat may have moved.
            self.estimator.reset("the boat restarted: ")
            self._clock = ClockSync()
        elif order == "late":
            self.event_log.record(now, "late message", kind)
        self.received[kind] += 1
        if self._clock.update(message.time, arrival):
            self.event_log.record(message.time, "clock set", f"by {message.time - now:.3g} s")
        if order == "restarted":
            self.event_log.record(message.time, "boat restarted", f"session {message.session}")
        match message:
            case Position(time=at, x=x, y=y, std=std):
                self.estimator.position(at, (x, y), std)
            case Heading(time=at, psi=psi, std=std):
                self.estimator.heading(at, psi, std)
            case Gyro(time=at, rate=rate):
                self.estimator.gyro(at, rate)
            case Acceleration(time=at, x=x, y=y):
                self.estimator.acceleration(at, (x, y))
            case Status() if order == "late":
                pass
            case Status():
                if message.stopped and self.phase != "waiting":
                    self.event_log.record(message.time, "watchdog", "the boat has stopped its thrusters")
                self.status = message
            case _:
                self.event_log.record(message.time, "unexpected message", kind)

    def on_rejected(self, rejected: Counter[str], now: float) -> None:
        """Record the messages that the link has rejected, from its running counts."""
        for reason, times in (rejected - self._rejected_messages).items():
            self.event_log.record(self._clock.at(now), "message rejected", reason, times)
        self._rejected_messages = rejected.copy()

    def step(self, now: float) -> StepRecord | None:
        """The command for the coming period at the caller's time `now`; None before the first message."""
        at = self._clock.at(now)
        if not math.isfinite(at):
            return None
        estimate = self.estimator.at(at)
        window = self._window(at)
        began = time.perf_counter()
        requested = self._request(at, estimate, window)
        compute_time = time.perf_counter() - began
        before = self.guard.reaction
        # The estimates of a controller that did not step, or whose commands are not sent, are not of this boat.
        source = self.controller if requested is not None and before in ("run", "hold") else None
        dynamics = getattr(source, "dynamics", None)
        if self.status is not None and self.status.stopped:
            # As long as the watchdog holds the thrusters no command has arrived: each is the first.
            self.guard.thrusters_stopped()
            self._allocator.reset()
        # The guard uses the caller's clock, which is never set; the age of the state is the same in it.
        state = replace(estimate, time=estimate.time + now - at)
        e = None if dynamics is None else np.array(dynamics.e)
        decision = self.guard.step(now, requested, state, _latent(source), e)
        # The guard may also have been rearmed between two steps.
        if decision.reaction == "run" and self._reaction not in ("run", "hold"):
            self.controller.reset()
        self._reaction = decision.reaction
        allocation = self._allocator.allocate(decision.command * self._limits)
        self.commanding = bool(decision.command.any())
        self.event_log.add(*(event._replace(time=at) for event in decision.events))
        self.event_log.counts["stop"] += before in ("run", "hold") and decision.reaction in ("ramp", "handover")
        self._record_estimator(at)
        self.event_log.clear_inactive(at)
        sent, latent = self._command(at, allocation), _latent(self.controller)
        timing = (at, self.phase, self._progress)
        return StepRecord(*timing, estimate, window[0], decision, allocation, sent, latent, compute_time)

    def disengage(self, reason: str) -> None:
        """Ramp down and hand the boat over."""
        if self.guard.reaction != "handover":
            self.guard.disengage(reason)
            self.event_log.add(self.guard.events[-1]._replace(time=self._last_step or 0.0))

    def zero(self, now: float) -> Command | None:
        """The command that sets the thrusters to zero at once; None before the first message."""
        if not math.isfinite(at := self._clock.at(now)):
            return None
        self._allocator.reset()
        return self._command(at, self._allocator.allocate(np.zeros(3)))

    def _command(self, at: float, allocation: Allocation) -> Command:
        self._seq += 1
        thrusters, angles = (tuple(values.tolist()) for values in (allocation.commands, allocation.angles))
        return Command(self._session, self._seq - 1, at, thrusters, angles)

    def _window(self, at: float) -> Array:
        """The reference for the coming period; it advances while the boat runs."""
        passed = 0.0 if self._last_step is None else min(max(at - self._last_step, 0.0), 2 * self.setup.limits.period)
        self._last_step = at
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

    def _request(self, at: float, estimate: Estimate, window: Array) -> Array | None:
        """The controller's command; None without a valid state, or where the controller fails."""
        if not estimate.valid:
            return None
        try:
            return self.controller.step(estimate.pose, estimate.velocity, window)
        except Exception as error:  # after any error of the controller the guard must ramp down
            self.event_log.record(at, "controller failed", f"{type(error).__name__}: {error}"[:100])
            return None

    def _record_estimator(self, at: float) -> None:
        """Record the measurements rejected and the restarts of the estimator since the last period."""
        counts = Counter({f"{stream} {reason}": n for (stream, reason), n in self.estimator.rejected.items()})
        counts.update({f"estimator restarted, {reason}": n for reason, n in self.estimator.restarts.items()})
        for what, times in (counts - self._rejected_measurements).items():
            self.event_log.record(at, what, "", times)
        self._rejected_measurements = counts


def _latent(controller: Controller | None) -> Array | None:
    """The controller's latent; None where it has none."""
    latent = getattr(controller, "latent", None)
    return latent if latent is not None and np.size(latent) else None


def _latent_range(controller: Controller) -> tuple[Array, Array] | None:
    """The latent's range in training, widened by `LATENT_MARGIN`."""
    bounds = getattr(controller, "latent_range", None)
    if bounds is None:
        return None
    margin = LATENT_MARGIN * (bounds[1] - bounds[0])
    return bounds[0] - margin, bounds[1] + margin


def _dynamics_range(controller: Controller) -> tuple[Array, Array] | None:
    """The range of e on which the controller's policy was trained."""
    envelope = getattr(controller, "envelope", None)
    if envelope is None:
        return None
    low, high = np.array([envelope[component] for component in Normalized._fields]).T
    return low, high
