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
    UnfinishedHands,
)
from algorithms.support.arrays import Float64Array, Int8Array, Int32Array
from algorithms.tree import Tree


class _Nodes(NamedTuple):
    """The arrays of a `Tree` that the loops read."""

    first_child: Int32Array  # (N + 1,)
    player: Int8Array  # (N,)
    infoset: Int32Array  # (N,)
    first_choice: Int32Array  # (I + 1,)


def _nodes(tree: Tree) -> _Nodes:
    return _Nodes(
        first_child=tree.first_child,
        player=tree.player,
        infoset=tree.infoset,
        first_choice=tree.first_choice,
    )


def add_hands(
    tree: Tree,
    policy: Float64Array,
    decisions: Decisions,
    unfinished: UnfinishedHands,
    critic: Critic,
    regret: Float64Array,
) -> None:
    """Add the regrets of all hands that end in a rollout, and let the critic learn from them.

    `policy` is sigma and `regret` r, both by choice `(C,)`. Hands that do not end are stored in
    `unfinished`.
    """
    _add_hands(_nodes(tree), policy, decisions, unfinished, critic, regret)


def match_regrets(
    tree: Tree, player: int, regret: Float64Array, latest: Float64Array, policy: Float64Array
) -> None:
    """Take one player's turn: add its `latest` regrets, predict that they repeat, and match."""
    _match_regrets(tree.first_choice, tree.owner, player, regret, latest, policy)


@compiled
def _add_hands(
    tree: _Nodes,
    policy: Float64Array,
    decisions: Decisions,
    unfinished: UnfinishedHands,
    critic: Critic,
    regret: Float64Array,
) -> None:
    steps, hands = decisions.nodes.shape
    longest = unfinished.nodes.shape[1]
    weights = np.empty(longest)
    weight_of_player = np.empty(critic.values.shape[1])
    estimate = np.empty(critic.values.shape[1])
    for hand in range(hands):
        length = unfinished.lengths[hand]
        for step in range(steps):
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
                for seat in range(len(estimate)):
                    estimate[seat] = decisions.returns[step, hand, seat]
                unfinished.lengths[hand] = length
                _add_hand(
                    tree,
                    policy,
                    unfinished,
                    hand,
                    estimate,
                    critic,
                    regret,
                    weights,
                    weight_of_player,
                )
                length = 0
        unfinished.lengths[hand] = length


@compiled
def _add_hand(  # noqa: PLR0913, PLR0917  # tuples of arrays take longer to pass
    tree: _Nodes,
    policy: Float64Array,
    unfinished: UnfinishedHands,
    hand: int,
    estimate: Float64Array,
    critic: Critic,
    regret: Float64Array,
    weights: Float64Array,
    weight_of_player: Float64Array,
) -> None:
    """Add the regrets of one hand; `estimate` `(P,)` has its returns, and is changed.

    `weights` `(D,)` and `weight_of_player` `(P,)` are working memory.
    """
    length = unfinished.lengths[hand]
    weight_of_player[:] = 1.0
    for step in range(length):
        player = tree.player[unfinished.nodes[hand, step]]
        probability = unfinished.probabilities[hand, step]
        weights[step] = weight_of_player[player]
        ratio = policy[unfinished.choices[hand, step]] / probability
        for other in range(len(weight_of_player)):
            if other == player:
                weight_of_player[other] /= probability
            else:
                weight_of_player[other] *= ratio
    for step in range(length - 1, -1, -1):
        node = unfinished.nodes[hand, step]
        choice = unfinished.choices[hand, step]
        probability = unfinished.probabilities[hand, step]
        infoset = tree.infoset[node]
        start = tree.first_choice[infoset]
        stop = tree.first_choice[infoset + 1]
        to_child = tree.first_child[node] - start  # from a choice to the node that it leads to
        child = choice + to_child
        player = tree.player[node]
        critic.visits[child] += 1
        rate = max(1.0 / critic.visits[child], CRITIC_RATE)
        for seat in range(len(estimate)):
            surprise = estimate[seat] - critic.values[child, seat]
            mean = surprise / probability * policy[choice]
            for other in range(start, stop):
                mean += policy[other] * critic.values[other + to_child, seat]
            if seat == player:
                for other in range(start, stop):
                    advantage = critic.values[other + to_child, seat] - mean
                    regret[other] += weights[step] * advantage
                regret[choice] += weights[step] * surprise / probability
            critic.values[child, seat] += rate * surprise
            estimate[seat] = mean


@compiled
def _match_regrets(
    first_choice: Int32Array,
    owner: Int8Array,
    player: int,
    regret: Float64Array,
    latest: Float64Array,
    policy: Float64Array,
) -> None:
    for infoset in range(len(owner)):
        if owner[infoset] != player:
            continue
        start = first_choice[infoset]
        stop = first_choice[infoset + 1]
        total = 0.0
        for choice in range(start, stop):
            regret[choice] = max(regret[choice] + latest[choice], 0.0)
            policy[choice] = max(regret[choice] + latest[choice], 0.0)
            total += policy[choice]
            latest[choice] = 0.0
        for choice in range(start, stop):
            policy[choice] = policy[choice] / total if total > 0 else 1.0 / (stop - start)
