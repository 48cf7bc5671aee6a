"""What the loop took and gave in one period."""

from __future__ import annotations

from typing import NamedTuple

from anyhull.backend import Array
from anyhull.onboard.allocation import Allocation
from anyhull.onboard.estimator import Estimate
from anyhull.onboard.guard import Decision
from anyhull.onboard.messages import Command
from anyhull.onboard.tracker import Phase


class StepRecord(NamedTuple):
    """Inputs and outputs of one period."""

    time: float
    """s, in the boat's clock."""
    phase: Phase
    progress: float
    """Time of the reference, s; negative while leading in."""
    estimate: Estimate
    reference: Array
    """(x, y, psi, u, v, r) of the reference."""
    decision: Decision
    allocation: Allocation
    command: Command
    """The message to send."""
    latent: Array | None
    """The controller's latent where it has one."""
    compute_time: float
    """Of the controller, s."""
    dynamics: Array | None
    """The controller's estimate of the nine components e, then their spreads (`anyhull.pilot.Dynamics`), if any."""
    sensors: Array
    """The last measurement of each sensor within the period (`anyhull.log.SENSORS`); NaN where there is none."""
