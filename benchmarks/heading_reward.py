"""Sensitivity of the paper's reward to heading, and the bias of the critic in heading.

    python heading_reward.py

A boat on the path at constant speed may have a heading error: its sway drag then replaces some of the sway force, and
the reward penalizes effort. The first table has, for each platform, in the rectangle's corners (0.6 m/s, 2 m) and on
its sides: the heading error of the largest reward, its gain over zero heading error, and the loss of reward 2 degrees
from that optimum. The second has the mean reward of a step, from two seconds after the start of a lap, of the MPC and
of policies trained with the paper's recipe. The third has, from a side at several headings, the value that the critic
of PPO (specific) predicts and the discounted return that its actor gets, with the exploration of the end of training.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from anyhull import Pilot, rounded_rectangle, simulate
from anyhull.control import MPC
from anyhull.controller import Controller
from anyhull.dynamics import PERIOD, inverse_dynamics
from anyhull.learn.checkpoints import load_policy
from anyhull.learn.evaluate import GivenReference
from anyhull.learn.policies import Teacher
from anyhull.learn.reward import RewardWeights, reward_terms
from anyhull.learn.rollout import Step, rollout
from anyhull.paper import PLATFORMS
from anyhull.policy_file import locate
from anyhull.reference import PREVIEW, line
from anyhull.vessel import Vessel

SPEED, RADIUS = 0.6, 2.0
ANGLES = np.radians(np.linspace(-15.0, 15.0, 601))
HEADINGS = (-8.0, -4.0, -2.0, 0.0, 2.0, 4.0, 8.0)
"""Initial headings, degrees to the left of the path."""


def total(state: Any, reference: Any, command: Any, previous: Any) -> float:
    """The reward of a step at the end of training; with NumPy arrays the tracking errors have double precision."""
    terms = reward_terms(state, reference, command, previous, 1.0, RewardWeights())
    return float(sum(terms.values(), start=jnp.zeros(())))


def reward(vessel: Vessel, error: float, rate: float) -> float:
    """Reward of a steady motion along the path with a heading `error` to its right, under the command it needs."""
    velocity = (SPEED * np.cos(error), SPEED * np.sin(error), rate)
    command = np.array(inverse_dynamics(velocity, (0.0, 0.0, 0.0), vessel.normalized))
    if np.abs(command).max() > 1:
        return -np.inf
    state, reference = np.array([0.0, 0.0, -error, *velocity]), np.array([0.0, 0.0, 0.0, SPEED, 0.0, rate])
    return total(state, reference, command, command)


def lap(controller: Controller, vessel: Vessel) -> tuple[float, float]:
    """The mean reward of a step on the rectangle, and the mean heading error in degrees."""
    log = simulate(controller, vessel, rounded_rectangle())
    previous = np.vstack([np.zeros(3), log.command[:-1]])
    # The reward of a command is that of the state after it.
    rows = zip(log.state[21:], log.reference[21:], log.command[20:-1], previous[20:-1], strict=True)
    return float(np.mean([total(*row) for row in rows])), log.metrics().heading_deg


def value_and_return(name: str, steps: int = 200, runs: int = 256) -> tuple[np.ndarray, np.ndarray, float]:
    """By initial heading on a side: the critic's value, the mean return, and the final heading of the boat, degrees."""
    policy, config, _ = load_policy(locate(f"ppo-specific-{name}"))
    assert isinstance(policy, Teacher)
    env = GivenReference(**vars(config.environment))
    points = jnp.array(line(speed=SPEED).at(PERIOD * np.arange(steps + PREVIEW + 1, dtype=np.float64)))
    windows = jnp.stack([points[k : k + steps + 1] for k in range(PREVIEW + 1)], axis=1)
    heading = jnp.repeat(jnp.radians(jnp.array(HEADINGS)), runs)
    count, one, two, three = len(heading), *jax.random.split(jax.random.key(0), 3)
    windows = jnp.broadcast_to(windows[:, None], (steps + 1, count, *windows.shape[1:]))
    boat = jnp.zeros((count, 6)).at[:, 2].set(heading)
    boat = boat.at[:, 3].set(SPEED * jnp.cos(heading)).at[:, 4].set(-SPEED * jnp.sin(heading))
    e = jnp.tile(jnp.array(Vessel.load(name).normalized), (count, 1))
    state = jax.vmap(env.reset)(jax.random.uniform(one, (count, env.reset_draws)))
    state = state._replace(boat=boat, previous_pose=boat[:, :3], e=e, window=windows[0])

    def record(s: Step) -> tuple[Array, Array, Array]:
        value = policy.value(s.observation, s.history, s.latent, s.memory)
        return s.outcome.reward, value, s.next_state.boat[:, 2]

    draws, noise = (env.draws(two, (steps, count)), windows[1:]), jax.random.normal(three, (steps, count, 3))
    exploration = jnp.exp(policy.actor_critic.log_std) * noise
    memory = jnp.zeros((count, policy.memory_size))
    _, _, found = rollout(policy.act, env, state, memory, draws, record, exploration=exploration)
    reward, value, final = (np.asarray(x) for x in found)
    returns = config.ppo.reward_scale * (config.ppo.gamma ** np.arange(steps)) @ reward
    values, returns = (x.reshape(len(HEADINGS), runs).mean(1) for x in (value[0], returns))
    return values, returns, float(np.degrees(final[-1]).mean())


def main() -> None:
    print(f"{'':12s} {'':8s} {'optimum, °':>10s} {'gain':>8s} {'2° loss':>8s}")
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
        controllers: dict[str, Controller] = {
            "mpc": MPC(vessel),
            "ppo-specific": Pilot.load(f"ppo-specific-{name}"),
            "teacher": Pilot.load("teacher", vessel),
            "ideal": Pilot.load("ideal"),
        }
        for who, controller in controllers.items():
            mean, heading = lap(controller, vessel)
            print(f"{name:12s} {who:14s} {mean:8.3f} per step, heading error {heading:.2f}°")
    print(f"\n{'initial heading on a side, °':32s}" + "".join(f"{angle:8.0f}" for angle in HEADINGS))
    for name in PLATFORMS:
        value, returns, final = value_and_return(name)
        print(f"{name:12s} {'critic':19s} {''.join(f'{number:8.3f}' for number in value)}")
        print(f"{'':12s} {'return':19s} {''.join(f'{number:8.3f}' for number in returns)}   final heading {final:.1f}°")


if __name__ == "__main__":
    main()
