"""Compiled programs: kept from one run to the next, and compiled in a thread before they are needed.

Every program is traced by the caller's thread before training begins, while the first of them is being compiled:
tracing holds the interpreter lock, and compiling does not.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import numpy as np

from anyhull.learn import distributed
from anyhull.learn.phases import Phase


def use_cache() -> None:
    """Keep compiled programs for the next run: in the user's cache folder, unless JAX has another configured."""
    if jax.config.jax_compilation_cache_dir is None:  # type: ignore[attr-defined]
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "anyhull" / "jax"
        jax.config.update("jax_compilation_cache_dir", str(folder))  # type: ignore[no-untyped-call]
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)  # type: ignore[no-untyped-call]


@contextmanager
def precompile(
    phases: Sequence[Phase],
    keys: Sequence[jax.Array],
    policy: Any,
    wanted: Sequence[bool],
    count: int,
    lower_measure: Callable[[Any], Sequence[Any]],
) -> Iterator[list[tuple[Future[Callable[[Any], Any]], list[Future[Any]]]]]:
    """For each phase its compiled iteration, and what measuring its policies needs, for `count` vmapped runs.

    `policy` is that which the first phase starts from, or None.

    Metrics, which `lower_measure` lowers for a policy of zeros, are compiled only into JAX's cache.
    """
    pool, programs = ThreadPoolExecutor(1), []
    try:
        for number, (phase, key, want) in enumerate(zip(phases, keys, wanted, strict=True)):
            state = jax.eval_shape(phase.initial, key, policy)
            iterate: Any = pool.submit(distributed.lower(phase.iterate, state, count).compile) if want else None
            if want and not any(wanted[:number]):
                phase.initial(key, policy)  # compiled in this thread, in parallel with the first iteration
            shapes = jax.eval_shape(phase.policy, state)
            policy = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes)
            one = jax.tree.map(lambda leaf: leaf[0], policy) if count > 1 else policy
            measures = [pool.submit(program.compile) for program in lower_measure(one)] if want and _beside() else []
            programs.append((iterate, measures))
        yield programs
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # the process still waits for compilations under way


def _beside() -> bool:
    """Whether metrics are compiled during training: on one accelerator, with a persistent cache."""
    cached = jax.config.jax_compilation_cache_dir is not None  # type: ignore[attr-defined]
    return jax.default_backend() != "cpu" and jax.device_count() == 1 and cached
