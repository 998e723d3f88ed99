"""What the ends of a phantom game are worth to each sequence, as products of small matrices.

Let `reach1[v]` be the probability that player 1's own choices lead to its private sequence v. The
counterfactual value of the ends at player 0's sequence u is

    gain0[u] = sum over v that fit u of payoff0(u, v) * reach1[v]

There are some 10^10 pairs (u, v) that fit, but they have a structure. Write a time beside each
action: turn j of player 0 is time 2j - 1, turn j of player 1 is time 2j. Let S0 and S1 be the sets
of cells that the players take. Then u and v fit exactly if

    S0 and S1 are disjoint,
    every cell at which player 1 fails is in S0 and was taken before that time,   (A)
    every cell at which player 0 fails is in S1 and was taken before that time.   (B)

For fixed sets and times, (A) only concerns the order in which player 0 took S0 and the cells F1 at
which player 1 failed; (B) only concerns the order of S1 and the cells F0. A sequence of player 0 is
(order of S0, F0) and one of player 1 is (order of S1, F1), so the sum over v falls into two:

    Y[order of S0, order of S1] = sum over F1 that satisfy (A) of reach1[order of S1, F1]
    gain0[order of S0, F0]      = sum over orders of S1 that satisfy (B) of Y[order of S0, order of S1]

The payoff is a constant: whoever moved last has won, which its own set alone decides.

Example: S0 = {a, b}, S1 = {c, d}, and player 0 acts at times 1, 3, 5, player 1 at times 2, 4. Let
player 0 take cells at times 1 and 5 and fail at time 3; player 1 takes cells at both times. Then F1
is empty, (A) says nothing, and Y[order of S0, order of S1] = reach1[order of S1] is the same for
"a, b" and for "b, a": one *class* of orders. By (B) player 0's failure is at the cell that player 1
took at time 2, so gain0["a, b", F0 = c] is Y[., "c, d"] alone. Had player 0 failed at time 5
instead, both cells would have been taken by then, and the sum would be Y[., "c, d"] + Y[., "d, c"].

What (A) asks for is a list of *thresholds*: the i-th failure is among the first `thresholds[i]`
cells of the order of S0. Orders that agree on the sets of first cells, for every threshold, form a
class, and Y is computed once per class. Times at which cells are taken and at which moves fail form
a *pattern*; it is given by the outcomes and hence the same for all sequences of a block
(`algorithms.exact.phantom.sequences`). In classical games every turn ends with a taken cell, and
all patterns share one Y. In abrupt games each pair of patterns meets; patterns with the same
thresholds share a sum.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import product
from math import comb, factorial, perm
from typing import NamedTuple, TypeAlias

import numpy as np

from algorithms.exact.phantom.rules import Rules
from algorithms.exact.phantom.sequences import Sequences, block_of
from algorithms.support.arrays import Float64Array, Int16Array, Int64Array
from algorithms.support.compiled import compiled, part

_Times: TypeAlias = tuple[int, ...]
_Thresholds: TypeAlias = tuple[int, ...]


class Side(NamedTuple):
    """What a product needs to know of one of its players: G groups of P patterns.

    Patterns of a group have the same times of taken cells, and the same thresholds for the other
    player's orders; these fall into classes.
    """

    size: int  # of the set of taken cells
    first_pattern: Int64Array  # (G + 1,): the patterns of each group
    outcomes: Int64Array  # (P,)
    failures: Int64Array  # (P,): how many
    first_list: Int64Array  # (P,): where lists of failures that satisfy the thresholds begin
    list_length: Int64Array  # (P,): of the list of one class
    classes: Int64Array  # (G,): how many
    class_of: Int16Array  # (G, orders of the other player's set)


class Product(NamedTuple):
    """The ends of one turn for one size of each player's set: N pairs of sets, L links."""

    sign: float  # +1 if the target wins, -1 if the source does
    pairs: Int64Array  # (N, 2): the set of the target, the set of the source
    source: Side
    target: Side
    first_link: Int64Array  # (groups of the source + 1,)
    links: Int64Array  # (L,): groups of the target whose patterns fit those of the source
    lists: Int16Array  # all lists of failures


class _Pattern(NamedTuple):
    """The times at which a player takes cells and at which it fails, and its outcomes."""

    taken: _Times
    failed: _Times
    outcomes: int


# A pattern's outcomes, and the thresholds of its failures in the order of the other player's set.
_Member: TypeAlias = tuple[int, _Thresholds]
# The times at which a player takes cells, and the patterns with these times.
_Group: TypeAlias = tuple[_Times, tuple[_Member, ...]]


def make_products(rules: Rules, sequences: tuple[Sequences, Sequences], target: int) -> list[Product]:
    """All ends of the game, as products that give the target's gains."""
    return list(_products(rules, sequences, target))


