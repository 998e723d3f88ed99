"""From PPO's gradient to a step towards equilibrium, row by row.

PPO's gradient of a row's logits shrinks with how often the row is met and with how likely its
actions are, so what is rare hardly learns. Self-play needs the opposite: every information set must
answer to what the others do now. So the gradient of row r and action a is divided by

    share(r) ** 0.5   and   probability(a) + 0.05,

which turns it into a step that depends on how much there is to gain, and on how many samples say so
(NeuRD, Hennes et al. 2020, leaves out the probability for the same reason).

The entropy bonus is measured relative to a *magnet*, a slow copy of the policy (magnetic mirror
descent: Sokota et al. 2023). It is the same brake, and no distance is left at the end, since the
copy comes along; the slower where a row is rarer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from algorithms.exact.values import spread
from algorithms.games import Game
from algorithms.learning.networks import ILLEGAL
from algorithms.policies.network import masked_softmax

PLENTY = 1000.0  # samples of a row in a batch with which its step is `step`, its magnet's rate `rate`
FASTEST = 4.0  # times that at most
SOFTEN = 0.05  # added to probabilities before dividing by them
MAGNET_POWER = 0.7  # how fast the magnet's rate falls with the samples of a row
MEMORY = 0.01  # how much the latest batch counts in a row's share, after 1 / MEMORY batches
VALUE_SAMPLES = 64.0  # with so many samples a table's value goes half of the way to their mean


class Steer:
    """The state of it: each row's share of all decisions, and the magnet.

    Attributes:
        unit: the standard deviation of returns under uniform play, so that one recipe fits all games.
        step: how far a row moves that is met `PLENTY` times.
        pull: how strongly the policy is drawn to the magnet, in units.
        rate: how far the magnet follows the policy in an update; 0: it stays uniform.
        exact: whether the step is a table's, taken as it is, or is fitted by a network.
    """

    def __init__(self, game: Game, *, exact: bool, rate: float, value_weight: float) -> None:
        tree = game.tree
        self.unit = spread(tree, tree.uniform()) or 1.0
        self.exact, self.rate, self.step, self.pull = exact, rate, 1.0, 0.2
        self._value_weight, self._legal = value_weight, torch.tensor(tree.legal)
        self.share = torch.zeros(len(tree.keys), dtype=torch.float64)
        self.magnet = torch.as_tensor(np.log(np.where(tree.legal, tree.uniform(), 1.0))).float()
        self.batches = 0
        self._batch, self._aim, self._weight = 0.0, torch.empty(0), torch.empty(0)
        self._fresh = True

    def begin(self) -> None:
        """A new batch: its first gradient says where to go."""
        self._fresh = True

    def steer(self, logits: torch.Tensor, values: torch.Tensor, rows: Any, counts: Any) -> None:
        """Hook into logits `(R, A)` and values `(R, 1)` of `rows`, met `counts` times."""
        if self._fresh:
            self._count(rows, counts)
        logits.register_hook(lambda grad: self._towards(grad, logits.detach(), rows, counts))
        if self.exact:
            total, weight = counts.sum(), self._value_weight
            scale = total / (2 * weight * (counts + VALUE_SAMPLES)) if weight else counts * 0.0
            values.register_hook(lambda grad: grad * scale[:, None].float())

    def follow(self, played: np.ndarray[Any, Any]) -> None:
        """The magnet follows the policy `(I, A)`, the slower where rows are rarer."""
        if self.rate and self.batches:
            logs = torch.as_tensor(np.log(np.maximum(played, 1e-30))).float()
            samples = (self.share * self._batch / PLENTY).clamp(max=1)
            rates = (self.rate * samples**MAGNET_POWER)[:, None].float()
            self.magnet += rates * torch.where(self._legal, logs - self.magnet, 0.0)

    def _count(self, rows: Any, counts: torch.Tensor) -> None:
        self.batches += 1
        self._batch = float(counts.sum())
        memory = max(1 / self.batches, MEMORY)
        self.share *= 1 - memory
        self.share[rows] += memory * counts / self._batch

    def _towards(self, grad: Any, logits: Any, rows: Any, counts: Any) -> torch.Tensor:
        """The gradient that takes the logits to where PPO's first gradient of the batch points."""
        if self._fresh:
            self._fresh = False
            self._aim = logits + self._wanted(grad, logits, rows, counts)
            weight = self.share[rows] ** 0.5
            self._weight = torch.ones(1) if self.exact else (weight / weight.sum()).float()[:, None]
        return self._weight * (logits - self._aim)

    def _wanted(self, grad: Any, logits: Any, rows: Any, counts: Any) -> torch.Tensor:
        """By how much the logits `(R, A)` should change."""
        legal, share = self._legal[rows], self.share[rows]
        played = logits.masked_fill(~legal, ILLEGAL).softmax(1)
        magnet = self.magnet[rows]
        lure = played * (magnet - (played * magnet).sum(1, keepdim=True))
        now = (counts / self._batch).float()[:, None]
        ascent = self.pull * now * lure - grad / self.unit
        step = torch.where(legal, ascent / (played + SOFTEN), 0.0)
        step = step - step.sum(1, keepdim=True) / legal.sum(1, keepdim=True)
        scale = (share * self._batch / PLENTY).sqrt().clamp(max=FASTEST) / share.clamp(min=1e-12)
        return torch.where(legal, step * (self.step * scale)[:, None].float(), 0.0)


__all__ = ["Steer", "masked_softmax"]
