"""Policies and training states in files: tensors named by their path, `teacher.actor_critic.layers.0.weight`."""

from __future__ import annotations

import dataclasses
import platform
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

from anyhull import policy_file
from anyhull.errors import InputError
from anyhull.learn.config import Config
from anyhull.learn.distributed import is_key
from anyhull.learn.phases import phases
from anyhull.learn.policies import MeanLatent, Policy, Recurrent, Student, Teacher
from anyhull.policy_file import Tensors
from anyhull.schema import decode

T = TypeVar("T")

KINDS: dict[str, type[Policy]] = {
    "teacher": Teacher,
    "student": Student,
    "mean-latent": MeanLatent,
    "recurrent": Recurrent,
}
"""Policy classes by kind."""


def save_policy(
    path: str | Path, policy: Policy, config: Config, metrics: dict[str, Any], origin: Mapping[str, str] | None = None
) -> Path:
    """Write weights, config, training ranges, metrics and versions to one file; returns its path.

    `origin` has the `start`, the digest of the policy that the training went on from.
    """
    kind = next(name for name, kind in KINDS.items() if type(policy) is kind)
    about = {
        "kind": kind,
        "config": dataclasses.asdict(config),
        "envelope": config.environment.randomization.envelope(),
        "metrics": metrics,
        "versions": versions(),
    } | dict(origin or {})
    return policy_file.write(path, _tensors(policy), about)


def digest(policy: Policy) -> str:
    """The SHA-256 of a policy's tensors, as in the metadata of its file."""
    return policy_file.digest(_tensors(policy))


def load_policy(path: str | Path) -> tuple[Policy, Config, dict[str, Any]]:
    """The policy of a file, its config, and `about`: its kind, envelope, metrics and versions."""
    tensors, about = policy_file.read(path)
    if about["kind"] not in KINDS:
        raise InputError(f"{path}: kind = {about['kind']!r}: must be a policy, one of {', '.join(KINDS)}")
    try:
        config = decode(Config, about.pop("config", None), "config")
        blank = _blank(about["kind"], config)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return fill(blank, tensors, path), config, about


def save_state(path: str | Path, state: Any, about: dict[str, Any]) -> None:
    """Write a training state bit for bit, with `about` as metadata."""
    policy_file.write(path, _tensors(state), {"kind": "state", "about": about})


def load_state(path: str | Path, template: Any) -> tuple[Any, dict[str, Any]]:
    """The state and `about` of a file; `template` is any state of that structure, or its shapes."""
    tensors, about = policy_file.read(path)
    if about["kind"] != "state":
        raise InputError(f"{path}: kind = {about['kind']!r}: must be 'state', a checkpoint of training")
    return fill(template, tensors, path), about["about"]


def read_about(path: str | Path) -> dict[str, Any]:
    """The metadata of a file, without its tensors."""
    return policy_file.read(path, about_only=True)[1]


def versions() -> dict[str, str]:
    """Versions of packages and Python, and the device."""

    def version(package: str) -> str:
        try:
            return metadata.version(package)
        except metadata.PackageNotFoundError:
            return "not installed"  # as with the source tree on the path

    packages = {name: version(name) for name in ("anyhull", "jax", "equinox", "optax")}
    return packages | {"python": platform.python_version(), "device": jax.devices()[0].device_kind}


def check_shapes(policy: Policy, config: Config, path: str | Path) -> None:
    """Reject a config that trains no policy of that kind and those shapes."""
    kind = next(name for name, kind in KINDS.items() if type(policy) is kind)
    if kind != "student" or config.recipe != "apg":
        raise InputError(f"{path}: a {kind} by the recipe {config.recipe}: must be a student by the recipe apg")
    if jax.tree.map(jnp.shape, policy) != jax.tree.map(jnp.shape, _blank(kind, config)):
        raise InputError(
            f"{path}: has other inputs or networks than these settings: leave scales and sizes as they are"
        )


def _blank(kind: str, config: Config) -> Policy:
    """The shapes of the policy of that kind that the config trains, in any phase."""

    def build(key: jax.Array) -> dict[str, Policy]:
        made: list[Policy] = []
        for phase in phases(config):
            made.append(phase.policy(phase.initial(key, made[-1] if made else None)))
        return {name: policy for policy in made for name, known in KINDS.items() if type(policy) is known}

    try:
        policies: dict[str, Policy] = jax.eval_shape(build, jax.random.key(0))
    except (TypeError, ValueError) as error:
        raise InputError(f"config: describes no policy: {str(error).splitlines()[0]}") from None
    if kind not in policies:
        raise InputError(f"config.method = {config.method!r}: trains no policy of kind {kind!r}")
    return policies[kind]


def _named(tree: Any) -> dict[str, Any]:
    """The leaves of a tree by their path."""

    def name(path: Any) -> str:
        return jax.tree_util.keystr(path, simple=True, separator=".")

    return {name(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}


def _tensors(tree: Any) -> Tensors:
    """The arrays of a tree by name, PRNG keys as integers."""
    return {n: jax.device_get(jax.random.key_data(x) if is_key(x) else x) for n, x in _named(tree).items()}


def fill(template: T, tensors: Tensors, path: str | Path) -> T:
    """`template` with each leaf replaced by the tensor of its name."""
    places = _named(template)
    for what, names in (("missing", places.keys() - tensors.keys()), ("unexpected", tensors.keys() - places.keys())):
        if names:
            raise InputError(f"{path}: tensor {min(names)!r} is {what}: the tensors do not match the metadata")

    def fit(name: str, place: Any) -> jax.Array:
        like = jax.eval_shape(jax.random.key_data, place) if is_key(place) else place
        tensor = tensors[name]
        if tensor.shape != like.shape or tensor.dtype != like.dtype:
            held, wanted = (f"{x.dtype}{list(x.shape)}" for x in (tensor, like))
            raise InputError(f"{path}: tensor {name!r} = {held}: must be {wanted}")
        return jax.random.wrap_key_data(jnp.asarray(tensor)) if is_key(place) else jnp.asarray(tensor)

    leaves = [fit(name, place) for name, place in places.items()]
    tree: T = jax.tree.unflatten(jax.tree.structure(template), leaves)
    return tree
