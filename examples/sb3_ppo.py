"""Another library's learner: PPO of Stable-Baselines3 on Platform A. Needs `pip install stable-baselines3`.

Prints the errors on the rectangle before and after training (about 500 cm, then 2 or 3), and draws the last lap in
out/sb3_ppo.png. Takes half a minute. Usage: sb3_ppo.py [training steps]
"""

import sys

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecEnv

from anyhull import Vessel, rounded_rectangle, simulate, viz
from anyhull.gym import TrackingVector
from anyhull.observation import observe, pack


class SB3Env(VecEnv):
    """The vectorized environment in the interface of Stable-Baselines3: one `done` and one info dict for each boat."""

    def __init__(self, env):
        self.env = env
        super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)

    def reset(self):
        return self.env.reset(seed=self._seeds[0])[0]

    def step_async(self, actions):
        self.outcome = self.env.step(actions)

    def step_wait(self):
        o, r, terminated, truncated, info = self.outcome
        ends = zip(truncated, info.get("final_obs", o), strict=True)
        return o, r, terminated | truncated, [{"TimeLimit.truncated": t, "terminal_observation": z} for t, z in ends]

    close = get_attr = set_attr = env_method = env_is_wrapped = lambda self, *_, **__: [None] * self.num_envs


class PPOController(PPO):
    """PPO with the interface of a controller: the observation of training, and deterministic actions."""

    def reset(self):
        self.command = np.zeros(3)

    def step(self, pose, velocity, window):
        self.command, _ = self.predict(pack(observe(pose, velocity, window, self.command)), deterministic=True)
        return self.command


torch.set_num_threads(1)  # the networks are too small to gain from a second thread
boat = Vessel.load("platform-a")
boats = SB3Env(TrackingVector(128, vessel=boat, progress=0.25))  # wide turns, and a quarter of the action costs
settings = {"n_steps": 32, "batch_size": 512, "n_epochs": 5, "gamma": 0.96, "policy_kwargs": {"log_std_init": -1.0}}
model = PPOController("MlpPolicy", boats, learning_rate=lambda left: 1e-3 * left, seed=0, device="cpu", **settings)
for name, steps in {"untrained": 0, "trained": int(sys.argv[1]) if sys.argv[1:] else 500_000}.items():
    log = simulate(model.learn(steps), boat, rounded_rectangle())
    print(f"{name}: mean error {log.metrics().position_cm:.1f} cm and {log.metrics().heading_deg:.1f}°")
viz.plot(log, "out/sb3_ppo.png")
