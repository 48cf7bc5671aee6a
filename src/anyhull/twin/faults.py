"""Fault injection: a twin and an autopilot in simulated time, faults of both and of what is between them, and checks.

Messages pass as authenticated datagrams, as over UDP. `Rig.violations` lists what was against the invariants of
`anyhull.twin.invariants`, and journals of killed pilots that could not be recovered.
"""

from __future__ import annotations

import errno
import math
import re
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from anyhull.backend import Array, to_inertial
from anyhull.controller import Controller
from anyhull.onboard.autopilot import Autopilot
from anyhull.onboard.journal import remove
from anyhull.onboard.messages import (
    Acceleration,
    BadMessage,
    Command,
    Gyro,
    Heading,
    Message,
    Position,
    Status,
    decode,
    encode,
)
from anyhull.onboard.recorder import RunRecorder, last_of, recover
from anyhull.onboard.setup import Setup
from anyhull.onboard.step_record import StepRecord
from anyhull.reference import Reference
from anyhull.twin.fault_schedule import KINDS, Fault, Kind, Schedule, random_faults
from anyhull.twin.faulty_link import FaultyLink
from anyhull.twin.invariants import Invariants
from anyhull.twin.operator import Operator
from anyhull.twin.twin import TICK, Twin, TwinConfig, with_thrusters

__all__ = ["KINDS", "Fault", "Kind", "Rig", "random_faults"]

NUMBER = re.compile(rb'("(?:x|y|psi|rate)":)[^,}]+')

LOST: dict[type[Message], Kind] = {
    Position: "fixes lost",
    Heading: "headings lost",
    Gyro: "gyro lost",
    Acceleration: "accelerations lost",
    Status: "status lost",
}
"""The outage of each kind of message."""

TORN = 200
"""Most bytes that the end of a killed pilot's journal loses: the disk had not got them."""


