"""How rmw_zenoh maps ROS 2 onto zenoh: key expressions, liveliness tokens and attachments.

After the design document of rmw_zenoh (docs/design.md of its Jazzy branch). Names of tokens have `%` for `/`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Literal, NamedTuple

ADMIN = "@ros2_lv"
"""First chunk of all liveliness tokens."""

GID = 16
"""Length of the identifier of a publisher, bytes."""

_ATTACHMENT = struct.Struct("<qqB16s")
_HEAD = struct.Struct("<qqB")

Kind = Literal["NN", "MP", "MS"]
"""Of an entity: node, message publisher, message subscription."""


class Attachment(NamedTuple):
    """What accompanies each message."""

    sequence: int
    """Number of the message of its publisher, from 1."""
    time: int
    """When it was published, ns since 1970."""
    gid: bytes
    """Of its publisher."""

    def encode(self) -> bytes:
        """Two little-endian int64, the length of the GID and the GID."""
        return _ATTACHMENT.pack(self.sequence, self.time, GID, self.gid)

    @staticmethod
    def decode(content: bytes) -> Attachment | None:
        """The attachment in these bytes; None if they are not one."""
        if len(content) < _HEAD.size:
            return None
        sequence, time, length = _HEAD.unpack_from(content)
        if len(content) != _HEAD.size + length:
            return None
        return Attachment(sequence, time, content[_HEAD.size :])


class Endpoint(NamedTuple):
    """A publisher or subscription of the graph."""

    session: str
    kind: str
    topic: str
    type: str
    """As `nav_msgs/msg/Odometry`."""
    hash: str


@dataclass(frozen=True)
class Graph:
    """Names of one node's entities."""

    domain: int
    session: str
    """Zenoh's identifier of the session, in hexadecimal."""
    namespace: str
    node: str

    def key(self, topic: str, kind: str, type_hash: str) -> str:
        """The key expression of a topic's messages."""
        return f"{self.domain}/{topic.strip('/')}/{dds_name(kind)}/{type_hash}"

    def node_token(self) -> str:
        """The liveliness token of the node, which has the number 0."""
        return self._token(0, "NN")

    def token(self, number: int, entity: Kind, topic: str, kind: str, type_hash: str, qos: str) -> str:
        """The liveliness token of a publisher or subscription, which has a `number` of its own."""
        return f"{self._token(number, entity)}/{_mangled(topic)}/{dds_name(kind)}/{type_hash}/{qos}"

    def watched(self) -> str:
        """The key expression of all tokens of the domain."""
        return f"{ADMIN}/{self.domain}/**"

    def _token(self, number: int, entity: Kind) -> str:
        names = f"%/{_mangled(self.namespace)}/{self.node}"  # of no SROS enclave
        return f"{ADMIN}/{self.domain}/{self.session}/0/{number}/{entity}/{names}"


def endpoint(token: str) -> Endpoint | None:
    """The publisher or subscription of a liveliness token; None if it is of something else."""
    chunks = token.split("/")
    if len(chunks) != 13 or chunks[0] != ADMIN or chunks[5] not in ("MP", "MS"):
        return None
    kind = chunks[10].removesuffix("_").replace("::dds_::", "/").replace("::", "/")
    return Endpoint(chunks[2], chunks[5], chunks[9].replace("%", "/"), kind, chunks[11])


def qos(depth: int, *, best_effort: bool = False, latched: bool = False) -> str:
    """The quality of service of a token: reliability, durability, history, deadline, lifespan and liveliness.

    Empty fields are rmw_zenoh's defaults: reliable, volatile, keep last.
    """
    return f"{'2' if best_effort else ''}:{'1' if latched else ''}:,{depth}:,:,:,,"


def dds_name(kind: str) -> str:
    """The name of a type as DDS has it: `nav_msgs::msg::dds_::Odometry_` of `nav_msgs/msg/Odometry`."""
    package, folder, name = kind.split("/")
    return f"{package}::{folder}::dds_::{name}_"


def _mangled(name: str) -> str:
    return name.replace("/", "%")
