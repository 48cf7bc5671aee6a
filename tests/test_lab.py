"""The lab: its JavaScript against the package, its page, and its command."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from anyhull import Pilot, Sea, Vessel, rounded_rectangle, simulate
from anyhull.control import MPC, PID
from anyhull.lab import model_script
from anyhull.lab.data import vessel_data

NODE = shutil.which("node")
DRIVER = Path(__file__).parent / "lab_driver.js"

needs_node = pytest.mark.skipif(NODE is None, reason="needs node, to run the page's scripts without a browser")


def run_node(cases):
    """The results of the driver for these cases."""
    text = json.dumps({"model": model_script(), "cases": cases})
    done = subprocess.run([NODE, DRIVER], input=text, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def sea_data(sea):
    return {
        "current": sea.current,
        "force": sea.force,
        "currentDecay": sea.current_decay,
        "forceDecay": sea.force_decay,
    }


def case(vessel, reference, sea, seed, controllers, seconds=10.0, **more):
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
        **more,
    }


def random_boats(count):
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


@needs_node
def test_fifty_random_boats_and_seas_go_where_they_do_in_python_to_a_micrometre():
    fleet = list(random_boats(50))
    cases = [case(vessel, data, sea, seed, ["student", "pid"]) for seed, (vessel, _, data, sea) in enumerate(fleet)]
    worst = {"student": 0.0, "pid": 0.0}
    for seed, ((vessel, reference, _, sea), result) in enumerate(zip(fleet, run_node(cases), strict=True)):
        for name, controller in (("student", Pilot.load(vessel=vessel)), ("pid", PID(vessel))):
            expected = simulate(controller, vessel, reference, sea, seed=seed, duration=10.0).state
            gap = float(np.abs(np.array(result["states"][name]) - expected)[:, :2].max())
            worst[name] = max(worst[name], gap)
    # What is left of the student's is the order of sums in single precision; PID has no such sums.
    assert worst["student"] < 1e-6
    assert worst["pid"] < 1e-12


@needs_node
def test_the_mpc_goes_where_the_package_s_does():
    # Python's solver stops at a dual residual of 1e-4, the page's at a change of command of 1e-7.
    pytest.importorskip("casadi")
    runs = []
    for name in ("platform-a", "platform-b", "roboat-1", "roboat-2", "roboat-3", "csad"):
        vessel = Vessel.load(name)
        unit, speed = vessel.scale.length, 0.6 * vessel.scale.speed * (0.3 if name == "csad" else 1)
        sizes = (10 * unit, 6 * unit, 2 * unit)
        runs.append((vessel, rounded_rectangle(*sizes, speed=speed), ["roundedRectangle", *sizes, speed]))
    cases = [
        case(vessel, data, vessel.scale.sea(sea), 0, [tuning], seconds=20.0)
        for vessel, _, data in runs
        for tuning, sea in (("tight", Sea.ideal()), ("field", Sea.field()))
    ]
    results = iter(run_node(cases))
    for vessel, reference, _ in runs:
        for tuning, sea in (("tight", Sea.ideal()), ("field", Sea.field())):
            expected = simulate(MPC(vessel, tuning), vessel, reference, vessel.scale.sea(sea), duration=20.0).state
            gap = np.abs(np.array(next(results)["states"][tuning]) - expected)[:, :2].max()
            assert gap < 1e-5, (vessel.name, tuning)
