"""Learning on OpenSpiel's states where information sets recur: regrets per information set.

It is what `tree_learner` does, with the same equations (`algorithms.sampled_regrets`), in games
whose tree is not built. Three things differ:

- Information sets are numbered as they come up (`seen_infosets`). The tables grow with them.
- Nobody sees the nodes of the game, so the critic has a value per choice, V_p(I, a), instead of one
  per node. It is a baseline, so the expectation of regrets is the same, with more noise.
- The owner's sequence at an information set, on which reach probabilities depend, becomes known
  when a hand that was seen from its start arrives there.

The result is a policy at the information sets that were seen. A network of a chosen width is fitted
to it for the saved model, and generalises to the others.

Where random play hardly ever comes back to an information set, there is nothing to learn from in a
table: there a network learns alone (`network_learner`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from algorithms.compiled.jit import compiled
from algorithms.compiled.sampled_regrets import add_hands, match_regrets
from algorithms.compiled.simulator import running_sums
from algorithms.games import Game
from algorithms.games.game import PolicyRows
from algorithms.policies import Policy
from algorithms.policies.network import as_network
from algorithms.sampled_regrets import Critic, Decisions, Regrets, UnfinishedHands, unseen_hands
from algorithms.self_play.advantages import SeatRolloutBuffer
from algorithms.self_play.learner import Given, NetworkMeasure
from algorithms.self_play.seen_infosets import UNSEEN, SeenInfosets
from algorithms.self_play.table_ppo import SeenActorPolicy
from algorithms.self_play.tree_learner import EXPLORATION
from algorithms.support.arrays import (
    BoolArray,
    Float64Array,
    Int8Array,
    Int32Array,
    IntpArray,
)

NO_CHOICE = 0  # the sequence of a player who has not acted yet; choice c ends sequence c + 1
UNKNOWN = -1  # a sequence that no hand has shown from its start


class Places(NamedTuple):
    """Where in their owners' plans the I information sets are."""

    parent_sequence: Int32Array  # (I,) the owner's sequence when it arrives, or UNKNOWN
    depth: Int32Array  # (I,) how many choices the owner has made before


class OwnSequences(NamedTuple):
    """The players' sequences in n hands, as far as they are known."""

    latest: Int32Array  # (n, P) each player's sequence
    length: Int32Array  # (n, P) the number of choices in it
    is_known: BoolArray  # (n,) whether the hand was seen from its start


