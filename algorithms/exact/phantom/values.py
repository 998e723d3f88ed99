"""Reach probabilities, values, best responses and losses of a joint policy of a phantom game."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from algorithms.exact.phantom.products import Products, add_gains, make_products
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
from algorithms.support.arrays import (
    BoolArray,
    Float32Array,
    Float64Array,
    Int8Array,
    Int64Array,
    UInt64Array,
)
from algorithms.support.compiled import compiled, part
from kuhn_bridge.errors import PolicyError

ROW_SUM_TOLERANCE = 1e-5  # how far a row of float32 probabilities may sum from 1


class Evaluation(NamedTuple):
    """What a joint policy wins and what best responses win against it, in chips per game."""

    values: tuple[float, float]
    best_values: tuple[float, float]
    best_response: tuple[Int8Array, Int8Array]  # (I_p,) actions


class Evaluator:
    """A game's sequences and products, with arrays that all evaluations share.

    `reach[p]` has the probability of each node of player p by its own choices, `gain[p]` its
    counterfactual values. Both end with two spare blocks: products find a block that cannot occur
    in the first of them, and actions lead to the second where an outcome is impossible. So the
    first one of `reach` and the second one of `gain` are only read and stay 0.
    """

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.sequences = make_sequences(rules, 0), make_sequences(rules, 1)
        self.holder: object = None  # whose numbers `reach` and `gain` are

    @cached_property
    def products(self) -> Products:
        """All ends of the game."""
        return make_products(self.rules, self.sequences)

    @cached_property
    def reach(self) -> tuple[Float64Array, Float64Array]:
        """One number per node, for each player."""
        return _node_array(self.sequences[0]), _node_array(self.sequences[1])

    @cached_property
    def gain(self) -> tuple[Float64Array, Float64Array]:
        """One number per node, for each player."""
        return _node_array(self.sequences[0]), _node_array(self.sequences[1])

    def evaluate(self, tables: Sequence[Float32Array]) -> Evaluation:
        """Exact values and best responses; rows `(I_p, A)` are normalised in float64."""
        self._check(tables)
        self.holder = None
        for player in (0, 1):
            write_reach(self.sequences[player], tables[player], self.reach[player])
        self.set_gains(0)
        self.set_gains(1)
        nodes = self.sequences[0].num_nodes
        value = float(self.reach[0][:nodes] @ self.gain[0][:nodes])
        best = [np.empty(sequences.num_infosets, np.int8) for sequences in self.sequences]
        best_values = [_respond(self.sequences[p], self.gain[p], best[p]) for p in (0, 1)]
        found = Evaluation((value, -value), (best_values[0], best_values[1]), (best[0], best[1]))
        self.holder = found
        return found

    def _check(self, tables: Sequence[Float32Array]) -> None:
        shapes = [(sequences.num_infosets, sequences.cells) for sequences in self.sequences]
        if (got := [np.shape(table) for table in tables]) != shapes:
            raise PolicyError(f"a policy of this game is tables of shapes {shapes}; got {got}")
        for player in (0, 1):
            wrong = _first_invalid(self.sequences[player], tables[player])
            if wrong >= 0:
                raise PolicyError(
                    f"player {player}, information set {wrong}: {tables[player][wrong].tolist()} "
                    "are not probabilities of its legal actions"
                )

    def set_gains(self, player: int) -> None:
        """Write the counterfactual values of the ends right after each node of a player."""
        sequences = self.sequences[1 - player], self.sequences[player]
        reach, gain = self.reach[1 - player], self.gain[player]
        gain[:] = 0.0
        for product in self.products.by_target[player]:
            add_gains(product, self.products.work, sequences, reach, gain)

    def losses(self, player: int, table: Float32Array) -> Float64Array:
        """What the player loses at each information set to its best response: `(I_p,)`.

        The player's reach * (value of the best action - value of the policy's mixture), both with
        best play from there on. The arrays must hold the evaluation of that policy.
        """
        lost = np.empty(self.sequences[player].num_infosets)
        _write_losses(self.sequences[player], table, self.reach[player], self.gain[player], lost)
        return lost

    def infoset_reach(self, player: int, infoset: int) -> float:
        """The probability that play comes to an information set, by the policy last evaluated."""
        own = self.reach[player][node_of(self.sequences[player], infoset)]
        known = _known(self.sequences[player], self.rules.abrupt, infoset)
        other, reach = self.sequences[1 - player], self.reach[1 - player]
        wins = self.rules.wins[1 - player]
        return float(own) * _fitting_reach(other, reach, wins, self.rules.abrupt, known)


def _node_array(sequences: Sequences) -> Float64Array:
    """A number per node, and the two spare blocks."""
    return np.zeros(sequences.num_nodes + 2 * sequences.factorials[-1])


@part
def find_children(
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


@compiled
def write_reach(
    sequences: Sequences, weights: Float32Array | Float64Array, reach: Float64Array
) -> None:
    """Write the probability of each node by its owner's choices.

    The policy is proportional to the weights `(I, A)` above 0, and uniform where there are none.
    """
    actions, success, failure = np.empty((3, sequences.cells), np.uint64)
    reach[0] = 1.0
    for block in sequences.decisions:
        node = np.uint64(sequences.first_node[block])
        infoset = np.uint64(sequences.first_infoset[block])
        count, orders, failed_orders, step = find_children(
            sequences, block, actions, success, failure
        )
        for _ in range(failed_orders):
            for i in range(np.uint64(orders)):
                total = sum_positive(weights, infoset, actions, np.uint64(count))
                slope = reach[node] / total if total > 0 else 0.0
                offset = 0.0 if total > 0 else reach[node] / count
                for k in range(np.uint64(count)):
                    weight = max(np.float64(weights[infoset, actions[k]]), 0.0)
                    reach[success[k] + i] = reach[failure[k] + i] = slope * weight + offset
                node += np.uint64(1)
                infoset += np.uint64(1)
            success += np.uint64(step)
            failure += np.uint64(orders)


@part
def sum_positive(
    weights: Float32Array | Float64Array, infoset: np.uint64, actions: UInt64Array, count: np.uint64
) -> float:
    """The sum of the legal actions' weights above 0."""
    total = 0.0
    for k in range(count):
        total += max(np.float64(weights[infoset, actions[k]]), 0.0)
    return total


