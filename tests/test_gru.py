import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from anyhull.learn import kernels
from anyhull.learn.kernels import gru

KEY = jax.random.key(0)


@pytest.fixture(autouse=True, params=[False, True], ids=["loop", "kernel"])
def _either_way(request, monkeypatch):
    """As a loop, and as the kernels of a GPU, run without one."""
    monkeypatch.setattr(kernels, "INTERPRET", request.param)
    assert gru.fits(jnp.zeros((16, 16))) == request.param
    yield
    jax.clear_caches()


def sequence(t=7, n=16, i=4, g=16):
    one, two, three, four = jax.random.split(KEY, 4)
    cell = eqx.nn.GRUCell(i, g, key=one)
    # Biases begin at zero, where a wrong sign or a forgotten one would not show.
    cell = jax.tree.map(lambda leaf: leaf + 0.1 * jax.random.normal(two, leaf.shape), cell)
    x, m = jax.random.normal(three, (t, n, i)), jax.random.normal(four, (n, g))
    reset = jnp.zeros((t, n), bool).at[0, 1].set(True).at[3, 2].set(True).at[4, 2].set(True).at[6, 0].set(True)
    return cell, x, reset, m


def plain(cell, x, reset, m):
    memories = []
    for inputs, gone in zip(x, reset, strict=True):
        m = jax.vmap(cell)(inputs, jnp.where(gone[:, None], 0.0, m))
        memories.append(m)
    return jnp.stack(memories)


def test_a_sequence_is_the_cell_step_by_step():
    cell, x, reset, m = sequence()
    found, expected = (jax.jit(function)(cell, x, reset, m) for function in (gru.unroll, plain))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_its_derivative_is_that_of_the_plain_loop():
    cell, x, reset, m = sequence()
    weights = jax.random.normal(jax.random.key(1), (7, 16, 16))

    def by(function):
        def cost(cell, x, m):
            return (weights * function(cell, x, reset, m)).sum()

        return jax.tree.leaves(jax.jit(jax.grad(cost, argnums=(0, 1, 2)))(cell, x, m))

    ours, theirs = by(gru.unroll), by(plain)
    assert len(ours) == len(theirs) == 6
    for one, other in zip(ours, theirs, strict=True):
        assert jnp.abs(other).max() > 0.1
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    # What came before a reset is forgotten on the way back too.
    assert (ours[-1][1] == 0).all()
    assert (ours[-1][3] != 0).all()


def test_several_side_by_side_are_one_after_the_other():
    cell, x, reset, m = sequence()
    pair = jnp.stack([x, 2 * x])

    @jax.jit
    def slope(x):
        return jax.grad(lambda c: gru.unroll(c, x, reset, m).sum())(cell).weight_hh

    both = jax.vmap(slope)(pair)
    for i in range(2):
        np.testing.assert_allclose(both[i], slope(pair[i]), rtol=1e-4, atol=1e-5)
