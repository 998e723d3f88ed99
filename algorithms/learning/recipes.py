"""How to train, as data, and the stock `MaskablePPO` that a recipe builds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

from algorithms.learning.features import CardTimesHistory
from algorithms.learning.networks import DistinctPolicy
from algorithms.learning.selfplay import SelfPlayEnv, SelfPlayVecEnv
from algorithms.learning.tutorial import TurnsEnv
from algorithms.support.errors import UsageError, unknown

Settings: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """All that a training depends on: with equal ones, one machine trains the same policy."""

    recipe: str = "self-play"
    env: str = "vector"
    net: str = "table"
    steps: int = 16_000_000
    seed: int = 0
    n_envs: int = 4096  # hands at a time
    n_steps: int = 2  # decisions of each between updates
    lr: float = 16.0
    entropy: float = 0.2  # how strongly the policy is drawn to the magnet, or to uniform without
    magnet: float = 0.01  # how far the magnet follows the policy in an update; 0: no magnet
    vf_coef: float = 0.1


RECIPES = ("self-play", "tutorial")
ENVS = ("vector", "aec")
NETS = ("table", "mlp")

# What a network or a recipe wants otherwise than above.
_MLP: Settings = {"lr": 0.3, "vf_coef": 0.5}
_TUTORIAL: Settings = {
    "env": "aec",
    "net": "mlp",
    "steps": 30_000,
    "n_envs": 1,
    "n_steps": 2048,
    "lr": 3e-4,
    "entropy": 0.0,
    "magnet": 0.0,
    "vf_coef": 0.5,
}

# One full-batch step of plain gradient ascent an update: momentum and reuse make self-play rotate.
_SELF_PLAY_PPO: Settings = MappingProxyType(
    {
        "batch_size": None,
        "n_epochs": 1,
        "gamma": 1.0,
        "gae_lambda": 1.0,
        "normalize_advantage": False,
        "max_grad_norm": math.inf,
    }
)


@dataclass(frozen=True, slots=True)
class FallingRate:
    """A learning rate that is constant for the first half and falls to almost 0 in the second."""

    rate: float

    def __call__(self, remaining: float) -> float:
        """The rate when `remaining`, 1 to 0, of the training is left."""
        return self.rate * min(1.0, max(0.002, 2 * remaining))


def configure(given: Settings) -> Config:
    """The configuration that follows from the settings a user gave."""
    choices = {"recipe": RECIPES, "env": ENVS, "net": NETS}
    for name, known in choices.items():
        if given.get(name, known[0]) not in known:
            raise unknown(name, given[name], known)
    usual: Settings = {}
    if given.get("recipe") == "tutorial":
        usual = _TUTORIAL
    elif given.get("net") == "mlp":
        usual = _MLP
    made = Config(**{**usual, **given})
    if made.recipe == "tutorial" and (made.env, made.net) != ("aec", "mlp"):
        raise UsageError("the tutorial recipe has its own environment and network")
    _require_sense(made)
    return made


def build(config: Config, *, tensorboard: Path | None = None) -> MaskablePPO:
    """The model, untrained, with its environment."""
    self_play = config.recipe == "self-play"
    model = MaskablePPO(
        DistinctPolicy if self_play else "MlpPolicy",
        _environment(config),
        learning_rate=FallingRate(config.lr) if self_play else config.lr,
        n_steps=config.n_steps,
        ent_coef=config.entropy,
        vf_coef=config.vf_coef,
        policy_kwargs=_policy_kwargs(config),
        seed=config.seed,
        device="cpu",
        tensorboard_log=str(tensorboard) if tensorboard else None,
        **(_SELF_PLAY_PPO if self_play else {}),
    )
    if config.net == "table":
        # Every row has its own weights; a bias would tie them all together.
        for head in (model.policy.action_net, model.policy.value_net):
            head.bias.requires_grad_(False)
    return model


def _environment(config: Config) -> VecEnv:
    if config.recipe == "tutorial":
        return DummyVecEnv([TurnsEnv] * config.n_envs)
    if config.env == "vector":
        return SelfPlayVecEnv(config.n_envs)
    return DummyVecEnv([partial(SelfPlayEnv, first=i) for i in range(config.n_envs)])


def _policy_kwargs(config: Config) -> dict[str, Any]:
    if config.recipe == "tutorial":
        return {}
    kwargs: dict[str, Any] = {"optimizer_class": torch.optim.SGD}
    if config.net == "table":
        kwargs |= {"features_extractor_class": CardTimesHistory, "net_arch": []}
    return kwargs


_MOST = {"magnet": 1, "seed": 2**32 - 1, "n_envs": 2**20, "n_steps": 2**16}


def _require_sense(config: Config) -> None:
    """Refuse numbers that cannot be meant."""
    for field in fields(config):
        value = getattr(config, field.name)
        if isinstance(value, str):
            continue
        least = 1 if field.name in {"steps", "n_envs", "n_steps"} else 0
        most = _MOST.get(field.name, math.inf)
        if not (math.isfinite(value) and least <= value <= most):
            span = f"{least} to {most}" if most < math.inf else f"{least} up"
            raise UsageError(f"--{field.name.replace('_', '-')} {value}: want a number from {span}")
