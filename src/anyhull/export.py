"""A policy as one ONNX graph for other runtimes: from what a boat measures to its command, with explicit memory.

The graph is `Pilot.step` without the checks of its input, for one boat or many: the first axis of every input and
output counts boats. It is built by hand, so that every input and output has a name and no node is there in vain.
`docs/export.md` says how to feed it.
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
from anyhull.files import whole
from anyhull.inference import Cell, Layer
from anyhull.observation import HISTORY_SIZE, MODULATION, OBSERVATION_SIZE, STILL, SURENESS, Scales
from anyhull.pilot import Pilot
from anyhull.reference import PREVIEW

try:
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ImportError:
    onnx = None  # type: ignore[assignment]

OPSET, IR = 17, 8
"""Versions of operators and file: not the newest, for older runtimes."""

UNITS = {
    "pose": "x (m), y (m), psi (rad) in the inertial frame, now",
    "velocity": "u (m/s), v (m/s), r (rad/s) in the body frame, now",
    "window": "the reference now and in each of the next ten periods: x, y, psi, u, v, r as in pose and velocity",
    "previous_pose": "pose one period ago; at the first step pose itself",
    "previous_command": "command of one period ago; at the first step zeros",
    "previous_memory": "memory of one period ago; at the first step zeros",
    "command": "surge, sway, yaw as fractions of the actuator limits, -1 to 1",
    "latent": "what the policy takes the boat to be, in numbers of its own",
    "memory": "recurrent state, to be given back at the next step",
    "mean": "the boat as read from the memory: ln of alpha_u, alpha_v, alpha_r, 1/tau_u, 1/tau_v, 1/tau_r, c_rv and "
    "-c_ru, asinh of c_uv; where six more follow, delay (s) times 10, current (m/s, body frame) times 5, force "
    "(fractions of the limits, body frame) times 10",
    "log_std": "ln of the standard deviation of each number of mean",
}
"""What each input and output holds; the graph carries it as metadata."""


def check_path(path: str | Path) -> Path:
    """A path to write a graph to."""
    path = Path(path)
    if path.suffix != ".onnx":
        raise InputError(f"{path}: a graph is saved as ONNX: give a path that ends in .onnx")
    return path


def save(model: Any, path: str | Path) -> Path:
    """Write a graph that `build` made to an .onnx file."""
    path = check_path(path)
    with whole(path) as temporary:
        temporary.write_bytes(model.SerializeToString())
    return path


def build(pilot: Pilot) -> Any:
    """The graph of a pilot's step, as an `onnx.ModelProto`."""
    if onnx is None:
        raise InputError("export needs ONNX, which is not installed: pip install 'anyhull[onnx]'")
    parts, graph = pilot.parts, _Graph()
    # Coordinates come in double precision, as a centimetre is nothing beside a float32 of a whole map's metres.
    pose, window = graph.input("pose", [3], np.float64), graph.input("window", [PREVIEW + 1, 6], np.float64)
    velocity = graph.input("velocity", [3], np.float32)
    given = graph.input("previous_command", [3], np.float32)
    before = graph.input("previous_pose", [3], np.float64) if parts.cell else None
    o, h = _senses(graph, pose, velocity, window, given, before, pilot.scales)
    latent = memory = None
    if parts.cell and h:
        memory = graph.input("previous_memory", [parts.cell.bias_n.size], np.float32)
        compressed = [graph("Elu", _mlp(graph, _reordered(parts.compress), o))] if parts.compress else []
        h = graph("Concat", *compressed, h, axis=1) if compressed else h
        memory = _gru(graph, parts.cell, h, memory)
    if memory and parts.head:
        latent = _mlp(graph, parts.head, memory)
    elif parts.known.size:
        # The same row for each boat.
        nothing = graph.constant(np.zeros((3, parts.known.size), np.float32))
        latent = graph("Gemm", velocity, nothing, graph.constant(parts.known))
    factors = None
    if parts.modulation:
        factors = graph("Exp", _clip(graph, _mlp(graph, [parts.modulation], latent), *MODULATION))
    if parts.compress:
        wanted = _mlp(graph, parts.actor, memory, factors)
    else:
        wanted = _mlp(graph, _reordered(parts.actor), graph("Concat", o, latent, axis=1) if latent else o, factors)
    graph.output("command", _clip(graph, wanted, -1.0, 1.0), 3)
    if latent:
        graph.output("latent", latent, parts.head[-1].bias.size if parts.head else parts.known.size)
    if memory and parts.cell:
        graph.output("memory", memory, parts.cell.bias_n.size)
    if parts.reader:
        reads = parts.reader[-1].bias.size // 2
        mean, log_std = graph.split(_mlp(graph, parts.reader, memory), [reads, reads])
        graph.output("mean", mean, reads)
        graph.output("log_std", _clip(graph, log_std, *SURENESS), reads)
    return graph.model(pilot.about)


