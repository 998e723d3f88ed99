"""Counterfactual regret minimisation on flat arrays: one kernel, and variants that are numbers.

Sums run in the order in which OpenSpiel's solvers run them, so for two players the iterates of
CFR and CFR+ are OpenSpiel's to the last bit, ties and all. (For a tie the last bit matters: regrets
of 0 play uniformly, but a rounding error above 0 plays one action always.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from algorithms.compiled import compiled
from algorithms.tree import TERMINAL, Bytes, Floats, Ints, Policy, Tree


@dataclass(frozen=True, slots=True)
class Variant:
    """A member of the family, as discounted CFR describes it (Brown and Sandholm 2019).

    In iteration t regrets above 0 are multiplied by t^alpha / (t^alpha + 1) and those below by
    t^beta / (t^beta + 1), and the policy counts t^gamma in the average. An exponent of infinity
    keeps regrets whole, minus infinity forgets them.
    """

    alpha: float = inf
    beta: float = inf
    gamma: float = 0
    alternating: bool = True  # the players take turns, each seeing the other's update
    predictive: bool = False  # play as if the last regrets came once more


CFR = Variant()
CFR_SIMULTANEOUS = Variant(alternating=False)  # Zinkevich et al. 2007
CFR_PLUS = Variant(beta=-inf, gamma=1)  # Tammelin 2014
LINEAR_CFR = Variant(alpha=1, beta=1, gamma=1)
DISCOUNTED_CFR = Variant(alpha=1.5, beta=0, gamma=2)
PREDICTIVE_CFR_PLUS = Variant(beta=-inf, gamma=2, predictive=True)  # Farina et al. 2021

VARIANTS: Mapping[str, Variant] = MappingProxyType(
    {
        "cfr": CFR,
        "cfr+": CFR_PLUS,
        "lcfr": LINEAR_CFR,
        "dcfr": DISCOUNTED_CFR,
        "pcfr+": PREDICTIVE_CFR_PLUS,
        "cfr-simultaneous": CFR_SIMULTANEOUS,
    }
)


class Solver:
    """A run of one variant on one tree; what it hands out are copies.

    `prune` skips what a player's opponents never reach: quicker, and no iterate changes.
    """

    def __init__(self, tree: Tree, variant: Variant = CFR, *, prune: bool = True) -> None:
        self.tree, self.variant, self.prune = tree, variant, prune
        self.iteration = 0
        self._layout = _layout(tree)
        slots = tree.uniform()[tree.legal]
        self._regret, self._sum = np.zeros_like(slots), np.zeros_like(slots)
        self._probability = np.concatenate([slots, tree.edge])
        self._reach = np.ones(len(slots) + 1)
        for row, parent in enumerate(tree.parent):
            start, stop = tree.first_slot[row : row + 2]
            self._reach[start + 1 : stop + 1] = self._reach[parent] * slots[start:stop]
        self._values = tree.returns.copy()

    def run(self, iterations: int) -> None:
        """Go on for so many iterations."""
        v = self.variant
        _iterate(
            self._layout,
            (self._regret, self._sum, self._probability, self._reach, self._values),
            (v.alpha, v.beta, v.gamma, float(v.predictive)),
            (v.alternating, self.prune),
            (self.iteration, self.iteration + iterations),
        )
        self.iteration += iterations

    def average_policy(self) -> Policy:
        """`(I, A)`: what converges."""
        table = self.tree.policy_of(self._sum)
        sums = table.sum(axis=1, keepdims=True)
        return _frozen(np.where(sums > 0, table / np.where(sums > 0, sums, 1), self.tree.uniform()))

    def current_policy(self) -> Policy:
        """`(I, A)`: what the regrets say to play next."""
        return _frozen(self.tree.policy_of(self._probability[: self.tree.num_slots]))

    def regrets(self) -> Floats:
        """`(I, A)`: cumulative, as the variant keeps them."""
        return _frozen(self.tree.policy_of(self._regret))


def _frozen(table: Floats) -> Floats:
    table.setflags(write=False)
    return table


# What the kernel reads of a tree: nodes that have children, information sets, and their members.
_Inner: TypeAlias = tuple[Ints, Ints, Ints, Ints]
_Infosets: TypeAlias = tuple[Bytes, Ints, Ints, Ints]
_Members: TypeAlias = tuple[Ints, Ints, Ints, Floats]
_Layout: TypeAlias = tuple[_Inner, _Infosets, _Members]
# What it writes: regrets, policy sums, probabilities, reach by sequence, values by player and node.
_State: TypeAlias = tuple[Floats, Floats, Floats, Floats, Floats]
_Turn: TypeAlias = tuple[int, bool]  # the player to update, and whether to prune


def _layout(tree: Tree) -> _Layout:
    nodes = np.flatnonzero(tree.player != TERMINAL).astype(np.int32)
    rows = tree.infoset[nodes]
    # A node's probabilities are neighbours in [slots, edges], whoever acts there.
    start = np.where(rows >= 0, tree.first_slot[rows], tree.num_slots + tree.first_child[nodes])
    members = tree.members
    return (
        (nodes, start.astype(np.int32), tree.first_child, tree.sequence[:, nodes].copy()),
        (tree.owner, tree.first_slot, tree.parent, tree.first_member),
        (
            members,
            tree.first_child[members],
            tree.sequence[:, members].copy(),
            tree.chance[members],
        ),
    )


@compiled
def _iterate(
    layout: _Layout,
    state: _State,
    exponents: tuple[float, float, float, float],
    switches: tuple[bool, bool],
    span: tuple[int, int],
) -> None:
    """Iterations `span[0] + 1` up to `span[1]`, in place."""
    alternating, prune = switches
    alpha, beta, gamma, prediction = exponents
    _, _, probability, reach, values = state
    seen = reach if alternating else reach.copy()
    for t in range(span[0] + 1, span[1] + 1):
        weights = (_kept(t, alpha), _kept(t, beta), float(t) ** gamma, prediction)
        if not alternating:
            seen[:] = reach
            for player in range(len(values)):
                _evaluate(layout[0], probability, seen, values[player], (player, prune))
        for player in range(len(values)):
            if alternating:
                _evaluate(layout[0], probability, seen, values[player], (player, prune))
            _update(layout, state, seen, weights, (player, prune))


@compiled
def _kept(t: int, exponent: float) -> float:
    """t^exponent / (t^exponent + 1)."""
    if np.isinf(exponent):
        return 1.0 if exponent > 0 else 0.0
    power = float(t) ** exponent
    return power / (power + 1)


@compiled
def _others(reach: Floats, sequence: Ints, player: int, column: int) -> float:
    """How likely the other players are to play to a node."""
    product = 1.0
    for other in range(len(sequence)):
        if other != player:
            product *= reach[sequence[other, column]]
    return product


@compiled
def _evaluate(
    inner: _Inner, probability: Floats, reach: Floats, value: Floats, turn: _Turn
) -> None:
    """Fill in the player's value `(N,)` of every node, the last first.

    Where the others never come a stale value may stay: it is multiplied by 0 on its way up.
    """
    nodes, start, first_child, sequence = inner
    player, prune = turn
    for j in range(len(nodes) - 1, -1, -1):
        if prune and _others(reach, sequence, player, j) == 0:
            continue
        node, at = nodes[j], start[j]
        child, total = first_child[node], 0.0
        for k in range(first_child[node + 1] - child):
            total += probability[at + k] * value[child + k]
        value[node] = total


@compiled
def _update(
    layout: _Layout,
    state: _State,
    seen: Floats,
    weights: tuple[float, float, float, float],
    turn: _Turn,
) -> None:
    """Regrets, policy sums and the next policy of one player."""
    _, (owner, first_slot, parent, first_member), (nodes, children, sequence, chance) = layout
    regret, policy_sum, probability, reach, values = state
    keep_positive, keep_negative, weight, prediction = weights
    player, prune = turn
    value = values[player]
    for i in range(len(owner)):
        if owner[i] != player:
            continue
        start, stop = first_slot[i], first_slot[i + 1]
        for slot in range(start, stop):
            policy_sum[slot] += weight * reach[slot + 1]
            probability[slot] = regret[slot]
        for m in range(first_member[i], first_member[i + 1]):
            counterfactual = _others(seen, sequence, player, m) * chance[m]
            if prune and counterfactual == 0:
                continue
            ahead = children[m] - start
            for slot in range(start, stop):
                regret[slot] += counterfactual * (value[ahead + slot] - value[nodes[m]])
        total = 0.0
        for slot in range(start, stop):
            news = regret[slot] - probability[slot]
            regret[slot] *= keep_positive if regret[slot] >= 0 else keep_negative
            probability[slot] = max(regret[slot] + prediction * news, 0.0)
            total += probability[slot]
        for slot in range(start, stop):
            probability[slot] = probability[slot] / total if total > 0 else 1.0 / (stop - start)
            reach[slot + 1] = reach[parent[i]] * probability[slot]
