"""Stock `MaskablePPO` models of networks that were not trained by PPO, and their zip files.

Such a model has SB3's `MlpPolicy` and nothing of this project: `MaskablePPO.load` opens its zip
anywhere. What it adds is the name of the game, `model.game`, by which commands load it again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from gymnasium import spaces
from sb3_contrib import MaskablePPO
from stable_baselines3.common.torch_layers import FlattenExtractor
from torch import nn

from algorithms.games import Game
from algorithms.policies.model_zip import ACTIVATIONS
from algorithms.support.files import replacing

# PPO's settings to continue learning from the model: those of our training, with small steps.
TREE_SETTINGS: dict[str, Any] = {
    "gamma": 1.0,
    "gae_lambda": 1.0,
    "learning_rate": 3e-4,
    "n_epochs": 5,
    "n_steps": 4,
    "batch_size": 2048,
    "normalize_advantage": False,
}
STATES_SETTINGS: dict[str, Any] = {
    "gamma": 1.0,
    "gae_lambda": 1.0,
    "learning_rate": 1e-5,
    "n_epochs": 1,
    "n_steps": 32,
    "batch_size": 1024,
    "ent_coef": 0.01,
    "clip_range": 0.1,
    "normalize_advantage": False,
}
# What belongs to an environment, or differs between equal models.
NOT_SAVED = ["_last_obs", "_last_episode_starts"]


class Layers(NamedTuple):
    """A network as SB3's `MlpPolicy` arranges one: linear layers, and one kind of activation."""

    linear: tuple[nn.Linear, ...]
    activation: type[nn.Module]


def layers_of(network: nn.Module) -> Layers | None:
    """The layers of a plain network; None if an `MlpPolicy` cannot have its form."""
    linear: list[nn.Linear] = []
    activations: list[nn.Module] = []
    for part in _parts(network):
        if isinstance(part, nn.Flatten | nn.Identity | FlattenExtractor):
            continue
        if isinstance(part, nn.Linear) and part.bias is not None:
            linear.append(part)
        else:
            activations.append(part)
        # Linear layers and activations take turns.
        if len(linear) - len(activations) not in (0, 1):
            return None
    if len(linear) != len(activations) + 1:
        return None
    kinds = {type(part) for part in activations} or {nn.ReLU}
    # SB3 makes an activation without arguments: one that prints alike has none.
    if len(kinds) > 1 or not all(repr(part) == repr(type(part)()) for part in activations):
        return None
    activation = kinds.pop()
    has_weights = any(list(part.parameters()) for part in activations)
    if has_weights or activation not in ACTIVATIONS.values():
        return None
    return Layers(linear=tuple(linear), activation=activation)


def _parts(network: nn.Module) -> Iterator[nn.Module]:
    """The modules of nested `Sequential`s, in order."""
    if isinstance(network, nn.Sequential):
        for part in network:
            yield from _parts(part)
    else:
        yield network


def make_model(
    game: Game, *, actor: Layers, critic: Layers | None = None, backend: str | None = None
) -> MaskablePPO:
    """A model that plays like the actor; its critic has as many units, and says 0 if it is None.

    It can go on learning on the `backend`, "tree" or "states", by default on that of the game.
    """
    backend = backend or game.backend
    widths = [layer.out_features for layer in actor.linear[:-1]]
    inputs = actor.linear[0].in_features
    model: Any = MaskablePPO(
        "MlpPolicy",
        None,
        policy_kwargs={"net_arch": widths, "activation_fn": actor.activation},
        device="cpu",
        _init_setup_model=False,
        **(TREE_SETTINGS if backend == "tree" else STATES_SETTINGS),
    )
    # Without an environment, its spaces are set before the layers are made.
    model.observation_space = observation_space(game, inputs, backend)
    model.action_space = spaces.Discrete(game.num_actions)
    model.n_envs = 1
    with torch.random.fork_rng(devices=[]):  # the first weights are replaced
        model._setup_model()
    policy = model.policy
    _copy_layers(actor, [*policy.mlp_extractor.policy_net, policy.action_net])
    if critic is None:
        nn.init.zeros_(policy.value_net.weight)
        nn.init.zeros_(policy.value_net.bias)
    else:
        _copy_layers(critic, [*policy.mlp_extractor.value_net, policy.value_net])
    model.game = game.name
    return model


def observation_space(game: Game, size: int, backend: str) -> spaces.Box:
    """The space of a network's inputs, as the environments of the game have it."""
    if backend != "tree":
        return spaces.Box(-np.inf, np.inf, (size,), np.float32)
    inputs = game.network_inputs(size)
    low = min(0.0, float(inputs.min()))
    high = max(1.0, float(inputs.max()))
    return spaces.Box(low, high, inputs.shape[1:], np.float32)


def write_model(model: MaskablePPO, path: str | Path) -> None:
    """Write the zip, whole or not at all."""
    with replacing(path) as temporary:
        model.save(temporary, exclude=NOT_SAVED)


def _copy_layers(source: Layers, target: list[nn.Module]) -> None:
    """Copy the weights of the linear layers, in order."""
    linear = [layer for layer in target if isinstance(layer, nn.Linear)]
    for layer, weights in zip(linear, source.linear, strict=True):
        layer.load_state_dict(weights.state_dict())
