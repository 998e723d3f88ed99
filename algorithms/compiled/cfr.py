"""The CFR family in fast mode: the sequence form, with similar information sets in vector lanes.

The equations are those of `algorithms.cfr`. Two ideas make it fast. First, with perfect recall the
counterfactual value of a sequence (see `algorithms.tree`) is

    q(s) = sum over terminals after s, before the player's next decision, of payoff * others' reach
         + sum over the player's next information sets of their values under the current policy

so no nodes but the terminal ones are needed (the sequence form, von Stengel 1996).

Second, many information sets differ only in the cards dealt. They form a *group*, and all numbers
of a group are computed at once, side by side in the *lanes* of a vector. A table has one row per
choice of a group (and before them one for each player's empty sequence), and one column per lane.
In Kuhn poker with its three cards, where one lane stays empty, player 0 has two groups:

    row              lane 0     lane 1     lane 2
    0, 1             the empty sequences of player 0 and player 1, in lane 0
    2  first group   J: check   Q: check   K: check
    3                J: bet     Q: bet     K: bet
    4  second group  J: call    Q: call    K: call       after check and bet
    5                J: fold    Q: fold    K: fold

All terminal nodes that end in one row of a player and one row of its opponent make a small matrix
of payoffs (lanes by lanes), and what the player wins there is a *product*: that matrix times the
opponent's reach probabilities. For example, both players checked: row 2 of player 0 and the row of
player 1's check. Equal matrices are stored once.

Which information sets are similar is read off the tree, and affects nothing but speed: a game
without such structure gets one lane, and the same code is the plain sequence form.

The iterates are those of the exact mode up to rounding, because sums are computed in another order.
Where regrets are exactly 0 (uniform play) in one mode and a rounding error above 0 (always one
action) in the other, the iterates differ; both converge. See docs/solving.md.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from algorithms.cfr import (
    VARIANTS,
    BaseSolver,
    Span,
    Variant,
    VariantNumbers,
    Weights,
    iteration_weights,
)
from algorithms.compiled.jit import compiled, part
from algorithms.compiled.lanes import (
    Lanes,
    add_scaled,
    add_to,
    load,
    maximum,
    reciprocal,
    store,
    with_lane,
)
from algorithms.support.arrays import Float64Array, IntpArray, UInt32Array
from algorithms.tree import CHANCE, Tree, ranges, unsigned

WIDTHS = (1, 2, 4, 6, 8)  # numbers of lanes that vector instructions handle well
MIN_DENSITY = 0.25  # of terminals in the matrices: below it lanes are slower than none
_HASH_FACTOR = 1_000_003  # a prime: hashes of different lists of chance's actions differ

# Columns of `Arrays.groups`.
FIRST_ROW = 0
END_ROW = 1
PARENT_ROW = 2

# Columns of `Arrays.products`.
OWN_ROW = 0
MATRIX = 1
OPPONENT_ROW = 2
OTHER_ROWS = 3  # and the following: the rows of players beyond the second


class Arrays(NamedTuple):
    """A tree as the compiled code reads it: G groups, M matrices, L lanes."""

    groups: UInt32Array  # (G, 3) by player; those after a decision come after it
    products: UInt32Array  # (products, 2 + P - 1) by player
    matrices: Float64Array  # (M, L, L) by the opponent's lane and the player's lane
    first_group: IntpArray  # (P + 1,) each player's first group
    first_product: IntpArray  # (P + 1,) each player's first product


class Tables(NamedTuple):
    """The numbers that the iterations change: `(R, L)` by row and lane, unless noted.

    `predicted` is the array `regret` itself unless the variant is predictive.
    """

    regret: Float64Array
    predicted: Float64Array
    inverse_sum: (
        Float64Array  # (G, L) 1 / the sum of predicted regrets above 0; infinite if none is
    )
    value: Float64Array  # counterfactual values; 0 between iterations
    reach: Float64Array  # of sequences by their own player
    policy_sum: Float64Array


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Which row and lane each choice of a tree has."""

    width: int  # number of lanes
    num_rows: int
    index: IntpArray  # (C,) of each choice in a flattened table (R, L): row * lanes + lane
    arrays: Arrays


