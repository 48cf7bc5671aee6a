"""Time of a step: the pilot in NumPy, the same policy as an ONNX graph, and the MPC.

    cd benchmarks && python pilot.py --json results/pilot.json

One core, one thread. The inputs are recorded on laps of the paper's rectangle in the field sea with the five platforms:
those of the policies under the shipped `field` policy, those of the MPC under itself, since it predicts with its own
commands. The controllers run in blocks of some hundred steps in turn, so that other load on the machine affects all
of them equally and each has its data in the cache.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read when the libraries below are loaded

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from machine import describe, save

from anyhull import Pilot, Sea, Vessel, rounded_rectangle, simulate
from anyhull.control import MPC
from anyhull.controller import Controller
from anyhull.export import build
from anyhull.paper import PLATFORMS

BLOCK, WARM_UP = 200, 20
"""Steps of a block, and those at its start that are not counted."""

POLICIES = ("field", "ideal")

State = tuple[Any, Any, Any]


class Recorder:
    """A controller, with the inputs of its steps."""

    def __init__(self, controller: Controller) -> None:
        self.controller = controller
        self.states: list[State] = []

    def reset(self) -> None:
        self.controller.reset()

    def step(self, pose: Any, velocity: Any, window: Any) -> Any:
        self.states.append((np.array(pose), np.array(velocity), np.array(window)))
        return self.controller.step(*self.states[-1])


class Graph:
    """A policy as an ONNX graph on onnxruntime with one thread: a dictionary in, arrays out."""

    def __init__(self, policy: str) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        model = build(Pilot.load(policy)).SerializeToString()
        self.session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self.reset()

    def reset(self) -> None:
        self.last: dict[str, Any] = {
            "previous_command": np.zeros((1, 3), np.float32),
            "previous_memory": np.zeros((1, 128), np.float32),
        }

    def step(self, pose: Any, velocity: Any, window: Any) -> Any:
        measured = {"pose": pose[None], "velocity": velocity[None].astype(np.float32), "window": window[None]}
        command, memory = self.session.run(["command", "memory"], {"previous_pose": pose[None]} | self.last | measured)
        self.last = {"previous_pose": pose[None], "previous_command": command, "previous_memory": memory}
        return command[0]


class Bound(Graph):
    """The same with inputs and outputs bound once to arrays that are filled in place, as in a loop on a boat."""

    def reset(self) -> None:
        self.arrays: dict[str, Any] = {}
        self.values = []  # the binding holds no references
        self.binding = self.session.io_binding()
        for ends, bind in (
            (self.session.get_inputs(), self.binding.bind_ortvalue_input),
            (self.session.get_outputs(), self.binding.bind_ortvalue_output),
        ):
            for end in ends:
                dtype = np.float64 if end.type == "tensor(double)" else np.float32
                self.arrays[end.name] = np.zeros((1, *end.shape[1:]), dtype)
                self.values.append(onnxruntime.OrtValue.ortvalue_from_numpy(self.arrays[end.name]))
                bind(end.name, self.values[-1])
        self.first = True

    def step(self, pose: Any, velocity: Any, window: Any) -> Any:
        arrays = self.arrays
        arrays["previous_pose"][:] = pose if self.first else arrays["pose"]
        arrays["previous_command"][:] = arrays["command"]
        arrays["previous_memory"][:] = arrays["memory"]
        arrays["pose"][:], arrays["velocity"][:], arrays["window"][:] = pose, velocity, window
        self.session.run_with_iobinding(self.binding)
        self.first = False
        return arrays["command"][0]


def record(controller: Controller, platform: str) -> list[State]:
    """The inputs of the controller on a lap."""
    recorder = Recorder(controller)
    simulate(recorder, Vessel.load(platform), rounded_rectangle(), Sea.preset("field"), seed=PLATFORMS.index(platform))
    return recorder.states


def differences(controllers: dict[str, Controller], states: list[State]) -> dict[str, float]:
    """By policy, the largest difference between the graphs' commands and the pilot's, each with its own memory."""
    found = {}
    for policy in POLICIES:
        same = [controller for name, controller in controllers.items() if name.endswith(policy)]
        for controller in same:
            controller.reset()
        commands = np.array([[np.array(controller.step(*state)) for controller in same] for state in states])
        found[policy] = float(np.abs(commands[:, 1:] - commands[:, :1]).max())
    assert max(found.values()) < 5e-5  # the memory accumulates rounding errors over a lap
    return found


def measure(laps: dict[str, tuple[Controller, list[State]]], seconds: dict[str, list[float]]) -> None:
    """Append the seconds of each step to those of its controller."""
    for controller, _ in laps.values():
        controller.reset()
    for begin in range(0, max(len(states) for _, states in laps.values()), BLOCK):
        for name, (controller, states) in laps.items():
            taken = []
            for state in states[begin : begin + BLOCK]:
                start = time.perf_counter()
                controller.step(*state)
                taken.append(time.perf_counter() - start)
            seconds.setdefault(name, []).extend(taken[WARM_UP:])


def main() -> None:
    parser = argparse.ArgumentParser(description="Time of a step: pilot, ONNX graph and MPC.")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the results here as well")
    parser.add_argument("--rounds", type=int, default=5, help="repetitions of the recorded laps")
    arguments = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

    learned: dict[str, Controller] = {}
    for what, build_one in (("pilot", Pilot.load), ("onnx, bound", Bound), ("onnx, dictionary", Graph)):
        learned |= {f"{what}, {policy}": build_one(policy) for policy in POLICIES}
    seconds: dict[str, list[float]] = {}
    by_platform = {}
    for name in PLATFORMS:
        states, mpc = record(Pilot.load("field"), name), MPC(Vessel.load(name), "field")
        by_platform[name] = differences(learned, states)
        laps = {what: (controller, states) for what, controller in learned.items()}
        laps["mpc, field"] = mpc, record(mpc, name)
        for _ in range(arguments.rounds):
            measure(laps, seconds)

    machine = describe("numpy", "onnxruntime", "casadi")
    results: dict[str, Any] = {"machine": machine, "step_us": {}, "difference": by_platform}
    mpc_median = float(np.median(seconds["mpc, field"]))
    print("a step, µs                      p50      p99   p50 / MPC's")
    for name, taken in seconds.items():
        p50, p99 = (float(value) for value in np.percentile(taken, [50, 99]))
        results["step_us"][name] = {"p50": 1e6 * p50, "p99": 1e6 * p99, "of_mpc": p50 / mpc_median, "steps": len(taken)}
        print(f"  {name:25s} {1e6 * p50:8.1f} {1e6 * p99:8.1f} {p50 / mpc_median:10.3f}")
    print("largest difference between graph and pilot over a lap, fraction of full command")
    for name, by_policy in by_platform.items():
        print(f"  {name:25s} " + "  ".join(f"{policy} {largest:.1e}" for policy, largest in by_policy.items()))
    save(arguments.json, results)


if __name__ == "__main__":
    main()
