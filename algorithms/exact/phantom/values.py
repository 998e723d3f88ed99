"""Reach probabilities, values, best responses and losses of a joint policy of a phantom game."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from algorithms.exact.native import (
    ROW_SUM_TOLERANCE,
    FloatArray,
    Tables,
    invalid_row,
    largest_losses,
    require_tables,
)
from algorithms.exact.phantom.products import Products, add_terminal_values, make_products
from algorithms.exact.phantom.rules import Rules
from algorithms.exact.phantom.sequences import (
    Sequences,
    block_of,
    histories,
    length_of,
    make_sequences,
    size_of,
    write_order,
)
from algorithms.exact.values import Loss, Measure
from algorithms.support.arrays import (
    BoolArray,
    Float32Array,
    Float64Array,
    Int8Array,
    Int64Array,
    UInt64Array,
)
from algorithms.support.compiled import compiled, inlined, part


class Evaluator:
    """A game's sequences and products, with arrays that all evaluations share.

    `reach[p]` has the probability of each node of player p by its own choices, `values[p]` its
    counterfactual values. Both end with two spare blocks: products find a block that cannot occur
    in the first of them, and actions lead to the second where an outcome is impossible. So the
    first one of `reach` and the second one of `values` are only read and stay 0.
    """

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.sequences = make_sequences(rules, 0), make_sequences(rules, 1)
        self.holder: object = None  # the tables or the solver whose numbers the arrays hold

    @cached_property
    def products(self) -> Products:
        """The terminal histories of the game."""
        return make_products(self.rules, self.sequences)

    @cached_property
    def reach(self) -> tuple[Float64Array, ...]:
        """One number per node, for each player."""
        return tuple(_node_array(sequences) for sequences in self.sequences)

    @cached_property
    def values(self) -> tuple[Float64Array, ...]:
        """One number per node, for each player."""
        return tuple(_node_array(sequences) for sequences in self.sequences)

    def evaluate(self, tables: Sequence[Float32Array]) -> Measure:
        """Values, best responses and losses of a joint policy; rows are normalised in float64."""
        shapes = [(sequences.num_infosets, sequences.cells) for sequences in self.sequences]
        tables = require_tables(tables, shapes)
        for player in (0, 1):
            invalid = _first_invalid(self.sequences[player], tables[player])
            if invalid >= 0:
                raise invalid_row(tables, player, invalid)
        best = tuple(np.empty(sequences.num_infosets, np.int8) for sequences in self.sequences)
        value, best_values = self._respond(tables, best)
        return Measure(
            (value, -value), best_values, lambda: best, lambda: self._largest_losses(tables, best)
        )

    def _respond(
        self, tables: Tables, best: tuple[Int8Array, ...]
    ) -> tuple[float, tuple[float, ...]]:
        """Player 0's value and those of the best responses, whose actions are written to `best`."""
        self.holder = None
        for player in (0, 1):
            write_reach(self.sequences[player], tables[player], self.reach[player])
        self.set_terminal_values(0)
        self.set_terminal_values(1)
        nodes = self.sequences[0].num_nodes
        value = float(self.reach[0][:nodes] @ self.values[0][:nodes])
        best_values = [_best_response(self.sequences[p], self.values[p], best[p]) for p in (0, 1)]
        self.holder = tables
        return value, tuple(best_values)

    def set_terminal_values(self, player: int) -> None:
        """Write the counterfactual values of terminal histories, by the player's last node."""
        sequences = self.sequences[1 - player], self.sequences[player]
        reach, values = self.reach[1 - player], self.values[player]
        values[:] = 0.0
        for product in self.products.by_target[player]:
            add_terminal_values(product, self.products.work, sequences, reach, values)

    def _largest_losses(self, tables: Tables, best: tuple[Int8Array, ...]) -> tuple[Loss, ...]:
        if self.holder is not tables:
            self._respond(tables, best)
        lost = [np.empty(sequences.num_infosets) for sequences in self.sequences]
        for p, sequences in enumerate(self.sequences):
            _write_losses(sequences, tables[p], (self.reach[p], self.values[p]), lost[p])
        return largest_losses(tables, best, lost, self.infoset_reach)

    def infoset_reach(self, player: int, infoset: int) -> float:
        """The probability that a game arrives at an information set, by the last evaluation."""
        own = self.reach[player][node_of(self.sequences[player], infoset)]
        known = _known(self.sequences[player], self.rules.abrupt, infoset)
        other, reach = self.sequences[1 - player], self.reach[1 - player]
        wins = self.rules.wins[1 - player]
        return float(own) * _consistent_reach(other, reach, wins, self.rules.abrupt, known)


