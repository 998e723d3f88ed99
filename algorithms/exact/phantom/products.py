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
`algorithms.exact.phantom.sequences`). In classical games every turn ends with a taken cell, and
all patterns share one Y. In abrupt games there is a Y for each pair of patterns, except that
patterns with the same thresholds share a sum.

A product computes the values of the *target*, player 0 above, from the reach probabilities of the
*source*, player 1 above.
"""

from __future__ import annotations

from bisect import bisect
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import product
from math import comb, factorial, perm
from typing import NamedTuple, TypeAlias

import numpy as np

from algorithms.exact.phantom.rules import Rules
from algorithms.exact.phantom.sequences import Sequences, block_of
from algorithms.support.arrays import (
    Float64Array,
    Int16Array,
    Int64Array,
    UInt16Array,
    UInt64Array,
)
from algorithms.support.compiled import compiled, part

NARROW = 6  # rows of at most this many numbers are summed in a register

_Times: TypeAlias = tuple[int, ...]
_Thresholds: TypeAlias = tuple[int, ...]


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
    first_list: Int64Array  # (P,): the first number of the pattern's lists in `Workspace.lists`
    num_lists: Int64Array  # (P,): source: one per class; target: one per sequence of failures
    list_length: Int64Array  # (P,)
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


class Workspace(NamedTuple):
    """Tables that the products of a game share, and buffers large enough for all of them."""

    lists: UInt16Array  # consistent failures per class (source), or classes per failures (target)
    spread: Int16Array  # (2**cells, 2**cells): the cells of a set that a mask within it selects
    subsets: Int16Array  # (cells + 1, cells + 1, most subsets): `_subsets(size, chosen)`
    nodes: UInt64Array  # the first node with each sequence of failures
    gathered: Float64Array  # Y of a group of the source: (classes, orders of the source)
    folded: Float64Array  # the same, summed: (classes of the source's orders, classes)
    sums: Float64Array  # Y of all groups of the target: (classes of the source's orders, orders)


class Products(NamedTuple):
    """All terminal histories of a game, with player 0 and with player 1 as the target."""

    by_target: tuple[tuple[Product, ...], tuple[Product, ...]]
    work: Workspace


class _Pattern(NamedTuple):
    """The times at which a player takes cells and at which it fails, and its outcomes."""

    taken: _Times
    failed: _Times
    outcomes: int


# A pattern's outcomes, and the thresholds of its failures in the order of the other player's set.
_Member: TypeAlias = tuple[int, _Thresholds]
# The times at which a player takes cells, and the patterns with these times.
_Group: TypeAlias = tuple[_Times, tuple[_Member, ...]]
# Consistent groups of player 0 and of player 1.
_Link: TypeAlias = tuple[_Group, _Group]


def make_products(rules: Rules, sequences: tuple[Sequences, Sequences]) -> Products:
    """The products of a game, for either player as the target."""
    lists = _Lists()
    found: tuple[list[Product], list[Product]] = [], []
    for winner, pairs, links in _terminals(rules, sequences):
        for target, products in enumerate(found):
            sign = 1.0 if target == winner else -1.0
            products.append(_product(sign, pairs, links, target, lists))
    work = Workspace(
        np.concatenate(lists.tables),
        _spread(rules.cells),
        _all_subsets(rules.cells),
        *_buffers(found[0] + found[1]),
    )
    return Products((tuple(found[0]), tuple(found[1])), work)


def _terminals(
    rules: Rules, sequences: tuple[Sequences, Sequences]
) -> Iterator[tuple[int, Int64Array, list[_Link]]]:
    """The winner, pairs of the players' sets `(N, 2)`, and consistent groups, per product."""
    for turn, winner in product(range(1, rules.cells + 1), (0, 1)):
        turns = turn, turn - (winner == 0)  # player 0 has moved once more if it moved last
        patterns = [
            _patterns(sequences[player], rules.abrupt, turns[player], player == winner)
            for player in (0, 1)
        ]
        for sizes in product(*patterns):
            pairs = _pairs(rules, winner, sizes)
            if len(pairs) and (links := _links(patterns[0][sizes[0]], patterns[1][sizes[1]])):
                yield winner, pairs, links


