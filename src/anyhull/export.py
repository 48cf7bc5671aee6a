"""A policy as one ONNX graph for other runtimes: from pose, velocity and reference to command, with explicit memory.

The graph is `Pilot.step` without the checks of its inputs, for one boat or many: the first axis of every input and
output counts boats. It is built node by node, so that every input and output has a name and no node is redundant.
`docs/export.md` documents its use.
"""

from __future__ import annotations

import json
import math
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from anyhull.dynamics import PERIOD
from anyhull.errors import InputError
from anyhull.files import atomic_write
from anyhull.numpy_policy import Cell, Layer
from anyhull.observation import (
    ERRORS,
    HISTORY_SIZE,
    LOG_STD_RANGE,
    MODULATION,
    OBSERVATION,
    OBSERVATION_SIZE,
    STILL,
    Scales,
)
from anyhull.pilot import Pilot
from anyhull.reference import PREVIEW

try:
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ImportError:
    onnx = None  # type: ignore[assignment]

OPSET, IR = 17, 8
"""Versions of operators and file format, chosen for older runtimes."""

UNITS = {
    "pose": "x (m), y (m), psi (rad) in the inertial frame, now",
    "velocity": "u (m/s), v (m/s), r (rad/s) in the body frame, now",
    "window": "reference now and in each of the next ten periods: x, y, psi, u, v, r as in pose and velocity",
    "previous_pose": "pose one period ago; at the first step the pose itself",
    "previous_command": "command one period ago; at the first step zeros",
    "previous_memory": "memory one period ago; at the first step zeros",
    "command": "surge, sway, yaw as fractions of the actuator limits, -1 to 1",
    "latent": "latent z of the policy",
    "memory": "recurrent state, previous_memory of the next step",
    "mean": "estimated dynamics: ln of alpha_u, alpha_v, alpha_r, 1/tau_u, 1/tau_v, 1/tau_r, c_rv and -c_ru, asinh of "
    "c_uv; where six more follow, delay (s) times 10, current (m/s, body frame) times 5, force (fractions of the "
    "limits, body frame) times 10",
    "log_std": "ln of the standard deviation of each number of mean",
}
"""Content of each input and output; stored in the graph as metadata."""


def check_path(path: str | Path) -> Path:
    """The path of a graph to write; raises unless it ends in .onnx."""
    path = Path(path)
    if path.suffix != ".onnx":
        raise InputError(f"{path}: a graph is saved as ONNX: give a path that ends in .onnx")
    return path


def save(model: Any, path: str | Path) -> Path:
    """Write a graph of `build` to an .onnx file."""
    path = check_path(path)
    with atomic_write(path) as temporary:
        temporary.write_bytes(model.SerializeToString())
    return path


def build(pilot: Pilot) -> Any:
    """The graph of a pilot's step, as an `onnx.ModelProto`."""
    if onnx is None:
        raise InputError("export needs ONNX, which is not installed: pip install 'anyhull[onnx]'")
    if pilot.scales.printed:
        raise InputError("config.scales.printed = True: a graph is built for scaled inputs only")
    parts, graph = pilot.parts, _Graph()
    # Coordinates are in double precision: float32 resolves 3 cm at 500 km.
    pose, window = graph.input("pose", [3], np.float64), graph.input("window", [PREVIEW + 1, 6], np.float64)
    velocity = graph.input("velocity", [3], np.float32)
    previous_command = graph.input("previous_command", [3], np.float32)
    previous_pose = graph.input("previous_pose", [3], np.float64) if parts.cell else None
    o, h = _features(graph, pose, velocity, window, previous_command, previous_pose, pilot.scales)
    latent = memory = None
    if parts.cell and h:
        memory = graph.input("previous_memory", [parts.cell.bias_n.size], np.float32)
        compressed = [graph("Elu", _mlp(graph, _reordered(parts.compress), o))] if parts.compress else []
        h = graph("Concat", *compressed, h, axis=1) if compressed else h
        memory = _gru(graph, parts.cell, h, memory)
    if memory and parts.head:
        latent = _mlp(graph, parts.head, memory)
    elif parts.fixed_latent.size:
        # The constant latent for each boat: a product with zeros gets the batch size from the velocity.
        zeros = graph.constant(np.zeros((3, parts.fixed_latent.size), np.float32))
        latent = graph("Gemm", velocity, zeros, graph.constant(parts.fixed_latent))
    factors = None
    if parts.modulation:
        factors = graph("Exp", _clip(graph, _mlp(graph, [parts.modulation], latent), *MODULATION))
    if parts.compress:
        action = _mlp(graph, parts.actor, memory, factors)
    else:
        action = _mlp(graph, _reordered(parts.actor), graph("Concat", o, latent, axis=1) if latent else o, factors)
    graph.output("command", _clip(graph, action, -1.0, 1.0), 3)
    if latent:
        graph.output("latent", latent, parts.head[-1].bias.size if parts.head else parts.fixed_latent.size)
    if memory and parts.cell:
        graph.output("memory", memory, parts.cell.bias_n.size)
    if parts.dynamics_head:
        size = parts.dynamics_head[-1].bias.size // 2
        mean, log_std = graph.split(_mlp(graph, parts.dynamics_head, memory), [size, size])
        graph.output("mean", mean, size)
        graph.output("log_std", _clip(graph, log_std, *LOG_STD_RANGE), size)
    return graph.model(pilot.about)


