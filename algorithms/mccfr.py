"""Monte Carlo CFR: regrets from sampled play (Lanctot, Waugh, Zinkevich, Bowling 2009).

External sampling tries all actions of one player and samples everybody else's; outcome sampling
plays single hands and weighs each by how unlikely it was to be played. Both add regrets that are
right on average.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from algorithms.cfr import Tables
from algorithms.compiled import compiled
from algorithms.tree import CHANCE, TERMINAL, Bytes, Floats, Indices, Ints, Tree

Scheme: TypeAlias = Literal["external", "outcome"]

EXPLORATION = 0.6  # how often outcome sampling tries any action at all, as OpenSpiel does


class SamplingSolver(Tables):
    """A run of one sampling scheme on one tree; the same seed gives the same run."""

    def __init__(self, tree: Tree, scheme: Scheme = "external", *, seed: int = 0) -> None:
        super().__init__(tree)
        self.scheme = scheme
        self._random = np.random.default_rng(seed)
        self._policy, self._values = np.zeros(tree.num_slots), np.zeros(tree.num_nodes)

    def run(self, iterations: int) -> None:
        """Go on for so many iterations: one sample for each player's update."""
        tree = self.tree
        sample = _external if self.scheme == "external" else _outcome
        sample(
            (tree.first_child, tree.player, tree.infoset, tree.first_slot, tree.edge, tree.returns),
            (self._regret, self._sum, self._policy, self._values),
            self._random,
            iterations,
        )
        self.iteration += iterations


_Layout: TypeAlias = tuple[Ints, Bytes, Ints, Ints, Floats, Floats]
_Sums: TypeAlias = tuple[Floats, Floats, Floats, Floats]


@compiled
def _external(layout: _Layout, sums: _Sums, random: np.random.Generator, iterations: int) -> None:
    for _ in range(iterations):
        for player in range(len(layout[5])):
            _external_value(0, player, layout, sums, random)


@compiled
def _external_value(
    node: int, player: int, layout: _Layout, sums: _Sums, random: np.random.Generator
) -> float:
    """The sampled value of a node for the player, whose regrets below are updated."""
    first_child, actor, infoset, first_slot, edge, returns = layout
    regret, policy_sum, policy, values = sums
    while actor[node] != player:
        who, child = actor[node], first_child[node]
        if who == TERMINAL:
            return float(returns[player, node])
        if who == CHANCE:
            node = child + _drawn(edge, child, first_child[node + 1], random)
            continue
        start, stop = first_slot[infoset[node]], first_slot[infoset[node] + 1]
        _match(regret, start, stop, policy)
        if who == (player + 1) % len(returns):  # so each player's policy counts once
            for slot in range(start, stop):
                policy_sum[slot] += policy[slot]
        node = child + _drawn(policy, start, stop, random)
    start, stop = first_slot[infoset[node]], first_slot[infoset[node] + 1]
    ahead, total = first_child[node] - start, 0.0
    _match(regret, start, stop, policy)
    for slot in range(start, stop):
        values[ahead + slot] = _external_value(ahead + slot, player, layout, sums, random)
        total += policy[slot] * values[ahead + slot]
    for slot in range(start, stop):
        regret[slot] += values[ahead + slot] - total
    return total


@compiled
def _outcome(layout: _Layout, sums: _Sums, random: np.random.Generator, iterations: int) -> None:
    path = np.empty((len(layout[1]), 2), np.int64)
    for _ in range(iterations):
        for player in range(len(layout[5])):
            _play_out(player, layout, sums, path, random)


@compiled
def _play_out(
    player: int, layout: _Layout, sums: _Sums, path: Indices, random: np.random.Generator
) -> None:
    """One hand, down to its end and back up, for the player's regrets.

    Chance and the others are sampled as they play, so in the regrets' weights they cancel out.
    """
    first_child, actor, infoset, first_slot, edge, returns = layout
    regret, policy_sum, policy, _ = sums
    node, steps, own, tried, others = 0, 0, 1.0, 1.0, 1.0
    while actor[node] != TERMINAL:
        child = first_child[node]
        if actor[node] == CHANCE:
            node = child + _drawn(edge, child, first_child[node + 1], random)
            others *= edge[node]
            continue
        start, stop = first_slot[infoset[node]], first_slot[infoset[node] + 1]
        _match(regret, start, stop, policy)
        k = _drawn(policy, start, stop, random)
        if actor[node] != player:
            others *= policy[start + k]
        else:
            if random.random() < EXPLORATION:
                k = int(random.random() * (stop - start))
            for slot in range(start, stop):
                policy_sum[slot] += own / (tried * others) * policy[slot]
            path[steps, 0], path[steps, 1] = infoset[node], start + k
            steps += 1
            own *= policy[start + k]
            tried *= EXPLORATION / (stop - start) + (1 - EXPLORATION) * policy[start + k]
        node = child + k
    worth = returns[player, node] / tried  # of a chosen action, as it counts in the regrets
    for step in range(steps - 1, -1, -1):
        row, chosen = path[step]
        regret[chosen] += worth
        worth *= policy[chosen]
        for slot in range(first_slot[row], first_slot[row + 1]):
            regret[slot] -= worth


@compiled
def _match(regret: Floats, start: int, stop: int, policy: Floats) -> None:
    """Fill in one information set's policy from its regrets."""
    total = 0.0
    for slot in range(start, stop):
        policy[slot] = max(regret[slot], 0.0)
        total += policy[slot]
    for slot in range(start, stop):
        policy[slot] = policy[slot] / total if total > 0 else 1.0 / (stop - start)


@compiled
def _drawn(distribution: Floats, start: int, stop: int, random: np.random.Generator) -> int:
    """A number from 0 to `stop - start - 1`, drawn."""
    left = random.random()
    for at in range(start, stop - 1):
        left -= distribution[at]
        if left < 0:
            return at - start
    return stop - start - 1
