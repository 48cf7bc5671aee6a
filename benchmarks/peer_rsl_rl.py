"""The tracking task in PyTorch, and rsl_rl's PPO on it: a peer to compare the speed of training with.

Ideal conditions only. A fleet is one tensor (rows, boats), its rows named in `ROWS`; all arithmetic is elementwise, in
single precision, on any device. Constants come from `anyhull`; `check` holds the functions against it.
"""

from __future__ import annotations

import contextlib
import io
import math
import sys
import time
import types
from typing import Any

import torch
from torch import Tensor

from anyhull import stream
from anyhull.dynamics import PERIOD, SUBSTEP
from anyhull.learn.boats import ARM, SWAY_SHARE, TOP_SPEED
from anyhull.learn.task import PARTS, Task
from anyhull.reference import PREVIEW
from anyhull.vessel import TRAINED

TASK = Task()
ROWS = {"boat": 6, "window": 66, "segment": 4, "command": 3, "e": 9, "able": 5, "privileged": 9, "age": 1}
"""Rows of a fleet, as the fields of `anyhull.learn.task.Fleet`; what only a reset changes is kept beside e."""


def wrap(angle: Tensor) -> Tensor:
    """The same direction in [-pi, pi)."""
    return torch.remainder(angle + math.pi, 2 * math.pi) - math.pi


def hardness(progress: float) -> float:
    """How far the curriculum has grown, 0 to 1."""
    return min(max(progress / TASK.grown, 0.0), 1.0)


def sample(uniforms: Tensor, spread: float) -> Tensor:
    """Components e (9, n) of any boats: `anyhull.learn.boats.sample`."""

    def between(low: Any, high: float, uniform: Tensor) -> Tensor:
        low, high = (x.log() if isinstance(x, Tensor) else math.log(x) for x in (low, high))
        return torch.exp((low + high) / 2 + spread * (high - low) / 2 * (2 * uniform - 1))

    alpha_u = between(*TRAINED["alpha_u"], uniforms[0])
    alpha_v = torch.clamp(alpha_u * between(*SWAY_SHARE, uniforms[1]), *TRAINED["alpha_v"])
    alpha_r = between(*TRAINED["alpha_r"], uniforms[2])
    slowest = torch.clamp(alpha_r / TRAINED["inv_tau_r"][1], min=TOP_SPEED["r"][0])
    signed = 2 * uniforms[6] - 1
    extreme = torch.where(signed < 0, math.log(-TRAINED["c_ru"][0]), math.log(TRAINED["c_rv"][1]))
    c_rv = torch.exp(spread * extreme * signed**3)
    bound = torch.clamp(alpha_r / 0.06, max=TRAINED["c_uv"][1])
    c_uv = (1 - c_rv) * alpha_r / (alpha_u * between(*ARM, uniforms[7]))
    damping = (
        alpha_u / between(*TOP_SPEED["u"], uniforms[3]),
        alpha_v / between(*TOP_SPEED["v"], uniforms[4]),
        alpha_r / between(slowest, TOP_SPEED["r"][1], uniforms[5]),
    )
    return torch.stack([alpha_u, alpha_v, alpha_r, *damping, c_rv, -1 / c_rv, c_uv.clamp(-bound, bound)])


def ability(e: Tensor, share: float = 0.85) -> Tensor:
    """Speed, sway, yaw rate, turn and ramp (5, n) that may be asked of a boat: `anyhull.stream.ability`."""
    speed, sway, yaw_rate = share * e[:3] / e[3:6]
    return torch.stack(
        [
            speed.clamp(max=1.2),
            sway.clamp(max=0.6),
            torch.minimum(yaw_rate, e[2]).clamp(max=1.2),
            TASK.turn * e[1] / -e[7],
            (0.3 * torch.minimum(e[0], e[1])).clamp(max=0.5),
        ]
    )


