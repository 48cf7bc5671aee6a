"""Model predictive control: ten periods ahead with the vessel's own equations of motion, solved by CasADi.

    minimize    sum over k = 1..10 of (s_k - ref_k)ᵀ diag(q) (s_k - ref_k) + r |a_{k-1}|² + rate |alpha Δa_{k-1}|²
    subject to  s_{k+1} = RK4(s_k, a_k + f),  -1 <= a_k <= 1,  s_0 = the boat when a_0 takes effect

with states s = (x, y, psi, u, v, r), normalized commands a, their change Δa from one period to the next and peak
accelerations alpha. The problem is posed in the frame of s_0, so that it is invariant to position and heading.

In the tuning `field`, s_0 is the state predicted over the nominal delay with the commands already issued. A disturbance
observer estimates the force f: each period it adds a share of the prediction error (offset-free MPC). In the other
tunings s_0 is the current state and f is zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from anyhull import dynamics
from anyhull.backend import Array, to_body
from anyhull.controller import check_inputs
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
    """Weights of the cost, delay and observer gain. The input reference is zero."""

    q: tuple[float, float, float, float, float, float]
    """Weight of the squared error in x, y, psi, u, v, r; equal for x and y, since the frame rotates."""
    r: float
    """Weight of the squared normalized command on each axis."""
    rate: float = 0.0
    """Weight of the squared change of command per period, as an acceleration (m/s², rad/s²)."""
    delay: int = 0
    """Nominal actuator delay, control periods."""
    observer: float = 0.0
    """Gain of the disturbance observer per period, 0 to 1."""

    def __post_init__(self) -> None:
        if not 0 <= self.delay < PREVIEW:
            raise InputError(f"delay = {self.delay!r}: must be 0 to {PREVIEW - 1} control periods")
        if not 0 <= self.observer <= 1:
            raise InputError(f"observer = {self.observer!r}: must be 0 to 1")


TUNINGS = {
    "tight": Tuning(q=(100.0, 100.0, 100.0, 1.0, 1.0, 1.0), r=1e-3),
    "paper": Tuning(q=(100.0, 100.0, 200.0, 1.0, 1.0, 1.0), r=1.0),
    "field": Tuning(q=(100.0, 100.0, 170.0, 5.9, 5.9, 28.0), r=0.2, rate=0.66, delay=1, observer=0.13),
}
"""`tight` has the lowest error with a perfect model; `paper` reproduces the paper's simulation study; `field` is the
best of `benchmarks/field_mpc.py` for wind, current and a delay of 0 to 200 ms."""

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
"""The fastest solver in CasADi, by `benchmarks/mpc.py`; no generated code, as a boat may have no compiler."""


class MPC:
    """Minimizes the predicted tracking cost over the window.

    A failed solve is counted in `failures`. The command is then the next one of the last plan, or zero once that plan
    is used up: without thrust a boat slows down, while held thrust may drive it anywhere. A solve that reaches the
    iteration limit but improves on the last plan is not a failure. `status` is the solver's status of the last solve.
    """

    def __init__(self, vessel: Vessel, tuning: str | Tuning = "tight") -> None:
        if ca is None:
            raise InputError("MPC needs CasADi, which is not installed: pip install 'anyhull[mpc]'")
        if isinstance(tuning, str):
            if tuning not in TUNINGS:
                raise InputError(f"tuning = {tuning!r}: must be one of {', '.join(map(repr, TUNINGS))}")
            tuning = TUNINGS[tuning]
        self.vessel = vessel
        self.tuning = tuning
        # A command without effect is held at zero.
        self._limit = np.array([1.0 if limit > 0 else 0.0 for limit in vessel.limits])
        self._horizon = horizon(tuning)
        bound = np.hstack([np.tile(self._limit, (self._horizon, 1)), np.full((self._horizon, 6), np.inf)]).ravel()
        self._bounds = {"lbx": ca.DM(-bound), "ubx": ca.DM(bound), "lbg": 0.0, "ubg": 0.0}
        self._model: Any = model(vessel)
        self._gain = np.array([float(self._model(np.zeros(6), axis)[3 + i]) for i, axis in enumerate(np.eye(3))])
        self._unroll: Any = unroll(vessel, self._horizon)
        nlp, hessian = transcribe(vessel, tuning)
        self._cost: Any = ca.Function("cost", [nlp["x"], nlp["p"]], [nlp["f"]])
        self._solver: Any = ca.nlpsol("mpc", SOLVER, nlp, {**OPTIONS, "hess_lag": hessian})
        self.reset()

    def reset(self) -> None:
        """Clear the plan, the commands in transit, the estimated force and the failures."""
        self.failures = 0
        """Solves that failed since the last reset."""
        self.status = ""
        """The solver's return status of the last solve."""
        self.force = np.zeros(3)
        """Estimated disturbance force, body frame, fractions of the limits."""
        self._plan = np.zeros((self._horizon, 3))  # its first command was issued last
        self._remaining = 0  # commands of the plan not yet issued
        self._issued = [np.zeros(3)] * (self.tuning.delay + 1)  # from the active command to the one issued last
        self._previous: Array | None = None  # state one period ago

    def step(self, pose: ArrayLike, velocity: ArrayLike, window: ArrayLike) -> Array:
        """The normalized command in [-1, 1]³ for the coming period."""
        now, nu, reference = check_inputs(pose, velocity, window)
        # The reference heading is continuous; the measured heading is wrapped.
        now = now + np.array([0.0, 0.0, math.tau * round((reference[0, 2] - now[2]) / math.tau)])
        boat = np.concatenate([now, nu])
        self._observe(boat)
        start = boat
        for pending in self._issued[1:]:
            start = self._after(start, pending)
        ahead = seen_from(start[:3], reference[1 + self.tuning.delay :])
        guess = np.vstack([self._plan[1:], self._plan[-1:]])
        plan = self._solve(guess, start[3:], ahead)
        if plan is not None:
            self._remaining = self._horizon
        else:
            self.failures += 1
            plan = guess if self._remaining > 0 else np.zeros_like(guess)
        self._remaining = max(self._remaining - 1, 0)
        self._plan = plan
        command: Array = np.clip(plan[0], -self._limit, self._limit)
        self._issued = [*self._issued[1:], command]
        self._previous = boat
        return command

    def _after(self, state: Array, command: Array) -> Array:
        """The predicted state one period later with this command and the estimated force."""
        after: Array = np.asarray(self._model(state, command + self.force)).ravel()
        return after

    def _observe(self, boat: Array) -> None:
        """Disturbance observer: correct the estimated force by the last period's prediction error."""
        if self._previous is None or self.tuning.observer == 0:
            return
        error = (boat - self._after(self._previous, self._issued[0]))[3:]
        force_error = np.divide(error, self._gain, out=np.zeros(3), where=self._gain > 0)
        self.force = np.clip(self.force + self.tuning.observer * force_error, -1.0, 1.0)

    def _solve(self, guess: Array, velocity: Array, ahead: Array) -> Array | None:
        """The commands of the horizon, (n, 3), or None if the solver failed."""
        parameters = np.concatenate([velocity, self.force, self._issued[-1], ahead.ravel()])
        try:
            # The unrolled guess has no defects, whatever the disturbance since the last solve.
            start = self._unroll(guess.T, velocity, self.force)
            solution = self._solver(x0=start, p=parameters, **self._bounds)
        except RuntimeError as error:  # raised by CasADi, for example on overflow
            self.status = str(error).strip().splitlines()[-1]
            return None
        stats = self._solver.stats()
        self.status = stats["return_status"]
        commands: Array = np.asarray(solution["x"]).reshape(-1, 9)[:, :3]
        if not np.isfinite(commands).all():
            return None
        # With all commands saturated the guess can be the optimum, without a search direction.
        if stats["success"] or self.status == "Search_Direction_Becomes_Too_Small":
            return commands
        # Far from the reference the iteration limit may be reached; an improved plan is still used.
        reached = self._unroll(commands.T, velocity, self.force)
        return commands if self._cost(reached, parameters) < self._cost(start, parameters) else None


