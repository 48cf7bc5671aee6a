"""Between the pilot and the thrusters: every command passes here, and only a safe one leaves.

Whatever comes in, the command that goes out is three finite numbers in [-1, 1], and on no axis further than
`Limits.step` from the one before; nothing that comes in raises an error.

Reactions, from mild to severe: `run` passes the command on, limited in size and step; `hold` repeats the last one;
`ramp` goes to zero in proportion, from full in `Limits.ramp`; `hand over` does the same and leaves the boat to whoever
takes it. Of several faults the most severe reaction counts.

| fault | what it is | reaction | and then, when it lasts |
| --- | --- | --- | --- |
| `command` | none, or not three finite numbers | hold | ramp after `hold` |
| `state` | none, not finite, or its time further than `age` from now | hold | ramp after `hold` |
| `clock` | now is not a number, or not after the last now | hold | ramp after `hold` |
| `lost` | the estimator is lost or starting | ramp | |
| `reckoning` | the estimator is dead reckoning | run | ramp after `reckoning` |
| `overrun` | a period took more than 1.5 of `period` | run | ramp after `overrun`, late by that much or in a row |
| `rate` | the pilot's command moved by more than `step` | run, in steps | ramp after `chatter` in a row |
| `fence` | the position is outside the fence | hand over | |
| `strange` | latent or dynamics estimate outside its range | run | hand over after `strange` |

Recovery. A hold ends with its fault, and no hold of any faults together lasts longer than `hold`. A ramp, once begun,
goes on until nothing has called for more than `run` for `settle`. A ramp that lasts `surrender` becomes a hand over,
but not before the boat has run for the first time, while it waits for its sensors. A hand over is for good: only
`Guard.rearm` ends it, and not while anything is wrong. The way back starts from the command then sent, in steps.
A boat that stops its thrusters by itself, as its watchdog does when no command arrives, is where the steps would start
from the wrong place: `Guard.stopped` tells of it.

Each fault leaves an `Event` when it begins and when it is over, and so does each change of reaction.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anyhull.boat.fence import Fence
from anyhull.dynamics import PERIOD
from anyhull.errors import InputError
from anyhull.toml import check_types, require
from anyhull.vessel import TRAINED

Array = NDArray[np.float64]
Reaction = Literal["run", "hold", "ramp", "hand over"]
Fault = Literal["command", "state", "clock", "lost", "reckoning", "overrun", "rate", "fence", "strange"]

SEVERITY: dict[Reaction, int] = {"run": 0, "hold": 1, "ramp": 2, "hand over": 3}

LATE = 1.5
"""Periods between two commands above which the loop has overrun."""

MOMENT = 1e-3
"""What clocks may round, s."""


class Seen(Protocol):
    """What the guard has to know of the boat's state; `anyhull.boat.Estimate` is one."""

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
    """How much the guard lets pass, and for how long; seconds where no unit is named."""

    step: float = 0.5
    """Largest change of the command on an axis in one period."""
    ramp: float = 1.0
    """From full command to none."""
    hold: float = 0.5
    """Longest time for which the last command is repeated."""
    settle: float = 1.0
    """How long all must be well before a ramp ends."""
    surrender: float = 10.0
    """How long a ramp lasts before the boat is handed over."""
    age: float = 0.3
    """How far the time of the state may be from now."""
    reckoning: float = 5.0
    """How long the boat may go on by dead reckoning."""
    overrun: float = 0.5
    """How late the loop may be, or how long in a row."""
    chatter: float = 3.0
    """How long the pilot's command may move by more than `step` in every period."""
    strange: float = 2.0
    """How long latent or dynamics estimate may be outside their ranges."""
    period: float = PERIOD
    """Between two commands."""

    def __post_init__(self) -> None:
        check_types(self)
        for field in self.__dataclass_fields__:
            require(self, field, getattr(self, field) > 0, "positive")


class Event(NamedTuple):
    """Something that the guard noticed."""

    time: float
    """The caller's now; its own reckoning of it where that was no number."""
    what: str
    """A fault, or `reaction` where that changed."""
    detail: str
    """What it was, `over`, or the new reaction and why."""


class Decision(NamedTuple):
    """What goes to the thrusters, and why."""

    command: Array
    """In [-1, 1]³."""
    reaction: Reaction
    reason: str
    """The faults there are now, or empty."""
    events: tuple[Event, ...]
    """What was new in this period."""


