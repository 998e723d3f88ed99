"""Counterfactual regret minimization (CFR) on flat arrays: one kernel, and variants as numbers.

In iteration t, with sigma_t the policies, pi_-p the reach probability by chance and all players but
p, and u_p(h, a) what p wins on average from node h if it plays a there and sigma_t otherwise:

    r_t(I, a)     = sum over nodes h of I of pi_-p(h) (u_p(h, a) - u_p(h))        regret
    R_t(I, a)     = d_t (R_t-1(I, a) + r_t(I, a))                         discounted sum of regrets
    m_t(I, a)     = R_t(I, a), in predictive variants R_t(I, a) + r_t(I, a)   predicted regret
    sigma_t+1     = max(m_t(I, a), 0) / sum over b of max(m_t(I, b), 0)           regret matching
                    (uniform if that sum is 0)
    average(I, a) ~ sum over t of t^gamma pi_p(I) sigma_t(I, a)                   converges

    d_t = t^alpha / (t^alpha + 1) where the sum is 0 or more, t^beta / (t^beta + 1) below

Zinkevich et al. 2007 (CFR); Tammelin 2014 (CFR+: beta is minus infinity, so sums are cut off at 0);
Brown and Sandholm 2019 (discounted and linear CFR); Farina, Kroer and Sandholm 2021 (predictive).

Sums are computed in the order of OpenSpiel's solvers, so for two players the iterates of CFR and
CFR+ equal OpenSpiel's to the last bit. That matters in ties: regrets of 0 play uniformly, but a
rounding error above 0 always plays one action.
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

MAX_NODE_VISITS = 2**25  # per compiled call, a fraction of a second: Ctrl-C waits for its end


@dataclass(frozen=True, slots=True)
class Variant:
    """A member of the CFR family; the exponents are those of discounted CFR.

    An exponent of infinity keeps regrets as they are, minus infinity sets them to 0.
    """

    alpha: float = inf
    beta: float = inf
    gamma: float = 0
    alternating: bool = True  # each player's update is seen by the next; else all update at once
    predictive: bool = False  # expects each iteration's regrets to repeat

    @property
    def numbers(self) -> tuple[float, float, float, float]:
        """Alpha, beta, gamma, and 1 if predictive: what compiled code takes."""
        return float(self.alpha), float(self.beta), float(self.gamma), float(self.predictive)


CFR = Variant()
CFR_SIMULTANEOUS = Variant(alternating=False)  # as in Zinkevich et al. 2007
CFR_PLUS = Variant(beta=-inf, gamma=1)
LINEAR_CFR = Variant(alpha=1, beta=1, gamma=1)
DISCOUNTED_CFR = Variant(alpha=1.5, beta=0, gamma=2)
PREDICTIVE_CFR_PLUS = Variant(beta=-inf, gamma=2, predictive=True)

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


class BaseSolver:
    """What all solvers on a tree share: regrets and policy sums by slot `(S,)`."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.iterations = 0
        self._regret, self._policy_sum = np.zeros((2, tree.num_slots))

    def run(self, iterations: int) -> None:
        """Run `iterations` more iterations."""
        if iterations < 0:
            raise BridgeError(f"iterations must be 0 or more; got {iterations}")
        end, most = self.iterations + iterations, max(1, MAX_NODE_VISITS // self.tree.num_nodes)
        while self.iterations < end:
            count = min(most, end - self.iterations)
            self._advance(count)
            self.iterations += count

    def _advance(self, iterations: int) -> None:
        raise NotImplementedError

    def average_policy(self) -> Float64Array:
        """The average policy, which converges: `(I, A)`, uniform where it never arrives."""
        return self._normalized(self._policy_sum)

    def current_policy(self) -> Float64Array:
        """The policy of the next iteration: `(I, A)`."""
        return self._normalized(np.maximum(self._regret, 0))

    def regrets(self) -> Float64Array:
        """The discounted sums of regrets: `(I, A)`."""
        return _frozen(self.tree.table_of(self._regret))

    def _normalized(self, weights: Float64Array) -> Float64Array:
        if not np.isfinite(weights).all():
            raise BridgeError(
                f"the averaging weights overflowed within {self.iterations:,} iterations"
            )
        return _frozen(self.tree.normalized(weights))


class Solver(BaseSolver):
    """The exact mode: OpenSpiel's iterates bit for bit. Visits all nodes of the tree."""

    def __init__(self, tree: Tree, variant: Variant = CFR) -> None:
        super().__init__(tree)
        self.variant = variant
        self._layout, order = _layout(tree)
        self._last_regret = np.zeros(tree.num_slots)
        self._probability = np.concatenate([np.zeros(tree.num_slots), tree.chance_probability])
        self._reach = np.ones(tree.num_slots + 1)
        self._values = np.ascontiguousarray(tree.returns[:, order])
        self._advance(0)

    def _advance(self, iterations: int) -> None:
        _iterate(
            self._layout,
            (self._probability, self._reach, self._values),
            (self._regret, self._last_regret, self._policy_sum),
            self.variant.numbers,
            (self.iterations, self.iterations + iterations, self.variant.alternating),
        )

    def current_policy(self) -> Float64Array:
        """The policy of the next iteration: `(I, A)`."""
        return _frozen(self.tree.table_of(self._probability[: self.tree.num_slots]))


def _frozen(table: Float64Array) -> Float64Array:
    table.setflags(write=False)
    return table


# What the kernel reads. Nodes that are visited alike (those of one information set at one depth, or
# one chance node) form a group. Groups, their nodes and the edges below are stored in the order of
# the sweep, deepest first, so that all but the children's values is read sequentially.
#   Groups: owner, first slot or chance edge, number of actions, number of nodes, parent sequence.
#   Nodes: sequences (P, nodes), chance's reach, children edge by edge, number of groups per player.
#   Infosets by owner: each owner's first, then first slot, end of slots, parent sequence.
_Groups: TypeAlias = tuple[Int8Array, UInt32Array, UInt32Array, UInt32Array, UInt32Array]
_Nodes: TypeAlias = tuple[UInt32Array, Float64Array, UInt32Array, UInt32Array]
_Infosets: TypeAlias = tuple[UInt32Array, UInt32Array, UInt32Array, UInt32Array]
_Layout: TypeAlias = tuple[_Groups, _Nodes, _Infosets]
# What it writes. The policy: probabilities by slot (then by chance edge), reach probabilities by
# sequence, values by player and node. Sums: regrets, those before this iteration, policies.
_Policy: TypeAlias = tuple[Float64Array, Float64Array, Float64Array]
_Sums: TypeAlias = tuple[Float64Array, Float64Array, Float64Array]


def _layout(tree: Tree) -> tuple[_Layout, IntpArray]:
    """The kernel's arrays, and the order `(N,)` in which it numbers the nodes."""
    inner, heads, sizes = _groups(tree)
    order = np.concatenate([inner, tree.terminals])
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    infosets, owner = tree.infoset[heads], tree.player[heads]
    first, after = tree.first_child[:-1], tree.first_child[1:]
    slots = np.where(infosets >= 0, tree.first_slot[infosets], tree.num_slots + first[heads])
    # Above a player's first decisions its values are not needed.
    needed = [
        np.max(1 + np.flatnonzero(owner == player), initial=0) for player in range(tree.num_players)
    ]
    by_owner = np.argsort(tree.owner, kind="stable")
    groups = (
        owner,
        unsigned(slots),
        unsigned((after - first)[heads]),
        unsigned(sizes),
        unsigned(np.where(infosets >= 0, tree.parent_sequence[infosets], 0)),
    )
    nodes = (
        unsigned(tree.sequence[:, inner]),
        tree.chance_reach[inner],
        unsigned(number[ranges(first[inner], after[inner])]),
        unsigned(needed),
    )
    by_infoset = (
        unsigned(np.searchsorted(tree.owner[by_owner], np.arange(tree.num_players + 1))),
        unsigned(tree.first_slot[by_owner]),
        unsigned(tree.first_slot[by_owner + 1]),
        unsigned(tree.parent_sequence[by_owner]),
    )
    return (groups, nodes, by_infoset), order


def _groups(tree: Tree) -> tuple[IntpArray, IntpArray, IntpArray]:
    """The nodes that have children, in the order of the sweep; each group's first, and its size.

    Within a group the order is depth first, as OpenSpiel sums regrets; groups of one depth are
    sorted by their number of actions, which makes loops predictable for the processor.
    """
    inner = np.concatenate([tree.members, np.flatnonzero(tree.player == CHANCE)])
    depth, counts = tree.depths(), np.diff(tree.first_child)
    inner = inner[np.lexsort((tree.infoset[inner], counts[inner], -depth[inner]))]  # stable
    infosets, levels = tree.infoset[inner], depth[inner]
    new = (infosets[1:] != infosets[:-1]) | (levels[1:] != levels[:-1]) | (infosets[1:] < 0)
    starts = np.flatnonzero(np.append(True, new))
    return inner, inner[starts], np.diff(starts, append=len(inner))


@compiled
def _iterate(
    layout: _Layout,
    policy: _Policy,
    sums: _Sums,
    numbers: tuple[float, float, float, float],
    span: tuple[int, int, bool],
) -> None:
    """Run iterations `first + 1` to `last` in place; at first set the uniform policy."""
    first, last, alternating = span
    alpha, beta, gamma, prediction = numbers
    players = len(policy[2])
    if first == 0:
        for player in range(players):
            _update_policy(layout[2], policy, sums, (1.0, 1.0, 0.0, 0.0), player)
    for t in range(first + 1, last + 1):
        weights = (discount(t, alpha), discount(t, beta), float(t) ** gamma, prediction)
        for player in range(players):
            _add_regrets(layout, policy, sums[0], player)
            if alternating:
                _update_policy(layout[2], policy, sums, weights, player)
        if not alternating:
            for player in range(players):
                _update_policy(layout[2], policy, sums, weights, player)


@compiled
def discount(t: int, exponent: float) -> float:
    """t^exponent / (t^exponent + 1)."""
    if np.isinf(exponent):
        return 1.0 if exponent > 0 else 0.0
    power: float = float(t) ** exponent
    return power / (power + 1)


@compiled
def _add_regrets(layout: _Layout, policy: _Policy, regret: Float64Array, player: int) -> None:
    """Add one iteration's regrets of a player, from the last nodes to the first.

    Skips the nodes of an opponent that it never reaches. Their values are stale, but a probability
    of 0 above them multiplies those.
    """
    (owner, first_slot, counts, sizes, parent), (sequence, chance, child, needed), _ = layout
    probability, reach, values = policy
    value = values[player]
    node, edge = np.uint64(0), np.uint64(0)
    one = np.uint64(1)
    for g in range(needed[player]):
        slot, count, size = np.uint64(first_slot[g]), np.uint64(counts[g]), np.uint64(sizes[g])
        own = owner[g] == player
        if not own and reach[parent[g]] == 0:
            node += size
            edge += size * count
            continue
        for _ in range(size):
            mean = 0.0
            for k in range(count):
                mean += probability[slot + k] * value[child[edge + k]]
            value[node] = mean
            if own:
                others = 1.0
                for other in range(len(sequence)):
                    if other != player:
                        others *= reach[sequence[other, node]]
                others *= chance[node]
                for k in range(count):
                    regret[slot + k] += others * (value[child[edge + k]] - mean)
            node += one
            edge += count


@compiled
def _update_policy(
    infosets: _Infosets,
    policy: _Policy,
    sums: _Sums,
    weights: tuple[float, float, float, float],
    player: int,
) -> None:
    """Add a player's policy to the average, discount its regrets, and match them."""
    first_infoset, starts, stops, parent = infosets
    probability, reach, _ = policy
    regret, last_regret, policy_sum = sums
    discount_positive, discount_negative, weight, prediction = weights
    for i in range(first_infoset[player], first_infoset[player + 1]):
        start, stop = starts[i], stops[i]
        total = 0.0
        for slot in range(start, stop):
            policy_sum[slot] += weight * reach[slot + 1]
            new = regret[slot] - last_regret[slot]
            regret[slot] *= discount_positive if regret[slot] >= 0 else discount_negative
            last_regret[slot] = regret[slot]
            probability[slot] = max(regret[slot] + prediction * new, 0.0)
            total += probability[slot]
        for slot in range(start, stop):
            probability[slot] = probability[slot] / total if total > 0 else 1.0 / (stop - start)
            reach[slot + 1] = reach[parent[i]] * probability[slot]
