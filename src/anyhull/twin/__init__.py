"""The sea-trial twin: a simulated boat that differs from the model used for training and tuning."""

from anyhull.twin.twin import Twin, TwinConfig, with_thrusters
from anyhull.twin.water import WATERS, Water

__all__ = ["WATERS", "Twin", "TwinConfig", "Water", "with_thrusters"]
