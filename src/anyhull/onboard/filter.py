"""The error-state Kalman filter of the boat's motion: its state, prediction and update.

State: position p (m), heading psi (rad), velocity through the water w = (u_r, v_r) in the body frame (m/s), gyro bias b
(rad/s), current c in the inertial frame (m/s), accelerometer bias a (m/s²), antenna l in the body frame (m). The
measured yaw rate is the input:

    p' = R(psi) w + c,   psi' = gyro - b - noise,   w' = -w / T_w + noise,   b' = noise,   c' = -c / T_c + noise

The filter needs no model of the boat: it assumes a random walk of the velocity. The standard deviation of that walk
adapts to the normalized innovation squared (NIS) of the fixes, 2 on average if it is right:

    process_noise <- min(max(1, process_noise · exp(0.15 (min(NIS/2, 4) - 1.5))), 10)

So the filter follows a boat with more acceleration than `Sensors.acceleration` states, and smooths one with less. The
velocity over ground, nu = w + R(psi)ᵀ c, is directly observable from positions.

Positions at 7 Hz show a change of velocity some 0.3 s late, too late for a controller of that bandwidth. An
accelerometer, where there is one, shows it at once. Its measurement f, less its bias a, is then the input of w:

    w' = f - a - r × w + noise,   a' = noise

It carries no information on the current. Where there is none, the acceleration that the boat should have by its
identified dynamics takes its place (`anyhull.onboard.process_model`), with a bias of its own in the place of a: what
wind or a wrong model add. Under a process noise above `UNSOUND` the model is not used for a while. Without either the
first equation holds.

The division of nu into w and c is weakly observable: only in a turn, in which w turns with the boat and c does not, and
by the prior that boats stop and currents last. At a constant heading the covariance of c stays near the prior's, and
the estimate must not be used for control. Without it drift is taken for motion of the boat in a turn.

A fix measures p + R(psi) l, and l is known by a tape measure (`Sensors.antenna`). On a straight line a wrong l is a
constant error of the position. In a turn it moves the fixes by l times the change of R, which the accelerometer does
not see. So l from the accelerometer is observable, well by turns there and back on the spot, poorly by one corner.
Three rules keep a filter that is wrong about its sensors from inventing it:

- Without an accelerometer, or with a process noise above `SOUND`, l is a consider state (Schmidt): its uncertainty
  counts, and its mean stays. Above `UNSOUND` it is the file's again.
- Farther from the file's than `FAR` it cannot be: the accelerometer is elsewhere, or wrong. The file's is then taken
  for exact as long as the filter runs.
- In either case the position does not jump: the next fixes move it over.

A slow error of the fixes that does not turn with the boat is not observable, and no part of the state.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from anyhull.backend import Array, to_body, to_inertial, wrap
from anyhull.onboard.sensors import Sensors

Stream = Literal["position", "heading", "gyro", "acceleration"]

X, Y, PSI, U, V, BIAS, C_X, C_Y, A_X, A_Y, L_X, L_Y = range(12)
SIZE = 12
POSITION, WATER, CURRENT, ACCELEROMETER, ANTENNA = (slice(i, i + 2) for i in (X, U, C_X, A_X, L_X))
AXES = np.eye(2)
"""Unit vectors; rotated they are the rows of a rotation matrix."""

GATE = 16.0
"""Normalized innovation squared above which a measurement is an outlier: 4 standard deviations."""

ADAPTATION_RATE, MAX_PROCESS_NOISE = 0.15, 10.0
"""Rate and limit of the adaptation of the process noise."""

SOUND, UNSOUND = 1.5, 3.0
"""Process noise above which the antenna is not estimated, and above which it is forgotten: the sensors, or the sea, are
not as they are stated."""

FAR = 9.0
"""Squared distance of the antenna from the file's, in its standard deviations, beyond which the estimate is wrong."""

DISTRUST, LONGEST_DISTRUST = 10.0, 160.0
"""Time for which no model of the boat is used after it was `UNSOUND`, s; each time it is twice as long, up to this."""

SILENT = 1.0
"""Time without an accelerometer after which a model may take its place, s."""

