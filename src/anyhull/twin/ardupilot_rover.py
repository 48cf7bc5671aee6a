"""The behaviour of ArduPilot's Rover as far as a pilot meets it: arming, modes, RC input, overrides and failsafes.

It follows ArduPilot's documentation for Rover and its source, and is for tests of behaviour only:

| behaviour | where |
| --- | --- |
| overrides end after RC_OVERRIDE_TIME; 0 disables them, a negative time never ends | parameter RC_OVERRIDE_TIME |
| an override of 0 gives a channel back; 65535 leaves it, 65534 gives back one above 8 | MAVLink, RC_CHANNELS_OVERRIDE |
| overrides from SYSID_MYGCS only | dev page "RC Input"; parameter SYSID_MYGCS |
| an input without receiver and override keeps its last value | `RC_Channel::update` |
| no input for 0.5 s, or throttle below FS_THR_VALUE: neutral at once, FS_ACTION after FS_TIMEOUT | page "Failsafes" |
| no heartbeat of SYSID_MYGCS for FS_GCS_TIMEOUT: FS_ACTION after FS_TIMEOUT more, overrides cleared | the same |
| throttle in whole percents, steering in 4500 steps, RCn_DZ about RCn_TRIM | `Rover::set_control_channels` |
| steering reversed astern unless PILOT_STEER_TYPE is 3; MOT_SLEWRATE in percent a second | those parameters |
| throttle and steering reduced together where they sum up to more than 1 | `Mode::get_pilot_desired_steering_...` |

Modes other than MANUAL give no thrust here: the double does not navigate.
"""

from __future__ import annotations

import math
from typing import Literal

from anyhull.onboard.links.mavlink.channels import Calibration

LOOP = 0.02
"""Period of Rover's main loop, s (SCHED_LOOP_RATE 50)."""

RC_TIMEOUT = 0.5
"""Time without RC input after which the radio failsafe begins, s (`Rover::radio_failsafe_check`)."""

MANUAL, HOLD, RTL, SMART_RTL = 0, 4, 11, 12
MODES = (0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 15)
"""Modes of Rover."""

ACTIONS = {1: RTL, 2: HOLD, 3: SMART_RTL, 4: SMART_RTL, 5: HOLD}
"""FS_ACTION: the mode that a failsafe switches to; 5, termination, disarms as well."""

DEFAULTS: dict[str, float] = {
    "RCMAP_ROLL": 1,
    "RCMAP_PITCH": 2,
    "RCMAP_THROTTLE": 3,
    "RCMAP_YAW": 4,
    "MOT_SLEWRATE": 100,
    "MOT_THST_EXPO": 0,
    "MOT_THR_MIN": 0,
    "MOT_THR_MAX": 100,
    "PILOT_STEER_TYPE": 0,
    "MANUAL_STR_EXPO": 0,
    "MANUAL_OPTIONS": 0,
    "RC_OVERRIDE_TIME": 3,
    "RC_OPTIONS": 32,
    "SYSID_MYGCS": 255,
    "FS_ACTION": 2,
    "FS_TIMEOUT": 1.5,
    "FS_THR_ENABLE": 1,
    "FS_THR_VALUE": 910,
    "FS_GCS_ENABLE": 0,
    "FS_GCS_TIMEOUT": 5,
} | {
    f"{kind}{n}_{name}": value
    for kind, extra in (("RC", {"DZ": 30.0}), ("SERVO", {"FUNCTION": 0.0}))
    for n in range(1, 17)
    for name, value in ({"MIN": 1100.0, "TRIM": 1500.0, "MAX": 1900.0, "REVERSED": 0.0} | extra).items()
}
"""Parameters and their defaults in the firmware."""

ADVISED: dict[str, float] = {
    "MOT_SLEWRATE": 0,
    "PILOT_STEER_TYPE": 3,
    "RC_OVERRIDE_TIME": 1,
    "FS_GCS_ENABLE": 1,
    **{f"RC{n}_DZ": 0.0 for n in range(1, 17)},
}
"""Those that docs/mavlink.md asks to set otherwise."""