class Guard:
    """Watches over one boat; `step` once per control period."""

    def __init__(
        self,
        limits: Limits | None = None,
        fence: Fence | None = None,
        latent_range: tuple[ArrayLike, ArrayLike] | None = None,
        dynamics_range: tuple[ArrayLike, ArrayLike] | None = None,
    ) -> None:
        """`latent_range` is the least and largest latent met in training; that of e is the paper's unless given."""
        self.limits = limits or Limits()
        self.fence = fence
        self._latent = _range("latent_range", latent_range) if latent_range else None
        self._dynamics = _range("dynamics_range", dynamics_range or tuple(zip(*TRAINED.values(), strict=True)))  # type: ignore[arg-type]
        self.events: deque[Event] = deque(maxlen=1000)
        """The last thousand."""
        li = self.limits
        self._rules: dict[Fault, tuple[Reaction, float, Reaction]] = {
            "command": ("hold", li.hold, "ramp"),
            "state": ("hold", li.hold, "ramp"),
            "clock": ("hold", li.hold, "ramp"),
            "lost": ("ramp", 0.0, "ramp"),
            "reckoning": ("run", li.reckoning, "ramp"),
            "overrun": ("run", li.overrun, "ramp"),
            "rate": ("run", li.chatter, "ramp"),
            "fence": ("hand over", 0.0, "hand over"),
            "strange": ("run", li.strange, "hand over"),
        }
        self.reset()

    def reset(self) -> None:
        """Begin anew with the thrusters at rest; the events stay."""
        self.reaction: Reaction = "ramp"
        self._out = np.zeros(3)
        self._asked: Array | None = None
        self._now: float | None = None
        self._time = 0.0
        self._late = 0.0
        self._since: dict[Fault, float] = {}
        self._changed = 0.0
        self._calm: float | None = None
        self._ran = False

    def step(self, now: Any, command: Any, state: Seen | None, latent: Any = None, dynamics: Any = None) -> Decision:
        """The command for the coming period, from the pilot's, at the time `now` (s) in the clock of the state."""
        faults = self._clock(now)
        asked = _numbers(command, 3)
        if asked is None:
            faults["command"] = f"{_brief(command)} is not three finite numbers"
        else:
            asked = np.clip(asked, -1.0, 1.0)
            if self._asked is not None and (moved := np.abs(asked - self._asked).max()) > self.limits.step:
                faults["rate"] = f"command moved by {moved:.2g} in a period"
        self._asked = asked
        faults |= self._state(state) | self._strange(latent, dynamics)
        events = self._note(faults)

        wanted: Reaction = "run"
        for fault, since in self._since.items():
            first, patience, then = self._rules[fault]
            wanted = max(wanted, then if self._lasted(since, patience) else first, key=SEVERITY.__getitem__)
        reaction = self._react(wanted)
        quiet = {"ramp": "settling", "hand over": "waiting to be rearmed"}.get(reaction, "")
        reason = "; ".join(f"{fault}: {detail}" for fault, detail in faults.items()) or quiet
        if reaction != self.reaction:
            self.reaction, self._changed, self._calm = reaction, self._time, None
            events.append(Event(self._stamp, "reaction", f"{reaction}: {reason or 'all well'}"))
        self._ran = self._ran or reaction == "run"
        self.events.extend(events)
        return Decision(self._send(asked), reaction, reason, tuple(events))

    def rearm(self) -> bool:
        """End a hand over; not while anything is wrong. Whether the guard lets commands pass again."""
        if self.reaction == "hand over" and not self._since:
            self.reaction, self._changed = "run", self._time
            self.events.append(Event(self._stamp, "reaction", "run: rearmed"))
        return self.reaction == "run"

    def relieve(self, reason: str) -> None:
        """Hand the boat over for a reason of the caller's, as when it is to stop."""
        if self.reaction != "hand over":
            self.reaction, self._changed = "hand over", self._time
            self.events.append(Event(self._stamp, "reaction", f"hand over: {reason}"))

    def stopped(self) -> None:
        """Hear that the boat has stopped its thrusters by itself: the next command starts from none."""
        self._out = np.zeros(3)

    @property
    def _stamp(self) -> float:
        return self._time if self._now is None else self._now

    def _clock(self, now: Any) -> dict[Fault, str]:
        """Reckon the time on; a clock that stops or is set back counts as one period, a leap as a minute at most."""
        number = _numbers(now, None)
        before, self._now = self._now, None if number is None else float(number)
        period = self.limits.period
        passed = period if self._now is None or before is None else self._now - before
        self._time += min(passed, 60.0) if passed > 0 else period
        self._late = min(passed, 60.0) - period
        if self._now is None:
            return {"clock": f"{_brief(now)} is not a time"}
        if passed <= 0:
            return {"clock": f"{-passed:.3g} s before the last"}
        return {"overrun": f"{passed:.3g} s since the last command"} if passed > LATE * period else {}

    def _state(self, state: Any) -> dict[Fault, str]:
        if state is None:
            return {"state": "none"}
        pose, velocity = _numbers(getattr(state, "pose", None), 3), _numbers(getattr(state, "velocity", None), 3)
        time = _numbers(getattr(state, "time", None), None)
        health, reason = _brief(getattr(state, "health", None)), _brief(getattr(state, "reason", ""))
        faults: dict[Fault, str] = {}
        if health == "dead reckoning":
            faults["reckoning"] = reason
        elif health != "ok":
            faults["lost"] = f"{health}, {reason}"
        if pose is None or velocity is None or time is None:
            faults["state"] = "not finite"
            return faults
        if self._now is not None and abs(self._now - float(time)) > self.limits.age + MOMENT:
            faults["state"] = f"{self._now - float(time):.2g} s old"
        x, y, _ = pose.tolist()
        # A distance that is no number is not inside either.
        if self.fence is not None and not (margin := self.fence.inside(x, y)) >= 0:
            faults["fence"] = f"{-margin:.2f} m outside"
        return faults

    def _strange(self, latent: Any, dynamics: Any) -> dict[Fault, str]:
        for name, value, bounds in (("latent", latent, self._latent), ("dynamics", dynamics, self._dynamics)):
            if value is None or bounds is None:
                continue
            numbers = _numbers(value, bounds[0].size)
            if numbers is None:
                return {"strange": f"{name} not {bounds[0].size} finite numbers"}
            for i in np.flatnonzero((numbers < bounds[0]) | (numbers > bounds[1])):
                within = f"[{bounds[0][i]:.3g}, {bounds[1][i]:.3g}]"
                return {"strange": f"{name}[{i}] = {numbers[i]:.3g} outside {within}"}
        return {}

    def _note(self, faults: dict[Fault, str]) -> list[Event]:
        """Remember since when there are these faults; what begins and what is over."""
        over = [fault for fault in self._since if fault not in faults]
        begun = [fault for fault in faults if fault not in self._since]
        for fault in over:
            del self._since[fault]
        for fault in begun:
            # An overrun began when the command was due.
            self._since[fault] = self._time - (self._late if fault == "overrun" else 0.0)
        return [Event(self._stamp, f, "over") for f in over] + [Event(self._stamp, f, faults[f]) for f in begun]

    def _react(self, wanted: Reaction) -> Reaction:
        """The reaction that follows on the present one, by the rules of recovery."""
        if "hand over" in (self.reaction, wanted):
            return "hand over"
        if self.reaction == "ramp":
            if self._ran and self._lasted(self._changed, self.limits.surrender):
                return "hand over"
            if wanted != "run":
                self._calm = None
            elif self._calm is None:
                self._calm = self._time
            calm = self._calm is not None and self._lasted(self._calm, self.limits.settle)
            return "run" if calm else "ramp"
        held = self.reaction == wanted == "hold" and self._lasted(self._changed, self.limits.hold)
        return "ramp" if held else wanted

    def _lasted(self, since: float, duration: float) -> bool:
        return self._time - since >= duration - MOMENT

    def _send(self, asked: Array | None) -> Array:
        """The next command, by the reaction."""
        li, largest = self.limits, np.abs(self._out).max()
        if self.reaction == "run" and asked is not None:
            target = asked
        elif self.reaction in ("run", "hold"):
            target = self._out
        else:
            by = min(li.step, li.period / li.ramp)
            target = self._out * (1 - by / largest) if largest > by + 1e-9 else np.zeros(3)
        self._out = np.clip(np.clip(target, self._out - li.step, self._out + li.step), -1.0, 1.0)
        return self._out.copy()


def _numbers(value: Any, size: int | None) -> Array | None:
    """Finite numbers of shape (size,), or () for None; nothing where the value is not that."""
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


def _range(name: str, bounds: tuple[ArrayLike, ArrayLike]) -> tuple[Array, Array]:
    low, high = (np.asarray(bound, dtype=np.float64) for bound in bounds)
    if low.ndim != 1 or low.shape != high.shape or not (low <= high).all():
        raise InputError(f"{name} of shapes {low.shape}, {high.shape}: must be two rows of numbers, the lower first")
    return low, high
