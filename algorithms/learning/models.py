"""Trained policies as SB3 zips that open anywhere: SB3's own classes and numbers, nothing else."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from torch import nn

from algorithms.games import Game
from algorithms.learning.networks import RowPolicy, played_by
from algorithms.learning.selfplay import SelfPlayVecEnv
from algorithms.policies.sb3 import actor_of
from algorithms.support.arrays import Float64Array
from algorithms.support.files import replacing

NEVER = 1e-9  # the probability that a network gives to what is never played
LARGEST = 10_000_000  # weights of a layer with a unit per information set
HIDDEN = (128, 128)

# How to learn on from a saved model: PPO's settings of our training, with gentle steps.
GOING_ON = {
    "learning_rate": 3e-4,
    "n_steps": 4,
    "batch_size": None,
    "n_epochs": 1,
    "gamma": 1.0,
    "gae_lambda": 1.0,
    "normalize_advantage": False,
    "ent_coef": 0.1,
    "max_grad_norm": 0.5,
}


def save_model(
    path: Path, game: Game, table: Float64Array, *, trained: RowPolicy, steps: int, **notes: str
) -> None:
    """A `MaskablePPO` zip with SB3's `MlpPolicy` that plays `table` `(I, A)`.

    Args:
        path: the file; it is written whole or not at all.
        game: named in the zip, as `game`.
        table: what to play; a network that does already is kept as it is.
        trained: the policy of the training run, for its network and its values.
        steps: how many decisions it has learned from.
        notes: more attributes of the model.
    """
    model = _model(game, trained)
    policy = model.policy
    if trained.tabular:
        values = trained.values()
        if not _place(policy, game, table, values):
            imitate(actor_of(policy), game, table)
    else:
        policy.load_state_dict(trained.state_dict())
        if not _plays(actor_of(policy), game, table):
            imitate(actor_of(policy), game, table)
    model.num_timesteps = steps
    _write(path, model, game, notes)


def save_stock(path: Path, game: Game, table: Float64Array, *, model: Any, **notes: str) -> None:
    """The zip of a stock model as it is, but playing `table` `(I, A)`."""
    kept, actor = copy.deepcopy(model.policy.state_dict()), actor_of(model.policy)
    if not _plays(actor, game, table):
        imitate(actor, game, table)
    try:
        _write(path, model, game, notes)
    finally:
        model.policy.load_state_dict(kept)


def _plays(actor: nn.Module, game: Game, table: Float64Array) -> bool:
    return bool(np.abs(played_by(actor, game) - table).max() < 1e-6)


def _write(path: Path, model: Any, game: Game, notes: dict[str, str]) -> None:
    for name, note in (notes | {"game": game.name}).items():
        setattr(model, name, note)
    with replacing(path) as temporary:
        model.save(temporary, exclude=["_last_obs", "_last_episode_starts"])


def _model(game: Game, trained: RowPolicy) -> Any:
    """A stock model with as many units as it takes."""
    kwargs: dict[str, Any] = {"net_arch": trained.net_arch, "activation_fn": trained.activation_fn}
    if trained.tabular:
        rows = len(game.tree.keys)
        width = [rows] if _can_be_placed(game) else list(HIDDEN)
        kwargs = {"net_arch": width, "activation_fn": nn.ReLU}
    env = SelfPlayVecEnv(1, game)
    # Weights that information sets share follow larger batches: a small one would undo the rest.
    settings = GOING_ON if trained.tabular else GOING_ON | {"learning_rate": 1e-5, "n_steps": 32}
    return MaskablePPO("MlpPolicy", env, policy_kwargs=kwargs, device="cpu", **settings)


def _can_be_placed(game: Game) -> bool:
    seen = game.observations
    return bool(np.isin(seen, (0, 1)).all()) and seen.size <= LARGEST


def _place(policy: Any, game: Game, table: Float64Array, values: torch.Tensor) -> bool:
    """Give each information set a hidden unit that answers to its tensor alone, if tensors allow.

    For tensors `x` and `y` of 0 and 1, `(2y - 1) x` is `sum(y)` if they are equal and else less, by
    1 at least. So with the bias `1 - sum(y)` and a ReLU the unit is 1 at `y` and 0 at all others:
    what follows is a table, exact for every policy.
    """
    if not _can_be_placed(game):
        return False
    seen = torch.tensor(game.observations)
    logs = torch.as_tensor(np.log(np.maximum(table, NEVER))).float()
    extractor = policy.mlp_extractor
    with torch.no_grad():
        for first in (extractor.policy_net[0], extractor.value_net[0]):
            first.weight.copy_(2 * seen - 1)
            first.bias.copy_(1 - seen.sum(1))
        for head, rows in ((policy.action_net, logs), (policy.value_net, values)):
            head.weight.copy_(rows.T)
            head.bias.zero_()
    return True


def imitate(actor: nn.Module, game: Game, table: Float64Array) -> None:
    """Fit a network's weights to play `table` `(I, A)`, by itself never an illegal action.

    By L-BFGS on the KL divergence: for a dozen rows to about 1e-5 in half a second.
    """
    seen = torch.tensor(game.observations).double()
    wanted = torch.tensor(table).clamp(min=NEVER)
    optimizer = torch.optim.LBFGS(
        list(actor.double().parameters()),
        max_iter=min(300, max(30, 500_000 // len(seen))),
        tolerance_grad=1e-10,
        tolerance_change=1e-14,
        line_search_fn="strong_wolfe",
    )

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        divergence = nn.functional.kl_div(actor(seen).log_softmax(1), wanted, reduction="sum")
        divergence.backward()  # type: ignore[no-untyped-call]
        return divergence

    optimizer.step(loss)  # type: ignore[no-untyped-call]
    actor.float()