def draw(uniforms: Tensor, able: Tensor, hard: float) -> Tensor:
    """A segment (4, n), u, v, r and the time left, from seven uniform numbers: `anyhull.stream.draw`."""
    kind, pace, bend, side, length, crab, angle = uniforms
    slowest = 0.5 - 0.4 * hard
    speed = torch.where(kind < 0.05 * hard, 0.0, able[0] * (slowest + (1 - slowest) * pace))
    tightest = 8.0 * 0.1**hard
    radius = tightest * (stream.LARGEST_RADIUS / tightest) ** bend
    fastest = torch.minimum(able[2], able[3] / speed.clamp(min=1e-3))
    rate = torch.where(kind > 0.45, torch.minimum(speed / radius, fastest), 0.0)
    lean = torch.where(crab < 0.25 * hard, (2 * angle - 1) * (math.pi / 2), 0.0)
    across = (speed * lean.sin()).clamp(-able[1], able[1])
    turning = ((0.5 + 3.0 * length) / rate.clamp(min=1e-3)).clamp(1.0, 12.0)
    left = torch.where(rate > 0, turning, 1.5 + 6.0 * length)
    return torch.stack([speed * lean.cos(), across, torch.where(side < 0.5, rate, -rate), left])


def travel(pose: Tensor, twist: Tensor, t: Any) -> Tensor:
    """Poses after moving for `t` (s) with a constant body-frame twist, components along the axis before the last."""
    x, y, psi = pose.unbind(-2)
    u, v, r = twist.unbind(-2)
    half = r * t / 2
    square = half * half
    chord = t * (1 - square / 6 * (1 - square / 20 * (1 - square / 42)))
    sin, cos = torch.sin(psi + half), torch.cos(psi + half)
    return torch.stack([x + chord * (cos * u - sin * v), y + chord * (sin * u + cos * v), psi + r * t], -2)


def reset(uniforms: Tensor, progress: float) -> Tensor:
    """New episodes (rows, n) from `Task.reset_draws` uniform numbers each; those for weather are not used."""
    hard = hardness(progress)
    boat, segment, offset, _ = uniforms.split([8, 7, 6, uniforms.shape[0] - 21])
    e = sample(boat, TASK.narrowest + (1 - TASK.narrowest) * hard)
    able = ability(e)
    first = draw(segment, able, hard)
    t = PERIOD * torch.arange(PREVIEW + 1, device=e.device)[:, None]
    twist = first[:3].expand(PREVIEW + 1, 3, -1)
    window = torch.cat([travel(torch.zeros_like(twist), twist, t), twist], 1)
    largest = torch.tensor(TASK.offset, device=e.device)[:, None]
    state = window[0] + hard * largest * (2 * offset - 1)
    ahead = torch.cat([first[:3], first[3:] - PREVIEW * PERIOD])
    privileged = torch.cat([e[:7].log(), (-e[7:8]).log(), e[8:].asinh()])
    calm = torch.zeros_like(e[:3])
    return torch.cat([state, window.flatten(0, 1), ahead, calm, e, able, privileged, calm[:1]])


def move(boat: Tensor, command: Tensor, e: Tensor) -> Tensor:
    """The state (6, n) one control period later: `PARTS` Runge-Kutta steps of the normalized equations."""
    push, damping, coriolis = e[:3] * command, e[3:6], e[6:]

    def rate(s: Tensor) -> Tensor:
        velocity = s[3:]
        u, v, r = velocity
        sin, cos = s[2].sin(), s[2].cos()
        twice = torch.cat([velocity, velocity])
        acceleration = push - damping * velocity + coriolis * (twice[1:4] * twice[2:5])
        return torch.cat([torch.stack([cos * u - sin * v, sin * u + cos * v, r]), acceleration])

    for _ in range(PARTS):
        k1 = rate(boat)
        k2 = rate(torch.add(boat, k1, alpha=SUBSTEP / 2))
        k3 = rate(torch.add(boat, k2, alpha=SUBSTEP / 2))
        k4 = rate(torch.add(boat, k3, alpha=SUBSTEP))
        boat = boat + SUBSTEP / 6 * (k1 + 2 * (k2 + k3) + k4)
    return boat


def terms(boat: Tensor, reference: Tensor, command: Tensor, previous: Tensor, progress: float) -> dict[str, Tensor]:
    """The reward by name of term: `anyhull.learn.reward.terms`."""
    w = TASK.weights
    error = reference - boat
    square = error * error
    away = square[0] + square[1] + 1e-12
    distance, turn = away.sqrt(), wrap(error[2])
    gate = torch.exp(-distance - 0.1 * turn.abs())
    change = command - previous
    return {
        "position": w.position / (1 + w.position * away),
        "heading": w.heading / (1 + w.heading * turn * turn),
        "velocity": gate * (w.velocity / (1 + w.velocity * (square[3] + square[4]))),
        "yaw_rate": gate * (w.yaw_rate / (1 + w.yaw_rate * square[5])),
        "proximity": w.proximity * torch.exp(-10 * distance),
        "forward": w.forward * boat[3],
        "sway": -w.sway * boat[4] ** 2,
        "spin": -w.spin * (boat[5].abs() - 0.3).clamp(min=0.0) ** 2,
        "effort": -progress * w.effort * (command * command).sum(0),
        "smoothness": -progress * w.smoothness * (change * change).sum(0),
    }


