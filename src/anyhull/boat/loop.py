"""The loop by the wall clock: a helm, a link to the boat, a period of 100 ms, and a clean end.

It listens until a command is due, steps the helm, sends, and records. A period that was missed is left out, not made up
for: the guard sees it as an overrun. However the loop ends, the last that the boat hears is zero.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from anyhull.boat.helm import Beat, Helm
from anyhull.boat.link import Link
from anyhull.dynamics import PERIOD
from anyhull.log import Log

FAREWELL = 3
"""How often zero is sent at the end: a datagram may be lost."""

RAMPED = 1.5
"""How much longer than the guard's ramp the boat is given to come to rest, s."""


def drive(
    helm: Helm,
    link: Link,
    *,
    speed: float = 1.0,
    clock: Callable[[], float] = time.monotonic,
    stop: Callable[[], str] = lambda: "",
    on_beat: Callable[[Beat | None, float], None] | None = None,
) -> Log:
    """Steer until the reference has been followed, or `stop` gives a reason to; what happened.

    `speed` makes time run faster, for a simulated boat that does so too. `clock` is in s; `on_beat` is told of every
    period, with how late it was.
    """
    period, recorder = PERIOD / speed, Recorder(helm)
    due, ends = clock(), None
    try:
        while ends is None or (clock() < ends and not _at_rest(helm)):
            while True:
                for message, arrival in link.receive(due - clock()):
                    helm.hear(message, arrival * speed)
                if (now := clock()) >= due:
                    break
            helm.refuse(link.refused, now * speed)
            beat = helm.step(now * speed)
            if beat is not None:
                link.send(beat.command)
                recorder.add(beat, now * speed)
            if on_beat is not None:
                on_beat(beat, (now - due) * speed)
            due = due + period if clock() < due + period else clock() + period
            reason = stop() or ("arrived" if helm.phase == "arrived" else "")
            if reason and ends is None:
                helm.relieve(reason)
                ends = clock() + (helm.setup.limits.ramp + RAMPED) / speed
    finally:
        for _ in range(FAREWELL):
            if (zero := helm.zero(clock() * speed)) is not None:
                link.send(zero)
    return recorder.log()


class Recorder:
    """Gathers what a helm does into a Log, from when it first has a state."""

    def __init__(self, helm: Helm) -> None:
        self._helm = helm
        self._rows: list[tuple[float, ...]] = []
        self._latents: list[Any] = []
        self._began: float | None = None

    def add(self, beat: Beat, now: float) -> None:
        """Record a period at one's own time, since the boat's clock may be set."""
        estimate = beat.estimate
        if not (np.isfinite(estimate.pose).all() and np.isfinite(estimate.velocity).all()):
            return
        self._began = now if self._began is None else self._began
        known = (*estimate.pose, *estimate.velocity, *beat.reference, *beat.decision.command, *estimate.current)
        self._rows.append((now - self._began, *known))
        if (latent := getattr(self._helm.controller, "latent", None)) is not None:
            self._latents.append(np.array(latent))

    def log(self) -> Log:
        """All of it: states and currents are the boat's estimates."""
        helm, vessel = self._helm, self._helm.setup.vessel
        rows = np.array(self._rows).reshape(-1, 18)
        about = {
            "vessel": vessel.name,
            "controller": type(helm.controller).__name__,
            "length": vessel.length,
            "beam": vessel.beam,
            "noted": dict(helm.notes.counts),
            "heard": dict(helm.heard),
            "events": [list(event) for event in helm.notes.events],
        }
        latents = np.array(self._latents) if len(self._latents) == len(rows) > 0 else None
        return Log(
            rows[:, 0],
            rows[:, 1:7],
            rows[:, 7:13],
            rows[:, 13:16],
            rows[:, 16:],
            np.zeros((len(rows), 3)),
            latents,
            about,
        )


def _at_rest(helm: Helm) -> bool:
    return helm.guard.reaction == "hand over" and not helm.commanding