def _senses(
    graph: _Graph, pose: str, velocity: str, window: str, given: str, before: str | None, scales: Scales
) -> tuple[str, str | None]:
    """The scaled observation (n, 72) in the order ORDER, and, given a pose `before`, the scaled history (n, 9)."""
    places, speeds = graph.split(window, [3, 3], axis=2)
    if before:
        # The last pose is seen as one more point of the reference, which lies where the boat came from.
        places = graph("Concat", places, graph.reshape(before, [-1, 1, 3]), axis=1)
    origin = graph.reshape(pose, [-1, 1, 3])
    across, turn = graph.split(graph("Sub", places, origin), [2, 1], axis=2)
    # Elementwise, since a matrix product may be rounded to ten bits on a GPU.
    angles = graph("Gather", origin, graph.constant(np.array([2, 2, 2, 2])), axis=2)
    shifts = graph.constant(np.array([math.pi / 2, math.pi / 2, 0.0, math.pi]))
    cosines, sines = graph.split(graph("Sin", graph("Add", angles, shifts)), [2, 2], axis=2)  # cos cos, sin -sin
    swapped = graph("Gather", across, graph.constant(np.array([1, 0])), axis=2)
    turned = graph("Add", graph("Mul", across, cosines), graph("Mul", swapped, sines))
    circle = graph.constant(np.array(2 * math.pi))
    circles = graph("Floor", graph("Div", graph("Add", turn, graph.constant(np.array(math.pi))), circle))
    wrapped = graph("Sub", turn, graph("Mul", circles, circle))

    seen = graph.single(graph("Concat", turned, wrapped, axis=2))
    sizes = [3, 3 * PREVIEW, 3] if before else [3, 3 * PREVIEW]
    now, ahead, *moved = graph.split(graph.reshape(seen, [-1, sum(sizes)]), sizes)
    speed, speeds_ahead = graph.split(graph.reshape(graph.single(speeds), [-1, 3 + 3 * PREVIEW]), [3, 3 * PREVIEW])
    # Errors and history are magnified together, as every node of a graph so small costs half a microsecond.
    small, magnify = [now, graph("Sub", speed, velocity)], [scales.error] * 6
    if moved:
        gain = graph("Add", velocity, graph("Mul", moved[0], graph.constant(np.float32(1 / PERIOD))))
        # Where there was no motion at all no past is known, and nothing was gained.
        known = graph("Greater", graph("ReduceSumSquare", moved[0], axes=[1]), graph.constant(np.float32(STILL**2)))
        small += [graph("Where", known, gain, graph.constant(np.float32(0))), velocity, given]
        magnify += np.repeat([scales.gain, scales.velocity, scales.command], 3).tolist()
    scaled = graph("Concat", *small, axis=1)
    scaled = graph("Asinh", graph("Mul", scaled, graph.constant(np.array(magnify, np.float32))))
    errors, *h = graph.split(scaled, [6, HISTORY_SIZE]) if moved else [scaled]
    return graph("Concat", errors, velocity, ahead, speeds_ahead, given, axis=1), h[0] if h else None


