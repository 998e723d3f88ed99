"""From PPO's gradient to a step towards equilibrium, row by row.

PPO's gradient of a row's logits shrinks with how often the row is met and with how likely its
actions are, so what is rare hardly learns. Self-play needs the opposite: every information set must
answer to what the others do now. So the gradient of row r and action a is divided by

    share(r) ** 0.5   and   probability(a) + 0.05,

which makes it a step that depends on what there is to gain, and on how many samples say so (NeuRD,
Hennes et al. 2020, leaves out the probability for the same reason).

The entropy bonus is measured relative to a *magnet*, a slow copy of the policy (magnetic mirror
descent: Sokota et al. 2023). It is the same brake, and no distance is left at the end, since the
copy comes along; the rarer a row, the slower.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from algorithms.exact.values import returns_std
from algorithms.games import Game
from algorithms.learning.networks import ILLEGAL, RowPolicy
from algorithms.learning.rows import ObservationIndex
from algorithms.support.arrays import Float64Array

PLENTY = 1000.0  # samples of a row in a batch at which it moves by `step` and its magnet by `rate`
FASTEST = 1.0  # times `step` at most: games of one move have thousands of samples per row
SOFTEN = 0.05  # added to probabilities before dividing by them
MAGNET_POWER = 0.7  # how fast the magnet's rate falls with the samples of a row
MEMORY = 0.01  # how much the latest batch counts in a row's share, once there were 1 / MEMORY
VALUE_SAMPLES = 3000.0  # a table's value is the mean of about this many of the latest returns


class Steering:
    """Each row's share of all decisions, the magnet, and the gradients that follow from them.

    Attributes:
        step: how far a row moves that is met `PLENTY` times.
        pull: how strongly the policy is drawn to the magnet, in units of `unit`.
        rate: how far the magnet follows the policy in an update; 0: it stays uniform.
        unit: what advantages are measured in, so that one recipe fits all games: the standard
            deviation of returns under uniform play, or 1 where PPO normalises them itself.
    """

    def __init__(self, game: Game, *, rate: float, unit: float | None = None) -> None:
        tree = game.tree
        self.unit = returns_std(tree, tree.uniform()) or 1.0 if unit is None else unit
        self.rate, self.step, self.pull = rate, 1.0, 0.0
        self._legal, self._share = torch.tensor(tree.legal), torch.zeros(len(tree.keys)).double()
        self._magnet = torch.tensor(np.log(np.where(tree.legal, tree.uniform(), 1.0))).float()
        self._batches, self._size = 0, 0

    def get_state(self) -> dict[str, Any]:
        """All that later steps depend on."""
        kept = {"share": self._share, "magnet": self._magnet}
        return {**kept, "batches": self._batches, "size": self._size}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from what `get_state` gave."""
        self._share, self._magnet = state["share"].clone(), state["magnet"].clone()
        self._batches, self._size = state["batches"], state["size"]

    def follow(self, played: Float64Array, *, at_once: bool = False) -> None:
        """The magnet follows the policy `(I, A)`: by `rate`, less where rows are rare; or jumps."""
        logs = torch.as_tensor(np.log(np.maximum(played, 1e-30))).float()
        samples = (self._share * self._size / PLENTY).clamp(max=1)
        rates = torch.ones(1) if at_once else (self.rate * samples**MAGNET_POWER)[:, None].float()
        self._magnet = self._magnet + rates * torch.where(self._legal, logs - self._magnet, 0.0)

    def count(self, rows: Any, counts: torch.Tensor) -> None:
        """Note how often `rows` were met in a batch."""
        self._batches, self._size = self._batches + 1, int(counts.sum())
        memory = max(1 / self._batches, MEMORY)
        self._share *= 1 - memory
        self._share[rows] += memory * counts / self._size

    def seen(self, rows: Any) -> torch.Tensor:
        """How often rows have been met since the start, about: `(R,)`."""
        return self._share[rows] * self._size * self._batches

    def weights(self, rows: Any) -> torch.Tensor:
        """How much rows count where a network cannot serve them all: `(R, 1)`, in sum 1."""
        weights = self._share[rows] ** 0.5
        return (weights / weights.sum()).float()[:, None]

    def wanted(self, grad: Any, logits: Any, rows: Any, counts: torch.Tensor) -> torch.Tensor:
        """By how much logits `(R, A)` should change, given PPO's gradient of its loss."""
        legal, share = self._legal[rows], self._share[rows]
        played = logits.masked_fill(~legal, ILLEGAL).softmax(1)
        magnet = self._magnet[rows]
        lure = played * (magnet - (played * magnet).sum(1, keepdim=True))
        now = (counts / counts.sum()).float()[:, None]
        ascent = self.pull * now * lure - grad / self.unit
        step = torch.where(legal, ascent / (played + SOFTEN), 0.0)
        step = step - step.sum(1, keepdim=True) / legal.sum(1, keepdim=True)
        scale = (share * self._size / PLENTY).sqrt().clamp(max=FASTEST) / share.clamp(min=1e-12)
        return torch.where(legal, step * (self.step * scale)[:, None].float(), 0.0)


