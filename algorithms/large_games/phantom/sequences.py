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

For example, in tic-tac-toe let a player's first action succeed, its second fail and its third
succeed. The outcomes are 0b1101. Take the block of the taken cells {2, 6} and the failed cell {5};
it has 2! * 1! sequences, the only possible ones with these sets:

    actions                           order of taken    rank    node
    took 2, failed at 5, took 6       2, 6              0       first node of the block
    took 6, failed at 5, took 2       6, 2              1       first node of the block + 1

If either goes on to take cell 0, it is in the block of the outcomes 0b11101 and the taken cells
{0, 2, 6}. There 0 is the last cell of the order. Two cells are larger, none is smaller, so it adds
2! * 0 to the rank: the two sequences have the ranks 0 and 1 again, and follow each other.

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


class ActionTimes(NamedTuple):
    """When a player acts: turn j of player p is time 2j - 1 + p."""

    taken: list[int]  # times at which it takes a cell
    failed: list[int]  # times at which it fails


class _Blocks(NamedTuple):
    """Blocks with the same outcomes: `(n,)` each."""

    outcomes: Int64Array
    taken: Int64Array
    failed: Int64Array
    is_node: BoolArray  # whether the player acts again or the game may end with a winner
    acts: BoolArray  # whether the player acts again


