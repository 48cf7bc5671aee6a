"""Training runs: files, kills, resuming, seeds and devices."""

import json
import os
import signal
import struct
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import load_file

from anyhull import InputError
from anyhull.cli import main
from anyhull.learn import events, files, methods, runs

TINY = ["ppo.envs=16", "ppo.steps=8", "ppo.total=640", "ppo.minibatches=2", "ppo.epochs=2"]
TINY += ["distillation.envs=16", "distillation.steps=8", "distillation.total=384", "distillation.minibatches=2"]

QUICK = "--xla_cpu_multi_thread_eigen=false --xla_backend_optimization_level=0"
"""One thread each, and programs that are compiled faster than they run."""

TRAIN = """
import json, os, signal, sys
from anyhull.learn import files, methods, runs

method, folder, tiny, seeds, seed, resume, kill_report, kill_save = json.loads(sys.argv[1])
config = methods.paper(method)
for setting in tiny:
    config = files.override(config, setting)
runs.EVERY = 1
count = {"report": 0, "save": 0}
write = files.save_file

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

files.save_file = save_file
runs.train(config, folder, seeds=seeds, seed=seed, resume=resume, checkpoint_every=0.0, report=report)
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """The environment of a process with so many devices; compiled programs are shared between processes."""
    cache = {"JAX_COMPILATION_CACHE_DIR": str(tmp_path_factory.mktemp("compiled"))}
    cache["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    return lambda n: os.environ | cache | {"XLA_FLAGS": f"{QUICK} --xla_force_host_platform_device_count={n}"}


@pytest.fixture(scope="module")
def train(compiled):
    """Trains in a process of its own, which may be killed."""

    def call(folder, method="teacher", seeds=1, seed=0, resume=False, report=0, save=0, devices=1):
        asked = json.dumps([method, str(folder), TINY, seeds, seed, resume, report, save])
        command = [sys.executable, "-c", TRAIN, asked]
        done = subprocess.run(command, env=compiled(devices), capture_output=True, text=True, timeout=300)
        assert done.returncode == (-signal.SIGKILL if report or save else 0), done.stderr[-2000:]
        return folder

    return call


@pytest.fixture(scope="module")
def unbroken(train, tmp_path_factory):
    """A student trained without a break: five iterations of Phase 1, three of Phase 2."""
    return train(tmp_path_factory.mktemp("unbroken") / "run", "student")


def bits(path):
    return {name: tensor.tobytes() for name, tensor in load_file(str(path)).items()}


def test_a_run_killed_over_and_over_ends_with_the_same_weights(train, unbroken, tmp_path):
    folder, policy = tmp_path / "run", tmp_path / "run" / "policy.safetensors"
    kills = [
        {"save": 1},  # in the first checkpoint
        {"report": 3},  # in Phase 1
        {"save": 2},  # in a later checkpoint
        {"report": 5},  # in Phase 2
        {"save": 2},  # in the policy itself
    ]
    for i, kill in enumerate(kills):
        train(folder, "student", resume=i > 0, **kill)
        assert not policy.exists()
    train(folder, "student", resume=True)
    assert bits(policy) == bits(unbroken / "policy.safetensors")


def test_a_policy_file_tells_its_config_metrics_and_versions(unbroken):
    _, config, about = files.load_policy(unbroken / "policy.safetensors")
    assert config.ppo.envs == 16
    assert json.loads((unbroken / "config.json").read_text())["config"]["ppo"]["envs"] == 16
    platforms = about["metrics"]["platforms"].values()
    assert len(platforms) == 5
    assert about["metrics"]["position_cm"] == pytest.approx(np.mean([entry["position_cm"] for entry in platforms]))


@pytest.mark.parametrize(("seeds", "devices"), [(1, 4), (2, 2)])
def test_seeds_together_and_devices_apart_change_nothing_but_rounding(seeds, devices, train, unbroken, tmp_path):
    """Batched products and sums over devices round otherwise, and five iterations amplify it: 3e-8 was seen."""
    folder = train(tmp_path / "run", seeds=seeds, devices=devices)
    alone = load_file(str(unbroken / "policy.safetensors"))
    names = ["policy.safetensors"] if seeds == 1 else [f"policy-{i}.safetensors" for i in range(seeds)]
    first, *others = [load_file(str(folder / name)) for name in names]
    assert max(np.abs(tensor - alone[f"teacher.{name}"]).max() for name, tensor in first.items()) < 1e-6
    for other in others:
        assert np.abs(other["body.layers.0.weight"] - first["body.layers.0.weight"]).max() > 1e-2


def test_a_folder_with_a_run_is_refused_without_resume(unbroken):
    with pytest.raises(InputError, match="holds a run already"):
        runs.train(methods.paper("student"), unbroken)


def test_resuming_with_another_config_is_refused(unbroken):
    config = files.load_policy(unbroken / "policy.safetensors")[1]
    with pytest.raises(InputError, match=r"config\.ppo\.rate"):
        runs.train(files.override(config, "ppo.rate=1e-3"), unbroken, resume=True)
    with pytest.raises(InputError, match="seed = 0"):
        runs.train(config, unbroken, seed=1, resume=True)


def test_the_checksum_is_the_masked_crc_32c():
    # CRC-32C of "123456789" is 0xE3069283 (RFC 3720); rotated right by 15, plus 0xA282EAD8.
    rotated = (0xE3069283 >> 15 | 0xE3069283 << 17) & 0xFFFFFFFF
    assert events.checksum(b"123456789") == (rotated + 0xA282EAD8) & 0xFFFFFFFF


def test_logs_are_whole_tensorboard_records(unbroken):
    tags = b""
    for file in (unbroken / "events").iterdir():
        data = file.read_bytes()
        while data:
            (length,) = struct.unpack("<Q", data[:8])
            record = data[12 : 12 + length]
            assert struct.unpack("<I", data[8:12])[0] == events.checksum(data[:8])
            assert struct.unpack("<I", data[12 + length : 16 + length])[0] == events.checksum(record)
            data, tags = data[16 + length :], tags + record
    assert b"brain.Event:2" in tags
    assert b"teacher/reward" in tags
    assert b"student/latent_error" in tags


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["techer"], "did you mean 'teacher'"),
        (["teacher", "--preset", "quick"], "preset 'quick' is unknown"),
        (["teacher", "--conditions", "storm"], "conditions 'storm' is unknown"),
        (["ppo-specific"], "give its name or file"),
        (["teacher", "--set", "ppo.rat=1"], "rate"),
        (["teacher", "--set", "ppo.envs=many"], "ppo.envs=many"),
        (["teacher", "--set", "ppo.rate"], "must be"),
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
    command = [sys.executable, "-m", "anyhull.cli", "train", "teacher", "--json", "--out", str(folder), *settings]
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