class Rover:
    """Arming, mode, inputs and outputs of the firmware, in steps of its main loop."""

    def __init__(self, parameters: dict[str, float] | None = None) -> None:
        """`parameters` replace the firmware's defaults."""
        self.parameters = DEFAULTS | (parameters or {})
        self.transmitter: dict[int, int] | None = None
        """Pulses of the operator's transmitter by channel, µs; None without a receiver."""
        self.texts: list[tuple[int, str]] = []
        """Severity and text to be sent as STATUSTEXT."""
        self.power_on(0.0)

    def power_on(self, now: float) -> None:
        """Start as after a reset: disarmed, in MANUAL."""
        self.armed, self.mode = False, MANUAL
        self.inputs = {n: 0 for n in range(1, 17)}
        """Pulses of the RC input as read, µs; 0 before the first."""
        self.outputs = (0.0, 0.0, 0.0)
        """Throttle, lateral and steering to the mixer, in [-1, 1]."""
        self.servos = {n: 0 for n in range(1, 17)}
        """Pulses set by DO_SET_SERVO, µs; 0 for none."""
        self._overrides: dict[int, tuple[int, float]] = {}
        self._new_override = self._overridden = False
        self._last_input, self._gcs_seen = now, -math.inf
        self._bits: set[Literal["radio", "gcs"]] = set()
        self._since, self._triggered = now, False

    def arm(self, armed: bool) -> bool:
        """Arm or disarm; whether it was done."""
        if armed != self.armed:
            self.texts.append((6, "Throttle armed" if armed else "Throttle disarmed"))
        self.armed = armed
        return True

    def set_mode(self, mode: int) -> bool:
        """Switch the mode; whether there is such a mode."""
        if mode not in MODES:
            return False
        self.mode = mode
        return True

    def is_gcs(self, system: int) -> bool:
        """Whether overrides of a system are taken: SYSID_MYGCS, or since 4.7 a range from MAV_GCS_SYSID."""
        low = self.parameters.get("MAV_GCS_SYSID", self.parameters.get("SYSID_MYGCS", 255.0))
        return low <= system <= max(low, self.parameters.get("MAV_GCS_SYSID_HI", 0.0))

    def gcs_seen(self, now: float) -> None:
        """Note a heartbeat or an override of SYSID_MYGCS."""
        self._gcs_seen = now

    def override(self, channel: int, pulse: int, now: float) -> None:
        """Take the field of a channel from RC_CHANNELS_OVERRIDE."""
        if pulse == 65535 or (channel > 8 and pulse == 0):
            return
        pulse = 0 if channel > 8 and pulse == 65534 else pulse
        self._overrides[channel] = pulse, now
        self._new_override = True

    def set_servo(self, number: int, pulse: int) -> bool:
        """Set an output that has no function; whether it has none."""
        if not 1 <= number <= 16 or self.parameters[f"SERVO{number}_FUNCTION"] != 0:
            self.texts.append((6, f"ServoRelayEvent: Channel {number} is already in use"))
            return False
        self.servos[number] = pulse
        return True

    def step(self, now: float) -> None:
        """One period of the main loop."""
        self._read_inputs(now)
        self._check_failsafes(now)
        throttle, lateral, steering = self._pilot_inputs() if self.armed and self.mode == MANUAL else (0.0, 0.0, 0.0)
        rate = self.parameters["MOT_SLEWRATE"]
        if rate > 0:
            most = rate / 100 * LOOP
            throttle = max(self.outputs[0] - most, min(self.outputs[0] + most, throttle))
        self.outputs = throttle, lateral, steering

    @property
    def failsafe(self) -> bool:
        """Whether a failsafe has acted and lasts."""
        return self._triggered

    @property
    def overridden(self) -> bool:
        """Whether an override of a channel is in force."""
        return self._overridden

    def _read_inputs(self, now: float) -> None:
        timeout, self._overridden = self.parameters["RC_OVERRIDE_TIME"], False
        for channel in self.inputs:
            pulse, at = self._overrides.get(channel, (0, 0.0))
            if pulse and (timeout < 0 or now - at < timeout):
                self.inputs[channel], self._overridden = pulse, True
            elif self.transmitter is not None:
                self.inputs[channel] = self.transmitter.get(channel, 1500)
        if self.transmitter is not None or self._new_override:
            self._last_input = now
        self._new_override = False

    def _check_failsafes(self, now: float) -> None:
        p = self.parameters
        throttle = self.inputs[round(p["RCMAP_THROTTLE"])]
        radio = now - self._last_input > RC_TIMEOUT or throttle < p["FS_THR_VALUE"]
        gcs = self._gcs_seen > -math.inf and now - self._gcs_seen >= p["FS_GCS_TIMEOUT"]
        before = bool(self._bits)
        self._bits = set()
        if radio and p["FS_THR_ENABLE"]:
            self._bits.add("radio")
        if gcs and p["FS_GCS_ENABLE"]:
            self._bits.add("gcs")
        if not before:
            self._since = now
        if not self._bits:
            self._triggered = False
        elif not self._triggered and now - self._since > p["FS_TIMEOUT"] and self.mode not in (HOLD, RTL):
            self._triggered = True
            self.texts.append((4, f"{'Radio' if 'radio' in self._bits else 'GCS'} Failsafe"))
            self._overrides.clear()
            action = round(p["FS_ACTION"])
            self.mode = ACTIONS.get(action, self.mode)
            self.armed = self.armed and action != 5

    def _pilot_inputs(self) -> tuple[float, float, float]:
        """Throttle, lateral and steering of the RC input."""
        p = self.parameters
        if "radio" in self._bits:
            return 0.0, 0.0, 0.0
        numbers = (round(p[f"RCMAP_{name}"]) for name in ("THROTTLE", "YAW", "ROLL"))
        throttle, lateral, steering = (self._scaled(n, s) for n, s in zip(numbers, (100, 100, 4500), strict=True))
        if throttle < 0 and p["PILOT_STEER_TYPE"] != 3:
            steering = -steering
        if (total := abs(throttle) + abs(lateral) + abs(steering)) > 1:
            throttle, lateral, steering = throttle / total, lateral / total, steering / total
        return throttle, lateral, steering

    def _scaled(self, channel: int, steps: int) -> float:
        calibration, pulse = Calibration.of(f"RC{channel}", self.parameters), self.inputs[channel]
        dead = round(self.parameters[f"RC{channel}_DZ"])
        if not pulse or abs(pulse - calibration.trim) <= dead:
            return 0.0
        above = pulse > calibration.trim
        edge = calibration.trim + (dead if above else -dead)
        reach = calibration.maximum - edge if above else edge - calibration.minimum
        share = max(-1.0, min(1.0, (pulse - edge) / max(reach, 1)))
        share = math.trunc(share * steps + math.copysign(1e-9, share)) / steps
        return -share if calibration.reversed else share
