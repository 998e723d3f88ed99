"""Trained policies as SB3 zips that open anywhere: SB3's own classes and numbers, nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from torch import nn

from algorithms.games import Game
from algorithms.learning.environments import SelfPlayVecEnv
from algorithms.policies.network import network_table
from algorithms.policies.sb3 import actor_of
from algorithms.support.arrays import Float64Array
from algorithms.support.files import replacing

NEVER = 1e-9  # the probability that a network gives to what is never played
MAX_PLACED_WEIGHTS = 10_000_000  # of a layer with one unit per information set
HIDDEN = (128, 128)

# How to learn on from a saved model: PPO's settings of our training, with gentle steps.
FINE_TUNING = {
    "learning_rate": 3e-4,
    "n_steps": 8,
    "batch_size": None,
    "n_epochs": 1,
    "gamma": 1.0,
    "gae_lambda": 1.0,
    "normalize_advantage": False,
    "ent_coef": 0.1,
    "max_grad_norm": 0.5,
}
# Weights that information sets share need larger batches and smaller steps.
NETWORK_FINE_TUNING = FINE_TUNING | {"learning_rate": 1e-5, "n_steps": 64}
STATES_FINE_TUNING = {
    "learning_rate": 1e-5,
    "n_steps": 32,
    "batch_size": 1024,
    "n_epochs": 1,
    "gamma": 1.0,
    "gae_lambda": 1.0,
    "ent_coef": 0.03,
    "clip_range": 0.1,
}


def save_table(
    path: Path,
    game: Game,
    table: Float64Array,
    *,
    trained: Any,
    notes: Mapping[str, str],
) -> None:
    """A zip with SB3's `MlpPolicy` that plays `table` `(I, A)`, with the values of a trained table.

    Args:
        path: the file; it is written whole or not at all.
        game: whose table it is.
        table: what to play.
        trained: the model of the run, with an `InfosetPolicy`.
        notes: attributes of the model, such as the game's name.
    """
    placed = _can_be_placed(game)
    width = [len(game.tree.keys)] if placed else list(HIDDEN)
    model = _stock_model(game, {"net_arch": width, "activation_fn": nn.ReLU}, FINE_TUNING)
    if placed:
        _place(model.policy, game, table, trained.policy.values())
    else:
        imitate(actor_of(model.policy), game, table)
    _write(path, model, trained.num_timesteps, notes)


def save_network(
    path: Path,
    game: Game,
    plays: Float64Array | nn.Module,
    *,
    trained: Any,
    notes: Mapping[str, str],
) -> None:
    """A zip with SB3's `MlpPolicy` of a trained policy's size that plays a table or a network.

    Args:
        path: the file; it is written whole or not at all.
        game: whose policy it is.
        plays: what to play: a table `(I, A)`, to which the network is fitted unless it plays it
            already, or a network, whose weights are copied.
        trained: the model of the run.
        notes: attributes of the model, such as the game's name.
    """
    policy = trained.policy
    kwargs = {
        "net_arch": policy.net_arch,
        "activation_fn": policy.activation_fn,
        "optimizer_kwargs": policy.optimizer_kwargs,
    }
    on_states = isinstance(plays, nn.Module)
    model = _stock_model(
        game, kwargs, STATES_FINE_TUNING if on_states else NETWORK_FINE_TUNING, on_states=on_states
    )
    model.policy.load_state_dict(policy.state_dict())
    actor = actor_of(model.policy)
    if isinstance(plays, nn.Module):
        actor.load_state_dict(plays.state_dict())
    elif np.abs(network_table(actor, game) - plays).max() > 1e-6:
        imitate(actor, game, plays)
    _write(path, model, trained.num_timesteps, notes)


def _write(path: Path, model: Any, steps: int, notes: Mapping[str, str]) -> None:
    model.num_timesteps = steps
    for name, note in notes.items():
        setattr(model, name, note)
    with replacing(path) as temporary:
        model.save(temporary, exclude=["_last_obs", "_last_episode_starts"])


def _stock_model(
    game: Game,
    policy_kwargs: dict[str, Any],
    settings: Mapping[str, Any],
    *,
    on_states: bool = False,
) -> Any:
    env = SelfPlayVecEnv(1, game, on="states" if on_states else "tree")
    return MaskablePPO("MlpPolicy", env, policy_kwargs=policy_kwargs, device="cpu", **settings)


def _can_be_placed(game: Game) -> bool:
    inputs = game.network_inputs()
    return bool(np.isin(inputs, (0, 1)).all()) and inputs.size <= MAX_PLACED_WEIGHTS


def _place(policy: Any, game: Game, table: Float64Array, values: torch.Tensor) -> None:
    """Give each information set a hidden unit that answers to its observation alone.

    For observations `x` and `y` of 0 and 1, `(2y - 1) x` is `sum(y)` if they are equal and else
    less, by 1 at least. So with the bias `1 - sum(y)` and a ReLU the unit is 1 at `y` and 0 at all
    others: what follows is a table, exact for every policy.
    """
    inputs = torch.tensor(game.network_inputs())
    logs = torch.as_tensor(np.log(np.maximum(table, NEVER))).float()
    extractor = policy.mlp_extractor
    with torch.no_grad():
        for first in (extractor.policy_net[0], extractor.value_net[0]):
            first.weight.copy_(2 * inputs - 1)
            first.bias.copy_(1 - inputs.sum(1))
        for head, columns in ((policy.action_net, logs), (policy.value_net, values)):
            head.weight.copy_(columns.T)
            head.bias.zero_()


def imitate(actor: nn.Module, game: Game, table: Float64Array) -> None:
    """Fit a network's weights to play `table` `(I, A)`, by itself never an illegal action.

    By L-BFGS on the KL divergence: for a dozen information sets to about 1e-5 in half a second.
    """
    inputs = torch.tensor(game.network_inputs()).double()
    wanted = torch.tensor(table).clamp(min=NEVER)
    optimizer = torch.optim.LBFGS(
        list(actor.double().parameters()),
        max_iter=min(300, max(30, 500_000 // len(inputs))),
        tolerance_grad=1e-10,
        tolerance_change=1e-14,
        line_search_fn="strong_wolfe",
    )

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        divergence = nn.functional.kl_div(actor(inputs).log_softmax(1), wanted, reduction="sum")
        divergence.backward()  # type: ignore[no-untyped-call]
        return divergence

    optimizer.step(loss)  # type: ignore[no-untyped-call]
    actor.float()
