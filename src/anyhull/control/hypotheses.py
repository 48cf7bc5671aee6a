"""What `anyhull.control.identifier` assumes before any measurement of boat, sea, sensors and thrusters.

All in the units of the vessel's scale.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Noise:
    """What is assumed of sensors and sea, in the units of the vessel's scale."""

    measurement: tuple[float, float, float, float, float, float]
    """Standard deviations of the measured x, y, psi, u, v, r."""
    force: float
    """Standard deviation of the force, fractions of the limits."""
    force_decay: float
    """Its decay rate, 1/s."""
    current: float
    """Standard deviation of the current, m/s."""
    pull: float
    """Share of the way to the policy's own estimate of the boat in each period."""
    adapts: bool = False
    """Whether one factor of `measurement` follows the innovations."""


NOISES = {
    "still": Noise((1e-4,) * 6, force=2e-3, force_decay=0.5, current=1e-2, pull=3e-4),
    "exact": Noise((1e-4,) * 6, force=0.05, force_decay=0.5, current=0.1, pull=3e-4),
    "noisy": Noise((0.029, 0.029, 0.015, 0.058, 0.058, 0.075), 0.035, 0.16, 0.1, pull=3e-3, adapts=True),
    "drift": Noise((0.015, 0.015, 0.0094, 0.058, 0.058, 0.047), 0.045, 0.2, 0.1, pull=3e-3, adapts=True),
}
"""Hypotheses of sensors and sea: still water and an exact state; wind, waves and an exact state; a state with white
errors; an estimate whose errors drift, so that from one period to the next its positions are better than its
velocities."""

DELAYS = np.linspace(0.0, 0.2, 5)
"""Delays at which the filters start, s."""

LONGEST_DELAY, LONGEST_LAG = 0.4, 0.6
"""Bounds of the estimates, s."""

START_DELAY, START_LAG = 0.03, (0.04, 0.05)
"""Standard deviation of a filter's delay at the start; mean and standard deviation of the lag, s."""

WALK = np.concatenate([np.full(8, 2e-3), np.zeros(5), [3e-4, 5e-4]])
"""Random walk per period of the boat, delay and lag."""

CURRENT_DECAY = 0.05
"""Decay rate of the current, 1/s."""

PRIORS = {
    False: (
        np.array([0.29, -0.39, 1.08, -0.71, -0.71, -0.47, 0.07, -0.30]),
        np.array([1.27, 1.32, 1.95, 1.73, 1.56, 2.10, 1.17, 2.37]),
        {
            (0, 1): 0.89,
            (0, 3): 0.73,
            (0, 4): 0.75,
            (1, 3): 0.65,
            (1, 4): 0.85,
            (2, 5): 0.84,
            (3, 4): 0.55,
            (6, 7): -0.73,
        },
    ),
    True: (
        np.array([0.34, 0.25, 0.69, -0.72, 1.04, 0.05, 0.09, -0.40]),
        np.array([1.00, 1.16, 1.33, 1.30, 1.53, 1.70, 0.58, 2.17]),
        {(0, 1): 0.86, (0, 3): 0.77, (1, 3): 0.67, (1, 6): -0.50, (1, 7): 0.43, (2, 5): 0.78, (6, 7): -0.78},
    ),
}
"""Mean, standard deviation and correlations of the boat's unknowns in the training distribution, by whether the boats
are without sway force."""
