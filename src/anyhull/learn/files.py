"""Policies and training states as safetensors: tensors named by their place, the rest as JSON beside them.

A policy's tensors are called as its parts are, `teacher.body.layers.0.weight`, so that a reader needs no JAX. Loading
runs no code.
"""

from __future__ import annotations

import dataclasses
import json
import math
import platform
import types
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import jax
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from anyhull.errors import InputError, unknown
from anyhull.files import whole
from anyhull.learn.methods import Config, Policy, phases
from anyhull.learn.networks import MeanLatent, Recurrent, Student, Teacher
from anyhull.pilot import FORMAT

T = TypeVar("T")
Tensors = dict[str, np.ndarray[Any, Any]]

KINDS: dict[str, type[Policy]] = {
    "teacher": Teacher,
    "student": Student,
    "mean-latent": MeanLatent,
    "recurrent": Recurrent,
}
"""What a policy file can hold."""


def save_policy(path: str | Path, policy: Policy, config: Config, metrics: dict[str, Any]) -> Path:
    """One file with the weights, what they were trained by, and how well they do; its path."""
    kind = next(name for name, kind in KINDS.items() if type(policy) is kind)
    about = {"config": config_to_json(config), "metrics": json.dumps(metrics), "versions": json.dumps(versions())}
    return save(path, policy, {"format": FORMAT, "kind": kind} | about)


def load_policy(path: str | Path) -> tuple[Policy, Config, dict[str, Any]]:
    """The policy of a file, its config, and `about`: its kind, metrics and versions."""
    about = read_about(path)
    if about["kind"] not in KINDS:
        raise InputError(f"{path}: kind = {about['kind']!r}: must be a policy, one of {', '.join(KINDS)}")
    try:
        config = config_from_json(about.pop("config"))
        blank = _blank(about["kind"], config)
    except (InputError, KeyError) as error:
        raise InputError(f"{path}: config: {error}") from None
    return filled(blank, _read(path), path), config, about


def save_state(path: str | Path, state: Any, about: dict[str, Any]) -> None:
    """A training state exactly as it is, with `about` beside it."""
    save(path, state, {"format": FORMAT, "kind": "state", "about": json.dumps(about)})


def load_state(path: str | Path, template: Any) -> tuple[Any, dict[str, Any]]:
    """The state and `about` of a file; `template` is any state of that structure, or its shapes alone."""
    about = read_about(path)
    if about["kind"] != "state":
        raise InputError(f"{path}: kind = {about['kind']!r}: must be 'state', a checkpoint of training")
    return filled(template, _read(path), path), about["about"]


def read_about(path: str | Path) -> dict[str, Any]:
    """What a file says of itself, without its tensors: `kind`, and what was saved beside them."""
    try:
        with safe_open(str(path), framework="numpy") as file:
            told = file.metadata() or {}
    except (OSError, SafetensorError) as error:
        raise _unreadable(path, error) from None
    version = told.get("format", "")
    if not version.isdecimal() or "kind" not in told:
        raise InputError(f"{path}: not a file of anyhull: its metadata has no format and kind")
    if version != FORMAT:
        remedy = (
            "a newer anyhull, so upgrade this one" if int(version) > int(FORMAT) else "an older one, so train it anew"
        )
        raise InputError(f"{path}: format = {version}: must be {FORMAT}; it was written by {remedy}")
    try:
        parts = {name: json.loads(text) for name, text in told.items() if name in ("metrics", "versions", "about")}
    except json.JSONDecodeError as error:
        raise InputError(f"{path}: its metadata is not valid JSON: {error}") from None
    return parts | {name: told[name] for name in ("kind", "config") if name in told}


def versions() -> dict[str, str]:
    """What a policy was made with."""
    packages = {name: _version(name) for name in ("anyhull", "jax", "equinox", "optax")}
    return packages | {"python": platform.python_version(), "device": jax.devices()[0].device_kind}


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"  # as when the source tree is on the path itself


def config_to_json(config: Config) -> str:
    """The effective config as JSON."""
    return json.dumps(dataclasses.asdict(config))


def config_from_json(text: str) -> Config:
    """The config that `config_to_json` wrote."""
    try:
        config: Config = _convert(Config, json.loads(text), "")
    except json.JSONDecodeError as error:
        raise InputError(f"not valid JSON: {error}") from None
    return config


def settings(config: Any, prefix: str = "") -> dict[str, Any]:
    """Every value of a config by its dotted path."""
    found: dict[str, Any] = {}
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        path = prefix + field.name
        found |= settings(value, path + ".") if dataclasses.is_dataclass(value) else {path: value}
    return found


def override(config: Config, assignment: str) -> Config:
    """The config with one value changed, as in `ppo.rate=1e-3`."""
    path, equals, text = (part.strip() for part in assignment.partition("="))
    if not equals:
        raise InputError(f"setting {assignment!r}: must be PATH=VALUE, as in ppo.rate=1e-3")
    accepted = [name for name in settings(config) if name != "method"]
    if path not in accepted:
        group = [name for name in accepted if name.startswith(path.split(".")[0] + ".")]
        raise InputError(unknown("setting", path, accepted, "accepted are " + ", ".join(group or accepted)))

    def put(node: Any, names: list[str]) -> Any:
        here = names[0]
        if len(names) > 1:
            return dataclasses.replace(node, **{here: put(getattr(node, here), names[1:])})
        hint = get_type_hints(type(node))[here]
        return dataclasses.replace(node, **{here: _convert(hint, _parse(text, hint), path)})

    try:
        changed: Config = put(config, path.split("."))
    except InputError as error:
        raise InputError(f"setting {assignment!r}: {error}") from None
    return changed


