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

from algorithms.exact.tree import CHANCE, Tree, ranges, unsigned
from algorithms.support.arrays import Float64Array, Int8Array, IntpArray, UInt32Array
from algorithms.support.compiled import compiled
from kuhn_bridge.errors import BridgeError

SLICE = 2**25  # nodes visited at a time, a fraction of a second: Ctrl-C waits for compiled code


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


class Tables:
    """What every solver keeps, slot by slot; what it hands out are frozen copies `(I, A)`."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.iteration = 0
        self._regret, self._sum = np.zeros((2, tree.num_slots))

    def run(self, iterations: int) -> None:
        """Run `iterations` more iterations."""
        if iterations < 0:
            raise BridgeError(f"{iterations} iterations: a solver only goes forward")
        end, most = self.iteration + iterations, max(1, SLICE // self.tree.num_nodes)
        while self.iteration < end:
            part = min(most, end - self.iteration)
            self._advance(part)
            self.iteration += part

    def _advance(self, iterations: int) -> None:
        raise NotImplementedError

    def average_policy(self) -> Float64Array:
        """What converges; uniform where the policy never arrives."""
        return self._normalised(self._sum)

    def current_policy(self) -> Float64Array:
        """What the regrets say to play next."""
        return self._normalised(np.maximum(self._regret, 0))

    def regrets(self) -> Float64Array:
        """Cumulative regrets, as the variant keeps them."""
        return _frozen(self.tree.policy_of(self._regret))

    def _normalised(self, weights: Float64Array) -> Float64Array:
        if not np.isfinite(weights).all():
            raise BridgeError(
                f"after {self.iteration:,} iterations the discounts exceed all numbers"
            )
        table = self.tree.policy_of(weights)
        sums = table.sum(axis=1, keepdims=True)
        return _frozen(np.where(sums > 0, table / np.where(sums > 0, sums, 1), self.tree.uniform()))


class Solver(Tables):
    """A run of one variant on one tree.

    `prune` passes over what the opponents never reach; no iterate changes.
    """

    def __init__(self, tree: Tree, variant: Variant = CFR, *, prune: bool = True) -> None:
        super().__init__(tree)
        self.variant, self.prune = variant, prune
        self._layout, order = _layout(tree)
        self._last = np.zeros(tree.num_slots)
        self._probability = np.concatenate([np.zeros(tree.num_slots), tree.edge])
        self._reach = np.ones(tree.num_slots + 1)
        self._values = np.ascontiguousarray(tree.returns[:, order])
        self._advance(0)

    def _advance(self, iterations: int) -> None:
        variant = self.variant
        exponents = float(variant.alpha), float(variant.beta), float(variant.gamma)
        _iterate(
            self._layout,
            (self._probability, self._reach, self._values),
            (self._regret, self._last, self._sum),
            (*exponents, float(variant.predictive)),
            (self.iteration, self.iteration + iterations, variant.alternating, self.prune),
        )

    def current_policy(self) -> Float64Array:
        """What is played next: from the regrets and, if predictive, the last news of them."""
        return _frozen(self.tree.policy_of(self._probability[: self.tree.num_slots]))


def _frozen(table: Float64Array) -> Float64Array:
    table.setflags(write=False)
    return table


# What the kernel reads. Nodes that act alike (one information set at one depth, or one chance
# node) form a group; groups, their nodes and the edges below them stand in the order of the sweep,
# deepest first, so that everything but the children's values is read in a straight line.
_Groups: TypeAlias = tuple[Int8Array, UInt32Array, UInt32Array, UInt32Array, UInt32Array]
_Nodes: TypeAlias = tuple[UInt32Array, Float64Array, UInt32Array, UInt32Array]
_Infosets: TypeAlias = tuple[UInt32Array, UInt32Array, UInt32Array, UInt32Array]
_Layout: TypeAlias = tuple[_Groups, _Nodes, _Infosets]
# What it writes: probabilities, reach by sequence, values by player and node; regrets, the regrets
# of one iteration before, sums of policies.
_Play: TypeAlias = tuple[Float64Array, Float64Array, Float64Array]
_Sums: TypeAlias = tuple[Float64Array, Float64Array, Float64Array]


def _layout(tree: Tree) -> tuple[_Layout, IntpArray]:
    """The kernel's view of a tree, and the order `(N,)` in which it numbers the nodes."""
    inner, heads, sizes = _groups(tree)
    order = np.concatenate([inner, tree.terminals])
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    rows, owner = tree.infoset[heads], tree.player[heads]
    first, after = tree.first_child[:-1], tree.first_child[1:]
    # A node's probabilities are neighbours in [slots, edges], whoever acts there.
    slots = np.where(rows >= 0, tree.first_slot[rows], tree.num_slots + first[heads])
    # Above its last decisions a player's values are not asked for.
    needed = [
        np.max(1 + np.flatnonzero(owner == player), initial=0) for player in range(tree.num_players)
    ]
    by_owner = np.argsort(tree.owner, kind="stable")
    groups = (
        owner,
        unsigned(slots),
        unsigned((after - first)[heads]),
        unsigned(sizes),
        unsigned(np.where(rows >= 0, tree.parent[rows], 0)),
    )
    nodes = (
        unsigned(tree.sequence[:, inner]),
        tree.chance[inner],
        unsigned(number[ranges(first[inner], after[inner])]),
        unsigned(needed),
    )
    infosets = (
        unsigned(np.searchsorted(tree.owner[by_owner], np.arange(tree.num_players + 1))),
        unsigned(tree.first_slot[by_owner]),
        unsigned(tree.first_slot[by_owner + 1]),
        unsigned(tree.parent[by_owner]),
    )
    return (groups, nodes, infosets), order


