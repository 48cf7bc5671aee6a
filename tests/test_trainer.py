"""Training runs: files, kills, resuming, seeds and devices."""

import json
import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import Future
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file

from anyhull import InputError, policy_file
from anyhull.cli import main
from anyhull.cli import train as train_command
from anyhull.learn import checkpoints, distributed, evaluate, phases, ppo, trainer
from anyhull.learn import config as presets
from anyhull.learn.policies import Teacher

TINY = ["ppo.num_envs=16", "ppo.rollout_steps=8", "ppo.total_steps=640", "ppo.minibatches=2", "ppo.epochs=2"]
TINY += [f"distillation.{s}" for s in ("num_envs=16", "rollout_steps=8", "total_steps=384", "minibatches=2")]

TRAIN = """
import json, os, signal, sys
import jax
from anyhull import policy_file
from anyhull.learn import distributed, evaluate, precompile, trainer
from anyhull.learn.config import override, paper

method, folder, tiny, seeds, resume, kill_report, kill_save, measured, place = json.loads(sys.argv[1])
if place:
    distributed.join(*place)
config = paper(method)
for setting in tiny:
    config = override(config, setting)
count = {"report": 0, "save": 0}
write = policy_file.save_file

def report(_):
    count["report"] += 1
    if count["report"] == kill_report:
        os.kill(os.getpid(), signal.SIGKILL)

def save_file(tensors, path, metadata):
    count["save"] += 1
    write(tensors, path, metadata)
    if count["save"] == kill_save:
        os.truncate(path, os.path.getsize(path) // 2)
        os.kill(os.getpid(), signal.SIGKILL)

policy_file.save_file = save_file
if not resume and jax.device_count() == 1:  # as on a GPU, and without it when resumed: the weights are the same
    precompile._beside = lambda: True
if not measured:
    evaluate.tracking_metrics = lambda *_: {"position_cm": 0.0, "heading_deg": 0.0}
    evaluate.policy_metrics = lambda *_: {}
trainer.train(config, folder, seeds=seeds, resume=resume, checkpoint_interval=0.0, report=report)
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """The environment of a process with so many devices; compiled programs are shared between processes."""
    cache = {"JAX_COMPILATION_CACHE_DIR": str(tmp_path_factory.mktemp("compiled"))}
    cache["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    flags = os.environ["XLA_FLAGS"] + " --xla_force_host_platform_device_count="
    return lambda n: os.environ | cache | {"XLA_FLAGS": f"{flags}{n}"}


@pytest.fixture(scope="module")
def train(compiled):
    """Trains in a process of its own, which may be killed; what is `measured` on the way takes longer than learning."""

    def call(folder, method="teacher", seeds=1, resume=False, report=0, save=0, measured=False, devices=1, processes=1):
        coordinator = f"localhost:{free_port()}"
        started = []
        for i in range(processes):
            place = (coordinator, processes, i) if processes > 1 else ()
            asked = json.dumps([method, str(folder), TINY, seeds, resume, report, save, measured, place])
            command = [sys.executable, "-c", TRAIN, asked]
            out, err = subprocess.DEVNULL, subprocess.PIPE
            started.append(subprocess.Popen(command, env=compiled(devices), text=True, stdout=out, stderr=err))
        try:
            for process in started:
                said = process.communicate(timeout=300)[1]
                assert process.returncode == (-signal.SIGKILL if report or save else 0), said[-2000:]
        finally:
            for process in started:
                process.kill()
        return folder

    return call


def free_port():
    with socket.socket() as trial:
        trial.bind(("", 0))
        return trial.getsockname()[1]


@pytest.fixture(scope="module")
def unbroken(train, tmp_path_factory):
    """A student trained without a break: five iterations of Phase 1, three of Phase 2."""
    return train(tmp_path_factory.mktemp("unbroken") / "run", "student")


def bits(path):
    return {name: tensor.tobytes() for name, tensor in load_file(str(path)).items()}


FEW = ["--set", "finetune.num_envs=4", "--set", "finetune.horizon=2", "--set", "finetune.updates=1"]


def test_a_shipped_policy_is_trained_further_with_its_own_settings(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(evaluate, "tracking_metrics", lambda *_: {"position_cm": 0.0, "heading_deg": 0.0})
    monkeypatch.setattr(
        evaluate, "policy_metrics", lambda *_: {"position_cm": 0.0, "heading_deg": 0.0, "platforms": {}}
    )
    folder = tmp_path / "run"
    assert main(["train", "--start", "field-under", "--out", str(folder), "--no-cache", *FEW]) == 0
    before, config, about = checkpoints.load_policy(policy_file.locate("field-under"))
    after, changed, now = checkpoints.load_policy(folder / "policy.safetensors")
    assert changed.environment == config.environment
    assert changed.finetune.updates == 1
    assert now["start"] == about["sha256"]
    moved = [float(jnp.abs(a - b).max()) for a, b in zip(*map(jax.tree.leaves, (before, after)), strict=True)]
    # One step of Adam moves a weight by at most the learning rate.
    assert 0 < max(moved) <= config.finetune.learning_rate * 1.001
    # The run belongs to the policy that it started from.
    assert main(["train", "--out", str(folder), "--no-cache", "--resume", "--start", "field", *FEW]) == 2
    assert "start = " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--start", "field", "--sea", "field"], "start = 'field': must stand without method"),
        (["--start", "field", "--set", "latent_size=9"], "has other inputs or networks than these settings"),
        (["--start", "field", "--set", "scales.error=3"], "has other inputs or networks than these settings"),
        (["--start", "field-student"], "a student by the recipe ppo: must be a student by the recipe apg"),
        (["--start", "feild"], "policy 'feild' is unknown"),
    ],
)
def test_a_start_that_does_not_fit_is_refused_in_a_line(arguments, said, tmp_path, capsys):
    assert main(["train", *arguments, "--out", str(tmp_path / "run"), "--no-cache"]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_a_run_killed_over_and_over_ends_with_the_same_weights(train, unbroken, tmp_path):
    folder, policy = tmp_path / "run", tmp_path / "run" / "policy.safetensors"
    kills = [
        {"save": 1},  # in the first checkpoint
        {"save": 4},  # in a later one of Phase 1
        {"report": 5},  # in Phase 2
        {"save": 2},  # in the policy itself
    ]
    for i, kill in enumerate(kills):
        train(folder, "student", resume=i > 0, **kill)
        assert not policy.exists()
    train(folder, "student", resume=True)
    assert bits(policy) == bits(unbroken / "policy.safetensors")


def test_a_policy_file_tells_its_config_and_versions(unbroken):
    _, config, about = checkpoints.load_policy(unbroken / "policy.safetensors")
    assert config.ppo.num_envs == 16
    assert json.loads((unbroken / "config.json").read_text())["config"]["ppo"]["num_envs"] == 16
    assert about["versions"]["jax"] == jax.__version__


def distance(policy, unbroken):
    """The largest difference between a teacher's weights and those of the unbroken run."""
    alone = load_file(str(unbroken / "policy.safetensors"))
    return max(np.abs(tensor - alone[f"teacher.{name}"]).max() for name, tensor in load_file(str(policy)).items())


