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

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from algorithms.exact.cfr import Variant, discount
from algorithms.exact.liars_dice import Rules, Tables, count_ones, count_zeros_below, num_infosets
from algorithms.support.arrays import Float32Array, Float64Array, Int64Array
from algorithms.support.compiled import compiled, inlined
from algorithms.support.npz import set_arrays
from kuhn_bridge.errors import BridgeError

Vectors: TypeAlias = Float32Array | Float64Array  # (V, n), one vector per legal action


class Update(NamedTuple):
    """What one walk does: whose regrets it updates, and the variant's weights in the iteration."""

    player: int
    positive: float  # discount of regrets above 0
    negative: float  # discount of those below
    weight: float  # of the policy in the average
    predictive: bool


class LiarsDiceSolver:
    """A run of one alternating variant; with float32 two dice of five sides take 240 MiB.

    Predictive variants take half as much again. An interrupt loses nothing: `run` goes on with the
    next player's update.
    """

    def __init__(
        self, rules: Rules, variant: Variant, *, dtype: npt.DTypeLike = np.float32
    ) -> None:
        if not variant.alternating:
            raise BridgeError("Liar's Dice is solved by alternating variants only")
        self.rules, self.variant = rules, variant
        self._updates = np.zeros(1, np.int64)  # compiled code counts, whatever Ctrl-C interrupts
        bids, n = len(rules.quantity), len(rules.chance)
        shape = _first_vector(1 << bids, bids), n
        self._regret, self._average = np.zeros(shape, dtype), np.zeros(shape, dtype)
        self._predicted = np.zeros(shape, dtype) if variant.predictive else self._regret

    @property
    def iterations(self) -> int:
        """How many are complete."""
        return int(self._updates[0]) // 2

    def run(self, iterations: int) -> None:
        """Run `iterations` more iterations."""
        if iterations < 0:
            raise BridgeError(f"iterations must be 0 or more; got {iterations}")
        variant, end = self.variant, self.iterations + iterations
        vectors = self._regret, self._predicted, self._average
        while self.iterations < end:
            t, player = self.iterations + 1, int(self._updates[0]) % 2
            positive, negative = (discount(t, float(x)) for x in (variant.alpha, variant.beta))
            weight = float(t) ** variant.gamma
            update = Update(player, positive, negative, weight, variant.predictive)
            _iterate(self.rules, vectors, update, self._updates)

    def average_policy(self) -> Tables:
        """The policy that converges; uniform where its owner never arrives."""
        shape = num_infosets(self.rules), len(self.rules.quantity) + 1
        first, second = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
        _write_policy(self._average, (first, second))
        return first, second

    def get_state(self) -> dict[str, npt.NDArray[np.generic]]:
        """Everything that a resumed run needs; the arrays are not copies."""
        state = {"updates": self._updates, "regret": self._regret, "average": self._average}
        return state | ({"predicted": self._predicted} if self.variant.predictive else {})

    def set_state(self, state: Mapping[str, npt.NDArray[np.generic]]) -> None:
        """Continue from what `get_state` returned, bit by bit the same."""
        set_arrays(self.get_state(), state)


class _Stack(NamedTuple):
    """The public states from the first to the current one, as in `algorithms.exact.liars_dice`."""

    code: Int64Array  # (B + 1,)
    left: Int64Array  # (B + 1,)
    policy: Float64Array  # (B + 1, B + 1, n)
    reach: Float64Array  # (B + 3, n)
    value: Float64Array  # (B + 1, B + 1, n) by action: counterfactual values of the updated player
    mass: Float64Array  # (dice + 1,)


@compiled
def _first_vector(code: int, bids: int) -> int:
    """Where the vectors of a public state begin."""
    return bids - 1 + 2 * code - count_ones(code - 1) if code > 0 else 0