def make_sequences(rules: Rules, player: int) -> Sequences:
    """All blocks of a player."""
    cells = rules.cells
    most_stones = _largest_sets(rules.wins[1 - player], cells)
    first_block = np.full(2 ** (cells + 1), -1)
    place = np.full((2**cells, 2**cells), -1, np.int16)
    parts: list[_Blocks] = []  # one per outcomes
    num_blocks = 0
    for outcomes in range(1, 2 ** (cells + 1)):
        times = action_times(outcomes, player, rules.abrupt)
        # By a failure's time the other player has had time // 2 turns, so it holds at most that
        # many cells, and each failure is at another one of them.
        if any(earlier >= time // 2 for earlier, time in enumerate(times.failed)):
            continue
        taken, failed = set_pairs(cells, len(times.taken), len(times.failed))
        first_block[outcomes] = num_blocks
        place[taken, failed] = np.arange(len(taken))
        num_blocks += len(taken)
        parts.append(_make_blocks(rules, player, outcomes, taken, failed, most_stones))
    blocks = _Blocks(  # (B,) each
        outcomes=np.concatenate([one.outcomes for one in parts]),
        taken=np.concatenate([one.taken for one in parts]),
        failed=np.concatenate([one.failed for one in parts]),
        is_node=np.concatenate([one.is_node for one in parts]),
        acts=np.concatenate([one.acts for one in parts]),
    )

    # The numbers of nodes and of information sets follow from the sizes of the blocks.
    factorials = np.array([factorial(i) for i in range(cells + 1)])
    taken_orders = factorials[np.bitwise_count(blocks.taken)]
    failed_orders = factorials[np.bitwise_count(blocks.failed)]
    sizes = taken_orders * failed_orders
    node_ends = np.cumsum(sizes * blocks.is_node)
    infoset_ends = np.cumsum(sizes * blocks.acts)
    num_nodes = int(node_ends[-1])
    first_infoset = np.where(blocks.acts, infoset_ends - sizes, -1)
    decisions = np.flatnonzero(blocks.acts)
    return Sequences(
        player=player,
        cells=cells,
        num_nodes=num_nodes,
        num_infosets=int(infoset_ends[-1]),
        outcomes=blocks.outcomes,
        taken=blocks.taken,
        failed=blocks.failed,
        first_node=np.where(blocks.is_node, node_ends - sizes, num_nodes),
        first_infoset=first_infoset,
        decisions=decisions,
        starts=first_infoset[decisions],
        first_block=first_block,
        place=place,
        factorials=factorials,
    )


def action_times(outcomes: int, player: int, abrupt: bool) -> ActionTimes:
    """When a player with these outcomes has acted."""
    times = ActionTimes(taken=[], failed=[])
    for action in range(outcomes.bit_length() - 1):
        turn = action if abrupt else len(times.taken)  # its number, from 0
        time = 2 * turn + 1 + player
        if outcomes >> action & 1:
            times.taken.append(time)
        else:
            times.failed.append(time)
    return times


@cache
def set_pairs(cells: int, size: int, other_size: int) -> tuple[Int64Array, Int64Array]:
    """All pairs of disjoint sets of cells of these sizes: `(n,)` each."""
    sets = np.arange(2**cells)
    sizes = np.bitwise_count(sets)
    have_sizes = (sizes == size)[:, np.newaxis] & (sizes == other_size)  # (2**cells, 2**cells)
    are_disjoint = sets[:, np.newaxis] & sets == 0
    taken, failed = np.nonzero(have_sizes & are_disjoint)
    return taken, failed


def _largest_sets(wins: BoolArray, cells: int) -> Int64Array:
    """The size of the largest set that does not win, avoids one set and includes another.

    `[avoided, included]`, `(2**cells, 2**cells)`; -1 if there is none.
    """
    sets = np.arange(2**cells)
    sizes = np.bitwise_count(sets).astype(np.int64)
    # At first exactly the included set: its size, unless it wins or has an avoided cell.
    has_avoided_cell = sets[:, np.newaxis] & sets > 0  # [avoided, included]
    most = np.where(wins | has_avoided_cell, -1, sizes)
    # Then one more cell may be added after the other.
    for cell in range(cells):
        without = sets[sets >> cell & 1 == 0]
        most[:, without] = np.maximum(most[:, without], most[:, without | 1 << cell])
    return most


def _make_blocks(  # noqa: PLR0913, PLR0917  # the arguments of one loop
    rules: Rules,
    player: int,
    outcomes: int,
    taken: Int64Array,
    failed: Int64Array,
    most_stones: Int64Array,
) -> _Blocks:
    """The blocks with these outcomes, and which of them are nodes.

    A block is possible if the other player can have had its turns in between: it takes a cell in
    each, or in abrupt games fails at a cell that this player has taken before. Let it then hold s
    stones. They include the cells at which this player has failed, avoid those that it has taken,
    do not win, and leave a cell empty.
    """
    length = outcomes.bit_length() - 1
    num_taken = outcomes.bit_count() - 1
    num_failed = length - num_taken
    own_turns = length if rules.abrupt else num_taken
    others_turns = own_turns + player  # before this player's next action
    room = rules.cells - 1 - num_taken  # for the other's stones: one cell is empty
    wins = rules.wins[player, taken]  # (n,)
    most = most_stones[taken, failed]  # (n,)

    def is_possible(turns: int, room: int | Int64Array) -> BoolArray:
        """Whether the other player can have had these turns, with stones that fit into the room."""
        fewest = _fewest_stones(outcomes, player, turns) if rules.abrupt else turns
        stones = np.minimum(turns, np.minimum(most, room))
        return np.asarray(max(fewest, num_failed) <= stones)

    acts = ~wins & is_possible(others_turns, room)
    last_succeeds = length > 0 and bool(outcomes >> (length - 1) & 1)
    ends_turn = last_succeeds or (rules.abrupt and length > 0)
    if ends_turn:
        # The game may end here: this player has just won, perhaps with the last empty cell, or the
        # other one wins in its next turn. Either way the other one has had a turn less.
        room_at_end = room + wins
        has_just_won = last_succeeds & rules.just_won(player)[taken]
        may_end = is_possible(others_turns - 1, room_at_end) & (~wins | has_just_won)
    else:
        may_end = np.zeros(len(taken), np.bool_)
    return _Blocks(
        outcomes=np.full_like(taken, outcomes),
        taken=taken,
        failed=failed,
        is_node=acts | may_end,
        acts=acts,
    )


def _fewest_stones(outcomes: int, player: int, turns: int) -> int:
    """The fewest stones that the other player of an abrupt game holds after so many turns.

    In turn t it can only have failed as often as this player, whose outcomes these are, had taken
    cells before.
    """
    length = outcomes.bit_length() - 1
    fewest = 0
    for turn in range(1, turns + 1):
        own_actions = min(turn - player, length)  # before that turn
        own_taken = (outcomes & ((1 << own_actions) - 1)).bit_count()
        fewest = max(fewest, turn - own_taken)
    return fewest


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
    factorials = sequences.factorials
    outcomes = sequences.outcomes[block]
    taken = sequences.taken[block]
    failed = sequences.failed[block]
    failed_rank, taken_rank = divmod(number, factorials[size_of(taken)])
    for i in range(length_of(outcomes) - 1, -1, -1):  # the last action first
        if outcomes >> i & 1:
            actions[i], taken, taken_rank = _last_cell(factorials, taken, taken_rank)
        else:
            actions[i], failed, failed_rank = _last_cell(factorials, failed, failed_rank)


@part
def _last_cell(factorials: Int64Array, cells: int, rank: int) -> tuple[int, int, int]:
    """The last cell in the order of that rank, the set of those before, and the rank of theirs."""
    num_smaller, rank_before = divmod(rank, factorials[size_of(cells) - 1])
    larger = cells
    for _ in range(num_smaller):
        larger &= larger - 1  # without its smallest cell
    last = larger & -larger  # the smallest cell that is left, as a set
    return length_of(last), cells ^ last, rank_before


@compiled
def infosets_of(sequences: Sequences, actions: Int8Array, outcomes: Int16Array) -> Int64Array:
    """The information sets `(n,)` of histories as `histories` gives them; -1: there is none."""
    infosets = np.full(len(actions), -1)
    factorials = sequences.factorials
    for row in range(len(actions)):
        code = int(outcomes[row])
        taken = 0
        failed = 0
        taken_rank = 0
        failed_rank = 0
        for i in range(length_of(code)):
            cell = 1 << actions[row, i]
            smaller = cell - 1  # the set of all smaller cells
            if code >> i & 1:
                taken_rank += factorials[size_of(taken)] * size_of(taken & smaller)
                taken |= cell
            else:
                failed_rank += factorials[size_of(failed)] * size_of(failed & smaller)
                failed |= cell
        if sequences.first_block[code] >= 0:
            first = sequences.first_infoset[block_of(sequences, code, taken, failed)]
            if first >= 0:
                infosets[row] = first + failed_rank * factorials[size_of(taken)] + taken_rank
    return infosets