ROUNDING = 1e-6
"""Batched products and sums over devices round otherwise, and five iterations amplify it: up to 8e-8 was seen."""


def test_devices_apart_change_nothing_but_rounding(train, unbroken, tmp_path):
    folder = train(tmp_path / "run", devices=4)
    assert distance(folder / "policy.safetensors", unbroken) < ROUNDING


def test_seeds_together_and_apart_change_nothing_but_rounding(train, unbroken, tmp_path):
    folder = train(tmp_path / "run", seeds=2, measured=True, devices=2)
    first, second = (folder / f"policy-{i}.safetensors" for i in range(2))
    assert distance(first, unbroken) < ROUNDING
    assert distance(second, unbroken) > 1e-2
    policy, config, about = checkpoints.load_policy(second)
    again = evaluate.tracking_metrics(policy, config)
    assert about["metrics"]["position_cm"] == pytest.approx(again["position_cm"], rel=1e-3)
    platforms = about["metrics"]["platforms"].values()
    assert len(platforms) == 5
    assert about["metrics"]["position_cm"] == pytest.approx(np.mean([entry["position_cm"] for entry in platforms]))
    assert checkpoints.read_about(first)["metrics"]["position_cm"] != pytest.approx(again["position_cm"], rel=1e-2)


def test_vessels_side_by_side_are_each_their_own(tmp_path, monkeypatch):
    def tell(training, config, environment):
        """Instead of learning, write down how the boats compare with the one that the environment draws around."""
        ratio = training.env_state.e[:, :3].mean(0) / jnp.array(environment.randomization.center.normalized[:3])
        policy = eqx.tree_at(lambda policy: policy.actor_critic.log_std, training.policy, ratio)
        return training._replace(policy=policy, iteration=training.iteration + 1), {"reward": jnp.zeros(())}

    monkeypatch.setattr(ppo, "iterate", tell)
    monkeypatch.setattr(evaluate, "tracking_metrics", lambda *_: {"position_cm": 0.0, "heading_deg": 0.0})
    configs = {name: presets.paper("ppo-specific", vessel=name) for name in ("platform-a", "roboat-3")}
    for setting in TINY:
        configs = {name: presets.override(config, setting) for name, config in configs.items()}
    paths = trainer.train(configs, tmp_path / "both", seeds=2)
    assert [path.stem for path in paths] == [f"policy-{name}-{i}" for name in configs for i in range(2)]
    weights = []
    for path, owner in zip(paths, [config for config in configs.values() for _ in range(2)], strict=True):
        policy, config, _ = checkpoints.load_policy(path)
        assert config == owner
        assert isinstance(policy, Teacher)
        # The two are far apart: on the other's boats yaw would be off thirty times.
        np.testing.assert_allclose(policy.actor_critic.log_std, 1.0, atol=0.15)
        weights.append(policy.actor_critic.layers[0].weight)
    # Seeds differ, and a seed starts alike on every vessel.
    assert not np.array_equal(weights[0], weights[1])
    np.testing.assert_array_equal(weights[0], weights[2])
    with pytest.raises(InputError, match=r"config\.order = \['platform-a', 'roboat-3'\]: must be"):
        trainer.train(dict(reversed(configs.items())), tmp_path / "both", seeds=2, resume=True)
    wider = presets.override(configs["roboat-3"], "ppo.learning_rate=1e-3")
    with pytest.raises(
        InputError, match=r"configs platform-a, roboat-3: may differ only in environment\.randomization\.center"
    ):
        trainer.train(configs | {"roboat-3": wider}, tmp_path / "none")


