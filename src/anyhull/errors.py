"""The exceptions that are answered in one line: a person's mistake, and a run that went wrong."""

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """Input that cannot be used: one line with the file, the field, the value and what would be accepted."""


class RunError(RuntimeError):
    """A run that could not be finished, though the input was in order."""


def unknown(kind: str, name: str, accepted: Iterable[str], hint: str | None = None) -> str:
    """What to say of a name that is none of the accepted ones: the nearest of them, and all of them or a `hint`."""
    names = list(accepted)
    near = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.4)
    nearest = f"did you mean {near[0]!r}? " if near else ""
    return f"{kind} {name!r} is unknown: {nearest}{hint or 'accepted are ' + ', '.join(names)}"
