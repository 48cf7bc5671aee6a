"""Boats and a controller that several tests use."""

from __future__ import annotations

import numpy as np

BOAT = """
name = "Test boat"
m = 20
X_udot = -5
Y_vdot = -10
I_comb = 2
X_u = 10
Y_v = 20
N_r = 2
Fx = 30
Fy = 30
Mz = 10
"""

DINGHY = """
name = "Dinghy"
m = 10
X_udot = -1
Y_vdot = -5
I_comb = 2
X_u = 3
Y_v = 4
N_r = 1
"""
"""Without limits: they, or thrusters, have to follow."""


class Constant:
    """Always gives the same command."""

    def __init__(self, *command):
        self.command = np.array(command, float)

    def reset(self):
        """Nothing to forget."""

    def step(self, pose, velocity, window):
        return self.command
