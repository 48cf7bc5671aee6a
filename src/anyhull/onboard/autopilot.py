"""One period of the loop on the boat: measurements in, thruster commands out.

    messages -> Vehicle (clock, estimator) -> Tracker -> Controller -> Guard -> Allocator -> command

The same object steers a simulated boat in simulated time and a real one by the wall clock: its caller passes messages
and the time, and sends the commands. Arguments are in the caller's clock; all other times are in the boat's.

`Tracker` leads the boat to the reference and along it. While the guard stops the boat the reference waits, and
afterwards the controller is reset: its memory is out of date. Before the first command all checks of the guard must
have passed, and those of the caller (`checks`).
"""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from anyhull.backend import Array
from anyhull.controller import Controller, Informed
from anyhull.errors import InputError
from anyhull.onboard.allocation import Allocation
from anyhull.onboard.checks import KNOWN, Fault, dynamics_range, latent_range
from anyhull.onboard.estimator import Estimate, Estimator
from anyhull.onboard.event_log import EventLog
from anyhull.onboard.fence import around, stopping_time
from anyhull.onboard.guard import Guard
from anyhull.onboard.joining import Approach
from anyhull.onboard.messages import MAX_INTEGER, Command, Message, Status
from anyhull.onboard.monitors import ProgressMonitor
from anyhull.onboard.odometry import OdometryMonitor
from anyhull.onboard.process_model import ProcessModel
from anyhull.onboard.setup import Setup
from anyhull.onboard.step_record import StepRecord
from anyhull.onboard.tracker import Phase, Tracker
from anyhull.onboard.vehicle import Vehicle
from anyhull.reference import Reference
from anyhull.scale import PERIOD

FENCE_LENGTHS = 5.0
"""Least distance of the default fence from the mission, in lengths of the boat."""

JOIN_LIMIT = 60.0
"""Time after an approach within which the boat must be at the reference, in the vessel's time unit."""

REPEATED = 1.5 * PERIOD
"""Control period above which commands are repeated, s: a boat's watchdog takes a slower pilot for one that is lost."""

RUNNING = ("run", "hold", "failsafe")
"""Reactions of the guard in which the boat follows its commands."""


