"""A Log from an ArduPilot DataFlash log (.BIN) of a rover or boat, for the same summary and figures.

| of the log | from |
| --- | --- |
| state | XKF1 (EKF3) or NKF1 (EKF2) of the first core, yaw rate of IMU, in a NED frame about the EKF's origin (ORGN) |
| reference | PSCN and PSCE, the targets of the position controller; none where they are not logged |
| command | THR.ThrOut in surge, STER.SteerOut in yaw |
| thrusters | RCOU, the channels whose SERVOn_FUNCTION is a throttle or a motor |
| epoch | GPS week and time, with 18 leap seconds |
| events | MODE, MSG, ERR, EV |
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from anyhull.backend import Array
from anyhull.dynamics import PERIOD
from anyhull.errors import InputError
from anyhull.log import SENSORS, Log
from anyhull.mission.geodesy import LocalFrame
from anyhull.viz.dataflash import Messages, read_messages

SUFFIXES = (".bin", ".BIN")

WANTED = (
    *("XKF1", "NKF1", "IMU", "ORGN", "PSCN", "PSCE", "THR", "STER", "RCOU", "PARM", "GPS"),
    *("MODE", "MSG", "ERR", "EV"),
)

GAP, HOLE = 10.0, 1.0
"""Times without an EKF record and without a target after which the track and the reference are interrupted, s."""

LONGEST = 24 * 3600.0
"""Longest track, s."""

FARTHEST = 1e6
"""Largest coordinate, m, and speed, m/s; more is damage."""

FASTEST = 100.0
"""Largest yaw rate, rad/s."""

THROTTLES = (70, 73, 74, *range(33, 45))
"""SERVOn_FUNCTION of throttle, left and right throttle, and motors 1 to 12."""

STEERING, THROTTLE = 4500.0, 100.0
"""Full scale of SteerOut and ThrOut."""

MODES = {
    **{0: "MANUAL", 1: "ACRO", 3: "STEERING", 4: "HOLD", 5: "LOITER", 6: "FOLLOW", 7: "SIMPLE", 8: "DOCK"},
    **{9: "CIRCLE", 10: "AUTO", 11: "RTL", 12: "SMART_RTL", 15: "GUIDED", 16: "INITIALISING"},
}
"""Names of Rover's modes."""

GPS_ZERO, WEEK, LEAP = 315_964_800.0, 604_800.0, 18.0
"""1980-01-06 in s since 1970, a week, and GPS time minus UTC since 2017, s."""

MOST_EVENTS = 10_000

NOTHING = Messages(np.empty(0, [("TimeUS", "<u8")]), {"TimeUS": 1.0})


def read_ardupilot(path: str | Path) -> Log:
    """The run of a DataFlash log, at the control period."""
    path = Path(path)
    found = read_messages(path, WANTED)
    with np.errstate(all="ignore"):  # of damaged numbers, which are left out
        return _log(path, found)


def _log(path: Path, found: dict[str, Messages]) -> Log:
    def get(name: str) -> Messages:
        return found.get(name, NOTHING)

    filtered = get("XKF1") if len(get("XKF1")) else get("NKF1")
    times, track = _track(filtered)
    if len(times) < 2 or times[-1] - times[0] < 2 * PERIOD:
        raise InputError(f"{path}: no track: must hold XKF1 or NKF1 messages over some time")
    zero = float(times[0])
    if times[-1] - zero > LONGEST:
        raise InputError(
            f"{path}: a track of {(times[-1] - zero) / 3600:.0f} h: must be at most {LONGEST / 3600:.0f} h"
        )
    time: Array = PERIOD * np.arange(int((times[-1] - zero) / PERIOD) + 1, dtype=np.float64)
    at = zero + time
    x, y, psi, north, east = (np.interp(at, times, column) for column in track)
    gyro_times, rates = _series(_instance(get("IMU"), "I"), "GyrZ")
    possible = np.abs(rates) <= FASTEST
    gyro = gyro_times[possible], rates[possible]
    rate = np.interp(at, *gyro) if len(gyro[0]) else np.gradient(psi, PERIOD)
    u, v = np.cos(psi) * north + np.sin(psi) * east, np.cos(psi) * east - np.sin(psi) * north
    state = np.stack([x, y, (psi + np.pi) % (2 * np.pi) - np.pi, u, v, rate], axis=1)
    command = np.zeros((len(time), 3))
    for axis, name, field, scale in ((0, "THR", "ThrOut", THROTTLE), (2, "STER", "SteerOut", STEERING)):
        if len((series := _series(get(name), field))[0]):
            command[:, axis] = np.clip(_held(at, *series) / scale, -1.0, 1.0)
    frame = _frame(get("ORGN"))
    about: dict[str, Any] = {"vessel": path.stem, "controller": "ArduPilot", "events": _events(found, zero)}
    about |= {"boat_time": 0.0, "frame": frame and dict(vars(frame))}
    reference, following = _reference(get("PSCN"), get("PSCE"), at, state)
    about |= {"reference": "none"} if following is None else {"following": (following - zero).tolist()}
    gps = _instance(get("GPS"), "I")
    clock = _clock(gps)
    return Log(
        time=time,
        state=state,
        reference=reference,
        command=command,
        current=np.zeros((len(time), 2)),
        force=np.zeros((len(time), 3)),
        about=about,
        epoch=None if clock is None else at + clock,
        thrusters=_thrusters(get("RCOU"), get("PARM"), at),
        sensors=_sensors(gps, gyro, frame, at),
    )


