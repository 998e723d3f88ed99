"""The CFR family for speed: the sequence form, with information sets that are alike side by side.

Two ideas make it fast. First, with perfect recall the counterfactual value of a slot is the sum of
what the terminals right behind it pay, each times the others' probability of playing along, and of
the values of the information sets that follow it: no other node is needed. Second, many information
sets differ only in what was dealt. Those form a *group*, each in a *lane* of its own. A *position*
is what a player has done, whatever its hand: one slot of a group, in all lanes. All ways
to end a hand between two players' positions are then one small matrix, by their lanes (a *block*),
and one vector instruction handles several hands.

What is alike is read off the tree alone, and nothing depends on it but speed: a game without such
structure gets one lane, and the same code is then the plain sequence form.

The numbers are those of `algorithms.exact.cfr` up to rounding, because sums run in another order.
In a tie, where regrets of exactly 0 mean "uniform" and a rounding error above 0 means "always this
one", the iterates can part; they converge alike. docs/solving.md says more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from numba.cpython.unsafe.tuple import tuple_setitem

from algorithms.exact.cfr import CFR, Tables, Variant, kept
from algorithms.exact.tree import CHANCE, Tree, ranges, unsigned
from algorithms.support.arrays import Float64Array, IntpArray, UInt32Array
from algorithms.support.compiled import compiled, part
from algorithms.support.lanes import Lanes, inverse, plus, put, row, zeros

WIDTHS = (1, 2, 4, 6, 8)  # how many lanes a table may have: what the processor likes
SPARSEST = 0.25  # of a matrix: with fewer terminals in it, lanes do not pay


class FastSolver(Tables):
    """A run of one variant on one tree."""

    def __init__(self, tree: Tree, variant: Variant = CFR) -> None:
        super().__init__(tree)
        self.variant = variant
        self._layout = layout = arrange(tree)
        shape = layout.positions, layout.width
        regret, sums, worth, reach = np.zeros((4, *shape))
        reach[: tree.num_players] = 1
        hope = np.zeros(shape) if variant.predictive else regret
        scale = np.full((len(layout.before), layout.width), np.inf)
        self._tables = regret, hope, scale, worth, reach, sums
        self._advance(0)

    def _advance(self, iterations: int) -> None:
        variant, layout = self.variant, self._layout
        exponents = float(variant.alpha), float(variant.beta), float(variant.gamma)
        _iterate(
            zeros(layout.width),
            layout.arrays,
            self._tables,
            (*exponents, float(variant.predictive)),
            (self.iteration, self.iteration + iterations, variant.alternating),
        )
        regret, *_, sums = self._tables
        np.take(regret, layout.place, out=self._regret)
        np.take(sums, layout.place, out=self._sum)

    def current_policy(self) -> Float64Array:
        """What is played next: from the regrets and, if predictive, the last news of them."""
        return self._normalised(np.maximum(self._tables[1].take(self._layout.place), 0))


# What the kernel reads. Groups: their first positions, and the position before each. Blocks: the
# player's position, the others', and the number of the matrix between them. Then the matrices
# `[matrix, opponent's lane, player's lane]`, and where each player's groups and blocks begin.
_Groups: TypeAlias = tuple[UInt32Array, UInt32Array]
_Blocks: TypeAlias = tuple[UInt32Array, UInt32Array, UInt32Array]
_Arrays: TypeAlias = tuple[_Groups, _Blocks, Float64Array, IntpArray, IntpArray]
# What it writes, by position and lane: regrets; what to play in proportion to (the same array but
# in predictive variants); by group and lane the factor that makes it probabilities, infinite where
# all are 0; what a slot is worth; the probability that its owner plays so far; sums of those.
_Tables: TypeAlias = tuple[
    Float64Array, Float64Array, Float64Array, Float64Array, Float64Array, Float64Array
]


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """A tree as the kernel sees it. Position p is the empty sequence of player p."""

    width: int  # lanes
    positions: int
    place: IntpArray  # (S,) each slot's place in a flattened table (positions, width)
    before: UInt32Array  # (groups,) the position before each group
    arrays: _Arrays


def arrange(tree: Tree) -> Layout:
    """Lanes where they pay, else the plain sequence form."""
    if tree.num_players == 2:
        layout, filled = _arranged(tree, WIDTHS[-1])
        if layout.width == 1 or filled >= SPARSEST:
            return layout
    return _arranged(tree, 1)[0]


def _arranged(tree: Tree, most: int) -> tuple[Layout, float]:
    """A layout of at most `most` lanes, and which part of its matrices are terminals."""
    players = tree.num_players
    group, lane, level = _alike(tree, most)
    width = min(width for width in WIDTHS if width > lane.max())
    # The player's groups stand by level, so that what comes after stands behind; and within a level
    # by number of slots, which makes the loops easy to foresee.
    _, example = np.unique(group, return_index=True)
    counts = np.diff(tree.first_slot)[example]
    order = np.lexsort((counts, level[example], tree.owner[example]))
    first = np.empty(len(order) + 1, np.intp)
    first[0] = players
    first[1:] = players + np.cumsum(counts[order])
    start = np.empty(len(order), np.intp)
    start[order] = first[:-1]
    # By sequence; a player's empty one is its own position, and has no lane.
    rows = tree.slots[:, 0]
    place = start[group[rows]] + np.arange(tree.num_slots) - tree.first_slot[rows]
    position = np.tile(np.append(0, place), (players, 1))
    position[:, 0] = np.arange(players)
    lanes = np.append(0, lane[rows])
    owner, parent = tree.owner[example][order], tree.parent[example][order]
    before = unsigned(position[owner, parent])
    blocks, matrices, first_block = _blocks(tree, position, lanes, width)
    first_group = np.searchsorted(owner, np.arange(players + 1))
    filled = len(tree.terminals) * players / max(matrices[blocks[2]].size, 1)
    arrays = (unsigned(first), before), blocks, matrices, first_group, first_block
    return Layout(width, int(first[-1]), place * width + lanes[1:], before, arrays), filled


def _alike(tree: Tree, most: int) -> tuple[IntpArray, IntpArray, IntpArray]:
    """By information set: its group, its lane, and how many decisions its owner made before.

    Alike are information sets of a player that follow the same position, after the same chance
    events since (public cards, usually), where the others stand at the same positions. A player's
    first information sets that are alike take lanes in turn, and what follows them keeps their
    lane. More of them than lanes, or two in one lane, make another group.
    """
    nodes = tree.members[tree.first_member[:-1]].astype(np.intp)  # one of each information set
    depth, heard = tree.depths()[nodes], _heard(tree, nodes)
    counts, owner = np.diff(tree.first_slot), tree.owner
    group, lane, level = np.zeros((3, len(nodes)), np.intp)
    class_of = np.zeros(tree.num_slots + 1, np.intp)  # positions, as far as they are known
    lane_of, level_of = np.zeros((2, tree.num_slots + 1), np.intp)
    groups, classes = 0, 1
    for rows in np.split(np.argsort(depth, kind="stable"), _borders(np.sort(depth))):
        parent = tree.parent[rows]
        stand = class_of[tree.sequence[:, nodes[rows]]]
        stand[owner[rows], np.arange(len(rows))] = class_of[parent]
        alike = _numbered(owner[rows], counts[rows], heard[rows], *stand)
        lane[rows] = np.where(parent > 0, lane_of[parent], _rank(alike) % most)
        number = _numbered(alike, _rank(_numbered(alike, lane[rows])))
        group[rows] = groups + number
        level[rows] = level_of[parent] + 1
        slots = ranges(tree.first_slot[rows], tree.first_slot[rows + 1])
        here = np.repeat(np.arange(len(rows)), counts[rows])
        offset = slots - tree.first_slot[rows][here]
        class_of[slots + 1] = classes + number[here] * counts.max() + offset
        lane_of[slots + 1], level_of[slots + 1] = lane[rows][here], level[rows][here]
        groups += number.max() + 1
        classes += (number.max() + 1) * counts.max()
    return group, lane, level


def _heard(tree: Tree, nodes: IntpArray) -> IntpArray:
    """A number for chance's actions since the player's last decision, from a hash of them."""
    parents = np.append(0, np.repeat(np.arange(tree.num_nodes), np.diff(tree.first_child)))
    heard, owner = np.zeros(len(nodes), np.intp), tree.owner
    going = tree.parent > 0
    while going.any():
        above = parents[nodes]
        chance = going & (tree.player[above] == CHANCE)
        heard[chance] = heard[chance] * 1_000_003 + tree.action[nodes[chance]] + 1
        going &= tree.player[above] != owner
        nodes = np.where(going, above, nodes)
    return np.unique(heard, return_inverse=True)[1]


def _blocks(
    tree: Tree, position: IntpArray, lanes: IntpArray, width: int
) -> tuple[_Blocks, Float64Array, IntpArray]:
    """The blocks of all players, the different matrices among them, and each player's first block.

    A matrix between more than two players has one lane each. A player alone has its own empty
    sequence, which is certain, for the other's.
    """
    ats, others, matrices, first = [], [], [], [0]
    ends = tree.ends if tree.num_players > 1 else np.append(tree.ends, 0 * tree.ends, axis=0)
    position = position if tree.num_players > 1 else np.append(position, position, axis=0)
    for player in range(tree.num_players):
        order = [player, *(p for p in range(len(ends)) if p != player)]
        stand = position[order, :][np.arange(len(order))[:, None], ends[order]]
        number = _numbered(*stand)
        _, example = np.unique(number, return_index=True)
        cell = (number * width + lanes[ends[order[1]]]) * width + lanes[ends[player]]
        matrix = np.bincount(cell, tree.stakes[player], len(example) * width**2)
        matrix = matrix.reshape(-1, width, width)
        used = (stand[0, example] >= tree.num_players) & matrix.any(axis=(1, 2))
        ats.append(stand[0, example[used]])
        others.append(stand[1:, example[used]])
        matrices.append(matrix[used])
        first.append(first[-1] + int(used.sum()))
    every = np.concatenate(matrices).reshape(-1, width**2)
    # As plain numbers where they are such: sorting rows of bytes is several times slower.
    kinds = every.ravel() if width == 1 else every
    different, which = np.unique(kinds, axis=0, return_inverse=True)
    at, other = np.concatenate(ats), np.concatenate(others, axis=1)
    blocks = unsigned(at), unsigned(other), unsigned(which.ravel())
    return blocks, different.reshape(-1, width, width), np.array(first)


def _numbered(*columns: npt.NDArray[np.integer]) -> IntpArray:
    """Rows of several columns, none below 0, numbered from 0: equal rows alike, in ascending order.

    The columns' ranges must be so small that their product is no overflow.
    """
    number = np.zeros(len(columns[0]), np.intp)
    for column in columns:
        _, number = np.unique(number * (column.max(initial=0) + 1) + column, return_inverse=True)
    return number


def _rank(numbers: IntpArray) -> IntpArray:
    """How many equal numbers stand before each."""
    order = np.argsort(numbers, kind="stable")
    borders = np.append(0, _borders(numbers[order]))
    rank = np.empty_like(numbers)
    rank[order] = np.arange(len(numbers)) - np.repeat(
        borders, np.diff(np.append(borders, len(numbers)))
    )
    return rank


def _borders(ascending: npt.NDArray[np.integer]) -> IntpArray:
    """Where a new number begins."""
    return np.flatnonzero(np.diff(ascending)) + 1


@compiled
def _iterate(
    zero: Lanes,
    arrays: _Arrays,
    tables: _Tables,
    exponents: tuple[float, float, float, float],
    span: tuple[int, int, bool],
) -> None:
    """Iterations `first + 1` up to `last`, in place; before the first, the uniform policy."""
    first, last, alternating = span
    alpha, beta, gamma, prediction = exponents
    players = len(arrays[3]) - 1
    if first == 0:
        for player in range(players):
            _play(zero, arrays, tables, player, 0.0)
    for t in range(first + 1, last + 1):
        weight = float(t) ** gamma
        for player in range(players):
            _pay(zero, arrays, tables, player)
            _regret(zero, arrays, tables, player, (kept(t, alpha), kept(t, beta), prediction))
            if alternating:
                _play(zero, arrays, tables, player, weight)
        if not alternating:
            for player in range(players):
                _play(zero, arrays, tables, player, weight)


@part
def _pay(zero: Lanes, arrays: _Arrays, tables: _Tables, player: int) -> None:
    """Add what the terminals pay a player, times the others' probability of playing along."""
    _, (ats, others, which), matrices, _, first_block = arrays
    _, _, _, worth, reach, _ = tables
    for b in range(np.uint64(first_block[player]), np.uint64(first_block[player + 1])):
        paid = _product(zero, matrices, np.uint64(which[b]), reach, np.uint64(others[0, b]))
        third = 1.0  # of players beyond the second: there is one lane then
        for k in range(1, len(others)):
            third *= reach[np.uint64(others[k, b]), 0]
        at = np.uint64(ats[b])
        put(worth, at, plus(row(worth, at, zero), paid, third))