def seen_from(pose: Array, states: Array) -> Array:
    """Inertial-frame states (n, 6) in the frame of a boat at `pose`."""
    x, y, psi = (states[:, :3] - pose).T
    return np.column_stack([*to_body(x, y, float(pose[2])), psi, states[:, 3:]])


def parts(vessel: Vessel) -> int:
    """RK4 steps per control period of the prediction: the fewest of at most 0.7 / damping rate each.

    The error of a step is then below 0.7⁵/120 of the predicted motion. Unlike in `dynamics.substeps` the step length
    has no upper limit, since every step costs solution time.
    """
    return max(1, math.ceil(PERIOD * vessel.stiffness / 0.7))


def model(vessel: Vessel) -> Any:
    """The prediction (state, command) -> state one period later, as a CasADi function."""
    state, command = ca.SX.sym("state", 6), ca.SX.sym("command", 3)
    forces = [ca.vertsplit(command)] * parts(vessel)
    after = dynamics.step(ca.vertsplit(state), forces, vessel.normalized, drag=vessel.drag)
    return ca.Function("model", [state, command], [ca.vertcat(*after)])


def horizon(tuning: Tuning) -> int:
    """Periods of a plan, from when its first command takes effect to the end of the window."""
    return PREVIEW - tuning.delay