class Rig:
    """One boat, one autopilot, and faults in between."""

    def __init__(
        self,
        setup: Setup,
        controller: Controller,
        reference: Reference,
        faults: list[Fault],
        *,
        config: TwinConfig | None = None,
        seed: int = 0,
        operator: bool = False,
        journals: Path | None = None,
        on_step: Callable[[StepRecord], None] | None = None,
    ) -> None:
        """`operator` is whether somebody rearms the boat; `journals` is a folder for the records of the pilots."""
        self.setup = replace(setup, vessel=with_thrusters(setup.vessel))
        self.twin = Twin(self.setup.vessel, config, seed=seed, pose=reference.at(0.0)[:3].tolist())
        self._random = np.random.default_rng([seed, 99])
        self.schedule = Schedule(faults, self._random)
        self.link = FaultyLink(self.schedule, self._random, lambda: self.time)
        self.invariants = Invariants(self.twin, self.setup.limits, self.setup.fence, self.schedule)
        self.operator = Operator(self.twin) if operator else None
        self.trips = 0
        """Stops by the watchdog before the last restart."""
        self.steps: deque[StepRecord] = deque(maxlen=600)
        """The last minute."""
        self.running = 0
        """Periods in which commands passed."""
        self.stops_by_rule: Counter[str] = Counter()
        """Failsafes and handovers, by the fault that called for them."""
        self.pilots = self.recovered = 0
        """Pilots started, and periods recovered from their journals."""
        self._controller, self._reference, self._seed = controller, reference, seed
        self._journals, self._on_step = journals, on_step
        self._former_events: Counter[str] = Counter()
        self._ticks = 0
        self._offset, self._heading_offset = (0.0, 0.0), 0.0
        self._reaction, self._down, self._recorded = "run", False, 0
        self._sent: dict[tuple[int, int], tuple[Array, bool]] = {}
        self._start_pilot(0.0)

    @property
    def time(self) -> float:
        """Since the beginning, s."""
        return self._ticks * TICK

    @property
    def violations(self) -> list[str]:
        """What was against the invariants, one line each."""
        return self.invariants.violations

    @property
    def event_counts(self) -> Counter[str]:
        """Occurrences of each event, of all pilots."""
        return self._former_events + self.autopilot.event_log.counts

    @property
    def rejected(self) -> Counter[str]:
        """Datagrams that the autopilot's end rejected, by reason."""
        return self.link.rejected["pilot"]

    def run(self, seconds: float) -> None:
        """Simulate for some seconds."""
        every, active = round(self.setup.vessel.scale.period / TICK), self.schedule.active
        for _ in range(round(seconds / TICK)):
            if self._ticks % every == 0:
                if not (self._down or "pilot frozen" in active):
                    self.link.handshake("pilot")
                    self._step()
                if "boat restarted" not in active:
                    self.link.handshake("boat")
                self._check()
            self._strike()
            booting = "boat restarted" in active
            for message in self.twin.advance():
                if not booting:
                    self._send(message)
            self._ticks += 1
            if not booting:
                self._pass_commands()
            if not (self._down or "pilot frozen" in active):
                for message in self.link.receive("pilot"):
                    self.autopilot.on_message(message, self.time)
            self.link.attack()
            self.invariants.check_watchdog(self.time)

    def close(self) -> None:
        """End the pilot and check its journal."""
        if not self._down:
            self._end_pilot()
            self._down = True

    def _strike(self) -> None:
        """Let faults begin, act and end."""
        begun, ended = self.schedule.advance(self.time)
        for fault in begun:
            match fault.kind:
                case "boat restarted":
                    self.trips += self.twin.firmware.trips
                    self.twin.restart()
                    self.link.restart("boat")
                    self.invariants.accepted_at = -math.inf
                case "clock set":
                    self.twin.set_clock(fault.size)
                case "position jump":
                    self._shift(fault, fault.size)
                case "pilot killed" if not self._down:
                    self._progress, self._down = self._end_pilot(), True
        if self._down and "pilot killed" not in self.schedule.active:
            self._former_events += self.autopilot.event_log.counts
            self._start_pilot(self._progress)
        if begun or ended:
            self._set_boat()
        if self.schedule.active or begun or ended:
            self._set_sensors()

    def _shift(self, fault: Fault, by: float) -> None:
        x, y = to_inertial(by, 0.0, fault.direction)
        self._offset = (self._offset[0] + x, self._offset[1] + y)

    def _set_sensors(self) -> None:
        schedule, faults = self.schedule, self.twin.sensors.faults
        if drift := schedule.on("position drift"):
            self._shift(drift, drift.size * TICK)
        turn = schedule.on("heading drift")
        self._heading_offset = self._heading_offset + turn.size * TICK if turn else 0.0
        spike, std = schedule.on("gyro spikes"), schedule.on("bad std")
        faults.position, faults.heading = self._offset, self._heading_offset
        faults.gyro = spike.size if spike else 0.0
        faults.position_std = faults.heading_std = std.size if std else None

    def _set_boat(self) -> None:
        active, twin = self.schedule.active, self.twin
        n = len(twin.vessel.thrusters)
        strength, stuck = [1.0] * n, list[float | None]([None] * n)
        for fault in active.get("thruster weak", []):
            strength[fault.thruster % n] = fault.size
        for fault in active.get("thruster stuck", []):
            stuck[fault.thruster % n] = fault.size
        for fault in active.get("thruster dead", []):
            strength[fault.thruster % n] = 0.0
        twin.propulsion.strength, twin.propulsion.stuck = strength, stuck
        if twin.aground != ("aground" in active):
            twin.aground = "aground" in active
        monitors = twin.monitors
        monitors.water, monitors.charge = "leak" in active, 0.05 if "battery low" in active else 1.0
        monitors.heel = active["heeled"][0].size if "heeled" in active else 0.0
        if self.operator is None or not self.operator.steering:
            twin.operator = "manual" if "operator manual" in active else "auto"
        if self.recorder is not None:
            _set_full(self.recorder, "disk full" in active)

    def _send(self, message: Message) -> None:
        """Send a message of the boat, with the faults of `MessageKind`."""
        on = self.schedule.on
        if not self.schedule.active:
            self.link.send("boat", encode(message))
            return
        lost = LOST.get(type(message))
        if lost and on(lost):
            return
        if isinstance(message, Heading) and on("heading flipped"):
            message = replace(message, psi=message.psi + math.pi)
        content = encode(message)
        if on("nan"):
            content = NUMBER.sub(rb"\1NaN", content, count=1)
        for _ in range(2 if on("duplicated") else 1):
            self.link.send("boat", content)
        if on("garbage"):
            valid = encode(Position(1, 1, self.time, 0.0, 0.0))
            junk = (self._random.bytes(int(self._random.integers(200))), valid[:-9], b"[" * 1200, b'{"v":2,"type":[]}')
            self.link.send("boat", junk[int(self._random.integers(len(junk)))])

    def _pass_commands(self) -> None:
        """Pass what has arrived at the boat to its board."""
        for command in self.link.receive("boat"):
            assert isinstance(command, Command)
            if self.twin.on_command(command):
                self.invariants.command_accepted(self.time, *self._sent[command.session, command.seq])
            elif self.twin.firmware.rejected["outside [-1, 1]"] or self.twin.firmware.rejected["not finite"]:
                self.invariants.violate(self.time, f"command {command} rejected by the boat")

    def _step(self) -> None:
        """One period of the pilot."""
        self.autopilot.on_rejected(self.rejected, self.time)
        step = self.autopilot.step(self.time)
        if step is None:
            return
        self.steps.append(step)
        self.running += step.decision.reaction == "run"
        self.invariants.check_command(self.time, step.decision.command)
        self.invariants.check_progress(self.time, step, self._offset)
        status = self.autopilot.status
        stopped = status is not None and status.stopped
        self._sent[step.command.session, step.command.seq] = (step.decision.command, stopped)
        self._sent.pop((step.command.session, step.command.seq - 20), None)
        try:
            content = encode(step.command)
            decode(content)
        except (BadMessage, ValueError) as error:
            self.invariants.violate(self.time, f"command {step.command} not sent: {error}")
            return
        self.link.send("pilot", content)
        if self.recorder is not None:
            self.recorder.add(step, self.time)
            self._recorded += step.estimate.valid
        if self._on_step is not None:
            self._on_step(step)

    def _check(self) -> None:
        """Check the boat, once a period, whatever the pilot does."""
        guard = self.autopilot.guard
        self.invariants.check_fence(self.time, self._offset, guard.stopping_time)
        self.invariants.check_running(self.time, self.autopilot)
        if guard.reaction in ("failsafe", "handover") and guard.reaction != self._reaction:
            reason = next(event.detail for event in reversed(guard.events) if event.what == "reaction")
            self.stops_by_rule[": ".join(reason.split(": ")[:2])] += 1
        self._reaction = guard.reaction
        if self.operator is not None:
            home = self._reference.at(self.autopilot.tracker.progress)[:2] - self._offset
            self.operator.act(self.time, self.autopilot, home, self._down)

    def _start_pilot(self, progress: float) -> None:
        session, self.pilots = self._seed + 1000 * self.pilots, self.pilots + 1
        resume = max(progress, 0.0)
        pilot = Autopilot(self.setup, self._controller, self._reference, resume=resume, session=session)
        self.autopilot, self._reaction, self._down = pilot, "run", False
        self.link.restart("pilot")
        self.invariants.pilot_started()
        self.recorder: RunRecorder | None = None
        if self._journals is not None:
            self._journal, self._recorded = self._journals / f"run-{self.pilots}.jsonl", 0
            self.recorder = RunRecorder(pilot, self._journal)

    def _end_pilot(self) -> float:
        """Kill the pilot and recover its journal, whose end is lost; the time of the reference to resume at, s."""
        if self.recorder is None:
            return self.autopilot.tracker.progress
        self.recorder.close()
        left = sum(line.startswith(b"[") for line in self.recorder._journal.unwritten)
        _set_full(self.recorder, False)
        with self._journal.open("r+b") as file:
            size = file.seek(0, 2)
            file.truncate(max(0, size - int(self._random.integers(TORN))))
        try:
            log, progress = recover(self._journal), last_of(self._journal).progress
        except Exception as error:
            self.invariants.violate(self.time, f"journal not recoverable: {type(error).__name__}: {error}")
            return self.autopilot.tracker.progress
        # A line has more than 100 bytes.
        least = self._recorded - self.recorder.dropped - left - TORN // 100 - 1
        if len(log.time) < least:
            self.invariants.violate(self.time, f"journal has {len(log.time)} periods of {self._recorded}")
        self.recovered += len(log.time)
        remove(self._journal)
        return progress or 0.0


def _set_full(recorder: RunRecorder, full: bool) -> None:
    """Let the disk be full for a recorder, or not."""

    def fail(line: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    journal: Any = recorder._journal
    if full:
        journal._write = fail
    else:
        vars(journal).pop("_write", None)
