"""Counterfactual values of a phantom game's terminal histories, as products of small matrices.

A terminal history is a pair of private sequences, u of player 0 and v of player 1, that are
*consistent*: there is a game in which each player makes its own sequence of moves with its own
outcomes. Let `reach1[v]` be the probability that player 1's own choices lead to v. The terminal
histories that end in player 0's sequence u have the counterfactual value

    value0[u] = sum over v consistent with u of payoff0(u, v) * reach1[v]

There are some 10^10 consistent pairs, but they have a structure. Give every action a time: turn j
of player 0 is time 2j - 1, turn j of player 1 is time 2j. Let S0 and S1 be the sets of cells that
the players take. Then u and v are consistent exactly if

    S0 and S1 are disjoint,
    every cell at which player 1 fails is in S0 and was taken before that time,   (A)
    every cell at which player 0 fails is in S1 and was taken before that time.   (B)

For fixed sets and times, (A) only concerns the order in which player 0 took S0 and the cells F1 at
which player 1 failed; (B) only concerns the order of S1 and the cells F0. A sequence of player 0 is
(order of S0, F0) and one of player 1 is (order of S1, F1), so the sum over v is done in two steps:

    Y[order of S0, order of S1] = sum over F1 that satisfy (A) of reach1[order of S1, F1]
    value0[order of S0, F0] = sum over orders of S1 that satisfy (B) of Y[order of S0, order of S1]

The payoff is a constant factor: whoever moved last has won, which its own set alone decides.

Example: S0 = {a, b}, S1 = {c, d}, and player 0 acts at times 1, 3, 5, player 1 at times 2, 4. Let
player 0 take cells at times 1 and 5 and fail at time 3; player 1 takes cells at both times. Then F1
is empty, (A) is always satisfied, and Y[order of S0, order of S1] = reach1[order of S1] is the same
for "a, b" and for "b, a": these orders form one *class*. By (B) the cell of player 0's failure is
the one that player 1 took at time 2, so value0["a, b", F0 = c] is Y[., "c, d"] alone. If player 0
had failed at time 5 instead, both cells would have been taken before, and the sum would be
Y[., "c, d"] + Y[., "d, c"].

In general (A) is a list of *thresholds*: the i-th failure is among the first `thresholds[i]` cells
of the order of S0. Orders that agree on the sets of first cells, for every threshold, form a class,
and Y is computed once per class. The times at which a player takes cells and fails are its
*pattern*; it follows from the outcomes, so all sequences of a block have the same one (see
`algorithms.large_games.phantom.sequences`). In classical games every turn ends with a taken cell,
and all patterns share one Y. In abrupt games there is a Y for each pair of patterns, except that
patterns with the same thresholds share a sum.

A product computes the values of the *target*, player 0 above, from the reach probabilities of the
*source*, player 1 above.
"""

from bisect import bisect
from collections import defaultdict
from functools import cache
from itertools import product
from math import factorial, perm
from typing import NamedTuple, TypeAlias

import numpy as np

from algorithms.compiled.jit import compiled, part
from algorithms.large_games.phantom.rules import Rules
from algorithms.large_games.phantom.sequences import (
    Sequences,
    action_times,
    block_of,
    set_pairs,
    size_of,
)
from algorithms.support.arrays import Float64Array, Int64Array, UInt16Array, UInt64Array

NARROW = 6  # rows of at most this many numbers are summed in a register

_Times: TypeAlias = tuple[int, ...]
_Thresholds: TypeAlias = tuple[int, ...]
# The times of the failures and the outcomes of patterns, by the times at which cells are taken.
_Patterns: TypeAlias = dict[_Times, list[tuple[_Times, int]]]
# The outcomes of patterns with the same times of taken cells, and the thresholds of their failures
# in the order of the other player's set.
_Group: TypeAlias = tuple[tuple[int, _Thresholds], ...]
# Consistent groups of player 0 and of player 1.
_Link: TypeAlias = tuple[_Group, _Group]
_Key: TypeAlias = tuple[int, _Thresholds, _Thresholds, bool]  # arguments of `_consistent_failures`


class Side(NamedTuple):
    """One player of a product: G groups of P patterns in all.

    Patterns of a group have the same times of taken cells. Their failures are at cells of the other
    player's set. The orders of that set fall into classes.
    """

    size: int  # of the set of taken cells
    other_size: int  # of the other player's set
    first_pattern: Int64Array  # (G + 1,): the patterns of each group
    outcomes: Int64Array  # (P,)
    failures: Int64Array  # (P,): how many
    lists: Int64Array  # (P, 3): where they begin in `Product.lists`, how many, the length of each
    classes: Int64Array  # (G,): how many
    class_of: UInt16Array  # (G, orders of the other player's set)
    first_row: Int64Array  # (G + 1,): the number of classes of all groups before
    row_starts: UInt64Array  # (most classes,): class * orders of this player's set