class InfosetLearner:
    """Learning with regrets per information set that was seen: a `Learner`."""

    return_scale = 1.0  # values and returns are in chips

    def __init__(
        self, model: Any, game: Game, given: Given, measure: NetworkMeasure | None
    ) -> None:
        exploration = given["exploration"]
        self._model = model
        self._game = game
        self._exploration = EXPLORATION if exploration is None else exploration
        self._measure = measure or (lambda network: float("nan"))
        policy: SeenActorPolicy = model.policy
        self._actor = policy
        self._infosets = policy.infosets
        players = game.num_players
        self._regrets = Regrets(policy=np.zeros(0), sums=np.zeros(0), latest=np.zeros(0))
        self._critic = Critic(values=np.zeros((0, players)), visits=np.zeros(0, np.int64))
        self._average_sums = np.zeros(0)  # (C,) the numerator of the average policy
        self._count = 0  # policies in the average
        self._places = Places(np.zeros(0, np.int32), np.zeros(0, np.int32))
        self._updates = 0
        self._resumed = False
        self._forget_hands()

    def _forget_hands(self) -> None:
        """Take all hands for begun by somebody else."""
        hands = self._model.n_envs
        longest = int(self._game.pyspiel_game.max_game_length())
        self._unfinished: UnfinishedHands = unseen_hands(hands, longest)
        shape = (hands, self._game.num_players)
        self._sequences = OwnSequences(
            latest=np.zeros(shape, np.int32),
            length=np.zeros(shape, np.int32),
            is_known=np.zeros(hands, np.bool_),
        )

    # Policies

    @property
    def last(self) -> nn.Module:
        """The policy that is learned, as a function of observations."""
        return SeenPolicy(self._infosets, self._table(self._regrets.policy))

    @property
    def average(self) -> nn.Module:
        """The average policy, as a function of observations."""
        return SeenPolicy(self._infosets, self._average_table())

    @property
    def last_policy(self) -> Policy:
        """The policy that is learned."""
        return Policy(self._game, network=as_network(self.last, self._game))

    @property
    def average_policy(self) -> Policy:
        """The average of the policies so far."""
        return Policy(self._game, network=as_network(self.average, self._game))

    def rows(self, holds: str) -> tuple[PolicyRows, Float64Array]:
        """The `last` or the `average` policy where it is known, and its owners' reach `(I,)`."""
        self._grow()
        if holds == "average":
            table = self._average_table()
        else:
            table = self._table(self._regrets.policy)
        rows = PolicyRows(
            inputs=self._infosets.observations(),
            probabilities=table,
            legal=self._infosets.legal,
        )
        return rows, self._own_reach(table[self._infosets.legal])

    def measures(self) -> tuple[float, float]:
        """The measure of the last and of the average policy, NaN if there is none."""
        return self._measure(self.last), self._measure(self.average)

    def _table(self, by_choice: Float64Array) -> Float64Array:
        """Numbers by choice `(C,)` as a table `(I, A)`; uniform where no choices are known yet."""
        legal = self._infosets.legal
        table = legal / legal.sum(axis=1, keepdims=True)
        known = len(self._places.depth)
        rows = np.zeros((known, legal.shape[1]))
        rows[legal[:known]] = by_choice
        table[:known] = rows
        return np.asarray(table)

    def _average_table(self) -> Float64Array:
        """The average policy `(I, A)`; uniform where no policy ever arrives."""
        sums = self._table(self._average_sums)
        totals = sums.sum(axis=1, keepdims=True)
        legal = self._infosets.legal
        uniform = legal / legal.sum(axis=1, keepdims=True)
        return np.where(totals > 0, sums / np.where(totals > 0, totals, 1), uniform)

    # What `SelfPlay` calls

    def start(self, total_steps: int) -> None:
        """Prepare a `learn`."""
        del total_steps  # there is no schedule
        if not self._resumed:
            self._forget_hands()
        self._resumed = False

    def before_rollout(self, progress: float) -> float:
        """Tell the actor what to play; return PPO's entropy coefficient, which is 0."""
        del progress
        policy = self._table(self._regrets.policy)
        legal = self._infosets.legal
        uniform = legal / legal.sum(axis=1, keepdims=True)
        behaviour = (1 - self._exploration) * policy + self._exploration * uniform
        self._infosets.running_sums[:] = running_sums(behaviour)
        self._actor.played.clear()
        return 0.0

    def after_rollout(self, buffer: SeatRolloutBuffer) -> None:
        """Learn from a rollout."""
        rollout = buffer.rollout
        infosets = np.stack(self._actor.played[: len(rollout.acted)])  # (T, n)
        self._infosets.owner[infosets] = rollout.acted
        self._grow()
        nodes = self._infosets.nodes(self._game.num_players)
        places_of_actions = np.cumsum(self._infosets.legal, axis=1) - 1  # (I, A), among legal ones
        actions = rollout.actions.astype(np.intp)
        choices = nodes.first_choice[infosets] + places_of_actions[infosets, actions]  # (T, n)
        decisions = Decisions(
            nodes=infosets.astype(np.int32),
            choices=choices.astype(np.int32),
            probabilities=np.exp(rollout.log_probs.astype(np.float64)),
            ended=rollout.ended,
            returns=rollout.returns,
        )
        _follow_sequences(decisions, rollout.acted, self._sequences, self._places)
        add_hands(nodes, self._regrets, decisions, self._unfinished, self._critic)
        match_regrets(nodes, self._updates % self._game.num_players, self._regrets)
        self._updates += 1

    @contextmanager
    def exploring(self) -> Iterator[None]:
        """Nothing: what the actor plays has the exploration."""
        yield

    @contextmanager
    def changed_gradients(self) -> Iterator[None]:
        """Nothing: there is no network."""
        yield

    def add_to_average(self) -> None:
        """Add the policy that is learned to the average; the t-th has the weight t^2."""
        self._count += 1
        policy = self._regrets.policy
        known = len(self._places.depth)
        legal = self._infosets.legal[:known]
        reach = np.repeat(self._own_reach(policy), legal.sum(axis=1))  # (C,)
        self._average_sums += self._count**2 * reach * policy

    def _own_reach(self, policy: Float64Array) -> Float64Array:
        """The probability that the owners' own choices lead to each information set: `(I,)`."""
        known = len(self._places.depth)
        first_choice = self._infosets.first_choice()[: known + 1]
        order = np.argsort(self._places.depth, kind="stable")
        return np.asarray(
            _reach_by_depth(order, first_choice, self._places.parent_sequence, policy)
        )

    def _grow(self) -> None:
        """Give the information sets that were seen since the last time rows in all arrays."""
        known = len(self._places.depth)
        legal = self._infosets.legal
        new = legal[known:]
        if not len(new):
            return
        uniform = (new / new.sum(axis=1, keepdims=True))[new]  # (new choices,)
        zeros = np.zeros(len(uniform))
        regrets = self._regrets
        self._regrets = Regrets(
            policy=np.concatenate([regrets.policy, uniform]),
            sums=np.concatenate([regrets.sums, zeros]),
            latest=np.concatenate([regrets.latest, zeros]),
        )
        values = np.zeros((len(uniform), self._game.num_players))
        self._critic = Critic(
            values=np.concatenate([self._critic.values, values]),
            visits=np.concatenate([self._critic.visits, zeros.astype(np.int64)]),
        )
        self._average_sums = np.concatenate([self._average_sums, zeros])
        unknown = np.full(len(new), UNKNOWN, np.int32)
        self._places = Places(
            parent_sequence=np.concatenate([self._places.parent_sequence, unknown]),
            depth=np.concatenate([self._places.depth, np.zeros(len(new), np.int32)]),
        )

    # Checkpoints

    def get_state(self) -> dict[str, Any]:
        """Everything that later updates depend on."""
        self._grow()
        return {
            "infosets": _tensors(self._infosets.get_state()),
            "arrays": _tensors(self._arrays()),
            "updates": self._updates,
            "policies": self._count,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from a state of `get_state`."""
        infosets = {name: tensor.numpy() for name, tensor in state["infosets"].items()}
        self._infosets.set_state(infosets)
        self._grow()
        for name, array in self._arrays().items():
            array[...] = state["arrays"][name].numpy()
        self._updates = state["updates"]
        self._count = state["policies"]
        self._resumed = True

    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays of the state, by name; changing them changes the learner."""
        parts: dict[str, Any] = {
            "regrets": self._regrets,
            "critic": self._critic,
            "hands": self._unfinished,
            "places": self._places,
            "sequences": self._sequences,
        }
        arrays = {
            f"{part}_{name}": array
            for part, of_part in parts.items()
            for name, array in of_part._asdict().items()
        }
        return arrays | {"average": self._average_sums}


class SeenPolicy(nn.Module):
    """A policy at information sets that were seen, as logits `(n, A)` of observations `(n, size)`.

    At others it is uniform.
    """

    def __init__(self, infosets: SeenInfosets, table: Float64Array) -> None:
        super().__init__()
        self._infosets = infosets
        self._logits = np.log(np.maximum(table, 1e-38)).astype(np.float32)  # (I, A)

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """Logits: logarithms of the probabilities."""
        if observations.shape[1] != self._infosets.size:
            raise ValueError(f"want observations of {self._infosets.size} numbers")
        numbers = self._infosets.find(np.asarray(observations, np.float32))
        known = (numbers != UNSEEN) & (numbers < len(self._logits))
        logits = np.zeros((len(numbers), self._infosets.num_actions), np.float32)
        logits[known] = self._logits[numbers[known]]
        return torch.from_numpy(logits)


def _tensors(arrays: dict[str, npt.NDArray[Any]]) -> dict[str, torch.Tensor]:
    """Arrays as tensors, which a checkpoint contains."""
    return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}


