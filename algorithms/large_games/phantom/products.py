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


class _Pattern(NamedTuple):
    """The times at which a player fails, beside known times at which it takes cells."""

    failed_times: _Times
    outcomes: int


class _Member(NamedTuple):
    """A pattern beside known times of both players' taken cells."""

    outcomes: int
    thresholds: _Thresholds  # of its failures, in the order of the other player's set


# Patterns by the times at which cells are taken.
_Patterns: TypeAlias = dict[_Times, list[_Pattern]]
# The patterns of a player with the same times of taken cells.
_Group: TypeAlias = tuple[_Member, ...]
# Consistent groups of player 0 and of player 1.
_Link: TypeAlias = tuple[_Group, _Group]


class _ListsKey(NamedTuple):
    """The arguments of `_consistent_failures`."""

    size: int
    distinct: _Thresholds
    thresholds: _Thresholds
    by_class: bool


class _ListsPlace(NamedTuple):
    """Where the lists of a pattern are in `Product.lists`."""

    start: int
    num_lists: int
    length: int  # of each


class PlayerPatterns(NamedTuple):
    """One player of a product: G groups of P patterns in all.

    Patterns of a group have the same times of taken cells. Their failures are at cells of the other
    player's set. The orders of that set fall into classes.
    """

    size: int  # of the set of taken cells
    other_size: int  # of the other player's set
    first_pattern: Int64Array  # (G + 1,): the patterns of each group
    outcomes: Int64Array  # (P,)
    failures: Int64Array  # (P,): how many
    lists: Int64Array  # (P, 3): `_ListsPlace` of each pattern
    classes: Int64Array  # (G,): how many
    class_of: UInt16Array  # (G, orders of the other player's set)
    first_row: Int64Array  # (G + 1,): the number of classes of all groups before
    row_starts: UInt64Array  # (most classes,): class * orders of this player's set


class Product(NamedTuple):
    """The terminal histories of one turn and one size of each player's set: N pairs of sets."""

    sign: float  # +1 if the target wins, -1 if the source does
    pairs: Int64Array  # (N, 2): the set of the target, the set of the source
    source: PlayerPatterns
    target: PlayerPatterns
    first_link: Int64Array  # (groups of the source + 1,)
    links: Int64Array  # groups of the target that are consistent with each group of the source
    # Consistent failures per class (source), classes per such sequence (target); all share them.
    lists: UInt16Array


# ---------------------------------------------------------------------------------------------
# Which sequences are consistent
# ---------------------------------------------------------------------------------------------


def make_products(rules: Rules, sequences: tuple[Sequences, Sequences]) -> list[list[Product]]:
    """The products of a game, with player 0 and with player 1 as the target."""
    products: tuple[list[Product], list[Product]] = ([], [])
    lists = _FailureLists()
    for turn, winner in product(range(1, rules.cells + 1), (0, 1)):
        # The winner has moved last. Player 1 has had a turn less if that was player 0.
        turns = (turn, turn - 1) if winner == 0 else (turn, turn)
        patterns_of_0, patterns_of_1 = (
            _patterns_by_size(sequences[p], rules.abrupt, turns[p], wins=p == winner)
            for p in (0, 1)
        )
        for size_0, size_1 in product(patterns_of_0, patterns_of_1):
            pairs = _pairs(rules, winner, (size_0, size_1))
            if not len(pairs):
                continue
            links = _links(patterns_of_0[size_0], patterns_of_1[size_1])
            if not links:
                continue
            for target in (0, 1):
                sign = 1.0 if target == winner else -1.0
                products[target].append(_product(sign, pairs, links, target, lists))
    all_lists = np.concatenate(lists.tables)
    return [[one._replace(lists=all_lists) for one in of_target] for of_target in products]


def _patterns_by_size(
    sequences: Sequences, abrupt: bool, turns: int, *, wins: bool
) -> dict[int, _Patterns]:
    """The patterns of sequences that complete `turns` turns, by the number of cells taken."""
    by_size: dict[int, _Patterns] = defaultdict(lambda: defaultdict(list))
    for outcomes in np.flatnonzero(sequences.first_block >= 0).tolist():
        times = action_times(outcomes, sequences.player, abrupt)
        length = len(times.taken) + len(times.failed)
        if turns != (length if abrupt else len(times.taken)):
            continue
        # The winner's last action takes a cell. So does the loser's, which ends its turn, unless a
        # failure ends turns too.
        if length:
            last_succeeds = bool(outcomes >> (length - 1) & 1)
        else:
            last_succeeds = not wins
        if last_succeeds or (abrupt and not wins):
            pattern = _Pattern(tuple(times.failed), outcomes)
            by_size[len(times.taken)][tuple(times.taken)].append(pattern)
    return by_size


