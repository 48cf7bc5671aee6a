"""Where the settings of `Adaptive` are chosen: worlds that none of its published figures are from.

    python adaptive_search.py                                  # the present settings, and the student, in every world
    python adaptive_search.py --world sensors --set noisy.rate=0.3 --set noisy.position=0.02

    still      the platforms, each perturbed twice, in still water
    field      the platforms in the field sea, seeds 8000 and following
    errors     perturbed platforms, random delay, lag, reverse thrust and drag (plant.py), errors of the estimate
    sensors    the same with random sensors, whose measurements our estimator gets

It prints means, and the medians of the ratios to the student's in the same run: position, heading, mean |Δτ| per step,
and position as estimated. `--set NOISE.NAME=VALUE` sets one of `Weights`, of `Noise`, or of the standard deviations in
`MEASURED`; `q` has six values with commas.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # one core, as on a boat; read when the libraries below are loaded

import argparse
import math
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from plant import PARTS, Plant

from anyhull import Pilot, Sea, Vessel, rounded_rectangle, simulate
from anyhull.backend import Array, to_inertial
from anyhull.control import Adaptive
from anyhull.control.adaptive import WEIGHTS
from anyhull.control.hypotheses import NOISES
from anyhull.control.planner import Weights
from anyhull.controller import Controller
from anyhull.dynamics import PERIOD
from anyhull.log import Log
from anyhull.onboard import Estimator
from anyhull.paper import PLATFORMS

BUILD: dict[str, Callable[[Vessel], Controller]] = {
    "adaptive": Adaptive,
    "student": lambda vessel: Pilot.load("field", vessel),
}
MEASURED = {"position": (0, 1), "heading": (2,), "velocity": (3, 4), "yaw_rate": (5,)}
"""Places of the measured numbers in a state."""

RUNS = {"still": 15, "field": 80, "errors": 100, "sensors": 30}

BREEZE = Sea(current=0.1, force=0.05)

ERRORS = np.array([0.01, 0.01, 0.005, 0.015, 0.015, 0.01])
"""Errors of the estimate in `errors`, times 0.5 to 1.5 (m, m, rad, m/s, m/s, rad/s)."""


class Found(NamedTuple):
    """What a run shows: cm, degrees."""

    position: float
    heading: float
    delta_tau: float
    estimated: float


def perturbed(platform: str, random: np.random.Generator) -> Vessel:
    """A platform with other damping, by up to 28 %, and other limits, by up to 16 %."""
    vessel = Vessel.load(platform)
    damping = {
        name: getattr(vessel.hull, name) * math.exp(random.uniform(-0.25, 0.25)) for name in ("X_u", "Y_v", "N_r")
    }
    limits = {name: getattr(vessel, name) * math.exp(random.uniform(-0.15, 0.15)) for name in ("Fx", "Fy", "Mz")}
    return replace(vessel, hydrodynamics=replace(vessel.hull, **damping), **limits)


class Sensed:
    """A controller that gets the state from our estimator, once that has settled, in place of the plant's."""

    def __init__(self, controller: Controller, random: np.random.Generator) -> None:
        self._controller, self._random = controller, random
        self._fix, self._acceleration = random.uniform(0.006, 0.02), random.uniform(0.03, 0.08)
        self._late, self._interval = random.uniform(0.03, 0.12), PERIOD / PARTS * random.integers(10, 21)
        self._antenna, self._heading = 0.02 * random.standard_normal(2), 0.01 * random.standard_normal()
        self._gyro, self._bias = 5e-3 * random.standard_normal(), 0.05 * random.standard_normal(2)
        self._slow = 0.01 * random.standard_normal(2)
        self.states: list[Array] = []

    def reset(self) -> None:
        """Start the estimator anew."""
        self._controller.reset()
        self.states.clear()
        self._estimator, self._due = Estimator(), 0.0
        self._waiting: list[tuple[float, float, Array]] = []

    def measure(self, t: float, state: Array, acceleration: Array) -> None:
        """The sensors of a boat with this state at a time, s."""
        n, estimator = self._random.standard_normal(6), self._estimator
        estimator.gyro(t, state[5] + self._gyro + 2e-3 * n[0])
        estimator.acceleration(t, acceleration + self._bias + self._acceleration * n[1:3])
        estimator.heading(t, state[2] + self._heading + 0.01 * n[3])
        if t >= self._due:
            # A slow error of 1 cm over a minute.
            share = self._interval / 60
            self._slow = (1 - share) * self._slow + 0.01 * math.sqrt(2 * share) * self._random.standard_normal(2)
            antenna = to_inertial(self._antenna[0], self._antenna[1], state[2])
            self._waiting.append((t + self._late, t, state[:2] + antenna + self._slow + self._fix * n[4:]))
            self._due = t + self._interval
        while self._waiting and self._waiting[0][0] <= t:
            _, at, fix = self._waiting.pop(0)
            estimator.position(at, fix)

    def step(self, pose: ArrayLike, velocity: ArrayLike, window: ArrayLike) -> Array:
        """The controller's command for the estimated state."""
        found = self._estimator.at(PERIOD * len(self.states))
        known = found.valid and found.health == "ok"
        state = found.state if known else np.append(pose, velocity)
        self.states.append(state)
        return self._controller.step(state[:3], state[3:], window)


