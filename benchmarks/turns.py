"""How many programs a second can be started beside a thread that traces one, by how long Python's threads take turns.

    python turns.py

Training starts an iteration's program over and over while a thread traces and compiles the next phase's
(`anyhull.learn.ahead.compiling`); an update of the first-order teacher takes 8 ms on a GPU, so it wants 125 a second.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

import jax
import jax.numpy as jnp

from anyhull.learn import ahead, methods, runs

SECONDS = 5.0


def rate() -> float:
    """Starts a second of a program that does next to nothing with sixty arrays."""
    step = jax.jit(lambda arrays: [array + 1 for array in arrays])
    arrays: Any = step([jnp.zeros(3)] * 60)
    count, begin = 0, time.perf_counter()
    while (spent := time.perf_counter() - begin) < SECONDS:
        arrays, count = step(arrays), count + 1
    return count / spent


def main() -> None:
    teacher = runs.spread(methods.first_order("student"), 0, 1)
    state = jax.eval_shape(teacher.initial, jax.random.key(0), None)
    print(f"no other thread                 {rate():8.0f} a second")
    for turn in (sys.getswitchinterval(), ahead.TURN):
        sys.setswitchinterval(turn)
        over = threading.Event()

        def trace(over: threading.Event = over) -> None:
            while not over.is_set():
                jax.jit(lambda state: teacher.iterate(state)).lower(state)

        thread = threading.Thread(target=trace)
        thread.start()
        print(f"beside tracing, turns of {1e3 * turn:3.1f} ms {rate():8.0f} a second")
        over.set()
        thread.join()


if __name__ == "__main__":
    main()