def _pairs(rules: Rules, winner: int, sizes: tuple[int, int]) -> Int64Array:
    """Pairs of disjoint sets of these sizes with which the winner has just won: `(N, 2)`."""
    sets = set_pairs(rules.cells, *sizes)
    has_just_won = rules.just_won(winner)[sets[winner]]
    has_not_won = ~rules.wins[1 - winner][sets[1 - winner]]
    return np.asarray(np.stack(sets, axis=1)[has_just_won & has_not_won])


def _links(patterns_of_0: _Patterns, patterns_of_1: _Patterns) -> list[_Link]:
    """The consistent groups of both players' patterns."""
    links = []
    for (times_0, some_0), (times_1, some_1) in product(
        patterns_of_0.items(), patterns_of_1.items()
    ):
        link = (_group(some_0, times_1), _group(some_1, times_0))
        if all(link):
            links.append(link)
    return links


def _group(patterns: list[_Pattern], times: _Times) -> _Group:
    """The patterns whose failures can be at cells that the other player takes at `times`.

    A failure's threshold is the number of cells taken before it. The i-th failure is at a cell
    other than those before, so it needs a threshold above i.
    """
    members = []
    for pattern in patterns:
        thresholds = tuple(bisect(times, failure) for failure in pattern.failed_times)
        if all(threshold > i for i, threshold in enumerate(thresholds)):
            members.append(_Member(pattern.outcomes, thresholds))
    return tuple(members)


# ---------------------------------------------------------------------------------------------
# Products as arrays
# ---------------------------------------------------------------------------------------------


class _FailureLists:
    """All tables of `_consistent_failures` one after the other, each once."""

    def __init__(self) -> None:
        self.tables: list[UInt16Array] = []  # flattened
        self._places: dict[_ListsKey, _ListsPlace] = {}

    def place(self, key: _ListsKey) -> _ListsPlace:
        """Where the table of these arguments is; it is made when it is first asked for."""
        if key not in self._places:
            table = _consistent_failures(
                key.size, key.distinct, key.thresholds, by_class=key.by_class
            )
            start = sum(len(known) for known in self.tables)
            num_lists, length = table.shape
            self._places[key] = _ListsPlace(start, num_lists, length)
            self.tables.append(table.ravel())
        return self._places[key]


def _product(
    sign: float, pairs: Int64Array, links: list[_Link], target: int, lists: _FailureLists
) -> Product:
    source = 1 - target
    source_groups = list(dict.fromkeys(link[source] for link in links))  # each once
    target_groups = list(dict.fromkeys(link[target] for link in links))
    number_of = {group: number for number, group in enumerate(target_groups)}
    links_of: dict[_Group, list[int]] = {group: [] for group in source_groups}
    for link in links:
        links_of[link[source]].append(number_of[link[target]])
    sizes = [int(cells).bit_count() for cells in pairs[0]]  # the same in all pairs
    return Product(
        sign=sign,
        pairs=np.ascontiguousarray(pairs[:, [target, source]]),
        source=_player_patterns(source_groups, sizes[source], sizes[target], lists, by_class=True),
        target=_player_patterns(target_groups, sizes[target], sizes[source], lists, by_class=False),
        first_link=np.cumsum([0, *map(len, links_of.values())]),
        links=np.concatenate(list(links_of.values())),
        lists=np.empty(0, np.uint16),  # until all are known
    )