def run(job: tuple[str, str, int, dict[str, Any]]) -> Found:
    """One run of a world with these settings."""
    world, name, i, settings = job
    change(settings)
    platform, random = PLATFORMS[i % 5], np.random.default_rng(9000 + i)
    if world in ("still", "field"):
        vessel = perturbed(platform, random) if world == "still" and i >= 5 else Vessel.load(platform)
        sea = Sea.field() if world == "field" else Sea()
        return found(simulate(BUILD[name](vessel), vessel, rounded_rectangle(), sea, seed=8000 + i // 5))
    vessel = perturbed(platform, random)
    path = rounded_rectangle(speed=0.55 if platform == "platform-a" else 0.6)
    lag = min(random.exponential(0.1), 0.3)
    plant = Plant(random.uniform(0, 0.2), lag, random.uniform(0.4, 1.0), quadratic=random.uniform(0, 0.5))
    controller = BUILD[name](vessel)
    if world == "sensors":
        sensed = Sensed(controller, random)
        log = plant.run(sensed, vessel, path, BREEZE, 9000 + i, sensed.measure)
        return found(replace(log, estimate=np.array(sensed.states)))
    errors = tuple(random.uniform(0.5, 1.5) * ERRORS)
    plant = replace(plant, errors=errors, memory=0.85 if random.integers(3) else 0.0)
    return found(plant.run(controller, vessel, path, BREEZE, 9000 + i))


def found(log: Log) -> Found:
    true = log.metrics()
    return Found(true.position_cm, true.heading_deg, true.delta_tau, log.estimated.metrics().position_cm)


def change(settings: dict[str, Any]) -> None:
    """Set weights and noises."""
    for setting, value in settings.items():
        noise, name = setting.split(".")
        if name in MEASURED:
            measurement: Any = list(NOISES[noise].measurement)
            for place in MEASURED[name]:
                measurement[place] = value
            measurement = tuple(measurement)
            NOISES[noise] = replace(NOISES[noise], measurement=measurement)
        elif name in Weights.__dataclass_fields__:
            WEIGHTS[noise] = replace(WEIGHTS[noise], **{name: value})
        else:
            NOISES[noise] = replace(NOISES[noise], **{name: value})


def parse(value: str) -> Any:
    return tuple(map(float, value.split(","))) if "," in value else float(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--world", choices=RUNS, nargs="+", default=list(RUNS))
    parser.add_argument("--set", action="append", default=[], metavar="NOISE.NAME=VALUE", dest="settings")
    given = parser.parse_args()
    settings = {name: parse(value) for name, value in (one.split("=") for one in given.settings)}
    for world in given.world:
        rows = {}
        for name in BUILD:
            with ProcessPoolExecutor(2) as pool:  # its processes end with the settings
                rows[name] = np.array(list(pool.map(run, [(world, name, i, settings) for i in range(RUNS[world])])))
            print(f"{world:8s} {name:9s}", *(f"{value:9.4f}" for value in rows[name].mean(axis=0)), flush=True)
        ratio = np.median(rows["adaptive"] / rows["student"], axis=0)
        print(f"{world:8s} {'ratio':9s}", *(f"{value:9.3f}" for value in ratio), flush=True)


if __name__ == "__main__":
    main()
