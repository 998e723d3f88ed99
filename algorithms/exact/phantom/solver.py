"""The CFR family on phantom games, with the factored products as the sum over terminal histories.

In iteration t each player p in turn, with the other player's current policy fixed,

    q(I, a)  = counterfactual value of action a at information set I
    r(I, a)  = q(I, a) - sum_b policy(I, b) q(I, b)
    R(I, a) <- discount(R(I, a) + r(I, a))
    average(I, a) += t^gamma * reach_p(I) * policy(I, a)

and the next policy is proportional to the positive part of R (of R + r if predictive). Discounts
are those of `algorithms.exact.cfr.Variant`, whose iterates these are up to rounding: by default
regrets and averages are kept in single precision.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from algorithms.exact.cfr import Variant, discount
from algorithms.exact.phantom.sequences import Sequences
from algorithms.exact.phantom.values import (
    Evaluator,
    find_children,
    normalise,
    sum_positive,
    write_reach,
)
from algorithms.support.arrays import Float32Array, Float64Array, Int64Array
from algorithms.support.compiled import compiled
from algorithms.support.npz import set_arrays
from kuhn_bridge.errors import BridgeError

_Table: TypeAlias = Float32Array | Float64Array  # (I, A)
_Tables: TypeAlias = tuple[_Table, _Table]  # one per player


class PhantomSolver:
    """A run of one variant on one game.

    An interrupt loses nothing: `run` goes on with the next player's update.
    """

    def __init__(
        self, evaluator: Evaluator, variant: Variant, *, dtype: npt.DTypeLike = np.float32
    ) -> None:
        if not variant.alternating:
            raise BridgeError(f"{variant}: solvers of phantom games update the players in turn")
        self.variant = variant
        self._evaluator = evaluator
        self._updates = np.zeros(1, np.int64)  # compiled code counts, whatever Ctrl-C interrupts
        self._regret, self._average = self._zeros(dtype), self._zeros(dtype)
        self._predicted = self._zeros(dtype) if variant.predictive else self._regret

    def _zeros(self, dtype: npt.DTypeLike) -> _Tables:
        first, second = (
            np.zeros((sequences.num_infosets, sequences.cells), dtype)
            for sequences in self._evaluator.sequences
        )
        return first, second

    @property
    def iterations(self) -> int:
        """How many are complete."""
        return int(self._updates[0]) // 2

    def run(self, iterations: int) -> None:
        """Run `iterations` more iterations."""
        if iterations < 0:
            raise BridgeError(f"iterations must be 0 or more; got {iterations}")
        end = self.iterations + iterations
        while self.iterations < end:
            self._update(int(self._updates[0]) % 2)

    def _update(self, player: int) -> None:
        evaluator = self._evaluator
        if evaluator.holder is not self:
            for owner in (0, 1):
                write_reach(
                    evaluator.sequences[owner], self._predicted[owner], evaluator.reach[owner]
                )
            evaluator.holder = self
        evaluator.set_gains(player)
        evaluator.holder = None
        t, variant = self.iterations + 1, self.variant
        _update_regrets(
            evaluator.sequences[player],
            (self._regret[player], self._predicted[player], self._average[player]),
            (evaluator.reach[player], evaluator.gain[player]),
            (
                discount(t, variant.alpha),
                discount(t, variant.beta),
                float(t) ** variant.gamma,
                float(variant.predictive),
            ),
            self._updates,
        )
        write_reach(evaluator.sequences[player], self._predicted[player], evaluator.reach[player])
        evaluator.holder = self

    def average_policy(self) -> tuple[Float32Array, Float32Array]:
        """The average policy, one `(I_p, A)` per player; uniform where it never arrives."""
        return self._policy(self._average)

    def current_policy(self) -> tuple[Float32Array, Float32Array]:
        """What is played next, one `(I_p, A)` per player."""
        return self._policy(self._predicted)

    def _policy(self, weights: _Tables) -> tuple[Float32Array, Float32Array]:
        first, second = (table.astype(np.float32) for table in weights)
        for sequences, table in zip(self._evaluator.sequences, (first, second), strict=True):
            normalise(sequences, table)
        return first, second

    def get_state(self) -> dict[str, npt.NDArray[np.generic]]:
        """Everything that a resumed run needs; the arrays are not copies."""
        kinds = {"regret": self._regret, "average": self._average}
        if self.variant.predictive:
            kinds["predicted"] = self._predicted
        named = {f"{name}_{p}": pair[p] for name, pair in kinds.items() for p in (0, 1)}
        return {"updates": self._updates, **named}

    def set_state(self, state: Mapping[str, npt.NDArray[np.generic]]) -> None:
        """Continue from what `get_state` returned, bit by bit the same."""
        set_arrays(self.get_state(), state)
        self._evaluator.holder = None


@compiled
def _update_regrets(
    sequences: Sequences,
    tables: tuple[_Table, _Table, _Table],
    numbers: tuple[Float64Array, Float64Array],
    weights: tuple[float, float, float, float],
    updates: Int64Array,
) -> None:
    """Update regrets, predicted regrets and average `(I, A)`, from the last decisions to the first.

    `numbers` are reach and gain: the latter has the counterfactual values of ends, to which values
    of the current policy are added.
    Without prediction the first two tables are the same.
    """
    regrets, predicted, average = tables
    reach, gain = numbers
    keep_positive, keep_negative, weight, prediction = weights
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
                total = sum_positive(predicted, infoset, actions, np.uint64(count))
                slope = 1.0 / total if total > 0 else 0.0
                offset = 0.0 if total > 0 else 1.0 / count
                mean = 0.0
                for k in range(np.uint64(count)):
                    value = gain[success[k] + i] + gain[failure[k] + i]
                    policy = slope * max(predicted[infoset, actions[k]], 0.0) + offset
                    mean += policy * value
                    average[infoset, actions[k]] += weight * reach[node] * policy
                for k in range(np.uint64(count)):
                    value = gain[success[k] + i] + gain[failure[k] + i]
                    regret = regrets[infoset, actions[k]] + (value - mean)
                    regret *= keep_positive if regret >= 0 else keep_negative
                    regrets[infoset, actions[k]] = regret
                    predicted[infoset, actions[k]] = regret + prediction * (value - mean)
                gain[node] += mean
                node += np.uint64(1)
                infoset += np.uint64(1)
            success += np.uint64(step)
            failure += np.uint64(orders)
    updates[0] += 1
