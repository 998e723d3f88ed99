"""The interface of native large games: exact measures without a tree, and policies as tables."""

from typing import Any, Protocol

from algorithms.exact.cfr import Variant
from algorithms.exact.native import NativeSolver, Tables
from algorithms.exact.values import Measure
from algorithms.support.arrays import BoolArray, Float32Array, Int64Array


class NativeGame(Protocol):
    """A large two-player game; information sets are numbered per player, actions as in OpenSpiel.

    I_p is the number of information sets of player p and A the number of actions.
    """

    num_players: int  # 2
    num_actions: int
    observation_size: int  # OpenSpiel's tensor, without the one-hot of the seat
    num_infosets: tuple[int, ...]  # per player

    def legal(self, player: int, start: int, stop: int) -> BoolArray:
        """Which actions are legal at information sets `start` to `stop - 1`: `(n, A)`."""

    def observations(self, player: int, start: int, stop: int) -> Float32Array:
        """OpenSpiel's information state tensors of those: `(n, observation_size)`."""

    def uniform(self) -> Tables:
        """The policy that plays every legal action equally often."""

    def random(self, seed: int) -> Tables:
        """A policy drawn uniformly from all policies."""

    def measure(self, tables: Tables) -> Measure:
        """Exact values, best responses and the largest losses of a joint policy."""

    def make_solver(self, variant: Variant) -> NativeSolver:
        """A solver of the CFR family that alternates between the players."""

    def infoset_of(self, state: Any, player: int) -> int:
        """The information set of the player to act in an OpenSpiel state."""

    def find_infosets(self, player: int, observations: Float32Array) -> Int64Array:
        """The information sets that have these observations, `(n, observation_size)`: `(n,)`."""

    def infoset_label(self, player: int, infoset: int) -> str:
        """An information set in words."""

    def action_label(self, player: int, infoset: int, action: int) -> str:
        """An action in words."""
