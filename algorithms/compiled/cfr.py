"""The CFR family in fast mode: the sequence form, with similar information sets in vector lanes.

Two ideas make it fast. First, with perfect recall the counterfactual value of a sequence is

    q(s) = sum over terminals after s, before the player's next decision, of payoff * others' reach
         + sum over the player's next information sets of their values under the current policy

so no nodes but the terminal ones are needed (the sequence form, von Stengel 1996). Second, many
information sets differ only in the cards dealt. They form a *group*, each in a *lane* of its own. A
*position* is one slot of a group in all lanes: a player's actions so far, for any cards. All
terminals between two players' positions are then one small matrix, lanes by lanes (a *block*), and
one vector instruction handles several hands.

Which information sets are similar is read off the tree, and affects nothing but speed: a game
without such structure gets one lane, and the same code is the plain sequence form.

The equations are those of `algorithms.cfr`, and so are the numbers, up to rounding, because
sums are computed in another order. Where regrets are exactly 0 (uniform play) in one mode and a
rounding error above 0 (always one action) in the other, the iterates differ; both converge. See
docs/solving.md.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from numba.cpython.unsafe.tuple import tuple_setitem

from algorithms.cfr import VARIANTS, BaseSolver, Span, Variant, Weights, iteration_weights
from algorithms.compiled.jit import compiled, part
from algorithms.compiled.lanes import Lanes, add_scaled, add_to, load, maximum, reciprocal, store
from algorithms.support.arrays import Float64Array, IntpArray, UInt32Array
from algorithms.tree import CHANCE, Tree, ranges, unsigned

WIDTHS = (1, 2, 4, 6, 8)  # numbers of lanes that vector instructions handle well
MIN_DENSITY = 0.25  # of terminals in the matrices: below it lanes are slower than none


class FastSolver(BaseSolver):
    """The fast mode: the exact mode's iterates up to rounding."""

    def __init__(self, tree: Tree, variant: Variant = VARIANTS["cfr"]) -> None:
        super().__init__(tree, variant)
        self._layout = layout = make_layout(tree)
        shape = layout.positions, layout.width
        regret, policy_sum, value, reach = np.zeros((4, *shape))
        reach[: tree.num_players] = 1
        predicted = np.zeros(shape) if variant.predictive else regret
        scale = np.full((len(layout.arrays[0]), layout.width), np.inf)
        self._tables = regret, predicted, scale, value, reach, policy_sum
        self._advance(0)

    def _advance(self, iterations: int) -> None:
        zero, arrays = (0.0,) * self._layout.width, self._layout.arrays
        _iterate(zero, arrays, self._tables, self.variant.numbers, self._span(iterations))

    def _regrets(self) -> Float64Array:
        """The discounted sums of regrets `(S,)`."""
        return self._tables[0].take(self._layout.slot_cell)

    def _policy_sums(self) -> Float64Array:
        """The weighted sums of policies, times their owner's reach probability: `(S,)`."""
        return self._tables[-1].take(self._layout.slot_cell)

    def current_policy(self) -> Float64Array:
        """The last policy, which the next iteration would play: `(I, A)`."""
        predicted = self._tables[1].take(self._layout.slot_cell)
        return self._normalized(np.maximum(predicted, 0))


# The kernel's inputs. Groups: first position, end, parent position. Blocks: the player's position,
# the number of the matrix, the others' positions. Then the matrices `[matrix, opponent's lane,
# player's lane]`, and each player's first group and first block.
_Arrays: TypeAlias = tuple[UInt32Array, UInt32Array, Float64Array, IntpArray, IntpArray]
# The kernel's outputs, by position and lane: regrets; predicted regrets (the same array unless the
# variant is predictive); by group and lane the scale of regret matching, 1 / the sum of predicted
# regrets above 0; counterfactual values; reach probabilities; policy sums.
_Tables: TypeAlias = tuple[
    Float64Array, Float64Array, Float64Array, Float64Array, Float64Array, Float64Array
]


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """A tree as the kernel sees it. Position p < P is the empty sequence of player p."""

    width: int  # number of lanes
    positions: int
    slot_cell: IntpArray  # (S,) each slot's cell in a flattened table (positions, width)
    arrays: _Arrays


