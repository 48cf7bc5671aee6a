"""The loop as on the boat: sensors, estimator, controller, guard, allocation, thrusters with dead bands."""

import math
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from anyhull.control import PID
from anyhull.dynamics import derivative, rk4
from anyhull.onboard import Allocator, Circle, Estimator, Guard
from anyhull.reference import rounded_rectangle
from anyhull.vessel import Vessel

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.parametrize("file", ["boat.toml", "boat-b.toml"])
def test_a_boat_in_a_current_keeps_to_its_path_by_noisy_sensors(file):
    vessel, path = Vessel.load(EXAMPLES / file), rounded_rectangle(speed=0.6)
    pilot, estimator = PID(vessel), Estimator()
    guard, allocator = Guard(fence=Circle(0, 0, 30)), Allocator(vessel.thrusters)
    rng, limits = np.random.default_rng(0), np.array(vessel.limits)
    state, force, off = (*path.window(0.0)[0, :3].tolist(), 0.0, 0.0, 0.0), np.zeros(3), []
    for k in range(2000):
        t = k / 100
        estimator.gyro(t, state[5] + 0.01 + 5e-3 * rng.normal())
        estimator.heading(t, state[2] + 0.02 * rng.normal())
        if k % 14 == 0:
            estimator.position(t, np.array(state[:2]) + 0.01 * rng.normal(size=2))
        if k % 10 == 0:
            estimate = estimator.at(t)
            # Three seconds at rest, in which the estimator settles and the guard starts to pass commands.
            window = path.window(max(0.0, t - 3.0))
            command = pilot.step(estimate.pose, estimate.velocity, window) if estimate.valid else None
            decision = guard.step(t, command, estimate)
            allocation = allocator.allocate(decision.command * limits)
            pairs = zip(vessel.thrusters, allocation.commands, allocation.angles, strict=True)
            force = sum(t.column(angle) * t.thrust(command) for t, command, angle in pairs) / limits
            if t > 6:
                assert decision.reaction == "run"
                off.append(math.dist(state[:2], window[0, :2]))
        rate = partial(derivative, force=tuple(force), e=vessel.normalized, current=(0.1, -0.05))
        state = rk4(rate, state, 0.01)
    assert np.mean(off) < 0.06
    assert guard.reaction == "run"
    assert estimator.rejected.total() < 5
