"""A trained policy as deployed: NumPy only."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from anyhull import policy_file
from anyhull.backend import Array
from anyhull.controller import check_inputs
from anyhull.errors import InputError
from anyhull.hydrodynamics import Normalized
from anyhull.numpy_policy import GRU, MLP, Features, Tensor, elu
from anyhull.observation import (
    CURRENT_SCALE,
    DELAY_SCALE,
    FORCE_SCALE,
    HISTORY_SIZE,
    LOG_STD_RANGE,
    MODULATION,
    OBSERVATION_SIZE,
    PRIVILEGED,
    Scales,
    free_heading,
    unscale_privileged,
)
from anyhull.policy_parts import Weights, unpack
from anyhull.scale import FULL, IDENTITY, derating
from anyhull.schema import decode
from anyhull.vessel import Vessel

WITHOUT_SWAY = {"field": "field-under", "ideal": "ideal-under"}
"""The shipped policies for boats without sway force, by the name of those for all others."""

LARGEST_FILE = 50_000_000
"""Size of a policy's file, bytes."""


class Dynamics(NamedTuple):
    """Estimated dynamics, delay and disturbances."""

    e: Normalized
    """The most likely components."""
    spread: Normalized
    """Standard deviation of the logarithm of each, so 0.1 is about 10 %; of asinh for c_uv."""
    delay: float | None
    """Actuator delay, s; None, as the next two, for a policy trained without `privileged_sea`."""
    current: Array | None
    """Current in the body frame, (2,), m/s."""
    force: Array | None
    """Wind and wave force in the body frame as fractions of the actuator limits, (3,)."""
    lag: float | None = None
    """Time constant with which the thrust follows, s; None where it is part of the delay."""

    @property
    def components(self) -> Array:
        """The components, then their spreads, (18,)."""
        return np.concatenate([self.e, self.spread])


def policy_for(vessel: Vessel, name_or_path: str | Path = "field") -> str | Path:
    """The policy of that name for a vessel: those for boats without sway force have names of their own."""
    return WITHOUT_SWAY.get(str(name_or_path), name_or_path) if vessel.under_actuated else name_or_path


