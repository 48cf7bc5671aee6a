"""The tracking task: one boat's reset and step as pure functions, to be vmapped over a fleet.

Randomness comes in as numbers: `Draws` for a step, `uniforms` for a reset, both drawn outside the loop. `progress` is
the share of training that is over, 0 to 1: the curriculum and the action penalties grow with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from anyhull import observation, stream
from anyhull.dynamics import PERIOD, SUBSTEP
from anyhull.errors import InputError
from anyhull.learn.boats import DRAWS as BOAT_DRAWS
from anyhull.learn.boats import Boats
from anyhull.learn.motion import move
from anyhull.learn.reward import Weights, terms
from anyhull.observation import HISTORY_SIZE, OBSERVATION_SIZE
from anyhull.reference import PREVIEW
from anyhull.sea import Sea, clip_current, delayed, drift_current, drift_force

PARTS = round(PERIOD / SUBSTEP)
"""Integration steps a control period."""

LARGEST = 1e4
"""Larger than any state of a sound episode."""

KEPT = 0.85
"""Share of an error of measurement that is still there a period later, about that of an estimator on a boat."""

Key = Array
Scalar = Float[Array, ""]


class Fleet(NamedTuple):
    """The state of a boat's episode; under vmap, of a fleet's."""

    boat: Float[Array, " 6"]
    """x, y, psi, u, v, r."""
    before: Float[Array, " 3"]
    """Pose one period ago, as it was measured."""
    window: Float[Array, "11 6"]
    """The reference now and ahead."""
    segment: Float[Array, " 4"]
    """The reference's twist to steer to, and the time left for it."""
    commands: Float[Array, "k 3"]
    """Commands in force or on their way, the newest first."""
    weather: Float[Array, " 6"]
    """Current (2), force (3) and delay."""
    error: Float[Array, " k"]
    """Of the measured state (6), and the share of the largest noise that this boat has; nothing where all is exact."""
    e: Float[Array, " 9"]
    """The boat."""
    age: Int[Array, ""]
    """Steps since the episode began."""


class Draws(NamedTuple):
    """The randomness of one step."""

    segment: Float[Array, " 7"]
    """Uniform numbers for the reference."""
    weather: Float[Array, " 5"]
    """Normal numbers for current and force."""
    error: Float[Array, " k"]
    """Normal numbers for the errors of measurement, where there are any."""


class Outcome(NamedTuple):
    """What a step led to, before any reset."""

    reward: Scalar
    terms: dict[str, Scalar]
    terminated: Bool[Array, ""]
    """Failed: farther from the reference than the task allows."""
    truncated: Bool[Array, ""]
    """Cut off by the clock; the future still has value."""


