"""One training state sharded over all devices, of one process or of several.

Every process runs the same program and calls these functions in the same order. Only the leader, the first
process, reads and writes files and reports.
"""

from __future__ import annotations

import functools
import json
import socket
import zlib
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from anyhull.errors import InputError, RunError

T = TypeVar("T")

AUTO = "auto"
"""Automatic detection of the coordinator by JAX: under Slurm, Open MPI, Kubernetes, or on a TPU."""


def join(coordinator: str, processes: int | None = None, process: int | None = None) -> None:
    """Make this process one of several that train together; call it before any other use of JAX.

    `coordinator` is ADDRESS:PORT of process 0, the same for all, or "auto".
    """
    if coordinator == AUTO:
        if processes is not None or process is not None:
            raise InputError("coordinator = 'auto': processes and process are detected and must not be given")
    else:
        if processes is None or process is None:
            raise InputError(f"coordinator = {coordinator!r}: give processes and process too")
        if not 0 <= process < processes:
            raise InputError(f"process = {process}: must be from 0 to {processes - 1}, one less than processes")
        _check(coordinator, process == 0)
    try:
        jax.distributed.initialize(None if coordinator == AUTO else coordinator, processes, process)
    except (ValueError, RuntimeError) as error:
        raise InputError(f"coordinator = {coordinator!r}: cannot be joined: {str(error).splitlines()[0]}") from None


def _check(coordinator: str, is_coordinator: bool) -> None:
    """Reject an address on which JAX would hang or crash."""
    host, _, port = coordinator.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise InputError(f"coordinator = {coordinator!r}: must be ADDRESS:PORT, as in 10.0.0.1:1234, or 'auto'")
    try:
        family, *_ = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise InputError(f"coordinator = {coordinator!r}: {error.strerror or error}") from None
    if is_coordinator:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("", int(port)))
            except OSError as error:
                raise InputError(f"coordinator = {coordinator!r}: port {port}: {error.strerror}") from None


def is_leader() -> bool:
    """Whether this is the first process, or the only one."""
    return jax.process_index() == 0


def broadcast(*values: int) -> list[int]:
    """The leader's numbers, on every process."""
    return [int(value) for value in multihost_utils.broadcast_one_to_all(np.array(values, np.int32))]


def check_equal(record: Any) -> None:
    """Raise on every process if their settings differ."""
    digest = np.uint32(zlib.crc32(json.dumps(record).encode()))
    for other, other_digest in enumerate(np.ravel(multihost_utils.process_allgather(digest))):
        if other_digest != digest:
            raise InputError(f"process {other}: has other settings than this one: give all the same")


def on_leader(function: Callable[..., T], *arguments: Any) -> T | None:
    """The function's result on the leader, None elsewhere. A failure raises on all processes, so that none hangs."""
    result, failure = None, None
    try:
        result = function(*arguments) if is_leader() else None
    except Exception as error:
        failure = error
    if broadcast(failure is not None)[0]:
        raise failure or RunError("the first process failed: see its error")
    return result


def broadcast_tree(tree: Any) -> Any:
    """The leader's arrays, bit for bit, on every process."""
    if jax.process_count() == 1:
        return tree

    def bits(leaf: Any) -> Any:  # as integers: a sum with the others' zeros would lose the sign of -0.0
        plain = np.asarray(jax.random.key_data(leaf) if is_key(leaf) else leaf)
        return plain.view(f"u{plain.dtype.itemsize}")

    def restore(leaf: Any, sent: Any) -> Any:
        return jax.random.wrap_key_data(sent) if is_key(leaf) else sent.view(leaf.dtype)

    return jax.tree.map(restore, tree, multihost_utils.broadcast_one_to_all(jax.tree.map(bits, tree)))


def is_key(leaf: Any) -> bool:
    """Whether an array holds PRNG keys."""
    return bool(jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key))


@functools.cache
def _over(*axes: str | None) -> NamedSharding:
    """Sharding of arrays along these axes over all devices."""
    mesh = Mesh(np.array(jax.devices()), ("d",))
    return NamedSharding(mesh, PartitionSpec(*axes))  # type: ignore[no-untyped-call]


def shardings(state: Any, seeds: int) -> Any:
    """The sharding of each array of a state: over seeds if they divide evenly, else over environments."""

    def everywhere(tree: Any, *axes: str | None) -> Any:
        return jax.tree.map(lambda _: _over(*axes), tree)

    if seeds > 1 and seeds % len(jax.devices()) == 0:
        return everywhere(state, "d")
    axes = ("d",) if seeds == 1 else (None, "d")
    env_state, memory = everywhere((state.env_state, state.memory), *axes)
    return everywhere(state)._replace(env_state=env_state, memory=memory)


def shard(state: Any, seeds: int) -> Any:
    """Shard a state that every process has in full; JAX partitions the program by the sharding of its inputs."""

    def put(leaf: Any, sharding: NamedSharding) -> Any:
        if sharding.is_fully_addressable:
            return jax.device_put(leaf, sharding)  # type: ignore[no-untyped-call]
        return jax.make_array_from_callback(leaf.shape, sharding, lambda index: leaf[index], dtype=leaf.dtype)

    return jax.tree.map(put, state, shardings(state, seeds))


def lower(iterate: Callable[[Any], Any], state: Any, seeds: int) -> Any:
    """`iterate`, lowered for a state of these shapes; the compiled program donates its input."""
    sharding = shardings(state, seeds)
    return jax.jit(iterate, donate_argnums=0, in_shardings=(sharding,), out_shardings=(sharding, None)).lower(state)


def gather(tree: Any) -> Any:
    """The whole tree on one device of this process; every process must call it. It may return the tree itself."""
    if jax.device_count() == 1:
        return tree
    return jax.tree.map(lambda leaf: leaf.addressable_data(0), _gather()(tree))


@functools.cache
def _gather() -> Callable[[Any], Any]:
    return jax.jit(lambda tree: tree, out_shardings=_over())