def make_layout(tree: Tree) -> Layout:
    """A layout in lanes where that is faster, else with one lane."""
    if tree.num_players == 2:
        layout, density = _layout(tree, WIDTHS[-1])
        if layout.width == 1 or density >= MIN_DENSITY:
            return layout
    return _layout(tree, 1)[0]


def _layout(tree: Tree, max_width: int) -> tuple[Layout, float]:
    """A layout of at most `max_width` lanes, and the density of terminals in its matrices."""
    players = tree.num_players
    group, lane, level = _group_infosets(tree, max_width)
    width = min(width for width in WIDTHS if width > lane.max())
    # A player's groups are sorted by level, so that successors come later, and within a level by
    # number of slots, which makes loops predictable for the processor.
    _, example = np.unique(group, return_index=True)
    counts = np.diff(tree.first_slot)[example]
    order = np.lexsort((counts, level[example], tree.owner[example]))
    first = players + np.append(0, np.cumsum(counts[order]))
    start = np.empty(len(order), np.intp)
    start[order] = first[:-1]
    # By player and sequence; a player's empty one is a position of its own, in lane 0.
    infosets = tree.slots[:, 0]
    slot_position = start[group[infosets]] + np.arange(tree.num_slots) - tree.first_slot[infosets]
    position = np.tile(np.append(0, slot_position), (players, 1))
    position[:, 0] = np.arange(players)
    lanes = np.append(0, lane[infosets])
    owner, parent = tree.owner[example][order], tree.parent_sequence[example][order]
    groups = unsigned(np.column_stack([first[:-1], first[1:], position[owner, parent]]))
    blocks, matrices, first_block = _blocks(tree, position, lanes, width)
    density = len(tree.terminals) * players / max(len(blocks) * width**2, 1)
    first_group = np.searchsorted(owner, np.arange(players + 1))
    arrays = groups, blocks, matrices, first_group, first_block
    return Layout(width, int(first[-1]), slot_position * width + lanes[1:], arrays), density


def _group_infosets(tree: Tree, max_width: int) -> tuple[IntpArray, IntpArray, IntpArray]:
    """Group, lane, and the owner's number of earlier decisions of each information set: `(I,)`.

    Information sets of a player are similar if they follow the same position, after the same chance
    events since then (public cards, usually), while the others are at the same positions. Those
    without a decision of the owner before them take lanes in turn; successors keep the lane. More
    of them than lanes, or two in one lane, make another group.
    """
    nodes = tree.members[tree.first_member[:-1]].astype(np.intp)  # one of each information set
    depth, events = tree.depths()[nodes], _chance_events(tree, nodes)
    counts, owner = np.diff(tree.first_slot), tree.owner
    group, lane, level = np.zeros((3, len(nodes)), np.intp)
    # By sequence, filled in from the root down.
    position_of, lane_of, level_of = np.zeros((3, tree.num_slots + 1), np.intp)
    groups, positions = 0, 1
    for step in np.unique(depth):
        infosets = np.flatnonzero(depth == step)
        parent = tree.parent_sequence[infosets]
        others = position_of[tree.sequence[:, nodes[infosets]]]
        others[owner[infosets], np.arange(len(infosets))] = position_of[parent]
        similar = _numbered(owner[infosets], counts[infosets], events[infosets], *others)
        lane[infosets] = np.where(parent > 0, lane_of[parent], _rank(similar) % max_width)
        number = _numbered(similar, _rank(_numbered(similar, lane[infosets])))
        group[infosets] = groups + number
        level[infosets] = level_of[parent] + 1
        slots = ranges(tree.first_slot[infosets], tree.first_slot[infosets + 1])
        here = np.repeat(np.arange(len(infosets)), counts[infosets])
        offset = slots - tree.first_slot[infosets][here]
        position_of[slots + 1] = positions + number[here] * counts.max() + offset
        lane_of[slots + 1], level_of[slots + 1] = lane[infosets][here], level[infosets][here]
        groups += number.max() + 1
        positions += (number.max() + 1) * counts.max()
    return group, lane, level