def _times(messages: Messages) -> Array:
    return 1e-6 * messages.numbers("TimeUS")


def _instance(messages: Messages, field: str) -> Messages:
    """Those of the first of several sensors or filters."""
    numbers = messages.numbers(field)
    return messages if np.isnan(numbers).all() else messages.where(numbers == np.nanmin(numbers))


def _series(messages: Messages, *fields: str) -> tuple[Array, ...]:
    """Times (s) and fields of messages, rising in time, without damaged ones."""
    columns = np.stack([_times(messages), *(messages.numbers(field) for field in fields)])
    columns = columns[:, (np.abs(columns) <= 1e12).all(axis=0)]
    columns = columns[:, np.argsort(columns[0], kind="stable")]
    return tuple(columns)


def _held(at: Array, times: Array, values: Array) -> Array:
    """The last value before each time."""
    held: Array = values[np.maximum(np.searchsorted(times, at, side="right") - 1, 0)]
    return held


def _track(messages: Messages) -> tuple[Array, list[Array]]:
    """Times (s), north, east (m), heading (rad, unwrapped) and velocities of the longest stretch without a gap."""
    columns = np.stack(_series(_instance(messages, "C"), "PN", "PE", "Yaw", "VN", "VE"))
    columns = columns[:, (np.abs(columns[1:]) <= FARTHEST).all(axis=0)]
    if columns.shape[1]:
        stretches = np.split(columns, np.flatnonzero(np.diff(columns[0]) > GAP) + 1, axis=1)
        columns = max(stretches, key=lambda stretch: int(stretch.shape[1]))
    times, north, east, yaw, *velocity = columns
    return times, [north, east, np.unwrap(np.radians(yaw)), *velocity]


def _reference(north: Messages, east: Messages, at: Array, state: Array) -> tuple[Array, Array | None]:
    """The position controller's targets and where they are in force, (n, 2) s; None without targets.

    Heading is the course of the target velocity. Elsewhere the reference is the state.
    """
    x_times, x, vx = _series(north, "TPN", "TVN")
    y_times, y, vy = _series(east, "TPE", "TVE")
    keep, both = (np.abs(x) <= FARTHEST) & (np.abs(vx) <= FARTHEST), (np.abs(y) <= FARTHEST) & (np.abs(vy) <= FARTHEST)
    x_times, x, vx, y_times, y, vy = x_times[keep], x[keep], vx[keep], y_times[both], y[both], vy[both]
    if not len(x_times) or not len(y_times):
        return state.copy(), None
    after = np.minimum(np.searchsorted(x_times, at), len(x_times) - 1)
    before = np.maximum(after - 1, 0)
    near = (x_times[after] - x_times[before] <= HOLE) & (at >= x_times[0]) & (at <= x_times[-1])
    targets = [np.interp(at, x_times, x), np.interp(at, y_times, y)]
    speed = [np.interp(at, x_times, vx), np.interp(at, y_times, vy)]
    course = np.where(np.hypot(*speed) > 0.05, np.arctan2(speed[1], speed[0]), state[:, 2])
    surge = np.hypot(*speed)
    rows = np.stack([*targets, course, surge, np.zeros(len(at)), np.zeros(len(at))], axis=1)
    reference = np.where(near[:, None], rows, state)
    edges = np.flatnonzero(np.diff(near.astype(int), prepend=0, append=0))
    return reference, np.stack([at[edges[::2]], at[edges[1::2] - 1]], axis=1)


