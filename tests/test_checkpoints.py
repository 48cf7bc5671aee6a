"""Policy and state files: what goes in comes out bit for bit, and what is not sound is refused."""

import json
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from anyhull import InputError, policy_file
from anyhull.learn import checkpoints
from anyhull.learn import config as presets
from anyhull.learn.policies import MeanLatent, Recurrent, Student, Teacher
from anyhull.schema import decode

METHODS = {
    "teacher": Teacher,
    "student": Student,
    "student-mean-latent": MeanLatent,
    "recurrent": Recurrent,
    "ppo-general": Teacher,
    "ppo-specific": Teacher,
    "sweep": Student,
}


def made(method):
    """A policy of a method with numbers that no rounding would keep, and its config."""
    vessel = "roboat-1" if method in ("ppo-specific", "sweep") else None
    config = presets.paper(method, "field", vessel)
    kind = next(name for name, kind in checkpoints.KINDS.items() if kind is METHODS[method])
    blank = checkpoints._blank(kind, config)
    random = np.random.default_rng(0)
    return jax.tree.map(lambda leaf: jnp.asarray(random.normal(size=leaf.shape), leaf.dtype), blank), config


def same(one, other):
    """Whether two trees have the same structure and the same bits."""
    structure: Any = jax.tree.structure(one)
    if structure != jax.tree.structure(other):
        return False
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(a.dtype == b.dtype and np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in pairs)


@pytest.fixture
def student(tmp_path):
    """A saved student."""
    path = tmp_path / "policy.safetensors"
    policy, config = made("student")
    return checkpoints.save_policy(path, policy, config, {"position_cm": 0.84})


def resaved(path, tensors=None, **changes):
    """The file with other tensors or metadata."""
    with safe_open(str(path), framework="numpy") as file:
        told = {name: text for name, text in (file.metadata() | changes).items() if text is not None}
    tensors = load_file(str(path)) if tensors is None else tensors
    save_file(tensors, str(path), told | {"sha256": json.dumps(policy_file.digest(tensors))})


@pytest.mark.parametrize("method", METHODS)
def test_a_policy_comes_back_bit_for_bit_with_its_config(method, tmp_path):
    policy, config = made(method)
    path = checkpoints.save_policy(tmp_path / "policy.safetensors", policy, config, {"position_cm": 0.1})
    loaded, loaded_config, about = checkpoints.load_policy(path)
    assert type(loaded) is METHODS[method]
    assert same(policy, loaded)
    assert loaded_config == config
    assert about["metrics"] == {"position_cm": 0.1}
    assert {"anyhull", "jax", "equinox", "optax", "python", "device"} == about["versions"].keys()


@pytest.mark.parametrize("name", policy_file.shipped())
def test_every_shipped_policy_can_be_loaded_into_jax(name):
    policy, _, about = checkpoints.load_policy(policy_file.shipped()[name])
    assert type(policy) in METHODS.values()
    assert about["metrics"]["position_cm"] > 0


def test_tensors_are_named_by_their_place(student):
    names = load_file(str(student)).keys()
    assert {"teacher.actor_critic.layers.0.weight", "teacher.actor_critic.log_std", "adapter.cell.weight_ih"} <= names


def test_a_teacher_on_the_way_to_a_student_can_be_saved_too(tmp_path):
    policy, config = made("student")
    path = checkpoints.save_policy(tmp_path / "teacher.safetensors", policy.teacher, config, {})
    assert same(policy.teacher, checkpoints.load_policy(path)[0])


class State(NamedTuple):
    """As training states are made: keys, counters, flags, moments, and arrays of no size."""

    key: jax.Array
    keys: jax.Array
    moments: object
    flag: jax.Array
    memory: jax.Array
    values: jax.Array


def state():
    values = jnp.array([0.1, -0.0, jnp.nan, jnp.inf, 1e-42], jnp.float32)
    moments = optax.adam(1e-3).init({"w": values})
    key = jax.random.key(7)
    return State(key, jax.random.split(key, 3), moments, jnp.array([True, False]), jnp.zeros((4, 0)), values)


