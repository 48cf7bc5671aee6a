"""The tracking environment in PyTorch, for `rsl_rl_runner.py`.

Ideal conditions only. The state is one tensor (rows, boats) with the rows of `ROWS`. All arithmetic is elementwise, in
single precision, on any device. Constants are those of `anyhull`; `check` compares the functions with ours.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from anyhull.dynamics import PERIOD, SUBSTEP
from anyhull.learn import reference_generator
from anyhull.learn.environment import SUBSTEPS, TrackingEnv
from anyhull.learn.randomization import ARM, SWAY_SHARE, TOP_SPEED
from anyhull.paper import RANGES
from anyhull.reference import PREVIEW

ENV = TrackingEnv()
ROWS = {"boat": 6, "window": 66, "segment": 4, "command": 3, "e": 9, "capability": 5, "privileged": 9, "age": 1}
"""Rows of the state, as the fields of `anyhull.learn.environment.EnvState`, and what is constant in an episode."""


def wrap(angle: Tensor) -> Tensor:
    """The same direction in [-pi, pi)."""
    return torch.remainder(angle + math.pi, 2 * math.pi) - math.pi


def difficulty(progress: float) -> float:
    """How far the curriculum has come, 0 to 1: `TrackingEnv.difficulty`."""
    return min(max(progress / ENV.curriculum_end, 0.0), 1.0)


def sample(uniforms: Tensor, spread: float) -> Tensor:
    """Components e (9, n) of any boats: `Randomization.sample`."""

    def between(low: Any, high: float, uniform: Tensor) -> Tensor:
        low, high = (x.log() if isinstance(x, Tensor) else math.log(x) for x in (low, high))
        return torch.exp((low + high) / 2 + spread * (high - low) / 2 * (2 * uniform - 1))

    alpha_u = between(*RANGES["alpha_u"], uniforms[0])
    alpha_v = torch.clamp(alpha_u * between(*SWAY_SHARE, uniforms[1]), *RANGES["alpha_v"])
    alpha_r = between(*RANGES["alpha_r"], uniforms[2])
    slowest = torch.clamp(alpha_r / RANGES["inv_tau_r"][1], min=TOP_SPEED["r"][0])
    signed = 2 * uniforms[6] - 1
    extreme = torch.where(signed < 0, math.log(-RANGES["c_ru"][0]), math.log(RANGES["c_rv"][1]))
    c_rv = torch.exp(spread * extreme * signed**3)
    bound = torch.clamp(alpha_r / 0.06, max=RANGES["c_uv"][1])
    c_uv = (1 - c_rv) * alpha_r / (alpha_u * between(*ARM, uniforms[7]))
    damping = (
        alpha_u / between(*TOP_SPEED["u"], uniforms[3]),
        alpha_v / between(*TOP_SPEED["v"], uniforms[4]),
        alpha_r / between(slowest, TOP_SPEED["r"][1], uniforms[5]),
    )
    return torch.stack([alpha_u, alpha_v, alpha_r, *damping, c_rv, -1 / c_rv, c_uv.clamp(-bound, bound)])


def capability(e: Tensor, share: float = 0.85) -> Tensor:
    """Speed, sway, yaw rate, turn and ramp (5, n) that a boat can follow: `reference_generator.capability`."""
    speed, sway, yaw_rate = share * e[:3] / e[3:6]
    return torch.stack(
        [
            speed.clamp(max=1.2),
            sway.clamp(max=0.6),
            torch.minimum(yaw_rate, e[2]).clamp(max=1.2),
            ENV.turn_share * e[1] / -e[7],
            (0.3 * torch.minimum(e[0], e[1])).clamp(max=0.5),
        ]
    )


def draw(uniforms: Tensor, able: Tensor, hard: float) -> Tensor:
    """A segment (4, n), u, v, r and the time left, from seven uniform numbers: `reference_generator.draw`."""
    kind, pace, bend, side, length, crab, angle = uniforms
    slowest = 0.5 - 0.4 * hard
    speed = torch.where(kind < 0.05 * hard, 0.0, able[0] * (slowest + (1 - slowest) * pace))
    tightest = 8.0 * 0.1**hard
    radius = tightest * (reference_generator.LARGEST_RADIUS / tightest) ** bend
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
    """New episodes (rows, n) from `TrackingEnv.reset_draws` uniform numbers each; those of the sea are not used."""
    hard = difficulty(progress)
    boat, segment, offset, _ = uniforms.split([8, 7, 6, uniforms.shape[0] - 21])
    e = sample(boat, ENV.initial_spread + (1 - ENV.initial_spread) * hard)
    able = capability(e)
    first = draw(segment, able, hard)
    t = PERIOD * torch.arange(PREVIEW + 1, device=e.device)[:, None]
    twist = first[:3].expand(PREVIEW + 1, 3, -1)
    window = torch.cat([travel(torch.zeros_like(twist), twist, t), twist], 1)
    largest = torch.tensor(ENV.initial_offset, device=e.device)[:, None]
    state = window[0] + hard * largest * (2 * offset - 1)
    ahead = torch.cat([first[:3], first[3:] - PREVIEW * PERIOD])
    privileged = torch.cat([e[:7].log(), (-e[7:8]).log(), e[8:].asinh()])
    zero = torch.zeros_like(e[:3])
    return torch.cat([state, window.flatten(0, 1), ahead, zero, e, able, privileged, zero[:1]])


def move(boat: Tensor, command: Tensor, e: Tensor) -> Tensor:
    """The boat (6, n) one control period later: `SUBSTEPS` Runge-Kutta steps of the normalized equations."""
    push, damping, coriolis = e[:3] * command, e[3:6], e[6:]

    def rate(s: Tensor) -> Tensor:
        velocity = s[3:]
        u, v, r = velocity
        sin, cos = s[2].sin(), s[2].cos()
        twice = torch.cat([velocity, velocity])
        acceleration = push - damping * velocity + coriolis * (twice[1:4] * twice[2:5])
        return torch.cat([torch.stack([cos * u - sin * v, sin * u + cos * v, r]), acceleration])

    for _ in range(SUBSTEPS):
        k1 = rate(boat)
        k2 = rate(torch.add(boat, k1, alpha=SUBSTEP / 2))
        k3 = rate(torch.add(boat, k2, alpha=SUBSTEP / 2))
        k4 = rate(torch.add(boat, k3, alpha=SUBSTEP))
        boat = boat + SUBSTEP / 6 * (k1 + 2 * (k2 + k3) + k4)
    return boat


def reward_terms(
    boat: Tensor, reference: Tensor, command: Tensor, previous: Tensor, progress: float
) -> dict[str, Tensor]:
    """The reward by name of term: `anyhull.learn.reward.reward_terms`."""
    w = ENV.reward
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


def step(state: Tensor, action: Tensor, uniforms: Tensor, progress: float) -> tuple[Tensor, dict[str, Tensor], Tensor]:
    """One control period under `action` (n, 3): the state before any reset, reward terms, and which have terminated."""
    boat, window, segment, previous, *constant, age = state.split(list(ROWS.values()))
    e, able, _ = constant
    command = action.T.clamp(-1.0, 1.0)
    boat = move(boat, command, e)
    segment = torch.where(segment[3] <= 0.0, draw(uniforms, able, difficulty(progress)), segment)
    last, ramp = window[-6:], able[4] * PERIOD
    twist = torch.cat([last[3:5] + (segment[:2] - last[3:5]).clamp(-ramp, ramp), segment[2:3]])
    window = torch.cat([window[6:], travel(last[:3], twist, PERIOD), twist])
    segment = torch.cat([segment[:3], segment[3:] - PERIOD])
    terms = reward_terms(boat, window[:6], command, previous, progress)
    terminated = torch.hypot(*(window[:2] - boat[:2])) > ENV.failure_distance
    return torch.cat([boat, window, segment, command, *constant, age + 1]), terms, terminated


def observe(state: Tensor) -> Tensor:
    """The input of the policy (n, 81): the base observation, and e on a logarithmic scale."""
    boat, window, _, command, _, _, privileged, _ = state.split(list(ROWS.values()))
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


def advance(state: Tensor, action: Tensor, fresh: Tensor, progress: float) -> tuple[Tensor, ...]:
    """A step with its randomness and resets to `fresh` episodes: state, observation, reward, done, truncated."""
    uniforms = torch.rand(reference_generator.DRAWS, state.shape[1], device=state.device)
    state, terms, terminated = step(state, action, uniforms, progress)
    truncated = (state[-1] >= ENV.episode_steps) & ~terminated
    done = terminated | truncated
    state = torch.where(done, fresh, state)
    return state, observe(state), torch.stack(list(terms.values())).sum(0), done, truncated


def check(device: str = "cpu", count: int = 512, steps: int = 300, progress: float = 0.7) -> dict[str, float]:
    """Largest differences from `anyhull.learn.environment` over single steps from the states of a run of `steps`.

    Both start each step with the same state, draws and action. Tolerances are float32 rounding at a few metres.
    """
    import jax
    import jax.numpy as jnp
    import numpy as np

    from anyhull.learn.environment import auto_reset

    def to_torch(x: Any) -> Tensor:
        return torch.tensor(np.asarray(x), device=device)

    def rows(state: Any) -> Tensor:
        """Our state (n, ...) in the layout of `ROWS`."""
        able = jnp.stack(reference_generator.capability(state.e.T, turn=ENV.turn_share), 1)
        parts = [state.boat, state.window, state.segment, state.commands[:, 0], state.e, able, privileged(state)]
        return torch.cat([to_torch(p).reshape(count, -1) for p in [*parts, state.age.astype(float)]], 1).T.float()

    def compare(name: str, theirs: Tensor, ours: Any, tolerance: float = 1e-5) -> None:
        ours = to_torch(ours) if not isinstance(ours, Tensor) else ours
        assert theirs.shape == ours.shape, f"{name}: shape {tuple(theirs.shape)}, not {tuple(ours.shape)}"
        difference = (theirs - ours).abs()
        if name == "observation":  # an angle near pi may be wrapped to near -pi
            difference = torch.minimum(difference, (2 * math.pi - difference).abs())
        relative = (difference / (1 + ours.abs())).max().item()
        worst[name] = max(worst.get(name, 0.0), relative)
        assert relative <= tolerance, f"{name} differs by {relative:.1e}, more than {tolerance:.0e}"

    worst: dict[str, float] = {}
    sizes = list(ROWS.values())
    start = jax.jit(jax.vmap(lambda u: ENV.reset(u, progress)))
    go = jax.jit(jax.vmap(lambda s, a, d: ENV.step(s, a, d, progress)))
    our_reset, our_observe = jax.jit(auto_reset), jax.jit(jax.vmap(ENV.observe))
    privileged = jax.jit(jax.vmap(ENV.privileged))
    state = start(jax.random.uniform(jax.random.key(1), (count, ENV.reset_draws)))
    # Some episodes are close to truncation; others terminate, since the actions are random.
    state = state._replace(age=jnp.arange(count) % ENV.episode_steps)
    action, ended = jnp.zeros((count, 3)), 0
    for key in jax.random.split(jax.random.key(0), steps):
        one, two, three = jax.random.split(key, 3)
        draws = ENV.draws(one, (count,))
        uniforms = jax.random.uniform(two, (count, ENV.reset_draws))
        action = 0.95 * action + 0.3 * jax.random.normal(three, (count, 3))
        before = rows(state)
        state, outcome = go(state, action, draws)
        after = rows(state)
        theirs, terms, terminated = step(before, to_torch(action), to_torch(draws.segment).T, progress)
        for name, got, expected in zip(ROWS, theirs.split(sizes), after.split(sizes), strict=True):
            compare(name, got, expected)
        compare("observation", observe(after), jnp.concatenate([our_observe(state), privileged(state)], 1))
        command, previous = (x.split(sizes)[3] for x in (after, before))
        exact = reward_terms(after[:6], after[6:12], command, previous, progress)
        for name, term in outcome.terms.items():
            compare(f"reward {name}", exact[name], term)
        # After a hundred turns the heading of a spinning boat is rounded to 1e-4 rad.
        compare("reward", sum(terms.values()), outcome.reward, 1e-4)
        assert (terminated == to_torch(outcome.terminated)).all(), "terminations differ"
        truncated = (theirs[-1] >= ENV.episode_steps) & ~terminated
        assert (truncated == to_torch(outcome.truncated)).all(), "truncations differ"
        fresh, new = start(uniforms), reset(to_torch(uniforms).T, progress)
        for name, got, expected in zip(ROWS, new.split(sizes), rows(fresh).split(sizes), strict=True):
            # c_uv is (1 - c_rv) times up to 2000.
            compare(f"reset {name}", got, expected, 1e-4 if name in ("e", "privileged") else 1e-5)
        done = outcome.terminated | outcome.truncated
        ended += int(done.sum())
        state = our_reset(done, fresh, state)
    assert ended > count // 4, f"only {ended} episodes ended"
    return worst
