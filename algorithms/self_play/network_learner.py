"""Learning in games without a tree, without statistics per information set.

PPO's own gradient is used, with an entropy bonus that falls from `ent_coef` to `ent_coef_end`, and
with a pull towards a magnet m, a slowly moving network (magnetic mirror descent, Sokota et al.
2023):

    L - ent_coef * mean over decisions of H(p) + kl * mean over decisions of KL(p || m)

Gradient ascent in self-play circles around an equilibrium, and the pull damps the rotation. Since m
follows p, it does not keep p away from the equilibrium, as the entropy bonus does, which is there
for exploration and can therefore become small.

There is no table to average policies in. Instead the weights theta_t of the network are averaged.
The magnet is an average over a shorter time, about the last tenth of the run so far:

    average:  theta_t enters with the rate  3 / (t + 2),   its weight is t (t + 1)
    magnet:   theta_t enters with the rate 10 / (t + 9),   its weight is t (t + 1) ... (t + 8)

Returns are divided by their root mean square under uniform play, and advantages are not normalised
any further: kl and ent_coef then have the same meaning from the first update to the last, while
advantages that are divided by their deviation would weaken the pull where it is most needed.
Networks learn as if their inputs were at most 1 (`input_scales.py`).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from algorithms.games import Game
from algorithms.policies import Policy
from algorithms.policies.model_zip import actor_of
from algorithms.policies.network import as_network
from algorithms.self_play.advantages import SeatRolloutBuffer
from algorithms.self_play.input_scales import ScaledInputs
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
from algorithms.support.arrays import Float32Array

UNIFORM_HANDS = 5_000  # hands that estimate the size of returns and inputs under uniform play
AVERAGE_RATE = 3  # the t-th network enters the average with the rate 3 / (t + 2)
MAGNET_RATE = 10  # and the magnet with the rate 10 / (t + 9)


class NetworkLearner:
    """Learning without statistics per information set: a `Learner`."""

    def __init__(
        self, model: Any, game: Game, given: Given, measure: NetworkMeasure | None
    ) -> None:
        self._model = model
        self._game = game
        self._given = given
        self._measure = measure or (lambda network: float("nan"))
        sizes = sizes_under_uniform_play(game)
        self.return_scale = sizes.returns
        self._scaled_inputs = ScaledInputs(model.policy, sizes.inputs)
        self._scaled_inputs.divide_initial_weights()
        self.last = actor_of(model.policy)
        self.average = copy.deepcopy(self.last).requires_grad_(False)
        self.magnet = copy.deepcopy(self.average)
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
        """Add the pull to PPO's gradients inside the block, and scale those of large inputs."""
        with ExitStack() as changes:
            changes.enter_context(self._scaled_inputs.learning())
            if self._schedule["kl"]:
                hook = self._model.policy.action_net.register_forward_hook(self._on_logits)
                changes.callback(hook.remove)
            yield

    def add_to_average(self) -> None:
        """Add the current weights to the average and to the magnet."""
        self._count += 1
        _move(self.average, self.last, rate=AVERAGE_RATE / (self._count + AVERAGE_RATE - 1))
        _move(self.magnet, self.last, rate=MAGNET_RATE / (self._count + MAGNET_RATE - 1))

    def before_rollout(self, progress: float) -> float:
        """Set the pull; return PPO's entropy coefficient."""
        self._kl = between(self._schedule["kl"], self._schedule["kl_end"], progress)
        return between(self._ent_coef, self._schedule["ent_coef_end"], progress)

    def get_state(self) -> dict[str, Any]:
        """Everything that later updates depend on."""
        return {
            "average": self.average.state_dict(),
            "magnet": self.magnet.state_dict(),
            "count": self._count,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from a state of `get_state`."""
        self.average.load_state_dict(state["average"])
        self.magnet.load_state_dict(state["magnet"])
        self._count = state["count"]

    def _on_logits(self, module: Any, inputs: Any, logits: torch.Tensor) -> None:
        """Add the gradient of kl * mean KL(p || m): per sample p (log p/m - KL(p || m))."""
        if not is_learning(self._model, logits):
            return
        batch = self._model.rollout_buffer.batch
        illegal = batch.action_masks == 0
        with torch.no_grad():
            log_policy = logits.masked_fill(illegal, ILLEGAL).log_softmax(1)
            magnet = self.magnet(batch.observations)
            log_ratio = log_policy - magnet.masked_fill(illegal, ILLEGAL).log_softmax(1)
            policy = log_policy.exp()
            divergence = (policy * log_ratio).sum(1, keepdim=True)
            pull = self._kl / len(logits) * policy * (log_ratio - divergence)
        change_gradient(logits, lambda gradient: gradient + pull)


def _move(average: nn.Module, network: nn.Module, *, rate: float) -> None:
    """Move the weights of an average towards those of a network."""
    with torch.no_grad():
        for mean, now in zip(average.parameters(), network.parameters(), strict=True):
            mean.lerp_(now, rate)


class Sizes(NamedTuple):
    """The size of what a game pays and shows."""

    returns: float  # root mean square of returns
    inputs: Float32Array  # (size,) the largest absolute value of each input, at least 1


def sizes_under_uniform_play(game: Game) -> Sizes:
    """The size of returns and of inputs in random hands on OpenSpiel's states."""
    simulator = StateSimulator(game, 256)
    rng = np.random.default_rng(0)
    largest = np.ones(simulator.observations.shape[1], np.float32)
    squares = 0.0
    count = 0
    while count < UNIFORM_HANDS:
        largest = np.maximum(largest, np.abs(simulator.observations).max(axis=0))
        masks = simulator.masks
        simulator.step((masks * rng.random(masks.shape)).argmax(axis=1))
        squares += float((simulator.returns.astype(np.float64) ** 2).sum())
        count += int(simulator.ended.sum())
    return Sizes(
        returns=(squares / count / game.num_players) ** 0.5 or 1.0,
        inputs=np.asarray(largest, np.float32),
    )