def test_two_processes_go_on_with_a_run_and_change_nothing_but_rounding(train, unbroken, tmp_path):
    folder = train(tmp_path / "run", report=2)  # killed in the second of five iterations
    train(folder, resume=True, processes=2)
    assert distance(folder / "policy.safetensors", unbroken) < ROUNDING
    assert len(list((folder / "events").iterdir())) == 2  # one a start: the second process writes nothing


class Counting(NamedTuple):
    """A state that counts its iterations."""

    iteration: jax.Array
    env_state: jax.Array
    memory: jax.Array
    policy: jax.Array


def counting(iterations, reward=1.0):
    """A phase that learns nothing, and says so at once."""

    def iterate(state):
        return state._replace(iteration=state.iteration + 1), {"reward": jnp.array(reward)}

    def initial(key, _):
        return Counting(jnp.array(0), jnp.zeros(1), jnp.zeros(1), jnp.zeros(1))

    return phases.Phase("nothing", iterations, 1, initial, iterate)


def alone(phase, folder, monkeypatch, measure, every, report):
    """A phase run by itself: its state at the end, and how often its policy was measured."""
    measured = []

    def tracking_metrics(*_):
        measured.append(1)
        return {"position_cm": 0.0, "heading_deg": 0.0}

    monkeypatch.setattr(evaluate, "tracking_metrics", tracking_metrics)
    program: Future[Any] = Future()
    program.set_result(jax.jit(phase.iterate))
    state = distributed.shard(phase.initial(None, None), 1)
    place = folder, folder / "checkpoint.safetensors", 1, every
    monitor = trainer.Monitor(phase, presets.paper("teacher"), *place, [measure], report)
    return trainer.run_phase(phase, state, program, monitor), len(measured)


@pytest.mark.parametrize(
    ("checkpoint_every", "looks"), [(20.0, [1, 101, 201, 205]), (0.0, list(range(1, 206)))], ids=["seldom", "always"]
)
def test_looks_are_as_seldom_as_the_pace_allows(checkpoint_every, looks, tmp_path, monkeypatch):
    monkeypatch.setattr(trainer, "LOOK_INTERVAL", 1e3)  # a second, for iterations that take milliseconds
    seen = []
    ready: Future[None] = Future()
    ready.set_result(None)
    options = monkeypatch, ready, checkpoint_every, lambda report: seen.append(report.iteration)
    state, _ = alone(counting(205), tmp_path, *options)
    assert seen == looks
    assert int(state.iteration) == 205
    assert load_file(str(tmp_path / "checkpoint.safetensors"))["iteration"] == 205


def test_training_does_not_wait_for_a_measure_that_is_being_compiled(tmp_path, monkeypatch):
    compiling: Future[None] = Future()

    def report(told):
        if told.iteration == 7:
            compiling.set_result(None)

    # Asked for at every look, had at the eighth, ninth and tenth.
    assert alone(counting(10), tmp_path, monkeypatch, compiling, 0.0, report)[1] == 3


