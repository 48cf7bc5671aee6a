"""Model predictive control: ten periods ahead with the vessel's own equations of motion, solved by CasADi.

    minimize    sum over k = 1..10 of (s_k - ref_k)ᵀ diag(q) (s_k - ref_k) + r |a_{k-1}|² + rate |alpha Δa_{k-1}|²
    subject to  s_{k+1} = RK4(s_k, a_k + f),  -1 <= a_k <= 1,  s_0 = the boat when a_0 takes effect

with states s = (x, y, psi, u, v, r), normalized commands a, their change Δa from one period to the next and peak
accelerations alpha. The problem is posed in the frame of s_0, so that it is invariant to position and heading.

For boats that cannot push sideways position counts and the heading follows from it; the horizon goes on beyond the
window, where the reference keeps its last twist, since ten periods are too short for a boat that turns unstable at
speed (Qiuxin: 73 cm, 0.04 with 15 more). Their `field` has a bank of Kalman filters in place of the observer
(`anyhull.control.disturbance`), which also estimates current and delay.

In the tuning `field`, s_0 is the state predicted over the nominal delay with the commands already issued. A disturbance
observer estimates the force f: each period it adds a share of the prediction error (offset-free MPC). In the other
tunings s_0 is the current state and f is zero. Lengths and times are in the units of the vessel's scale, so that a
ship is tuned as a model is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from anyhull import dynamics
from anyhull.backend import Array, to_body, to_inertial
from anyhull.control.disturbance import KEEP, DisturbanceFilter
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
    beyond: int = 0
    """Periods of the horizon beyond the window, in which the reference keeps its last twist."""
    noise: float = 0.0
    """Standard deviation of the predicted velocity for the filter of current and force, m/s and rad/s; 0: no filter."""

    @property
    def fade(self) -> float:
        """Share of the estimated force that is left after a period of the prediction."""
        return float(KEEP[-1]) if self.noise > 0 else 1.0

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
"""`tight` has the lowest error with a perfect model; `paper` was fitted to the paper's simulation study; `field` is the
best of `benchmarks/field_mpc.py` for wind, current and a delay of 0 to 200 ms."""

UNDER_ACTUATED = {
    "tight": Tuning(q=(100.0, 100.0, 0.0063, 0.033, 0.033, 0.011), r=3.4e-5, rate=6.6e-5, beyond=15),
    "field": Tuning(q=(100.0, 100.0, 1.2, 0.29, 0.29, 0.12), r=1.1e-3, rate=0.16, delay=1, beyond=10, noise=4.1e-3),
}
"""The same for boats that cannot push sideways: position counts, and the heading follows from it. Both are the best of
`benchmarks/under_mpc.py`, on references and seeds that are not reported."""

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
            tuning = (UNDER_ACTUATED if vessel.under_actuated and tuning in UNDER_ACTUATED else TUNINGS)[tuning]
        self.vessel = vessel
        self.tuning = tuning
        # A command without effect is held at zero.
        self._limit = np.array([1.0, 0.0 if vessel.under_actuated else 1.0, 1.0])
        self._horizon = horizon(tuning)
        bound = np.hstack([np.tile(self._limit, (self._horizon, 1)), np.full((self._horizon, 6), np.inf)]).ravel()
        self._bounds = {"lbx": ca.DM(-bound), "ubx": ca.DM(bound), "lbg": 0.0, "ubg": 0.0}
        self._motion: Any = motion(vessel)
        self._gain = np.array(
            [float(self._motion(np.zeros(6), axis, 0.0, PERIOD)[3 + i]) for i, axis in enumerate(np.eye(3))]
        )
        self._filter = DisturbanceFilter(self._motion, tuning.noise) if tuning.noise > 0 else None
        self._unroll: Any = unroll(vessel, self._horizon, tuning.fade)
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
        self.current = np.zeros(2)
        """Estimated current, inertial frame, m/s."""
        if self._filter:
            self._filter.reset()
        self._plan = np.zeros((self._horizon, 3))  # its first command was issued last
        self._remaining = 0  # commands of the plan not yet issued
        self._issued = [np.zeros(3)] * max(self.tuning.delay + 1, 3)  # newest first
        self._previous: Array | None = None  # state one period ago

    def step(self, pose: ArrayLike, velocity: ArrayLike, window: ArrayLike) -> Array:
        """The normalized command in [-1, 1]³ for the coming period."""
        now, nu, reference = check_inputs(pose, velocity, window)
        scale = self.vessel.scale
        now, nu, reference = scale.pose(now), scale.velocity(nu), scale.window(reference)
        # The reference heading is continuous; the measured heading is wrapped.
        now = now + np.array([0.0, 0.0, math.tau * round((reference[0, 2] - now[2]) / math.tau)])
        boat = np.concatenate([now, nu])
        self._observe(boat)
        start, delay = boat, self.delay / PERIOD
        for i in reversed(range(math.ceil(delay))):
            start = self._after(start, self._issued[i], PERIOD * min(delay - i, 1.0))
        ahead = seen_from(start[:3], self._ahead(reference, delay))
        guess = np.vstack([self._plan[1:], self._plan[-1:]])
        plan = self._solve(guess, start[2:], ahead)
        if plan is not None:
            self._remaining = self._horizon
        else:
            self.failures += 1
            plan = guess if self._remaining > 0 else np.zeros_like(guess)
        self._remaining = max(self._remaining - 1, 0)
        self._plan = plan
        command: Array = np.clip(plan[0], -self._limit, self._limit)
        self._issued = [command, *self._issued[:-1]]
        self._previous = boat
        return command

    @property
    def delay(self) -> float:
        """Actuator delay of the prediction, s."""
        return float(self._filter.delay) if self._filter else self.tuning.delay * PERIOD

    def _ahead(self, reference: Array, delay: float) -> Array:
        """The reference at the ends of the periods of the horizon, which starts `delay` periods from now."""
        states = continued(reference, self.tuning.beyond + 2)
        whole = int(delay)
        after = states[whole + 1 :][: self._horizon]
        part = delay - whole
        return after if part == 0 else (1 - part) * after + part * states[whole + 2 :][: self._horizon]

    def _after(self, state: Array, command: Array, time: float = PERIOD) -> Array:
        """The predicted state some time later with this command and the estimated force."""
        after: Array = np.asarray(self._motion(state, command + self.force, self.current, time)).ravel()
        return after

    def _observe(self, boat: Array) -> None:
        """Disturbance observer: correct the estimated force by the last period's prediction error."""
        if self._previous is None:
            return
        if self._filter:
            self._filter.update(self._previous, self._issued, boat[3:])
            self.current, self.force = self._filter.current, self._filter.force
        if self.tuning.observer == 0:
            return
        error = (boat - self._after(self._previous, self._issued[self.tuning.delay]))[3:]
        force_error = np.divide(error, self._gain, out=np.zeros(3), where=self._gain > 0)
        self.force = np.clip(self.force + self.tuning.observer * force_error, -1.0, 1.0)

    def _solve(self, guess: Array, motion: Array, ahead: Array) -> Array | None:
        """The commands of the horizon, (n, 3), or None if the solver failed; `motion`: psi, u, v, r at its start."""
        velocity, current = motion[1:], np.array(to_body(self.current[0], self.current[1], float(motion[0])))
        parameters = np.concatenate([velocity, self.force, current, self._issued[0], ahead.ravel()])
        try:
            # The unrolled guess has no defects, whatever the disturbance since the last solve.
            start = self._unroll(guess.T, velocity, self.force, current)
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
        reached = self._unroll(commands.T, velocity, self.force, current)
        return commands if self._cost(reached, parameters) < self._cost(start, parameters) else None


