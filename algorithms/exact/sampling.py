"""Monte Carlo CFR: regrets from sampled play (Lanctot, Waugh, Zinkevich, Bowling 2009).

External sampling tries all actions of one player and samples everybody else's; outcome sampling
plays single hands and weighs each by how unlikely it was to be played. Both add regrets that are
right on average.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from algorithms.exact.cfr import Tables
from algorithms.exact.tree import CHANCE, TERMINAL, Tree
from algorithms.support.arrays import Float64Array, Int8Array, Int32Array, IntpArray, UInt64Array
from algorithms.support.compiled import compiled
from algorithms.support.draws import STEP, mixed
from kuhn_bridge.errors import GameError

Scheme: TypeAlias = Literal["external", "outcome"]

EXPLORATION = 0.6  # how often outcome sampling tries any action at all, as OpenSpiel does


class SamplingSolver(Tables):
    """A run of one sampling scheme on one tree; the same seed gives the same run."""

    def __init__(self, tree: Tree, scheme: Scheme = "external", *, seed: int = 0) -> None:
        super().__init__(tree)
        if tree.num_players < 2:  # a player's policy is averaged while the one before it learns
            raise GameError(f"{tree.name} has one player; sampling needs two or more: use cfr+")
        self.scheme = scheme
        self._random: UInt64Array = (
            np.random.SeedSequence(seed).generate_state(1, np.uint64).astype(np.uint64)
        )
        self._policy = np.zeros(tree.num_slots)

    def _advance(self, iterations: int) -> None:
        """One sample an iteration for each player's update."""
        tree = self.tree
        sample = _external if self.scheme == "external" else _outcome
        sample(
            (tree.first_child, tree.player, tree.infoset, tree.first_slot, tree.edge, tree.returns),
            (self._regret, self._sum, self._policy),
            self._random,
            iterations,
        )


_Layout: TypeAlias = tuple[
    Int32Array, Int8Array, Int32Array, Int32Array, Float64Array, Float64Array
]
_Sums: TypeAlias = tuple[Float64Array, Float64Array, Float64Array]


@compiled
def _external(layout: _Layout, sums: _Sums, random: UInt64Array, iterations: int) -> None:
    visits = np.empty((2, len(layout[1])), np.int64)
    values = np.empty(len(layout[1]))
    for _ in range(iterations):
        for player in range(len(layout[5])):
            _try_all(player, layout, sums, (visits, values), random)


@compiled
def _try_all(
    player: int,
    layout: _Layout,
    sums: _Sums,
    scratch: tuple[IntpArray, Float64Array],
    random: UInt64Array,
) -> None:
    """All of the player's actions, one sample of everything else, for the player's regrets.

    Down from one of its decisions to the next, which `_next` finds behind each action; then back
    up, the last decision first.
    """
    first_child, actor, infoset, first_slot, _, returns = layout
    regret, _, policy = sums
    (decisions, found), values = scratch
    count = 0
    done = -1  # the decision whose actions come next; the root stands for one before all
    first, stop = 0, 1
    while True:
        for child in range(first, stop):
            node = found[child] = _next(child, player, layout, sums, random)
            if actor[node] == player:
                decisions[count] = node
                count += 1
            else:
                values[node] = returns[player, node]
        done += 1
        if done == count:
            break
        first, stop = first_child[decisions[done]], first_child[decisions[done] + 1]
    for done in range(count - 1, -1, -1):
        node = decisions[done]
        start, stop = first_slot[infoset[node]], first_slot[infoset[node] + 1]
        ahead, total = first_child[node] - start, 0.0
        _match(regret, start, stop, policy)
        for slot in range(start, stop):
            total += policy[slot] * values[found[ahead + slot]]
        for slot in range(start, stop):
            regret[slot] += values[found[ahead + slot]] - total
        values[node] = total


