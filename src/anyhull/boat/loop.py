"""The loop by the wall clock: a helm, a link to the boat, a period of 100 ms, and a clean end.

It listens until a command is due, steps the helm, sends, and records. A period that was missed is left out, not made up
for: the guard sees it as an overrun. However the loop ends, the last that the boat hears is zero.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from anyhull.boat.helm import Beat, Helm
from anyhull.boat.journal import Recorder
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
    journal: Path | None = None,
    about: dict[str, Any] | None = None,
) -> Log:
    """Steer until the reference has been followed, or `stop` gives a reason to; what happened.

    `speed` makes time run faster, for a simulated boat that does so too. `clock` is in s; `on_beat` is told of every
    period, with how late it was. At `journal`, a file that must not exist, the record is kept as it
    grows; `about` goes into it and into the log.
    """
    period, recorder = PERIOD / speed, Recorder(helm, journal, about)
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
        recorder.close()
    return recorder.log()


def _at_rest(helm: Helm) -> bool:
    return helm.guard.reaction == "hand over" and not helm.commanding