def _products(
    rules: Rules, sequences: tuple[Sequences, Sequences], target: int
) -> Iterator[Product]:
    for turn, winner in product(range(1, rules.cells + 1), (0, 1)):
        # Player 0 has one turn more if it moved last.
        turns = (turn, turn - 1) if winner == 0 else (turn, turn)
        patterns = [
            _patterns(sequences[player], rules.abrupt, turns[player], player == winner)
            for player in (0, 1)
        ]
        for target_size, source_size in product(patterns[target], patterns[1 - target]):
            pairs = _pairs(rules, target, winner, (target_size, source_size))
            targets, sources = patterns[target][target_size], patterns[1 - target][source_size]
            links = _links(sources, targets)
            if links and len(pairs):
                yield _product(1.0 if target == winner else -1.0, pairs, links)


def _patterns(
    sequences: Sequences, abrupt: bool, turns: int, wins: bool
) -> dict[int, list[_Pattern]]:
    """The patterns of that many complete turns, by the number of cells taken."""
    found = defaultdict(list)
    for outcomes in np.flatnonzero(sequences.first_block >= 0).tolist():
        length, successes = outcomes.bit_length() - 1, outcomes.bit_count() - 1
        last_succeeds = bool(outcomes >> (length - 1) & 1) if length else not wins
        ends_turn = last_succeeds or (abrupt and not wins)
        if ends_turn and (length if abrupt else successes) == turns:
            times: tuple[list[int], list[int]] = [], []
            for action in range(length):
                turn = action if abrupt else len(times[0])
                time = 2 * turn + 1 + sequences.player
                times[not outcomes >> action & 1].append(time)
            found[successes].append(_Pattern(*map(tuple, times), outcomes))
    return dict(found)


def _pairs(rules: Rules, target: int, winner: int, sizes: tuple[int, int]) -> Int64Array:
    """Pairs of disjoint sets of these sizes, one of the target and one of the source: `(N, 2)`."""
    sets = np.arange(2**rules.cells)
    held = []
    for player, size in zip((target, 1 - target), sizes, strict=True):
        wins = rules.wins[player]
        last_stone = np.any([(sets >> i & 1) & ~wins[sets & ~(1 << i)] for i in range(rules.cells)], 0)
        possible = wins & last_stone if player == winner else ~wins
        held.append(sets[possible & (np.bitwise_count(sets) == size)])
    disjoint = held[0][:, np.newaxis] & held[1] == 0
    return np.stack([held[side][found] for side, found in enumerate(np.nonzero(disjoint))], axis=1)


def _links(sources: list[_Pattern], targets: list[_Pattern]) -> list[tuple[_Group, _Group]]:
    """Groups of patterns of the source and of the target that fit."""
    source_times, target_times = ({x.taken for x in patterns} for patterns in (sources, targets))
    links = []
    for source, target in product(sorted(source_times), sorted(target_times)):
        ours = tuple(_members((x for x in sources if x.taken == source), target))
        theirs = tuple(_members((x for x in targets if x.taken == target), source))
        if ours and theirs:
            links.append(((source, ours), (target, theirs)))
    return links


def _members(patterns: Iterable[_Pattern], times: _Times) -> Iterator[_Member]:
    """Those patterns whose failures can be at cells that the other player takes at `times`."""
    for pattern in patterns:
        thresholds = tuple(sum(time < failure for time in times) for failure in pattern.failed)
        if all(count > i for i, count in enumerate(thresholds)):
            yield pattern.outcomes, thresholds


def _product(sign: float, pairs: Int64Array, links: list[tuple[_Group, _Group]]) -> Product:
    lists = _Lists()
    sources, targets = (list(dict.fromkeys(link[side] for link in links)) for side in (0, 1))
    target_size, source_size = (int(cells[0]).bit_count() for cells in pairs.T)
    source = _side(sources, source_size, target_size, lists)
    target = _side(targets, target_size, source_size, lists)
    number = {group: i for i, group in enumerate(targets)}
    by_source = {group: [number[y] for x, y in links if x == group] for group in sources}
    first_link = np.cumsum([0, *map(len, by_source.values())])
    return Product(
        sign,
        pairs,
        source,
        target,
        first_link,
        np.concatenate([*by_source.values()]),
        np.concatenate(lists.tables),
    )


class _Lists:
    """Lists of failures, each kept once, one after another."""

    def __init__(self) -> None:
        self.tables: list[Int16Array] = []
        self._found: dict[tuple[_Thresholds, _Thresholds], tuple[int, int]] = {}
        self._length = 0

    def place(self, size: int, distinct: _Thresholds, thresholds: _Thresholds) -> tuple[int, int]:
        """Where the lists of all classes begin, and the length of one."""
        key = ((size, *distinct), thresholds)
        if key not in self._found:
            table = _fitting_failures(size, distinct, thresholds)
            self._found[key] = self._length, table.shape[1]
            self._length += table.size
            self.tables.append(table.ravel())
        return self._found[key]


