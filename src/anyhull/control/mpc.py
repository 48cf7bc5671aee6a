"""Model predictive control: ten periods ahead with the vessel's own equations of motion, solved by CasADi.

    minimize    sum over k = 1..10 of (s_k - ref_k)ᵀ diag(q) (s_k - ref_k) + r |a_{k-1}|²
    subject to  s_{k+1} = RK4(s_k, a_k),  -1 <= a_k <= 1,  s_0 = the boat now

with states s = (x, y, psi, u, v, r) and normalized commands a. The problem is posed in the frame of the boat as it
lies now, so that it is the same wherever the boat is and wherever it heads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from anyhull import dynamics
from anyhull.controller import Array, checked
from anyhull.dynamics import PERIOD
from anyhull.errors import InputError
from anyhull.reference import PREVIEW
from anyhull.vessel import Vessel

try:
    import casadi as ca
except ImportError:
    ca = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Tuning:
    """What the controller pays for. The input reference is zero."""

    q: tuple[float, float, float, float, float, float]
    """Weight of the squared error in x, y, psi, u, v, r; x and y alike, as the boat's frame turns."""
    r: float
    """Weight of the squared normalized command on each axis."""


TUNINGS = {
    "tight": Tuning(q=(100.0, 100.0, 100.0, 1.0, 1.0, 1.0), r=1e-3),
    "paper": Tuning(q=(100.0, 100.0, 200.0, 1.0, 1.0, 1.0), r=1.0),
}
"""`tight` is as good as a perfect model gets; `paper` gives the figures of the paper's simulation study."""

SOLVER = "sqpmethod"

OPTIONS: dict[str, Any] = {
    "qpsol": "qrqp",
    "qpsol_options": {"print_iter": False, "print_header": False, "print_info": False, "error_on_fail": False},
    "max_iter": 10,
    "tol_pr": 1e-6,
    "tol_du": 1e-4,
    "error_on_fail": False,
    "print_header": False,
    "print_iteration": False,
    "print_status": False,
    "print_time": False,
    "show_eval_warnings": False,
}
"""The fastest of what CasADi ships, by `benchmarks/mpc.py`; nothing is compiled, as a boat may have no compiler."""


class SolveError(RuntimeError):
    """No command: the solver failed, and no earlier plan is left to follow."""


class MPC:
    """Follows the window with the least cost that the vessel's model predicts.

    A solve that fails is answered from the last plan, moved on by a period, and counted in `failures`; one that is cut
    short by its ten iterations but improves on that plan is no failure. `status` is the solver's own word on the last
    solve. When the plan is used up, `step` raises `SolveError`.
    """

    def __init__(self, vessel: Vessel, tuning: str = "tight") -> None:
        if ca is None:
            raise InputError("MPC needs CasADi, which is not installed: pip install 'anyhull[mpc]'")
        if tuning not in TUNINGS:
            raise InputError(f"tuning = {tuning!r}: must be one of {', '.join(map(repr, TUNINGS))}")
        self.vessel = vessel
        self.tuning = TUNINGS[tuning]
        # A command without effect is held at zero.
        self._reach = np.array([1.0 if limit > 0 else 0.0 for limit in vessel.limits])
        bound = np.hstack([np.tile(self._reach, (PREVIEW, 1)), np.full((PREVIEW, 6), np.inf)]).ravel()
        self._bounds = {"lbx": ca.DM(-bound), "ubx": ca.DM(bound), "lbg": 0.0, "ubg": 0.0}
        self._unroll: Any = unroll(vessel)
        nlp, hessian = transcribe(vessel, self.tuning)
        self._cost: Any = ca.Function("cost", [nlp["x"], nlp["p"]], [nlp["f"]])
        self._solver: Any = ca.nlpsol("mpc", SOLVER, nlp, {**OPTIONS, "hess_lag": hessian})
        self.reset()

    def reset(self) -> None:
        """Forget the plan and the failures."""
        self.failures = 0
        """Solves that failed since the last reset."""
        self.status = ""
        """The solver's return status of the last solve."""
        self._plan: Array | None = None  # commands, (10, 3), the first of them given last
        self._left = 0  # how many of them are still to be given

    def step(self, pose: ArrayLike, velocity: ArrayLike, window: ArrayLike) -> Array:
        """The normalized command in [-1, 1]³ for the coming period."""
        now, nu, reference = checked(pose, velocity, window)
        # The reference may be whole turns away from the heading that a compass gives.
        now = now + np.array([0.0, 0.0, math.tau * round((reference[0, 2] - now[2]) / math.tau)])
        ahead = seen_from(now, reference[1:])
        guess = np.zeros((PREVIEW, 3)) if self._plan is None else np.vstack([self._plan[1:], self._plan[-1:]])
        plan = self._solve(guess, nu, ahead)
        if plan is not None:
            self._left = PREVIEW
        else:
            self.failures += 1
            if self._left == 0:
                raise SolveError(
                    f"MPC of {self.vessel.name}: the solve failed ({self.status}), and no earlier plan is left"
                )
            plan = guess
        self._left -= 1
        self._plan = plan
        command: Array = np.clip(plan[0], -self._reach, self._reach)
        return command

    def _solve(self, guess: Array, velocity: Array, ahead: Array) -> Array | None:
        """Ten commands (10, 3), or None where the solver found none."""
        given = np.concatenate([velocity, ahead.ravel()])
        try:
            # Where the guessed commands lead is a start without gaps, however far the boat has been pushed off.
            start = self._unroll(guess.T, velocity)
            solution = self._solver(x0=start, p=given, **self._bounds)
        except RuntimeError as error:  # CasADi's own, as for numbers that overflow
            self.status = str(error).strip().splitlines()[-1]
            return None
        stats = self._solver.stats()
        self.status = stats["return_status"]
        commands: Array = np.asarray(solution["x"]).reshape(PREVIEW, 9)[:, :3]
        if not np.isfinite(commands).all():
            return None
        # Far off the reference the iterations may run out; what they have gained by then is worth taking.
        if stats["success"] or self._cost(self._unroll(commands.T, velocity), given) < self._cost(start, given):
            return commands
        return None