NOTHING = 0.0, 0.0, -math.inf
"""No acceleration that a model expects."""

MAX_ACCELERATION = 20.0
"""Acceleration above which an accelerometer's measurement is an outlier, m/s²: more than any boat has."""

MAX_YAW_STEP, MAX_YAW_ACCELERATION = 0.5, 20.0
"""Change of the measured yaw rate above which it is an outlier: rad/s, plus rad/s² since the last one."""

MAX_STEP = 0.1
"""Longest step of the prediction, s."""


class Measurement(NamedTuple):
    """One sensor's measurement: (x, y), (psi,), (yaw rate,) or (surge, sway acceleration)."""

    stream: Stream
    time: float
    value: tuple[float, ...]
    std: float


@dataclass
class FilterState:
    """The state of the filter, complete, so that a measurement that arrives late can be inserted."""

    time: float
    mean: Array
    covariance: Array
    gyro: float
    """The last yaw rate measured, rad/s."""
    accepted: dict[Stream, float]
    """Time of the last accepted measurement of each sensor, s."""
    outlier_since: dict[Stream, float]
    """Time of the first of the present outliers of each sensor, s."""
    process_noise: float = 1.0
    """Multiple of `Sensors.acceleration`, `accelerometer` or `model`, adapted."""
    acceleration: tuple[float, ...] = (0.0, 0.0)
    """The last acceleration measured, m/s²."""
    expected: tuple[float, ...] = NOTHING
    """The acceleration that a model of the boat expects, m/s², and until when, s."""
    modelled: bool = False
    """Whether a model is in use, and the accelerometer's bias is the model's."""
    distrust: tuple[float, float] = (-math.inf, DISTRUST)
    """Time until which no model is used, since it was wrong, and how long it is not when it is wrong again, s."""

    def copy(self) -> FilterState:
        """A state that may be changed independently of this one."""
        mean, covariance = self.mean.copy(), self.covariance.copy()
        accepted, outlier_since = dict(self.accepted), dict(self.outlier_since)
        return replace(self, mean=mean, covariance=covariance, accepted=accepted, outlier_since=outlier_since)

    @property
    def over_ground(self) -> Array:
        """The velocity (u, v) over ground in the body frame, m/s."""
        over_ground: Array = self.mean[WATER] + to_body(self.mean[C_X], self.mean[C_Y], self.mean[PSI])
        return over_ground

    @property
    def over_ground_covariance(self) -> Array:
        """Of (u, v) over ground, shape (2, 2)."""
        psi = self.mean[PSI]
        c_u, c_v = to_body(self.mean[C_X], self.mean[C_Y], psi)
        jacobian = np.zeros((2, SIZE))
        jacobian[:, PSI] = c_v, -c_u
        jacobian[:, WATER] = AXES
        jacobian[:, CURRENT] = to_body(AXES[0], AXES[1], psi)
        covariance: Array = jacobian @ self.covariance @ jacobian.T
        return covariance


def initialize(position: Measurement, heading: Measurement, gyro: float, sensors: Sensors) -> FilterState:
    """The first state, from a position and a heading of about the same time; the rest is the prior."""
    s, psi = sensors, heading.value[0]
    # The boat may have moved between the two.
    fix = position.std + s.speed * abs(position.time - heading.time)
    spread = [fix, fix, heading.std, s.speed, s.speed, s.gyro_bias, s.current, s.current]
    spread += [s.accelerometer_bias] * 2 + [s.antenna] * 2
    x, y = to_inertial(s.antenna_x, s.antenna_y, psi)
    jacobian = np.eye(SIZE)
    jacobian[POSITION, PSI] = y, -x
    jacobian[POSITION, ANTENNA] = -np.array(to_inertial(AXES[0], AXES[1], psi))
    covariance = jacobian @ np.diag(np.square(spread)) @ jacobian.T
    mean = np.array([position.value[0] - x, position.value[1] - y, wrap(psi), *[0.0] * 7, s.antenna_x, s.antenna_y])
    accepted: dict[Stream, float] = {"position": position.time, "heading": heading.time}
    return FilterState(max(position.time, heading.time), mean, covariance, gyro, accepted, {})


