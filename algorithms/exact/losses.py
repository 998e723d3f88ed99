"""Where a policy gives its chips away: each player's best-response gain, by information set.

A best response gains what the policy loses at the player's own decisions, one after another: at
each information set the value of the best action less that of the policy's mixture, both with best
play from there on, weighed by how often the policy comes there. These losses sum to the gain.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from algorithms.exact.tree import Tree
from algorithms.exact.values import reach
from algorithms.support.arrays import Float64Array

NOTHING = 1e-12  # chips per hand: rounding


class Loss(NamedTuple):
    """One information set: how often it is reached, what is played and what would be best there.

    `lost` is in chips per hand, of all hands.
    """

    row: int
    reach: float
    played: int  # the likeliest action
    share: float  # its probability
    best: int
    lost: float


def losses(tree: Tree, policy: npt.ArrayLike) -> tuple[Loss, ...]:
    """Where a joint policy `(I, A)` loses chips to best responses, the largest loss first."""
    table = np.asarray(policy, np.float64)
    plan = reach(tree, table)
    comes = _row_reach(tree, plan)
    lost, best = np.zeros(len(table)), np.zeros(len(table), np.intp)
    for player in range(tree.num_players):
        worth = _worth_of_ends(tree, plan, player)
        for row in np.flatnonzero(tree.owner == player)[::-1]:  # children first
            slots = slice(tree.first_slot[row] + 1, tree.first_slot[row + 1] + 1)
            before, values, legal = tree.parent[row], worth[slots], np.flatnonzero(tree.legal[row])
            top = values.argmax()
            lost[row] = plan[before] * (values[top] - values @ table[row, legal])
            best[row] = legal[top]
            worth[before] += values[top]
    played = table.argmax(axis=1)
    shares = table[np.arange(len(table)), played]
    columns = (column.tolist() for column in (comes, played, shares, best, lost))
    found = [Loss(row, *values) for row, values in enumerate(zip(*columns, strict=True))]
    return tuple(sorted((loss for loss in found if loss.lost > NOTHING), key=lambda x: -x.lost))


def _row_reach(tree: Tree, plan: Float64Array) -> Float64Array:
    """How likely a hand is to come to each information set: `(I,)`."""
    nodes = tree.members
    comes = tree.chance[nodes] * plan[tree.sequence[:, nodes]].prod(axis=0)
    return np.asarray(np.bincount(tree.infoset[nodes], comes, len(tree.keys)), np.float64)


def _worth_of_ends(tree: Tree, plan: Float64Array, player: int) -> Float64Array:
    """What each sequence of a player is worth where no decision of its own follows: `(S + 1,)`."""
    others = np.delete(tree.ends, player, axis=0)
    counterfactual = tree.stakes[player] * plan[others].prod(axis=0)
    return np.asarray(np.bincount(tree.ends[player], counterfactual, len(plan)), np.float64)
