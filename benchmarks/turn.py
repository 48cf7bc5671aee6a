"""What the paper's reward pays for heading: in steady motion, and to controllers over a lap.

    python turn.py

A boat that stays on the path at constant speed may still point beside it: it then moves sideways through the water,
whose resistance does some of the sway actuator's work, and the reward has a price on effort. For each platform, on the
rectangle's corners (0.6 m/s, 2 m) and on its sides: the heading error at which the reward is largest, what it gains
over pointing along the path, and by how much the reward falls 2 degrees from that optimum. Then what it pays a step,
from two seconds after the start of a lap on, to the MPC and to the shipped policies that the paper's recipe made. Last,
from a side at several headings: what the critic of PPO (specific) expects, and what its actor then gets, discounted as
in training, with the noise of the end of training.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from anyhull import Pilot, rounded_rectangle, simulate
from anyhull.control import MPC
from anyhull.controller import Controller
from anyhull.dynamics import PERIOD, balance
from anyhull.learn.files import load_policy
from anyhull.learn.reward import Weights, terms
from anyhull.pilot import shipped_path
from anyhull.reference import PREVIEW
from anyhull.vessel import PLATFORMS, Vessel

SPEED, RADIUS = 0.6, 2.0
ANGLES = np.radians(np.linspace(-15.0, 15.0, 601))
OFF = (-8.0, -4.0, -2.0, 0.0, 2.0, 4.0, 8.0)
"""Headings from which a return is measured, degrees to the left of the path."""


def reward(vessel: Vessel, error: float, rate: float) -> float:
    """Of a steady motion along the path, heading `error` to its right, under the command that keeps it up."""
    velocity = (SPEED * np.cos(error), SPEED * np.sin(error), rate)
    command = np.array(balance(velocity, (0.0, 0.0, 0.0), vessel.normalized))
    if np.abs(command).max() > 1:
        return -np.inf
    state, reference = np.array([0.0, 0.0, -error, *velocity]), np.array([0.0, 0.0, 0.0, SPEED, 0.0, rate])
    return float(sum(terms(state, reference, command, command, 1.0, Weights()).values()))


def paid(controller: Controller, vessel: Vessel) -> tuple[float, float]:
    """The mean reward of a step on the rectangle, and the mean heading error in degrees."""
    log = simulate(controller, vessel, rounded_rectangle())
    before = np.vstack([np.zeros(3), log.command[:-1]])
    # A command is rewarded by the state that it leads to.
    rows = zip(log.state[21:], log.reference[21:], log.command[20:-1], before[20:-1], strict=True)
    steps = [float(sum(terms(*row, 1.0, Weights()).values())) for row in rows]
    return float(np.mean(steps)), log.metrics().heading_deg


def expected(name: str, steps: int = 200, runs: int = 256) -> tuple[np.ndarray, np.ndarray, float]:
    """By heading on a side: the critic's value, the mean return, and the heading that the boat settles to, degrees."""
    policy, config, _ = load_policy(shipped_path(f"ppo-specific-{name}"))
    task, ppo = config.task, config.ppo
    time = PERIOD * jnp.arange(steps + PREVIEW + 1)
    points = jnp.zeros((len(time), 6)).at[:, 0].set(SPEED * time).at[:, 3].set(SPEED)
    windows = jnp.stack([points[k : k + steps + 1] for k in range(PREVIEW + 1)], axis=1)
    off = jnp.repeat(jnp.radians(jnp.array(OFF)), runs)
    state = jnp.zeros((len(off), 6)).at[:, 2].set(off)
    state = state.at[:, 3].set(SPEED * jnp.cos(off)).at[:, 4].set(-SPEED * jnp.sin(off))

    def along(fleet, window):
        return fleet._replace(window=jnp.broadcast_to(window, (len(off), *window.shape)))

    def step(fleet, inputs):
        window, key = inputs
        none = jnp.zeros((len(off), 0))
        mean, value = policy.evaluate(jax.vmap(task.observe)(fleet), none, none, none)
        one, two = jax.random.split(key)
        action = mean + jnp.exp(policy.body.log_std) * jax.random.normal(one, mean.shape)
        moved, outcome = jax.vmap(task.step)(fleet, action, task.draws(two, (len(off),)))
        return along(moved, window), (outcome.reward, value, moved.boat[:, 2])

    fleet = jax.vmap(task.reset)(jax.random.uniform(jax.random.key(0), (len(off), task.reset_draws)))
    e = jnp.tile(jnp.array(Vessel.load(name).normalized), (len(off), 1))
    fleet = along(fleet._replace(boat=state, before=state[:, :3], e=e), windows[0])
    _, (paid, value, heading) = jax.lax.scan(step, fleet, (windows[1:], jax.random.split(jax.random.key(1), steps)))
    returns = ppo.reward_scale * (ppo.gamma ** np.arange(steps)) @ np.asarray(paid)
    return (
        np.asarray(value[0]).reshape(len(OFF), runs).mean(1),
        returns.reshape(len(OFF), runs).mean(1),
        float(np.degrees(np.asarray(heading[-1])).mean()),
    )


def main() -> None:
    print(f"{'':12s} {'':8s} {'optimum, °':>10s} {'gain':>8s} {'2° off':>8s}")
    for name in PLATFORMS:
        vessel = Vessel.load(name)
        for where, rate in (("corner", SPEED / RADIUS), ("side", 0.0)):
            found = np.array([reward(vessel, angle, rate) for angle in ANGLES])
            best = int(found.argmax())
            near = np.interp(ANGLES[best] + np.radians([-2.0, 2.0]), ANGLES, found)
            gain = found[best] - reward(vessel, 0.0, rate)
            print(
                f"{name:12s} {where:8s} {np.degrees(ANGLES[best]):10.2f} {gain:8.4f} {found[best] - near.mean():8.4f}"
            )
    print()
    for name in PLATFORMS:
        vessel = Vessel.load(name)
        for who, controller in {
            "mpc": MPC(vessel),
            "ppo-specific": Pilot.load(f"ppo-specific-{name}"),
            "teacher": Pilot.load("teacher", vessel),
            "ideal": Pilot.load("ideal"),
        }.items():
            reward_of, heading = paid(controller, vessel)
            print(f"{name:12s} {who:14s} {reward_of:8.3f} a step, heading {heading:.2f}°")
    print(f"\n{'heading on a side, °':32s}" + "".join(f"{angle:8.0f}" for angle in OFF))
    for name in PLATFORMS:
        value, gained, settled = expected(name)
        print(f"{name:12s} {'critic':19s} {''.join(f'{number:8.3f}' for number in value)}")
        print(f"{'':12s} {'return':19s} {''.join(f'{number:8.3f}' for number in gained)}   settles at {settled:.1f}°")


if __name__ == "__main__":
    main()