AHEAD = np.arange(9, 9 + 6 * PREVIEW).reshape(PREVIEW, 6)
ORDER = np.r_[0:9, AHEAD[:, :3].ravel(), AHEAD[:, 3:].ravel(), 9 + 6 * PREVIEW : OBSERVATION_SIZE]
"""Places of the packed observation as the graph has it: of the periods ahead first all poses, then all velocities."""


def _reordered(layers: list[Layer]) -> list[Layer]:
    """Layers that read a packed observation, made to read it in the order ORDER."""
    weight, bias = layers[0]
    return [Layer(np.concatenate([weight[ORDER], weight[OBSERVATION_SIZE:]]), bias), *layers[1:]]


def _mlp(graph: _Graph, layers: list[Layer], x: Any, factors: str | None = None) -> str:
    for weight, bias in layers[:-1]:
        x = graph("Elu", graph("Gemm", x, graph.constant(weight), graph.constant(bias)))
    x = graph("Mul", x, factors) if factors else x
    return graph("Gemm", x, graph.constant(layers[-1].weight), graph.constant(layers[-1].bias))


def _gru(graph: _Graph, cell: Cell, h: str, memory: str) -> str:
    """The memory (n, m) after the history; not ONNX's own operator, which takes twice as long for a single step."""
    size = cell.bias_n.size
    inwards, back = cell.weight_ih.T, cell.weight_hh.T
    both = np.concatenate([inwards, back])[:, : 2 * size]
    gates = [graph.constant(both), graph.constant(cell.bias[: 2 * size])]
    reset, update = graph.split(graph("Sigmoid", graph("Gemm", graph("Concat", h, memory, axis=1), *gates)), [size] * 2)
    seen = graph("Gemm", h, graph.constant(inwards[:, 2 * size :]), graph.constant(cell.bias[2 * size :]))
    kept = graph("Gemm", memory, graph.constant(back[:, 2 * size :]), graph.constant(cell.bias_n))
    new = graph("Tanh", graph("Add", seen, graph("Mul", reset, kept)))
    return graph("Add", new, graph("Mul", update, graph("Sub", memory, new)))


def _clip(graph: _Graph, x: str, low: float, high: float) -> str:
    return graph("Clip", x, graph.constant(np.float32(low)), graph.constant(np.float32(high)))


class _Graph:
    """Nodes, constants, inputs and outputs as they are added; values are known by their names."""

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
        """The outputs of a node that has more than one."""
        name = f"{operator}_{len(self._nodes)}"
        given = [f"{name}_{i}" for i in range(outputs)]
        self._nodes.append(helper.make_node(operator, inputs, given, name, **attributes))
        return given

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
        """Give out a value under a name of its own."""
        self._names[x] = name
        self._outputs.append(_value(name, [size], np.float32))

    def model(self, about: dict[str, Any]) -> Any:
        """The checked model, which says of itself what the policy's file says."""
        for node in self._nodes:
            for names in (node.input, node.output):
                names[:] = [self._names.get(name, name) for name in names]
        graph = helper.make_graph(self._nodes, "pilot", self._inputs, self._outputs, self._constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR)
        model.producer_name, model.producer_version = "anyhull", metadata.version("anyhull")
        told = {name: about[name] for name in ("kind", "format")} | {"period_s": str(PERIOD)}
        told |= {name: json.dumps(about.get(name, {})) for name in ("config", "metrics", "versions")}
        helper.set_model_props(
            model, told | {value.name: value.doc_string for value in (*self._inputs, *self._outputs)}
        )
        onnx.checker.check_model(model, full_check=True)
        return model


def _value(name: str, shape: list[int], dtype: Any) -> Any:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return helper.make_tensor_value_info(name, kind, ["boats", *shape], doc_string=UNITS[name])
