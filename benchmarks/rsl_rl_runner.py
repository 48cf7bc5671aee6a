"""rsl_rl's runner and PPO on the tracking environment in PyTorch, and the time of its iterations."""

from __future__ import annotations

import contextlib
import io
import sys
import time
import types
from typing import Any

import torch
from rsl_rl_environment import ENV, ROWS, advance, observe, reset
from torch import Tensor


class VecEnv:
    """The environment in the interface of rsl_rl's runner, with rewards scaled as in `anyhull.learn.ppo`."""

    num_actions = 3
    max_episode_length = ENV.episode_steps
    cfg: dict[str, Any] = {}  # noqa: RUF012

    def __init__(self, count: int, steps: int, device: str, *, scale: float, progress: float, compiled: bool) -> None:
        """New episodes are drawn once in `steps` steps, as `anyhull.learn.ppo.collect` does."""
        self.num_envs, self.device, self.steps, self.scale, self.progress = count, device, steps, scale, progress
        self.count = 0
        # On CUDA this mode records the compiled kernels as a CUDA graph.
        self.advance = torch.compile(advance, mode="reduce-overhead", dynamic=False) if compiled else advance
        self.draw = torch.compile(reset, dynamic=False) if compiled else reset
        self.state, self.fresh = (torch.zeros(sum(ROWS.values()), count, device=device) for _ in range(2))
        for buffer in (self.state, self.fresh) if compiled else ():
            torch._dynamo.mark_static_address(buffer)
        self.reset()

    @property
    def episode_length_buf(self) -> Tensor:
        return self.state[-1]

    @episode_length_buf.setter
    def episode_length_buf(self, ages: Tensor) -> None:
        self.state[-1] = ages

    def get_observations(self) -> tuple[Tensor, dict[str, Any]]:
        return observe(self.state), {"observations": {}}

    def reset(self) -> tuple[Tensor, dict[str, Any]]:
        self.state.copy_(reset(torch.rand(ENV.reset_draws, self.num_envs, device=self.device), self.progress))
        return self.get_observations()

    def step(self, actions: Tensor) -> tuple[Tensor, Tensor, Tensor, dict[str, Any]]:
        if self.count % self.steps == 0:
            uniforms = torch.rand(ENV.reset_draws, self.num_envs, device=self.device)
            self.fresh.copy_(self.draw(uniforms, self.progress))
        self.count += 1
        torch.compiler.cudagraph_mark_step_begin()
        state, observed, reward, done, truncated = self.advance(self.state, actions, self.fresh, self.progress)
        self.state.copy_(state)
        # A CUDA graph overwrites this observation with the next one before rsl_rl has stored it.
        return observed.clone(), self.scale * reward, done, {"time_outs": truncated, "observations": {}}


class CopiedOutput(torch.nn.Module):  # type: ignore[misc]
    """A network whose output survives the next replay of its CUDA graph."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        return self.network(x).clone()


def runner(
    config: Any, device: str, *, compiled: bool = False, networks: str | None = None, progress: float = 0.0
) -> Any:
    """rsl_rl's runner with the hyperparameters of `config`, an `anyhull.learn.config.PPO`.

    `compiled` compiles the environment's step, `networks` (a mode of `torch.compile`) actor and critic, with Adam as
    one fused kernel. The learning rate is fixed, so that no gradient step is left out.
    """
    sys.modules.setdefault("git", types.ModuleType("git"))  # rsl_rl imports it to record the state of the code
    from rsl_rl.runners import OnPolicyRunner

    from anyhull.learn.policies import ACTOR

    sizes = {"actor_hidden_dims": list(ACTOR), "critic_hidden_dims": list(ACTOR)}
    settings = {
        "num_steps_per_env": config.rollout_steps,
        "save_interval": sys.maxsize,
        "empirical_normalization": False,
        "policy": {"class_name": "ActorCritic", "activation": "elu", "init_noise_std": 0.5, **sizes},
        "algorithm": {
            "class_name": "PPO",
            "num_learning_epochs": config.epochs,
            "num_mini_batches": config.minibatches,
            "clip_param": config.clip_range,
            "gamma": config.gamma,
            "lam": config.gae_lambda,
            "value_loss_coef": config.value_coef,
            "entropy_coef": config.entropy_coef,
            "learning_rate": config.learning_rate,
            "max_grad_norm": config.max_grad_norm,
            "use_clipped_value_loss": False,
            "schedule": "fixed",
        },
    }
    env = VecEnv(
        config.num_envs, config.rollout_steps, device, scale=config.reward_scale, progress=progress, compiled=compiled
    )
    with contextlib.redirect_stdout(io.StringIO()):  # the runner prints its networks
        made = OnPolicyRunner(env, settings, device=device)
    made.disable_logs = True
    if networks:
        policy = made.alg.policy
        policy.actor, policy.critic = (
            CopiedOutput(torch.compile(net, mode=networks, dynamic=False)) for net in (policy.actor, policy.critic)
        )
        made.alg.optimizer = torch.optim.Adam(policy.parameters(), lr=config.learning_rate, fused=True)
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
    """The time (s) at which the work on the device is done."""
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    return time.perf_counter()