@dataclass(frozen=True)
class Task:
    """What is to be learned, with the paper's figures as defaults."""

    sea: Sea = field(default_factory=Sea.ideal)
    """Disturbances and actuator delay."""
    boats: Boats = field(default_factory=Boats)
    """Which boats are met."""
    weights: Weights = field(default_factory=Weights)
    """Reward weights."""
    episode: int = 1000
    """Steps after which an episode is cut off, which is not a failure."""
    failure: float = 5.0
    """Distance from the reference at which an episode fails, m."""
    grown: float = 0.5
    """Share of training after which dynamics, trajectories and initial offsets have their full range."""
    narrowest: float = 0.3
    """Range of the dynamics at the start, as a share of the full range in logarithm."""
    offset: tuple[float, float, float, float, float, float] = (1.5, 1.5, 1.5, 0.6, 0.3, 0.6)
    """Largest initial offset from the reference (m, m, rad, m/s, m/s, rad/s)."""
    turn: float = 0.5
    """Largest share of the sway force that a turn of the reference takes; the paper's rectangle takes up to 0.42."""
    noise: tuple[float, float, float, float, float, float] = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    """Largest standard deviation of the measured state's error (m, m, rad, m/s, m/s, rad/s)."""
    exact: float = 0.5
    """Share of boats whose measured state has no error, below 1."""

    tells_sea: bool = False
    """Whether the privileged vector holds delay, current and force beside the boat."""

    observation_size: ClassVar[int] = OBSERVATION_SIZE
    history_size: ClassVar[int] = HISTORY_SIZE
    action_size: ClassVar[int] = 3

    def __post_init__(self) -> None:
        if not 0 <= self.exact < 1:
            raise InputError(f"task.exact = {self.exact}: must be at least 0 and below 1")

    @property
    def noisy(self) -> bool:
        """Whether measurements have errors."""
        return any(self.noise)

    @property
    def reset_draws(self) -> int:
        """Uniform numbers that a reset takes: boat, first segment, offset, delay, current and force, errors."""
        return BOAT_DRAWS + stream.DRAWS + 6 + 1 + 5 + 7 * self.noisy

    @property
    def privileged_size(self) -> int:
        """Of the nine components, and of the sea where it is told."""
        return 9 + 6 * self.tells_sea

    def draws(self, key: Key, shape: tuple[int, ...]) -> Draws:
        """The randomness of steps of that shape; none is drawn for weather or errors that there are not."""
        one, two = jax.random.split(key)
        calm = self.sea.current == 0 and self.sea.force == 0
        return Draws(
            segment=jax.random.uniform(one, (*shape, stream.DRAWS)),
            weather=jnp.zeros((*shape, 5)) if calm else jax.random.normal(two, (*shape, 5)),
            error=jax.random.normal(jax.random.fold_in(key, 2), (*shape, 6 * self.noisy)),
        )

    def difficulty(self, progress: Scalar | float) -> Scalar:
        """How far the curriculum has grown, 0 to 1."""
        return jnp.clip(jnp.asarray(progress) / self.grown, 0.0, 1.0)

    def reset(self, uniforms: Float[Array, " n"], progress: Scalar | float = 1.0) -> Fleet:
        """A new episode from `reset_draws` uniform numbers."""
        hard = self.difficulty(progress)
        ends = list(accumulate((BOAT_DRAWS, stream.DRAWS, 6, 1, 5)))
        boat, segment, offset, delay, weather, error = jnp.split(uniforms, ends)
        e = self.boats.sample(boat, self.narrowest + (1 - self.narrowest) * hard)
        first = stream.draw(segment, stream.ability(e, turn=self.turn), hard)
        window = stream.begin(first, (0.0, 0.0, 0.0))
        state = window[0] + hard * jnp.array(self.offset) * (2 * offset - 1)
        sea = self.sea
        normal = _normal(weather)
        current = clip_current(sea.current / 2 * normal[:2], sea)
        force = jnp.clip(sea.force / 2 * normal[2:], -sea.force, sea.force)
        low, high = sea.delay
        if self.noisy:
            share = jnp.maximum(error[6] - self.exact, 0.0) / (1 - self.exact)
            error = jnp.append(share * jnp.array(self.noise) * _normal(error[:6]), share)
        return Fleet(
            boat=state,
            before=self._measured(state, error)[:3],
            window=window,
            segment=jnp.stack(first._replace(left=first.left - PREVIEW * PERIOD)),
            commands=jnp.zeros((sea.commands, 3)),
            weather=jnp.concatenate([jnp.stack(current), force, low + (high - low) * delay]),
            error=error,
            e=e,
            age=jnp.zeros((), jnp.int32),
        )

    def step(
        self, fleet: Fleet, action: Float[Array, " 3"], draws: Draws, progress: Scalar | float = 1.0
    ) -> tuple[Fleet, Outcome]:
        """One control period: the boat moves under the clipped command, the reference and the weather go on."""
        command = jnp.clip(action, -1.0, 1.0)
        previous = fleet.commands[0]
        commands = jnp.concatenate([command[None], fleet.commands[:-1]])
        current, force, delay = fleet.weather[:2], fleet.weather[2:5], fleet.weather[5]
        in_force = delayed(tuple(commands), delay, PARTS) if self.sea.commands > 1 else [command] * PARTS
        boat = move(fleet.boat, jnp.stack([jnp.stack(push) + force for push in in_force]), fleet.e, current)
        # An extreme boat can spin up until the integration overflows: that is a failure like straying, not a number.
        broken = ~jnp.all(jnp.abs(boat) < LARGEST)
        boat = jnp.where(broken, fleet.boat, boat)

        able, hard = stream.ability(fleet.e, turn=self.turn), self.difficulty(progress)
        point, segment = stream.extend(fleet.window[-1], stream.Segment(*fleet.segment), draws.segment, able, hard)
        window = jnp.concatenate([fleet.window[1:], point[None]])
        weather = fleet.weather
        if self.sea.current or self.sea.force:
            drifted = (
                *drift_current(current, draws.weather[:2], self.sea),
                *drift_force(force, draws.weather[2:], self.sea),
            )
            weather = jnp.stack([*drifted, delay])

        by_name = terms(boat, window[0], command, previous, progress, self.weights)
        age = fleet.age + 1
        terminated = broken | (jnp.hypot(*(window[0] - boat)[:2]) > self.failure)
        outcome = Outcome(
            reward=sum(by_name.values(), start=jnp.zeros(())),
            terms=by_name,
            terminated=terminated,
            truncated=(age >= self.episode) & ~terminated,
        )
        before, error = self._measured(fleet.boat, fleet.error)[:3], fleet.error
        if self.noisy:
            # So that its standard deviation stays what it is.
            fresh = (1 - KEPT**2) ** 0.5 * error[6] * jnp.array(self.noise) * draws.error
            error = error.at[:6].set(KEPT * error[:6] + fresh)
        return Fleet(boat, before, window, jnp.stack(segment), commands, weather, error, fleet.e, age), outcome

    def _measured(self, boat: Float[Array, " 6"], error: Float[Array, " k"]) -> Float[Array, " 6"]:
        return boat + error[:6] if self.noisy else boat

    def observe(self, fleet: Fleet) -> Float[Array, " 72"]:
        """The base observation o."""
        boat = self._measured(fleet.boat, fleet.error)
        seen = observation.observe(boat[:3], boat[3:], fleet.window, fleet.commands[0])
        return jnp.asarray(observation.pack(seen))

    def recall(self, fleet: Fleet) -> Float[Array, " 9"]:
        """The history feature h."""
        boat = self._measured(fleet.boat, fleet.error)
        seen = observation.recall(boat[:3], fleet.before, boat[3:], fleet.commands[0])
        return jnp.asarray(observation.pack(seen))

    def privileged(self, fleet: Fleet) -> Float[Array, " p"]:
        """What the encoder reads: e on a logarithmic scale; then delay, current in the body's frame and force."""
        e = jnp.asarray(observation.scale_privileged(fleet.e))
        if not self.tells_sea:
            return e
        current, force, delay = fleet.weather[:2], fleet.weather[2:5], fleet.weather[5:]
        drift = jnp.stack(observation.into_body(current[0], current[1], fleet.boat[2]))
        scales = observation.DELAY_SCALE, observation.CURRENT_SCALE, observation.FORCE_SCALE
        return jnp.concatenate([e, *(scale * x for scale, x in zip(scales, (delay, drift, force), strict=True))])


def _normal(uniforms: Float[Array, " n"]) -> Float[Array, " n"]:
    """Uniform numbers as normal ones."""
    return jnp.asarray(jax.scipy.stats.norm.ppf(jnp.clip(uniforms, 1e-6, 1 - 1e-6)))


def renew(done: Bool[Array, " n"], fresh: Any, fleet: Any) -> Any:
    """`fresh` where an episode is done, else `fleet`; for whole fleets, and for whatever else goes with them."""

    def pick(new: Array, old: Array) -> Array:
        return jnp.where(done.reshape(done.shape + (1,) * (new.ndim - 1)), new, old)

    return jax.tree.map(pick, fresh, fleet)
