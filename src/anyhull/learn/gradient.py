"""First-order training: the tracking cost is differentiated through the simulator, over short windows.

A window is a stretch of every boat's episode; the state is carried from one to the next. There is no critic and no
exploration: the gradient of the mean cost of a window with respect to the weights is exact, but for what lies beyond
its end, and for what a command changes in how an adapter will read the boat.
The same step trains a teacher, who is told the boat, and then a student as a whole, adapter and actor together.

It is stable by construction. On the way back through the steps the cotangent of every boat's state is bounded, so that
no boat, however unstable, outweighs the rest; what is not a number is dropped, boat by boat; and weights that have gone
astray return to those of the best stretch so far.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from anyhull.arithmetic import wrap
from anyhull.learn import fused
from anyhull.learn.networks import Student, Teacher
from anyhull.learn.ppo import aged
from anyhull.learn.task import Fleet, Task, renew

Key = Array
Policy = Teacher | Student
Scalar = Float[Array, ""]


PATIENCE = 10
"""Windows dropped in a row after which the weights return to the best so far."""


@dataclass(frozen=True)
class Descent:
    """Hyperparameters of first-order training."""

    updates: int = 2500
    """Gradient steps, each on one window."""
    envs: int = 1024
    """Environments."""
    steps: int = 32
    """Steps of a window, through which the gradient flows."""
    rate: float = 1e-3
    """Learning rate of Adam at the start; it falls to a hundredth by a cosine."""
    heading: float = 0.8
    """Weight of a radian against a metre."""
    softness: float = 1e-3
    """Error (m, rad), or change of the command, below which the cost is quadratic rather than linear."""
    velocity: float = 0.1
    """Weight of the velocity error (m/s, m/s, rad/s)."""
    change: float = 0.16
    """Weight of the change of the command: as the error, about linear, so that a needed jump is not spread out."""
    effort: float = 1e-4
    """Weight of the squared command."""
    excess: float = 0.1
    """Weight of what a command asks for beyond full power: there the boat itself gives no gradient."""
    latent: float = 0.0
    """Weight of a student's distance from the teacher's latent."""
    reading: float = 0.0
    """Weight of the likelihood of what the adapter's reader says of the boat."""
    bound: float = 12.0
    """Largest cotangent of a boat's state, as a multiple of a step's weight in the mean cost."""
    max_norm: float = 1.0
    """Largest norm of a gradient."""
    curriculum: bool = True
    """Whether boats, references and offsets grow with progress; else they have their full range from the start."""
    astray: float = 3.0
    """Smoothed cost, as a multiple of the lowest so far, at which the weights return to where that was."""


class Training(NamedTuple):
    """The whole state of a run."""

    policy: Policy
    moments: Any
    fleet: Fleet
    memory: Float[Array, "n m"]
    key: Key
    iteration: Int[Array, ""]
    cost: Scalar
    """Smoothed over some ten windows."""
    lowest: Scalar
    """The lowest smoothed cost of a recent stretch."""
    kept: Float[Array, " p"]
    """The weights at that time."""
    drops: Int[Array, ""]
    """Windows dropped in a row."""


def initial(key: Key, config: Descent, task: Task, policy: Policy) -> Training:
    """A run at its start, with environments of random age."""
    one, two, three = jax.random.split(key, 3)
    fleet = aged(one, two, config.envs, task, 0.0)
    weights = fused.flat(policy)[0]
    memory = jnp.zeros((config.envs, policy.memory_size))
    # Two arrays, as a state that is given away must not hold one twice.
    cost, lowest = jnp.full((2,), jnp.inf, jnp.float32)
    iteration, drops = jnp.zeros((2,), jnp.int32)
    moments = optimizer(config).init(weights)
    return Training(policy, moments, fleet, memory, three, iteration, cost, lowest, weights, drops)


def optimizer(config: Descent) -> optax.GradientTransformation:
    """Adam behind a bound on the gradient's norm, the learning rate falling by a cosine."""
    schedule = optax.cosine_decay_schedule(config.rate, config.updates, alpha=0.01)
    return optax.chain(optax.clip_by_global_norm(config.max_norm), optax.adam(schedule))


@jax.custom_vjp
def bounded(x: Float[Array, "n ..."], limit: Scalar) -> Float[Array, "n ..."]:
    """`x` itself. On the way back each boat's cotangent is cut to the norm `limit`, and dropped if not finite."""
    return x


def _bounded_forward(x: Array, limit: Scalar) -> tuple[Array, Scalar]:
    return x, limit


def _bounded_backward(limit: Scalar, cotangent: Array) -> tuple[Array, None]:
    axes = tuple(range(1, cotangent.ndim))
    norm = jnp.sqrt(jnp.sum(cotangent**2, axis=axes, keepdims=True))
    scaled = cotangent * jnp.minimum(1.0, limit / jnp.maximum(norm, 1e-30))
    return jnp.where(jnp.isfinite(norm), scaled, 0.0), None


bounded.defvjp(_bounded_forward, _bounded_backward)


def soft(squared: Array, softness: float) -> Array:
    """sqrt(e² + softness²) - softness: linear in large errors, quadratic in small ones."""
    return jnp.sqrt(squared + softness**2) - softness


def costs(boat: Array, reference: Array, command: Array, previous: Array, config: Descent) -> dict[str, Array]:
    """The terms of the cost of one step, by name, for boats (n, 6); `command` is as the network gave it."""
    off = boat - reference
    given = jnp.clip(command, -1.0, 1.0)
    return {
        "position": soft(off[:, 0] ** 2 + off[:, 1] ** 2, config.softness),
        "heading": config.heading * soft(wrap(off[:, 2]) ** 2, config.softness),
        "velocity": config.velocity * soft((off[:, 3:] ** 2).sum(-1), config.softness),
        "change": config.change * soft((given - previous) ** 2, config.softness).sum(-1),
        "effort": config.effort * (given**2).sum(-1),
        "excess": config.excess * (jnp.abs(command) - 1).clip(0.0).sum(-1),
    }


