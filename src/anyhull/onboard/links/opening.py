"""The kinds of links, and how a boat's file is opened as one of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from anyhull.errors import InputError
from anyhull.mission.geodesy import LocalFrame
from anyhull.onboard.links.link import ConfiguredLink, LinkConfig
from anyhull.onboard.links.mavlink.config import MAVLinkConfig
from anyhull.onboard.links.ros2.config import ROS2Config
from anyhull.onboard.links.session import Role
from anyhull.onboard.links.udp import UDPConfig, open_udp
from anyhull.schema import FieldError, decode
from anyhull.vessel import Vessel

KINDS: dict[str, type[LinkConfig]] = {"udp": UDPConfig, "mavlink": MAVLinkConfig, "ros2": ROS2Config}
"""Tables `[link]` by their `kind`."""


def read_link(table: Any, folder: Path) -> LinkConfig:
    """The table `[link]` of a boat's file in `folder`."""
    kind = table.get("kind", "udp") if isinstance(table, dict) else "udp"
    if not isinstance(kind, str) or kind not in KINDS:
        raise FieldError("link.kind", kind, " or ".join(map(repr, KINDS)))
    table = ROS2Config.with_preset(table) if kind == "ros2" else table
    link = decode(KINDS[kind], table, "link")
    # Paths in a file are relative to its folder.
    for name in ("key", "signing_key"):
        if (path := getattr(link, name, None)) is not None:
            link = replace(link, **{name: str(folder / path)})  # type: ignore[arg-type]
    return link


def open_link(
    config: LinkConfig,
    role: Role,
    listen: str | None = None,
    peer: str | None = None,
    frame: LocalFrame | None = None,
    vessel: Vessel | None = None,
) -> ConfiguredLink:
    """The link of a boat's file at the end of `role`.

    `listen` and `peer` replace that end's addresses, of UDP only. `frame` is the local frame of a geographic mission,
    and `vessel` is of use to links that send newtons.
    """
    if isinstance(config, UDPConfig):
        return open_udp(config, role, listen, peer)
    for option, value in (("--listen", listen), ("--peer", peer)):
        if value is not None:
            raise InputError(f"{option} {value}: only for [link] kind = 'udp', and this boat's is {config.kind!r}")
    if isinstance(config, ROS2Config) and role == "pilot":
        from anyhull.onboard.links.ros2.opening import open_ros2

        return open_ros2(config, vessel, frame)
    if isinstance(config, MAVLinkConfig):
        if role == "boat":
            raise InputError("link.kind = 'mavlink': the boat's end is an autopilot; `anyhull.twin` has one to try")
        from anyhull.onboard.links.mavlink.link import open_mavlink

        return open_mavlink(config, frame)
    raise InputError(f"link.kind = {config.kind!r}: cannot be opened")
