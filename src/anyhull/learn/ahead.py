"""What a run will need is compiled while it is on its way, so that the devices seldom wait for a compiler."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple

import jax
import numpy as np

from anyhull.learn import hosts
from anyhull.learn.methods import Phase

TURN = 1e-4
"""Seconds for which a thread that traces a program may keep the interpreter from one that waits to start an iteration.

With Python's 5 ms no more than twenty iterations a second get through (docs/speed.md).
"""


class Compiled(NamedTuple):
    """What is compiled for a phase while other phases run."""

    start: Future[Any]
    """Done when the phase's first state has nothing more to compile."""
    program: Future[Callable[[Any], Any]]
    """The iteration."""
    measure: Future[Any]
    """Done when measuring a policy of this phase has nothing more to compile."""


@contextmanager
def compiling(
    parts: Sequence[Phase],
    keys: Callable[[], list[jax.Array]],
    wanted: Sequence[bool],
    count: int,
    measure: Callable[[Any], Any],
) -> Iterator[list[Compiled]]:
    """The phases that are wanted, compiled from shapes in their order, for `count` runs side by side.

    One thread compiles the iterations. Another starts the later phases from policies of zeros, and measures such, once
    the first iteration is compiled, for which all else waits.
    """
    programs, others, interval = ThreadPoolExecutor(1), ThreadPoolExecutor(1), sys.getswitchinterval()
    sys.setswitchinterval(TURN)
    nothing: Future[Any] = Future()
    nothing.set_result(None)

    def rehearse(number: int, policy: Any) -> None:
        parts[number].initial(keys()[number], policy)

    policy: Any = None
    compiled = []
    try:
        for number, (phase, key, want) in enumerate(zip(parts, jax.eval_shape(keys), wanted, strict=True)):
            first, beside = want and not any(wanted[:number]), want and has_time_beside()
            state = jax.eval_shape(phase.initial, key, policy)
            program = programs.submit(hosts.compiled, phase.iterate, state, count) if want else nothing
            if first:
                others.submit(program.exception)
            start = others.submit(rehearse, number, policy) if beside and not first else nothing
            shapes = jax.eval_shape(phase.policy, state)
            policy = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes)
            one = jax.tree.map(lambda leaf: leaf[0], policy) if count > 1 else policy
            compiled.append(Compiled(start, program, others.submit(measure, one) if beside else nothing))
        yield compiled
    finally:
        sys.setswitchinterval(interval)
        for pool in (programs, others):
            pool.shutdown(wait=False, cancel_futures=True)  # but the process does not end before what is begun has


def has_time_beside() -> bool:
    """Whether more may run beside training: not on a CPU's own time, nor out of several devices' order."""
    return jax.default_backend() != "cpu" and jax.device_count() == 1
