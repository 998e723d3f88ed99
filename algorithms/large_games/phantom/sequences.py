"""A numbering of a player's private sequences that stores nothing per sequence.

A player knows its own sequence of cells tried, each taken (success) or failed. Sequences with the
same outcomes in the same order, the same set of taken cells and the same set of failed cells form a
*block*. A block of `k` taken and `f` failed cells contains all `f! * k!` sequences that order the
two sets, or none: if one order is possible, so is every other one, because the opponent's cells can
be permuted in the same way. Hence a sequence's number is computed:

    node = first node of the block + rank(order of failed) * k! + rank(order of taken)

The rank of an order is that of the factorial number system, the last cell most significant:
`rank = sum_i i! * #{j < i: order[j] < order[i]}`. So the sequences of a block that are continued by
the same cell are a contiguous run of another block.

*Outcomes* are a binary code: bit `i` says whether action `i` succeeded, and a 1 above them marks
the length. For example 0b110 is one failure and then one success. Blocks are numbered by outcomes,
hence by depth, then by taken and by failed cells.

*Nodes* are the sequences after which the player acts again or the game may end with a winner.
*Information sets* are those nodes after which the player acts again; they have numbers of their own
in the same order.
"""

from functools import cache
from math import factorial
from typing import NamedTuple

import numpy as np

from algorithms.compiled.jit import compiled, part
from algorithms.large_games.phantom.rules import Rules
from algorithms.support.arrays import BoolArray, Int8Array, Int16Array, Int64Array


class Sequences(NamedTuple):
    """The blocks of one player: B blocks, in D of which the player acts."""

    player: int
    cells: int
    num_nodes: int
    num_infosets: int
    outcomes: Int64Array  # (B,)
    taken: Int64Array  # (B,)
    failed: Int64Array  # (B,)
    first_node: Int64Array  # (B,); num_nodes where there is none
    first_infoset: Int64Array  # (B,); -1 where the player does not act
    decisions: Int64Array  # (D,): blocks in which the player acts
    starts: Int64Array  # (D,): their first information sets
    first_block: Int64Array  # (2**(cells + 1),): of these outcomes; -1 if they cannot happen
    place: Int16Array  # (2**cells, 2**cells): of a block in those of its outcomes, by its sets
    factorials: Int64Array  # (cells + 1,)