def seen_from(pose: Array, states: Array) -> Array:
    """Inertial-frame states (n, 6) in the frame of a boat at `pose`."""
    x, y, psi = (states[:, :3] - pose).T
    return np.column_stack([*to_body(x, y, float(pose[2])), psi, states[:, 3:]])


def continued(states: Array, periods: int) -> Array:
    """Reference states (n, 6), and as many more at the last twist."""
    x, y, psi, u, v, r = states[-1]
    t = PERIOD * np.arange(1.0, periods + 1)
    chord = t * np.sinc(r * t / (2 * math.pi))  # in the direction of the mean heading
    along_x, along_y = to_inertial(u, v, psi + r * t / 2)
    twist = np.tile([u, v, r], (periods, 1))
    more = np.column_stack([x + chord * along_x, y + chord * along_y, psi + r * t, twist])
    return np.concatenate([states, more])


def parts(vessel: Vessel) -> int:
    """RK4 steps per control period of the prediction: the fewest of at most 0.7 / damping rate each.

    The error of a step is then below 0.7⁵/120 of the predicted motion. Unlike in `dynamics.substeps` the step length
    has no upper limit, since every step costs solution time.
    """
    return max(1, math.ceil(vessel.scale.period * vessel.stiffness / 0.7))


def motion(vessel: Vessel) -> Any:
    """The prediction (state, force, current, time) -> state then, in the vessel's scale, as a CasADi function."""
    e, drag = vessel.scale.normalized(vessel.disturbed), vessel.scale.drag(vessel.drag)
    state, force, current, time = (ca.SX.sym(name, n) for name, n in zip("sfct", (6, 3, 2, 1), strict=True))
    forces, water = [ca.vertsplit(force)] * parts(vessel), ca.vertsplit(current)
    after = dynamics.step(ca.vertsplit(state), forces, e, water, drag, time)
    return ca.Function("motion", [state, force, current, time], [ca.vertcat(*after)])