def step(fleet: Tensor, action: Tensor, uniforms: Tensor, progress: float) -> tuple[Tensor, dict[str, Tensor], Tensor]:
    """One control period under `action` (n, 3): the fleet before any reset, reward terms, and who has failed."""
    boat, window, segment, previous, *constant, age = fleet.split(list(ROWS.values()))
    e, able, _ = constant
    command = action.T.clamp(-1.0, 1.0)
    boat = move(boat, command, e)
    segment = torch.where(segment[3] <= 0.0, draw(uniforms, able, hardness(progress)), segment)
    last, ramp = window[-6:], able[4] * PERIOD
    twist = torch.cat([last[3:5] + (segment[:2] - last[3:5]).clamp(-ramp, ramp), segment[2:3]])
    window = torch.cat([window[6:], travel(last[:3], twist, PERIOD), twist])
    segment = torch.cat([segment[:3], segment[3:] - PERIOD])
    by_name = terms(boat, window[:6], command, previous, progress)
    failed = torch.hypot(*(window[:2] - boat[:2])) > TASK.failure
    return torch.cat([boat, window, segment, command, *constant, age + 1]), by_name, failed


def observe(fleet: Tensor) -> Tensor:
    """What the policy sees (n, 81): the base observation, and e on a logarithmic scale."""
    boat, window, _, command, _, _, privileged, _ = fleet.split(list(ROWS.values()))
    window = window.view(PREVIEW + 1, 6, -1)
    dx, dy = window[:, 0] - boat[0], window[:, 1] - boat[1]
    sin, cos = boat[2].sin(), boat[2].cos()
    seen = torch.cat(
        [
            torch.stack([cos * dx + sin * dy, cos * dy - sin * dx, wrap(window[:, 2] - boat[2])], 1),
            window[:, 3:],
        ],
        1,
    )
    rows = [seen[0, :3], seen[0, 3:] - boat[3:], boat[3:], seen[1:].flatten(0, 1), command, privileged]
    return torch.cat(rows).T.contiguous()


def advance(fleet: Tensor, action: Tensor, fresh: Tensor, progress: float) -> tuple[Tensor, ...]:
    """A step with its randomness, ended episodes replaced by `fresh` ones: fleet, observation, reward, done, late."""
    uniforms = torch.rand(stream.DRAWS, fleet.shape[1], device=fleet.device)
    fleet, by_name, failed = step(fleet, action, uniforms, progress)
    late = (fleet[-1] >= TASK.episode) & ~failed
    done = failed | late
    fleet = torch.where(done, fresh, fleet)
    return fleet, observe(fleet), torch.stack(list(by_name.values())).sum(0), done, late


class Boats:
    """The fleet as rsl_rl's runner wants it (its `VecEnv`), rewards scaled as in `anyhull.learn.ppo`."""

    num_actions = 3
    max_episode_length = TASK.episode
    cfg: dict[str, Any] = {}  # noqa: RUF012

    def __init__(self, count: int, steps: int, device: str, *, scale: float, progress: float, compiled: bool) -> None:
        """New episodes are drawn once in `steps` steps, as `anyhull.learn.ppo.collect` does."""
        self.num_envs, self.device, self.steps, self.scale, self.progress = count, device, steps, scale, progress
        self.count = 0
        # On CUDA this mode records the compiled kernels as a CUDA graph.
        self.advance = torch.compile(advance, mode="reduce-overhead", dynamic=False) if compiled else advance
        self.draw = torch.compile(reset, dynamic=False) if compiled else reset
        self.fleet, self.fresh = (torch.zeros(sum(ROWS.values()), count, device=device) for _ in range(2))
        for buffer in (self.fleet, self.fresh) if compiled else ():
            torch._dynamo.mark_static_address(buffer)
        self.reset()

    @property
    def episode_length_buf(self) -> Tensor:
        return self.fleet[-1]

    @episode_length_buf.setter
    def episode_length_buf(self, ages: Tensor) -> None:
        self.fleet[-1] = ages

    def get_observations(self) -> tuple[Tensor, dict[str, Any]]:
        return observe(self.fleet), {"observations": {}}

    def reset(self) -> tuple[Tensor, dict[str, Any]]:
        self.fleet.copy_(reset(torch.rand(TASK.reset_draws, self.num_envs, device=self.device), self.progress))
        return self.get_observations()

    def step(self, actions: Tensor) -> tuple[Tensor, Tensor, Tensor, dict[str, Any]]:
        if self.count % self.steps == 0:
            uniforms = torch.rand(TASK.reset_draws, self.num_envs, device=self.device)
            self.fresh.copy_(self.draw(uniforms, self.progress))
        self.count += 1
        torch.compiler.cudagraph_mark_step_begin()
        fleet, observed, reward, done, late = self.advance(self.fleet, actions, self.fresh, self.progress)
        self.fleet.copy_(fleet)
        # A CUDA graph writes the next observation where this one lies, and rsl_rl stores this one after that.
        return observed.clone(), self.scale * reward, done, {"time_outs": late, "observations": {}}


