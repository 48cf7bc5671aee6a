"""Phase 2: the adapter finds a planted latent from history alone, and nothing else changes."""

import math
from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from probes import Impulse, State

from anyhull.learn import distillation, phases
from anyhull.learn.config import Distillation
from anyhull.learn.distillation import Sequence
from anyhull.learn.environment import TrackingEnv
from anyhull.learn.policies import GRU, Adapter, Student, Teacher
from anyhull.learn.randomization import Randomization
from anyhull.vessel import Vessel

SMALL = Distillation(
    total_steps=120 * 64 * 16,
    num_envs=64,
    rollout_steps=16,
    minibatches=4,
    learning_rate=3e-3,
    final_learning_rate=1e-3,
)


@cache
def teacher_with(scale, offset, size=1):
    """A teacher of one action with the known encoder z = scale · e + offset."""
    teacher = Teacher(1, size, 1, size, key=jax.random.key(0))
    assert teacher.encoder is not None
    known = (scale * jnp.eye(size), jnp.full((size,), offset))
    layer = eqx.tree_at(lambda layer: (layer.weight, layer.bias), teacher.encoder.layers[-1], known)
    return eqx.tree_at(lambda teacher: teacher.encoder.layers, teacher, (layer,))


def begin(probe=None, config=SMALL):
    return distillation.initial(jax.random.key(1), config, probe or Impulse(), teacher_with(2.0, 1.0))


def estimates(student, probe):
    """Squared errors of the estimate in each step of an episode, over many episodes, with the teacher's latents."""
    states = jax.vmap(probe.reset)(jax.random.uniform(jax.random.key(9), (256, 1)))
    z = student.teacher.latent(jax.vmap(probe.privileged)(states))
    memory, errors = jnp.zeros((256, student.memory_size)), []
    for _ in range(probe.episode_steps):
        seen = (jax.vmap(look)(states) for look in (probe.observe, probe.history, probe.privileged))
        action, estimate, memory = student.act(*seen, memory)
        errors.append(float(((estimate - z) ** 2).mean()))
        states, _ = jax.vmap(lambda f, a: probe.step(f, a, jnp.zeros(())))(states, action)
    return errors


def test_a_planted_latent_is_recovered_as_soon_as_the_history_shows_it():
    # A gain e uniform in [-1, 1) and z = 2 e + 1: the variance of z is 4/3, the error of who knows nothing.
    probe, start = Impulse(episode_steps=8), begin()
    run = jax.jit(
        lambda state: jax.lax.scan(lambda s, _: distillation.iterate(s, SMALL, probe), state, None, length=120)
    )
    end, metrics = run(start)
    first, *later = estimates(end.policy, probe)
    assert first > 0.9 * 4 / 3
    assert max(later) < 0.05 * 4 / 3
    # Over whole episodes 1/8 of the steps can know nothing, and the metric says so.
    assert 0.1 < metrics["latent_share"][-20:].mean() < 0.2
    assert metrics["latent_error"][-20:].mean() == pytest.approx(4 / 3 / 8, rel=0.4)
    assert end.iteration == SMALL.iterations == 120

    # The teacher, and with it the actor, is bit for bit what it was; the adapter is not.
    for before, after in zip(jax.tree.leaves(start.policy.teacher), jax.tree.leaves(end.policy.teacher), strict=True):
        np.testing.assert_array_equal(before, after)
    for before, after in zip(jax.tree.leaves(start.policy.adapter), jax.tree.leaves(end.policy.adapter), strict=True):
        assert not jnp.array_equal(before, after)


def silent_adapter(bias):
    """An adapter that answers `bias` to everything, and whose memory halves at every step."""
    zero = jax.tree.map(jnp.zeros_like, Adapter(9, len(bias), key=jax.random.key(0)))
    return eqx.tree_at(lambda a: a.projection.layers[-1].bias, zero, jnp.array(bias))


def test_the_loss_by_hand():
    # Estimates (1, 0) for latents (3, 1) and (1, 0): squared distances 4 + 1 and 0, mean 2.5.
    latent = jnp.array([[[3.0, 1.0]], [[1.0, 0.0]]])
    sequence = Sequence(jnp.zeros((2, 1, 9)), jnp.zeros((2, 1), bool), jnp.zeros((2, 1, 0)), latent)
    cost, distance = distillation.loss(silent_adapter([1.0, 0.0]), jnp.zeros((1, GRU)), sequence, 0.0)
    assert cost == distance == pytest.approx(2.5)


def test_the_loss_starts_from_the_memory_and_empties_it_at_a_reset():
    student = begin().policy
    history = jax.random.normal(jax.random.key(2), (3, 1, 9))
    full, empty = jnp.full((1, GRU), 0.5), jnp.zeros((1, GRU))

    def loss(memory, *resets, since=0):
        sequence = Sequence(history, jnp.array(resets)[:, None], jnp.zeros((3, 1, 0)), jnp.zeros((3, 1, 1)))
        return float(
            distillation.loss(student.adapter, memory, jax.tree.map(lambda leaf: leaf[since:], sequence), 0.0)[0]
        )

    assert loss(full, True, False, False) == loss(empty, False, False, False) != loss(full, False, False, False)
    # A reset before the second step splits the sequence: 1/3 of its loss is the first step's, 2/3 that of the rest.
    alone = float((student.adapter(history[0], full)[0] ** 2).sum())
    rest = loss(empty, False, False, False, since=1)
    assert loss(full, False, True, False) == pytest.approx((alone + 2 * rest) / 3, rel=1e-5)


