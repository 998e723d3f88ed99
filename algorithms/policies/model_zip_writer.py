"""Stock `MaskablePPO` models of networks that were not trained by PPO, and their zip files.

Such a model has SB3's `MlpPolicy` and nothing of this project: `MaskablePPO.load` opens its zip
anywhere. What it adds is the name of the game, `model.game`, by which commands load it again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from sb3_contrib import MaskablePPO
from torch import nn

from algorithms.games import Game
from algorithms.support.files import replacing

# PPO's settings to continue learning from the model: those of our training, with small steps.
_COMMON: dict[str, Any] = {
    "n_epochs": 1,
    "gamma": 1.0,
    "gae_lambda": 1.0,
}
TREE_SETTINGS: dict[str, Any] = _COMMON | {
    "learning_rate": 1e-5,
    "n_steps": 64,
    "batch_size": None,
    "ent_coef": 0.1,
    "normalize_advantage": False,
}
STATES_SETTINGS: dict[str, Any] = _COMMON | {
    "learning_rate": 1e-5,
    "n_steps": 32,
    "batch_size": 1024,
    "ent_coef": 0.03,
    "clip_range": 0.1,
}
# What belongs to an environment, or differs between equal models.
NOT_SAVED = ["_last_obs", "_last_episode_starts"]


def make_model(game: Game, *, actor: nn.Sequential, critic: nn.Sequential) -> MaskablePPO:
    """A model whose policy has the weights of two networks of equal hidden layers with ReLU."""
    widths = [layer.out_features for layer in actor if isinstance(layer, nn.Linear)][:-1]
    model: Any = MaskablePPO(
        "MlpPolicy",
        None,
        policy_kwargs={"net_arch": widths, "activation_fn": nn.ReLU},
        device="cpu",
        _init_setup_model=False,
        **(TREE_SETTINGS if game.backend == "tree" else STATES_SETTINGS),
    )
    # Without an environment, its spaces are set before the layers are made.
    model.observation_space = observation_space(game)
    model.action_space = spaces.Discrete(game.num_actions)
    model.n_envs = 1
    with torch.random.fork_rng(devices=[]):  # the first weights are replaced
        model._setup_model()
    policy = model.policy
    _copy_linear_layers(actor, [*policy.mlp_extractor.policy_net, policy.action_net])
    _copy_linear_layers(critic, [*policy.mlp_extractor.value_net, policy.value_net])
    model.game = game.name
    return model


def observation_space(game: Game) -> spaces.Box:
    """The space of the inputs of a network that plays a game in the form that it is trained in."""
    if game.backend != "tree":
        size = game.observation_size + game.num_players
        return spaces.Box(-np.inf, np.inf, (size,), np.float32)
    inputs = game.network_inputs()
    low = min(0.0, float(inputs.min()))
    high = max(1.0, float(inputs.max()))
    return spaces.Box(low, high, inputs.shape[1:], np.float32)


def write_model(model: MaskablePPO, path: str | Path) -> None:
    """Write the zip, whole or not at all."""
    with replacing(path) as temporary:
        model.save(temporary, exclude=NOT_SAVED)


def _copy_linear_layers(source: nn.Sequential, target: list[nn.Module]) -> None:
    """Copy the weights of the linear layers, in order."""
    linear = [layer for layer in target if isinstance(layer, nn.Linear)]
    weights = [layer.state_dict() for layer in source if isinstance(layer, nn.Linear)]
    for layer, state in zip(linear, weights, strict=True):
        layer.load_state_dict(state)
