"""What the state estimate in the sea-trial twin errs by, and what estimating the antenna's place takes from it.

    python estimate.py --part budget    # the true error without one source of error after the other
    python estimate.py --part trials    # before and after, as in `anyhull trial` and after a turn on the spot; NEES
    python estimate.py --part wrong     # an accelerometer that is elsewhere, or of half or twice the scale
    python estimate.py --part seas      # other waters
    python estimate.py --part model     # without an accelerometer: the identified boat in its place, right and wrong
    python estimate.py --part timing    # time of the estimator per second of measurements

Rows that `results/estimate.json` has are kept. Settings were chosen on seeds 100 to 205, and are judged on others.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from machine import describe, save

from anyhull.backend import Array
from anyhull.control import Adaptive
from anyhull.controller import Controller
from anyhull.onboard.autopilot import Autopilot
from anyhull.onboard.estimator import Estimator
from anyhull.onboard.messages import Acceleration, Gyro, Heading, Message, Position
from anyhull.onboard.sensors import Sensors
from anyhull.onboard.setup import Setup
from anyhull.pilot import Dynamics, Pilot
from anyhull.reference import Reference, rounded_rectangle
from anyhull.scale import PERIOD
from anyhull.twin.sea_trial import LEAD_IN, SETTLE, TIMEOUT, launch
from anyhull.twin.sensors import SensorConfig
from anyhull.twin.twin import TICK, TwinConfig, with_thrusters
from anyhull.twin.water import WATERS

FIRST_SEED = 4000
PLATFORMS = ("platform-a", "platform-b")
RESULTS = Path(__file__).parent / "results" / "estimate.json"

BEFORE: dict[str, float] = {"antenna": 0.0}
"""`Sensors` that give the filter without the antenna."""

SOURCES: dict[str, dict[str, float]] = {
    "all": {},
    "antenna exact": {"antenna": 0.0},
    "no slow error of fixes": {"fix_bias": 0.0},
    "no slow error of headings": {"heading_bias": 0.0},
    "no sway of the mast": {"mast": 0.0},
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

EXACT = {"accelerometer_noise": 0.0, "accelerometer_bias": 0.0, "accelerometer_leak": 0.0}
TRUSTING = {"accelerometer": 1e-3, "accelerometer_bias": 1e-3, "accelerometer_bias_walk": 1e-4}
"""An exact accelerometer, and a filter that knows it: the most that a model of the boat and the sea could give."""

TURN, TURNS, TURN_RATE, REST = math.pi / 2, 4, 1.0, 2.0
"""A turn on the spot: its angle, rad, how often there and back, its largest yaw rate, rad/s, and the rest before, s."""


Spoil = Callable[[Message, Any], Message | None]


class TurnFirst:
    """A reference with turns on the spot, there and back, before its lead-in."""

    def __init__(self, reference: Reference, lead_in: float) -> None:
        self._reference, self._lead_in = reference, lead_in
        self._start = np.append(reference.at(-lead_in)[:3], np.zeros(3))
        # Of a quintic from rest to rest the largest rate is 15/8 of the mean.
        self._part = 15 / 8 * TURN / TURN_RATE
        self.lead_in = lead_in + 2 * TURNS * self._part + 2 * REST
        self.duration = reference.duration

    def at(self, t: float) -> Array:
        """The reference at a time, s."""
        if t >= -self._lead_in:
            return self._reference.at(t)
        found = self._start.copy()
        part, z = divmod(max(t + self.lead_in - REST, 0.0) / self._part, 1.0)
        if part < 2 * TURNS:
            sign = -1.0 if part % 2 else 1.0
            found[2] += TURN * (part % 2 + sign * z**3 * (10 - 15 * z + 6 * z * z))
            found[5] += sign * TURN / self._part * 30 * (z * (1 - z)) ** 2
        return found

    def window(self, t: float, period: float = PERIOD) -> Array:
        """The reference now and in the next ten periods."""
        return np.array([self.at(t + i * period) for i in range(11)])


class WithDynamics:
    """A controller whose dynamics are told otherwise."""

    def __init__(self, controller: Any, change_dynamics: Callable[[Dynamics], Dynamics]) -> None:
        self._controller, self._change = controller, change_dynamics
        self.reset, self.step, self.sent = controller.reset, controller.step, controller.sent

    @property
    def dynamics(self) -> Dynamics:
        """What the loop is told."""
        return self._change(self._controller.dynamics)


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
    spoil: Spoil | None = None,
) -> Found:
    """A trial as `anyhull.twin.sea_trial`, with the covariance; `spoil` changes or drops the messages of the boat."""
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
            if (heard := message if spoil is None else spoil(message, twin)) is not None:
                autopilot.on_message(heard, now + TICK)
    return found


def trials(
    platform: str,
    controller: str,
    sensors: dict[str, float],
    count: int,
    config: TwinConfig | None = None,
    turn: bool = False,
    spoil: Spoil | None = None,
    change_dynamics: Callable[[Dynamics], Dynamics] | None = None,
) -> dict[str, Any]:
    """Errors of `count` trials, cm; `change_dynamics` changes what the loop is told of the identified boat."""
    setup = Setup.load(platform)
    setup = replace(setup, vessel=with_thrusters(setup.vessel), sensors=replace(setup.sensors, **sensors))
    rectangle = rounded_rectangle()
    reference: Any = TurnFirst(rectangle, LEAD_IN) if turn else rectangle
    lead_in = reference.lead_in if turn else LEAD_IN
    found = []
    for i in range(count):
        steers: Controller = Adaptive(setup.vessel) if controller == "adaptive" else Pilot.load("field", setup.vessel)
        if change_dynamics is not None:
            steers = WithDynamics(steers, change_dynamics)
        found.append(trial(steers, setup, reference, config or TwinConfig(), FIRST_SEED + i, lead_in, spoil))
    each = [100 * np.mean(one.true) for one in found]
    nees = [one.antenna_nees for one in found if math.isfinite(one.antenna_nees)]
    return {
        "true_position_cm": float(np.mean(each)),
        "true_position_cm_median": float(np.median(each)),
        "true_position_cm_worst": float(np.max(each)),
        "estimated_position_cm": 100 * float(np.mean([np.mean(one.estimated) for one in found])),
        "estimate_error_cm": 100 * float(np.mean([np.mean(one.error) for one in found])),
        "antenna_error_cm": 100 * float(np.mean([one.antenna for one in found])),
        "nees_per_number": float(np.mean([np.mean(one.nees) for one in found])) / 2,
        "antenna_nees_per_number": float(np.mean(nees)) / 2 if nees else None,
        "each_true_cm": [round(float(value), 3) for value in each],
    }


Rows = Iterator[tuple[str, Callable[[], dict[str, Any]]]]


def budget(count: int, platforms: Sequence[str]) -> Rows:
    """The former filter's errors in twins without one source or another; both filters' with an exact acceleration."""
    rows = {name: (off, BEFORE) for name, off in SOURCES.items()}
    rows |= {"exact acceleration": (EXACT, BEFORE | TRUSTING)}
    rows |= {"exact acceleration, antenna estimated": (EXACT, TRUSTING)}
    for platform in platforms:
        for name, (off, sensors) in rows.items():
            config = TwinConfig(sensors=SensorConfig(**off))
            yield f"{platform}, {name}", partial(trials, platform, "field", sensors, count, config)


def compare(count: int, platforms: Sequence[str]) -> Rows:
    """Before and after, for both controllers, as in `anyhull trial` and after a turn on the spot."""
    for controller in ("field", "adaptive"):
        for turn in (True, False):
            for platform in platforms:
                row = f"{platform}, {controller}, {'after a turn' if turn else 'lap only'}"
                yield row, partial(_pair, platform, controller, count, turn=turn)


def _pair(platform: str, controller: str, count: int, **options: Any) -> dict[str, Any]:
    spoil = options.pop("spoil", lambda: None)
    before = trials(platform, controller, BEFORE, count, spoil=spoil(), **options)
    after = trials(platform, controller, {}, count, spoil=spoil(), **options)
    return {"before": before, "after": after, "share": after["true_position_cm"] / before["true_position_cm"]}


def _scaled(factor: float) -> Spoil:
    def spoil(message: Message, twin: Any) -> Message:
        if isinstance(message, Acceleration):
            return replace(message, x=factor * message.x, y=factor * message.y)
        return message

    return spoil


def _elsewhere(ahead: float) -> Spoil:
    last = [0.0, 0.0]

    def spoil(message: Message, twin: Any) -> Message:
        if not isinstance(message, Acceleration):
            return message
        rate = twin.state[5]
        change = (rate - last[1]) / max(message.time - last[0], TICK)
        last[:] = message.time, rate
        return replace(message, x=message.x - rate * rate * ahead, y=message.y + change * ahead)

    return spoil


WRONG: dict[str, Callable[[], Spoil]] = {
    "half the scale": lambda: _scaled(0.5),
    "twice the scale": lambda: _scaled(2.0),
    "5 cm ahead": lambda: _elsewhere(0.05),
    "30 cm ahead": lambda: _elsewhere(0.3),
}


def wrong(count: int, platforms: Sequence[str]) -> Rows:
    """Before and after with a wrong accelerometer, after a turn, which shows it most, on the last platform."""
    for name, make in WRONG.items():
        yield name, partial(_pair, platforms[-1], "field", count, turn=True, spoil=make)


def seas(count: int, platforms: Sequence[str]) -> Rows:
    """Before and after in other waters, on the last platform."""
    for water in ("still", "breeze", "rough"):
        yield water, partial(_pair, platforms[-1], "field", count, config=TwinConfig(water=WATERS[water]))


def _without_accelerometer(message: Message, twin: Any) -> Message | None:
    return None if isinstance(message, Acceleration) else message


def _scaled_boat(factor: float) -> Callable[[Dynamics], Dynamics]:
    """Accelerations and damping rates, that is, all forces on the boat, times a factor."""
    names = ("alpha_u", "alpha_v", "alpha_r", "inv_tau_u", "inv_tau_v", "inv_tau_r")
    return lambda found: found._replace(e=found.e._replace(**{name: factor * getattr(found.e, name) for name in names}))


PROCESS_MODELS: dict[str, Callable[[Dynamics], Dynamics]] = {
    "not used": lambda found: found._replace(lag=None),
    "as identified": lambda found: found,
    "half the forces": _scaled_boat(0.5),
    "1.5 times the forces": _scaled_boat(1.5),
    "twice the forces": _scaled_boat(2.0),
    "a push of 0.3 of the limits": lambda found: found._replace(
        force=np.full(3, 0.3) if found.force is None else found.force + 0.3
    ),
}
"""What the process model is told of the boat."""


def model(count: int, platforms: Sequence[str]) -> Rows:
    """Adaptive without an accelerometer: without a process model, with it, and with a wrong one."""
    for platform in platforms:
        for name, change_dynamics in PROCESS_MODELS.items():
            run = partial(
                trials, platform, "adaptive", {}, count, spoil=_without_accelerometer, change_dynamics=change_dynamics
            )
            yield f"{platform}, {name}", run


def timing(count: int, platforms: Sequence[str]) -> Rows:
    """Time of the estimator per second of measurements, ms, the two in turn; the median of `count` rounds."""
    yield "ms", partial(_time, count)


def _time(count: int) -> dict[str, Any]:
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
    return found | {"ratio": found["after"] / found["before"]}


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


PARTS = {"budget": budget, "trials": compare, "wrong": wrong, "seas": seas, "model": model, "timing": timing}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=PARTS, required=True)
    parser.add_argument("--count", type=int, default=20, help="trials of a row, rounds of the timing")
    parser.add_argument("--platforms", nargs="+", choices=PLATFORMS, default=PLATFORMS)
    options = parser.parse_args()
    for row, measure in PARTS[options.part](options.count, options.platforms):
        results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        rows = results.get(options.part, {})
        if rows.get(row, {}).get("count") == options.count:
            continue
        rows[row] = measure() | {"count": options.count}
        print(f"{row}:", json.dumps(rows[row]), flush=True)
        save(RESULTS, results | {"machine": describe("numpy"), options.part: rows})


if __name__ == "__main__":
    main()
