"""What every native large game offers: measured exactly without a tree, policies as tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from algorithms.exact.cfr import Variant
from algorithms.exact.solving import ResumableSolver
from algorithms.exact.values import NO_LOSS
from algorithms.support.arrays import BoolArray, Float32Array, Float64Array, Int8Array, Int64Array

Tables: TypeAlias = tuple[Float32Array, ...]  # one (I_p, A) per player


class NativeGame(Protocol):
    """A large two-player game; information sets are numbered per player, actions as in OpenSpiel.

    I_p is the number of information sets of player p and A the number of actions.
    """

    name: str
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

    def measure(self, tables: Tables) -> NativeMeasure:
        """Exact values, gains and best responses of a joint policy."""

    def make_solver(self, variant: Variant) -> ResumableSolver:
        """A solver of the CFR family that alternates between the players."""

    def infoset_of(self, state: Any, player: int) -> int:
        """The information set of the player to act in an OpenSpiel state."""

    def find_infosets(self, player: int, observations: Float32Array) -> Int64Array:
        """The information sets that have these observations, `(n, observation_size)`: `(n,)`."""

    def infoset_label(self, player: int, infoset: int) -> str:
        """An information set in words."""

    def action_label(self, player: int, infoset: int, action: int) -> str:
        """An action in words."""


class NativeLoss(NamedTuple):
    """One information set: how often it is reached, what is played and what would be best there."""

    player: int
    infoset: int
    reach: float
    played: int  # the most probable action
    probability: float  # of that action
    best: int
    lost: float  # chips per hand, of all hands


@dataclass(frozen=True, slots=True, eq=False)
class NativeMeasure:
    """What a joint policy wins and what best responses would win, in chips per hand."""

    values: tuple[float, ...]
    best_values: tuple[float, ...]
    best_response: tuple[Int8Array, ...]  # per player (I_p,) actions
    find_losses: Callable[[int], tuple[NativeLoss, ...]] = field(repr=False)

    @property
    def gains(self) -> tuple[float, ...]:
        """How much more each player would win by best-responding to the others."""
        return tuple(
            best - value for best, value in zip(self.best_values, self.values, strict=True)
        )

    @property
    def nash_conv(self) -> float:
        """The sum of all players' gains."""
        return sum(self.gains)

    @property
    def exploitability(self) -> float:
        """NashConv divided by the number of players."""
        return self.nash_conv / len(self.values)

    def losses(self, count: int) -> tuple[NativeLoss, ...]:
        """Where the policy loses most to best responses: the `count` largest losses, in order."""
        return self.find_losses(count)


def largest_losses(lost: Sequence[Float64Array], count: int) -> list[tuple[int, int]]:
    """The (player, information set) of the largest losses; `lost` has one `(I_p,)` per player."""
    found: list[tuple[float, int, int]] = []
    for player, amounts in enumerate(lost):
        places = np.flatnonzero(amounts > NO_LOSS)
        if len(places) > count:
            places = places[np.argpartition(-amounts[places], count)[:count]]
        found += [(-float(amounts[place]), player, int(place)) for place in places]
    return [(player, place) for _, player, place in sorted(found)[:count]]
