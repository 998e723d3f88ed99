"""Values, best responses and losses of a joint policy of a phantom game, and the CFR family.

In iteration t of CFR each player p in turn, with the other player's current policy fixed,

    q(I, a)  = counterfactual value of action a at information set I
    r(I, a)  = q(I, a) - sum_b policy(I, b) q(I, b)
    R(I, a) <- discount(R(I, a) + r(I, a))
    average(I, a) += t^gamma * reach_p(I) * policy(I, a)

and the next policy is proportional to the positive part of R (of R + r if predictive). Discounts
are those of `algorithms.cfr`, and so are the iterates, up to rounding: regrets and averages
are float32. The factored products give the sum over terminal histories.

An action at a node leads to two nodes: one if it succeeds and one if it fails. Either may not
exist (see `Evaluator`).
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from algorithms.cfr import Variant, Weights
from algorithms.compiled.jit import compiled, inlined, part
from algorithms.large_games import large_game
from algorithms.large_games.phantom.products import Product, add_terminal_values, make_products
from algorithms.large_games.phantom.rules import Rules
from algorithms.large_games.phantom.sequences import (
    Sequences,
    action_times,
    block_of,
    histories,
    length_of,
    make_sequences,
    size_of,
    write_actions,
)
from algorithms.large_games.solver import LargeGameSolver, Tables
from algorithms.nashconv import Loss, Measure
from algorithms.support.arrays import Float32Array, Float64Array, Int8Array, Int64Array, UInt64Array

Index: TypeAlias = np.uint64  # compiled code tests whether signed indices are negative
_Responses: TypeAlias = tuple[Int8Array, ...]
_NEVER = 99  # a time later than all times


class Evaluator:
    """A phantom game's sequences and products, with arrays that all evaluations share.

    `reach[p]` has the probability of each node of player p by its own choices, `values[p]` its
    counterfactual values. They take GiB on nine cells, so there is one of each, and
    `_holds_numbers_of` says whose numbers they have: those of the tables that were measured last,
    or those of the solver that ran last. None means that they are out of date.

    Behind its nodes each array has room for two blocks, as large as the largest block:

    from `num_nodes`          the *absent* block. Products read and write every block of a pattern,
                              also those that are no nodes. Reading gives reach 0; what is written
                              into values is never read.
    `_impossible_node(...)`   the *impossible* block. An action leads there if it cannot succeed, or
                              cannot fail. Reading gives value 0; the reach that is written is never
                              read.

    One block could not be both: what products write into values would be read there.
    """

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.num_actions = rules.cells
        self.sequences = (make_sequences(rules, 0), make_sequences(rules, 1))
        self.num_infosets: tuple[int, ...] = tuple(one.num_infosets for one in self.sequences)
        sizes = [one.num_nodes + 2 * one.factorials[-1] for one in self.sequences]
        self.reach = [np.zeros(size) for size in sizes]
        self.values = [np.zeros(size) for size in sizes]
        self._holds_numbers_of: Tables | PhantomSolver | None = None

    @cached_property
    def products(self) -> list[list[Product]]:
        """The terminal histories of the game, by the player whose values they give."""
        return make_products(self.rules, self.sequences)

    def random(self, seed: int) -> Tables:
        """A policy drawn uniformly from all policies."""
        generator = np.random.default_rng(seed)
        tables = []
        for count in self.num_infosets:
            shape = (count, self.num_actions)
            tables.append(generator.standard_exponential(shape, np.float32))
        for sequences, table in zip(self.sequences, tables, strict=True):
            _normalise(sequences, table)
        return tuple(tables)

    def make_solver(self, variant: Variant) -> "PhantomSolver":
        """A solver of the CFR family; its updates and the measures share their arrays."""
        return PhantomSolver(self, variant)

    def measure(self, tables: Tables) -> Measure:
        """Values, best responses and losses of a joint policy; rows are normalised in float64."""
        for player, sequences in enumerate(self.sequences):
            invalid = _first_invalid(sequences, tables[player])
            if invalid >= 0:
                raise large_game.invalid_row(tables, player, invalid)
        best_responses = tuple(np.empty(count, np.int8) for count in self.num_infosets)
        value, best_values = self._respond(tables, best_responses)
        return Measure(
            values=(value, -value),
            best_values=best_values,
            compute_best_responses=lambda: best_responses,
            compute_losses=lambda: self._largest_losses(tables, best_responses),
        )

    def _respond(
        self, tables: Tables, best_responses: _Responses
    ) -> tuple[float, tuple[float, ...]]:
        """Player 0's value and those of the best responses, whose actions are written."""
        self._holds_numbers_of = None
        for player in (0, 1):
            _write_reach(self.sequences[player], tables[player], self.reach[player])
        self.set_terminal_values(0)
        self.set_terminal_values(1)
        nodes = self.sequences[0].num_nodes
        value = float(self.reach[0][:nodes] @ self.values[0][:nodes])
        best_values = []
        for player in (0, 1):
            best_value = _best_response(
                self.sequences[player], self.values[player], best_responses[player]
            )
            best_values.append(best_value)
        self._holds_numbers_of = tables
        return value, tuple(best_values)

    def set_terminal_values(self, player: int) -> None:
        """Write the counterfactual values of terminal histories, by the player's last node."""
        other = 1 - player
        source_and_target = (self.sequences[other], self.sequences[player])
        values = self.values[player]
        values[:] = 0.0
        for product in self.products[player]:
            add_terminal_values(product, source_and_target, self.reach[other], values)

    def _largest_losses(self, tables: Tables, best_responses: _Responses) -> tuple[Loss, ...]:
        if self._holds_numbers_of is not tables:
            self._respond(tables, best_responses)
        lost = []
        for player, sequences in enumerate(self.sequences):
            arrays = _LossArrays(
                table=tables[player],
                reach=self.reach[player],
                values=self.values[player],
                lost=np.empty(sequences.num_infosets),
            )
            _write_losses(sequences, arrays)
            lost.append(arrays.lost)
        return large_game.largest_losses(tables, best_responses, lost, self.infoset_reach)

    def own_reach(self, tables: Tables) -> tuple[Float64Array, ...]:
        """The probability of each information set by its owner's own actions: `(I_p,)` each."""
        self._holds_numbers_of = None
        reach_of_infosets = []
        for sequences, table, reach in zip(self.sequences, tables, self.reach, strict=True):
            _write_reach(sequences, table, reach)
            by_infoset = np.empty(sequences.num_infosets)
            # A decision's information sets follow each other, and so do its nodes.
            starts = sequences.starts
            stops = np.append(starts[1:], sequences.num_infosets)
            nodes = sequences.first_node[sequences.decisions]
            for start, stop, node in zip(starts, stops, nodes, strict=True):
                by_infoset[start:stop] = reach[node : node + stop - start]
            reach_of_infosets.append(by_infoset)
        return tuple(reach_of_infosets)

    def infoset_reach(self, player: int, infoset: int) -> float:
        """The probability that a game arrives at an information set, by the last evaluation."""
        sequences = self.sequences[player]
        others = self.sequences[1 - player]
        actions, outcomes = histories(sequences, np.array([infoset]))
        times = action_times(int(outcomes[0]), player, self.rules.abrupt)
        own_turns = len(times.taken)
        if self.rules.abrupt:
            own_turns += len(times.failed)

        # When this player fails at each cell, and when it takes it.
        cell_times = np.full((2, sequences.cells), _NEVER)
        times_of: tuple[Iterator[int], Iterator[int]] = (iter(times.failed), iter(times.taken))
        for i, cell in enumerate(actions[0][actions[0] >= 0]):
            success = outcomes[0] >> i & 1
            cell_times[success, cell] = next(times_of[success])
        others_turns = own_turns + player
        others_reach = self.reach[1 - player]
        arrival = _consistent_reach(self.rules, others, others_reach, cell_times, others_turns)

        decision = np.searchsorted(sequences.starts, infoset, side="right") - 1
        block = sequences.decisions[decision]
        node = sequences.first_node[block] + infoset - sequences.first_infoset[block]
        return float(self.reach[player][node]) * arrival