def _chance_events(tree: Tree, nodes: IntpArray) -> IntpArray:
    """A number for chance's actions since the owner's last decision, from their hash: `(I,)`."""
    parents = np.append(0, np.repeat(np.arange(tree.num_nodes), np.diff(tree.first_child)))
    events, owner = np.zeros(len(nodes), np.intp), tree.owner
    active = tree.parent_sequence > 0
    while active.any():
        above = parents[nodes]
        chance = active & (tree.player[above] == CHANCE)
        events[chance] = events[chance] * 1_000_003 + tree.action[nodes[chance]] + 1
        active &= tree.player[above] != owner
        nodes = np.where(active, above, nodes)
    return np.unique(events, return_inverse=True)[1]


def _blocks(
    tree: Tree, position: IntpArray, lanes: IntpArray, width: int
) -> tuple[UInt32Array, Float64Array, IntpArray]:
    """The blocks of all players, the distinct matrices among them, and each player's first block.

    Between more than two players there is one lane. The opponent of a single player is its own
    empty sequence, which has reach probability 1.
    """
    blocks, matrices, ends = [], [], tree.terminal_sequence
    if tree.num_players == 1:
        ends, position = np.append(ends, 0 * ends, axis=0), np.append(position, position, axis=0)
    for player in range(tree.num_players):
        order = [player, *(p for p in range(len(ends)) if p != player)]
        at = position[order, :][np.arange(len(order))[:, None], ends[order]]
        number = _numbered(*at)
        _, example = np.unique(number, return_index=True)
        cell = (number * width + lanes[ends[order[1]]]) * width + lanes[ends[player]]
        matrix = np.bincount(cell, tree.terminal_payoff[player], len(example) * width**2)
        matrix = matrix.reshape(-1, width**2)
        used = (at[0, example] >= tree.num_players) & matrix.any(axis=1)
        blocks.append(at[:, example[used]].T)
        matrices.append(matrix[used])
    flat = np.concatenate(matrices)
    # Plain numbers if possible: sorting rows is several times slower.
    distinct, which = np.unique(flat.ravel() if width == 1 else flat, axis=0, return_inverse=True)
    rows = np.insert(np.concatenate(blocks), 1, which.ravel(), axis=1)
    first = np.cumsum([0, *map(len, blocks)])
    return unsigned(rows), distinct.reshape(-1, width, width), first


def _numbered(*columns: npt.NDArray[np.integer]) -> IntpArray:
    """Number the distinct rows of non-negative columns from 0, in ascending order.

    The product of the columns' ranges must not overflow.
    """
    number = np.zeros(len(columns[0]), np.intp)
    for column in columns:
        _, number = np.unique(number * (column.max(initial=0) + 1) + column, return_inverse=True)
    return number


def _rank(numbers: IntpArray) -> IntpArray:
    """How many equal numbers come before each."""
    order, rank = np.argsort(numbers, kind="stable"), np.empty_like(numbers)
    ascending = numbers[order]
    rank[order] = np.arange(len(numbers)) - np.searchsorted(ascending, ascending)
    return rank


@compiled
def _iterate(zero: Lanes, arrays: _Arrays, tables: _Tables, numbers: Weights, span: Span) -> None:
    """Run iterations `first + 1` to `last` in place; set the uniform policy before the first."""
    last, alternating, done = span
    first = done[0]
    players = len(arrays[3]) - 1
    if first == 0:
        for player in range(players):
            _update_policy(zero, arrays, tables, player, 0.0)
    for t in range(first + 1, last + 1):
        weights = iteration_weights(numbers, t)
        for player in range(players):
            _add_terminals(zero, arrays, tables, player)
            _add_regrets(zero, arrays, tables, player, weights)
            if alternating:
                _update_policy(zero, arrays, tables, player, weights[2])
        if not alternating:
            for player in range(players):
                _update_policy(zero, arrays, tables, player, weights[2])
        done[0] = t


