"""The value of every action against the other players of a joint policy, and costs and losses.

Let `h` be a node of an information set `I` of player `p`, and let `reach_-p(h)` be the probability
that chance and the other players lead to `h`, given that `p` plays towards it. Then

    reach_-p(I) = sum over h in I of reach_-p(h)
    value(I, a) = sum over h in I of reach_-p(h) * u_p(h, a) / reach_-p(I)

where `u_p(h, a)` is the expected return of `p` from `h` if it plays `a`, then its best response,
and the others play the policy. Then

    cost(I, a)  = max over b of value(I, b) - value(I, a)
    reach(I)    = reach_p(I) * reach_-p(I)
    loss(I)     = reach(I) * sum over a of policy(I, a) * cost(I, a)
    belief(h)   = reach_-p(h) / reach_-p(I)

Values and costs are in chips at the information set, losses in chips per hand; a player's losses
sum to its best-response gain.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from algorithms.exact.tree import Tree
from algorithms.exact.values import counterfactual_values, reach_probabilities
from algorithms.support.arrays import Float64Array

ROUNDING = 1e-12  # of the largest return: actions whose values differ by less are equally good


@dataclass(frozen=True, slots=True, eq=False)
class ActionValues:
    """All of the module's quantities for one joint policy.

    Quotients are NaN where the other players and chance never arrive.
    """

    values: Float64Array  # (S,)
    costs: Float64Array  # (S,) exactly 0 for every best action
    reach: Float64Array  # (I,)
    losses: Float64Array  # (I,)
    beliefs: Float64Array  # (decision nodes,) in the order of the nodes


def action_values(tree: Tree, policy: npt.ArrayLike) -> ActionValues:
    """The values of all actions against a joint policy `(I, A)`, each player against the others."""
    table = np.asarray(policy, np.float64)
    own = reach_probabilities(tree, table)
    counterfactual = counterfactual_values(tree, table)
    best = np.maximum.reduceat(counterfactual, tree.first_slot[:-1])
    nodes = np.flatnonzero(tree.infoset >= 0)
    reach = own[tree.sequence[:, nodes]]  # (P, D)
    reach[tree.player[nodes], np.arange(len(nodes))] = 1.0
    others_by_node = reach.prod(axis=0) * tree.chance_reach[nodes]
    others = np.bincount(tree.infoset[nodes], others_by_node, len(tree.keys))
    infosets = tree.slots[:, 0]
    regrets = best[infosets] - counterfactual
    regrets[regrets <= ROUNDING * np.abs(tree.returns).max() * others[infosets]] = 0.0
    expected = np.bincount(infosets, table[tree.legal] * regrets, len(tree.keys))
    with np.errstate(invalid="ignore", divide="ignore"):
        return ActionValues(
            values=counterfactual / others[infosets],
            costs=regrets / others[infosets],
            reach=others * own[tree.parent_sequence],
            losses=own[tree.parent_sequence] * expected,
            beliefs=others_by_node / others[tree.infoset[nodes]],
        )
