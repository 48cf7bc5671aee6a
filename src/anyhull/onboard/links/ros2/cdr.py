"""ROS 2 messages as CDR bytes, and the hashes of their types, by rosbags' definitions of ROS 2 Jazzy."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from anyhull.errors import InputError

LONGEST = 10_000
"""Largest length of a list in a message received: the points of a path."""

MAX_BYTES, MAX_PATH = 4096, 2**20
"""Largest message received, and largest path, of which a pose has 80 bytes."""


class BadCDR(ValueError):
    """Bytes that are not a message of the type of their topic."""


@functools.cache
def typestore() -> Any:
    """The definitions of the messages."""
    try:
        from rosbags.typesys import Stores, get_typestore
    except ImportError:
        raise InputError("rosbags is not installed: pip install 'anyhull[ros2]'") from None
    store = get_typestore(Stores.ROS2_JAZZY)
    store.max_sequence_length = LONGEST
    return store


@functools.cache
def type_hash(kind: str) -> str:
    """The RIHS01 hash of a type (REP-2016)."""
    return str(typestore().hash_rihs01(kind))


def most_bytes(kind: str) -> int:
    """The largest message of a type that is received."""
    return MAX_PATH if kind == "nav_msgs/msg/Path" else MAX_BYTES


def encode(kind: str, fields: dict[str, Any]) -> bytes:
    """A message of these fields as CDR; those left out are zero."""
    store = typestore()
    return bytes(store.serialize_cdr(build(store, kind, fields), kind))


def decode(kind: str, content: bytes) -> Any:
    """The message of CDR bytes; raises only `BadCDR`."""
    if len(content) > most_bytes(kind):
        raise BadCDR("too long")
    try:
        return typestore().deserialize_cdr(content, kind)
    except Exception:  # whatever the bytes are
        raise BadCDR(f"not a {kind}") from None


def build(store: Any, kind: str, fields: dict[str, Any]) -> Any:
    """A message of a store of definitions from its fields; those left out are zero."""
    known = dict(store.fielddefs[kind][1])
    if unknown := fields.keys() - known.keys():
        raise KeyError(f"{kind} has no {', '.join(sorted(unknown))}")
    return store.types[kind](**{name: _value(store, entry, fields.get(name)) for name, entry in known.items()})


def _value(store: Any, entry: tuple[Any, Any], value: Any) -> Any:
    node, about = entry
    match node.name:
        case "NAME":
            return build(store, about, value or {})
        case "BASE":
            name = about[0]
            return value if value is not None else "" if name == "string" else False if name == "bool" else 0
    element, length = about
    if element[0].name == "NAME":
        return [build(store, element[1], item) for item in value or ()]
    if element[1][0] in ("string", "wstring"):
        return list(value or ())
    plain = {"byte": "uint8", "octet": "uint8", "char": "uint8"}.get(element[1][0], element[1][0])
    if value is None:
        return np.zeros(length if node.name == "ARRAY" else 0, plain)
    return np.asarray(value, plain)