def _patterns(
    sequences: Sequences, abrupt: bool, turns: int, wins: bool
) -> dict[int, list[_Pattern]]:
    """The patterns of sequences that complete `turns` turns, by the number of cells taken."""
    found = defaultdict(list)
    for outcomes in np.flatnonzero(sequences.first_block >= 0).tolist():
        length, successes = outcomes.bit_length() - 1, outcomes.bit_count() - 1
        last_succeeds = bool(outcomes >> (length - 1) & 1) if length else not wins
        if (length if abrupt else successes) == turns and (last_succeeds or (abrupt and not wins)):
            times: tuple[list[int], list[int]] = [], []
            for action in range(length):
                turn = action if abrupt else len(times[0])
                times[not outcomes >> action & 1].append(2 * turn + 1 + sequences.player)
            found[successes].append(_Pattern(tuple(times[0]), tuple(times[1]), outcomes))
    return dict(found)


def _pairs(rules: Rules, winner: int, sizes: Sequence[int]) -> Int64Array:
    """Pairs of disjoint sets of these sizes with which the winner has just won: `(N, 2)`."""
    sets = np.arange(2**rules.cells)
    held = []
    for player, size in enumerate(sizes):
        wins, possible = rules.wins[player], ~rules.wins[player]
        if player == winner:
            one_less = [(sets >> i & 1 == 1) & ~wins[sets & ~(1 << i)] for i in range(rules.cells)]
            possible = wins & np.any(one_less, axis=0)
        held.append(sets[possible & (np.bitwise_count(sets) == size)])
    disjoint = np.nonzero(held[0][:, np.newaxis] & held[1] == 0)
    return np.stack([held[player][disjoint[player]] for player in (0, 1)], axis=1)


def _links(*patterns: list[_Pattern]) -> list[_Link]:
    """The consistent groups of both players' patterns."""
    by_times: list[dict[_Times, list[_Pattern]]] = [defaultdict(list), defaultdict(list)]
    for found, some in zip(by_times, patterns, strict=True):
        for pattern in some:
            found[pattern.taken].append(pattern)
    links = []
    for (times0, some0), (times1, some1) in product(by_times[0].items(), by_times[1].items()):
        members0, members1 = _consistent(some0, times1), _consistent(some1, times0)
        if members0 and members1:
            links.append(((times0, members0), (times1, members1)))
    return links


def _consistent(patterns: list[_Pattern], times: _Times) -> tuple[_Member, ...]:
    """The patterns whose failures can be at cells that the other player takes at `times`."""
    members = []
    for pattern in patterns:
        thresholds = tuple([bisect(times, failure) for failure in pattern.failed])
        if all(count > i for i, count in enumerate(thresholds)):
            members.append((pattern.outcomes, thresholds))
    return tuple(members)


def _product(
    sign: float, pairs: Int64Array, links: list[_Link], target: int, lists: _Lists
) -> Product:
    source = 1 - target
    groups = [list(dict.fromkeys(link[player] for link in links)) for player in (0, 1)]
    sizes = [int(cells).bit_count() for cells in pairs[0]]
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
    )


