"""The tracking task as an environment: reset and step of one boat as pure functions, to be vmapped.

Random numbers are inputs: `Draws` for a step, `uniforms` for a reset, both drawn outside the loop. `progress` is the
completed share of training, 0 to 1: the curriculum and the action penalties grow with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from anyhull import observation
from anyhull.backend import to_body
from anyhull.dynamics import PERIOD, SUBSTEP
from anyhull.errors import InputError
from anyhull.learn import randomization, reference_generator, thrust
from anyhull.learn.kernels.dynamics import move
from anyhull.learn.randomization import Randomization
from anyhull.learn.reward import RewardWeights, reward_terms
from anyhull.learn.thrust import ThrusterModel
from anyhull.observation import HISTORY_SIZE, OBSERVATION_SIZE, PRIVILEGED, Privileged
from anyhull.reference import PREVIEW
from anyhull.sea import Sea, clip_current, delayed, drift_current, drift_force

SUBSTEPS = round(PERIOD / SUBSTEP)
"""Integration steps per control period."""

LARGEST = 1e4
"""Bound on the state, beyond which the integration has diverged."""

NOISE_MEMORY = 0.85
"""Autocorrelation of the measurement error over one period, about that of an onboard estimator."""

CURRENT, FORCE, DELAY = slice(0, 2), slice(2, 5), slice(5, 6)
"""Slices of `EnvState.disturbance`."""

WITHOUT_SWAY = (1.0, 0.0, 1.0)
"""Factors on the command of a boat that cannot push sideways."""

Key = Array
Scalar = Float[Array, ""]


@runtime_checkable
class Environment(Protocol):
    """A training environment: `TrackingEnv`, or a probe environment with a known solution."""

    @property
    def observation_size(self) -> int: ...
    @property
    def history_size(self) -> int: ...
    @property
    def privileged_size(self) -> int: ...
    @property
    def action_size(self) -> int: ...
    @property
    def reset_draws(self) -> int: ...
    @property
    def episode_steps(self) -> int: ...

    def reset(self, uniforms: Array, progress: Any) -> Any: ...
    def draws(self, key: Key, shape: tuple[int, ...]) -> Any: ...
    def step(self, state: Any, action: Array, draws: Any, progress: Any) -> tuple[Any, Any]: ...
    def observe(self, state: Any) -> Array: ...
    def history(self, state: Any) -> Array: ...
    def privileged(self, state: Any) -> Array: ...


class EnvState(NamedTuple):
    """The state of a boat's episode; under vmap, of many."""

    boat: Float[Array, " 6"]
    """x, y, psi, u, v, r."""
    previous_pose: Float[Array, " 3"]
    """Measured pose one period ago."""
    window: Float[Array, "11 6"]
    """The reference now and ahead."""
    segment: Float[Array, " 4"]
    """Target twist of the reference, and its remaining time."""
    commands: Float[Array, "k 3"]
    """Commands active or in transit, newest first."""
    disturbance: Float[Array, " 6"]
    """Current (2), force (3) and delay."""
    sensor_error: Float[Array, " k"]
    """Error of the measured state (6), and the boat's share of the largest noise; empty without sensor noise."""
    actuators: Float[Array, " k"]
    """Thrust (3), lag, reverse share, dead band and quadratic share of drag; empty with ideal thrusters."""
    e: Float[Array, " 9"]
    """Normalized components of the boat."""
    age: Int[Array, ""]
    """Steps since the episode began."""


class Draws(NamedTuple):
    """The randomness of one step."""

    segment: Float[Array, " 7"]
    """Uniform numbers for the reference."""
    disturbance: Float[Array, " 5"]
    """Normal numbers for current and force."""
    sensor_error: Float[Array, " k"]
    """Normal numbers for the measurement errors; empty without sensor noise."""


class Outcome(NamedTuple):
    """The result of a step, before any reset."""

    reward: Scalar
    terms: dict[str, Scalar]
    terminated: Bool[Array, ""]
    """Failure: the position error exceeds `failure_distance`, or the state diverged."""
    truncated: Bool[Array, ""]
    """Time limit reached; the value of the next state still counts."""