def _side(groups: list[_Group], size: int, other_size: int, lists: _Lists) -> Side:
    class_of, classes, places = [], [], []
    for _, members in groups:
        distinct = tuple(sorted({count for _, thresholds in members for count in thresholds}))
        found, firsts = _classes(other_size, distinct)
        class_of.append(found)
        classes.append(len(firsts))
        places += [lists.place(other_size, distinct, thresholds) for _, thresholds in members]
    members = [member for _, group in groups for member in group]
    first_list, list_length = np.array(places).T
    return Side(
        size,
        np.cumsum([0, *(len(group) for _, group in groups)]),
        np.array([outcomes for outcomes, _ in members]),
        np.array([len(thresholds) for _, thresholds in members]),
        np.ascontiguousarray(first_list),
        np.ascontiguousarray(list_length),
        np.array(classes),
        np.array(class_of),
    )


@cache
def _orders(size: int) -> Int64Array:
    """All orders of `size` cells by rank: `(size!, size)`."""
    orders = np.zeros((1, 0), np.int64)
    for last in range(size):
        # The last cell of an order moves the cells above it up by one.
        longer = [np.column_stack([orders + (orders >= cell), np.full(len(orders), cell)])
                  for cell in range(last + 1)]
        orders = np.concatenate(longer)
    return orders


@cache
def _classes(size: int, distinct: _Thresholds) -> tuple[Int16Array, Int64Array]:
    """The class of each order `(size!,)`, and the first order of each class."""
    orders = _orders(size)
    key = np.zeros(len(orders), np.int64)
    for threshold in distinct:
        key = key << size | (1 << orders[:, :threshold]).sum(axis=1)
    _, firsts, classes = np.unique(key, return_index=True, return_inverse=True)
    return classes.astype(np.int16), firsts


@cache
def _subsets(size: int, chosen: int) -> Int64Array:
    """The subsets of that many out of `size` cells, as masks."""
    sets = np.arange(2**size)
    return sets[np.bitwise_count(sets) == chosen]


@cache
def _failure_numbers(size: int, failures: int) -> Int16Array:
    """The number of a sequence of failures at `size` cells: `rank of its set * f! + of its order`.

    Indexed by `sum_i cell_i * size**i`.
    """
    numbers = np.zeros(size**failures, np.int16)
    for i, subset in enumerate(_subsets(size, failures)):
        cells = np.flatnonzero(subset >> np.arange(size) & 1)
        sequences = cells[_orders(failures)]
        places = sequences @ size ** np.arange(failures)
        numbers[places] = i * len(sequences) + np.arange(len(sequences))
    return numbers


def _fitting_failures(size: int, distinct: _Thresholds, thresholds: _Thresholds) -> Int16Array:
    """Per class of orders of `size` cells, the failures of which each is among the first cells.

    `(classes, prod_i (thresholds[i] - i))`, numbered as in `_failure_numbers`.
    """
    places = np.zeros((1, 0), np.int64)  # in the order
    for threshold in thresholds:
        old = np.repeat(places, threshold, axis=0)
        new = np.tile(np.arange(threshold), len(places))
        fresh = (old != new[:, np.newaxis]).all(axis=1)
        places = np.column_stack([old, new])[fresh]
    orders = _orders(size)[_classes(size, distinct)[1]]
    codes = orders[:, places] @ size ** np.arange(len(thresholds))
    return _failure_numbers(size, len(thresholds))[codes]


class Workspace(NamedTuple):
    """Arrays that all products of a game share, so that none is allocated twice."""

    spread: Int16Array  # (2**cells, 2**cells): the cells of a set that a mask within it means
    subsets: Int16Array  # (cells + 1, cells + 1, most subsets): `_subsets`
    nodes: Int64Array  # the first sequence of each sequence of failures
    gathered: Float64Array  # Y of one group of the source: by class of the target's orders
    folded: Float64Array  # Y by classes of both players' orders
    sums: Float64Array  # Y of all groups of the target: by class of the source's orders


