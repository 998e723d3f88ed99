"""Values, best responses and losses of a joint policy of a phantom game, and the CFR family.

In iteration t of CFR each player p in turn, with the other player's current policy fixed,

    q(I, a)  = counterfactual value of action a at information set I
    r(I, a)  = q(I, a) - sum_b policy(I, b) q(I, b)
    R(I, a) <- discount(R(I, a) + r(I, a))
    average(I, a) += t^gamma * reach_p(I) * policy(I, a)

and the next policy is proportional to the positive part of R (of R + r if predictive). Discounts
are those of `algorithms.cfr`, and so are the iterates, up to rounding: regrets and averages
are float32. The factored products give the sum over terminal histories.
"""

from collections.abc import Callable, Mapping
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
_NEVER = 99  # later than all times


class Evaluator:
    """A phantom game's sequences and products, with arrays that all evaluations share.

    `reach[p]` has the probability of each node of player p by its own choices, `values[p]` its
    counterfactual values. Both end with two spare blocks: products find a block that cannot occur
    in the first of them, and actions lead to the second where an outcome is impossible. So the
    first one of `reach` and the second one of `values` are only read and stay 0.
    """

    def __init__(self, rules: Rules) -> None:
        self.rules, self.num_actions = rules, rules.cells
        self.sequences = make_sequences(rules, 0), make_sequences(rules, 1)
        self.num_infosets: tuple[int, ...] = tuple(x.num_infosets for x in self.sequences)
        self.holder: object = None  # the tables or the solver whose numbers the arrays hold
        sizes = [x.num_nodes + 2 * x.factorials[-1] for x in self.sequences]
        self.reach, self.values = ([np.zeros(size) for size in sizes] for _ in range(2))

    @cached_property
    def products(self) -> list[list[Product]]:
        """The terminal histories of the game, by the player whose values they give."""
        return make_products(self.rules, self.sequences)

    def random(self, seed: int) -> Tables:
        """A policy drawn uniformly from all policies."""
        draw = np.random.default_rng(seed).standard_exponential
        tables = tuple(draw((count, self.num_actions), np.float32) for count in self.num_infosets)
        for sequences, table in zip(self.sequences, tables, strict=True):
            _normalise(sequences, table)
        return tables

    def make_solver(self, variant: Variant) -> "PhantomSolver":
        """A solver of the CFR family; its updates and the measures share their arrays."""
        return PhantomSolver(self, variant)

    def measure(self, tables: Tables) -> Measure:
        """Values, best responses and losses of a joint policy; rows are normalised in float64."""
        for player, sequences in enumerate(self.sequences):
            if (invalid := _first_invalid(sequences, tables[player])) >= 0:
                raise large_game.invalid_row(tables, player, invalid)
        best = tuple(np.empty(count, np.int8) for count in self.num_infosets)
        value, best_values = self._respond(tables, best)
        return Measure(
            (value, -value), best_values, lambda: best, lambda: self._largest_losses(tables, best)
        )

    def _respond(self, tables: Tables, best: _Responses) -> tuple[float, tuple[float, ...]]:
        """Player 0's value and those of the best responses, whose actions are written to `best`."""
        self.holder = None
        for player in (0, 1):
            _write_reach(self.sequences[player], tables[player], self.reach[player])
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
        for product in self.products[player]:
            add_terminal_values(product, sequences, reach, values)

    def _largest_losses(self, tables: Tables, best: _Responses) -> tuple[Loss, ...]:
        if self.holder is not tables:
            self._respond(tables, best)
        lost = [np.empty(count) for count in self.num_infosets]
        for p, sequences in enumerate(self.sequences):
            _write_losses(sequences, (tables[p], self.reach[p], self.values[p], lost[p]))
        return large_game.largest_losses(tables, best, lost, self.infoset_reach)

    def own_reach(self, tables: Tables) -> tuple[Float64Array, ...]:
        """The probability of each information set by its owner's own actions: `(I_p,)` each."""
        self.holder = None
        found = []
        for sequences, table, reach in zip(self.sequences, tables, self.reach, strict=True):
            _write_reach(sequences, table, reach)
            by_infoset = np.empty(sequences.num_infosets)
            # A decision's information sets follow each other, and so do its nodes.
            starts = sequences.starts
            stops = np.append(starts[1:], sequences.num_infosets)
            nodes = sequences.first_node[sequences.decisions]
            for start, stop, node in zip(starts, stops, nodes, strict=True):
                by_infoset[start:stop] = reach[node : node + stop - start]
            found.append(by_infoset)
        return tuple(found)

    def infoset_reach(self, player: int, infoset: int) -> float:
        """The probability that a game arrives at an information set, by the last evaluation."""
        own, abrupt = self.sequences[player], self.rules.abrupt
        (actions,), (outcomes,) = histories(own, np.array([infoset]))
        taken, failed = action_times(int(outcomes), player, abrupt)
        turns = len(taken) + abrupt * len(failed) + player  # of the other player
        times, clocks = np.full((2, own.cells), _NEVER), (iter(failed), iter(taken))
        for i, cell in enumerate(actions[actions >= 0]):
            success = outcomes >> i & 1
            times[success, cell] = next(clocks[success])
        others, reach = self.sequences[1 - player], self.reach[1 - player]
        arrival = _consistent_reach(self.rules, others, reach, times, turns)
        block = own.decisions[np.searchsorted(own.starts, infoset, side="right") - 1]
        node = own.first_node[block] + infoset - own.first_infoset[block]
        return float(self.reach[player][node]) * arrival


