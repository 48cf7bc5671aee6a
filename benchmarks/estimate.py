"""What the state estimate in the sea-trial twin errs by, and what estimating the antenna's place takes from it.

    python estimate.py --part budget    # the true error without one source of error after the other
    python estimate.py --part trials    # before and after, as in `anyhull trial` and after a turn on the spot; NEES
    python estimate.py --part wrong     # an accelerometer that is elsewhere, reversed, or of twice the scale
    python estimate.py --part seas      # other waters
    python estimate.py --part timing    # time of the estimator per second of measurements

Results go to `results/estimate.json`, part by part. Settings were chosen on seeds 100 to 205, and are judged on others.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from machine import describe, save

from anyhull.backend import Array
from anyhull.control import Adaptive
from anyhull.controller import Controller
from anyhull.onboard.autopilot import Autopilot
from anyhull.onboard.estimator import Estimator
from anyhull.onboard.filter import Sensors
from anyhull.onboard.messages import Acceleration, Gyro, Heading, Message, Position
from anyhull.onboard.setup import Setup
from anyhull.pilot import Pilot
from anyhull.reference import Reference, rounded_rectangle
from anyhull.scale import PERIOD
from anyhull.twin.sea_trial import LEAD_IN, SETTLE, TIMEOUT, launch
from anyhull.twin.sensors import SensorConfig
from anyhull.twin.twin import TICK, TwinConfig, with_thrusters
from anyhull.twin.water import WATERS

FIRST_SEED = 4000
PLATFORMS = ("platform-a", "platform-b")
RESULTS = Path(__file__).parent / "results" / "estimate.json"

BEFORE: dict[str, float] = {"antenna": 0.0, "accelerometer": 0.05}
"""`Sensors` that give the filter without the antenna, with its former noise."""

SOURCES: dict[str, dict[str, float]] = {
    "all": {},
    "antenna exact": {"antenna": 0.0},
    "no slow error of fixes": {"fix_bias": 0.0},
    "no slow error of headings": {"heading_bias": 0.0},
    "no sway of the mast": {"mast": 0.0},
    "exact acceleration": {"accelerometer_noise": 0.0, "accelerometer_bias": 0.0, "accelerometer_leak": 0.0},
    "antenna exact, no slow error of fixes": {"antenna": 0.0, "fix_bias": 0.0},
    "none of these, fixes exact": {
        "antenna": 0.0,
        "fix_bias": 0.0,
        "heading_bias": 0.0,
        "mast": 0.0,
        "fix_noise": 0.0,
    },
}
"""Sources of error that are removed from the twin's sensors."""

TURN_RATE, REST = 1.0, 2.0
"""Largest yaw rate of the turn on the spot, rad/s, and rest before, between and after its two parts, s."""


class TurnFirst:
    """A reference with a turn on the spot before its lead-in, a full circle there and back."""

    def __init__(self, reference: Reference, lead_in: float, rate: float = TURN_RATE) -> None:
        self._reference, self._lead_in = reference, lead_in
        self._start = np.append(reference.at(-lead_in)[:3], np.zeros(3))
        # Of a quintic from rest to rest the largest rate is 15/8 of the mean.
        self._part = 15 / 8 * math.tau / rate
        self.lead_in = lead_in + 2 * self._part + 3 * REST
        self.duration = reference.duration

    def at(self, t: float) -> Array:
        """The reference at a time, s."""
        if t >= -self._lead_in:
            return self._reference.at(t)
        found = self._start.copy()
        for sign, begin in ((1.0, REST), (-1.0, 2 * REST + self._part)):
            z = min(max((t + self.lead_in - begin) / self._part, 0.0), 1.0)
            found[2] += sign * math.tau * z**3 * (10 - 15 * z + 6 * z * z)
            found[5] += sign * math.tau / self._part * 30 * (z * (1 - z)) ** 2
        return found

    def window(self, t: float, period: float = PERIOD) -> Array:
        """The reference now and in the next ten periods."""
        return np.array([self.at(t + i * period) for i in range(11)])


@dataclass
class Found:
    """What one trial shows; metres, radians."""

    true: list[float]
    """Distance of the boat from the reference in each period."""
    estimated: list[float]
    """That of the estimate."""
    error: list[float]
    """Distance of the estimate from the boat."""
    nees: list[float]
    """Normalized squared error of the position, 2 on average if the covariance is right."""
    antenna: float
    """Error of the antenna's place at the end."""
    antenna_nees: float