class FastSolver(BaseSolver):
    """The fast mode: the exact mode's iterates up to rounding."""

    def __init__(self, tree: Tree, variant: Variant = VARIANTS["cfr"]) -> None:
        super().__init__(tree, variant)
        self._layout = make_layout(tree)
        shape = self._layout.num_rows, self._layout.width
        regret = np.zeros(shape)
        predicted = np.zeros(shape) if variant.predictive else regret
        reach = np.zeros(shape)
        reach[: tree.num_players] = 1
        num_groups = len(self._layout.arrays.groups)
        self._tables = Tables(
            regret=regret,
            predicted=predicted,
            inverse_sum=np.full((num_groups, self._layout.width), np.inf),
            value=np.zeros(shape),
            reach=reach,
            policy_sum=np.zeros(shape),
        )
        self._advance(0)

    def _advance(self, iterations: int) -> None:
        zero = (0.0,) * self._layout.width
        numbers = self.variant.numbers
        _iterate(zero, self._layout.arrays, self._tables, numbers, self._span(iterations))

    def _regrets(self) -> Float64Array:
        """The discounted sums of regrets: `(C,)`."""
        return self._tables.regret.take(self._layout.index)

    def _policy_sums(self) -> Float64Array:
        """The weighted sums of policies, times their owner's reach probability: `(C,)`."""
        return self._tables.policy_sum.take(self._layout.index)

    def current_policy(self) -> Float64Array:
        """The last policy, which the next iteration would play: `(I, A)`."""
        predicted = self._tables.predicted.take(self._layout.index)
        return self._normalized(np.maximum(predicted, 0))


# ---------------------------------------------------------------------------------------------
# The layout
# ---------------------------------------------------------------------------------------------


def make_layout(tree: Tree) -> Layout:
    """A layout in lanes where that is faster, else with one lane."""
    if tree.num_players == 2:
        layout, density = _layout(tree, WIDTHS[-1])
        if layout.width == 1 or density >= MIN_DENSITY:
            return layout
    return _layout(tree, 1)[0]


class _Places(NamedTuple):
    """Where information sets go: `(I,)` each."""

    group: IntpArray
    lane: IntpArray
    level: IntpArray  # the number of the owner's earlier decisions


def _layout(tree: Tree, max_width: int) -> tuple[Layout, float]:
    """A layout of at most `max_width` lanes, and the density of terminals in its matrices."""
    players = tree.num_players
    places = _group_infosets(tree, max_width)
    width = min(width for width in WIDTHS if width > places.lane.max())

    # One information set of each group stands for all: they have the same number of choices.
    _, example = np.unique(places.group, return_index=True)  # (G,)
    num_choices = np.diff(tree.first_choice)[example]  # (G,)

    # A player's groups are sorted by level, so that successors come later, and within a level by
    # number of choices, which makes loops predictable for the processor.
    order = np.lexsort((num_choices, places.level[example], tree.owner[example]))
    row_ends = players + np.append(0, np.cumsum(num_choices[order]))  # (G + 1,)
    first_row = np.empty(len(order), np.intp)  # (G,) in the old order
    first_row[order] = row_ends[:-1]

    # The row and the lane of each choice: the rows of a group follow each other.
    infosets = tree.choice_infoset  # (C,)
    number_in_infoset = np.arange(tree.num_choices) - tree.first_choice[infosets]
    choice_row = first_row[places.group[infosets]] + number_in_infoset  # (C,)
    choice_lane = places.lane[infosets]  # (C,)

    # The same by player and sequence. A player's empty sequence has a row of its own, in lane 0.
    sequence_row = np.tile(np.append(0, choice_row), (players, 1))  # (P, C + 1)
    sequence_row[:, 0] = np.arange(players)
    sequence_lane = np.append(0, choice_lane)  # (C + 1,)

    owner = tree.owner[example][order]  # (G,)
    parent = tree.parent_sequence[example][order]  # (G,)
    groups = np.column_stack([row_ends[:-1], row_ends[1:], sequence_row[owner, parent]])
    products, matrices, first_product = _products(tree, sequence_row, sequence_lane, width)
    arrays = Arrays(
        groups=unsigned(groups),
        products=products,
        matrices=matrices,
        first_group=np.searchsorted(owner, np.arange(players + 1)),
        first_product=first_product,
    )
    layout = Layout(
        width=width,
        num_rows=int(row_ends[-1]),
        index=choice_row * width + choice_lane,
        arrays=arrays,
    )
    density = len(tree.terminals) * players / max(len(products) * width**2, 1)
    return layout, density