def test_a_state_comes_back_bit_for_bit_from_its_shapes_alone(tmp_path):
    before = state()
    checkpoints.save_state(tmp_path / "state.safetensors", before, {"phase": 1, "share": 0.1})
    after, about = checkpoints.load_state(tmp_path / "state.safetensors", jax.eval_shape(lambda: before))
    assert about == {"phase": 1, "share": 0.1}
    assert jax.random.uniform(after.key) == jax.random.uniform(before.key)
    assert after.keys.dtype == before.keys.dtype
    bits = [s._replace(key=jax.random.key_data(s.key), keys=jax.random.key_data(s.keys)) for s in (before, after)]
    assert same(*bits)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda s: s._replace(values=s.values[:2]), r"tensor 'values' = float32\[5\]: must be float32\[2\]"),
        (lambda s: s._replace(flag=s.flag.astype(jnp.int32)), r"tensor 'flag' = bool\[2\]: must be int32\[2\]"),
        (lambda s: s._replace(moments=()), "'moments.0.count' is unexpected"),
        (lambda s: s._replace(flag={"a": s.flag}), "'flag.a' is missing"),
    ],
)
def test_a_state_of_another_structure_is_refused(change, complaint, tmp_path):
    path = tmp_path / "state.safetensors"
    checkpoints.save_state(path, state(), {})
    with pytest.raises(InputError, match=complaint) as raised:
        checkpoints.load_state(path, change(state()))
    assert str(path) in str(raised.value)


@pytest.mark.parametrize("kept", [0.0, 1e-5, 0.5, 0.999999])
def test_a_truncated_file_is_refused(kept, student):
    data = student.read_bytes()
    student.write_bytes(data[: int(kept * len(data))])
    with pytest.raises(InputError, match=r"policy\.safetensors: truncated"):
        checkpoints.load_policy(student)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"none\.safetensors: cannot be read"):
        checkpoints.load_policy(tmp_path / "none.safetensors")


def test_foreign_files_are_refused(student, tmp_path):
    stranger = tmp_path / "stranger.safetensors"
    save_file({"x": np.zeros(3)}, str(stranger))
    with pytest.raises(InputError, match=r"stranger\.safetensors: not a file of anyhull"):
        checkpoints.load_policy(stranger)
    resaved(student, tensors={"x": np.zeros(3)})
    with pytest.raises(InputError, match=r"'adapter\.cell\.bias' is missing"):
        checkpoints.load_policy(student)
    checkpoints.save_state(student, {"x": jnp.zeros(3)}, {})
    with pytest.raises(InputError, match="kind = 'state': must be a policy"):
        checkpoints.load_policy(student)


def test_damaged_tensors_are_refused(student):
    data = bytearray(student.read_bytes())
    data[-1] ^= 1
    student.write_bytes(data)
    with pytest.raises(InputError, match=r"policy\.safetensors: sha256 = '[0-9a-f]{64}': does not match its tensors"):
        checkpoints.load_policy(student)


def test_the_envelope_is_that_of_the_boats_in_training(student, tmp_path):
    assert checkpoints.read_about(student)["envelope"]["alpha_u"] == [0.15, 12.0]
    # ± 20 % in logarithm around Roboat 1 (m = 9.2, X_udot = -3.8, Y_vdot = -14, I = 1.3, Fx = 40), each parameter by
    # its own factor: alpha_u = 40 / 13 = 200/65 varies with m and X_udot together. c_uv = (-14 + 3.8) / 1.3 has its
    # extremes where the added masses move apart or together and the inertia with them.
    policy, config = made("ppo-specific")
    path = checkpoints.save_policy(tmp_path / "specific.safetensors", policy, config, {})
    envelope = checkpoints.read_about(path)["envelope"]
    np.testing.assert_allclose(envelope["alpha_u"], [200 / 65 * 0.818731, 200 / 65 * 1.221403], rtol=1e-5)
    low, high = 0.818731, 1.221403
    ends = [(-14 * high + 3.8 * low) / (1.3 * low), (-14 * low + 3.8 * high) / (1.3 * high)]
    np.testing.assert_allclose(envelope["c_uv"], ends, rtol=1e-5)


