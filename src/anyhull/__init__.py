"""One controller that steers any surface vessel along a trajectory, zero-shot."""

from anyhull.controller import Controller
from anyhull.errors import InputError
from anyhull.hydrodynamics import Normalized
from anyhull.log import Log, Metrics
from anyhull.mission import Mission
from anyhull.pilot import Pilot
from anyhull.reference import Reference, circle, figure_eight, hold, legs, line, rounded_rectangle, through
from anyhull.sea import Sea
from anyhull.simulate import simulate
from anyhull.thrusters import Thruster
from anyhull.vessel import Vessel, catalogue

__all__ = [
    "Controller",
    "InputError",
    "Log",
    "Metrics",
    "Mission",
    "Normalized",
    "Pilot",
    "Reference",
    "Sea",
    "Thruster",
    "Vessel",
    "catalogue",
    "circle",
    "figure_eight",
    "hold",
    "legs",
    "line",
    "rounded_rectangle",
    "simulate",
    "through",
]
