"""Closed loops of the lab's scripts under node, and the boats that they are compared on."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from anyhull import Reference, Sea, Vessel, rounded_rectangle
from anyhull.lab import model_script
from anyhull.lab.data import vessel_data

NODE = shutil.which("node")
DRIVER = Path(__file__).parent / "lab_driver.js"


def run_node(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The results of the driver for these cases."""
    text = json.dumps({"model": model_script(), "cases": cases})
    assert NODE is not None
    done = subprocess.run([NODE, str(DRIVER)], input=text, capture_output=True, text=True, check=True)
    results: list[dict[str, Any]] = json.loads(done.stdout)
    return results


def sea_data(sea: Sea) -> dict[str, float]:
    """A sea's bounds and decay rates as the page has them."""
    return {
        "current": sea.current,
        "force": sea.force,
        "currentDecay": sea.current_decay,
        "forceDecay": sea.force_decay,
    }


def case(
    vessel: Vessel,
    reference: list[Any],
    sea: Sea,
    seed: int,
    controllers: list[str],
    seconds: float = 10.0,
) -> dict[str, Any]:
    """A run as the driver takes it, with the numbers that `simulate` draws from that seed."""
    steps = round(seconds / vessel.scale.period)
    random = np.random.default_rng(seed)
    delay = random.uniform(*sea.delay)
    return {
        "vessel": vessel_data(vessel),
        "reference": reference,
        "sea": sea_data(sea),
        "delay": delay,
        "normals": random.standard_normal(5 * (steps + 1)).tolist(),
        "controllers": controllers,
        "steps": steps,
    }


def random_boats(count: int) -> Iterator[tuple[Vessel, Reference, list[Any], Sea]]:
    """Vessels of 0.6 to 10 m with plausible hulls, each with a reference that it can follow and a sea of its scale."""
    random = np.random.default_rng(2026)
    while count:
        length = float(np.exp(random.uniform(np.log(0.6), np.log(10))))
        m = 9.5 * length**3 * float(np.exp(random.uniform(-0.6, 0.6)))
        push, turn = np.exp(random.uniform(np.log((0.3, 0.5)), np.log((3.0, 5.0)))).tolist()
        base = Vessel("random", Fx=m * push, Fy=m * push * 0.8, Mz=m * length**2 * 0.2 * turn, length=length)
        vessel = base.plausible(int(random.integers(1000)))
        unit, speed = vessel.scale.length, float(random.uniform(0.3, 0.6)) * vessel.scale.speed
        sizes = (10 * unit, 6 * unit, 2 * unit)
        reference = rounded_rectangle(*sizes, speed=speed)
        if reference.infeasible(vessel):
            continue
        sea = vessel.scale.sea(
            Sea(current=random.uniform(0, 0.2), force=random.uniform(0, 0.1), delay=(0.0, random.uniform(0, 0.3)))
        )
        yield vessel, reference, ["roundedRectangle", *sizes, speed], sea
        count -= 1
