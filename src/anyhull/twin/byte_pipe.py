"""Two ends of a connection in memory and in simulated time, with seeded loss, delay and reordering.

Each has the interface of a MAVLink transport. What is written in one piece is lost, delayed and overtaken as a whole,
as a datagram is.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable

import numpy as np

from anyhull.onboard.links.udp import Address
from anyhull.twin.twin import InTransit

KEPT = 50_000
"""Pieces remembered."""


class PipeEnd:
    """One end."""

    def __init__(self, name: str, clock: Callable[[], float], random: np.random.Generator) -> None:
        self.rejected: Counter[str] = Counter()
        self.address = self.peer = name
        self.loss = 0.0
        """Probability that what is written here does not arrive."""
        self.delay = (0.0, 0.0)
        """Range of its delay, s: with a range, later pieces overtake."""
        self.written: deque[tuple[float, bytes]] = deque(maxlen=KEPT)
        """The time of what was last written here, lost or not, and the bytes."""
        self._clock, self._random = clock, random
        self._arriving: InTransit[bytes] = InTransit()
        self._other: PipeEnd | None = None
        self._open = True

    def wait(self, timeout: float) -> None:
        """Time passes by the clock alone."""

    def read(self) -> list[tuple[bytes, Address | None]]:
        """What has arrived."""
        return [(data, None) for data in self._arriving.arrived(self._clock())] if self._open else []

    def lock(self, sender: Address) -> None:
        """There is one other end."""

    def unlock(self) -> None:
        """There is one other end."""

    def write(self, data: bytes) -> None:
        """Send one piece."""
        self.written.append((self._clock(), data))
        if self._open and self._other is not None and self._random.random() >= self.loss:
            self._other.inject(data, self._random.uniform(*self.delay))

    def inject(self, data: bytes, delay: float = 0.0) -> None:
        """Let something arrive here."""
        self._arriving.send(self._clock() + delay, data)

    def pause(self, seconds: float) -> None:
        """Time passes by the clock alone."""

    def close(self) -> None:
        """End the connection at this end."""
        self._open = False


def byte_pipe(clock: Callable[[], float], seed: int = 0) -> tuple[PipeEnd, PipeEnd]:
    """The pilot's and the boat's end."""
    random = np.random.default_rng([seed, 7])
    pilot, boat = (PipeEnd(name, clock, random) for name in ("pilot", "boat"))
    pilot._other, boat._other = boat, pilot
    return pilot, boat