def _player_patterns(
    groups: list[_Group], size: int, other_size: int, lists: _FailureLists, *, by_class: bool
) -> PlayerPatterns:
    """One player's groups as arrays; `by_class` as in `_consistent_failures`."""
    outcomes = []  # by pattern, as are the next two
    failures = []
    places = []
    num_classes = []  # by group, as is the next one
    class_of = []
    for group in groups:
        all_thresholds = {threshold for member in group for threshold in member.thresholds}
        distinct = tuple(sorted(all_thresholds))
        classes = _classes(other_size, distinct)
        num_classes.append(len(classes.first_order))
        class_of.append(classes.of_order)
        for member in group:
            key = _ListsKey(other_size, distinct, member.thresholds, by_class)
            outcomes.append(member.outcomes)
            failures.append(len(member.thresholds))
            places.append(lists.place(key))
    return PlayerPatterns(
        size=size,
        other_size=other_size,
        first_pattern=np.cumsum([0, *map(len, groups)]),
        outcomes=np.array(outcomes),
        failures=np.array(failures),
        lists=np.array(places),
        classes=np.array(num_classes),
        class_of=np.array(class_of),
        first_row=np.cumsum([0, *num_classes]),
        row_starts=np.arange(max(num_classes), dtype=np.uint64) * np.uint64(factorial(size)),
    )


def _consistent_failures(
    size: int, distinct: _Thresholds, thresholds: _Thresholds, *, by_class: bool
) -> UInt16Array:
    """Per class of orders of `size` cells, the sequences of failures that satisfy the thresholds.

    `(classes, prod_i (thresholds[i] - i))`, numbered as in `_failure_numbers`. Unless `by_class`,
    per sequence of failures the classes: by symmetry each sequence is in equally many lists.
    """
    # All lists of different places in the order, the i-th below thresholds[i]: `(n, failures)`.
    # With thresholds (1, 3) they are (0, 1) and (0, 2).
    places = np.zeros((1, 0), np.int64)
    for threshold in thresholds:
        before = np.repeat(places, threshold, axis=0)
        last = np.tile(np.arange(threshold), len(places))[:, np.newaxis]
        is_new = (before != last).all(axis=1)
        places = np.hstack([before, last])[is_new]

    # The cells at these places, in one order of each class, and the numbers of such sequences.
    orders = _orders(size)[_classes(size, distinct).first_order]  # (classes, size)
    cells = orders[:, places]  # (classes, n, failures)
    codes = cells @ size ** np.arange(len(thresholds))  # (classes, n)
    lists = np.asarray(_failure_numbers(size, len(thresholds))[codes])  # (classes, n)
    if by_class:
        return lists

    # The other way round: sorted by sequence of failures, entry / n is the class.
    containing = np.argsort(lists.ravel(), kind="stable") // lists.shape[1]
    num_sequences = perm(size, len(thresholds))
    return np.asarray(containing.reshape(num_sequences, -1), np.uint16)


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


class _Classes(NamedTuple):
    """Classes of the orders of a set."""

    of_order: UInt16Array  # (size!,): the class of each order
    first_order: Int64Array  # (classes,): the first order of each class


@cache
def _classes(size: int, distinct: _Thresholds) -> _Classes:
    """The orders of `size` cells, by the sets of their first `threshold` cells for each threshold.

    For example, with size 3 and the threshold 1 there are three classes of two orders each.
    """
    orders = _orders(size)
    key = np.zeros(len(orders), np.int64)  # the sets, `size` bits each
    for threshold in distinct:
        first_cells = (1 << orders[:, :threshold]).sum(axis=1)
        key = key << size | first_cells
    _, first_order, of_order = np.unique(key, return_index=True, return_inverse=True)
    return _Classes(of_order=of_order.astype(np.uint16), first_order=first_order)


@cache
def _failure_numbers(size: int, failures: int) -> UInt16Array:
    """Sequences of failures at `size` cells: `rank of the set * failures! + rank of the order`.

    Indexed by `sum_i cell_i * size**i`.
    """
    numbers = np.zeros(size**failures, np.uint16)
    sets = [cells for cells in range(2**size) if cells.bit_count() == failures]
    for set_rank, subset in enumerate(sets):
        cells = np.flatnonzero(subset >> np.arange(size) & 1)
        codes = cells[_orders(failures)] @ size ** np.arange(failures)  # (failures!,)
        numbers[codes] = set_rank * len(codes) + np.arange(len(codes))
    return numbers


