"""A policy as an ONNX graph equals the pilot: the same commands, latents and memory in onnxruntime."""

import json
import sys

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import onnxruntime
import pytest

from anyhull import InputError, Pilot, Sea, Vessel, export, rounded_rectangle, simulate
from anyhull.cli import main
from anyhull.learn import checkpoints, config
from anyhull.learn.policies import Adapter, MeanLatent, Recurrent, Student, Teacher
from anyhull.observation import PRIVILEGED, scale_privileged

ONE, TWO = jax.random.split(jax.random.key(0))
MODULATED = Teacher(72, 15, 3, 16, modulated=True, key=ONE)
POLICIES = {
    "teacher": ("teacher", lambda: Teacher(72, 9, 3, key=ONE)),
    "modulated teacher": ("teacher", lambda: MODULATED),
    "student": ("student", lambda: Student(Teacher(72, 9, 3, key=ONE), Adapter(9, key=TWO))),
    "student with a dynamics head": ("student", lambda: Student(Teacher(72, 9, 3, key=ONE), Adapter(9, 9, 9, key=TWO))),
    "modulated student": ("student", lambda: Student(MODULATED, Adapter(9, 16, 15, key=TWO))),
    "mean latent": ("student-mean-latent", lambda: MeanLatent(Teacher(72, 9, 3, key=ONE), jnp.linspace(-1, 1, 9))),
    "recurrent": ("recurrent", lambda: Recurrent(72, 9, 3, key=ONE)),
    "ppo-general": ("ppo-general", lambda: Teacher(72, 9, 3, 0, key=ONE)),
}
SHIPPED = ["field", "ideal", "student", "ppo-general"]


@pytest.fixture
def saved(tmp_path):
    """Writes a new policy with a larger last layer, since the commands of new policies are close to zero."""

    def save(name):
        method, build = POLICIES[name]
        policy = jax.tree.map(lambda leaf: leaf, build())
        teacher = getattr(policy, "teacher", policy)
        head = teacher.actor_critic.layers[-1]
        object.__setattr__(head, "weight", 10 * head.weight)
        return checkpoints.save_policy(tmp_path / "policy.safetensors", policy, config.paper(method), {})

    return save


class Graph:
    """A graph in the loop of a boat: its outputs are the inputs of the next step."""

    def __init__(self, model, boats=1):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self.inputs = {value.name: value for value in self.session.get_inputs()}
        self.outputs = [value.name for value in self.session.get_outputs()]
        self.last = {
            f"previous_{name}": np.zeros((boats, size), np.float32) for name, size in (("command", 3), ("memory", 128))
        }

    def step(self, pose, velocity, window):
        measured = {"pose": pose, "velocity": velocity.astype(np.float32), "window": window}
        given = {"previous_pose": pose} | self.last | measured
        out = dict(zip(self.outputs, self.session.run(None, {name: given[name] for name in self.inputs}), strict=True))
        self.last = {f"previous_{name}": out[name] for name in ("command", "memory") if name in out}
        self.last["previous_pose"] = pose
        return out


def check(pilot, model, steps=1000):
    """Over noisy laps, far from the origin and over many turns, all outputs equal the pilot's."""
    graph, random = Graph(model.SerializeToString()), np.random.default_rng(0)
    reference, origin, largest = rounded_rectangle(laps=10), np.array([4e5, -3e5, 4 * np.pi]), 0.0
    for k in range(steps):
        window = reference.window(0.1 * k)
        window[:, :3] += origin
        pose, velocity = window[0, :3] + 0.1 * random.normal(size=3), window[0, 3:] + 0.1 * random.normal(size=3)
        pose[2] -= 2 * np.pi * (k % 3)
        command = pilot.step(pose, velocity, window)
        out = graph.step(pose[None], velocity[None], window[None])
        np.testing.assert_allclose(out["command"][0], command, atol=1e-5)
        if pilot.latent.size:
            np.testing.assert_allclose(out["latent"][0], pilot.latent, rtol=1e-5, atol=2e-5)
        largest = max(largest, np.abs(command).max())
    assert largest > 0.01  # the commands are not all zero
    assert ("memory" in out) == (pilot.parts.cell is not None)
    assert ("mean" in out) == ("log_std" in out) == (pilot.dynamics is not None)
    if dynamics := pilot.dynamics:
        mean = scale_privileged(np.array(dynamics.e))
        np.testing.assert_allclose(out["mean"][0, PRIVILEGED.e], mean, atol=1e-4)
        np.testing.assert_allclose(np.exp(out["log_std"][0, PRIVILEGED.e]), dynamics.spread, rtol=1e-4)


@pytest.mark.parametrize("name", POLICIES)
def test_each_kind_gives_the_pilots_commands_over_1000_steps(name, saved):
    vessel = Vessel.load("roboat-2") if "teacher" in name else None
    pilot = Pilot.load(saved(name), vessel)
    check(pilot, export.build(pilot))


@pytest.mark.parametrize("name", SHIPPED)
def test_each_shipped_policy_gives_the_pilots_commands_over_1000_steps(name):
    pilot = Pilot.load(name)
    check(pilot, export.build(pilot))


