"""Strict tests: shapes checked at run time, no silent promotion of ranks."""

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

from jaxtyping import install_import_hook

with install_import_hook("anyhull.learn", "beartype.beartype"):
    import anyhull.learn.adapter
    import anyhull.learn.boats
    import anyhull.learn.evaluate
    import anyhull.learn.gru
    import anyhull.learn.methods
    import anyhull.learn.networks
    import anyhull.learn.ppo
    import anyhull.learn.reward
    import anyhull.learn.task  # noqa: F401

import jax
import pytest

from anyhull.vessel import PLATFORMS, Vessel

jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture(params=PLATFORMS)
def platform(request):
    """Each of the paper's five platforms."""
    return Vessel.load(request.param)
