"""Monte Carlo CFR: regrets from sampled hands (Lanctot, Waugh, Zinkevich, Bowling 2009).

External sampling tries all actions of one player and samples those of chance and the others.
Outcome sampling plays single hands and divides by their probability. Both add regrets whose
expectation is CFR's (see `algorithms.cfr` for the equations).
"""

from typing import Any, TypeAlias

import numpy as np

from algorithms.cfr import BaseSolver, Span
from algorithms.compiled.jit import compiled, draw
from algorithms.support.arrays import (
    Float64Array,
    Int8Array,
    Int32Array,
    IntpArray,
    UInt64Array,
)
from algorithms.tree import CHANCE, TERMINAL, Tree
from kuhn_bridge.errors import GameError

SAMPLING = ("es-mccfr", "os-mccfr")  # external and outcome sampling
EXPLORATION = 0.6  # outcome sampling's probability of a uniformly random action, as in OpenSpiel


class SamplingSolver(BaseSolver):
    """A run of one of `SAMPLING` on one tree; the same seed gives the same run."""

    def __init__(self, tree: Tree, name: str = "es-mccfr", *, seed: int = 0) -> None:
        super().__init__(tree)
        if tree.num_players < 2:  # a player's policy is averaged while the one before it updates
            raise GameError(f"{tree.name} has one player; sampling needs two or more: use cfr+")
        self.name = name
        self._random: Any = np.random.SeedSequence(seed).generate_state(1, np.uint64)
        self._policy = np.zeros(tree.num_choices)

    def _advance(self, iterations: int) -> None:
        """Take one sample per player and iteration."""
        t = self.tree
        nodes = t.first_child, t.player, t.infoset, t.first_choice, t.chance_probability, t.returns
        sums = self._regret, self._policy_sum, self._policy
        _sample(self.name == "es-mccfr", nodes, sums, self._random, self._span(iterations))


_Arrays: TypeAlias = tuple[
    Int32Array, Int8Array, Int32Array, Int32Array, Float64Array, Float64Array
]
_Sums: TypeAlias = tuple[Float64Array, Float64Array, Float64Array]


@compiled
def _sample(external: bool, arrays: _Arrays, sums: _Sums, random: UInt64Array, span: Span) -> None:
    """Run iterations up to the last one, each with a sample per player."""
    last, _, done = span
    visits, values = np.empty((2, len(arrays[1])), np.int64), np.empty(len(arrays[1]))
    while done[0] < last:
        for player in range(len(arrays[5])):
            if external:
                _sample_external(player, arrays, sums, (visits, values), random)
            else:
                _sample_outcome(player, arrays, sums, visits, random)
        done[0] += 1


@compiled
def _sample_external(
    player: int, arrays: _Arrays, sums: _Sums, scratch: tuple[Any, Any], random: UInt64Array
) -> None:
    """Add the player's regrets: all of its actions, one sample of everything else.

    First downwards, from each of its decisions to the next ones, which `_next_decision` samples
    after each action; then upwards, the last decision first.
    """
    first_child, actor, infoset, first_choice, _, returns = arrays
    regret, _, policy = sums
    (decisions, successor), values = scratch
    count = 0
    expanded = -1  # index of the decision whose actions come next; -1 is the root
    first, stop = 0, 1
    while True:
        for child in range(first, stop):
            node = successor[child] = _next_decision(child, player, arrays, sums, random)
            if actor[node] == player:
                decisions[count] = node
                count += 1
            else:
                values[node] = returns[player, node]
        expanded += 1
        if expanded == count:
            break
        first, stop = first_child[decisions[expanded]], first_child[decisions[expanded] + 1]
    for number in range(count - 1, -1, -1):
        node = decisions[number]
        start, stop = first_choice[infoset[node]], first_choice[infoset[node] + 1]
        offset, mean = first_child[node] - start, 0.0
        _match_regrets(regret, start, stop, policy)
        for slot in range(start, stop):
            mean += policy[slot] * values[successor[offset + slot]]
        for slot in range(start, stop):
            regret[slot] += values[successor[offset + slot]] - mean
        values[node] = mean