class Product(NamedTuple):
    """The terminal histories of one turn and one size of each player's set: N pairs of sets."""

    sign: float  # +1 if the target wins, -1 if the source does
    pairs: Int64Array  # (N, 2): the set of the target, the set of the source
    source: Side
    target: Side
    first_link: Int64Array  # (groups of the source + 1,)
    links: Int64Array  # groups of the target that are consistent with each group of the source
    # Consistent failures per class (source), classes per such sequence (target); all share them.
    lists: UInt16Array


def make_products(rules: Rules, sequences: tuple[Sequences, Sequences]) -> list[list[Product]]:
    """The products of a game, with player 0 and with player 1 as the target."""
    found: tuple[list[Product], list[Product]] = [], []
    lists = _Lists()
    for turn, winner in product(range(1, rules.cells + 1), (0, 1)):
        turns = turn, turn - (winner == 0)  # player 0 has moved once more if it moved last
        first, second = (
            _patterns(sequences[p], rules.abrupt, turns[p], wins=p == winner) for p in (0, 1)
        )
        for sizes in product(first, second):
            pairs = _pairs(rules, winner, sizes)
            links = _links(first[sizes[0]], second[sizes[1]]) if len(pairs) else []
            for target, products in enumerate(found if links else ()):
                sign = 1.0 if target == winner else -1.0
                products.append(_product(sign, pairs, links, target, lists))
    every = np.concatenate(lists.tables)
    return [[x._replace(lists=every) for x in products] for products in found]


def _patterns(
    sequences: Sequences, abrupt: bool, turns: int, *, wins: bool
) -> dict[int, _Patterns]:
    """The patterns of sequences that complete `turns` turns, by the number of cells taken."""
    found: dict[int, _Patterns] = defaultdict(lambda: defaultdict(list))
    for outcomes in np.flatnonzero(sequences.first_block >= 0).tolist():
        taken, failed = action_times(outcomes, sequences.player, abrupt)
        length = len(taken) + len(failed)
        last_succeeds = bool(outcomes >> (length - 1) & 1) if length else not wins
        if (length if abrupt else len(taken)) == turns and (last_succeeds or (abrupt and not wins)):
            found[len(taken)][tuple(taken)].append((tuple(failed), outcomes))
    return found


def _pairs(rules: Rules, winner: int, sizes: tuple[int, int]) -> Int64Array:
    """Pairs of disjoint sets of these sizes with which the winner has just won: `(N, 2)`."""
    sets = set_pairs(rules.cells, *sizes)
    possible = [rules.just_won(p) if p == winner else ~rules.wins[p] for p in (0, 1)]
    return np.stack(sets, axis=1)[possible[0][sets[0]] & possible[1][sets[1]]]


def _links(*patterns: _Patterns) -> list[_Link]:
    """The consistent groups of both players' patterns."""
    both = product(*(by_times.items() for by_times in patterns))
    links = [
        (_group(some0, times1), _group(some1, times0)) for (times0, some0), (times1, some1) in both
    ]
    return [link for link in links if all(link)]


def _group(patterns: list[tuple[_Times, int]], times: _Times) -> _Group:
    """The patterns whose failures can be at cells that the other player takes at `times`."""
    found = [
        (outcomes, tuple([bisect(times, failure) for failure in failed]))
        for failed, outcomes in patterns
    ]
    return tuple(x for x in found if all(count > i for i, count in enumerate(x[1])))


class _Lists(dict[_Key, tuple[int, int, int]]):
    """Where each table of `Product.lists` begins, how many lists it has, and their length."""

    def __init__(self) -> None:
        self.tables: list[UInt16Array] = []

    def __missing__(self, key: _Key) -> tuple[int, int, int]:
        table = _consistent_failures(*key)
        self[key] = sum(map(len, self.tables)), *table.shape
        self.tables.append(table.ravel())
        return self[key]


def _product(
    sign: float, pairs: Int64Array, links: list[_Link], target: int, lists: _Lists
) -> Product:
    groups = [list(dict.fromkeys(link[player] for link in links)) for player in (0, 1)]
    sizes = [int(cells).bit_count() for cells in pairs[0]]
    source = 1 - target
    number = {group: i for i, group in enumerate(groups[target])}
    links_of: dict[_Group, list[int]] = {group: [] for group in groups[source]}
    for link in links:
        links_of[link[source]].append(number[link[target]])
    return Product(
        sign,
        np.ascontiguousarray(pairs[:, [target, source]]),
        _side(groups[source], sizes[source], sizes[target], lists, by_class=True),
        _side(groups[target], sizes[target], sizes[source], lists, by_class=False),
        np.cumsum([0, *map(len, links_of.values())]),
        np.concatenate(list(links_of.values())),
        np.empty(0, np.uint16),  # until all are known
    )