def _side(
    groups: list[_Group], size: int, other_size: int, lists: _Lists, *, by_class: bool
) -> Side:
    class_of, classes, places = [], [], []
    for _, members in groups:
        distinct = tuple(sorted({count for _, thresholds in members for count in thresholds}))
        class_of.append(_classes(other_size, distinct)[0])
        classes.append(len(_classes(other_size, distinct)[1]))
        places += [lists.place(other_size, distinct, x, by_class=by_class) for _, x in members]
    every = [member for _, members in groups for member in members]
    first_list, num_lists, list_length = np.ascontiguousarray(np.transpose(places))
    return Side(
        size,
        other_size,
        np.cumsum([0, *(len(members) for _, members in groups)]),
        np.array([outcomes for outcomes, _ in every]),
        np.array([len(thresholds) for _, thresholds in every]),
        first_list,
        num_lists,
        list_length,
        np.array(classes),
        np.array(class_of),
        np.cumsum([0, *classes]),
        np.arange(max(classes), dtype=np.uint64) * np.uint64(factorial(size)),
    )


class _Lists:
    """The tables of `Workspace.lists`, each stored once, one after another."""

    def __init__(self) -> None:
        self.tables: list[UInt16Array] = []
        self._places: dict[tuple[object, ...], tuple[int, int, int]] = {}
        self._length = 0

    def place(
        self, size: int, distinct: _Thresholds, thresholds: _Thresholds, *, by_class: bool
    ) -> tuple[int, int, int]:
        """Where a table begins, how many lists it has, and the length of each."""
        key = size, distinct, thresholds, by_class
        if key not in self._places:
            table = _consistent_failures(size, distinct, thresholds)
            if not by_class:
                table = _transposed(table, perm(size, len(thresholds)))
            self._places[key] = self._length, *table.shape
            self._length += table.size
            self.tables.append(table.ravel())
        return self._places[key]


def _consistent_failures(size: int, distinct: _Thresholds, thresholds: _Thresholds) -> UInt16Array:
    """Per class of orders of `size` cells, the sequences of failures that satisfy the thresholds.

    `(classes, prod_i (thresholds[i] - i))`, numbered as in `_failure_numbers`.
    """
    places = np.zeros((1, 0), np.int64)  # of the failures in the order
    for threshold in thresholds:
        old = np.repeat(places, threshold, axis=0)
        new = np.tile(np.arange(threshold), len(places))[:, np.newaxis]
        places = np.hstack([old, new])[(old != new).all(axis=1)]
    orders = _orders(size)[_classes(size, distinct)[1]]
    codes = orders[:, places] @ size ** np.arange(len(thresholds))
    return np.asarray(_failure_numbers(size, len(thresholds))[codes])


def _transposed(lists: UInt16Array, numbers: int) -> UInt16Array:
    """Per number, the lists that contain it; by symmetry each is in equally many."""
    containing = np.argsort(lists.ravel(), kind="stable") // lists.shape[1]
    return np.asarray(containing.reshape(numbers, -1), np.uint16)


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
    for i, subset in enumerate(_subsets(size, failures)):
        cells = np.flatnonzero(subset >> np.arange(size) & 1)
        codes = cells[_orders(failures)] @ size ** np.arange(failures)
        numbers[codes] = i * len(codes) + np.arange(len(codes))
    return numbers


def _subsets(size: int, chosen: int) -> Int64Array:
    """The subsets of `chosen` out of `size` cells, as masks."""
    sets = np.arange(2**size)
    return np.asarray(sets[np.bitwise_count(sets) == chosen])


