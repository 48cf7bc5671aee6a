"""The methods of the paper: what each trains, in one phase or two, and how its policy acts."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from anyhull.errors import InputError, unknown
from anyhull.learn import adapter, gradient, ppo
from anyhull.learn.adapter import Distillation
from anyhull.learn.boats import Boats
from anyhull.learn.evaluate import Act
from anyhull.learn.gradient import Descent
from anyhull.learn.networks import LATENT, MeanLatent, Recurrent, Student, Teacher
from anyhull.learn.ppo import PPO
from anyhull.learn.task import Task
from anyhull.observation import Scales
from anyhull.sea import Sea
from anyhull.vessel import Vessel

Key = Array
Policy = Teacher | Recurrent | Student | MeanLatent
Method = Literal["teacher", "student", "ppo-general", "ppo-specific", "recurrent", "student-mean-latent", "sweep"]

Recipe = Literal["ppo", "gradient"]

METHODS: dict[str, str] = {
    "teacher": "Phase 1: an oracle that is told the boat's dynamics",
    "student": "Phase 1 and 2: the adaptive policy of the paper",
    "ppo-general": "one policy for all boats, without adaptation",
    "ppo-specific": "a policy for one vessel, randomized around it",
    "recurrent": "end to end with a GRU, without a teacher",
    "student-mean-latent": "the student with its latent held at the mean: what adaptation is worth",
    "sweep": "the appendix: one vessel scaled in inertia and damping, one latent number",
}

NEAR = (0.5, 0.5, 0.5, 0.2, 0.1, 0.2)
"""Largest initial offset in first-order training, as in `Task.offset`: that for which its weights were chosen."""

NOISE = (0.015, 0.015, 0.005, 0.03, 0.03, 0.02)
"""Largest noise in training for the field, as in `Task.noise`: 1.5 times the estimator's in the twin."""


@dataclass(frozen=True)
class Config:
    """Everything that decides a training run; the defaults are the paper's tables."""

    method: Method = "student"
    recipe: Recipe = "ppo"
    """The paper's, or first-order gradients through the simulator."""
    task: Task = field(default_factory=Task)
    ppo: PPO = field(default_factory=PPO)
    distillation: Distillation = field(default_factory=Distillation)
    descent: Descent = field(default_factory=Descent)
    """The first-order teacher."""
    joint: Descent = field(default_factory=Descent)
    """The first-order student, adapter and actor together."""
    latent: int = LATENT
    """Size of the latent z."""
    scales: Scales = field(default_factory=Scales)
    """How the networks magnify small numbers."""
    modulated: bool = False
    """Whether the latent also multiplies the actor's features, in the first-order recipe."""


def paper(method: str, sea: str = "ideal", vessel: str | None = None) -> Config:
    """The paper's recipe for a method, in the sea of that name; `vessel` for those trained on one.

    Whoever is to go on the water also meets the errors of an estimator, and magnifies a gain in velocity less.
    """
    if method not in METHODS:
        raise InputError(unknown("method", method, METHODS))
    boats = Boats()
    if method in ("ppo-specific", "sweep"):
        if vessel is None:
            raise InputError(f"method {method!r} is trained on one vessel: give its name or file")
        around = Vessel.load(vessel).normalized
        boats = Boats("around", around) if method == "ppo-specific" else Boats("scaled", around, math.log(10.0))
    elif vessel is not None:
        raise InputError(f"vessel = {vessel!r}: method {method!r} is trained on all boats and takes none")
    config = Config(method, task=Task(Sea.preset(sea), boats), latent=1 if method == "sweep" else LATENT)  # type: ignore[arg-type]
    if config.task.sea == Sea.ideal():
        return config
    return replace(config, task=replace(config.task, noise=NOISE), scales=Scales(gain=100.0))


def fast(method: str, sea: str = "ideal", vessel: str | None = None) -> Config:
    """A twentieth of the paper's budget in smaller batches: minutes on two cores, for a look and for tests."""
    config = paper(method, sea, vessel)
    return replace(
        config,
        ppo=replace(config.ppo, total=3_000_000, envs=256, minibatches=4, rate=1e-3, final_rate=1e-4),
        distillation=replace(config.distillation, total=1_500_000, envs=256, rate=1e-3, final_rate=1e-4),
    )


def first_order(method: str, sea: str = "ideal", vessel: str | None = None) -> Config:
    """Our recipe for a teacher or a student: the cost differentiated through the simulator."""
    config = paper(method, sea, vessel)
    if method not in ("teacher", "student"):
        raise InputError(f"method {method!r}: has no first-order recipe; must be teacher or student, or trained by ppo")
    rough = config.task.sea != Sea.ideal()
    # Where wind and delay keep a boat off its path anyway, a lower price on the change of command pays in position.
    descent = replace(config.descent, updates=3000, heading=0.6, change=0.06) if rough else config.descent
    return replace(
        config,
        recipe="gradient",
        task=replace(config.task, episode=400, offset=NEAR, turn=0.85, tells_sea=rough),
        distillation=replace(config.distillation, total=15_000_000, rate=1e-3, final_rate=1e-4, reading=0.1),
        descent=descent,
        joint=replace(descent, updates=8000 if rough else 3300, latent=1e-3, reading=5e-3, curriculum=False),
        latent=16 if rough else LATENT,
        # Errors magnified more bring gradients up to their bound, which then cuts what a slow boat needs.
        scales=replace(config.scales, error=10.0),
        modulated=True,
    )