def _node_array(sequences: Sequences) -> Float64Array:
    """A number per node, and the two spare blocks."""
    return np.zeros(sequences.num_nodes + 2 * sequences.factorials[-1])


class Children(NamedTuple):
    """The legal actions of a block's sequences, and the nodes to which they lead."""

    num_actions: np.uint64  # k legal ones
    actions: UInt64Array  # (cells,), of which k are used
    success: UInt64Array  # (cells,): the node after each action's success, and
    failure: UInt64Array  # (cells,): after its failure, for the first order of the taken cells


# Inlined together with `visit`: compiled code that passes functions could not be cached on disk.
@inlined
def for_each_infoset(
    sequences: Sequences, visit: Callable[..., None], arrays: Any, last_first: bool
) -> None:
    """Call `visit(arrays, node, infoset, children, i)` at every information set of a player.

    Parents come first, or last if `last_first`. Action k leads to the nodes
    `children.success[k] + i` and `children.failure[k] + i`.
    """
    actions, success, failure = np.empty((3, sequences.cells), np.uint64)
    for d in range(len(sequences.decisions)):
        block = sequences.decisions[len(sequences.decisions) - 1 - d if last_first else d]
        node = np.uint64(sequences.first_node[block])
        infoset = np.uint64(sequences.first_infoset[block])
        count, orders, failed_orders, step = _find_children(
            sequences, block, actions, success, failure
        )
        children = Children(np.uint64(count), actions, success, failure)
        for _ in range(failed_orders):
            for i in range(np.uint64(orders)):
                visit(arrays, node, infoset, children, i)
                node += np.uint64(1)
                infoset += np.uint64(1)
            success += np.uint64(step)
            failure += np.uint64(orders)


@part
def _find_children(
    sequences: Sequences,
    block: int,
    actions: UInt64Array,
    success: UInt64Array,
    failure: UInt64Array,
) -> tuple[int, int, int, int]:
    """Write a block's legal actions and the first nodes after their success and their failure.

    Returns how many actions there are, the number of orders of the taken and of the failed cells,
    and how far apart the children of consecutive orders of the failed cells are upon success.
    """
    outcomes, factorials = sequences.outcomes[block], sequences.factorials
    taken, failed = sequences.taken[block], sequences.failed[block]
    orders, failed_orders = factorials[size_of(taken)], factorials[size_of(failed)]
    more = 1 << length_of(outcomes)
    count = 0
    for cell in range(sequences.cells):
        bit = 1 << cell
        if (taken | failed) & bit:
            continue
        # The new cell is the last of its order: it moves the run by its place in the set.
        actions[count] = cell
        success[count] = _run(
            sequences, outcomes + 2 * more, taken | bit, failed, size_of(taken & (bit - 1)) * orders
        )
        failure[count] = _run(
            sequences,
            outcomes + more,
            taken,
            failed | bit,
            size_of(failed & (bit - 1)) * failed_orders * orders,
        )
        count += 1
    return count, orders, failed_orders, orders * (size_of(taken) + 1)


@part
def _run(sequences: Sequences, outcomes: int, taken: int, failed: int, place: int) -> int:
    """The node at a place in a block, or the second spare block if that one cannot occur."""
    if sequences.first_block[outcomes] >= 0:
        node: int = sequences.first_node[block_of(sequences, outcomes, taken, failed)]
        if node < sequences.num_nodes:
            return node + place
    spare: int = sequences.num_nodes + sequences.factorials[-1]
    return spare