def _all_subsets(cells: int) -> Int16Array:
    subsets = np.zeros((cells + 1, cells + 1, comb(cells, cells // 2)), np.int16)
    for size in range(cells + 1):
        for chosen in range(size + 1):
            subsets[size, chosen, : comb(size, chosen)] = _subsets(size, chosen)
    return subsets


def _spread(cells: int) -> Int16Array:
    """The cells of a set that a mask within it selects: `(2**cells, 2**cells)`."""
    sets = np.arange(2**cells)
    spread = np.zeros((2**cells, 2**cells), np.int16)
    for cell in range(cells):
        held = sets[sets >> cell & 1 == 1]
        place = np.bitwise_count(held & ((1 << cell) - 1)).astype(np.int64)
        spread[held] |= ((sets >> place[:, np.newaxis] & 1) << cell).astype(np.int16)
    return spread


def _buffers(
    products: Iterable[Product],
) -> tuple[UInt64Array, Float64Array, Float64Array, Float64Array]:
    """The last four arrays of a `Workspace`."""
    sizes = []
    for source, target in ((x.source, x.target) for x in products):
        failures = [perm(side.other_size, int(side.failures.max())) for side in (source, target)]
        rows, columns = factorial(source.size), factorial(target.size)
        classes = int(source.classes.max())
        folded, sums = classes * int(target.classes.max()), int(target.classes.sum()) * columns
        sizes.append((max(failures), classes * rows, folded, sums))
    nodes, gathered, folded, sums = (max(column) for column in zip(*sizes, strict=True))
    return np.empty(nodes, np.uint64), np.empty(gathered), np.empty(folded), np.empty(sums)


class _Rows(NamedTuple):
    """Rows of equal width in a flat array, given by where each starts."""

    numbers: Float64Array
    starts: UInt64Array


@compiled
def add_terminal_values(
    product: Product,
    work: Workspace,
    sequences: tuple[Sequences, Sequences],
    reach: Float64Array,
    values: Float64Array,
) -> None:
    """Add a product to the target's counterfactual values by node, given the source's reach.

    `sequences` are those of the source and of the target.
    """
    ours, theirs = product.source, product.target
    rows, columns = theirs.class_of.shape[1], ours.class_of.shape[1]
    first_row = theirs.first_row
    for pair in range(len(product.pairs)):
        target_set, source_set = product.pairs[pair]
        work.sums[: first_row[-1] * columns] = 0.0
        for group in range(len(ours.classes)):
            gathered = work.gathered[: ours.classes[group] * rows]
            gathered[:] = 0.0
            for pattern in range(ours.first_pattern[group], ours.first_pattern[group + 1]):
                _locate(ours, pattern, sequences[0], (source_set, target_set), work)
                lists = _lists(ours, pattern, work)
                _add_lists(lists, rows, _Rows(reach, work.nodes), _Rows(gathered, ours.row_starts))
            for link in range(product.first_link[group], product.first_link[group + 1]):
                other = product.links[link]
                folded = work.folded[: theirs.classes[other] * ours.classes[group]]
                _fold(gathered, theirs.class_of[other], folded)
                sums = work.sums[first_row[other] * columns : first_row[other + 1] * columns]
                _unfold(folded, ours.class_of[group], sums)
        for group in range(len(theirs.classes)):
            sums = work.sums[first_row[group] * columns : first_row[group + 1] * columns]
            sums *= product.sign
            for pattern in range(theirs.first_pattern[group], theirs.first_pattern[group + 1]):
                _locate(theirs, pattern, sequences[1], (target_set, source_set), work)
                lists = _lists(theirs, pattern, work)
                _add_lists(
                    lists, columns, _Rows(sums, theirs.row_starts), _Rows(values, work.nodes)
                )


@part
def _locate(
    side: Side, pattern: int, sequences: Sequences, sets: tuple[int, int], work: Workspace
) -> None:
    """Write the first node of each sequence of failures at cells of the other player's set."""
    failures, factorials = side.failures[pattern], sequences.factorials
    orders, length = factorials[failures], factorials[side.size]
    subsets = factorials[side.other_size] // (orders * factorials[side.other_size - failures])
    for i in range(subsets):
        failed = work.spread[sets[1], work.subsets[side.other_size, failures, i]]
        block = block_of(sequences, side.outcomes[pattern], sets[0], failed)
        for order in range(orders):
            work.nodes[i * orders + order] = sequences.first_node[block] + order * length


@part
def _lists(side: Side, pattern: int, work: Workspace) -> UInt16Array:
    """The lists of a pattern: `(lists, length)`."""
    first, shape = side.first_list[pattern], (side.num_lists[pattern], side.list_length[pattern])
    return work.lists[first : first + shape[0] * shape[1]].reshape(shape)


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
