"""Configuration of a training run: frozen dataclasses with the paper's tables as defaults, and presets."""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from anyhull.errors import InputError, unknown
from anyhull.learn.environment import TrackingEnv
from anyhull.learn.policies import LATENT
from anyhull.learn.randomization import Randomization
from anyhull.learn.reference_generator import CRUISE
from anyhull.learn.thrust import ThrusterModel
from anyhull.observation import Scales
from anyhull.schema import decode, type_hints
from anyhull.sea import Sea
from anyhull.vessel import Vessel

Method = Literal["teacher", "student", "ppo-general", "ppo-specific", "recurrent", "student-mean-latent", "sweep"]
Recipe = Literal["ppo", "apg"]

METHODS: dict[str, str] = {
    "teacher": "Phase 1: an oracle with the boat's dynamics as privileged input",
    "student": "Phase 1 and 2: the adaptive policy of the paper",
    "ppo-general": "one policy for all boats, without adaptation",
    "ppo-specific": "a policy for one vessel, randomized around it",
    "recurrent": "end to end with a GRU, without a teacher",
    "student-mean-latent": "the student with its latent fixed at the mean: the ablation of adaptation",
    "sweep": "the appendix: one vessel scaled in inertia and damping, one latent number",
}


@dataclass(frozen=True)
class PPO:
    """The paper's table of hyperparameters."""

    total_steps: int = 60_000_000
    """Environment steps."""
    num_envs: int = 1024
    """Environments."""
    rollout_steps: int = 32
    """Steps per environment in an iteration."""
    minibatches: int = 8
    """Parts of an iteration's batch, each of whole environments."""
    epochs: int = 10
    """Passes over the batch."""
    gamma: float = 0.96
    """Discount factor."""
    gae_lambda: float = 0.95
    """Lambda of generalized advantage estimation."""
    clip_range: float = 0.10
    """Clip parameter of the probability ratio."""
    learning_rate: float = 3e-4
    """Initial learning rate."""
    final_learning_rate: float = 3e-5
    """Final learning rate, reached linearly."""
    entropy_coef: float = 0.005
    """Entropy coefficient."""
    value_coef: float = 0.5
    """Value loss coefficient."""
    max_grad_norm: float = 0.7
    """Largest norm of a gradient."""
    target_kl: float = 0.02
    """When the KL divergence exceeds 1.5 times this, the remaining updates of the iteration are skipped."""
    reward_scale: float = 0.04
    """Factor on the reward for the critic, 1 - gamma: values then have the magnitude of rewards."""

    @property
    def iterations(self) -> int:
        """Iterations to reach `total_steps`."""
        return -(-self.total_steps // (self.num_envs * self.rollout_steps))


@dataclass(frozen=True)
class Distillation:
    """Hyperparameters of Phase 2; the paper states the learning rates and the weight decay only."""

    total_steps: int = 15_000_000
    """Environment steps."""
    num_envs: int = 1024
    """Environments."""
    rollout_steps: int = 32
    """Steps per environment in an iteration, through which the gradient flows."""
    minibatches: int = 8
    """Gradient steps an iteration, each on its share of the environments."""
    learning_rate: float = 3e-4
    """Initial learning rate of AdamW."""
    final_learning_rate: float = 3e-5
    """Final learning rate, reached linearly."""
    weight_decay: float = 1e-5
    """Of AdamW."""
    nll: float = 0.0
    """Weight of the dynamics head's negative log likelihood; 0 for no dynamics head, as in the paper."""

    @property
    def iterations(self) -> int:
        """Iterations to reach `total_steps`."""
        return -(-self.total_steps // (self.num_envs * self.rollout_steps))


@dataclass(frozen=True)
class APG:
    """Hyperparameters of training by analytic policy gradients (`anyhull.learn.apg`)."""

    updates: int = 2500
    """Gradient steps, each on one window."""
    num_envs: int = 1024
    """Environments."""
    horizon: int = 32
    """Steps of a window, through which the gradient flows."""
    learning_rate: float = 1e-3
    """Initial learning rate of Adam; cosine decay to a hundredth."""
    heading: float = 0.8
    """Weight of the heading error (rad) relative to the position error (m)."""
    huber_delta: float = 1e-3
    """Error (m, rad), or change of the command, below which the cost is quadratic rather than linear."""
    velocity: float = 0.1
    """Weight of the velocity error (m/s, m/s, rad/s)."""
    delta_tau: float = 0.16
    """Weight of |Δτ|: nearly linear, as the error, so that a necessary step is not smoothed."""
    effort: float = 1e-4
    """Weight of the squared command."""
    excess: float = 0.1
    """Weight of the command beyond saturation, where the dynamics give no gradient."""
    spin: float = 0.0
    """Weight of the yaw rate (rad/s) while the reference rests: without sway force there is no heading to hold then."""
    latent: float = 0.0
    """Weight of the squared distance of a student's latent from the teacher's."""
    nll: float = 0.0
    """Weight of the dynamics head's negative log likelihood."""
    cotangent_limit: float = 12.0
    """Largest cotangent of a boat's state, as a multiple of a step's weight in the mean cost."""
    max_grad_norm: float = 1.0
    """Largest norm of a gradient."""
    curriculum: bool = True
    """Whether boats, references and offsets grow with progress; else they have their full range from the start."""
    rollback_ratio: float = 3.0
    """Smoothed cost, as a multiple of the lowest so far, above which the weights roll back."""


@dataclass(frozen=True)
class Config:
    """Configuration of a training run."""

    method: Method = "student"
    recipe: Recipe = "ppo"
    """`ppo` is the paper's; `apg`, analytic policy gradients through the simulator."""
    environment: TrackingEnv = field(default_factory=TrackingEnv)
    ppo: PPO = field(default_factory=PPO)
    distillation: Distillation = field(default_factory=Distillation)
    apg: APG = field(default_factory=APG)
    """Hyperparameters of the teacher in the recipe `apg`."""
    finetune: APG = field(default_factory=APG)
    """Hyperparameters of the student in the recipe `apg`, adapter and actor together."""
    latent_size: int = LATENT
    """Size of the latent z."""
    scales: Scales = field(default_factory=Scales)
    """Input scaling of the networks."""
    modulated: bool = False
    """Whether the latent also multiplies the actor's features, in the recipe `apg`."""


SENSOR_NOISE = (0.015, 0.015, 0.005, 0.03, 0.03, 0.02)
"""Largest sensor noise in training for the field: 1.5 times the estimator's errors in the twin."""

FIELD_FASTEST = 5.0
"""Highest speed of the references in training for the field: that of a fast boat at 0.4 of its top speed, m/s."""

UNDER_FASTEST = 3.0
"""The same for boats without sway force."""

UNDER_OFFSET = (0.5, 0.5, 0.5, 0.2, 0.05, 0.2)
"""Largest initial offset of boats without sway force."""

APG_OFFSET = (0.5, 0.5, 0.5, 0.2, 0.1, 0.2)
"""Largest initial offset in the recipe `apg`, for which its weights were tuned."""


def paper(method: str, sea: str = "ideal", vessel: str | None = None) -> Config:
    """The paper's recipe for a method, in the sea of that name; `vessel` for those trained on one.

    Except in the ideal sea, training has sensor noise and a smaller scale of the velocity gain.
    """
    if method not in METHODS:
        raise InputError(unknown("method", method, METHODS))
    boats = Randomization()
    if method in ("ppo-specific", "sweep"):
        if vessel is None:
            raise InputError(f"method {method!r} is trained on one vessel: give its name or file")
        center = Vessel.load(vessel).theta
        around, scaled = Randomization("around", center), Randomization("scaled", center, math.log(10.0))
        boats = around if method == "ppo-specific" else scaled
    elif vessel is not None:
        raise InputError(f"vessel = {vessel!r}: method {method!r} is trained on all boats and takes none")
    environment = TrackingEnv(Sea.preset(sea), boats)
    config = Config(method, environment=environment, latent_size=1 if method == "sweep" else LATENT)  # type: ignore[arg-type]
    if method in ("student", "student-mean-latent", "sweep"):
        # Both phases within the paper's budget.
        steps = config.ppo.total_steps - config.distillation.total_steps
        config = replace(config, ppo=replace(config.ppo, total_steps=steps))
    if environment.sea == Sea.ideal():
        return config
    return replace(config, environment=replace(environment, sensor_noise=SENSOR_NOISE), scales=Scales(gain=100.0))


def paper_fast(method: str, sea: str = "ideal", vessel: str | None = None) -> Config:
    """A twentieth of the paper's budget in smaller batches: minutes on two cores, for demonstrations and tests."""
    config = paper(method, sea, vessel)
    few: dict[str, Any] = {"num_envs": 256, "minibatches": 4, "learning_rate": 1e-3, "final_learning_rate": 1e-4}
    return replace(
        config,
        ppo=replace(config.ppo, total_steps=3_000_000, **few),
        distillation=replace(config.distillation, total_steps=1_500_000, **few),
    )


FIELD_THRUSTERS = ThrusterModel(lag=0.5, reverse=0.2, dead_band=0.05, quadratic=0.8)
"""Thrusters and drag in training for the field (docs/differences.md has the sources)."""


def apg(method: str, sea: str = "ideal", vessel: str | None = None) -> Config:
    """The recipe `apg` for a teacher or a student: analytic policy gradients through the simulator."""
    config = paper(method, sea, vessel)
    if method not in ("teacher", "student"):
        raise InputError(f"method {method!r}: has no recipe 'apg'; must be teacher or student, or recipe 'ppo'")
    disturbed = config.environment.sea != Sea.ideal()
    # With wind and delay, a lower weight of |Δτ| reduces the position error.
    teacher = replace(config.apg, updates=3000, heading=0.6, delta_tau=0.06) if disturbed else config.apg
    environment = replace(
        config.environment,
        episode_steps=400,
        initial_offset=APG_OFFSET,
        turn_share=0.85,
        fastest=FIELD_FASTEST if disturbed else CRUISE,
        current_share=0.5 if disturbed else 0.0,
        thrusters=FIELD_THRUSTERS if disturbed else ThrusterModel(),
    )
    # Ships have shorter lever arms than small boats with thrusters at their corners.
    boats = replace(environment.randomization, arm=(0.12, 2.0)) if disturbed else environment.randomization
    rates: Any = {"learning_rate": 1e-3, "final_learning_rate": 1e-4}
    more: Any = {"updates": 12000, "num_envs": 2048} if disturbed else {"updates": 3300}
    return replace(
        config,
        recipe="apg",
        environment=replace(environment, privileged_sea=disturbed, randomization=boats),
        distillation=replace(config.distillation, minibatches=4, nll=0.1, **rates),
        apg=teacher,
        finetune=replace(teacher, **more, latent=1e-3, nll=5e-3, curriculum=False),
        latent_size=16 if disturbed else LATENT,
        # A larger scale saturates the clipped cotangents, at the cost of slow boats.
        scales=replace(config.scales, error=10.0),
        modulated=True,
    )


def apg_under(method: str, sea: str = "ideal", vessel: str | None = None) -> Config:
    """`apg` for boats without sway force: position counts, and heading follows from it.

    The small weights on heading and velocity keep the problem well posed. A longer window covers the turn that corrects
    an error across the boat.
    """
    config = apg(method, sea, vessel)
    environment = replace(
        config.environment,
        randomization=Randomization(sway=False),
        initial_offset=UNDER_OFFSET,
        fastest=UNDER_FASTEST,
    )
    weights: Any = {"num_envs": 512, "horizon": 64, "heading": 0.05, "velocity": 0.02, "delta_tau": 0.05, "spin": 0.3}
    updates = 6000
    if sea != "ideal":
        # Against wind from the side only turning helps: it takes larger steps of the command, and its effect on the
        # position comes seconds later, in cotangents that are larger in proportion.
        weights |= {"num_envs": 1024, "delta_tau": 0.02, "cotangent_limit": 120.0}
        updates = 7000
    return replace(
        config,
        environment=environment,
        apg=replace(config.apg, updates=1500, **weights),
        finetune=replace(config.finetune, updates=updates, **weights),
    )


def apg_fast(method: str, sea: str = "ideal", vessel: str | None = None) -> Config:
    """`apg` with fewer boats and updates: minutes on two cores."""
    config = apg(method, sea, vessel)
    return replace(
        config,
        apg=replace(config.apg, updates=700, num_envs=256),
        distillation=replace(config.distillation, total_steps=1_500_000, num_envs=256),
        finetune=replace(config.finetune, updates=700, num_envs=256),
    )


PRESETS = {
    "apg": {"full": apg, "under": apg_under, "fast": apg_fast},
    "ppo": {"full": paper, "paper": paper, "fast": paper_fast},
}
"""Presets by recipe and name."""


def settings(config: Any, prefix: str = "") -> dict[str, Any]:
    """Every value of a config by its dotted path."""
    found: dict[str, Any] = {}
    for entry in dataclasses.fields(config):
        value, path = getattr(config, entry.name), prefix + entry.name
        found |= settings(value, path + ".") if dataclasses.is_dataclass(value) else {path: value}
    return found


def override(config: Config, assignment: str) -> Config:
    """The config with one value changed, as in `ppo.learning_rate=1e-3`."""
    path, equals, text = (part.strip() for part in assignment.partition("="))
    if not equals:
        raise InputError(f"setting {assignment!r}: must be PATH=VALUE, as in ppo.learning_rate=1e-3")
    accepted = [name for name in settings(config) if name != "method"]
    if path not in accepted:
        group = [name for name in accepted if name.startswith(path.split(".")[0] + ".")]
        raise InputError(unknown("setting", path, accepted, "accepted are " + ", ".join(group or accepted)))

    def put(node: Any, names: list[str]) -> Any:
        hint = type_hints(type(node))[names[0]]
        here = put(getattr(node, names[0]), names[1:]) if names[1:] else decode(hint, _parse(text, hint), path)
        return replace(node, **{names[0]: here})

    try:
        changed: Config = put(config, path.split("."))
    except InputError as error:
        raise InputError(f"setting {assignment!r}: {error}") from None
    return changed


def _parse(text: str, hint: Any) -> Any:
    """The text parsed as JSON; integers may be written as 6e7, lists without brackets, strings without quotes."""
    for written in (text, text.lower(), f"[{text}]" if "," in text else text):
        try:
            value = json.loads("null" if written == "none" else written)
        except (ValueError, RecursionError):
            continue
        return int(value) if hint is int and isinstance(value, float) and value.is_integer() else value
    return text