def test_a_rollout_acts_on_the_adapters_estimate_and_empties_the_memory_at_a_reset():
    config, probe = Distillation(num_envs=2, rollout_steps=4, minibatches=1), Impulse(episode_steps=8)
    student = begin().policy

    def rollout(age, memory, student=student):
        states = State(jnp.full((2,), age), jnp.array([0.25, -0.5]), jnp.zeros((2, 1)))
        memory = jnp.full((2, GRU), memory)
        return distillation.collect(student, states, memory, jax.random.key(3), config, probe)

    # Age 7 of 8: the first step ends the episode.
    states, after, sequence = rollout(age=7, memory=0.0)
    np.testing.assert_array_equal(sequence.reset, [[False] * 2, [True] * 2, [False] * 2, [False] * 2])
    # The teacher's z = 2 e + 1 of the boat in each step.
    np.testing.assert_allclose(sequence.latent[0, :, 0], [1.5, 0.0])
    np.testing.assert_allclose(sequence.latent[1:, :, 0], jnp.tile(2 * states.secret + 1, (3, 1)), rtol=1e-6)
    # The history shows the speed, which is the gain, one step after the start, and the last action.
    np.testing.assert_array_equal(sequence.history[2, :, 3], states.secret)
    # What was remembered of the old boat is without effect on the new one ...
    _, also_after, also = rollout(age=7, memory=0.9)
    np.testing.assert_array_equal(also.history, sequence.history)
    np.testing.assert_array_equal(also_after, after)
    # ... and has one within an episode, through the actor, which reads the estimate.
    _, same_after, same = rollout(age=0, memory=0.0)
    _, other_after, other = rollout(age=0, memory=0.9)
    assert (jnp.abs(other.history - same.history)[1:, :, -1] > 0).all()
    assert (other_after != same_after).any()
    # The memory handed on is that after the last step, and empty where that step ended the episode.
    g = jnp.zeros((2, GRU))
    for h in same.history:
        _, g = student.adapter(h, g)
    np.testing.assert_allclose(same_after, g, atol=1e-6)
    np.testing.assert_array_equal(rollout(age=4, memory=0.9)[1], jnp.zeros((2, GRU)))


def test_adamw_decays_weights_and_its_rate_falls_linearly():
    # Two updates in all: rates 3e-4, 1.65e-4 and at the end 3e-5. A constant gradient makes Adam's direction 1, to
    # which a weight of 50 000 adds its decay of 1e-5 · 50 000 = 0.5.
    adam = distillation.optimizer(Distillation(total_steps=8, num_envs=4, rollout_steps=1, minibatches=1))
    weights, gradient = jnp.array([0.0, 5e4]), jnp.ones(2)
    moments = adam.init(weights)
    for rate in (3e-4, 1.65e-4, 3e-5):
        step, moments = adam.update(gradient, moments, weights)
        np.testing.assert_allclose(step, [-rate, -1.5 * rate], rtol=1e-4)


def test_the_mean_latent_is_the_mean_over_the_boats_of_the_training():
    # Boats scaled by s, log-uniform over a factor of 10 either way: the three peak accelerations change by 1/s, whose
    # logarithm has mean 0 and spread ln(10) / sqrt(3) = 1.33, so the mean over 4096 boats is known to 0.021.
    theta = Vessel.load("platform-a").theta
    center = theta.normalized
    environment = TrackingEnv(randomization=Randomization("scaled", theta, math.log(10.0)))
    student = Student(teacher_with(2.0, 1.0, size=9), begin().policy.adapter)
    mean = jax.jit(lambda student: phases.mean_latent(student, environment).fixed_latent)(student)
    logs = np.array([*np.log(center[:7]), np.log(-center[7]), np.arcsinh(center[8])])
    np.testing.assert_allclose(mean[:3], 2 * logs[:3] + 1, atol=2 * 4 * 0.021)
    np.testing.assert_allclose(mean[3:], 2 * logs[3:] + 1, rtol=1e-4)
    # It is not the latent of the boat in the middle: the three share one factor, and so one deviation.
    np.testing.assert_allclose(mean[:3] - 2 * logs[:3], np.full(3, mean[0] - 2 * logs[0]), atol=1e-4)
    assert abs(mean[0] - 2 * logs[0] - 1) > 1e-4


def test_the_loss_over_a_sequence_is_that_of_its_steps():
    one, two, three, four, five = jax.random.split(jax.random.key(7), 5)
    network = Adapter(9, 4, 6, key=one)
    history, told = jax.random.normal(two, (5, 3, 9)), jax.random.normal(three, (5, 3, 6))
    latent, memory = jax.random.normal(four, (5, 3, 4)), jax.random.normal(five, (3, GRU))
    reset = jnp.zeros((5, 3), bool).at[2, 1].set(True)
    found, distance = distillation.loss(network, memory, distillation.Sequence(history, reset, told, latent), 0.1)
    step = jax.jit(lambda h, g: network(h, g))
    apart, nll = [], []
    for t in range(5):
        z, memory = step(history[t], jnp.where(reset[t][:, None], 0.0, memory))
        apart.append(((z - latent[t]) ** 2).sum(-1))
        nll.append(network.nll(memory, told[t]))
    assert float(distance) == pytest.approx(float(jnp.mean(jnp.array(apart))), rel=1e-5)
    assert float(found) == pytest.approx(float(distance + 0.1 * jnp.mean(jnp.array(nll))), rel=1e-5)
