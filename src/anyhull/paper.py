"""Published values of the paper: platforms, training ranges, tables, and figures in the text."""

from __future__ import annotations

from typing import NamedTuple

PLATFORMS = ("platform-a", "platform-b", "roboat-1", "roboat-2", "roboat-3")
"""The five vessels, by their names in the catalogue."""

FIELD_PLATFORMS = PLATFORMS[:2]
"""The platforms of the field experiments."""

RANGES: dict[str, tuple[float, float]] = {
    "alpha_u": (0.15, 12.0),
    "alpha_v": (0.11, 11.0),
    "alpha_r": (0.10, 86.0),
    "inv_tau_u": (0.007, 34.0),
    "inv_tau_v": (0.019, 34.0),
    "inv_tau_r": (0.003, 25.0),
    "c_rv": (0.06, 29.0),
    "c_ru": (-16.0, -0.03),
    "c_uv": (-218.0, 218.0),
}
"""The ranges of the normalized components e in training."""


class Printed(NamedTuple):
    """A row of a table: position (cm) and heading (degrees), each with its standard deviation."""

    position_cm: float
    position_std_cm: float
    heading_deg: float
    heading_std_deg: float


IDEAL = {
    "mpc-paper": Printed(0.33, 0.00, 0.07, 0.00),
    "ppo-specific": Printed(0.65, 0.04, 0.97, 0.13),
    "student": Printed(0.84, 0.11, 1.81, 0.50),
    "teacher": Printed(0.85, 0.13, 1.79, 0.50),
    "recurrent": Printed(0.96, 0.31, 2.34, 0.42),
    "ppo-general": Printed(1.49, 0.10, 3.98, 0.28),
    "student-mean-latent": Printed(2.18, 0.16, 4.06, 0.37),
}
"""Five platforms in ideal conditions; the deviation is over ten seeds."""

FIELD = {
    "platform-a": {
        "mpc-field": Printed(4.6, 2.5, 1.9, 2.1),
        "student": Printed(4.0, 2.1, 2.5, 1.9),
        "ppo-specific": Printed(5.5, 3.2, 4.0, 3.0),
        "ppo-general": Printed(5.6, 3.0, 2.6, 1.9),
    },
    "platform-b": {
        "mpc-field": Printed(4.1, 2.6, 2.9, 3.9),
        "student": Printed(4.0, 2.4, 2.0, 1.5),
        "ppo-specific": Printed(5.3, 2.8, 2.1, 2.6),
        "ppo-general": Printed(9.5, 3.4, 2.2, 1.6),
    },
}
"""Field experiments; the deviation is over time."""

SEEDS = 10
"""Training seeds of the table in ideal conditions."""

VARIANCE_SHARES = (63.7, 27.3)
"""Share of the latent's variance in its first two principal components, percent."""

ADAPTATION_TIME = 1.0
"""Approximate adaptation time after the step change of the scale, s."""
