"""Strict tests: shapes checked at run time, no silent promotion of ranks or types, in every process."""

import os
from importlib.metadata import version

# Two cores are shared by the workers of the test run, and most of its time is compilation. The last flag takes a third
# of that; jaxlib ends the process at one that it does not know.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_cpu_multi_thread_eigen=false --xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
    + " --xla_cpu_use_fusion_emitters=false" * version("jaxlib").startswith("0.10."),
)
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")
os.environ["JAX_NUMPY_RANK_PROMOTION"] = "raise"  # in the processes that tests start, too

from jaxtyping import install_import_hook

with install_import_hook("anyhull.learn", "beartype.beartype"):
    import anyhull.learn.evaluate
    import anyhull.learn.phases  # noqa: F401

import jax
import optax
import pytest

from anyhull.paper import PLATFORMS
from anyhull.vessel import Vessel

jax.config.update("jax_numpy_dtype_promotion", "strict")


def _with_its_own_promotion(make):
    """Optax raises floats to the power of integers: its arithmetic is not ours to be strict about."""

    def made(*arguments, **options):
        transformation = make(*arguments, **options)

        def update(*given):
            with jax.numpy_dtype_promotion("standard"):
                return transformation.update(*given)

        return optax.GradientTransformation(transformation.init, update)

    return made


for _name in ("adamw", "chain"):
    setattr(optax, _name, _with_its_own_promotion(getattr(optax, _name)))


@pytest.fixture(params=PLATFORMS)
def platform(request):
    """Each of the paper's five platforms."""
    return Vessel.load(request.param)