def test_in_closed_loop_a_step_agrees_to_1e_5_and_a_lap_to_5e_5():
    # The memory of this policy decays slowly on this boat and accumulates rounding errors of single precision, the
    # pilot's too. Hence the larger tolerance of a lap.
    pilot = Pilot.load("field")
    model = export.build(pilot).SerializeToString()
    step_by_step, lap = Graph(model), Graph(model)
    differences = []

    class Both:
        reset = pilot.reset

        def step(self, pose, velocity, window):
            command = pilot.step(pose, velocity, window)
            given = pose[None], velocity[None], window[None]
            commands = [graph.step(*given)["command"][0] for graph in (step_by_step, lap)]
            differences.append(np.abs(np.array(commands) - command).max(axis=1))
            memory = pilot.memory
            assert memory is not None
            now = {"command": command.astype(np.float32), "memory": memory}
            step_by_step.last |= {f"previous_{name}": value[None] for name, value in now.items()}
            return command

    simulate(Both(), Vessel.load("roboat-2"), rounded_rectangle(), Sea.preset("field"), seed=3)
    of_a_step, of_the_lap = np.max(differences, axis=0)
    assert of_a_step < 1e-5
    assert of_the_lap < 5e-5


@pytest.mark.parametrize("name", ["field", "mean latent"])
def test_one_graph_steers_many_boats(name, saved):
    path = name if name in SHIPPED else saved(name)
    pilots, graph = [Pilot.load(path) for _ in range(3)], Graph(export.build(Pilot.load(path)).SerializeToString(), 3)
    random = np.random.default_rng(0)
    for k in range(20):
        windows = np.array([rounded_rectangle().window(0.1 * k + 5.0 * i) for i in range(3)])
        states = windows[:, 0] + 0.1 * random.normal(size=(3, 6))
        out = graph.step(states[:, :3], states[:, 3:], windows)
        for i, pilot in enumerate(pilots):
            command = pilot.step(states[i, :3], states[i, 3:], windows[i])
            np.testing.assert_allclose(out["command"][i], command, atol=1e-5)
            np.testing.assert_allclose(out["latent"][i], pilot.latent, atol=2e-5)


def test_a_heading_error_of_half_a_turn_has_the_pilots_sign():
    pilot, window = Pilot.load("field"), np.zeros((11, 6))
    window[:, 2] = np.pi
    out = Graph(export.build(pilot).SerializeToString()).step(np.zeros((1, 3)), np.zeros((1, 3)), window[None])
    np.testing.assert_allclose(out["command"][0], pilot.step(np.zeros(3), np.zeros(3), window), atol=1e-5)


def test_the_command_writes_a_graph_with_metadata(tmp_path, capsys):
    path = tmp_path / "deep" / "field.onnx"
    assert main(["export", "field", "--onnx", str(path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    model = onnx.load(path)
    props = {entry.key: entry.value for entry in model.metadata_props}
    assert (props["kind"], props["format"], props["period_s"]) == ("student", "3", "0.1")
    assert "m/s" in props["velocity"]
    assert json.loads(props["config"]) == Pilot.load("field").about["config"]
    assert json.loads(props["envelope"]) == Pilot.load("field").about["envelope"]
    inputs = ["pose", "window", "velocity", "previous_command", "previous_pose", "previous_memory"]
    assert [value["name"] for value in document["values"]] == [
        *inputs,
        "command",
        "latent",
        "memory",
        "mean",
        "log_std",
    ]
    assert document["values"][1] == {
        "name": "window",
        "is": "input",
        "type": "float64",
        "shape": ["boats", 11, 6],
        "holds": props["window"],
    }
    assert main(["export", "ppo-general", "--onnx", str(path)]) == 0
    out = capsys.readouterr().out
    assert "previous_command" in out
    assert "memory" not in out


def test_a_teacher_needs_a_vessel(saved, tmp_path, capsys):
    policy, path = str(saved("teacher")), tmp_path / "teacher.onnx"
    assert main(["export", policy, "--onnx", str(path)]) == 2
    assert "give it a vessel" in capsys.readouterr().err
    assert main(["export", policy, "--onnx", str(path), "--vessel", "roboat-1"]) == 0
    check(Pilot.load(policy, Vessel.load("roboat-1")), onnx.load(path), steps=20)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["feild", "--onnx", "a.onnx"], ["policy 'feild' is unknown", "did you mean 'field'"]),
        (["no.safetensors", "--onnx", "a.onnx"], ["no.safetensors", "cannot be read"]),
        (["field", "--onnx", "a.pt"], ["a.pt", "ends in .onnx"]),
        (["field"], ["--onnx"]),
        (["field", "--onnx", "a.onnx", "--vessel", "platform-a"], ["--vessel platform-a", "leave the option out"]),
        (["field", "--onnx", "a.onnx", "--vessel", "platfrm-a"], ["did you mean 'platform-a'"]),
    ],
)
def test_invalid_input_gives_one_line_and_no_file(arguments, words, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["export", *arguments]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert all(word in err for word in words), err
    assert list(tmp_path.iterdir()) == []


def test_without_onnx_the_error_says_what_to_install(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "onnx", None)
    monkeypatch.delitem(sys.modules, "anyhull.export")
    assert main(["export", "field", "--onnx", str(tmp_path / "a.onnx")]) == 2
    assert "pip install 'anyhull[onnx]'" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_path_is_refused_before_a_graph_is_built():
    with pytest.raises(InputError, match=r"a\.bin: a graph is saved as ONNX"):
        export.check_path("a.bin")
