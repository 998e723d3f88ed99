"""The CFR family on Liar's Dice, over the public states of `algorithms.exact.liars_dice`.

One iteration is one walk per player. With r(x) the mover's range and v(a, x) the counterfactual
value of action a with private state x, both under the current policy p:

    regret(a, x)  <-  discount * (regret(a, x) + v(a, x) - sum over b of p(b, x) v(b, x))
    average(a, x) <-  average(a, x) + t^gamma * r(x) * p(a, x)

and p is proportional to the positive part of the regrets (`Variant` has the exponents). Only legal
actions are stored. A public state with k bids left has k + 1 of them, "liar" and then the bids from
the highest to the lowest, each a vector over the n private states. The code c > 0 has k zeros below
its lowest one, and those numbers sum to m - ones(m) over the codes 1 .. m: the first vector of c is
(B + 1) + 2 (c - 1) - ones(c - 1). (The first public state has an unused vector for "liar".)
"""

import numpy as np
import numpy.typing as npt

from algorithms.exact.cfr import Variant, Weights
from algorithms.exact.liars_dice import (
    Rules,
    Stack,
    call_values,
    count_ones,
    count_zeros_below,
    enter,
    new_stack,
    num_infosets,
)
from algorithms.exact.native import FloatArray, NativeSolver, Tables
from algorithms.support.arrays import Float32Array, Float64Array, Int64Array
from algorithms.support.compiled import compiled, inlined


class LiarsDiceSolver(NativeSolver):
    """A solver of Liar's Dice; with float32 two dice of five sides take 240 MiB.

    Predictive variants take 50% more.
    """

    def __init__(
        self, rules: Rules, variant: Variant, *, dtype: npt.DTypeLike = np.float32
    ) -> None:
        bids = len(rules.quantity)
        shape = _first_vector(1 << bids, bids), len(rules.chance)
        super().__init__(variant, {"": shape}, dtype)
        self.rules = rules

    def _update(self, player: int, weights: Weights) -> None:
        vectors = self._regret[0], self._predicted[0], self._average[0]
        _iterate(self.rules, vectors, player, weights, self._updates)

    def average_policy(self) -> Tables:
        """The average policy, which converges; uniform where its owner never arrives."""
        shape = num_infosets(self.rules), len(self.rules.quantity) + 1
        tables = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
        _write_policy(self._average[0], tables)
        return tables


@compiled
def _first_vector(code: int, bids: int) -> int:
    """Where the vectors of a public state begin."""
    return bids - 1 + 2 * code - count_ones(code - 1) if code > 0 else 0


@compiled
def _iterate(
    rules: Rules,
    vectors: tuple[FloatArray, FloatArray, FloatArray],
    player: int,
    weights: Weights,
    updates: Int64Array,
) -> None:
    """Update one player's regrets, predicted regrets and average `(V, n)` in one walk."""
    regret, predicted, average = vectors
    bids, n = len(rules.quantity), len(rules.chance)
    stack = new_stack(rules)
    value = np.zeros((bids + 1, bids + 1, n))  # by depth and action, of the updated player
    top = -1
    for code in range(1 << bids):
        depth = count_ones(code)
        for finished in range(top, depth - 1, -1):
            _leave(stack, value, finished, (regret, predicted), (player, weights))
        enter(stack, depth, code)
        first, least = _first_vector(code, bids), 0 if code > 0 else 1
        _match(predicted, first, stack.left[depth], least, stack.policy[depth])
        if depth & 1 == player:
            _add_to_average(stack, depth, average, weights[2])
        if code > 0:
            call_values(stack, depth, rules, depth & 1 == player)
            matches = rules.matches[rules.face[bids - 1 - stack.left[depth]]]
            for x in range(n):
                value[depth, 0, x] = stack.result[matches[x]]
        top = depth
    for finished in range(top, -1, -1):
        _leave(stack, value, finished, (regret, predicted), (player, weights))
    updates[0] += 1


@inlined
def _match(weights: FloatArray, first: int, left: int, least: int, policy: Float64Array) -> None:
    """Make a policy `(left + 1, n)` proportional to positive weights, uniform where none is > 0.

    The actions are `least` to `left`.
    """
    for x in range(policy.shape[1]):
        total = 0.0
        for j in range(least, left + 1):
            total += max(weights[first + j, x], 0.0)
        for j in range(least, left + 1):
            if total > 0:
                policy[j, x] = max(weights[first + j, x], 0.0) / total
            else:
                policy[j, x] = 1.0 / (left + 1 - least)


@inlined
def _add_to_average(stack: Stack, depth: int, average: FloatArray, weight: float) -> None:
    first = _first_vector(stack.code[depth], len(stack.code) - 1)
    for j in range(stack.left[depth] + 1):
        for x in range(stack.reach.shape[1]):
            average[first + j, x] += weight * stack.reach[depth, x] * stack.policy[depth, j, x]


@inlined
def _leave(
    stack: Stack,
    value: Float64Array,
    depth: int,
    regrets: tuple[FloatArray, FloatArray],
    update: tuple[int, Weights],
) -> None:
    """Update the player's regrets if it is the mover, and add its value to the state before."""
    n, left = stack.reach.shape[1], stack.left[depth]
    regret, predicted = regrets
    player, (discount_positive, discount_negative, _, prediction) = update
    first = _first_vector(stack.code[depth], len(stack.code) - 1)
    least, predictive = 0 if depth > 0 else 1, prediction > 0
    for x in range(n):
        mean = 0.0
        if depth & 1 != player:
            for j in range(least, left + 1):  # the opponent's probabilities are in its range
                mean += value[depth, j, x]
        else:
            for j in range(least, left + 1):
                mean += stack.policy[depth, j, x] * value[depth, j, x]
            for j in range(least, left + 1):
                new = value[depth, j, x] - mean
                total = regret[first + j, x] + new
                total *= discount_positive if total >= 0 else discount_negative
                regret[first + j, x] = total
                if predictive:
                    predicted[first + j, x] = total + new
        if depth > 0:
            value[depth - 1, left + 1, x] = mean


@compiled
def _write_policy(average: FloatArray, tables: tuple[Float32Array, Float32Array]) -> None:
    """Write the normalised average into one table `(information sets, B + 1)` per player."""
    bids, n = tables[0].shape[1] - 1, average.shape[1]
    policy = np.zeros((bids + 1, n))
    for code in range(1 << bids):
        left, least = (count_zeros_below(code), 0) if code > 0 else (bids, 1)
        _match(average, _first_vector(code, bids), left, least, policy)
        for x in range(n):
            for j in range(least, left + 1):
                tables[count_ones(code) & 1][(code >> 1) * n + x, bids - j] = policy[j, x]
