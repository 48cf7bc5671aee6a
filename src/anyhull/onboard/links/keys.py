"""The key of a boat: 32 random bytes in a file that its owner alone may read, known to the pilot and to the boat."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from anyhull.errors import InputError

KEY_BYTES = 32
"""Length of a key; its file holds it in hexadecimal, in one line."""


def make_key(path: Path) -> None:
    """Write a new key to `path`, mode 600; never over a file that exists."""
    try:
        # Nobody else can read the file at any time: it is created with its final mode, and not through a link.
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise InputError(f"{path}: exists: a key is never overwritten; give another path") from None
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written: {error.strerror}; give a path in a folder you may write to"
        ) from None
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            os.fchmod(handle, 0o600)
            file.write(secrets.token_hex(KEY_BYTES) + "\n")
            file.flush()
            os.fsync(handle)
    except OSError as error:
        path.unlink()
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None


def load_key(path: Path) -> bytes:
    """The key in a file that only its owner may read."""
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            content = file.read(1000) if stat.S_ISREG(status.st_mode) else b""
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}; 'anyhull key FILE' makes a key") from None
    if status.st_mode & 0o077:
        mode = stat.S_IMODE(status.st_mode)
        raise InputError(f"{path}: mode = {mode:o}: must be 600: others may use this key; make a new one, or chmod 600")
    try:
        key = bytes.fromhex(content.strip().decode("ascii"))
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        # Not what it holds: it may be most of a key.
        raise InputError(
            f"{path}: must be one line of {2 * KEY_BYTES} hexadecimal digits, as 'anyhull key FILE' writes it"
        )
    return key
