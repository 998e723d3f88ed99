"""Learning in games with a tree: regrets from sampled hands, with a critic.

The equations are in `algorithms.sampled_regrets`. This module connects them with
Stable-Baselines3: `TreeLearner` takes the rollouts that PPO has played, and tells PPO's policy what
to play next. It does so in two ways:

**A table** (`TableActorPolicy`) plays what the learner tells it, and there is nothing left for PPO
to fit. `algorithms.train_ppo` does this in all games with a tree, also where a network is wanted:
it is fitted to the result at the end (`algorithms.policies.distillation`).

**A stock network** is fitted to the average policy, the one that approaches an equilibrium.
PPO's loss has its gradient of the logits z(s, a) replaced by that of a cross-entropy,

    dL/dz(s, a)  =  (f(a|s) - average(a|s)) / decisions in the batch

with f the network's policy. PPO's epochs, batches, optimizer and value loss stay what they are.
Rollouts are played by f, with exploration: the learner corrects for the difference between f and
what it learns, because it knows the probability of every action that was played.

**The average policy** of the policies p_1, p_2, ... that were learned is

    average(a|s)  =  sum_t t^2 r_t(s) p_t(a|s) / sum_t t^2 r_t(s)

where r_t(s) is the player's own reach probability of s under p_t: the average plays like one p_t
that is drawn for the whole hand.

**A policy to start from** (a loaded model, `--init`) is worth as much as its NashConv is below
uniform play's. With u the share by which it is below, T the decisions of the run, sigma the
standard deviation of returns under uniform play and rho(s) the probability that chance and the
others play to s, regrets start from

    R(s, a)  =  START_WEIGHT * u * T * sigma * rho(s) * p(a|s)

so that p is played at first, and the less it is worth, the sooner it is given up. For the first
WARM_UP * u of the run only the critic learns.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import MethodType
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from algorithms.compiled.nashconv import nash_conv, nash_convs, reach_probabilities, returns_std
from algorithms.compiled.sampled_regrets import add_hands, match_regrets
from algorithms.games import Game
from algorithms.policies import Policy
from algorithms.policies.model_zip import actor_of
from algorithms.policies.network import network_table
from algorithms.sampled_regrets import (
    Decisions,
    longest_hand,
    new_critic,
    new_regrets,
    unseen_hands,
)
from algorithms.self_play.advantages import UNKNOWN_NODE, SeatRolloutBuffer
from algorithms.self_play.learner import (
    ILLEGAL,
    Given,
    NetworkMeasure,
    change_gradient,
    is_learning,
)
from algorithms.self_play.table_ppo import TableActorPolicy
from algorithms.support.arrays import Float64Array
from algorithms.support.errors import UsageError
from algorithms.tree import Tree

EXPLORATION = 0.3  # the default share of uniformly random actions
START_WEIGHT = 0.03
WARM_UP = 0.05


class TreeLearner:
    """Learning with regrets per information set (a `Learner`)."""

    return_scale = 1.0  # values and returns are in chips

    def __init__(
        self, model: Any, game: Game, given: Given, measure: NetworkMeasure | None
    ) -> None:
        del measure  # on a tree NashConv is exact
        tree = game.tree
        exploration = given["exploration"]
        self._model = model
        self._game = game
        self._tree = tree
        self._exploration = EXPLORATION if exploration is None else exploration
        self._regrets = new_regrets(tree)
        self._critic = new_critic(tree)
        self._unfinished = unseen_hands(model.n_envs, longest_hand(tree))
        self._resumed = False  # whether the hands in the environment are those in `_unfinished`
        self._updates = 0
        self._rollouts_of_critic = 0  # rollouts left from which only the critic learns
        self._average = AveragePolicy(tree)
        self._place = np.cumsum(tree.legal, axis=1) - 1  # (I, A) of an action among the legal ones
        self._start_policy: Float64Array | None = self._policy_of_model()

    def _policy_of_model(self) -> Float64Array | None:
        """The policy of a stock model `(I, A)`; None for a table, which has no policy yet."""
        if isinstance(self._model.policy, TableActorPolicy):
            return None
        table: Float64Array = network_table(actor_of(self._model.policy), self._game)
        return table

    @property
    def last(self) -> Float64Array:
        """The policy that is learned, or what a stock network plays instead: `(I, A)`."""
        of_model = self._policy_of_model()
        return self._tree.table_of(self._regrets.policy) if of_model is None else of_model

    @property
    def average(self) -> Float64Array:
        """The average policy, `(I, A)`."""
        return self._average.table

    @property
    def last_policy(self) -> Policy:
        """The policy that is learned, or what a stock network plays instead."""
        return Policy(self._game, self.last)

    @property
    def average_policy(self) -> Policy:
        """The average of the policies so far."""
        return Policy(self._game, self.average)

    @property
    def behaviour(self) -> Float64Array:
        """What should be played: the policy that is learned, with exploration. `(I, A)`."""
        policy = self._tree.table_of(self._regrets.policy)
        return (1 - self._exploration) * policy + self._exploration * self._tree.uniform()

    def measures(self) -> tuple[float, float]:
        """NashConv of the last policy and of the average."""
        both = np.stack([self.last, self.average])
        last, average = nash_convs(self._tree, both).tolist()
        return last, average

    def start_from(self, table: Float64Array) -> None:
        """Let the next `start` begin with a policy `(I, A)`."""
        self._start_policy = table

    def start(self, total_steps: int) -> None:
        """Prepare a `learn` of this number of decisions."""
        if not self._resumed:
            self._unfinished = unseen_hands(self._model.n_envs, longest_hand(self._tree))
        self._resumed = False
        if self._start_policy is not None:
            self._begin_with(self._start_policy, total_steps)
            self._start_policy = None

    def _begin_with(self, table: Float64Array, total_steps: int) -> None:
        """Set the regrets that a policy to start from is worth."""
        tree = self._tree
        uniform = tree.uniform()
        worth = 1 - nash_conv(tree, table) / max(nash_conv(tree, uniform), 1e-300)
        if worth <= 0:
            return
        sigma = returns_std(tree, uniform)
        scale = START_WEIGHT * worth * total_steps * sigma * others_reach(tree, table)  # (I,)
        self._regrets.policy[:] = table[tree.legal]
        self._regrets.sums[:] = (scale[:, np.newaxis] * table)[tree.legal]
        rollouts = total_steps / (self._model.n_envs * self._model.n_steps)
        self._rollouts_of_critic = round(WARM_UP * worth * rollouts)

    def before_rollout(self, progress: float) -> float:
        """Tell a table what to play; return PPO's entropy coefficient, which is 0."""
        if isinstance(self._model.policy, TableActorPolicy):
            self._model.policy.set_table(self.behaviour)
        return 0.0

    def after_rollout(self, buffer: SeatRolloutBuffer) -> None:
        """Learn from a rollout."""
        tree = self._tree
        rollout = buffer.rollout
        if (rollout.nodes == UNKNOWN_NODE).any():
            raise UsageError("hands that are not played on the game's tree: want on='tree'")
        infosets = tree.infoset[rollout.nodes]  # (T, n)
        actions = rollout.actions.astype(np.intp)
        decisions = Decisions(
            nodes=rollout.nodes,
            choices=(tree.first_choice[infosets] + self._place[infosets, actions]).astype(np.int32),
            probabilities=np.exp(rollout.log_probs.astype(np.float64)),
            ended=rollout.ended,
            returns=rollout.returns,
        )
        add_hands(tree, self._regrets, decisions, self._unfinished, self._critic)
        if self._rollouts_of_critic:
            self._rollouts_of_critic -= 1
            self._regrets.latest[:] = 0
        else:
            match_regrets(tree, self._updates % tree.num_players, self._regrets)
            self._updates += 1

    @contextmanager
    def exploring(self) -> Iterator[None]:
        """Let a stock policy play random actions now and then, inside the block."""
        policy = self._model.policy
        if isinstance(policy, TableActorPolicy):  # its table has the exploration
            yield
            return

        def forward(
            player: Any, obs: torch.Tensor, deterministic: bool = False, action_masks: Any = None
        ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
            """Actions, values and log-probabilities, as `MaskableActorCriticPolicy.forward`."""
            if player is not policy:  # a copy, made while this policy plays, is a stock policy
                stock: tuple[torch.Tensor, torch.Tensor, torch.Tensor]
                stock = type(player).forward(player, obs, deterministic, action_masks)
                return stock
            probabilities = policy.get_distribution(obs, action_masks).distribution.probs  # (n, A)
            legal = torch.as_tensor(action_masks, device=obs.device).reshape(probabilities.shape)
            uniform = legal / legal.sum(dim=1, keepdim=True)
            played = (1 - self._exploration) * probabilities + self._exploration * uniform
            actions = torch.multinomial(played, 1)
            log_probabilities = played.gather(1, actions).log()[:, 0]
            return actions[:, 0], policy.predict_values(obs), log_probabilities

        policy.forward = MethodType(forward, policy)
        try:
            yield
        finally:
            del policy.forward  # the method of the class is back

    @contextmanager
    def changed_gradients(self) -> Iterator[None]:
        """Fit a stock network to the average policy, inside the block."""
        if isinstance(self._model.policy, TableActorPolicy):
            yield
            return
        targets = torch.from_numpy(self.average).float().to(self._model.device)

        def towards_targets(module: Any, inputs: Any, logits: torch.Tensor) -> None:
            if is_learning(self._model, logits):
                gradient = self._cross_entropy_gradient(logits.detach(), targets)
                change_gradient(logits, lambda of_ppo: gradient.to(of_ppo.dtype))

        hook = self._model.policy.action_net.register_forward_hook(towards_targets)
        try:
            yield
        finally:
            hook.remove()

    def _cross_entropy_gradient(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """The gradient for logits `(R, A)` of the latest batch, with `targets` `(I, A)`.

        A row stands for one decision, or for all those at an information set.
        """
        buffer = self._model.rollout_buffer
        counts = buffer.evaluated_counts
        nodes = buffer.batch_nodes if counts is None else buffer.evaluated_nodes
        infosets = torch.from_numpy(self._tree.infoset[nodes].astype(np.int64))  # (R,)
        legal = torch.from_numpy(self._tree.legal[infosets.numpy()]).to(logits.device)  # (R, A)
        policy = logits.masked_fill(~legal, ILLEGAL).softmax(dim=1)
        difference = policy - targets[infosets.to(logits.device)]
        if counts is not None:
            difference = difference * counts.unsqueeze(1)
        return difference / len(buffer.batch_nodes)

    def add_to_average(self) -> None:
        """Add the policy that is learned to the average."""
        self._average.add(self._tree.table_of(self._regrets.policy))

    def get_state(self) -> dict[str, Any]:
        """Everything that later updates depend on."""
        arrays = {name: torch.from_numpy(array) for name, array in self._arrays().items()}
        return {
            "arrays": arrays,
            "updates": self._updates,
            "rollouts_of_critic": self._rollouts_of_critic,
            "policies": self._average.count,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from a state of `get_state`."""
        for name, array in self._arrays().items():
            array[...] = state["arrays"][name].numpy()
        self._updates = state["updates"]
        self._rollouts_of_critic = state["rollouts_of_critic"]
        self._average.count = state["policies"]
        self._resumed = True
        self._start_policy = None

    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays of the state, by name; changing them changes the learner."""
        return {
            "average": self._average.total,
            **{f"regrets_{name}": array for name, array in self._regrets._asdict().items()},
            **{f"critic_{name}": array for name, array in self._critic._asdict().items()},
            **{f"hands_{name}": array for name, array in self._unfinished._asdict().items()},
        }


class AveragePolicy:
    """The average of policies `(I, A)`, the t-th with weight t^2, by the reach of their owners.

    Attributes:
        total: the numerator of the module's equation, `(I, A)`.
        count: number of policies in it.
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self.total = np.zeros(tree.legal.shape)
        self.count = 0

    def add(self, table: Float64Array) -> None:
        """Add the next policy `(I, A)`."""
        self.count += 1
        own_reach = reach_probabilities(self._tree, table)[self._tree.parent_sequence]  # (I,)
        self.total += self.count**2 * own_reach[:, np.newaxis] * table

    @property
    def table(self) -> Float64Array:
        """The average, `(I, A)`; uniform where no policy ever arrives."""
        weights = self.total.sum(axis=1, keepdims=True)
        average = self.total / np.where(weights > 0, weights, 1)
        return np.where(weights > 0, average, self._tree.uniform())


def others_reach(tree: Tree, table: Float64Array) -> Float64Array:
    """The probability that chance and the other players arrive at each information set: `(I,)`."""
    reach_of_sequence = reach_probabilities(tree, table)  # (C + 1,)
    nodes = tree.members  # (decision nodes,) by information set
    owner = tree.owner[tree.infoset[nodes]]
    reach = tree.chance_reach[nodes].copy()
    for player in range(tree.num_players):
        of_player = reach_of_sequence[tree.sequence[player, nodes]]
        reach *= np.where(owner == player, 1.0, of_player)
    sums: Float64Array = np.add.reduceat(reach, tree.first_member[:-1])
    return sums
