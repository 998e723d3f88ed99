"""Trained policies as SB3 zips that load anywhere: only SB3's own classes and numbers."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from torch import nn

from algorithms.games import Game
from algorithms.learning.environments import SelfPlayVecEnv
from algorithms.learning.learner import InfosetPolicy
from algorithms.policies.network import network_table
from algorithms.policies.sb3 import actor_of
from algorithms.support.arrays import Float64Array
from algorithms.support.files import replacing

NEVER = 1e-9  # a network's probability of an action that is never played
MAX_PLACED_WEIGHTS = 10_000_000  # of a layer with one unit per information set
HIDDEN = (128, 128)

# PPO's settings to continue learning from a saved model: those of our training, with small steps.
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
# Weights that information sets share need larger rollouts and smaller steps.
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


def save_model(
    path: Path, game: Game, plays: Float64Array | nn.Module, *, trained: Any, holds: str
) -> None:
    """Write a zip with SB3's `MlpPolicy` that plays a table or a network, whole or not at all.

    Args:
        path: file to write.
        game: game of the policy; its name is an attribute of the saved model.
        plays: policy to save: a table `(I, A)`, or a network, whose weights are copied.
        trained: model of the training run.
        holds: `last` or `average`; an attribute of the saved model.
    """
    policy = trained.policy
    if isinstance(policy, InfosetPolicy) and policy.tabular:
        model = _table_model(game, plays, values=policy.outputs()[1])
    else:
        model = _network_model(game, plays, policy)
    model.num_timesteps, model.game, model.holds = trained.num_timesteps, game.name, holds
    with replacing(path) as temporary:
        model.save(temporary, exclude=["_last_obs", "_last_episode_starts"])


def _table_model(game: Game, table: Any, *, values: torch.Tensor) -> Any:
    """A model that plays `table` `(I, A)` and has `values` `(I, 1)`."""
    placed = _can_be_placed(game)
    kwargs = {"net_arch": [len(table)] if placed else list(HIDDEN), "activation_fn": nn.ReLU}
    env = SelfPlayVecEnv(1, game, on="tree")
    model: Any = MaskablePPO("MlpPolicy", env, policy_kwargs=kwargs, device="cpu", **FINE_TUNING)
    if placed:
        _place(model.policy, game, table, values)
    else:
        imitate(actor_of(model.policy), game, table)
    return model


def _network_model(game: Game, plays: Float64Array | nn.Module, trained: Any) -> Any:
    """A model with a trained policy's layers, fitted to a table unless it plays it already."""
    on_states = isinstance(plays, nn.Module)
    kwargs = {
        "net_arch": trained.net_arch,
        "activation_fn": trained.activation_fn,
        "optimizer_kwargs": trained.optimizer_kwargs,
    }
    settings: dict[str, Any] = STATES_FINE_TUNING if on_states else NETWORK_FINE_TUNING
    env = SelfPlayVecEnv(1, game, on="states" if on_states else "tree")
    model: Any = MaskablePPO("MlpPolicy", env, policy_kwargs=kwargs, device="cpu", **settings)
    model.policy.load_state_dict(trained.state_dict())
    actor = actor_of(model.policy)
    if isinstance(plays, nn.Module):
        actor.load_state_dict(plays.state_dict())
    elif np.abs(network_table(actor, game) - plays).max() > 1e-6:
        imitate(actor, game, plays)
    return model


def _can_be_placed(game: Game) -> bool:
    inputs = game.network_inputs()
    return bool(np.isin(inputs, (0, 1)).all()) and inputs.size <= MAX_PLACED_WEIGHTS


def _place(policy: Any, game: Game, table: Float64Array, values: torch.Tensor) -> None:
    """Give each information set a hidden unit that is active at its observation alone.

    For binary observations `x` and `y`, `(2y - 1) x` is `sum(y)` if they are equal, and less by at
    least 1 otherwise. With the bias `1 - sum(y)` and a ReLU the unit is 1 at `y` and 0 at all other
    observations. The next layer is therefore a table, exact for every policy.
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
    """Fit a network's weights to play `table` `(I, A)`, with no illegal actions even without masks.

    L-BFGS minimises the KL divergence; a dozen information sets take half a second, to about 1e-5.
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