@part
def _regret(
    zero: Lanes,
    arrays: _Arrays,
    tables: _Tables,
    player: int,
    factors: tuple[float, float, float],
) -> None:
    """Add one iteration's counterfactual regrets of a player, from its last groups to its first.

    `worth` holds what the terminals pay, and is 0 again afterwards.
    """
    (firsts, befores), _, _, first_group, _ = arrays
    regret, hope, scale, worth, _, _ = tables
    keep_positive, keep_negative, prediction = factors
    forgets, one = keep_positive < 1 or keep_negative < 1, np.uint64(1)
    for back in range(first_group[player + 1] - first_group[player]):
        g = np.uint64(first_group[player + 1] - 1 - back)
        first, last = np.uint64(firsts[g]), np.uint64(firsts[g + one])
        even, factor = 1.0 / float(last - first), row(scale, g, zero)
        value = zero
        for at in range(first, last):
            share = _shared(row(worth, at, zero), row(hope, at, zero), factor, even)
            value = plus(value, share, 1.0)
        total = zero
        for at in range(first, last):
            news = plus(row(worth, at, zero), value, -1.0)
            put(worth, at, zero)
            regrets = plus(row(regret, at, zero), news, 1.0)
            if forgets:
                regrets = _kept(regrets, keep_positive, keep_negative)
            put(regret, at, regrets)
            if prediction > 0:  # else both are one array
                regrets = plus(regrets, news, prediction)
                put(hope, at, regrets)
            total = _plus_positive(total, regrets)
        put(scale, g, inverse(total))
        before = np.uint64(befores[g])
        put(worth, before, plus(row(worth, before, zero), value, 1.0))
    put(worth, player, zero)


