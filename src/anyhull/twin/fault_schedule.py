"""Faults in simulated time: their kinds, random sequences of them, and those that are active."""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

MessageKind = Literal[
    "fixes lost",
    "headings lost",
    "gyro lost",
    "accelerations lost",
    "status lost",
    "heading flipped",
    "nan",
    "duplicated",
    "garbage",
]
"""Faults of the boat's messages before they are sealed."""

LinkKind = Literal["reordered", "bits flipped", "replayed", "forged", "downlink lost", "uplink lost"]
"""Faults of datagrams. Those flipped, replayed and forged concern both directions."""

SensorKind = Literal["position jump", "position drift", "heading drift", "gyro spikes", "bad std"]
"""Faults of sensors. The errors of the position last; that of the heading ends with its drift."""

BoatKind = Literal[
    "thruster dead", "thruster weak", "thruster stuck", "aground", "battery low", "leak", "heeled", "operator manual"
]

ProcessKind = Literal["clock set", "boat restarted", "pilot frozen", "pilot killed", "disk full", "console blocked"]

Kind = MessageKind | LinkKind | SensorKind | BoatKind | ProcessKind
KINDS: tuple[Kind, ...] = tuple(kind for group in get_args(Kind) for kind in get_args(group))

DURATIONS = (0.1, 0.5, 3.0, 8.0)
LONG_DURATIONS = (5.0, 20.0, 60.0)
"""From which durations are drawn, s: of drifts and of faults of the boat or of a console the long ones."""

LONG_KINDS: tuple[Kind, ...] = (*get_args(BoatKind), "position drift", "heading drift", "disk full", "console blocked")

SIZES: dict[Kind, tuple[float, ...]] = {
    "clock set": (0.2, -0.2, 1.0, -1.0, 30.0, -30.0, 1e5, -1e5),
    "position jump": (0.3, 1.0, 3.0, 5.0),
    "position drift": (0.02, 0.05, 0.1),
    "heading drift": (0.002, -0.002, 0.01, -0.01, 0.02, -0.02),
    "gyro spikes": (1.0, -1.0, 5.0, -5.0, 19.0, -19.0),
    "bad std": (1e-4, 1e3, 0.0, -1.0, 1e9),
    "thruster weak": (0.2, 0.5, 0.8),
    "thruster stuck": (-1.0, -0.4, 0.3, 1.0),
    "battery low": (0.05,),
    "heeled": (0.8, -0.8),
}
"""From which sizes are drawn, in the unit of `Fault.size`."""

SHARES: dict[Kind, tuple[float, ...]] = dict.fromkeys(
    (*get_args(MessageKind), *get_args(LinkKind), "bad std"), (0.05, 0.3, 1.0)
) | {"gyro spikes": (0.01, 0.1), "heading flipped": (1.0,)}
"""From which shares are drawn; 1 for all other kinds."""


@dataclass(frozen=True)
class Fault:
    """A fault of some duration."""

    kind: Kind
    start: float
    """s, since the beginning."""
    duration: float = 0.0
    """s; zero for an instantaneous fault."""
    share: float = 1.0
    """Fraction of the messages, datagrams or samples concerned."""
    size: float = 0.0
    """Of a clock's step, s; of a jump, m; of a drift, m/s or rad/s; of a spike, rad/s; the standard deviation stated, m
    and rad; the fraction left of a weak thruster's thrust; the command of a stuck one; a charge; an angle, rad."""
    direction: float = 0.0
    """Of a jump or a drift of the position, rad."""
    thruster: int = 0
    """The thruster concerned."""


class Schedule:
    """The faults of a run, by time."""

    def __init__(self, faults: Sequence[Fault], random: np.random.Generator) -> None:
        self.active: dict[Kind, list[Fault]] = defaultdict(list)
        """Active faults by kind; a kind without one is not a key."""
        self.last_end = -math.inf
        """End of the last fault so far, s."""
        self._ended: deque[Fault] = deque(maxlen=20)
        self._coming = sorted(faults, key=lambda fault: fault.start, reverse=True)
        self._random = random

    def advance(self, time: float) -> tuple[list[Fault], list[Fault]]:
        """Go on to a time, s; the faults that begin and those that end."""
        begun, ended = [], []
        for kind, faults in list(self.active.items()):
            for fault in [fault for fault in faults if fault.start + fault.duration <= time + 1e-9]:
                faults.remove(fault)
                ended.append(fault)
            if not faults:
                del self.active[kind]
        while self._coming and self._coming[-1].start <= time + 1e-9:
            fault = self._coming.pop()
            begun.append(fault)
            self.last_end = max(self.last_end, fault.start + fault.duration)
            if fault.duration > 0:
                self.active[fault.kind].append(fault)
            else:
                self._ended.append(fault)
        self._ended += ended
        return begun, ended

    def recent(self, since: float) -> list[Kind]:
        """The kinds that are active or have been since a time, s."""
        ended = [fault.kind for fault in self._ended if fault.start + fault.duration >= since]
        return [*dict.fromkeys((*ended, *self.active))]

    def on(self, kind: Kind) -> Fault | None:
        """The active fault of that kind, if it concerns the present message."""
        if kind not in self.active:
            return None
        fault = self.active[kind][0]
        return fault if fault.share >= 1 or self._random.random() < fault.share else None


def random_faults(
    duration: float, random: np.random.Generator, every: float = 15.0, kinds: Sequence[Kind] = KINDS
) -> list[Fault]:
    """Random faults, one every `every` s on average, which may overlap; each kind as often as the others."""
    faults, start, order = [], min(10.0, duration / 8), list[Kind]()
    while (start := start + random.exponential(every)) < duration:
        order = order or [kinds[i] for i in random.permutation(len(kinds))]
        kind = order.pop()
        faults.append(
            Fault(
                kind,
                start,
                duration=float(random.choice(LONG_DURATIONS if kind in LONG_KINDS else DURATIONS)),
                share=float(random.choice(SHARES.get(kind, (1.0,)))),
                size=float(random.choice(SIZES.get(kind, (0.0,)))),
                direction=random.uniform(-math.pi, math.pi),
                thruster=int(random.integers(100)),
            )
        )
    return faults
