"""The error-state Kalman filter of the boat's motion: beliefs, and how time and measurements change them.

State: position p (m), heading psi (rad), velocity through the water w = (u_r, v_r) in the body frame (m/s), gyro bias b
(rad/s), current c in the inertial frame (m/s). The measured yaw rate drives it:

    p' = R(psi) w + c,   psi' = gyro - b - noise,   w' = -w / T_w + noise,   b' = noise,   c' = -c / T_c + noise

Nothing here knows the boat: that its velocity wanders by so much a second is all that is assumed of its dynamics, so
the filter needs no identification either. How much is learned from the fixes: with d² their squared innovation by its
covariance, 2 on average if all is right, the noise of w is multiplied by

    liveliness <- min(max(1, liveliness · exp(0.15 (min(d²/2, 4) - 1.5))), 10)

so that a livelier boat than `Sensors.acceleration` says is followed too, and a calm one is not disturbed. The velocity
of interest is the one over ground, nu = w + R(psi)ᵀ c, which positions show directly.

Positions at 7 Hz show a change of velocity some 0.3 s late, which is too late for a controller that works within that
time. An accelerometer, where there is one, shows it at once. Then w is driven by what it says, f, less its own bias a:

    w' = f - a - r × w + noise,   a' = noise

and as before while it is silent. It tells nothing of the current, and so nothing of how nu divides into w and c.

How that divides into w and c they show hardly: only as the boat turns, by which part of its velocity turns with it and
which stays, against the prior that boats stop and currents last. Held at one heading the current is not observable, its
covariance stays near the prior's, and nobody should steer by it. It is in the state so that drift does not pass for
motion of the boat in a turn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyhull.arithmetic import wrap
from anyhull.toml import check_types, require

Array = NDArray[np.float64]
Stream = Literal["position", "heading", "gyro", "acceleration"]

X, Y, PSI, U, V, BIAS, C_X, C_Y, A_X, A_Y = range(10)
SIZE = 10
PLACE, WATER, CURRENT = slice(X, Y + 1), slice(U, V + 1), slice(C_X, C_Y + 1)

GATE = 16.0
"""Squared normalized innovation above which a measurement is improbable: 4 standard deviations."""

LIVELIER, LIVELIEST = 0.15, 10.0
"""How fast, and how far, fixes that surprise raise the acceleration assumed of the boat."""

FIERCEST = 20.0
"""Acceleration above which it is improbable, m/s²: more than any boat has."""

LONGEST_STEP = 0.1
"""Longest step of the prediction, s."""


@dataclass(frozen=True)
class Sensors:
    """What is known of the sensors and assumed of the boat; standard deviations, SI units."""

    position: float = 0.02
    """Of one fix in x and y, m."""
    heading: float = 0.02
    """Of one heading, rad."""
    gyro: float = 5e-4
    """Of the yaw rate, as white noise, rad/√s: that of a sample times the root of its interval."""
    bias: float = 0.02
    """Of the gyro's bias at the start, rad/s."""
    bias_walk: float = 1e-4
    """By which the bias wanders, rad/s/√s."""
    acceleration: float = 0.2
    """By which the velocity wanders at least, m/s/√s, without an accelerometer."""
    accelerometer: float = 0.05
    """By which it wanders with one, m/s/√s: its noise, and what roll and pitch let through of gravity."""
    accelerometer_bias: float = 0.1
    """Of the accelerometer's bias on each axis at the start, m/s²: gravity at a tilt of 0.6°."""
    accelerometer_walk: float = 0.01
    """By which that wanders, m/s²/√s."""
    speed: float = 1.0
    """Of the velocity through the water, m/s; with `acceleration` it gives T_w = 2 speed² / acceleration² = 50 s."""
    current: float = 0.2
    """Of the current in x and in y, m/s."""
    current_time: float = 200.0
    """Time in which the current changes, T_c, s."""
    antenna_x: float = 0.0
    """Position of the antenna ahead of the centre of gravity, m."""
    antenna_y: float = 0.0
    """Position of the antenna to the side of positive sway, m."""
    memory: float = 0.5
    """How late a measurement may arrive, and how far ahead of the last one, s."""
    patience: float = 0.7
    """How long a sensor may be silent or improbable before the boat counts as dead reckoning, s."""
    stubborn: float = 2.0
    """How long a sensor must disagree before the filter starts anew, s."""
    lost_position: float = 1.0
    """Standard deviation of the position beyond which the boat is lost, m."""
    lost_heading: float = 0.17
    """Standard deviation of the heading beyond which the boat is lost, rad."""
    lost_velocity: float = 0.5
    """Standard deviation of the velocity over ground beyond which the boat is lost, m/s."""
    settled_velocity: float = 0.2
    """Standard deviation of the velocity over ground at which the filter has started, m/s."""

    def __post_init__(self) -> None:
        check_types(self)
        for field in self.__dataclass_fields__:
            require(self, field, field.startswith("antenna") or getattr(self, field) > 0, "positive")