def _thrusters(outputs: Messages, parameters: Messages, at: Array) -> Array | None:
    """Commands of the channels that drive a propeller, from their pulses; None where the parameters name none."""
    known = dict(zip(parameters.texts("Name"), parameters.numbers("Value").tolist(), strict=True))
    columns = []
    for channel in range(1, 17):
        function = known.get(f"SERVO{channel}_FUNCTION")
        times, pulses = _series(outputs, f"C{channel}")
        if function not in THROTTLES or not len(times):
            continue
        least, trim, most = (
            known.get(f"SERVO{channel}_{name}", usual) for name, usual in (("MIN", 1100), ("TRIM", 1500), ("MAX", 1900))
        )
        sides = np.where(
            pulses >= trim, (pulses - trim) / max(most - trim, 1.0), (pulses - trim) / max(trim - least, 1.0)
        )
        sign = -1.0 if known.get(f"SERVO{channel}_REVERSED") == 1 else 1.0
        columns.append(_held(at, times, sign * np.clip(np.where(pulses > 0, sides, 0.0), -1.0, 1.0)))
    return np.nan_to_num(np.stack(columns, axis=1)) if columns else None


def _frame(origin: Messages) -> LocalFrame | None:
    """About the EKF's origin, which has type 0; the last that was set."""
    _, kind, latitude, longitude = _series(origin, "Type", "Lat", "Lng")
    places = [(a, b) for k, a, b in zip(kind, latitude, longitude, strict=True) if k == 0 and (a or b)]
    places = [(a, b) for a, b in places if abs(a) <= 90 and abs(b) <= 180]
    return LocalFrame(float(places[-1][0]), float(places[-1][1]), "ned") if places else None


def _clock(gps: Messages) -> float | None:
    """Time since 1970 UTC minus the autopilot's, s."""
    times, week, milliseconds, status = _series(gps, "GWk", "GMS", "Status")
    known = (status >= 3) & (week > 1000) & (week < 6000)
    if not known.any():
        return None
    return float(np.median((GPS_ZERO - LEAP + WEEK * week + 1e-3 * milliseconds - times)[known]))


def _sensors(gps: Messages, gyro: tuple[Array, Array], frame: LocalFrame | None, at: Array) -> Array | None:
    """Fixes and yaw rates as the autopilot had them; its accelerations contain gravity and are left out."""
    sensors = np.full((len(at), len(SENSORS)), np.nan)
    times, status, latitude, longitude = _series(gps, "Status", "Lat", "Lng")
    rows = np.searchsorted(at, times)
    for row, time, kind, a, b in zip(rows.tolist(), times, status, latitude, longitude, strict=True):
        if frame is not None and row < len(at) and at[row] - time < PERIOD and kind >= 3:
            try:
                sensors[row, :3] = (time - at[0], *frame.to_local(float(a), float(b)))
            except InputError:  # damage, or a fix on another continent before the first valid one
                continue
    if len(gyro[0]):
        sensors[:, 5] = _held(at, *gyro)
    return None if np.isnan(sensors).all() else sensors


def _events(found: dict[str, Messages], zero: float) -> list[list[Any]]:
    """Modes, messages, errors and events, in order of time."""
    rows: list[tuple[float, str, str]] = []

    def add(name: str, what: str, details: list[str]) -> None:
        times = _times(found.get(name, NOTHING)).tolist()
        rows.extend((time - zero, what, text) for time, text in zip(times, details, strict=False) if abs(time) < 1e9)

    numbers = {name: found.get(name, NOTHING) for name in ("MODE", "MSG", "ERR", "EV")}
    add("MODE", "mode", [MODES.get(int(n), f"{n:g}") for n in np.nan_to_num(numbers["MODE"].numbers("ModeNum"))])
    add("MSG", "message", numbers["MSG"].texts("Message"))
    codes = zip(numbers["ERR"].numbers("Subsys"), numbers["ERR"].numbers("ECode"), strict=True)
    add("ERR", "error", [f"subsystem {a:g}, code {b:g}" for a, b in codes])
    add("EV", "event", [f"{number:g}" for number in numbers["EV"].numbers("Id")])
    return [list(row) for row in sorted(rows)[-MOST_EVENTS:]]