def unroll(vessel: Vessel, periods: int) -> Any:
    """(commands (3, n), velocity, force) -> the unknowns of `transcribe` under these commands, as a CasADi function."""
    predict = model(vessel)
    commands, velocity, force = ca.SX.sym("commands", 3, periods), ca.SX.sym("velocity", 3), ca.SX.sym("force", 3)
    state, unknowns = ca.vertcat(0, 0, 0, velocity), []
    for k in range(periods):
        state = predict(state, commands[:, k] + force)
        unknowns += [commands[:, k], state]
    return ca.Function("unroll", [commands, velocity, force], [ca.vertcat(*unknowns)])


def transcribe(vessel: Vessel, tuning: Tuning) -> tuple[dict[str, Any], Any]:
    """The problem as CasADi's nlpsol takes it, and the Gauss-Newton Hessian of its cost.

    Multiple shooting: the unknowns are for each period (command, state it leads to), the parameters the velocity at the
    start, the force, the command issued last and the reference states, in the boat's frame. The states are unknowns,
    so the cost is a sum of squares of linear terms and its Hessian constant. The curvature of the model is omitted: it
    is negligible near the reference.
    """
    predict, periods = model(vessel), horizon(tuning)
    velocity, force, last = (ca.SX.sym(name, 3) for name in ("velocity", "force", "last"))
    ahead = ca.SX.sym("ahead", 6, periods)
    rate_weight = np.sqrt(tuning.rate) * np.array(vessel.normalized[:3])
    state, previous = ca.vertcat(0, 0, 0, velocity), last
    unknowns, gaps, residuals = [], [], []
    for k in range(periods):
        command, reached = ca.SX.sym(f"a_{k}", 3), ca.SX.sym(f"s_{k + 1}", 6)
        gaps.append(predict(state, command + force) - reached)
        residuals += [np.sqrt(tuning.r) * command, np.sqrt(tuning.q) * (reached - ahead[:, k])]
        if tuning.rate > 0:
            residuals.append(rate_weight * (command - previous))
        unknowns += [command, reached]
        state, previous = reached, command
    x, residual = ca.vertcat(*unknowns), ca.vertcat(*residuals)
    p = ca.vertcat(velocity, force, last, ca.vec(ahead))
    nlp = {"x": x, "p": p, "f": ca.sumsqr(residual) / 2, "g": ca.vertcat(*gaps)}
    jacobian = ca.jacobian(residual, x)
    scale, multipliers = ca.SX.sym("scale"), ca.SX.sym("multipliers", 6 * periods)
    return nlp, ca.Function("hessian", [x, p, scale, multipliers], [scale * jacobian.T @ jacobian])
