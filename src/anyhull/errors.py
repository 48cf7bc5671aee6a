"""Exceptions that the command line reports in one line: invalid input, and a failed run."""

import difflib
from collections.abc import Iterable

LONGEST = 3000
"""Characters of a message; more are cut out of its middle."""


class InputError(ValueError):
    """Input that cannot be used: one line with the file, the field, the value and what would be accepted."""

    def __init__(self, message: str) -> None:
        # Names and values come from foreign files: no line break or control sequence may reach a terminal.
        if not message.isprintable():
            message = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in message)
        half = LONGEST // 2
        super().__init__(message if len(message) <= LONGEST else f"{message[:half]} … {message[-half:]}")


class RunError(RuntimeError):
    """A run that failed although its input was valid."""


def unknown(kind: str, name: str, accepted: Iterable[str], hint: str | None = None) -> str:
    """The message for an unknown name: the closest accepted name, then all accepted names or a `hint`."""
    names = list(accepted)
    matches = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.4)
    suggestion = f"did you mean {matches[0]!r}? " if matches else ""
    return f"{kind} {name!r} is unknown: {suggestion}{hint or 'accepted are ' + ', '.join(names)}"