@compiled
def _next(node: int, player: int, layout: _Layout, sums: _Sums, random: UInt64Array) -> int:
    """The player's next decision, or the end, as chance and the others happen to play."""
    first_child, actor, infoset, first_slot, edge, returns = layout
    regret, policy_sum, policy = sums
    while actor[node] != player and actor[node] != TERMINAL:
        child = first_child[node]
        if actor[node] == CHANCE:
            node = child + _draw_from(edge, child, first_child[node + 1], random)
            continue
        start, stop = first_slot[infoset[node]], first_slot[infoset[node] + 1]
        _match(regret, start, stop, policy)
        if actor[node] == (player + 1) % len(returns):  # so each player's policy counts once
            for slot in range(start, stop):
                policy_sum[slot] += policy[slot]
        node = child + _draw_from(policy, start, stop, random)
    return node


@compiled
def _outcome(layout: _Layout, sums: _Sums, random: UInt64Array, iterations: int) -> None:
    path = np.empty((len(layout[1]), 2), np.int64)
    for _ in range(iterations):
        for player in range(len(layout[5])):
            _play_out(player, layout, sums, path, random)


@compiled
def _play_out(
    player: int, layout: _Layout, sums: _Sums, path: IntpArray, random: UInt64Array
) -> None:
    """One hand, down to its end and back up: for the player's regrets, and the next one's average.

    Everybody explores but the player whose average it is. That one plays its policy, which cancels
    out of the weight, so an information set counts in the average as often as its owner's policy
    reaches it, whatever the others play. (Were the others to play their policies, what they never
    play would drop out of the average, and it would converge to something else.)
    """
    first_child, actor, infoset, first_slot, edge, returns = layout
    regret, policy_sum, policy = sums
    averaged = (player + 1) % len(returns)
    node, steps, chance, tried, third = 0, 0, 1.0, 1.0, 1.0
    while actor[node] != TERMINAL:
        child = first_child[node]
        if actor[node] == CHANCE:
            node = child + _draw_from(edge, child, first_child[node + 1], random)
            chance *= edge[node]
            continue
        start, stop = first_slot[infoset[node]], first_slot[infoset[node] + 1]
        _match(regret, start, stop, policy)
        k = _draw_from(policy, start, stop, random)
        if actor[node] == averaged:
            for slot in range(start, stop):
                policy_sum[slot] += policy[slot] / (chance * tried)
        else:
            if _uniform(random) < EXPLORATION:
                k = int(_uniform(random) * (stop - start))
            tried *= EXPLORATION / (stop - start) + (1 - EXPLORATION) * policy[start + k]
            if actor[node] == player:
                path[steps, 0], path[steps, 1] = infoset[node], start + k
                steps += 1
            else:
                third *= policy[start + k]
        node = child + k
    worth = returns[player, node] * third / tried  # of a chosen action, as the regrets count it
    for step in range(steps - 1, -1, -1):
        row, chosen = path[step]
        regret[chosen] += worth
        worth *= policy[chosen]
        for slot in range(first_slot[row], first_slot[row + 1]):
            regret[slot] -= worth


@compiled
def _match(regret: Float64Array, start: int, stop: int, policy: Float64Array) -> None:
    """Fill in one information set's policy from its regrets."""
    total = 0.0
    for slot in range(start, stop):
        policy[slot] = max(regret[slot], 0.0)
        total += policy[slot]
    for slot in range(start, stop):
        policy[slot] = policy[slot] / total if total > 0 else 1.0 / (stop - start)


@compiled
def _draw_from(distribution: Float64Array, start: int, stop: int, random: UInt64Array) -> int:
    """A number from 0 to `stop - start - 1`, drawn."""
    left = _uniform(random)
    for at in range(start, stop - 1):
        left -= distribution[at]
        if left < 0:
            return at - start
    return stop - start - 1


@compiled
def _uniform(random: UInt64Array) -> float:
    """The next number in [0, 1)."""
    random[0] += STEP
    return float(mixed(random[0]) >> np.uint64(11)) * 2.0**-53