@compiled
def _next_decision(
    node: int, player: int, arrays: _Arrays, sums: _Sums, random: UInt64Array
) -> int:
    """The player's next decision, or a terminal node, with chance and the others sampled."""
    first_child, actor, infoset, first_choice, chance, returns = arrays
    regret, policy_sum, policy = sums
    while actor[node] != player and actor[node] != TERMINAL:
        child = first_child[node]
        if actor[node] == CHANCE:
            node = child + _draw(chance, child, first_child[node + 1], random)
            continue
        start, stop = first_choice[infoset[node]], first_choice[infoset[node] + 1]
        _match_regrets(regret, start, stop, policy)
        if actor[node] == (player + 1) % len(returns):  # so each player's policy counts once
            for slot in range(start, stop):
                policy_sum[slot] += policy[slot]
        node = child + _draw(policy, start, stop, random)
    return node


@compiled
def _sample_outcome(
    player: int, arrays: _Arrays, sums: _Sums, path: IntpArray, random: UInt64Array
) -> None:
    """Play one hand; add the player's regrets and the next player's policy.

    Everybody explores but the player whose policy is averaged. Its own probability cancels out of
    the weight, so an information set counts in the average as often as its owner's policy reaches
    it, whatever the others play. (If the others played their policies, actions that they never play
    would drop out of the average, and it would converge to something else.)
    """
    first_child, actor, infoset, first_choice, chance, returns = arrays
    regret, policy_sum, policy = sums
    averaged = (player + 1) % len(returns)
    # Probabilities of the hand: chance's, of the draws of exploring players, of other policies.
    node, steps, chance_reach, sampled, others = 0, 0, 1.0, 1.0, 1.0
    while actor[node] != TERMINAL:
        child = first_child[node]
        if actor[node] == CHANCE:
            node = child + _draw(chance, child, first_child[node + 1], random)
            chance_reach *= chance[node]
            continue
        start, stop = first_choice[infoset[node]], first_choice[infoset[node] + 1]
        _match_regrets(regret, start, stop, policy)
        k = _draw(policy, start, stop, random)
        if actor[node] == averaged:
            for slot in range(start, stop):
                policy_sum[slot] += policy[slot] / (chance_reach * sampled)
        else:
            if draw(random) < EXPLORATION:
                k = int(draw(random) * (stop - start))
            sampled *= EXPLORATION / (stop - start) + (1 - EXPLORATION) * policy[start + k]
            if actor[node] == player:
                path[0, steps], path[1, steps] = infoset[node], start + k
                steps += 1
            else:
                others *= policy[start + k]
        node = child + k
    value = returns[player, node] * others / sampled  # sampled counterfactual value
    for step in range(steps - 1, -1, -1):
        at, chosen = path[:, step]
        regret[chosen] += value
        value *= policy[chosen]
        for slot in range(first_choice[at], first_choice[at + 1]):
            regret[slot] -= value


@compiled
def _match_regrets(regret: Float64Array, start: int, stop: int, policy: Float64Array) -> None:
    """Fill in one information set's policy by regret matching."""
    total = 0.0
    for slot in range(start, stop):
        policy[slot] = max(regret[slot], 0.0)
        total += policy[slot]
    for slot in range(start, stop):
        policy[slot] = policy[slot] / total if total > 0 else 1.0 / (stop - start)


@compiled
def _draw(probabilities: Float64Array, start: int, stop: int, random: UInt64Array) -> int:
    """An index from 0 to `stop - start - 1`, drawn from `probabilities[start:stop]`."""
    left = draw(random)
    for index in range(start, stop - 1):
        left -= probabilities[index]
        if left < 0:
            return index - start
    return stop - start - 1
