"""The base class of solvers of the CFR family in games without a tree."""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from algorithms.cfr import Variant, Weights, iteration_weights, require_iterations
from algorithms.support.arrays import Float32Array
from kuhn_bridge.errors import BridgeError

Tables: TypeAlias = tuple[Float32Array, ...]  # one (I_p, A) per player


class LargeGameSolver:
    """A run of one variant of CFR, which a checkpoint can continue.

    Ctrl-C loses nothing: `run` continues with the next player's update. Regrets, averages and, in
    predictive variants, predicted regrets are arrays named by the keys of `shapes`.
    """

    def __init__(self, variant: Variant, shapes: Mapping[str, tuple[int, int]]) -> None:
        self.variant = variant
        self._updates = np.zeros(1, np.int64)  # counted by compiled code, which Ctrl-C cannot split
        self._state: dict[str, npt.NDArray[Any]] = {"updates": self._updates}
        kinds = ["regret", "average"]
        if variant.predictive:
            kinds.append("predicted")
        for kind in kinds:
            for name, shape in shapes.items():
                self._state[f"{kind}{name}"] = np.zeros(shape, np.float32)

    def _weights(self, kind: Literal["average", "predicted"], name: str) -> Float32Array:
        """Averages or predicted regrets, which are the regrets unless the variant is predictive."""
        if f"{kind}{name}" in self._state:
            return self._state[f"{kind}{name}"]
        return self._state[f"regret{name}"]

    def _arrays(self, name: str) -> tuple[Float32Array, Float32Array, Float32Array]:
        """Regrets, predicted regrets (the same array without prediction) and averages."""
        regret = self._state[f"regret{name}"]
        return regret, self._state.get(f"predicted{name}", regret), self._state[f"average{name}"]

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
        return self._policy_of("average")

    def current_policy(self) -> Tables:
        """The last policy, which the next iteration would play."""
        return self._policy_of("predicted")

    def _policy_of(self, kind: Literal["average", "predicted"]) -> Tables:
        """New tables in proportion to the averages, or to the predicted regrets above 0."""
        raise NotImplementedError

    def get_state(self) -> dict[str, npt.NDArray[Any]]:
        """Everything that a resumed run needs; the arrays are not copies."""
        return self._state

    def set_state(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Continue from a state of `get_state`, with the same results to the last bit."""
        if any(x not in state or state[x].shape != old.shape for x, old in self._state.items()):
            raise BridgeError("not the state of a solver of this game and variant")
        for name, array in self._state.items():
            array[...] = state[name]
