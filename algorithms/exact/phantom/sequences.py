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

from math import comb, factorial
from typing import NamedTuple

import numpy as np

from algorithms.exact.phantom.rules import Rules
from algorithms.support.arrays import BoolArray, Int8Array, Int16Array, Int64Array, UInt8Array
from algorithms.support.compiled import compiled, part

_ABSENT, _NODE, _DECISION = 0, 1, 2  # kinds of blocks


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
    stride: Int64Array  # (2**(cells + 1),): sets of failed cells for one set of taken cells
    rank: Int64Array  # (2**cells,): of a set among the sets of its size
    rank_within: Int16Array  # (2**cells, 2**cells): of a set among those outside another set
    factorials: Int64Array  # (cells + 1,)


def make_sequences(rules: Rules, player: int) -> Sequences:
    """All blocks of a player."""
    sizes = 2 ** (rules.cells + 1)
    first_block, stride = np.full(sizes, -1), np.zeros(sizes, np.int64)
    total = 0
    for outcomes in range(1, sizes):
        taken, failed = count_outcomes(outcomes)
        if _can_happen(outcomes, player, rules.abrupt):
            first_block[outcomes] = total
            stride[outcomes] = comb(rules.cells - taken, failed)
            total += comb(rules.cells, taken) * int(stride[outcomes])
    blocks, kinds = np.empty((3, total), np.int64), np.empty(total, np.uint8)
    most = _largest_sets(rules.wins[1 - player], rules.cells)
    board = _Board(player, rules.abrupt, rules.cells, rules.wins[player], most)
    _fill_blocks(board, first_block, blocks, kinds)
    factorials = np.array([factorial(i) for i in range(rules.cells + 1)])
    num_taken, num_failed = np.bitwise_count(blocks[1:])
    lengths = factorials[num_taken] * factorials[num_failed]
    first_node, num_nodes = _first_numbers(lengths, kinds != _ABSENT)
    first_infoset, num_infosets = _first_numbers(lengths, kinds == _DECISION)
    return Sequences(
        player,
        rules.cells,
        num_nodes,
        num_infosets,
        blocks[0],
        blocks[1],
        blocks[2],
        np.where(kinds != _ABSENT, first_node, num_nodes),
        np.where(kinds == _DECISION, first_infoset, -1),
        np.flatnonzero(kinds == _DECISION),
        first_infoset[kinds == _DECISION],
        first_block,
        stride,
        *_set_ranks(rules.cells),
        factorials,
    )


def count_outcomes(outcomes: int) -> tuple[int, int]:
    """How many of the actions succeeded and how many failed."""
    taken = outcomes.bit_count() - 1
    return taken, outcomes.bit_length() - 1 - taken


def _can_happen(outcomes: int, player: int, abrupt: bool) -> bool:
    """Whether each failure comes when the other player may already hold a cell for it."""
    failed = turns = 0
    for action in range(outcomes.bit_length() - 1):
        success = outcomes >> action & 1
        failed += not success
        if not success and failed > turns + player:  # the other player's turns before
            return False
        turns += success or abrupt
    return True


def _first_numbers(lengths: Int64Array, present: BoolArray) -> tuple[Int64Array, int]:
    """Where each block begins if only those present count, and how many there are in all."""
    ends = np.cumsum(np.where(present, lengths, 0))
    return ends - np.where(present, lengths, 0), int(ends[-1])


def _set_ranks(cells: int) -> tuple[Int64Array, Int16Array]:
    """The ranks of sets among those of the same size, in all and outside another set."""
    sets = np.arange(2**cells)
    sizes = np.bitwise_count(sets)
    rank = np.empty(2**cells, np.int64)
    for size in range(cells + 1):
        rank[sizes == size] = np.arange(comb(cells, size))
    # The cells outside `taken`, closed up: bit `cell` of `failed` moves down past taken cells.
    closed = np.zeros((2**cells, 2**cells), np.int64)
    for cell in range(cells):
        below = np.bitwise_count(~sets & ((1 << cell) - 1)).astype(np.int64)
        closed |= (sets >> cell & 1)[np.newaxis, :] << below[:, np.newaxis]
    return rank, np.where(sets[:, np.newaxis] & sets, -1, rank[closed]).astype(np.int16)


@compiled
def _largest_sets(wins: BoolArray, cells: int) -> Int8Array:
    """The size of the largest set that does not win, avoids one set and includes another.

    `(2**cells, 2**cells)`; -1 if there is none.
    """
    every = (1 << cells) - 1
    most = np.full((every + 1, every + 1), -1, np.int8)
    for avoided in range(every + 1):
        held = rest = every ^ avoided
        while True:
            if not wins[held]:
                size = size_of(held)
                included = held
                while True:
                    most[avoided, included] = max(most[avoided, included], size)
                    if included == 0:
                        break
                    included = (included - 1) & held
            if held == 0:
                break
            held = (held - 1) & rest
    return most


@part
def size_of(cells: int) -> int:
    """How many cells a set has."""
    size = 0
    while cells:
        cells &= cells - 1
        size += 1
    return size