def hook(tensor: torch.Tensor, change: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """Change the gradient of a tensor on its way back."""
    tensor.register_hook(change)  # type: ignore[no-untyped-call]


class RowsAtOnce:
    """Steers a `RowPolicy`, whose logits come row by row and whose batches are whole.

    The first gradient of a batch says where each row should go. A table goes there at once, with
    plain gradient descent at rate 1; a network is fitted to it in the epochs that follow.
    """

    def __init__(self, policy: RowPolicy, steering: Steering, *, value_weight: float) -> None:
        self._policy, self._steering, self._value_weight = policy, steering, value_weight
        self._fresh, self._aim, self._weights = True, torch.empty(0), torch.ones(1)
        policy.steer = self._steer

    def remove(self) -> None:
        """Leave the policy as it was."""
        self._policy.steer = None

    def begin(self) -> None:
        """The next gradient is the first of a batch."""
        self._fresh = True

    def _steer(self, logits: torch.Tensor, values: torch.Tensor, rows: Any, counts: Any) -> None:
        if self._fresh:
            self._steering.count(rows, counts)
        here = logits.detach()
        hook(logits, lambda grad: self._towards(grad, here, rows, counts))
        if self._policy.tabular and self._value_weight:
            seen = self._steering.seen(rows).clamp(
                min=1, max=VALUE_SAMPLES
            )  # at first the mean of all
            scale = counts.sum() / (2 * self._value_weight * torch.maximum(seen, counts))
            hook(values, lambda grad: grad * scale[:, None].float())

    def _towards(self, grad: Any, logits: Any, rows: Any, counts: Any) -> torch.Tensor:
        if self._fresh:
            self._fresh = False
            self._aim = logits + self._steering.wanted(grad, logits, rows, counts)
            if not self._policy.tabular:
                self._weights = self._steering.weights(rows)
        away: torch.Tensor = logits - self._aim
        return self._weights * away


class SampleBySample:
    """Steers a stock policy, whose logits come sample by sample, through hooks on its layers."""

    def __init__(self, policy: Any, steering: Steering, game: Game) -> None:
        self._steering, self._rows_of = steering, ObservationIndex(game.observations)
        self._rows = torch.empty(0)
        self._hooks = [
            policy.features_extractor.register_forward_pre_hook(self._saw),
            policy.action_net.register_forward_hook(self._answered),
        ]

    def begin(self) -> None:
        """Every gradient stands for itself here."""

    def remove(self) -> None:
        """Leave the policy as it was."""
        for hook in self._hooks:
            hook.remove()

    def _saw(self, module: Any, inputs: Any) -> None:
        if torch.is_grad_enabled():
            self._rows = torch.as_tensor(self._rows_of(inputs[0].numpy()))

    def _answered(self, module: Any, inputs: Any, logits: torch.Tensor) -> None:
        if not torch.is_grad_enabled() or not logits.requires_grad:
            return
        rows, which, counts = torch.unique(self._rows, return_inverse=True, return_counts=True)
        self._steering.count(rows, counts)
        here = torch.empty(len(rows), logits.shape[1])
        here[which] = logits.detach()

        def towards(grad: torch.Tensor) -> torch.Tensor:
            total = torch.zeros_like(here).index_add(0, which, grad)
            step = self._steering.weights(rows) * self._steering.wanted(total, here, rows, counts)
            each: torch.Tensor = (step / counts[:, None])[which]
            return -each

        hook(logits, towards)
