"""How long a step takes: the pilot in NumPy, the same policy as an ONNX graph, and the MPC that it stands beside.

    cd benchmarks && python pilot.py --json results/pilot.json

One core, one thread. What they answer was recorded on laps of the paper's rectangle in the field sea, on the five
platforms: the policies' under the shipped `field` policy, the MPC's under itself, as it reckons with its own commands.
They take turns of some hundred steps, so that whatever else the machine does slows them all alike; within a turn each
runs alone, with its own numbers in the cache.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read when the libraries below are loaded

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from machine import describe

from anyhull import Pilot, Sea, Vessel, rounded_rectangle, simulate
from anyhull.control import MPC
from anyhull.controller import Controller
from anyhull.export import build
from anyhull.files import whole
from anyhull.vessel import PLATFORMS

TURN, WARM = 200, 20
"""Steps that one takes before the next has its turn, and those of them that are not counted."""

POLICIES = ("field", "ideal")

State = tuple[Any, Any, Any]


class Recorder:
    """A controller, with what it was asked."""

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
    """The same with inputs and outputs bound once to arrays that are filled in place, as a loop on a boat would."""

    def reset(self) -> None:
        self.arrays: dict[str, Any] = {}
        self.values = []  # the binding does not keep them alive
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
    """What the boat met on a lap."""
    recorder = Recorder(controller)
    simulate(recorder, Vessel.load(platform), rounded_rectangle(), Sea.preset("field"), seed=PLATFORMS.index(platform))
    return recorder.states


def apart(controllers: dict[str, Controller], states: list[State]) -> dict[str, float]:
    """By policy, how far the graphs' commands are from the pilot's at most, each with its own memory."""
    found = {}
    for policy in POLICIES:
        same = [controller for name, controller in controllers.items() if name.endswith(policy)]
        for controller in same:
            controller.reset()
        commands = np.array([[np.array(controller.step(*state)) for controller in same] for state in states])
        found[policy] = float(np.abs(commands[:, 1:] - commands[:, :1]).max())
    assert max(found.values()) < 5e-5  # a memory gathers rounding over a lap, no more
    return found


def measure(laps: dict[str, tuple[Controller, list[State]]], seconds: dict[str, list[float]]) -> None:
    """Add the seconds of each step to those of its name."""
    for controller, _ in laps.values():
        controller.reset()
    for begin in range(0, max(len(states) for _, states in laps.values()), TURN):
        for name, (controller, states) in laps.items():
            taken = []
            for state in states[begin : begin + TURN]:
                start = time.perf_counter()
                controller.step(*state)
                taken.append(time.perf_counter() - start)
            seconds.setdefault(name, []).extend(taken[WARM:])


def main() -> None:
    parser = argparse.ArgumentParser(description="Time of a step: pilot, ONNX graph and MPC.")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the figures here too")
    parser.add_argument("--rounds", type=int, default=5, help="times that the recorded laps are answered")
    arguments = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

    learned: dict[str, Controller] = {}
    for what, build_one in (("pilot", Pilot.load), ("onnx, bound", Bound), ("onnx, dictionary", Graph)):
        learned |= {f"{what}, {policy}": build_one(policy) for policy in POLICIES}
    seconds: dict[str, list[float]] = {}
    agreement = {}
    for name in PLATFORMS:
        states, mpc = record(Pilot.load("field"), name), MPC(Vessel.load(name), "field")
        agreement[name] = apart(learned, states)
        laps = {what: (controller, states) for what, controller in learned.items()}
        laps["mpc, field"] = mpc, record(mpc, name)
        for _ in range(arguments.rounds):
            measure(laps, seconds)

    results: dict[str, Any] = {"machine": describe("numpy", "onnxruntime", "casadi"), "step_us": {}, "apart": agreement}
    beside = float(np.median(seconds["mpc, field"]))
    print("a step, µs                      p50      p99   p50 / MPC's")
    for name, taken in seconds.items():
        p50, p99 = (float(value) for value in np.percentile(taken, [50, 99]))
        results["step_us"][name] = {"p50": 1e6 * p50, "p99": 1e6 * p99, "of_mpc": p50 / beside, "steps": len(taken)}
        print(f"  {name:25s} {1e6 * p50:8.1f} {1e6 * p99:8.1f} {p50 / beside:10.3f}")
    print("graph and pilot apart over a lap, of full command")
    for name, by_policy in agreement.items():
        print(f"  {name:25s} " + "  ".join(f"{policy} {largest:.1e}" for policy, largest in by_policy.items()))
    if arguments.json:
        with whole(arguments.json) as temporary:
            temporary.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