def predict(state: FilterState, time: float, sensors: Sensors) -> None:
    """Move the state to a later time by the equations above."""
    s = sensors
    steps = max(1, math.ceil((time - state.time) / MAX_STEP - 1e-9))
    dt = (time - state.time) / steps
    if dt <= 0:
        return
    state.time = time
    accelerometer = time - state.accepted.get("acceleration", -math.inf) <= MAX_STEP
    keep_c = math.exp(-dt / s.current_time)
    noise_c, noise_a = s.current**2 * (1 - keep_c**2), s.accelerometer_bias_walk**2 * dt
    modelled = not accelerometer and state.modelled and time <= state.expected[2]
    if accelerometer or modelled:
        keep_w, noise_w = 1.0, (state.process_noise * (s.accelerometer if accelerometer else s.model)) ** 2 * dt
    else:
        keep_w = math.exp(-dt * s.acceleration**2 / (2 * s.speed**2))
        noise_w = (state.process_noise * s.speed) ** 2 * (1 - keep_w**2)
    noise_psi, noise_b = s.gyro**2 * dt, s.gyro_bias_walk**2 * dt
    noise = np.diag([0.0, 0.0, noise_psi, noise_w, noise_w, noise_b, noise_c, noise_c, noise_a, noise_a, 0.0, 0.0])
    f = np.diag([1.0, 1.0, 1.0, keep_w, keep_w, 1.0, keep_c, keep_c, 1.0, 1.0, 1.0, 1.0])
    f[PSI, BIAS] = -dt
    f[X, C_X] = f[Y, C_Y] = dt
    mean, covariance = state.mean, state.covariance
    for _ in range(steps):
        turn = (state.gyro - mean[BIAS]) * dt
        u, v = mean[WATER]
        if accelerometer or modelled:
            a_u, a_v = np.array(state.acceleration if accelerometer else state.expected[:2]) - mean[ACCELEROMETER]
            gain_u, gain_v = a_u * dt + turn * v, a_v * dt - turn * u
            f[U, V], f[V, U], f[U, A_X], f[V, A_Y] = turn, -turn, -dt, -dt
            f[U, BIAS], f[V, BIAS] = -v * dt, u * dt
            u, v = u + gain_u / 2, v + gain_v / 2
        middle = mean[PSI] + turn / 2
        x, y = to_inertial(u * dt, v * dt, middle)
        f[POSITION, PSI] = -y, x
        f[POSITION, WATER] = to_inertial(dt * AXES[0], dt * AXES[1], middle)
        mean[POSITION] += (x, y) + mean[CURRENT] * dt
        mean[PSI] = wrap(mean[PSI] + turn)
        if accelerometer or modelled:
            mean[WATER] += gain_u, gain_v
        else:
            mean[WATER] *= keep_w
        mean[CURRENT] *= keep_c
        # Half before the step and half after, so that a long step correlates position and velocity as short ones do.
        covariance = f @ (covariance + noise / 2) @ f.T + noise / 2
    state.covariance = covariance


def update(state: FilterState, m: Measurement, sensors: Sensors) -> bool:
    """Predict to a measurement and use it unless it is an outlier; whether it was used."""
    used = True
    if m.stream == "gyro":
        since = m.time - state.accepted.get("gyro", -math.inf)
        used = abs(m.value[0] - state.gyro) <= MAX_YAW_STEP + MAX_YAW_ACCELERATION * since
        if used:
            # The rate over an interval is the mean of those at its ends, if it was measured at both.
            if since <= MAX_STEP:
                state.gyro = (state.gyro + m.value[0]) / 2
            predict(state, m.time, sensors)
            state.gyro = m.value[0]
    elif m.stream == "acceleration":
        used = max(map(abs, m.value)) <= MAX_ACCELERATION
        if used:
            if m.time - state.accepted.get("acceleration", -math.inf) <= MAX_STEP:
                state.acceleration = tuple((a + b) / 2 for a, b in zip(state.acceleration, m.value, strict=True))
            predict(state, m.time, sensors)
            if state.modelled:
                _forget_bias(state, sensors)
                state.expected, state.modelled = NOTHING, False
            state.acceleration = m.value
    else:
        predict(state, m.time, sensors)
        used = _correct(state, m, sensors)
    if used:
        state.accepted[m.stream] = m.time
        state.outlier_since.pop(m.stream, None)
    else:
        state.outlier_since.setdefault(m.stream, m.time)
    return used