@part
def sum_positive(weights: FloatArray, infoset: np.uint64, children: Children) -> float:
    """The sum of the legal actions' weights above 0."""
    total = 0.0
    for k in range(children.num_actions):
        total += max(np.float64(weights[infoset, children.actions[k]]), 0.0)
    return total


@compiled
def write_reach(sequences: Sequences, weights: FloatArray, reach: Float64Array) -> None:
    """Write the probability of each node by its owner's choices.

    The policy is proportional to the weights `(I, A)` above 0, and uniform where there are none.
    """
    reach[0] = 1.0
    for_each_infoset(sequences, _write_reach, (weights, reach), False)


@inlined
def _write_reach(
    arrays: tuple[FloatArray, Float64Array],
    node: np.uint64,
    infoset: np.uint64,
    children: Children,
    i: np.uint64,
) -> None:
    weights, reach = arrays
    total = sum_positive(weights, infoset, children)
    slope = reach[node] / total if total > 0 else 0.0
    offset = 0.0 if total > 0 else reach[node] / np.int64(children.num_actions)
    for k in range(children.num_actions):
        weight = max(np.float64(weights[infoset, children.actions[k]]), 0.0)
        probability = slope * weight + offset
        reach[children.success[k] + i] = reach[children.failure[k] + i] = probability


@compiled
def _best_response(sequences: Sequences, values: Float64Array, best: Int8Array) -> float:
    """Add the values of best play to the nodes' values; write best actions `(I,)`."""
    for_each_infoset(sequences, _add_best, (values, best), True)
    best_value: float = values[0]
    return best_value


@inlined
def _add_best(
    arrays: tuple[Float64Array, Int8Array],
    node: np.uint64,
    infoset: np.uint64,
    children: Children,
    i: np.uint64,
) -> None:
    values, best = arrays
    highest, action = -np.inf, np.uint64(0)
    for k in range(children.num_actions):
        value = values[children.success[k] + i] + values[children.failure[k] + i]
        if value > highest:
            highest, action = value, children.actions[k]
    values[node] += highest
    best[infoset] = action


@compiled
def _write_losses(
    sequences: Sequences,
    table: Float32Array,
    numbers: tuple[Float64Array, Float64Array],
    lost: Float64Array,
) -> None:
    """Write the loss at each information set `(I,)`, given reach and values of best play."""
    for_each_infoset(sequences, _write_loss, (table, numbers, lost), False)


@inlined
def _write_loss(
    arrays: tuple[Float32Array, tuple[Float64Array, Float64Array], Float64Array],
    node: np.uint64,
    infoset: np.uint64,
    children: Children,
    i: np.uint64,
) -> None:
    table, (reach, values), lost = arrays
    total = sum_positive(table, infoset, children)
    highest, mean = -np.inf, 0.0
    for k in range(children.num_actions):
        value = values[children.success[k] + i] + values[children.failure[k] + i]
        highest = max(highest, value)
        mean += value * max(np.float64(table[infoset, children.actions[k]]), 0.0) / total
    lost[infoset] = reach[node] * (highest - mean)


@compiled
def normalise(sequences: Sequences, table: Float32Array) -> None:
    """Make rows `(I, A)` of weights probabilities of the legal actions, in place."""
    for_each_infoset(sequences, _normalise_row, table, False)


@inlined
def _normalise_row(
    table: Float32Array, node: np.uint64, infoset: np.uint64, children: Children, i: np.uint64
) -> None:
    total, k = sum_positive(table, infoset, children), np.uint64(0)
    for action in range(np.uint64(table.shape[1])):
        if k < children.num_actions and children.actions[k] == action:
            weight = max(np.float64(table[infoset, action]), 0.0)
            uniform = 1.0 / np.int64(children.num_actions)
            table[infoset, action] = weight / total if total > 0 else uniform
            k += np.uint64(1)
        else:
            table[infoset, action] = 0.0