@compiled
def _iterate(
    rules: Rules,
    vectors: tuple[Vectors, Vectors, Vectors],
    update: Update,
    updates: Int64Array,
) -> None:
    """Update one player's regrets, predicted regrets and average in one walk."""
    regret, predicted, average = vectors
    bids, n = len(rules.quantity), len(rules.chance)
    stack = _Stack(
        np.zeros(bids + 1, np.int64),
        np.zeros(bids + 1, np.int64),
        np.zeros((bids + 1, bids + 1, n)),
        np.zeros((bids + 3, n)),
        np.zeros((bids + 1, bids + 1, n)),
        np.zeros(rules.dice + 1),
    )
    stack.reach[0] = stack.reach[1] = rules.chance
    top = -1
    for code in range(1 << bids):
        depth = count_ones(code)
        for finished in range(top, depth - 1, -1):
            _leave(stack, finished, regret, predicted, update)
        _enter(stack, depth, code, predicted)
        if depth & 1 == update.player:
            _add_to_average(stack, depth, average, update.weight)
        if code > 0:
            _call(stack, depth, rules, update.player)
        top = depth
    for finished in range(top, -1, -1):
        _leave(stack, finished, regret, predicted, update)
    updates[0] += 1


@inlined
def _enter(stack: _Stack, depth: int, code: int, predicted: Vectors) -> None:
    """Put a public state and its policy, by regret matching, on the stack."""
    bids, n = len(stack.code) - 1, stack.reach.shape[1]
    left = count_zeros_below(code) if code > 0 else bids
    stack.code[depth], stack.left[depth] = code, left
    if code > 0:
        for x in range(n):
            stack.reach[depth + 1, x] = (
                stack.reach[depth - 1, x] * stack.policy[depth - 1, left + 1, x]
            )
    _match(predicted, _first_vector(code, bids), left, 0 if code > 0 else 1, stack.policy[depth])


@inlined
def _match(weights: Vectors, first: int, left: int, least: int, policy: Float64Array) -> None:
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
def _add_to_average(stack: _Stack, depth: int, average: Vectors, weight: float) -> None:
    first = _first_vector(stack.code[depth], len(stack.code) - 1)
    for j in range(stack.left[depth] + 1):
        for x in range(stack.reach.shape[1]):
            average[first + j, x] += weight * stack.reach[depth, x] * stack.policy[depth, j, x]


@inlined
def _call(stack: _Stack, depth: int, rules: Rules, player: int) -> None:
    """Set the player's value of "liar", its own call or the opponent's, by private state."""
    bid = len(rules.quantity) - 1 - stack.left[depth]
    quantity, matches = rules.quantity[bid], rules.matches[rules.face[bid]]
    calls = depth & 1 == player
    mass = stack.mass
    for m in range(len(mass)):
        mass[m] = 0.0
    for x in range(len(matches)):
        if calls:
            mass[matches[x]] += stack.reach[depth + 1, x]
        else:
            mass[matches[x]] += stack.reach[depth, x] * stack.policy[depth, 0, x]
    for x in range(len(matches)):
        won = 0.0
        for m in range(len(mass)):
            won += mass[m] if (matches[x] + m < quantity) == calls else -mass[m]
        stack.value[depth, 0, x] = won


@inlined
def _leave(stack: _Stack, depth: int, regret: Vectors, predicted: Vectors, update: Update) -> None:
    """Update the regrets if the player is the mover, and hand its value to the state before."""
    n, left = stack.reach.shape[1], stack.left[depth]
    first = _first_vector(stack.code[depth], len(stack.code) - 1)
    least = 0 if depth > 0 else 1
    for x in range(n):
        value = 0.0
        if depth & 1 != update.player:
            for j in range(least, left + 1):  # the opponent's probabilities are in its range
                value += stack.value[depth, j, x]
        else:
            for j in range(least, left + 1):
                value += stack.policy[depth, j, x] * stack.value[depth, j, x]
            for j in range(least, left + 1):
                gain = stack.value[depth, j, x] - value
                total = regret[first + j, x] + gain
                total *= update.positive if total >= 0 else update.negative
                regret[first + j, x] = total
                if update.predictive:
                    predicted[first + j, x] = total + gain
        if depth > 0:
            stack.value[depth - 1, left + 1, x] = value


@compiled
def _write_policy(average: Vectors, tables: tuple[Float32Array, Float32Array]) -> None:
    """Write the normalised average into one table `(information sets, B + 1)` per player."""
    bids, n = tables[0].shape[1] - 1, average.shape[1]
    policy = np.zeros((bids + 1, n))
    for code in range(1 << bids):
        left, least = (count_zeros_below(code), 0) if code > 0 else (bids, 1)
        _match(average, _first_vector(code, bids), left, least, policy)
        for x in range(n):
            for j in range(least, left + 1):
                tables[count_ones(code) & 1][(code >> 1) * n + x, bids - j] = policy[j, x]
