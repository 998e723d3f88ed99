"""Native large games: their interface, checks of tables, losses, and solvers of the CFR family.

A policy is one table of float32 probabilities `(I_p, A)` per player p, with I_p information sets.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from algorithms.cfr import VARIANTS, Variant, Weights, iteration_weights, require_iterations
from algorithms.nashconv import NO_LOSS, Loss, Measure
from algorithms.support.arrays import BoolArray, Float32Array, Float64Array, Int8Array, Int64Array
from kuhn_bridge.errors import BridgeError, PolicyError

Tables: TypeAlias = tuple[Float32Array, ...]  # one (I_p, A) per player
ROW_SUM_TOLERANCE = 1e-5  # how far a row of float32 probabilities may sum from 1
MAX_LOSSES = 1_000


class NativeGame(Protocol):
    """A large two-player game; information sets are numbered per player, actions as in OpenSpiel.

    I_p is the number of information sets of player p and A the number of actions.
    """

    num_players: int = 2
    num_actions: int
    observation_size: int  # OpenSpiel's tensor, without the one-hot of the seat
    num_infosets: tuple[int, ...]  # per player

    def legal(self, player: int, start: int, stop: int) -> BoolArray:
        """Which actions are legal at information sets `start` to `stop - 1`: `(n, A)`."""

    def observations(self, player: int, start: int, stop: int) -> Float32Array:
        """OpenSpiel's information state tensors of those: `(n, observation_size)`."""

    def find_infosets(self, player: int, observations: Float32Array) -> Int64Array:
        """The information sets that have these observations, `(n, observation_size)`: `(n,)`."""

    def uniform(self) -> Tables:
        """The policy that plays every legal action equally often: a solver's before it starts."""
        return self.make_solver(VARIANTS["cfr"]).average_policy()

    def random(self, seed: int) -> Tables:
        """A policy drawn uniformly from all policies."""

    def measure(self, tables: Tables) -> Measure:
        """Exact values, best responses and the largest losses of a joint policy."""

    def make_solver(self, variant: Variant) -> "NativeSolver":
        """A solver of the CFR family that alternates between the players."""

    def infoset_label(self, player: int, infoset: int) -> str:
        """An information set in words."""

    def action_label(self, player: int, infoset: int, action: int) -> str:
        """An action in words."""


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
        numbers = reach(player, infoset), played, float(row[played] / row.sum()), best, -negative
        losses.append(Loss(player, infoset, *numbers))
    return tuple(losses)


class NativeSolver:
    """A run of one alternating variant of CFR, which a checkpoint can continue.

    Ctrl-C loses nothing: `run` continues with the next player's update. Regrets, averages and, in
    predictive variants, predicted regrets are arrays named by the keys of `shapes`.
    """

    def __init__(self, variant: Variant, shapes: Mapping[str, tuple[int, int]]) -> None:
        self.variant = variant
        self._updates = np.zeros(1, np.int64)  # counted by compiled code, which Ctrl-C cannot split
        self._state: dict[str, npt.NDArray[Any]] = {"updates": self._updates}
        for kind in ("regret", "average", *["predicted"] * variant.predictive):
            self._state |= {
                f"{kind}{x}": np.zeros(shape, np.float32) for x, shape in shapes.items()
            }

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