def _group_infosets(tree: Tree, max_width: int) -> _Places:
    """The group, the lane and the level of each information set.

    Information sets of a player are similar if they follow the same row, after the same chance
    events since then (public cards, usually), while the others are at the same rows. Those without
    a decision of the owner before them take lanes in turn; successors keep the lane. More of them
    than lanes, or two in one lane, make another group.

    This goes from the root down, one depth of the tree at a time. Rows are preliminary numbers
    here, as if every group had as many choices as the largest information set.
    """
    nodes = tree.members[tree.first_member[:-1]].astype(np.intp)  # (I,) one of each
    depth = tree.depths()[nodes]
    events = _chance_events(tree, nodes)
    num_choices = np.diff(tree.first_choice)
    most_choices = num_choices.max()
    owner = tree.owner
    group = np.zeros(len(nodes), np.intp)
    lane = np.zeros(len(nodes), np.intp)
    level = np.zeros(len(nodes), np.intp)
    row_of = np.zeros(tree.num_choices + 1, np.intp)  # by sequence, as are the next two
    lane_of = np.zeros(tree.num_choices + 1, np.intp)
    level_of = np.zeros(tree.num_choices + 1, np.intp)
    num_groups = 0
    num_rows = 1
    for one_depth in np.unique(depth):
        infosets = np.flatnonzero(depth == one_depth)  # (n,)
        parent = tree.parent_sequence[infosets]

        # Everybody's rows; the owner's own one is that of its parent sequence.
        rows = row_of[tree.sequence[:, nodes[infosets]]]  # (P, n)
        rows[owner[infosets], np.arange(len(infosets))] = row_of[parent]
        similar = _numbered(owner[infosets], num_choices[infosets], events[infosets], *rows)

        taken_in_turn = _rank(similar) % max_width
        lane[infosets] = np.where(parent > 0, lane_of[parent], taken_in_turn)
        same_lane_before = _rank(_numbered(similar, lane[infosets]))
        number = _numbered(similar, same_lane_before)  # (n,) of the group, within this depth
        group[infosets] = num_groups + number
        level[infosets] = level_of[parent] + 1

        # The sequences that end in these information sets' choices.
        choices = ranges(tree.first_choice[infosets], tree.first_choice[infosets + 1])
        at = np.repeat(np.arange(len(infosets)), num_choices[infosets])  # index of the infoset
        offset = choices - tree.first_choice[infosets][at]
        row_of[choices + 1] = num_rows + number[at] * most_choices + offset
        lane_of[choices + 1] = lane[infosets][at]
        level_of[choices + 1] = level[infosets][at]
        num_groups += number.max() + 1
        num_rows += (number.max() + 1) * most_choices
    return _Places(group=group, lane=lane, level=level)


def _chance_events(tree: Tree, nodes: IntpArray) -> IntpArray:
    """A number for chance's actions since the owner's last decision, from their hash: `(I,)`.

    `nodes` `(I,)` is one node of each information set. All of them go up the tree together, until
    each has arrived at its owner's decision before.
    """
    parents = np.append(0, np.repeat(np.arange(tree.num_nodes), np.diff(tree.first_child)))
    events = np.zeros(len(nodes), np.intp)
    active = tree.parent_sequence > 0
    while active.any():
        above = parents[nodes]
        chance = active & (tree.player[above] == CHANCE)
        events[chance] = events[chance] * _HASH_FACTOR + tree.action[nodes[chance]] + 1
        active &= tree.player[above] != tree.owner
        nodes = np.where(active, above, nodes)
    return np.unique(events, return_inverse=True)[1]


