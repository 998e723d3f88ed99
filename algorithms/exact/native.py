"""Shared by native large games: checks of their tables, losses, and solvers of the CFR family.

A policy is one table of float32 probabilities `(I_p, A)` per player p, with I_p information sets.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from algorithms.exact.cfr import Variant, Weights, iteration_weights, require_iterations
from algorithms.exact.values import NO_LOSS, Loss
from algorithms.support.arrays import Float32Array, Float64Array, Int8Array
from kuhn_bridge.errors import BridgeError, PolicyError

Tables: TypeAlias = tuple[Float32Array, ...]  # one (I_p, A) per player
FloatArray: TypeAlias = Float32Array | Float64Array
ROW_SUM_TOLERANCE = 1e-5  # how far a row of float32 probabilities may sum from 1
MAX_LOSSES = 1_000


def require_tables(tables: Sequence[npt.ArrayLike], shapes: Sequence[tuple[int, int]]) -> Tables:
    """The tables as contiguous float32; a `PolicyError` if they have other shapes."""
    if (got := [np.shape(table) for table in tables]) != list(shapes):
        raise PolicyError(f"a policy of this game is tables of shapes {[*shapes]}; got {got}")
    return tuple(np.ascontiguousarray(table, np.float32) for table in tables)


def invalid_row(tables: Tables, player: int, infoset: int) -> PolicyError:
    """The error for a row that is not a distribution over the legal actions."""
    return PolicyError(
        f"player {player}, information set {infoset}: {tables[player][infoset].tolist()} are not "
        "probabilities of its legal actions"
    )


def largest_losses(
    tables: Tables,
    best_responses: Sequence[Int8Array],
    lost: Sequence[Float64Array],
    reach: Callable[[int, int], float],
) -> tuple[Loss, ...]:
    """The `MAX_LOSSES` largest of the losses `lost`, one `(I_p,)` per player, the largest first.

    `reach(player, infoset)` is the probability that a hand arrives at an information set.
    """
    found: list[tuple[float, int, int]] = []
    for player, amounts in enumerate(lost):
        infosets = np.flatnonzero(amounts > NO_LOSS)
        if len(infosets) > MAX_LOSSES:
            infosets = infosets[np.argpartition(-amounts[infosets], MAX_LOSSES)[:MAX_LOSSES]]
        found += [(-float(amounts[infoset]), player, int(infoset)) for infoset in infosets]
    losses = []
    for negative, player, infoset in sorted(found)[:MAX_LOSSES]:
        row = tables[player][infoset].astype(np.float64)
        played, best = int(row.argmax()), int(best_responses[player][infoset])
        probability = float(row[played] / row.sum())
        arrival = reach(player, infoset)
        losses.append(Loss(player, infoset, arrival, played, probability, best, -negative))
    return tuple(losses)


class NativeSolver:
    """A run of one alternating variant of CFR, which a checkpoint can continue.

    Ctrl-C loses nothing: `run` continues with the next player's update. Regrets, averages and, in
    predictive variants, predicted regrets are arrays named by the keys of `shapes`.
    """

    def __init__(
        self, variant: Variant, shapes: Mapping[str, tuple[int, int]], dtype: npt.DTypeLike
    ) -> None:
        if not variant.alternating:
            raise BridgeError(f"native games are solved by alternating variants; got {variant}")

        def zeros() -> list[FloatArray]:
            return [np.zeros(shape, dtype) for shape in shapes.values()]

        self.variant = variant
        self._names = list(shapes)
        self._updates = np.zeros(1, np.int64)  # counted by compiled code, which Ctrl-C cannot split
        self._regret, self._average = zeros(), zeros()
        self._predicted = zeros() if variant.predictive else self._regret

    @property
    def iterations(self) -> int:
        """The number of complete iterations: updates of both players."""
        return int(self._updates[0]) // 2

    def run(self, iterations: int) -> None:
        """Run `iterations` more iterations."""
        require_iterations(iterations)
        end = self.iterations + iterations
        while self.iterations < end:
            weights = iteration_weights(self.variant.numbers, self.iterations + 1)
            self._update(int(self._updates[0]) % 2, weights)

    def _update(self, player: int, weights: Weights) -> None:
        """Update one player's regrets and average, and add 1 to the number of updates."""
        raise NotImplementedError

    def average_policy(self) -> Tables:
        """The average policy, which converges; uniform where its owner never arrives."""
        raise NotImplementedError

    def get_state(self) -> dict[str, npt.NDArray[Any]]:
        """Everything that a resumed run needs; the arrays are not copies."""
        state: dict[str, npt.NDArray[Any]] = {"updates": self._updates}
        kinds = {"regret": self._regret, "average": self._average, "predicted": self._predicted}
        for kind, arrays in kinds.items():
            if kind != "predicted" or self.variant.predictive:
                state |= {f"{kind}{name}": x for name, x in zip(self._names, arrays, strict=True)}
        return state

    def set_state(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Continue from a state of `get_state`, with the same results to the last bit."""
        arrays = self.get_state()
        if any(n not in state or state[n].shape != array.shape for n, array in arrays.items()):
            raise BridgeError("not the state of a solver of this game and variant")
        for name, array in arrays.items():
            array[...] = state[name]
