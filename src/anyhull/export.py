"""A policy as one ONNX graph for other runtimes: from what a boat measures to its command, with explicit memory.

The graph is `Pilot.step` without the checks of its input; `docs/export.md` says how to feed it. It is built by hand, so
that every input and output has a name, and it is as small as the step is.
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
from anyhull.observation import ERROR_SCALE, MODULATION, MOTION_SCALE, SURENESS
from anyhull.pilot import Pilot
from anyhull.reference import PREVIEW

try:
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ImportError:
    onnx = None  # type: ignore[assignment]

OPSET, IR = 17, 8
"""Old enough for every runtime in use."""

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
    "mean": "the boat as read from the memory: ln of alpha_u, alpha_v, alpha_r, 1/tau_u, 1/tau_v, 1/tau_r, c_rv, -c_ru, "
    "asinh of c_uv; where there are six more, 10 delay (1/s), 5 current (s/m, body frame), 10 force (of the limits)",
    "log_std": "ln of the standard deviation of each number of mean",
}
"""What each input and output holds; the graph carries it as metadata."""


def save(pilot: Pilot, path: str | Path) -> Path:
    """Write the policy of a pilot to an .onnx file."""
    path = Path(path)
    if path.suffix != ".onnx":
        raise InputError(f"{path}: a graph is saved as ONNX: give a path that ends in .onnx")
    model = build(pilot)
    with whole(path) as temporary:
        temporary.write_bytes(model.SerializeToString())
    return path


def build(pilot: Pilot) -> Any:
    """The graph of a pilot's step, as an `onnx.ModelProto`."""
    if onnx is None:
        raise InputError("export needs ONNX, which is not installed: pip install 'anyhull[onnx]'")
    parts, graph = pilot.parts, _Graph()
    # What is measured comes in double precision, as a metre is little beside coordinates of a whole map; what the
    # graph gives out itself comes back in single.
    pose, velocity = graph.input("pose", [3], np.float64), graph.input("velocity", [3], np.float64)
    window = graph.input("window", [PREVIEW + 1, 6], np.float64)
    previous = graph.input("previous_command", [3], np.float32)
    before = graph.input("previous_pose", [3], np.float64) if parts.cell else None
    nu = graph("Cast", velocity, to=TensorProto.FLOAT)
    o, h = _senses(graph, pose, nu, window, before, previous)
    latent = graph.constant(parts.known[None]) if parts.known.size else None
    memory = None
    if parts.cell:
        size = parts.cell.bias_n.size
        if parts.compress:
            h = graph("Concat", graph("Elu", _mlp(graph, parts.compress, o)), h, axis=1)
        memory = _gru(graph, parts.cell, h, graph.input("previous_memory", [size], np.float32))
        if parts.head:
            latent = _mlp(graph, parts.head, memory)
    inputs = memory if parts.compress else graph("Concat", o, latent, axis=1) if latent else o
    factors = None
    if parts.modulation:
        factors = graph("Exp", _clip(graph, _mlp(graph, [parts.modulation], latent), *MODULATION))
    command = _clip(graph, _mlp(graph, parts.actor, inputs, factors), -1.0, 1.0)
    graph.output("command", command, 3)
    if latent:
        graph.output("latent", latent, parts.head[-1].bias.size if parts.head else parts.known.size)
    if memory:
        graph.output("memory", memory, size)
    if parts.reader:
        reads = parts.reader[-1].bias.size // 2
        mean, log_std = graph.split(_mlp(graph, parts.reader, memory), [reads, reads])
        graph.output("mean", mean, reads)
        graph.output("log_std", _clip(graph, log_std, *SURENESS), reads)
    return graph.model(pilot.about)


