"""The one exception that a person's mistake raises."""

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """Input that cannot be used: one line with the file, the field, the value and what would be accepted."""


def unknown(kind: str, name: str, accepted: Iterable[str], hint: str | None = None) -> str:
    """What to say of a name that is none of the accepted ones: the nearest of them, and all of them or a `hint`."""
    names = list(accepted)
    near = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.4)
    nearest = f"did you mean {near[0]!r}? " if near else ""
    return f"{kind} {name!r} is unknown: {nearest}{hint or 'accepted are ' + ', '.join(names)}"
