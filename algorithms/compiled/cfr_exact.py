"""The CFR family in exact mode: OpenSpiel's iterates, for two players to the last bit.

The equations are those of `algorithms.cfr`. All nodes are visited, and numbers are added up in the
order of OpenSpiel's solvers.

Tables of whole numbers have one row per node or information set, in the order in which they are
visited, because reading a row is quicker than reading from several arrays. Their columns have names
below.
"""

from typing import NamedTuple

import numpy as np

from algorithms.cfr import (
    VARIANTS,
    BaseSolver,
    Span,
    Variant,
    VariantNumbers,
    Weights,
    iteration_weights,
    read_only,
)
from algorithms.compiled.jit import compiled
from algorithms.support.arrays import Float64Array, UInt32Array
from algorithms.tree import Tree, unsigned

# Columns of `Arrays.nodes`.
NODE = 0
FIRST_CHILD = 1
NUM_CHILDREN = 2
FIRST_PROBABILITY = 3  # of the first child, in `Policy.probability`

# Columns of `Arrays.members`, whose first two are NODE and FIRST_CHILD.
SEQUENCES = 2  # and the following: the sequences of all players

# Columns of `Arrays.infosets`.
FIRST_CHOICE = 0
END_CHOICE = 1
PARENT_SEQUENCE = 2
FIRST_MEMBER = 3
END_MEMBER = 4

NO_WEIGHTS = Weights(
    discount_positive=1.0, discount_negative=1.0, average=0.0, prediction=0.0
)  # of the update that sets the uniform policy


class Arrays(NamedTuple):
    """A tree as the compiled code reads it."""

    nodes: UInt32Array  # (nodes with children, 4) the last node first
    members: UInt32Array  # (decision nodes, 2 + P) in the order of `Tree.members`
    chance_reach: Float64Array  # (decision nodes,) of these
    infosets: UInt32Array  # (I, 5) by owner
    first_infoset: UInt32Array  # (P + 1,) each owner's first row of `infosets`


class PolicyArrays(NamedTuple):
    """The current policy, and what follows from it."""

    probability: Float64Array  # (C + N,) of each choice, then of each of chance's steps, by child
    reach: Float64Array  # (C + 1,) of each sequence by its own player
    values: Float64Array  # (P, N) expected returns


class SumArrays(NamedTuple):
    """What the iterations add up, by choice `(C,)`."""

    regret: Float64Array
    last_regret: Float64Array  # `regret` after the iteration before
    policy: Float64Array


class ExactSolver(BaseSolver):
    """The exact mode: OpenSpiel's iterates bit for bit."""

    def __init__(self, tree: Tree, variant: Variant = VARIANTS["cfr"]) -> None:
        super().__init__(tree, variant)
        self._arrays = make_arrays(tree)
        self._policy = PolicyArrays(
            probability=np.concatenate([np.zeros(tree.num_choices), tree.chance_probability]),
            reach=np.ones(tree.num_choices + 1),
            values=tree.returns.copy(),
        )
        self._sums = SumArrays(
            regret=self._regret,
            last_regret=np.zeros(tree.num_choices),
            policy=self._policy_sum,
        )
        self._advance(0)

    def _advance(self, iterations: int) -> None:
        numbers = self.variant.numbers
        _iterate(self._arrays, self._policy, self._sums, numbers, self._span(iterations))

    def current_policy(self) -> Float64Array:
        """The last policy, which the next iteration would play: `(I, A)`."""
        of_choices = self._policy.probability[: self.tree.num_choices]
        return read_only(self.tree.table_of(of_choices))


def make_arrays(tree: Tree) -> Arrays:
    """The arrays of a tree."""
    first_child = tree.first_child[:-1]
    num_children = np.diff(tree.first_child)
    is_decision = tree.infoset >= 0
    chance_probabilities = tree.num_choices + first_child  # they follow those of the choices
    nodes = np.empty((tree.num_nodes, 4), np.int32)
    nodes[:, NODE] = np.arange(tree.num_nodes)
    nodes[:, FIRST_CHILD] = first_child
    nodes[:, NUM_CHILDREN] = num_children
    nodes[:, FIRST_PROBABILITY] = np.where(
        is_decision, tree.first_choice[tree.infoset], chance_probabilities
    )
    last_first = nodes[num_children > 0][::-1]

    members = tree.members
    member_columns = [members, first_child[members], *tree.sequence[:, members]]

    infosets = np.empty((len(tree.keys), 5), np.int32)
    infosets[:, FIRST_CHOICE] = tree.first_choice[:-1]
    infosets[:, END_CHOICE] = tree.first_choice[1:]
    infosets[:, PARENT_SEQUENCE] = tree.parent_sequence
    infosets[:, FIRST_MEMBER] = tree.first_member[:-1]
    infosets[:, END_MEMBER] = tree.first_member[1:]
    by_owner = np.argsort(tree.owner, kind="stable")
    first_infoset = np.searchsorted(tree.owner[by_owner], np.arange(tree.num_players + 1))
    return Arrays(
        nodes=unsigned(last_first),
        members=unsigned(np.column_stack(member_columns)),
        chance_reach=tree.chance_reach[members],
        infosets=unsigned(infosets[by_owner]),
        first_infoset=unsigned(first_infoset),
    )


