"""Learning in games without a tree, without statistics per information set.

PPO's own gradient is used, with an entropy bonus that falls from `ent_coef` to `ent_coef_end`, and
with a pull towards a magnet m (see `tree_learner.py`):

    L - ent_coef * mean over decisions of H(p) + kl * mean over decisions of KL(p || m)

There is no table to average policies in. Instead the weights theta_t of the network are averaged,

    sum_t t(t+1) theta_t / sum_t t(t+1)

and the averaged network is also the magnet.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np
import torch

from algorithms.games import Game
from algorithms.policies import Policy
from algorithms.policies.model_zip import actor_of
from algorithms.policies.network import as_network
from algorithms.self_play.advantages import SeatRolloutBuffer
from algorithms.self_play.learner import (
    ILLEGAL,
    Given,
    NetworkMeasure,
    between,
    change_gradient,
    is_learning,
    scheduled_values,
)
from algorithms.self_play.states import StateSimulator

UNIFORM_HANDS = 5_000  # hands that estimate the size of returns under uniform play


class NetworkLearner:
    """Learning without statistics per information set: a `Learner`."""

    def __init__(
        self, model: Any, game: Game, given: Given, measure: NetworkMeasure | None
    ) -> None:
        self._model = model
        self._game = game
        self._given = given
        self._measure = measure or (lambda network: float("nan"))
        self.return_scale = uniform_return_scale(game)
        self.last = actor_of(model.policy)
        self.average = copy.deepcopy(self.last).requires_grad_(False)
        self._count = 0

    @property
    def last_policy(self) -> Policy:
        """The model's current policy."""
        return Policy(self._game, network=as_network(self.last, self._game))

    @property
    def average_policy(self) -> Policy:
        """The policy of the averaged network."""
        return Policy(self._game, network=as_network(self.average, self._game))

    def measures(self) -> tuple[float, float]:
        """The measure of the last and of the averaged network, NaN if there is none."""
        return self._measure(self.last), self._measure(self.average)

    def start(self, total_steps: int) -> None:
        """Prepare a `learn` whose schedules span this number of decisions."""
        self._ent_coef = float(self._model.ent_coef)
        self._schedule = scheduled_values(self._given, "states")
        if self._given["ent_coef_end"] is None:
            self._schedule["ent_coef_end"] = self._ent_coef  # constant, as the model has it

    def after_rollout(self, buffer: SeatRolloutBuffer) -> None:
        """Nothing: what is learned from comes in PPO's batches."""

    def exploring(self) -> AbstractContextManager[None]:
        """Draw actions as the policy does."""
        return nullcontext()

    @contextmanager
    def changed_gradients(self) -> Iterator[None]:
        """Add the pull to PPO's gradients inside the block."""
        if not self._schedule["kl"]:
            yield
            return
        hook = self._model.policy.action_net.register_forward_hook(self._on_logits)
        try:
            yield
        finally:
            hook.remove()

    def add_to_average(self) -> None:
        """Add the current weights to the average: the t-th network has weight t(t+1)."""
        self._count += 1
        weight = 3 / (self._count + 2)  # t(t+1) / (1*2 + 2*3 + ... + t(t+1))
        with torch.no_grad():
            for mean, now in zip(self.average.parameters(), self.last.parameters(), strict=True):
                mean.lerp_(now, weight)

    def before_rollout(self, progress: float) -> float:
        """Set the pull; return PPO's entropy coefficient."""
        self._kl = between(self._schedule["kl"], self._schedule["kl_end"], progress)
        return between(self._ent_coef, self._schedule["ent_coef_end"], progress)

    def get_state(self) -> dict[str, Any]:
        """Everything that later updates depend on."""
        return {"average": self.average.state_dict(), "count": self._count}

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from a state of `get_state`."""
        self.average.load_state_dict(state["average"])
        self._count = state["count"]

    def _on_logits(self, module: Any, inputs: Any, logits: torch.Tensor) -> None:
        """Add the gradient of kl * mean KL(p || m): per sample p (log p/m - KL(p || m))."""
        if not is_learning(self._model, logits):
            return
        batch = self._model.rollout_buffer.batch
        illegal = batch.action_masks == 0
        with torch.no_grad():
            log_policy = logits.masked_fill(illegal, ILLEGAL).log_softmax(1)
            magnet = self.average(batch.observations)
            log_ratio = log_policy - magnet.masked_fill(illegal, ILLEGAL).log_softmax(1)
            policy = log_policy.exp()
            divergence = (policy * log_ratio).sum(1, keepdim=True)
            pull = self._kl / len(logits) * policy * (log_ratio - divergence)
        change_gradient(logits, lambda gradient: gradient + pull)


def uniform_return_scale(game: Game) -> float:
    """The root mean square of returns under uniform play, estimated on OpenSpiel's states."""
    simulator, rng = StateSimulator(game, 256), np.random.default_rng(0)
    squares, count = 0.0, 0
    while count < UNIFORM_HANDS:
        masks = simulator.masks
        simulator.step((masks * rng.random(masks.shape)).argmax(axis=1))
        squares += float((simulator.returns.astype(np.float64) ** 2).sum())
        count += int(simulator.ended.sum())
    return (squares / count / game.num_players) ** 0.5 or 1.0
