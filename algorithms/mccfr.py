"""Monte Carlo CFR: regrets from sampled hands (Lanctot, Waugh, Zinkevich, Bowling 2009).

External sampling tries all actions of one player and samples those of chance and the others.
Outcome sampling plays single hands and divides by their probability. Both add regrets whose
expectation is CFR's (see `algorithms.cfr` for the equations).
"""

from typing import NamedTuple

import numpy as np

from algorithms.cfr import BaseSolver, Span
from algorithms.compiled.jit import compiled, draw
from algorithms.support.arrays import (
    Float64Array,
    Int8Array,
    Int32Array,
    Int64Array,
    UInt64Array,
)
from algorithms.tree import CHANCE, TERMINAL, Tree
from kuhn_bridge.errors import GameError

SAMPLING = ("es-mccfr", "os-mccfr")  # external and outcome sampling
EXPLORATION = 0.6  # outcome sampling's probability of a uniformly random action, as in OpenSpiel


class Nodes(NamedTuple):
    """The arrays of a `Tree` that sampling reads."""

    first_child: Int32Array  # (N + 1,)
    player: Int8Array  # (N,)
    infoset: Int32Array  # (N,)
    first_choice: Int32Array  # (I + 1,)
    chance_probability: Float64Array  # (N,)
    returns: Float64Array  # (P, N)


class Sums(NamedTuple):
    """What the samples add up, and the policy that follows from it: `(C,)` each."""

    regret: Float64Array
    policy_sum: Float64Array
    policy: Float64Array  # up to date only where it was last used


class Visited(NamedTuple):
    """What external sampling visits, in arrays of as many numbers as the tree has nodes."""

    decisions: Int64Array  # the player's decisions, in the order of their visits
    successor: Int64Array  # by child of such a decision: the player's next decision, or the end
    values: Float64Array  # sampled counterfactual values of these


class Path(NamedTuple):
    """The player's decisions in a hand of outcome sampling, in arrays as long as the tree."""

    infosets: Int64Array
    choices: Int64Array  # that were drawn there


class SamplingSolver(BaseSolver):
    """A run of one of `SAMPLING` on one tree; the same seed gives the same run."""

    def __init__(self, tree: Tree, name: str = "es-mccfr", *, seed: int = 0) -> None:
        super().__init__(tree)
        if tree.num_players < 2:  # a player's policy is averaged while the one before it updates
            raise GameError(f"{tree.name} has one player; sampling needs two or more: use cfr+")
        self.name = name
        bits = np.random.SeedSequence(seed).generate_state(1, np.uint64)
        self._random = np.asarray(bits, np.uint64)
        self._nodes = Nodes(
            first_child=tree.first_child,
            player=tree.player,
            infoset=tree.infoset,
            first_choice=tree.first_choice,
            chance_probability=tree.chance_probability,
            returns=tree.returns,
        )
        self._sums = Sums(
            regret=self._regret,
            policy_sum=self._policy_sum,
            policy=np.zeros(tree.num_choices),
        )

    def _advance(self, iterations: int) -> None:
        """Take one sample per player and iteration."""
        is_external = self.name == "es-mccfr"
        _sample(is_external, self._nodes, self._sums, self._random, self._span(iterations))


@compiled
def _sample(external: bool, nodes: Nodes, sums: Sums, random: UInt64Array, span: Span) -> None:
    """Run iterations up to the last one, each with a sample per player."""
    num_nodes = len(nodes.player)
    visited = Visited(
        decisions=np.empty(num_nodes, np.int64),
        successor=np.empty(num_nodes, np.int64),
        values=np.empty(num_nodes),
    )
    path = Path(infosets=np.empty(num_nodes, np.int64), choices=np.empty(num_nodes, np.int64))
    players = len(nodes.returns)
    while span.done[0] < span.last:
        for player in range(players):
            if external:
                _sample_external(player, nodes, sums, visited, random)
            else:
                _sample_outcome(player, nodes, sums, path, random)
        span.done[0] += 1