@compiled
def _respond(sequences: Sequences, gain: Float64Array, best: Int8Array) -> float:
    """Add to each node's gain the value of best play from there on; write best actions `(I,)`."""
    actions, success, failure = np.empty((3, sequences.cells), np.uint64)
    for d in range(len(sequences.decisions) - 1, -1, -1):
        block = sequences.decisions[d]
        node = np.uint64(sequences.first_node[block])
        infoset = np.uint64(sequences.first_infoset[block])
        count, orders, failed_orders, step = find_children(
            sequences, block, actions, success, failure
        )
        for _ in range(failed_orders):
            for i in range(np.uint64(orders)):
                top, action = -np.inf, np.uint64(0)
                for k in range(np.uint64(count)):
                    value = gain[success[k] + i] + gain[failure[k] + i]
                    if value > top:
                        top, action = value, actions[k]
                gain[node] += top
                best[infoset] = action
                node += np.uint64(1)
                infoset += np.uint64(1)
            success += np.uint64(step)
            failure += np.uint64(orders)
    best_value: float = gain[0]
    return best_value


@compiled
def _write_losses(
    sequences: Sequences,
    table: Float32Array,
    reach: Float64Array,
    gain: Float64Array,
    lost: Float64Array,
) -> None:
    """Write what is lost at each information set `(I,)`, given values of best play in `gain`."""
    actions, success, failure = np.empty((3, sequences.cells), np.uint64)
    for block in sequences.decisions:
        node = np.uint64(sequences.first_node[block])
        infoset = np.uint64(sequences.first_infoset[block])
        count, orders, failed_orders, step = find_children(
            sequences, block, actions, success, failure
        )
        for _ in range(failed_orders):
            for i in range(np.uint64(orders)):
                total = sum_positive(table, infoset, actions, np.uint64(count))
                top, mean = -np.inf, 0.0
                for k in range(np.uint64(count)):
                    value = gain[success[k] + i] + gain[failure[k] + i]
                    top = max(top, value)
                    weight = max(np.float64(table[infoset, actions[k]]), 0.0)
                    mean += value * (weight / total if total > 0 else 1.0 / count)
                lost[infoset] = reach[node] * (top - mean)
                node += np.uint64(1)
                infoset += np.uint64(1)
            success += np.uint64(step)
            failure += np.uint64(orders)


@compiled
def normalise(sequences: Sequences, table: Float32Array) -> None:
    """Make rows `(I, A)` of weights probabilities of the legal actions, in place."""
    actions, success, failure = np.empty((3, sequences.cells), np.uint64)
    for block in sequences.decisions:
        infoset = np.uint64(sequences.first_infoset[block])
        count, orders, failed_orders, _ = find_children(sequences, block, actions, success, failure)
        for _ in range(orders * failed_orders):
            total = sum_positive(table, infoset, actions, np.uint64(count))
            k = np.uint64(0)
            for action in range(np.uint64(sequences.cells)):
                if k < count and actions[k] == action:
                    weight = max(np.float64(table[infoset, action]), 0.0)
                    table[infoset, action] = weight / total if total > 0 else 1.0 / count
                    k += np.uint64(1)
                else:
                    table[infoset, action] = 0.0
            infoset += np.uint64(1)


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
    """A sequence of a player to act: its sets of cells, and when it tried each."""

    taken: int
    failed: int
    times: Int64Array  # (cells,), as in `algorithms.exact.phantom.products`
    others: int  # the other player's turns so far


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
def _fitting_reach(
    other: Sequences, reach: Float64Array, wins: BoolArray, abrupt: bool, known: _Known
) -> float:
    """The other player's reach, summed over its sequences that fit what a player knows.

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
                if _orders_fit(known, other.outcomes[block], abrupt, other.player, orders):
                    total += reach[node]
                node += 1
    return total


@part
def _orders_fit(
    known: _Known,
    outcomes: int,
    abrupt: bool,
    player: int,
    orders: tuple[Int64Array, Int64Array],
) -> bool:
    """Whether failures of either player come after the other one took the cell.

    `orders` are those in which the other player takes cells and fails.
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