def model(vessel: Vessel) -> Any:
    """The prediction (state, command) -> state one period later in still water, as a CasADi function."""
    state, command = ca.SX.sym("state", 6), ca.SX.sym("command", 3)
    force = ca.vertcat(command[0], 0.0 if vessel.under_actuated else command[1], command[2])
    return ca.Function("model", [state, command], [motion(vessel)(state, force, 0.0, PERIOD)])


def horizon(tuning: Tuning) -> int:
    """Periods of a plan, from when its first command takes effect to the end of the window or beyond."""
    return PREVIEW - tuning.delay + tuning.beyond


def unroll(vessel: Vessel, periods: int, fade: float = 1.0) -> Any:
    """(commands (3, n), velocity, force, current) -> the unknowns of `transcribe` with these, as a CasADi function."""
    predict = motion(vessel)
    commands, velocity, force = ca.SX.sym("commands", 3, periods), ca.SX.sym("velocity", 3), ca.SX.sym("force", 3)
    current = ca.SX.sym("current", 2)
    state, unknowns = ca.vertcat(0, 0, 0, velocity), []
    for k in range(periods):
        state = predict(state, commands[:, k] + fade**k * force, current, PERIOD)
        unknowns += [commands[:, k], state]
    return ca.Function("unroll", [commands, velocity, force, current], [ca.vertcat(*unknowns)])


def transcribe(vessel: Vessel, tuning: Tuning) -> tuple[dict[str, Any], Any]:
    """The problem as CasADi's nlpsol takes it, and the Gauss-Newton Hessian of its cost.

    Multiple shooting: the unknowns are for each period (command, state it leads to), the parameters the velocity at the
    start, the force, the command issued last and the reference states, in the boat's frame. The states are unknowns,
    so the cost is a sum of squares of linear terms and its Hessian constant. The curvature of the model is omitted: it
    is negligible near the reference.
    """
    predict, periods = motion(vessel), horizon(tuning)
    velocity, force, last = (ca.SX.sym(name, 3) for name in ("velocity", "force", "last"))
    current = ca.SX.sym("current", 2)
    ahead = ca.SX.sym("ahead", 6, periods)
    rate_weight = np.sqrt(tuning.rate) * np.array(vessel.scale.normalized(vessel.normalized)[:3])
    state, previous = ca.vertcat(0, 0, 0, velocity), last
    unknowns, gaps, residuals = [], [], []
    for k in range(periods):
        command, reached = ca.SX.sym(f"a_{k}", 3), ca.SX.sym(f"s_{k + 1}", 6)
        gaps.append(predict(state, command + tuning.fade**k * force, current, PERIOD) - reached)
        residuals += [np.sqrt(tuning.r) * command, np.sqrt(tuning.q) * (reached - ahead[:, k])]
        if tuning.rate > 0:
            residuals.append(rate_weight * (command - previous))
        unknowns += [command, reached]
        state, previous = reached, command
    x, residual = ca.vertcat(*unknowns), ca.vertcat(*residuals)
    p = ca.vertcat(velocity, force, current, last, ca.vec(ahead))
    nlp = {"x": x, "p": p, "f": ca.sumsqr(residual) / 2, "g": ca.vertcat(*gaps)}
    jacobian = ca.jacobian(residual, x)
    scale, multipliers = ca.SX.sym("scale"), ca.SX.sym("multipliers", 6 * periods)
    return nlp, ca.Function("hessian", [x, p, scale, multipliers], [scale * jacobian.T @ jacobian])