def first_order_fast(method: str, sea: str = "ideal", vessel: str | None = None) -> Config:
    """The same with fewer boats and updates: minutes on two cores."""
    config = first_order(method, sea, vessel)
    return replace(
        config,
        descent=replace(config.descent, updates=700, envs=256),
        distillation=replace(config.distillation, total=1_500_000, envs=256),
        joint=replace(config.joint, updates=700, envs=256),
    )


class Phase(NamedTuple):
    """A stretch of training: a state, and how it goes on."""

    name: str
    iterations: int
    steps: int
    """Environment steps an iteration."""
    initial: Callable[[Key, Any], Any]
    """(key, the policy of the phase before or None) -> state."""
    iterate: Callable[[Any], tuple[Any, dict[str, Array]]]
    """State -> state, metrics."""
    policy: Callable[[Any], Any]
    """State -> the policy so far."""


def phases(config: Config) -> tuple[Phase, ...]:
    """What a method trains, in order."""
    task, first = config.task, config.ppo
    if config.recipe == "gradient":
        return first_order_phases(config)
    has_latent = config.method not in ("ppo-general", "ppo-specific")

    def begin(key: Key, _: None) -> ppo.Training:
        one, two = jax.random.split(key)
        if config.method == "recurrent":
            sizes = task.observation_size, task.history_size, task.action_size
            policy: ppo.Policy = Recurrent(*sizes, scales=config.scales, key=one)
        else:
            latent = config.latent if has_latent else 0
            told = task.observation_size, task.privileged_size, task.action_size, latent
            policy = Teacher(*told, scales=config.scales, key=one)
        return ppo.initial(two, first, task, policy)

    learn = Phase(
        "recurrent" if config.method == "recurrent" else "teacher" if has_latent else "policy",
        first.iterations,
        first.envs * first.steps,
        begin,
        lambda state: ppo.iterate(state, first, task),
        lambda state: state.policy,
    )
    if config.method not in ("student", "student-mean-latent", "sweep"):
        return (learn,)
    distil = distillation(config, "student")
    if config.method == "student-mean-latent":
        distil = distil._replace(policy=lambda state: mean_latent(state.student, task))
    return learn, distil


def distillation(config: Config, name: str) -> Phase:
    """Phase 2: an adapter for the teacher of the phase before."""
    task, second = config.task, config.distillation
    return Phase(
        name,
        second.iterations,
        second.envs * second.steps,
        lambda key, teacher: adapter.initial(key, second, task, teacher),
        lambda state: adapter.iterate(state, second, task),
        lambda state: state.student,
    )


def first_order_phases(config: Config) -> tuple[Phase, ...]:
    """Teacher; for a student then an adapter by regression, and adapter and actor together."""
    task = config.task

    def begin(key: Key, _: None) -> gradient.Training:
        one, two = jax.random.split(key)
        sizes = task.observation_size, task.privileged_size, task.action_size, config.latent
        policy = Teacher(*sizes, modulated=config.modulated, scales=config.scales, key=one)
        return gradient.initial(two, config.descent, task, policy)

    def descend(name: str, descent: Descent, initial: Callable[[Key, Any], Any]) -> Phase:
        return Phase(
            name,
            descent.updates,
            descent.envs * descent.steps,
            initial,
            lambda state: gradient.iterate(state, descent, task),
            lambda state: state.policy,
        )

    teacher = descend("teacher", config.descent, begin)
    if config.method == "teacher":
        return (teacher,)
    joint = descend("student", config.joint, lambda key, student: gradient.initial(key, config.joint, task, student))
    return teacher, distillation(config, "adapter"), joint


def mean_latent(student: Student, task: Task) -> MeanLatent:
    """The student with the teacher's latent averaged over boats of the training distribution."""
    return MeanLatent(student.teacher, student.teacher.latent(_told(task)).mean(0))


@functools.partial(jax.jit, static_argnums=0)
def _told(task: Task) -> Array:
    """What a teacher is told of boats of the training distribution; compiled, since by operations it takes seconds."""
    uniforms = jax.random.uniform(jax.random.key(0), (4096, task.reset_draws))
    return jax.vmap(lambda u: task.privileged(task.reset(u)))(uniforms)


def acting(policy: Policy, count: int) -> tuple[Act, Array]:
    """How a policy acts on `count` boats, without noise, and its memory at the start."""
    if isinstance(policy, Student):

        def adapt(memory: Array, o: Array, h: Array, _: Array) -> tuple[Array, Array]:
            command, _, memory = policy.act(o, h, memory)
            return memory, command

        return adapt, jnp.zeros((count, policy.memory_size))
    body = policy.teacher if isinstance(policy, MeanLatent) else policy

    def act(memory: Array, o: Array, h: Array, privileged: Array) -> tuple[Array, Array]:
        z = jnp.tile(policy.mean, (count, 1)) if isinstance(policy, MeanLatent) else policy.latent(privileged)
        command, memory = body.act(o, h, z, memory)
        return memory, command

    return act, jnp.zeros((count, body.memory_size))
