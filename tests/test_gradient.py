"""First-order training: its pieces by hand, its gradient against finite differences, its ways back, and a boat."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from anyhull.learn import evaluate, gradient, methods
from anyhull.learn.gradient import Descent, bounded
from anyhull.learn.networks import Adapter, Student, Teacher
from anyhull.learn.task import Task
from anyhull.reference import rounded_rectangle
from anyhull.sea import Sea
from anyhull.vessel import PLATFORMS, Vessel

SMALL = Descent(updates=10, envs=2, steps=3)


@pytest.fixture(autouse=True)
def promotion():
    with jax.numpy_rank_promotion("allow"):
        yield


def fresh(privileged=9):
    return Teacher(72, privileged, 3, 4, key=jax.random.key(0))


def test_a_cotangent_is_cut_boat_by_boat():
    # Cotangents (3, 4), of norm 5, and (0.3, 0.4), of norm 0.5; cut to 1: (0.6, 0.8) and as it was.
    _, pull = jax.vjp(lambda x: bounded(x, jnp.asarray(1.0)), jnp.zeros((3, 2)))
    (cut,) = pull(jnp.array([[3.0, 4.0], [0.3, 0.4], [jnp.nan, 0.1]]))
    np.testing.assert_allclose(cut, [[0.6, 0.8], [0.3, 0.4], [0.0, 0.0]], rtol=1e-6)
    np.testing.assert_array_equal(bounded(jnp.array([[5.0]]), jnp.asarray(1.0)), [[5.0]])


def test_the_cost_by_hand():
    # 3 cm and 4 cm off: 5 cm. Half a turn and 0.1 rad off is wrapped. softness 0 leaves absolute values.
    config = replace(SMALL, softness=0.0, heading=0.5, velocity=0.1, change=0.2, effort=0.3, excess=0.4)
    boat = jnp.array([[0.03, 0.04, jnp.pi + 0.1, 0.5, 0.0, 0.0]])
    reference = jnp.array([[0.0, 0.0, -jnp.pi, 0.6, 0.0, 0.0]])
    command, previous = jnp.array([[1.5, 0.5, 0.0]]), jnp.array([[0.8, 0.5, 0.1]])
    terms = gradient.costs(boat, reference, command, previous, config)
    # The boat gets (1, 0.5, 0): changes 0.2 and 0.1, squares 1.25; 0.5 is asked for in excess.
    expected = {"position": 0.05, "heading": 0.05, "velocity": 0.01, "change": 0.06, "effort": 0.375, "excess": 0.2}
    assert terms.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(terms[name], [value], rtol=1e-4, err_msg=name)


def test_a_soft_error_is_quadratic_below_its_softness_and_linear_above():
    # sqrt(1 + 0.1²) - 1 = 0.0049876 and sqrt(1 + 100²) - 1 = 99.005, in units of the softness.
    np.testing.assert_allclose(gradient.soft(jnp.array([1e-8, 1e-2]), 1e-3), [4.9876e-6, 99.005e-3], rtol=1e-3)


def test_the_gradient_is_that_of_finite_differences():
    # In the field sea, where the way back also leads through the delay.
    task = Task(Sea.field(), tells_sea=True)
    config = replace(SMALL, bound=1e9)
    policy = fresh(task.privileged_size)
    # A louder actor, whose commands move the boat.
    head = policy.body.layers[-1].weight.at[0].multiply(30.0)
    object.__setattr__(policy.body.layers[-1], "weight", head)
    state = jax.jit(lambda key: gradient.initial(key, config, task, policy))(jax.random.key(1))
    weights, unflatten = gradient.fused.flat(policy)

    def cost(weights):
        return gradient.window(
            unflatten(weights), state.fleet, state.memory, jax.random.key(2), jnp.ones(()), config, task
        )[0]

    # One program for all: compiling is what takes the time here.
    both = jax.jit(jax.value_and_grad(cost))
    slope = both(weights)[1]
    direction = slope / jnp.linalg.norm(slope)
    # Central differences; float32 leaves about three digits.
    found = (both(weights + 3e-3 * direction)[0] - both(weights - 3e-3 * direction)[0]) / 6e-3
    assert found == pytest.approx(float(jnp.linalg.norm(slope)), rel=0.02)


def planted(monkeypatch, value, slope):
    """An update whose window costs `value`, with that slope in every weight."""

    def window(policy, fleet, memory, key, progress, config, task):
        total = sum(leaf.sum() for leaf in jax.tree.leaves(policy))
        return value + slope * (total - jax.lax.stop_gradient(total)), (fleet, memory, {})

    monkeypatch.setattr(gradient, "window", window)
    state = gradient.initial(jax.random.key(0), SMALL, Task(), fresh())
    return state, lambda state: gradient.iterate(state, SMALL, Task())


def test_what_is_not_a_number_never_reaches_the_weights(monkeypatch):
    state, iterate = planted(monkeypatch, 1.0, jnp.nan)
    after, metrics = iterate(state)
    assert metrics["dropped"] == 1.0
    assert all(np.isfinite(float(value)) for value in metrics.values())
    pairs = [jax.tree.leaves((training.policy, training.moments)) for training in (state, after)]
    for old, new in zip(*pairs, strict=True):
        np.testing.assert_array_equal(old, new)
    assert after.iteration == 1
    # Nor does a cost that is none tell the guard anything, however often it comes.
    state, iterate = planted(monkeypatch, 1.0, 1.0)
    good = iterate(state)[0]
    _, iterate = planted(monkeypatch, jnp.nan, 1.0)
    again = iterate(iterate(good)[0])[0]
    assert again.cost == good.cost == 1.0
    assert again.lowest == good.lowest
    assert not jnp.array_equal(good.policy.body.log_std, state.policy.body.log_std)


def test_weights_under_which_nothing_is_a_number_return_to_the_best_so_far(monkeypatch):
    state, iterate = planted(monkeypatch, 1.0, 1.0)
    good = iterate(state)[0]
    _, iterate = planted(monkeypatch, 1.5, 1.0)
    worse = iterate(good)[0]  # costlier, but not astray: these are not the weights to keep
    assert not jnp.array_equal(worse.policy.body.log_std, good.policy.body.log_std)
    _, iterate = planted(monkeypatch, jnp.nan, 1.0)
    seen = []
    for _ in range(gradient.PATIENCE):
        worse, metrics = iterate(worse)
        seen.append(float(metrics["astray"]))
    assert seen == [0.0] * (gradient.PATIENCE - 1) + [1.0]
    for old, new in zip(jax.tree.leaves(good.policy), jax.tree.leaves(worse.policy), strict=True):
        np.testing.assert_array_equal(old, new)
    assert worse.drops == 0


def test_weights_that_go_astray_return_to_the_best_so_far(monkeypatch):
    state, iterate = planted(monkeypatch, 1.0, 1.0)
    good, metrics = iterate(state)
    assert (good.cost, good.lowest, metrics["astray"]) == (1.0, 1.0, 0.0)
    # A window of cost 30 makes the smoothed cost 0.9 · 1 + 0.1 · 30 = 3.9, more than three times 1.01.
    _, iterate = planted(monkeypatch, 30.0, 1.0)
    back, metrics = iterate(good)
    assert metrics["astray"] == 1.0
    for old, new in zip(jax.tree.leaves(good.policy), jax.tree.leaves(back.policy), strict=True):
        np.testing.assert_array_equal(old, new)
    # One of cost 20 does not: 2.9 is less. The weights move on.
    _, iterate = planted(monkeypatch, 20.0, 1.0)
    on, metrics = iterate(good)
    assert metrics["astray"] == 0.0
    assert not jnp.array_equal(on.policy.body.log_std, good.policy.body.log_std)


def test_a_student_is_drawn_to_the_teachers_latent_and_reads_the_boat():
    task = Task()
    student = Student(fresh(), Adapter(9, 4, task.privileged_size, key=jax.random.key(1)))

    @jax.jit
    def seen(uniforms):
        fleet = jax.vmap(task.reset)(uniforms)
        return tuple(jax.vmap(look)(fleet) for look in (task.observe, task.recall, task.privileged))

    o, h, p = seen(jax.random.uniform(jax.random.key(2), (2, task.reset_draws)))
    _, memory, guess = gradient.decide(student, o, h, p, jnp.zeros((2, 128)))
    z, _ = student.adapter(h, jnp.zeros((2, 128)))
    off = gradient.estimates(student, *guess)["latent"]
    np.testing.assert_allclose(off, ((z - student.teacher.latent(p)) ** 2).sum(-1), rtol=1e-5)
    # A reader that says N(0, 1) of everything: half of the squares.
    reader = jax.tree.map(jnp.zeros_like, student.adapter.reader)
    object.__setattr__(student.adapter, "reader", reader)
    surprise = gradient.estimates(student, z, memory, p)["reading"]
    np.testing.assert_allclose(surprise, 0.5 * (p**2).sum(-1), rtol=1e-5)


def test_sixty_updates_steer_five_boats_that_were_not_among_those_trained_on():
    # The first of five hundred, so that the curriculum has hardly begun.
    config, task = Descent(updates=500, envs=32), Task(offset=methods.NEAR)
    e = jnp.array([Vessel.load(name).normalized for name in PLATFORMS])

    @jax.jit
    def error(policy):
        return evaluate.track(*methods.acting(policy, 5), e, rounded_rectangle())[0].mean()

    @jax.jit
    def begin(key):
        return gradient.initial(key, config, task, Teacher(72, 9, 3, key=key))

    state = begin(jax.random.key(0))
    before = float(error(state.policy))
    iterate = jax.jit(lambda state: gradient.iterate(state, config, task))
    for _ in range(60):
        state, metrics = iterate(state)
    assert np.isfinite(float(metrics["cost"]))
    # Measured: from 5.4 m down to 1.4 cm.
    assert error(state.policy) < before / 100
