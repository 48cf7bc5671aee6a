"""The GPU kernels, run without a GPU, against the plain functions that they stand for."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from anyhull.dynamics import SUBSTEP, derivative, rk4
from anyhull.learn import config as presets
from anyhull.learn import kernels, phases, ppo
from anyhull.learn.kernels import dynamics as dynamics_kernel
from anyhull.learn.kernels.ppo import fits, gradient, loss
from anyhull.learn.policies import flatten
from anyhull.learn.randomization import Randomization


@pytest.mark.parametrize(("method", "steps"), [("teacher", 16), ("ppo-general", 32)])
def test_the_kernel_of_the_gradient_is_that_of_the_loss(method, steps, monkeypatch):
    config = presets.paper(method)
    config = replace(config, ppo=replace(config.ppo, num_envs=8, rollout_steps=steps, minibatches=2))
    state = jax.jit(lambda key: phases.phases(config)[0].initial(key, None))(jax.random.key(0))
    # Old environments, so that some are reset on the way.
    states = state.env_state._replace(age=jnp.arange(8) + 1000 - steps)

    @jax.jit
    def learn(policy):
        begun = policy, states, state.memory, jax.random.key(1), jnp.asarray(0.5)
        _, _, trajectory, privileged, _ = ppo.collect(*begun, config.ppo, config.environment)
        return ppo.prepare(policy, trajectory, privileged, config.ppo)

    batch = learn(state.policy)
    assert batch.renewed.any()
    assert not batch.renewed.all()
    # A policy that has moved on, so that ratios are not 1 and some are clipped.
    noise = jax.tree.map(lambda leaf: 0.02 * jax.random.normal(jax.random.key(2), leaf.shape), state.policy)
    policy = jax.tree.map(jnp.add, state.policy, noise)
    envs = jnp.array([6, 1, 3, 4])
    mini = jax.tree.map(lambda leaf: leaf[envs], batch)
    expected, divergence = jax.jit(lambda p: jax.grad(loss, has_aux=True)(p, mini, config.ppo))(policy)
    weights, back = flatten(policy)
    monkeypatch.setattr(kernels, "INTERPRET", True)
    assert fits(policy, config.ppo)
    found, divergences = jax.jit(lambda w: gradient(policy, batch, config.ppo)(w, envs))(weights)
    for one, two in zip(jax.tree.leaves(expected), jax.tree.leaves(back(found)), strict=True):
        np.testing.assert_allclose(two, one, rtol=1e-4, atol=1e-6)
    assert divergences == pytest.approx(float(divergence), rel=1e-4)
    # Nothing lies between the leaves.
    np.testing.assert_array_equal(flatten(back(found))[0], found)


def test_a_flat_policy_has_every_leaf_at_a_multiple_of_sixteen():
    tree = {"a": jnp.arange(3.0), "b": jnp.arange(17.0).reshape(1, 17) + 10, "c": jnp.array([99.0])}
    vector, back = flatten(tree)
    assert vector.shape == (16 + 32 + 16,)
    assert [float(vector[i]) for i in (0, 16, 48)] == [0.0, 10.0, 99.0]
    for one, two in zip(jax.tree.leaves(tree), jax.tree.leaves(back(vector)), strict=True):
        np.testing.assert_array_equal(one, two)


def test_the_kernel_of_the_motion_and_its_derivative_are_those_of_the_equations(monkeypatch):
    monkeypatch.setattr(kernels, "INTERPRET", True)
    keys = jax.random.split(jax.random.key(0), 4)
    e = jax.vmap(Randomization().sample)(jax.random.uniform(keys[0], (5, 8)))
    boats, current = 0.3 * jax.random.normal(keys[1], (5, 6)), 0.1 * jax.random.normal(keys[3], (5, 2))
    # One part: compiled for a CPU, more of them written out take minutes.
    forces = jax.random.uniform(keys[2], (5, 1, 3), minval=-1.0)

    quadratic = jax.random.uniform(jax.random.key(4), (5, 3))

    def total(move):
        weights = jnp.arange(1.0, 7.0)[None]
        return lambda boats, forces: (jax.vmap(move)(boats, forces, e, current, quadratic) * weights).sum()

    moved = jax.vmap(dynamics_kernel.move_kernel)(boats, forces, e, current, quadratic)
    for i in range(5):
        rate = partial(derivative, force=forces[i, 0], e=e[i], current=current[i], drag=(quadratic[i], (0.0, 0.0, 0.0)))
        after = rk4(rate, tuple(boats[i]), SUBSTEP)
        np.testing.assert_allclose(moved[i], jnp.stack(after), rtol=1e-5, atol=1e-6)
    expected = jax.jit(jax.grad(total(dynamics_kernel.move_plain), argnums=(0, 1)))(boats, forces)
    found = jax.jit(jax.grad(total(dynamics_kernel.move_kernel), argnums=(0, 1)))(boats, forces)
    for one, two in zip(expected, found, strict=True):
        np.testing.assert_allclose(two, one, rtol=1e-4, atol=1e-5)
