"""Live models of Stable-Baselines3 as networks."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from algorithms.games import Game, as_game
from algorithms.policies.network import Network, evaluating, require_fits, to_array
from algorithms.support.arrays import BoolArray, Float32Array
from kuhn_bridge.errors import PolicyError


def network_of_model(model: Any, game: Game | str | None = None) -> tuple[Game, Network]:
    """The game of a live `MaskablePPO`, `PPO` or `A2C`, and the network that plays it.

    The network plays as the model does now: what is learned later changes it. Observations are
    normalised if a `VecNormalize` of the model normalises them.
    """
    policy: Any = getattr(model, "policy", None)
    if not hasattr(policy, "get_distribution"):
        raise PolicyError(
            f"{type(model).__name__} is not a model whose policy can be measured: want a "
            "MaskablePPO or PPO of Stable-Baselines3"
        )
    loaded = as_game(_game_name(model) if game is None else game)
    shape = getattr(policy.observation_space, "shape", None)
    if shape is None or len(shape) != 1:
        raise PolicyError(
            f"the model sees observations of shape {shape}; {loaded.name} has a vector of "
            f"{loaded.observation_size}"
        )
    normalise = model.get_vec_normalize_env()

    def logits(inputs: Float32Array, legal: BoolArray) -> npt.ArrayLike:
        del legal  # illegal actions are masked out afterwards
        seen = inputs if normalise is None else normalise.normalize_obs(inputs)
        tensor = torch.from_numpy(np.asarray(seen, np.float32)).to(policy.device)
        with torch.no_grad(), evaluating(policy):
            return to_array(policy.get_distribution(tensor).distribution.logits)

    network = Network(logits, int(shape[0]), int(policy.action_space.n))
    require_fits(network, loaded)
    return loaded, network


def _game_name(model: Any) -> Game | str:
    """The game of a model's environment, or the one that its file named."""
    env = model.get_env()
    if env is not None and env.has_attr("game"):
        game: Game | str = env.get_attr("game")[0]
        return game
    name = getattr(model, "game", None)
    if not isinstance(name, str):
        raise PolicyError("the model does not say which game it plays: give game=")
    return name