class Pilot:
    """Steers a boat with a trained policy."""

    def __init__(self, weights: Weights, about: dict[str, Any], vessel: Vessel | None = None) -> None:
        """`vessel` says in which units it is steered; without one they are SI.

        A teacher needs it, whose privileged input is its dynamics; other policies estimate them.
        """
        self.scale = vessel.scale if vessel else IDENTITY
        """The units of the policy."""
        self.derating = derating(vessel) if vessel else FULL
        """The share of the limits that the policy uses on each axis."""
        self._share = np.array(self.derating) if min(self.derating) < 1 else None
        self.about = about
        self.parts = parts = unpack(weights, about, vessel)
        self.scales = decode(Scales, about["config"]["scales"], "config.scales")
        """Input scaling of the policy."""
        bounds = (about["envelope"][name] for name in Normalized._fields)
        ranges = [decode(tuple[float, float], pair, "envelope") for pair in bounds]
        self.envelope = dict(zip(Normalized._fields, ranges, strict=True))
        """The range of each component of e, in the policy's units, that it was trained on, by the component's name."""
        found = about.get("metrics", {}).get("latent_range")
        self._latent_range = (
            None
            if found is None
            else decode(tuple[tuple[float, ...], tuple[float, ...]], found, "metrics.latent_range")
        )
        boats = about["config"].get("environment", {}).get("randomization", {})
        self.sway = decode(bool, boats.get("sway", True), "config.environment.randomization.sway")
        """Whether it steers boats that can push sideways; the others have a policy of their own."""
        self.restarts = 0
        """How often the memory was cleared since a command was not finite."""
        self._features = Features(self.scales)
        self._actor = MLP(parts.actor)
        self._modulation = MLP([parts.modulation]) if parts.modulation else None
        self._gru = GRU(parts.cell) if parts.cell else None
        self._head = MLP(parts.head) if parts.head else None
        self._dynamics_head = MLP(parts.dynamics_head) if parts.dynamics_head else None
        self._compress = MLP(parts.compress) if parts.compress else None
        # Input buffers of GRU and actor.
        self._history = np.zeros(parts.cell.weight_ih.shape[1] if parts.cell else 0, np.float32)
        self._inputs = np.zeros(parts.actor[0].weight.shape[0], np.float32)
        self.reset()

    @staticmethod
    def load(name_or_path: str | Path = "field", vessel: Vessel | None = None) -> Pilot:
        """The shipped policy of that name, or the one in a .safetensors file.

        Given a vessel without sway force, `field` and `ideal` are the policies for such boats, and a policy of the
        wrong class is refused.
        """
        under = vessel is not None and vessel.under_actuated
        path = policy_file.locate(name_or_path if vessel is None else policy_for(vessel, name_or_path))
        weights, about = policy_file.read(path, limit=LARGEST_FILE)
        try:
            pilot = Pilot(weights, about, vessel)
            if vessel is not None and pilot.sway == under:
                has, needs = ("with", "without") if under else ("without", "with")
                raise InputError(f"for boats {has} sway force: must be a policy for boats {needs}, as {vessel.name}")
            return pilot
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        except (KeyError, TypeError, IndexError, ValueError, AttributeError) as error:
            raise InputError(f"{path}: not a policy: {error} is missing or invalid") from None

    def reset(self) -> None:
        """Clear the memory, the previous command and the previous pose."""
        if self._gru:
            self._gru.memory[:] = 0.0
        self._previous = np.zeros(3)
        self._previous_pose: Array | None = None
        self.latent = (
            np.zeros(len(self.parts.head[-1].bias), np.float32) if self.parts.head else self.parts.fixed_latent
        )
        """The latent z: the adapter's estimate, initially zero; the teacher's; a fixed one; or empty."""

    def step(self, pose: ArrayLike, velocity: ArrayLike, window: ArrayLike) -> Array:
        """The normalized command in [-1, 1]³ for the coming period."""
        now, nu, reference = check_inputs(pose, velocity, window)
        if not self.scale.identity:
            now, nu, reference = self.scale.pose(now), self.scale.velocity(nu), self.scale.window(reference)
        if not self.sway:
            reference = free_heading(reference, now[2:])
        previous_pose = now if self._previous_pose is None else self._previous_pose
        self._features(now, previous_pose, nu, reference, self._previous)
        command = self._act()
        # One number that is not finite in memory or latent makes every command so. The sum is a tenth of np.isfinite.
        if not math.isfinite(command.dot(command)):
            command = self._restart(now, nu, reference)
        # Copies, since the caller may reuse the arrays.
        self._previous, self._previous_pose = command.copy(), now.copy()
        return command if self._share is None else command * self._share

    def issued(self, command: Array) -> None:
        """The `command` that was issued in this period in place of the policy's own, before derating."""
        self._previous = np.array(command)

    @property
    def boat(self) -> Array | None:
        """The dynamics head's estimate of e, on a logarithmic scale and in the policy's units, (9,)."""
        if not (self._dynamics_head and self._gru):
            return None
        mean: Array = self._dynamics_head(self._gru.memory)[PRIVILEGED.e].astype(np.float64)
        return mean

    def _restart(self, pose: Array, velocity: Array, window: Array) -> Array:
        """The command of a policy that starts here; zero if that is not finite either: then the inputs are absurd."""
        self.restarts += 1
        self.reset()
        self._features(pose, pose, velocity, window, self._previous)
        command = self._act()
        if np.isfinite(command).all():
            return command
        self.reset()
        return np.zeros(3)

    def _act(self) -> Array:
        """The command for the present features."""
        o, history, inputs = self._features.o, self._history, self._inputs
        if self._gru:
            history[-HISTORY_SIZE:] = self._features.h
            if self._compress:
                compressed = self._compress(o)
                history[:-HISTORY_SIZE] = elu(compressed, np.empty_like(compressed))
            memory = self._gru(history)
            if self._head:
                self.latent = self._head(memory).copy()
        if self._gru and self._compress:
            inputs[:] = memory
        else:
            inputs[:OBSERVATION_SIZE] = o
            inputs[OBSERVATION_SIZE:] = self.latent
        factors = None
        if self._modulation:
            factors = self._modulation(self.latent)
            np.maximum(factors, MODULATION[0], out=factors)
            np.minimum(factors, MODULATION[1], out=factors)
            np.exp(factors, out=factors)
        action = self._actor(inputs, factors).astype(np.float64)
        command: Array = np.maximum(np.minimum(action, 1.0, out=action), -1.0, out=action)
        if not self.sway:
            command[1] = 0.0
        return command

    @property
    def memory(self) -> Tensor | None:
        """A copy of the hidden state after the last step; None for a policy without one."""
        return self._gru.memory.copy() if self._gru else None

    @property
    def latent_range(self) -> tuple[Array, Array] | None:
        """The smallest and largest estimate of the latent in training; None if unknown."""
        return (np.array(self._latent_range[0]), np.array(self._latent_range[1])) if self._latent_range else None

    @property
    def dynamics(self) -> Dynamics | None:
        """The dynamics head's estimate after the last step; None for a policy without that head."""
        if not (self._dynamics_head and self._gru):
            return None
        mean, log_std = np.split(self._dynamics_head(self._gru.memory).astype(np.float64), 2)
        spread, at = np.exp(np.clip(log_std, *LOG_STD_RANGE)), PRIVILEGED
        has_sea = mean.size > at.e.stop
        own = Normalized(*map(float, unscale_privileged(np.clip(mean[at.e], -50.0, 50.0))))
        return self.dynamics_in_si(
            own,
            spread[at.e],
            delay=float(mean[at.delay][0]) / DELAY_SCALE if has_sea else None,
            current=mean[at.current] / CURRENT_SCALE if has_sea else None,
            force=mean[at.force] / FORCE_SCALE if has_sea else None,
        )

    def dynamics_in_si(
        self,
        own: Normalized,
        spread: Array,
        delay: float | None,
        current: Array | None,
        force: Array | None,
        lag: float | None = None,
    ) -> Dynamics:
        """Dynamics in SI from those in the policy's units; `spread` (9,) is of log e, and of asinh c_uv."""
        e, scale, spread = self.in_si(own), self.scale, np.array(spread)
        # The spread of asinh(c) is that of c over sqrt(1 + c²), and c_uv is in 1/m².
        spread[8] *= math.hypot(1, own.c_uv) / math.hypot(scale.length**2, own.c_uv)
        return Dynamics(
            e,
            Normalized(*map(float, spread)),
            delay if delay is None else delay * scale.time,
            current if current is None else current * scale.speed,
            force if force is None else force * self.derating,
            lag if lag is None else lag * scale.time,
        )

    def in_si(self, e: Normalized) -> Normalized:
        """Components of e in the policy's units as those of the boat in SI."""
        u, v, r = self.derating
        return self.scale.inverse.normalized(e, (1 / u, 1 / v, 1 / r))
