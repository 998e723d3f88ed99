"""The policy classes of training: SB3's own, which run their networks once per information set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from torch import nn

from algorithms.games import Game
from algorithms.learning.board import cumulative
from algorithms.learning.selfplay import sights_of
from algorithms.policies.network import masked_softmax
from algorithms.support.arrays import Float64Array, Int64Array
from algorithms.support.compiled import compiled

ILLEGAL = -1e8  # the logit of an illegal action, as sb3_contrib has it


def played_by(actor: Callable[[torch.Tensor], torch.Tensor], game: Game) -> Float64Array:
    """What a network from tensors `(I, size)` to logits `(I, A)` plays: float64 `(I, A)`."""
    with torch.no_grad():
        logits = actor(torch.tensor(game.observations)).double().numpy()
    return masked_softmax(logits, game.tree.legal)


class RowPolicy(MaskableActorCriticPolicy):
    """SB3's policy where an observation is the number of an information set, its row.

    A small game shows the same rows again and again, so networks run once per row, and while hands
    are played everything is looked up. Losses and gradients are SB3's own, unless `steer` hooks
    into them. A network sees the row's information state tensor and nothing else.

    Args:
        game: whose information sets they are.
        table: one weight per row and action instead of a network.
    """

    # Given logits (R, A) and values (R, 1) of rows, and how often each was met in the batch.
    steer: Callable[[torch.Tensor, torch.Tensor, Any, torch.Tensor], None] | None = None

    def __init__(
        self,
        observation_space: Any,
        action_space: Any,
        lr_schedule: Any,
        *,
        game: Game,
        table: bool = False,
        **kwargs: Any,
    ) -> None:
        self.tabular, self._legal = table, torch.tensor(game.tree.legal)
        self._sights = torch.empty(0) if table else torch.tensor(game.observations)
        self._looked_up: _LookUp | None = None
        seen = sights_of(game, numbered=table)
        super().__init__(seen, action_space, lr_schedule, **kwargs)

    def _build(self, lr_schedule: Any) -> None:
        super()._build(lr_schedule)
        if self.tabular:
            rows, actions = self._legal.shape
            self.action_net, self.value_net = _Table(rows, actions), _Table(rows, 1)
            self.optimizer = self.optimizer_class(
                self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs
            )

    def set_training_mode(self, mode: bool) -> None:
        """SB3 calls this before it plays or learns: what was looked up is out of date."""
        self._looked_up = None
        super().set_training_mode(mode)

    def forward(
        self, obs: torch.Tensor, deterministic: bool = False, action_masks: Any = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Actions, values and log-probabilities for a batch of rows `(N, 1)`."""
        rows, known = obs[:, 0].long(), self._known()
        draws = torch.rand(len(rows), dtype=torch.float64)
        actions = torch.from_numpy(_draw_actions(known.sums, rows.numpy(), draws.numpy()))
        likely = known.logs.take(rows * known.logs.shape[1] + actions)
        return actions, known.values.take(rows)[:, None], likely

    def predict_values(self, obs: torch.Tensor) -> torch.Tensor:
        """The values of rows `(N, 1)`: `(N, 1)`."""
        return self._known().values.take(obs[:, 0].long())[:, None]

    def evaluate_actions(
        self, obs: torch.Tensor, actions: torch.Tensor, action_masks: Any = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Values, log-probabilities and entropies for a batch of rows `(N, 1)`."""
        rows, which, counts = self._met(obs[:, 0].long())
        logits, values = self._run(rows)
        if self.steer is not None:
            self.steer(logits, values, rows, counts)
        logs = logits.masked_fill(~self._legal[rows], ILLEGAL).log_softmax(1)
        entropy = -(logs.exp() * logs).sum(1)
        likely = logs.flatten().index_select(0, which * logs.shape[1] + actions)
        return values.index_select(0, which), likely, entropy.index_select(0, which)

    def probabilities(self) -> Float64Array:
        """What the policy plays now: float64 `(I, A)`."""
        with torch.no_grad():
            logits, _ = self._run(slice(None))
        return masked_softmax(logits.double().numpy(), self._legal.numpy())

    def values(self) -> torch.Tensor:
        """What the policy expects to win at each row: `(I, 1)`."""
        with torch.no_grad():
            return self._run(slice(None))[1]

    def play(self, table: Float64Array) -> None:
        """Play `table` `(I, A)` from now on; only a table can without being fitted."""
        with torch.no_grad():
            logs = np.log(np.maximum(table, 1e-9))
            logs = np.where(self._legal, logs - logs.mean(1, keepdims=True, where=self._legal), 0)
            self.action_net.weight.copy_(torch.as_tensor(logs))

    def _run(self, rows: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits `(R, A)` and values `(R, 1)` of rows."""
        if self.tabular:
            return self.action_net(rows), self.value_net(rows)
        latent_pi, latent_vf = self.mlp_extractor(self.extract_features(self._sights[rows]))
        return self.action_net(latent_pi), self.value_net(latent_vf)

    def _met(self, rows: torch.Tensor) -> tuple[Any, torch.Tensor, torch.Tensor]:
        """The rows to run networks for, which of them each one is, and how often they were met.

        All rows of the game if a batch can hold them: then those not met can be kept in place.
        """
        if len(self._legal) <= len(rows):
            return slice(None), rows, torch.bincount(rows, minlength=len(self._legal))
        met, which, counts = torch.unique(rows, return_inverse=True, return_counts=True)
        return met, which, counts

    def _known(self) -> _LookUp:
        if self._looked_up is None:
            with torch.no_grad():
                logits, values = self._run(slice(None))
            legal = self._legal.numpy()
            played = masked_softmax(logits.double().numpy(), legal)
            logs = np.log(np.where(legal, np.maximum(played, 1e-38), 1.0))
            self._looked_up = _LookUp(
                cumulative(played), torch.as_tensor(logs, dtype=torch.float32), values[:, 0]
            )
        return self._looked_up


class _LookUp(NamedTuple):
    """What a policy plays, by row, as long as it does not learn."""

    sums: Float64Array  # (I, A) running sums of probabilities
    logs: torch.Tensor  # (I, A) their logarithms
    values: torch.Tensor  # (I,)


class _Table(nn.Module):
    """One weight per row and column, at first 0."""

    def __init__(self, rows: int, columns: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(rows, columns))

    def forward(self, rows: Any) -> torch.Tensor:
        return self.weight * 1.0 if isinstance(rows, slice) else self.weight.index_select(0, rows)


@compiled
def _draw_actions(sums: Float64Array, rows: Int64Array, draws: Float64Array) -> Int64Array:
    """The action that each draw means in its row."""
    actions = np.zeros(len(rows), np.int64)
    for i in range(len(rows)):
        while sums[rows[i], actions[i]] <= draws[i]:
            actions[i] += 1
    return actions


class DistinctPolicy(MaskableActorCriticPolicy):
    """SB3's policy, which runs its networks once for each *distinct* observation of a batch.

    Losses and gradients are SB3's own. Observations must determine their masks. Models saved by
    version 0.1 name this class.
    """

    def forward(
        self, obs: torch.Tensor, deterministic: bool = False, action_masks: Any = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Actions, values and log-probabilities for a batch."""
        seen, which = distinct(obs)
        values, distribution = self._evaluate(seen, _first(action_masks, which, len(seen)))
        if deterministic:
            actions = distribution.mode()[which]
        else:
            sums = distribution.distribution.probs.double().cumsum(1)
            draws = torch.rand(len(obs), 1, dtype=torch.float64)
            actions = ((sums / sums[:, -1:])[which] <= draws).sum(1)
        return actions, values[which], distribution.distribution.logits[which, actions]

    def evaluate_actions(
        self, obs: torch.Tensor, actions: torch.Tensor, action_masks: Any = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Values, log-probabilities and entropies for a batch."""
        seen, which = distinct(obs)
        values, distribution = self._evaluate(seen, _first(action_masks, which, len(seen)))
        entropy = distribution.entropy()
        return values[which], distribution.distribution.logits[which, actions], entropy[which]

    def _evaluate(self, seen: torch.Tensor, masks: torch.Tensor | None) -> tuple[torch.Tensor, Any]:
        """Values `(R, 1)` and the distribution of `R` observations."""
        latent_pi, latent_vf = self.mlp_extractor(self.extract_features(seen))
        distribution = self._get_action_dist_from_latent(latent_pi)
        distribution.apply_masking(masks)
        return self.value_net(latent_vf), distribution


def distinct(observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The distinct rows of `(N, size)`, and which of them each row is, `(N,)`."""
    given = np.ascontiguousarray(observations.numpy())
    whole = given.view(np.dtype((np.void, given.dtype.itemsize * given.shape[1])))[:, 0]
    _, first, which = np.unique(whole, return_index=True, return_inverse=True)
    return observations[torch.as_tensor(first)], torch.as_tensor(which)


def _first(masks: Any, which: torch.Tensor, count: int) -> torch.Tensor | None:
    """One mask for each distinct observation."""
    if masks is None:
        return None
    given = torch.as_tensor(masks, dtype=torch.bool).reshape(len(which), -1)
    rows = torch.empty(count, given.shape[1], dtype=torch.bool)
    rows[which] = given
    return rows