class PhantomSolver(LargeGameSolver):
    """A solver of a phantom game; its updates and evaluations share the evaluator's arrays."""

    def __init__(self, evaluator: Evaluator, variant: Variant) -> None:
        shapes = {f"_{x.player}": (x.num_infosets, x.cells) for x in evaluator.sequences}
        super().__init__(variant, shapes)
        self._evaluator = evaluator

    def _update(self, player: int, weights: Weights) -> None:
        evaluator, arrays = self._evaluator, self._arrays(f"_{player}")
        if evaluator.holder is not self:
            self._write_reach(0)
            self._write_reach(1)
        evaluator.set_terminal_values(player)
        evaluator.holder = None
        numbers = evaluator.reach[player], evaluator.values[player], weights
        _update_regrets(evaluator.sequences[player], (*arrays, *numbers), self._updates)
        self._write_reach(player)
        evaluator.holder = self

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
        self._evaluator.holder = None


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
    `children.success[k] + i` and `children.failure[k] + i`.
    """
    actions, success, failure = every = np.empty((3, sequences.cells), np.uint64)
    for d in range(len(sequences.decisions)):
        block = sequences.decisions[len(sequences.decisions) - 1 - d if last_first else d]
        node, infoset = Index(sequences.first_node[block]), Index(sequences.first_infoset[block])
        count, orders, failed_orders, step = _find_children(sequences, block, every)
        children = Children(Index(count), actions, success, failure)
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
    taken, failed, outcomes = (
        sequences.taken[block],
        sequences.failed[block],
        sequences.outcomes[block],
    )
    held, lost, more = size_of(taken), size_of(failed), 1 << length_of(outcomes)
    orders, failed_orders = sequences.factorials[held], sequences.factorials[lost]
    count = 0
    for cell in range(sequences.cells):
        bit = 1 << cell
        if not (taken | failed) & bit:
            # The new cell is the last of its order: it moves the run by its place in the set.
            in_taken, in_failed = size_of(taken & (bit - 1)), size_of(failed & (bit - 1))
            success = _first_node(sequences, outcomes + 2 * more, taken | bit, failed)
            failure = _first_node(sequences, outcomes + more, taken, failed | bit)
            children[0, count], children[1, count] = cell, success + in_taken * orders
            children[2, count] = failure + in_failed * failed_orders * orders
            count += 1
    return count, orders, failed_orders, orders * (held + 1)


@part
def _first_node(sequences: Sequences, outcomes: int, taken: int, failed: int) -> int:
    """The first node of a block, or the second spare block if it cannot occur."""
    if sequences.first_block[outcomes] >= 0:
        node = sequences.first_node[block_of(sequences, outcomes, taken, failed)]
        if node < sequences.num_nodes:
            return int(node)
    return int(sequences.num_nodes + sequences.factorials[-1])


@part
def _sum_positive(weights: Float32Array, infoset: Index, children: Children) -> float:
    """The sum of the legal actions' weights above 0."""
    total = 0.0
    for k in range(children.num_actions):
        total += max(np.float64(weights[infoset, children.actions[k]]), 0.0)
    return total


@compiled
def _write_reach(sequences: Sequences, weights: Float32Array, reach: Float64Array) -> None:
    """Write the probability of each node by its owner's choices.

    The policy is proportional to the weights `(I, A)` above 0, and uniform where there are none.
    """
    reach[0] = 1.0
    _for_each_infoset(sequences, _reach_children, (weights, reach), False)


@inlined
def _reach_children(arrays: Any, node: Index, infoset: Index, children: Children, i: Index) -> None:
    weights, reach = arrays
    total = _sum_positive(weights, infoset, children)
    slope = reach[node] / total if total > 0 else 0.0
    offset = 0.0 if total > 0 else reach[node] / np.int64(children.num_actions)
    for k in range(children.num_actions):
        weight = max(np.float64(weights[infoset, children.actions[k]]), 0.0)
        probability = slope * weight + offset
        reach[children.success[k] + i] = reach[children.failure[k] + i] = probability


@compiled
def _best_response(sequences: Sequences, values: Float64Array, best: Int8Array) -> float:
    """Add the values of best play to the nodes' values; write best actions `(I,)`."""
    _for_each_infoset(sequences, _add_best, (values, best), True)
    return float(values[0])


