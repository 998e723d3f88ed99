"""Learning in games with a tree, with statistics per information set.

One policy plays all seats. PPO collects a rollout, `SeatRolloutBuffer` computes advantages along
each seat's own decisions, and PPO's loss L is differentiated. What is added here:

**1. Magnetic mirror descent** (Sokota et al. 2023). Gradient ascent in self-play circles around
an equilibrium. A pull towards a magnet m, a slow copy of the policy p, damps the rotation:

    L + kl * sigma * mean over decisions of KL(p || m),    log m += magnet_rate * (log p - log m)

sigma is the standard deviation of returns under uniform play, which makes `kl` independent of the
game's stakes. Since m follows p, the pull does not keep p away from the equilibrium, as an entropy
bonus would. The kl weight falls geometrically from `kl` to `kl_end`.

**2. A preconditioned gradient per information set.** PPO's gradient of the logits z(s, a) is
proportional to the frequency of s and the probability of a, so rare information sets and improbable
actions hardly learn. With w(s) the share of decisions at s, and n(s) its samples in a batch, the
step is

    d(s, a) = step_size * min(1, sqrt(n(s) / 1000)) * g(s, a),      centred over legal actions,
    g(s, a) = -(dL / dz(s, a)) / (w(s) * sigma * (p(a|s) + 0.05))

NeuRD (Hennes et al. 2020) leaves out p(a|s) for the same reason. A table takes the step. A network
is fitted to z + d in `epochs` steps of Adam, with information sets weighted by sqrt(w(s)), and with
little momentum (0.5), since momentum from the last fit makes the policy rotate.

**3. The average policy.** Of the policies p_1, p_2, ... before each update,

    average(a|s) = sum_t t^2 r_t(s) p_t(a|s) / sum_t t^2 r_t(s)

where r_t(s) is the player's own reach probability of s under p_t: the average plays like one p_t
that is drawn for the whole hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from algorithms.compiled.nashconv import nash_convs, reach_probabilities, returns_std
from algorithms.games import Game
from algorithms.policies import Policy
from algorithms.policies.model_zip import actor_of
from algorithms.policies.network import network_table
from algorithms.self_play.advantages import SeatRolloutBuffer
from algorithms.self_play.environments import infosets_by_observation
from algorithms.self_play.infoset_policy import ILLEGAL, InfosetPolicy
from algorithms.self_play.learner import (
    Given,
    NetworkMeasure,
    between,
    change_gradient,
    is_learning,
    scheduled_values,
)
from algorithms.self_play.settings import Kind
from algorithms.support.arrays import Float64Array
from algorithms.support.errors import UsageError
from algorithms.tree import Tree

FULL_STEP_SAMPLES = 1000.0  # samples per batch with which an information set takes a full step
PROBABILITY_FLOOR = 0.05  # added to probabilities before dividing by them
MAGNET_POWER = 0.7  # the magnet's rate falls with the samples of an information set to this power
SHARE_RATE = 0.01  # weight of the latest batch in the shares w(s), after the first 1 / SHARE_RATE
VALUE_SAMPLES = 3000.0  # a table's value is the mean of about this many of the latest returns
LOWEST = 0.02  # the step size and the magnet's rate fall to this share at the end
LOWEST_FITTED = 0.1  # the same for a network: smaller steps would be lost in errors of the fit


class TreeLearner:
    """Learning with statistics per information set: equations 1 to 3 (a `Learner`).

    An `InfosetPolicy` gets one gradient per information set of a rollout. The first one determines
    the target logits. A table takes them at once, by gradient descent with rate 1; a network is
    fitted to them in all epochs. A stock policy gets gradients decision by decision.
    """

    return_scale = 1.0  # values and returns are in chips

    def __init__(
        self, model: Any, game: Game, given: Given, measure: NetworkMeasure | None
    ) -> None:
        self._model = model
        self._game = game
        self._given = given
        sigma = returns_std(game.tree, game.tree.uniform()) or 1.0
        sigma = 1.0 if model.normalize_advantage else sigma
        self.statistics = InfosetStatistics(game.tree, sigma=sigma)
        self.statistics.move_magnet(self.last, rate=None)

    @property
    def last(self) -> Float64Array:
        """The model's current policy, `(I, A)`."""
        policy = self._model.policy
        if isinstance(policy, InfosetPolicy):
            return policy.outputs()[0]
        return np.asarray(network_table(actor_of(policy), self._game))

    @property
    def average(self) -> Float64Array:
        """The average policy, `(I, A)`."""
        return self.statistics.average

    @property
    def last_policy(self) -> Policy:
        """The model's current policy."""
        return Policy(self._game, self.last)

    @property
    def average_policy(self) -> Policy:
        """The average of the policies so far."""
        return Policy(self._game, self.average)

    def measures(self) -> tuple[float, float]:
        """NashConv of the last policy and of the average."""
        both = np.stack([self.last, self.average])
        last, average = nash_convs(self._game.tree, both).tolist()
        return last, average

    def start(self, total_steps: int) -> None:
        """Prepare a `learn` whose schedules span this number of decisions."""
        policy = self._model.policy
        self._stock = not isinstance(policy, InfosetPolicy)
        self._fitted = not self._stock and not policy.tabular
        kind: Kind = "network" if self._fitted else "table"
        self._schedule = scheduled_values(self._given, kind, total_steps)
        if self._stock:
            inputs = self._game.network_inputs(policy.observation_space.shape[0])
            self._infoset_of = infosets_by_observation(inputs)

    def after_rollout(self, buffer: SeatRolloutBuffer) -> None:
        """Nothing: what is learned from comes in PPO's batches."""

    @contextmanager
    def changed_gradients(self) -> Iterator[None]:
        """Change PPO's gradients inside the block."""
        policy = self._model.policy
        if self._stock:
            hook = policy.action_net.register_forward_hook(self._on_logits)
            try:
                yield
            finally:
                hook.remove()
        else:
            policy.on_evaluation = self._on_evaluation
            try:
                yield
            finally:
                policy.on_evaluation = None

    def add_to_average(self) -> None:
        """Add the current policy to the average."""
        self.statistics.add_to_average(self.last)

    def before_rollout(self, progress: float) -> float:
        """Set the step size and the pull, and move the magnet; return PPO's entropy coefficient.

        kl * sigma * KL(p || m) is an entropy bonus of that weight, which PPO adds by itself, and a
        gradient towards log m, which `InfosetStatistics.target_step` adds.
        """
        statistics, schedule = self.statistics, self._schedule
        left = 1 - (1 - (LOWEST_FITTED if self._fitted else LOWEST)) * progress
        statistics.step_size = schedule["step_size"] * left
        statistics.kl = between(schedule["kl"], schedule["kl_end"], progress)
        statistics.move_magnet(self.last, rate=schedule["magnet_rate"] * left)
        self._first = True
        return statistics.kl * statistics.sigma

    def get_state(self) -> dict[str, Any]:
        """Everything that later updates depend on."""
        return {name: getattr(self.statistics, name) for name in InfosetStatistics.STATE}

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from a state of `get_state`."""
        for name in InfosetStatistics.STATE:
            setattr(self.statistics, name, state[name])

    def _on_evaluation(
        self, logits: torch.Tensor, values: torch.Tensor, infosets: Any, counts: torch.Tensor
    ) -> None:
        """Change the gradients of an `InfosetPolicy`."""
        statistics, vf_coef, fixed = self.statistics, self._model.vf_coef, logits.detach()
        if self._first:
            statistics.count(infosets, counts)

        def towards_target(gradient: torch.Tensor) -> torch.Tensor:
            if self._first:
                self._first = False
                self._target = fixed + statistics.target_step(gradient, fixed, infosets, counts)
                self._weights = statistics.weights(infosets) if self._fitted else torch.ones(1)
            return self._weights * (fixed - self._target)

        change_gradient(logits, towards_target)
        if vf_coef and not self._fitted:
            # Scale PPO's gradient of the value loss to a step of 1 / samples: the mean of returns.
            samples = statistics.share[infosets] * statistics.batch_size * statistics.batches
            samples = samples.clamp(min=1, max=VALUE_SAMPLES)  # since the start, approximately
            scale = counts.sum() / (2 * vf_coef * torch.maximum(samples, counts))
            change_gradient(values, lambda gradient: gradient * scale[:, None].float())

    def _on_logits(self, module: Any, inputs: Any, logits: torch.Tensor) -> None:
        """Change the gradients of a stock policy."""
        if not is_learning(self._model, logits):
            return
        statistics, batch = self.statistics, self._model.rollout_buffer.batch
        try:
            seen = batch.observations.numpy() + 0
            met = torch.tensor([self._infoset_of[row.tobytes()] for row in seen])
        except KeyError:
            raise UsageError("an observation that no decision of this game has") from None
        infosets, which, counts = torch.unique(met, return_inverse=True, return_counts=True)
        statistics.count(infosets, counts)
        fixed = torch.empty(len(infosets), logits.shape[1])
        fixed[which] = logits.detach()

        def change(gradient: torch.Tensor) -> torch.Tensor:
            total = torch.zeros_like(fixed).index_add(0, which, gradient)
            step = statistics.target_step(total, fixed, infosets, counts)
            per_sample: torch.Tensor = statistics.weights(infosets) * step / counts[:, None]
            return -per_sample[which]

        change_gradient(logits, change)


class InfosetStatistics:
    """What is known per information set, and the steps that follow from it: equations 1 to 3.

    `sigma` is the unit of advantages: the standard deviation of returns under uniform play, or 1
    where PPO normalises advantages.
    """

    STATE = ("share", "log_magnet", "batches", "batch_size", "total", "policies")

    def __init__(self, tree: Tree, *, sigma: float = 1.0) -> None:
        self._tree, self._legal, self.sigma = tree, torch.tensor(tree.legal), sigma
        self.step_size, self.kl = 1.0, 0.0  # of FULL_STEP_SAMPLES samples; the magnet's weight
        self.share = torch.zeros(len(tree.keys)).double()  # w(s), (I,)
        self.batches, self.batch_size = 0, 0  # how many so far, and the size of the latest
        self.log_magnet = torch.tensor(np.log(np.where(tree.legal, tree.uniform(), 1.0))).float()
        self.total = torch.zeros(tree.legal.shape).double()  # the numerator of equation 3, (I, A)
        self.policies = 0  # how many are in it

    def add_to_average(self, table: Float64Array) -> None:
        """Add a policy `(I, A)` to the average, the t-th with weight t^2."""
        self.policies += 1
        own_reach = reach_probabilities(self._tree, table)[self._tree.parent_sequence]
        self.total += torch.from_numpy(self.policies**2 * own_reach[:, None] * table)

    @property
    def average(self) -> Float64Array:
        """The average policy, `(I, A)`; uniform where no policy ever arrives."""
        total = self.total.numpy()
        weight = total.sum(axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):
            return np.where(weight > 0, total / weight, self._tree.uniform())

    def move_magnet(self, table: Float64Array, *, rate: float | None) -> None:
        """Move the magnet towards a policy `(I, A)`, fully if `rate` is None.

        Otherwise it moves by `rate`, and less where samples are few.
        """
        log_policy = torch.as_tensor(np.log(np.maximum(table, 1e-30))).float()
        samples = (self.share * self.batch_size / FULL_STEP_SAMPLES).clamp(max=1)
        rates = torch.ones(1) if rate is None else (rate * samples**MAGNET_POWER)[:, None].float()
        way = torch.where(self._legal, log_policy - self.log_magnet, 0.0)
        self.log_magnet = self.log_magnet + rates * way

    def count(self, infosets: Any, counts: torch.Tensor) -> None:
        """Update the shares with the `counts` of `infosets` in a batch."""
        self.batches, self.batch_size = self.batches + 1, int(counts.sum())
        rate = max(1 / self.batches, SHARE_RATE)
        self.share *= 1 - rate
        self.share[infosets] += rate * counts / self.batch_size

    def weights(self, infosets: Any) -> torch.Tensor:
        """Weights sqrt(w(s)) in the fit of a network: `(R, 1)`, summing to 1."""
        weights = self.share[infosets] ** 0.5
        return (weights / weights.sum()).float()[:, None]

    def target_step(
        self, gradient: torch.Tensor, logits: torch.Tensor, infosets: Any, counts: torch.Tensor
    ) -> torch.Tensor:
        """The change of logits `(R, A)` that follows from the gradient of PPO's loss `(R, A)`."""
        legal, share = self._legal[infosets], self.share[infosets]
        policy = logits.masked_fill(~legal, ILLEGAL).softmax(1)
        log_magnet = self.log_magnet[infosets]
        magnet_gradient = policy * (log_magnet - (policy * log_magnet).sum(1, keepdim=True))
        batch_share = (counts / counts.sum()).float()[:, None]
        ascent = self.kl * batch_share * magnet_gradient - gradient / self.sigma
        step = torch.where(legal, ascent / (policy + PROBABILITY_FLOOR), 0.0)
        step = step - step.sum(1, keepdim=True) / legal.sum(1, keepdim=True)
        samples = (share * self.batch_size / FULL_STEP_SAMPLES).clamp(max=1)
        scale = self.step_size * samples.sqrt() / share.clamp(min=1e-12)
        return torch.where(legal, step * scale[:, None].float(), 0.0)