class _Board(NamedTuple):
    """The arguments of `_fill_blocks` that depend on the rules."""

    player: int
    abrupt: bool
    cells: int
    wins: BoolArray  # (2**cells,): whether the player wins with a set
    most: Int8Array  # (2**cells, 2**cells): `_largest_sets` of the other player


@compiled
def _fill_blocks(
    board: _Board, first_block: Int64Array, blocks: Int64Array, kinds: UInt8Array
) -> None:
    """Write outcomes, taken and failed cells of all blocks `(3, B)`, and their kinds `(B,)`."""
    block = 0
    for outcomes in range(1, len(first_block)):
        if first_block[outcomes] < 0:
            continue
        num_taken = size_of(outcomes) - 1
        num_failed = length_of(outcomes) - num_taken
        for taken in range(1 << board.cells):
            if size_of(taken) != num_taken:
                continue
            for failed in range(1 << board.cells):
                if failed & taken == 0 and size_of(failed) == num_failed:
                    blocks[0, block], blocks[1, block], blocks[2, block] = outcomes, taken, failed
                    kinds[block] = _kind(board, outcomes, taken, failed)
                    block += 1


@part
def length_of(outcomes: int) -> int:
    """The number of actions."""
    length = 0
    while outcomes >> (length + 1):
        length += 1
    return length


@part
def _kind(board: _Board, outcomes: int, taken: int, failed: int) -> int:
    """Whether the player acts after these sequences, the game may end there, or neither."""
    length, held, lost = length_of(outcomes), size_of(taken), size_of(failed)
    others = (length if board.abrupt else held) + board.player  # turns of the other player
    limit = board.most[taken, failed]
    room = board.cells - 1 - held  # for the other player's stones on a board that is not full
    wins = board.wins[taken]
    if not wins and _fits(board, outcomes, others, lost, min(limit, room)):
        return _DECISION
    succeeds = length > 0 and outcomes >> (length - 1) & 1 == 1
    if wins and not (succeeds and _has_last_stone(board.wins, taken)):
        return _ABSENT
    ends_turn = succeeds or (length > 0 and board.abrupt)
    if ends_turn and _fits(board, outcomes, others - 1, lost, min(limit, room + wins)):
        return _NODE
    return _ABSENT


@part
def _has_last_stone(wins: BoolArray, taken: int) -> bool:
    """Whether a winning set has a cell without which it does not win."""
    rest = taken
    while rest:
        if not wins[taken ^ (rest & -rest)]:
            return True
        rest &= rest - 1
    return False


@part
def _fits(board: _Board, outcomes: int, others: int, fewest: int, most: int) -> bool:
    """Whether the other player can have had `others` turns with `fewest` to `most` successes."""
    if not board.abrupt:
        return fewest <= others <= most
    length = length_of(outcomes)
    for successes in range(fewest, min(most, others) + 1):
        possible = True
        # The other player does best to succeed first and to fail in its last turns.
        for failures in range(1, others - successes + 1):
            before = min(successes + failures - board.player, length)  # own turns before that one
            if size_of(outcomes & ((1 << before) - 1)) < failures:
                possible = False
                break
        if possible:
            return True
    return False


@part
def block_of(sequences: Sequences, outcomes: int, taken: int, failed: int) -> int:
    """The number of a block."""
    place = (
        sequences.rank[taken] * sequences.stride[outcomes] + sequences.rank_within[taken, failed]
    )
    block: int = sequences.first_block[outcomes] + place
    return block


@part
def write_order(factorials: Int64Array, cells: int, rank: int, order: Int64Array) -> int:
    """Write the order of that rank of a set of cells; return the size of the set."""
    size = left = size_of(cells)
    while left:
        left -= 1
        place, rank = divmod(rank, factorials[left])
        rest = cells
        for _ in range(place):
            rest &= rest - 1
        cell = rest & -rest
        cells ^= cell
        order[left] = length_of(cell)
    return size


@compiled
def histories(sequences: Sequences, start: int, stop: int) -> tuple[Int8Array, Int16Array]:
    """The actions of information sets `start` to `stop - 1` `(n, cells)`, -1 after the last one.

    The second array has their outcomes `(n,)`.
    """
    actions = np.full((stop - start, sequences.cells), -1, np.int8)
    outcomes = np.empty(stop - start, np.int16)
    taken, failed = np.empty(sequences.cells, np.int64), np.empty(sequences.cells, np.int64)
    starts = sequences.starts
    decision = np.searchsorted(starts, start, side="right") - 1
    for infoset in range(start, stop):
        while decision + 1 < len(starts) and starts[decision + 1] <= infoset:
            decision += 1
        block = sequences.decisions[decision]
        orders = sequences.factorials[size_of(sequences.taken[block])]
        by_failed, by_taken = divmod(infoset - starts[decision], orders)
        write_order(sequences.factorials, sequences.taken[block], by_taken, taken)
        write_order(sequences.factorials, sequences.failed[block], by_failed, failed)
        code, hits, misses = sequences.outcomes[block], 0, 0
        outcomes[infoset - start] = code
        for action in range(length_of(code)):
            if code >> action & 1:
                actions[infoset - start, action] = taken[hits]
                hits += 1
            else:
                actions[infoset - start, action] = failed[misses]
                misses += 1
    return actions, outcomes


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