def _products(
    tree: Tree, sequence_row: IntpArray, sequence_lane: IntpArray, width: int
) -> tuple[UInt32Array, Float64Array, IntpArray]:
    """The products of all players, the distinct matrices in them, and each player's first product.

    `sequence_row` is `(P, C + 1)`, `sequence_lane` `(C + 1,)`. Between more than two players there
    is one lane. The opponent of a single player is its own empty sequence, which has reach
    probability 1.
    """
    ends = tree.terminal_sequence  # (P, Z)
    if tree.num_players == 1:
        ends = np.append(ends, np.zeros_like(ends), axis=0)
        sequence_row = np.append(sequence_row, sequence_row, axis=0)
    rows_of_all = []
    matrices_of_all = []
    for player in range(tree.num_players):
        others = [other for other in range(len(ends)) if other != player]
        player_first = [player, *others]

        # Terminals in the same rows of all players belong to one matrix.
        rows = np.stack([sequence_row[one, ends[one]] for one in player_first])  # (P, Z)
        number = _numbered(*rows)  # (Z,) of the matrix
        _, example = np.unique(number, return_index=True)  # (matrices,)
        opponent_lane = sequence_lane[ends[others[0]]]
        own_lane = sequence_lane[ends[player]]
        entry = (number * width + opponent_lane) * width + own_lane  # (Z,)
        entries = np.bincount(entry, tree.terminal_payoff[player], len(example) * width**2)
        matrices = entries.reshape(-1, width**2)

        # Without those that pay nothing, or that end before the player acts.
        used = (rows[0, example] >= tree.num_players) & matrices.any(axis=1)
        rows_of_all.append(rows[:, example[used]].T)
        matrices_of_all.append(matrices[used])
    all_matrices = np.concatenate(matrices_of_all)  # (products, L * L)
    if width == 1:  # plain numbers: sorting rows is several times slower
        all_matrices = all_matrices.ravel()
    distinct, matrix = np.unique(all_matrices, axis=0, return_inverse=True)
    products = np.insert(np.concatenate(rows_of_all), MATRIX, matrix.ravel(), axis=1)
    first_product = np.cumsum([0, *map(len, rows_of_all)])
    return unsigned(products), distinct.reshape(-1, width, width), first_product


def _numbered(*columns: npt.NDArray[np.integer]) -> IntpArray:
    """Number the distinct rows of non-negative columns from 0, in ascending order.

    The product of the columns' ranges must not overflow.
    """
    number = np.zeros(len(columns[0]), np.intp)
    for column in columns:
        _, number = np.unique(number * (column.max(initial=0) + 1) + column, return_inverse=True)
    return number


def _rank(numbers: IntpArray) -> IntpArray:
    """How many equal numbers come before each: (7, 3, 7, 7) gives (0, 0, 1, 2)."""
    order = np.argsort(numbers, kind="stable")
    ascending = numbers[order]
    first_equal = np.searchsorted(ascending, ascending)
    rank = np.empty_like(numbers)
    rank[order] = np.arange(len(numbers)) - first_equal
    return rank


# ---------------------------------------------------------------------------------------------
# The compiled code. Its first argument `zero` is a tuple of zeros, one per lane: it carries the
# number of lanes.
# ---------------------------------------------------------------------------------------------


@compiled
def _iterate(
    zero: Lanes, arrays: Arrays, tables: Tables, numbers: VariantNumbers, span: Span
) -> None:
    """Run the iterations of a span in place; set the uniform policy before the first."""
    first = span.done[0]
    players = len(arrays.first_group) - 1
    if first == 0:
        for player in range(players):
            _update_policy(zero, arrays, tables, player, 0.0)
    for t in range(first + 1, span.last + 1):
        weights = iteration_weights(numbers, t)
        for player in range(players):
            _add_terminals(zero, arrays, tables, player)
            _add_regrets(zero, arrays, tables, player, weights)
            if span.alternating:
                _update_policy(zero, arrays, tables, player, weights.average)
        if not span.alternating:
            for player in range(players):
                _update_policy(zero, arrays, tables, player, weights.average)
        span.done[0] = t


