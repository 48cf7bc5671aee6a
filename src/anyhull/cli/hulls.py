"""What the commands say about a boat's file: odd values, and hulls that it leaves open."""

from __future__ import annotations

import sys
from collections.abc import Callable

from anyhull.hulls import note
from anyhull.unusual import warnings
from anyhull.vessel import Vessel


def print_line(line: str) -> None:
    """Print a line to stderr."""
    print(line, file=sys.stderr, flush=True)


def say_warnings(vessel: Vessel, say: Callable[[str], None] = print_line) -> None:
    """Print the odd values of a boat's file."""
    for line in warnings(vessel):
        say(f"warning: {vessel.name}: {line}")


def say_hull(vessel: Vessel, seed: int, runs: int = 1) -> None:
    """Print which plausible hulls a simulation draws, if any."""
    if line := note(vessel, seed, runs):
        print_line(f"{vessel.name}: {line}")