def make_workspace(rules: Rules, products: Iterable[Product]) -> Workspace:
    """Arrays that are large enough for all products."""
    cells = rules.cells
    sets = np.arange(2**cells)
    spread = np.zeros((2**cells, 2**cells), np.int16)
    for cell in range(cells):
        held = sets[sets >> cell & 1 == 1]
        place = np.bitwise_count(held & ((1 << cell) - 1)).astype(np.int64)
        spread[held] |= ((sets >> place[:, np.newaxis] & 1) << cell).astype(np.int16)
    subsets = np.zeros((cells + 1, cells + 1, comb(cells, cells // 2)), np.int16)
    for size in range(cells + 1):
        for chosen in range(size + 1):
            subsets[size, chosen, : comb(size, chosen)] = _subsets(size, chosen)
    sizes = np.ones((4, 1), np.int64)
    for x in products:
        rows, columns = factorial(x.source.size), factorial(x.target.size)
        nodes = max(perm(x.source.size, x.target.failures.max()), perm(x.target.size, x.source.failures.max()))
        sizes = np.maximum(sizes.ravel(), [
            nodes,
            x.source.classes.max() * rows,
            x.source.classes.max() * x.target.classes.max(),
            x.target.classes.sum() * columns,
        ])
    return Workspace(spread, subsets, np.empty(sizes[0], np.int64), *map(np.empty, sizes[1:]))


@compiled
def multiply(
    product: Product,
    work: Workspace,
    source: Sequences,
    target: Sequences,
    reach: Float64Array,
    gain: Float64Array,
) -> None:
    """Add to the target's gains what these ends are worth, given the source's reach."""
    rows = source.factorials[product.source.size]
    columns = source.factorials[product.target.size]
    for pair in range(len(product.pairs)):
        target_set, source_set = product.pairs[pair]
        work.sums[: product.target.classes.sum() * columns] = 0.0
        for group in range(len(product.source.classes)):
            classes = product.source.classes[group]
            gathered = work.gathered[: classes * rows]
            gathered[:] = 0.0
            for pattern in range(product.source.first_pattern[group], product.source.first_pattern[group + 1]):
                _locate(product.source, pattern, work, source, source_set, target_set)
                _gather(product, pattern, classes, rows, work.nodes, reach, gathered)
            for link in range(product.first_link[group], product.first_link[group + 1]):
                _fold(product, group, product.links[link], rows, columns, work)
        first = 0
        for group in range(len(product.target.classes)):
            classes = product.target.classes[group]
            sums = work.sums[first : first + classes * columns]
            first += classes * columns
            for pattern in range(product.target.first_pattern[group], product.target.first_pattern[group + 1]):
                _locate(product.target, pattern, work, target, target_set, source_set)
                _scatter(product, pattern, classes, columns, work.nodes, sums, gain)


@part
def _locate(side: Side, pattern: int, work: Workspace, sequences: Sequences, taken: int, other: int) -> None:
    """Write the first node of each sequence of failures at cells of the other player's set."""
    failures, size = side.failures[pattern], 0
    while other >> size:
        size += 1
    size = 0
    rest = other
    while rest:
        rest &= rest - 1
        size += 1
    orders, length = sequences.factorials[failures], sequences.factorials[side.size]
    subsets = sequences.factorials[size] // (orders * sequences.factorials[size - failures])
    for i in range(subsets):
        failed = work.spread[other, work.subsets[size, failures, i]]
        node = sequences.first_node[block_of(sequences, side.outcomes[pattern], taken, failed)]
        for order in range(orders):
            work.nodes[i * orders + order] = node + order * length


@part
def _gather(product: Product, pattern: int, classes: int, rows: int, nodes: Int64Array, reach: Float64Array, gathered: Float64Array) -> None:
    """Y[class] += sum over its failures of the source's reach."""
    first, length = product.source.first_list[pattern], product.source.list_length[pattern]
    for c in range(classes):
        for i in range(length):
            node = nodes[product.lists[first + c * length + i]]
            for row in range(rows):
                gathered[c * rows + row] += reach[node + row]


@part
def _fold(product: Product, group: int, other: int, rows: int, columns: int, work: Workspace) -> None:
    """Add Y of a group of the source to the sums of a group of the target."""
    ours, theirs = product.source.classes[group], product.target.classes[other]
    folded = work.folded[: ours * theirs]
    folded[:] = 0.0
    for c in range(ours):
        for row in range(rows):
            folded[product.target.class_of[other, row] * ours + c] += work.gathered[c * rows + row]
    first = product.target.classes[:other].sum() * columns
    for c in range(theirs):
        for column in range(columns):
            work.sums[first + c * columns + column] += folded[c * ours + product.source.class_of[group, column]]


@part
def _scatter(product: Product, pattern: int, classes: int, columns: int, nodes: Int64Array, sums: Float64Array, gain: Float64Array) -> None:
    """gain[failures] += sum over classes that they satisfy of the sums."""
    first, length = product.target.first_list[pattern], product.target.list_length[pattern]
    for c in range(classes):
        for i in range(length):
            node = nodes[product.lists[first + c * length + i]]
            for column in range(columns):
                gain[node + column] += product.sign * sums[c * columns + column]
