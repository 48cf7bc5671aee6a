"""Authenticity: a handshake, and a MAC and a counter on every datagram; without a socket. See docs/link.md.

    hello   tag(16)  1  nonce(16)  echo(16)     under a key of the sender's role
    data    tag(16)  2  counter(8)  message     under a key of the session and the direction

A tag is the first half of HMAC-SHA256 over all that follows it. Each side draws a nonce. It says hello without an echo
(zeros) while it hears nothing, and answers such a hello with the nonce heard as echo. A hello that echoes a side's own
nonce is fresh, since that nonce was never used before: the session with the two nonces replaces the present one, and a
new nonce is drawn. A data message under the keys of the two nonces does the same, if the last hello is lost. A recorded
hello provokes at most an answer that nobody uses.

The state has a constant size. A forged datagram costs one HMAC, or two after a hello that nobody followed up.
"""

from __future__ import annotations

import hmac
import math
import secrets
import time
from collections.abc import Callable
from typing import Literal, NamedTuple

from anyhull.onboard.clock import SequenceWindow
from anyhull.onboard.messages import BadMessage

Role = Literal["pilot", "boat"]

ROLES: tuple[Role, Role] = ("pilot", "boat")

TAG, NONCE, COUNTER = 16, 16, 8
"""Lengths, bytes."""

HELLO, DATA = b"\x01", b"\x02"
"""Kinds of datagrams."""

OVERHEAD = TAG + 1 + COUNTER
"""Bytes before a message."""

NO_ECHO = bytes(NONCE)

SILENCE = 1.0
"""Time without an authentic message, s, after which a side says hello again: the peer may have lost the session."""

HELLO_INTERVAL = 0.5
"""Time between two hellos, s."""

ANSWER_INTERVAL = 0.1
"""Shortest time between two answers while the session is in use, s: recorded hellos must not keep it busy."""


class Keys(NamedTuple):
    """The keys of a session."""

    nonce: bytes
    """The peer's."""
    send: bytes
    receive: bytes


class Session:
    """One side's end of the authenticated exchange."""

    def __init__(
        self,
        key: bytes,
        role: Role,
        clock: Callable[[], float] = time.monotonic,
        draw_nonce: Callable[[int], bytes] = secrets.token_bytes,
    ) -> None:
        """`key` is the boat's. `clock` is in s and never set."""
        self._key, self._role, self._clock, self._draw_nonce = key, role, clock, draw_nonce
        self._hello_keys = {side: hmac.digest(key, f"anyhull 2 hello {side}".encode(), "sha256") for side in ROLES}
        self._peer: Role = "boat" if role == "pilot" else "pilot"
        self._nonce = draw_nonce(NONCE)
        self._keys: Keys | None = None
        self._candidate: Keys | None = None
        self._answer: bytes | None = None
        self._sent, self._window = 0, SequenceWindow()
        self._heard = self._said_hello = self._answered = -math.inf

    @property
    def established(self) -> bool:
        """Whether there is a session, so that messages can be sent."""
        return self._keys is not None

    def seal(self, message: bytes) -> bytes | None:
        """The datagram for a message; None before the handshake."""
        if self._keys is None:
            return None
        body = DATA + self._sent.to_bytes(COUNTER, "big") + message
        self._sent += 1
        return _tag(self._keys.send, body) + body

    def open(self, datagram: bytes) -> bytes | None:
        """The message in a datagram, None for a hello; raises `BadMessage` for one that is forged or replayed."""
        tag, body = datagram[:TAG], datagram[TAG:]
        if body[:1] == HELLO and _authentic(self._hello_keys[self._peer], tag, body):
            self._on_hello(body[1 : 1 + NONCE], body[1 + NONCE :])
            return None
        if body[:1] != DATA:
            raise BadMessage("not authentic")
        if self._keys is None or not _authentic(self._keys.receive, tag, body):
            if self._candidate is None or not _authentic(self._candidate.receive, tag, body):
                raise BadMessage("not authentic")
            self._establish(self._candidate)
        if self._window.add(int.from_bytes(body[1 : 1 + COUNTER], "big")) == "duplicate":
            raise BadMessage("replayed")
        self._heard = self._clock()
        return body[1 + COUNTER :]

    def outgoing(self) -> list[bytes]:
        """The hellos to send now."""
        now, due = self._clock(), [] if self._answer is None else [self._answer]
        self._answer = None
        if now - self._heard > SILENCE and now - self._said_hello >= HELLO_INTERVAL:
            self._said_hello = now
            due.append(self._hello(NO_ECHO))
        return due

    def _on_hello(self, nonce: bytes, echo: bytes) -> None:
        now = self._clock()
        if echo == self._nonce:
            keys = self._derive(nonce)
            if self._candidate is None or self._candidate.nonce != nonce:  # else it has been answered
                self._answer = self._hello(nonce)
            self._establish(keys)
        elif echo != NO_ECHO:
            raise BadMessage("replayed")
        elif now - self._heard <= SILENCE and now - self._answered < ANSWER_INTERVAL:
            raise BadMessage("too many hellos")
        else:
            self._candidate, self._answer, self._answered = self._derive(nonce), self._hello(nonce), now

    def _establish(self, keys: Keys) -> None:
        """Begin the session; its nonce is used up, so that it can never begin again."""
        self._keys, self._candidate, self._nonce = keys, None, self._draw_nonce(NONCE)
        self._sent, self._window, self._heard = 0, SequenceWindow(), self._clock()

    def _hello(self, echo: bytes) -> bytes:
        body = HELLO + self._nonce + echo
        return _tag(self._hello_keys[self._role], body) + body

    def _derive(self, nonce: bytes) -> Keys:
        """The keys of the session with the peer's nonce: one for each direction, so that an echo is not authentic."""
        nonces = self._nonce + nonce if self._role == "pilot" else nonce + self._nonce
        send, receive = (
            hmac.digest(self._key, f"anyhull 2 data {side}".encode() + nonces, "sha256")
            for side in (self._role, self._peer)
        )
        return Keys(nonce, send, receive)


def _tag(key: bytes, body: bytes) -> bytes:
    return hmac.digest(key, body, "sha256")[:TAG]


def _authentic(key: bytes, tag: bytes, body: bytes) -> bool:
    return hmac.compare_digest(tag, _tag(key, body))