@compiled
def _first_invalid(sequences: Sequences, table: Float32Array) -> int:
    """The first information set whose row is not a distribution over legal actions, or -1."""
    for block in sequences.decisions:
        tried = sequences.taken[block] | sequences.failed[block]
        infoset = sequences.first_infoset[block]
        size = sequences.factorials[size_of(sequences.taken[block])]
        size *= sequences.factorials[size_of(sequences.failed[block])]
        for row in range(infoset, infoset + size):
            legal = every = 0.0
            for action in range(sequences.cells):
                every += abs(table[row, action])
                legal += 0.0 if tried >> action & 1 else table[row, action]
            if not (abs(legal - 1) <= ROW_SUM_TOLERANCE and every == legal):
                return row
    return -1


def node_of(sequences: Sequences, infoset: int) -> int:
    """The node of an information set."""
    block = sequences.decisions[np.searchsorted(sequences.starts, infoset, side="right") - 1]
    return int(sequences.first_node[block] + infoset - sequences.first_infoset[block])


class _Known(NamedTuple):
    """The sequence of a player to act: its sets of cells, and the time at which it tried each."""

    taken: int
    failed: int
    times: Int64Array  # (cells,), as in `algorithms.exact.phantom.products`
    others: int  # how many turns the other player has had


def _known(sequences: Sequences, abrupt: bool, infoset: int) -> _Known:
    actions, outcomes = histories(sequences, infoset, infoset + 1)
    times, sets, turn = np.zeros(sequences.cells, np.int64), [0, 0], 0
    for i, cell in enumerate(actions[0, : int(outcomes[0]).bit_length() - 1].tolist()):
        success = int(outcomes[0]) >> i & 1
        times[cell] = 2 * turn + 1 + sequences.player
        sets[success] |= 1 << cell
        turn += success or abrupt
    return _Known(sets[1], sets[0], times, turn + sequences.player)


@compiled
def _consistent_reach(
    other: Sequences, reach: Float64Array, wins: BoolArray, abrupt: bool, known: _Known
) -> float:
    """The sum of the other player's reach over its sequences that are consistent with `known`.

    This tests one sequence after another, which takes milliseconds.
    """
    total = 0.0
    orders = np.empty(other.cells, np.int64), np.empty(other.cells, np.int64)
    for block in range(len(other.taken)):
        taken, failed = other.taken[block], other.failed[block]
        length = length_of(other.outcomes[block])
        complete = length == 0 or abrupt or other.outcomes[block] >> (length - 1) & 1
        if (
            not complete
            or (length if abrupt else size_of(taken)) != known.others
            or taken & known.taken
            or known.failed & ~taken
            or failed & ~known.taken
            or wins[taken]
            or size_of(taken) + size_of(known.taken) == other.cells
        ):
            continue
        node = other.first_node[block]
        for by_failed in range(other.factorials[size_of(failed)]):
            write_order(other.factorials, failed, by_failed, orders[1])
            for by_taken in range(other.factorials[size_of(taken)]):
                write_order(other.factorials, taken, by_taken, orders[0])
                if _orders_consistent(known, other.outcomes[block], abrupt, other.player, orders):
                    total += reach[node]
                node += 1
    return total


@part
def _orders_consistent(
    known: _Known,
    outcomes: int,
    abrupt: bool,
    player: int,
    orders: tuple[Int64Array, Int64Array],
) -> bool:
    """Whether each failure of either player comes after the other one took that cell.

    `orders` are the orders in which the other player takes cells and fails.
    """
    taken = failed = 0
    for i in range(length_of(outcomes)):
        time = 2 * (i if abrupt else taken) + 1 + player
        if outcomes >> i & 1:
            cell = orders[0][taken]
            taken += 1
            if known.failed >> cell & 1 and known.times[cell] < time:
                return False
        else:
            if known.times[orders[1][failed]] > time:
                return False
            failed += 1
    return True
