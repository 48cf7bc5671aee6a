"""A boat's file: the vessel, and optional tables for its link, guard, fence and sensors."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anyhull.errors import InputError
from anyhull.files import read_toml
from anyhull.onboard.fence import Circle, Fence, Polygon
from anyhull.onboard.limits import Limits
from anyhull.onboard.links.link import LinkConfig
from anyhull.onboard.links.opening import read_link
from anyhull.onboard.links.udp import UDPConfig
from anyhull.onboard.sensors import POWERS, Sensors
from anyhull.schema import decode
from anyhull.vessel import Vessel


@dataclass(frozen=True)
class Setup:
    """The configuration of the loop on one boat."""

    vessel: Vessel
    link: LinkConfig = field(default_factory=UDPConfig)
    """`[link]`."""
    limits: Limits = field(default_factory=Limits)
    """`[guard]`."""
    fence: Fence | None = None
    """`[fence]`: x, y and radius, or corners."""
    sensors: Sensors = field(default_factory=Sensors)
    """`[sensors]`."""

    def __post_init__(self) -> None:
        scale = self.vessel.scale
        object.__setattr__(self, "limits", self.limits.scaled(scale))
        object.__setattr__(self, "sensors", scale.defaults(self.sensors, POWERS))

    @staticmethod
    def load(name_or_path: str | Path) -> Setup:
        """From a TOML file; a vessel of the catalogue has the defaults."""
        vessel = Vessel.load(name_or_path)
        path = Path(name_or_path)
        if path.suffix != ".toml":
            return Setup(vessel)
        table = read_toml(path)
        try:
            return Setup(
                vessel,
                read_link(table.get("link", {}), path.parent),
                decode(Limits, table.get("guard", {}), "guard"),
                _fence(table["fence"]) if "fence" in table else None,
                decode(Sensors, table.get("sensors", {}), "sensors"),
            )
        except InputError as error:
            raise InputError(f"{path}: {error}") from None


def _fence(table: Any) -> Fence:
    polygon = isinstance(table, dict) and "corners" in table
    return decode(Polygon, table, "fence") if polygon else decode(Circle, table, "fence")