def make_sequences(rules: Rules, player: int) -> Sequences:
    """All blocks of a player."""
    cells, most = rules.cells, _largest_sets(rules.wins[1 - player], rules.cells)
    first_block, place = np.full(2 ** (cells + 1), -1), np.full((2**cells, 2**cells), -1, np.int16)
    found, total = [], 0
    for outcomes in range(1, len(first_block)):
        held, failures = outcomes.bit_count() - 1, action_times(outcomes, player, rules.abrupt)[1]
        # Each failure comes when the other player may already hold a cell for it.
        if all(time // 2 > i for i, time in enumerate(failures)):
            taken, failed = set_pairs(cells, held, len(failures))
            first_block[outcomes], place[taken, failed] = total, np.arange(len(taken))
            total += len(taken)
            roles = _roles(rules, player, outcomes, taken, most[taken, failed])
            found.append(np.stack([np.full_like(taken, outcomes), taken, failed, *roles]))
    codes, taken, failed, is_node, acts = np.concatenate(found, axis=1)
    factorials = np.array([factorial(i) for i in range(cells + 1)])
    sizes = factorials[np.bitwise_count(taken)] * factorials[np.bitwise_count(failed)]
    node_ends, infoset_ends = np.cumsum(sizes * is_node), np.cumsum(sizes * acts)
    decisions, first_infoset = np.flatnonzero(acts), np.where(acts, infoset_ends - sizes, -1)
    numbers = player, cells, int(node_ends[-1]), int(infoset_ends[-1])
    firsts = np.where(is_node, node_ends - sizes, node_ends[-1]), first_infoset
    acts_in = decisions, first_infoset[decisions]
    sets = codes, taken, failed
    return Sequences(*numbers, *sets, *firsts, *acts_in, first_block, place, factorials)


def action_times(outcomes: int, player: int, abrupt: bool) -> tuple[list[int], list[int]]:
    """The times at which a player takes cells and fails; turn j of player p is time 2j - 1 + p."""
    taken: list[int] = []
    failed: list[int] = []
    for action in range(outcomes.bit_length() - 1):
        turn = action if abrupt else len(taken)
        (taken if outcomes >> action & 1 else failed).append(2 * turn + 1 + player)
    return taken, failed


@cache
def set_pairs(cells: int, size: int, other_size: int) -> tuple[Int64Array, Int64Array]:
    """All pairs of disjoint sets of cells of these sizes."""
    sets = np.arange(2**cells)
    sizes = np.bitwise_count(sets)
    fit = (sizes == size)[:, np.newaxis] & (sizes == other_size)
    taken, failed = np.nonzero(fit & (sets[:, np.newaxis] & sets == 0))
    return taken, failed


def _largest_sets(wins: BoolArray, cells: int) -> Int64Array:
    """The size of the largest set that does not win, avoids one set and includes another.

    `(2**cells, 2**cells)`; -1 if there is none.
    """
    sets = np.arange(2**cells)
    sizes = np.bitwise_count(sets).astype(np.int64)
    most = np.where(wins | (sets[:, np.newaxis] & sets > 0), -1, sizes)
    for cell in range(cells):
        included = sets[sets >> cell & 1 == 0]
        most[:, included] = np.maximum(most[:, included], most[:, included | 1 << cell])
    return most


def _roles(
    rules: Rules, player: int, outcomes: int, taken: Int64Array, limit: Int64Array
) -> tuple[BoolArray, BoolArray]:
    """Whether blocks `(n,)` with these outcomes are nodes, and whether the player acts there.

    `limit` is the largest number of stones that the other player may hold in each.
    """
    length, held = outcomes.bit_length() - 1, outcomes.bit_count() - 1
    turns = (length if rules.abrupt else held) + player  # of the other player
    room = rules.cells - 1 - held  # for the other player's stones on a board that is not full
    wins = rules.wins[player, taken]

    def fits(turns: int, room: int | Int64Array) -> BoolArray:
        """Whether the other player can have had these turns, with stones that fit into the room."""
        fewest = turns
        if rules.abrupt:  # it fails in turn t only at cells that this player has taken before
            before = [outcomes & ((1 << min(t - player, length)) - 1) for t in range(1, turns + 1)]
            fewest = max((t - own.bit_count() for t, own in enumerate(before, 1)), default=0)
        stones = np.minimum(turns, np.minimum(limit, room))
        return np.asarray(max(fewest, length - held) <= stones)

    acts = ~wins & fits(turns, room)
    succeeds = bool(outcomes << 1 >> length & 1)  # the last action does, if there is one
    if not succeeds and not (rules.abrupt and length):
        return acts, acts  # the turn goes on
    ends = fits(turns - 1, room + wins) & (~wins | (succeeds & rules.just_won(player)[taken]))
    return acts | ends, acts


@part
def size_of(cells: int) -> int:
    """How many cells a set has."""
    size = 0
    while cells:
        cells &= cells - 1
        size += 1
    return size


@part
def length_of(outcomes: int) -> int:
    """The number of actions."""
    length = 0
    while outcomes >> (length + 1):
        length += 1
    return length


@part
def block_of(sequences: Sequences, outcomes: int, taken: int, failed: int) -> int:
    """The number of a block."""
    return int(sequences.first_block[outcomes] + sequences.place[taken, failed])


@compiled
def histories(sequences: Sequences, infosets: Int64Array) -> tuple[Int8Array, Int16Array]:
    """The actions of information sets `(n,)`: `(n, cells)`, -1 after the last one.

    The second array has their outcomes `(n,)`.
    """
    actions = np.full((len(infosets), sequences.cells), -1, np.int8)
    outcomes = np.empty(len(infosets), np.int16)
    starts = sequences.starts
    decisions = np.searchsorted(starts, infosets, side="right") - 1
    for row in range(len(infosets)):
        decision = decisions[row]
        block = sequences.decisions[decision]
        outcomes[row] = sequences.outcomes[block]
        write_actions(sequences, block, infosets[row] - starts[decision], actions[row])
    return actions, outcomes


@part
def write_actions(sequences: Sequences, block: int, number: int, actions: Int8Array) -> None:
    """Write the actions of a sequence, given by its number in its block."""
    taken, failed, factorials = (
        sequences.taken[block],
        sequences.failed[block],
        sequences.factorials,
    )
    outcomes = sequences.outcomes[block]
    by_failed, by_taken = divmod(number, factorials[size_of(taken)])
    for i in range(length_of(outcomes) - 1, -1, -1):
        if outcomes >> i & 1:
            actions[i], taken, by_taken = _last_cell(factorials, taken, by_taken)
        else:
            actions[i], failed, by_failed = _last_cell(factorials, failed, by_failed)


@part
def _last_cell(factorials: Int64Array, cells: int, rank: int) -> tuple[int, int, int]:
    """The last cell in the order of that rank, the set of those before, and the rank of theirs."""
    place, rank = divmod(rank, factorials[size_of(cells) - 1])
    rest = cells
    for _ in range(place):
        rest &= rest - 1
    cell = rest & -rest
    return length_of(cell), cells ^ cell, rank


@compiled
def infosets_of(sequences: Sequences, actions: Int8Array, outcomes: Int16Array) -> Int64Array:
    """The information sets `(n,)` of histories as `histories` gives them; -1: there is none."""
    found = np.full(len(actions), -1)
    for row in range(len(actions)):
        code = int(outcomes[row])
        taken, failed, by_taken, by_failed = 0, 0, 0, 0
        for i in range(length_of(code)):
            bit = 1 << actions[row, i]
            if code >> i & 1:
                by_taken += sequences.factorials[size_of(taken)] * size_of(taken & (bit - 1))
                taken |= bit
            else:
                by_failed += sequences.factorials[size_of(failed)] * size_of(failed & (bit - 1))
                failed |= bit
        if sequences.first_block[code] >= 0:
            first = sequences.first_infoset[block_of(sequences, code, taken, failed)]
            if first >= 0:
                orders = sequences.factorials[size_of(taken)]
                found[row] = first + by_failed * orders + by_taken
    return found
