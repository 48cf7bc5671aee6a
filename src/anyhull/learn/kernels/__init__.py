"""Hand-written GPU kernels: each module has a plain JAX function, its equivalent kernel, and the choice of either."""

import jax

INTERPRET = False
"""Whether kernels run interpreted, without a GPU, for tests."""


def enabled() -> bool:
    """Whether kernels are used on this machine."""
    return INTERPRET or jax.default_backend() == "gpu"
