"""Between the controller and the thrusters: every command passes here, and only a safe one leaves.

For any input, the command is three finite numbers in [-1, 1], on no axis further than `Limits.step` from the previous
one, and no input raises an error.

Reactions, from mild to severe: `run` passes the command on, limited in size and step; `hold` repeats the last one;
`failsafe` passes commands too, of a controller that follows the failure action `Limits.on_failure`; `ramp` goes to
zero in proportion, from full in `Limits.ramp`; `handover` ramps down too and leaves the boat to the operator. Of
several faults the most severe reaction counts. With `on_failure = "drift"` a handover takes the place of `failsafe`.

| fault | condition | reaction | after a time |
| --- | --- | --- | --- |
| `command` | missing, or not three finite numbers | hold | ramp after `hold` |
| `state` | missing, not finite, or its time further than `max_age` from now | hold | ramp after `hold` |
| `clock` | now is not a number, or not after the last now | hold | ramp after `hold` |
| `lost` | the estimator is lost or starting | ramp | |
| `dead_reckoning` | the estimator is dead reckoning | run | ramp after `dead_reckoning` |
| `overrun` | a period took more than 1.5 of `period` | run | ramp after `overrun`, late by that much or in a row |
| `rate` | the controller's command moved by more than `step` | run, in steps | ramp after `chatter` in a row |
| `fence` | outside, or would be before it has stopped | failsafe | handover after `handover_after` |
| `out_of_distribution` | latent or dynamics well outside its range | run | handover after `out_of_distribution` |
| `arming` | a check before the first command has failed | ramp | |
| `uplink` | the boat has not confirmed a command for `uplink` | ramp | |
| `off_path` | further than `off_path` from the reference | failsafe | |
| `no_progress` | high command without progress for `no_progress` | handover | |
| `mismatch` | the boat reports other commands than it was sent | run | handover after `mismatch` |
| `thruster` | the thrusters that are left cannot steer the boat | handover | |
| `battery`, `leak` | charge below `battery`; water in the hull | failsafe | |
| `tilt` | roll or pitch beyond `tilt` | run | handover after `tilt_time` |
| `operator` | the operator's switch is at manual or stop | handover, at once | |

The last nine are the caller's to find (`anyhull.onboard.autopilot`); the guard has the reactions.

Recovery. A hold ends with its fault; the hold of successive faults lasts at most `hold`. A ramp ends after `settle`
without a fault that calls for it. A ramp of `handover_after` becomes a handover, except before the first `run`, while
the boat waits for its sensors. A failsafe and a handover are permanent: only `Guard.rearm` ends them, and not during a
fault. Recovery starts from the command then sent, in steps. After the boat's own watchdog has stopped the thrusters,
the steps start from zero: `Guard.thrusters_stopped`. Under manual control the command follows the operator's, so that
the return is without a bump.

Each fault leaves an `Event` when it begins and when it clears, and so does each change of reaction. Before the first
`run` one event `arming` states what is missing, whenever that changes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

from anyhull.backend import Array
from anyhull.onboard.checks import (
    TIME_TOLERANCE,
    Bounds,
    EstimatedState,
    Fault,
    brief,
    check_dynamics,
    check_range,
    check_state,
    checked,
    numbers,
)
from anyhull.onboard.fence import Fence
from anyhull.onboard.limits import Limits

Reaction = Literal["run", "hold", "failsafe", "ramp", "handover"]
SEVERITY: dict[Reaction, int] = {"run": 0, "hold": 1, "failsafe": 2, "ramp": 3, "handover": 4}

FOLLOW_LOST = ("command", "state")
"""Faults that a lost state implies."""

OVERRUN = 1.5
"""Periods between two commands above which the loop has overrun."""


class Event(NamedTuple):
    """An entry of the event log."""

    time: float
    """The caller's now; the guard's own count of time where that was no number."""
    what: str
    """A fault, `reaction` where that changed, or `arming`."""
    detail: str
    """The condition, `cleared`, or the new reaction and its reason."""


class Decision(NamedTuple):
    """The command for the thrusters, and its reason."""

    command: Array
    """In [-1, 1]³."""
    reaction: Reaction
    reason: str
    """The present faults, or empty."""
    events: tuple[Event, ...]
    """The events of this period."""


class Guard:
    """Supervises one boat; `step` once per control period."""

    def __init__(
        self,
        limits: Limits | None = None,
        fence: Fence | None = None,
        latent_range: Bounds | None = None,
        dynamics_range: Bounds | None = None,
        stopping_time: float = 0.0,
    ) -> None:
        """`latent_range` and `dynamics_range` bound the latent and the estimate of e in training; None: no check.

        `stopping_time` is the boat's stopping distance over its speed, s.
        """
        self.limits = limits or Limits()
        self.fence = fence
        self.stopping_time = stopping_time
        self._latent_range = checked("latent_range", latent_range)
        self._dynamics_range = checked("dynamics_range", dynamics_range)
        self.events: deque[Event] = deque(maxlen=1000)
        """The last thousand."""
        li = self.limits
        failed: Reaction = "handover" if li.on_failure == "drift" else "failsafe"
        self._rules: dict[Fault, tuple[Reaction, float, Reaction]] = {
            "command": ("hold", li.hold, "ramp"),
            "state": ("hold", li.hold, "ramp"),
            "clock": ("hold", li.hold, "ramp"),
            "lost": ("ramp", 0.0, "ramp"),
            "dead_reckoning": ("run", li.dead_reckoning, "ramp"),
            "overrun": ("run", li.overrun, "ramp"),
            "rate": ("run", li.chatter, "ramp"),
            "fence": (failed, li.handover_after, "handover"),
            "out_of_distribution": ("run", li.out_of_distribution, "handover"),
            "arming": ("ramp", 0.0, "ramp"),
            "uplink": ("ramp", 0.0, "ramp"),
            "off_path": (failed, 0.0, failed),
            "no_progress": ("handover", 0.0, "handover"),
            "mismatch": ("run", li.mismatch, "handover"),
            "thruster": ("handover", 0.0, "handover"),
            "battery": (failed, 0.0, failed),
            "leak": (failed, 0.0, failed),
            "tilt": ("run", li.tilt_time, "handover"),
            "operator": ("handover", 0.0, "handover"),
        }
        self.reset()

    def reset(self) -> None:
        """Restart with the thrusters at zero; the events stay."""
        self.reaction: Reaction = "ramp"
        self._sent = np.zeros(3)
        self._requested: Array | None = None
        self._now: float | None = None
        self._time = 0.0
        self._delay = 0.0
        self._fault_since: dict[Fault, float] = {}
        self._reaction_since = 0.0
        self._clear_since: float | None = None
        self.has_run = False
        """Whether the boat has been armed: all checks had passed."""
        self._failed = False
        self._missing: set[Fault] = set()

    def step(
        self,
        now: Any,
        command: Any,
        state: EstimatedState | None,
        latent: Any = None,
        dynamics: Any = None,
        spread: Any = None,
        conditions: Mapping[Fault, str] | None = None,
        manual: Array | None = None,
    ) -> Decision:
        """The command for the coming period, from the controller's, at `now` (s) in the clock of the state.

        `dynamics` is the controller's estimate of e, and `spread` the standard deviation of the logarithm of each.
        `conditions` are the faults that the caller has found, with their details; `manual` is the operator's command
        while he steers.
        """
        faults = self._check_clock(now)
        requested = numbers(command, 3)
        if requested is None:
            faults["command"] = f"{brief(command)} is not three finite numbers"
        else:
            requested = np.clip(requested, -1.0, 1.0)
            if self._requested is not None and (moved := np.abs(requested - self._requested).max()) > self.limits.step:
                faults["rate"] = f"command moved by {moved:.2g} in a period"
        self._requested = requested
        faults |= check_state(state, self._now, self.limits.max_age, self.fence, self.stopping_time)
        faults |= check_dynamics(dynamics, spread, self._dynamics_range)
        faults |= check_range("latent", latent, self._latent_range) | dict(conditions or {})
        events = self._track(faults)

        wanted: Reaction = "run"
        for fault, since in self._fault_since.items():
            first, duration, then = self._rules[fault]
            its = then if self._lasted(since, duration) else first
            self._failed = self._failed or (its == "failsafe" and self.has_run)
            wanted = max(wanted, its, key=SEVERITY.__getitem__)
        reaction = self._react(wanted)
        rearm = "waiting to be rearmed"
        waiting = {"ramp": "settling", "handover": rearm, "failsafe": rearm}.get(reaction, "")
        reason = "; ".join(f"{fault}: {detail}" for fault, detail in faults.items()) or waiting
        if reaction != self.reaction:
            self.reaction, self._reaction_since, self._clear_since = reaction, self._time, None
            events.append(self._event("reaction", f"{reaction}: {reason or 'no fault'}"))
        self.has_run = self.has_run or reaction == "run"
        self.events.extend(events)
        if manual is not None and (given := numbers(manual, 3)) is not None:
            return Decision(self._toward(given), reaction, reason, tuple(events))
        return Decision(self._send(requested, "operator" in faults), reaction, reason, tuple(events))

    def rearm(self, besides: Fault | None = None) -> bool:
        """End a failsafe or a handover unless there is a fault; whether the guard passes commands again.

        `besides` is a fault that the caller ends with it.
        """
        if self.reaction in ("failsafe", "handover") and not self._fault_since.keys() - {besides}:
            self._failed = False
            self._switch("run", "rearmed")
        return self.reaction == "run"

    def disengage(self, reason: str) -> None:
        """Hand the boat over for a reason of the caller's, such as the end of the run."""
        if self.reaction != "handover":
            self._switch("handover", reason)

    def thrusters_stopped(self) -> None:
        """Start the next command from zero, since the boat has stopped its thrusters by itself."""
        self._sent = np.zeros(3)

    def _switch(self, reaction: Reaction, reason: str) -> None:
        self.reaction, self._reaction_since = reaction, self._time
        self.events.append(self._event("reaction", f"{reaction}: {reason}"))

    def _event(self, what: str, detail: str) -> Event:
        return Event(self._time if self._now is None else self._now, what, detail)

    def _check_clock(self, now: Any) -> dict[Fault, str]:
        """Advance the time; a clock that stops or is set back counts as one period, a jump as a minute at most."""
        number = numbers(now, None)
        before, self._now = self._now, None if number is None else float(number)
        period = self.limits.period
        passed = period if self._now is None or before is None else self._now - before
        self._time += min(passed, 60.0) if passed > 0 else period
        self._delay = min(passed, 60.0) - period
        if self._now is None:
            return {"clock": f"{brief(now)} is not a time"}
        if passed <= 0:
            return {"clock": f"{-passed:.3g} s before the last"}
        return {"overrun": f"{passed:.3g} s since the last command"} if passed > OVERRUN * period else {}

    def _track(self, faults: dict[Fault, str]) -> list[Event]:
        """Store since when each fault lasts; the events of those that clear and begin."""
        cleared = [fault for fault in self._fault_since if fault not in faults]
        begun = [fault for fault in faults if fault not in self._fault_since]
        for fault in cleared:
            del self._fault_since[fault]
        for fault in begun:
            # An overrun began when the command was due.
            self._fault_since[fault] = self._time - (self._delay if fault == "overrun" else 0.0)
        if not self.has_run:
            # Without a state there is no command either.
            missing = {f: detail for f, detail in faults.items() if "lost" not in faults or f not in FOLLOW_LOST}
            if set(missing) == self._missing:
                return []
            self._missing = set(missing)
            details = (detail if f == "arming" else f"{f}: {detail}" for f, detail in missing.items())
            return [self._event("arming", "; ".join(details) or "all checks passed")]
        return [self._event(f, "cleared") for f in cleared] + [self._event(f, faults[f]) for f in begun]

    def _react(self, wanted: Reaction) -> Reaction:
        """The reaction that follows the present one, by the rules of recovery."""
        if "handover" in (self.reaction, wanted) and (self.has_run or self.reaction == "handover"):
            return "handover"
        running: Reaction = "failsafe" if self._failed else "run"
        if self.reaction == "ramp":
            if self.has_run and self._lasted(self._reaction_since, self.limits.handover_after):
                return "handover"
            clear = wanted == "run" or (wanted == "failsafe" and self.has_run)
            if not clear:
                self._clear_since = None
            elif self._clear_since is None:
                self._clear_since = self._time
            settled = self._clear_since is not None and self._lasted(self._clear_since, self.limits.settle)
            return running if settled else "ramp"
        if wanted == "hold":
            return (
                "ramp" if self.reaction == "hold" and self._lasted(self._reaction_since, self.limits.hold) else "hold"
            )
        return running if wanted == "run" else wanted

    def _lasted(self, since: float, duration: float) -> bool:
        return self._time - since >= duration - TIME_TOLERANCE

    def _send(self, requested: Array | None, at_once: bool) -> Array:
        """The next command, by the reaction."""
        li, largest = self.limits, np.abs(self._sent).max()
        if self.reaction in ("run", "failsafe") and requested is not None:
            return self._toward(requested)
        if self.reaction in ("run", "hold", "failsafe"):
            return self._toward(self._sent)
        by = li.step if at_once else min(li.step, li.period / li.ramp)
        return self._toward(self._sent * (1 - by / largest) if largest > by + 1e-9 else np.zeros(3))

    def _toward(self, target: Array) -> Array:
        step = self.limits.step
        self._sent = np.clip(np.clip(target, self._sent - step, self._sent + step), -1.0, 1.0)
        return self._sent.copy()