def _senses(graph: _Graph, pose: str, nu: str, window: str, before: str | None, previous: str) -> tuple[str, str]:
    """The scaled observation (1, 72) and, given the pose one period `before`, the scaled history (1, 9)."""
    places, speeds = graph.split(window, [3, 3])
    if before:
        # The pose of one period ago is seen as one more point of the reference, which lies where the boat came from.
        places = graph("Concat", places, graph.reshape(before, [1, 3]), axis=0)
    offsets = graph("Sub", places, pose)
    across, turn = graph.split(offsets, [2, 1])
    # Elementwise: a matrix product may be rounded to ten bits on a GPU.
    angles = graph("Gather", pose, graph.constant(np.array([2, 2, 2, 2])))
    shifts = graph.constant(np.array([math.pi / 2, math.pi / 2, 0.0, math.pi]))
    cos_cos, sin_minus_sin = graph.split(graph("Sin", graph("Add", angles, shifts)), [2, 2], axis=0)
    swapped = graph("Gather", across, graph.constant(np.array([1, 0])), axis=1)
    turned = graph("Add", graph("Mul", across, cos_cos), graph("Mul", swapped, sin_minus_sin))
    whole_turn = graph.constant(np.array(2 * math.pi))
    half = graph("Add", turn, graph.constant(np.array(math.pi)))
    turns = graph("Mul", graph("Floor", graph("Div", half, whole_turn)), whole_turn)
    seen = graph("Cast", graph("Concat", turned, graph("Sub", turn, turns), axis=1), to=TensorProto.FLOAT)
    now, ahead, *back = graph.split(seen, [1, PREVIEW, 1] if before else [1, PREVIEW], axis=0)

    nu, given = graph.reshape(nu, [1, 3]), graph.reshape(previous, [1, 3])
    speed_now, speeds_ahead = graph.split(graph("Cast", speeds, to=TensorProto.FLOAT), [1, PREVIEW], axis=0)
    errors = graph("Concat", now, graph("Sub", speed_now, nu), axis=1)
    scaled = graph("Asinh", graph("Mul", errors, graph.constant(np.float32(ERROR_SCALE))))
    lookahead = graph.reshape(graph("Concat", ahead, speeds_ahead, axis=1), [1, 6 * PREVIEW])
    o = graph("Concat", scaled, nu, lookahead, given, axis=1)
    if not back:
        return o, ""
    motion = graph("Mul", back[0], graph.constant(np.float32(-MOTION_SCALE)))
    return o, graph("Concat", motion, nu, given, axis=1)


def _mlp(graph: _Graph, layers: list[Layer], x: str, factors: str | None = None) -> str:
    for weight, bias in layers[:-1]:
        x = graph("Elu", graph("Gemm", x, graph.constant(weight), graph.constant(bias)))
    x = graph("Mul", x, factors) if factors else x
    return graph("Gemm", x, graph.constant(layers[-1].weight), graph.constant(layers[-1].bias))


def _gru(graph: _Graph, cell: Cell, x: str, memory: str) -> str:
    """The memory (1, n) after input x (1, inputs)."""
    size = cell.bias_n.size
    # ONNX has the gates in the order update, reset, new.
    order = np.r_[size : 2 * size, :size, 2 * size : 3 * size]
    back = np.concatenate([np.zeros(2 * size, np.float32), cell.bias_n])
    weights = [cell.weight_ih[order], cell.weight_hh[order], np.concatenate([cell.bias[order], back])]
    x, memory = graph.reshape(x, [1, 1, cell.weight_ih.shape[1]]), graph.reshape(memory, [1, 1, size])
    tensors = [graph.constant(weight[None]) for weight in weights]
    _, after = graph.several("GRU", x, *tensors, "", memory, hidden_size=size, linear_before_reset=1)
    return graph.reshape(after, [1, size])


def _clip(graph: _Graph, x: str, low: float, high: float) -> str:
    return graph("Clip", x, graph.constant(np.float32(low)), graph.constant(np.float32(high)))


class _Graph:
    """Nodes, constants, inputs and outputs as they are added; values are known by their names."""

    def __init__(self) -> None:
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []

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

    def input(self, name: str, shape: list[int], dtype: Any) -> str:
        self._inputs.append(_value(name, shape, dtype))
        return name

    def output(self, name: str, x: str, size: int) -> None:
        """Give out a row (1, size) as a vector (size,)."""
        self._nodes.append(helper.make_node("Reshape", [x, self.constant(np.array([size]))], [name], name))
        self._outputs.append(_value(name, [size], np.float32))

    def model(self, about: dict[str, Any]) -> Any:
        """The checked model, which says of itself what the policy's file says."""
        graph = helper.make_graph(self._nodes, "pilot", self._inputs, self._outputs, self._constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR)
        model.producer_name, model.producer_version = "anyhull", metadata.version("anyhull")
        told = {name: about[name] for name in ("kind", "format")} | {"period_s": str(PERIOD)}
        told |= {name: json.dumps(about.get(name, {})) for name in ("config", "metrics", "versions")}
        helper.set_model_props(model, told | {value.name: value.doc_string for value in (*self._inputs, *self._outputs)})
        onnx.checker.check_model(model, full_check=True)
        return model


def _value(name: str, shape: list[int], dtype: Any) -> Any:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return helper.make_tensor_value_info(name, kind, shape, doc_string=UNITS[name])
