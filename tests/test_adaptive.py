"""Adaptive model predictive control: what it identifies, how it plans, and when the policy steers."""

from __future__ import annotations

import numpy as np

from anyhull import Vessel, rounded_rectangle, simulate
from anyhull.control import Adaptive


def test_tracks_a_platform_in_still_water_without_a_model(platform):
    # Roboat 3 has 0.4 rad/s² for the corners, and 0.08° with a perfect model.
    # The students have 0.07 to 0.31 cm; a perfect model 0.0014. The rest is the first second, with the policy.
    log = simulate(Adaptive(platform), platform, rounded_rectangle())
    late = log.time > 3.0
    assert 100 * log.position_error[late].mean() < 0.02
    assert np.degrees(np.abs(log.heading_error[late])).mean() < (0.1 if platform.name == "Roboat 3" else 0.06)


def test_identifies_what_a_lap_excites():
    vessel = Vessel.load("platform-b")
    controller = Adaptive(vessel)
    simulate(controller, vessel, rounded_rectangle())
    # At one speed on straight sides only the top speed alpha_u tau_u shows of surge; corners show the yaw authority.
    found, e = controller.dynamics.e, vessel.normalized
    assert abs(found.alpha_u / found.inv_tau_u / (e.alpha_u / e.inv_tau_u) - 1) < 0.05
    assert abs(found.alpha_r / e.alpha_r - 1) < 0.1
    assert controller.dynamics.delay < 0.01
