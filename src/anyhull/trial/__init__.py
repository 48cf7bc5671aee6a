"""The sea-trial twin: a boat on the water that is not the model which controllers were trained on or tuned with."""

from anyhull.trial.twin import Nature, Twin, fitted
from anyhull.trial.water import WATERS, Water

__all__ = ["WATERS", "Nature", "Twin", "Water", "fitted"]
