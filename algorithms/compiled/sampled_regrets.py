"""The loops of `algorithms.sampled_regrets`, compiled: same signatures, same numbers."""

from typing import NamedTuple

import numpy as np

from algorithms.compiled.jit import compiled
from algorithms.sampled_regrets import (
    BEGUN_UNSEEN,
    CRITIC_RATE,
    LEAST_PROBABILITY,
    Critic,
    Decisions,
    Nodes,
    Regrets,
    UnfinishedHands,
)
from algorithms.support.arrays import Float64Array, Int8Array, Int32Array


class _Nodes(NamedTuple):
    """The arrays of `Nodes` that the loops read."""

    first_child: Int32Array  # (N + 1,)
    player: Int8Array  # (N,)
    infoset: Int32Array  # (N,)
    first_choice: Int32Array  # (I + 1,)


def _nodes(tree: Nodes) -> _Nodes:
    return _Nodes(
        first_child=tree.first_child,
        player=tree.player,
        infoset=tree.infoset,
        first_choice=tree.first_choice,
    )


def add_hands(
    tree: Nodes,
    regrets: Regrets,
    decisions: Decisions,
    unfinished: UnfinishedHands,
    critic: Critic,
) -> None:
    """Add the latest regrets of all hands that end in a rollout; let the critic learn from them.

    Hands that do not end are stored in `unfinished`.
    """
    _add_hands(_nodes(tree), regrets, decisions, unfinished, critic)


def match_regrets(tree: Nodes, player: int, regrets: Regrets) -> None:
    """Take one player's turn: add its latest regrets, predict that they repeat, and match."""
    _match_regrets(tree.first_choice, tree.owner, player, regrets)


class _Memory(NamedTuple):
    """Working memory for one hand."""

    weights: Float64Array  # (D,) w of each decision
    weight_of_player: Float64Array  # (P,) w that a player's next decision would have
    estimate: Float64Array  # (P,) u of the node that is looked at; at first the hand's returns


@compiled
def _add_hands(
    tree: _Nodes,
    regrets: Regrets,
    decisions: Decisions,
    unfinished: UnfinishedHands,
    critic: Critic,
) -> None:
    steps, hands = decisions.nodes.shape
    players = critic.values.shape[1]
    memory = _Memory(
        np.empty(unfinished.nodes.shape[1]),
        np.empty(players),
        np.empty(players),
    )
    for hand in range(hands):
        length = unfinished.lengths[hand]
        for step in range(steps):
            if length == len(memory.weights):  # more decisions than a hand has: not one hand
                length = BEGUN_UNSEEN
            if length == BEGUN_UNSEEN:
                if decisions.ended[step, hand]:
                    length = 0
                continue
            unfinished.nodes[hand, length] = decisions.nodes[step, hand]
            unfinished.choices[hand, length] = decisions.choices[step, hand]
            probability = max(decisions.probabilities[step, hand], LEAST_PROBABILITY)
            unfinished.probabilities[hand, length] = probability
            length += 1
            if decisions.ended[step, hand]:
                for seat in range(players):
                    memory.estimate[seat] = decisions.returns[step, hand, seat]
                unfinished.lengths[hand] = length
                _weigh_decisions(tree, regrets, unfinished, hand, memory)
                _add_regrets(tree, regrets, unfinished, hand, memory, critic)
                length = 0
        unfinished.lengths[hand] = length


@compiled
def _weigh_decisions(
    tree: _Nodes, regrets: Regrets, unfinished: UnfinishedHands, hand: int, memory: _Memory
) -> None:
    """Fill in the weights of a hand's decisions, from the first to the last."""
    memory.weight_of_player[:] = 1.0
    for step in range(unfinished.lengths[hand]):
        player = tree.player[unfinished.nodes[hand, step]]
        probability = unfinished.probabilities[hand, step]
        memory.weights[step] = memory.weight_of_player[player]
        ratio = regrets.policy[unfinished.choices[hand, step]] / probability
        for other in range(len(memory.weight_of_player)):
            if other == player:
                memory.weight_of_player[other] /= probability
            else:
                memory.weight_of_player[other] *= ratio


@compiled
def _add_regrets(  # noqa: PLR0913, PLR0917  # a hand is a row of several arrays
    tree: _Nodes,
    regrets: Regrets,
    unfinished: UnfinishedHands,
    hand: int,
    memory: _Memory,
    critic: Critic,
) -> None:
    """Estimate a hand's values and add its regrets, from its last decision to its first."""
    policy = regrets.policy
    estimate = memory.estimate
    for step in range(unfinished.lengths[hand] - 1, -1, -1):
        node = unfinished.nodes[hand, step]
        choice = unfinished.choices[hand, step]
        probability = unfinished.probabilities[hand, step]
        infoset = tree.infoset[node]
        start = tree.first_choice[infoset]
        stop = tree.first_choice[infoset + 1]
        to_child = tree.first_child[node] - start  # from a choice to the node that it leads to
        child = choice + to_child
        critic.visits[child] += 1
        rate = max(1.0 / critic.visits[child], CRITIC_RATE)
        for seat in range(len(estimate)):
            surprise = estimate[seat] - critic.values[child, seat]
            mean = policy[choice] * surprise / probability
            for other in range(start, stop):
                mean += policy[other] * critic.values[other + to_child, seat]
            if seat == tree.player[node]:
                weight = memory.weights[step]
                for other in range(start, stop):
                    advantage = critic.values[other + to_child, seat] - mean
                    regrets.latest[other] += weight * advantage
                regrets.latest[choice] += weight * surprise / probability
            critic.values[child, seat] += rate * surprise
            estimate[seat] = mean


@compiled
def _match_regrets(
    first_choice: Int32Array, owner: Int8Array, player: int, regrets: Regrets
) -> None:
    policy = regrets.policy
    for infoset in range(len(owner)):
        if owner[infoset] != player:
            continue
        start = first_choice[infoset]
        stop = first_choice[infoset + 1]
        total = 0.0
        for choice in range(start, stop):
            latest = regrets.latest[choice]
            regrets.sums[choice] = max(regrets.sums[choice] + latest, 0.0)
            policy[choice] = max(regrets.sums[choice] + latest, 0.0)
            total += policy[choice]
            regrets.latest[choice] = 0.0
        for choice in range(start, stop):
            policy[choice] = policy[choice] / total if total > 0 else 1.0 / (stop - start)