def test_an_older_file_is_refused(student):
    resaved(student, format="1")
    with pytest.raises(InputError, match=r"policy\.safetensors: format = 1: must be 3; it was written by an older one"):
        checkpoints.load_policy(student)


def test_a_newer_file_is_refused(student):
    resaved(student, format="4")
    with pytest.raises(
        InputError, match=r"policy\.safetensors: format = 4: must be 3; it was written by a newer anyhull"
    ):
        checkpoints.load_policy(student)


@pytest.mark.parametrize(
    ("config", "complaint"),
    [
        ("{", "its metadata is not valid JSON"),
        (None, "config"),
        ('{"ppo": {"epoch": 1}}', "config.ppo.epoch = 1: unknown key; did you mean 'epochs'"),
        ('{"ppo": {"gamma": "x"}}', "config.ppo.gamma = 'x': must be a finite number"),
        ('{"method": "recurrent"}', "config.method = 'recurrent': trains no policy of kind 'student'"),
    ],
)
def test_a_file_with_a_bad_config_is_refused(config, complaint, student):
    resaved(student, config=config)
    with pytest.raises(InputError, match=complaint) as raised:
        checkpoints.load_policy(student)
    assert str(student) in str(raised.value)


def test_a_failed_write_leaves_the_old_file_and_nothing_beside_it(student, monkeypatch):
    before = student.read_bytes()
    policy, config = made("student")
    monkeypatch.setattr(
        policy_file, "save_file", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device"))
    )
    with pytest.raises(OSError, match="No space"):
        checkpoints.save_policy(student, policy, config, {})
    assert student.read_bytes() == before
    assert list(student.parent.iterdir()) == [student]


@pytest.mark.parametrize(
    ("assignment", "value"),
    [
        ("ppo.learning_rate=1e-3", 1e-3),
        ("ppo.total_steps=3e6", 3_000_000),
        ("environment.sea.delay=0,0.1", (0.0, 0.1)),
        ("environment.randomization.kind=around", "around"),
        ("environment.privileged_sea=True", True),
        ("latent_size=4", 4),
    ],
)
def test_one_setting_changes_and_nothing_else(assignment, value):
    config = presets.paper("student")
    path = assignment.split("=")[0]
    changed = presets.settings(presets.override(config, assignment))
    assert changed == presets.settings(config) | {path: value}
    assert type(changed[path]) is type(value)


@pytest.mark.parametrize(
    ("assignment", "complaint"),
    [
        ("ppo.epoch=1", "did you mean 'ppo.epochs'"),
        ("ppo.num_envs=1.5", "must be a whole number"),
        ("ppo.num_envs=true", "must be a whole number"),
        ("ppo.gamma=nan", "must be a finite number"),
        ("ppo.gamma", "must be PATH=VALUE"),
        ("environment.sea.delay=0.2,0.1", "must be 0 <= low <= high"),
        ("environment.sea.delay=0.2", "must be a list of 2 finite numbers"),
        ("environment.randomization.kind=all", "must be 'any', 'around' or 'scaled'"),
        ("method=teacher", "'method' is unknown"),
    ],
)
def test_bad_settings_are_refused(assignment, complaint):
    with pytest.raises(InputError, match=complaint):
        presets.override(presets.paper("student"), assignment)


def test_a_config_with_fields_missing_takes_their_defaults():
    config = replace(presets.paper("teacher"), latent_size=4)
    assert decode(presets.Config, {"method": "teacher", "latent_size": 4}) == config
