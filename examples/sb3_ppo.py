"""Somebody else's learner: PPO from Stable-Baselines3 learns to steer Platform A. `pip install stable-baselines3`.

You will see the errors on the rectangle before and after training (some 500 cm, then 2 or 3), and the trained policy's
lap in out/sb3_ppo.png. Takes half a minute; another number of steps may be given as an argument.
"""

import sys

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecEnv

from anyhull import Vessel, rounded_rectangle, simulate
from anyhull.gym import TrackingFleet
from anyhull.observation import observe, pack


class Boats(VecEnv):
    """The fleet as Stable-Baselines3 wants it: one `done` a boat, and how its episode ended in a dict a boat."""

    def __init__(self, fleet):
        self.fleet = fleet
        super().__init__(fleet.num_envs, fleet.single_observation_space, fleet.single_action_space)

    def reset(self):
        return self.fleet.reset(seed=self._seeds[0])[0]

    def step_async(self, actions):
        self.outcome = self.fleet.step(actions)

    def step_wait(self):
        seen, reward, failed, late, info = self.outcome
        ends = zip(late, info.get("final_obs", seen), strict=True)
        return seen, reward, failed | late, [{"TimeLimit.truncated": t, "terminal_observation": o} for t, o in ends]

    close = get_attr = set_attr = env_method = env_is_wrapped = lambda self, *_, **__: [None] * self.num_envs


class Learned(PPO):
    """PPO as a controller too: its policy sees what it saw in training, and does not explore."""

    def reset(self):
        self.command = np.zeros(3)

    def step(self, pose, velocity, window):
        self.command, _ = self.predict(pack(observe(pose, velocity, window, self.command)), deterministic=True)
        return self.command


torch.set_num_threads(1)  # the networks are small: a second thread makes it no faster
boat = Vessel.load("platform-a")
boats = Boats(TrackingFleet(128, vessel=boat, progress=0.25))  # wide turns, and action costs at a quarter
settings = {"n_steps": 32, "batch_size": 512, "n_epochs": 5, "gamma": 0.96, "policy_kwargs": {"log_std_init": -1.0}}
model = Learned("MlpPolicy", boats, learning_rate=lambda left: 1e-3 * left, seed=0, device="cpu", **settings)
for name, steps in {"untrained": 0, "trained": int(sys.argv[1]) if sys.argv[1:] else 500_000}.items():
    log = simulate(model.learn(steps), boat, rounded_rectangle())
    print(f"{name}: {log.metrics().position_cm:.1f} cm and {log.metrics().heading_deg:.1f}° off")
log.plot("out/sb3_ppo.png")
