"""Figures and animations of runs. Needs Matplotlib."""

from anyhull.viz.animation import animate
from anyhull.viz.plots import fleet, plot

__all__ = ["animate", "fleet", "plot"]
