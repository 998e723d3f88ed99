"""Policies that play a table, and the `MaskablePPO` that collects rollouts with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy

from algorithms.compiled.jit import compiled
from algorithms.compiled.simulator import running_sums
from algorithms.games import Game
from algorithms.self_play.environments import observation_space
from algorithms.self_play.seen_infosets import SeenInfosets
from algorithms.support.arrays import Float64Array, Int64Array


class TableActorPolicy(MaskableActorCriticPolicy):
    """SB3's policy for observations that are numbers of information sets.

    It has no weights: actions are drawn from a table `(I, A)` that a `TreeLearner` sets.
    """

    def __init__(self, space: Any, *args: Any, game: Game, **kwargs: Any) -> None:
        del space
        kwargs["net_arch"] = []
        super().__init__(observation_space(game, infoset_numbers=True), *args, **kwargs)
        self.set_table(game.tree.uniform())

    def set_table(self, table: Float64Array) -> None:
        """Play `table` `(I, A)` from now on."""
        logarithms = np.log(np.maximum(table, 1e-38))
        self._running_sums = running_sums(table)
        self._log_probabilities = torch.from_numpy(logarithms).float()
        self._most_probable = torch.from_numpy(table.argmax(axis=1))

    def forward(
        self, obs: torch.Tensor, deterministic: bool = False, action_masks: Any = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Actions, values (0: nobody uses them) and log-probabilities for `obs` `(N, 1)`."""
        infosets = obs[:, 0].long()
        actions = self._predict(obs, deterministic)
        num_actions = self._log_probabilities.shape[1]
        log_probabilities = self._log_probabilities.take(infosets * num_actions + actions)
        return actions, torch.zeros(len(infosets), 1), log_probabilities

    def _predict(
        self, observation: torch.Tensor, deterministic: bool = False, action_masks: Any = None
    ) -> torch.Tensor:
        """Actions for observations `(N, 1)`, drawn from the table or the most probable ones."""
        infosets = observation[:, 0].long()
        if deterministic:
            return self._most_probable[infosets]
        draws = torch.rand(len(infosets), dtype=torch.float64)
        return torch.from_numpy(_draw_actions(self._running_sums, infosets.numpy(), draws.numpy()))

    def predict_values(self, obs: torch.Tensor) -> torch.Tensor:
        """0 for each observation `(N, 1)`: `(N, 1)`."""
        return torch.zeros(len(obs), 1)


class SeenActorPolicy(MaskableActorCriticPolicy):
    """SB3's policy for observations whose information sets are numbered as they come up.

    It has no weights: actions are drawn by the probabilities in `infosets`, which an
    `InfosetLearner` sets.

    Attributes:
        infosets: the information sets so far.
        played: the information sets of each step since the learner last looked, each `(n,)`.
    """

    def __init__(self, space: Any, action_space: Any, *args: Any, **kwargs: Any) -> None:
        kwargs["net_arch"] = []
        super().__init__(space, action_space, *args, **kwargs)
        self.infosets = SeenInfosets(space.shape[0], action_space.n)
        self.played: list[Int64Array] = []

    def forward(
        self, obs: torch.Tensor, deterministic: bool = False, action_masks: Any = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Actions, values (0: nobody uses them) and log-probabilities for `obs` `(n, size)`."""
        legal = np.asarray(action_masks, np.bool_).reshape(len(obs), -1)
        numbers = self.infosets.number(obs.numpy(), legal)
        self.played.append(numbers)
        sums = self.infosets.running_sums
        draws = torch.rand(len(numbers), dtype=torch.float64)
        actions = _draw_actions(sums, numbers, draws.numpy())
        before = np.where(actions > 0, sums[numbers, actions - 1], 0.0)
        probabilities = sums[numbers, actions] - before
        log_probabilities = torch.from_numpy(np.log(probabilities)).float()
        return torch.from_numpy(actions), torch.zeros(len(numbers), 1), log_probabilities

    def predict_values(self, obs: torch.Tensor) -> torch.Tensor:
        """0 for each observation `(n, size)`: `(n, 1)`."""
        return torch.zeros(len(obs), 1)


class TablePPO(MaskablePPO):
    """`MaskablePPO` with one of these policies: a learner with a table learns from its rollouts.

    PPO's own `train` would differentiate a network, and there is none.
    """

    def train(self) -> None:
        """Count the update, which the learner has made."""
        self._n_updates += 1


@compiled
def _draw_actions(sums: Float64Array, infosets: Int64Array, draws: Float64Array) -> Int64Array:
    """The action that each draw `(n,)` selects at its information set, from `sums` `(I, A)`."""
    actions = np.zeros(len(infosets), np.int64)
    for i in range(len(infosets)):
        while sums[infosets[i], actions[i]] <= draws[i]:
            actions[i] += 1
    return actions