def test_a_line_shows_the_errors_measured_last_also_where_no_line_was_due(capsys):
    def report(done, position=None):
        errors = position and {"position_cm": position, "heading_deg": 0.5}
        return trainer.Report("teacher", done, 100, 1e3, 1.0, {}, errors)

    with train_command.display("teacher") as show:
        for told in (report(1, 3.0), report(2, 2.0), report(100)):
            show(told)
    assert [line.split(", ")[-2] for line in capsys.readouterr().err.splitlines()] == ["3.00 cm", "2.00 cm"]


def test_divergence_is_told_in_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(trainer, "phases", lambda _: (counting(5, reward=float("nan")),))
    assert main(["train", "teacher", "--out", str(tmp_path / "run")]) == 1
    said = capsys.readouterr()
    assert "nothing diverged by iteration 1: reward not finite" in said.err
    assert said.err.count("\n") == 1


def test_a_folder_with_a_run_is_refused_without_resume(unbroken):
    with pytest.raises(InputError, match="holds a run already"):
        trainer.train(presets.paper("student"), unbroken)


def test_resuming_with_another_config_is_refused(unbroken):
    config = checkpoints.load_policy(unbroken / "policy.safetensors")[1]
    with pytest.raises(InputError, match=r"config\.ppo\.learning_rate"):
        trainer.train(presets.override(config, "ppo.learning_rate=1e-3"), unbroken, resume=True)
    with pytest.raises(InputError, match="seed = 0"):
        trainer.train(config, unbroken, seed=1, resume=True)


def test_metrics_are_written_for_tensorboard(unbroken):
    files = list((unbroken / "events").iterdir())
    assert len(files) == 2  # one a phase
    events = b"".join(file.read_bytes() for file in files)
    for tag in (b"teacher/reward", b"student/latent_error", b"student/position_cm"):
        assert tag in events


def test_training_is_a_pure_function_of_key_and_config(unbroken):
    # The trainer does the same with files around it; here all of it is one program, rounded otherwise.
    policy, config, _ = checkpoints.load_policy(unbroken / "policy.safetensors")
    key = jax.random.fold_in(jax.random.key(0), 0)
    found, history = jax.jit(lambda key: phases.train(key, config))(key)
    assert [metrics[name].shape for metrics, name in zip(history, ("reward", "latent_error"), strict=True)] == [
        (5,),
        (3,),
    ]
    for one, other in zip(jax.tree.leaves(policy), jax.tree.leaves(found), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["techer"], "did you mean 'teacher'"),
        (["teacher", "--preset", "quick"], "preset 'quick' is unknown"),
        (["teacher", "--sea", "storm"], "sea 'storm' is unknown"),
        (["teacher", "--recipe", "sgd"], "recipe 'sgd' is unknown"),
        (["ppo-specific"], "give its name or file"),
        (["teacher", "--set", "ppo.epoch=1"], "epochs"),
        (["teacher", "--set", "ppo.num_envs=many"], "ppo.num_envs=many"),
        (["teacher", "--set", "ppo.gamma"], "must be"),
        (["teacher", "--processes", "2"], "need a coordinator"),
        (["teacher", "--coordinator", "localhost:1234"], "give processes and process too"),
        (["teacher", "--coordinator", "localhost", "--processes", "2", "--process", "0"], "must be ADDRESS:PORT"),
        (["teacher", "--coordinator", "localhost:1", "--processes", "2", "--process", "2"], "must be from 0 to 1"),
        (["teacher", "--coordinator", "no.invalid:1234", "--processes", "2", "--process", "1"], "no.invalid"),
        (
            ["teacher", "--coordinator", "auto", "--process", "0"],
            "processes and process are detected and must not be given",
        ),
        (["teacher", "--coordinator", "auto"], "cannot be joined"),
    ],
)
def test_mistakes_on_the_command_line_are_answered_in_one_line(arguments, complaint, tmp_path, capsys):
    assert main(["train", *arguments, "--out", str(tmp_path / "run")]) == 2
    said = capsys.readouterr()
    assert complaint in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""
    assert not (tmp_path / "run").exists()


def test_the_command_trains_and_prints_one_json_document(compiled, unbroken, tmp_path):
    settings = [part for setting in TINY for part in ("--set", setting)]
    folder = tmp_path / "run"
    command = [sys.executable, "-m", "anyhull.cli", "train", "teacher", "--recipe", "ppo", "--json", *settings]
    command += ["--out", str(folder)]
    done = subprocess.run(command, env=compiled(1), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["method"] == "teacher"
    assert told["files"] == [str(folder / "policy.safetensors")]
    assert len(told["metrics"][0]["platforms"]) == 5
    assert (
        bits(folder / "policy.safetensors").items()
        == {
            name.removeprefix("teacher."): data
            for name, data in bits(unbroken / "policy.safetensors").items()
            if name.startswith("teacher.")
        }.items()
    )
