"""One controller that steers any surface vessel along a trajectory, zero-shot."""

from anyhull.errors import InputError
from anyhull.vessel import Normalized, Thruster, Vessel, catalogue

__all__ = ["InputError", "Normalized", "Thruster", "Vessel", "catalogue"]