class Copied(torch.nn.Module):
    """A network whose output outlives the next replay of its CUDA graph."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        return self.network(x).clone()


def runner(config: Any, device: str, *, compiled: bool = False, networks: str | None = None, progress: float = 0.0):
    """rsl_rl's runner with the hyperparameters of `config`, an `anyhull.learn.ppo.PPO`.

    `compiled` compiles the environment's step, `networks` (a mode of `torch.compile`) actor and critic, with Adam as
    one fused kernel. The learning rate is fixed, so that no gradient step is left out.
    """
    sys.modules.setdefault("git", types.ModuleType("git"))  # rsl_rl asks it for the state of the code; here nobody does
    from rsl_rl.runners import OnPolicyRunner

    from anyhull.learn.networks import ACTOR

    sizes = {"actor_hidden_dims": list(ACTOR), "critic_hidden_dims": list(ACTOR)}
    settings = {
        "num_steps_per_env": config.steps,
        "save_interval": sys.maxsize,
        "empirical_normalization": False,
        "policy": {"class_name": "ActorCritic", "activation": "elu", "init_noise_std": 0.5, **sizes},
        "algorithm": {
            "class_name": "PPO",
            "num_learning_epochs": config.epochs,
            "num_mini_batches": config.minibatches,
            "clip_param": config.clip,
            "gamma": config.gamma,
            "lam": config.lam,
            "value_loss_coef": config.value,
            "entropy_coef": config.entropy,
            "learning_rate": config.rate,
            "max_grad_norm": config.max_norm,
            "use_clipped_value_loss": False,
            "schedule": "fixed",
        },
    }
    boats = Boats(config.envs, config.steps, device, scale=config.reward_scale, progress=progress, compiled=compiled)
    with contextlib.redirect_stdout(io.StringIO()):  # it prints its networks
        made = OnPolicyRunner(boats, settings, device=device)
    made.disable_logs = True
    if networks:
        policy = made.alg.policy
        policy.actor, policy.critic = (
            Copied(torch.compile(net, mode=networks, dynamic=False)) for net in (policy.actor, policy.critic)
        )
        made.alg.optimizer = torch.optim.Adam(policy.parameters(), lr=config.rate, fused=True)
    return made


def measure(config: Any, device: str, warm: int, iterations: int, **options: Any) -> dict[str, float]:
    """Mean seconds of an iteration, and of its rollout and update, over `iterations` after `warm` others."""
    made = runner(config, device, **options)
    begins: list[float] = []
    ends: list[float] = []

    def marked(function: Any, before: list[float] | None = None, after: list[float] | None = None) -> Any:
        def call(*args: Any) -> Any:
            if before is not None:
                before.append(now(device))
            result = function(*args)
            if after is not None:
                after.append(now(device))
            return result

        return call

    made.alg.compute_returns = marked(made.alg.compute_returns, before=begins)
    made.alg.update = marked(made.alg.update, after=ends)
    start = now(device)
    made.learn(warm, init_at_random_ep_len=True)
    first = now(device)
    begins.clear()
    ends.clear()
    made.learn(iterations)
    update = sum(end - begin for begin, end in zip(begins, ends, strict=True)) / iterations
    total = (ends[-1] - first) / iterations
    return {"warm_up_s": first - start, "iteration_s": total, "rollout_s": total - update, "update_s": update}


def now(device: str) -> float:
    """The time (s) at which all work given to the device is done."""
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    return time.perf_counter()


def check(device: str = "cpu", count: int = 512, steps: int = 300, progress: float = 0.7) -> dict[str, float]:
    """Largest differences from `anyhull.learn.task` over one step from each of `steps` states that it passes through.

    Both get the same state, draws and action, and both reset. Compared to float32 rounding of numbers of some metres.
    """
    import jax
    import jax.numpy as jnp
    import numpy as np

    from anyhull.learn import task as ours

    def torched(x: Any) -> Tensor:
        return torch.tensor(np.asarray(x), device=device)

    def rows(fleet: Any) -> Tensor:
        """Our fleet (n, ...) as theirs; what follows from e is computed by ours too."""
        able = jnp.stack(stream.ability(fleet.e.T, turn=TASK.turn), 1)
        parts = [fleet.boat, fleet.window, fleet.segment, fleet.commands[:, 0], fleet.e, able, privileged(fleet)]
        return torch.cat([torched(p).reshape(count, -1) for p in [*parts, fleet.age.astype(float)]], 1).T.float()

    def compare(name: str, theirs: Tensor, mine: Any, tolerance: float = 1e-5) -> None:
        mine = torched(mine) if not isinstance(mine, Tensor) else mine
        assert theirs.shape == mine.shape, f"{name}: shape {tuple(theirs.shape)}, not {tuple(mine.shape)}"
        apart = (theirs - mine).abs()
        if name == "observation":  # angles near pi may be seen as near -pi
            apart = torch.minimum(apart, (2 * math.pi - apart).abs())
        off = (apart / (1 + mine.abs())).max().item()
        worst[name] = max(worst.get(name, 0.0), off)
        assert off <= tolerance, f"{name} differs by {off:.1e}, more than {tolerance:.0e}"

    worst: dict[str, float] = {}
    sizes = list(ROWS.values())
    begin = jax.jit(jax.vmap(lambda u: TASK.reset(u, progress)))
    go = jax.jit(jax.vmap(lambda f, a, d: TASK.step(f, a, d, progress)))
    renew, look = jax.jit(ours.renew), jax.jit(jax.vmap(TASK.observe))
    privileged = jax.jit(jax.vmap(TASK.privileged))
    keys = jax.random.split(jax.random.key(0), steps)
    uniforms = jax.random.uniform(jax.random.key(1), (count, TASK.reset_draws))
    fleet = begin(uniforms)
    # Some episodes are about to end by the clock; others fail, since the actions are random.
    fleet = fleet._replace(age=jnp.arange(count) % TASK.episode)
    action, ended = jnp.zeros((count, 3)), 0
    for key in keys:
        one, two, three = jax.random.split(key, 3)
        draws = TASK.draws(one, (count,))
        uniforms = jax.random.uniform(two, (count, TASK.reset_draws))
        action = 0.95 * action + 0.3 * jax.random.normal(three, (count, 3))
        before = rows(fleet)
        fleet, outcome = go(fleet, action, draws)
        after = rows(fleet)
        theirs, by_name, failed = step(before, torched(action), torched(draws.segment).T, progress)
        for name, got, mine in zip(ROWS, theirs.split(sizes), after.split(sizes), strict=True):
            compare(name, got, mine)
        compare("observation", observe(after), jnp.concatenate([look(fleet), privileged(fleet)], 1))
        command, previous = (x.split(sizes)[3] for x in (after, before))
        exact = terms(after[:6], after[6:12], command, previous, progress)
        for name, term in outcome.terms.items():
            compare(f"reward {name}", exact[name], term)
        # The heading of a boat that spins is rounded to 1e-4 rad after a hundred turns.
        compare("reward", sum(by_name.values()), outcome.reward, 1e-4)
        assert (failed == torched(outcome.terminated)).all(), "failures differ"
        late = (theirs[-1] >= TASK.episode) & ~failed
        assert (late == torched(outcome.truncated)).all(), "truncations differ"
        fresh = begin(uniforms)
        new = reset(torched(uniforms).T, progress)
        for name, got, mine in zip(ROWS, new.split(sizes), rows(fresh).split(sizes), strict=True):
            # c_uv is (1 - c_rv) times up to 2000.
            compare(f"reset {name}", got, mine, 1e-4 if name in ("e", "privileged") else 1e-5)
        done = outcome.terminated | outcome.truncated
        ended += int(done.sum())
        fleet = renew(done, fresh, fleet)
    assert ended > count // 4, f"only {ended} episodes ended"
    return worst