# ---------------------------------------------------------------------------------------------
# Sums over all pairs of sequences
# ---------------------------------------------------------------------------------------------


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

    `sequences` are those of the source and of the target. The arrays are those of the module's
    equations, for one pair of sets: `gathered` is Y of a group of the source by its own classes and
    all orders of its own set; `folded` the same by classes of both; `sums` has all groups of the
    target, by its own classes and all orders of its own set.
    """
    source = product.source
    target = product.target
    source_sequences, target_sequences = sequences
    source_orders = target.class_of.shape[1]  # of the set that the source takes
    target_orders = source.class_of.shape[1]
    most_classes = source.classes.max()
    # The first node with each sequence of failures.
    nodes = np.empty(max(source_orders, target_orders), np.uint64)
    gathered_memory = np.empty(most_classes * source_orders)
    folded_memory = np.empty(most_classes * target.classes.max())
    sums_memory = np.empty(target.first_row[-1] * target_orders)
    for pair in range(len(product.pairs)):
        target_set, source_set = product.pairs[pair]
        sums_memory[:] = 0.0
        for group in range(len(source.classes)):
            # Y: sum over the failures F1 that satisfy (A).
            gathered = gathered_memory[: source.classes[group] * source_orders]
            gathered[:] = 0.0
            for pattern in range(source.first_pattern[group], source.first_pattern[group + 1]):
                lists = _lists(source, pattern, product.lists)
                _locate(source, pattern, source_sequences, (source_set, target_set), nodes)
                reach_rows = _Rows(reach, nodes)
                gathered_rows = _Rows(gathered, source.row_starts)
                _add_lists(lists, source_orders, reach_rows, gathered_rows)
            # Orders of the source's set that (B) does not tell apart are summed once.
            for link in range(product.first_link[group], product.first_link[group + 1]):
                other = product.links[link]
                folded = folded_memory[: target.classes[other] * source.classes[group]]
                _fold(gathered, target.class_of[other], folded)
                first = target.first_row[other] * target_orders
                end = target.first_row[other + 1] * target_orders
                _unfold(folded, source.class_of[group], sums_memory[first:end])
        for group in range(len(target.classes)):
            # value0: sum over the orders of the source's set that satisfy (B).
            first = target.first_row[group] * target_orders
            end = target.first_row[group + 1] * target_orders
            sums = sums_memory[first:end]
            sums *= product.sign
            for pattern in range(target.first_pattern[group], target.first_pattern[group + 1]):
                lists = _lists(target, pattern, product.lists)
                _locate(target, pattern, target_sequences, (target_set, source_set), nodes)
                sums_rows = _Rows(sums, target.row_starts)
                _add_lists(lists, target_orders, sums_rows, _Rows(values, nodes))


@part
def _locate(
    patterns: PlayerPatterns,
    pattern: int,
    sequences: Sequences,
    sets: tuple[int, int],
    nodes: UInt64Array,
) -> None:
    """Write the first node of each sequence of failures at cells of the other player's set.

    `sets` are the player's own set and the other player's. The subsets of the latter come in
    ascending order, as in `_failure_numbers`.
    """
    own_set, other_set = sets
    failures = patterns.failures[pattern]
    outcomes = patterns.outcomes[pattern]
    taken_orders = sequences.factorials[patterns.size]
    failed_orders = sequences.factorials[failures]
    failed = 0
    i = np.uint64(0)
    while True:
        if size_of(failed) == failures:
            node = sequences.first_node[block_of(sequences, outcomes, own_set, failed)]
            for _ in range(failed_orders):
                nodes[i] = node
                node += taken_orders
                i += np.uint64(1)
        if failed == other_set:
            break
        failed = (failed - other_set) & other_set  # the next subset


@part
def _lists(patterns: PlayerPatterns, pattern: int, lists: UInt16Array) -> UInt16Array:
    """The lists of a pattern: `(lists, length)`."""
    start, num_lists, length = patterns.lists[pattern]
    return lists[start : start + num_lists * length].reshape((num_lists, length))


# From here on indices are unsigned: compiled code tests whether signed ones are negative.
@part
def _add_lists(lists: UInt16Array, width: int, sources: _Rows, targets: _Rows) -> None:
    """Add to row i of the targets the rows of the sources in list i; all rows have this width."""
    columns = np.uint64(width)
    length = np.uint64(lists.shape[1])
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
    orders = np.uint64(len(class_of))
    classes = np.uint64(len(gathered)) // orders
    entry = np.uint64(0)
    for c in range(classes):
        for order in range(orders):
            folded[class_of[order] * classes + c] += gathered[entry]
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
