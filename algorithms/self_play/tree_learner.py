"""Learning in games with a tree: regrets from sampled hands, with a critic.

The equations are in `algorithms.sampled_regrets`. This module connects them with
Stable-Baselines3: `TreeLearner` takes the rollouts that PPO has played, and tells PPO's policy what
to play next. It does so in two ways:

**A table** (`TablePolicy`, which `algorithms.train_ppo` trains in games with a tree, also where a
network is to be saved) plays what the learner tells it. There is nothing left for PPO to fit.

**A stock network** is fitted to what the learner tells it. PPO's loss has its gradient of the
logits z(s, a) replaced by that of a cross-entropy,

    dL/dz(s, a)  =  (f(a|s) - b(a|s)) / decisions in the batch

with f the network's policy and b the learner's, exploration included. PPO's epochs, batches,
optimizer and value loss stay what they are. The network may lag behind: the learner corrects for
the difference, because it knows with which probability every action was played.

**The average policy** of the policies p_1, p_2, ... that were learned is

    average(a|s)  =  sum_t t^2 r_t(s) p_t(a|s) / sum_t t^2 r_t(s)

where r_t(s) is the player's own reach probability of s under p_t: the average plays like one p_t
that is drawn for the whole hand. It is the average that approaches an equilibrium.

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
from typing import Any

import numpy as np
import torch

from algorithms.compiled.nashconv import nash_conv, nash_convs, reach_probabilities, returns_std
from algorithms.compiled.sampled_regrets import add_hands, match_regrets
from algorithms.games import Game
from algorithms.policies import Policy
from algorithms.policies.model_zip import actor_of
from algorithms.policies.network import network_table
from algorithms.sampled_regrets import Decisions, UnfinishedHands, new_critic, no_hands
from algorithms.self_play.advantages import Rollout, SeatRolloutBuffer
from algorithms.self_play.learner import ILLEGAL, Given, NetworkMeasure, change_gradient, is_learning
from algorithms.self_play.table_policy import TablePolicy
from algorithms.support.arrays import Float64Array, Int64Array
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
        self._model = model
        self._game = game
        self._tree = game.tree
        exploration = given["exploration"]
        self._exploration = EXPLORATION if exploration is None else exploration
        self._policy = self._tree.uniform()[self._tree.legal]  # (C,) sigma
        self._regret = np.zeros(self._tree.num_choices)  # R
        self._latest = np.zeros(self._tree.num_choices)  # r
        self._critic = new_critic(self._tree)
        self._unfinished: UnfinishedHands = no_hands(self._tree, model.n_envs)
        self._updates = 0
        self._critic_alone_until = -1  # decisions, of the model
        self._average = AveragePolicy(self._tree)
        # The action ID's place among the legal actions, (I, A).
        self._place = np.cumsum(self._tree.legal, axis=1) - 1