def trial(
    controller: Controller,
    setup: Setup,
    reference: Any,
    config: TwinConfig,
    seed: int,
    lead_in: float,
    spoil: Callable[[Message, Any], Message] | None = None,
) -> Found:
    """A trial as `anyhull.twin.sea_trial`, with the covariance; `spoil` changes the messages of the boat."""
    twin = launch(setup, reference, config, seed, lead_in)
    autopilot = Autopilot(setup, controller, reference, settle=SETTLE, lead_in=lead_in, session=seed)
    found = Found([], [], [], [], math.nan, math.nan)
    every = round(PERIOD / TICK)
    for tick in range(round((SETTLE + lead_in + reference.duration + TIMEOUT) / TICK)):
        now = tick * TICK
        if tick % every == 0 and (step := autopilot.step(now)) is not None:
            if step.phase == "arrived":
                break
            twin.on_command(step.command)
            if step.phase == "under way":
                place, estimate = np.array(twin.state[:2]), step.estimate
                away = estimate.pose[:2] - place
                found.true.append(math.dist(place, step.reference[:2]))
                found.estimated.append(math.dist(estimate.pose[:2], step.reference[:2]))
                found.error.append(float(np.hypot(*away)))
                found.nees.append(float(away @ np.linalg.solve(estimate.covariance[:2, :2], away)))
                off = estimate.antenna - twin.sensors._antenna
                found.antenna = float(np.hypot(*off))
                covariance = estimate.antenna_covariance
                found.antenna_nees = float(off @ np.linalg.pinv(covariance) @ off) if covariance.any() else math.nan
        for message in twin.advance():
            autopilot.on_message(message if spoil is None else spoil(message, twin), now + TICK)
    return found


def trials(
    platform: str,
    controller: str,
    sensors: dict[str, float],
    count: int,
    config: TwinConfig | None = None,
    turn: bool = False,
    spoil: Callable[[Message, Any], Message] | None = None,
) -> dict[str, Any]:
    """Errors of `count` trials, cm."""
    setup = Setup.load(platform)
    setup = replace(setup, vessel=with_thrusters(setup.vessel), sensors=replace(setup.sensors, **sensors))
    rectangle = rounded_rectangle()
    reference: Any = TurnFirst(rectangle, LEAD_IN) if turn else rectangle
    lead_in = reference.lead_in if turn else LEAD_IN
    found = []
    for i in range(count):
        steers: Controller = Adaptive(setup.vessel) if controller == "adaptive" else Pilot.load("field", setup.vessel)
        found.append(trial(steers, setup, reference, config or TwinConfig(), FIRST_SEED + i, lead_in, spoil))
    each = [100 * np.mean(one.true) for one in found]
    return {
        "true_position_cm": float(np.mean(each)),
        "true_position_cm_median": float(np.median(each)),
        "true_position_cm_worst": float(np.max(each)),
        "estimated_position_cm": 100 * float(np.mean([np.mean(one.estimated) for one in found])),
        "estimate_error_cm": 100 * float(np.mean([np.mean(one.error) for one in found])),
        "antenna_error_cm": 100 * float(np.mean([one.antenna for one in found])),
        "nees_per_number": float(np.mean([np.mean(one.nees) for one in found])) / 2,
        "antenna_nees_per_number": float(np.mean([one.antenna_nees for one in found])) / 2,
        "each_true_cm": [round(float(value), 3) for value in each],
    }


def budget(count: int, platforms: Sequence[str]) -> dict[str, Any]:
    """The present filter's errors in twins without one source or another."""
    return {
        platform: {
            name: trials(platform, "field", BEFORE, count, TwinConfig(sensors=SensorConfig(**off)))
            for name, off in SOURCES.items()
        }
        for platform in platforms
    }


def compare(count: int, platforms: Sequence[str]) -> dict[str, Any]:
    """Before and after, for both controllers, as in `anyhull trial` and after a turn on the spot."""
    found: dict[str, Any] = {}
    for platform in platforms:
        for controller in ("field", "adaptive"):
            for turn in (False, True):
                row = f"{platform}, {controller}, {'after a turn' if turn else 'lap only'}"
                pair = {
                    name: trials(platform, controller, sensors, count, turn=turn)
                    for name, sensors in (("before", BEFORE), ("after", {}))
                }
                found[row] = pair | {"share": pair["after"]["true_position_cm"] / pair["before"]["true_position_cm"]}
                print(row, *(f"{one['true_position_cm']:.2f}" for one in pair.values()), f"{found[row]['share']:.2f}")
    return found