def _features(
    graph: _Graph,
    pose: str,
    velocity: str,
    window: str,
    previous_command: str,
    previous_pose: str | None,
    scales: Scales,
) -> tuple[str, str | None]:
    """The scaled observation (n, 72) in the order ORDER, and, with a `previous_pose`, the scaled history (n, 9)."""
    poses, velocities = graph.split(window, [3, 3], axis=2)
    if previous_pose:
        # The previous pose goes through the same transformation as one more point of the reference.
        poses = graph("Concat", poses, graph.reshape(previous_pose, [-1, 1, 3]), axis=1)
    origin = graph.reshape(pose, [-1, 1, 3])
    offset, turn = graph.split(graph("Sub", poses, origin), [2, 1], axis=2)
    # Elementwise, since a GPU may round the inputs of a matrix product to ten bits.
    angles = graph("Gather", origin, graph.constant(np.array([2, 2, 2, 2])), axis=2)
    shifts = graph.constant(np.array([math.pi / 2, math.pi / 2, 0.0, math.pi]))
    cosines, sines = graph.split(graph("Sin", graph("Add", angles, shifts)), [2, 2], axis=2)  # cos cos, sin -sin
    swapped = graph("Gather", offset, graph.constant(np.array([1, 0])), axis=2)
    rotated = graph("Add", graph("Mul", offset, cosines), graph("Mul", swapped, sines))
    circle = graph.constant(np.array(2 * math.pi))
    turns = graph("Floor", graph("Div", graph("Add", turn, graph.constant(np.array(math.pi))), circle))
    wrapped = graph("Sub", turn, graph("Mul", turns, circle))

    relative = graph.single(graph("Concat", rotated, wrapped, axis=2))
    sizes = [3, 3 * PREVIEW, 3] if previous_pose else [3, 3 * PREVIEW]
    pose_error, poses_ahead, *moved = graph.split(graph.reshape(relative, [-1, sum(sizes)]), sizes)
    flat = graph.reshape(graph.single(velocities), [-1, 3 + 3 * PREVIEW])
    reference_velocity, velocities_ahead = graph.split(flat, [3, 3 * PREVIEW])
    # Errors and history share the scaling nodes, since each node takes about half a microsecond.
    inputs, factors = [pose_error, graph("Sub", reference_velocity, velocity)], [scales.error] * 6
    if moved:
        gain = graph("Add", velocity, graph("Mul", moved[0], graph.constant(np.float32(1 / PERIOD))))
        # Without any motion the previous pose is unknown, and the gain is zero.
        has_past = graph("Greater", graph("ReduceSumSquare", moved[0], axes=[1]), graph.constant(np.float32(STILL**2)))
        inputs += [graph("Where", has_past, gain, graph.constant(np.float32(0))), velocity, previous_command]
        factors += np.repeat([scales.gain, scales.velocity, scales.command], 3).tolist()
    scaled = graph("Mul", graph("Concat", *inputs, axis=1), graph.constant(np.array(factors, np.float32)))
    errors, *h = graph.split(graph("Asinh", scaled), [ERRORS.stop, HISTORY_SIZE]) if moved else [graph("Asinh", scaled)]
    o = graph("Concat", errors, velocity, poses_ahead, velocities_ahead, previous_command, axis=1)
    return o, h[0] if h else None


AHEAD = np.arange(OBSERVATION_SIZE)[OBSERVATION.lookahead].reshape(PREVIEW, 6)
ORDER = np.r_[: AHEAD[0, 0], AHEAD[:, :3].ravel(), AHEAD[:, 3:].ravel(), OBSERVATION.previous]
"""Order of the packed observation in the graph: the lookahead has all poses first, then all velocities."""