@compiled
def _sample_external(
    player: int, nodes: Nodes, sums: Sums, visited: Visited, random: UInt64Array
) -> None:
    """Add the player's regrets: all of its actions, one sample of everything else.

    First downwards, from each of its decisions to the next ones, which `_next_decision` samples
    after each action; then upwards, the last decision first.
    """
    decisions = visited.decisions
    successor = visited.successor
    values = visited.values

    # Downwards. `first` to `end` are the nodes that follow the decision `expanded`.
    num_decisions = 0
    expanded = -1  # index in `decisions`; -1 stands for the root
    first = 0
    end = 1
    while True:
        for child in range(first, end):
            node = _next_decision(child, player, nodes, sums, random)
            successor[child] = node
            if nodes.player[node] == player:
                decisions[num_decisions] = node
                num_decisions += 1
            else:
                values[node] = nodes.returns[player, node]
        expanded += 1
        if expanded == num_decisions:
            break
        first = nodes.first_child[decisions[expanded]]
        end = nodes.first_child[decisions[expanded] + 1]

    # Upwards.
    for index in range(num_decisions - 1, -1, -1):
        node = decisions[index]
        infoset = nodes.infoset[node]
        start = nodes.first_choice[infoset]
        stop = nodes.first_choice[infoset + 1]
        offset = nodes.first_child[node] - start  # from a choice to its child
        _match_regrets(sums.regret, start, stop, sums.policy)
        mean = 0.0
        for choice in range(start, stop):
            mean += sums.policy[choice] * values[successor[offset + choice]]
        for choice in range(start, stop):
            sums.regret[choice] += values[successor[offset + choice]] - mean
        values[node] = mean


@compiled
def _next_decision(node: int, player: int, nodes: Nodes, sums: Sums, random: UInt64Array) -> int:
    """The player's next decision, or a terminal node, with chance and the others sampled."""
    averaged = (player + 1) % len(nodes.returns)  # one player, so each policy counts once
    while nodes.player[node] != player and nodes.player[node] != TERMINAL:
        child = nodes.first_child[node]
        if nodes.player[node] == CHANCE:
            end = nodes.first_child[node + 1]
            node = child + _draw(nodes.chance_probability, child, end, random)
            continue
        infoset = nodes.infoset[node]
        start = nodes.first_choice[infoset]
        stop = nodes.first_choice[infoset + 1]
        _match_regrets(sums.regret, start, stop, sums.policy)
        if nodes.player[node] == averaged:
            for choice in range(start, stop):
                sums.policy_sum[choice] += sums.policy[choice]
        node = child + _draw(sums.policy, start, stop, random)
    return node


@compiled
def _sample_outcome(player: int, nodes: Nodes, sums: Sums, path: Path, random: UInt64Array) -> None:
    """Play one hand; add the player's regrets and the next player's policy.

    Everybody explores but the player whose policy is averaged. Its own probability cancels out of
    the weight, so an information set counts in the average as often as its owner's policy reaches
    it, whatever the others play. (If the others played their policies, actions that they never play
    would drop out of the average, and it would converge to something else.)
    """
    regret = sums.regret
    policy = sums.policy
    averaged = (player + 1) % len(nodes.returns)
    node = 0
    steps = 0  # decisions of the player
    chance_reach = 1.0  # the probability of chance's moves
    sampled = 1.0  # of what was drawn for the players who explore
    others = 1.0  # of the other players' moves, by their policies
    while nodes.player[node] != TERMINAL:
        child = nodes.first_child[node]
        if nodes.player[node] == CHANCE:
            end = nodes.first_child[node + 1]
            node = child + _draw(nodes.chance_probability, child, end, random)
            chance_reach *= nodes.chance_probability[node]
            continue
        infoset = nodes.infoset[node]
        start = nodes.first_choice[infoset]
        stop = nodes.first_choice[infoset + 1]
        _match_regrets(regret, start, stop, policy)
        k = _draw(policy, start, stop, random)
        if nodes.player[node] == averaged:
            for choice in range(start, stop):
                sums.policy_sum[choice] += policy[choice] / (chance_reach * sampled)
        else:
            if draw(random) < EXPLORATION:
                k = int(draw(random) * (stop - start))
            sampled *= EXPLORATION / (stop - start) + (1 - EXPLORATION) * policy[start + k]
            if nodes.player[node] == player:
                path.infosets[steps] = infoset
                path.choices[steps] = start + k
                steps += 1
            else:
                others *= policy[start + k]
        node = child + k
    value = nodes.returns[player, node] * others / sampled  # sampled counterfactual value
    for step in range(steps - 1, -1, -1):
        at = path.infosets[step]
        chosen = path.choices[step]
        regret[chosen] += value
        value *= policy[chosen]
        for choice in range(nodes.first_choice[at], nodes.first_choice[at + 1]):
            regret[choice] -= value


@compiled
def _match_regrets(regret: Float64Array, start: int, stop: int, policy: Float64Array) -> None:
    """Fill in one information set's policy by regret matching."""
    total = 0.0
    for choice in range(start, stop):
        policy[choice] = max(regret[choice], 0.0)
        total += policy[choice]
    for choice in range(start, stop):
        policy[choice] = policy[choice] / total if total > 0 else 1.0 / (stop - start)


@compiled
def _draw(probabilities: Float64Array, start: int, stop: int, random: UInt64Array) -> int:
    """An index from 0 to `stop - start - 1`, drawn from `probabilities[start:stop]`."""
    remaining = draw(random)
    for index in range(start, stop - 1):
        remaining -= probabilities[index]
        if remaining < 0:
            return index - start
    return stop - start - 1
