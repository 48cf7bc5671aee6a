"""How fast a boat that cannot push sideways can turn: the rule of its training (`learn.reference_generator`).

In a turn it drifts outwards until damping balances the centripetal force, and the drift causes a Munk moment. With the
damping rates d at the drift angle `DRIFT_ANGLE` and the speed u,

    r <= min(0.6 alpha_r / (d_r + max(c_uv, 0) |c_ru| u² / d_v),  0.5 alpha_r,  DRIFT_ANGLE d_v / |c_ru|)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from anyhull.backend import Array, Numbers
from anyhull.hulls import at_most, models
from anyhull.vessel import WORKING_POINT, Vessel

DRIFT_ANGLE = 0.4
"""Largest drift angle in a turn, rad."""

SLIDING = 0.02
"""Sway of a reference, m/s, above which it goes sideways."""


def fastest_turn(e: Numbers | Array, drag: tuple[Numbers | Array, Numbers | Array], speed: Any) -> Any:
    """Highest yaw rate (rad/s) at these speeds (m/s), elementwise."""
    _, _, alpha_r, _, d_v, d_r, _, c_ru, c_uv = e
    (_, q_v, q_r), (_, k_v, k_r) = drag
    sway, yaw = DRIFT_ANGLE * np.abs(speed), WORKING_POINT[2]
    d_v = np.maximum(d_v + q_v * sway + k_v * sway**2, 1e-6)
    munk = np.maximum(c_uv, 0.0) * np.abs(c_ru) * np.square(speed) / d_v
    steady = 0.6 * alpha_r / (d_r + q_r * yaw + k_r * yaw**2 + munk)
    # On the spot there is no drift.
    drift = np.where(np.abs(speed) < 0.05, np.inf, DRIFT_ANGLE * d_v / np.abs(c_ru))
    return np.minimum(np.minimum(steady, drift), 0.5 * alpha_r)


def turning_share(vessel: Vessel, speed: Array, yaw_rate: Array) -> Array:
    """Yaw rate as a share of the highest at that speed, for each possible hull; zero for boats with sway force."""
    if not vessel.under_actuated:
        return np.zeros((1, *np.shape(speed)))
    e, drag = models(vessel)
    return np.asarray(np.abs(yaw_rate) / fastest_turn(e, drag, speed))


def cannot_follow(vessel: Vessel, times: Array, velocity: Array) -> list[str]:
    """Why a boat without sway force cannot follow this velocity (u, v, r) at these times, one line each."""
    if not vessel.under_actuated:
        return []
    messages, (u, v, r) = [], velocity
    if np.abs(v).max() > SLIDING:
        i = int(np.argmax(np.abs(v)))
        messages.append(
            f"{vessel.name}: sway {v[i]:.2f} m/s at t = {times[i]:.1f} s: it cannot push sideways, so it follows no "
            "fixed heading and no turn about a distant point; leave out the heading"
        )
    share = np.where(np.abs(u) < 0.05, 0.0, at_most(turning_share(vessel, u, r)))
    if (i := int(np.argmax(share))) >= 0 and share[i] > 1 + 1e-9:
        messages.append(
            f"{vessel.name}: yaw {r[i]:.2f} rad/s with surge {u[i]:.2f} m/s at t = {times[i]:.1f} s: "
            f"without sway force at most {abs(r[i]) / share[i]:.2f} rad/s; ask for a wider turn or less speed"
        )
    return messages