@part
def _add_terminals(zero: Lanes, arrays: Arrays, tables: Tables, player: int) -> None:
    """Add the terminals' payoffs, times the others' reach, to a player's counterfactual values."""
    products = arrays.products
    matrices = arrays.matrices
    reach = tables.reach
    first = np.uint64(arrays.first_product[player])
    end = np.uint64(arrays.first_product[player + 1])
    for p in range(first, end):
        matrix = np.uint64(products[p, MATRIX])
        opponent = np.uint64(products[p, OPPONENT_ROW])
        payoff = zero  # the matrix times the opponent's reach in its lanes
        for j in range(len(zero)):
            opponent_reach = reach[opponent, j]
            for i in range(len(zero)):
                payoff = with_lane(payoff, i, payoff[i] + matrices[matrix, j, i] * opponent_reach)
        others_reach = 1.0  # of players beyond the second: there is one lane then
        for k in range(OTHER_ROWS, products.shape[1]):
            others_reach *= reach[np.uint64(products[p, k]), 0]
        add_to(tables.value, np.uint64(products[p, OWN_ROW]), payoff, others_reach)


@part
def _add_regrets(
    zero: Lanes, arrays: Arrays, tables: Tables, player: int, weights: Weights
) -> None:
    """Add one iteration's regrets of a player, and discount them, from the last group to the first.

    `value` holds the terminals' part, and is 0 again afterwards.
    """
    groups = arrays.groups
    regret = tables.regret
    predicted = tables.predicted
    inverse_sum = tables.inverse_sum
    value = tables.value
    discounts = weights.discount_positive < 1 or weights.discount_negative < 1
    first_group = arrays.first_group[player]
    end_group = arrays.first_group[player + 1]
    for back in range(end_group - first_group):
        g = np.uint64(end_group - 1 - back)
        first = np.uint64(groups[g, FIRST_ROW])
        end = np.uint64(groups[g, END_ROW])
        uniform = 1.0 / float(end - first)
        factor = load(inverse_sum, g, zero)

        mean = zero  # the value of the information sets under the current policy
        for row in range(first, end):
            share = _times_policy(
                load(value, row, zero), load(predicted, row, zero), factor, uniform
            )
            mean = add_scaled(mean, share)

        total = zero  # the sum of predicted regrets above 0
        for row in range(first, end):
            newest = add_scaled(load(value, row, zero), mean, -1.0)
            store(value, row, zero)
            sums = add_scaled(load(regret, row, zero), newest)
            if discounts:
                for i in range(len(zero)):
                    if sums[i] >= 0:
                        discount = weights.discount_positive
                    else:
                        discount = weights.discount_negative
                    sums = with_lane(sums, i, sums[i] * discount)
            store(regret, row, sums)
            if weights.prediction > 0:  # else both are one array
                sums = add_scaled(sums, newest, weights.prediction)
                store(predicted, row, sums)
            total = add_scaled(total, maximum(sums, zero))
        store(inverse_sum, g, reciprocal(total))
        add_to(value, np.uint64(groups[g, PARENT_ROW]), mean)
    store(value, player, zero)


@part
def _update_policy(zero: Lanes, arrays: Arrays, tables: Tables, player: int, weight: float) -> None:
    """Add a player's policy to the average, then set its reach by the next policy."""
    groups = arrays.groups
    predicted = tables.predicted
    reach = tables.reach
    first_group = np.uint64(arrays.first_group[player])
    end_group = np.uint64(arrays.first_group[player + 1])
    for g in range(first_group, end_group):
        first = np.uint64(groups[g, FIRST_ROW])
        end = np.uint64(groups[g, END_ROW])
        uniform = 1.0 / float(end - first)
        factor = load(tables.inverse_sum, g, zero)
        parent_reach = load(reach, np.uint64(groups[g, PARENT_ROW]), zero)
        for row in range(first, end):
            add_to(tables.policy_sum, row, load(reach, row, zero), weight)
            next_reach = _times_policy(parent_reach, load(predicted, row, zero), factor, uniform)
            store(reach, row, next_reach)


@part
def _times_policy(lanes: Lanes, predicted: Lanes, factor: Lanes, uniform: float) -> Lanes:
    """Lanes times the probability of a row's choices by regret matching.

    `factor` is the row of `Tables.inverse_sum`; where it is infinite the policy is uniform.
    """
    for i in range(len(lanes)):
        probability = max(predicted[i], 0.0) * factor[i] if factor[i] < np.inf else uniform
        lanes = with_lane(lanes, i, lanes[i] * probability)
    return lanes