def _parse(text: str, hint: Any) -> Any:
    """The value that a person typed, as JSON would give it."""
    if get_origin(hint) is types.UnionType:
        return None if text.lower() == "none" else _parse(text, get_args(hint)[0])
    try:
        if hint is bool:
            return {"true": True, "false": False}.get(text.lower(), text)
        if hint in (int, float):
            number = float(text)
            return int(number) if hint is int and number.is_integer() else number
        if get_origin(hint) is tuple or hasattr(hint, "_fields"):
            return json.loads(text if text.startswith("[") else f"[{text}]")
    except ValueError:
        pass
    return text


def _convert(hint: Any, value: Any, path: str) -> Any:
    """A value from JSON as the type that a field declares."""

    def refuse(accepted: str) -> InputError:
        return InputError(f"{path or 'config'} = {value!r}: must be {accepted}")

    if dataclasses.is_dataclass(hint):
        if not isinstance(value, dict):
            raise refuse("a table of fields")
        prefix = f"{path}." if path else ""
        hints = {field.name: get_type_hints(hint)[field.name] for field in dataclasses.fields(hint)}
        for name in value:
            if name not in hints:
                raise InputError(unknown("setting", prefix + name, [prefix + known for known in hints]))
        return hint(**{name: _convert(hints[name], entry, prefix + name) for name, entry in value.items()})  # type: ignore[operator]
    if get_origin(hint) is types.UnionType:
        return None if value is None else _convert(get_args(hint)[0], value, path)
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            raise refuse("one of " + ", ".join(get_args(hint)))
        return value
    if hasattr(hint, "_fields") or get_origin(hint) is tuple:
        names = getattr(hint, "_fields", range(len(get_args(hint))))
        if not isinstance(value, list) or len(value) != len(names):
            raise refuse(f"{len(names)} numbers")
        numbers = [_convert(float, entry, f"{path}[{name}]") for name, entry in zip(names, value, strict=True)]
        return hint(*numbers) if hasattr(hint, "_fields") else tuple(numbers)
    if hint is bool:
        if type(value) is not bool:
            raise refuse("true or false")
        return value
    if hint is int:
        if type(value) is not int:
            raise refuse("a whole number")
        return value
    if hint is float:
        if type(value) not in (int, float) or not math.isfinite(value):
            raise refuse("a finite number")
        return float(value)
    raise TypeError(f"{path}: no conversion to {hint}")


def _blank(kind: str, config: Config) -> Policy:
    """The shapes of the policy of that kind that the config trains, on the way or in the end."""

    def build(key: jax.Array) -> dict[str, Policy]:
        made: list[Policy] = []
        for phase in phases(config):
            made.append(phase.policy(phase.initial(key, made[-1] if made else None)))
        return {name: policy for policy in made for name, known in KINDS.items() if type(policy) is known}

    try:
        policies: dict[str, Policy] = jax.eval_shape(build, jax.random.key(0))
    except (TypeError, ValueError) as error:
        raise InputError(f"describes no policy: {str(error).splitlines()[0]}") from None
    if kind not in policies:
        raise InputError(f"method = {config.method!r}: trains no policy of kind {kind!r}")
    return policies[kind]


def _is_key(leaf: Any) -> bool:
    return bool(jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key))


def _named(tree: Any) -> dict[str, Any]:
    """The leaves of a tree by their place in it; keys of random numbers as the integers that they are."""

    def name(path: Any) -> str:
        return jax.tree_util.keystr(path, simple=True, separator=".")

    return {name(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}


def save(path: str | Path, tree: Any, about: dict[str, str]) -> Path:
    """The arrays of any tree bit for bit, with `about` as the file's metadata; its path."""
    plain = {name: jax.random.key_data(leaf) if _is_key(leaf) else leaf for name, leaf in _named(tree).items()}
    tensors = {name: np.ascontiguousarray(leaf).reshape(leaf.shape) for name, leaf in plain.items()}
    with whole(path) as temporary:
        save_file(tensors, str(temporary), about)
    return Path(path)


def _read(path: str | Path) -> Tensors:
    try:
        with safe_open(str(path), framework="numpy") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: str | Path, error: Exception) -> InputError:
    if isinstance(error, OSError) and not isinstance(error, SafetensorError):
        return InputError(f"{path}: cannot be read: {error.strerror or error}")
    return InputError(f"{path}: cut short, or not a safetensors file: {error}")


def filled(template: T, tensors: Tensors, path: str | Path) -> T:
    """`template` with the tensors in the places that they are named for."""
    places = _named(template)
    if missing := sorted(places.keys() - tensors.keys()):
        raise InputError(f"{path}: tensor {missing[0]!r} is missing: the file does not hold what its metadata says")
    if foreign := sorted(tensors.keys() - places.keys()):
        raise InputError(f"{path}: tensor {foreign[0]!r} is foreign: the file does not hold what its metadata says")

    def fit(name: str, place: Any) -> jax.Array:
        like = jax.eval_shape(jax.random.key_data, place) if _is_key(place) else place
        tensor = tensors[name]
        if tensor.shape != like.shape or tensor.dtype != like.dtype:
            held, wanted = (f"{x.dtype}{list(x.shape)}" for x in (tensor, like))
            raise InputError(f"{path}: tensor {name!r} = {held}: must be {wanted}")
        return jax.random.wrap_key_data(jnp.asarray(tensor)) if _is_key(place) else jnp.asarray(tensor)

    leaves = [fit(name, place) for name, place in places.items()]
    tree: T = jax.tree.unflatten(jax.tree.structure(template), leaves)
    return tree