class Autopilot:
    """Steers one boat: `on_message` for each message, and `step` once per control period."""

    def __init__(
        self,
        setup: Setup,
        controller: Controller,
        reference: Reference,
        *,
        settle: float | None = None,
        lead_in: float = 0.0,
        approach: Approach | None = None,
        resume: float = 0.0,
        checks: Sequence[Callable[[], str]] = (),
        default_fence: bool = False,
        session: int | None = None,
    ) -> None:
        """`session` is the session number of the commands, by default a random one.

        `settle` is the time of station keeping at the start of the reference, s, by default one time unit of the
        vessel. `resume` is the time of the reference, s, at which to begin. Each of `checks` returns why the boat must
        not start yet, or an empty text. `default_fence` puts a fence around the reference, and the way to it, where
        the boat's file has none.
        """
        vessel, limits = setup.vessel, setup.limits
        if not vessel.thrusters and setup.link.command == "thrusters":
            hint = "the loop on a boat needs a layout; docs/vessels.md describes it"
            raise InputError(f"{vessel.name}: thrusters is missing: {hint}")
        self.setup, self.controller, self.reference = setup, controller, reference
        self.event_log = EventLog()
        self.vehicle = Vehicle(setup, self.event_log)
        ranges = latent_range(controller), dynamics_range(controller)
        self.guard = Guard(limits, setup.fence, *ranges, stopping_time(vessel, limits))
        self.tracker = Tracker(
            reference,
            limits,
            approach or Approach().scaled(vessel.scale),
            vessel,
            settle=vessel.scale.time if settle is None else settle,
            lead_in=lead_in,
            resume=resume,
        )
        self.refused = ""
        """Why the boat cannot start at all, or empty: it is too far from the reference."""
        self.commanding = False
        """Whether the last command was other than zero."""
        radius = max(limits.fence_margin, FENCE_LENGTHS * (vessel.length or 0.0))
        circle = vessel.hold_radius if vessel.under_actuated else 0.0
        self._corridor = around(reference, radius) if default_fence and setup.fence is None else None
        self._checks, self._progress_monitor = checks, ProgressMonitor(limits, vessel.scale.length, circle)
        self._limits = np.array(vessel.limits)
        self._model = ProcessModel(limits.period, vessel.under_actuated)
        self._session = random.SystemRandom().randrange(MAX_INTEGER) if session is None else session
        self._seq = 0
        self._last_step: float | None = None
        self._last_now: float | None = None
        self._sent = np.zeros(3)
        self._last_command: Command | None = None
        self._reaction: str = "ramp"
        self._rejected_messages: Counter[str] = Counter()
        self._ended = False
        self._estimate: Estimate | None = None
        self._restarts = 0
        controller.reset()

    @property
    def phase(self) -> Phase:
        """What the boat is doing."""
        return self.tracker.phase

    @property
    def estimator(self) -> Estimator | OdometryMonitor:
        """The source of the boat's state."""
        return self.vehicle.estimator

    @property
    def status(self) -> Status | None:
        """The boat's last status."""
        return self.vehicle.status

    @property
    def received(self) -> Counter[str]:
        """Messages accepted, by type."""
        return self.vehicle.received

    def on_message(self, message: Message, arrival: float) -> None:
        """Process a message that arrived at the caller's time `arrival`; no message raises an error."""
        self.vehicle.on_message(message, arrival)

    def on_rejected(self, rejected: Counter[str], now: float) -> None:
        """Record the messages that the link has rejected, from its running counts."""
        at = self.vehicle.clock.at(now)
        for reason, times in (rejected - self._rejected_messages).items():
            # Before the first message the boat's time is not known.
            self.event_log.record(at if math.isfinite(at) else 0.0, f"message rejected: {reason}", "", times)
        self._rejected_messages = rejected.copy()

    def step(self, now: float) -> StepRecord | None:
        """The command for the coming period at the caller's time `now`; None before the first message."""
        at = self.vehicle.clock.at(now)
        if not math.isfinite(at):
            return None
        vehicle = self.vehicle
        self._estimate = estimate = vehicle.estimator.at(at)
        before = self.guard.reaction
        if before in RUNNING and self._reaction not in RUNNING:  # rearmed since the last step
            self._start_again(before)
        window = self._window(at, estimate, before)
        began = time.perf_counter()
        requested = self._request(at, estimate, window)
        compute_time = time.perf_counter() - began
        if requested is not None and before not in RUNNING:
            # The controller saw a boat that does not follow it. If the guard lets commands pass, the first repeats the
            # last one, and the next is of a controller that has been reset.
            requested = self._sent
        # The estimates of a controller that did not step, or whose commands are not sent, are not of this boat.
        source = self.controller if requested is not None and before in RUNNING else None
        dynamics = getattr(source, "dynamics", None)
        stopped = vehicle.status is not None and vehicle.status.stopped
        if stopped:
            # As long as the watchdog holds the thrusters no command has arrived: each is the first.
            self.guard.thrusters_stopped()
            vehicle.allocator.reset()
        # The guard uses the caller's clock, which is never set; the age of the state is the same in it.
        state = replace(estimate, time=estimate.time + now - at)
        e, spread = (None, None) if dynamics is None else (np.array(dynamics.e), np.array(dynamics.spread))
        conditions = self._conditions(now, estimate, window[0])
        # An operator's command is followed so that the return has no bump, which a boat that never ran does not have.
        manual = vehicle.manual(now) if self.guard.has_run else None
        decision = self.guard.step(now, requested, state, _latent(source), e, spread, conditions, manual)
        if now < vehicle.rearm_until and self.rearm():
            vehicle.rearm_until = -math.inf
        if decision.reaction in RUNNING and self._reaction not in RUNNING:
            self._start_again(decision.reaction)
        elif decision.reaction == "run" and not decision.reason and estimate.valid:
            self.tracker.mark_good(estimate.pose)
        self._reaction, self._sent = decision.reaction, decision.command
        followed, known = (np.zeros(3) if stopped else decision.command), (dynamics if estimate.valid else None)
        vehicle.expect(at, self._model.acceleration(followed, estimate.state, known))
        # The rest balances a stuck thruster only as long as the boat is steered.
        balanced = vehicle.stuck_force if decision.reaction in RUNNING else 0.0
        allocation = vehicle.allocator.allocate(decision.command * self._limits - balanced)
        self.commanding = bool(decision.command.any() or allocation.commands.any())
        self.event_log.add(*(event._replace(time=at) for event in decision.events))
        self.event_log.counts["stop"] += before in RUNNING and decision.reaction in ("ramp", "handover")
        vehicle.record_estimator(at)
        self.event_log.clear_inactive(at)
        engaged = decision.reaction != "handover" or self.commanding
        sent, latent = self._command(at, allocation, decision.command, engaged), _latent(self.controller)
        vehicle.echo.sent(sent, now)
        return StepRecord(
            at,
            self.phase,
            self.tracker.progress,
            estimate,
            window[0],
            decision,
            allocation,
            sent,
            latent,
            compute_time,
            dynamics=getattr(dynamics, "components", None),
            sensors=vehicle.take_measurements(),
        )

    @property
    def repeat_after(self) -> float:
        """Time after which to `repeat` a command within a control period, s; inf for a period short enough."""
        return PERIOD if self.setup.vessel.scale.period > REPEATED else math.inf

    def repeat(self, now: float) -> Command | None:
        """The last command once more at the caller's time `now`, for the boat's watchdog; None before the first."""
        if self._last_command is None or not math.isfinite(at := self.vehicle.clock.at(now)):
            return None
        self._seq += 1
        self._last_command = replace(self._last_command, seq=self._seq - 1, time=at)
        self.vehicle.echo.sent(self._last_command, now)
        return self._last_command

    def rearm(self) -> bool:
        """Take the boat back after a failsafe or a handover, with all thrusters; whether no fault was in the way."""
        if self.guard.reaction not in ("failsafe", "handover"):
            return self.guard.reaction == "run"
        # Failed thrusters are no fault in the way: those that have not been repaired are found again.
        if self._ended or self._out_of_reach() or not self.guard.rearm(besides="thruster"):
            return False
        self.event_log.add(self.guard.events[-1]._replace(time=self._last_step or 0.0))
        self.vehicle.take_all_thrusters()
        return True

    def disengage(self, reason: str) -> None:
        """Ramp down and hand the boat over for good."""
        self._ended = True
        if self.guard.reaction != "handover":
            self.guard.disengage(reason)
            self.event_log.add(self.guard.events[-1]._replace(time=self._last_step or 0.0))

    def zero(self, now: float) -> Command | None:
        """The command that sets the thrusters to zero at once; None before the first message."""
        if not math.isfinite(at := self.vehicle.clock.at(now)):
            return None
        self.vehicle.allocator.reset()
        return self._command(at, self.vehicle.allocator.allocate(np.zeros(3)), np.zeros(3), False)

    def _start_again(self, reaction: str) -> None:
        """Forget what was before the boat followed its commands."""
        self._reaction = reaction
        self.controller.reset()
        self._progress_monitor.reset()

    def _command(self, at: float, allocation: Allocation, wrench: Array, engaged: bool) -> Command:
        self._seq += 1
        thrusters, angles = (tuple(values.tolist()) for values in (allocation.commands, allocation.angles))
        surge, sway, yaw = wrench.tolist()
        command = Command(self._session, self._seq - 1, at, thrusters, angles, (surge, sway, yaw), engaged)
        self._last_command = command
        return command

    def _window(self, at: float, estimate: Estimate, reaction: str) -> Array:
        """The reference for the coming period."""
        passed = 0.0 if self._last_step is None else min(max(at - self._last_step, 0.0), 2 * self.setup.limits.period)
        self._last_step = at
        if self._corridor is not None and estimate.health == "ok":
            x, y = self.tracker.target[:2].tolist()
            self.guard.fence = self._corridor.with_way((float(estimate.pose[0]), float(estimate.pose[1])), (x, y))
            self._corridor = None
        running = reaction in RUNNING and estimate.valid
        return self.tracker.step(passed, running, reaction == "failsafe", estimate.pose, estimate.velocity)

    def _conditions(self, now: float, estimate: Estimate, reference: Array) -> dict[Fault, str]:
        """The faults that the guard cannot find by itself."""
        found = self.vehicle.faults(now)
        passed = 0.0 if self._last_now is None else min(max(now - self._last_now, 0.0), 2 * self.setup.limits.period)
        self._last_now = now
        if not estimate.valid:
            return found
        limits, away = self.setup.limits, math.dist(estimate.pose[:2], reference[:2])
        if self.guard.reaction in RUNNING:
            known = estimate.health in KNOWN  # else the distance means nothing
            if known and self.phase != "failsafe" and away > limits.off_path:
                found["off_path"] = f"{away:.1f} m from the reference"
            if stalled := self._progress_monitor.step(passed, self._sent, estimate.pose, reference):
                found["no_progress"] = stalled
            elif self.phase == "joining" and self.tracker.overdue > (most := JOIN_LIMIT * self.setup.vessel.scale.time):
                found["no_progress"] = f"not at the reference {most:g} s after the approach"
        elif not self.guard.has_run or self.guard.reaction == "handover":
            failed = self._check_arming(estimate) if estimate.health == "ok" else []
            found |= {"arming": "; ".join(failed)} if failed else {}
        return found

    def _out_of_reach(self) -> bool:
        """Whether the boat cannot go back to its reference from where a failsafe has brought it."""
        failed = self._check_arming(self._estimate) if self._estimate and self._estimate.health == "ok" else []
        if failed:
            self.event_log.record(self._last_step or 0.0, "not rearmed", "; ".join(failed))
        return bool(failed)

    def _check_arming(self, estimate: Estimate) -> list[str]:
        """Why the boat must not start, or be rearmed, where it is."""
        failed = [reason for check in self._checks if (reason := check())] if not self.guard.has_run else []
        distance, most = self.tracker.distance(estimate.pose), self.tracker.how.distance
        if distance > most:
            failed.append(f"the boat is {distance:.1f} m from the reference: must be at most {most:g} m")
            if not self.guard.has_run:
                self.refused = failed[-1]
        elif self.guard.fence is not None:
            way = np.linspace(estimate.pose[:2], self.tracker.target[:2], 2 + int(distance)).tolist()
            if any(self.guard.fence.margin(x, y) < 0 for x, y in way[1:]):
                failed.append("the straight way to the reference leaves the fence")
        return failed

    def _request(self, at: float, estimate: Estimate, window: Array) -> Array | None:
        """The controller's command; None without a valid state, or where the controller fails."""
        if not estimate.valid:
            return None
        try:
            if isinstance(self.controller, Informed):
                self.controller.sent(self._sent)
            command = self.controller.step(estimate.pose, estimate.velocity, window)
            if (restarts := getattr(self.controller, "restarts", 0)) > self._restarts:
                self.event_log.record(at, "controller restarted", "its memory was not finite")
            self._restarts = restarts
            return command
        except Exception as error:  # after any error of the controller the guard must ramp down
            self.event_log.record(at, "controller failed", f"{type(error).__name__}: {error}"[:100])
            return None


def _latent(controller: Controller | None) -> Array | None:
    """The controller's latent; None where it has none."""
    latent = getattr(controller, "latent", None)
    return latent if latent is not None and np.size(latent) else None