def seen_from(pose: Array, states: Array) -> Array:
    """States (n, 6) of the inertial frame in the frame of a boat at `pose`."""
    cos, sin = math.cos(pose[2]), math.sin(pose[2])
    x, y, psi = (states[:, :3] - pose).T
    return np.column_stack([cos * x + sin * y, cos * y - sin * x, psi, states[:, 3:]])


def parts(vessel: Vessel) -> int:
    """RK4 steps in a control period of the prediction: as few as keep each within 0.7 / damping rate.

    One step of the classical method is then off by less than 0.7⁵/120 of the motion it predicts. Unlike
    `dynamics.substeps` there is no upper length of step, since every step costs time to solve.
    """
    return max(1, math.ceil(PERIOD * vessel.stiffness / 0.7))


def model(vessel: Vessel) -> Any:
    """The prediction (state, command) -> state one period later, as a CasADi function."""
    state, command = ca.SX.sym("state", 6), ca.SX.sym("command", 3)
    forces = [ca.vertsplit(command)] * parts(vessel)
    after = dynamics.step(ca.vertsplit(state), forces, vessel.normalized, drag=vessel.drag)
    return ca.Function("model", [state, command], [ca.vertcat(*after)])


def unroll(vessel: Vessel) -> Any:
    """(commands (3, 10), velocity) -> the unknowns of `transcribe` where those commands lead, as a CasADi function."""
    predict = model(vessel)
    commands, velocity = ca.SX.sym("commands", 3, PREVIEW), ca.SX.sym("velocity", 3)
    state, unknowns = ca.vertcat(0, 0, 0, velocity), []
    for k in range(PREVIEW):
        state = predict(state, commands[:, k])
        unknowns += [commands[:, k], state]
    return ca.Function("unroll", [commands, velocity], [ca.vertcat(*unknowns)])


def transcribe(vessel: Vessel, tuning: Tuning) -> tuple[dict[str, Any], Any]:
    """The problem as CasADi's nlpsol takes it, and the Gauss-Newton Hessian of its cost.

    Multiple shooting: the unknowns are ten times (command, state it leads to), the parameters the velocity now and
    the ten reference states ahead, in the boat's frame. The states are unknowns, so the cost is a sum of squares of
    linear terms and its Hessian constant; the curvature of the model is left out, which near the reference is
    nothing and saves its evaluation.
    """
    predict = model(vessel)
    velocity, ahead = ca.SX.sym("velocity", 3), ca.SX.sym("ahead", 6, PREVIEW)
    state = ca.vertcat(0, 0, 0, velocity)
    unknowns, gaps, residuals = [], [], []
    for k in range(PREVIEW):
        command, reached = ca.SX.sym(f"a_{k}", 3), ca.SX.sym(f"s_{k + 1}", 6)
        gaps.append(predict(state, command) - reached)
        residuals += [np.sqrt(tuning.r) * command, np.sqrt(tuning.q) * (reached - ahead[:, k])]
        unknowns += [command, reached]
        state = reached
    x, p, residual = ca.vertcat(*unknowns), ca.vertcat(velocity, ca.vec(ahead)), ca.vertcat(*residuals)
    nlp = {"x": x, "p": p, "f": ca.sumsqr(residual) / 2, "g": ca.vertcat(*gaps)}
    slope = ca.jacobian(residual, x)
    scale, multipliers = ca.SX.sym("scale"), ca.SX.sym("multipliers", 6 * PREVIEW)
    return nlp, ca.Function("hessian", [x, p, scale, multipliers], [scale * slope.T @ slope])
