"""Between the controller and the thrusters: every command passes here, and only a safe one leaves.

For any input, the command is three finite numbers in [-1, 1], on no axis further than `Limits.step` from the previous
one, and no input raises an error.

Reactions, from mild to severe: `run` passes the command on, limited in size and step; `hold` repeats the last one;
`ramp` goes to zero in proportion, from full in `Limits.ramp`; `handover` ramps down too and leaves the boat to the
operator. Of several faults the most severe reaction counts.

| fault | condition | reaction | after a time |
| --- | --- | --- | --- |
| `command` | missing, or not three finite numbers | hold | ramp after `hold` |
| `state` | missing, not finite, or its time further than `max_age` from now | hold | ramp after `hold` |
| `clock` | now is not a number, or not after the last now | hold | ramp after `hold` |
| `lost` | the estimator is lost or starting | ramp | |
| `dead_reckoning` | the estimator is dead reckoning | run | ramp after `dead_reckoning` |
| `overrun` | a period took more than 1.5 of `period` | run | ramp after `overrun`, late by that much or in a row |
| `rate` | the controller's command moved by more than `step` | run, in steps | ramp after `chatter` in a row |
| `fence` | the position is outside the fence | handover | |
| `out_of_distribution` | latent or dynamics estimate outside its range | run | handover after `out_of_distribution` |

Recovery. A hold ends with its fault; the hold of successive faults lasts at most `hold`. A ramp ends after `settle`
without a fault that calls for more than `run`. A ramp of `handover_after` becomes a handover, except before the first
`run`, while the boat waits for its sensors. A handover is permanent: only `Guard.rearm` ends it, and not during a
fault. Recovery starts from the command then sent, in steps. After the boat's own watchdog has stopped the thrusters,
the steps start from zero: `Guard.thrusters_stopped`.

Each fault leaves an `Event` when it begins and when it clears, and so does each change of reaction.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from anyhull.backend import Array
from anyhull.dynamics import PERIOD
from anyhull.errors import InputError
from anyhull.onboard.fence import Fence
from anyhull.schema import check_types, require

Reaction = Literal["run", "hold", "ramp", "handover"]
Fault = Literal[
    "command", "state", "clock", "lost", "dead_reckoning", "overrun", "rate", "fence", "out_of_distribution"
]

SEVERITY: dict[Reaction, int] = {"run": 0, "hold": 1, "ramp": 2, "handover": 3}

OVERRUN = 1.5
"""Periods between two commands above which the loop has overrun."""

TIME_TOLERANCE = 1e-3
"""Rounding of clocks, s."""

Bounds = tuple[ArrayLike, ArrayLike]
"""Least and largest values, each of shape (n,)."""


class EstimatedState(Protocol):
    """The state that the guard checks; `anyhull.onboard.Estimate` is one."""

    @property
    def time(self) -> float: ...
    @property
    def pose(self) -> Array: ...
    @property
    def velocity(self) -> Array: ...
    @property
    def health(self) -> str: ...
    @property
    def reason(self) -> str: ...


@dataclass(frozen=True)
class Limits:
    """Thresholds of the guard; seconds where no unit is named."""

    step: float = 0.5
    """Largest change of the command on an axis in one period."""
    ramp: float = 1.0
    """Duration of a ramp from full command to zero."""
    hold: float = 0.5
    """Longest hold of the last command."""
    settle: float = 1.0
    """Time without a fault after which a ramp ends."""
    handover_after: float = 10.0
    """Duration of a ramp after which the boat is handed over."""
    max_age: float = 0.3
    """Largest difference between the time of the state and now."""
    dead_reckoning: float = 5.0
    """Longest run by dead reckoning."""
    overrun: float = 0.5
    """Largest delay of the loop, or of consecutive overruns."""
    chatter: float = 3.0
    """Longest run in which the controller's command moves by more than `step` in every period."""
    out_of_distribution: float = 2.0
    """Longest run with latent or dynamics estimate outside their ranges."""
    period: float = PERIOD
    """Between two commands."""

    def __post_init__(self) -> None:
        check_types(self)
        for field in self.__dataclass_fields__:
            require(self, field, getattr(self, field) > 0, "positive")