def expect(state: FilterState, expected: tuple[float, float, float], sensors: Sensors) -> None:
    """From here on take an acceleration (surge, sway) that a model expects until a time, if it may be used."""
    if state.time < state.distrust[0] or state.time - state.accepted.get("acceleration", -math.inf) <= SILENT:
        return
    if not state.modelled:
        _forget_bias(state, sensors)
        state.process_noise, state.modelled = 1.0, True
    state.expected = expected


def _forget_bias(state: FilterState, sensors: Sensors) -> None:
    """What was learned of the accelerometer's bias does not hold of the model's, nor the other way round."""
    state.mean[ACCELEROMETER] = 0.0
    state.covariance[ACCELEROMETER] = state.covariance[:, ACCELEROMETER] = 0.0
    state.covariance[ACCELEROMETER, ACCELEROMETER] = sensors.accelerometer_bias**2 * AXES


def _correct(state: FilterState, m: Measurement, sensors: Sensors) -> bool:
    """Correct the state unless the measurement is an outlier: gain K = P Hᵀ S⁻¹, covariance in Joseph's form."""
    mean, covariance = state.mean, state.covariance
    if m.stream == "heading":
        h = np.zeros((1, SIZE))
        h[0, PSI] = 1.0
        innovation = np.array([wrap(m.value[0] - mean[PSI])])
    else:
        x, y = to_inertial(mean[L_X], mean[L_Y], mean[PSI])
        h = np.eye(2, SIZE)
        h[:, PSI] = -y, x
        h[:, ANTENNA] = to_inertial(AXES[0], AXES[1], mean[PSI])
        innovation = np.array(m.value) - mean[POSITION] - (x, y)
    across = covariance @ h.T
    inverse = np.linalg.inv(h @ across + m.std**2 * np.eye(len(h)))
    nis = float(innovation @ inverse @ innovation)
    if m.stream == "position":
        adapted = state.process_noise * math.exp(ADAPTATION_RATE * (min(nis / 2, 4.0) - 1.5))
        state.process_noise = min(max(adapted, 1.0), MAX_PROCESS_NOISE)
        if state.process_noise > UNSOUND and state.modelled:
            state.expected, state.modelled, duration = NOTHING, False, state.distrust[1]
            state.distrust = m.time + duration, min(2 * duration, LONGEST_DISTRUST)
    if nis > GATE:
        return False
    gain = across @ inverse
    if state.process_noise > SOUND or m.time - state.accepted.get("acceleration", -math.inf) > MAX_STEP:
        gain[ANTENNA] = 0.0
    state.mean = mean + gain @ innovation
    state.mean[PSI] = wrap(state.mean[PSI])
    kept = np.eye(SIZE) - gain @ h
    covariance = kept @ covariance @ kept.T + m.std**2 * (gain @ gain.T)
    state.covariance = (covariance + covariance.T) / 2
    _check_antenna(state, sensors)
    return True


def _check_antenna(state: FilterState, sensors: Sensors) -> None:
    """Fall back to the antenna of the boat's file where the estimate cannot be right."""
    away = state.mean[ANTENNA] - (sensors.antenna_x, sensors.antenna_y)
    far = away @ away > FAR * sensors.antenna**2
    if not far and (state.process_noise <= UNSOUND or not away.any()):
        return
    state.mean[ANTENNA] -= away
    state.covariance[ANTENNA] = state.covariance[:, ANTENNA] = 0.0
    if not far:
        state.covariance[ANTENNA, ANTENNA] = sensors.antenna**2 * AXES
    moved = np.array(to_inertial(away[0], away[1], state.mean[PSI]))
    state.covariance[POSITION, POSITION] += np.outer(moved, moved)