@part
def _play(zero: Lanes, arrays: _Arrays, tables: _Tables, player: int, weight: float) -> None:
    """Count a player's policy into the average, then take the next from its regrets."""
    (firsts, befores), _, _, first_group, _ = arrays
    _, hope, scale, _, reach, sums = tables
    one = np.uint64(1)
    for g in range(np.uint64(first_group[player]), np.uint64(first_group[player + 1])):
        first, last = np.uint64(firsts[g]), np.uint64(firsts[g + one])
        even, factor = 1.0 / float(last - first), row(scale, g, zero)
        so_far = row(reach, np.uint64(befores[g]), zero)
        for at in range(first, last):
            put(sums, at, plus(row(sums, at, zero), row(reach, at, zero), weight))
            put(reach, at, _shared(so_far, row(hope, at, zero), factor, even))


@part
def _product(
    total: Lanes, matrices: Float64Array, which: np.uint64, reach: Float64Array, other: np.uint64
) -> Lanes:
    """A matrix times the opponent's lanes."""
    for j in range(len(total)):
        along = reach[other, j]
        for i in range(len(total)):
            total = tuple_setitem(total, i, total[i] + matrices[which, j, i] * along)
    return total


@part
def _shared(what: Lanes, hope: Lanes, factor: Lanes, even: float) -> Lanes:
    """A slot's share of something, in proportion to its hope above 0."""
    for i in range(len(what)):
        share = max(hope[i], 0.0) * factor[i] if factor[i] < np.inf else even
        what = tuple_setitem(what, i, what[i] * share)
    return what


@part
def _kept(regret: Lanes, positive: float, negative: float) -> Lanes:
    for i in range(len(regret)):
        factor = positive if regret[i] >= 0 else negative
        regret = tuple_setitem(regret, i, regret[i] * factor)
    return regret


@part
def _plus_positive(total: Lanes, hope: Lanes) -> Lanes:
    for i in range(len(total)):
        total = tuple_setitem(total, i, total[i] + max(hope[i], 0.0))
    return total
