"""Closed-loop simulation of one boat: controller, vessel, reference and sea -> a Log."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from anyhull.controller import Controller
from anyhull.dynamics import step, substeps
from anyhull.errors import InputError
from anyhull.hulls import drawn, simulated
from anyhull.log import Log, Recorder, describe_vessel
from anyhull.reference import Reference
from anyhull.sea import Sea, clip_current, delayed, drift_current, drift_force
from anyhull.vessel import Vessel


def simulate(
    controller: Controller,
    vessel: Vessel,
    reference: Reference,
    sea: Sea | None = None,
    *,
    seed: int = 0,
    duration: float | None = None,
    start: ArrayLike | None = None,
    vessel_change: tuple[float, Vessel] | None = None,
    on_step: Callable[[float, float], None] | None = None,
    on_row: Callable[[dict[str, Any]], None] | None = None,
) -> Log:
    """Simulate `controller` on `vessel` along `reference`.

    Starts at `start` (x, y, psi, u, v, r), by default at the reference, and runs for `duration` s, by default the
    reference's own. The control period is that of the vessel's scale. `sea` is in SI; `seed` draws it, and a plausible
    hull for a vessel without hydrodynamics. `vessel_change` (t, vessel) replaces the dynamics from time t, s; the
    controller is not informed. `on_step` is called with the time reached and the duration, s, and `on_row` with each
    row of the log.

    A boat that cannot push sideways is pushed sideways all the same: its sway command has no effect, and the sea's
    sway force is a fraction of its surge force (`Vessel.disturbed`), as in training.
    """
    period = vessel.scale.period
    sea = sea or Sea.ideal()
    duration = reference.duration if duration is None else duration
    if not (math.isfinite(duration) and duration >= period):
        raise InputError(f"duration = {duration!r}: must be a finite number of seconds, at least {period:g}")
    state = np.asarray(reference.at(0.0) if start is None else start, dtype=float)
    if state.shape != (6,) or not np.isfinite(state).all():
        raise InputError(f"start = {start!r}: must be six finite numbers (x, y, psi, u, v, r)")

    about = drawn(vessel, seed)
    vessel, random = simulated(vessel, seed), np.random.default_rng(seed)
    vessel_change = vessel_change and (vessel_change[0], simulated(vessel_change[1], seed))
    hull = vessel
    e, drag, parts = hull.disturbed, hull.drag, substeps(hull, period)
    delay = random.uniform(*sea.delay)
    current = clip_current(tuple(sea.current / 2 * random.standard_normal(2)), sea)
    force = tuple(np.clip(sea.force / 2 * random.standard_normal(3), -sea.force, sea.force))
    commands: list[tuple[float, ...]] = [(0.0, 0.0, 0.0)] * sea.in_transit(period)

    steps = round(duration / period)
    recorder = Recorder(on_row)
    boat = tuple(float(value) for value in state)
    controller.reset()
    for k in range(steps):
        t = k * period
        if vessel_change and t >= vessel_change[0] - 1e-9:
            hull = vessel_change[1]
            e, drag, parts = hull.disturbed, hull.drag, substeps(hull, period)
        window = reference.window(t, period)
        command = np.asarray(controller.step(np.array(boat[:3]), np.array(boat[3:]), window), dtype=float)
        if command.shape != (3,) or not (np.abs(command) <= 1 + 1e-9).all():
            raise InputError(f"command = {command}: a controller must return three numbers in [-1, 1]")
        row = {"state": boat, "reference": window[0], "command": command, "current": current, "force": force}
        dynamics = getattr(getattr(controller, "dynamics", None), "components", None)
        recorder.add(time=t, **row, latent=getattr(controller, "latent", None), dynamics=dynamics)
        surge, sway, yaw = (float(value) for value in command)
        commands = [(surge, 0.0 if hull.under_actuated else sway, yaw), *commands[:-1]]
        active = delayed(commands, delay, parts, period)
        forces = [tuple(c + f for c, f in zip(tau, force, strict=True)) for tau in active]
        boat = step(boat, forces, e, current, drag, period)
        if not all(map(math.isfinite, boat)):
            raise InputError(f"{vessel.name} at t = {t:.1f} s: the state is no longer finite; the run was unstable")
        current = drift_current(current, random.standard_normal(2), sea, period)
        force = drift_force(force, random.standard_normal(3), sea, period)
        if on_step:
            on_step(t + period, duration)
    run = {"controller": type(controller).__name__, "seed": seed, "delay": delay, "sea": asdict(sea)}
    return recorder.log(describe_vessel(vessel) | about | run)