class Measurement(NamedTuple):
    """What one sensor said: (x, y), (psi,), (yaw rate,) or (surge, sway acceleration)."""

    stream: Stream
    time: float
    value: tuple[float, ...]
    std: float


@dataclass
class Belief:
    """The filter's state, with all that a measurement which arrives late has to undo."""

    time: float
    mean: Array
    covariance: Array
    gyro: float
    """The last yaw rate measured, rad/s."""
    accepted: dict[Stream, float]
    """When each sensor was last believed, s."""
    improbable: dict[Stream, float]
    """Since when each sensor has been improbable, s."""
    liveliness: float = 1.0
    """How many times `Sensors.acceleration` the boat seems to have."""
    push: tuple[float, ...] = (0.0, 0.0)
    """The last acceleration measured, m/s²."""

    def copy(self) -> Belief:
        """One that may be changed apart from this."""
        mean, covariance = self.mean.copy(), self.covariance.copy()
        accepted, improbable = dict(self.accepted), dict(self.improbable)
        return Belief(self.time, mean, covariance, self.gyro, accepted, improbable, self.liveliness, self.push)

    @property
    def over_ground(self) -> Array:
        """The velocity (u, v) over ground in the body frame, m/s."""
        sin, cos = math.sin(self.mean[PSI]), math.cos(self.mean[PSI])
        u, v, c_x, c_y = self.mean[[U, V, C_X, C_Y]]
        return np.array([u + cos * c_x + sin * c_y, v - sin * c_x + cos * c_y])

    @property
    def over_ground_covariance(self) -> Array:
        """Of (u, v) over ground, shape (2, 2)."""
        sin, cos = math.sin(self.mean[PSI]), math.cos(self.mean[PSI])
        c_x, c_y = self.mean[[C_X, C_Y]]
        jacobian = np.zeros((2, SIZE))
        jacobian[0, [PSI, U, C_X, C_Y]] = -sin * c_x + cos * c_y, 1.0, cos, sin
        jacobian[1, [PSI, V, C_X, C_Y]] = -cos * c_x - sin * c_y, 1.0, -sin, cos
        covariance: Array = jacobian @ self.covariance @ jacobian.T
        return covariance


def begin(place: Measurement, head: Measurement, gyro: float, sensors: Sensors) -> Belief:
    """The first belief, from a position and a heading of about the same time; the rest is the prior."""
    s, psi = sensors, head.value[0]
    # Between the two the boat may have moved.
    gap = s.speed * abs(place.time - head.time)
    spread = [place.std + gap, place.std + gap, head.std, s.speed, s.speed, s.bias, s.current, s.current]
    spread += [s.accelerometer_bias] * 2
    x, y = _antenna(psi, s)
    jacobian = np.eye(SIZE)
    jacobian[[X, Y], PSI] = y, -x
    covariance = jacobian @ np.diag(np.square(spread)) @ jacobian.T
    mean = np.array([place.value[0] - x, place.value[1] - y, wrap(psi), *[0.0] * (SIZE - 3)])
    time = max(place.time, head.time)
    return Belief(time, mean, covariance, gyro, {"position": place.time, "heading": head.time}, {})