@compiled
def _iterate(
    arrays: Arrays, policy: PolicyArrays, sums: SumArrays, numbers: VariantNumbers, span: Span
) -> None:
    """Run the iterations of a span in place; set the uniform policy before the first."""
    first = span.done[0]
    players = len(policy.values)
    if first == 0:
        for player in range(players):
            _update_policy(arrays, policy, sums, NO_WEIGHTS, player)
    for t in range(first + 1, span.last + 1):
        weights = iteration_weights(numbers, t)
        for player in range(players):
            _fill_values(arrays.nodes, policy, player)
            _add_regrets(arrays, policy, sums.regret, player)
            if span.alternating:
                _update_policy(arrays, policy, sums, weights, player)
        if not span.alternating:
            for player in range(players):
                _update_policy(arrays, policy, sums, weights, player)
        span.done[0] = t


@compiled
def _fill_values(nodes: UInt32Array, policy: PolicyArrays, player: int) -> None:
    """Fill in a player's expected return at each node, from the last nodes to the first."""
    probability = policy.probability
    value = policy.values[player]
    for i in range(np.uint64(len(nodes))):
        child = np.uint64(nodes[i, FIRST_CHILD])
        first = np.uint64(nodes[i, FIRST_PROBABILITY])
        mean = 0.0
        for k in range(np.uint64(nodes[i, NUM_CHILDREN])):
            mean += probability[first + k] * value[child + k]
        value[np.uint64(nodes[i, NODE])] = mean


@compiled
def _add_regrets(arrays: Arrays, policy: PolicyArrays, regret: Float64Array, player: int) -> None:
    """Add one iteration's regrets of a player."""
    members = arrays.members
    chance_reach = arrays.chance_reach
    infosets = arrays.infosets
    reach = policy.reach
    first_infoset = np.uint64(arrays.first_infoset[player])
    end_infoset = np.uint64(arrays.first_infoset[player + 1])
    value = policy.values[player]
    for i in range(first_infoset, end_infoset):
        first = np.uint64(infosets[i, FIRST_CHOICE])
        count = np.uint64(infosets[i, END_CHOICE] - infosets[i, FIRST_CHOICE])
        for m in range(np.uint64(infosets[i, FIRST_MEMBER]), np.uint64(infosets[i, END_MEMBER])):
            others_reach = 1.0
            for other in range(len(policy.values)):
                if other != player:
                    others_reach *= reach[np.uint64(members[m, SEQUENCES + other])]
            if others_reach == 0:
                continue
            others_reach *= chance_reach[m]
            child = np.uint64(members[m, FIRST_CHILD])
            mean = value[np.uint64(members[m, NODE])]
            for k in range(count):
                regret[first + k] += others_reach * (value[child + k] - mean)


@compiled
def _update_policy(
    arrays: Arrays, policy: PolicyArrays, sums: SumArrays, weights: Weights, player: int
) -> None:
    """Add a player's policy to the average, discount its regrets, and match them."""
    infosets = arrays.infosets
    probability = policy.probability
    reach = policy.reach
    regret = sums.regret
    last_regret = sums.last_regret
    policy_sum = sums.policy
    for i in range(arrays.first_infoset[player], arrays.first_infoset[player + 1]):
        first = infosets[i, FIRST_CHOICE]
        end = infosets[i, END_CHOICE]
        total = 0.0
        for choice in range(first, end):
            policy_sum[choice] += weights.average * reach[choice + 1]
            newest = regret[choice] - last_regret[choice]
            is_positive = regret[choice] >= 0
            regret[choice] *= (
                weights.discount_positive if is_positive else weights.discount_negative
            )
            last_regret[choice] = regret[choice]
            probability[choice] = max(regret[choice] + weights.prediction * newest, 0.0)
            total += probability[choice]
        parent = infosets[i, PARENT_SEQUENCE]
        for choice in range(first, end):
            probability[choice] = probability[choice] / total if total > 0 else 1.0 / (end - first)
            reach[choice + 1] = reach[parent] * probability[choice]