def _reordered(layers: list[Layer]) -> list[Layer]:
    """Layers for a packed observation with their inputs in the order ORDER."""
    weight, bias = layers[0]
    return [Layer(np.concatenate([weight[ORDER], weight[OBSERVATION_SIZE:]]), bias), *layers[1:]]


def _mlp(graph: _Graph, layers: list[Layer], x: Any, factors: str | None = None) -> str:
    for weight, bias in layers[:-1]:
        x = graph("Elu", graph("Gemm", x, graph.constant(weight), graph.constant(bias)))
    x = graph("Mul", x, factors) if factors else x
    return graph("Gemm", x, graph.constant(layers[-1].weight), graph.constant(layers[-1].bias))


def _gru(graph: _Graph, cell: Cell, h: str, memory: str) -> str:
    """The memory (n, m) after the history; the ONNX operator GRU takes twice as long for a single step."""
    size = cell.bias_n.size
    weight_ih, weight_hh = cell.weight_ih.T, cell.weight_hh.T
    both = np.concatenate([weight_ih, weight_hh])[:, : 2 * size]
    gates = [graph.constant(both), graph.constant(cell.bias[: 2 * size])]
    reset, update = graph.split(graph("Sigmoid", graph("Gemm", graph("Concat", h, memory, axis=1), *gates)), [size] * 2)
    from_input = graph("Gemm", h, graph.constant(weight_ih[:, 2 * size :]), graph.constant(cell.bias[2 * size :]))
    from_memory = graph("Gemm", memory, graph.constant(weight_hh[:, 2 * size :]), graph.constant(cell.bias_n))
    new = graph("Tanh", graph("Add", from_input, graph("Mul", reset, from_memory)))
    return graph("Add", new, graph("Mul", update, graph("Sub", memory, new)))


def _clip(graph: _Graph, x: str, low: float, high: float) -> str:
    return graph("Clip", x, graph.constant(np.float32(low)), graph.constant(np.float32(high)))


class _Graph:
    """A graph under construction; values are referred to by name."""

    def __init__(self) -> None:
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []
        self._names: dict[str, str] = {}

    def __call__(self, operator: str, *inputs: Any, **attributes: Any) -> str:
        """The output of a node."""
        return self.several(operator, *inputs, outputs=1, **attributes)[0]

    def several(self, operator: str, *inputs: Any, outputs: int = 2, **attributes: Any) -> list[str]:
        """The outputs of a node with more than one."""
        name = f"{operator}_{len(self._nodes)}"
        names = [f"{name}_{i}" for i in range(outputs)]
        self._nodes.append(helper.make_node(operator, inputs, names, name, **attributes))
        return names

    def constant(self, value: Any) -> str:
        name = f"constant_{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(value).reshape(np.shape(value)), name))
        return name

    def split(self, x: str, sizes: list[int], axis: int = 1) -> list[str]:
        return self.several("Split", x, self.constant(np.array(sizes)), outputs=len(sizes), axis=axis)

    def reshape(self, x: str, shape: list[int]) -> str:
        return self("Reshape", x, self.constant(np.array(shape)))

    def single(self, x: str) -> str:
        return self("Cast", x, to=TensorProto.FLOAT)

    def input(self, name: str, shape: list[int], dtype: Any) -> str:
        self._inputs.append(_value(name, shape, dtype))
        return name

    def output(self, name: str, x: str, size: int) -> None:
        """Make a value an output of the graph under that name."""
        self._names[x] = name
        self._outputs.append(_value(name, [size], np.float32))

    def model(self, about: dict[str, Any]) -> Any:
        """The checked model, with the metadata of the policy file."""
        for node in self._nodes:
            for names in (node.input, node.output):
                names[:] = [self._names.get(name, name) for name in names]
        graph = helper.make_graph(self._nodes, "pilot", self._inputs, self._outputs, self._constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR)
        model.producer_name, model.producer_version = "anyhull", metadata.version("anyhull")
        props = {name: str(about[name]) for name in ("kind", "format")} | {"period_s": str(PERIOD)}
        props |= {name: json.dumps(about.get(name, {})) for name in ("config", "envelope", "metrics", "versions")}
        props |= {value.name: value.doc_string for value in (*self._inputs, *self._outputs)}
        helper.set_model_props(model, props)
        onnx.checker.check_model(model, full_check=True)
        return model


def _value(name: str, shape: list[int], dtype: Any) -> Any:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return helper.make_tensor_value_info(name, kind, ["boats", *shape], doc_string=UNITS[name])