@inlined
def _add_best(arrays: Any, node: Index, infoset: Index, children: Children, i: Index) -> None:
    values, best = arrays
    highest, action = -np.inf, Index(0)
    for k in range(children.num_actions):
        value = values[children.success[k] + i] + values[children.failure[k] + i]
        if value > highest:
            highest, action = value, children.actions[k]
    values[node] += highest
    best[infoset] = action


@compiled
def _write_losses(sequences: Sequences, arrays: tuple[Any, ...]) -> None:
    """Write losses `(I,)`, given table, reach and values of best play; `arrays` are these four."""
    _for_each_infoset(sequences, _write_loss, arrays, False)


@inlined
def _write_loss(arrays: Any, node: Index, infoset: Index, children: Children, i: Index) -> None:
    table, reach, values, lost = arrays
    total = _sum_positive(table, infoset, children)
    highest, mean = -np.inf, 0.0
    for k in range(children.num_actions):
        value = values[children.success[k] + i] + values[children.failure[k] + i]
        highest = max(highest, value)
        mean += value * max(np.float64(table[infoset, children.actions[k]]), 0.0) / total
    lost[infoset] = reach[node] * (highest - mean)


@compiled
def _normalise(sequences: Sequences, table: Float32Array) -> None:
    """Make rows `(I, A)` of weights probabilities of the legal actions, in place."""
    _for_each_infoset(sequences, _normalise_row, table, False)


@inlined
def _normalise_row(table: Any, node: Index, infoset: Index, children: Children, i: Index) -> None:
    total, k = _sum_positive(table, infoset, children), Index(0)
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
        for row in range(starts[d], starts[d + 1] if d + 1 < len(starts) else len(table)):
            legal = every = 0.0
            for action in range(sequences.cells):
                every += abs(table[row, action])
                legal += 0.0 if tried >> action & 1 else table[row, action]
            if not (abs(legal - 1) <= large_game.ROW_SUM_TOLERANCE and every == legal):
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
    own_failed = own_taken = 0
    for cell in range(rules.cells):
        own_failed |= (times[0, cell] < _NEVER) << cell
        own_taken |= (times[1, cell] < _NEVER) << cell
    total, actions = 0.0, np.empty(rules.cells, np.int8)
    for block in range(len(others.taken)):
        taken, failed, outcomes = others.taken[block], others.failed[block], others.outcomes[block]
        length = length_of(outcomes)
        if (
            (length if rules.abrupt else size_of(taken)) != turns
            or not (length == 0 or rules.abrupt or outcomes >> (length - 1) & 1)
            or taken & own_taken
            or own_failed & ~taken
            or failed & ~own_taken
            or rules.wins[others.player, taken]
            or size_of(taken | own_taken) == rules.cells
        ):
            continue
        size = others.factorials[size_of(taken)] * others.factorials[size_of(failed)]
        for number in range(size):
            write_actions(others, block, number, actions)
            consistent, turn = True, 0
            for i in range(length):
                # Each failure comes after the other player has taken the cell.
                success, time = outcomes >> i & 1, 2 * turn + 1 + others.player
                own = times[1 - success, actions[i]]
                consistent &= own > time if success else own < time
                turn += 1 if rules.abrupt else success
            if consistent:
                total += reach[others.first_node[block] + number]
    return total


@compiled
def _update_regrets(sequences: Sequences, arrays: tuple[Any, ...], updates: Int64Array) -> None:
    """Update regrets, predicted regrets and averages from the last decisions to the first.

    `arrays` are these three, reach, the values of terminal histories, to which the values of the
    current policy are added, and the weights of the iteration.
    """
    _for_each_infoset(sequences, _update_row, arrays, True)
    updates[0] += 1


@inlined
def _update_row(arrays: Any, node: Index, infoset: Index, children: Children, i: Index) -> None:
    regrets, predicted, average, reach, values, weights = arrays
    discount_positive, discount_negative, weight, prediction = weights
    total = _sum_positive(predicted, infoset, children)
    slope = 1.0 / total if total > 0 else 0.0
    offset = 0.0 if total > 0 else 1.0 / np.int64(children.num_actions)
    mean = 0.0
    for k in range(children.num_actions):
        action = children.actions[k]
        value = values[children.success[k] + i] + values[children.failure[k] + i]
        probability = slope * max(predicted[infoset, action], 0.0) + offset
        mean += probability * value
        average[infoset, action] += weight * reach[node] * probability
    for k in range(children.num_actions):
        action = children.actions[k]
        new = values[children.success[k] + i] + values[children.failure[k] + i] - mean
        regret = regrets[infoset, action] + new
        regret *= discount_positive if regret >= 0 else discount_negative
        regrets[infoset, action] = regret
        predicted[infoset, action] = regret + prediction * new
    values[node] += mean