def predict(belief: Belief, time: float, sensors: Sensors) -> None:
    """Move a belief on to a later time by the equations above."""
    s = sensors
    steps = max(1, math.ceil((time - belief.time) / LONGEST_STEP - 1e-9))
    dt = (time - belief.time) / steps
    if dt <= 0:
        return
    belief.time = time
    felt = time - belief.accepted.get("acceleration", -math.inf) <= LONGEST_STEP
    last_c = math.exp(-dt / s.current_time)
    noise_c, noise_a = s.current**2 * (1 - last_c**2), s.accelerometer_walk**2 * dt
    if felt:
        last_w, noise_w = 1.0, (belief.liveliness * s.accelerometer) ** 2 * dt
    else:
        last_w = math.exp(-dt * s.acceleration**2 / (2 * s.speed**2))
        noise_w = (belief.liveliness * s.speed) ** 2 * (1 - last_w**2)
    noise = np.diag(
        [0.0, 0.0, s.gyro**2 * dt, noise_w, noise_w, s.bias_walk**2 * dt, noise_c, noise_c, noise_a, noise_a]
    )
    f = np.diag([1.0, 1.0, 1.0, last_w, last_w, 1.0, last_c, last_c, 1.0, 1.0])
    f[PSI, BIAS] = -dt
    f[X, C_X] = f[Y, C_Y] = dt
    mean, covariance = belief.mean, belief.covariance
    for _ in range(steps):
        turn = (belief.gyro - mean[BIAS]) * dt
        middle = mean[PSI] + turn / 2
        cos, sin = math.cos(middle) * dt, math.sin(middle) * dt
        u, v = mean[U], mean[V]
        if felt:
            gain_u = (belief.push[0] - mean[A_X]) * dt + turn * v
            gain_v = (belief.push[1] - mean[A_Y]) * dt - turn * u
            f[U, V], f[V, U], f[U, A_X], f[V, A_Y] = turn, -turn, -dt, -dt
            f[U, BIAS], f[V, BIAS] = -v * dt, u * dt
            u, v = u + gain_u / 2, v + gain_v / 2
        x, y = cos * u - sin * v, sin * u + cos * v
        f[X, PSI], f[X, U], f[X, V] = -y, cos, -sin
        f[Y, PSI], f[Y, U], f[Y, V] = x, sin, cos
        mean[X] += x + mean[C_X] * dt
        mean[Y] += y + mean[C_Y] * dt
        mean[PSI] = wrap(mean[PSI] + turn)
        if felt:
            mean[WATER] += gain_u, gain_v
        else:
            mean[WATER] *= last_w
        mean[CURRENT] *= last_c
        # Half before the step and half after, so that a long step correlates position and velocity as short ones do.
        covariance = f @ (covariance + noise / 2) @ f.T + noise / 2
    belief.covariance = covariance


def use(belief: Belief, m: Measurement, sensors: Sensors) -> bool:
    """Move a belief on to a measurement and take that in, unless it is improbable; whether it was."""
    if m.stream == "gyro":
        # The rate over an interval is the mean of those at its ends, if it was measured at both.
        if m.time - belief.accepted.get("gyro", -math.inf) <= LONGEST_STEP:
            belief.gyro = (belief.gyro + m.value[0]) / 2
        predict(belief, m.time, sensors)
        belief.gyro = m.value[0]
    elif m.stream == "acceleration":
        if max(map(abs, m.value)) > FIERCEST:
            belief.improbable.setdefault(m.stream, m.time)
            return False
        belief.push = tuple((a + b) / 2 for a, b in zip(belief.push, m.value, strict=True))
        predict(belief, m.time, sensors)
        belief.push = m.value
    else:
        predict(belief, m.time, sensors)
        if not _correct(belief, m, sensors):
            belief.improbable.setdefault(m.stream, m.time)
            return False
    belief.accepted[m.stream] = m.time
    belief.improbable.pop(m.stream, None)
    return True


def _correct(belief: Belief, m: Measurement, sensors: Sensors) -> bool:
    """Correct a belief, unless the measurement is improbable: gain K = P Hᵀ S⁻¹, covariance in Joseph's form."""
    mean, covariance = belief.mean, belief.covariance
    if m.stream == "heading":
        h = np.zeros((1, SIZE))
        h[0, PSI] = 1.0
        innovation = np.array([wrap(m.value[0] - mean[PSI])])
    else:
        x, y = _antenna(mean[PSI], sensors)
        h = np.eye(2, SIZE)
        h[:, PSI] = -y, x
        innovation = np.array(m.value) - mean[PLACE] - (x, y)
    across = covariance @ h.T
    inverse = np.linalg.inv(h @ across + m.std**2 * np.eye(len(h)))
    surprise = float(innovation @ inverse @ innovation)
    if m.stream == "position":
        livelier = belief.liveliness * math.exp(LIVELIER * (min(surprise / 2, 4.0) - 1.5))
        belief.liveliness = min(max(livelier, 1.0), LIVELIEST)
    if surprise > GATE:
        return False
    gain = across @ inverse
    belief.mean = mean + gain @ innovation
    belief.mean[PSI] = wrap(belief.mean[PSI])
    kept = np.eye(SIZE) - gain @ h
    covariance = kept @ covariance @ kept.T + m.std**2 * (gain @ gain.T)
    belief.covariance = (covariance + covariance.T) / 2
    return True


def _antenna(psi: float, sensors: Sensors) -> tuple[float, float]:
    """Where the antenna is from the centre of gravity, in the inertial frame, m."""
    cos, sin = math.cos(psi), math.sin(psi)
    x, y = sensors.antenna_x, sensors.antenna_y
    return cos * x - sin * y, sin * x + cos * y
