"""Sails of many hulls in the twin, in several processes: the loop as on the boat, each with its own seed."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ProcessPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from anyhull.controller import Controller
from anyhull.errors import InputError, RunError
from anyhull.log import Log
from anyhull.onboard.setup import Setup
from anyhull.reference import Reference, rounded_rectangle
from anyhull.twin.sea_trial import sea_trial
from anyhull.twin.twin import TwinConfig

POLL = 0.2
"""Time between two reports of progress, s."""

MOST_SAILS = 256
"""Largest number of sails at once: places for their progress."""

MakeController = Callable[[], Controller]
Report = Callable[[float], None]


@dataclass(frozen=True)
class Course:
    """A rounded rectangle, and for how long the boat follows it."""

    length: float
    """m."""
    width: float
    """m."""
    radius: float
    """Of its corners, m."""
    speed: float
    """m/s."""
    laps: float
    lead_in: float
    """Time on the course before the measured part, s."""
    timeout: float
    """Time beyond the expected duration after which a boat has not arrived, s."""

    @property
    def reference(self) -> Reference:
        """To be followed."""
        return rounded_rectangle(self.length, self.width, self.radius, speed=self.speed, laps=self.laps)


class Sail(NamedTuple):
    """One hull, and where it is to sail."""

    seed: int
    course: Course


class Outcome(NamedTuple):
    """What came of a sail."""

    log: Log | None
    failure: str
    """Why there is no log, or empty."""


class _Ended(Exception):
    """The assessment was interrupted."""


@dataclass(frozen=True)
class _Fleet:
    """What the sails have in common; picklable."""

    setup: Setup
    make: MakeController
    config: TwinConfig

    def sail(self, controller: Controller, job: Sail, on_step: Callable[[float, float], None]) -> Outcome:
        setup, course = self.setup, job.course
        options: dict[str, Any] = {"lead_in": course.lead_in, "timeout": course.timeout, "on_step": on_step}
        try:
            return Outcome(sea_trial(controller, setup, course.reference, self.config, seed=job.seed, **options), "")
        except InputError as error:  # it never got under way, or its state is not finite
            return Outcome(None, str(error))


_worker: dict[str, Any] = {}
"""What `_start` has given to this process."""


def _start(fleet: _Fleet, progress: Any, stop: Any) -> None:
    _worker.update(fleet=fleet, controller=fleet.make(), progress=progress, stop=stop, parent=os.getppid())


def _sail(place: int, job: Sail) -> Outcome:
    def on_step(time: float, whole: float) -> None:
        # A process whose parent was killed must not sail on.
        if _worker["stop"].value or os.getppid() != _worker["parent"]:
            raise _Ended
        _worker["progress"][place] = time / whole

    outcome: Outcome = _worker["fleet"].sail(_worker["controller"], job, on_step)
    return outcome


class Regatta(AbstractContextManager["Regatta"]):
    """Runs sails in processes of their own, or with one worker in this one; interrupted, it ends within a period."""

    def __init__(self, setup: Setup, make: MakeController, config: TwinConfig, workers: int) -> None:
        """`make` is called once in each process, and so must be picklable."""
        self._fleet, self._pool = _Fleet(setup, make, config), None
        if workers > 1:
            spawn = multiprocessing.get_context("spawn")
            self._progress, self._stop = spawn.Array("d", MOST_SAILS, lock=False), spawn.Value("b", 0, lock=False)
            begin = (self._fleet, self._progress, self._stop)
            self._pool = ProcessPoolExecutor(workers, spawn, initializer=_start, initargs=begin)
        else:
            self._controller = make()

    def run(self, jobs: Sequence[Sail], report: Report | None = None) -> list[Outcome]:
        """The outcomes in the order of the jobs; `report` gets how many have been sailed, with parts of them."""
        if self._pool is None:
            return [self._here(i, job, report) for i, job in enumerate(jobs)]
        self._progress[:] = [0.0] * MOST_SAILS
        with _for_workers():
            running = [self._pool.submit(_sail, i, job) for i, job in enumerate(jobs)]
        left: set[Future[Outcome]] = set(running)
        while left:
            done, left = wait(left, POLL, FIRST_EXCEPTION)
            for future in done:
                future.result()
            if report:
                report(sum(1.0 if f.done() else self._progress[i] for i, f in enumerate(running)))
        return [future.result() for future in running]

    def _here(self, done: int, job: Sail, report: Report | None) -> Outcome:
        def on_step(time: float, whole: float) -> None:
            if report:
                report(done + time / whole)

        return self._fleet.sail(self._controller, job, on_step)

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._stop.value = 1
            self._pool.shutdown(cancel_futures=True)


@contextmanager
def _for_workers() -> Iterator[None]:
    """While processes start: they ignore Ctrl-C, which their parent answers, and compute on one core each."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    main = threading.current_thread() is threading.main_thread()
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN) if main else None
    try:
        yield
    finally:
        if main:
            signal.signal(signal.SIGINT, handler)
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def cores() -> int:
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run(regatta: Regatta, jobs: Sequence[Sail], report: Report | None = None) -> list[Outcome]:
    """`Regatta.run`, with the failure of a controller or of a process as an error of the run."""
    try:
        return regatta.run(jobs, report)
    except RuntimeError as error:
        raise RunError(str(error)) from error
