"""The training phases of each method, and training as a pure function."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jaxtyping import Array

from anyhull.learn import apg, distillation, ppo
from anyhull.learn.config import APG, Config
from anyhull.learn.environment import TrackingEnv
from anyhull.learn.policies import MeanLatent, Policy, Recurrent, Student, Teacher

Key = Array


class Phase(NamedTuple):
    """A phase of training: initial state and iteration."""

    name: str
    iterations: int
    steps: int
    """Environment steps per iteration."""
    initial: Callable[[Key, Any], Any]
    """(key, policy of the previous phase or None) -> state."""
    iterate: Callable[[Any], tuple[Any, dict[str, Array]]]
    """State -> state, metrics."""
    policy: Callable[[Any], Any] = lambda state: state.policy
    """State -> the policy so far."""


def train(key: Key, config: Config) -> tuple[Policy, list[dict[str, Array]]]:
    """A trained policy, and the metrics of every iteration of each phase; pure: `jit(vmap(train))` trains seeds.

    `anyhull.learn.trainer` does the same with files, checkpoints and progress around it.
    """
    policy, history = None, []
    for number, phase in enumerate(phases(config)):

        def step(state: Any, _: None, phase: Phase = phase) -> Any:
            return phase.iterate(state)

        state = phase.initial(jax.random.fold_in(key, number), policy)
        state, metrics = jax.lax.scan(step, state, None, length=phase.iterations)
        policy = phase.policy(state)
        history.append(metrics)
    assert policy is not None
    return policy, history


def phases(config: Config) -> tuple[Phase, ...]:
    """The phases of a config, in order."""
    return apg_phases(config) if config.recipe == "apg" else ppo_phases(config)


def ppo_phases(config: Config) -> tuple[Phase, ...]:
    """A policy by PPO; for a student, then its adapter by distillation."""
    environment, hyper = config.environment, config.ppo
    has_latent = config.method not in ("ppo-general", "ppo-specific")

    def begin(key: Key, _: None) -> ppo.TrainState:
        one, two = jax.random.split(key)
        sizes = environment.observation_size, environment.history_size, environment.action_size
        policy: ppo.Policy
        if config.method == "recurrent":
            policy = Recurrent(*sizes, scales=config.scales, key=one)
        else:
            policy = new_teacher(config, one, config.latent_size if has_latent else 0)
        return ppo.initial(two, hyper, environment, policy)

    name = "recurrent" if config.method == "recurrent" else "teacher" if has_latent else "policy"
    steps = hyper.num_envs * hyper.rollout_steps
    first = Phase(name, hyper.iterations, steps, begin, lambda state: ppo.iterate(state, hyper, environment))
    if config.method not in ("student", "student-mean-latent", "sweep"):
        return (first,)
    second = distillation_phase(config, "student")
    if config.method == "student-mean-latent":
        second = second._replace(policy=lambda state: mean_latent(state.policy, environment))
    return first, second


def distillation_phase(config: Config, name: str) -> Phase:
    """Phase 2: an adapter for the teacher of the previous phase."""
    environment, hyper = config.environment, config.distillation
    return Phase(
        name,
        hyper.iterations,
        hyper.num_envs * hyper.rollout_steps,
        lambda key, teacher: distillation.initial(key, hyper, environment, teacher),
        lambda state: distillation.iterate(state, hyper, environment),
    )


def apg_phases(config: Config) -> tuple[Phase, ...]:
    """Teacher; for a student, then the adapter by distillation, then finetuning of adapter and actor."""
    environment = config.environment

    def begin(key: Key, _: None) -> apg.TrainState:
        one, two = jax.random.split(key)
        return apg.initial(two, config.apg, environment, new_teacher(config, one, config.latent_size))

    def phase(name: str, hyper: APG, initial: Callable[[Key, Any], Any]) -> Phase:
        steps = hyper.num_envs * hyper.horizon
        return Phase(name, hyper.updates, steps, initial, lambda state: apg.iterate(state, hyper, environment))

    teacher = phase("teacher", config.apg, begin)
    if config.method == "teacher":
        return (teacher,)
    hyper = config.finetune
    finetune = phase("student", hyper, lambda key, student: apg.initial(key, hyper, environment, student))
    return teacher, distillation_phase(config, "adapter"), finetune


def new_teacher(config: Config, key: Key, latent: int) -> Teacher:
    """An untrained teacher; with a latent of size 0, a policy without an encoder."""
    environment = config.environment
    sizes = environment.observation_size, environment.privileged_size, environment.action_size, latent
    return Teacher(*sizes, modulated=config.modulated, scales=config.scales, key=key)


def mean_latent(student: Student, environment: TrackingEnv) -> MeanLatent:
    """The student with the teacher's latent averaged over boats of the training distribution."""
    return MeanLatent(student.teacher, student.teacher.latent(_training_boats(environment)).mean(0))


@functools.partial(jax.jit, static_argnums=0)
def _training_boats(environment: TrackingEnv) -> Array:
    """Privileged vectors of 4096 boats of the training distribution."""
    uniforms = jax.random.uniform(jax.random.key(0), (4096, environment.reset_draws))
    return jax.vmap(lambda u: environment.privileged(environment.reset(u)))(uniforms)
