"""Reach probabilities, values, best responses and losses of a joint policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from algorithms.exact.phantom.products import add_gains, make_products
from algorithms.exact.phantom.rules import Rules
from algorithms.exact.phantom.sequences import Sequences, block_of, make_sequences
from algorithms.support.arrays import Float32Array, Float64Array, Int8Array, Int64Array
from algorithms.support.compiled import compiled, part


class Evaluation(NamedTuple):
    """What a joint policy wins and what best responses win against it, in chips per game."""

    values: tuple[float, float]
    best_values: tuple[float, float]
    best_response: tuple[Int8Array, Int8Array]  # (I_p,) actions


class PhantomGame:
    """The sequences and products of a game, and arrays for evaluating policies, kept for reuse."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.sequences = make_sequences(rules, 0), make_sequences(rules, 1)
        self.products = make_products(rules, self.sequences)
        self.reach = tuple(map(node_array, self.sequences))
        self.gain = tuple(map(node_array, self.sequences))

    def add_gains(self, player: int) -> None:
        """Set the player's counterfactual values of all ends, given the other player's reach."""
        self.gain[player][:] = 0.0
        for product in self.products.by_target[player]:
            add_gains(
                product,
                self.products.shared,
                self.products.buffers,
                self.sequences[1 - player],
                self.sequences[player],
                self.reach[1 - player],
                self.gain[player],
            )

    def evaluate(self, tables: Sequence[Float32Array]) -> Evaluation:
        for player in (0, 1):
            write_reach(self.sequences[player], tables[player], self.reach[player])
        best, responses, value = [], [], 0.0
        for player in (0, 1):
            self.add_gains(player)
            if player == 0:
                value = float(self.reach[0] @ self.gain[0])
            actions = np.empty(self.sequences[player].num_infosets, np.int8)
            best.append(respond(self.sequences[player], self.gain[player], actions))
            responses.append(actions)
        return Evaluation((value, -value), (best[0], best[1]), (responses[0], responses[1]))


def node_array(sequences: Sequences) -> Float64Array:
    """A number for each node, and a spare block for those that cannot be reached."""
    return np.zeros(sequences.num_nodes + sequences.factorials[-1])


@part
def children(sequences: Sequences, block: int, actions: Int64Array, success: Int64Array, failure: Int64Array) -> int:
    """Write a block's legal actions and where the runs of its children begin; how many actions.

    `success` gives the node of the first order, `failure` likewise; num_nodes or above: there is none.
    """
    outcomes, taken, failed = np.int64(sequences.outcomes[block]), np.int64(sequences.taken[block]), np.int64(sequences.failed[block])
    longer = 1
    while longer << 1 <= outcomes:
        longer <<= 1
    count = 0
    num_taken, num_failed = 0, 0
    for cell in range(sequences.cells):
        num_taken += (taken >> cell) & 1
        num_failed += (failed >> cell) & 1
    taken_before, failed_before = 0, 0
    for cell in range(sequences.cells):
        bit = 1 << cell
        if taken & bit:
            taken_before += 1
        elif failed & bit:
            failed_before += 1
        else:
            actions[count] = cell
            success[count] = failure[count] = sequences.num_nodes
            if sequences.first_block[outcomes + 2 * longer] >= 0:
                node = sequences.first_node[block_of(sequences, outcomes + 2 * longer, taken | bit, failed)]
                if node < sequences.num_nodes:
                    success[count] = node + taken_before * sequences.factorials[num_taken]
            if sequences.first_block[outcomes + longer] >= 0:
                node = sequences.first_node[block_of(sequences, outcomes + longer, taken, failed | bit)]
                if node < sequences.num_nodes:
                    failure[count] = node + failed_before * sequences.factorials[num_failed] * sequences.factorials[num_taken]
            count += 1
    return count


@compiled
def write_reach(sequences: Sequences, table: Float32Array, reach: Float64Array) -> None:
    """Write the probability of each sequence by its owner's choices under `(I, A)`."""
    actions, success, failure = np.empty((3, sequences.cells), np.int64)
    none = sequences.num_nodes
    reach[0] = 1.0
    for block in sequences.decisions:
        count = children(sequences, block, actions, success, failure)
        orders, failed_orders = orders_of(sequences, block)
        node, infoset = sequences.first_node[block], sequences.first_infoset[block]
        for i in range(failed_orders):
            for j in range(orders):
                total = 0.0
                for a in range(count):
                    total += table[infoset, actions[a]]
                for a in range(count):
                    probability = reach[node] * (table[infoset, actions[a]] / total)
                    if success[a] < none:
                        reach[success[a] + j] = probability
                    if failure[a] < none:
                        reach[failure[a] + j] = probability
                node += 1
                infoset += 1
            for a in range(count):
                success[a] += orders * (taken_of(sequences, block) + 1) if success[a] < none else 0
                failure[a] += orders if failure[a] < none else 0


@part
def orders_of(sequences: Sequences, block: int) -> tuple[int, int]:
    taken, failed = 0, 0
    for cell in range(sequences.cells):
        taken += (sequences.taken[block] >> cell) & 1
        failed += (sequences.failed[block] >> cell) & 1
    return sequences.factorials[taken], sequences.factorials[failed]


@part
def taken_of(sequences: Sequences, block: int) -> int:
    taken = 0
    for cell in range(sequences.cells):
        taken += (sequences.taken[block] >> cell) & 1
    return taken


@compiled
def respond(sequences: Sequences, gain: Float64Array, best: Int8Array) -> float:
    """Turn gains into values of best responses, from the last decisions to the first."""
    actions, success, failure = np.empty((3, sequences.cells), np.int64)
    none = sequences.num_nodes
    for i in range(len(sequences.decisions) - 1, -1, -1):
        block = sequences.decisions[i]
        count = children(sequences, block, actions, success, failure)
        orders, failed_orders = orders_of(sequences, block)
        node, infoset = sequences.first_node[block], sequences.first_infoset[block]
        for _ in range(failed_orders):
            for j in range(orders):
                top = -np.inf
                for a in range(count):
                    value = 0.0
                    if success[a] < none:
                        value += gain[success[a] + j]
                    if failure[a] < none:
                        value += gain[failure[a] + j]
                    if value > top:
                        top = value
                        best[infoset] = actions[a]
                gain[node] += top
                node += 1
                infoset += 1
            for a in range(count):
                success[a] += orders * (taken_of(sequences, block) + 1) if success[a] < none else 0
                failure[a] += orders if failure[a] < none else 0
    return gain[0]
