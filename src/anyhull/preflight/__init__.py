"""The preflight assessment: how the hulls that a boat's file may describe would fare, by sails in the twin."""

from anyhull.preflight.assessment import HULLS, Assessment, assess

__all__ = ["HULLS", "Assessment", "assess"]