def decide(policy: Policy, o: Array, h: Array, p: Array, memory: Array) -> tuple[Array, Array, tuple[Array, ...]]:
    """Commands and memories, and of a student what `estimates` asks for."""
    if isinstance(policy, Teacher):
        return *policy.act(o, h, policy.latent(p), memory), ()
    # How its motion will be read is no way to steer, and where that is magnified it would drown what is.
    command, z, memory = policy.act(o, jax.lax.stop_gradient(h), memory)
    return command, memory, (z, memory, p)


def estimates(student: Student, z: Array, memory: Array, p: Array) -> dict[str, Array]:
    """How far estimates and memories are off what the student could not see: squared distances and surprise."""
    wanted = jax.lax.stop_gradient(student.teacher.latent(p))
    found = {"latent": ((z - wanted) ** 2).sum(-1)}
    return found if student.adapter.reader is None else found | {"reading": student.adapter.surprise(memory, p)}


def window(
    policy: Policy, fleet: Fleet, memory: Array, key: Key, progress: Scalar, config: Descent, task: Task
) -> tuple[Scalar, tuple[Fleet, Array, dict[str, Array]]]:
    """The mean cost of the next `steps` of every boat; fleet and memory after them, and the terms."""
    one, two = jax.random.split(key)
    uniforms = jax.random.uniform(one, (config.envs, task.reset_draws))
    fresh = jax.vmap(lambda u: task.reset(u, progress))(uniforms)
    draws = task.draws(two, (config.steps, config.envs))
    limit = jnp.asarray(config.bound / (config.steps * config.envs))

    def step(carry: tuple[Fleet, Array], draws: Any) -> Any:
        fleet, memory = carry
        boat, commands = bounded(fleet.boat, limit), bounded(fleet.commands, limit)
        fleet, memory = fleet._replace(boat=boat, commands=commands), bounded(memory, limit)
        o, h, p = (jax.vmap(look)(fleet) for look in (task.observe, task.recall, task.privileged))
        command, memory, guess = decide(policy, o, h, p, memory)
        moved, outcome = jax.vmap(lambda f, a, d: task.step(f, a, d, progress))(fleet, command, draws)
        terms = costs(moved.boat, moved.window[:, 0], command, fleet.commands[:, 0], config)
        done = outcome.terminated | outcome.truncated
        metrics = {name: value.mean() for name, value in terms.items()} | {"failures": outcome.terminated.mean()}
        return (renew(done, fresh, moved), renew(done, jnp.zeros_like(memory), memory)), (metrics, guess)

    # Two steps as one take 6 to 16 % less time on a GPU; on a CPU they only take longer to compile.
    unroll = 1 if jax.default_backend() == "cpu" else 2
    after, (metrics, guesses) = jax.lax.scan(step, (fleet, memory), draws, unroll=unroll)
    if isinstance(policy, Student):  # all steps at once, which on a GPU takes less time than one by one
        metrics |= {name: getattr(config, name) * off for name, off in estimates(policy, *guesses).items()}
    metrics = {name: value.mean() for name, value in metrics.items()}
    cost = sum((value for name, value in metrics.items() if name != "failures"), start=jnp.zeros(()))
    return cost, (*after, metrics)


def iterate(training: Training, config: Descent, task: Task) -> tuple[Training, dict[str, Array]]:
    """One window and one gradient step."""
    policy, moments, fleet, memory, key, iteration, smoothed, lowest, kept, drops = training
    key, one = jax.random.split(key)
    progress = iteration / max(config.updates - 1, 1) if config.curriculum else jnp.ones(())
    weights, unflatten = fused.flat(policy)

    def cost(weights: Array) -> Any:
        return window(unflatten(weights), fleet, memory, one, progress, config, task)

    (value, (fleet, memory, metrics)), gradient = jax.value_and_grad(cost, has_aux=True)(weights)
    step, moved = optimizer(config).update(gradient, moments, weights)
    sound = jnp.isfinite(gradient).all() & jnp.isfinite(value)
    weights = jnp.where(sound, weights + step, weights)
    moments = jax.tree.map(lambda new, old: jnp.where(sound, new, old), moved, moments)

    # The curriculum makes windows costlier with time: the lowest cost so far is forgotten slowly. A window that was
    # dropped says nothing, but weights under which one after another is are no good either.
    mixed = jnp.where(jnp.isfinite(smoothed), 0.9 * smoothed + 0.1 * value, value)
    smoothed, lowest = (jnp.where(sound, new, old) for new, old in ((mixed, smoothed), (1.01 * lowest, lowest)))
    better, drops = sound & (smoothed <= lowest), jnp.where(sound, 0, drops + 1)
    astray = (smoothed > config.astray * lowest) | (drops >= PATIENCE)
    kept, lowest = jnp.where(better, weights, kept), jnp.where(better, smoothed, lowest)
    weights, smoothed = jnp.where(astray, kept, weights), jnp.where(astray, lowest, smoothed)
    drops = jnp.where(astray, 0, drops)
    metrics |= {"cost": value, "norm": jnp.linalg.norm(gradient), "astray": astray, "dropped": ~sound}
    # A window that was dropped is told as such; its terms, which may be no numbers, are not.
    metrics = {name: jnp.nan_to_num(term.astype(jnp.float32), posinf=0.0) for name, term in metrics.items()}
    return (
        Training(unflatten(weights), moments, fleet, memory, key, iteration + 1, smoothed, lowest, kept, drops),
        metrics,
    )