def _groups(tree: Tree) -> tuple[IntpArray, IntpArray, IntpArray]:
    """The nodes that have children, in the order of the sweep; each group's first, and its size.

    Within a group the order is depth first, as OpenSpiel adds regrets up; groups of a depth stand
    by their number of actions, which makes the loops easy to foresee.
    """
    inner = np.concatenate([tree.members, np.flatnonzero(tree.player == CHANCE)])
    depth, counts = tree.depths(), np.diff(tree.first_child)
    order = np.lexsort((tree.infoset[inner], counts[inner], -depth[inner]))  # a stable sort
    inner = inner[order]
    rows, levels = tree.infoset[inner], depth[inner]
    fresh = np.append(True, (rows[1:] != rows[:-1]) | (levels[1:] != levels[:-1]) | (rows[1:] < 0))
    starts = np.flatnonzero(fresh)
    return inner, inner[starts], np.diff(starts, append=len(inner))


@compiled
def _iterate(
    layout: _Layout,
    play: _Play,
    sums: _Sums,
    exponents: tuple[float, float, float, float],
    span: tuple[int, int, bool, bool],
) -> None:
    """Iterations `first + 1` up to `last`, in place; before the first, the uniform policy."""
    first, last, alternating, prune = span
    alpha, beta, gamma, prediction = exponents
    players = len(play[2])
    if first == 0:
        for player in range(players):
            _match(layout[2], play, sums, (1.0, 1.0, 0.0, 0.0), player)
    for t in range(first + 1, last + 1):
        weights = (kept(t, alpha), kept(t, beta), float(t) ** gamma, prediction)
        for player in range(players):
            _sweep(layout, play, sums[0], player, prune)
            if alternating:
                _match(layout[2], play, sums, weights, player)
        if not alternating:
            for player in range(players):
                _match(layout[2], play, sums, weights, player)


@compiled
def kept(t: int, exponent: float) -> float:
    """t^exponent / (t^exponent + 1)."""
    if np.isinf(exponent):
        return 1.0 if exponent > 0 else 0.0
    power: float = float(t) ** exponent
    return power / (power + 1)


@compiled
def _sweep(layout: _Layout, play: _Play, regret: Float64Array, player: int, prune: bool) -> None:
    """Add one iteration's counterfactual regrets of a player, from the last nodes to the first.

    Pruned nodes keep stale values: an opponent's probability of 0 above them wipes those out.
    """
    (owner, first_slot, counts, sizes, parent), (sequence, chance, child, needed), _ = layout
    probability, reach, values = play
    value = values[player]
    node, edge = np.uint64(0), np.uint64(0)
    one = np.uint64(1)
    for g in range(needed[player]):
        slot, count, size = np.uint64(first_slot[g]), np.uint64(counts[g]), np.uint64(sizes[g])
        own = owner[g] == player
        if prune and not own and reach[parent[g]] == 0:
            node += size
            edge += size * count
            continue
        for _ in range(size):
            total = 0.0
            for k in range(count):
                total += probability[slot + k] * value[child[edge + k]]
            value[node] = total
            if own:
                others = 1.0
                for other in range(len(sequence)):
                    if other != player:
                        others *= reach[sequence[other, node]]
                others *= chance[node]
                for k in range(count):
                    regret[slot + k] += others * (value[child[edge + k]] - total)
            node += one
            edge += count


@compiled
def _match(
    infosets: _Infosets,
    play: _Play,
    sums: _Sums,
    weights: tuple[float, float, float, float],
    player: int,
) -> None:
    """Count a player's policy into the average, then take the next from its regrets."""
    first_row, starts, stops, parent = infosets
    probability, reach, _ = play
    regret, last, policy_sum = sums
    keep_positive, keep_negative, weight, prediction = weights
    for i in range(first_row[player], first_row[player + 1]):
        start, stop = starts[i], stops[i]
        total = 0.0
        for slot in range(start, stop):
            policy_sum[slot] += weight * reach[slot + 1]
            news = regret[slot] - last[slot]
            regret[slot] *= keep_positive if regret[slot] >= 0 else keep_negative
            last[slot] = regret[slot]
            probability[slot] = max(regret[slot] + prediction * news, 0.0)
            total += probability[slot]
        for slot in range(start, stop):
            probability[slot] = probability[slot] / total if total > 0 else 1.0 / (stop - start)
            reach[slot + 1] = reach[parent[i]] * probability[slot]