def _scaled(factor: float) -> Callable[[Message, Any], Message]:
    def spoil(message: Message, twin: Any) -> Message:
        if isinstance(message, Acceleration):
            return replace(message, x=factor * message.x, y=factor * message.y)
        return message

    return spoil


def _elsewhere(ahead: float) -> Callable[[Message, Any], Message]:
    last = [0.0, 0.0]

    def spoil(message: Message, twin: Any) -> Message:
        if not isinstance(message, Acceleration):
            return message
        rate = twin.state[5]
        change = (rate - last[1]) / max(message.time - last[0], TICK)
        last[:] = message.time, rate
        return replace(message, x=message.x - rate * rate * ahead, y=message.y + change * ahead)

    return spoil


WRONG: dict[str, Callable[[], Callable[[Message, Any], Message]]] = {
    "reversed": lambda: _scaled(-1.0),
    "twice the scale": lambda: _scaled(2.0),
    "5 cm ahead": lambda: _elsewhere(0.05),
    "30 cm ahead": lambda: _elsewhere(0.3),
}


def wrong(count: int, platforms: Sequence[str]) -> dict[str, Any]:
    """Before and after with a wrong accelerometer, after a turn, which shows it most, on the first platform."""
    found: dict[str, Any] = {}
    for name, make in WRONG.items():
        found[name] = {
            when: trials(platforms[0], "field", sensors, count, turn=True, spoil=make())
            for when, sensors in (("before", BEFORE), ("after", {}))
        }
        print(name, *(f"{one['true_position_cm']:.2f}" for one in found[name].values()))
    return found


def seas(count: int, platforms: Sequence[str]) -> dict[str, Any]:
    """Before and after in other waters, on the last platform."""
    found: dict[str, Any] = {}
    for water in ("still", "breeze", "rough"):
        found[water] = {
            when: trials(platforms[-1], "field", sensors, count, TwinConfig(water=WATERS[water]))
            for when, sensors in (("before", BEFORE), ("after", {}))
        }
        print(water, *(f"{one['true_position_cm']:.2f}" for one in found[water].values()))
    return found


def timing(count: int, platforms: Sequence[str]) -> dict[str, Any]:
    """Time of the estimator per second of measurements, ms, the two in turn; the median of `count` rounds."""
    seconds = 20
    messages: list[Message] = []
    setup = Setup.load("platform-a")
    setup = replace(setup, vessel=with_thrusters(setup.vessel))
    twin = launch(setup, rounded_rectangle(), None, FIRST_SEED, LEAD_IN)
    for _ in range(round(seconds / TICK)):
        messages += twin.advance()
    taken: dict[str, list[float]] = {"before": [], "after": []}
    for _ in range(count):
        for name, sensors in (("before", BEFORE), ("after", {})):
            estimator = Estimator(Sensors(**sensors))
            began = time.perf_counter()
            for message in messages:
                _take(estimator, message)
            taken[name].append(1e3 * (time.perf_counter() - began) / seconds)
    found = {name: float(np.median(values)) for name, values in taken.items()}
    return {f"{name}_ms": value for name, value in found.items()} | {"ratio": found["after"] / found["before"]}


def _take(estimator: Estimator, message: Message) -> None:
    match message:
        case Position(time=at, x=x, y=y, std=std):
            estimator.position(at, (x, y), std)
        case Heading(time=at, psi=psi, std=std):
            estimator.heading(at, psi, std)
        case Gyro(time=at, rate=rate):
            estimator.gyro(at, rate)
        case Acceleration(time=at, x=x, y=y):
            estimator.acceleration(at, (x, y))


PARTS = {"budget": budget, "trials": compare, "wrong": wrong, "seas": seas, "timing": timing}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=PARTS, required=True)
    parser.add_argument("--count", type=int, default=20, help="trials of a row, rounds of the timing")
    parser.add_argument("--platforms", nargs="+", choices=PLATFORMS, default=PLATFORMS)
    options = parser.parse_args()
    rows = PARTS[options.part](options.count, options.platforms)
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    rows = results.get(options.part, {}).get("rows", {}) | rows
    save(RESULTS, results | {options.part: {"machine": describe("numpy"), "count": options.count, "rows": rows}})


if __name__ == "__main__":
    main()