@compiled
def _follow_sequences(
    decisions: Decisions, acted: Int8Array, sequences: OwnSequences, places: Places
) -> None:
    """Follow the hands of all environments, one after another, and note where information sets are.

    With perfect recall every visit notes the same place.
    """
    steps, hands = acted.shape
    for hand in range(hands):
        for step in range(steps):
            seat = acted[step, hand]
            infoset = decisions.nodes[step, hand]
            if sequences.is_known[hand]:
                places.parent_sequence[infoset] = sequences.latest[hand, seat]
                places.depth[infoset] = sequences.length[hand, seat]
            sequences.latest[hand, seat] = decisions.choices[step, hand] + 1
            sequences.length[hand, seat] += 1
            if decisions.ended[step, hand]:
                sequences.latest[hand, :] = NO_CHOICE
                sequences.length[hand, :] = 0
                sequences.is_known[hand] = True


@compiled
def _reach_by_depth(
    order: IntpArray, first_choice: Int32Array, parent_sequence: Int32Array, policy: Float64Array
) -> Float64Array:
    """Reach probabilities of information sets `(I,)`, visited by depth, parents first.

    They are 0 where the owner's sequence is unknown.
    """
    of_sequence = np.ones(len(policy) + 1)  # by sequence; NO_CHOICE has 1
    reach = np.zeros(len(order))
    for infoset in order:
        if parent_sequence[infoset] != UNKNOWN:
            reach[infoset] = of_sequence[parent_sequence[infoset]]
        for choice in range(first_choice[infoset], first_choice[infoset + 1]):
            of_sequence[choice + 1] = reach[infoset] * policy[choice]
    return reach