class Event(NamedTuple):
    """An entry of the event log."""

    time: float
    """The caller's now; the guard's own count of time where that was no number."""
    what: str
    """A fault, or `reaction` where that changed."""
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
    ) -> None:
        """`latent_range` and `dynamics_range` bound the latent and the estimate of e in training; None: no check."""
        self.limits = limits or Limits()
        self.fence = fence
        self._latent_range = _checked("latent_range", latent_range)
        self._dynamics_range = _checked("dynamics_range", dynamics_range)
        self.events: deque[Event] = deque(maxlen=1000)
        """The last thousand."""
        li = self.limits
        self._rules: dict[Fault, tuple[Reaction, float, Reaction]] = {
            "command": ("hold", li.hold, "ramp"),
            "state": ("hold", li.hold, "ramp"),
            "clock": ("hold", li.hold, "ramp"),
            "lost": ("ramp", 0.0, "ramp"),
            "dead_reckoning": ("run", li.dead_reckoning, "ramp"),
            "overrun": ("run", li.overrun, "ramp"),
            "rate": ("run", li.chatter, "ramp"),
            "fence": ("handover", 0.0, "handover"),
            "out_of_distribution": ("run", li.out_of_distribution, "handover"),
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
        self._has_run = False

    def step(
        self, now: Any, command: Any, state: EstimatedState | None, latent: Any = None, dynamics: Any = None
    ) -> Decision:
        """The command for the coming period, from the controller's, at `now` (s) in the clock of the state."""
        faults = self._check_clock(now)
        requested = _numbers(command, 3)
        if requested is None:
            faults["command"] = f"{_brief(command)} is not three finite numbers"
        else:
            requested = np.clip(requested, -1.0, 1.0)
            if self._requested is not None and (moved := np.abs(requested - self._requested).max()) > self.limits.step:
                faults["rate"] = f"command moved by {moved:.2g} in a period"
        self._requested = requested
        faults |= self._check_state(state) | self._check_distribution(latent, dynamics)
        events = self._track(faults)

        wanted: Reaction = "run"
        for fault, since in self._fault_since.items():
            first, duration, then = self._rules[fault]
            wanted = max(wanted, then if self._lasted(since, duration) else first, key=SEVERITY.__getitem__)
        reaction = self._react(wanted)
        waiting = {"ramp": "settling", "handover": "waiting to be rearmed"}.get(reaction, "")
        reason = "; ".join(f"{fault}: {detail}" for fault, detail in faults.items()) or waiting
        if reaction != self.reaction:
            self.reaction, self._reaction_since, self._clear_since = reaction, self._time, None
            events.append(self._event("reaction", f"{reaction}: {reason or 'no fault'}"))
        self._has_run = self._has_run or reaction == "run"
        self.events.extend(events)
        return Decision(self._send(requested), reaction, reason, tuple(events))

    def rearm(self) -> bool:
        """End a handover unless there is a fault; whether the guard passes commands again."""
        if self.reaction == "handover" and not self._fault_since:
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
        number = _numbers(now, None)
        before, self._now = self._now, None if number is None else float(number)
        period = self.limits.period
        passed = period if self._now is None or before is None else self._now - before
        self._time += min(passed, 60.0) if passed > 0 else period
        self._delay = min(passed, 60.0) - period
        if self._now is None:
            return {"clock": f"{_brief(now)} is not a time"}
        if passed <= 0:
            return {"clock": f"{-passed:.3g} s before the last"}
        return {"overrun": f"{passed:.3g} s since the last command"} if passed > OVERRUN * period else {}

    def _check_state(self, state: Any) -> dict[Fault, str]:
        if state is None:
            return {"state": "missing"}
        pose, velocity = _numbers(getattr(state, "pose", None), 3), _numbers(getattr(state, "velocity", None), 3)
        time = _numbers(getattr(state, "time", None), None)
        health, reason = _brief(getattr(state, "health", None)), _brief(getattr(state, "reason", ""))
        faults: dict[Fault, str] = {}
        if health == "dead reckoning":
            faults["dead_reckoning"] = reason
        elif health != "ok":
            faults["lost"] = f"{health}, {reason}"
        if pose is None or velocity is None or time is None:
            faults["state"] = "not finite"
            return faults
        if self._now is not None and abs(self._now - float(time)) > self.limits.max_age + TIME_TOLERANCE:
            faults["state"] = f"{self._now - float(time):.2g} s old"
        x, y, _ = pose.tolist()
        # A margin that is not a number is outside too.
        if self.fence is not None and not (margin := self.fence.margin(x, y)) >= 0:
            faults["fence"] = f"{-margin:.2f} m outside"
        return faults

    def _check_distribution(self, latent: Any, dynamics: Any) -> dict[Fault, str]:
        checks = (("latent", latent, self._latent_range), ("dynamics", dynamics, self._dynamics_range))
        for name, value, bounds in checks:
            if value is None or bounds is None:
                continue
            low, high = bounds
            numbers = _numbers(value, low.size)
            if numbers is None:
                return {"out_of_distribution": f"{name} not {low.size} finite numbers"}
            for i in np.flatnonzero((numbers < low) | (numbers > high)):
                detail = f"{name}[{i}] = {numbers[i]:.3g} outside [{low[i]:.3g}, {high[i]:.3g}]"
                return {"out_of_distribution": detail}
        return {}

    def _track(self, faults: dict[Fault, str]) -> list[Event]:
        """Store since when each fault lasts; the events of those that clear and begin."""
        cleared = [fault for fault in self._fault_since if fault not in faults]
        begun = [fault for fault in faults if fault not in self._fault_since]
        for fault in cleared:
            del self._fault_since[fault]
        for fault in begun:
            # An overrun began when the command was due.
            self._fault_since[fault] = self._time - (self._delay if fault == "overrun" else 0.0)
        return [self._event(f, "cleared") for f in cleared] + [self._event(f, faults[f]) for f in begun]

    def _react(self, wanted: Reaction) -> Reaction:
        """The reaction that follows the present one, by the rules of recovery."""
        if "handover" in (self.reaction, wanted):
            return "handover"
        if self.reaction == "ramp":
            if self._has_run and self._lasted(self._reaction_since, self.limits.handover_after):
                return "handover"
            if wanted != "run":
                self._clear_since = None
            elif self._clear_since is None:
                self._clear_since = self._time
            settled = self._clear_since is not None and self._lasted(self._clear_since, self.limits.settle)
            return "run" if settled else "ramp"
        held = self.reaction == wanted == "hold" and self._lasted(self._reaction_since, self.limits.hold)
        return "ramp" if held else wanted

    def _lasted(self, since: float, duration: float) -> bool:
        return self._time - since >= duration - TIME_TOLERANCE

    def _send(self, requested: Array | None) -> Array:
        """The next command, by the reaction."""
        li, largest = self.limits, np.abs(self._sent).max()
        if self.reaction == "run" and requested is not None:
            target = requested
        elif self.reaction in ("run", "hold"):
            target = self._sent
        else:
            by = min(li.step, li.period / li.ramp)
            target = self._sent * (1 - by / largest) if largest > by + 1e-9 else np.zeros(3)
        self._sent = np.clip(np.clip(target, self._sent - li.step, self._sent + li.step), -1.0, 1.0)
        return self._sent.copy()


def _numbers(value: Any, size: int | None) -> Array | None:
    """Finite numbers of shape (size,), or () for None; None for any other value."""
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "iuf" or array.shape != (() if size is None else (size,)):
            return None
        array = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    return array if np.isfinite(array).all() else None


def _brief(value: Any) -> str:
    """A value on one line of a log."""
    return " ".join((value if isinstance(value, str) else repr(value)).split())[:60]


def _checked(name: str, bounds: Bounds | None) -> tuple[Array, Array] | None:
    if bounds is None:
        return None
    low, high = (np.asarray(bound, dtype=np.float64) for bound in bounds)
    if low.ndim != 1 or low.shape != high.shape or not (low <= high).all():
        raise InputError(f"{name} of shapes {low.shape}, {high.shape}: must be two rows of numbers, the lower first")
    return low, high
