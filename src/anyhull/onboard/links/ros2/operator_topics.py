"""What the operator of a ROS 2 boat wants, by the topics of his switch and of the emergency stop."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

Mode = Literal["auto", "manual", "stop"]

SEVERITY: tuple[Mode, ...] = ("auto", "manual", "stop")
"""Of several the last counts."""

SILENCE = 3.0
"""Time without a message after which a topic counts as `stop`, s; it is published once a second."""


class OperatorTopics:
    """The last message of each topic; the most severe counts.

    One that has fallen silent counts as `stop` until it has said other than `auto`: a boat must not start by itself
    when the operator's radio comes back.
    """

    def __init__(self, topics: Sequence[str]) -> None:
        self.topics = tuple(topics)
        self._modes: dict[str, Mode] = {}
        self._heard = dict.fromkeys(topics, -math.inf)
        self._silent: set[str] = set()

    @property
    def mode(self) -> Mode | None:
        """What the operator wants; None before the first message."""
        if self._silent:
            return "stop"
        return max(self._modes.values(), key=SEVERITY.index, default=None)

    def hear(self, topic: str, mode: Mode, at: float) -> bool:
        """Note a message that arrived at `at`, s; whether it counts."""
        self._modes[topic], self._heard[topic] = mode, at
        if mode != "auto":
            self._silent.discard(topic)
        return topic not in self._silent

    def find_silent(self, now: float) -> list[str]:
        """The topics that have just fallen silent."""
        late = {topic for topic in self._modes if now - self._heard[topic] > SILENCE} - self._silent
        self._silent |= late
        return sorted(late)

    def unready(self, now: float) -> str:
        """Why the boat must not start yet, or empty."""
        for topic, heard in self._heard.items():
            if now - heard > SILENCE:
                return f"nothing is heard on {topic}: must be published once a second"
            if topic in self._silent:
                return f"{topic} was silent: set it to stop and back"
        return ""
