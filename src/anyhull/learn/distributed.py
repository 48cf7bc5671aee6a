"""One training state over all devices, of one process or of several, by JAX's own sharding.

Every process runs the same program and calls these functions in the same order; the leader, the first of them, alone
reads and writes files and reports.
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
"""The coordinator that JAX finds by itself: under Slurm, Open MPI, Kubernetes, or on a TPU."""


def join(coordinator: str, processes: int | None = None, process: int | None = None) -> None:
    """Make this process one of several that train together; before anything else is asked of JAX.

    `coordinator` is ADDRESS:PORT of process 0, the same for all, or "auto".
    """
    if coordinator == AUTO:
        if processes is not None or process is not None:
            raise InputError("coordinator = 'auto': the number of processes and which this is are found, not given")
    else:
        if processes is None or process is None:
            raise InputError(f"coordinator = {coordinator!r}: give the number of processes, and which this is, too")
        if not 0 <= process < processes:
            raise InputError(f"process = {process}: must be from 0 to {processes - 1}, one less than processes")
        _check(coordinator, process == 0)
    try:
        jax.distributed.initialize(None if coordinator == AUTO else coordinator, processes, process)
    except (ValueError, RuntimeError) as error:
        raise InputError(f"coordinator = {coordinator!r}: cannot be joined: {str(error).splitlines()[0]}") from None


def _check(coordinator: str, ours: bool) -> None:
    """Refuse an address that JAX would wait for, or crash on."""
    host, _, port = coordinator.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise InputError(f"coordinator = {coordinator!r}: must be ADDRESS:PORT, as in 10.0.0.1:1234, or 'auto'")
    try:
        family, *_ = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise InputError(f"coordinator = {coordinator!r}: {error.strerror or error}") from None
    if ours:
        with socket.socket(family, socket.SOCK_STREAM) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trial.bind(("", int(port)))
            except OSError as error:
                raise InputError(f"coordinator = {coordinator!r}: port {port}: {error.strerror}") from None


def is_leader() -> bool:
    """Whether this is the first process, or the only one."""
    return jax.process_index() == 0


def broadcast(*values: int) -> list[int]:
    """The leader's numbers, on every process."""
    return [int(value) for value in multihost_utils.broadcast_one_to_all(np.array(values, np.int32))]


def check_equal(record: Any) -> None:
    """Refuse, on every process, to go on where they were asked for different things."""
    digest = np.uint32(zlib.crc32(json.dumps(record).encode()))
    for other, theirs in enumerate(np.ravel(multihost_utils.process_allgather(digest))):
        if theirs != digest:
            raise InputError(f"process {other}: was asked for another run than this one: give all the same settings")


def on_leader(function: Callable[..., T], *arguments: Any) -> T | None:
    """What the function gives on the leader, and None elsewhere. Where it fails all fail: none waits for ever."""
    result, failure = None, None
    try:
        result = function(*arguments) if is_leader() else None
    except Exception as error:
        failure = error
    if broadcast(failure is not None)[0]:
        raise failure or RunError("the first process failed: it says why")
    return result


def broadcast_tree(tree: Any) -> Any:
    """The leader's arrays, bit for bit, on every process."""
    if jax.process_count() == 1:
        return tree

    def bits(leaf: Any) -> Any:  # as integers: a sum with the others' zeros would lose the sign of -0.0
        plain = np.asarray(jax.random.key_data(leaf) if is_key(leaf) else leaf)
        return plain.view(f"u{plain.dtype.itemsize}")

    def back(leaf: Any, sent: Any) -> Any:
        return jax.random.wrap_key_data(sent) if is_key(leaf) else sent.view(leaf.dtype)

    return jax.tree.map(back, tree, multihost_utils.broadcast_one_to_all(jax.tree.map(bits, tree)))


def is_key(leaf: Any) -> bool:
    """Whether an array holds keys of random numbers."""
    return bool(jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key))


@functools.cache
def _over(*axes: str | None) -> NamedSharding:
    """Arrays cut along these axes over all devices."""
    mesh = Mesh(np.array(jax.devices()), ("d",))
    return NamedSharding(mesh, PartitionSpec(*axes))  # type: ignore[no-untyped-call]


def shardings(state: Any, seeds: int) -> Any:
    """Where each array of a state lies: seeds side by side where they divide evenly, else environments."""

    def everywhere(tree: Any, *axes: str | None) -> Any:
        return jax.tree.map(lambda _: _over(*axes), tree)

    if seeds > 1 and seeds % len(jax.devices()) == 0:
        return everywhere(state, "d")
    axes = ("d",) if seeds == 1 else (None, "d")
    env_state, memory = everywhere((state.env_state, state.memory), *axes)
    return everywhere(state)._replace(env_state=env_state, memory=memory)


def shard(state: Any, seeds: int) -> Any:
    """A state that every process has in full, over all devices; JAX partitions the program by where its inputs lie."""

    def put(leaf: Any, where: NamedSharding) -> Any:
        if where.is_fully_addressable:
            return jax.device_put(leaf, where)  # type: ignore[no-untyped-call]
        return jax.make_array_from_callback(leaf.shape, where, lambda index: leaf[index], dtype=leaf.dtype)

    return jax.tree.map(put, state, shardings(state, seeds))


def lower(iterate: Callable[[Any], Any], state: Any, seeds: int) -> Any:
    """`iterate`, traced for a state of these shapes; compiled it takes the place of the state that it is given."""
    where = shardings(state, seeds)
    return jax.jit(iterate, donate_argnums=0, in_shardings=(where,), out_shardings=(where, None)).lower(state)


def gather(tree: Any) -> Any:
    """All of a tree on one device of this process; every process must ask for it. It may be the tree itself."""
    if jax.device_count() == 1:
        return tree
    return jax.tree.map(lambda leaf: leaf.addressable_data(0), _gather()(tree))


@functools.cache
def _gather() -> Callable[[Any], Any]:
    return jax.jit(lambda tree: tree, out_shardings=_over())