class PhantomSolver(LargeGameSolver):
    """A solver of a phantom game; its updates and evaluations share the evaluator's arrays."""

    def __init__(self, evaluator: Evaluator, variant: Variant) -> None:
        shapes = {
            f"_{sequences.player}": (sequences.num_infosets, sequences.cells)
            for sequences in evaluator.sequences
        }
        super().__init__(variant, shapes)
        self._evaluator = evaluator

    def _update(self, player: int, weights: Weights) -> None:
        evaluator = self._evaluator
        if evaluator._holds_numbers_of is not self:
            self._write_reach(0)
            self._write_reach(1)
        evaluator.set_terminal_values(player)
        evaluator._holds_numbers_of = None  # until the update is complete, which Ctrl-C may prevent
        regrets, predicted, average = self._arrays(f"_{player}")
        arrays = _UpdateArrays(
            regrets=regrets,
            predicted=predicted,
            average=average,
            reach=evaluator.reach[player],
            values=evaluator.values[player],
            weights=weights,
        )
        _update_regrets(evaluator.sequences[player], arrays, self._updates)
        self._write_reach(player)
        evaluator._holds_numbers_of = self

    def _write_reach(self, player: int) -> None:
        _, predicted, _ = self._arrays(f"_{player}")
        _write_reach(self._evaluator.sequences[player], predicted, self._evaluator.reach[player])

    def _policy_of(self, kind: Literal["average", "predicted"]) -> Tables:
        """New tables in proportion to the averages, or to the predicted regrets above 0."""
        tables = tuple(self._weights(kind, f"_{player}").copy() for player in (0, 1))
        for sequences, table in zip(self._evaluator.sequences, tables, strict=True):
            _normalise(sequences, table)
        return tables

    def set_state(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Continue from a state of `get_state`, with the same results to the last bit."""
        super().set_state(state)
        self._evaluator._holds_numbers_of = None


# ---------------------------------------------------------------------------------------------
# A walk over all information sets of a player
# ---------------------------------------------------------------------------------------------


class Children(NamedTuple):
    """The legal actions of a block's sequences, and the nodes to which they lead."""

    num_actions: Index  # k legal ones
    actions: UInt64Array  # (cells,), of which k are used
    success: UInt64Array  # (cells,): the node after each action's success, and
    failure: UInt64Array  # (cells,): after its failure, for the first order of the taken cells


# Inlined together with `visit`: compiled code that passes functions could not be cached on disk.
@inlined
def _for_each_infoset(
    sequences: Sequences, visit: Callable[..., None], arrays: Any, last_first: bool
) -> None:
    """Call `visit(arrays, node, infoset, children, i)` at every information set of a player.

    Parents come first, or last if `last_first`. Action k leads to the nodes
    `children.success[k] + i` and `children.failure[k] + i`. `arrays` is what `visit` reads and
    writes: a NamedTuple of its own, or one array.
    """
    memory = np.empty((3, sequences.cells), np.uint64)
    actions, success, failure = memory
    num_decisions = len(sequences.decisions)
    for d in range(num_decisions):
        block = sequences.decisions[num_decisions - 1 - d if last_first else d]
        node = Index(sequences.first_node[block])
        infoset = Index(sequences.first_infoset[block])
        count, orders, failed_orders, step = _find_children(sequences, block, memory)
        children = Children(Index(count), actions, success, failure)
        # All orders of the failed cells, and for each of them all orders of the taken ones.
        for _ in range(failed_orders):
            for i in range(Index(orders)):
                visit(arrays, node, infoset, children, i)
                node += Index(1)
                infoset += Index(1)
            success += Index(step)
            failure += Index(orders)


@part
def _find_children(
    sequences: Sequences, block: int, children: UInt64Array
) -> tuple[int, int, int, int]:
    """Write a block's legal actions and the first nodes after their success and their failure.

    Returns how many actions there are, the number of orders of the taken and of the failed cells,
    and how far apart the children of consecutive orders of the failed cells are upon success.
    """
    taken = sequences.taken[block]
    failed = sequences.failed[block]
    outcomes = sequences.outcomes[block]
    num_taken = size_of(taken)
    orders = sequences.factorials[num_taken]
    failed_orders = sequences.factorials[size_of(failed)]
    # The outcomes with one more failure or success: the 1 above them moves up by one bit.
    mark = 1 << length_of(outcomes)
    with_failure = outcomes + mark
    with_success = outcomes + 2 * mark
    count = 0
    for cell in range(sequences.cells):
        bit = 1 << cell
        if not (taken | failed) & bit:
            # The new cell is the last of its order: it moves the run by its place in the set.
            smaller = bit - 1  # the set of all smaller cells
            in_taken = size_of(taken & smaller)
            in_failed = size_of(failed & smaller)
            success = _first_node(sequences, with_success, taken | bit, failed)
            failure = _first_node(sequences, with_failure, taken, failed | bit)
            children[0, count] = cell
            children[1, count] = success + in_taken * orders
            children[2, count] = failure + in_failed * failed_orders * orders
            count += 1
    return count, orders, failed_orders, orders * (num_taken + 1)


@part
def _first_node(sequences: Sequences, outcomes: int, taken: int, failed: int) -> int:
    """The first node of a block, or that of the impossible block if it cannot occur."""
    if sequences.first_block[outcomes] >= 0:
        node = sequences.first_node[block_of(sequences, outcomes, taken, failed)]
        if node < sequences.num_nodes:
            return int(node)
    return _impossible_node(sequences)


@part
def _impossible_node(sequences: Sequences) -> int:
    """The first node of the impossible block (see `Evaluator`)."""
    return int(sequences.num_nodes + sequences.factorials[-1])


# ---------------------------------------------------------------------------------------------
# What is done at an information set. In each walk the first function starts it, and the second is
# called at every information set.
# ---------------------------------------------------------------------------------------------


@part
def _sum_positive(weights: Float32Array, infoset: Index, children: Children) -> float:
    """The sum of the legal actions' weights above 0."""
    total = 0.0
    for k in range(children.num_actions):
        total += max(np.float64(weights[infoset, children.actions[k]]), 0.0)
    return total


class _ReachArrays(NamedTuple):
    """What `_reach_children` reads and writes."""

    weights: Float32Array  # (I, A)
    reach: Float64Array  # by node


@compiled
def _write_reach(sequences: Sequences, weights: Float32Array, reach: Float64Array) -> None:
    """Write the probability of each node by its owner's choices.

    The policy is proportional to the weights `(I, A)` above 0, and uniform where there are none.
    """
    reach[0] = 1.0
    _for_each_infoset(sequences, _reach_children, _ReachArrays(weights, reach), False)


@inlined
def _reach_children(
    arrays: _ReachArrays, node: Index, infoset: Index, children: Children, i: Index
) -> None:
    """Write the reach of the nodes that follow an information set."""
    weights = arrays.weights
    reach = arrays.reach
    # The reach of a child is `slope * weight + offset`: one of the two is 0.
    total = _sum_positive(weights, infoset, children)
    slope = reach[node] / total if total > 0 else 0.0
    offset = 0.0 if total > 0 else reach[node] / np.int64(children.num_actions)
    for k in range(children.num_actions):
        weight = max(np.float64(weights[infoset, children.actions[k]]), 0.0)
        child_reach = slope * weight + offset
        reach[children.success[k] + i] = child_reach
        reach[children.failure[k] + i] = child_reach


class _BestArrays(NamedTuple):
    """What `_add_best` reads and writes."""

    values: Float64Array  # by node
    best: Int8Array  # (I,)


@compiled
def _best_response(sequences: Sequences, values: Float64Array, best: Int8Array) -> float:
    """Add the values of best play to the nodes' values; write best actions `(I,)`."""
    _for_each_infoset(sequences, _add_best, _BestArrays(values, best), True)
    return float(values[0])


@inlined
def _add_best(
    arrays: _BestArrays, node: Index, infoset: Index, children: Children, i: Index
) -> None:
    """Add the best action's value to a node's, and write that action."""
    values = arrays.values
    highest = -np.inf
    action = Index(0)
    for k in range(children.num_actions):
        value = values[children.success[k] + i] + values[children.failure[k] + i]
        if value > highest:
            highest = value
            action = children.actions[k]
    values[node] += highest
    arrays.best[infoset] = action


class _LossArrays(NamedTuple):
    """What `_write_loss` reads and writes."""

    table: Float32Array  # (I, A)
    reach: Float64Array  # by node
    values: Float64Array  # of best play, by node
    lost: Float64Array  # (I,)


@compiled
def _write_losses(sequences: Sequences, arrays: _LossArrays) -> None:
    """Write losses, given a table, reach and values of best play."""
    _for_each_infoset(sequences, _write_loss, arrays, False)


@inlined
def _write_loss(
    arrays: _LossArrays, node: Index, infoset: Index, children: Children, i: Index
) -> None:
    """Write what a policy loses at an information set: the best value less the mean."""
    table = arrays.table
    values = arrays.values
    total = _sum_positive(table, infoset, children)
    highest = -np.inf
    mean = 0.0
    for k in range(children.num_actions):
        value = values[children.success[k] + i] + values[children.failure[k] + i]
        highest = max(highest, value)
        mean += value * max(np.float64(table[infoset, children.actions[k]]), 0.0) / total
    arrays.lost[infoset] = arrays.reach[node] * (highest - mean)


@compiled
def _normalise(sequences: Sequences, table: Float32Array) -> None:
    """Make rows `(I, A)` of weights probabilities of the legal actions, in place."""
    _for_each_infoset(sequences, _normalise_row, table, False)


@inlined
def _normalise_row(
    table: Float32Array, node: Index, infoset: Index, children: Children, i: Index
) -> None:
    """Make a row of weights probabilities: uniform if none is above 0, and 0 if illegal."""
    total = _sum_positive(table, infoset, children)
    k = Index(0)  # number of the next legal action
    for action in range(Index(table.shape[1])):
        if k < children.num_actions and children.actions[k] == action:
            weight = max(np.float64(table[infoset, action]), 0.0)
            uniform = 1.0 / np.int64(children.num_actions)
            table[infoset, action] = weight / total if total > 0 else uniform
            k += Index(1)
        else:
            table[infoset, action] = 0.0


@compiled
def _first_invalid(sequences: Sequences, table: Float32Array) -> int:
    """The first information set whose row is not a distribution over legal actions, or -1."""
    starts = sequences.starts
    for d, block in enumerate(sequences.decisions):
        tried = sequences.taken[block] | sequences.failed[block]
        stop = starts[d + 1] if d + 1 < len(starts) else len(table)
        for row in range(starts[d], stop):
            legal_sum = 0.0
            absolute_sum = 0.0  # over all actions: larger if one is negative or illegal
            for action in range(sequences.cells):
                absolute_sum += abs(table[row, action])
                legal_sum += 0.0 if tried >> action & 1 else table[row, action]
            sums_to_1 = abs(legal_sum - 1) <= large_game.ROW_SUM_TOLERANCE
            if not (sums_to_1 and absolute_sum == legal_sum):  # also if it has NaN
                return row
    return -1


@compiled
def _consistent_reach(
    rules: Rules, others: Sequences, reach: Float64Array, times: Int64Array, turns: int
) -> float:
    """The sum of the other player's reach over its sequences that are consistent with one.

    `times` are those at which that sequence fails at each cell and takes it, `(2, cells)`. The
    other player has completed `turns` turns. This tests one sequence after another, which takes
    milliseconds.
    """
    own_failed = 0
    own_taken = 0
    for cell in range(rules.cells):
        own_failed |= (times[0, cell] < _NEVER) << cell
        own_taken |= (times[1, cell] < _NEVER) << cell
    total = 0.0
    actions = np.empty(rules.cells, np.int8)
    for block in range(len(others.taken)):
        taken = others.taken[block]
        failed = others.failed[block]
        outcomes = others.outcomes[block]
        length = length_of(outcomes)

        # The sets of cells are consistent, and the game goes on.
        other_turns = length if rules.abrupt else size_of(taken)
        ends_turn = length == 0 or rules.abrupt or outcomes >> (length - 1) & 1
        if other_turns != turns or not ends_turn:
            continue
        if taken & own_taken or own_failed & ~taken or failed & ~own_taken:
            continue
        if rules.wins[others.player, taken] or size_of(taken | own_taken) == rules.cells:
            continue

        # So are the times: each failure comes after the cell was taken.
        size = others.factorials[size_of(taken)] * others.factorials[size_of(failed)]
        for number in range(size):
            write_actions(others, block, number, actions)
            consistent = True
            turn = 0
            for i in range(length):
                success = outcomes >> i & 1
                time = 2 * turn + 1 + others.player
                if success:  # this player may have failed at the cell, later
                    consistent &= times[0, actions[i]] > time
                else:
                    consistent &= times[1, actions[i]] < time
                turn += 1 if rules.abrupt else success
            if consistent:
                total += reach[others.first_node[block] + number]
    return total


class _UpdateArrays(NamedTuple):
    """What `_update_row` reads and writes."""

    regrets: Float32Array  # (I, A), as are the next two
    predicted: Float32Array  # `regrets` itself without prediction
    average: Float32Array
    reach: Float64Array  # by node
    values: Float64Array  # by node: of terminal histories, to which those of the policy are added
    weights: Weights


@compiled
def _update_regrets(sequences: Sequences, arrays: _UpdateArrays, updates: Int64Array) -> None:
    """Update regrets, predicted regrets and averages from the last decisions to the first."""
    _for_each_infoset(sequences, _update_row, arrays, True)
    updates[0] += 1


@inlined
def _update_row(
    arrays: _UpdateArrays, node: Index, infoset: Index, children: Children, i: Index
) -> None:
    """Update the numbers of one information set, and add its value to its node's."""
    regrets = arrays.regrets
    predicted = arrays.predicted
    values = arrays.values
    weights = arrays.weights

    # The policy: `slope * regret + offset`, of which one is 0.
    total = _sum_positive(predicted, infoset, children)
    slope = 1.0 / total if total > 0 else 0.0
    offset = 0.0 if total > 0 else 1.0 / np.int64(children.num_actions)
    mean = 0.0
    for k in range(children.num_actions):
        action = children.actions[k]
        value = values[children.success[k] + i] + values[children.failure[k] + i]
        probability = slope * max(predicted[infoset, action], 0.0) + offset
        mean += probability * value
        arrays.average[infoset, action] += weights.average * arrays.reach[node] * probability

    for k in range(children.num_actions):
        action = children.actions[k]
        value = values[children.success[k] + i] + values[children.failure[k] + i]
        newest = value - mean
        regret = regrets[infoset, action] + newest
        regret *= weights.discount_positive if regret >= 0 else weights.discount_negative
        regrets[infoset, action] = regret
        predicted[infoset, action] = regret + weights.prediction * newest
    values[node] += mean