@part
def _add_terminals(zero: Lanes, arrays: _Arrays, tables: _Tables, player: int) -> None:
    """Add the terminals' payoffs, times the others' reach, to a player's counterfactual values."""
    _, blocks, matrices, _, first_block = arrays
    _, _, _, value, reach, _ = tables
    for b in range(np.uint64(first_block[player]), np.uint64(first_block[player + 1])):
        matrix, opponent = np.uint64(blocks[b, 1]), np.uint64(blocks[b, 2])
        payoff = zero  # the matrix times the opponent's reach in its lanes
        for j in range(len(zero)):
            theirs = reach[opponent, j]
            for i in range(len(zero)):
                payoff = tuple_setitem(payoff, i, payoff[i] + matrices[matrix, j, i] * theirs)
        rest = 1.0  # reach of players beyond the second: there is one lane then
        for k in range(3, blocks.shape[1]):
            rest *= reach[np.uint64(blocks[b, k]), 0]
        add_to(value, np.uint64(blocks[b, 0]), payoff, rest)


@part
def _add_regrets(
    zero: Lanes, arrays: _Arrays, tables: _Tables, player: int, weights: Weights
) -> None:
    """Add one iteration's regrets of a player, and discount them, from the last group to the first.

    `value` holds the terminals' part, and is 0 again afterwards.
    """
    groups, _, _, first_group, _ = arrays
    regret, predicted, scale, value, _, _ = tables
    discount_positive, discount_negative, _, prediction = weights
    discounts = discount_positive < 1 or discount_negative < 1
    for back in range(first_group[player + 1] - first_group[player]):
        g = np.uint64(first_group[player + 1] - 1 - back)
        first, last = np.uint64(groups[g, 0]), np.uint64(groups[g, 1])
        uniform, factor = 1.0 / float(last - first), load(scale, g, zero)
        mean = total = zero
        for at in range(first, last):
            share = _times_policy(load(value, at, zero), load(predicted, at, zero), factor, uniform)
            mean = add_scaled(mean, share)
        for at in range(first, last):
            new = add_scaled(load(value, at, zero), mean, -1.0)
            store(value, at, zero)
            regrets = add_scaled(load(regret, at, zero), new)
            if discounts:
                for i in range(len(zero)):
                    discount = discount_positive if regrets[i] >= 0 else discount_negative
                    regrets = tuple_setitem(regrets, i, regrets[i] * discount)
            store(regret, at, regrets)
            if prediction > 0:  # else both are one array
                regrets = add_scaled(regrets, new, prediction)
                store(predicted, at, regrets)
            total = add_scaled(total, maximum(regrets, zero))
        store(scale, g, reciprocal(total))
        add_to(value, np.uint64(groups[g, 2]), mean)
    store(value, player, zero)


@part
def _update_policy(
    zero: Lanes, arrays: _Arrays, tables: _Tables, player: int, weight: float
) -> None:
    """Add a player's policy to the average, then set its reach by the next policy."""
    groups, _, _, first_group, _ = arrays
    _, predicted, scale, _, reach, policy_sum = tables
    for g in range(np.uint64(first_group[player]), np.uint64(first_group[player + 1])):
        first, last = np.uint64(groups[g, 0]), np.uint64(groups[g, 1])
        uniform, factor = 1.0 / float(last - first), load(scale, g, zero)
        arrival = load(reach, np.uint64(groups[g, 2]), zero)
        for at in range(first, last):
            add_to(policy_sum, at, load(reach, at, zero), weight)
            store(reach, at, _times_policy(arrival, load(predicted, at, zero), factor, uniform))


@part
def _times_policy(lanes: Lanes, predicted: Lanes, factor: Lanes, uniform: float) -> Lanes:
    """Lanes times a slot's probability by regret matching."""
    for i in range(len(lanes)):
        probability = max(predicted[i], 0.0) * factor[i] if factor[i] < np.inf else uniform
        lanes = tuple_setitem(lanes, i, lanes[i] * probability)
    return lanes
