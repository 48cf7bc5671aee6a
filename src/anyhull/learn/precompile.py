"""Compiled programs: kept from one run to the next, and compiled in a thread before they are needed.

Every program is traced by the caller's thread before training begins, while the first of them is being compiled:
tracing holds the interpreter, and compiling does not.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from anyhull.learn import distributed
from anyhull.learn.phases import Phase


def use_cache() -> None:
    """Keep compiled programs in the user's cache folder, unless JAX has been told of another, for the next run."""
    if jax.config.jax_compilation_cache_dir is None:  # type: ignore[attr-defined]
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "anyhull" / "jax"
        jax.config.update("jax_compilation_cache_dir", str(folder))  # type: ignore[no-untyped-call]
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)  # type: ignore[no-untyped-call]


class Programs(NamedTuple):
    """What is compiled for a phase while phases before it run."""

    iterate: Future[Callable[[Any], Any]]
    """The iteration."""
    measure: Future[Any]
    """Done when measuring a policy of this phase has nothing more to compile."""


@contextmanager
def precompile(
    phases: Sequence[Phase],
    keys: Sequence[jax.Array],
    wanted: Sequence[bool],
    count: int,
    lower_measure: Callable[[Any], Sequence[Any]],
) -> Iterator[list[Programs]]:
    """The programs of the phases that are wanted, in their order, for `count` runs side by side.

    Measures, which `lower_measure` lowers for a policy of zeros, are compiled into JAX's cache alone.
    """
    pool, traced, policy = ThreadPoolExecutor(1), [], None
    try:
        for phase, key, want in zip(phases, keys, wanted, strict=True):
            state = jax.eval_shape(phase.initial, key, policy)
            iterate: Any = pool.submit(distributed.lower(phase.iterate, state, count).compile) if want else None
            shapes = jax.eval_shape(phase.policy, state)
            policy = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes)
            one = jax.tree.map(lambda leaf: leaf[0], policy) if count > 1 else policy
            traced.append((iterate, lower_measure(one) if want and may_compile_beside() else ()))
        yield [Programs(iterate, pool.submit(_compile, measures)) for iterate, measures in traced]
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # but the process does not end before what is begun has


def may_compile_beside() -> bool:
    """Whether measures are compiled beside training: where that is not a CPU's own time, and where it is kept."""
    cached = jax.config.jax_compilation_cache_dir is not None  # type: ignore[attr-defined]
    return jax.default_backend() != "cpu" and jax.device_count() == 1 and cached


def _compile(lowered: Sequence[Any]) -> None:
    for program in lowered:
        program.compile()
