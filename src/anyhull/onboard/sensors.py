"""What is known of a boat's sensors: the table `[sensors]` of its file."""

from __future__ import annotations

from dataclasses import dataclass

from anyhull.schema import check_types, require

LARGEST, FARTHEST_ANTENNA = 1e4, 500.0
"""Largest noise, time or limit in SI units, and distance of the antenna from the centre of gravity, m."""

POWERS = {
    **dict.fromkeys(("speed", "current", "lost_velocity", "settled_velocity"), (1.0, -1.0)),
    **dict.fromkeys(("acceleration", "model"), (1.0, -1.5)),
    "current_time": (0.0, 1.0),
    "lost_position": (1.0, 0.0),
}
"""Powers of length and time of what belongs to the size of the boat and not to its sensors."""


@dataclass(frozen=True)
class Sensors:
    """Noise of the sensors and process noise of the boat; standard deviations, SI units."""

    position: float = 0.02
    """Of one fix in x and y, m."""
    heading: float = 0.02
    """Of one heading, rad."""
    gyro: float = 5e-4
    """Of the yaw rate, as white noise, rad/√s: that of a sample times the root of its interval."""
    gyro_bias: float = 0.02
    """Of the gyro's bias at the start, rad/s."""
    gyro_bias_walk: float = 1e-4
    """Random walk of the gyro's bias, rad/s/√s."""
    acceleration: float = 0.2
    """Least random walk of the velocity without an accelerometer, m/s/√s."""
    accelerometer: float = 0.05
    """Random walk of the velocity with an accelerometer, m/s/√s: its noise, and gravity through roll and pitch."""
    model: float = 0.1
    """Random walk of the velocity with the identified boat in place of an accelerometer, m/s/√s: what wind and waves
    change within a period, and what the model has wrong."""
    accelerometer_bias: float = 0.1
    """Of the accelerometer's bias on each axis at the start, m/s²: gravity at a tilt of 0.6°."""
    accelerometer_bias_walk: float = 0.01
    """Random walk of the accelerometer's bias, m/s²/√s."""
    speed: float = 1.0
    """Of the velocity through the water, m/s; with `acceleration` it gives T_w = 2 speed² / acceleration² = 50 s."""
    current: float = 0.2
    """Of the current in x and in y, m/s."""
    current_time: float = 200.0
    """Correlation time of the current, T_c, s."""
    antenna: float = 0.02
    """Of the antenna's position on each axis, m: a tape measure. Zero: it is exact, and not estimated."""
    antenna_x: float = 0.0
    """Position of the antenna ahead of the centre of gravity, m."""
    antenna_y: float = 0.0
    """Position of the antenna to the side of positive sway, m."""
    max_delay: float = 0.5
    """Largest delay of a measurement, and largest lead over the last one, s."""
    timeout: float = 0.7
    """Time without an accepted measurement of a sensor after which the boat is dead reckoning, s."""
    restart_after: float = 2.0
    """Time of consecutive outliers of a sensor after which the filter restarts, s."""
    lost_position: float = 1.0
    """Standard deviation of the position beyond which the boat is lost, m."""
    lost_heading: float = 0.17
    """Standard deviation of the heading beyond which the boat is lost, rad."""
    lost_velocity: float = 0.5
    """Standard deviation of the velocity over ground beyond which the boat is lost, m/s."""
    settled_velocity: float = 0.2
    """Standard deviation of the velocity over ground below which the filter has settled, m/s."""

    def __post_init__(self) -> None:
        check_types(self)
        for field in self.__dataclass_fields__:
            value = getattr(self, field)
            if field == "antenna":
                require(self, field, 0 <= value <= LARGEST, f"zero or more and at most {LARGEST:g}")
            elif field.startswith("antenna"):
                require(
                    self, field, abs(value) <= FARTHEST_ANTENNA, f"from -{FARTHEST_ANTENNA:g} to {FARTHEST_ANTENNA:g}"
                )
            else:
                require(self, field, 0 < value <= LARGEST, f"positive and at most {LARGEST:g}")