def _side(
    groups: list[_Group], size: int, other_size: int, lists: _Lists, *, by_class: bool
) -> Side:
    every = [member for group in groups for member in group]
    distinct = [
        tuple(sorted({count for _, counts in group for count in counts})) for group in groups
    ]
    classes = [_classes(other_size, x) for x in distinct]
    counts = [len(firsts) for _, firsts in classes]
    places = [
        lists[other_size, x, thresholds, by_class]
        for x, group in zip(distinct, groups, strict=True)
        for _, thresholds in group
    ]
    failures = np.array([len(thresholds) for _, thresholds in every])
    patterns = np.array([outcomes for outcomes, _ in every]), failures, np.array(places)
    of_classes = np.array(counts), np.array([x for x, _ in classes]), np.cumsum([0, *counts])
    row_starts = np.arange(max(counts), dtype=np.uint64) * np.uint64(factorial(size))
    first_pattern = np.cumsum([0, *map(len, groups)])
    return Side(size, other_size, first_pattern, *patterns, *of_classes, row_starts)


def _consistent_failures(
    size: int, distinct: _Thresholds, thresholds: _Thresholds, by_class: bool
) -> UInt16Array:
    """Per class of orders of `size` cells, the sequences of failures that satisfy the thresholds.

    `(classes, prod_i (thresholds[i] - i))`, numbered as in `_failure_numbers`. Unless `by_class`,
    per sequence of failures the classes: by symmetry each sequence is in equally many lists.
    """
    places = np.zeros((1, 0), np.int64)  # of the failures in the order
    for threshold in thresholds:
        old = np.repeat(places, threshold, axis=0)
        new = np.tile(np.arange(threshold), len(places))[:, np.newaxis]
        places = np.hstack([old, new])[(old != new).all(axis=1)]
    orders = _orders(size)[_classes(size, distinct)[1]]
    codes = orders[:, places] @ size ** np.arange(len(thresholds))
    lists = np.asarray(_failure_numbers(size, len(thresholds))[codes])
    if by_class:
        return lists
    containing = np.argsort(lists.ravel(), kind="stable") // lists.shape[1]
    return np.asarray(containing.reshape(perm(size, len(thresholds)), -1), np.uint16)


@cache
def _orders(size: int) -> Int64Array:
    """All orders of `size` cells by rank: `(size!, size)`."""
    orders = np.zeros((1, 0), np.int64)
    for last in range(size):
        # The cells before the last one are those below it and those above it.
        orders = np.concatenate(
            [np.insert(orders + (orders >= cell), last, cell, axis=1) for cell in range(last + 1)]
        )
    return orders


@cache
def _classes(size: int, distinct: _Thresholds) -> tuple[UInt16Array, Int64Array]:
    """The class of each order `(size!,)`, and the first order of each class."""
    orders = _orders(size)
    key = np.zeros(len(orders), np.int64)
    for threshold in distinct:
        key = key << size | (1 << orders[:, :threshold]).sum(axis=1)
    _, firsts, classes = np.unique(key, return_index=True, return_inverse=True)
    return classes.astype(np.uint16), firsts


@cache
def _failure_numbers(size: int, failures: int) -> UInt16Array:
    """Sequences of failures at `size` cells: `rank of the set * failures! + rank of the order`.

    Indexed by `sum_i cell_i * size**i`.
    """
    numbers = np.zeros(size**failures, np.uint16)
    sets = [cells for cells in range(2**size) if cells.bit_count() == failures]
    for i, subset in enumerate(sets):
        cells = np.flatnonzero(subset >> np.arange(size) & 1)
        codes = cells[_orders(failures)] @ size ** np.arange(failures)
        numbers[codes] = i * len(codes) + np.arange(len(codes))
    return numbers


class _Rows(NamedTuple):
    """Rows of equal width in a flat array, given by where each starts."""

    numbers: Float64Array
    starts: UInt64Array


