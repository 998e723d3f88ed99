"""The CFR family on phantom games, with the factored products as the sum over terminal histories.

In iteration t each player p in turn, with the other player's current policy fixed,

    q(I, a)  = counterfactual value of action a at information set I
    r(I, a)  = q(I, a) - sum_b policy(I, b) q(I, b)
    R(I, a) <- discount(R(I, a) + r(I, a))
    average(I, a) += t^gamma * reach_p(I) * policy(I, a)

and the next policy is proportional to the positive part of R (of R + r if predictive). Discounts
are those of `algorithms.exact.cfr`, and so are the iterates, up to rounding: by default regrets and
averages are float32.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from algorithms.exact.cfr import Variant, Weights
from algorithms.exact.native import FloatArray, NativeSolver, Tables
from algorithms.exact.phantom.sequences import Sequences
from algorithms.exact.phantom.values import (
    Children,
    Evaluator,
    for_each_infoset,
    normalise,
    sum_positive,
    write_reach,
)
from algorithms.support.arrays import Float64Array, Int64Array
from algorithms.support.compiled import compiled, inlined

# Regrets, predicted regrets (the same table without prediction) and averages, (I, A) each.
_Regrets: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]
# Reach probabilities and counterfactual values by node.
_Numbers: TypeAlias = tuple[Float64Array, Float64Array]


class PhantomSolver(NativeSolver):
    """A solver of a phantom game; its updates and evaluations share the evaluator's arrays."""

    def __init__(
        self, evaluator: Evaluator, variant: Variant, *, dtype: npt.DTypeLike = np.float32
    ) -> None:
        shapes = {f"_{x.player}": (x.num_infosets, x.cells) for x in evaluator.sequences}
        super().__init__(variant, shapes, dtype)
        self._evaluator = evaluator

    def _update(self, player: int, weights: Weights) -> None:
        evaluator = self._evaluator
        if evaluator.holder is not self:
            self._write_reach(0)
            self._write_reach(1)
            evaluator.holder = self
        evaluator.set_terminal_values(player)
        evaluator.holder = None
        _update_regrets(
            evaluator.sequences[player],
            (self._regret[player], self._predicted[player], self._average[player]),
            (evaluator.reach[player], evaluator.values[player]),
            weights,
            self._updates,
        )
        self._write_reach(player)
        evaluator.holder = self

    def _write_reach(self, player: int) -> None:
        evaluator = self._evaluator
        write_reach(evaluator.sequences[player], self._predicted[player], evaluator.reach[player])

    def average_policy(self) -> Tables:
        """The average policy, which converges; uniform where its owner never arrives."""
        tables = tuple(table.astype(np.float32) for table in self._average)
        for sequences, table in zip(self._evaluator.sequences, tables, strict=True):
            normalise(sequences, table)
        return tables

    def set_state(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Continue from a state of `get_state`, with the same results to the last bit."""
        super().set_state(state)
        self._evaluator.holder = None


@compiled
def _update_regrets(
    sequences: Sequences,
    regrets: _Regrets,
    numbers: _Numbers,
    weights: Weights,
    updates: Int64Array,
) -> None:
    """Update the tables from the last decisions to the first.

    The values are those of terminal histories; those of the current policy are added to them.
    """
    for_each_infoset(sequences, _update_row, (regrets, numbers, weights), True)
    updates[0] += 1


@inlined
def _update_row(
    arrays: tuple[_Regrets, _Numbers, Weights],
    node: np.uint64,
    infoset: np.uint64,
    children: Children,
    i: np.uint64,
) -> None:
    (regrets, predicted, average), (reach, values), weights = arrays
    discount_positive, discount_negative, weight, prediction = weights
    total = sum_positive(predicted, infoset, children)
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
