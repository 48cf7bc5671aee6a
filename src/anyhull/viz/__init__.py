"""Figures and animations of runs, and figures of missions. Needs Matplotlib."""

from anyhull.viz.animation import animate
from anyhull.viz.plan import draw_plan
from anyhull.viz.plots import fleet, plot

__all__ = ["animate", "draw_plan", "fleet", "plot"]