@compiled
def add_terminal_values(
    product: Product,
    sequences: tuple[Sequences, Sequences],
    reach: Float64Array,
    values: Float64Array,
) -> None:
    """Add a product to the target's counterfactual values by node, given the source's reach.

    `sequences` are those of the source and of the target.
    """
    ours, theirs = product.source, product.target
    rows, columns = theirs.class_of.shape[1], ours.class_of.shape[1]
    first_row, most = theirs.first_row, ours.classes.max()
    nodes = np.empty(max(rows, columns), np.uint64)  # the first with each sequence of failures
    # Y of a group of the source, by its own orders and by their classes, and of all of the target.
    every_gathered, every_folded = np.empty(most * rows), np.empty(most * theirs.classes.max())
    every_sums = np.empty(first_row[-1] * columns)
    for pair in range(len(product.pairs)):
        target_set, source_set = product.pairs[pair]
        every_sums[:] = 0.0
        for group in range(len(ours.classes)):
            gathered = every_gathered[: ours.classes[group] * rows]
            gathered[:] = 0.0
            for pattern in range(ours.first_pattern[group], ours.first_pattern[group + 1]):
                lists = _lists(ours, pattern, product.lists)
                _locate(ours, pattern, sequences[0], (source_set, target_set), nodes)
                _add_lists(lists, rows, _Rows(reach, nodes), _Rows(gathered, ours.row_starts))
            for link in range(product.first_link[group], product.first_link[group + 1]):
                other = product.links[link]
                folded = every_folded[: theirs.classes[other] * ours.classes[group]]
                _fold(gathered, theirs.class_of[other], folded)
                sums = every_sums[first_row[other] * columns : first_row[other + 1] * columns]
                _unfold(folded, ours.class_of[group], sums)
        for group in range(len(theirs.classes)):
            sums = every_sums[first_row[group] * columns : first_row[group + 1] * columns]
            sums *= product.sign
            for pattern in range(theirs.first_pattern[group], theirs.first_pattern[group + 1]):
                lists = _lists(theirs, pattern, product.lists)
                _locate(theirs, pattern, sequences[1], (target_set, source_set), nodes)
                _add_lists(lists, columns, _Rows(sums, theirs.row_starts), _Rows(values, nodes))


@part
def _locate(
    side: Side, pattern: int, sequences: Sequences, sets: tuple[int, int], nodes: UInt64Array
) -> None:
    """Write the first node of each sequence of failures at cells of the other player's set."""
    failures, length = side.failures[pattern], sequences.factorials[side.size]
    orders, failed, i = sequences.factorials[failures], 0, np.uint64(0)
    while True:  # over the subsets of the other player's set, in ascending order
        if size_of(failed) == failures:
            node = sequences.first_node[
                block_of(sequences, side.outcomes[pattern], sets[0], failed)
            ]
            for _ in range(orders):
                nodes[i] = node
                node += length
                i += np.uint64(1)
        if failed == sets[1]:
            break
        failed = (failed - sets[1]) & sets[1]


@part
def _lists(side: Side, pattern: int, lists: UInt16Array) -> UInt16Array:
    """The lists of a pattern: `(lists, length)`."""
    first, count, length = side.lists[pattern]
    return lists[first : first + count * length].reshape((count, length))


# From here on indices are unsigned: compiled code tests whether signed ones are negative.
@part
def _add_lists(lists: UInt16Array, width: int, sources: _Rows, targets: _Rows) -> None:
    """Add to row i of the targets the rows of the sources in list i."""
    columns, length = np.uint64(width), np.uint64(lists.shape[1])
    for i in range(np.uint64(len(lists))):
        target = targets.starts[i]
        if columns <= NARROW:
            for column in range(columns):
                total = 0.0
                for j in range(length):
                    total += sources.numbers[sources.starts[lists[i, j]] + column]
                targets.numbers[target + column] += total
        else:
            for j in range(length):
                source = sources.starts[lists[i, j]]
                for column in range(columns):
                    targets.numbers[target + column] += sources.numbers[source + column]


@part
def _fold(gathered: Float64Array, class_of: UInt16Array, folded: Float64Array) -> None:
    """Sum over the orders of each class: (classes, orders) to (classes of orders, classes)."""
    folded[:] = 0.0
    rows, entry = np.uint64(len(class_of)), np.uint64(0)
    classes = np.uint64(len(gathered)) // rows
    for c in range(classes):
        for row in range(rows):
            folded[class_of[row] * classes + c] += gathered[entry]
            entry += np.uint64(1)


@part
def _unfold(folded: Float64Array, class_of: UInt16Array, sums: Float64Array) -> None:
    """Add the sum of its class to each order: (rows, classes) to (rows, orders)."""
    columns = np.uint64(len(class_of))
    rows = np.uint64(len(sums)) // columns
    classes = np.uint64(len(folded)) // rows
    for row in range(rows):
        for column in range(columns):
            sums[row * columns + column] += folded[row * classes + class_of[column]]