@dataclass(frozen=True)
class TrackingEnv:
    """Track a random reference with a random boat; the defaults are the paper's figures."""

    sea: Sea = field(default_factory=Sea.ideal)
    """Disturbances and actuator delay."""
    randomization: Randomization = field(default_factory=Randomization)
    """Distribution of the boats."""
    reward: RewardWeights = field(default_factory=RewardWeights)
    """Reward weights."""
    episode_steps: int = 1000
    """Steps after which an episode is truncated, which is not a failure."""
    failure_distance: float = 5.0
    """Distance from the reference at which an episode fails, m."""
    curriculum_end: float = 0.5
    """Share of training after which dynamics, trajectories and initial offsets have their full range."""
    initial_spread: float = 0.3
    """Range of the dynamics at the start, as a share of the full range in logarithm."""
    initial_offset: tuple[float, float, float, float, float, float] = (1.5, 1.5, 1.5, 0.6, 0.3, 0.6)
    """Largest initial offset from the reference (m, m, rad, m/s, m/s, rad/s)."""
    turn_share: float = 0.5
    """Largest share of the sway force that a turn of the reference takes; the paper's rectangle takes up to 0.42."""
    sensor_noise: tuple[float, float, float, float, float, float] = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    """Largest standard deviation of the measured state's error (m, m, rad, m/s, m/s, rad/s)."""
    noise_free_share: float = 0.5
    """Share of boats whose measured state has no error, below 1."""
    privileged_sea: bool = False
    """Whether the privileged vector includes delay with lag, current and force."""
    log_dynamics: bool = True
    """Whether e in the privileged vector is on a logarithmic scale; else as the paper prints it."""
    fastest: float = reference_generator.CRUISE
    """Highest speed of the references, m/s."""
    current_share: float = 0.0
    """Largest share of a boat's forces that the current takes; 0 for the whole current, whatever the boat."""
    thrusters: ThrusterModel = field(default_factory=ThrusterModel)
    """What real thrusters and hulls do beyond the paper's model; by default nothing."""

    observation_size: ClassVar[int] = OBSERVATION_SIZE
    history_size: ClassVar[int] = HISTORY_SIZE
    action_size: ClassVar[int] = 3

    def __post_init__(self) -> None:
        if not 0 <= self.noise_free_share < 1:
            raise InputError(f"noise_free_share = {self.noise_free_share}: must be at least 0 and below 1")

    @property
    def noisy(self) -> bool:
        """Whether measurements have errors."""
        return any(self.sensor_noise)

    @property
    def reset_draws(self) -> int:
        """Uniform numbers per reset."""
        return sum(self._reset_parts) + 7 * self.noisy

    @property
    def _reset_parts(self) -> tuple[int, ...]:
        """Of these for boat, first segment, offset, delay, current and force, and thrusters; then sensor errors."""
        return randomization.DRAWS, reference_generator.DRAWS, 6, 1, 5, thrust.DRAWS * self.thrusters.real

    @property
    def privileged_size(self) -> int:
        """Nine components and, with `privileged_sea`, six of the sea."""
        size: int = (PRIVILEGED.force if self.privileged_sea else PRIVILEGED.e).stop
        return size

    def draws(self, key: Key, shape: tuple[int, ...]) -> Draws:
        """The randomness of steps of that shape; zero or empty without disturbances or sensor noise."""
        one, two = jax.random.split(key)
        still = self.sea.current == 0 and self.sea.force == 0
        return Draws(
            segment=jax.random.uniform(one, (*shape, reference_generator.DRAWS)),
            disturbance=jnp.zeros((*shape, 5)) if still else jax.random.normal(two, (*shape, 5)),
            sensor_error=jax.random.normal(jax.random.fold_in(key, 2), (*shape, 6 * self.noisy)),
        )

    def difficulty(self, progress: Scalar | float) -> Scalar:
        """Progress of the curriculum, 0 to 1."""
        return jnp.clip(jnp.asarray(progress) / self.curriculum_end, 0.0, 1.0)

    def reset(self, uniforms: Float[Array, " n"], progress: Scalar | float = 1.0) -> EnvState:
        """A new episode from `reset_draws` uniform numbers."""
        difficulty, sea = self.difficulty(progress), self.sea
        ends = list(accumulate(self._reset_parts))
        boat, segment, offset, delay, disturbance, actuators, error = jnp.split(uniforms, ends)
        e = self.randomization.sample(boat, self.initial_spread + (1 - self.initial_spread) * difficulty)
        first = reference_generator.draw(segment, self._capability(e), difficulty)
        window = reference_generator.begin(first, (0.0, 0.0, 0.0))
        state = window[0] + difficulty * jnp.array(self.initial_offset) * (2 * offset - 1)
        normal = _normal(disturbance)
        current = clip_current(sea.current / 2 * normal[:2], sea)
        force = jnp.clip(sea.force / 2 * normal[2:], -sea.force, sea.force)
        low, high = sea.delay
        if self.noisy:
            share = jnp.maximum(error[6] - self.noise_free_share, 0.0) / (1 - self.noise_free_share)
            error = jnp.append(share * jnp.array(self.sensor_noise) * _normal(error[:6]), share)
        return EnvState(
            boat=state,
            previous_pose=self._measured(state, error)[:3],
            window=window,
            segment=jnp.stack(first._replace(left=first.left - PREVIEW * PERIOD)),
            commands=jnp.zeros((sea.commands, 3)),
            disturbance=jnp.concatenate([jnp.stack(current), force, low + (high - low) * delay]),
            sensor_error=error,
            actuators=self.thrusters.reset(actuators),
            e=e,
            age=jnp.zeros((), jnp.int32),
        )

    def step(
        self, state: EnvState, action: Float[Array, " 3"], draws: Draws, progress: Scalar | float = 1.0
    ) -> tuple[EnvState, Outcome]:
        """One control period: the boat moves under the clipped command, the reference and the sea advance."""
        command = jnp.clip(action, -1.0, 1.0)
        if not self.randomization.sway:
            command = command * jnp.array(WITHOUT_SWAY)
        previous = state.commands[0]
        commands = jnp.concatenate([command[None], state.commands[:-1]])
        current, force, delay = (state.disturbance[part] for part in (CURRENT, FORCE, DELAY))
        active = delayed(tuple(commands), delay[0], SUBSTEPS) if self.sea.commands > 1 else [command] * SUBSTEPS
        active, actuators = self.thrusters.apply(active, state.actuators)
        e, quadratic = self.thrusters.drag(state.e, actuators)
        forces = jnp.stack([jnp.stack(tau) + force for tau in active])
        boat = move(state.boat, forces, e, self._current(state), quadratic)
        # An extreme boat can diverge until the integration overflows: the episode then terminates.
        overflow = ~jnp.all(jnp.abs(boat) < LARGEST)
        boat = jnp.where(overflow, state.boat, boat)

        capability, difficulty = self._capability(state.e), self.difficulty(progress)
        segment = reference_generator.Segment(*state.segment)
        point, segment = reference_generator.extend(state.window[-1], segment, draws.segment, capability, difficulty)
        window = jnp.concatenate([state.window[1:], point[None]])
        disturbance = state.disturbance
        if self.sea.current or self.sea.force:
            moved = (
                *drift_current(current, draws.disturbance[CURRENT], self.sea),
                *drift_force(force, draws.disturbance[FORCE], self.sea),
            )
            disturbance = jnp.concatenate([jnp.stack(moved), delay])

        terms = reward_terms(boat, window[0], command, previous, progress, self.reward)
        age = state.age + 1
        terminated = overflow | (jnp.hypot(*(window[0] - boat)[:2]) > self.failure_distance)
        outcome = Outcome(
            reward=sum(terms.values(), start=jnp.zeros(())),
            terms=terms,
            terminated=terminated,
            truncated=(age >= self.episode_steps) & ~terminated,
        )
        previous_pose, error = self._measured(state.boat, state.sensor_error)[:3], state.sensor_error
        if self.noisy:
            # Scaled so that the standard deviation stays constant.
            new = (1 - NOISE_MEMORY**2) ** 0.5 * error[6] * jnp.array(self.sensor_noise) * draws.sensor_error
            error = error.at[:6].set(NOISE_MEMORY * error[:6] + new)
        moved = boat, previous_pose, window, jnp.stack(segment), commands, disturbance, error, actuators
        after = EnvState(*moved, state.e, age)
        return after, outcome

    def observe(self, state: EnvState) -> Float[Array, " 72"]:
        """The base observation o."""
        boat = self._measured(state.boat, state.sensor_error)
        fields = observation.observe(boat[:3], boat[3:], self._seen(state.window, boat), state.commands[0])
        return jnp.asarray(observation.pack(fields))

    def target(self, state: EnvState) -> Float[Array, " 6"]:
        """The reference now, from which errors are measured."""
        return self._seen(state.window, state.boat)[0]

    def history(self, state: EnvState) -> Float[Array, " 9"]:
        """The history feature h."""
        boat = self._measured(state.boat, state.sensor_error)
        fields = observation.history(boat[:3], state.previous_pose, boat[3:], state.commands[0])
        return jnp.asarray(observation.pack(fields))

    def privileged(self, state: EnvState) -> Float[Array, " p"]:
        """The encoder's input: e, on a logarithmic scale; then delay, current in the body frame and force."""
        e = jnp.asarray(observation.scale_privileged(state.e)) if self.log_dynamics else state.e
        if not self.privileged_sea:
            return e
        current, force, delay = self._current(state), state.disturbance[FORCE], state.disturbance[DELAY]
        drift = jnp.stack(to_body(current[0], current[1], state.boat[2]))
        scales = observation.DELAY_SCALE, observation.CURRENT_SCALE, observation.FORCE_SCALE
        delay = delay + self.thrusters.lag_of(state.actuators)
        return jnp.asarray(observation.pack(Privileged(e, scales[0] * delay, scales[1] * drift, scales[2] * force)))

    def _current(self, state: EnvState) -> Float[Array, " 2"]:
        """The current, weaker where it would take more than `current_share` of the sway force or yaw moment."""
        current = state.disturbance[CURRENT]
        if self.sea.current == 0 or not self.current_share:
            return current
        _, alpha_v, alpha_r, _, d_v, *_, c_uv = state.e
        munk = self.current_share * alpha_r / jnp.maximum(jnp.abs(c_uv) * self._capability(state.e).fast, 1e-6)
        sway = self.current_share * alpha_v / d_v if self.randomization.sway else jnp.inf
        return current * jnp.minimum(jnp.minimum(munk, sway) / self.sea.current, 1.0)

    def _capability(self, e: Float[Array, " 9"]) -> reference_generator.Capability:
        if not self.randomization.sway:
            return reference_generator.capability_without_sway(e, fastest=self.fastest, current=self.sea.current)
        return reference_generator.capability(e, turn=self.turn_share, fastest=self.fastest)

    def _seen(self, window: Float[Array, "11 6"], boat: Float[Array, " 6"]) -> Float[Array, "11 6"]:
        return window if self.randomization.sway else jnp.asarray(observation.free_heading(window, boat[2]))

    def _measured(self, boat: Float[Array, " 6"], error: Float[Array, " k"]) -> Float[Array, " 6"]:
        return boat + error[:6] if self.noisy else boat


def _normal(uniforms: Float[Array, " n"]) -> Float[Array, " n"]:
    """Uniform numbers transformed to normal ones."""
    return jnp.asarray(jax.scipy.stats.norm.ppf(jnp.clip(uniforms, 1e-6, 1 - 1e-6)))


def auto_reset(done: Bool[Array, " n"], fresh: Any, state: Any) -> Any:
    """`fresh` where an episode is done, else `state`; for any tree with the environments as first axis."""

    def pick(new: Array, old: Array) -> Array:
        return jnp.where(done.reshape(done.shape + (1,) * (new.ndim - 1)), new, old)

    return jax.tree.map(pick, fresh, state)


def staggered_reset(draws: Key, ages: Key, count: int, environment: Environment, progress: float) -> Any:
    """`count` environments of random age, so that their episodes do not all end at once."""
    uniforms = jax.random.uniform(draws, (count, environment.reset_draws))
    # Compiled, since eager execution takes seconds.
    state = jax.jit(jax.vmap(lambda u: environment.reset(u, progress)))(uniforms)
    return state._replace(age=jax.random.randint(ages, (count,), 0, environment.episode_steps))
