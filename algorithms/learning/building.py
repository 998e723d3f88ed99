"""The stock `MaskablePPO` that a recipe builds."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

from algorithms.games import Game, load_game
from algorithms.learning.networks import RowPolicy
from algorithms.learning.recipes import Config, Settings
from algorithms.learning.selfplay import SelfPlayEnv, SelfPlayVecEnv
from algorithms.learning.tutorial import TurnsEnv

# Whole batches: the step of an update is decided once, by the first gradient.
_SELF_PLAY_PPO: Settings = MappingProxyType(
    {
        "batch_size": None,
        "gamma": 1.0,
        "gae_lambda": 1.0,
        "normalize_advantage": False,
        "max_grad_norm": math.inf,
    }
)


def build(config: Config, *, tensorboard: Path | None = None) -> MaskablePPO:
    """The model, untrained, with its environment."""
    log = str(tensorboard) if tensorboard else None
    if config.recipe == "tutorial":
        return MaskablePPO(
            "MlpPolicy",
            DummyVecEnv([TurnsEnv] * config.n_envs),
            learning_rate=config.lr,
            n_steps=config.n_steps,
            ent_coef=config.entropy,
            vf_coef=config.vf_coef,
            seed=config.seed,
            device="cpu",
            tensorboard_log=log,
        )
    game = load_game(config.game)
    return MaskablePPO(
        RowPolicy,
        _environment(config, game),
        learning_rate=partial(_falling, config.fit_lr) if config.net == "mlp" else 1.0,
        n_steps=config.n_steps,
        n_epochs=config.fit,
        vf_coef=config.vf_coef,
        policy_kwargs={"game": game, **_network(config)},
        seed=config.seed,
        device="cpu",
        tensorboard_log=log,
        **_SELF_PLAY_PPO,
    )


def _environment(config: Config, game: Game) -> VecEnv:
    if config.env == "vector":
        return SelfPlayVecEnv(config.n_envs, game, numbered=True)
    return DummyVecEnv(
        [partial(SelfPlayEnv, game, first=i, numbered=True) for i in range(config.n_envs)]
    )


def _network(config: Config) -> dict[str, Any]:
    if config.net == "table":
        return {"table": True, "net_arch": [], "optimizer_class": torch.optim.SGD}
    return {"net_arch": [config.width, config.width]}


def _falling(rate: float, remaining: float) -> float:
    """Adam's rate when `remaining`, 1 to 0, of the training run is left."""
    return float(rate * 0.3 ** (1 - remaining))
