"""Hand-written GPU kernels: each module holds a plain JAX function, the kernel that equals it, and their choice."""

import jax

INTERPRET = False
"""Whether kernels are used without a GPU, interpreted, for tests."""


def enabled() -> bool:
    """Whether kernels are used on this machine: the one place where that is decided."""
    return INTERPRET or jax.default_backend() == "gpu"
