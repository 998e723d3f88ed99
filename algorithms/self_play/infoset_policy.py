"""Policies that look up the outputs of a network or a table per information set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from torch import nn

from algorithms.compiled.jit import compiled
from algorithms.compiled.simulator import running_sums
from algorithms.games import Game
from algorithms.policies.network import masked_softmax
from algorithms.self_play.environments import observation_space
from algorithms.support.arrays import Float64Array, Int64Array

ILLEGAL = -1e8  # the logit of an illegal action, as in sb3_contrib


class InfosetPolicy(MaskableActorCriticPolicy):
    """SB3's policy for observations that are numbers of information sets.

    Hands on a tree visit the same information sets many times. Networks therefore run once per
    information set, and their outputs are looked up while hands are played. Losses and gradients
    are SB3's own, unless a learner changes them in `on_evaluation`. With `table` there is a weight
    per information set and action instead of a network.

    `on_evaluation` is called before logits `(R, A)` and values `(R, 1)` are differentiated, with
    both, their information sets, and the counts of these in the batch.
    """

    on_evaluation: Callable[[torch.Tensor, torch.Tensor, Any, torch.Tensor], None] | None = None

    def __init__(
        self, space: Any, *args: Any, game: Game, table: bool = False, **kwargs: Any
    ) -> None:
        self.tabular, self._legal = table, torch.tensor(game.tree.legal)
        self._inputs = torch.empty(0) if table else torch.tensor(game.network_inputs())
        self._lookup: tuple[Float64Array, torch.Tensor, torch.Tensor] | None = None
        super().__init__(observation_space(game, numbered=table), *args, **kwargs)

    def _build(self, lr_schedule: Any) -> None:
        super()._build(lr_schedule)
        if self.tabular:
            (rows, columns), zeros = self._legal.shape, torch.zeros(self._legal.shape)
            self.action_net = nn.Embedding(rows, columns, _weight=zeros)
            self.value_net = nn.Embedding(rows, 1, _weight=torch.zeros(rows, 1))
            self.optimizer = self.optimizer_class(
                self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs
            )

    def set_training_mode(self, mode: bool) -> None:
        """Discard the stored outputs; SB3 calls this before it plays or learns."""
        self._lookup = None
        super().set_training_mode(mode)

    def forward(
        self, obs: torch.Tensor, deterministic: bool = False, action_masks: Any = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Actions, values and log-probabilities for a batch of information sets `(N, 1)`."""
        infosets, (sums, logs, values) = obs[:, 0].long(), self._look_up()
        draws = torch.rand(len(infosets), dtype=torch.float64)
        actions = torch.from_numpy(_draw_actions(sums, infosets.numpy(), draws.numpy()))
        chosen = logs.take(infosets * logs.shape[1] + actions)
        return actions, values.take(infosets)[:, None], chosen

    def predict_values(self, obs: torch.Tensor) -> torch.Tensor:
        """The values of information sets `(N, 1)`: `(N, 1)`."""
        return self._look_up()[2].take(obs[:, 0].long())[:, None]

    def evaluate_actions(
        self, obs: torch.Tensor, actions: torch.Tensor, action_masks: Any = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Values, log-probabilities and entropies for a batch of information sets `(N, 1)`."""
        infosets, which, counts = self._distinct(obs[:, 0].long())
        logits, values = self._run(infosets)
        if self.on_evaluation is not None:
            self.on_evaluation(logits, values, infosets, counts)
        logs = logits.masked_fill(~self._legal[infosets], ILLEGAL).log_softmax(1)
        entropy = -(logs.exp() * logs).sum(1)
        chosen = logs.flatten().index_select(0, which * logs.shape[1] + actions)
        return values.index_select(0, which), chosen, entropy.index_select(0, which)

    def outputs(self) -> tuple[Float64Array, torch.Tensor]:
        """The current policy, float64 `(I, A)`, and its values `(I, 1)`."""
        with torch.no_grad():
            logits, values = self._run(slice(None))
        return masked_softmax(logits.double().numpy(), self._legal.numpy()), values

    def set_table(self, table: Float64Array) -> None:
        """Set the weights of a tabular policy to play `table` `(I, A)`."""
        with torch.no_grad():
            logs = np.log(np.maximum(table, 1e-9))
            logs = np.where(self._legal, logs - logs.mean(1, keepdims=True, where=self._legal), 0)
            self.action_net.weight.copy_(torch.as_tensor(logs))

    def _run(self, infosets: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits `(R, A)` and values `(R, 1)` of information sets."""
        if self.tabular:
            return _rows(self.action_net.weight, infosets), _rows(self.value_net.weight, infosets)
        latent_pi, latent_vf = self.mlp_extractor(self.extract_features(self._inputs[infosets]))
        return self.action_net(latent_pi), self.value_net(latent_vf)

    def _distinct(self, infosets: torch.Tensor) -> tuple[Any, torch.Tensor, torch.Tensor]:
        """The distinct information sets, the index of each sample among them, and their counts.

        If a batch could contain all information sets of the game, all are used: the fit of a
        network then also preserves its outputs where there are no samples.
        """
        if len(self._legal) <= len(infosets):
            return slice(None), infosets, torch.bincount(infosets, minlength=len(self._legal))
        met, which, counts = torch.unique(infosets, return_inverse=True, return_counts=True)
        return met, which, counts

    def _look_up(self) -> tuple[Float64Array, torch.Tensor, torch.Tensor]:
        """Running sums of probabilities `(I, A)`, their logarithms `(I, A)`, and values `(I,)`."""
        if self._lookup is None:
            table, values = self.outputs()
            logs = np.log(np.where(self._legal, np.maximum(table, 1e-38), 1.0))
            self._lookup = running_sums(table), torch.tensor(logs).float(), values[:, 0]
        return self._lookup


def _rows(weight: torch.Tensor, infosets: Any) -> torch.Tensor:
    if isinstance(infosets, slice):
        return weight * 1.0  # not the parameter itself, whose gradient would add up
    return weight.index_select(0, infosets)


@compiled
def _draw_actions(sums: Float64Array, infosets: Int64Array, draws: Float64Array) -> Int64Array:
    """The action that each draw selects at its information set."""
    actions = np.zeros(len(infosets), np.int64)
    for i in range(len(infosets)):
        while sums[infosets[i], actions[i]] <= draws[i]:
            actions[i] += 1
    return actions
